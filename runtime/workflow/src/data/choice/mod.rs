//! Rules of Choice states in the query language JSONPath.
//!
//! A rule is parsed once and then asked whether it matches. A comparison of values of the wrong type does not match; a Variable that leads nowhere is an error, except for
//! `IsPresent`. Source: the specification, section Choice State, Data-Test Expressions.

mod compare;
mod parse;
mod show;
mod wildcard;

use serde_json::{Map, Value};

use self::compare::Test;
use super::error::{DataError, ErrorName};
use super::path::{Path, ReadError};
use super::scope::Scope;

/// A parsed rule.
#[derive(Clone, Debug)]
pub struct Rule(Node);

/// A mistake in a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at {pointer:?})")]
pub struct RuleError {
    /// Where it is in the rule: a JSON Pointer (RFC 6901), which begins at the rule.
    pub pointer: String,
    /// What is wrong, and what was expected.
    pub message: String,
}

#[derive(Clone, Debug)]
enum Node {
    And(Box<[Node]>),
    Or(Box<[Node]>),
    Not(Box<Node>),
    Compare(Box<Comparison>),
}

/// One data test.
#[derive(Clone, Debug)]
struct Comparison {
    variable: Path,
    test: Test,
}

impl Rule {
    /// Fields of a rule that say what follows when it matches. They are the caller's: [`Rule::parse`] passes over them at the top.
    pub const CONSEQUENCES: [&str; 4] = ["Next", "Assign", "Output", "Comment"];

    /// Parses a rule: an object with `Variable` and one comparison, or with one of `And`, `Or`, `Not`.
    ///
    /// # Errors
    ///
    /// All mistakes, each with its place.
    pub fn parse(rule: &Map<String, Value>) -> Result<Rule, Vec<RuleError>> {
        parse::rule(rule).map(Rule)
    }

    /// Whether it matches.
    ///
    /// # Errors
    ///
    /// `States.Runtime`: a Variable, or the path that it is compared with, leads nowhere.
    pub fn matches(&self, scope: &Scope<'_>) -> Result<bool, DataError> {
        let mut visits_left = scope.limits.visits_max;
        self.0.matches(scope, &mut visits_left)
    }

    /// The names of the variables that it reads.
    #[must_use]
    pub fn variables(&self) -> Vec<&str> {
        let mut found = Vec::new();
        self.0.variables(&mut found);
        found
    }
}

impl Node {
    /// Recurses as deep as the rule is nested.
    fn matches(&self, scope: &Scope<'_>, visits_left: &mut usize) -> Result<bool, DataError> {
        match self {
            Node::And(nodes) => {
                for node in nodes {
                    if !node.matches(scope, visits_left)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(nodes) => {
                for node in nodes {
                    if node.matches(scope, visits_left)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::Not(node) => node.matches(scope, visits_left).map(|matches| !matches),
            Node::Compare(comparison) => comparison.matches(scope, visits_left),
        }
    }

    fn variables<'n>(&'n self, found: &mut Vec<&'n str>) {
        match self {
            Node::And(nodes) | Node::Or(nodes) => nodes.iter().for_each(|node| node.variables(found)),
            Node::Not(node) => node.variables(found),
            Node::Compare(comparison) => {
                found.extend(comparison.variable.variables());
                found.extend(comparison.test.path().into_iter().flat_map(Path::variables));
            }
        }
    }
}

impl Comparison {
    fn matches(&self, scope: &Scope<'_>, visits_left: &mut usize) -> Result<bool, DataError> {
        if let Test::IsPresent(expected) = self.test {
            return Ok(self.variable.exists_within(scope, visits_left)? == expected);
        }
        let value = self.variable.read_within(scope, visits_left).map_err(|error| invalid(&self.variable, error))?;
        match self.test.path() {
            Some(path) => {
                let operand = path.read_within(scope, visits_left).map_err(|error| invalid(path, error))?;
                Ok(self.test.holds(&value, Some(&operand)))
            }
            None => Ok(self.test.holds(&value, None)),
        }
    }
}

/// The error that AWS Step Functions reports.
fn invalid(path: &Path, error: ReadError) -> DataError {
    match error {
        ReadError::Missing { .. } => DataError::new(
            ErrorName::Runtime,
            format!("Invalid path '{path}': The choice state's condition path references an invalid value."),
        ),
        ReadError::Limit(error) => error,
    }
}
