//! Integers in English words, Roman numerals and letters.

const SMALL: [&str; 20] = [
    "Zero",
    "One",
    "Two",
    "Three",
    "Four",
    "Five",
    "Six",
    "Seven",
    "Eight",
    "Nine",
    "Ten",
    "Eleven",
    "Twelve",
    "Thirteen",
    "Fourteen",
    "Fifteen",
    "Sixteen",
    "Seventeen",
    "Eighteen",
    "Nineteen",
];
const SMALL_ORDINALS: [&str; 20] = [
    "Zeroth",
    "First",
    "Second",
    "Third",
    "Fourth",
    "Fifth",
    "Sixth",
    "Seventh",
    "Eighth",
    "Ninth",
    "Tenth",
    "Eleventh",
    "Twelfth",
    "Thirteenth",
    "Fourteenth",
    "Fifteenth",
    "Sixteenth",
    "Seventeenth",
    "Eighteenth",
    "Nineteenth",
];
const TENS: [&str; 10] = ["", "", "Twenty", "Thirty", "Forty", "Fifty", "Sixty", "Seventy", "Eighty", "Ninety"];
const MAGNITUDES: [(f64, &str); 4] = [(1e12, "Trillion"), (1e9, "Billion"), (1e6, "Million"), (1e3, "Thousand")];
const ROMAN: [(f64, &str); 13] = [
    (1000.0, "m"),
    (900.0, "cm"),
    (500.0, "d"),
    (400.0, "cd"),
    (100.0, "c"),
    (90.0, "xc"),
    (50.0, "l"),
    (40.0, "xl"),
    (10.0, "x"),
    (9.0, "ix"),
    (5.0, "v"),
    (4.0, "iv"),
    (1.0, "i"),
];
/// Above it, Roman numerals would be long rows of `m`.
pub(super) const ROMAN_MAX: f64 = 1e6;

/// An integer that is not negative in words.
pub(super) fn to_words(number: f64, is_ordinal: bool) -> String {
    let mut words = String::new();
    write(number, false, is_ordinal, &mut words);
    words
}

fn write(number: f64, follows: bool, is_ordinal: bool, words: &mut String) {
    let small = |number: f64| SMALL.get(number as usize).copied().unwrap_or_default();
    if number < 20.0 {
        words.push_str(if follows { " and " } else { "" });
        words.push_str(if is_ordinal { SMALL_ORDINALS.get(number as usize).copied().unwrap_or_default() } else { small(number) });
    } else if number < 100.0 {
        let (tens, rest) = (TENS.get((number / 10.0) as usize).copied().unwrap_or_default(), number % 10.0);
        words.push_str(if follows { " and " } else { "" });
        if rest > 0.0 {
            words.push_str(tens);
            words.push('-');
            write(rest, false, is_ordinal, words);
        } else if is_ordinal {
            words.push_str(tens.strip_suffix('y').unwrap_or(tens));
            words.push_str("ieth");
        } else {
            words.push_str(tens);
        }
    } else {
        words.push_str(if follows { ", " } else { "" });
        let rest = match MAGNITUDES.iter().find(|(magnitude, _)| number >= *magnitude) {
            Some((magnitude, name)) => {
                // What is above a trillion is in trillions of trillions: at most 25 of them in a double, whose error is not shown.
                let count = (number / magnitude).floor();
                write(count, false, false, words);
                words.push(' ');
                words.push_str(name);
                number - count * magnitude
            }
            None => {
                words.push_str(small((number / 100.0).floor()));
                words.push_str(" Hundred");
                number % 100.0
            }
        };
        if rest > 0.0 {
            write(rest, true, is_ordinal, words);
        } else if is_ordinal {
            words.push_str("th");
        }
    }
}

/// The regular expression of words that mean an integer.
pub(super) fn pattern() -> String {
    let tens = TENS.iter().filter(|name| !name.is_empty());
    let ordinals = tens.clone().map(|name| format!("{}ieth", name.strip_suffix('y').unwrap_or(name)));
    let names = MAGNITUDES.iter().map(|(_, name)| *name).chain(["Hundred"]);
    let magnitudes = names.flat_map(|name| [format!("{name}th"), String::from(name)]);
    // Longer words are before those with which they begin.
    let mut words: Vec<String> = SMALL.iter().chain(&SMALL_ORDINALS).chain(tens).map(|name| String::from(*name)).collect();
    words.extend(ordinals.chain(magnitudes));
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    format!("(?:{}|and|[-, ])+", words.join("|").to_lowercase())
}

/// The integer that words mean.
pub(super) fn of_words(text: &str) -> Option<f64> {
    let text = text.to_lowercase().replace(", ", " ").replace(" and ", " ").replace(['-', '\\'], " ");
    let mut segments: Vec<f64> = vec![0.0];
    for word in text.split_whitespace() {
        let value = word_value(word)?;
        let last = segments.pop().unwrap_or(0.0);
        if value < 100.0 {
            if last >= 1000.0 {
                segments.push(last);
                segments.push(value);
            } else {
                segments.push(last + value);
            }
        } else {
            segments.push(last * value);
        }
    }
    Some(segments.iter().sum())
}

fn word_value(word: &str) -> Option<f64> {
    let position = |words: &[&str]| words.iter().position(|known| known.to_lowercase() == word).map(|index| index as f64);
    if let Some(value) = position(&SMALL).or_else(|| position(&SMALL_ORDINALS)) {
        return Some(value);
    }
    let cardinal = word.strip_suffix("ieth").map(|stem| format!("{stem}y"));
    if let Some(tens) = TENS.iter().position(|known| {
        let known = known.to_lowercase();
        !known.is_empty() && (known == word || Some(&known) == cardinal.as_ref())
    }) {
        return Some(tens as f64 * 10.0);
    }
    let stem = word.strip_suffix("th").unwrap_or(word);
    if stem == "hundred" {
        return Some(100.0);
    }
    MAGNITUDES.iter().find(|(_, name)| name.to_lowercase() == stem).map(|(magnitude, _)| *magnitude)
}

/// A positive integer in lower-case Roman numerals.
pub(super) fn to_roman(number: f64) -> String {
    let mut rest = number;
    let mut roman = String::new();
    for (value, numeral) in ROMAN {
        while rest >= value {
            roman.push_str(numeral);
            rest -= value;
        }
    }
    roman
}

/// The integer that upper-case Roman numerals mean.
pub(super) fn of_roman(text: &str) -> Option<f64> {
    let (mut number, mut max) = (0.0, 1.0);
    for numeral in text.chars().rev() {
        let value = match numeral {
            'M' => 1000.0,
            'D' => 500.0,
            'C' => 100.0,
            'L' => 50.0,
            'X' => 10.0,
            'V' => 5.0,
            'I' => 1.0,
            _ => return None,
        };
        if value < max {
            number -= value;
        } else {
            max = value;
            number += value;
        }
    }
    Some(number)
}

/// A positive integer in letters: a to z, aa, ab and so on.
pub(super) fn to_letters(number: f64, first: char) -> String {
    let mut letters = Vec::new();
    let mut rest = number;
    while rest > 0.0 {
        letters.push(char::from(first as u8 + ((rest - 1.0) % 26.0) as u8));
        rest = ((rest - 1.0) / 26.0).floor();
    }
    letters.iter().rev().collect()
}

/// The integer that letters mean.
pub(super) fn of_letters(text: &str, first: char) -> f64 {
    text.chars().fold(0.0, |number, letter| number * 26.0 + f64::from(u32::from(letter)) - f64::from(u32::from(first)) + 1.0)
}
