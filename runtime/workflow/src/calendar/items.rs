//! One field of a cron expression: its items (values, ranges, steps, `L`, `W`, `#`), checked and written as a list that croner reads.
//!
//! A list has each number once: it is no longer than the field has values, whatever the expression repeats.

use std::collections::BTreeSet;

use super::error::Fault;
use super::fields::{Days, Field};
use crate::definition::shown;

/// What a field names.
#[derive(Debug)]
pub(super) enum Values {
    /// `*`.
    All,
    /// `?`.
    Unasked,
    /// A list in croner's words. `starred`: it has a `*` with a step.
    List { text: String, starred: bool },
}

impl Values {
    pub(super) fn text(self) -> String {
        match self {
            Self::All | Self::Unasked => "*".to_owned(),
            Self::List { text, .. } => text,
        }
    }
}

/// What was collected of a field.
#[derive(Default)]
struct List {
    numbers: BTreeSet<u16>,
    /// `L`, `15W`, `5#L`, `2#1`.
    special: BTreeSet<String>,
    starred: bool,
}

/// A word at a byte of the expression.
type Word<'a> = (usize, &'a str);

/// Reads a field.
pub(super) fn read(field: &Field, (at, word): Word<'_>) -> Result<Values, Fault> {
    match word {
        "*" => return Ok(Values::All),
        "?" if field.extended && field.days != Days::No => return Ok(Values::Unasked),
        _ => {}
    }
    let mut list = List::default();
    let mut start = at;
    for item in word.split(',') {
        field.item(&mut list, (start, item))?;
        start = start.saturating_add(item.len()).saturating_add(1);
    }
    if field.days == Days::OfMonth && list.special.contains("L") && list.special.contains("LW") {
        return Err(field.fault(at, "L and LW stand in one list", "write one of them".to_owned()));
    }
    let numbers = list.numbers.iter().map(u16::to_string);
    let text: Vec<String> = numbers.chain(list.special).collect();
    Ok(Values::List { text: text.join(","), starred: list.starred })
}

impl Field {
    fn item(&self, list: &mut List, (at, item): Word<'_>) -> Result<(), Fault> {
        if self.special(list, (at, item))? {
            return Ok(());
        }
        let (range, step) = match item.split_once('/') {
            None => (item, None),
            Some((range, step)) => {
                let step_at = at.saturating_add(range.len()).saturating_add(1);
                (range, Some(self.step((step_at, step))?))
            }
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => {
                list.starred = true;
                (self.min, self.max)
            }
            Some((from, to)) => {
                let to_at = at.saturating_add(from.len()).saturating_add(1);
                (self.value((at, from))?, self.value((to_at, to))?)
            }
            None => {
                let value = self.value((at, range))?;
                if step.is_some() && !self.extended {
                    let help = format!("write the range: {range}-{}/...", self.max);
                    return Err(self.fault(at, "a step needs a range or *", help));
                }
                (value, if step.is_some() { self.max } else { value })
            }
        };
        self.range(list, at, (from, to), step.unwrap_or(1))
    }

    /// All values of a range, which may run over the end of the field.
    fn range(&self, list: &mut List, at: usize, (from, to): (u16, u16), step: u16) -> Result<(), Fault> {
        let length = match to.checked_sub(from) {
            Some(length) => length,
            None if self.cycle == 0 => {
                let help = format!("write the smaller one first: {to}-{from}");
                return Err(self.fault(at, "the range ends before it begins", help));
            }
            // From `from` to the end, and on from the start to `to`.
            None => to.saturating_add(self.cycle).saturating_sub(from),
        };
        for offset in (0..=length).step_by(usize::from(step.max(1))) {
            let past = from.saturating_sub(self.min).saturating_add(offset);
            let value = self.min.saturating_add(if self.cycle == 0 { past } else { past % self.cycle });
            list.numbers.insert(value.saturating_sub(self.shift));
        }
        Ok(())
    }

    /// Reads `L`, `LW`, `15W`, `5L`, `2#1`. False: it is none of these.
    fn special(&self, list: &mut List, (at, item): Word<'_>) -> Result<bool, Fault> {
        let upper = item.to_ascii_uppercase();
        let letters = upper.contains('#') || upper == "L" || upper == "LW" || self.ends_in(&upper);
        if upper.contains('?') {
            let help = if self.days == Days::No || !self.extended { "write *" } else { "write ? alone" };
            return Err(self.fault(at, "? stands alone in a day field of cron() and nowhere else", help.to_owned()));
        }
        if !letters {
            return Ok(false);
        }
        if !self.extended {
            let message = format!("\"{}\" is not known in five fields", shown(item));
            return Err(self.fault(at, message, "write cron() with six fields: cron(0 12 L * ? *)".to_owned()));
        }
        let value = |end: usize| item.get(..end).unwrap_or_default();
        match (self.days, upper.as_str()) {
            (Days::OfMonth, "L" | "LW") => list.special.insert(upper),
            // The last day of the week.
            (Days::OfWeek, "L") => list.numbers.insert(self.max.saturating_sub(self.shift)),
            (Days::OfMonth, _) if upper.ends_with('W') => {
                let day = self.value((at, value(item.len().saturating_sub(1))))?;
                list.special.insert(format!("{day}W"))
            }
            (Days::OfWeek, _) if upper.ends_with('L') => {
                let day = self.value((at, value(item.len().saturating_sub(1))))?;
                list.special.insert(format!("{}#L", day.saturating_sub(self.shift)))
            }
            (Days::OfWeek, _) if upper.contains('#') => {
                let (day, nth) = item.split_once('#').unwrap_or((item, ""));
                let nth_at = at.saturating_add(day.len()).saturating_add(1);
                let day = self.value((at, day))?;
                if !matches!(nth, "1" | "2" | "3" | "4" | "5") {
                    let help = "write the second Monday as MON#2, the last one as MONL";
                    return Err(self.fault(nth_at, "after # stands a number from 1 to 5", help.to_owned()));
                }
                list.special.insert(format!("{}#{nth}", day.saturating_sub(self.shift)))
            }
            _ => {
                let message = format!("\"{}\" does not belong into this field", shown(item));
                let help = "L, LW and 15W stand in day-of-month; L, FRIL and MON#2 in day-of-week";
                return Err(self.fault(at, message, help.to_owned()));
            }
        };
        Ok(true)
    }

    /// Whether the item ends in a letter of its own after a value, as `15W` and `FRIL` do. `JUL` does not.
    fn ends_in(&self, upper: &str) -> bool {
        let named = self.names.contains(&upper);
        !named && (upper.ends_with('W') || upper.ends_with('L')) && upper.len() > 1 && !upper.contains(['-', '/'])
    }

    /// A number or a name.
    fn value(&self, (at, text): Word<'_>) -> Result<u16, Fault> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        if let Some(place) = named.and_then(|place| u16::try_from(place).ok()) {
            return Ok(self.first_named.saturating_add(place));
        }
        let value = digits(text).filter(|value| (self.min..=self.max).contains(value));
        value.ok_or_else(|| {
            let names = match (self.names.first(), self.names.last()) {
                (Some(first), Some(last)) => format!(" or {first} to {last}"),
                _ => String::new(),
            };
            let message =
                if text.is_empty() { "a value is missing".to_owned() } else { format!("\"{}\" is no value", shown(text)) };
            self.fault(at, message, format!("write a number from {} to {}{names}", self.min, self.max))
        })
    }

    /// The number after `/`.
    fn step(&self, (at, text): Word<'_>) -> Result<u16, Fault> {
        let most = self.max.saturating_sub(self.min).saturating_add(1);
        let step = digits(text).filter(|step| (1..=most).contains(step));
        step.ok_or_else(|| {
            let message = format!("\"{}\" is no step", shown(text));
            self.fault(at, message, format!("write a number from 1 to {most}; for longer intervals write rate(90 minutes)"))
        })
    }

    fn fault(&self, at: usize, message: impl Into<String>, help: String) -> Fault {
        Fault::new(at, format!("{}: {}", self.name, message.into()), help)
    }
}

/// A number of at most four digits.
fn digits(text: &str) -> Option<u16> {
    let formed = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if formed { text.parse().ok() } else { None }
}
