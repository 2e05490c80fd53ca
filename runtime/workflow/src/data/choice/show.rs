//! A rule as a person would say it: `$.amount > 100 and not $.paid = true`. For drawings and messages; it is not parsed again.

use std::fmt::{Display, Formatter, Result};

use super::compare::{Kind, Relation, Test};
use super::{Comparison, Node, Rule};

impl Display for Rule {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        self.0.write(out, false)
    }
}

impl Node {
    /// Recurses as deep as the rule is nested. `inner`: what joins several stands in parentheses.
    fn write(&self, out: &mut Formatter<'_>, inner: bool) -> Result {
        let (nodes, between) = match self {
            Node::And(nodes) => (nodes, " and "),
            Node::Or(nodes) => (nodes, " or "),
            Node::Not(node) => {
                out.write_str("not ")?;
                return node.write(out, true);
            }
            Node::Compare(comparison) => return comparison.fmt(out),
        };
        let several = inner && nodes.len() > 1;
        out.write_str(if several { "(" } else { "" })?;
        for (at, node) in nodes.iter().enumerate() {
            out.write_str(if at > 0 { between } else { "" })?;
            node.write(out, true)?;
        }
        out.write_str(if several { ")" } else { "" })
    }
}

impl Display for Comparison {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let variable = &self.variable;
        let not = |holds: bool| if holds { "" } else { "not " };
        match &self.test {
            Test::IsPresent(expected) => write!(out, "{variable} is {}present", not(*expected)),
            Test::Is(kind, expected) => write!(out, "{variable} is {}{}", not(*expected), kind.name()),
            Test::Boolean(expected) => write!(out, "{variable} = {expected}"),
            Test::String(relation, expected) => write!(out, "{variable} {} \"{expected}\"", relation.sign()),
            Test::StringMatches(pattern) => write!(out, "{variable} matches \"{pattern}\""),
            Test::Numeric(relation, expected) => write!(out, "{variable} {} {expected}", relation.sign()),
            Test::Timestamp(relation, expected) => write!(out, "{variable} {} {expected}", relation.sign()),
            Test::Path(_, relation, path) => write!(out, "{variable} {} {path}", relation.sign()),
        }
    }
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Numeric => "a number",
            Kind::String => "a string",
            Kind::Boolean => "a boolean",
            Kind::Timestamp => "a timestamp",
        }
    }
}

impl Relation {
    const fn sign(self) -> &'static str {
        match self {
            Relation::Equals => "=",
            Relation::LessThan => "<",
            Relation::GreaterThan => ">",
            Relation::LessThanEquals => "<=",
            Relation::GreaterThanEquals => ">=",
        }
    }
}
