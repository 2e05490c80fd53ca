//! How many requests of a function run at the same time: `concurrency_max` of a [`FunctionConfig`](super::FunctionConfig).

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many requests of a function run at the same time: a number, or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// So many at most.
    Max(usize),
    /// As many as keep the workers busy while others wait, by what recent requests did.
    Auto,
}

/// How the second is written.
const AUTO: &str = "auto";

impl Serialize for Concurrency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Concurrency::Max(max) => max.serialize(serializer),
            Concurrency::Auto => serializer.serialize_str(AUTO),
        }
    }
}

impl<'de> Deserialize<'de> for Concurrency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Concurrency, D::Error> {
        struct Values;
        impl Visitor<'_> for Values {
            type Value = Concurrency;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from 1, or \"{AUTO}\"")
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Concurrency, E> {
                let max = usize::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))?;
                Ok(Concurrency::Max(max))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Concurrency, E> {
                let value = u64::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))?;
                self.visit_u64(value)
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Concurrency, E> {
                if value == AUTO {
                    return Ok(Concurrency::Auto);
                }
                Err(E::invalid_value(Unexpected::Str(value), &self))
            }
        }
        deserializer.deserialize_any(Values)
    }
}

impl JsonSchema for Concurrency {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Concurrency".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "const": AUTO }] })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn it_is_a_number_or_auto_and_is_shown_as_it_was_written() {
        let read = |value: &Value| serde_json::from_value::<Concurrency>(value.clone()).map_err(|error| error.to_string());
        for (value, expected) in [(json!(8), Concurrency::Max(8)), (json!("auto"), Concurrency::Auto)] {
            assert_eq!(read(&value), Ok(expected));
            assert_eq!(serde_json::to_value(expected).unwrap(), value);
        }
        let expected = "expected a whole number from 1, or \"auto\"";
        for (value, shown) in [
            (json!("Auto"), "string \"Auto\""),
            (json!(-1), "integer `-1`"),
            (json!(1.5), "floating point `1.5`"),
            (json!([]), "sequence"),
        ] {
            let error = read(&value).unwrap_err();
            assert!(error.contains(shown) && error.ends_with(expected), "{error}");
        }
    }
}
