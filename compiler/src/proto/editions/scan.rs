//! The source of a file of an edition, respelled for a parser of proto3.

use std::ops::Range;

/// What a file says at its head in place of `syntax`.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::proto) struct Edition<'s> {
    /// Where it begins.
    pub offset: usize,
    pub name: &'s str,
    /// From there to the end of its name.
    range: Range<usize>,
}

/// Something that an edition does not have.
#[derive(Debug)]
pub(super) struct Wrong {
    pub offset: usize,
    pub message: String,
}

/// The option that stands for `default`, which the parser does not take in proto3; and for one with a name behind a minus (`-inf`), which it takes in
/// no other option. No option of fields is called so.
pub(super) const DEFAULT: &str = "_efault";
pub(super) const NEGATIVE: &str = "_egated";

/// Line and column of an offset, from 1.
pub(super) fn position(source: &str, offset: usize) -> (u32, u32) {
    let before = &source[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
    (count(before.matches('\n').count()), count(offset - line_start))
}

/// The edition that a file names: `edition = "2023";`, as the first thing in it.
pub(in crate::proto) fn edition(source: &str) -> Option<Edition<'_>> {
    let mut tokens = Tokens { source, at: 0 };
    let word = tokens.next().filter(|token| token.is_word(source, "edition"))?;
    tokens.next().filter(|token| token.kind == Kind::Other(b'='))?;
    let name = tokens.next().filter(|token| token.kind == Kind::Text)?;
    let offset = word.range.start;
    Some(Edition { offset, name: source.get(name.range.start + 1..name.range.end - 1)?, range: offset..name.range.end })
}

/// The same file for a parser of proto3.
///
/// # Errors
/// Where it has what an edition has not: labels other than `repeated`, groups, reserved names in quotes.
pub(super) fn respelled(source: &str) -> Result<String, Wrong> {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    if let Some(Edition { range, .. }) = edition(source) {
        const SYNTAX: &str = "syntax=\"proto3\"";
        let lines = source[range.clone()].matches('\n').count();
        let spaces = if lines == 0 { range.len().saturating_sub(SYNTAX.len()) } else { 0 };
        edits.push((range, format!("{SYNTAX}{}{}", "\n".repeat(lines), " ".repeat(spaces))));
    }
    let mut tokens = Tokens { source, at: 0 };
    while let Some(statement) = statement(&mut tokens) {
        respell(source, &statement, &mut edits)?;
    }
    let (mut text, mut at) = (String::with_capacity(source.len() + 16), 0);
    for (range, new) in edits {
        text.push_str(&source[at..range.start]);
        text.push_str(&new);
        at = range.end;
    }
    text.push_str(&source[at..]);
    Ok(text)
}

/// What stands up to `;`, `{` or `}`, that included.
fn statement(tokens: &mut Tokens<'_>) -> Option<Vec<Token>> {
    let mut statement: Vec<Token> = Vec::new();
    // Brackets, and braces in them or behind `=`: values of options.
    let (mut brackets, mut braces) = (0_usize, 0_usize);
    for token in tokens.by_ref() {
        let begins_value = statement.last().is_some_and(|last| last.kind == Kind::Other(b'='));
        match token.kind {
            Kind::Other(b'{') if begins_value || brackets > 0 || braces > 0 => braces += 1,
            Kind::Other(b'}') if braces > 0 => braces -= 1,
            Kind::Other(b'[') => brackets += 1,
            Kind::Other(b']') => brackets = brackets.saturating_sub(1),
            Kind::Other(b';' | b'{' | b'}') if braces == 0 => {
                statement.push(token);
                return Some(statement);
            }
            _ => {}
        }
        // The values of options are the parser's, but for defaults, which have no braces.
        if braces == 0 {
            statement.push(token);
        }
    }
    (!statement.is_empty()).then_some(statement)
}

fn respell(source: &str, statement: &[Token], edits: &mut Vec<(Range<usize>, String)>) -> Result<(), Wrong> {
    let is_word = |at: usize, word: &str| statement.get(at).is_some_and(|token: &Token| token.is_word(source, word));
    let kind = |at: usize| statement.get(at).map(|token| token.kind);
    let [first, ..] = statement else { return Ok(()) };
    let wrong = |token: &Token, message: &str| Wrong { offset: token.range.start, message: message.to_owned() };
    if is_word(0, "reserved") && kind(1) != Some(Kind::Other(b'=')) {
        return reserved(source, &statement[1..], edits);
    }
    if matches!(kind(1), Some(Kind::Word | Kind::Other(b'.'))) {
        if is_word(0, "optional") {
            let message = "the label `optional` does not exist in editions: a field has presence by default; take the label away";
            return Err(wrong(first, message));
        }
        if is_word(0, "required") {
            let message = "the label `required` does not exist in editions; write [features.field_presence = LEGACY_REQUIRED]";
            return Err(wrong(first, message));
        }
    }
    let group = usize::from(is_word(0, "repeated"));
    let is_open = statement.last().is_some_and(|last| last.kind == Kind::Other(b'{'));
    if is_open && is_word(group, "group") && kind(group + 1) == Some(Kind::Word) {
        let message =
            "groups do not exist in editions; make it a message, and a field with [features.message_encoding = DELIMITED]";
        return Err(wrong(&statement[group], message));
    }
    defaults(source, statement, edits);
    Ok(())
}

/// Names become strings, as they are in proto3; numbers stay.
fn reserved(source: &str, rest: &[Token], edits: &mut Vec<(Range<usize>, String)>) -> Result<(), Wrong> {
    let is_names = rest.first().is_some_and(|token| token.is_identifier(source));
    for token in rest {
        let text = &source[token.range.clone()];
        match token.kind {
            Kind::Text => {
                let message = format!("reserved {text}: reserved names are identifiers in editions; take the quotes away");
                return Err(Wrong { offset: token.range.start, message: super::super::text::printable(&message) });
            }
            Kind::Word if is_names => edits.push((token.range.clone(), format!("\"{text}\""))),
            _ => {}
        }
    }
    Ok(())
}

/// `[default = ..]`, among the options of a field.
fn defaults(source: &str, statement: &[Token], edits: &mut Vec<(Range<usize>, String)>) {
    let mut brackets = 0_usize;
    for (at, token) in statement.iter().enumerate() {
        let kind = |at: usize| statement.get(at).map(|token| token.kind);
        match token.kind {
            Kind::Other(b'[') => brackets += 1,
            Kind::Other(b']') => brackets = brackets.saturating_sub(1),
            Kind::Word if brackets == 1 && token.is_word(source, "default") && kind(at + 1) == Some(Kind::Other(b'=')) => {
                let begins = at.checked_sub(1).is_some_and(|before| matches!(kind(before), Some(Kind::Other(b'[' | b','))));
                if !begins {
                    continue;
                }
                let minus = statement.get(at + 2).filter(|token| token.kind == Kind::Other(b'-'));
                match minus.filter(|_| statement.get(at + 3).is_some_and(|word| word.is_identifier(source))) {
                    Some(minus) => {
                        edits.push((token.range.clone(), NEGATIVE.to_owned()));
                        edits.push((minus.range.clone(), " ".to_owned()));
                    }
                    None => edits.push((token.range.clone(), DEFAULT.to_owned())),
                }
            }
            _ => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Letters, digits and `_`: an identifier, or a number.
    Word,
    /// In quotes, which are ASCII.
    Text,
    /// One byte.
    Other(u8),
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    range: Range<usize>,
}

impl Token {
    fn is_word(&self, source: &str, word: &str) -> bool {
        self.kind == Kind::Word && source.get(self.range.clone()) == Some(word)
    }

    /// Whether it is a word and no number.
    fn is_identifier(&self, source: &str) -> bool {
        self.kind == Kind::Word && !source.as_bytes()[self.range.start].is_ascii_digit()
    }
}

/// The tokens of a source, as far as they matter here; without comments. Nothing is wrong for it: that is the parser's business.
struct Tokens<'s> {
    source: &'s str,
    at: usize,
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let bytes = self.source.as_bytes();
        let start = skipped(self.source, self.at);
        let first = *bytes.get(start)?;
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let rest = &bytes[start + 1..];
        let (kind, more) = match first {
            quote @ (b'"' | b'\'') => match text_end(rest, quote) {
                Some(end) => (Kind::Text, end),
                None => (Kind::Other(quote), 0),
            },
            first if is_word(&first) => (Kind::Word, rest.iter().take_while(|byte| is_word(byte)).count()),
            other => (Kind::Other(other), 0),
        };
        self.at = start + 1 + more;
        Some(Token { kind, range: start..self.at })
    }
}

/// Behind the quote that ends a text; none where its line has none.
fn text_end(bytes: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'\n' => return None,
            b'\\' => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Where the first thing that is neither space nor comment stands.
fn skipped(source: &str, mut at: usize) -> usize {
    loop {
        // Between bytes of one character there is neither.
        let Some(rest) = source.get(at..) else { return at };
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.starts_with("//") {
            at += trimmed.find('\n').unwrap_or(trimmed.len());
        } else if let Some(comment) = trimmed.strip_prefix("/*") {
            at += 2 + comment.find("*/").map_or(comment.len(), |end| end + 2);
        } else {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editions_are_seen() {
        let found = |source: &'static str| edition(source).map(|edition| (position(source, edition.offset), edition.name));
        assert_eq!(found("edition = \"2023\";"), Some(((1, 1), "2023")));
        assert_eq!(found("// edition\n/* a\n*/ edition='2024';"), Some(((3, 4), "2024")));
        for source in
            ["", "syntax = \"proto3\";", "edition", "edition =", "/* edition = \"2023\"", "edition = 2023;", "edition = \"2"]
        {
            assert_eq!(found(source), None, "{source}");
        }
    }

    #[test]
    fn what_is_respelled_stays_where_it_was() {
        for (source, expected) in [
            ("edition = \"2023\"; // a", "syntax=\"proto3\" ; // a"),
            ("edition\n=\n'2023';\nmessage M {}", "syntax=\"proto3\"\n\n;\nmessage M {}"),
            ("message M { int32 default = 1; }", "message M { int32 default = 1; }"),
            ("int32 x = 1 [default = 3];", "int32 x = 1 [_efault = 3];"),
            (
                "X x = 1 [(default) = 3, default = Y, a = {default = 1}];",
                "X x = 1 [(default) = 3, _efault = Y, a = {default = 1}];",
            ),
            ("float x = 1 [default = -inf, a = 1];", "float x = 1 [_egated =  inf, a = 1];"),
            ("float x = 1 [default = -1];", "float x = 1 [_efault = -1];"),
            ("reserved a, b /* c */;", "reserved \"a\", \"b\" /* c */;"),
            ("reserved 1 to max, 3;", "reserved 1 to max, 3;"),
            ("enum E { reserved = 0; optional = 1; }", "enum E { reserved = 0; optional = 1; }"),
            ("option (a) = { optional x; reserved y };", "option (a) = { optional x; reserved y };"),
            ("message M { // reserved x;\n}", "message M { // reserved x;\n}"),
            ("string s = 1 [a = \"; reserved x\"];", "string s = 1 [a = \"; reserved x\"];"),
            ("\u{e4} \u{e4}; reserved a;", "\u{e4} \u{e4}; reserved \"a\";"),
            ("option a = '", "option a = '"),
        ] {
            assert_eq!(respelled(source).expect(source), expected);
        }
    }

    #[test]
    fn what_editions_do_not_have_is_found() {
        for (source, offset) in [
            ("message M { optional int32 x = 1; }", 12),
            ("message M { required .a.B x = 1; }", 12),
            ("message M { repeated group G = 1 { } }", 21),
            ("oneof o { group G = 1 { } }", 10),
            ("reserved a, \"b\";", 12),
        ] {
            assert_eq!(respelled(source).expect_err(source).offset, offset, "{source}");
        }
    }
}
