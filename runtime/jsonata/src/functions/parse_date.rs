//! Texts into dates and times, by ISO 8601 or by a picture.

use std::fmt::Write;
use std::rc::Rc;

use super::date::{DAY_MS, DAYS, MONTHS, component, days};
use super::integer::{Case, Grouping, IntegerFormat, Primary};
use super::picture::{self, Marker, Part};
use super::words;
use crate::error::{Error, Result};
use crate::meter::{Charge, Meter};
use crate::regex::Regex;

/// Memory of a compiled regular expression for each of its characters, at most.
const REGEX_BYTES_PER_CHARACTER: usize = 256;
/// Years that a date can have.
const YEAR_MAX: f64 = 275_760.0;

/// The milliseconds of an ISO 8601 timestamp: a year, or more of it, without a zone in UTC.
pub(super) fn iso(text: &str) -> Option<i64> {
    let (year, mut rest) = number(text, 4)?;
    let (mut month, mut day) = (1, 1);
    if let Some((number, after)) = rest.strip_prefix('-').and_then(|rest| number(rest, 2)) {
        (month, rest) = (number, after);
        if let Some((number, after)) = rest.strip_prefix('-').and_then(|rest| self::number(rest, 2)) {
            (day, rest) = (number, after);
        }
    }
    let mut time = 0;
    if let Some(after) = rest.strip_prefix('T') {
        let (hours, after) = number(after, 2)?;
        let (minutes, after) = number(after.strip_prefix(':')?, 2)?;
        let (seconds, after) = number(after.strip_prefix(':')?, 2)?;
        if hours > 24 || minutes > 59 || seconds > 59 || (hours == 24 && minutes + seconds > 0) {
            return None;
        }
        time = ((hours * 60 + minutes) * 60 + seconds) * 1000;
        rest = after;
    }
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let digits: String = fraction.get(..count)?.chars().chain("000".chars()).take(3).collect();
        time += digits.parse::<i64>().ok().filter(|_| count > 0)?;
        rest = fraction.get(count..)?;
    }
    let zone = match rest {
        "" | "Z" => 0,
        _ => {
            let after = rest.strip_prefix(['+', '-'])?;
            let (hours, after) = number(after, 2)?;
            let (minutes, after) = number(after.strip_prefix(':').unwrap_or(after), 2)?;
            let minutes = hours * 60 + minutes;
            if !after.is_empty() {
                return None;
            }
            if rest.starts_with('-') { -minutes } else { minutes }
        }
    };
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && days(year, month, day) < days(year, month + 1, 1);
    is_date.then(|| days(year, month, day) * DAY_MS + time - zone * 60_000)
}

/// A number of so many digits, and what follows it.
fn number(text: &str, digits: usize) -> Option<(i64, &str)> {
    let number = text.get(..digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some((number.parse().ok()?, text.get(digits..)?))
}

/// The milliseconds of a text by a picture; none if it does not match. What the text does not say comes from `now_ms`, or is the least.
pub(super) fn parse(text: &str, picture: &str, now_ms: i64, meter: &Rc<Meter<'_>>) -> Result<Option<i64>> {
    let parts = picture::parse(picture)?;
    let mut pattern = String::from("^");
    let mut markers = Vec::new();
    for part in &parts {
        match part {
            Part::Literal(literal) => literal.chars().for_each(|char| push_literal(char, &mut pattern)),
            Part::Marker(marker) => {
                let _ = write!(pattern, "({})", expected(marker)?);
                markers.push(marker);
            }
        }
    }
    pattern.push('$');
    meter.step(pattern.len())?;
    let _compiled = Charge::new(meter, pattern.len().saturating_mul(REGEX_BYTES_PER_CHARACTER))?;
    let Some(found) = Regex::new(&pattern, true, false)?.find(text, 0, meter)? else {
        return Ok(None);
    };
    let mut components = Components::default();
    for (marker, group) in markers.iter().zip(&found.groups) {
        let part = group.and_then(|(start, end)| text.get(start..end)).unwrap_or_default();
        components.set(marker.component, read(marker, part)?);
    }
    components.millis(now_ms)
}

fn push_literal(char: char, pattern: &mut String) {
    if ".*+?^${}()|[]\\/".contains(char) {
        pattern.push('\\');
    }
    pattern.push(char);
}

/// The regular expression of what a marker reads.
fn expected(marker: &Marker) -> Result<String> {
    Ok(match (marker.component, &marker.integer) {
        ('Z' | 'z', integer) => {
            let prefix = if marker.component == 'z' { "GMT" } else { "" };
            match separator(integer.as_ref()) {
                Some(separator) => {
                    let mut pattern = format!("{prefix}[-+][0-9]+");
                    push_literal(separator, &mut pattern);
                    format!("{pattern}[0-9]+")
                }
                None => format!("{prefix}[-+][0-9]+"),
            }
        }
        ('f', _) => String::from("[0-9]+"),
        (_, Some(integer)) => expected_integer(integer)?,
        ('M' | 'x' | 'F' | 'P', None) => String::from("[a-zA-Z]+"),
        (component, None) => return Err(Error::new("D3133").with_value(component)),
    })
}

fn separator(integer: Option<&IntegerFormat>) -> Option<char> {
    match integer?.decimal()?.grouping {
        Grouping::Regular(_, separator) => Some(separator),
        Grouping::Irregular(_) => None,
    }
}

fn expected_integer(format: &IntegerFormat) -> Result<String> {
    Ok(match &format.primary {
        Primary::Letters => String::from(if format.case == Case::Upper { "[A-Z]+" } else { "[a-z]+" }),
        Primary::Roman => String::from("[mdclxvi]+"),
        Primary::Words => words::pattern(),
        Primary::Decimal(_) => {
            let width = format.parse_width.map_or(String::from("+"), |width| format!("{{{width}}}"));
            format!("[0-9]{width}{}", if format.is_ordinal { "(?:th|st|nd|rd)" } else { "" })
        }
        Primary::Unknown(token) => return Err(Error::new("D3130").with_value(token)),
    })
}

/// The number of a component.
fn read(marker: &Marker, text: &str) -> Result<Option<f64>> {
    let index = |names: &[&str]| {
        let name = |name: &&str| name.chars().take(marker.width_max.unwrap_or(usize::MAX)).collect::<String>();
        names.iter().map(name).position(|name| name.eq_ignore_ascii_case(text)).map(|index| (index + 1) as f64)
    };
    Ok(match (marker.component, &marker.integer) {
        ('Z' | 'z', integer) => zone(text.strip_prefix("GMT").unwrap_or(text), separator(integer.as_ref())),
        ('f', _) => text.chars().chain("000".chars()).take(3).collect::<String>().parse().ok(),
        (_, Some(integer)) => integer.read(text)?,
        ('M' | 'x', None) => index(&MONTHS),
        ('F', None) => index(&DAYS),
        (_, None) => match text {
            "am" | "AM" => Some(0.0),
            "pm" | "PM" => Some(1.0),
            _ => None,
        },
    })
}

/// Minutes of a time zone.
fn zone(text: &str, separator: Option<char>) -> Option<f64> {
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let digits = text.get(1..)?;
    let (hours, minutes) = match separator.and_then(|separator| digits.split_once(separator)) {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() <= 2 => (digits, "0"),
        None => (digits.get(..2)?, digits.get(2..)?),
    };
    Some(sign * (hours.parse::<f64>().ok()? * 60.0 + minutes.parse::<f64>().ok()?))
}

/// Numbers of components, by their letters.
#[derive(Default)]
struct Components(Vec<(char, f64)>);

impl Components {
    fn set(&mut self, component: char, number: Option<f64>) {
        if let Some(number) = number {
            self.0.retain(|(known, _)| *known != component);
            self.0.push((component, number));
        }
    }

    fn get(&self, component: char) -> Option<f64> {
        self.0.iter().find(|(known, _)| *known == component).map(|(_, number)| *number)
    }

    /// Whether some of these are given, and none of `DATES` or `TIMES` that is not of them.
    fn are_of(&self, all: &str, some: &str) -> bool {
        let is_given = |component: char| self.get(component).is_some_and(|number| number != 0.0);
        some.chars().any(is_given) && !all.chars().any(|component| !some.contains(component) && is_given(component))
    }

    fn millis(mut self, now_ms: i64) -> Result<Option<i64>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        const DATES: &str = "YXMxWwdD";
        let is_month_date = self.are_of(DATES, "YMD");
        let is_day_of_year = !is_month_date && self.are_of(DATES, "Yd");
        let is_week_date = self.are_of(DATES, "Xxw") || self.are_of(DATES, "XW");
        let is_half_day = !self.are_of("PHhmsf", "Hmsf") && self.are_of("PHhmsf", "Phmsf");
        if is_week_date {
            return Err(Error::new("D3136")); // as in jsonata-js
        }
        let order = if is_day_of_year { "Yd" } else { "YMD" }.chars().chain(if is_half_day { "Phmsf" } else { "Hmsf" }.chars());
        let (mut is_started, mut is_ended) = (false, false);
        for letter in order {
            if self.get(letter).is_some() {
                is_started = true;
                if is_ended {
                    return Err(Error::new("D3136"));
                }
            } else if is_started {
                self.set(letter, Some(if "MDd".contains(letter) { 1.0 } else { 0.0 }));
                is_ended = true;
            } else {
                self.set(letter, component(now_ms, letter).map(|number| number as f64));
            }
        }
        let part = |letter: char| self.get(letter).unwrap_or(0.0);
        let year = part('Y');
        if [year, part('M'), part('D'), part('d'), part('H'), part('h'), part('m'), part('s')]
            .iter()
            .any(|number| number.is_nan() || number.abs() > YEAR_MAX)
        {
            return Err(Error::new("D1001").with_value(crate::number::to_text(year)));
        }
        // As in ECMAScript, two digits are of the twentieth century.
        let year = if (0.0..100.0).contains(&year) { year + 1900.0 } else { year };
        let day = if is_day_of_year {
            days(year as i64, 1, 1) + part('d') as i64 - 1
        } else {
            days(year as i64, part('M').max(1.0) as i64, part('D') as i64)
        };
        let hours = if is_half_day { part('h') % 12.0 + 12.0 * part('P') } else { part('H') };
        let zone = self.get('Z').or(self.get('z')).unwrap_or(0.0).clamp(-YEAR_MAX, YEAR_MAX);
        let time = ((hours * 60.0 + part('m') - zone) * 60.0 + part('s')) * 1000.0 + part('f');
        Ok(Some(day * DAY_MS + time as i64))
    }
}
