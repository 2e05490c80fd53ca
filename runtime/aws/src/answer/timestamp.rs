//! Times in answers.

use serde::{Serialize, Serializer};

/// Milliseconds since 1970. In JSON: seconds, with a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Milliseconds as a fraction: exact for some 285,000 years.
        serializer.serialize_f64(self.0 as f64 / 1_000.0)
    }
}
