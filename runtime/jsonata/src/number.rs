//! Numbers as ECMAScript writes and rounds them (ECMA-262, Number::toString and Math.round).

/// The shortest text that gives the number again, such as `1e+21`.
pub(crate) fn to_text(number: f64) -> String {
    if number == 0.0 {
        return String::from("0");
    }
    if number.abs() < 1e15 && number.trunc() == number {
        return (number as i64).to_string();
    }
    if !number.is_finite() {
        return String::from(if number.is_nan() {
            "NaN"
        } else if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        });
    }
    let (digits, exponent) = shortest(number.abs());
    let count = digits.len() as i32;
    let sign = if number < 0.0 { "-" } else { "" };
    let (first, rest) = digits.split_at(1);
    // The decimal point is after so many digits.
    let point = exponent + 1;
    match point {
        _ if count <= point && point <= 21 => format!("{sign}{digits}{}", "0".repeat((point - count) as usize)),
        1..=21 => {
            let (whole, part) = digits.split_at(point as usize);
            format!("{sign}{whole}.{part}")
        }
        -5..=0 => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        _ => {
            let part = if rest.is_empty() { String::new() } else { format!(".{rest}") };
            let exponent_sign = if exponent < 0 { '-' } else { '+' };
            format!("{sign}{first}{part}e{exponent_sign}{}", exponent.unsigned_abs())
        }
    }
}

/// The shortest digits, and the power of ten of the first of them.
fn shortest(number: f64) -> (String, i32) {
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.replace('.', ""), exponent.parse().unwrap_or(0))
}

/// The number with 15 significant digits, which is what strings are made of.
pub(crate) fn to_precision(number: f64) -> f64 {
    if number.trunc() == number { number } else { format!("{number:.14e}").parse().unwrap_or(number) }
}

/// Moves the decimal point, without the error that a multiplication would make.
fn shift(number: f64, places: i32) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or(0).saturating_add(places);
    format!("{mantissa}e{exponent}").parse().unwrap_or(number)
}

/// Rounds to so many decimal places, halves to the even neighbour.
pub(crate) fn round(number: f64, places: i32) -> f64 {
    let shifted = if places == 0 { number } else { shift(number, places) };
    if !shifted.is_finite() {
        return number; // it has no digits so far to the right
    }
    let rounded = shifted.round_ties_even();
    let result = if places == 0 { rounded } else { shift(rounded, places.saturating_neg()) };
    if result == 0.0 { 0.0 } else { result }
}

/// An integer in a radix from 2 to 36.
pub(crate) fn in_radix(number: f64, radix: u32) -> String {
    let mut rest = number.abs().trunc();
    let mut digits = Vec::new();
    // A double has at most 1,024 binary digits.
    while digits.len() < 1100 {
        let digit = (rest % f64::from(radix)) as u32;
        digits.push(char::from_digit(digit, radix).unwrap_or('0'));
        rest = ((rest - f64::from(digit)) / f64::from(radix)).trunc();
        if rest < 1.0 {
            break;
        }
    }
    if number <= -1.0 {
        digits.push('-');
    }
    digits.iter().rev().collect()
}
