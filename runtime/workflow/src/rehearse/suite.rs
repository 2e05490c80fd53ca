//! A test file: its workflow and its cases, checked as a whole.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::difference::cut;
use super::expect::{self, Expect};
use super::form::{Form, Node, nearest};
use super::limits::{AFTER_SECONDS_MAX, CASES_MAX, SUITE_BYTES_MAX, VALUE_CHARS_MAX};
use super::mock::{self, Mock};
use super::place::Places;
use super::problem::Problem;
use super::{CaseResult, play};
use crate::data::Timestamp;
use crate::definition::{Definition, Kind};
use crate::machine::{About, Purpose};

/// Random numbers of a case begin with this, where `seed` is not given.
const SEED: u64 = 1;
/// When a case begins, where `start` is not given: 2026-01-01T00:00:00Z in milliseconds since 1970.
const START_MS: i64 = 1_767_225_600_000;

/// A test file that was read. It is data, and runs as often as the caller likes, each time the same.
#[derive(Debug)]
pub struct Suite {
    workflow: String,
    cases: Vec<Case>,
    places: Places,
}

/// One case.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) input: Arc<Value>,
    pub(super) mocks: Vec<Mock>,
    pub(super) start_ms: i64,
    pub(super) seed: u64,
    pub(super) state: Option<String>,
    pub(super) variables: Map<String, Value>,
    pub(super) stop_after_ms: Option<i64>,
    /// The error and the cause with which it is stopped.
    pub(super) stop_reason: (Option<Arc<str>>, Option<Arc<str>>),
    /// What the execution is called.
    pub(super) about: About,
    pub(super) expect: Expect,
}

impl Suite {
    /// Reads a test file. [`super`] describes its form.
    ///
    /// # Errors
    /// All problems in the order of the text, at most [`PROBLEMS_MAX`](super::limits::PROBLEMS_MAX); at least one.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let whole = |line, column, message, help: Option<&str>| {
            let help = help.map(str::to_owned);
            vec![Problem { line, column, path: String::new(), message, help }]
        };
        if text.len() > SUITE_BYTES_MAX {
            let message = format!("the file has {} bytes; the limit is {SUITE_BYTES_MAX}", text.len());
            return Err(whole(1, 1, message, Some("split it into several files")));
        }
        let document: Value = serde_json::from_str(text).map_err(|error| {
            let text = error.to_string();
            // The reader ends its message with the place, which a problem has of its own.
            let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
            whole(error.line().max(1), error.column().max(1), format!("not valid JSON: {message}"), None)
        })?;
        let (places, duplicates) = Places::of(text);
        let mut form = Form::new(&places);
        for (path, offset) in duplicates {
            form.report_at(offset, &path, "the key occurs twice".to_owned(), Some("rename or remove one of them".to_owned()));
        }
        let root = Node { value: &document, path: String::new() };
        let workflow = workflow(&mut form, &root);
        let cases = cases(&mut form, &root);
        let problems = form.into_problems();
        match workflow {
            Some(workflow) if problems.is_empty() => Ok(Self { workflow, cases, places }),
            _ => Err(problems),
        }
    }

    /// `workflow`: the path of the definition, as the file gives it. The caller reads it.
    #[must_use]
    pub fn workflow(&self) -> &str {
        &self.workflow
    }

    /// The names of the cases.
    pub fn cases(&self) -> impl Iterator<Item = &str> {
        self.cases.iter().map(|case| case.name.as_str())
    }

    /// The case of a file that has one.
    pub(super) fn only_case(&self) -> Option<&Case> {
        if let [case] = &*self.cases { Some(case) } else { None }
    }

    /// States that the file names and the definition has not, and mocks of states that ask for nothing; empty if there are none. [`run`](Self::run) tells them as
    /// problems of their cases.
    #[must_use]
    pub fn check(&self, definition: &Definition) -> Vec<Problem> {
        let mut form = Form::new(&self.places);
        self.cases.iter().for_each(|case| check(&mut form, case, definition));
        form.into_problems()
    }

    /// Runs all cases in their order.
    #[must_use]
    pub fn run(&self, definition: &Definition) -> Vec<CaseResult> {
        let run = |case: &Case| {
            let mut form = Form::new(&self.places);
            check(&mut form, case, definition);
            let problems: Vec<_> = form.into_problems().iter().map(ToString::to_string).collect();
            if problems.is_empty() {
                play::run(case, definition)
            } else {
                CaseResult { name: case.name.clone(), problems, trace: Vec::new(), elapsed_ms: 0, steps: 0 }
            }
        };
        self.cases.iter().map(run).collect()
    }
}

/// Checks the states that a case names.
fn check(form: &mut Form<'_>, case: &Case, definition: &Definition) {
    let names = || definition.states().iter().map(|state| &*state.name);
    let mut known = |path: &str, name: &str| {
        let found = definition.find(name).and_then(|index| definition.state(index));
        if found.is_none() {
            form.report(path, format!("the workflow has no state \"{}\"", cut(name, VALUE_CHARS_MAX)), nearest(name, names()));
        }
        found
    };
    if let Some(state) = &case.state {
        known(&super::place::member(&case.path, "state"), state);
    }
    for (path, state) in &case.expect.states {
        known(path, state);
    }
    let mocked: Vec<_> = case.mocks.iter().map(|mock| (mock, known(&mock.path, &mock.state))).collect();
    for (mock, state) in mocked {
        let Some(state) = state else { continue };
        let (asks, waits) = match (&state.kind, mock.purpose) {
            (Kind::Task(task), Purpose::Work) => (true, task.resource.has_callback()),
            (Kind::Map(map), Purpose::Read) => (map.reader.is_some(), false),
            (Kind::Map(map), Purpose::Write) => (map.writer.is_some(), false),
            _ => (false, false),
        };
        if !asks {
            let message =
                format!("the state \"{}\" asks for nothing that could be mocked: it is a {}", mock.state, state.kind.name());
            let help = match &state.kind {
                Kind::Map(map) if map.reader.is_some() && mock.purpose == Purpose::Work => "write {\"ItemReader\": ...}",
                _ => "remove the mock",
            };
            form.report(&mock.path, message, Some(help.to_owned()));
        } else if mock.has_callback() && !waits {
            let message = format!("the task of \"{}\" does not wait for a callback", mock.state);
            let help = "use \"return\" or \"error\" alone, or a resource with .waitForTaskToken";
            form.report(&mock.path, message, Some(help.to_owned()));
        }
    }
}

fn workflow(form: &mut Form<'_>, root: &Node<'_>) -> Option<String> {
    if !form.object(root, &["workflow", "cases", "comment"]) {
        return None;
    }
    match root.get("workflow") {
        None => {
            form.report("", "\"workflow\" is missing", Some("give the path of the definition".to_owned()));
            None
        }
        Some(node) => form.string(&node).map(str::to_owned),
    }
}

fn cases(form: &mut Form<'_>, root: &Node<'_>) -> Vec<Case> {
    let Some(node) = root.get("cases") else {
        if root.value.is_object() {
            form.report("", "\"cases\" is missing", Some("give an array of cases".to_owned()));
        }
        return Vec::new();
    };
    match node.value.as_array() {
        None => form.expected(&node, "an array of cases"),
        Some(list) if list.is_empty() => {
            form.report(&node.path, "there are no cases", Some("give at least one".to_owned()));
        }
        Some(list) if list.len() > CASES_MAX => {
            let message = format!("{} cases; the limit is {CASES_MAX}", list.len());
            form.report(&node.path, message, Some("split the file".to_owned()));
        }
        Some(_) => {
            let mut names = std::collections::HashSet::new();
            let cases: Vec<_> = node.elements().filter_map(|node| case(form, &node)).collect();
            for case in cases.iter().filter(|case| !names.insert(case.name.as_str())) {
                let path = super::place::member(&case.path, "name");
                form.report(
                    &path,
                    format!("another case is named \"{}\"", cut(&case.name, VALUE_CHARS_MAX)),
                    Some("rename one of them".to_owned()),
                );
            }
            return cases;
        }
    }
    Vec::new()
}

/// Reads one case. None if it cannot be run; a problem says why.
fn case(form: &mut Form<'_>, node: &Node<'_>) -> Option<Case> {
    let known = [
        "name",
        "comment",
        "input",
        "mocks",
        "start",
        "seed",
        "state",
        "variables",
        "stop_after_s",
        "stop_error",
        "stop_cause",
        "context",
        "expect",
    ];
    if !form.object(node, &known) {
        return None;
    }
    let name = match node.get("name") {
        None => {
            form.report(&node.path, "\"name\" is missing", Some("say what the case is about".to_owned()));
            None
        }
        Some(name) => form.string(&name).map(str::to_owned),
    };
    let start_ms = match node.get("start") {
        None => Some(START_MS),
        Some(start) => form.string(&start).and_then(|text| match Timestamp::parse(text) {
            Ok(time) => Some(time.unix_ms()),
            Err(error) => {
                form.report(&start.path, error.to_string(), None);
                None
            }
        }),
    };
    let seed = node.get("seed").map_or(Some(SEED), |seed| form.whole(&seed));
    let state = node.get("state").and_then(|state| form.string(&state).map(str::to_owned));
    let variables = variables(form, node);
    let stop_after_ms = node.get("stop_after_s").and_then(|stop| form.seconds_ms(&stop, AFTER_SECONDS_MAX));
    let text = |form: &mut Form<'_>, key| node.get(key).and_then(|node| form.string(&node).map(Arc::from));
    let stop_reason = (text(form, "stop_error"), text(form, "stop_cause"));
    let about = about(form, node);
    let mocks = node.get("mocks").map(|mocks| mock::read(form, &mocks)).unwrap_or_default();
    let expect = match node.get("expect") {
        None => {
            let help =
                "give \"expect\" with at least one of output, error, cause, status, elapsed_s, next, history, events, calls";
            form.report(&node.path, "the case expects nothing: it cannot fail", Some(help.to_owned()));
            None
        }
        Some(expect) => expect::read(form, &expect, node.get("state").is_some()),
    };
    let input = node.get("input").map_or_else(|| json!({}), |input| input.value.clone());
    Some(Case {
        name: name?,
        path: node.path.clone(),
        input: Arc::new(input),
        mocks,
        start_ms: start_ms?,
        seed: seed?,
        state,
        variables,
        stop_after_ms,
        stop_reason,
        about,
        expect: expect?,
    })
}

/// `context`: what the execution, its role and its workflow are called in the context object.
fn about(form: &mut Form<'_>, node: &Node<'_>) -> About {
    let mut about = About {
        id: "execution:test".into(),
        name: "test".into(),
        role: "".into(),
        machine_id: "workflow:test".into(),
        machine_name: "test".into(),
        token_prefix: "test.".into(),
    };
    let Some(context) = node.get("context") else { return about };
    form.object(&context, &["execution_id", "execution", "role", "workflow_id", "workflow"]);
    for (key, place) in [
        ("execution_id", &mut about.id),
        ("execution", &mut about.name),
        ("role", &mut about.role),
        ("workflow_id", &mut about.machine_id),
        ("workflow", &mut about.machine_name),
    ] {
        if let Some(text) = context.get(key).and_then(|node| form.string(&node).map(Arc::from)) {
            *place = text;
        }
    }
    about
}

fn variables(form: &mut Form<'_>, node: &Node<'_>) -> Map<String, Value> {
    let Some(variables) = node.get("variables") else { return Map::new() };
    if node.get("state").is_none() {
        let help = "add \"state\", or let a state assign them";
        form.report(&variables.path, "variables are given to a state alone", Some(help.to_owned()));
    }
    match variables.value {
        Value::Object(members) => members.clone(),
        _ => {
            form.expected(&variables, "an object of variables by name");
            Map::new()
        }
    }
}
