//! Times of signatures: `YYYYMMDDTHHMMSSZ`, and the header `Date`.

use time::format_description::well_known::Rfc2822;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset};

/// A second, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instant(OffsetDateTime);

impl Instant {
    /// From milliseconds since 1970; `None` beyond year 9999.
    pub(crate) fn from_ms(ms: i64) -> Option<Instant> {
        OffsetDateTime::from_unix_timestamp(ms.div_euclid(1_000)).ok().map(Instant)
    }

    /// From ISO 8601's basic format, which `x-amz-date` has.
    pub(crate) fn from_basic(text: &str) -> Option<Instant> {
        let bytes = text.as_bytes();
        if bytes.len() != 16 || bytes.get(8) != Some(&b'T') || bytes.get(15) != Some(&b'Z') {
            return None;
        }
        let number = |from: usize, to: usize| {
            bytes
                .get(from..to)?
                .iter()
                .try_fold(0_u16, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u16::from(digit - b'0')))
        };
        let part = |from: usize| number(from, from + 2).and_then(|number| u8::try_from(number).ok());
        let date = Date::from_calendar_date(i32::from(number(0, 4)?), Month::try_from(part(4)?).ok()?, part(6)?).ok()?;
        let time = Time::from_hms(part(9)?, part(11)?, part(13)?).ok()?;
        Some(Instant(PrimitiveDateTime::new(date, time).assume_utc()))
    }

    /// From the header `Date`: the basic format, or that of RFC 9110, section 5.6.7.
    pub(crate) fn from_http(text: &str) -> Option<Instant> {
        Instant::from_basic(text)
            .or_else(|| OffsetDateTime::parse(text, &Rfc2822).ok()?.checked_to_offset(UtcOffset::UTC).map(Instant))
    }

    /// Seconds since 1970.
    pub(crate) fn seconds(self) -> i64 {
        self.0.unix_timestamp()
    }

    /// In the basic format.
    pub(crate) fn basic(self) -> String {
        let (year, month, day) = self.0.to_calendar_date();
        let (hour, minute, second) = self.0.to_hms();
        format!("{year:04}{:02}{day:02}T{hour:02}{minute:02}{second:02}Z", u8::from(month))
    }

    /// Some seconds later, or earlier; the same where that is no year of four digits.
    pub(crate) fn plus(self, seconds: i64) -> Instant {
        self.0.checked_add(time::Duration::seconds(seconds)).map_or(self, Instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_in_both_formats() {
        let instant = Instant::from_basic("20150830T123600Z").unwrap();
        assert_eq!((instant.seconds(), instant.basic().as_str()), (1_440_938_160, "20150830T123600Z"));
        assert_eq!(Instant::from_http("Sun, 30 Aug 2015 12:36:00 GMT"), Some(instant));
        assert_eq!(Instant::from_http("Sun, 30 Aug 2015 14:36:00 +0200"), Some(instant));
        assert_eq!(Instant::from_ms(1_440_938_160_999), Some(instant));
        assert_eq!(instant.plus(-300).basic(), "20150830T123100Z");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "20150830",
            "20150830T123600",
            "20150830T123600X",
            "20150830 123600Z",
            "20151330T123600Z",
            "20150230T123600Z",
            "20150830T246060Z",
            "2015-830T123600Z",
        ] {
            assert_eq!(Instant::from_basic(text), None, "{text}");
        }
        assert_eq!(Instant::from_basic("2015083é123600Z"), None);
        assert_eq!(Instant::from_ms(i64::MAX), None);
    }
}
