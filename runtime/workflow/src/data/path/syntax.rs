//! What a path is after it was parsed.
//!
//! Trees of these are as deep as [`PATH_NESTING_MAX`](crate::data::limits::PATH_NESTING_MAX) at most, so that evaluation may recurse over them.

use std::fmt::{self, Write};

use serde_json::Value;

use super::pattern::Pattern;

/// A path from where it begins to its last step.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) root: Root,
    pub(super) steps: Box<[Step]>,
    /// Whether the steps before a function lead to one value at most.
    pub(super) is_single: bool,
}

/// Where a path begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// `$`
    Input,
    /// `$$`
    Context,
    /// `$name`
    Variable(Box<str>),
    /// `@`, in filters: the item that is looked at.
    Current,
}

/// One step of a path.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// `.name`, `['name']`
    Child(Box<str>),
    /// `['a','b']`
    Children(Box<[Box<str>]>),
    /// `[0]`, `[-1]`
    Index(i64),
    /// `[0,1]`
    Indices(Box<[i64]>),
    /// `[from:to:step]`
    Slice(Slice),
    /// `.*`, `[*]`
    Wildcard,
    /// `[?(...)]`
    Filter(Box<Filter>),
    /// `..`: this step for a value and everything in it.
    Deep(Box<Step>),
    /// `.length()`: the last step.
    Function(Box<Call>),
}

/// Part of an array. What is left out has its default; the step is not 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    pub(super) step: i64,
}

/// A function with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) function: Function,
    pub(super) arguments: Box<[Operand]>,
}

/// What may end a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Length,
    Keys,
    Min,
    Max,
    Avg,
    Sum,
    StdDev,
    Concat,
    Append,
    First,
    Last,
    Index,
}

impl Function {
    /// All of them by name.
    pub(super) const ALL: [(&str, Function); 13] = [
        ("length", Function::Length),
        ("size", Function::Length),
        ("keys", Function::Keys),
        ("min", Function::Min),
        ("max", Function::Max),
        ("avg", Function::Avg),
        ("sum", Function::Sum),
        ("stddev", Function::StdDev),
        ("concat", Function::Concat),
        ("append", Function::Append),
        ("first", Function::First),
        ("last", Function::Last),
        ("index", Function::Index),
    ];

    pub(super) fn name(self) -> &'static str {
        Function::ALL.iter().find(|(_, function)| *function == self).map_or("", |(name, _)| name)
    }
}

/// A condition on an item.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    Or(Box<[Filter]>),
    And(Box<[Filter]>),
    Not(Box<Filter>),
    /// A path alone: whether it leads to anything.
    Exists(Query),
    Compare(Box<Comparison>),
    /// `=~`
    Match(Box<(Operand, Pattern)>),
}

/// Two operands with an operator between them.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) left: Operand,
    pub(super) operator: Operator,
    pub(super) right: Operand,
}

/// One side of a comparison, or an argument of a function.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Query(Query),
    Literal(Value),
}

/// An operator of filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Contains,
    All,
    SubsetOf,
    AnyOf,
    NoneOf,
    Size,
    Empty,
}

impl Operator {
    /// Those that are signs. A longer one comes before what it begins with.
    pub(super) const SIGNS: [(&str, Operator); 8] = [
        ("===", Operator::Equal),
        ("!==", Operator::NotEqual),
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    /// Those that are words, in any case.
    pub(super) const WORDS: [(&str, Operator); 9] = [
        ("in", Operator::In),
        ("nin", Operator::NotIn),
        ("contains", Operator::Contains),
        ("all", Operator::All),
        ("subsetof", Operator::SubsetOf),
        ("anyof", Operator::AnyOf),
        ("noneof", Operator::NoneOf),
        ("size", Operator::Size),
        ("empty", Operator::Empty),
    ];
}

impl Query {
    /// The name of the variable that it reads, and those that its filters and functions read.
    pub(super) fn variables<'q>(&'q self, found: &mut Vec<&'q str>) {
        if let Root::Variable(name) = &self.root {
            found.push(name);
        }
        self.steps.iter().for_each(|step| step.variables(found));
    }

    /// Its first steps as Jayway JsonPath writes them: `$['a'][0]`.
    pub(super) fn canonical(&self, steps: usize) -> String {
        let mut text = match &self.root {
            Root::Input => String::from("$"),
            Root::Context => String::from("$$"),
            Root::Variable(name) => format!("${name}"),
            Root::Current => String::from("@"),
        };
        for step in self.steps.iter().take(steps) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{step}");
        }
        text
    }
}

impl Step {
    fn variables<'q>(&'q self, found: &mut Vec<&'q str>) {
        match self {
            Step::Filter(filter) => filter.variables(found),
            Step::Deep(step) => step.variables(found),
            Step::Function(call) => call.arguments.iter().for_each(|argument| argument.variables(found)),
            _ => {}
        }
    }

    /// Whether it leads from one value to one value at most.
    pub(super) const fn is_single(&self) -> bool {
        matches!(self, Step::Child(_) | Step::Index(_) | Step::Function(_))
    }
}

impl Filter {
    fn variables<'q>(&'q self, found: &mut Vec<&'q str>) {
        match self {
            Filter::Or(parts) | Filter::And(parts) => parts.iter().for_each(|part| part.variables(found)),
            Filter::Not(part) => part.variables(found),
            Filter::Exists(query) => query.variables(found),
            Filter::Compare(comparison) => {
                comparison.left.variables(found);
                comparison.right.variables(found);
            }
            Filter::Match(parts) => parts.0.variables(found),
        }
    }
}

impl Operand {
    fn variables<'q>(&'q self, found: &mut Vec<&'q str>) {
        if let Operand::Query(query) = self {
            query.variables(found);
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Child(name) => write!(f, "['{name}']"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Function(call) => write!(f, ".{}()", call.function.name()),
            // Where one of these is, nothing is missing.
            _ => f.write_str("[...]"),
        }
    }
}
