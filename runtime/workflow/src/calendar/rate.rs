//! `rate(5 minutes)`: times at equal distances from an anchor, whatever the zone's clocks do.

use super::error::Fault;
use super::limits::RATE_SECONDS_MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// At least 1,000.
    interval_ms: i64,
}

const HELP: &str = "write a whole number and seconds, minutes, hours or days: rate(5 minutes)";

impl Rate {
    /// Reads what stands between the parentheses, which begins at byte `at`.
    pub(super) fn parse(inner: &str, at: usize) -> Result<Self, Fault> {
        let mut words = super::read::words(inner, at);
        let (Some((number_at, number)), Some((unit_at, unit)), None) = (words.next(), words.next(), words.next()) else {
            return Err(Fault::new(at, "a rate is a number and a unit", HELP));
        };
        let Some(number) = number.parse::<u64>().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit())) else {
            return Err(Fault::new(number_at, "the rate's number is not a whole number", HELP));
        };
        let seconds = match unit {
            "second" | "seconds" => 1,
            "minute" | "minutes" => 60,
            "hour" | "hours" => 3_600,
            "day" | "days" => 86_400,
            _ => return Err(Fault::new(unit_at, "the rate's unit is unknown", HELP)),
        };
        match number.checked_mul(seconds) {
            Some(0) => Err(Fault::new(number_at, "the rate is zero", "write at least 1 second: rate(1 second)")),
            Some(seconds @ ..=RATE_SECONDS_MAX) => {
                // Below 2^42.
                Ok(Self { interval_ms: i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000) })
            }
            _ => Err(Fault::new(number_at, "the rate is longer than 100 years", "write a shorter one, or at(...) for one time")),
        }
    }

    pub(super) fn next(self, anchor_ms: i64, after_ms: i64) -> Option<i64> {
        let passed = i128::from(after_ms) - i128::from(anchor_ms);
        let count = if passed < 0 { 0 } else { passed / i128::from(self.interval_ms) + 1 };
        self.nth(anchor_ms, count)
    }

    pub(super) fn last(self, anchor_ms: i64, until_ms: i64) -> Option<i64> {
        let passed = i128::from(until_ms) - i128::from(anchor_ms);
        if passed < 0 { None } else { self.nth(anchor_ms, passed / i128::from(self.interval_ms)) }
    }

    fn nth(self, anchor_ms: i64, count: i128) -> Option<i64> {
        i64::try_from(i128::from(anchor_ms) + count * i128::from(self.interval_ms)).ok()
    }
}
