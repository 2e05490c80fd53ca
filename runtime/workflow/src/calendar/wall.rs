//! A wall time as croner takes it: without a zone, so that every wall time exists once.

use core::cmp::Ordering;

use croner::errors::CronError;
use croner::time::{CivilDate, CivilDateTime, CivilTime, CronDateTime, Resolution, Weekday};
use jiff::SignedDuration;
use jiff::civil::DateTime;

#[derive(Clone, Copy, Debug)]
pub(super) struct Wall(pub(super) DateTime);

impl CronDateTime for Wall {
    fn to_civil(&self) -> CivilDateTime {
        let wall = self.0;
        // Jiff's numbers are of a date and a time that exist: none is negative.
        let number = |number: i8| u32::from(number.unsigned_abs());
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(i32::from(wall.year()), number(wall.month()), number(wall.day())),
            CivilTime::from_parts_unchecked(number(wall.hour()), number(wall.minute()), number(wall.second())),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(u32::from(self.0.weekday().to_sunday_zero_offset().unsigned_abs()))
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let number = |number: u32| i8::try_from(number).map_err(|_| CronError::InvalidDate);
        let wall = DateTime::new(
            i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?,
            number(civil.month())?,
            number(civil.day())?,
            number(civil.hour())?,
            number(civil.minute())?,
            number(civil.second())?,
            0,
        );
        wall.map(|wall| Resolution::Single(Self(wall))).map_err(|_| CronError::InvalidDate)
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(SignedDuration::from_secs(seconds)).ok().map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}
