//! A place in a text that is parsed: what the parsers of paths and of intrinsic functions share.

/// A text, and how much of it is read. Positions are byte offsets.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'s> {
    text: &'s str,
    at: usize,
}

/// A mistake in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// The byte offset at which it is.
    pub(crate) position: usize,
    pub(crate) message: String,
}

impl<'s> Cursor<'s> {
    pub(crate) const fn new(text: &'s str) -> Cursor<'s> {
        Cursor { text, at: 0 }
    }

    /// How much is read, in bytes.
    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    /// What is not read yet.
    pub(crate) fn rest(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// What was read since that position.
    pub(crate) fn since(&self, start: usize) -> &'s str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub(crate) fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads that text, if it is next.
    pub(crate) fn eat(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    /// Reads characters as long as they are such.
    pub(crate) fn take_while(&mut self, mut is_such: impl FnMut(char) -> bool) -> &'s str {
        let rest = self.rest();
        let length = rest.find(|next| !is_such(next)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    pub(crate) fn skip_space(&mut self) {
        self.take_while(|next| next.is_ascii_whitespace());
    }

    /// Reads that text, or says what was expected.
    pub(crate) fn expect(&mut self, expected: &str, what: &str) -> Result<(), Mistake> {
        if self.eat(expected) { Ok(()) } else { Err(self.unexpected(what)) }
    }

    /// A mistake here.
    pub(crate) fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake { position: self.at, message: message.into() }
    }

    /// What is next is not what was expected.
    pub(crate) fn unexpected(&self, expected: &str) -> Mistake {
        match self.peek() {
            Some(next) => self.mistake(format!("expected {expected}, found `{}`", next.escape_debug())),
            None => self.mistake(format!("expected {expected}, but the text ends here")),
        }
    }

    /// Reads a number of JSON.
    pub(crate) fn number(&mut self) -> Result<serde_json::Number, Mistake> {
        let start = self.clone();
        let text = self.take_while(|next| next.is_ascii_digit() || matches!(next, '-' | '+' | '.' | 'e' | 'E'));
        serde_json::from_str(text).map_err(|_| start.mistake(format!("`{text}` is not a number of JSON")))
    }
}
