//! A percentile that is followed one value at a time, without keeping the values.

/// The part by which it goes up or down at each value.
const STEP: f64 = 0.05;

/// Goes from `current` towards the percentile `part` (0 to 1) of the values of which `value` is the next: up by a part for each value above, down by a smaller part for
/// each below, so that it stays where the parts of values above and below are as wanted. Zero is none yet.
#[must_use]
pub fn follow(current: u64, value: u64, part: f64) -> u64 {
    if current == 0 {
        return value;
    }
    let factor = if value > current { 1.0 + STEP * part } else { 1.0 - STEP * (1.0 - part) };
    // At least one up, so that small numbers move too.
    let next = (current as f64 * factor) as u64;
    if value > current { next.max(current + 1).min(value) } else { next.max(value) }
}
