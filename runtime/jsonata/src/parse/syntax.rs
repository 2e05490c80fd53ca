//! What the parser reads, before paths are flattened.

use crate::ast::Operator;
use crate::error::{Error, Result};
use crate::limits::NESTING_MAX;
use crate::regex::Regex;
use crate::signature::Signature;

pub(crate) struct Syntax {
    pub(crate) kind: Kind,
    pub(crate) position: u32,
    pub(crate) keep_array: bool,
    /// Levels of syntax in it: at most [`NESTING_MAX`].
    height: u32,
}

pub(crate) enum Kind {
    /// Nothing, where a value is expected.
    End,
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    Regex(Regex),
    Name(String),
    Variable(String),
    Wildcard,
    Descendants,
    Parent,
    Map(Box<Syntax>, Box<Syntax>),
    Filter(Box<Syntax>, Box<Syntax>),
    Group(Box<Syntax>, Vec<(Syntax, Syntax)>),
    Sort(Box<Syntax>, Vec<(bool, Syntax)>),
    Focus(Box<Syntax>, String),
    Index(Box<Syntax>, String),
    Binary(Operator, Box<Syntax>, Box<Syntax>),
    Apply(Box<Syntax>, Box<Syntax>),
    Bind(String, Box<Syntax>),
    Negate(Box<Syntax>),
    Array(Vec<Syntax>),
    Object(Vec<(Syntax, Syntax)>),
    Block(Vec<Syntax>),
    Call(Box<Syntax>, Vec<Syntax>),
    Partial(Box<Syntax>, Vec<Option<Syntax>>),
    Lambda(Vec<String>, Option<Signature>, Box<Syntax>),
    Condition(Box<Syntax>, Box<Syntax>, Option<Box<Syntax>>),
    Default(Box<Syntax>, Box<Syntax>),
    Coalesce(Box<Syntax>, Box<Syntax>),
    Transform(Box<Syntax>, Box<Syntax>, Option<Box<Syntax>>),
}

impl Syntax {
    pub(crate) fn new(kind: Kind, position: u32) -> Result<Syntax> {
        let mut height = 0;
        kind.each(&mut |child| height = height.max(child.height));
        if height >= NESTING_MAX {
            return Err(Error::new("U1001").at(position).with_value(format!("{NESTING_MAX} levels")));
        }
        Ok(Syntax { kind, position, keep_array: false, height: height + 1 })
    }

    /// What an error calls it.
    pub(crate) fn token(&self) -> String {
        match &self.kind {
            Kind::Text(text) | Kind::Name(text) | Kind::Variable(text) => text.clone(),
            Kind::Number(number) => crate::number::to_text(*number),
            Kind::Bool(bool) => bool.to_string(),
            Kind::Null => String::from("null"),
            Kind::Binary(operator, ..) => String::from(operator.symbol()),
            Kind::Map(..) => String::from("."),
            Kind::Filter(..) | Kind::Array(_) => String::from("["),
            Kind::Negate(_) => String::from("-"),
            Kind::Object(_) | Kind::Group(..) => String::from("{"),
            Kind::Block(_) | Kind::Call(..) | Kind::Partial(..) | Kind::Lambda(..) => String::from("("),
            Kind::Wildcard => String::from("*"),
            Kind::Descendants => String::from("**"),
            Kind::Parent => String::from("%"),
            _ => String::from("this"),
        }
    }
}

impl Kind {
    fn each(&self, visit: &mut impl FnMut(&Syntax)) {
        match self {
            Kind::End | Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Regex(_) => {}
            Kind::Name(_) | Kind::Variable(_) | Kind::Wildcard | Kind::Descendants | Kind::Parent => {}
            Kind::Focus(one, _) | Kind::Index(one, _) | Kind::Bind(_, one) | Kind::Negate(one) | Kind::Lambda(_, _, one) => {
                visit(one)
            }
            Kind::Map(left, right) | Kind::Filter(left, right) | Kind::Binary(_, left, right) | Kind::Apply(left, right) => {
                visit(left);
                visit(right);
            }
            Kind::Default(left, right) | Kind::Coalesce(left, right) => {
                visit(left);
                visit(right);
            }
            Kind::Group(left, pairs) => {
                visit(left);
                each_pair(pairs, visit);
            }
            Kind::Object(pairs) => each_pair(pairs, visit),
            Kind::Sort(left, terms) => {
                visit(left);
                terms.iter().for_each(|(_, term)| visit(term));
            }
            Kind::Array(items) | Kind::Block(items) => items.iter().for_each(visit),
            Kind::Call(procedure, arguments) => {
                visit(procedure);
                arguments.iter().for_each(visit);
            }
            Kind::Partial(procedure, arguments) => {
                visit(procedure);
                arguments.iter().flatten().for_each(visit);
            }
            Kind::Condition(first, second, third) | Kind::Transform(first, second, third) => {
                visit(first);
                visit(second);
                third.iter().for_each(|third| visit(third));
            }
        }
    }
}

fn each_pair(pairs: &[(Syntax, Syntax)], visit: &mut impl FnMut(&Syntax)) {
    for (key, value) in pairs {
        visit(key);
        visit(value);
    }
}
