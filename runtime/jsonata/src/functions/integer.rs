//! `$formatInteger` and `$parseInteger`: integers by pictures (XPath and XQuery Functions and Operators 3.1, 4.6.1).

use super::words;
use super::{Arguments, picture};
use crate::error::{Error, Result};
use crate::evaluate::Interpreter;
use crate::number;
use crate::value::Value;

/// How an integer is written.
#[derive(Debug, Clone)]
pub(super) struct IntegerFormat {
    pub(super) primary: Primary,
    pub(super) case: Case,
    pub(super) is_ordinal: bool,
    /// Digits that a parser reads, if another number follows at once.
    pub(super) parse_width: Option<usize>,
}

#[derive(Debug, Clone)]
pub(super) enum Primary {
    Letters,
    Roman,
    Words,
    Decimal(Decimal),
    /// Something else, which no implementation has to know.
    Unknown(String),
}

#[derive(Debug, Clone)]
pub(super) struct Decimal {
    /// The code point of the family's zero.
    pub(super) zero: u32,
    pub(super) mandatory_digits: usize,
    pub(super) optional_digits: usize,
    pub(super) grouping: Grouping,
}

#[derive(Debug, Clone)]
pub(super) enum Grouping {
    /// The same separator after every so many digits.
    Regular(usize, char),
    /// Separators before so many digits.
    Irregular(Vec<(usize, char)>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Lower,
    Title,
}

/// Bytes of a picture: they bound what is made of it.
const PICTURE_MAX: usize = 1000;

/// The zeros of decimal digit families (Unicode, general category Nd).
const ZEROS: [u32; 37] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20, 0x1040,
    0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0,
    0xa9f0, 0xaa50, 0xabf0, 0xff10,
];

impl IntegerFormat {
    pub(super) fn parse(picture: &str) -> Result<IntegerFormat> {
        if picture.len() > PICTURE_MAX {
            return Err(Error::new("U1001").with_value(format!("{PICTURE_MAX} characters of a picture")));
        }
        let (primary, modifier) = picture.rsplit_once(';').unwrap_or((picture, ""));
        let (primary, case) = match primary {
            "A" => (Primary::Letters, Case::Upper),
            "a" => (Primary::Letters, Case::Lower),
            "I" => (Primary::Roman, Case::Upper),
            "i" => (Primary::Roman, Case::Lower),
            "W" => (Primary::Words, Case::Upper),
            "Ww" => (Primary::Words, Case::Title),
            "w" => (Primary::Words, Case::Lower),
            other => (decimal(other)?, Case::Lower),
        };
        Ok(IntegerFormat { primary, case, is_ordinal: modifier.starts_with('o'), parse_width: None })
    }

    pub(super) fn decimal(&self) -> Option<&Decimal> {
        match &self.primary {
            Primary::Decimal(decimal) => Some(decimal),
            _ => None,
        }
    }

    pub(super) fn format(&self, number: f64) -> Result<String> {
        let absolute = number.abs();
        let text = match &self.primary {
            Primary::Letters if absolute < 1e15 => words::to_letters(absolute, if self.case == Case::Upper { 'A' } else { 'a' }),
            Primary::Roman if absolute <= words::ROMAN_MAX => words::to_roman(absolute),
            Primary::Words => words::to_words(absolute, self.is_ordinal),
            Primary::Decimal(decimal) => decimal.format(absolute, self.is_ordinal),
            Primary::Unknown(token) => return Err(Error::new("D3130").with_value(token)),
            Primary::Letters | Primary::Roman => return Err(Error::new("D1001").with_value(number::to_text(number))),
        };
        let text = match (&self.primary, self.case) {
            (Primary::Roman | Primary::Words, Case::Upper) => text.to_uppercase(),
            (Primary::Words, Case::Lower) => text.to_lowercase(),
            _ => text,
        };
        Ok(if number < 0.0 { format!("-{text}") } else { text })
    }

    /// The integer that a text means.
    pub(super) fn read(&self, text: &str) -> Result<Option<f64>> {
        Ok(match &self.primary {
            Primary::Letters => Some(words::of_letters(text, if self.case == Case::Upper { 'A' } else { 'a' })),
            Primary::Roman => words::of_roman(&text.to_uppercase()),
            Primary::Words => words::of_words(text),
            Primary::Decimal(decimal) => decimal.read(text, self.is_ordinal),
            Primary::Unknown(token) => return Err(Error::new("D3130").with_value(token)),
        })
    }
}

/// A picture of digits; a parser of them knows no others.
fn decimal(picture: &str) -> Result<Primary> {
    let mut zero = None;
    let mut decimal = Decimal { zero: 0x30, mandatory_digits: 0, optional_digits: 0, grouping: Grouping::Irregular(Vec::new()) };
    let mut separators: Vec<(usize, char)> = Vec::new();
    for char in picture.chars().rev() {
        let digits = decimal.mandatory_digits + decimal.optional_digits;
        let code = u32::from(char);
        if let Some(&family) = ZEROS.iter().find(|&&zero| (zero..zero + 10).contains(&code)) {
            if *zero.get_or_insert(family) != family {
                return Err(Error::new("D3131"));
            }
            decimal.mandatory_digits += 1;
        } else if char == '#' {
            decimal.optional_digits += 1;
        } else {
            separators.push((digits, char));
        }
    }
    let Some(zero) = zero else {
        return Ok(Primary::Unknown(String::from(picture)));
    };
    decimal.zero = zero;
    let positions: Vec<usize> = separators.iter().map(|(position, _)| *position).collect();
    decimal.grouping = match separators.first() {
        Some(&(_, first)) if separators.iter().all(|&(_, char)| char == first) => match picture::regular_grouping(&positions) {
            Some(size) => Grouping::Regular(size, first),
            None => Grouping::Irregular(separators),
        },
        _ => Grouping::Irregular(separators),
    };
    Ok(Primary::Decimal(decimal))
}

impl Decimal {
    fn format(&self, number: f64, is_ordinal: bool) -> String {
        let digits = number::to_text(number);
        let digits = format!("{}{digits}", "0".repeat(self.mandatory_digits.saturating_sub(digits.len())));
        let count = digits.chars().count();
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            let right = count - index;
            let separator = match &self.grouping {
                Grouping::Regular(size, char) => (index > 0 && right % size == 0).then_some(*char),
                Grouping::Irregular(separators) => {
                    separators.iter().find(|(position, _)| *position == right && index > 0).map(|(_, char)| *char)
                }
            };
            text.extend(separator);
            text.push(match digit.to_digit(10) {
                Some(value) => char::from_u32(self.zero + value).unwrap_or(digit),
                None => digit,
            });
        }
        if is_ordinal {
            text.push_str(ordinal_suffix(&digits));
        }
        text
    }

    fn read(&self, text: &str, is_ordinal: bool) -> Option<f64> {
        let end = if is_ordinal { text.len().saturating_sub(2) } else { text.len() };
        let is_separator = |char: char| match &self.grouping {
            Grouping::Regular(_, separator) => char == *separator || char == ',',
            Grouping::Irregular(separators) => separators.iter().any(|(_, separator)| *separator == char),
        };
        let digits = text.get(..end)?.chars().filter(|&char| !is_separator(char));
        let ascii: String = digits
            .map(|char| u32::from(char).checked_sub(self.zero).and_then(|value| char::from_digit(value, 10)).unwrap_or(char))
            .collect();
        let number: String = ascii
            .chars()
            .enumerate()
            .take_while(|(index, char)| char.is_ascii_digit() || *index == 0 && *char == '-')
            .map(|(_, char)| char)
            .collect();
        number.parse().ok()
    }
}

fn ordinal_suffix(digits: &str) -> &'static str {
    let mut reversed = digits.chars().rev();
    match (reversed.next(), reversed.next()) {
        (_, Some('1')) => "th",
        (Some('1'), _) => "st",
        (Some('2'), _) => "nd",
        (Some('3'), _) => "rd",
        _ => "th",
    }
}

impl<'a> Interpreter<'a> {
    pub(super) fn format_integer(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let (Some(number), Some(picture)) = (arguments.number(0), arguments.text(1)) else {
            return Ok(Value::Undefined);
        };
        self.meter.step(picture.as_str().len())?;
        self.string_value(IntegerFormat::parse(picture.as_str())?.format(number.floor())?)
    }

    pub(super) fn parse_integer(&self, arguments: &mut Arguments<'a>) -> Result<Value<'a>> {
        let (Some(text), Some(picture)) = (arguments.text(0), arguments.text(1)) else {
            return Ok(Value::Undefined);
        };
        self.meter.step(picture.as_str().len() + text.as_str().len())?;
        let format = IntegerFormat::parse(picture.as_str())?;
        Ok(format.read(text.as_str())?.filter(|number| number.is_finite()).map_or(Value::Undefined, Value::Number))
    }
}
