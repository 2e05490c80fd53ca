//! A cron expression that was read: the search for its wall times, and their instants.

use croner::Cron as Pattern;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::civil::DateTime;

use super::fields::Fields;
use super::limits::{YEAR_MAX, YEAR_MIN};
use super::wall::Wall;
use super::zone::Zone;

#[derive(Clone, Debug)]
pub(super) struct Cron(Pattern);

impl Cron {
    /// None: croner refuses what the fields were translated to.
    pub(super) fn new(fields: &Fields) -> Option<Self> {
        let parser = CronParser::builder()
            .seconds(Seconds::Required)
            .year(Year::Required)
            .dom_and_dow(fields.both_days)
            .alternative_weekdays(false)
            .sloppy_ranges(false)
            .build();
        parser.parse(&fields.pattern()).ok().map(Self)
    }

    /// Whether it names any date. The search is bounded by the years: a millisecond or so.
    pub(super) fn has_times(&self) -> bool {
        let first = DateTime::new(year(YEAR_MIN), 1, 1, 0, 0, 0, 0);
        first.is_ok_and(|first| self.0.find_next_occurrence(&Wall(first), true).is_ok())
    }

    /// The first time after an instant.
    pub(super) fn next(&self, zone: &Zone, after_ms: i64) -> Option<i64> {
        let (first, last) = bounds()?;
        if after_ms >= last.as_millisecond() {
            return None;
        }
        let reached = zone.reached(Timestamp::from_millisecond(after_ms).unwrap_or(first).max(first))?;
        let wall = self.0.find_next_occurrence(&Wall(reached), false).ok()?;
        zone.instant_ms(wall.0)
    }

    /// The last time that is not after an instant.
    pub(super) fn last(&self, zone: &Zone, until_ms: i64) -> Option<i64> {
        let (first, last) = bounds()?;
        if until_ms < first.as_millisecond() {
            return None;
        }
        let reached = zone.reached(Timestamp::from_millisecond(until_ms).unwrap_or(last).min(last))?;
        let wall = self.0.find_previous_occurrence(&Wall(reached), true).ok()?;
        zone.instant_ms(wall.0)
    }
}

/// Instants before and after all times that an expression can name, in any zone.
fn bounds() -> Option<(Timestamp, Timestamp)> {
    let instant = |year, month, day| {
        let wall = DateTime::new(year, month, day, 0, 0, 0, 0).ok()?;
        jiff::tz::Offset::UTC.to_timestamp(wall).ok()
    };
    Some((instant(year(YEAR_MIN) - 1, 12, 29)?, instant(year(YEAR_MAX) + 1, 1, 4)?))
}

const fn year(year: u16) -> i16 {
    // Both limits are below 2^15.
    year.cast_signed()
}
