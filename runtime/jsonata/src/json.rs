//! Values into JSON.

use serde_json::{Map, Number, Value as Json};

use crate::error::{Error, Result};
use crate::evaluate::path::check_nesting;
use crate::meter::{Charge, Meter};
use crate::number;
use crate::value::{Array, Object, Value};
use std::rc::Rc;

/// Integers up to here are written without a fraction: a double represents each of them.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// The result of an evaluation; none if it is undefined. Its size is charged until it is finished, as shared values become copies.
pub(crate) fn result<'a>(value: &Value<'a>, meter: &Rc<Meter<'a>>) -> Result<Option<Json>> {
    let mut charge = Charge::new(meter, 0)?;
    if value.is_undefined() { Ok(None) } else { json(value, 0, &mut charge).map(Some) }
}

fn json<'a>(value: &Value<'a>, nesting: u32, charge: &mut Charge<'a>) -> Result<Json> {
    check_nesting(nesting)?;
    charge.meter.step(1)?;
    charge.grow(size_of::<Json>())?;
    Ok(match value {
        Value::Undefined | Value::Null => Json::Null,
        Value::Bool(bool) => Json::Bool(*bool),
        Value::Number(number) => Json::Number(self::number(*number)?),
        Value::Text(text) => {
            charge.meter.step_bytes(text.as_str().len())?;
            charge.grow(text.as_str().len())?;
            Json::String(String::from(text.as_str()))
        }
        Value::Array(Array::Borrowed(items)) => {
            let copied = |item: &Json| borrowed(item, nesting + 1, charge);
            Json::Array(items.iter().map(copied).collect::<Result<_>>()?)
        }
        Value::Array(array) => {
            let mut items = Vec::new();
            for item in array.iter() {
                items.push(json(&item, nesting + 1, charge)?);
            }
            Json::Array(items)
        }
        Value::Tuples(tuples) => {
            let mut items = Vec::new();
            for tuple in &tuples.items {
                items.push(json(&tuple.context, nesting + 1, charge)?);
            }
            Json::Array(items)
        }
        Value::Object(Object::Borrowed(fields)) => {
            let mut copy = Map::new();
            for (key, value) in *fields {
                charge.grow(key.len() + FIELD_BYTES)?;
                copy.insert(key.clone(), borrowed(value, nesting + 1, charge)?);
            }
            Json::Object(copy)
        }
        Value::Object(object) => {
            let mut copy = Map::new();
            for (key, value) in object.iter().filter(|(_, value)| !value.is_undefined()) {
                charge.grow(key.as_str().len() + FIELD_BYTES)?;
                copy.insert(String::from(key.as_str()), json(&value, nesting + 1, charge)?);
            }
            Json::Object(copy)
        }
        Value::Function(_) => return Err(Error::new("U1004")),
    })
}

const FIELD_BYTES: usize = 64;

/// A copy of JSON: its numbers are the same to the last digit.
fn borrowed<'a>(value: &Json, nesting: u32, charge: &mut Charge<'a>) -> Result<Json> {
    check_nesting(nesting)?;
    charge.meter.step(1)?;
    charge.grow(size_of::<Json>())?;
    Ok(match value {
        Json::Null => Json::Null,
        Json::Bool(bool) => Json::Bool(*bool),
        Json::Number(number) => Json::Number(number.clone()),
        Json::String(text) => {
            charge.meter.step_bytes(text.len())?;
            charge.grow(text.len())?;
            Json::String(text.clone())
        }
        Json::Array(items) => Json::Array(items.iter().map(|item| borrowed(item, nesting + 1, charge)).collect::<Result<_>>()?),
        Json::Object(fields) => {
            let mut copy = Map::new();
            for (key, value) in fields {
                charge.grow(key.len() + FIELD_BYTES)?;
                copy.insert(key.clone(), borrowed(value, nesting + 1, charge)?);
            }
            Json::Object(copy)
        }
    })
}

fn number(number: f64) -> Result<Number> {
    if number.trunc() == number && number.abs() <= INTEGER_MAX {
        return Ok(Number::from(number as i64));
    }
    Number::from_f64(number).ok_or_else(|| Error::new("D1001").with_value(number::to_text(number)))
}
