//! `$match`, `$contains`, `$replace`, `$split`, and regular expressions as functions.
//!
//! A matcher is a function that takes a string and returns an object of `match`, `start`, `end`, `groups` and `next`, a function for the match after it. Regular expressions are
//! such functions, and expressions may write others. Places are counted in UTF-16 code units.

use std::rc::Rc;

use super::Arguments;
use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::evaluate::frame::Frame;
use crate::evaluate::function::{Function, FunctionKind};
use crate::regex::{Match, Regex};
use crate::text::{Text, TextBuilder};
use crate::value::{ListBuilder, RecordBuilder, Value};

/// Matches in a string, one after the other.
enum Matches<'a> {
    Regex {
        regex: &'a Regex,
        text: Text<'a>,
        from: usize,
        is_first: bool,
        /// A place in bytes whose place in code units is known.
        known: (usize, usize),
    },
    Custom {
        next: Value<'a>,
        argument: Option<Value<'a>>,
    },
}

/// One match, with places in the string as it is given to expressions.
struct Found<'a> {
    object: Value<'a>,
    /// In bytes.
    start: usize,
    end: usize,
}

impl<'a> Interpreter<'a> {
    fn slice(&self, text: &Text<'a>, start: usize, end: usize) -> Result<Value<'a>> {
        match text {
            Text::Borrowed(text) => Ok(Value::Text(Text::Borrowed(text.get(start..end).unwrap_or_default()))),
            Text::Made(_) => self.string_value(String::from(text.as_str().get(start..end).unwrap_or_default())),
        }
    }

    fn groups(&self, found: &Match, text: &Text<'a>) -> Result<Value<'a>> {
        let mut groups = ListBuilder::with_capacity(&self.meter, found.groups.len())?;
        for group in &found.groups {
            groups.push(match group {
                Some((start, end)) => self.slice(text, *start, *end)?,
                None => Value::Undefined,
            })?;
        }
        Ok(groups.plain())
    }

    /// The first match from a byte on, as a matcher returns it.
    pub(crate) fn next_match(&self, regex: &'a Regex, text: Text<'a>, from: usize) -> Result<Value<'a>> {
        let Some(found) = regex.find(text.as_str(), from, &self.meter)? else {
            return Ok(Value::Undefined);
        };
        self.meter.step_bytes(found.end)?;
        let start = units(text.as_str(), 0, found.start);
        let mut object = RecordBuilder::new(&self.meter)?;
        object.set(Text::Borrowed("match"), self.slice(&text, found.start, found.end)?)?;
        object.set(Text::Borrowed("start"), Value::Number(start as f64))?;
        object.set(Text::Borrowed("end"), Value::Number((start + units(text.as_str(), found.start, found.end)) as f64))?;
        object.set(Text::Borrowed("groups"), self.groups(&found, &text)?)?;
        let next = FunctionKind::NextMatch { regex, text, from: found.end };
        object.set(Text::Borrowed("next"), Function::value(next, &self.meter)?)?;
        Ok(object.value())
    }

    /// The match after one that ended at a byte.
    pub(crate) fn match_after(&self, regex: &'a Regex, text: Text<'a>, from: usize) -> Result<Value<'a>> {
        if from >= text.as_str().len() {
            return Ok(Value::Undefined);
        }
        let found = self.next_match(regex, text, from)?;
        match &found {
            Value::Object(object) if object.get("match").is_some_and(|text| text.as_text() == Some("")) => {
                Err(Error::new("D1004"))
            }
            _ => Ok(found),
        }
    }

    fn matches(&self, matcher: Value<'a>, text: Text<'a>) -> Matches<'a> {
        if let Value::Function(function) = &matcher
            && let FunctionKind::Regex(regex) = function.kind
        {
            return Matches::Regex { regex, text, from: 0, is_first: true, known: (0, 0) };
        }
        Matches::Custom { next: matcher, argument: Some(Value::Text(text)) }
    }

    /// The next match, if there is one: an object of `match`, `index` and `groups` in place of a matcher's own.
    fn advance(&self, matches: &mut Matches<'a>, source: &str, frame: &Rc<Frame<'a>>) -> Result<Option<Found<'a>>> {
        match matches {
            Matches::Regex { regex, text, from, is_first, known } => {
                if !*is_first && *from >= text.as_str().len() {
                    return Ok(None);
                }
                let Some(found) = regex.find(text.as_str(), *from, &self.meter)? else {
                    *from = text.as_str().len();
                    *is_first = false;
                    return Ok(None);
                };
                if !*is_first && found.start == found.end {
                    return Err(Error::new("D1004"));
                }
                self.meter.step_bytes(found.end.saturating_sub(known.0))?;
                let index = known.1 + units(text.as_str(), known.0, found.start);
                *known = (found.start, index);
                (*from, *is_first) = (found.end, false);
                let matched = self.slice(text, found.start, found.end)?;
                let object = self.match_object(matched, index as f64, self.groups(&found, text)?)?;
                Ok(Some(Found { object, start: found.start, end: found.end }))
            }
            Matches::Custom { next, argument } => {
                let result = self.apply(next, argument.take().into_iter().collect(), &Value::Null, frame)?;
                let object = match &result {
                    Value::Undefined => return Ok(None),
                    Value::Object(object) => object,
                    _ => return Err(Error::new("T1010")),
                };
                let place = |name: &str| match object.get(name) {
                    Some(Value::Number(number)) => Some(number),
                    _ => None,
                };
                let (Some(start), Some(end)) = (place("start"), place("end")) else {
                    return Err(Error::new("T1010"));
                };
                let groups = match object.get("groups") {
                    Some(groups) => groups,
                    None => ListBuilder::new(&self.meter)?.plain(),
                };
                *next = object.get("next").unwrap_or_default();
                self.meter.step_bytes(source.len())?;
                let (start_byte, end_byte) = (byte(source, start), byte(source, end));
                let object = self.match_object(object.get("match").unwrap_or_default(), start, groups)?;
                Ok(Some(Found { object, start: start_byte, end: end_byte }))
            }
        }
    }

    fn match_object(&self, matched: Value<'a>, index: f64, groups: Value<'a>) -> Result<Value<'a>> {
        let mut object = RecordBuilder::new(&self.meter)?;
        object.set(Text::Borrowed("match"), matched)?;
        object.set(Text::Borrowed("index"), Value::Number(index))?;
        object.set(Text::Borrowed("groups"), groups)?;
        Ok(object.value())
    }

    pub(super) fn match_function(&self, arguments: &mut Arguments<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let (Some(text), matcher) = (arguments.text(0), arguments.take(1)) else {
            return Ok(Value::Undefined);
        };
        let limit = count(arguments.number(2), "D3040", 3)?;
        let mut found = ListBuilder::new(&self.meter)?;
        let mut matches = self.matches(matcher, text.clone());
        while found.len() < limit {
            match self.advance(&mut matches, text.as_str(), frame)? {
                Some(next) => found.push(next.object)?,
                None => break,
            }
        }
        Ok(found.sequence())
    }

    pub(super) fn contains(&self, arguments: &mut Arguments<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let (Some(text), pattern) = (arguments.text(0), arguments.take(1)) else {
            return Ok(Value::Undefined);
        };
        self.meter.step_bytes(text.as_str().len())?;
        Ok(match pattern {
            Value::Undefined => Value::Undefined,
            Value::Text(part) => Value::Bool(text.as_str().contains(part.as_str())),
            matcher => {
                let source = text.clone();
                Value::Bool(self.advance(&mut self.matches(matcher, text), source.as_str(), frame)?.is_some())
            }
        })
    }

    pub(super) fn split(&self, arguments: &mut Arguments<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let (Some(text), separator) = (arguments.text(0), arguments.take(1)) else {
            return Ok(Value::Undefined);
        };
        let limit = arguments.number(2);
        // Strings take whole numbers, matchers as many as are below the number, as in jsonata-js.
        let whole = count(limit.map(f64::floor), "D3020", 3)?;
        let mut limit = count(limit, "D3020", 3)?;
        self.meter.step_bytes(text.as_str().len())?;
        let mut parts = ListBuilder::new(&self.meter)?;
        let mut start = 0;
        match separator {
            Value::Text(separator) if separator.as_str().is_empty() => {
                for (at, char) in text.as_str().char_indices().take(whole) {
                    parts.push(self.slice(&text, at, at + char.len_utf8())?)?;
                }
                return Ok(parts.plain());
            }
            Value::Text(separator) => {
                limit = whole;
                for (at, _) in text.as_str().match_indices(separator.as_str()).take(limit) {
                    parts.push(self.slice(&text, start, at)?)?;
                    start = at + separator.as_str().len();
                }
            }
            matcher => {
                let mut matches = self.matches(matcher, text.clone());
                while parts.len() < limit {
                    let Some(found) = self.advance(&mut matches, text.as_str(), frame)? else {
                        break;
                    };
                    parts.push(self.slice(&text, start, found.start)?)?;
                    start = found.end;
                }
            }
        }
        if parts.len() < limit {
            parts.push(self.slice(&text, start, text.as_str().len())?)?;
        }
        Ok(parts.plain())
    }

    pub(super) fn replace(&self, arguments: &mut Arguments<'a>, frame: &Rc<Frame<'a>>) -> Result<Value<'a>> {
        let (Some(text), pattern, replacement) = (arguments.text(0), arguments.take(1), arguments.take(2)) else {
            return Ok(Value::Undefined);
        };
        if pattern.as_text() == Some("") {
            return Err(Error::new("D3010").with_index(2));
        }
        let limit = count(arguments.number(3), "D3011", 4)?;
        let string = text.as_str();
        let mut result = TextBuilder::new(&self.meter)?;
        let mut start = 0;
        if let Value::Text(pattern) = &pattern {
            for (at, _) in string.match_indices(pattern.as_str()).take(limit) {
                result.push(string.get(start..at).unwrap_or_default())?;
                match &replacement {
                    Value::Text(replacement) => result.push(replacement.as_str())?,
                    _ => return Err(Error::new("D3012")),
                }
                start = at + pattern.as_str().len();
            }
        } else {
            let mut matches = self.matches(pattern, text.clone());
            for _ in 0..limit {
                let Some(found) = self.advance(&mut matches, string, frame)? else {
                    break;
                };
                result.push(string.get(start..found.start).unwrap_or_default())?;
                self.substitute(&found.object, &replacement, &mut result, frame)?;
                start = found.end;
            }
        }
        result.push(string.get(start..).unwrap_or_default())?;
        Ok(Value::Text(result.text()))
    }

    /// Writes what replaces a match.
    fn substitute(
        &self,
        found: &Value<'a>,
        replacement: &Value<'a>,
        result: &mut TextBuilder<'a>,
        frame: &Rc<Frame<'a>>,
    ) -> Result<()> {
        let template = match replacement {
            Value::Text(template) => template,
            function => {
                return match self.apply(function, vec![found.clone()], &Value::Null, frame)? {
                    Value::Text(text) => result.push(text.as_str()),
                    _ => Err(Error::new("D3012")),
                };
            }
        };
        let Value::Object(found) = found else {
            return Ok(());
        };
        let groups: Vec<Value<'a>> = self.items(&found.get("groups").unwrap_or_default()).collect();
        let mut rest = template.as_str();
        while let Some((before, after)) = rest.split_once('$') {
            result.push(before)?;
            rest = after;
            if let Some(after) = rest.strip_prefix('$') {
                result.push("$")?;
                rest = after;
            } else if let Some(after) = rest.strip_prefix('0') {
                result.push(found.get("match").unwrap_or_default().as_text().unwrap_or_default())?;
                rest = after;
            } else if let Some((number, digits)) = group_number(rest, groups.len()) {
                let group = number.checked_sub(1).and_then(|index| groups.get(index));
                result.push(group.and_then(Value::as_text).unwrap_or_default())?;
                rest = rest.get(digits..).unwrap_or_default();
            } else {
                result.push("$")?;
            }
        }
        result.push(rest)
    }
}

/// The group that digits mean, and how many of them: as many as there are groups for.
fn group_number(text: &str, groups: usize) -> Option<(usize, usize)> {
    let available = text.bytes().take_while(u8::is_ascii_digit).count();
    let digits_max = groups.max(1).to_string().len();
    let number = |digits: usize| text.get(..digits).and_then(|digits| digits.parse::<usize>().ok());
    let digits = available.min(digits_max);
    let first = number(digits)?;
    if digits > 1 && first > groups { Some((number(digits - 1)?, digits - 1)) } else { Some((first, digits)) }
}

fn count(limit: Option<f64>, code: &'static str, index: usize) -> Result<usize> {
    match limit {
        Some(limit) if limit < 0.0 => Err(Error::new(code).with_index(index)),
        Some(limit) => Ok(limit.ceil() as usize),
        None => Ok(usize::MAX),
    }
}

/// UTF-16 code units between two places in bytes.
fn units(text: &str, start: usize, end: usize) -> usize {
    text.get(start..end).unwrap_or_default().chars().map(char::len_utf16).sum()
}

/// The place in bytes of one in UTF-16 code units.
fn byte(text: &str, units: f64) -> usize {
    let mut left = units;
    for (at, char) in text.char_indices() {
        if left <= 0.0 {
            return at;
        }
        left -= char.len_utf16() as f64;
    }
    text.len()
}
