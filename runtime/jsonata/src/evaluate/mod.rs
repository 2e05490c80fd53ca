//! The interpreter: walks the tree of an expression.
//!
//! * `path`: steps and predicates; `tuple`: steps that bind variables; `operators`; `construct`: arrays and objects; `order`: `^(...)`; `call`: functions; `transform`: `|...|`;
//!   `frame`, `function`: scopes and functions as values.
//!
//! Nothing here catches errors (but `$eval`, which passes them on), so what is counted need not be set back when there is one.

mod call;
mod construct;
pub(crate) mod frame;
pub(crate) mod function;
mod operators;
pub(crate) mod order;
pub(crate) mod path;
mod transform;
pub(crate) mod tuple;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::ast::{Ast, Kind, Node, Slot};
use crate::error::{Error, Result};
use crate::functions::Dialect;
use crate::meter::Meter;
use crate::parse::parse;
use crate::programs::Programs;
use crate::text::Text;
use crate::value::{Array, Flags, ListBuilder, Value};
use frame::Frame;
use function::{Function, FunctionKind};

/// Bytes of a parsed expression for each byte of its source, at most: a node for every character.
const PROGRAM_BYTES_PER_BYTE: usize = size_of::<Node>();

/// One evaluation.
pub(crate) struct Interpreter<'a> {
    pub(crate) meter: Rc<Meter<'a>>,
    pub(crate) now_ms: i64,
    pub(crate) random: RefCell<fastrand::Rng>,
    labels: RefCell<&'a [String]>,
    programs: &'a Programs,
    dialect: Dialect,
    depth: Cell<u32>,
}

impl<'a> Interpreter<'a> {
    pub(crate) fn new(
        meter: Rc<Meter<'a>>,
        ast: &'a Ast,
        programs: &'a Programs,
        now_ms: i64,
        seed: u64,
        dialect: Dialect,
    ) -> Interpreter<'a> {
        Interpreter {
            meter,
            now_ms,
            random: RefCell::new(fastrand::Rng::with_seed(seed)),
            labels: RefCell::new(&ast.labels),
            programs,
            dialect,
            depth: Cell::new(0),
        }
    }

    /// The name of the variable that holds a parent.
    fn label(&self, slot: Slot) -> &'a str {
        let labels: &'a [String] = *self.labels.borrow();
        labels.get(slot).map_or("", String::as_str)
    }

    /// Evaluates a node in a context and a scope.
    pub(crate) fn evaluate(&self, node: &'a Node, input: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        self.meter.step(1)?;
        let depth = self.depth.get() + 1;
        if depth > self.meter.limits().depth {
            return Err(Error::new("D1011").at(node.position));
        }
        self.depth.set(depth);
        let mut result = self.kind(node, input, frame)?;
        for predicate in &node.predicates {
            result = self.filter(predicate, &result, frame)?;
        }
        if let Some(group) = node.group.as_deref().filter(|_| !matches!(node.kind, Kind::Path(_))) {
            result = self.group(group, &result, frame)?;
        }
        self.depth.set(depth - 1);
        match result {
            Value::Array(array) => self.unwrapped(array, node.keep_array),
            result => Ok(result),
        }
    }

    /// A sequence as a value: nothing, the only element, or itself.
    fn unwrapped(&self, array: Array<'a>, keeps_singleton: bool) -> Result<Value<'a>> {
        let flags = array.flags();
        if !flags.is_sequence {
            return Ok(Value::Array(array));
        }
        let keeps_singleton = keeps_singleton || flags.keeps_singleton;
        match array.len() {
            0 => Ok(Value::Undefined),
            1 if !keeps_singleton => Ok(array.get(0).unwrap_or_default()),
            _ => Ok(Value::Array(array.with_flags(Flags { keeps_singleton, ..flags }, &self.meter)?)),
        }
    }

    fn kind(&self, node: &'a Node, input: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let position = node.position;
        match &node.kind {
            Kind::Null => Ok(Value::Null),
            Kind::Bool(bool) => Ok(Value::Bool(*bool)),
            Kind::Number(number) => Ok(Value::Number(*number)),
            Kind::Text(text) => Ok(Value::Text(Text::Borrowed(text))),
            Kind::Regex(regex) => Function::value(FunctionKind::Regex(regex), &self.meter),
            Kind::Name(name) => self.lookup(input, name, 0),
            Kind::Variable(name, builtin) => self.variable(name, *builtin, input, frame),
            Kind::Wildcard => self.wildcard(input),
            Kind::Descendants => self.descendants(input),
            Kind::Parent(slot) => Ok(frame.lookup(self.label(*slot)).unwrap_or_default()),
            Kind::Path(path) => self.path(node, path, input, frame),
            Kind::Binary(operator, left, right) => self.binary(*operator, left, right, position, input, frame),
            Kind::Negate(inner) => self.negate(inner, position, input, frame),
            Kind::Array(items) => self.array(node, items, input, frame),
            Kind::Object(group) => self.group(group, input, frame),
            Kind::Block(parts) => self.block(parts, input, frame),
            Kind::Bind(name, value) => {
                let value = self.evaluate(value, input, frame)?;
                frame.bind(name, value.clone())?;
                Ok(value)
            }
            Kind::Condition(condition, then, otherwise) => {
                let condition = self.evaluate(condition, input, frame)?;
                match otherwise {
                    _ if self.is_true(&condition)? => self.evaluate(then, input, frame),
                    Some(otherwise) => self.evaluate(otherwise, input, frame),
                    None => Ok(Value::Undefined),
                }
            }
            Kind::Default(left, right) => {
                let value = self.evaluate(left, input, frame)?;
                if self.is_true(&value)? { Ok(value) } else { self.evaluate(right, input, frame) }
            }
            Kind::Coalesce(left, right) => {
                let value = self.evaluate(left, input, frame)?;
                if value.is_undefined() { self.evaluate(right, input, frame) } else { Ok(value) }
            }
            Kind::Call(call) if call.is_tail => {
                let (input, frame) = (input.clone(), Rc::clone(frame));
                Function::value(FunctionKind::Tail { call, position, input, frame }, &self.meter)
            }
            Kind::Call(call) => self.call(call, position, None, input, frame),
            Kind::Partial(procedure, arguments) => self.partial(procedure, arguments, position, input, frame),
            Kind::Apply(left, right) => self.apply_operator(left, right, position, input, frame),
            Kind::Lambda(lambda) => {
                Function::value(FunctionKind::Lambda { lambda, input: input.clone(), frame: Rc::clone(frame) }, &self.meter)
            }
            Kind::Transform(transform) => {
                Function::value(FunctionKind::Transform { transform, frame: Rc::clone(frame), position }, &self.meter)
            }
            Kind::Sort(terms) => self.sort_values(terms, input, position, frame),
        }
    }

    fn variable(
        &self,
        name: &str,
        builtin: Option<crate::functions::Builtin>,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        if name.is_empty() {
            return Ok(match input {
                Value::Array(array) if array.flags().is_wrapper => array.get(0).unwrap_or_default(),
                _ => input.clone(),
            });
        }
        match (frame.lookup(name), builtin) {
            (Some(value), _) => Ok(value),
            (None, Some(builtin)) => Function::value(FunctionKind::Builtin(builtin), &self.meter),
            (None, None) => Ok(Value::Undefined),
        }
    }

    fn block(&self, parts: &'a [Node], input: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let inner = Frame::new(Some(frame), &self.meter)?;
        let mut result = Value::Undefined;
        for part in parts {
            result = self.evaluate(part, input, &inner)?;
        }
        Ok(result)
    }

    /// The elements of an array, or the value itself.
    pub(crate) fn items<'v>(&self, value: &'v Value<'a>) -> Box<dyn Iterator<Item = Value<'a>> + 'v> {
        match value {
            Value::Undefined => Box::new(std::iter::empty()),
            Value::Array(array) => Box::new(array.iter()),
            Value::Tuples(tuples) => Box::new(tuples.items.iter().map(|tuple| tuple.context.clone())),
            value => Box::new(std::iter::once(value.clone())),
        }
    }

    /// An input as an expression sees it: an array counts as one value.
    pub(crate) fn wrapped(&self, input: Value<'a>) -> Result<Value<'a>> {
        match &input {
            Value::Array(array) if !array.flags().is_sequence => {
                let mut wrapper = ListBuilder::with_capacity(&self.meter, 1)?;
                wrapper.push(input)?;
                Ok(Value::Array(wrapper.array(Flags { is_wrapper: true, ..Flags::SEQUENCE })))
            }
            _ => Ok(input),
        }
    }

    /// Parses and evaluates an expression in the scope of the evaluation (`$eval`).
    pub(crate) fn evaluate_source(&self, source: &str, input: Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        self.meter.step(source.len())?;
        self.meter.keep(source.len().saturating_mul(PROGRAM_BYTES_PER_BYTE))?;
        let ast = parse(source, self.meter.limits(), self.dialect).map_err(|error| Error::new("D3120").with_value(error))?;
        let ast = self.programs.keep(ast).ok_or_else(|| Error::new("U1002").with_value(self.meter.limits().bytes))?;
        let labels = self.labels.replace(&ast.labels);
        let depth = self.depth.get();
        let result = self.evaluate(&ast.root, &input, frame);
        self.depth.set(depth);
        self.labels.replace(labels);
        result.map_err(|error| if error.is_limit() { error } else { Error::new("D3121").with_value(error) })
    }
}
