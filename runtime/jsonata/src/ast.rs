//! An expression as it is evaluated: paths are lists of steps, and what belongs to a step is with it.

use crate::functions::Builtin;
use crate::regex::Regex;
use crate::signature::Signature;

pub(crate) struct Ast {
    pub(crate) root: Node,
    /// Names of the variables that hold parents, by slot; slots may share one.
    pub(crate) labels: Vec<String>,
}

pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// Characters before it in the source.
    pub(crate) position: u32,
    /// `[]` follows: a single result remains an array.
    pub(crate) keep_array: bool,
    /// Applied to the result.
    pub(crate) predicates: Vec<Node>,
    /// Applied to the result by the path of which this is a step.
    pub(crate) stages: Vec<Stage>,
    pub(crate) group: Option<Box<Group>>,
    /// The variable of `@`.
    pub(crate) focus: Option<Box<str>>,
    /// The variable of `#`.
    pub(crate) index: Option<Box<str>>,
    /// The slot of the parent that a later `%` refers to.
    pub(crate) ancestor: Option<Slot>,
    /// Whether it carries variables along.
    pub(crate) is_tuple: bool,
    /// Whether the array that it makes remains one.
    pub(crate) is_constructor: bool,
    /// Parents that are looked for further up, while the expression is parsed.
    pub(crate) seeking: Vec<Slot>,
}

/// An index into [`Ast::labels`].
pub(crate) type Slot = usize;

pub(crate) enum Stage {
    Filter(Node),
    Index(Box<str>),
}

pub(crate) struct Group {
    pub(crate) pairs: Vec<(Node, Node)>,
    pub(crate) position: u32,
}

pub(crate) enum Kind {
    Null,
    Bool(bool),
    Number(f64),
    Text(Box<str>),
    Regex(Regex),
    Name(Box<str>),
    /// The empty name is the context. A name that nothing binds may be a function of ours.
    Variable(Box<str>, Option<Builtin>),
    Wildcard,
    Descendants,
    Parent(Slot),
    Path(Path),
    Binary(Operator, Box<Node>, Box<Node>),
    Negate(Box<Node>),
    Array(Vec<Node>),
    Object(Group),
    Block(Vec<Node>),
    Bind(Box<str>, Box<Node>),
    Condition(Box<Node>, Box<Node>, Option<Box<Node>>),
    /// `?:`, the left side where it is true.
    Default(Box<Node>, Box<Node>),
    /// `??`, the left side where it exists.
    Coalesce(Box<Node>, Box<Node>),
    Call(Call),
    /// Arguments that are missing are `?`.
    Partial(Box<Node>, Vec<Option<Node>>),
    /// `~>`
    Apply(Box<Node>, Box<Node>),
    Lambda(Lambda),
    Transform(Transform),
    Sort(Vec<SortTerm>),
}

pub(crate) struct Path {
    pub(crate) steps: Vec<Node>,
    pub(crate) keeps_singleton: bool,
}

pub(crate) struct Call {
    pub(crate) procedure: Box<Node>,
    pub(crate) arguments: Vec<Node>,
    /// Whether it is the last thing that a function does, so that it needs no stack.
    pub(crate) is_tail: bool,
}

pub(crate) struct Lambda {
    pub(crate) parameters: Vec<Box<str>>,
    pub(crate) signature: Option<Signature>,
    pub(crate) body: Box<Node>,
}

pub(crate) struct Transform {
    pub(crate) pattern: Box<Node>,
    pub(crate) update: Box<Node>,
    pub(crate) deletion: Option<Box<Node>>,
}

pub(crate) struct SortTerm {
    pub(crate) is_descending: bool,
    pub(crate) expression: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
    In,
    Concatenate,
    Range,
}

impl Operator {
    /// The operator of an infix token, if it is a plain one.
    pub(crate) fn of(symbol: &str) -> Option<Operator> {
        Some(match symbol {
            "+" => Operator::Add,
            "-" => Operator::Subtract,
            "*" => Operator::Multiply,
            "/" => Operator::Divide,
            "%" => Operator::Remainder,
            "=" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "and" => Operator::And,
            "or" => Operator::Or,
            "in" => Operator::In,
            "&" => Operator::Concatenate,
            ".." => Operator::Range,
            _ => return None,
        })
    }

    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Remainder => "%",
            Operator::Equal => "=",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::And => "and",
            Operator::Or => "or",
            Operator::In => "in",
            Operator::Concatenate => "&",
            Operator::Range => "..",
        }
    }
}

impl Node {
    pub(crate) fn new(kind: Kind, position: u32) -> Node {
        Node {
            kind,
            position,
            keep_array: false,
            predicates: Vec::new(),
            stages: Vec::new(),
            group: None,
            focus: None,
            index: None,
            ancestor: None,
            is_tuple: false,
            is_constructor: false,
            seeking: Vec::new(),
        }
    }
}
