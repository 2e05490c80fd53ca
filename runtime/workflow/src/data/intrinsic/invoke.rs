//! Invokes intrinsic functions: evaluates arguments, calls the function, names the call in its error.

use std::borrow::Cow;

use serde_json::Value;

use super::format::Format;
use super::{Argument, Call, Function, array, math, text};
use crate::data::error::{DataError, ErrorName, excerpt, kind};
use crate::data::measure::Meter;
use crate::data::path::{Path, ReadError};
use crate::data::scope::Scope;

/// One evaluation of a field.
pub(super) struct Invocation<'a, 'i> {
    pub(super) scope: &'i Scope<'a>,
    pub(super) random: &'i mut dyn FnMut() -> u64,
    pub(super) meter: &'i mut Meter,
}

/// Why a function failed: a sentence, or an error that has a name already.
pub(super) enum Failure {
    Because(String),
    Named(DataError),
}

impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure::Because(reason)
    }
}

/// Characters of the text of a call that its error shows.
const SOURCE_CHARS_SHOWN: usize = 500;

impl<'a> Invocation<'a, '_> {
    /// Recurses as deep as calls are nested.
    pub(super) fn call(&mut self, call: &'a Call) -> Result<Cow<'a, Value>, DataError> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(match argument {
                Argument::Literal(value) => Cow::Borrowed(value),
                // Its text is in the call.
                Argument::Format(_) => Cow::Owned(Value::Null),
                Argument::Path(path) => self.read(call, path)?,
                Argument::Call(inner) => self.call(inner)?,
            });
        }
        self.apply(call, arguments).map_err(|failure| match failure {
            Failure::Because(reason) => failed(call, &reason),
            Failure::Named(error) => error,
        })
    }

    fn read(&mut self, call: &Call, path: &Path) -> Result<Cow<'a, Value>, DataError> {
        let value = match path.read_within(self.scope, &mut self.meter.visits_left) {
            Ok(value) => value,
            Err(ReadError::Missing { .. }) => {
                let document = excerpt(if path.is_context() { self.scope.context } else { self.scope.input });
                let reason = format!("The JsonPath argument for the field '{path}' could not be found in the input '{document}'");
                return Err(failed(call, &reason));
            }
            Err(error) => return Err(error.into()),
        };
        if let Cow::Owned(value) = &value {
            self.meter.charge_value(value)?;
        }
        Ok(value)
    }

    fn apply(&mut self, call: &'a Call, mut arguments: Vec<Cow<'a, Value>>) -> Result<Cow<'a, Value>, Failure> {
        let made = match (call.function, &mut *arguments) {
            (Function::Format, arguments) => self.format(call, arguments)?,
            (Function::Array, _) => {
                arguments.iter().try_for_each(|argument| self.meter.charge_value(argument)).map_err(Failure::Named)?;
                Value::Array(arguments.into_iter().map(Cow::into_owned).collect())
            }
            (Function::ArrayGetItem, [array, index]) => return array::get_item(array, index).map_err(Failure::Because),
            (Function::ArrayPartition, [array, size]) => self.copying(array, |array| array::partition(array, size))?,
            (Function::ArrayUnique, [array]) => self.copying(array, array::unique)?,
            (Function::ArrayContains, [array, value]) => Value::Bool(array::contains(array, value)?),
            (Function::ArrayRange, [first, last, step]) => array::range(first, last, step)?,
            (Function::ArrayLength, [array]) => Value::from(array::items(array)?.len()),
            (Function::StringToJson, [text]) => text::to_json(text)?,
            (Function::JsonToString, [value]) => self.copying(value, |value| Ok(Value::String(value.to_string())))?,
            (Function::Base64Encode, [text]) => text::base64_encode(text)?,
            (Function::Base64Decode, [text]) => text::base64_decode(text)?,
            (Function::Hash, [data, algorithm]) => text::hash(data, algorithm)?,
            (Function::StringSplit, [text, delimiters]) => text::split(text, delimiters)?,
            (Function::JsonMerge, [first, second, deep]) => {
                self.meter.charge_value(first).map_err(Failure::Named)?;
                self.meter.charge_value(second).map_err(Failure::Named)?;
                text::merge(std::mem::take(first.to_mut()), second, deep)?
            }
            (Function::MathAdd, [left, right]) => math::add(left, right)?,
            (Function::MathRandom, [start, end]) => math::random(start, end, None, self.random)?,
            (Function::MathRandom, [start, end, seed]) => math::random(start, end, Some(seed), self.random)?,
            (Function::Uuid, []) => math::uuid(self.random),
            // The parser has counted.
            _ => return Err(Failure::Because("the number of arguments is wrong".into())),
        };
        self.meter.charge_value(&made).map_err(Failure::Named)?;
        Ok(Cow::Owned(made))
    }

    /// A function that makes something as large as its argument, which is measured first.
    fn copying(&mut self, argument: &Value, make: impl FnOnce(&Value) -> Result<Value, String>) -> Result<Value, Failure> {
        self.meter.charge_value(argument).map_err(Failure::Named)?;
        Ok(make(argument)?)
    }

    fn format(&mut self, call: &Call, arguments: &[Cow<'_, Value>]) -> Result<Value, Failure> {
        let rest: Vec<&Value> = arguments.iter().skip(1).map(|argument| &**argument).collect();
        let bytes_max = self.scope.limits.output_bytes_max;
        let filled = match (call.arguments.first(), arguments.first().map(|first| &**first)) {
            (Some(Argument::Format(format)), _) => format.fill(&rest, bytes_max),
            (_, Some(Value::String(text))) => {
                let format = Format::of_text(text);
                format.check(rest.len())?;
                format.fill(&rest, bytes_max)
            }
            (_, first) => {
                let found = first.map_or("nothing", kind);
                return Err(Failure::Because(format!("the first argument must be a string, but it is {found}")));
            }
        };
        let exceeded = || {
            DataError::limit(format!(
                "The function '{}' makes a text that exceeds the maximum of {bytes_max} bytes.",
                shown(call)
            ))
        };
        filled.map(Value::String).ok_or_else(|| Failure::Named(exceeded()))
    }
}

fn failed(call: &Call, reason: &str) -> DataError {
    DataError::new(ErrorName::IntrinsicFailure, format!("The function '{}' had the following error: {reason}", shown(call)))
}

fn shown(call: &Call) -> String {
    let mut letters = call.source.chars();
    let mut text: String = letters.by_ref().take(SOURCE_CHARS_SHOWN).collect();
    if letters.next().is_some() {
        text.push_str("...");
    }
    text
}
