//! Which fields a state may have, by its type and query language.

use super::check::{Checker, Node};
use super::mistake::shown;
use super::state::QueryLanguage;

/// A type of state, as one bit, so that a field names all the types it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(u8);

pub(crate) const TASK: Types = Types(1);
pub(crate) const PASS: Types = Types(2);
pub(crate) const CHOICE: Types = Types(4);
pub(crate) const WAIT: Types = Types(8);
pub(crate) const SUCCEED: Types = Types(16);
pub(crate) const FAIL: Types = Types(32);
pub(crate) const PARALLEL: Types = Types(64);
pub(crate) const MAP: Types = Types(128);

const ALL: Types = Types(255);
const NOT_FAIL: Types = Types(255 - FAIL.0);
const FLOWING: Types = Types(TASK.0 | PASS.0 | WAIT.0 | PARALLEL.0 | MAP.0);
const WORKING: Types = Types(TASK.0 | PARALLEL.0 | MAP.0);

/// The types by name.
pub(crate) const TYPES: [(&str, Types); 8] = [
    ("Task", TASK),
    ("Pass", PASS),
    ("Choice", CHOICE),
    ("Wait", WAIT),
    ("Succeed", SUCCEED),
    ("Fail", FAIL),
    ("Parallel", PARALLEL),
    ("Map", MAP),
];

/// The languages in which a field is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Both,
    JsonPath,
    Jsonata,
}

/// A field: its name, its types, its languages, and what the other language has in its place.
pub(super) struct Field(&'static str, Types, In, &'static str);

impl Field {
    pub(super) const fn name(&self) -> &'static str {
        self.0
    }

    /// Whether states of that type have it.
    pub(super) const fn belongs_to(&self, types: Types) -> bool {
        self.1.0 & types.0 != 0
    }
}

pub(super) const FIELDS: &[Field] = &[
    Field("Type", ALL, In::Both, ""),
    Field("Comment", ALL, In::Both, ""),
    Field("QueryLanguage", ALL, In::Both, ""),
    Field("InputPath", NOT_FAIL, In::JsonPath, "Arguments or an expression on $states.input"),
    Field("OutputPath", NOT_FAIL, In::JsonPath, "Output"),
    Field("Output", Types(NOT_FAIL.0), In::Jsonata, "OutputPath, ResultPath or ResultSelector"),
    Field("Assign", Types(FLOWING.0 | CHOICE.0), In::Both, ""),
    Field("Next", FLOWING, In::Both, ""),
    Field("End", FLOWING, In::Both, ""),
    Field("Parameters", Types(WORKING.0 | PASS.0), In::JsonPath, "Arguments (Output in a Pass, ItemSelector in a Map)"),
    Field("ResultPath", Types(WORKING.0 | PASS.0), In::JsonPath, "Output"),
    Field("ResultSelector", WORKING, In::JsonPath, "Output"),
    Field("Arguments", Types(TASK.0 | PARALLEL.0), In::Jsonata, "Parameters"),
    Field("Retry", WORKING, In::Both, ""),
    Field("Catch", WORKING, In::Both, ""),
    Field("Resource", TASK, In::Both, ""),
    Field("TimeoutSeconds", TASK, In::Both, ""),
    Field("TimeoutSecondsPath", TASK, In::JsonPath, "TimeoutSeconds with an expression"),
    Field("HeartbeatSeconds", TASK, In::Both, ""),
    Field("HeartbeatSecondsPath", TASK, In::JsonPath, "HeartbeatSeconds with an expression"),
    Field("Credentials", TASK, In::Both, ""),
    Field("Result", PASS, In::JsonPath, "Output"),
    Field("Choices", CHOICE, In::Both, ""),
    Field("Default", CHOICE, In::Both, ""),
    Field("Seconds", WAIT, In::Both, ""),
    Field("SecondsPath", WAIT, In::JsonPath, "Seconds with an expression"),
    Field("Timestamp", WAIT, In::Both, ""),
    Field("TimestampPath", WAIT, In::JsonPath, "Timestamp with an expression"),
    Field("Error", FAIL, In::Both, ""),
    Field("Cause", FAIL, In::Both, ""),
    Field("ErrorPath", FAIL, In::JsonPath, "Error with an expression"),
    Field("CausePath", FAIL, In::JsonPath, "Cause with an expression"),
    Field("Branches", PARALLEL, In::Both, ""),
    Field("ItemProcessor", MAP, In::Both, ""),
    Field("Iterator", MAP, In::Both, ""),
    Field("ItemSelector", MAP, In::Both, ""),
    Field("ItemsPath", MAP, In::JsonPath, "Items"),
    Field("Items", MAP, In::Jsonata, "ItemsPath"),
    Field("ItemReader", MAP, In::Both, ""),
    Field("ItemBatcher", MAP, In::Both, ""),
    Field("ResultWriter", MAP, In::Both, ""),
    Field("MaxConcurrency", MAP, In::Both, ""),
    Field("MaxConcurrencyPath", MAP, In::JsonPath, "MaxConcurrency with an expression"),
    Field("ToleratedFailureCount", MAP, In::Both, ""),
    Field("ToleratedFailureCountPath", MAP, In::JsonPath, "ToleratedFailureCount with an expression"),
    Field("ToleratedFailurePercentage", MAP, In::Both, ""),
    Field("ToleratedFailurePercentagePath", MAP, In::JsonPath, "ToleratedFailurePercentage with an expression"),
    Field("Label", MAP, In::Both, ""),
];

/// Reports fields that a state of this type and language does not have.
pub(crate) fn check_state(checker: &mut Checker<'_>, state: &Node<'_>, name: &str, types: Types, language: QueryLanguage) {
    for (key, field) in state.members() {
        let Some(Field(_, of, languages, instead)) = FIELDS.iter().find(|known| known.0 == key) else {
            let fitting = FIELDS.iter().filter(|known| known.1.0 & types.0 != 0 && fits(known.2, language)).map(|known| known.0);
            unknown(checker, &field, key, &format!("a {name} state"), fitting);
            continue;
        };
        if of.0 & types.0 == 0 {
            checker.report_key(
                &field,
                format!("a {name} state has no field \"{key}\""),
                Some(format!("it belongs to {}; remove it", named(*of))),
            );
        } else if !fits(*languages, language) {
            let other = if language == QueryLanguage::Jsonata { "JSONPath" } else { "JSONata" };
            let help = format!("in {} use {instead}; or set \"QueryLanguage\": \"{other}\" in this state", language.name());
            checker.report_key(
                &field,
                format!("\"{key}\" is a field of {other}, and this state's query language is {}", language.name()),
                Some(help),
            );
        }
    }
}

/// Reports members of an object that are not among `known`.
pub(crate) fn check_members(checker: &mut Checker<'_>, object: &Node<'_>, of: &str, known: &[&str]) {
    for (key, field) in object.members() {
        if !known.contains(&key) {
            unknown(checker, &field, key, of, known.iter().copied());
        }
    }
}

fn unknown<'k>(checker: &mut Checker<'_>, field: &Node<'_>, key: &str, of: &str, known: impl Iterator<Item = &'k str>) {
    let help = checker
        .suggestions
        .nearest(key, known)
        .map_or_else(|| "remove it".to_owned(), |name| format!("did you mean \"{name}\"?"));
    checker.report_key(field, format!("{of} has no field \"{}\"", shown(key)), Some(help));
}

fn fits(languages: In, language: QueryLanguage) -> bool {
    match languages {
        In::Both => true,
        In::JsonPath => language == QueryLanguage::JsonPath,
        In::Jsonata => language == QueryLanguage::Jsonata,
    }
}

/// The types of a field, as a message names them.
fn named(types: Types) -> String {
    let names: Vec<_> = TYPES.iter().filter(|(_, bit)| bit.0 & types.0 != 0).map(|(name, _)| *name).collect();
    names.join(", ")
}
