//! Events of a history as lines for people: the virtual time since the start, the type, the state, and what the event is about.

use std::fmt::Arguments;

use super::difference::written;
use super::limits::TRACE_CHARS_MAX;
use crate::machine::HistoryEvent;

/// One line.
pub(super) fn line(event: &HistoryEvent, start_ms: i64) -> String {
    let details = &event.details;
    let mut line = format!("{} {}", clock(event.timestamp_ms.saturating_sub(start_ms)), event.kind.name());
    let mut say = |text: Arguments<'_>| {
        line.push(' ');
        line.push_str(&written(&text, TRACE_CHARS_MAX));
    };
    if let Some(name) = details.name.as_ref().or(details.state.as_ref()) {
        say(format_args!("{name}"));
    }
    if let Some(index) = details.index {
        say(format_args!("[{index}]"));
    }
    if let Some(length) = details.length {
        say(format_args!("of {length} items"));
    }
    if let Some(resource) = &details.resource {
        say(format_args!("{resource}"));
    }
    for (what, value) in [("input", &details.input), ("input", &details.parameters), ("output", &details.output)] {
        if let Some(value) = value {
            say(format_args!("{what} {value}"));
        }
    }
    for (name, value) in &details.assigned {
        say(format_args!("${name} = {value}"));
    }
    if let Some(error) = &details.error {
        say(format_args!("error {error}"));
    }
    if let Some(cause) = &details.cause {
        say(format_args!("cause {cause}"));
    }
    line
}

/// A duration: `00:01:30.000`, from a day on `365d 00:00:00.000`.
pub(super) fn clock(ms: i64) -> String {
    let ms = ms.max(0);
    let (seconds, rest) = (ms / 1_000, ms % 1_000);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    let clock = format!("{hours:02}:{minutes:02}:{:02}.{rest:03}", seconds % 60);
    if days > 0 { format!("{days}d {clock}") } else { clock }
}
