//! `at(2026-12-24T18:00:00)`: one wall time.

use jiff::civil::DateTime;

use super::error::Fault;
use super::limits::{YEAR_MAX, YEAR_MIN};
use super::zone::Zone;

#[derive(Clone, Copy, Debug)]
pub(super) struct Once {
    pub(super) at_ms: i64,
}

const HELP: &str = "write year, month, day, hour, minute and second, without a zone: at(2026-12-24T18:00:00)";

impl Once {
    /// Reads what stands between the parentheses, which begins at byte `at`.
    pub(super) fn parse(inner: &str, at: usize, zone: &Zone) -> Result<Self, Fault> {
        let at = at.saturating_add(inner.len().saturating_sub(inner.trim_start().len()));
        let text = inner.trim();
        let formed = text.len() == 19
            && text.bytes().enumerate().all(|(index, byte)| match index {
                4 | 7 => byte == b'-',
                10 => byte == b'T',
                13 | 16 => byte == b':',
                _ => byte.is_ascii_digit(),
            });
        if !formed {
            return Err(Fault::new(at, "this is not a date with a time of day", HELP));
        }
        // Jiff takes a leap second, and gives the second before it.
        let wall = text.parse::<DateTime>().ok().filter(|wall| wall.to_string() == text);
        let Some(wall) = wall else {
            return Err(Fault::new(at, "there is no such date or time of day", "write one that the calendar has"));
        };
        if !(i32::from(YEAR_MIN)..=i32::from(YEAR_MAX)).contains(&i32::from(wall.year())) {
            return Err(Fault::new(at, format!("the year is not between {YEAR_MIN} and {YEAR_MAX}"), "write a year that is"));
        }
        match zone.instant_ms(wall) {
            Some(at_ms) => Ok(Self { at_ms }),
            None => Err(Fault::new(at, "there is no such time in the zone", HELP)),
        }
    }
}
