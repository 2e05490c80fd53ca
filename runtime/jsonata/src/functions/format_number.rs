//! `$formatNumber`: numbers by pictures (XPath and XQuery Functions and Operators 3.1, 4.7).

use super::{Arguments, picture};
use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::number;
use crate::value::Value;

/// Characters of a picture: they bound what is made of it.
const PICTURE_MAX: usize = 1000;

/// The characters of a picture and of what it makes.
struct Symbols {
    decimal: char,
    grouping: char,
    exponent: char,
    minus: String,
    percent: String,
    per_mille: String,
    zero: char,
    digit: char,
    pattern: char,
}

impl Symbols {
    fn is_zero_family(&self, char: char) -> bool {
        (u32::from(self.zero)..u32::from(self.zero) + 10).contains(&u32::from(char))
    }

    fn is_digit(&self, char: char) -> bool {
        self.is_zero_family(char) || char == self.digit
    }

    fn is_active(&self, char: char) -> bool {
        self.is_digit(char) || [self.decimal, self.exponent, self.grouping, self.pattern].contains(&char)
    }

    /// A digit of the family.
    fn of(&self, digit: char) -> char {
        digit.to_digit(10).and_then(|value| char::from_u32(u32::from(self.zero) + value)).unwrap_or(digit)
    }
}

/// What a sub-picture says.
#[derive(Clone)]
struct Format {
    prefix: String,
    suffix: String,
    has_percent: bool,
    has_per_mille: bool,
    has_decimal: bool,
    grouping: Option<usize>,
    integer_grouping: Vec<usize>,
    fraction_grouping: Vec<usize>,
    integer_min: usize,
    scaling: usize,
    fraction_min: usize,
    fraction_max: usize,
    exponent_min: usize,
}

/// The parts of a sub-picture.
struct Parts {
    all: Vec<char>,
    prefix: Vec<char>,
    suffix: Vec<char>,
    active: Vec<char>,
    mantissa: Vec<char>,
    exponent: Option<Vec<char>>,
    integer: Vec<char>,
    fraction: Vec<char>,
    has_decimal: bool,
}

impl Parts {
    fn new(all: Vec<char>, symbols: &Symbols) -> Parts {
        let is_inner = |char: &char| symbols.is_active(*char) && *char != symbols.exponent;
        let start = all.iter().position(is_inner).unwrap_or(0);
        let end = all.iter().rposition(is_inner).map_or(all.len(), |last| last + 1).max(start);
        let slice = |chars: &[char], start: usize, end: usize| chars.get(start..end).unwrap_or_default().to_vec();
        let active = slice(&all, start, end);
        let (mantissa, exponent) = match active.iter().position(|&char| char == symbols.exponent) {
            Some(at) => (slice(&active, 0, at), Some(slice(&active, at + 1, active.len()))),
            None => (active.clone(), None),
        };
        let point = mantissa.iter().position(|&char| char == symbols.decimal);
        let (integer, fraction) = match point {
            Some(at) => (slice(&mantissa, 0, at), slice(&mantissa, at + 1, mantissa.len())),
            None => (mantissa.clone(), Vec::new()),
        };
        let (prefix, suffix) = (slice(&all, 0, start), slice(&all, end, all.len()));
        Parts { prefix, suffix, active, mantissa, exponent, integer, fraction, has_decimal: point.is_some(), all }
    }

    /// How often a symbol is in it.
    fn count(&self, symbol: &str) -> usize {
        let symbol: Vec<char> = symbol.chars().collect();
        if symbol.is_empty() { 0 } else { self.all.windows(symbol.len()).filter(|window| *window == symbol).count() }
    }

    /// Checks the rules of 4.7.3; the last one that is broken counts, as in jsonata-js.
    fn check(&self, symbols: &Symbols) -> Result<()> {
        let count = |of: char| self.all.iter().filter(|&&char| char == of).count();
        let percents = self.count(&symbols.percent);
        let per_milles = self.count(&symbols.per_mille);
        let is_zero = |char: &char| symbols.is_zero_family(*char);
        let point = self.all.iter().position(|&char| char == symbols.decimal);
        let near_point = |at: usize| {
            let is_grouping = |at: Option<usize>| at.and_then(|at| self.all.get(at)) == Some(&symbols.grouping);
            is_grouping(at.checked_sub(1)) || is_grouping(Some(at + 1))
        };
        let optional = self.integer.iter().position(|&char| char == symbols.digit);
        let last_optional = self.fraction.iter().rposition(|&char| char == symbols.digit);
        let has_sign = percents + per_milles > 0;
        let rules = [
            ("D3081", count(symbols.decimal) > 1),
            ("D3082", percents > 1),
            ("D3083", per_milles > 1),
            ("D3084", percents > 0 && per_milles > 0),
            ("D3085", !self.mantissa.iter().any(|&char| symbols.is_digit(char))),
            ("D3086", self.active.iter().any(|&char| !symbols.is_active(char))),
            ("D3087", point.is_some_and(near_point)),
            ("D3088", point.is_none() && self.integer.last() == Some(&symbols.grouping)),
            ("D3089", self.all.windows(2).any(|pair| pair == [symbols.grouping, symbols.grouping])),
            ("D3090", optional.is_some_and(|at| self.integer.iter().take(at).any(is_zero))),
            ("D3091", last_optional.is_some_and(|at| self.fraction.iter().skip(at).any(is_zero))),
            ("D3092", self.exponent.as_ref().is_some_and(|exponent| !exponent.is_empty()) && has_sign),
            ("D3093", self.exponent.as_ref().is_some_and(|exponent| exponent.is_empty() || !exponent.iter().all(is_zero))),
        ];
        match rules.iter().rev().find(|(_, is_broken)| *is_broken) {
            Some((code, _)) => Err(Error::new(code)),
            None => Ok(()),
        }
    }

    /// What the sub-picture says (4.7.4).
    fn format(&self, symbols: &Symbols) -> Format {
        let digits = |chars: &[char]| chars.iter().filter(|&&char| symbols.is_digit(char)).count();
        let zeros = |chars: &[char]| chars.iter().filter(|&&char| symbols.is_zero_family(char)).count();
        let groupings = |chars: &[char]| -> Vec<usize> {
            chars.iter().enumerate().filter(|(_, char)| **char == symbols.grouping).map(|(at, _)| at).collect()
        };
        let right = |at: usize| digits(self.integer.get(at..).unwrap_or_default());
        let integer_grouping: Vec<usize> = groupings(&self.integer).into_iter().map(right).collect();
        let left = |at: usize| digits(self.fraction.get(..at).unwrap_or_default());
        let mut integer_min = zeros(&self.integer);
        let scaling = integer_min;
        let (mut fraction_min, mut fraction_max) = (zeros(&self.fraction), digits(&self.fraction));
        if integer_min == 0 && fraction_max == 0 {
            if self.exponent.is_some() {
                (fraction_min, fraction_max) = (1, 1);
            } else {
                integer_min = 1;
            }
        }
        if self.exponent.is_some() && integer_min == 0 && self.integer.contains(&symbols.digit) {
            integer_min = 1;
        }
        if integer_min == 0 && fraction_min == 0 {
            fraction_min = 1;
        }
        Format {
            prefix: self.prefix.iter().collect(),
            suffix: self.suffix.iter().collect(),
            has_percent: self.count(&symbols.percent) > 0,
            has_per_mille: self.count(&symbols.per_mille) > 0,
            has_decimal: self.has_decimal,
            grouping: picture::regular_grouping(&integer_grouping),
            integer_grouping,
            fraction_grouping: groupings(&self.fraction).into_iter().map(left).collect(),
            integer_min,
            scaling,
            fraction_min,
            fraction_max,
            exponent_min: self.exponent.as_deref().map_or(0, zeros),
        }
    }
}

impl Format {
    /// Writes a number (4.7.5).
    fn write(&self, number: f64, symbols: &Symbols) -> String {
        let mut mantissa = match self {
            Format { has_percent: true, .. } => number * 100.0,
            Format { has_per_mille: true, .. } => number * 1000.0,
            _ => number,
        };
        let mut exponent = None;
        if self.exponent_min > 0 {
            let mut power = 0;
            let max = 10_f64.powi(self.scaling.min(300) as i32);
            let min = 10_f64.powi(self.scaling.min(300) as i32 - 1);
            while mantissa != 0.0 && mantissa.abs() < min {
                mantissa *= 10.0;
                power -= 1;
            }
            while mantissa.is_finite() && mantissa.abs() > max {
                mantissa /= 10.0;
                power += 1;
            }
            exponent = Some(power);
        }
        let rounded = number::round(mantissa, self.fraction_max as i32).abs();
        let text = format!("{rounded:.*}", self.fraction_max);
        let (integer, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let integer = integer.trim_start_matches('0');
        let integer = format!("{}{integer}", "0".repeat(self.integer_min.saturating_sub(integer.len())));
        let fraction = fraction.trim_end_matches('0');
        let fraction = format!("{fraction}{}", "0".repeat(self.fraction_min.saturating_sub(fraction.len())));
        let mut result = self.prefix.clone();
        for (index, digit) in integer.chars().enumerate() {
            let right = integer.len() - index;
            let is_separated = match self.grouping {
                Some(size) => right % size == 0,
                None => self.integer_grouping.contains(&right),
            };
            if is_separated && index > 0 {
                result.push(symbols.grouping);
            }
            result.push(symbols.of(digit));
        }
        if self.has_decimal && !fraction.is_empty() {
            result.push(symbols.decimal);
            for (index, digit) in fraction.chars().enumerate() {
                if index > 0 && self.fraction_grouping.contains(&index) {
                    result.push(symbols.grouping);
                }
                result.push(symbols.of(digit));
            }
        }
        if let Some(power) = exponent {
            let digits = f64::from(power).abs().to_string();
            let padding = "0".repeat(self.exponent_min.saturating_sub(digits.len()));
            result.push(symbols.exponent);
            result.push_str(if power < 0 { &symbols.minus } else { "" });
            result.extend(padding.chars().chain(digits.chars()).map(|digit| symbols.of(digit)));
        }
        result + &self.suffix
    }
}

impl<'a> Interpreter<'a> {
    pub(super) fn format_number(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let (Some(number), Some(picture)) = (arguments.number(0), arguments.text(1)) else {
            return Ok(Value::Undefined);
        };
        if picture.as_str().len() > PICTURE_MAX {
            return Err(Error::new("U1001").with_value(format!("{PICTURE_MAX} characters of a picture")));
        }
        self.meter.step(picture.as_str().len())?;
        let symbols = self.symbols(&arguments.take(2))?;
        let mut formats = Vec::new();
        let pictures: Vec<Vec<char>> = picture.as_str().split(symbols.pattern).map(|picture| picture.chars().collect()).collect();
        if pictures.len() > 2 {
            return Err(Error::new("D3080"));
        }
        for picture in pictures {
            let parts = Parts::new(picture, &symbols);
            parts.check(&symbols)?;
            formats.push(parts.format(&symbols));
        }
        let (Some(positive), negative) = (formats.first(), formats.get(1)) else {
            return Err(Error::new("D3080"));
        };
        let format = match negative {
            _ if number >= 0.0 => positive.clone(),
            Some(negative) => negative.clone(),
            None => Format { prefix: format!("{}{}", symbols.minus, positive.prefix), ..positive.clone() },
        };
        self.string_value(format.write(number, &symbols))
    }

    fn symbols(&self, options: &Value<'a>) -> Result<Symbols> {
        let mut symbols = Symbols {
            decimal: '.',
            grouping: ',',
            exponent: 'e',
            minus: String::from("-"),
            percent: String::from("%"),
            per_mille: String::from("\u{2030}"),
            zero: '0',
            digit: '#',
            pattern: ';',
        };
        let Value::Object(options) = options else {
            return Ok(symbols);
        };
        for (name, value) in options.iter() {
            let text = value.as_text().unwrap_or_default();
            let symbol = match name.as_str() {
                "decimal-separator" => &mut symbols.decimal,
                "grouping-separator" => &mut symbols.grouping,
                "exponent-separator" => &mut symbols.exponent,
                "zero-digit" => &mut symbols.zero,
                "digit" => &mut symbols.digit,
                "pattern-separator" => &mut symbols.pattern,
                "minus-sign" | "percent" | "per-mille" => {
                    let symbol = match name.as_str() {
                        "minus-sign" => &mut symbols.minus,
                        "percent" => &mut symbols.percent,
                        _ => &mut symbols.per_mille,
                    };
                    *symbol = text.chars().take(PICTURE_MAX).collect();
                    continue;
                }
                _ => continue,
            };
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(char), None) => *symbol = char,
                _ => return Err(Error::new("D3154").with_value(name.as_str())),
            }
        }
        Ok(symbols)
    }
}
