//! Times as the Amazon States Language writes them: RFC 3339, with an upper-case `T` before the time, and `Z` or a numeric offset after it.
//!
//! No clock is read here.

use std::fmt;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A point of time, to the nanosecond, in the years 0000 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(OffsetDateTime);

/// A text is no timestamp, or a number is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a timestamp like 2016-03-14T01:59:00.123Z or 2016-03-14T01:59:00+01:00")]
pub struct TimestampError(String);

/// The longest text that can be one: a date, a time with 9 digits after the point, an offset.
const TEXT_BYTES_MAX: usize = 35;

impl Timestamp {
    /// Parses a timestamp. Digits after the ninth of a fraction, leap seconds, and dates that do not exist are refused.
    ///
    /// # Errors
    ///
    /// The text is none.
    pub fn parse(text: &str) -> Result<Timestamp, TimestampError> {
        let error = || TimestampError(text.chars().take(2 * TEXT_BYTES_MAX).collect());
        if !has_shape(text.as_bytes()) {
            return Err(error());
        }
        let parsed = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| error())?;
        parsed.checked_to_utc().map(|utc| Timestamp(utc.into())).ok_or_else(error)
    }

    /// A time in milliseconds since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    ///
    /// It is not in the years 0000 to 9999.
    pub fn from_unix_ms(ms: i64) -> Result<Timestamp, TimestampError> {
        let error = || TimestampError(format!("{ms} ms"));
        let parsed = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000).map_err(|_| error())?;
        if (0..=9999).contains(&parsed.year()) { Ok(Timestamp(parsed)) } else { Err(error()) }
    }

    /// In milliseconds since 1970-01-01T00:00:00Z; what is finer is cut off, towards the past.
    #[must_use]
    pub fn unix_ms(self) -> i64 {
        // A year of four digits fits by far.
        i64::try_from(self.0.unix_timestamp_nanos().div_euclid(1_000_000)).unwrap_or(i64::MAX)
    }
}

/// In UTC, with milliseconds: `2016-03-14T01:59:00.000Z`, as AWS Step Functions writes times into the context object.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.0;
        let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
        let (hour, minute, second, millisecond) = (time.hour(), time.minute(), time.second(), time.millisecond());
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
    }
}

/// Whether a text has the shape of one: the parser behind this is more lenient.
fn has_shape(text: &[u8]) -> bool {
    if text.len() > TEXT_BYTES_MAX {
        return false;
    }
    let Some((date_time, rest)) = text.split_at_checked(19) else { return false };
    if !fits(date_time, b"0000-00-00T00:00:00") || date_time.ends_with(b"60") {
        return false;
    }
    let fraction = match rest.split_first() {
        Some((b'.', after)) => after.iter().take_while(|byte| byte.is_ascii_digit()).count() + 1,
        _ => 0,
    };
    if fraction == 1 || fraction > 10 {
        return false;
    }
    match rest.get(fraction..) {
        Some(b"Z") => true,
        Some([b'+' | b'-', offset @ ..]) => fits(offset, b"00:00"),
        _ => false,
    }
}

/// Whether a text has digits where the shape has zeros, and is the same elsewhere.
fn fits(text: &[u8], shape: &[u8]) -> bool {
    text.len() == shape.len()
        && text.iter().zip(shape).all(|(byte, shape)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape })
}
