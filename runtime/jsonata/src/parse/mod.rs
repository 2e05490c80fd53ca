//! Source into an [`Ast`]: tokens, then syntax by operator precedence (Pratt), then paths.

mod parents;
mod resolve;
pub(crate) mod syntax;
mod token;

use crate::ast::{Ast, Operator};
use crate::error::{Error, Result};
use crate::functions::Dialect;
use crate::limits::{Limits, NESTING_MAX};
use crate::signature::Signature;
use syntax::{Kind, Syntax};
use token::{Token, Tokens};

/// Parses an expression.
pub(crate) fn parse(source: &str, limits: &Limits, dialect: Dialect) -> Result<Ast> {
    if source.len() > limits.source && source.chars().count() > limits.source {
        return Err(Error::new("U1001").with_value(format!("{} characters", limits.source)));
    }
    let mut parser = Parser { tokens: Tokens::new(source), token: Token::End, position: 0, depth: 0 };
    parser.advance(true)?;
    let syntax = parser.expression(0)?;
    if !matches!(parser.token, Token::End) {
        return Err(Error::new("S0201").at(parser.position).with_token(parser.token.text()));
    }
    resolve::resolve(syntax, dialect)
}

struct Parser {
    tokens: Tokens,
    /// The token that is next.
    token: Token,
    position: u32,
    /// Nested calls of [`Parser::expression`].
    depth: u32,
}

/// How strongly an infix operator binds; 0 for what is none.
fn power(token: &Token) -> u32 {
    let Token::Operator(operator) = token else {
        return 0;
    };
    match *operator {
        "[" | "(" | "@" | "#" => 80,
        "." => 75,
        "{" => 70,
        "*" | "/" | "%" => 60,
        "+" | "-" | "&" => 50,
        "=" | "<" | ">" | "!=" | "<=" | ">=" | "in" | "~>" | "^" | "?:" | "??" => 40,
        "and" => 30,
        "or" => 25,
        "?" => 20,
        ":=" => 10,
        _ => 0,
    }
}

impl Parser {
    /// Takes the token, and reads the next one.
    fn advance(&mut self, is_value: bool) -> Result<Token> {
        let (token, position) = self.tokens.next(is_value)?;
        self.position = position;
        if let Token::Operator(operator @ ("!" | "~")) = token {
            return Err(Error::new("S0204").at(position).with_token(operator));
        }
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn is(&self, operator: &str) -> bool {
        matches!(self.token, Token::Operator(token) if token == operator)
    }

    /// Takes the operator that has to be next.
    fn expect(&mut self, operator: &'static str, is_value: bool) -> Result<()> {
        if self.is(operator) {
            self.advance(is_value)?;
            return Ok(());
        }
        let code = if matches!(self.token, Token::End) { "S0203" } else { "S0202" };
        Err(Error::new(code).at(self.position).with_token(self.token.text()).with_value(operator))
    }

    /// Takes the operator if it is next.
    fn accept(&mut self, operator: &'static str) -> Result<bool> {
        let is_next = self.is(operator);
        if is_next {
            self.advance(true)?;
        }
        Ok(is_next)
    }

    /// An expression of operators that bind more strongly than `minimum`.
    fn expression(&mut self, minimum: u32) -> Result<Syntax> {
        if self.depth >= NESTING_MAX {
            return Err(Error::new("U1001").at(self.position).with_value(format!("{NESTING_MAX} levels")));
        }
        self.depth += 1;
        let mut left = self.prefix()?;
        while minimum < power(&self.token) {
            left = self.infix(left)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn prefix(&mut self) -> Result<Syntax> {
        let position = self.position;
        let opens = matches!(self.token, Token::Operator("(" | "[" | "{" | "-" | "|"));
        let kind = match self.advance(opens)? {
            Token::Name(name) => Kind::Name(name),
            Token::Variable(name) => Kind::Variable(name),
            Token::Text(text) => Kind::Text(text),
            Token::Number(number) => Kind::Number(number),
            Token::Bool(bool) => Kind::Bool(bool),
            Token::Null => Kind::Null,
            Token::Regex(regex) => Kind::Regex(regex),
            Token::End => Kind::End,
            Token::Operator(operator) => match operator {
                "and" | "or" | "in" => Kind::Name(String::from(operator)),
                "-" => Kind::Negate(Box::new(self.expression(70)?)),
                "*" => Kind::Wildcard,
                "**" => Kind::Descendants,
                "%" => Kind::Parent,
                "(" => self.block()?,
                "[" => self.array()?,
                "{" => Kind::Object(self.pairs()?),
                "|" => self.transform()?,
                _ => return Err(Error::new("S0211").at(position).with_token(operator)),
            },
        };
        Syntax::new(kind, position)
    }

    fn infix(&mut self, left: Syntax) -> Result<Syntax> {
        let position = self.position;
        let power = power(&self.token);
        let Token::Operator(operator) = self.advance(true)? else {
            return Ok(left); // only operators have a power
        };
        let kind = match operator {
            "." => Kind::Map(Box::new(left), Box::new(self.expression(power)?)),
            "~>" => Kind::Apply(Box::new(left), Box::new(self.expression(power)?)),
            "??" => Kind::Coalesce(Box::new(left), Box::new(self.expression(0)?)),
            "?:" => Kind::Default(Box::new(left), Box::new(self.expression(0)?)),
            "?" => self.condition(left)?,
            ":=" => self.bind(left)?,
            "@" => Kind::Focus(Box::new(left), self.variable("@")?),
            "#" => Kind::Index(Box::new(left), self.variable("#")?),
            "{" => Kind::Group(Box::new(left), self.pairs()?),
            "^" => self.sort(left)?,
            "[" => return self.filter(left, position),
            "(" => self.call(left)?,
            _ => match Operator::of(operator) {
                Some(operator) => Kind::Binary(operator, Box::new(left), Box::new(self.expression(power)?)),
                None => return Err(Error::new("S0204").at(position).with_token(operator)),
            },
        };
        Syntax::new(kind, position)
    }

    fn block(&mut self) -> Result<Kind> {
        let mut parts = Vec::new();
        while !self.is(")") {
            parts.push(self.expression(0)?);
            if !self.accept(";")? {
                break;
            }
        }
        self.expect(")", false)?;
        Ok(Kind::Block(parts))
    }

    fn array(&mut self) -> Result<Kind> {
        let mut items = Vec::new();
        while !self.is("]") || !items.is_empty() {
            let item = self.expression(0)?;
            let position = self.position;
            items.push(if self.accept("..")? {
                Syntax::new(Kind::Binary(Operator::Range, Box::new(item), Box::new(self.expression(0)?)), position)?
            } else {
                item
            });
            if !self.accept(",")? {
                break;
            }
        }
        self.expect("]", false)?;
        Ok(Kind::Array(items))
    }

    fn pairs(&mut self) -> Result<Vec<(Syntax, Syntax)>> {
        let mut pairs = Vec::new();
        while !self.is("}") || !pairs.is_empty() {
            let key = self.expression(0)?;
            self.expect(":", true)?;
            pairs.push((key, self.expression(0)?));
            if !self.accept(",")? {
                break;
            }
        }
        self.expect("}", false)?;
        Ok(pairs)
    }

    fn transform(&mut self) -> Result<Kind> {
        let pattern = Box::new(self.expression(0)?);
        self.expect("|", true)?;
        let update = Box::new(self.expression(0)?);
        let deletion = if self.accept(",")? { Some(Box::new(self.expression(0)?)) } else { None };
        self.expect("|", false)?;
        Ok(Kind::Transform(pattern, update, deletion))
    }

    fn condition(&mut self, left: Syntax) -> Result<Kind> {
        let then = Box::new(self.expression(0)?);
        let otherwise = if self.accept(":")? { Some(Box::new(self.expression(0)?)) } else { None };
        Ok(Kind::Condition(Box::new(left), then, otherwise))
    }

    fn bind(&mut self, left: Syntax) -> Result<Kind> {
        match left.kind {
            Kind::Variable(name) => Ok(Kind::Bind(name, Box::new(self.expression(9)?))),
            _ => Err(Error::new("S0212").at(left.position).with_token(left.token())),
        }
    }

    fn variable(&mut self, operator: &'static str) -> Result<String> {
        let right = self.expression(80)?;
        match right.kind {
            Kind::Variable(name) => Ok(name),
            _ => Err(Error::new("S0214").at(right.position).with_token(operator)),
        }
    }

    fn sort(&mut self, left: Syntax) -> Result<Kind> {
        self.expect("(", true)?;
        let mut terms = Vec::new();
        loop {
            let is_descending = self.is(">");
            if is_descending || self.is("<") {
                self.advance(true)?;
            }
            terms.push((is_descending, self.expression(0)?));
            if !self.accept(",")? {
                break;
            }
        }
        self.expect(")", false)?;
        Ok(Kind::Sort(Box::new(left), terms))
    }

    fn filter(&mut self, mut left: Syntax, position: u32) -> Result<Syntax> {
        if self.is("]") {
            self.advance(false)?;
            let mut step = &mut left;
            while let Kind::Filter(..) = step.kind {
                match &mut step.kind {
                    Kind::Filter(inner, _) => step = inner,
                    _ => break,
                }
            }
            step.keep_array = true;
            return Ok(left);
        }
        let predicate = self.expression(0)?;
        self.expect("]", false)?;
        Syntax::new(Kind::Filter(Box::new(left), Box::new(predicate)), position)
    }

    fn call(&mut self, left: Syntax) -> Result<Kind> {
        let mut arguments = Vec::new();
        while !self.is(")") || !arguments.is_empty() {
            if self.is("?") {
                arguments.push((None, self.position));
                self.advance(false)?;
            } else {
                let position = self.position;
                arguments.push((Some(self.expression(0)?), position));
            }
            if !self.accept(",")? {
                break;
            }
        }
        self.expect(")", false)?;
        if matches!(&left.kind, Kind::Name(name) if name == "function" || name == "\u{3bb}") {
            return self.lambda(arguments);
        }
        let arguments: Vec<Option<Syntax>> = arguments.into_iter().map(|(argument, _)| argument).collect();
        if arguments.iter().any(Option::is_none) {
            return Ok(Kind::Partial(Box::new(left), arguments));
        }
        Ok(Kind::Call(Box::new(left), arguments.into_iter().flatten().collect()))
    }

    fn lambda(&mut self, arguments: Vec<(Option<Syntax>, u32)>) -> Result<Kind> {
        let mut parameters = Vec::new();
        for (index, (argument, position)) in arguments.into_iter().enumerate() {
            match argument.map(|argument| (argument.token(), argument.kind)) {
                Some((_, Kind::Variable(name))) => parameters.push(name),
                other => {
                    let token = other.map_or(String::from("?"), |(token, _)| token);
                    return Err(Error::new("S0208").at(position).with_token(token).with_value(index + 1));
                }
            }
        }
        let signature = if self.is("<") { Some(self.signature()?) } else { None };
        self.expect("{", true)?;
        let body = self.expression(0)?;
        self.expect("}", false)?;
        Ok(Kind::Lambda(parameters, signature, Box::new(body)))
    }

    fn signature(&mut self) -> Result<Signature> {
        let start = self.position;
        let mut text = String::from("<");
        let mut depth = 1;
        while depth > 0 && !self.is("{") && !matches!(self.token, Token::End) {
            self.advance(false)?;
            match self.token {
                Token::Operator(">") => depth -= 1,
                Token::Operator("<") => depth += 1,
                _ => {}
            }
            text.push_str(&self.token.text());
        }
        self.expect(">", false)?;
        Signature::parse(&text).map_err(|error| error.at(start))
    }
}
