//! Compiled values: what a field of a state gives when it is applied, in either query language.

use std::sync::Arc;

use serde_json::Value;

use crate::data::{Expression as PathExpression, Path, ReferencePath, Rule as Comparison, Template};

use super::expression::Expression;

/// `InputPath`, `OutputPath`, `ItemsPath`.
#[derive(Debug, Default)]
pub enum Selection {
    /// The whole value: the field is absent, or `$`.
    #[default]
    Whole,
    /// `null`: an empty object.
    Nothing,
    /// What the path leads to.
    Path(Path),
}

/// `ResultPath`.
#[derive(Debug, Default)]
pub enum ResultPath {
    /// The result takes the input's place: the field is absent, or `$`.
    #[default]
    Replace,
    /// `null`: the result is dropped.
    Discard,
    /// The result is put into the input.
    At(ReferencePath),
}

/// A value with parts that are found out when it is applied.
#[derive(Debug)]
pub enum Payload {
    /// Of JSONPath: keys that end in `.$`.
    Template(Template),
    /// Of JSONata: strings in `{% %}`.
    Query(Query),
}

/// A JSON value in which expressions stand.
#[derive(Debug)]
pub enum Query {
    /// No expression in it.
    Literal(Arc<Value>),
    /// An expression.
    Expression(Expression),
    /// An array with expressions in it.
    Array(Vec<Query>),
    /// An object with expressions in it.
    Object(Vec<(Arc<str>, Query)>),
}

/// A number, or where it comes from.
#[derive(Debug)]
pub enum Number {
    /// Itself.
    Literal(f64),
    /// From the input.
    Path(Path),
    /// From an expression.
    Query(Expression),
}

/// A text, or where it comes from.
#[derive(Debug)]
pub enum Text {
    /// Itself.
    Literal(Arc<str>),
    /// From a path or an intrinsic function.
    Path(PathExpression),
    /// From an expression.
    Query(Expression),
}

/// When a rule of a Choice is taken.
#[derive(Debug)]
pub enum Condition {
    /// A rule of JSONPath.
    Comparison(Comparison),
    /// `Condition` of JSONata.
    Query(Expression),
    /// `Condition` is `true` or `false` itself.
    Constant(bool),
}
