//! Members of a request's body.
//!
//! Only scalars of known members are kept: whatever else a body has costs no memory. Each reader notes what violates a constraint; [`Members::check`] then answers
//! all of it at once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::error::{ApiError, ErrorCode};
use crate::limits::QUOTED_MAX;

/// Every member of every operation.
const KNOWN: &[&str] = &[
    "cause",
    "clientToken",
    "error",
    "executionArn",
    "includeExecutionData",
    "includedData",
    "input",
    "mapRunArn",
    "maxResults",
    "name",
    "nextToken",
    "output",
    "redriveFilter",
    "reverseOrder",
    "stateMachineArn",
    "statusFilter",
    "taskToken",
    "traceHeader",
];

/// The value of a member.
#[derive(Debug)]
enum Member {
    Null,
    Text(String),
    Integer(i64),
    Decimal,
    Boolean(bool),
    List,
    Structure,
}

impl Member {
    /// What AWS says of a member that is not of the type `wanted`.
    fn mistyped(&self, wanted: &str) -> ApiError {
        let kind = match self {
            Member::Null => "NULL_VALUE",
            Member::Text(_) => "STRING_VALUE",
            Member::Integer(_) => "NUMBER_VALUE",
            Member::Decimal => "DECIMAL_VALUE",
            Member::Boolean(true) => "TRUE_VALUE",
            Member::Boolean(false) => "FALSE_VALUE",
            Member::List => return serialization("Start of list found where not expected"),
            Member::Structure => return serialization("Start of structure or map found where not expected"),
        };
        serialization(format!("{kind} can not be converted to {wanted}"))
    }
}

fn serialization(text: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::SerializationException, text)
}

/// Constraints of a text.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    /// Characters, at least.
    pub(super) min: usize,
    /// Characters, at most.
    pub(super) max: usize,
    /// Whether errors leave the value out.
    pub(super) secret: bool,
    /// Which characters it has.
    pub(super) pattern: Option<Pattern>,
}

/// A constraint on characters.
#[derive(Clone, Copy)]
pub(super) struct Pattern {
    /// A regular expression, for errors.
    pub(super) text: &'static str,
    /// Whether a text fits it.
    pub(super) fits: fn(&str) -> bool,
}

impl Rule {
    /// A text of some lengths.
    pub(super) const fn text(min: usize, max: usize) -> Rule {
        Rule { min, max, secret: false, pattern: None }
    }

    /// A text that errors do not quote.
    pub(super) const fn secret(min: usize, max: usize) -> Rule {
        Rule { min, max, secret: true, pattern: None }
    }
}

/// The members of a body, and what is wrong with them.
#[derive(Debug, Default)]
pub(super) struct Members {
    members: HashMap<&'static str, Member>,
    violations: Vec<String>,
}

impl Members {
    /// Reads a body: one JSON object.
    pub(super) fn read(body: &[u8]) -> Result<Members, ApiError> {
        serde_json::from_slice(body).map_err(|error| serialization(format!("The body is no JSON object: {error}")))
    }

    /// A text, if it is there.
    pub(super) fn text(&mut self, name: &'static str, rule: Rule) -> Result<Option<String>, ApiError> {
        let text = match self.members.remove(name) {
            None | Some(Member::Null) => return Ok(None),
            Some(Member::Text(text)) => text,
            Some(other) => return Err(other.mistyped("String")),
        };
        let length = text.chars().count();
        let mut violate = |constraint: String| {
            let quoted = text.chars().take(QUOTED_MAX).collect::<String>();
            let value = if rule.secret { String::new() } else { format!(" '{quoted}'") };
            self.violations.push(violation(&value, name, &constraint));
        };
        if length < rule.min {
            violate(format!("Member must have length greater than or equal to {}", rule.min));
        }
        if length > rule.max {
            violate(format!("Member must have length less than or equal to {}", rule.max));
        }
        if let Some(pattern) = rule.pattern.filter(|pattern| !(pattern.fits)(&text)) {
            violate(format!("Member must satisfy regular expression pattern: {}", pattern.text));
        }
        Ok(Some(text))
    }

    /// A text that has to be there. Where it is not, that is noted, and the text is empty.
    pub(super) fn required(&mut self, name: &'static str, rule: Rule) -> Result<String, ApiError> {
        let text = self.text(name, rule)?;
        if text.is_none() {
            self.violations.push(violation("", name, "Member must not be null"));
        }
        Ok(text.unwrap_or_default())
    }

    /// An integer from 0, if it is there.
    pub(super) fn integer(&mut self, name: &'static str, max: u32) -> Result<Option<u32>, ApiError> {
        let number = match self.members.remove(name) {
            None | Some(Member::Null) => return Ok(None),
            Some(Member::Integer(number)) => number,
            Some(other) => return Err(other.mistyped("Integer")),
        };
        let bound = match u32::try_from(number) {
            Ok(number) if number <= max => return Ok(Some(number)),
            Ok(_) => format!("less than or equal to {max}"),
            Err(_) if number > 0 => format!("less than or equal to {max}"),
            Err(_) => "greater than or equal to 0".to_owned(),
        };
        self.violations.push(violation(&format!(" '{number}'"), name, &format!("Member must have value {bound}")));
        Ok(None)
    }

    /// A truth value, if it is there.
    pub(super) fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, ApiError> {
        match self.members.remove(name) {
            None | Some(Member::Null) => Ok(None),
            Some(Member::Boolean(value)) => Ok(Some(value)),
            Some(other) => Err(other.mistyped("Boolean")),
        }
    }

    /// One of some words, if it is there.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        values: &'static [T],
        word: fn(T) -> &'static str,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.text(name, Rule::text(0, usize::MAX))? else {
            return Ok(None);
        };
        let found = values.iter().copied().find(|value| word(*value) == text);
        if found.is_none() {
            let words = values.iter().map(|value| word(*value)).collect::<Vec<_>>().join(", ");
            let quoted = text.chars().take(QUOTED_MAX).collect::<String>();
            self.violations.push(violation(
                &format!(" '{quoted}'"),
                name,
                &format!("Member must satisfy enum value set: [{words}]"),
            ));
        }
        Ok(found)
    }

    /// Answers what violates a constraint.
    pub(super) fn check(self) -> Result<(), ApiError> {
        if self.violations.is_empty() { Ok(()) } else { Err(ApiError::violations(&self.violations)) }
    }
}

/// A violated constraint, as AWS writes it. `value` is empty, or a quoted value with a space before.
fn violation(value: &str, name: &str, constraint: &str) -> String {
    format!("Value{value} at '{name}' failed to satisfy constraint: {constraint}")
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct Body;
        impl<'de> Visitor<'de> for Body {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = HashMap::new();
                while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
                    match KNOWN.iter().find(|known| **known == key) {
                        Some(known) => {
                            members.insert(*known, map.next_value()?);
                        }
                        None => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Members { members, violations: Vec::new() })
            }
        }
        deserializer.deserialize_map(Body)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Member, D::Error> {
        struct Value;
        impl<'de> Visitor<'de> for Value {
            type Value = Member;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }

            fn visit_unit<E>(self) -> Result<Member, E> {
                Ok(Member::Null)
            }

            fn visit_bool<E>(self, value: bool) -> Result<Member, E> {
                Ok(Member::Boolean(value))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Member, E> {
                Ok(Member::Integer(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Member, E> {
                Ok(Member::Integer(i64::try_from(number).unwrap_or(i64::MAX)))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Member, E> {
                Ok(Member::Decimal)
            }

            fn visit_str<E>(self, text: &str) -> Result<Member, E> {
                Ok(Member::Text(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<Member, E> {
                Ok(Member::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Member, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Member::List)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Member, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Member::Structure)
            }
        }
        deserializer.deserialize_any(Value)
    }
}
