//! What a definition says: read from text, checked as a whole, compiled for the machine.
//!
//! ```text
//!   text --serde_json--> document --reader--> states (flat, by index) --> Definition, shared by Arc
//!     `-----span-------> offsets ----`-> mistakes, all of them, each with line, column and path
//! ```
//!
//! - [`parse`](Definition::parse) finds every mistake that can be found without an input; a [`Definition`] has none of them.
//! - `span`: where values lie in the text; `check`: the place in the document, and the mistakes; `fields`: which fields a state may have;
//! - `reader`: machines, states and targets; `graph`: what can be reached, variables in scopes; `variables`: those that a state reads and assigns; `states`, `map`, `stores`, `handlers`, `choice`: the parts of states;
//!   `values`: fields of either query language;
//! - [`resource`]: what a Task may ask for; [`state`], [`payload`], `expression`: the compiled form; [`limits`]: every limit;
//! - [`schema()`]: the same as a JSON Schema, for editors.
//!
//! Source: Amazon States Language (<https://states-language.net/spec.html>), and the Step Functions Developer Guide where the specification is silent.

mod check;
mod choice;
mod expression;
mod fields;
mod graph;
mod handlers;
pub mod limits;
mod map;
mod mistake;
pub mod payload;
mod reader;
pub mod resource;
mod schema;
mod span;
pub mod state;
mod states;
mod stores;
mod values;
mod variables;

pub use expression::Expression;
pub(crate) use expression::{CONTEXT, ERROR, INPUT, RESULT, Reads};
pub use mistake::Mistake;
pub(crate) use mistake::{Suggestions, shown};
pub use resource::Resource;
pub use schema::schema;
pub use state::{Kind, Machine, MachineIndex, Next, QueryLanguage, State, StateIndex};

pub(crate) use check::whole;
pub(crate) use graph::followers;
pub(crate) use variables::Assigned;

/// A checked and compiled definition. It does not change, and is `Send` and `Sync`: executions share it.
#[derive(Debug)]
pub struct Definition {
    /// `Comment`.
    pub comment: Option<String>,
    /// `TimeoutSeconds` of the whole.
    pub timeout_s: Option<u64>,
    /// `QueryLanguage` of the whole.
    pub language: QueryLanguage,
    states: Vec<State>,
    machines: Vec<Machine>,
    fingerprint: u64,
    source: Box<str>,
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    /// All mistakes in the order of the text, at most [`MISTAKES_MAX`](limits::MISTAKES_MAX); at least one.
    pub fn parse(source: &str) -> Result<Self, Vec<Mistake>> {
        reader::read(source)
    }

    /// The state of that index; none if the index is of another definition.
    #[must_use]
    pub fn state(&self, index: StateIndex) -> Option<&State> {
        self.states.get(index.0 as usize)
    }

    /// The machine of that index.
    #[must_use]
    pub fn machine(&self, index: MachineIndex) -> Option<&Machine> {
        self.machines.get(index.0 as usize)
    }

    /// All states, those of branches included, in the order of the text (a Parallel before the states of its branches).
    #[must_use]
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// The index of the state with that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<StateIndex> {
        self.states.iter().position(|state| &*state.name == name).and_then(|at| u32::try_from(at).ok()).map(StateIndex)
    }

    /// The machine of the whole.
    #[must_use]
    pub const fn top() -> MachineIndex {
        MachineIndex(0)
    }

    /// A number that differs between texts: an execution goes on only with the definition that it was started with.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The text that it was read from.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Every Task's resource, and those of Maps, with the name of its state: so that a server checks that what they name exists.
    pub fn resources(&self) -> impl Iterator<Item = (&str, &Resource)> {
        self.states.iter().flat_map(|state| {
            let [own, other] = match &state.kind {
                Kind::Task(task) => [Some(&task.resource), None],
                Kind::Map(map) => {
                    [map.reader.as_ref().map(|reader| &reader.resource), map.writer.as_ref().map(|writer| &writer.resource)]
                }
                _ => [None, None],
            };
            own.into_iter().chain(other).map(|resource| (&*state.name, &**resource))
        })
    }
}
