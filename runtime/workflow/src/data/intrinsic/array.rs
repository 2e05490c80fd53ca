//! Intrinsic functions on arrays.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::math::integer;
use crate::data::error::kind;
use crate::data::limits::ARRAY_RANGE_ITEMS_MAX;
use crate::data::number;

/// The items of an argument that must be an array.
pub(super) fn items(value: &Value) -> Result<&[Value], String> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("the first argument must be an array, but it is {}", kind(value)))
}

/// Arrays of `size` items each; the last one may have fewer.
pub(super) fn partition(array: &Value, size: &Value) -> Result<Value, String> {
    let size = integer(size, "the chunk size")?;
    let size = usize::try_from(size).ok().filter(|size| *size > 0).ok_or("the chunk size must be a positive integer")?;
    Ok(items(array)?.chunks(size).map(|chunk| Value::Array(chunk.to_vec())).collect())
}

pub(super) fn contains(array: &Value, value: &Value) -> Result<bool, String> {
    Ok(items(array)?.iter().any(|item| number::is_same(item, value)))
}

/// The integers from `first` to `last`, both included if the step leads there.
pub(super) fn range(first: &Value, last: &Value, step: &Value) -> Result<Value, String> {
    let (first, last, step) =
        (integer(first, "the first argument")?, integer(last, "the second argument")?, integer(step, "the step")?);
    if step == 0 {
        return Err("the step must not be 0".into());
    }
    let distance = (i128::from(last) - i128::from(first)) / i128::from(step);
    let is_empty = if step > 0 { first > last } else { first < last };
    let count = if is_empty { 0 } else { usize::try_from(distance + 1).unwrap_or(usize::MAX) };
    if count > ARRAY_RANGE_ITEMS_MAX {
        return Err(format!("the array would have more than {ARRAY_RANGE_ITEMS_MAX} items"));
    }
    // None of them lies beyond `last`.
    Ok(std::iter::successors(Some(first), |item| item.checked_add(step)).take(count).map(Value::from).collect())
}

/// One item. It is borrowed if the array is.
pub(super) fn get_item<'a>(array: &mut Cow<'a, Value>, index: &Value) -> Result<Cow<'a, Value>, String> {
    let index = integer(index, "the index")?;
    let count = items(array)?.len();
    let outside = || format!("the index {index} is outside the array, which has {count} items");
    let place = usize::try_from(index).ok().filter(|place| *place < count).ok_or_else(outside)?;
    let found = match array {
        Cow::Borrowed(array) => array.get(place).map(Cow::Borrowed),
        Cow::Owned(array) => array.get_mut(place).map(|item| Cow::Owned(item.take())),
    };
    found.ok_or_else(outside)
}

/// The items without those that came before.
pub(super) fn unique(array: &Value) -> Result<Value, String> {
    let mut seen = HashSet::new();
    Ok(items(array)?.iter().filter(|item| seen.insert(key(item))).cloned().collect())
}

/// A text that is the same for values that are the same: numbers by their values, members of objects in any order. Recurses as deep as the value is nested.
fn key(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            // Integers beyond 2^53 keep their digits.
            Some(float) if !number.is_i64() && !number.is_u64() => number::from_float(float).to_string(),
            _ => number.to_string(),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(key).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let mut members: Vec<String> =
                members.iter().map(|(name, member)| format!("{}:{}", Value::from(name.as_str()), key(member))).collect();
            members.sort_unstable();
            format!("{{{}}}", members.join(","))
        }
        _ => value.to_string(),
    }
}
