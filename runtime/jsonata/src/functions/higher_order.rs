//! Functions that take functions (<https://docs.jsonata.org/higher-order-functions>).

use std::rc::Rc;

use super::{Arguments, Builtin};
use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::evaluate::frame::Frame;
use crate::value::{Array, ListBuilder, Object, RecordBuilder, Value};

/// How many arguments a function takes.
fn arity(function: &Value<'_>) -> usize {
    match function {
        Value::Function(function) => function.arity(),
        _ => 1,
    }
}

impl<'a> Interpreter<'a> {
    pub(super) fn higher_order(
        &self,
        builtin: Builtin,
        arguments: &mut Arguments<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let (collection, function) = (arguments.take(0), arguments.take(1));
        match (builtin, collection) {
            (Builtin::Sift, Value::Object(object)) => self.sift(&object, &function, frame),
            (Builtin::Each, Value::Object(object)) => self.each(&object, &function, frame),
            (Builtin::Each, _) => Ok(ListBuilder::new(&self.meter)?.sequence()),
            (Builtin::Map, Value::Array(array)) => {
                let mut result = ListBuilder::new(&self.meter)?;
                for (index, item) in array.iter().enumerate() {
                    let value =
                        self.call_with(&function, item, Value::Number(index as f64), || Value::Array(array.clone()), frame)?;
                    if !value.is_undefined() {
                        result.push(value)?;
                    }
                }
                Ok(result.sequence())
            }
            (Builtin::Filter, Value::Array(array)) => {
                let mut result = ListBuilder::new(&self.meter)?;
                for (index, item) in array.iter().enumerate() {
                    let whole = || Value::Array(array.clone());
                    let value = self.call_with(&function, item.clone(), Value::Number(index as f64), whole, frame)?;
                    if self.is_true(&value)? {
                        result.push(item)?;
                    }
                }
                Ok(result.sequence())
            }
            (Builtin::Single, Value::Array(array)) => self.single_match(&array, &function, frame),
            (Builtin::Reduce, Value::Array(array)) => self.reduce(&array, &function, arguments.take(2), frame),
            _ => Ok(Value::Undefined),
        }
    }

    /// Calls a function with a value, its key and the whole collection, as far as it takes them.
    fn call_with(
        &self,
        function: &Value<'a>,
        value: Value<'a>,
        key: Value<'a>,
        whole: impl FnOnce() -> Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let mut arguments = vec![value];
        let arity = arity(function);
        if arity >= 2 {
            arguments.push(key);
        }
        if arity >= 3 {
            arguments.push(whole());
        }
        self.apply(function, arguments, &Value::Null, frame)
    }

    fn sift(&self, object: &Object<'a>, function: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let mut result = RecordBuilder::new(&self.meter)?;
        for (key, value) in object.iter() {
            let whole = || Value::Object(object.clone());
            let kept = self.call_with(function, value.clone(), Value::Text(key.clone()), whole, frame)?;
            if self.is_true(&kept)? {
                result.set(key, value)?;
            }
        }
        Ok(if result.len() == 0 { Value::Undefined } else { result.value() })
    }

    fn each(&self, object: &Object<'a>, function: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let mut result = ListBuilder::new(&self.meter)?;
        for (key, value) in object.iter() {
            let value = self.call_with(function, value, Value::Text(key), || Value::Object(object.clone()), frame)?;
            if !value.is_undefined() {
                result.push(value)?;
            }
        }
        Ok(result.sequence())
    }

    fn single_match(&self, array: &Array<'a>, function: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let mut found = None;
        for (index, item) in array.iter().enumerate() {
            self.meter.step(1)?;
            let is_match = match function {
                Value::Undefined => true,
                function => {
                    let whole = || Value::Array(array.clone());
                    let value = self.call_with(function, item.clone(), Value::Number(index as f64), whole, frame)?;
                    self.is_true(&value)?
                }
            };
            if is_match && found.replace(item).is_some() {
                return Err(Error::new("D3138").with_index(index));
            }
        }
        found.ok_or_else(|| Error::new("D3139"))
    }

    fn reduce(&self, array: &Array<'a>, function: &Value<'a>, first: Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let arity = arity(function);
        if arity < 2 {
            return Err(Error::new("D3050").with_index(1));
        }
        let (mut result, start) = match first {
            Value::Undefined => (array.get(0).unwrap_or_default(), 1),
            first => (first, 0),
        };
        for index in start..array.len() {
            let mut arguments = vec![std::mem::take(&mut result), array.get(index).unwrap_or_default()];
            if arity >= 3 {
                arguments.push(Value::Number(index as f64));
            }
            if arity >= 4 {
                arguments.push(Value::Array(array.clone()));
            }
            result = self.apply(function, arguments, &Value::Null, frame)?;
        }
        Ok(result)
    }
}
