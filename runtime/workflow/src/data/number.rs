//! Numbers of JSON: exact comparison, rounding, equality of values.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::limits::BYTES_A_VISIT;

/// Floating point numbers up to here, 2^53, stand for every integer.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The order of two numbers, by their values: 1 and 1.0 are equal.
pub(crate) fn compare(left: &Number, right: &Number) -> Ordering {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_mixed(left, float(right)),
        (None, Some(right)) => compare_mixed(right, float(left)).reverse(),
        (None, None) => float(left).partial_cmp(&float(right)).unwrap_or(Ordering::Equal),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(0.0)
}

/// The order of an integer of 64 bits and a floating point number, without rounding either.
fn compare_mixed(integer: i128, float: f64) -> Ordering {
    // The conversion saturates: beyond 2^127 the order is right as well.
    let whole = float.trunc();
    integer.cmp(&(whole as i128)).then_with(|| 0.0_f64.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal))
}

/// Whether two values are the same, numbers by their values, members of objects in any order. Recurses as deep as the values are nested.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    let mut unlimited = usize::MAX;
    is_same_within(left, right, &mut unlimited).unwrap_or(false)
}

/// The same with a budget of visits: one a node, and more for long strings. None if that is used up.
pub(crate) fn is_same_within(left: &Value, right: &Value, visits: &mut usize) -> Option<bool> {
    *visits = visits.checked_sub(1)?;
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Some(compare(left, right) == Ordering::Equal),
        (Value::String(left), Value::String(right)) if left.len() == right.len() => {
            *visits = visits.checked_sub(left.len() / BYTES_A_VISIT)?;
            Some(left == right)
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (left, right) in left.iter().zip(right) {
                if !is_same_within(left, right, visits)? {
                    return Some(false);
                }
            }
            Some(true)
        }
        (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
            for (name, left) in left {
                let Some(right) = right.get(name) else { return Some(false) };
                if !is_same_within(left, right, visits)? {
                    return Some(false);
                }
            }
            Some(true)
        }
        (Value::Null, Value::Null) => Some(true),
        (Value::Bool(left), Value::Bool(right)) => Some(left == right),
        _ => Some(false),
    }
}

/// The nearest integer, half up (2.5 is 3, -2.5 is -2), as AWS Step Functions rounds. None beyond 64 bits.
pub(crate) fn rounded(number: &Number) -> Option<i64> {
    if let Some(integer) = number.as_i64() {
        return Some(integer);
    }
    let float = number.as_f64()?;
    let floor = float.floor();
    let nearest = if float - floor >= 0.5 { floor + 1.0 } else { floor };
    // 2^63 itself is not among them.
    let bound = -(i64::MIN as f64);
    (-bound..bound).contains(&nearest).then_some(nearest as i64)
}

/// A result of arithmetic: an integer where it is one, null where it is not finite.
pub(crate) fn from_float(float: f64) -> Value {
    if float.fract() == 0.0 && float.abs() <= EXACT_MAX { Value::from(float as i64) } else { Value::from(float) }
}
