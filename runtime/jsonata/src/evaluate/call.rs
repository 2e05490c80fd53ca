//! Calls of functions (<https://docs.jsonata.org/programming>).

use std::rc::Rc;

use super::Interpreter;
use super::frame::Frame;
use super::function::{Function, FunctionKind};
use crate::ast::{Call, Kind, Lambda, Node};
use crate::error::{Error, Result};
use crate::functions::Builtin;
use crate::value::Value;

/// Levels of nesting for which a function counts that another function calls: it takes as much stack as so many nodes.
const NESTED_LEVELS: u32 = 2;

/// What an error calls a procedure.
fn name(procedure: &Node) -> Option<&str> {
    match &procedure.kind {
        Kind::Variable(name, _) => Some(name),
        Kind::Path(path) => path.steps.first().and_then(|step| match &step.kind {
            Kind::Name(name) => Some(&**name),
            _ => None,
        }),
        _ => None,
    }
}

impl<'a> Interpreter<'a> {
    /// Calls what the procedure gives; `first` is an argument before the others.
    pub(super) fn call(
        &self,
        call: &'a Call,
        position: u32,
        first: Option<Value<'a>>,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let direct = self.direct_builtin(&call.procedure, frame);
        let procedure = match direct {
            Some(_) => Value::Undefined,
            None => self.procedure(&call.procedure, position, "T1005", input, frame)?,
        };
        let mut arguments = Vec::with_capacity(call.arguments.len() + 1);
        arguments.extend(first);
        for argument in &call.arguments {
            arguments.push(self.evaluate(argument, input, frame)?);
        }
        let result = match direct {
            Some(builtin) => self.builtin_checked(builtin, arguments, input, frame),
            None => self.apply_here(&procedure, arguments, input, frame),
        };
        result.map_err(|error| {
            let error = error.at(position);
            match name(&call.procedure) {
                Some(name) => error.with_token(name),
                None => error,
            }
        })
    }

    /// A function of ours that is called by its name, and that no variable hides.
    fn direct_builtin(&self, procedure: &Node, frame: &Rc<Frame<'a>>) -> Option<Builtin> {
        match &procedure.kind {
            Kind::Variable(name, Some(builtin)) if procedure.predicates.is_empty() && procedure.group.is_none() => {
                frame.lookup(name).is_none().then_some(*builtin)
            }
            _ => None,
        }
    }

    fn procedure(
        &self,
        node: &'a Node,
        position: u32,
        code: &'static str,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let procedure = self.evaluate(node, input, frame)?;
        // A `$` may be missing before the name.
        if procedure.is_undefined()
            && matches!(node.kind, Kind::Path(_))
            && let Some(name) = name(node)
            && (frame.lookup(name).is_some() || Builtin::named(name, self.dialect).is_some())
        {
            return Err(Error::new(code).at(position).with_token(name));
        }
        Ok(procedure)
    }

    /// Applies a function for another function, which counts as nesting.
    pub(crate) fn apply(
        &self,
        function: &Value<'a>,
        arguments: Vec<Value<'a>>,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        self.nested(|| self.apply_here(function, arguments, input, frame))
    }

    /// Applies a function, and then what it calls in tail position.
    fn apply_here(
        &self,
        function: &Value<'a>,
        arguments: Vec<Value<'a>>,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let mut result = self.apply_once(function, arguments, input, frame)?;
        loop {
            let tail = match &result {
                Value::Function(function) => Rc::clone(function),
                _ => return Ok(result),
            };
            let FunctionKind::Tail { call, position, input: context, frame: scope } = &tail.kind else {
                return Ok(result);
            };
            self.meter.step(1)?;
            let next = self.evaluate(&call.procedure, context, scope)?;
            let mut arguments = Vec::with_capacity(call.arguments.len());
            for argument in &call.arguments {
                arguments.push(self.evaluate(argument, context, scope)?);
            }
            let applied = self.apply_once(&next, arguments, input, frame);
            result = applied.map_err(|error| match name(&call.procedure) {
                Some(name) => error.at(*position).with_token(name),
                None => error.at(*position),
            })?;
        }
    }

    fn apply_once(
        &self,
        function: &Value<'a>,
        arguments: Vec<Value<'a>>,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        self.meter.step(1 + arguments.len())?;
        let Value::Function(function) = function else {
            return Err(Error::new("T1006"));
        };
        match &function.kind {
            FunctionKind::Builtin(builtin) => self.builtin_checked(*builtin, arguments, input, frame),
            FunctionKind::Lambda { lambda, input: context, frame } => {
                let arguments = match &lambda.signature {
                    Some(signature) => signature.check(arguments, input, &self.meter)?,
                    None => arguments,
                };
                self.lambda(lambda, arguments, context, frame)
            }
            FunctionKind::Partial { function, arguments: given } => {
                let mut rest = arguments.into_iter();
                let arguments = given.iter().map(|given| match given {
                    Some(given) => given.clone(),
                    None => rest.next().unwrap_or_default(),
                });
                self.partially_applied(function, arguments.collect(), input, frame)
            }
            FunctionKind::Chain { first, second } => {
                let argument = arguments.into_iter().next().unwrap_or_default();
                let result = self.apply(first, vec![argument], input, frame)?;
                self.apply(second, vec![result], input, frame)
            }
            FunctionKind::Transform { transform, frame, position } => {
                self.nested(|| self.transform(transform, arguments.into_iter().next().unwrap_or_default(), *position, frame))
            }
            FunctionKind::Regex(regex) => match arguments.into_iter().next() {
                Some(Value::Text(text)) => self.next_match(regex, text, 0),
                Some(Value::Undefined) | None => Ok(Value::Undefined),
                Some(_) => Err(Error::new("T0410").with_index(1)),
            },
            FunctionKind::NextMatch { regex, text, from } => self.match_after(regex, text.clone(), *from),
            FunctionKind::Tail { .. } | FunctionKind::Gone => Err(Error::new("T1006")),
        }
    }

    /// Counts the nesting of what is no node.
    fn nested(&self, run: impl FnOnce() -> Result<Value<'a>>) -> Result<Value<'a>> {
        let depth = self.depth.get();
        if depth + NESTED_LEVELS > self.meter.limits().depth {
            return Err(Error::new("D1011"));
        }
        self.depth.set(depth + NESTED_LEVELS);
        let result = run();
        self.depth.set(depth);
        result
    }

    /// What is partially applied has been checked when it was, as far as JSONata checks it.
    fn partially_applied(
        &self,
        function: &Value<'a>,
        arguments: Vec<Value<'a>>,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        if let Value::Function(inner) = function
            && let FunctionKind::Lambda { lambda, input: context, frame } = &inner.kind
        {
            return self.lambda(lambda, arguments, context, frame);
        }
        self.apply(function, arguments, input, frame)
    }

    fn lambda(
        &self,
        lambda: &'a Lambda,
        arguments: Vec<Value<'a>>,
        context: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let inner = Frame::new(Some(frame), &self.meter)?;
        let mut arguments = arguments.into_iter();
        for parameter in &lambda.parameters {
            inner.bind(parameter, arguments.next().unwrap_or_default())?;
        }
        self.evaluate(&lambda.body, context, &inner)
    }

    pub(super) fn partial(
        &self,
        procedure: &'a Node,
        arguments: &'a [Option<Node>],
        position: u32,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            given.push(match argument {
                Some(argument) => Some(self.evaluate(argument, input, frame)?),
                None => None,
            });
        }
        let function = self.procedure(procedure, position, "T1007", input, frame)?;
        if !matches!(function, Value::Function(_)) {
            let error = Error::new("T1008").at(position);
            return Err(match name(procedure) {
                Some(name) => error.with_token(name),
                None => error,
            });
        }
        Function::value(FunctionKind::Partial { function, arguments: given }, &self.meter)
    }

    /// `~>`: the right side applied to the left one, or two functions chained.
    pub(super) fn apply_operator(
        &self,
        left: &'a Node,
        right: &'a Node,
        position: u32,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let value = self.evaluate(left, input, frame)?;
        if let Kind::Call(call) = &right.kind {
            let mut result = self.call(call, right.position, Some(value), input, frame)?;
            for predicate in &right.predicates {
                result = self.filter(predicate, &result, frame)?;
            }
            return Ok(result);
        }
        let function = self.evaluate(right, input, frame)?;
        if !matches!(function, Value::Function(_)) {
            return Err(Error::new("T2006").at(position));
        }
        if matches!(value, Value::Function(_)) {
            return Function::value(FunctionKind::Chain { first: value, second: function }, &self.meter);
        }
        self.apply_here(&function, vec![value], &Value::Null, frame).map_err(|error| error.at(position))
    }
}
