//! Parses intrinsic functions.
//!
//! In a quoted string a backslash stands before `'`, `{`, `}` and `\` and nothing else. Braces that belong to JSON need no backslash.

use serde_json::Value;

use super::format::Format;
use super::{Argument, Call, Function};
use crate::data::cursor::{Cursor, Mistake};
use crate::data::limits::{INTRINSIC_CALLS_MAX, INTRINSIC_DEPTH_MAX, PATH_BYTES_MAX};
use crate::data::path::{Path, Place};

/// Reads one call.
pub(super) fn call(cursor: &mut Cursor<'_>) -> Result<Call, Mistake> {
    let mut parser = Parser { cursor: cursor.clone(), depth: 0, calls: 0 };
    let call = parser.call()?;
    *cursor = parser.cursor;
    Ok(call)
}

struct Parser<'s> {
    cursor: Cursor<'s>,
    depth: usize,
    calls: usize,
}

impl Parser<'_> {
    fn call(&mut self) -> Result<Call, Mistake> {
        let start = self.cursor.clone();
        if self.depth >= INTRINSIC_DEPTH_MAX {
            return Err(start.mistake(format!("intrinsic functions are nested deeper than {INTRINSIC_DEPTH_MAX} levels")));
        }
        self.calls += 1;
        if self.calls > INTRINSIC_CALLS_MAX {
            return Err(start.mistake(format!("there are more than {INTRINSIC_CALLS_MAX} intrinsic functions in one field")));
        }
        self.cursor.expect("States.", "an intrinsic function, like `States.Format(...)`")?;
        let name = self.cursor.take_while(|next| next.is_ascii_alphanumeric());
        let Some((name, function, least, most)) = Function::ALL.into_iter().find(|(known, ..)| *known == name) else {
            let known: Vec<&str> = Function::ALL.into_iter().map(|(known, ..)| known).collect();
            return Err(start
                .mistake(format!("`States.{name}` is no intrinsic function; after `States.` there are {}", known.join(", "))));
        };
        self.cursor.skip_space();
        self.cursor.expect("(", "`(`")?;
        self.depth += 1;
        let arguments = self.arguments(function)?;
        self.depth -= 1;
        if !(least..=most).contains(&arguments.len()) {
            let takes = if least == most { format!("{least}") } else { format!("at least {least}") };
            return Err(start.mistake(format!("`States.{name}` takes {takes} arguments, not {}", arguments.len())));
        }
        if let Some(Argument::Format(format)) = arguments.first() {
            format.check(arguments.len() - 1).map_err(|message| start.mistake(message))?;
        }
        Ok(Call { function, arguments: arguments.into(), source: self.cursor.since(start.position()).into() })
    }

    fn arguments(&mut self, function: Function) -> Result<Vec<Argument>, Mistake> {
        let mut arguments = Vec::new();
        self.cursor.skip_space();
        if self.cursor.eat(")") {
            return Ok(arguments);
        }
        loop {
            self.cursor.skip_space();
            let is_format = function == Function::Format && arguments.is_empty();
            arguments.push(self.argument(is_format)?);
            self.cursor.skip_space();
            if self.cursor.eat(")") {
                return Ok(arguments);
            }
            self.cursor.expect(",", "`,` or `)`")?;
        }
    }

    fn argument(&mut self, is_format: bool) -> Result<Argument, Mistake> {
        match self.cursor.peek() {
            Some('\'') if is_format => self.quoted().map(|raw| Argument::Format(Format::of_literal(raw))),
            Some('\'') => self.quoted().map(|raw| Argument::Literal(Value::String(unescaped(raw)))),
            Some('$') => self.path().map(Argument::Path),
            Some('S') => self.call().map(|call| Argument::Call(Box::new(call))),
            Some('-' | '0'..='9') => self.cursor.number().map(|number| Argument::Literal(Value::Number(number))),
            _ => {
                let start = self.cursor.clone();
                match self.cursor.take_while(|next| next.is_ascii_alphanumeric()) {
                    "true" => Ok(Argument::Literal(Value::Bool(true))),
                    "false" => Ok(Argument::Literal(Value::Bool(false))),
                    "null" => Ok(Argument::Literal(Value::Null)),
                    _ => Err(start
                        .unexpected("a string in single quotes, a number, true, false, null, a path or an intrinsic function")),
                }
            }
        }
    }

    fn path(&mut self) -> Result<Path, Mistake> {
        let start = self.cursor.clone();
        let path = Path::parse_at(&mut self.cursor, Place::Inside)?;
        if path.as_str().len() > PATH_BYTES_MAX {
            return Err(start.mistake(format!("the path is longer than {PATH_BYTES_MAX} bytes")));
        }
        Ok(path)
    }

    /// What is between quotes, with its backslashes, which are checked.
    fn quoted(&mut self) -> Result<&str, Mistake> {
        let start = self.cursor.clone();
        self.cursor.expect("'", "a string in single quotes")?;
        let inside = self.cursor.position();
        loop {
            let here = self.cursor.clone();
            match self.cursor.bump() {
                None => return Err(start.mistake("the string is not closed")),
                Some('\'') => return Ok(here.since(inside)),
                Some('\\') if !matches!(self.cursor.bump(), Some('\'' | '{' | '}' | '\\')) => {
                    return Err(here.mistake("in a string a backslash is followed by ', {, } or another backslash"));
                }
                Some(_) => {}
            }
        }
    }
}

/// A string without its backslashes.
pub(super) fn unescaped(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut letters = raw.chars();
    while let Some(next) = letters.next() {
        // After a backslash comes what it stands before.
        text.extend(if next == '\\' { letters.next() } else { Some(next) });
    }
    text
}
