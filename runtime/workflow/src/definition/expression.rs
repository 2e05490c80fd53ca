//! A JSONata expression of a definition, and which parts of `$states` it can read.
//!
//! `$states` holds documents: the state's input, its result, the error and the context object. An expression is given those alone that its text can reach.

use std::sync::Arc;

use super::limits::{SOURCE_BYTES_MAX, VARIABLE_NAME_CHARS_MAX};
use super::mistake::shown;

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    /// Its text, without `{%` and `%}` and the blanks beside them.
    pub source: Arc<str>,
    /// The field in which it stands, as Step Functions names it: `Output/total`.
    pub location: Arc<str>,
    /// Ready to be evaluated.
    pub(crate) compiled: sledge_jsonata::Expression,
    /// Whether it reads the members of `$states` as variables of their own ([`INPUT`] and so on): then nothing has to be put together for it.
    pub(crate) is_direct: bool,
    /// The variables that it may read, without `states`; names of functions are among them.
    pub(crate) variables: Vec<Arc<str>>,
    /// The members of `$states` that it reads.
    pub(crate) reads: Reads,
}

/// Which members of `$states` an expression reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// `$states.input`.
    pub(crate) input: bool,
    /// `$states.result`.
    pub(crate) result: bool,
    /// `$states.errorOutput`.
    pub(crate) error: bool,
    /// `$states.context`.
    pub(crate) context: bool,
}

impl Reads {
    /// What either reads.
    pub(crate) const fn union(self, other: Self) -> Self {
        Self {
            input: self.input || other.input,
            result: self.result || other.result,
            error: self.error || other.error,
            context: self.context || other.context,
        }
    }

    const ALL: Self = Self { input: true, result: true, error: true, context: true };

    /// From an expression's text: all members, unless each `$states` is followed by `.` and a plain name.
    fn of(source: &str) -> Self {
        let mut reads = Self::default();
        for (at, found) in source.match_indices("$states") {
            let rest = source.get(at + found.len()..).unwrap_or_default();
            if rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
                continue; // another variable, such as $statesman
            }
            let Some(member) = rest.trim_start().strip_prefix('.').map(str::trim_start) else { return Self::ALL };
            let end = member.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(member.len());
            match member.get(..end).unwrap_or_default() {
                "input" => reads.input = true,
                "result" => reads.result = true,
                "errorOutput" => reads.error = true,
                "context" => reads.context = true,
                _ => return Self::ALL,
            }
        }
        reads
    }
}

/// Whether a string is an expression, and its text: what stands between `{%` and `%}`. A string with blanks around the marks is none, as in Step Functions.
///
/// # Errors
/// A message, if only one of both marks is there.
pub(crate) fn unwrapped(text: &str) -> Result<Option<&str>, &'static str> {
    match (text.strip_prefix("{%"), text.ends_with("%}")) {
        (Some(inner), true) if inner.len() >= 2 => Ok(inner.strip_suffix("%}").map(str::trim)),
        (None, false) => Ok(None),
        (Some(_), _) => Err("the expression starts with {% and does not end with %}"),
        (None, true) => Err("the expression ends with %} and does not start with {%"),
    }
}

impl Expression {
    /// Compiles what stands between the marks; `location` is the field.
    ///
    /// # Errors
    /// A message with the position in the expression.
    pub(crate) fn parse(source: &str, location: &str) -> Result<Self, String> {
        let limits = sledge_jsonata::Limits { source: SOURCE_BYTES_MAX, ..Default::default() };
        let compiled = sledge_jsonata::Expression::parse(source, &limits).map_err(|error| error.to_string())?;
        check_members(&compiled)?;
        let variables = variables(source);
        let direct = direct(source, &compiled).and_then(|text| sledge_jsonata::Expression::parse(&text, &limits).ok());
        let is_direct = direct.is_some();
        let compiled = direct.unwrap_or(compiled);
        Ok(Self { source: source.into(), location: location.into(), compiled, is_direct, variables, reads: Reads::of(source) })
    }
}

/// Variables that stand for members of `$states`. No expression names them itself: one that does is not rewritten.
pub(crate) const INPUT: &str = "states_input";
/// See [`INPUT`].
pub(crate) const RESULT: &str = "states_result";
/// See [`INPUT`].
pub(crate) const ERROR: &str = "states_error";
/// See [`INPUT`].
pub(crate) const CONTEXT: &str = "states_context";

/// `$states` has four members: another one is a mistake.
fn check_members(compiled: &sledge_jsonata::Expression) -> Result<(), String> {
    const MEMBERS: [&str; 4] = ["input", "result", "errorOutput", "context"];
    let references = compiled.variables();
    let of_states =
        references.iter().filter(|reference| reference.name == "states").filter_map(|reference| reference.field.as_deref());
    match of_states.into_iter().find(|field| !MEMBERS.contains(field)) {
        Some(field) => Err(format!("there is no $states.{}; $states has {}", shown(field), MEMBERS.join(", "))),
        None => Ok(()),
    }
}

/// Whether there is `[]` in it.
fn keeps_arrays(source: &str) -> bool {
    source.split('[').skip(1).any(|after| after.trim_start().starts_with(']'))
}

/// The expression with each `$states.input` and so on as one variable, so that documents are borrowed and not copied into one object. A path that begins at a
/// variable gives what one gives that begins at a member of an object; only `%` (parent), `@`, `#` and `[]` can tell them apart. None if `$states` is used otherwise.
fn direct(source: &str, compiled: &sledge_jsonata::Expression) -> Option<String> {
    let mentions = source.matches("$states").count();
    if mentions == 0
        || source.contains(['%', '@', '#'])
        || source.contains("/*")
        || keeps_arrays(source)
        || source.contains("$states_")
    {
        return None;
    }
    let references: Vec<_> = compiled.variables().into_iter().filter(|reference| reference.name == "states").collect();
    if references.len() != mentions {
        return None;
    }
    let mut text = String::with_capacity(source.len());
    let mut rest_at = 0;
    for reference in references {
        let at = source.char_indices().nth(reference.position).map(|(at, _)| at).filter(|at| *at >= rest_at)?;
        let after = source.get(at..)?.strip_prefix("$states")?.trim_start().strip_prefix('.')?.trim_start();
        let (member, variable) = match reference.field?.as_str() {
            "input" => ("input", INPUT),
            "result" => ("result", RESULT),
            "errorOutput" => ("errorOutput", ERROR),
            "context" => ("context", CONTEXT),
            _ => return None,
        };
        let after = after.strip_prefix(member).filter(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))?;
        text.push_str(source.get(rest_at..at)?);
        text.push('$');
        text.push_str(variable);
        rest_at = source.len() - after.len();
    }
    text.push_str(source.get(rest_at..)?);
    Some(text)
}

/// The names after each `$` of an expression. A name in a text or comment is among them: it does no harm.
fn variables(source: &str) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for piece in source.split('$').skip(1) {
        let end = piece.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(piece.len());
        let name = piece.get(..end).unwrap_or_default();
        if !name.is_empty() && name != "states" && name.chars().count() <= VARIABLE_NAME_CHARS_MAX {
            names.push(name.into());
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}
