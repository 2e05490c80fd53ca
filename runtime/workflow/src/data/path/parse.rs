//! Parses paths: `$.a['b'][0]`, `$$.Execution.Id`, `$name.a`.
//!
//! The parser reads as far as a path goes, since a path may also stand in a filter or among the arguments of an intrinsic function. It counts how deep it is.

use super::syntax::{Call, Function, Operand, Query, Root, Slice, Step};
use crate::data::cursor::{Cursor, Mistake};
use crate::data::limits::{PATH_NESTING_MAX, PATH_STEPS_MAX, VARIABLE_NAME_CHARS_MAX};

/// Where a path stands: what may follow it, and so end a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Alone in a field.
    Field,
    /// In a filter, or among arguments.
    Inside,
}

pub(super) struct Parser<'s> {
    pub(super) cursor: Cursor<'s>,
    depth: usize,
    steps: usize,
}

/// Reads one path from there on.
pub(super) fn query(cursor: &mut Cursor<'_>, place: Place) -> Result<Query, Mistake> {
    let mut parser = Parser { cursor: cursor.clone(), depth: 0, steps: 0 };
    let query = parser.query(place)?;
    *cursor = parser.cursor;
    Ok(query)
}

impl<'s> Parser<'s> {
    /// Runs something one level deeper.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Parser<'s>) -> Result<T, Mistake>) -> Result<T, Mistake> {
        if self.depth >= PATH_NESTING_MAX {
            return Err(self.cursor.mistake(format!("the path is nested deeper than {PATH_NESTING_MAX} levels")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// A path, from `$` or `@` on.
    pub(super) fn query(&mut self, place: Place) -> Result<Query, Mistake> {
        let root = self.root()?;
        let mut steps = Vec::new();
        while let Some(step) = self.step(place)? {
            self.steps += 1;
            if self.steps > PATH_STEPS_MAX {
                return Err(self.cursor.mistake(format!("the path has more than {PATH_STEPS_MAX} steps")));
            }
            let is_last = matches!(step, Step::Function(_));
            steps.push(step);
            if is_last {
                break;
            }
        }
        if matches!(steps.last(), Some(Step::Function(_))) && matches!(self.cursor.peek(), Some('.' | '[')) {
            return Err(self.cursor.mistake("a function can only be the last step of a path"));
        }
        let is_single = steps.iter().all(Step::is_single);
        Ok(Query { root, steps: steps.into(), is_single })
    }

    fn root(&mut self) -> Result<Root, Mistake> {
        if self.cursor.eat("@") {
            return if self.depth > 0 { Ok(Root::Current) } else { Err(self.cursor.mistake("`@` is only known in a filter")) };
        }
        self.cursor.expect("$", "a path that begins with `$`")?;
        if self.cursor.eat("$") {
            return Ok(Root::Context);
        }
        let start = self.cursor.clone();
        let name = self.cursor.take_while(|next| next.is_alphanumeric() || next == '_');
        match name.chars().next() {
            None => Ok(Root::Input),
            Some(first) if first.is_numeric() => Err(start.mistake("the name of a variable does not begin with a digit")),
            Some(_) if name.chars().count() > VARIABLE_NAME_CHARS_MAX => {
                Err(start.mistake(format!("the name of a variable has {VARIABLE_NAME_CHARS_MAX} characters at most")))
            }
            Some(_) => Ok(Root::Variable(name.into())),
        }
    }

    /// The next step, if the path goes on.
    fn step(&mut self, place: Place) -> Result<Option<Step>, Mistake> {
        if self.cursor.eat("..") {
            let step = if self.cursor.peek() == Some('[') { self.bracket()? } else { self.name(place)? };
            if let Step::Function(_) = step {
                return Err(self
                    .cursor
                    .mistake("`..` is followed by a name, `*` or `[`; for a function of everything write `..*.length()`"));
            }
            return Ok(Some(Step::Deep(Box::new(step))));
        }
        if self.cursor.eat(".") {
            let step = if self.cursor.peek() == Some('[') { self.bracket()? } else { self.name(place)? };
            return Ok(Some(step));
        }
        if self.cursor.peek() == Some('[') {
            return self.bracket().map(Some);
        }
        match (place, self.cursor.peek()) {
            (Place::Field, Some(_)) => Err(self.cursor.unexpected("`.` or `[` or the end of the path")),
            _ => Ok(None),
        }
    }

    /// What follows a dot: a name, `*`, or a function.
    fn name(&mut self, place: Place) -> Result<Step, Mistake> {
        let start = self.cursor.clone();
        let name = self.cursor.take_while(|next| !ends_name(next, place));
        if name == "*" {
            return Ok(Step::Wildcard);
        }
        if name.contains('*') {
            return Err(start.mistake(format!("`*` stands alone; a name that has it is written in brackets: ['{name}']")));
        }
        if name.is_empty() {
            return Err(self.cursor.unexpected("a name, `*` or `[`"));
        }
        if self.cursor.peek() == Some('(') {
            return self.function(name, &start);
        }
        if place == Place::Field && self.cursor.peek().is_some_and(|next| next.is_whitespace()) {
            return Err(self.cursor.mistake("a name with blanks is written in brackets: ['my name']"));
        }
        Ok(Step::Child(name.into()))
    }

    fn function(&mut self, name: &str, start: &Cursor<'s>) -> Result<Step, Mistake> {
        let Some((_, function)) = Function::ALL.into_iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = Function::ALL.into_iter().map(|(known, _)| known).collect();
            return Err(start.mistake(format!("`{name}` is no function of paths; there are {}", known.join(", "))));
        };
        self.cursor.expect("(", "`(`")?;
        let mut arguments = Vec::new();
        self.cursor.skip_space();
        if !self.cursor.eat(")") {
            loop {
                arguments.push(self.deeper(Parser::operand)?);
                self.cursor.skip_space();
                if self.cursor.eat(")") {
                    break;
                }
                self.cursor.expect(",", "`,` or `)`")?;
            }
        }
        self.check_arguments(function, &arguments, start)?;
        Ok(Step::Function(Box::new(Call { function, arguments: arguments.into() })))
    }

    fn check_arguments(&self, function: Function, arguments: &[Operand], start: &Cursor<'s>) -> Result<(), Mistake> {
        let (fits, takes) = match function {
            Function::Length | Function::Keys | Function::First | Function::Last => (arguments.is_empty(), "no argument"),
            Function::Index => (arguments.len() == 1, "one argument"),
            Function::Append => (!arguments.is_empty(), "at least one argument"),
            _ => (true, ""),
        };
        if fits { Ok(()) } else { Err(start.mistake(format!("{}() takes {takes}", function.name()))) }
    }

    /// What is in brackets.
    fn bracket(&mut self) -> Result<Step, Mistake> {
        self.cursor.expect("[", "`[`")?;
        self.cursor.skip_space();
        let step = match self.cursor.peek() {
            Some('\'' | '"') => self.names()?,
            Some('*') => {
                self.cursor.bump();
                Step::Wildcard
            }
            Some('?') => {
                self.cursor.bump();
                Step::Filter(Box::new(self.deeper(Parser::filter)?))
            }
            Some('-' | ':' | '0'..='9') => self.numbers()?,
            Some('(') => return Err(self.cursor.mistake("scripts are not supported; for the last item write [-1]")),
            _ => return Err(self.cursor.unexpected("a quoted name, an index, a slice, `*` or `?`")),
        };
        self.cursor.skip_space();
        self.cursor.expect("]", "`]`")?;
        Ok(step)
    }

    fn names(&mut self) -> Result<Step, Mistake> {
        let mut names = vec![self.quoted_name()?];
        self.cursor.skip_space();
        while self.cursor.eat(",") {
            self.cursor.skip_space();
            names.push(self.quoted_name()?);
            self.cursor.skip_space();
        }
        Ok(match (names.pop(), names.is_empty()) {
            (Some(only), true) => Step::Child(only),
            (last, _) => Step::Children(names.into_iter().chain(last).collect()),
        })
    }

    /// A quoted name. A backslash keeps the quote after it, or another backslash, from having a meaning; before anything else it stands for itself, as on AWS.
    fn quoted_name(&mut self) -> Result<Box<str>, Mistake> {
        let start = self.cursor.clone();
        let quote = match self.cursor.bump() {
            Some(quote @ ('\'' | '"')) => quote,
            _ => return Err(start.unexpected("a quoted name")),
        };
        let mut name = String::new();
        loop {
            match self.cursor.bump() {
                None => return Err(start.mistake("the quote is not closed")),
                Some(next) if next == quote => return Ok(name.into()),
                Some('\\') => match self.cursor.bump() {
                    None => return Err(start.mistake("the quote is not closed")),
                    Some(next) if next == quote || next == '\\' => name.push(next),
                    Some(next) => name.extend(['\\', next]),
                },
                Some(next) => name.push(next),
            }
        }
    }

    /// An index, several, or a slice.
    fn numbers(&mut self) -> Result<Step, Mistake> {
        let first = self.optional_integer()?;
        self.cursor.skip_space();
        if self.cursor.eat(":") {
            return self.slice(first);
        }
        let Some(first) = first else { return Err(self.cursor.unexpected("an index")) };
        let mut indices = vec![first];
        while self.cursor.eat(",") {
            self.cursor.skip_space();
            let Some(index) = self.optional_integer()? else { return Err(self.cursor.unexpected("an index")) };
            indices.push(index);
            self.cursor.skip_space();
        }
        Ok(if indices.len() == 1 { Step::Index(first) } else { Step::Indices(indices.into()) })
    }

    fn slice(&mut self, from: Option<i64>) -> Result<Step, Mistake> {
        self.cursor.skip_space();
        let to = self.optional_integer()?;
        self.cursor.skip_space();
        let mut step = 1;
        if self.cursor.eat(":") {
            self.cursor.skip_space();
            step = self.optional_integer()?.unwrap_or(1);
        }
        if step == 0 {
            return Err(self.cursor.mistake("the step of a slice is not 0"));
        }
        Ok(Step::Slice(Slice { from, to, step }))
    }

    fn optional_integer(&mut self) -> Result<Option<i64>, Mistake> {
        let start = self.cursor.clone();
        let digits = self.cursor.take_while(|next| next.is_ascii_digit() || next == '-');
        if digits.is_empty() {
            return Ok(None);
        }
        // A document has fewer items by far.
        digits
            .parse::<i32>()
            .map(|index| Some(i64::from(index)))
            .map_err(|_| start.mistake(format!("`{digits}` is not an index")))
    }
}

fn ends_name(next: char, place: Place) -> bool {
    match next {
        '.' | '[' | '(' | ')' | ']' | ',' | '\'' | '"' | '?' => true,
        _ if next.is_whitespace() || next.is_control() => true,
        '=' | '!' | '<' | '>' | '~' | '&' | '|' | '{' | '}' => place == Place::Inside,
        _ => false,
    }
}
