//! Paths into the data of a step.
//!
//! The dialect is that of Jayway JsonPath, which the specification of the Amazon States Language names, and not RFC 9535: `$` is the input, `$$` the context object,
//! `$name` a variable; `$`, `$$` and `$name` mean the same inside filters. A path of names and single indices is *definite*: it leads to one value, or reading it fails.
//! Any other leads to a list, which may be empty; several names at its end (`$['a','b']`) pick an object of these members.
//!
//! Cost: reading a definite path is one look-up a step (tens of nanoseconds); it borrows the value and clones nothing. Any other path clones its results once.

mod filter;
mod function;
mod parse;
mod parse_filter;
mod pattern;
mod read;
mod reference;
mod syntax;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use self::parse::Place;
use self::read::{Found, Reader, Stop};
pub use self::reference::ReferencePath;
use self::syntax::{Query, Root, Step};
use super::cursor::{Cursor, Mistake};
use super::error::{DataError, ErrorName};
use super::limits::{PATH_BYTES_MAX, VALUE_DEPTH_MAX};
use super::measure::{Excess, Meter, json_bytes};
use super::scope::Scope;

/// A parsed path. Cheap to clone: clones share what was parsed.
#[derive(Clone)]
pub struct Path(Arc<Parsed>);

struct Parsed {
    source: Box<str>,
    query: Query,
}

/// What is wrong with the text of a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at byte {position})")]
pub struct PathError {
    /// The byte offset in the text.
    pub position: usize,
    /// What was found, and what was expected there.
    pub message: String,
}

/// Why a path could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A definite path leads nowhere. As a [`DataError`] it is a `States.Runtime`.
    #[error("Invalid path '{path}' : {reason}")]
    Missing {
        /// The path, as the definition writes it.
        path: Path,
        /// Where it ends.
        reason: String,
    },
    /// A limit was reached.
    #[error("{0}")]
    Limit(DataError),
}

impl From<ReadError> for DataError {
    fn from(error: ReadError) -> DataError {
        match error {
            ReadError::Missing { .. } => DataError::new(ErrorName::Runtime, error.to_string()),
            ReadError::Limit(error) => error,
        }
    }
}

impl From<Mistake> for PathError {
    fn from(Mistake { position, message }: Mistake) -> PathError {
        PathError { position, message }
    }
}

impl Path {
    /// Parses the text of a field.
    ///
    /// # Errors
    ///
    /// The first mistake, with its place.
    pub fn parse(text: &str) -> Result<Path, PathError> {
        let mut cursor = Cursor::new(text);
        if text.len() > PATH_BYTES_MAX {
            return Err(cursor.mistake(format!("the path is longer than {PATH_BYTES_MAX} bytes")).into());
        }
        let path = Path::parse_at(&mut cursor, Place::Field)?;
        if !cursor.is_at_end() {
            return Err(cursor.unexpected("the end of the path").into());
        }
        Ok(path)
    }

    /// Parses a path that begins there.
    pub(crate) fn parse_at(cursor: &mut Cursor<'_>, place: Place) -> Result<Path, Mistake> {
        let start = cursor.position();
        let query = parse::query(cursor, place)?;
        Ok(Path(Arc::new(Parsed { source: cursor.since(start).into(), query })))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.source
    }

    /// Whether it leads to one value, or fails. Any other leads to a list.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        self.0.query.is_single || self.picks_one()
    }

    /// Whether it is a Reference Path: names and single indices alone, which can lead to no more than one place of a document.
    #[must_use]
    pub fn is_reference(&self) -> bool {
        self.0.query.is_single && !matches!(self.0.query.steps.last(), Some(Step::Function(_)))
    }

    /// Whether it begins at the context object, `$$`.
    #[must_use]
    pub fn is_context(&self) -> bool {
        self.0.query.root == Root::Context
    }

    /// The names of the variables that it reads, in its filters too.
    #[must_use]
    pub fn variables(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.0.query.variables(&mut found);
        found
    }

    /// What it leads to. A definite path borrows it.
    ///
    /// # Errors
    ///
    /// [`ReadError::Missing`] if it is definite and leads nowhere, [`ReadError::Limit`] if it visits too many nodes or its results are too large.
    pub fn read<'a>(&self, scope: &Scope<'a>) -> Result<Cow<'a, Value>, ReadError> {
        let mut visits_left = scope.limits.visits_max;
        self.read_within(scope, &mut visits_left)
    }

    /// [`read`](Path::read) with what other paths have left of the visits.
    pub(crate) fn read_within<'a>(&self, scope: &Scope<'a>, visits_left: &mut usize) -> Result<Cow<'a, Value>, ReadError> {
        match self.find(scope, visits_left) {
            Ok(Found::Many(values)) => {
                list_bytes(&values, scope.limits.output_bytes_max).map_err(ReadError::Limit)?;
                Ok(Found::Many(values).into_value())
            }
            Ok(Found::Made(value)) => {
                Meter::new(scope.limits).charge_value(&value).map_err(ReadError::Limit)?;
                Ok(Cow::Owned(value))
            }
            Ok(Found::One(value)) => Ok(Cow::Borrowed(value)),
            Err(stop) => Err(self.error(stop, scope)),
        }
    }

    /// Whether it leads to anything, `null` included: to a value if it is definite, else to at least one. Nothing is cloned.
    ///
    /// # Errors
    ///
    /// [`ReadError::Limit`] if it visits too many nodes.
    pub fn exists(&self, scope: &Scope<'_>) -> Result<bool, ReadError> {
        let mut visits_left = scope.limits.visits_max;
        self.exists_within(scope, &mut visits_left)
    }

    /// [`exists`](Path::exists) with what other paths have left of the visits.
    pub(crate) fn exists_within(&self, scope: &Scope<'_>, visits_left: &mut usize) -> Result<bool, ReadError> {
        match self.find(scope, visits_left) {
            Ok(Found::Many(values)) => Ok(!values.is_empty()),
            Ok(Found::Made(Value::Array(values))) => Ok(self.0.query.is_single || !values.is_empty()),
            Ok(_) => Ok(true),
            Err(Stop::Visits) => Err(self.error(Stop::Visits, scope)),
            Err(_) => Ok(false),
        }
    }

    fn find<'a>(&self, scope: &Scope<'a>, visits_left: &mut usize) -> Result<Found<'a>, Stop> {
        Reader::new(scope, visits_left).query(&self.0.query, None)
    }

    /// Whether it ends with several names, after which nothing is a list.
    fn picks_one(&self) -> bool {
        match self.0.query.steps.split_last() {
            Some((Step::Children(_), before)) => before.iter().all(Step::is_single),
            Some((Step::Function(_), _)) => true,
            _ => false,
        }
    }

    fn error(&self, stop: Stop, scope: &Scope<'_>) -> ReadError {
        let Query { steps, .. } = &self.0.query;
        let canonical = |count| self.0.query.canonical(count);
        let reason = match stop {
            Stop::Missing { steps: done } if done < steps.len() => format!("Missing property in path {}", canonical(done)),
            Stop::Missing { .. } => format!("No results for path: {}", canonical(steps.len())),
            Stop::Unfit { steps: done, is_index, found } => {
                let step = steps.get(done).map(Step::to_string).unwrap_or_default();
                if is_index {
                    format!("Filter: {step} can only be applied to arrays; {} is {found}", canonical(done))
                } else {
                    format!("Expected to find an object with property {step} in path {} but found {found}", canonical(done))
                }
            }
            Stop::Variable(name) => format!("The variable ${name} has no value"),
            Stop::Function(reason) => reason,
            Stop::Visits => {
                let visits_max = scope.limits.visits_max;
                let cause = format!(
                    "The path '{}' visits too many nodes: one field may visit {visits_max}. Make it more specific.",
                    self.as_str()
                );
                return ReadError::Limit(DataError::new(ErrorName::Runtime, cause));
            }
        };
        ReadError::Missing { path: self.clone(), reason }
    }
}

/// The bytes of the JSON of a list of these values. An error if they are more than those, or nested too deeply.
fn list_bytes(values: &[&Value], bytes_max: usize) -> Result<usize, DataError> {
    let brackets_and_commas = values.len() + 1;
    let mut left = bytes_max.checked_sub(brackets_and_commas).ok_or_else(|| Excess::Bytes.error(bytes_max))?;
    for value in values {
        left -= json_bytes(value, left, VALUE_DEPTH_MAX - 1).map_err(|excess| excess.error(bytes_max))?;
    }
    Ok(bytes_max - left)
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Path {}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Path({})", self.as_str())
    }
}
