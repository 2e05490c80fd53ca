//! The comparisons that there are, and what they say of a value.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::wildcard::Wildcard;
use crate::data::number;
use crate::data::path::Path;
use crate::data::timestamp::Timestamp;

/// One comparison with what it compares with.
#[derive(Clone, Debug)]
pub(super) enum Test {
    IsPresent(bool),
    Is(Kind, bool),
    Boolean(bool),
    String(Relation, Box<str>),
    StringMatches(Wildcard),
    Numeric(Relation, Number),
    Timestamp(Relation, Timestamp),
    /// With a value that a path leads to.
    Path(Type, Relation, Path),
}

/// What a value can be, as `IsNumeric` and others ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Numeric,
    String,
    Boolean,
    Timestamp,
}

/// As what two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Boolean,
    String,
    Numeric,
    Timestamp,
}

/// What has to hold between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equals,
    LessThan,
    GreaterThan,
    LessThanEquals,
    GreaterThanEquals,
}

impl Relation {
    /// Each with the end of its name. A longer one comes before what it begins with.
    pub(super) const ALL: [(&str, Relation); 5] = [
        ("Equals", Relation::Equals),
        ("LessThanEquals", Relation::LessThanEquals),
        ("GreaterThanEquals", Relation::GreaterThanEquals),
        ("LessThan", Relation::LessThan),
        ("GreaterThan", Relation::GreaterThan),
    ];

    fn holds(self, order: Ordering) -> bool {
        match self {
            Relation::Equals => order.is_eq(),
            Relation::LessThan => order.is_lt(),
            Relation::GreaterThan => order.is_gt(),
            Relation::LessThanEquals => order.is_le(),
            Relation::GreaterThanEquals => order.is_ge(),
        }
    }
}

impl Test {
    /// The path to the value that it compares with, if it does.
    pub(super) const fn path(&self) -> Option<&Path> {
        match self {
            Test::Path(.., path) => Some(path),
            _ => None,
        }
    }

    /// Whether it holds for a value that is there; `operand` is what its path leads to. Values of another type have no order, so that nothing holds for them.
    pub(super) fn holds(&self, value: &Value, operand: Option<&Value>) -> bool {
        match self {
            Test::IsPresent(expected) => *expected,
            Test::Is(kind, expected) => kind.is(value) == *expected,
            Test::Boolean(expected) => value.as_bool() == Some(*expected),
            Test::String(relation, expected) => value.as_str().is_some_and(|text| relation.holds(text.cmp(expected))),
            Test::StringMatches(pattern) => value.as_str().is_some_and(|text| pattern.matches(text)),
            Test::Numeric(relation, expected) => {
                matches!(value, Value::Number(number) if relation.holds(number::compare(number, expected)))
            }
            Test::Timestamp(relation, expected) => timestamp(value).is_some_and(|time| relation.holds(time.cmp(expected))),
            Test::Path(as_type, relation, _) => {
                operand.and_then(|operand| as_type.order(value, operand)).is_some_and(|order| relation.holds(order))
            }
        }
    }
}

impl Type {
    fn order(self, left: &Value, right: &Value) -> Option<Ordering> {
        match (self, left, right) {
            (Type::Boolean, Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            (Type::String, Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Type::Numeric, Value::Number(left), Value::Number(right)) => Some(number::compare(left, right)),
            (Type::Timestamp, ..) => Some(timestamp(left)?.cmp(&timestamp(right)?)),
            _ => None,
        }
    }
}

impl Kind {
    fn is(self, value: &Value) -> bool {
        match self {
            Kind::Null => value.is_null(),
            Kind::Numeric => value.is_number(),
            Kind::String => value.is_string(),
            Kind::Boolean => value.is_boolean(),
            Kind::Timestamp => timestamp(value).is_some(),
        }
    }
}

fn timestamp(value: &Value) -> Option<Timestamp> {
    Timestamp::parse(value.as_str()?).ok()
}
