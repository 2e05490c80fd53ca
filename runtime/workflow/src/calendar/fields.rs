//! The fields of cron expressions: which there are in each form, and their translation to croner's form.

use super::error::Fault;
use super::items::{self, Values};
use super::limits::{YEAR_MAX, YEAR_MIN};
use super::read::words;

/// What a field of one form may hold.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) min: u16,
    pub(super) max: u16,
    /// Values after which it begins again; 0: it does not.
    pub(super) cycle: u16,
    /// Names of the values from `first_named`, in upper case.
    pub(super) names: &'static [&'static str],
    pub(super) first_named: u16,
    /// What is subtracted for croner's number of a value.
    pub(super) shift: u16,
    pub(super) days: Days,
    /// EventBridge's form: `?`, `L`, `W`, `#`, and steps from one value.
    pub(super) extended: bool,
}

/// Which of the two fields for days it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Days {
    No,
    OfMonth,
    OfWeek,
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const fn numbers(name: &'static str, min: u16, max: u16, extended: bool) -> Field {
    let cycle = max - min + 1;
    Field { name, min, max, cycle, names: &[], first_named: 0, shift: 0, days: Days::No, extended }
}

const fn plain(extended: bool) -> [Field; 4] {
    [
        numbers("minutes", 0, 59, extended),
        numbers("hours", 0, 23, extended),
        Field { days: Days::OfMonth, ..numbers("day-of-month", 1, 31, extended) },
        Field { names: MONTHS, first_named: 1, ..numbers("month", 1, 12, extended) },
    ]
}

const EXTENDED: [Field; 4] = plain(true);
const CRONTAB: [Field; 4] = plain(false);
const EXTENDED_WEEKDAY: Field =
    Field { names: WEEKDAYS, first_named: 1, shift: 1, days: Days::OfWeek, ..numbers("day-of-week", 1, 7, true) };
const CRONTAB_WEEKDAY: Field = Field { names: WEEKDAYS, cycle: 7, days: Days::OfWeek, ..numbers("day-of-week", 0, 7, false) };
const EXTENDED_YEAR: Field = Field { cycle: 0, ..numbers("year", YEAR_MIN, YEAR_MAX, true) };

/// Fields in croner's words.
#[derive(Debug)]
pub(super) struct Fields {
    minutes: String,
    hours: String,
    days: String,
    months: String,
    weekdays: String,
    years: String,
    /// A date fits only if both day fields name it.
    pub(super) both_days: bool,
}

impl Fields {
    /// Seconds, minutes, hours, day, month, weekday from 0, year.
    pub(super) fn pattern(&self) -> String {
        let Self { minutes, hours, days, months, weekdays, years, .. } = self;
        format!("0 {minutes} {hours} {days} {months} {weekdays} {years}")
    }
}

/// The six fields of EventBridge, which begin at byte `at`.
pub(super) fn extended(inner: &str, at: usize) -> Result<Fields, Fault> {
    const HELP: &str = "write minutes, hours, day-of-month, month, day-of-week, year: cron(0 12 ? * MON-FRI *)";
    let words: Vec<_> = words(inner, at).collect();
    let &[minutes, hours, days, months, weekdays, years] = words.as_slice() else {
        let help = match words.as_slice() {
            [_, _, _, _, _] => {
                "add the year, and ? in one of the day fields: cron(0 12 ? * MON-FRI *); or write five fields without cron()"
            }
            _ => HELP,
        };
        return Err(Fault::new(at, format!("cron() has {} fields, and needs 6", words.len()), help));
    };
    let [minute, hour, day, month] = &EXTENDED;
    let fields = Parsed {
        minutes: items::read(minute, minutes)?,
        hours: items::read(hour, hours)?,
        days: items::read(day, days)?,
        months: items::read(month, months)?,
        weekdays: items::read(&EXTENDED_WEEKDAY, weekdays)?,
    };
    match (&fields.days, &fields.weekdays) {
        (Values::Unasked, Values::Unasked) => {
            return Err(Fault::new(weekdays.0, "both day fields are ?", "write * in one of them for every day"));
        }
        (Values::Unasked, _) | (_, Values::Unasked) => {}
        _ => {
            let help = "write ? in the other one; for dates that both name, use two schedules or five fields without cron()";
            return Err(Fault::new(weekdays.0, "both day fields name days: one of them must be ?", help));
        }
    }
    let years = match items::read(&EXTENDED_YEAR, years)? {
        Values::List { text, .. } => text,
        Values::All | Values::Unasked => format!("{YEAR_MIN}-{YEAR_MAX}"),
    };
    Ok(fields.with(years, false))
}

/// The five fields of a crontab.
pub(super) fn crontab(expression: &str) -> Result<Fields, Fault> {
    let words: Vec<_> = words(expression, 0).collect();
    let &[minutes, hours, days, months, weekdays] = words.as_slice() else {
        let message = format!("expected five fields, found {}", words.len());
        let help = match words.as_slice() {
            [_, _, _, _, _, _] => "write six fields with a year as cron(0 12 ? * MON-FRI *), five as 0 12 * * MON-FRI",
            _ => "write rate(5 minutes), cron(0 12 ? * MON-FRI *), at(2026-12-24T18:00:00), or five fields: 0 12 * * MON-FRI",
        };
        return Err(Fault::new(words.first().map_or(0, |word| word.0), message, help));
    };
    let [minute, hour, day, month] = &CRONTAB;
    let fields = Parsed {
        minutes: items::read(minute, minutes)?,
        hours: items::read(hour, hours)?,
        days: items::read(day, days)?,
        months: items::read(month, months)?,
        weekdays: items::read(&CRONTAB_WEEKDAY, weekdays)?,
    };
    // crontab(5): either field suffices, unless one of them contains `*`. Croner does that for a `*` alone.
    let starred = |values: &Values| matches!(values, Values::List { starred: true, .. });
    let both = starred(&fields.days) || starred(&fields.weekdays);
    Ok(fields.with(format!("{YEAR_MIN}-{YEAR_MAX}"), both))
}

struct Parsed {
    minutes: Values,
    hours: Values,
    days: Values,
    months: Values,
    weekdays: Values,
}

impl Parsed {
    fn with(self, years: String, both_days: bool) -> Fields {
        Fields {
            minutes: self.minutes.text(),
            hours: self.hours.text(),
            days: self.days.text(),
            months: self.months.text(),
            weekdays: self.weekdays.text(),
            years,
            both_days,
        }
    }
}
