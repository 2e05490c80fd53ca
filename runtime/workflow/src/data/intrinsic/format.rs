//! `States.Format`: a text in which each `{}` is replaced by an argument.

use serde_json::{Map, Value};

use super::parse::unescaped;

/// The parts of a text between its `{}`.
#[derive(Debug)]
pub(super) struct Format(Box<[Box<str>]>);

impl Format {
    /// Of a literal: `\{` is no place for an argument.
    pub(super) fn of_literal(raw: &str) -> Format {
        let mut parts = Vec::new();
        let mut part = String::new();
        let mut letters = raw.chars().peekable();
        while let Some(next) = letters.next() {
            if next == '\\' {
                part.push(next);
                part.extend(letters.next());
            } else if next == '{' && letters.next_if_eq(&'}').is_some() {
                parts.push(unescaped(&part).into());
                part.clear();
            } else {
                part.push(next);
            }
        }
        parts.push(unescaped(&part).into());
        Format(parts.into())
    }

    /// Of a text that is known when the function is invoked.
    pub(super) fn of_text(text: &str) -> Format {
        Format(text.split("{}").map(Box::from).collect())
    }

    /// Whether it has a place for each of so many arguments.
    pub(super) fn check(&self, arguments: usize) -> Result<(), String> {
        let places = self.0.len() - 1;
        if places == arguments {
            return Ok(());
        }
        Err(format!("number of arguments ({arguments}) does not match the occurrences of {{}} ({places})"))
    }

    /// The text with the arguments, unless it is longer than `bytes_max`.
    pub(super) fn fill(&self, arguments: &[&Value], bytes_max: usize) -> Option<String> {
        let mut text = String::new();
        let mut arguments = arguments.iter();
        for (place, part) in self.0.iter().enumerate() {
            if place > 0 {
                write(&mut text, arguments.next()?, bytes_max)?;
            }
            push(&mut text, part, bytes_max)?;
        }
        Some(text)
    }
}

/// Writes a value as AWS Step Functions does: strings as they are, objects as `{name=value, ...}`, arrays as `[item, ...]`. Recurses as deep as the value is nested.
fn write(text: &mut String, value: &Value, bytes_max: usize) -> Option<()> {
    match value {
        Value::String(string) => push(text, string, bytes_max),
        Value::Array(items) => {
            push(text, "[", bytes_max)?;
            write_all(text, items.iter(), bytes_max, |text, item| write(text, item, bytes_max))?;
            push(text, "]", bytes_max)
        }
        Value::Object(members) => write_object(text, members, bytes_max),
        Value::Null => push(text, "null", bytes_max),
        Value::Bool(flag) => push(text, if *flag { "true" } else { "false" }, bytes_max),
        Value::Number(number) => push(text, &number.to_string(), bytes_max),
    }
}

fn write_object(text: &mut String, members: &Map<String, Value>, bytes_max: usize) -> Option<()> {
    push(text, "{", bytes_max)?;
    write_all(text, members.iter(), bytes_max, |text, (name, member)| {
        push(text, name, bytes_max)?;
        push(text, "=", bytes_max)?;
        write(text, member, bytes_max)
    })?;
    push(text, "}", bytes_max)
}

fn write_all<T>(
    text: &mut String,
    items: impl Iterator<Item = T>,
    bytes_max: usize,
    mut write_one: impl FnMut(&mut String, T) -> Option<()>,
) -> Option<()> {
    for (place, item) in items.enumerate() {
        if place > 0 {
            push(text, ", ", bytes_max)?;
        }
        write_one(text, item)?;
    }
    Some(())
}

fn push(text: &mut String, part: &str, bytes_max: usize) -> Option<()> {
    if text.len() + part.len() > bytes_max {
        return None;
    }
    text.push_str(part);
    Some(())
}
