//! Parses filters: what is between `[?(` and `)]`. `||` binds weaker than `&&`, and that weaker than `!`.

use serde_json::{Map, Value};

use super::parse::{Parser, Place};
use super::pattern::Pattern;
use super::syntax::{Comparison, Filter, Operand, Operator};
use crate::data::cursor::Mistake;

impl<'s> Parser<'s> {
    pub(super) fn filter(&mut self) -> Result<Filter, Mistake> {
        let mut parts = vec![self.all_of()?];
        loop {
            self.cursor.skip_space();
            if !self.cursor.eat("||") {
                return Ok(joined(parts, Filter::Or));
            }
            parts.push(self.all_of()?);
        }
    }

    fn all_of(&mut self) -> Result<Filter, Mistake> {
        let mut parts = vec![self.condition()?];
        loop {
            self.cursor.skip_space();
            if !self.cursor.eat("&&") {
                return Ok(joined(parts, Filter::And));
            }
            parts.push(self.condition()?);
        }
    }

    fn condition(&mut self) -> Result<Filter, Mistake> {
        self.cursor.skip_space();
        if self.cursor.eat("!") {
            return Ok(Filter::Not(Box::new(self.deeper(Parser::condition)?)));
        }
        if self.cursor.eat("(") {
            let filter = self.deeper(Parser::filter)?;
            self.cursor.skip_space();
            self.cursor.expect(")", "`)`, `&&` or `||`")?;
            return Ok(filter);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Filter, Mistake> {
        let start = self.cursor.clone();
        let left = self.operand()?;
        self.cursor.skip_space();
        if self.cursor.eat("=~") {
            return Ok(Filter::Match(Box::new((left, self.pattern()?))));
        }
        let Some(operator) = self.operator() else {
            return match left {
                Operand::Query(query) => Ok(Filter::Exists(query)),
                Operand::Literal(_) => Err(start.mistake("a value alone is no condition; compare it with a path")),
            };
        };
        let right_start = self.cursor.clone();
        let right = self.operand()?;
        match (operator, &right) {
            (Operator::Size, Operand::Literal(value)) if !value.is_number() => {
                Err(right_start.mistake("`size` is followed by a number"))
            }
            (Operator::Empty, Operand::Literal(value)) if !value.is_boolean() => {
                Err(right_start.mistake("`empty` is followed by true or false"))
            }
            _ => Ok(Filter::Compare(Box::new(Comparison { left, operator, right }))),
        }
    }

    fn operator(&mut self) -> Option<Operator> {
        if let Some((_, operator)) = Operator::SIGNS.into_iter().find(|(sign, _)| self.cursor.eat(sign)) {
            return Some(operator);
        }
        let mut ahead = self.cursor.clone();
        let word = ahead.take_while(|next| next.is_ascii_alphabetic());
        let (_, operator) = Operator::WORDS.into_iter().find(|(known, _)| word.eq_ignore_ascii_case(known))?;
        self.cursor = ahead;
        Some(operator)
    }

    /// `/expression/flags`
    fn pattern(&mut self) -> Result<Pattern, Mistake> {
        self.cursor.skip_space();
        let start = self.cursor.clone();
        self.cursor.expect("/", "a regular expression between slashes")?;
        let mut expression = String::new();
        loop {
            match self.cursor.bump() {
                None => return Err(start.mistake("the regular expression is not closed")),
                Some('/') => break,
                Some('\\') if self.cursor.eat("/") => expression.push('/'),
                Some('\\') => {
                    expression.push('\\');
                    expression.extend(self.cursor.bump());
                }
                Some(next) => expression.push(next),
            }
        }
        let flags = self.cursor.take_while(|next| next.is_ascii_alphabetic());
        Pattern::new(&expression, flags).map_err(|message| start.mistake(message))
    }

    /// A path or a literal value.
    pub(super) fn operand(&mut self) -> Result<Operand, Mistake> {
        self.cursor.skip_space();
        match self.cursor.peek() {
            Some('$' | '@') => self.deeper(|parser| parser.query(Place::Inside)).map(Operand::Query),
            _ => self.literal().map(Operand::Literal),
        }
    }

    fn literal(&mut self) -> Result<Value, Mistake> {
        self.cursor.skip_space();
        match self.cursor.peek() {
            Some('\'' | '"') => self.string().map(Value::String),
            Some('[') => self.deeper(Parser::list),
            Some('{') => self.deeper(Parser::object),
            Some('-' | '0'..='9') => self.cursor.number().map(Value::Number),
            _ => {
                let start = self.cursor.clone();
                match self.cursor.take_while(|next| next.is_ascii_alphanumeric() || next == '_') {
                    "true" => Ok(Value::Bool(true)),
                    "false" => Ok(Value::Bool(false)),
                    "null" => Ok(Value::Null),
                    _ => Err(start.unexpected("a path, a quoted string, a number, true, false, null, `[` or `{`")),
                }
            }
        }
    }

    fn list(&mut self) -> Result<Value, Mistake> {
        self.cursor.expect("[", "`[`")?;
        let mut items = Vec::new();
        self.cursor.skip_space();
        if self.cursor.eat("]") {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.literal()?);
            self.cursor.skip_space();
            if self.cursor.eat("]") {
                return Ok(Value::Array(items));
            }
            self.cursor.expect(",", "`,` or `]`")?;
        }
    }

    fn object(&mut self) -> Result<Value, Mistake> {
        self.cursor.expect("{", "`{`")?;
        let mut members = Map::new();
        self.cursor.skip_space();
        if self.cursor.eat("}") {
            return Ok(Value::Object(members));
        }
        loop {
            self.cursor.skip_space();
            let name = self.string()?;
            self.cursor.skip_space();
            self.cursor.expect(":", "`:`")?;
            members.insert(name, self.literal()?);
            self.cursor.skip_space();
            if self.cursor.eat("}") {
                return Ok(Value::Object(members));
            }
            self.cursor.expect(",", "`,` or `}`")?;
        }
    }

    /// A quoted string, with the escapes of JSON.
    fn string(&mut self) -> Result<String, Mistake> {
        let start = self.cursor.clone();
        let quote = match self.cursor.bump() {
            Some(quote @ ('\'' | '"')) => quote,
            _ => return Err(start.unexpected("a quoted string")),
        };
        let mut text = String::new();
        loop {
            match self.cursor.bump() {
                None => return Err(start.mistake("the string is not closed")),
                Some(next) if next == quote => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(next) => text.push(next),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, Mistake> {
        let start = self.cursor.clone();
        Ok(match self.cursor.bump() {
            None => return Err(start.mistake("the string is not closed")),
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => return self.unicode(),
            Some(next) => next,
        })
    }

    /// What follows `\u`: four hexadecimal digits, or twice that for a pair of surrogates.
    fn unicode(&mut self) -> Result<char, Mistake> {
        let start = self.cursor.clone();
        let invalid = || start.mistake("`\\u` is followed by four hexadecimal digits of a character");
        let first = self.unit().ok_or_else(invalid)?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.cursor.eat("\\u") {
            units.push(self.unit().ok_or_else(invalid)?);
        }
        let text = String::from_utf16(&units).map_err(|_| invalid())?;
        text.chars().next().ok_or_else(invalid)
    }

    fn unit(&mut self) -> Option<u16> {
        let digits = self.cursor.rest().get(..4).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        self.cursor.eat(digits);
        u16::from_str_radix(digits, 16).ok()
    }
}

fn joined(mut parts: Vec<Filter>, join: impl FnOnce(Box<[Filter]>) -> Filter) -> Filter {
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        (last, _) => join(parts.into_iter().chain(last).collect()),
    }
}
