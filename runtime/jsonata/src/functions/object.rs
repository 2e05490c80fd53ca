//! Functions on objects.

use indexmap::IndexSet;

use super::Arguments;
use crate::error::Result;
use crate::evaluate::Interpreter;
use crate::evaluate::path::check_nesting;
use crate::meter::Charge;
use crate::text::Text;
use crate::value::{ListBuilder, RecordBuilder, Value};

/// Bytes of a key in a set.
const KEY_BYTES: usize = 64;

impl<'a> Interpreter<'a> {
    pub(super) fn keys(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let mut keys = IndexSet::new();
        let mut charge = Charge::new(&self.meter, 0)?;
        self.collect_keys(&arguments.take(0), &mut keys, &mut charge, 0)?;
        let mut result = ListBuilder::with_capacity(&self.meter, keys.len())?;
        for key in keys {
            result.push(Value::Text(key))?;
        }
        Ok(result.sequence())
    }

    fn collect_keys(
        &self,
        value: &Value<'a>,
        keys: &mut IndexSet<Text<'a>>,
        charge: &mut Charge<'a>,
        nesting: u32,
    ) -> Result<()> {
        check_nesting(nesting)?;
        match value {
            Value::Array(array) => {
                for item in array.iter() {
                    self.meter.step(1)?;
                    self.collect_keys(&item, keys, charge, nesting + 1)?;
                }
            }
            Value::Object(object) => {
                for (key, _) in object.iter() {
                    self.meter.step_bytes(key.as_str().len())?;
                    if keys.insert(key) {
                        charge.grow(KEY_BYTES)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn spread(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let value = arguments.take(0);
        if !matches!(value, Value::Array(_) | Value::Object(_)) {
            return Ok(value);
        }
        let mut result = ListBuilder::new(&self.meter)?;
        self.spread_into(&value, &mut result, 0)?;
        let remains_array = matches!(value, Value::Array(_)) && result.len() > 0;
        Ok(if remains_array { result.plain() } else { result.sequence() })
    }

    fn spread_into(&self, value: &Value<'a>, result: &mut ListBuilder<'a>, nesting: u32) -> Result<()> {
        check_nesting(nesting)?;
        match value {
            Value::Array(array) => {
                self.meter.step(1)?;
                array.iter().try_for_each(|item| self.spread_into(&item, result, nesting + 1))
            }
            Value::Object(object) => object.iter().try_for_each(|(key, value)| {
                let mut single = RecordBuilder::new(&self.meter)?;
                single.set(key, value)?;
                result.push(single.value())
            }),
            Value::Undefined => Ok(()),
            value => result.push(value.clone()),
        }
    }

    pub(super) fn merge(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let Value::Array(array) = arguments.take(0) else {
            return Ok(Value::Undefined);
        };
        let mut result = RecordBuilder::new(&self.meter)?;
        for item in array.iter() {
            if let Value::Object(object) = item {
                object.iter().try_for_each(|(key, value)| result.set(key, value))?;
            }
        }
        Ok(result.value())
    }

    pub(super) fn type_name(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let name = match arguments.take(0) {
            Value::Undefined => return Ok(Value::Undefined),
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::Text(_) => "string",
            Value::Array(_) | Value::Tuples(_) => "array",
            Value::Object(_) => "object",
            Value::Function(_) => "function",
        };
        Ok(Value::Text(Text::Borrowed(name)))
    }
}
