//! Fields with values of either query language: paths, templates, expressions, numbers and texts.

use std::sync::Arc;

use serde_json::Value;

use super::check::{Checker, Node, briefly, kind_of, whole};
use super::expression::{Expression, unwrapped};
use super::limits::{DEPTH_MAX, VARIABLE_NAME_CHARS_MAX};
use super::mistake::shown;
use super::payload::{Number, Payload, Query, ResultPath, Selection, Text};
use super::reader::{Reader, Scope};
use super::span::Step;
use super::state::QueryLanguage;
use crate::data::{Expression as PathExpression, Path, ReferencePath, Template};

/// The outcome of reading a field: none is a mistake that was reported.
type Read<T> = Option<T>;

/// A path, or a mistake.
pub(crate) fn path(checker: &mut Checker<'_>, node: &Node<'_>) -> Read<Path> {
    let text = checker.string(node)?;
    match Path::parse(text) {
        Ok(path) => Some(path),
        Err(error) => {
            let message = format!("\"{}\" is not a valid path: {error}", shown(text));
            checker.report(node, message, Some("a path starts with $, such as $.order.items[0]".to_owned()));
            None
        }
    }
}

/// `InputPath`, `OutputPath`, `ItemsPath`: absent, null or a path.
pub(crate) fn selection(checker: &mut Checker<'_>, node: Option<Node<'_>>) -> Read<Selection> {
    let Some(node) = node else { return Some(Selection::Whole) };
    match node.value {
        Value::Null => Some(Selection::Nothing),
        Value::String(text) if text == "$" => Some(Selection::Whole),
        _ => path(checker, &node).map(Selection::Path),
    }
}

/// `ResultPath`: absent, null or a reference path.
pub(crate) fn result_path(checker: &mut Checker<'_>, node: Option<Node<'_>>) -> Read<ResultPath> {
    let Some(node) = node else { return Some(ResultPath::Replace) };
    match node.value {
        Value::Null => return Some(ResultPath::Discard),
        Value::String(text) if text == "$" => return Some(ResultPath::Replace),
        _ => {}
    }
    let text = checker.string(&node)?;
    match ReferencePath::parse(text) {
        Ok(path) => Some(ResultPath::At(path)),
        Err(error) => {
            let message = format!("\"{}\" is not a valid reference path: {error}", shown(text));
            checker.report(&node, message, Some("a reference path names one place, such as $.result".to_owned()));
            None
        }
    }
}

/// An optional template or value with expressions, by the language.
pub(crate) fn payload(
    reader: &mut Reader<'_>,
    node: Option<Node<'_>>,
    field: &str,
    language: QueryLanguage,
) -> Read<Option<Payload>> {
    let Some(node) = node else { return Some(None) };
    match language {
        QueryLanguage::JsonPath => template(&mut reader.checker, &node).map(|template| Some(Payload::Template(template))),
        QueryLanguage::Jsonata => {
            if matches!(field, "Arguments" | "ItemSelector" | "BatchInput")
                && !node.value.is_object()
                && !is_expression(node.value)
            {
                let message = format!("expected an object or an expression, found {}", kind_of(node.value));
                reader.checker.report(&node, message, Some("an expression stands in {% and %}".to_owned()));
                return None;
            }
            query(&mut reader.checker, &node, field, 0).map(|query| Some(Payload::Query(query)))
        }
    }
}

/// A template of JSONPath.
pub(crate) fn template(checker: &mut Checker<'_>, node: &Node<'_>) -> Read<Template> {
    match Template::parse(node.value) {
        Ok(template) => Some(template),
        Err(errors) => {
            for error in errors {
                let at = Node { value: node.value, path: pointed(&node.path, node.value, &error.pointer) };
                checker.report(&at, error.message, None);
            }
            None
        }
    }
}

/// The path to what a JSON pointer leads to below a value.
pub(crate) fn pointed(base: &[Step], value: &Value, pointer: &str) -> Vec<Step> {
    let mut path = base.to_vec();
    let mut value = Some(value);
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let step = match value {
            Some(Value::Array(elements)) => match token.parse::<usize>() {
                Ok(index) => {
                    value = elements.get(index);
                    Step::Index(index)
                }
                Err(_) => break,
            },
            _ => {
                value = value.and_then(|value| value.get(&token));
                Step::Key(token.into())
            }
        };
        path.push(step);
    }
    path
}

/// A value in which expressions may stand; `location` names it as Step Functions does: `Output/total`.
pub(crate) fn query(checker: &mut Checker<'_>, node: &Node<'_>, location: &str, depth: usize) -> Read<Query> {
    if depth > DEPTH_MAX {
        checker.report(node, format!("the value is nested more than {DEPTH_MAX} deep"), None);
        return None;
    }
    match node.value {
        Value::String(text) => match unwrapped(text) {
            Ok(None) => Some(Query::Literal(Arc::new(node.value.clone()))),
            Ok(Some(source)) => expression_of(checker, node, source, location).map(Query::Expression),
            Err(message) => {
                checker.report(node, message, Some("write {% EXPRESSION %}".to_owned()));
                None
            }
        },
        // Nothing in it is an expression: one value, which is not looked into again.
        _ if !has_marks(node.value) => Some(Query::Literal(Arc::new(node.value.clone()))),
        Value::Array(_) => {
            let parts: Vec<_> = node
                .elements()
                .enumerate()
                .map(|(at, element)| query(checker, &element, &format!("{location}[{at}]"), depth + 1))
                .collect();
            parts.into_iter().collect::<Option<Vec<_>>>().map(Query::Array)
        }
        _ => {
            let parts: Vec<_> = node
                .members()
                .map(|(name, member)| Some((Arc::from(name), query(checker, &member, &format!("{location}/{name}"), depth + 1)?)))
                .collect();
            parts.into_iter().collect::<Option<Vec<_>>>().map(Query::Object)
        }
    }
}

/// Whether a string in a value has a mark of an expression, or looks so.
fn has_marks(value: &Value) -> bool {
    match value {
        Value::String(text) => text.starts_with("{%") || text.ends_with("%}"),
        // As deep as the reader of JSON allows.
        Value::Array(elements) => elements.iter().any(has_marks),
        Value::Object(members) => members.values().any(has_marks),
        _ => false,
    }
}

fn is_expression(value: &Value) -> bool {
    value.as_str().is_some_and(|text| matches!(unwrapped(text), Ok(Some(_))))
}

fn expression_of(checker: &mut Checker<'_>, node: &Node<'_>, source: &str, location: &str) -> Read<Expression> {
    match Expression::parse(source, location) {
        Ok(expression) => Some(expression),
        Err(message) => {
            checker.report(node, format!("the expression is not valid: {message}"), None);
            None
        }
    }
}

/// A string in `{% %}`, or a mistake.
pub(crate) fn expression(checker: &mut Checker<'_>, node: &Node<'_>, location: &str) -> Read<Expression> {
    let text = checker.string(node)?;
    match unwrapped(text) {
        Ok(Some(source)) => expression_of(checker, node, source, location),
        Ok(None) => {
            checker.report(
                node,
                format!("expected an expression, found \"{}\"", shown(text)),
                Some("write {% EXPRESSION %}".to_owned()),
            );
            None
        }
        Err(message) => {
            checker.report(node, message, Some("write {% EXPRESSION %}".to_owned()));
            None
        }
    }
}

/// What a field with a number may be.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) field: &'static str,
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// Whether fractions are allowed.
    pub(crate) fraction: bool,
}

/// A field with a number, and its form with `Path` in JSONPath.
pub(crate) fn number(reader: &mut Reader<'_>, state: &Node<'_>, range: Range, language: QueryLanguage) -> Read<Option<Number>> {
    let path_field = format!("{}Path", range.field);
    let (own, from) = (state.get(range.field), state.get(&path_field).filter(|_| language == QueryLanguage::JsonPath));
    match (own, from) {
        (None, None) => Some(None),
        (Some(_), Some(from)) => {
            let message = format!("\"{}\" and \"{path_field}\" exclude each other", range.field);
            reader.checker.report_key(&from, message, Some("remove one of them".to_owned()));
            None
        }
        (None, Some(from)) => path(&mut reader.checker, &from).map(|path| Some(Number::Path(path))),
        (Some(own), None) if language == QueryLanguage::Jsonata && own.value.is_string() => {
            expression(&mut reader.checker, &own, range.field).map(|expression| Some(Number::Query(expression)))
        }
        (Some(own), None) => {
            literal(&mut reader.checker, &own, range, &path_field, language).map(|number| Some(Number::Literal(number)))
        }
    }
}

fn literal(checker: &mut Checker<'_>, node: &Node<'_>, range: Range, path_field: &str, language: QueryLanguage) -> Read<f64> {
    let Range { least, most, fraction, .. } = range;
    let number = if fraction { node.value.as_f64() } else { whole(node.value).map(|number| number as f64) };
    let number = number.filter(|number| (least as f64..=most as f64).contains(number));
    if number.is_none() {
        let of = if fraction { "number" } else { "whole number" };
        let help = match (language, node.value) {
            (QueryLanguage::JsonPath, Value::String(text)) if text.starts_with('$') => {
                Some(format!("for a path use \"{path_field}\""))
            }
            (QueryLanguage::JsonPath, Value::String(text)) if text.contains("{%") => {
                Some("for an expression set \"QueryLanguage\": \"JSONata\"".to_owned())
            }
            _ => None,
        };
        checker.report(node, format!("expected a {of} from {least} to {most}, found {}", briefly(node.value)), help);
    }
    number
}

/// A field with a text, and its form with `Path` in JSONPath, where an intrinsic function may stand as well.
pub(crate) fn text(
    reader: &mut Reader<'_>,
    state: &Node<'_>,
    field: &'static str,
    language: QueryLanguage,
) -> Read<Option<Text>> {
    let path_field = format!("{field}Path");
    let (own, from) = (state.get(field), state.get(&path_field).filter(|_| language == QueryLanguage::JsonPath));
    match (own, from) {
        (None, None) => Some(None),
        (Some(_), Some(from)) => {
            let message = format!("\"{field}\" and \"{path_field}\" exclude each other");
            reader.checker.report_key(&from, message, Some("remove one of them".to_owned()));
            None
        }
        (None, Some(from)) => path_or_intrinsic(&mut reader.checker, &from).map(Some),
        (Some(own), None) => {
            let text = reader.checker.string(&own)?;
            if language == QueryLanguage::JsonPath {
                return Some(Some(Text::Literal(text.into())));
            }
            match unwrapped(text) {
                Ok(None) => Some(Some(Text::Literal(text.into()))),
                _ => expression(&mut reader.checker, &own, field).map(|expression| Some(Text::Query(expression))),
            }
        }
    }
}

fn path_or_intrinsic(checker: &mut Checker<'_>, node: &Node<'_>) -> Read<Text> {
    let text = checker.string(node)?;
    match PathExpression::parse(text) {
        Ok(expression) => Some(Text::Path(expression)),
        Err(error) => {
            let message = format!("\"{}\" is neither a path nor an intrinsic function: {error}", shown(text));
            checker.report(node, message, None);
            None
        }
    }
}

/// `Assign`: an object of variables by name; `location` names the field.
pub(crate) fn assign(
    reader: &mut Reader<'_>,
    node: Option<Node<'_>>,
    location: &str,
    scope: &Scope<'_>,
) -> Read<Option<Payload>> {
    let Some(node) = node else { return Some(None) };
    let members = reader.checker.object(&node)?;
    for (key, member) in node.members() {
        let name = match scope.language {
            QueryLanguage::JsonPath => key.strip_suffix(".$").unwrap_or(key),
            QueryLanguage::Jsonata => key,
        };
        check_variable(&mut reader.checker, &member, name);
        if name != key && members.contains_key(name) {
            let message = format!("the variable \"{}\" is assigned twice, as \"{}\" as well", shown(name), shown(key));
            reader.checker.report_key(&member, message, Some("remove one of them".to_owned()));
        }
        reader.assigns(scope, name, &member);
    }
    payload(reader, Some(node), location, scope.language)
}

fn check_variable(checker: &mut Checker<'_>, node: &Node<'_>, name: &str) {
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let fits = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if name == "states" {
        checker.report_key(node, "the variable \"states\" is reserved", Some("use another name".to_owned()));
    } else if !starts || !fits || name.chars().count() > VARIABLE_NAME_CHARS_MAX {
        let help = format!("give a letter or _, then letters, digits and _, at most {VARIABLE_NAME_CHARS_MAX} characters");
        checker.report_key(node, format!("\"{}\" is not a valid name of a variable", shown(name)), Some(help));
    }
}
