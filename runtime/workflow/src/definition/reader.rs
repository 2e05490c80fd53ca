//! Reads a document into machines and states: names, targets, what can be reached, variables.

use std::collections::HashMap;

use serde_json::Value;

use super::check::{Checker, Node, briefly};
use super::fields::{TYPES, Types, check_members, check_state};
use super::graph::followers;
use super::limits::{NESTING_MAX, SECONDS_MAX, SOURCE_BYTES_MAX, STATE_NAME_CHARS_MAX, STATES_MAX};
use super::mistake::{Mistake, shown};
use super::span::Span;
use super::state::{Machine, MachineIndex, QueryLanguage, State, StateIndex};
use super::{Definition, states};

/// Reads a definition, or gives its mistakes.
pub(crate) fn read(source: &str) -> Result<Definition, Vec<Mistake>> {
    if source.len() > SOURCE_BYTES_MAX {
        let message = format!("the definition has {} bytes; the limit is {SOURCE_BYTES_MAX}", source.len());
        return Err(vec![whole_mistake(1, 1, message, Some("split it into several workflows".to_owned()))]);
    }
    let document: Value = match serde_json::from_str(source) {
        Ok(document) => document,
        Err(error) => {
            let text = error.to_string();
            // The reader ends its message with the place, which a mistake has of its own.
            let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
            return Err(vec![whole_mistake(
                error.line().max(1),
                error.column().max(1),
                format!("not valid JSON: {message}"),
                None,
            )]);
        }
    };
    let (spans, duplicates) = Span::of(source);
    let mut checker = Checker::new(source, &spans);
    for (path, key, offset) in duplicates {
        checker.report_at(
            offset,
            &path,
            format!("the key \"{}\" occurs twice", shown(&key)),
            Some("rename or remove one of them".to_owned()),
        );
    }
    let root = Node { value: &document, path: Vec::new() };
    let mut reader = Reader::new(checker);
    let header = reader.header(&root);
    reader.machine(&root, None, 0);
    reader.check_variables();
    let mistakes = reader.checker.into_mistakes();
    let states: Option<Vec<State>> = reader.states.into_iter().collect();
    let machines: Option<Vec<Machine>> = reader.machines.into_iter().collect();
    match (states, machines) {
        (Some(states), Some(machines)) if mistakes.is_empty() => Ok(Definition {
            comment: header.comment,
            timeout_s: header.timeout_s,
            language: header.language,
            states,
            machines,
            fingerprint: xxhash_rust::xxh3::xxh3_64(source.as_bytes()),
            source: source.into(),
        }),
        _ if mistakes.is_empty() => Err(vec![whole_mistake(
            1,
            1,
            "the definition could not be compiled".to_owned(),
            Some("report this as a bug of the server".to_owned()),
        )]),
        _ => Err(mistakes),
    }
}

fn whole_mistake(line: usize, column: usize, message: String, help: Option<String>) -> Mistake {
    Mistake { line, column, path: String::new(), state: None, message, help }
}

struct Header {
    comment: Option<String>,
    timeout_s: Option<u64>,
    language: QueryLanguage,
}

/// The state of reading: what was found so far.
pub(crate) struct Reader<'a> {
    pub(crate) checker: Checker<'a>,
    language: QueryLanguage,
    states: Vec<Option<State>>,
    machines: Vec<Option<Machine>>,
    /// The machine around each machine, and its state that each belongs to.
    pub(super) around: Vec<Option<(MachineIndex, StateIndex)>>,
    /// Where each name was first given, as a message says it.
    names: HashMap<String, String>,
    pub(super) assignments: Vec<Assignment>,
}

/// A variable that a state assigns.
pub(crate) struct Assignment {
    pub(super) machine: MachineIndex,
    pub(super) state: StateIndex,
    pub(super) name: String,
    /// Where it stands.
    pub(super) path: Vec<super::span::Step>,
}

/// What a state's reader knows of its machine.
pub(crate) struct Scope<'m> {
    pub(crate) machine: MachineIndex,
    pub(crate) language: QueryLanguage,
    /// The state that is read.
    pub(crate) state: StateIndex,
    targets: &'m HashMap<&'m str, StateIndex>,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn new(checker: Checker<'a>) -> Self {
        Self {
            checker,
            language: QueryLanguage::JsonPath,
            states: Vec::new(),
            machines: Vec::new(),
            around: Vec::new(),
            names: HashMap::new(),
            assignments: Vec::new(),
        }
    }

    /// The fields of the whole besides its states.
    fn header(&mut self, root: &Node<'_>) -> Header {
        let mut header = Header { comment: None, timeout_s: None, language: QueryLanguage::JsonPath };
        if let Some(comment) = root.get("Comment") {
            header.comment = self.checker.string(&comment).map(str::to_owned);
        }
        if let Some(version) = root.get("Version")
            && version.value.as_str() != Some("1.0")
        {
            self.checker.report(&version, format!("unknown version {}", briefly(version.value)), Some("give \"1.0\"".to_owned()));
        }
        if let Some(timeout) = root.get("TimeoutSeconds") {
            header.timeout_s = self.checker.integer(&timeout, 1, SECONDS_MAX);
        }
        if let Some(language) = root.get("QueryLanguage").and_then(|node| self.query_language(&node)) {
            header.language = language;
        }
        self.language = header.language;
        header
    }

    fn query_language(&mut self, node: &Node<'_>) -> Option<QueryLanguage> {
        match node.value.as_str() {
            Some("JSONPath") => Some(QueryLanguage::JsonPath),
            Some("JSONata") => Some(QueryLanguage::Jsonata),
            _ => {
                let message = format!("unknown query language {}", briefly(node.value));
                self.checker.report(node, message, Some("give \"JSONPath\" or \"JSONata\"".to_owned()));
                None
            }
        }
    }

    /// Reads `StartAt` and `States`; none if the machine cannot be entered.
    pub(crate) fn machine(&mut self, node: &Node<'_>, owner: Option<&Scope<'_>>, depth: usize) -> Option<MachineIndex> {
        if depth > NESTING_MAX {
            let help =
                format!("at most {NESTING_MAX} Parallel and Map states lie in each other; use workflow:NAME for the inner part");
            self.checker.report(node, "the states are nested too deeply", Some(help));
            return None;
        }
        self.checker.object(node)?;
        let index = MachineIndex(u32::try_from(self.machines.len()).ok()?);
        self.machines.push(None);
        self.around.push(owner.map(|scope| (scope.machine, scope.state)));
        self.machine_fields(node, owner.is_some());
        let states = node.get("States");
        let Some(states) = states else {
            self.checker.report(node, "\"States\" is missing", Some("give an object of states by name".to_owned()));
            return None;
        };
        let members = self.checker.object(&states)?;
        if members.is_empty() {
            self.checker.report(&states, "there are no states", Some("give at least one".to_owned()));
            return None;
        }
        if self.states.len() + members.len() > STATES_MAX {
            self.checker.report(
                &states,
                format!("there are more than {STATES_MAX} states"),
                Some("split the workflow".to_owned()),
            );
            return None;
        }
        let mut targets = HashMap::new();
        let base = u32::try_from(self.states.len()).ok()?;
        for (position, (name, state)) in states.members().enumerate() {
            self.states.push(None);
            self.check_name(name, &state);
            targets.insert(name, StateIndex(base + u32::try_from(position).ok()?));
        }
        let start = self.start(node, &targets);
        let mut edges = Vec::with_capacity(targets.len());
        for (name, state) in states.members() {
            let Some(&at) = targets.get(name) else { continue };
            edges.push(self.read_state(name, &state, at, index, &targets, depth));
        }
        let start = start?;
        self.check_reachable(&states, base, start, &edges);
        let slot = self.machines.get_mut(index.0 as usize)?;
        *slot = Some(Machine { start, owner: owner.map(|scope| scope.state) });
        Some(index)
    }

    fn machine_fields(&mut self, node: &Node<'_>, inner: bool) {
        let known: &[&str] = if !inner {
            &["Comment", "StartAt", "States", "Version", "TimeoutSeconds", "QueryLanguage"]
        } else if matches!(node.path.last(), Some(super::span::Step::Index(_))) {
            &["Comment", "StartAt", "States"]
        } else {
            &["Comment", "StartAt", "States", "ProcessorConfig"]
        };
        check_members(&mut self.checker, node, if inner { "an inner state machine" } else { "a state machine" }, known);
    }

    fn check_name(&mut self, name: &str, node: &Node<'_>) {
        if name.is_empty() || name.chars().count() > STATE_NAME_CHARS_MAX {
            let message =
                format!("the name of a state has 1 to {STATE_NAME_CHARS_MAX} characters, this one {}", name.chars().count());
            self.checker.report_key(node, message, Some("shorten it, and put the rest into \"Comment\"".to_owned()));
        }
        let place = super::check::written(&node.path);
        if let Some(other) = self.names.get(name) {
            let message = format!("there is another state \"{}\", at {other}", shown(name));
            self.checker.report_key(node, message, Some("names are unique in the whole workflow: rename one of them".to_owned()));
        } else {
            self.names.insert(name.to_owned(), place);
        }
    }

    fn start(&mut self, node: &Node<'_>, targets: &HashMap<&str, StateIndex>) -> Option<StateIndex> {
        let Some(start) = node.get("StartAt") else {
            self.checker.report(node, "\"StartAt\" is missing", Some("give the name of the first state".to_owned()));
            return None;
        };
        let name = self.checker.string(&start)?;
        self.lookup(&start, name, targets)
    }

    fn lookup(&mut self, node: &Node<'_>, name: &str, targets: &HashMap<&str, StateIndex>) -> Option<StateIndex> {
        let found = targets.get(name).copied();
        if found.is_none() {
            let help = if let Some(place) = self.names.get(name) {
                Some(format!("the state at {place} belongs to another part of the workflow, which cannot be entered from here"))
            } else {
                self.checker.suggestions.did_you_mean(name, targets.keys().copied())
            };
            self.checker.report(node, format!("there is no state \"{}\"", shown(name)), help);
        }
        found
    }

    /// A field with the name of a state of the same machine.
    pub(crate) fn target(&mut self, node: &Node<'_>, scope: &Scope<'_>) -> Option<StateIndex> {
        let name = self.checker.string(node)?;
        self.lookup(node, name, scope.targets)
    }

    /// Reads one state. Gives the states that may follow it; none if that is not known.
    fn read_state(
        &mut self,
        name: &str,
        node: &Node<'_>,
        state: StateIndex,
        machine: MachineIndex,
        targets: &HashMap<&str, StateIndex>,
        depth: usize,
    ) -> Option<Vec<StateIndex>> {
        self.checker.object(node)?;
        let (type_name, types) = self.state_type(node)?;
        let language = self.state_language(node);
        check_state(&mut self.checker, node, type_name, types, language);
        if let Some(comment) = node.get("Comment") {
            self.checker.string(&comment);
        }
        let scope = Scope { machine, language, state, targets, depth };
        let next = states::next(self, node, type_name, types, &scope);
        let flow = states::flow(self, node, types, &scope);
        let kind = states::kind(self, node, types, &scope);
        let (next, flow, kind) = (next?, flow?, kind?);
        let follow = followers(next, &kind);
        let compiled = State {
            name: name.into(),
            machine,
            language,
            next,
            flow,
            kind,
            uses_context: reads_context(node.value, types, language),
        };
        *self.states.get_mut(state.0 as usize)? = Some(compiled);
        Some(follow)
    }

    fn state_type(&mut self, node: &Node<'_>) -> Option<(&'static str, Types)> {
        let names = || TYPES.iter().map(|(name, _)| *name);
        let Some(given) = node.get("Type") else {
            let help = format!("give one of {}", names().collect::<Vec<_>>().join(", "));
            self.checker.report(node, "\"Type\" is missing", Some(help));
            return None;
        };
        let text = self.checker.string(&given)?;
        let found = TYPES.iter().find(|(name, _)| *name == text).copied();
        if found.is_none() {
            let help = self
                .checker
                .suggestions
                .did_you_mean(text, names())
                .unwrap_or_else(|| format!("give one of {}", names().collect::<Vec<_>>().join(", ")));
            self.checker.report(&given, format!("there is no type of state \"{}\"", shown(text)), Some(help));
        }
        found
    }

    fn state_language(&mut self, node: &Node<'_>) -> QueryLanguage {
        let Some(given) = node.get("QueryLanguage") else { return self.language };
        let Some(language) = self.query_language(&given) else { return self.language };
        if self.language == QueryLanguage::Jsonata && language == QueryLanguage::JsonPath {
            let help = "leave it out in the whole workflow, and set \"QueryLanguage\": \"JSONata\" in each state that needs it";
            self.checker.report(&given, "a workflow in JSONata has no states in JSONPath", Some(help.to_owned()));
        }
        language
    }

    /// A machine in a state: a branch, or the processor of items.
    pub(crate) fn inner(&mut self, node: &Node<'_>, scope: &Scope<'_>) -> Option<MachineIndex> {
        self.machine(node, Some(scope), scope.depth + 1)
    }

    /// Notes a variable that a state assigns.
    pub(crate) fn assigns(&mut self, scope: &Scope<'_>, name: &str, node: &Node<'_>) {
        let (machine, state) = (scope.machine, scope.state);
        self.assignments.push(Assignment { machine, state, name: name.to_owned(), path: node.path.clone() });
    }
}

/// Whether a state's own fields can read the context object: `$$` in JSONPath, `$states` in JSONata. The states inside of it are not asked.
fn reads_context(value: &Value, types: Types, language: QueryLanguage) -> bool {
    let mark = if language == QueryLanguage::Jsonata { "$states" } else { "$$" };
    let inner = types == super::fields::PARALLEL || types == super::fields::MAP;
    let mut pending = vec![(value, inner)];
    while let Some((value, skip)) = pending.pop() {
        match value {
            Value::String(text) if text.contains(mark) => return true,
            Value::Array(elements) => pending.extend(elements.iter().map(|element| (element, false))),
            Value::Object(members) => {
                let own = members
                    .iter()
                    .filter(|(name, _)| !(skip && matches!(name.as_str(), "Branches" | "ItemProcessor" | "Iterator")));
                pending.extend(own.map(|(_, member)| (member, false)));
            }
            _ => {}
        }
    }
    false
}
