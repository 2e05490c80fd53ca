//! The compiled form of states: names interned, targets as indices, paths and expressions ready to be applied.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::payload::{Condition, Number, Payload, ResultPath, Selection, Text};
use super::resource::Resource;
use crate::data::Timestamp;
use crate::dataset::{Format, WriterConfig};

/// A state among all states of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StateIndex(pub(crate) u32);

/// A machine among all machines of a definition: the whole is the first one; each branch of a Parallel and each processor of a Map is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MachineIndex(pub(crate) u32);

/// How a state reads and writes data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryLanguage {
    /// Paths, templates and intrinsic functions.
    #[default]
    JsonPath,
    /// Expressions in `{% %}`.
    Jsonata,
}

impl QueryLanguage {
    /// As a definition names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::JsonPath => "JSONPath",
            Self::Jsonata => "JSONata",
        }
    }
}

/// A set of states of which one is the first.
#[derive(Debug)]
pub struct Machine {
    /// The first state.
    pub start: StateIndex,
    /// The Parallel or Map that the machine belongs to; none for the whole.
    pub owner: Option<StateIndex>,
}

/// One state.
#[derive(Debug)]
pub struct State {
    /// Its name, unique in the definition.
    pub name: Arc<str>,
    /// The machine that it is a state of.
    pub machine: MachineIndex,
    /// Its query language.
    pub language: QueryLanguage,
    /// What comes after it.
    pub next: Next,
    /// What it does with data.
    pub flow: Flow,
    /// What it does.
    pub kind: Kind,
    /// Whether anything in it reads the context object.
    pub uses_context: bool,
}

/// What comes after a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// That state.
    State(StateIndex),
    /// The end of the machine.
    End,
}

/// What a state does with data besides its own work. Fields of the other query language are empty.
#[derive(Debug, Default)]
pub struct Flow {
    /// `InputPath`.
    pub input_path: Selection,
    /// `Parameters` or `Arguments`.
    pub payload: Option<Payload>,
    /// `ResultSelector`.
    pub result_selector: Option<Payload>,
    /// `ResultPath`.
    pub result_path: ResultPath,
    /// `OutputPath`.
    pub output_path: Selection,
    /// `Assign`.
    pub assign: Option<Payload>,
    /// `Output`.
    pub output: Option<Payload>,
}

/// What a state does.
#[derive(Debug)]
pub enum Kind {
    /// Asks for a piece of work.
    Task(Box<Task>),
    /// Passes its input on, or a given `Result`.
    Pass {
        /// `Result`.
        result: Option<Arc<Value>>,
    },
    /// Chooses the next state.
    Choice {
        /// `Choices`: the first one that holds is taken.
        rules: Vec<Rule>,
        /// `Default`.
        default: Option<StateIndex>,
    },
    /// Waits.
    Wait(Until),
    /// Ends its machine with success.
    Succeed,
    /// Ends its machine with an error.
    Fail {
        /// `Error` or `ErrorPath`.
        error: Option<Text>,
        /// `Cause` or `CausePath`.
        cause: Option<Text>,
    },
    /// Carries out several machines on the same input.
    Parallel {
        /// `Branches`.
        branches: Vec<MachineIndex>,
        /// `Retry` and `Catch`.
        handlers: Handlers,
    },
    /// Carries out one machine for each of many inputs.
    Map(Box<MapState>),
}

impl Kind {
    /// The name of the type: `Task`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Task(_) => "Task",
            Self::Pass { .. } => "Pass",
            Self::Choice { .. } => "Choice",
            Self::Wait(_) => "Wait",
            Self::Succeed => "Succeed",
            Self::Fail { .. } => "Fail",
            Self::Parallel { .. } => "Parallel",
            Self::Map(_) => "Map",
        }
    }

    /// `Retry` and `Catch`, of the types that have them.
    #[must_use]
    pub fn handlers(&self) -> Option<&Handlers> {
        match self {
            Self::Task(task) => Some(&task.handlers),
            Self::Parallel { handlers, .. } => Some(handlers),
            Self::Map(map) => Some(&map.handlers),
            _ => None,
        }
    }

    /// `Retry`, of the types that have it.
    #[must_use]
    pub fn retriers(&self) -> &[Retrier] {
        self.handlers().map_or(&[], |handlers| &handlers.retriers)
    }

    /// `Catch`, of the types that have it.
    #[must_use]
    pub fn catchers(&self) -> &[Catcher] {
        self.handlers().map_or(&[], |handlers| &handlers.catchers)
    }
}

/// A Task.
#[derive(Debug)]
pub struct Task {
    /// `Resource`.
    pub resource: Arc<Resource>,
    /// `Resource` as it is written.
    pub written: Arc<str>,
    /// `TimeoutSeconds` or `TimeoutSecondsPath`.
    pub timeout: Option<Number>,
    /// `HeartbeatSeconds` or `HeartbeatSecondsPath`.
    pub heartbeat: Option<Number>,
    /// `Retry` and `Catch`.
    pub handlers: Handlers,
}

/// `Retry` and `Catch`.
#[derive(Debug, Default)]
pub struct Handlers {
    /// Tried in this order.
    pub retriers: Vec<Retrier>,
    /// Tried in this order, after the retriers.
    pub catchers: Vec<Catcher>,
}

/// One retrier.
#[derive(Debug)]
pub struct Retrier {
    /// `ErrorEquals`.
    pub errors: Vec<Arc<str>>,
    /// `IntervalSeconds`: before the first attempt.
    pub interval_s: u64,
    /// `MaxAttempts`.
    pub attempts: u32,
    /// `BackoffRate`: by what the interval grows.
    pub backoff_rate: f64,
    /// `MaxDelaySeconds`.
    pub delay_max_s: Option<u64>,
    /// `JitterStrategy` is `FULL`.
    pub full_jitter: bool,
}

/// One catcher.
#[derive(Debug)]
pub struct Catcher {
    /// `ErrorEquals`.
    pub errors: Vec<Arc<str>>,
    /// `Next`.
    pub next: StateIndex,
    /// `ResultPath`.
    pub result_path: ResultPath,
    /// `Assign`.
    pub assign: Option<Payload>,
    /// `Output`.
    pub output: Option<Payload>,
}

/// One rule of a Choice.
#[derive(Debug)]
pub struct Rule {
    /// When it is taken.
    pub condition: Condition,
    /// `Next`.
    pub next: StateIndex,
    /// `Assign`.
    pub assign: Option<Payload>,
    /// `Output`.
    pub output: Option<Payload>,
}

/// When a Wait ends.
#[derive(Debug)]
pub enum Until {
    /// `Seconds` or `SecondsPath`.
    Seconds(Number),
    /// `Timestamp`.
    Timestamp(Timestamp),
    /// `TimestampPath`, or `Timestamp` with an expression.
    TimestampFrom(Text),
}

/// A Map.
#[derive(Debug)]
pub struct MapState {
    /// `ItemProcessor` or `Iterator`.
    pub processor: MachineIndex,
    /// `ItemsPath`.
    pub items_path: Selection,
    /// `Items`.
    pub items: Option<Payload>,
    /// `ItemSelector`, or `Parameters` of old definitions.
    pub item_selector: Option<Payload>,
    /// `MaxConcurrency` or `MaxConcurrencyPath`.
    pub concurrency: Option<Number>,
    /// `ToleratedFailureCount` or `ToleratedFailureCountPath`.
    pub tolerated_count: Option<Number>,
    /// `ToleratedFailurePercentage` or `ToleratedFailurePercentagePath`.
    pub tolerated_percentage: Option<Number>,
    /// `ItemBatcher`.
    pub batcher: Option<Batcher>,
    /// `ItemReader`.
    pub reader: Option<ItemReader>,
    /// `ResultWriter`.
    pub writer: Option<ResultWriter>,
    /// `Label`: what Map runs are called; the state's name if there is none.
    pub label: Option<Arc<str>>,
    /// `Retry` and `Catch`.
    pub handlers: Handlers,
}

/// `ItemBatcher`: several items for one iteration.
#[derive(Debug)]
pub struct Batcher {
    /// `MaxItemsPerBatch` or `MaxItemsPerBatchPath`.
    pub items_max: Option<Number>,
    /// `MaxInputBytesPerBatch` or `MaxInputBytesPerBatchPath`.
    pub bytes_max: Option<Number>,
    /// `BatchInput`.
    pub input: Option<Payload>,
}

/// `ItemReader`: items from the key-value store.
#[derive(Debug)]
pub struct ItemReader {
    /// `Resource`: `kv:get`, `kv:list` or `kv:scan`.
    pub resource: Arc<Resource>,
    /// `Parameters` or `Arguments`: `{Bucket, Key}` or `{Bucket, Prefix}`.
    pub payload: Option<Payload>,
    /// `ReaderConfig.InputType` and what belongs to it: of `kv:get`.
    pub format: Option<Format>,
    /// `ReaderConfig.ItemsPointer`: where the array lies in what was read.
    pub pointer: Option<Arc<str>>,
    /// `ReaderConfig.MaxItems` or `MaxItemsPath`.
    pub items_max: Option<Number>,
}

/// `ResultWriter`: results to the key-value store.
#[derive(Debug)]
pub struct ResultWriter {
    /// `Resource`: `kv:set`.
    pub resource: Arc<Resource>,
    /// `Parameters` or `Arguments`: `{Bucket, Prefix}`.
    pub payload: Option<Payload>,
    /// `WriterConfig`.
    pub config: WriterConfig,
}
