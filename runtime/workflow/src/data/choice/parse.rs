//! Parses rules of Choice states.

use serde_json::{Map, Value};

use super::compare::{Kind, Relation, Test, Type};
use super::wildcard::Wildcard;
use super::{Comparison, Node, Rule, RuleError};
use crate::data::limits::{RULE_COMPARISONS_MAX, RULE_DEPTH_MAX};
use crate::data::path::Path;
use crate::data::timestamp::Timestamp;

pub(super) fn rule(rule: &Map<String, Value>) -> Result<Node, Vec<RuleError>> {
    let mut parser = Parser { pointer: String::new(), errors: Vec::new(), comparisons: 0 };
    match parser.rule(rule, 0) {
        Some(node) if parser.errors.is_empty() => Ok(node),
        _ => Err(parser.errors),
    }
}

struct Parser {
    /// Where the parser is.
    pointer: String,
    errors: Vec<RuleError>,
    comparisons: usize,
}

impl Parser {
    /// Notes a mistake.
    fn error<T>(&mut self, message: impl Into<String>) -> Option<T> {
        self.errors.push(RuleError { pointer: self.pointer.clone(), message: message.into() });
        None
    }

    /// Runs something one step further down.
    fn within<T>(&mut self, token: &str, parse: impl FnOnce(&mut Parser) -> T) -> T {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        let parsed = parse(self);
        self.pointer.truncate(length);
        parsed
    }

    /// None after a mistake, which is noted.
    fn rule(&mut self, rule: &Map<String, Value>, depth: usize) -> Option<Node> {
        if depth > RULE_DEPTH_MAX {
            return self.error(format!("the rule is nested deeper than {RULE_DEPTH_MAX} levels"));
        }
        let mut tests = Vec::new();
        for name in rule.keys() {
            match name.as_str() {
                "Variable" | "Comment" => {}
                consequence if Rule::CONSEQUENCES.contains(&consequence) => {
                    if depth > 0 {
                        self.within(name, |parser| parser.error::<()>(format!("'{name}' stands only at the top of a rule")));
                    }
                }
                test => tests.push(test),
            }
        }
        let &[name] = tests.as_slice() else {
            return self.error(match tests.as_slice() {
                [] => String::from("a rule has one comparison, or one of And, Or and Not; there is none"),
                _ => format!("a rule has one comparison, or one of And, Or and Not; there are several: {}", tests.join(", ")),
            });
        };
        let operand = rule.get(name)?;
        if matches!(name, "And" | "Or" | "Not") && rule.contains_key("Variable") {
            self.within("Variable", |parser| {
                parser.error::<()>(format!("'Variable' belongs to a comparison, not beside '{name}'"))
            });
        }
        match name {
            "And" => self.within(name, |parser| parser.rules(operand, depth)).map(Node::And),
            "Or" => self.within(name, |parser| parser.rules(operand, depth)).map(Node::Or),
            "Not" => self.within(name, |parser| match operand {
                Value::Object(inner) => parser.rule(inner, depth + 1).map(|node| Node::Not(Box::new(node))),
                _ => parser.error("expected a rule, an object"),
            }),
            _ => self.comparison(name, operand, rule.get("Variable")),
        }
    }

    fn rules(&mut self, operand: &Value, depth: usize) -> Option<Box<[Node]>> {
        let Value::Array(rules) = operand else { return self.error("expected an array of rules") };
        if rules.is_empty() {
            return self.error("expected at least one rule");
        }
        let nodes: Vec<Option<Node>> = rules
            .iter()
            .enumerate()
            .map(|(index, rule)| {
                self.within(&index.to_string(), |parser| match rule {
                    Value::Object(rule) => parser.rule(rule, depth + 1),
                    _ => parser.error("expected a rule, an object"),
                })
            })
            .collect();
        nodes.into_iter().collect()
    }

    fn comparison(&mut self, name: &str, operand: &Value, variable: Option<&Value>) -> Option<Node> {
        self.comparisons += 1;
        if self.comparisons > RULE_COMPARISONS_MAX {
            return self.error(format!("the rule has more than {RULE_COMPARISONS_MAX} comparisons"));
        }
        let variable = match variable {
            None => self.error("'Variable' is missing: the path to the value that is compared"),
            Some(variable) => self.within("Variable", |parser| parser.path(variable)),
        };
        let test = self.within(name, |parser| parser.test(name, operand));
        Some(Node::Compare(Box::new(Comparison { variable: variable?, test: test? })))
    }

    fn path(&mut self, value: &Value) -> Option<Path> {
        let Some(text) = value.as_str() else { return self.error("expected a path, in a string") };
        match Path::parse(text) {
            Ok(path) => Some(path),
            Err(error) => self.error(error.to_string()),
        }
    }

    fn test(&mut self, name: &str, operand: &Value) -> Option<Test> {
        match name {
            "IsPresent" => self.boolean(operand).map(Test::IsPresent),
            "IsNull" => self.boolean(operand).map(|expected| Test::Is(Kind::Null, expected)),
            "IsNumeric" => self.boolean(operand).map(|expected| Test::Is(Kind::Numeric, expected)),
            "IsString" => self.boolean(operand).map(|expected| Test::Is(Kind::String, expected)),
            "IsBoolean" => self.boolean(operand).map(|expected| Test::Is(Kind::Boolean, expected)),
            "IsTimestamp" => self.boolean(operand).map(|expected| Test::Is(Kind::Timestamp, expected)),
            "StringMatches" => {
                let Some(pattern) = operand.as_str() else { return self.error("expected a string") };
                match Wildcard::parse(pattern) {
                    Ok(pattern) => Some(Test::StringMatches(pattern)),
                    Err(message) => self.error(message),
                }
            }
            _ => self.relation(name, operand),
        }
    }

    /// `StringEquals` to `TimestampGreaterThanEqualsPath`.
    fn relation(&mut self, name: &str, operand: &Value) -> Option<Test> {
        let Some((as_type, relation, is_path)) = taken_apart(name) else {
            return self.error(format!("'{name}' is no comparison of the query language JSONPath"));
        };
        if is_path {
            return self.path(operand).map(|path| Test::Path(as_type, relation, path));
        }
        match (as_type, operand) {
            (Type::Boolean, _) => self.boolean(operand).map(Test::Boolean),
            (Type::String, Value::String(expected)) => Some(Test::String(relation, expected.as_str().into())),
            (Type::Numeric, Value::Number(expected)) => Some(Test::Numeric(relation, expected.clone())),
            (Type::Timestamp, Value::String(expected)) => match Timestamp::parse(expected) {
                Ok(expected) => Some(Test::Timestamp(relation, expected)),
                Err(error) => self.error(error.to_string()),
            },
            (Type::Numeric, _) => self.error("expected a number"),
            _ => self.error("expected a string"),
        }
    }

    fn boolean(&mut self, operand: &Value) -> Option<bool> {
        match operand {
            Value::Bool(expected) => Some(*expected),
            _ => self.error("expected true or false"),
        }
    }
}

/// The parts of the name of a comparison: `NumericLessThanPath`.
fn taken_apart(name: &str) -> Option<(Type, Relation, bool)> {
    let (name, is_path) = name.strip_suffix("Path").map_or((name, false), |name| (name, true));
    let types =
        [("Boolean", Type::Boolean), ("String", Type::String), ("Numeric", Type::Numeric), ("Timestamp", Type::Timestamp)];
    let (as_type, name) = types.into_iter().find_map(|(prefix, as_type)| Some((as_type, name.strip_prefix(prefix)?)))?;
    let (_, relation) = Relation::ALL.into_iter().find(|(known, _)| *known == name)?;
    let exists = as_type != Type::Boolean || relation == Relation::Equals;
    exists.then_some((as_type, relation, is_path))
}
