//! Functions on arrays.

use std::collections::HashSet;
use std::rc::Rc;

use super::Arguments;
use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::evaluate::frame::Frame;
use crate::evaluate::order::merge_sort;
use crate::text::{self, Text};
use crate::value::{Array, ListBuilder, Value};

/// A value of `$distinct` whose equals are found by hash.
#[derive(PartialEq, Eq, Hash)]
enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(u64),
    Text(Text<'a>),
}

impl<'a> Scalar<'a> {
    fn of(value: &Value<'a>) -> Option<Scalar<'a>> {
        match value {
            Value::Null => Some(Scalar::Null),
            Value::Bool(bool) => Some(Scalar::Bool(*bool)),
            // Zero and minus zero are equal.
            Value::Number(number) => Some(Scalar::Number((number + 0.0).to_bits())),
            Value::Text(text) => Some(Scalar::Text(text.clone())),
            _ => None,
        }
    }
}

impl<'a> Interpreter<'a> {
    pub(super) fn append(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        match (arguments.take(0), arguments.take(1)) {
            (Value::Undefined, other) | (other, Value::Undefined) => Ok(other),
            (first, second) => {
                let mut result = ListBuilder::new(&self.meter)?;
                self.append_to(&mut result, &first)?;
                self.append_to(&mut result, &second)?;
                Ok(result.plain())
            }
        }
    }

    pub(super) fn zip(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let arrays: Vec<Option<Array<'a>>> = std::mem::take(&mut arguments.0)
            .into_iter()
            .map(|argument| if let Value::Array(array) = argument { Some(array) } else { None })
            .collect();
        let length = arrays.iter().map(|array| array.as_ref().map_or(0, Array::len)).min().unwrap_or(0);
        let mut result = ListBuilder::new(&self.meter)?;
        for index in 0..length {
            let mut tuple = ListBuilder::with_capacity(&self.meter, arrays.len())?;
            for array in arrays.iter().flatten() {
                tuple.push(array.get(index).unwrap_or_default())?;
            }
            result.push(tuple.plain())?;
        }
        Ok(result.plain())
    }

    pub(super) fn reverse(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        match arguments.take(0) {
            Value::Array(array) if array.len() > 1 => {
                let mut result = ListBuilder::with_capacity(&self.meter, array.len())?;
                for index in (0..array.len()).rev() {
                    result.push(array.get(index).unwrap_or_default())?;
                }
                Ok(result.plain())
            }
            value => Ok(value),
        }
    }

    pub(super) fn shuffle(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let Value::Array(array) = arguments.take(0) else {
            return Ok(Value::Undefined);
        };
        let mut result = ListBuilder::with_capacity(&self.meter, array.len())?;
        array.iter().try_for_each(|item| result.push(item))?;
        let (mut items, _charge) = result.into_items();
        self.random.borrow_mut().shuffle(&mut items);
        let mut result = ListBuilder::with_capacity(&self.meter, items.len())?;
        items.into_iter().try_for_each(|item| result.push(item))?;
        Ok(result.plain())
    }

    #[expect(clippy::mutable_key_type, reason = "a string's text, by which it is found, never changes")]
    pub(super) fn distinct(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let array = match arguments.take(0) {
            Value::Array(array) if array.len() > 1 => array,
            value => return Ok(value),
        };
        let mut result = ListBuilder::new(&self.meter)?;
        let mut seen = HashSet::new();
        let mut others: Vec<Value<'a>> = Vec::new();
        for item in array.iter() {
            let is_new = match Scalar::of(&item) {
                Some(scalar) => {
                    self.meter.step_bytes(item.as_text().map_or(0, str::len))?;
                    seen.insert(scalar)
                }
                None => {
                    let mut is_new = true;
                    for other in &others {
                        if self.equal(&item, other, 0)? {
                            is_new = false;
                            break;
                        }
                    }
                    if is_new {
                        others.push(item.clone());
                    }
                    is_new
                }
            };
            if is_new {
                result.push(item)?;
            }
        }
        Ok(if array.flags().is_sequence { result.sequence() } else { result.plain() })
    }

    pub(super) fn sort(&self, arguments: &mut Arguments<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let array = match arguments.take(0) {
            Value::Array(array) if array.len() > 1 => array,
            value => return Ok(value),
        };
        let mut items = ListBuilder::with_capacity(&self.meter, array.len())?;
        array.iter().try_for_each(|item| items.push(item))?;
        let (items, _charge) = items.into_items();
        let sorted = match arguments.take(1) {
            Value::Undefined => {
                let are_numbers = items.iter().all(|item| matches!(item, Value::Number(_)));
                if !are_numbers && !items.iter().all(|item| matches!(item, Value::Text(_))) {
                    return Err(Error::new("D3070").with_index(1));
                }
                merge_sort(items, &self.meter, &mut |left, right| match (left, right) {
                    (Value::Text(left), Value::Text(right)) => {
                        self.meter.step_bytes(left.as_str().len().min(right.as_str().len()))?;
                        Ok(text::compare(left.as_str(), right.as_str()).is_gt())
                    }
                    (Value::Number(left), Value::Number(right)) => Ok(left > right),
                    _ => Ok(false),
                })?
            }
            function => merge_sort(items, &self.meter, &mut |left, right| {
                let result = self.apply(&function, vec![left.clone(), right.clone()], &Value::Null, frame)?;
                self.is_true(&result)
            })?,
        };
        let mut result = ListBuilder::with_capacity(&self.meter, sorted.len())?;
        sorted.into_iter().try_for_each(|item| result.push(item))?;
        Ok(result.plain())
    }
}
