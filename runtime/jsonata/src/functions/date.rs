//! `$fromMillis`, `$now` and `$toMillis`: dates and times in the proleptic Gregorian calendar.

use super::integer::{Case, Decimal, Grouping, IntegerFormat};
use super::picture::{self, Marker, Part};
use super::{Arguments, parse_date};
use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::number;
use crate::text::{Text, TextBuilder};
use crate::value::Value;

pub(super) const DAY_MS: i64 = 86_400_000;
/// The largest time of ECMAScript, to both sides of 1970.
const TIME_MAX_MS: f64 = 8.64e15;
/// The picture of ISO 8601.
const ISO: &str = "[Y0001]-[M01]-[D01]T[H01]:[m01]:[s01].[f001][Z01:01t]";

pub(super) const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
pub(super) const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Days from 1970-01-01 to a day; months and days may be beyond their year or month (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 + day - 1
}

/// Year, month and day of a number of days from 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// 1 for Monday to 7 for Sunday.
fn weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

/// The Monday of the first week of a month: the week that has its first Thursday (ISO 8601).
fn first_week(year: i64, month: i64) -> i64 {
    let first = days(year, month, 1);
    let weekday = weekday(first);
    if weekday > 4 { first + 8 - weekday } else { first - weekday + 1 }
}

/// Year, month and week of a day, where a month (or the year, if `months` is 12) consists of whole weeks.
fn week(day: i64, year: i64, month: i64, months: i64) -> (i64, i64, i64) {
    let after = |year: i64, month: i64, by: i64| {
        let month = month - 1 + by;
        (year + month.div_euclid(12), month.rem_euclid(12) + 1)
    };
    let mut at = (year, month);
    if day < first_week(at.0, at.1) {
        at = after(at.0, at.1, -months);
    } else {
        let next = after(at.0, at.1, months);
        if day >= first_week(next.0, next.1) {
            at = next;
        }
    }
    (at.0, at.1, (day - first_week(at.0, at.1)) / 7 + 1)
}

/// The number of a date's component, if it has one.
pub(super) fn component(millis: i64, component: char) -> Option<i64> {
    let (day, time) = (millis.div_euclid(DAY_MS), millis.rem_euclid(DAY_MS));
    let (year, month, day_of_month) = civil(day);
    let hour = time / 3_600_000;
    Some(match component {
        'Y' => year,
        'M' => month,
        'D' => day_of_month,
        'd' => day - days(year, 1, 1) + 1,
        'F' => weekday(day),
        'W' => week(day, year, 1, 12).2,
        'w' => week(day, year, month, 1).2,
        'X' => week(day, year, 1, 12).0,
        'x' => week(day, year, month, 1).1,
        'H' => hour,
        'h' => (hour + 11) % 12 + 1,
        'P' => i64::from(hour >= 12),
        'm' => time / 60_000 % 60,
        's' => time / 1000 % 60,
        'f' => time % 1000,
        _ => return None,
    })
}

impl<'a> Interpreter<'a> {
    pub(super) fn format_date(&self, millis: f64, picture: Option<Text<'a>>, zone: Option<Text<'a>>) -> Result<Value<'a>> {
        let zone = zone.and_then(|zone| integer_prefix(zone.as_str())).unwrap_or(0).clamp(-9999, 9999);
        // Hours are rounded down, minutes towards zero, as jsonata-js does it.
        let (hours, minutes) = (zone.div_euclid(100), zone % 100);
        let shifted = millis + ((hours * 60 + minutes) * 60_000) as f64;
        if shifted.is_nan() || shifted.abs() > TIME_MAX_MS {
            return Err(Error::new("D1001").with_value(number::to_text(millis)));
        }
        let picture = picture.as_ref().map_or(ISO, Text::as_str);
        self.meter.step(picture.len())?;
        let mut result = TextBuilder::new(&self.meter)?;
        for part in picture::parse(picture)? {
            match part {
                Part::Literal(literal) => result.push(&literal)?,
                Part::Marker(marker) => result.push(&format_component(shifted.floor() as i64, &marker, hours, minutes)?)?,
            }
        }
        Ok(Value::Text(result.text()))
    }

    pub(super) fn to_millis(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let Some(text) = arguments.text(0) else {
            return Ok(Value::Undefined);
        };
        let text = text.as_str();
        self.meter.step_bytes(text.len())?;
        let millis = match arguments.text(1) {
            None => match parse_date::iso(text) {
                Some(millis) => Some(millis),
                None => return Err(Error::new("D3110").with_value(text)),
            },
            Some(picture) => {
                self.meter.step(picture.as_str().len())?;
                parse_date::parse(text, picture.as_str(), self.now_ms, &self.meter)?
            }
        };
        Ok(millis.map_or(Value::Undefined, |millis| Value::Number(millis as f64)))
    }
}

/// The integer with which a text starts, as ECMAScript's parseInt reads it.
fn integer_prefix(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = digits.bytes().take_while(u8::is_ascii_digit).count().min(9);
    let number: i64 = digits.get(..end)?.parse().ok()?;
    Some(if text.starts_with('-') { -number } else { number })
}

fn format_component(millis: i64, marker: &Marker, zone_hours: i64, zone_minutes: i64) -> Result<String> {
    match marker.component {
        'Z' | 'z' => return format_zone(marker, zone_hours, zone_minutes),
        'C' | 'E' => return Ok(String::from("ISO")),
        'P' => {
            let name = if component(millis, 'P') == Some(1) { "pm" } else { "am" };
            return Ok(if marker.names == Some(Case::Upper) { name.to_uppercase() } else { String::from(name) });
        }
        _ => {}
    }
    let number = component(millis, marker.component).ok_or_else(|| Error::new("D3132").with_value(marker.component))?;
    let Some(case) = marker.names else {
        let number = match marker.year_digits {
            Some(digits) => (number as f64) % 10_f64.powi(digits.min(30) as i32),
            None => number as f64,
        };
        return marker.integer.as_ref().map_or(Ok(number::to_text(number)), |format| format.format(number));
    };
    let name = match marker.component {
        'M' | 'x' => usize::try_from(number - 1).ok().and_then(|index| MONTHS.get(index)),
        'F' => usize::try_from(number - 1).ok().and_then(|index| DAYS.get(index)),
        _ => None,
    };
    let Some(name) = name else {
        return Err(Error::new("D3133").with_value(marker.component));
    };
    let name = match case {
        Case::Upper => name.to_uppercase(),
        Case::Lower => name.to_lowercase(),
        Case::Title => String::from(*name),
    };
    Ok(name.chars().take(marker.width_max.unwrap_or(usize::MAX)).collect())
}

fn format_zone(marker: &Marker, hours: i64, minutes: i64) -> Result<String> {
    let offset = hours * 100 + minutes;
    if offset == 0 && marker.is_traditional {
        return Ok(String::from("Z"));
    }
    let Some(format) = &marker.integer else {
        return Ok(String::new());
    };
    let decimal = format.decimal();
    let text = match decimal {
        Some(Decimal { grouping: Grouping::Regular(..), .. }) => format.format(offset as f64)?,
        Some(Decimal { mandatory_digits: 1 | 2, .. }) => {
            let text = format.format(hours as f64)?;
            if minutes == 0 { text } else { format!("{text}:{}", IntegerFormat::parse("00")?.format(minutes as f64)?) }
        }
        Some(Decimal { mandatory_digits: 3 | 4, .. }) => format.format(offset as f64)?,
        _ => return Err(Error::new("D3134").with_value(decimal.map_or(0, |decimal| decimal.mandatory_digits))),
    };
    let sign = if offset >= 0 { "+" } else { "" };
    let prefix = if marker.component == 'z' { "GMT" } else { "" };
    Ok(format!("{prefix}{sign}{text}"))
}
