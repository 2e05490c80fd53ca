//! Short texts of boxes and edges.

use crate::definition::payload::{Condition, Number, Text};
use crate::definition::state::{Catcher, Rule, Until};
use crate::definition::{Kind, State};

/// A text without blanks in a row and without characters that have no shape, cut to so many columns.
pub(super) fn short(text: &str, columns_max: usize) -> String {
    let (mut out, mut columns, mut blank) = (String::new(), 0, false);
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            blank = !out.is_empty();
            continue;
        }
        let width = width_of(c) + usize::from(blank);
        if columns + width > columns_max {
            while columns + 1 > columns_max.max(1) {
                columns -= out.pop().map_or(columns, width_of);
            }
            out.push('…');
            return out;
        }
        if std::mem::take(&mut blank) {
            out.push(' ');
        }
        out.push(c);
        columns += width;
    }
    out
}

/// Columns of a text in a fixed width.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// Columns of a character: two for East Asian and emoji blocks, none for marks that combine. By blocks, not by the whole table of Unicode.
pub(super) const fn width_of(c: char) -> usize {
    match c as u32 {
        0x300..=0x36F | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x2069 | 0xFE00..=0xFE0F | 0xFEFF => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// What a state is about: its type and what it asks for.
pub(super) fn about(state: &State) -> String {
    let name = state.kind.name();
    match &state.kind {
        Kind::Task(task) => format!("{name} {}", task.resource),
        Kind::Map(map) => {
            let from = map.reader.as_ref().map(|reader| format!(" from {}", reader.resource)).unwrap_or_default();
            let to = map.writer.as_ref().map(|writer| format!(" to {}", writer.resource)).unwrap_or_default();
            format!("{name}{from}{to}")
        }
        Kind::Wait(Until::Seconds(Number::Literal(seconds))) => format!("{name} {seconds} s"),
        Kind::Wait(Until::Timestamp(time)) => format!("{name} until {time}"),
        Kind::Fail { error: Some(Text::Literal(error)), .. } => format!("{name} {error}"),
        _ => name.to_owned(),
    }
}

/// The condition of a rule.
pub(super) fn condition(rule: &Rule) -> String {
    match &rule.condition {
        Condition::Constant(constant) => constant.to_string(),
        Condition::Query(expression) => expression.source.replace("$states.input.", "").replace("$states.", ""),
        Condition::Comparison(comparison) => comparison.to_string().replace("$.", ""),
    }
}

/// The errors of a catcher.
pub(super) fn errors(catcher: &Catcher) -> String {
    catcher.errors.iter().map(|error| error.strip_prefix("States.").unwrap_or(error)).collect::<Vec<_>>().join(", ")
}
