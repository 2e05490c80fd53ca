//! Functions on numbers.

use super::{Arguments, Builtin};
use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::number;
use crate::value::Value;

impl<'a> Interpreter<'a> {
    pub(super) fn number_function(&self, builtin: Builtin, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        if builtin == Builtin::Number {
            return self.cast(&arguments.take(0));
        }
        let Some(value) = arguments.number(0) else {
            return Ok(Value::Undefined);
        };
        let second = arguments.number(1);
        Ok(Value::Number(match builtin {
            Builtin::Floor => value.floor(),
            Builtin::Ceil => value.ceil(),
            Builtin::Abs => value.abs(),
            Builtin::Round => number::round(value, second.map_or(0, |places| places as i32)),
            Builtin::Sqrt if value < 0.0 => {
                return Err(Error::new("D3060").with_index(1).with_value(number::to_text(value)));
            }
            Builtin::Sqrt => value.sqrt(),
            Builtin::Power => {
                let result = value.powf(second.unwrap_or(f64::NAN));
                if !result.is_finite() {
                    let what =
                        format!("{} to the power of {}", number::to_text(value), number::to_text(second.unwrap_or(f64::NAN)));
                    return Err(Error::new("D3061").with_index(1).with_value(what));
                }
                result
            }
            _ => return self.in_radix(value, second),
        }))
    }

    fn in_radix(&self, value: f64, radix: Option<f64>) -> Result<Value<'a>> {
        let radix = radix.map_or(10.0, |radix| number::round(radix, 0));
        if !(2.0..=36.0).contains(&radix) {
            return Err(Error::new("D3100").with_value(number::to_text(radix)));
        }
        self.string_value(number::in_radix(number::round(value, 0), radix as u32))
    }

    /// `$number`: of a string in decimal, hexadecimal, octal or binary, or of a Boolean value.
    fn cast(&self, value: &Value<'a>) -> Result<Value<'a>> {
        let number = match value {
            Value::Undefined => return Ok(Value::Undefined),
            Value::Number(number) => Some(*number),
            Value::Bool(bool) => Some(f64::from(u8::from(*bool))),
            Value::Text(text) => {
                self.meter.step_bytes(text.as_str().len())?;
                parse(text.as_str())
            }
            _ => None,
        };
        match number {
            Some(number) => Ok(Value::Number(number)),
            None => Err(Error::new("D3030").with_index(1).with_value(self.quoted(value))),
        }
    }
}

fn parse(text: &str) -> Option<f64> {
    if let Some((radix, digits)) = prefixed(text) {
        let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
        let value = |number: f64, digit: char| number * f64::from(radix) + f64::from(digit.to_digit(radix).unwrap_or(0));
        return is_number.then(|| digits.chars().fold(0.0, value)).filter(|number| number.is_finite());
    }
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let exponent_digits = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    if !is_digits(whole) || !fraction.is_none_or(is_digits) || !exponent_digits.is_none_or(is_digits) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn prefixed(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix('0')?;
    let mut chars = rest.chars();
    let radix = match chars.next()? {
        'x' | 'X' => 16,
        'o' | 'O' => 8,
        'b' | 'B' => 2,
        _ => return None,
    };
    Some((radix, chars.as_str()))
}
