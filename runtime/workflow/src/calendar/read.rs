//! Reads expressions: tells the forms apart.

use super::cron::Cron;
use super::error::{Fault, ScheduleError};
use super::fields::{self, Fields};
use super::limits::EXPRESSION_BYTES_MAX;
use super::once::Once;
use super::rate::Rate;
use super::schedule::{Form, Schedule};
use super::zone::Zone;

pub(super) fn schedule(expression: &str, zone: Option<&str>) -> Result<Schedule, ScheduleError> {
    if expression.len() > EXPRESSION_BYTES_MAX {
        return Err(ScheduleError::TooLong { bytes: expression.len() });
    }
    let zone = Zone::named(zone)?;
    let form = form(expression, &zone).map_err(|fault| fault.of(expression))?;
    Ok(Schedule { expression: expression.trim().to_owned(), zone, form })
}

fn form(expression: &str, zone: &Zone) -> Result<Form, Fault> {
    let text = expression.trim_start();
    let start = expression.len().saturating_sub(text.len());
    let text = text.trim_end();
    let Some((word, rest)) = text.split_once('(') else {
        return cron(&fields::crontab(expression)?, start).map(Form::Cron);
    };
    let at = start.saturating_add(word.len()).saturating_add(1);
    if !matches!(word, "rate" | "cron" | "at") {
        let help = "write rate(5 minutes), cron(0 12 ? * MON-FRI *), at(2026-12-24T18:00:00), or five fields: 0 12 * * MON-FRI";
        return Err(Fault::new(start, "the form of the schedule is unknown", help));
    }
    let Some(inner) = rest.strip_suffix(')') else {
        let end = start.saturating_add(text.len());
        return Err(Fault::new(end, "the closing parenthesis is missing", format!("end the schedule with ): {word}(...)")));
    };
    match word {
        "rate" => Rate::parse(inner, at).map(Form::Rate),
        "at" => Once::parse(inner, at, zone).map(Form::Once),
        _ => cron(&fields::extended(inner, at)?, at).map(Form::Cron),
    }
}

fn cron(fields: &Fields, at: usize) -> Result<Box<Cron>, Fault> {
    let Some(cron) = Cron::new(fields) else {
        return Err(Fault::new(at, "the fields cannot be searched", "report this as a bug, with the schedule"));
    };
    if !cron.has_times() {
        let help = "check days, months and years against each other; L is the last day of every month";
        return Err(Fault::new(at, "no date fits all fields", help));
    }
    Ok(Box::new(cron))
}

/// Words between spaces, with the bytes at which they begin; the text begins at byte `at`.
pub(super) fn words(text: &str, at: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let start = text.len().saturating_sub(rest.len());
        let (word, after) = rest.split_at_checked(end)?;
        rest = after;
        (!word.is_empty()).then_some((at.saturating_add(start), word))
    })
}
