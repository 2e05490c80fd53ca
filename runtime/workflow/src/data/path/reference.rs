//! Reference Paths that are written: ResultPath.
//!
//! Source: the specification, section Input and Output Processing, ResultPath.

use std::fmt;

use serde_json::{Map, Value};

use super::read::item;
use super::syntax::{Root, Step};
use super::{Path, PathError};
use crate::data::error::{DataError, ErrorName, excerpt};
use crate::data::limits::VALUE_DEPTH_MAX;
use crate::data::measure::{Excess, json_bytes};

/// A path of names and single indices in the input, which can be written. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencePath(Path);

impl ReferencePath {
    /// Parses the text of a ResultPath.
    ///
    /// # Errors
    ///
    /// The text is no path, does not begin at the input (`$`), or has a step that may lead to several places.
    pub fn parse(text: &str) -> Result<ReferencePath, PathError> {
        let path = Path::parse(text)?;
        let mistake = |message: &str| Err(PathError { position: 0, message: message.into() });
        if path.0.query.root != Root::Input {
            return mistake("a Reference Path that is written begins with `$.` or `$[`, in the input");
        }
        if !path.is_reference() {
            return mistake(
                "a Reference Path has names and single indices only; `*`, `..`, `,`, `:`, `?` and functions cannot be used",
            );
        }
        if path.0.query.steps.iter().any(|step| matches!(step, Step::Index(..0))) {
            return mistake("a Reference Path that is written has no negative indices");
        }
        if path.0.query.steps.len() >= VALUE_DEPTH_MAX {
            return mistake(&format!("a Reference Path that is written has fewer than {VALUE_DEPTH_MAX} steps"));
        }
        Ok(ReferencePath(path))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it is `$`: writing replaces all of the input.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.0.query.steps.is_empty()
    }

    /// The input with the value at this place. Objects that are missing on the way are made; an item of an array is replaced. Everything else stays, in its order.
    ///
    /// The input is changed in place and not cloned; the value is walked once, for its depth.
    ///
    /// # Errors
    ///
    /// `States.ResultPathMatchFailure`: on the way is a value that is neither missing nor an object (for a name) or an array with such an item (for an index).
    /// `States.DataLimitExceeded`: the result would be nested too deeply.
    pub fn write(&self, mut input: Value, value: Value) -> Result<Value, DataError> {
        let steps = &self.0.0.query.steps;
        if json_bytes(&value, usize::MAX, VALUE_DEPTH_MAX.saturating_sub(steps.len())).is_err() {
            return Err(Excess::Depth.error(0));
        }
        if !fits(&input, steps) {
            return Err(self.unfit(&input));
        }
        let mut place = Some(&mut input);
        for step in steps {
            place = place.and_then(|place| enter(place, step));
        }
        if let Some(place) = place {
            *place = value;
        }
        Ok(input)
    }

    fn unfit(&self, input: &Value) -> DataError {
        let cause = format!("Unable to apply ReferencePath {} to input {}", self.as_str(), excerpt(input));
        DataError::new(ErrorName::ResultPathMatchFailure, cause)
    }
}

/// Whether these steps lead to a place, so that nothing is changed if they do not.
fn fits(input: &Value, steps: &[Step]) -> bool {
    let mut node = input;
    for (done, step) in steps.iter().enumerate() {
        let next = match (step, node) {
            (Step::Child(name), Value::Object(members)) => match members.get(&**name) {
                Some(next) => Some(next),
                // From here on objects are made.
                None => return steps.iter().skip(done).all(|step| matches!(step, Step::Child(_))),
            },
            (Step::Index(index), Value::Array(items)) => item(items, *index),
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => return false,
        }
    }
    true
}

/// The place where a step leads from a value. A name makes what is missing: an empty object.
fn enter<'v>(value: &'v mut Value, step: &Step) -> Option<&'v mut Value> {
    match (step, value) {
        (Step::Child(name), Value::Object(members)) => Some(members.entry(&**name).or_insert_with(|| Value::Object(Map::new()))),
        (Step::Index(index), Value::Array(items)) => items.get_mut(usize::try_from(*index).ok()?),
        _ => None,
    }
}

impl fmt::Display for ReferencePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
