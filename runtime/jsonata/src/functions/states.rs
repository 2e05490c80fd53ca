//! What AWS Step Functions adds to JSONata (AWS Step Functions Developer Guide, "Transforming data with JSONata").

use md5::Md5;
use serde_json::Value as Json;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::{Arguments, Builtin};
use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::evaluate::path::check_nesting;
use crate::number;
use crate::text::{self, Text};
use crate::value::{ListBuilder, RecordBuilder, Value};

impl<'a> Interpreter<'a> {
    pub(super) fn states_function(&self, builtin: Builtin, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        match builtin {
            Builtin::Partition => self.partition(arguments),
            Builtin::Range => self.number_range(arguments),
            Builtin::Hash => self.hash(arguments),
            Builtin::Uuid => self.uuid(),
            Builtin::Parse => self.parse(arguments),
            _ => Ok(Value::Number(match arguments.number(0) {
                Some(seed) => fastrand::Rng::with_seed((seed + 0.0).to_bits()).f64(),
                None => self.random.borrow_mut().f64(),
            })),
        }
    }

    /// `$partition(array, size)`: arrays of that many elements, the last of what remains.
    fn partition(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let (Value::Array(array), Some(size)) = (arguments.take(0), arguments.number(1)) else {
            return Ok(Value::Undefined);
        };
        let size = size.floor();
        if size < 1.0 || size.is_nan() {
            return Err(Error::new("D3150"));
        }
        let mut parts = ListBuilder::new(&self.meter)?;
        let mut items = array.iter().peekable();
        while items.peek().is_some() {
            let mut part = ListBuilder::new(&self.meter)?;
            for item in items.by_ref().take(size as usize) {
                part.push(item)?;
            }
            parts.push(part.plain())?;
        }
        Ok(parts.plain())
    }

    /// `$range(first, last, step)`: from the first to the last, if the steps hit it.
    fn number_range(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let (Some(first), Some(last), Some(step)) = (arguments.number(0), arguments.number(1), arguments.number(2)) else {
            return Ok(Value::Undefined);
        };
        if step == 0.0 || step.is_nan() {
            return Err(Error::new("D3151"));
        }
        let mut range = ListBuilder::new(&self.meter)?;
        let mut index = 0.0;
        loop {
            let next = first + index * step;
            if (step > 0.0 && next > last) || (step < 0.0 && next < last) || !next.is_finite() {
                // A range of one number is that number, as in Step Functions.
                return Ok(if index == 1.0 { range.sequence() } else { range.plain() });
            }
            range.push(Value::Number(next))?; // ends at the limits if the range does not
            index += 1.0;
        }
    }

    /// `$hash(text, algorithm)`: in hexadecimal digits.
    fn hash(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let (Some(text), Some(algorithm)) = (arguments.text(0), arguments.text(1)) else {
            return Ok(Value::Undefined);
        };
        let bytes = text.as_str().as_bytes();
        self.meter.step_bytes(bytes.len().saturating_mul(8))?;
        let digest = match algorithm.as_str() {
            "MD5" => Md5::digest(bytes).to_vec(),
            "SHA-1" => Sha1::digest(bytes).to_vec(),
            "SHA-256" => Sha256::digest(bytes).to_vec(),
            "SHA-384" => Sha384::digest(bytes).to_vec(),
            "SHA-512" => Sha512::digest(bytes).to_vec(),
            other => return Err(Error::new("D3152").with_value(other)),
        };
        self.string_value(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// `$uuid()`: version 4 (RFC 9562), of the evaluation's random numbers.
    fn uuid(&self) -> Result<Value<'a>> {
        let random = self.random.borrow_mut().u128(..);
        let bits = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        let digits = format!("{bits:032x}");
        let part = |start: usize, end: usize| digits.get(start..end).unwrap_or_default();
        self.string_value([part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-"))
    }

    /// `$parse(text)`: the value of JSON.
    fn parse(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let Some(text) = arguments.text(0) else {
            return Ok(Value::Undefined);
        };
        let source = text.as_str();
        self.meter.step(source.len())?;
        // While it is copied, there is a second form of it, of at most a node for each character.
        let bytes = source.len().saturating_mul(size_of::<Json>());
        let _parsed = crate::meter::Charge::new(&self.meter, bytes)?;
        let json: Json = serde_json::from_str(source).map_err(|error| Error::new("D3153").with_value(error))?;
        self.made(&json, 0)
    }

    /// A made value of JSON that the evaluation has parsed.
    fn made(&self, json: &Json, nesting: u32) -> Result<Value<'a>> {
        check_nesting(nesting)?;
        Ok(match json {
            Json::Null => Value::Null,
            Json::Bool(bool) => Value::Bool(*bool),
            Json::Number(number) => match number.as_f64() {
                Some(number) if number.is_finite() => Value::Number(number),
                _ => return Err(Error::new("D1001").with_value(number::to_text(f64::INFINITY))),
            },
            Json::String(text) => self.string_value(text.clone())?,
            Json::Array(items) => {
                let mut list = ListBuilder::with_capacity(&self.meter, items.len())?;
                for item in items {
                    list.push(self.made(item, nesting + 1)?)?;
                }
                list.plain()
            }
            Json::Object(fields) => {
                let mut record = RecordBuilder::new(&self.meter)?;
                for (key, value) in fields {
                    let key: Text<'a> = text::made(&self.meter, key.clone())?;
                    record.set(key, self.made(value, nesting + 1)?)?;
                }
                record.value()
            }
        })
    }
}
