//! Intrinsic functions on numbers, and `States.UUID`.

use serde_json::Value;

use crate::data::error::kind;
use crate::data::number;

/// An argument that must be a number; it is rounded to the nearest integer.
pub(super) fn integer(value: &Value, what: &str) -> Result<i64, String> {
    let Value::Number(given) = value else { return Err(format!("{what} must be a number, but it is {}", kind(value))) };
    number::rounded(given).ok_or_else(|| format!("{what} must be an integer of 64 bits, but it is {given}"))
}

pub(super) fn add(left: &Value, right: &Value) -> Result<Value, String> {
    let (left, right) = (integer(left, "the first argument")?, integer(right, "the second argument")?);
    left.checked_add(right).map(Value::from).ok_or_else(|| "the sum is not an integer of 64 bits".into())
}

/// An integer from `start` up to, and without, `end`. The same seed gives the same number.
pub(super) fn random(start: &Value, end: &Value, seed: Option<&Value>, random: &mut dyn FnMut() -> u64) -> Result<Value, String> {
    let (start, end) = (integer(start, "the start")?, integer(end, "the end")?);
    let count = i128::from(end) - i128::from(start);
    let count = u64::try_from(count).ok().filter(|count| *count > 0).ok_or("the start must be less than the end")?;
    let bits = match seed {
        Some(seed) => split_mix(integer(seed, "the seed")?.cast_unsigned()),
        None => random(),
    };
    // Multiply-shift: the bias is below 2^-64 times the count.
    let offset = (u128::from(bits) * u128::from(count)) >> 64;
    let number = i128::from(start) + i128::try_from(offset).unwrap_or_default();
    Ok(Value::from(i64::try_from(number).unwrap_or(start)))
}

/// One step of SplitMix64: distributes what differs in a few bits over all. Source: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014, figure 17.
fn split_mix(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A version 4 UUID (RFC 9562, section 5.4).
pub(super) fn uuid(random: &mut dyn FnMut() -> u64) -> Value {
    let (high, low) = (random(), random());
    let high = (high & !0xf000) | 0x4000;
    let low = (low & (u64::MAX >> 2)) | (1 << 63);
    let groups = [high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48, low & 0xffff_ffff_ffff];
    let [first, second, third, fourth, fifth] = groups;
    Value::String(format!("{first:08x}-{second:04x}-{third:04x}-{fourth:04x}-{fifth:012x}"))
}
