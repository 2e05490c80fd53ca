//! What a function can do with a folder: `write` of a [`DirConfig`](super::DirConfig).

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whether a function can write to a folder: `false`, `true` or `"scratch"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirWrite {
    /// It can only read.
    #[default]
    No,
    /// It changes the folder, for all.
    Yes,
    /// It changes private copies, which are dropped when the request ends.
    Scratch,
}

/// How the third is written.
const SCRATCH: &str = "scratch";

impl Serialize for DirWrite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            DirWrite::No => serializer.serialize_bool(false),
            DirWrite::Yes => serializer.serialize_bool(true),
            DirWrite::Scratch => serializer.serialize_str(SCRATCH),
        }
    }
}

impl<'de> Deserialize<'de> for DirWrite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DirWrite, D::Error> {
        struct Values;
        impl Visitor<'_> for Values {
            type Value = DirWrite;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "false, true or \"{SCRATCH}\"")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<DirWrite, E> {
                Ok(if value { DirWrite::Yes } else { DirWrite::No })
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<DirWrite, E> {
                if value == SCRATCH {
                    return Ok(DirWrite::Scratch);
                }
                Err(E::invalid_value(Unexpected::Str(value), &self))
            }
        }
        deserializer.deserialize_any(Values)
    }
}

impl JsonSchema for DirWrite {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DirWrite".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": [false, true, SCRATCH] })
    }
}
