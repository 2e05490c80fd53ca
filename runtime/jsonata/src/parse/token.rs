//! Source into tokens.

use crate::error::{Error, Result};
use crate::regex::Regex;

pub(crate) enum Token {
    Name(String),
    Variable(String),
    Text(String),
    Number(f64),
    Bool(bool),
    Null,
    Regex(Regex),
    /// One of [`OPERATORS`].
    Operator(&'static str),
    End,
}

/// Longest first, so that the first that fits is meant.
const OPERATORS: &[&str] = &[
    "..", ":=", "!=", ">=", "<=", "**", "~>", "?:", "??", ".", "[", "]", "{", "}", "(", ")", ",", "@", "#", ";", ":", "?", "+",
    "-", "*", "/", "%", "|", "=", "<", ">", "^", "&", "!", "~",
];

impl Token {
    /// What an error calls it.
    pub(crate) fn text(&self) -> String {
        match self {
            Token::Name(text) | Token::Variable(text) | Token::Text(text) => text.clone(),
            Token::Number(number) => crate::number::to_text(*number),
            Token::Bool(bool) => bool.to_string(),
            Token::Null => String::from("null"),
            Token::Regex(_) => String::from("/"),
            Token::Operator(operator) => String::from(*operator),
            Token::End => String::from("(end)"),
        }
    }
}

pub(crate) struct Tokens {
    source: Vec<char>,
    at: usize,
}

impl Tokens {
    pub(crate) fn new(source: &str) -> Tokens {
        Tokens { source: source.chars().collect(), at: 0 }
    }

    pub(crate) fn length(&self) -> u32 {
        self.source.len() as u32
    }

    /// The next token, and the characters before it. Where a value begins, `/` begins a regular expression.
    pub(crate) fn next(&mut self, is_value: bool) -> Result<(Token, u32)> {
        self.skip()?;
        let start = self.at as u32;
        let Some(char) = self.peek(0) else {
            return Ok((Token::End, start));
        };
        if is_value && char == '/' {
            self.at += 1;
            return Ok((Token::Regex(self.regex()?), start));
        }
        if let Some(operator) = self.operator() {
            self.at += operator.len(); // ASCII: characters are bytes
            return Ok((Token::Operator(operator), start));
        }
        let token = match char {
            '"' | '\'' => self.text(char)?,
            '0'..='9' => self.number()?,
            '`' => self.quoted_name()?,
            _ => self.name(),
        };
        Ok((token, start))
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.source.get(self.at + ahead).copied()
    }

    fn slice(&self, start: usize, end: usize) -> String {
        self.source.get(start..end).unwrap_or_default().iter().collect()
    }

    fn skip(&mut self) -> Result<()> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(' ' | '\t' | '\n' | '\r' | '\u{b}'), _) => self.at += 1,
                (Some('/'), Some('*')) => {
                    let start = self.at as u32;
                    self.at += 2;
                    while (self.peek(0), self.peek(1)) != (Some('*'), Some('/')) {
                        if self.peek(0).is_none() {
                            return Err(Error::new("S0106").at(start));
                        }
                        self.at += 1;
                    }
                    self.at += 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn operator(&self) -> Option<&'static str> {
        let fits = |operator: &&&str| operator.chars().enumerate().all(|(ahead, char)| self.peek(ahead) == Some(char));
        OPERATORS.iter().find(fits).copied()
    }

    fn text(&mut self, quote: char) -> Result<Token> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(char) = self.peek(0) else {
                return Err(Error::new("S0101").at(self.at as u32));
            };
            self.at += 1;
            match char {
                '\\' => text.push(self.escape()?),
                _ if char == quote => return Ok(Token::Text(text)),
                _ => text.push(char),
            }
        }
    }

    /// What an escape sequence stands for, after its backslash.
    fn escape(&mut self) -> Result<char> {
        let position = self.at as u32;
        let Some(char) = self.peek(0) else {
            return Err(Error::new("S0103").at(position).with_token(""));
        };
        self.at += 1;
        Ok(match char {
            '"' | '\\' | '/' => char,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let unit = self.hexadecimal()?;
                let mut units = vec![unit];
                if (0xd800..0xdc00).contains(&unit) && (self.peek(0), self.peek(1)) == (Some('\\'), Some('u')) {
                    self.at += 2;
                    units.push(self.hexadecimal()?);
                }
                let mut chars = char::decode_utf16(units);
                match (chars.next(), chars.next()) {
                    (Some(Ok(char)), None) => char,
                    _ => return Err(Error::new("S0104").at(position)),
                }
            }
            _ => return Err(Error::new("S0103").at(position).with_token(char)),
        })
    }

    fn hexadecimal(&mut self) -> Result<u16> {
        let digits = self.slice(self.at, self.at + 4);
        let is_hexadecimal = digits.len() == 4 && digits.chars().all(|char| char.is_ascii_hexdigit());
        let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| is_hexadecimal);
        self.at += 4;
        unit.ok_or_else(|| Error::new("S0104").at(self.at.saturating_sub(5) as u32))
    }

    fn number(&mut self) -> Result<Token> {
        let start = self.at;
        if self.peek(0) == Some('0') {
            self.at += 1;
        } else {
            self.digits();
        }
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|char| char.is_ascii_digit()) {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if self.peek(1 + sign).is_some_and(|char| char.is_ascii_digit()) {
                self.at += 1 + sign;
                self.digits();
            }
        }
        let text = self.slice(start, self.at);
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Token::Number(number)),
            _ => Err(Error::new("S0102").at(start as u32).with_token(text)),
        }
    }

    fn digits(&mut self) {
        while self.peek(0).is_some_and(|char| char.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn quoted_name(&mut self) -> Result<Token> {
        let start = self.at + 1;
        let rest = self.source.get(start..).unwrap_or_default();
        match rest.iter().position(|&char| char == '`') {
            Some(length) => {
                self.at = start + length + 1;
                Ok(Token::Name(self.slice(start, start + length)))
            }
            None => Err(Error::new("S0105").at(self.length())),
        }
    }

    fn name(&mut self) -> Token {
        let start = self.at;
        let ends = |char: char| matches!(char, ' ' | '\t' | '\n' | '\r' | '\u{b}') || ".[]{}(),@#;:?+-*/%|=<>^&!~".contains(char);
        while self.peek(0).is_some_and(|char| !ends(char)) {
            self.at += 1;
        }
        let name = self.slice(start, self.at);
        match name.as_str() {
            "or" => Token::Operator("or"),
            "in" => Token::Operator("in"),
            "and" => Token::Operator("and"),
            "true" => Token::Bool(true),
            "false" => Token::Bool(false),
            "null" => Token::Null,
            _ => match name.strip_prefix('$') {
                Some(variable) => Token::Variable(String::from(variable)),
                None => Token::Name(name),
            },
        }
    }

    /// A regular expression, after its first slash. Slashes within brackets do not end it.
    fn regex(&mut self) -> Result<Regex> {
        let start = self.at;
        let mut depth = 0_i64;
        let mut is_escaped = false;
        loop {
            let Some(char) = self.peek(0) else {
                return Err(Error::new("S0302").at(self.at as u32));
            };
            match char {
                '/' if depth == 0 && !is_escaped => break,
                '(' | '[' | '{' if !is_escaped => depth += 1,
                ')' | ']' | '}' if !is_escaped => depth -= 1,
                _ => {}
            }
            is_escaped = char == '\\' && !is_escaped;
            self.at += 1;
        }
        if self.at == start {
            return Err(Error::new("S0301").at(start as u32));
        }
        let pattern = self.slice(start, self.at);
        self.at += 1;
        let flags = self.at;
        while matches!(self.peek(0), Some('i' | 'm')) {
            self.at += 1;
        }
        let flags = self.slice(flags, self.at);
        Regex::new(&pattern, flags.contains('i'), flags.contains('m')).map_err(|error| error.at(start as u32))
    }
}
