//! A path or an intrinsic function: what a field holds whose name ends in `.$`, and what ErrorPath and CausePath hold.

use std::borrow::Cow;

use serde_json::Value;

use super::error::{DataError, ErrorName, excerpt};
use super::intrinsic::Intrinsic;
use super::measure::Meter;
use super::path::{Path, PathError, ReadError};
use super::scope::Scope;

/// The error name for a path that leads nowhere in a payload template, ErrorPath or CausePath. AWS Step Functions reports `States.Runtime`, although the specification
/// has `States.ParameterPathFailure` for it.
pub const PATH_FAILURE: ErrorName = ErrorName::Runtime;

/// A path or an intrinsic function. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Expression {
    /// It begins with `$`.
    Path(Path),
    /// It begins with `States.`.
    Intrinsic(Intrinsic),
}

impl Expression {
    /// Parses the text of a field.
    ///
    /// # Errors
    ///
    /// It is neither, or has a mistake.
    pub fn parse(text: &str) -> Result<Expression, PathError> {
        if text.starts_with('$') {
            return Path::parse(text).map(Expression::Path);
        }
        if text.starts_with("States.") {
            return Intrinsic::parse(text).map(Expression::Intrinsic);
        }
        let message = "expected a path, which begins with `$`, or an intrinsic function, which begins with `States.`";
        Err(PathError { position: 0, message: message.into() })
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Expression::Path(path) => path.as_str(),
            Expression::Intrinsic(intrinsic) => intrinsic.as_str(),
        }
    }

    /// The names of the variables that it reads.
    #[must_use]
    pub fn variables(&self) -> Vec<&str> {
        match self {
            Expression::Path(path) => path.variables(),
            Expression::Intrinsic(intrinsic) => intrinsic.variables(),
        }
    }

    /// Its value; `field` is the name of the field for errors, as the definition has it. A definite path borrows.
    ///
    /// # Errors
    ///
    /// [`PATH_FAILURE`] if a path leads nowhere, otherwise as [`Intrinsic::invoke`].
    pub fn evaluate<'a>(
        &'a self,
        field: &str,
        scope: &Scope<'a>,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<Cow<'a, Value>, DataError> {
        self.evaluate_metered(field, scope, random, &mut Meter::new(scope.limits))
    }

    pub(crate) fn evaluate_metered<'a>(
        &'a self,
        field: &str,
        scope: &Scope<'a>,
        random: &mut dyn FnMut() -> u64,
        meter: &mut Meter,
    ) -> Result<Cow<'a, Value>, DataError> {
        match self {
            Expression::Path(path) => path.read_within(scope, &mut meter.visits_left).map_err(|error| match error {
                ReadError::Missing { .. } => {
                    let document = excerpt(if path.is_context() { scope.context } else { scope.input });
                    let cause = format!(
                        "The JSONPath '{path}' specified for the field '{field}' could not be found in the input '{document}'"
                    );
                    DataError::new(PATH_FAILURE, cause)
                }
                ReadError::Limit(error) => error,
            }),
            Expression::Intrinsic(intrinsic) => intrinsic.invoke_metered(scope, random, meter),
        }
    }
}
