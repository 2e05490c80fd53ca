//! Judges replies of `gps-ekf`: the layout, the numbers, the tolerance (`examples/gps-ekf/README.md`).

use anyhow::{Result, ensure};

/// Length of a reply in bytes: 8 numbers of state and 8 x 8 of covariance.
pub const REPLY_BYTES: usize = 72 * 8;

/// Largest accepted difference, relative to the number or to [`FLOOR`], whichever is larger.
pub const TOLERANCE: f64 = 1e-9;

/// Numbers below this are compared absolutely, in m and m/s: a pseudorange's last bit is 4e-9 m.
pub const FLOOR: f64 = 10.0;

const STATE: [(&str, &str); 8] = [
    ("x", "m"),
    ("vx", "m/s"),
    ("y", "m"),
    ("vy", "m/s"),
    ("z", "m"),
    ("vz", "m/s"),
    ("clock bias", "m"),
    ("clock drift", "m/s"),
];

/// Compares a reply with the independent computation's; the lines show the state before and after.
///
/// # Errors
///
/// If the length is wrong or a number is off by more than the tolerance.
pub fn judge(expected: &[u8], request: &[u8], reply: &[u8]) -> Result<Vec<String>> {
    let deviation = deviation(expected, reply)?;
    let (before, after) = (numbers(request), numbers(reply));
    let mut lines = vec![format!("{:<12} {:>16} {:>16}", "state", "before", "after")];
    for ((name, unit), (old, new)) in STATE.iter().zip(before.iter().zip(&after)) {
        lines.push(format!("{name:<12} {old:>16.3} {new:>16.3} {unit}"));
    }
    lines.push(format!("largest deviation from the independent computation: {deviation:.1e}, allowed {TOLERANCE:.0e}"));
    Ok(lines)
}

/// The largest difference between two replies, in the measure of [`TOLERANCE`].
///
/// # Errors
///
/// If it is larger than that, or one of them has another length than a reply.
pub fn deviation(expected: &[u8], reply: &[u8]) -> Result<f64> {
    ensure!(reply.len() == REPLY_BYTES, "it has {} bytes, expected are {REPLY_BYTES}", reply.len());
    ensure!(expected.len() == REPLY_BYTES, "expected.bin has {} bytes instead of {REPLY_BYTES}", expected.len());
    let mut worst = 0.0_f64;
    for (index, (wanted, got)) in numbers(expected).into_iter().zip(numbers(reply)).enumerate() {
        let off = (got - wanted).abs() / wanted.abs().max(FLOOR);
        // Not `off > TOLERANCE`, so that NaN is caught.
        ensure!(off <= TOLERANCE, "number {index} is {got:e}, expected is {wanted:e} (within {TOLERANCE:e})");
        worst = worst.max(off);
    }
    Ok(worst)
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks().0.iter().map(|number| f64::from_le_bytes(*number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply_of(number: f64) -> Vec<u8> {
        number.to_le_bytes().repeat(72)
    }

    #[test]
    fn equal_replies_pass_and_rounding_passes() {
        assert!(judge(&reply_of(5e6), &reply_of(0.0), &reply_of(5e6)).is_ok());
        assert!(deviation(&reply_of(5e6), &reply_of(5e6 + 0.004)).is_ok());
        assert!(deviation(&reply_of(0.0), &reply_of(9e-9)).is_ok());
    }

    #[test]
    fn wrong_lengths_differences_and_nan_are_refused() {
        assert!(deviation(&reply_of(1.0), &reply_of(1.0)[8..]).is_err());
        assert!(deviation(&reply_of(1.0), b"").is_err());
        assert!(deviation(&reply_of(5e6), &reply_of(5e6 + 0.006)).is_err());
        assert!(deviation(&reply_of(0.0), &reply_of(2e-8)).is_err());
        assert!(deviation(&reply_of(1.0), &reply_of(f64::NAN)).is_err());
    }
}
