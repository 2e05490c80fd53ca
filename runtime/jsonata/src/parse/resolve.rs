//! Syntax into what is evaluated: paths become lists of steps, predicates go to their steps, `%` finds the step whose parent it means, calls in tail position are marked.

use super::parents::Parents;
use super::syntax::{self, Syntax};
use crate::ast::{Ast, Call, Group, Kind, Lambda, Node, Path, Slot, SortTerm, Stage, Transform};
use crate::error::{Error, Result};
use crate::functions::{Builtin, Dialect};

pub(super) fn resolve(syntax: Syntax, dialect: Dialect) -> Result<Ast> {
    let mut resolver = Resolver { dialect, parents: Parents::default() };
    let root = resolver.node(syntax)?;
    if matches!(root.kind, Kind::Parent(_)) || !root.seeking.is_empty() {
        return Err(Error::new("S0217").at(root.position).with_token(name(&root.kind)));
    }
    Ok(Ast { root, labels: resolver.parents.labels() })
}

struct Resolver {
    dialect: Dialect,
    parents: Parents,
}

impl Resolver {
    fn boxed(&mut self, syntax: Syntax) -> Result<Box<Node>> {
        Ok(Box::new(self.node(syntax)?))
    }

    fn nodes(&mut self, items: Vec<Syntax>) -> Result<Vec<Node>> {
        items.into_iter().map(|item| self.node(item)).collect()
    }

    fn node(&mut self, syntax: Syntax) -> Result<Node> {
        let Syntax { kind, position, keep_array, .. } = syntax;
        let mut node = match kind {
            syntax::Kind::End => return Err(Error::new("S0207").at(position).with_token("(end)")),
            syntax::Kind::Null => Node::new(Kind::Null, position),
            syntax::Kind::Bool(bool) => Node::new(Kind::Bool(bool), position),
            syntax::Kind::Number(number) => Node::new(Kind::Number(number), position),
            syntax::Kind::Text(text) => Node::new(Kind::Text(text.into()), position),
            syntax::Kind::Regex(regex) => Node::new(Kind::Regex(regex), position),
            syntax::Kind::Wildcard => Node::new(Kind::Wildcard, position),
            syntax::Kind::Descendants => Node::new(Kind::Descendants, position),
            syntax::Kind::Name(name) => named(name, position, keep_array),
            syntax::Kind::Variable(name) => {
                let builtin = Builtin::named(&name, self.dialect);
                Node::new(Kind::Variable(name.into(), builtin), position)
            }
            syntax::Kind::Parent => Node::new(Kind::Parent(self.parents.slot()), position),
            syntax::Kind::Map(left, right) => self.map(*left, *right, position)?,
            syntax::Kind::Filter(left, right) => self.filter(*left, *right, position)?,
            syntax::Kind::Group(left, pairs) => self.group(*left, pairs, position)?,
            syntax::Kind::Sort(left, terms) => self.sort(*left, terms, position)?,
            syntax::Kind::Focus(left, variable) => self.focus(*left, variable, keep_array, position)?,
            syntax::Kind::Index(left, variable) => self.index(*left, variable, position)?,
            other => self.operation(other, position)?,
        };
        node.keep_array |= keep_array;
        Ok(node)
    }

    /// What has no part in paths.
    fn operation(&mut self, kind: syntax::Kind, position: u32) -> Result<Node> {
        let mut seeking = Vec::new();
        let kind = match kind {
            syntax::Kind::Binary(operator, left, right) => {
                let (left, right) = (self.boxed(*left)?, self.boxed(*right)?);
                seek([&*left, &right], &mut seeking);
                Kind::Binary(operator, left, right)
            }
            syntax::Kind::Apply(left, right) => {
                let (left, right) = (self.boxed(*left)?, self.boxed(*right)?);
                let mut node = Node::new(Kind::Null, position);
                node.keep_array = left.keep_array || right.keep_array;
                node.kind = Kind::Apply(left, right);
                return Ok(node);
            }
            syntax::Kind::Negate(inner) => {
                let inner = self.node(*inner)?;
                if let Kind::Number(number) = inner.kind {
                    return Ok(Node { kind: Kind::Number(-number), ..inner });
                }
                seek([&inner], &mut seeking);
                Kind::Negate(Box::new(inner))
            }
            syntax::Kind::Array(items) => {
                let items = self.nodes(items)?;
                seek(&items, &mut seeking);
                Kind::Array(items)
            }
            syntax::Kind::Object(pairs) => {
                let pairs = self.pairs(pairs)?;
                seek(pairs.iter().flat_map(|(key, value)| [key, value]), &mut seeking);
                Kind::Object(Group { pairs, position })
            }
            syntax::Kind::Block(parts) => return self.block(parts, position),
            syntax::Kind::Bind(name, value) => {
                let value = self.boxed(*value)?;
                seek([&*value], &mut seeking);
                Kind::Bind(name.into(), value)
            }
            syntax::Kind::Call(procedure, arguments) => {
                let arguments = self.nodes(arguments)?;
                seek(&arguments, &mut seeking);
                Kind::Call(Call { procedure: self.boxed(*procedure)?, arguments, is_tail: false })
            }
            syntax::Kind::Partial(procedure, arguments) => {
                let resolve = |argument: Option<Syntax>| argument.map(|argument| self.node(argument)).transpose();
                let arguments = arguments.into_iter().map(resolve).collect::<Result<Vec<_>>>()?;
                seek(arguments.iter().flatten(), &mut seeking);
                Kind::Partial(self.boxed(*procedure)?, arguments)
            }
            other => self.branch(other, &mut seeking)?,
        };
        Ok(Node { seeking, ..Node::new(kind, position) })
    }

    fn branch(&mut self, kind: syntax::Kind, seeking: &mut Vec<Slot>) -> Result<Kind> {
        Ok(match kind {
            syntax::Kind::Lambda(parameters, signature, body) => {
                let mut body = self.boxed(*body)?;
                mark_tail(&mut body);
                let parameters = parameters.into_iter().map(Box::from).collect();
                Kind::Lambda(Lambda { parameters, signature, body })
            }
            syntax::Kind::Condition(condition, then, otherwise) => {
                let (condition, then) = (self.boxed(*condition)?, self.boxed(*then)?);
                let otherwise = otherwise.map(|otherwise| self.boxed(*otherwise)).transpose()?;
                seek([&*condition, &then].into_iter().chain(otherwise.as_deref()), seeking);
                Kind::Condition(condition, then, otherwise)
            }
            syntax::Kind::Default(left, right) => {
                let (left, right) = (self.boxed(*left)?, self.boxed(*right)?);
                seek([&*left, &right], seeking);
                Kind::Default(left, right)
            }
            syntax::Kind::Coalesce(left, right) => {
                let (left, right) = (self.boxed(*left)?, self.boxed(*right)?);
                seek([&*left, &right], seeking);
                Kind::Coalesce(left, right)
            }
            syntax::Kind::Transform(pattern, update, deletion) => {
                let (pattern, update) = (self.boxed(*pattern)?, self.boxed(*update)?);
                let deletion = deletion.map(|deletion| self.boxed(*deletion)).transpose()?;
                Kind::Transform(Transform { pattern, update, deletion })
            }
            _ => return Err(Error::new("S0201")), // all others are handled by the callers
        })
    }

    fn pairs(&mut self, pairs: Vec<(Syntax, Syntax)>) -> Result<Vec<(Node, Node)>> {
        pairs.into_iter().map(|(key, value)| Ok((self.node(key)?, self.node(value)?))).collect()
    }

    fn block(&mut self, parts: Vec<Syntax>, position: u32) -> Result<Node> {
        let parts = self.nodes(parts)?;
        let mut node = Node::new(Kind::Null, position);
        seek(&parts, &mut node.seeking);
        node.is_constructor = parts.iter().any(|part| match &part.kind {
            Kind::Path(path) => path.steps.first().is_some_and(|step| step.is_constructor),
            _ => part.is_constructor,
        });
        node.kind = Kind::Block(parts);
        Ok(node)
    }

    fn map(&mut self, left: Syntax, right: Syntax, position: u32) -> Result<Node> {
        let left = self.node(left)?;
        let mut node = match left.kind {
            Kind::Path(_) => left,
            _ => {
                let seeking = if let Kind::Parent(slot) = left.kind { vec![slot] } else { Vec::new() };
                Node { seeking, ..path(left, position) }
            }
        };
        let mut right = self.node(right)?;
        let Kind::Path(path) = &mut node.kind else {
            return Ok(node); // it is a path
        };
        match right.kind {
            Kind::Path(rest) => path.steps.extend(rest.steps),
            _ => {
                right.stages = right.predicates.drain(..).map(Stage::Filter).collect();
                path.steps.push(right);
            }
        }
        for step in &mut path.steps {
            let kind = std::mem::replace(&mut step.kind, Kind::Null);
            step.kind = match kind {
                Kind::Number(number) => return Err(literal(crate::number::to_text(number), step.position)),
                Kind::Bool(bool) => return Err(literal(bool.to_string(), step.position)),
                Kind::Null => return Err(literal(String::from("null"), step.position)),
                Kind::Text(text) => Kind::Name(text),
                other => other,
            };
        }
        path.keeps_singleton |= path.steps.iter().any(|step| step.keep_array);
        if let Some(step) = path.steps.first_mut() {
            step.is_constructor |= matches!(step.kind, Kind::Array(_));
        }
        if let Some(step) = path.steps.last_mut() {
            step.is_constructor |= matches!(step.kind, Kind::Array(_));
        }
        self.parents.resolve(&mut node)?;
        Ok(node)
    }

    fn filter(&mut self, left: Syntax, right: Syntax, position: u32) -> Result<Node> {
        let mut node = self.node(left)?;
        let predicate = self.node(right)?;
        let is_path = matches!(node.kind, Kind::Path(_));
        change_step(&mut node, |step| {
            if step.group.is_some() {
                return Err(Error::new("S0209").at(position));
            }
            for &slot in &predicate.seeking {
                self.parents.seek_from_predicate(step, slot)?;
            }
            step.seeking.extend(&predicate.seeking);
            if is_path {
                step.stages.push(Stage::Filter(predicate));
            } else {
                step.predicates.push(predicate);
            }
            Ok(())
        })?;
        Ok(node)
    }

    fn group(&mut self, left: Syntax, pairs: Vec<(Syntax, Syntax)>, position: u32) -> Result<Node> {
        let mut node = self.node(left)?;
        if node.group.is_some() {
            return Err(Error::new("S0210").at(position));
        }
        node.group = Some(Box::new(Group { pairs: self.pairs(pairs)?, position }));
        Ok(node)
    }

    fn sort(&mut self, left: Syntax, terms: Vec<(bool, Syntax)>, position: u32) -> Result<Node> {
        let left = self.node(left)?;
        let mut node = if matches!(left.kind, Kind::Path(_)) { left } else { path(left, position) };
        let mut step = Node::new(Kind::Null, position);
        let mut resolved = Vec::new();
        for (is_descending, term) in terms {
            let expression = self.node(term)?;
            seek([&expression], &mut step.seeking);
            resolved.push(SortTerm { is_descending, expression });
        }
        step.kind = Kind::Sort(resolved);
        if let Kind::Path(path) = &mut node.kind {
            path.steps.push(step);
        }
        self.parents.resolve(&mut node)?;
        Ok(node)
    }

    fn focus(&mut self, left: Syntax, variable: String, keep_array: bool, position: u32) -> Result<Node> {
        let mut node = self.node(left)?;
        change_step(&mut node, |step| {
            if !step.stages.is_empty() || !step.predicates.is_empty() {
                return Err(Error::new("S0215").at(position));
            }
            if matches!(step.kind, Kind::Sort(_)) {
                return Err(Error::new("S0216").at(position));
            }
            step.focus = Some(variable.into());
            step.is_tuple = true;
            step.keep_array |= keep_array;
            Ok(())
        })?;
        Ok(node)
    }

    fn index(&mut self, left: Syntax, variable: String, position: u32) -> Result<Node> {
        let mut node = self.node(left)?;
        if !matches!(node.kind, Kind::Path(_)) {
            node.stages = node.predicates.drain(..).map(Stage::Filter).collect();
            node = path(node, position);
        }
        change_step(&mut node, |step| {
            if step.stages.is_empty() {
                step.index = Some(variable.into());
            } else {
                step.stages.push(Stage::Index(variable.into()));
            }
            step.is_tuple = true;
        });
        Ok(node)
    }
}

fn named(name: String, position: u32, keep_array: bool) -> Node {
    let step = Node { keep_array, ..Node::new(Kind::Name(name.into()), position) };
    let path = Path { steps: vec![step], keeps_singleton: keep_array };
    Node::new(Kind::Path(path), position)
}

fn path(step: Node, position: u32) -> Node {
    Node::new(Kind::Path(Path { steps: vec![step], keeps_singleton: false }), position)
}

fn literal(value: String, position: u32) -> Error {
    Error::new("S0213").at(position).with_value(value)
}

/// Changes the step to which a predicate or variable belongs: the last one of a path, or what is no path itself.
fn change_step<T>(node: &mut Node, change: impl FnOnce(&mut Node) -> T) -> T {
    if let Kind::Path(Path { steps, .. }) = &mut node.kind
        && let Some(step) = steps.last_mut()
    {
        return change(step);
    }
    change(node)
}

/// Collects the parents that parts of a node look for.
fn seek<'n>(parts: impl IntoIterator<Item = &'n Node>, seeking: &mut Vec<Slot>) {
    for part in parts {
        seeking.extend(&part.seeking);
        if let Kind::Parent(slot) = part.kind {
            seeking.push(slot);
        }
    }
}

/// Marks the calls that are the last thing that a function does.
fn mark_tail(node: &mut Node) {
    if !node.predicates.is_empty() || node.group.is_some() || node.keep_array {
        return;
    }
    match &mut node.kind {
        Kind::Call(call) => call.is_tail = true,
        Kind::Condition(_, then, otherwise) => {
            mark_tail(then);
            if let Some(otherwise) = otherwise {
                mark_tail(otherwise);
            }
        }
        Kind::Default(_, right) | Kind::Coalesce(_, right) => mark_tail(right),
        Kind::Block(parts) => {
            if let Some(last) = parts.last_mut() {
                mark_tail(last);
            }
        }
        _ => {}
    }
}

/// What an error calls a kind of node.
pub(super) fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Null | Kind::Bool(_) => "value",
        Kind::Number(_) => "number",
        Kind::Text(_) => "string",
        Kind::Regex(_) => "regex",
        Kind::Name(_) => "name",
        Kind::Variable(..) => "variable",
        Kind::Wildcard => "wildcard",
        Kind::Descendants => "descendant",
        Kind::Parent(_) => "parent",
        Kind::Path(_) => "path",
        Kind::Binary(..) => "binary",
        Kind::Negate(_) | Kind::Array(_) | Kind::Object(_) => "unary",
        Kind::Block(_) => "block",
        Kind::Bind(..) => "bind",
        Kind::Condition(..) | Kind::Default(..) | Kind::Coalesce(..) => "condition",
        Kind::Call(_) => "function",
        Kind::Partial(..) => "partial",
        Kind::Apply(..) => "apply",
        Kind::Lambda(_) => "lambda",
        Kind::Transform(_) => "transform",
        Kind::Sort(_) => "sort",
    }
}
