//! Where the store is.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// How far the store is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the server.
    Embedded,
    /// Redis, whose answers come so much later.
    Redis(Duration),
}

impl Place {
    /// That of `--stores`: `embedded`, or milliseconds to Redis.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn parsed(text: &str) -> Result<Place, String> {
        if text == "embedded" {
            return Ok(Place::Embedded);
        }
        let ms = text.parse().ok().filter(|ms| (0.0..=1_000.0).contains(ms));
        let ms: f64 = ms.ok_or_else(|| format!("`{text}` is neither `embedded` nor milliseconds from 0 to 1000"))?;
        Ok(Place::Redis(Duration::from_secs_f64(ms / 1e3)))
    }

    /// Whether the store is in another process.
    pub fn is_remote(self) -> bool {
        self != Place::Embedded
    }

    /// How much later answers come.
    pub fn delay(self) -> Duration {
        match self {
            Place::Embedded => Duration::ZERO,
            Place::Redis(delay) => delay,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Embedded => f.pad("embedded"),
            Place::Redis(delay) => f.pad(&format!("Redis {} ms away", delay.as_secs_f64() * 1e3)),
        }
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_names() {
        for (text, name) in
            [("embedded", "embedded"), ("0", "Redis 0 ms away"), ("0.2", "Redis 0.2 ms away"), ("5", "Redis 5 ms away")]
        {
            assert_eq!(Place::parsed(text).unwrap().to_string(), name);
        }
        for wrong in ["redis", "-1", "1001", "NaN"] {
            assert!(Place::parsed(wrong).is_err(), "{wrong}");
        }
    }
}
