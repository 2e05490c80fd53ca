//! The rules of a Choice.

use serde_json::Value;

use super::check::Node;
use super::fields::check_members;
use super::payload::Condition;
use super::reader::{Reader, Scope};
use super::state::{Kind, QueryLanguage, Rule};
use super::values::{assign, expression, payload, pointed};
use crate::data::Rule as Comparison;

/// `Choices` and `Default`.
pub(crate) fn read(reader: &mut Reader<'_>, node: &Node<'_>, scope: &Scope<'_>) -> Option<Kind> {
    let default = node.get("Default").map(|field| reader.target(&field, scope));
    let Some(field) = node.get("Choices") else {
        reader.checker.report(node, "a Choice state needs \"Choices\"", Some("give an array of rules".to_owned()));
        return None;
    };
    reader.checker.filled_array(&field, "rule")?;
    let rules: Vec<_> =
        field.elements().enumerate().map(|(at, rule)| self::rule(reader, &rule, &format!("Choices[{at}]"), scope)).collect();
    let rules = rules.into_iter().collect::<Option<_>>()?;
    let default = match default {
        Some(target) => Some(target?),
        None => None,
    };
    Some(Kind::Choice { rules, default })
}

fn rule(reader: &mut Reader<'_>, node: &Node<'_>, place: &str, scope: &Scope<'_>) -> Option<Rule> {
    reader.checker.object(node)?;
    let next = match node.get("Next") {
        Some(field) => reader.target(&field, scope),
        None => {
            reader.checker.report(
                node,
                "a rule of a Choice needs \"Next\"",
                Some("give the name of the state that it leads to".to_owned()),
            );
            None
        }
    };
    let assign = assign(reader, node.get("Assign"), &format!("{place}/Assign"), scope);
    let (condition, output) = match scope.language {
        QueryLanguage::JsonPath => (comparison(reader, node), Some(None)),
        QueryLanguage::Jsonata => {
            check_members(
                &mut reader.checker,
                node,
                "a rule of a Choice in JSONata",
                &["Condition", "Next", "Assign", "Output", "Comment"],
            );
            (condition(reader, node, place), payload(reader, node.get("Output"), &format!("{place}/Output"), scope.language))
        }
    };
    Some(Rule { condition: condition?, next: next?, assign: assign?, output: output? })
}

/// `Condition` of JSONata.
fn condition(reader: &mut Reader<'_>, node: &Node<'_>, place: &str) -> Option<Condition> {
    let Some(field) = node.get("Condition") else {
        reader.checker.report(
            node,
            "a rule of a Choice needs \"Condition\"",
            Some("give an expression, such as {% $states.input.n > 1 %}".to_owned()),
        );
        return None;
    };
    match field.value {
        Value::Bool(constant) => Some(Condition::Constant(*constant)),
        _ => expression(&mut reader.checker, &field, &format!("{place}/Condition")).map(Condition::Query),
    }
}

/// A comparison of JSONPath: what is left of the rule without the fields that are not part of it.
fn comparison(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<Condition> {
    let mut members = reader.checker.object(node)?.clone();
    if let Some(output) = node.get("Output") {
        let help = "use \"Assign\", or a Pass state after it";
        reader.checker.report_key(&output, "a rule of a Choice in JSONPath has no field \"Output\"", Some(help.to_owned()));
    }
    for field in Comparison::CONSEQUENCES {
        members.shift_remove(field);
    }
    match Comparison::parse(&members) {
        Ok(comparison) => Some(Condition::Comparison(comparison)),
        Err(errors) => {
            for error in errors {
                let at = Node { value: node.value, path: pointed(&node.path, node.value, &error.pointer) };
                reader.checker.report(&at, error.message, None);
            }
            None
        }
    }
}
