//! Payload templates: JSON in which fields whose names end in `.$` hold a path or an intrinsic function.
//!
//! They are the values of Parameters, ResultSelector, ItemSelector and Assign. A template is parsed once: what is constant in it is one value, which is cloned whole.
//! Source: the specification, section Payload Template.

use serde_json::{Map, Value};

use super::error::DataError;
use super::expression::Expression;
use super::limits::VALUE_DEPTH_MAX;
use super::measure::{Excess, Meter, json_bytes, string_bytes};
use super::scope::Scope;

/// What the name of a field ends in whose value is computed.
const SUFFIX: &str = ".$";

/// A parsed payload template.
#[derive(Clone, Debug)]
pub struct Template(Node);

/// A mistake in a payload template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at {pointer:?})")]
pub struct TemplateError {
    /// Where it is in the template: a JSON Pointer (RFC 6901), which begins at the template.
    pub pointer: String,
    /// What is wrong, and what was expected.
    pub message: String,
}

#[derive(Clone, Debug)]
enum Node {
    /// Nothing in it is computed. With the bytes of its JSON.
    Constant(Value, usize),
    /// With the name of its field.
    Computed(Expression, Box<str>),
    Array(Box<[Node]>),
    Object(Box<[(Box<str>, Node)]>),
}

impl Template {
    /// Parses a template. Any JSON value is one; the caller checks whether its field wants an object.
    ///
    /// # Errors
    ///
    /// All mistakes, each with its place.
    pub fn parse(value: &Value) -> Result<Template, Vec<TemplateError>> {
        let mut parser = Parser { pointer: String::new(), errors: Vec::new() };
        let node = parser.node(value, VALUE_DEPTH_MAX);
        if parser.errors.is_empty() { Ok(Template(node)) } else { Err(parser.errors) }
    }

    /// The names of the variables that it reads.
    #[must_use]
    pub fn variables(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.0.variables(&mut found);
        found
    }

    /// The names of the members of what it gives, where that is an object.
    pub(crate) fn members(&self) -> Vec<&str> {
        match &self.0 {
            Node::Constant(Value::Object(members), _) => members.keys().map(String::as_str).collect(),
            Node::Object(members) => members.iter().map(|(name, _)| &**name).collect(),
            Node::Constant(..) | Node::Computed(..) | Node::Array(_) => Vec::new(),
        }
    }

    /// The value that the template describes. `random` gives 64 random bits at each call; only intrinsic functions ask for them.
    ///
    /// # Errors
    ///
    /// [`PATH_FAILURE`](super::expression::PATH_FAILURE): a path leads nowhere. `States.IntrinsicFailure`: an intrinsic function failed. `States.DataLimitExceeded`:
    /// the value is larger than `scope.limits` allow, or nested too deeply.
    pub fn apply(&self, scope: &Scope<'_>, random: &mut dyn FnMut() -> u64) -> Result<Value, DataError> {
        let left = scope.limits.output_bytes_max;
        Application { scope, random, meter: Meter::new(scope.limits), left }.node(&self.0, VALUE_DEPTH_MAX)
    }
}

struct Parser {
    /// Where the parser is.
    pointer: String,
    errors: Vec<TemplateError>,
}

impl Parser {
    fn error(&mut self, message: impl Into<String>) {
        self.errors.push(TemplateError { pointer: self.pointer.clone(), message: message.into() });
    }

    /// Runs something one step further down.
    fn within<T>(&mut self, token: &str, parse: impl FnOnce(&mut Parser) -> T) -> T {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        let parsed = parse(self);
        self.pointer.truncate(length);
        parsed
    }

    /// What could not be parsed is null: there is an error then.
    fn node(&mut self, value: &Value, depth_left: usize) -> Node {
        let children_depth = match (value, depth_left.checked_sub(1)) {
            (Value::Array(_) | Value::Object(_), None) => {
                self.error(format!("the template is nested deeper than {VALUE_DEPTH_MAX} levels"));
                return constant(Value::Null);
            }
            (_, depth) => depth.unwrap_or_default(),
        };
        match value {
            Value::Array(items) => {
                let parse =
                    |(index, item): (usize, &Value)| self.within(&index.to_string(), |parser| parser.node(item, children_depth));
                Node::array(items.iter().enumerate().map(parse).collect())
            }
            Value::Object(members) => self.object(members, children_depth),
            _ => constant(value.clone()),
        }
    }

    fn object(&mut self, members: &Map<String, Value>, depth_left: usize) -> Node {
        let mut nodes = Vec::with_capacity(members.len());
        for (name, member) in members {
            self.within(name, |parser| match name.strip_suffix(SUFFIX) {
                Some(stem) => {
                    if members.contains_key(stem) {
                        parser.error(format!("there is both a field '{stem}' and a field '{name}'; remove one of them"));
                    }
                    nodes.push((stem.into(), parser.computed(name, member)));
                }
                None => nodes.push((name.as_str().into(), parser.node(member, depth_left))),
            });
        }
        Node::object(nodes)
    }

    fn computed(&mut self, name: &str, member: &Value) -> Node {
        let expected = format!("The value for the field '{name}' must be a valid JSONPath or a valid intrinsic function call");
        let parsed = match member.as_str() {
            Some(text) => Expression::parse(text).map_err(|error| format!("{expected}: {error}")),
            None => Err(format!("{expected}, in a string")),
        };
        match parsed {
            Ok(expression) => Node::Computed(expression, name.into()),
            Err(message) => {
                self.error(message);
                constant(Value::Null)
            }
        }
    }
}

/// A value that is neither an array nor an object.
fn constant(value: Value) -> Node {
    let bytes = json_bytes(&value, usize::MAX, 0).unwrap_or(usize::MAX);
    Node::Constant(value, bytes)
}

/// The brackets and commas of an array of so many items.
const fn array_bytes(items: usize) -> usize {
    2 + items.saturating_sub(1)
}

/// The braces, colons and commas of an object of so many members.
const fn object_bytes(members: usize) -> usize {
    2 + members + members.saturating_sub(1)
}

impl Node {
    /// Of constant items a constant.
    fn array(nodes: Vec<Node>) -> Node {
        if !nodes.iter().all(Node::is_constant) {
            return Node::Array(nodes.into());
        }
        let mut bytes = array_bytes(nodes.len());
        let values = nodes.into_iter().filter_map(|node| node.into_constant(&mut bytes)).collect();
        Node::Constant(Value::Array(values), bytes)
    }

    /// Of constant members a constant.
    fn object(nodes: Vec<(Box<str>, Node)>) -> Node {
        if !nodes.iter().all(|(_, node)| node.is_constant()) {
            return Node::Object(nodes.into());
        }
        let mut bytes = object_bytes(nodes.len()) + nodes.iter().map(|(name, _)| string_bytes(name)).sum::<usize>();
        let members = nodes.into_iter().filter_map(|(name, node)| Some((name.into(), node.into_constant(&mut bytes)?))).collect();
        Node::Constant(Value::Object(members), bytes)
    }

    /// The value of a constant, whose bytes are added.
    fn into_constant(self, bytes: &mut usize) -> Option<Value> {
        match self {
            Node::Constant(value, more) => {
                *bytes = bytes.saturating_add(more);
                Some(value)
            }
            _ => None,
        }
    }

    const fn is_constant(&self) -> bool {
        matches!(self, Node::Constant(..))
    }

    fn variables<'n>(&'n self, found: &mut Vec<&'n str>) {
        match self {
            Node::Constant(..) => {}
            Node::Computed(expression, _) => found.extend(expression.variables()),
            Node::Array(nodes) => nodes.iter().for_each(|node| node.variables(found)),
            Node::Object(nodes) => nodes.iter().for_each(|(_, node)| node.variables(found)),
        }
    }
}

/// One application of a template.
struct Application<'a, 's> {
    scope: &'s Scope<'a>,
    random: &'s mut dyn FnMut() -> u64,
    /// What may be built on the way.
    meter: Meter,
    /// Bytes that the value may still have.
    left: usize,
}

impl Application<'_, '_> {
    fn take(&mut self, bytes: usize) -> Result<(), DataError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| Excess::Bytes.error(self.scope.limits.output_bytes_max))?;
        Ok(())
    }

    /// Recurses as deep as the template is nested.
    fn node(&mut self, node: &Node, depth_left: usize) -> Result<Value, DataError> {
        let children_depth = depth_left.saturating_sub(1);
        match node {
            Node::Constant(value, bytes) => {
                self.take(*bytes)?;
                Ok(value.clone())
            }
            Node::Computed(expression, field) => {
                let value = expression.evaluate_metered(field, self.scope, self.random, &mut self.meter)?;
                let output_bytes_max = self.scope.limits.output_bytes_max;
                let bytes = json_bytes(&value, self.left, depth_left).map_err(|excess| excess.error(output_bytes_max))?;
                self.take(bytes)?;
                Ok(value.into_owned())
            }
            Node::Array(nodes) => {
                self.take(array_bytes(nodes.len()))?;
                nodes.iter().map(|node| self.node(node, children_depth)).collect()
            }
            Node::Object(nodes) => {
                self.take(object_bytes(nodes.len()))?;
                let mut members = Map::with_capacity(nodes.len());
                for (name, node) in nodes {
                    self.take(string_bytes(name))?;
                    members.insert(name.to_string(), self.node(node, children_depth)?);
                }
                Ok(Value::Object(members))
            }
        }
    }
}
