//! Expressions, and their evaluation.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::ast::Ast;
use crate::error::Error;
use crate::evaluate::Interpreter;
use crate::evaluate::frame::Frame;
use crate::functions::Dialect;
use crate::json;
use crate::limits::Limits;
use crate::meter::Meter;
use crate::parse::parse;
use crate::programs::Programs;
use crate::value::Value;
use crate::variables::{self, Reference};

/// A parsed expression: cheap to clone, and the same for all threads.
#[derive(Clone)]
pub struct Expression {
    ast: Arc<Ast>,
    dialect: Dialect,
}

/// What an evaluation knows of the world.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// The time of `$now` and `$millis`: milliseconds since 1970-01-01 UTC.
    pub now_ms: i64,
    /// What `$random`, `$shuffle` and `$uuid` follow from.
    pub seed: u64,
    /// What the evaluation may use.
    pub limits: Limits,
}

impl Expression {
    /// Parses an expression of AWS Step Functions, without `{%` and `%}`.
    ///
    /// # Errors
    /// A code that begins with `S` for wrong syntax; `U1001` where the source is too long or nests too deeply.
    pub fn parse(source: &str, limits: &Limits) -> Result<Expression, Error> {
        Expression::parse_dialect(source, limits, Dialect::StepFunctions)
    }

    /// Parses an expression, with the functions of a dialect.
    ///
    /// # Errors
    /// As [`Expression::parse`].
    pub fn parse_dialect(source: &str, limits: &Limits, dialect: Dialect) -> Result<Expression, Error> {
        Ok(Expression { ast: Arc::new(parse(source, limits, dialect)?), dialect })
    }

    /// Evaluates the expression on an input (`$`, `$$`, and what paths begin with), with variables bound to values, by their names without `$`. Nothing for an undefined result.
    ///
    /// # Errors
    /// JSONata's codes that begin with `T` or `D`; of [limits](Error::is_limit) `D1011` (depth), `D1012` (steps), `D2014` (a range), `U1002` (memory), `U1003` (nesting of JSON); `U1004`
    /// where the result holds a function.
    pub fn evaluate(
        &self,
        input: Option<&Json>,
        bindings: &[(&str, &Json)],
        environment: &Environment,
    ) -> Result<Option<Json>, Error> {
        let programs = Programs::default();
        let meter = Meter::new(environment.limits);
        let result = self.run(input, bindings, environment, &programs, &meter);
        meter.release();
        result
    }

    fn run<'a>(
        &'a self,
        input: Option<&'a Json>,
        bindings: &[(&'a str, &'a Json)],
        environment: &Environment,
        programs: &'a Programs,
        meter: &std::rc::Rc<Meter<'a>>,
    ) -> Result<Option<Json>, Error> {
        let Environment { now_ms, seed, .. } = *environment;
        let interpreter = Interpreter::new(std::rc::Rc::clone(meter), &self.ast, programs, now_ms, seed, self.dialect);
        let frame = Frame::new(None, meter)?;
        let input = input.map_or(Value::Undefined, Value::of);
        frame.bind("$", input.clone())?;
        for (name, value) in bindings {
            frame.bind(name, Value::of(value))?;
        }
        let input = interpreter.wrapped(input)?;
        let result = interpreter.evaluate(&self.ast.root, &input, &frame)?;
        json::result(&result, meter)
    }

    /// What the expression refers to that it does not bind itself.
    #[must_use]
    pub fn variables(&self) -> Vec<Reference> {
        variables::free(&self.ast)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expression").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}
