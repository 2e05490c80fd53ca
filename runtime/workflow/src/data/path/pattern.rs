//! Regular expressions of filters.
//!
//! They are matched without backtracking: the time is bounded by the product of the sizes of the program and of the text. The price of a match, in visits, follows that
//! bound: see [`Pattern::price`]. As in Jayway JsonPath a pattern has to match all of a text; as in Java, `\d`, `\w` and letter case are those of ASCII.

use regex_lite::{Regex, RegexBuilder};

use crate::data::limits::{REGEX_BYTES_MAX, REGEX_PROGRAM_BYTES, REGEX_WEIGHT_FACTOR};

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// Visits that a byte of text costs.
    weight: usize,
}

impl Pattern {
    /// Compiles what is between the slashes, with the flags after them: `i`, `m`, `s`, `x`; `d` and `u` change nothing here.
    ///
    /// # Errors
    ///
    /// In a sentence: what is wrong with the expression, or that it is too large.
    pub(super) fn new(expression: &str, flags: &str) -> Result<Pattern, String> {
        if expression.len() > REGEX_BYTES_MAX {
            return Err(format!("the regular expression is longer than {REGEX_BYTES_MAX} bytes"));
        }
        let mut letters = String::new();
        for flag in flags.chars() {
            match flag {
                'i' | 'm' | 's' | 'x' => letters.push(flag),
                'd' | 'u' => {}
                _ => return Err(format!("`{flag}` is no flag of regular expressions here; use i, m, s or x")),
            }
        }
        // Alone first, so that its parentheses are its own.
        let alone = format!("(?{letters})");
        let alone = if letters.is_empty() { expression.to_owned() } else { alone + expression };
        let [.., largest] = REGEX_PROGRAM_BYTES;
        RegexBuilder::new(&alone).size_limit(largest).build().map_err(unusable)?;
        // The flags hold for the expression alone. The line break ends a comment of the flag x.
        let whole =
            if letters.contains('x') { format!("^(?{letters}:{expression}\n)$") } else { format!("^(?{letters}:{expression})$") };
        let mut weight = 1;
        for size_limit in REGEX_PROGRAM_BYTES {
            if let Ok(regex) = RegexBuilder::new(&whole).size_limit(size_limit).build() {
                return Ok(Pattern { regex, weight });
            }
            weight *= REGEX_WEIGHT_FACTOR;
        }
        Err(format!("the regular expression compiles to more than {largest} bytes"))
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// What matching such a text costs, in visits.
    pub(super) fn price(&self, text: &str) -> usize {
        text.len().saturating_mul(self.weight)
    }
}

fn unusable(error: regex_lite::Error) -> String {
    format!("the regular expression cannot be used: {error}; look-around and back references are not supported")
}
