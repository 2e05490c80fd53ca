//! What an expression refers to: for checks before it is evaluated.
//!
//! A variable is bound within the block, function or path that binds it. The analysis takes a name as bound wherever a scope around it binds it, even before the binding: it
//! reports no reference that is bound, and may miss one that is used before its binding.

use std::collections::HashMap;

use crate::ast::{Ast, Group, Kind, Lambda, Node, Path, Stage};

/// A reference to something outside the expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// A variable's name without its `$`; `$` for `$$`, the input; empty for the input as context: `$`, or a name where nothing else is the context.
    pub name: String,
    /// The field that is taken of it at once, such as `input` of `$states.input`.
    pub field: Option<String>,
    /// Characters before it in the source.
    pub position: usize,
}

/// The references of an expression, in the order of the source.
pub(crate) fn free(ast: &Ast) -> Vec<Reference> {
    let mut search = Search { scopes: Vec::new(), bound: HashMap::new(), found: Vec::new() };
    search.scoped(|search| {
        search.bindings(&ast.root);
        search.node(&ast.root, true);
    });
    search.found.sort_by_key(|reference| reference.position);
    search.found
}

struct Search<'n> {
    /// Names that are bound, the outermost scope first.
    scopes: Vec<Vec<&'n str>>,
    /// In how many of them.
    bound: HashMap<&'n str, usize>,
    found: Vec<Reference>,
}

impl<'n> Search<'n> {
    fn scoped(&mut self, search: impl FnOnce(&mut Self)) {
        self.scopes.push(Vec::new());
        search(self);
        for name in self.scopes.pop().unwrap_or_default() {
            if let Some(count) = self.bound.get_mut(name) {
                *count -= 1;
            }
        }
    }

    fn bind(&mut self, name: &'n str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(name);
            *self.bound.entry(name).or_default() += 1;
        }
    }

    /// Binds what a node binds in the scope in which it is.
    fn bindings(&mut self, node: &'n Node) {
        match &node.kind {
            Kind::Bind(name, value) => {
                self.bind(name);
                self.bindings(value);
            }
            // These have scopes of their own.
            Kind::Block(_) | Kind::Lambda(_) => {}
            kind => children(kind, &mut |child| self.bindings(child)),
        }
        attributes(node, &mut |child| self.bindings(child));
    }

    fn refer(&mut self, name: &str, field: Option<&str>, position: u32) {
        if self.bound.get(name).is_some_and(|&count| count > 0) {
            return;
        }
        self.found.push(Reference { name: String::from(name), field: field.map(String::from), position: position as usize });
    }

    /// `is_outer` where the context is the input of the whole expression.
    fn node(&mut self, node: &'n Node, is_outer: bool) {
        match &node.kind {
            Kind::Variable(name, builtin) if builtin.is_none() && (is_outer || !name.is_empty()) => {
                self.refer(name, None, node.position)
            }
            Kind::Name(_) | Kind::Wildcard | Kind::Descendants if is_outer => {
                let field = if let Kind::Name(name) = &node.kind { Some(&**name) } else { None };
                self.refer("", field, node.position);
            }
            Kind::Block(parts) => self.scoped(|search| {
                parts.iter().for_each(|part| search.bindings(part));
                parts.iter().for_each(|part| search.node(part, is_outer));
            }),
            Kind::Lambda(lambda) => self.lambda(lambda, is_outer),
            Kind::Path(path) => self.path(path, node, is_outer),
            Kind::Object(group) => self.group(group, is_outer),
            Kind::Transform(transform) => {
                let deletion = transform.deletion.as_deref();
                [&*transform.pattern, &transform.update].into_iter().chain(deletion).for_each(|child| self.node(child, false));
            }
            Kind::Sort(terms) => terms.iter().for_each(|term| self.node(&term.expression, false)),
            kind => children(kind, &mut |child| self.node(child, is_outer)),
        }
        node.predicates.iter().for_each(|predicate| self.node(predicate, false));
        for stage in &node.stages {
            if let Stage::Filter(predicate) = stage {
                self.node(predicate, false);
            }
        }
        if let Some(group) = node.group.as_deref().filter(|_| !matches!(node.kind, Kind::Path(_))) {
            self.group(group, false);
        }
    }

    fn group(&mut self, group: &'n Group, is_outer: bool) {
        for (key, value) in &group.pairs {
            self.node(key, is_outer);
            self.node(value, is_outer);
        }
    }

    fn lambda(&mut self, lambda: &'n Lambda, is_outer: bool) {
        self.scoped(|search| {
            lambda.parameters.iter().for_each(|parameter| search.bind(parameter));
            search.bindings(&lambda.body);
            search.node(&lambda.body, is_outer);
        });
    }

    fn path(&mut self, path: &'n Path, node: &'n Node, is_outer: bool) {
        self.scoped(|search| {
            for step in &path.steps {
                step.focus.iter().chain(&step.index).for_each(|name| search.bind(name));
                for stage in &step.stages {
                    if let Stage::Index(name) = stage {
                        search.bind(name);
                    }
                }
            }
            for (index, step) in path.steps.iter().enumerate() {
                let next = path.steps.get(index + 1).map(|next| &next.kind);
                let field = if let Some(Kind::Name(name)) = next { Some(&**name) } else { None };
                match &step.kind {
                    Kind::Variable(name, None) if index == 0 && (is_outer || !name.is_empty()) => {
                        search.refer(name, field, step.position);
                        // What is left of the step, without the variable itself.
                        step.predicates.iter().for_each(|predicate| search.node(predicate, false));
                    }
                    _ => search.node(step, is_outer && index == 0),
                }
            }
            if let Some(group) = &node.group {
                search.group(group, false);
            }
        });
    }
}

/// Visits the nodes in a node's attributes.
fn attributes<'n>(node: &'n Node, visit: &mut dyn FnMut(&'n Node)) {
    node.predicates.iter().for_each(&mut *visit);
    for stage in &node.stages {
        if let Stage::Filter(predicate) = stage {
            visit(predicate);
        }
    }
    for (key, value) in node.group.iter().flat_map(|group| &group.pairs) {
        visit(key);
        visit(value);
    }
}

/// Visits the nodes directly within a node.
fn children<'n>(kind: &'n Kind, visit: &mut dyn FnMut(&'n Node)) {
    match kind {
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Regex(_) | Kind::Name(_) | Kind::Variable(..) => {}
        Kind::Wildcard | Kind::Descendants | Kind::Parent(_) => {}
        Kind::Path(Path { steps, .. }) | Kind::Array(steps) | Kind::Block(steps) => steps.iter().for_each(visit),
        Kind::Negate(inner) | Kind::Bind(_, inner) => visit(inner),
        Kind::Binary(_, left, right) | Kind::Apply(left, right) | Kind::Default(left, right) | Kind::Coalesce(left, right) => {
            visit(left);
            visit(right);
        }
        Kind::Object(group) => {
            for (key, value) in &group.pairs {
                visit(key);
                visit(value);
            }
        }
        Kind::Condition(condition, then, otherwise) => {
            visit(condition);
            visit(then);
            otherwise.iter().for_each(|otherwise| visit(otherwise));
        }
        Kind::Call(call) => {
            visit(&call.procedure);
            call.arguments.iter().for_each(visit);
        }
        Kind::Partial(procedure, arguments) => {
            visit(procedure);
            arguments.iter().flatten().for_each(visit);
        }
        Kind::Lambda(lambda) => visit(&lambda.body),
        Kind::Transform(transform) => {
            visit(&transform.pattern);
            visit(&transform.update);
            transform.deletion.iter().for_each(|deletion| visit(deletion));
        }
        Kind::Sort(terms) => terms.iter().for_each(|term| visit(&term.expression)),
    }
}
