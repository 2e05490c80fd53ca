//! Intrinsic functions: `States.Format('Hello, {}', $.name)`.
//!
//! Source: the specification's appendix of intrinsic functions; where it is silent, what AWS Step Functions does. A call is parsed once, with the number of its arguments;
//! their types are checked when it is invoked. Arguments that are paths borrow from the document: `States.ArrayLength($.items)` clones nothing.

mod array;
mod format;
mod invoke;
mod math;
mod parse;
mod text;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use self::format::Format;
use super::cursor::Cursor;
use super::error::DataError;
use super::limits::INTRINSIC_BYTES_MAX;
use super::measure::Meter;
use super::path::{Path, PathError};
use super::scope::Scope;

/// A parsed call. Cheap to clone: clones share what was parsed.
#[derive(Clone, Debug)]
pub struct Intrinsic(Arc<Call>);

#[derive(Debug)]
struct Call {
    function: Function,
    arguments: Box<[Argument]>,
    /// Its text.
    source: Box<str>,
}

#[derive(Debug)]
enum Argument {
    Literal(Value),
    /// The first argument of `States.Format`, if it is a literal.
    Format(Format),
    Path(Path),
    Call(Box<Call>),
}

/// The functions that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Format,
    StringToJson,
    JsonToString,
    Array,
    ArrayPartition,
    ArrayContains,
    ArrayRange,
    ArrayGetItem,
    ArrayLength,
    ArrayUnique,
    Base64Encode,
    Base64Decode,
    Hash,
    JsonMerge,
    MathRandom,
    MathAdd,
    StringSplit,
    Uuid,
}

impl Function {
    /// Each with its name after `States.`, and how many arguments it takes.
    const ALL: [(&str, Function, usize, usize); 18] = [
        ("Format", Function::Format, 1, usize::MAX),
        ("StringToJson", Function::StringToJson, 1, 1),
        ("JsonToString", Function::JsonToString, 1, 1),
        ("Array", Function::Array, 0, usize::MAX),
        ("ArrayPartition", Function::ArrayPartition, 2, 2),
        ("ArrayContains", Function::ArrayContains, 2, 2),
        ("ArrayRange", Function::ArrayRange, 3, 3),
        ("ArrayGetItem", Function::ArrayGetItem, 2, 2),
        ("ArrayLength", Function::ArrayLength, 1, 1),
        ("ArrayUnique", Function::ArrayUnique, 1, 1),
        ("Base64Encode", Function::Base64Encode, 1, 1),
        ("Base64Decode", Function::Base64Decode, 1, 1),
        ("Hash", Function::Hash, 2, 2),
        ("JsonMerge", Function::JsonMerge, 3, 3),
        ("MathRandom", Function::MathRandom, 2, 3),
        ("MathAdd", Function::MathAdd, 2, 2),
        ("StringSplit", Function::StringSplit, 2, 2),
        ("UUID", Function::Uuid, 0, 0),
    ];
}

impl Intrinsic {
    /// Parses the text of a field.
    ///
    /// # Errors
    ///
    /// The first mistake, with its place.
    pub fn parse(text: &str) -> Result<Intrinsic, PathError> {
        let mut cursor = Cursor::new(text);
        if text.len() > INTRINSIC_BYTES_MAX {
            return Err(cursor.mistake(format!("the intrinsic function is longer than {INTRINSIC_BYTES_MAX} bytes")).into());
        }
        let call = parse::call(&mut cursor)?;
        cursor.skip_space();
        if !cursor.is_at_end() {
            return Err(cursor.unexpected("the end after the intrinsic function").into());
        }
        Ok(Intrinsic(Arc::new(call)))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.source
    }

    /// The names of the variables that it reads.
    #[must_use]
    pub fn variables(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.0.variables(&mut found);
        found
    }

    /// Invokes it. `random` gives 64 random bits at each call; `States.UUID` and `States.MathRandom` ask for them.
    ///
    /// # Errors
    ///
    /// `States.IntrinsicFailure`: an argument leads nowhere or is not what the function takes. `States.DataLimitExceeded`: the result is too large.
    pub fn invoke<'a>(&'a self, scope: &Scope<'a>, random: &mut dyn FnMut() -> u64) -> Result<Cow<'a, Value>, DataError> {
        self.invoke_metered(scope, random, &mut Meter::new(scope.limits))
    }

    pub(crate) fn invoke_metered<'a>(
        &'a self,
        scope: &Scope<'a>,
        random: &mut dyn FnMut() -> u64,
        meter: &mut Meter,
    ) -> Result<Cow<'a, Value>, DataError> {
        invoke::Invocation { scope, random, meter }.call(&self.0)
    }
}

impl Call {
    fn variables<'c>(&'c self, found: &mut Vec<&'c str>) {
        for argument in &self.arguments {
            match argument {
                Argument::Path(path) => found.extend(path.variables()),
                Argument::Call(call) => call.variables(found),
                Argument::Literal(_) | Argument::Format(_) => {}
            }
        }
    }
}
