//! Pictures of dates and times (XPath and XQuery Functions and Operators 3.1, 9.8.4).

use super::integer::{Case, IntegerFormat, Primary};
use crate::error::{Error, Result};

/// Characters of a picture: they bound what is made of it.
const PICTURE_MAX: usize = 10_000;
/// Digits or characters of one component.
const WIDTH_MAX: usize = 1000;

pub(super) enum Part {
    Literal(String),
    Marker(Marker),
}

pub(super) struct Marker {
    /// The letter of the component.
    pub(super) component: char,
    /// How its name is written, if its name is.
    pub(super) names: Option<Case>,
    pub(super) width_max: Option<usize>,
    /// How its number is written, if its number is.
    pub(super) integer: Option<IntegerFormat>,
    /// The last digits of a year that are written.
    pub(super) year_digits: Option<usize>,
    /// Whether UTC is written as `Z`.
    pub(super) is_traditional: bool,
}

/// The size of groups whose separators are at these positions, if it is always the same.
pub(super) fn regular_grouping(positions: &[usize]) -> Option<usize> {
    let divisor = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let size = positions.iter().copied().reduce(divisor).filter(|&size| size > 0)?;
    // Positions are in order, so that each is the next multiple.
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    (sorted.len() == positions.len() && sorted.iter().zip(1..).all(|(&position, index)| position == index * size)).then_some(size)
}

pub(super) fn parse(picture: &str) -> Result<Vec<Part>> {
    if picture.len() > PICTURE_MAX {
        return Err(Error::new("U1001").with_value(format!("{PICTURE_MAX} characters of a picture")));
    }
    let mut parts: Vec<Part> = Vec::new();
    let mut literal = String::new();
    let mut rest = picture;
    while let Some(char) = rest.chars().next() {
        rest = rest.get(char.len_utf8()..).unwrap_or_default();
        if char == ']' && rest.starts_with(']') {
            rest = rest.get(1..).unwrap_or_default();
        } else if char == '[' && !rest.starts_with('[') {
            let Some((marker, after)) = rest.split_once(']') else {
                return Err(Error::new("D3135"));
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            let marker = marker.split_whitespace().collect::<String>();
            let marker = self::marker(&marker)?;
            if let (Some(Part::Marker(Marker { integer: Some(previous), .. })), Some(_)) = (parts.last_mut(), &marker.integer) {
                previous.parse_width = previous.decimal().map(|decimal| decimal.mandatory_digits);
            }
            parts.push(Part::Marker(marker));
            rest = after;
            continue;
        } else if char == '[' {
            rest = rest.get(1..).unwrap_or_default();
        }
        literal.push(char);
    }
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Ok(parts)
}

/// The presentation of a component for which the picture gives none.
fn default_presentation(component: char) -> Option<&'static str> {
    match component {
        'Y' | 'M' | 'D' | 'd' | 'W' | 'w' | 'X' | 'x' | 'H' | 'h' | 'f' => Some("1"),
        'F' | 'P' | 'C' | 'E' => Some("n"),
        'm' | 's' => Some("01"),
        'Z' | 'z' => Some("01:01"),
        _ => None,
    }
}

fn marker(text: &str) -> Result<Marker> {
    let component = text.chars().next().unwrap_or(' ');
    let rest = text.get(component.len_utf8()..).unwrap_or_default();
    let (presentation, widths) = match rest.rsplit_once(',') {
        Some((presentation, widths)) => (presentation, Some(widths)),
        None => (rest, None),
    };
    let (width_min, width_max) = widths.map_or((None, None), |widths| {
        let (min, max) = widths.split_once('-').unwrap_or((widths, "*"));
        (min.parse::<usize>().ok(), max.parse::<usize>().ok())
    });
    let (width_min, width_max) = (width_min.map(|width| width.min(WIDTH_MAX)), width_max.map(|width| width.min(WIDTH_MAX)));
    let (presentation, modifier) = match presentation.chars().last() {
        Some(last @ ('a' | 't' | 'c' | 'o')) if presentation.chars().count() > 1 => {
            (presentation.get(..presentation.len() - 1).unwrap_or_default(), Some(last))
        }
        _ => (presentation, None),
    };
    let presentation = match default_presentation(component) {
        Some(default) if presentation.is_empty() => default,
        None if presentation.is_empty() => return Err(Error::new("D3132").with_value(component)),
        _ => presentation,
    };
    let is_traditional = modifier == Some('t');
    let mut marker = Marker { component, names: None, width_max, integer: None, year_digits: None, is_traditional };
    let mut chars = presentation.chars();
    match (chars.next(), chars.next()) {
        (Some('n'), _) => marker.names = Some(Case::Lower),
        (Some('N'), Some('n')) => marker.names = Some(Case::Title),
        (Some('N'), _) => marker.names = Some(Case::Upper),
        _ if "YMDdFWwXxHhmsf".contains(component) => {
            let mut integer = IntegerFormat::parse(presentation)?;
            integer.is_ordinal = modifier == Some('o');
            set_width(&mut integer, width_min, &mut marker);
            marker.integer = Some(integer);
        }
        _ if matches!(component, 'Z' | 'z') => marker.integer = Some(IntegerFormat::parse(presentation)?),
        _ if default_presentation(component).is_none() => return Err(Error::new("D3132").with_value(component)),
        _ => {}
    }
    Ok(marker)
}

fn set_width(integer: &mut IntegerFormat, width_min: Option<usize>, marker: &mut Marker) {
    let mut digits = 0;
    if let Primary::Decimal(decimal) = &mut integer.primary {
        decimal.mandatory_digits = decimal.mandatory_digits.max(width_min.unwrap_or(0));
        if let ('Y', Some(max)) = (marker.component, marker.width_max) {
            decimal.mandatory_digits = max;
        }
        digits = decimal.mandatory_digits + decimal.optional_digits;
    }
    if marker.component == 'Y' {
        marker.year_digits = marker.width_max.or((digits >= 2).then_some(digits));
    }
}
