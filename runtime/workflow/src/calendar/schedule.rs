//! A schedule: an expression that was read, with its time zone.
//!
//! Times are milliseconds since 1970. A schedule has no state: the same questions have the same answers.

use std::fmt::{self, Display, Formatter};

use super::cron::Cron;
use super::error::ScheduleError;
use super::once::Once;
use super::rate::Rate;
use super::read;
use super::zone::Zone;

/// When something is due. It is `Send` and `Sync`, and does not change.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub(super) expression: String,
    pub(super) zone: Zone,
    pub(super) form: Form,
}

#[derive(Clone, Debug)]
pub(super) enum Form {
    Rate(Rate),
    Cron(Box<Cron>),
    Once(Once),
}

impl Schedule {
    /// Reads an expression: `rate(...)`, `cron(...)`, `at(...)`, or the five fields of a crontab. `zone` is a name of IANA's, such as `Europe/Berlin`, in upper or lower
    /// case; none: UTC.
    ///
    /// # Errors
    /// The expression has a mistake, names no time between 1970 and 2199, or is too long; or there is no such zone.
    pub fn parse(expression: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        read::schedule(expression, zone)
    }

    /// The first time after `after_ms`. A rate counts from 1970. None: there is no further time.
    #[must_use]
    pub fn next(&self, after_ms: i64) -> Option<i64> {
        self.next_from(0, after_ms)
    }

    /// As [`next`](Self::next), with a rate that counts from `anchor_ms`, which is its first time. Other forms do not look at the anchor.
    #[must_use]
    pub fn next_from(&self, anchor_ms: i64, after_ms: i64) -> Option<i64> {
        match &self.form {
            Form::Rate(rate) => rate.next(anchor_ms, after_ms),
            Form::Cron(cron) => cron.next(&self.zone, after_ms),
            Form::Once(once) => Some(once.at_ms).filter(|at_ms| *at_ms > after_ms),
        }
    }

    /// The last time that is not after `until_ms`. A rate counts from `anchor_ms`, which is its first time. None: there was no time.
    #[must_use]
    pub fn last_from(&self, anchor_ms: i64, until_ms: i64) -> Option<i64> {
        match &self.form {
            Form::Rate(rate) => rate.last(anchor_ms, until_ms),
            Form::Cron(cron) => cron.last(&self.zone, until_ms),
            Form::Once(once) => Some(once.at_ms).filter(|at_ms| *at_ms <= until_ms),
        }
    }

    /// The expression, without spaces around it.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The name of the time zone, as IANA writes it.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.zone.name()
    }
}

/// `cron(0 12 * * ? *) Europe/Berlin`.
impl Display for Schedule {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.expression, self.zone.name())
    }
}
