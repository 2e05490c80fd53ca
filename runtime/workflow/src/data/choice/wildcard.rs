//! Patterns of `StringMatches`: `*` stands for any characters, also none; `\*` is a star, and `\\` a backslash.

use std::fmt::{Display, Formatter, Result as Written};

/// A parsed pattern.
#[derive(Clone, Debug)]
pub(super) struct Wildcard {
    /// What the text begins with.
    first: Box<str>,
    /// What follows, each part after any characters. Without parts the pattern has no `*`.
    rest: Box<[Box<str>]>,
}

impl Wildcard {
    /// # Errors
    ///
    /// In a sentence: a backslash stands before something else.
    pub(super) fn parse(pattern: &str) -> Result<Wildcard, String> {
        let mut parts = Vec::new();
        let mut part = String::new();
        let mut letters = pattern.chars();
        while let Some(next) = letters.next() {
            match next {
                '*' => parts.push(std::mem::take(&mut part).into_boxed_str()),
                '\\' => match letters.next() {
                    Some(escaped @ ('*' | '\\')) => part.push(escaped),
                    _ => {
                        return Err(
                            "in a pattern a backslash is followed by `*` or another backslash (in JSON: \"\\\\*\")".into()
                        );
                    }
                },
                _ => part.push(next),
            }
        }
        parts.push(part.into_boxed_str());
        let mut parts = parts.into_iter();
        Ok(Wildcard { first: parts.next().unwrap_or_default(), rest: parts.collect() })
    }

    /// Whether all of a text matches. Each part is looked for once, from left to right.
    pub(super) fn matches(&self, text: &str) -> bool {
        let Some((last, between)) = self.rest.split_last() else { return text == &*self.first };
        let Some(mut left) = text.strip_prefix(&*self.first) else { return false };
        for part in between {
            let Some((_, after)) = left.split_once(&**part) else { return false };
            left = after;
        }
        left.ends_with(&**last)
    }
}

/// The pattern with its stars; what was escaped is not escaped again.
impl Display for Wildcard {
    fn fmt(&self, out: &mut Formatter<'_>) -> Written {
        out.write_str(&self.first)?;
        self.rest.iter().try_for_each(|part| write!(out, "*{part}"))
    }
}
