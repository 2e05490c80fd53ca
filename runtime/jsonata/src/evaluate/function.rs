//! Functions as values.

use std::rc::Rc;

use super::frame::Frame;
use crate::ast::{Call, Lambda, Transform};
use crate::error::Result;
use crate::functions::Builtin;
use crate::meter::{Charge, Garbage, Meter};
use crate::regex::Regex;
use crate::text::Text;
use crate::value::Value;

pub(crate) struct Function<'a> {
    pub(crate) kind: FunctionKind<'a>,
    charge: Charge<'a>,
}

pub(crate) enum FunctionKind<'a> {
    Builtin(Builtin),
    Lambda {
        lambda: &'a Lambda,
        input: Value<'a>,
        frame: Rc<Frame<'a>>,
    },
    /// A function some of whose arguments are given.
    Partial {
        function: Value<'a>,
        arguments: Vec<Option<Value<'a>>>,
    },
    /// Two functions after each other.
    Chain {
        first: Value<'a>,
        second: Value<'a>,
    },
    Transform {
        transform: &'a Transform,
        frame: Rc<Frame<'a>>,
        position: u32,
    },
    /// Gives the first match in a string.
    Regex(&'a Regex),
    /// Gives the match after one that ended there.
    NextMatch {
        regex: &'a Regex,
        text: Text<'a>,
        from: usize,
    },
    /// A call in tail position, to be made by the caller of the function.
    Tail {
        call: &'a Call,
        position: u32,
        input: Value<'a>,
        frame: Rc<Frame<'a>>,
    },
    /// It is being dropped.
    Gone,
}

const FUNCTION_BYTES: usize = 128;

impl<'a> Function<'a> {
    pub(crate) fn value(kind: FunctionKind<'a>, meter: &Rc<Meter<'a>>) -> Result<Value<'a>> {
        if let FunctionKind::Lambda { frame, .. } | FunctionKind::Transform { frame, .. } = &kind {
            meter.capture(frame);
        }
        let arguments = if let FunctionKind::Partial { arguments, .. } = &kind { arguments.len() } else { 0 };
        let charge = Charge::new(meter, FUNCTION_BYTES + arguments * size_of::<Option<Value<'_>>>())?;
        Ok(Value::Function(Rc::new(Function { kind, charge })))
    }

    /// How many arguments it takes: functions that call it give it no more.
    pub(crate) fn arity(&self) -> usize {
        match &self.kind {
            FunctionKind::Builtin(builtin) => builtin.arity(),
            FunctionKind::Lambda { lambda, .. } => lambda.parameters.len(),
            FunctionKind::Partial { arguments, .. } => arguments.iter().filter(|argument| argument.is_none()).count(),
            FunctionKind::Chain { .. } | FunctionKind::Transform { .. } => 1,
            FunctionKind::Regex(_) => 2,
            FunctionKind::NextMatch { .. } | FunctionKind::Tail { .. } | FunctionKind::Gone => 0,
        }
    }
}

impl Drop for Function<'_> {
    fn drop(&mut self) {
        let meter = Rc::clone(&self.charge.meter);
        match std::mem::replace(&mut self.kind, FunctionKind::Gone) {
            FunctionKind::Lambda { input, frame, .. } | FunctionKind::Tail { input, frame, .. } => {
                meter.bury([Garbage::Value(input), Garbage::Frame(frame)].into_iter());
            }
            FunctionKind::Partial { function, arguments } => {
                let arguments = arguments.into_iter().flatten().map(Garbage::Value);
                meter.bury(arguments.chain([Garbage::Value(function)]));
            }
            FunctionKind::Chain { first, second } => {
                meter.bury([Garbage::Value(first), Garbage::Value(second)].into_iter());
            }
            FunctionKind::Transform { frame, .. } => meter.bury([Garbage::Frame(frame)].into_iter()),
            FunctionKind::Builtin(_) | FunctionKind::Regex(_) | FunctionKind::NextMatch { .. } | FunctionKind::Gone => {}
        }
    }
}
