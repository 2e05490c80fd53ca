//! A time zone: from wall times to instants and back.
//!
//! `instant` never decreases as wall times increase: gaps are mapped to their end, folds to their first half. `reached` is its inverse, so a search may go by wall
//! times alone.

use std::sync::LazyLock;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use super::error::ScheduleError;
use super::limits::ZONE_BYTES_MAX;
use crate::definition::Suggestions;

/// IANA's zones, as they were when this was built.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Changes of a zone's clock or names among which the one that made a gap is looked for. It is the first, as far as is known.
const CHANGES_MAX: usize = 8;

const HELP: &str = "write a name of IANA's, such as Europe/Berlin or UTC";

#[derive(Clone, Debug)]
pub(super) struct Zone(TimeZone);

impl Zone {
    /// The zone of that name, or UTC.
    pub(super) fn named(name: Option<&str>) -> Result<Self, ScheduleError> {
        let Some(name) = name else { return Ok(Self(TimeZone::UTC)) };
        let refused = |help: String| ScheduleError::Zone { zone: name.to_owned(), help };
        if name.len() > ZONE_BYTES_MAX {
            return Err(refused(HELP.to_owned()));
        }
        match ZONES.get(name) {
            Ok(zone) if !zone.is_unknown() => Ok(Self(zone)),
            _ => {
                let names: Vec<_> = ZONES.available().collect();
                let meant = Suggestions::new().did_you_mean(name, names.iter().map(|name| name.as_str()));
                Err(refused(meant.unwrap_or_else(|| HELP.to_owned())))
            }
        }
    }

    pub(super) fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// When a wall time is: the first of two instants, or the end of the gap in which it lies.
    pub(super) fn instant(&self, wall: DateTime) -> Option<Timestamp> {
        match self.0.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
            AmbiguousOffset::Gap { before, after } => {
                // By the clock that is to come, the wall time lies before the change.
                let earlier = after.to_timestamp(wall).ok()?;
                let change = self.0.following(earlier).take(CHANGES_MAX).find(|change| change.offset() == after);
                change.map(|change| change.timestamp()).or_else(|| before.to_timestamp(wall).ok())
            }
        }
    }

    /// As [`instant`](Self::instant), in milliseconds since 1970.
    pub(super) fn instant_ms(&self, wall: DateTime) -> Option<i64> {
        self.instant(wall).map(Timestamp::as_millisecond)
    }

    /// The last wall time, in whole seconds, whose instant is not after the given one.
    pub(super) fn reached(&self, instant: Timestamp) -> Option<DateTime> {
        let second = Timestamp::from_second(instant.as_millisecond().div_euclid(1_000)).ok()?;
        let offset = self.0.to_offset(second);
        let wall = offset.to_datetime(second);
        match self.0.to_ambiguous_timestamp(wall).offset() {
            // All of the fold has been reached in its first half.
            AmbiguousOffset::Fold { before, after } if offset == after => {
                let later = second.checked_add(SignedDuration::from_secs(1)).ok()?;
                let change = self.0.preceding(later).next()?.timestamp();
                before.to_datetime(change).checked_sub(SignedDuration::from_secs(1)).ok()
            }
            _ => Some(wall),
        }
    }
}
