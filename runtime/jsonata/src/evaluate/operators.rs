//! Operators on values.

use std::cmp::Ordering;
use std::rc::Rc;

use super::Interpreter;
use super::frame::Frame;
use super::path::{check_nesting, finite};
use crate::ast::{Node, Operator};
use crate::error::{Error, Result};
use crate::limits::RANGE_MAX;
use crate::number;
use crate::text::{self, TextBuilder};
use crate::value::{Array, Value};

impl<'a> Interpreter<'a> {
    pub(super) fn binary(
        &self,
        operator: Operator,
        left: &'a Node,
        right: &'a Node,
        position: u32,
        input: &Value<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<Value<'a>> {
        let left = self.evaluate(left, input, frame)?;
        let decides = match operator {
            Operator::And => !self.is_true(&left)?,
            Operator::Or => self.is_true(&left)?,
            _ => false,
        };
        if decides {
            return Ok(Value::Bool(operator == Operator::Or));
        }
        let right = self.evaluate(right, input, frame)?;
        let result = match operator {
            Operator::And | Operator::Or => self.is_true(&right).map(Value::Bool),
            Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Remainder => {
                arithmetic(operator, &left, &right)
            }
            Operator::Equal | Operator::NotEqual if left.is_undefined() || right.is_undefined() => Ok(Value::Bool(false)),
            Operator::Equal => self.equal(&left, &right, 0).map(Value::Bool),
            Operator::NotEqual => self.equal(&left, &right, 0).map(|equal| Value::Bool(!equal)),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                self.comparison(operator, &left, &right)
            }
            Operator::In => self.includes(&left, &right).map(Value::Bool),
            Operator::Concatenate => self.concatenation(&left, &right),
            Operator::Range => range(&left, &right),
        };
        result.map_err(|error| error.at(position).with_token(operator.symbol()))
    }

    pub(super) fn negate(&self, inner: &'a Node, position: u32, input: &Value<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        match self.evaluate(inner, input, frame)? {
            Value::Undefined => Ok(Value::Undefined),
            Value::Number(number) => Ok(Value::Number(-finite(number)?)),
            value => Err(Error::new("D1002").at(position).with_token("-").with_value(self.quoted(&value))),
        }
    }

    /// The truth of a value: `$boolean` of it, and false for nothing.
    pub(crate) fn is_true(&self, value: &Value<'a>) -> Result<bool> {
        self.truth(value, 0)
    }

    fn truth(&self, value: &Value<'a>, nesting: u32) -> Result<bool> {
        check_nesting(nesting)?;
        Ok(match value {
            Value::Undefined | Value::Null | Value::Function(_) => false,
            Value::Bool(bool) => *bool,
            Value::Number(number) => !number.is_nan() && finite(*number)? != 0.0,
            Value::Text(text) => !text.as_str().is_empty(),
            Value::Object(object) => object.len() > 0,
            Value::Tuples(tuples) => !tuples.items.is_empty(),
            Value::Array(array) => {
                for item in array.iter() {
                    self.meter.step(1)?;
                    if self.truth(&item, nesting + 1)? {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }

    /// Whether values are the same; the order of fields does not matter.
    pub(crate) fn equal(&self, left: &Value<'a>, right: &Value<'a>, nesting: u32) -> Result<bool> {
        check_nesting(nesting)?;
        self.meter.step(1)?;
        Ok(match (left, right) {
            (Value::Undefined, Value::Undefined) | (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Number(left), Value::Number(right)) => left == right,
            (Value::Text(left), Value::Text(right)) => {
                self.meter.step_bytes(left.as_str().len().min(right.as_str().len()))?;
                left == right
            }
            (Value::Function(left), Value::Function(right)) => Rc::ptr_eq(left, right),
            (Value::Array(left), Value::Array(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (left, right) in left.iter().zip(right.iter()) {
                    if !self.equal(&left, &right, nesting + 1)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Object(left), Value::Object(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (key, left) in left.iter() {
                    self.meter.step_bytes(key.as_str().len())?;
                    match right.get(key.as_str()) {
                        Some(right) if self.equal(&left, &right, nesting + 1)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
            _ => false,
        })
    }

    fn comparison(&self, operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>> {
        let is_comparable = |value: &Value<'a>| matches!(value, Value::Undefined | Value::Number(_) | Value::Text(_));
        if !is_comparable(left) || !is_comparable(right) {
            return Err(Error::new("T2010"));
        }
        let order = match (left, right) {
            (Value::Number(left), Value::Number(right)) => left.partial_cmp(right),
            (Value::Text(left), Value::Text(right)) => {
                self.meter.step_bytes(left.as_str().len().min(right.as_str().len()))?;
                Some(text::compare(left.as_str(), right.as_str()))
            }
            (Value::Undefined, _) | (_, Value::Undefined) => return Ok(Value::Undefined),
            _ => return Err(Error::new("T2009")),
        };
        Ok(Value::Bool(match operator {
            Operator::Less => order == Some(Ordering::Less),
            Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Operator::Greater => order == Some(Ordering::Greater),
            _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }))
    }

    /// `in`: an array or object is in an array only if it is the very same one.
    fn includes(&self, left: &Value<'a>, right: &Value<'a>) -> Result<bool> {
        if left.is_undefined() {
            return Ok(false);
        }
        for item in self.items(right) {
            let is_it = match (left, &item) {
                (Value::Array(left), Value::Array(item)) => left.is_same(item),
                (Value::Object(left), Value::Object(item)) => left.is_same(item),
                (left, item) => self.equal(left, item, 0)?,
            };
            if is_it {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn concatenation(&self, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>> {
        let mut result = TextBuilder::new(&self.meter)?;
        for value in [left, right] {
            self.write_string(value, false, &mut result)?;
        }
        Ok(Value::Text(result.text()))
    }
}

fn operand(value: &Value<'_>, code: &'static str) -> Result<Option<f64>> {
    match value {
        Value::Undefined => Ok(None),
        Value::Number(number) if !number.is_nan() => finite(*number).map(Some),
        _ => Err(Error::new(code)),
    }
}

fn arithmetic<'a>(operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>> {
    let (left, right) = (operand(left, "T2001")?, operand(right, "T2002")?);
    let (Some(left), Some(right)) = (left, right) else {
        return Ok(Value::Undefined);
    };
    Ok(Value::Number(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
        _ => left % right,
    }))
}

fn range<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>> {
    let bound = |value: &Value<'a>, code| match value {
        Value::Undefined => Ok(None),
        Value::Number(number) if number.trunc() == *number && number.is_finite() => Ok(Some(*number)),
        _ => Err(Error::new(code)),
    };
    match (bound(left, "T2003")?, bound(right, "T2004")?) {
        (Some(first), Some(last)) if first <= last => {
            let count = last - first + 1.0;
            if count > RANGE_MAX {
                return Err(Error::new("D2014").with_value(number::to_text(count)));
            }
            Ok(Value::Array(Array::Range { first, count: count as usize }))
        }
        _ => Ok(Value::Undefined),
    }
}
