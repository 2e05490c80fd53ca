//! `$sum`, `$count`, `$max`, `$min`, `$average`.

use super::{Arguments, Builtin};
use crate::error::Result;
use crate::evaluate::Interpreter;
use crate::value::Value;

impl<'a> Interpreter<'a> {
    pub(super) fn aggregate(&self, builtin: Builtin, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let Value::Array(array) = arguments.take(0) else {
            return Ok(if builtin == Builtin::Count { Value::Number(0.0) } else { Value::Undefined });
        };
        let count = array.len() as f64;
        if builtin == Builtin::Count {
            return Ok(Value::Number(count));
        }
        if array.len() == 0 && builtin != Builtin::Sum {
            return Ok(Value::Undefined);
        }
        self.meter.step(array.len())?;
        let numbers = array.iter().filter_map(|item| if let Value::Number(number) = item { Some(number) } else { None });
        Ok(Value::Number(match builtin {
            Builtin::Max => numbers.fold(f64::NEG_INFINITY, f64::max),
            Builtin::Min => numbers.fold(f64::INFINITY, f64::min),
            Builtin::Average => numbers.fold(0.0, |sum, number| sum + number) / count,
            _ => numbers.fold(0.0, |sum, number| sum + number),
        }))
    }
}
