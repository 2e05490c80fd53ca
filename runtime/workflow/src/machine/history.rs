//! Events of a history, named and shaped as Step Functions does in `GetExecutionHistory`.
//!
//! An event holds values by reference; JSON texts are made when it is serialised, so that recording costs no formatting in the step.

use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value, json};

/// The kinds of events, with the name of the member that holds their details.
macro_rules! kinds {
    ($($kind:ident => $details:literal,)*) => {
        /// The type of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are Step Functions' own")]
        pub enum HistoryKind { $($kind,)* }

        impl HistoryKind {
            /// The name, as `type` in JSON.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind),)* }
            }

            /// The type of that name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                [$(Self::$kind),*].into_iter().find(|kind| kind.name() == name)
            }

            /// The member of JSON with the details; empty for types without.
            #[must_use]
            pub const fn details(self) -> &'static str {
                match self { $(Self::$kind => $details,)* }
            }
        }
    };
}

kinds! {
    ExecutionStarted => "executionStartedEventDetails",
    ExecutionSucceeded => "executionSucceededEventDetails",
    ExecutionFailed => "executionFailedEventDetails",
    ExecutionTimedOut => "executionTimedOutEventDetails",
    ExecutionAborted => "executionAbortedEventDetails",
    ExecutionRedriven => "executionRedrivenEventDetails",
    TaskStateEntered => "stateEnteredEventDetails",
    TaskStateExited => "stateExitedEventDetails",
    TaskStateAborted => "",
    PassStateEntered => "stateEnteredEventDetails",
    PassStateExited => "stateExitedEventDetails",
    ChoiceStateEntered => "stateEnteredEventDetails",
    ChoiceStateExited => "stateExitedEventDetails",
    WaitStateEntered => "stateEnteredEventDetails",
    WaitStateExited => "stateExitedEventDetails",
    WaitStateAborted => "",
    SucceedStateEntered => "stateEnteredEventDetails",
    SucceedStateExited => "stateExitedEventDetails",
    FailStateEntered => "stateEnteredEventDetails",
    ParallelStateEntered => "stateEnteredEventDetails",
    ParallelStateExited => "stateExitedEventDetails",
    ParallelStateStarted => "",
    ParallelStateSucceeded => "",
    ParallelStateFailed => "",
    ParallelStateAborted => "",
    MapStateEntered => "stateEnteredEventDetails",
    MapStateExited => "stateExitedEventDetails",
    MapStateStarted => "mapStateStartedEventDetails",
    MapStateSucceeded => "",
    MapStateFailed => "",
    MapStateAborted => "",
    MapIterationStarted => "mapIterationStartedEventDetails",
    MapIterationSucceeded => "mapIterationSucceededEventDetails",
    MapIterationFailed => "mapIterationFailedEventDetails",
    MapIterationAborted => "mapIterationAbortedEventDetails",
    LambdaFunctionScheduled => "lambdaFunctionScheduledEventDetails",
    LambdaFunctionStarted => "",
    LambdaFunctionSucceeded => "lambdaFunctionSucceededEventDetails",
    LambdaFunctionFailed => "lambdaFunctionFailedEventDetails",
    LambdaFunctionTimedOut => "lambdaFunctionTimedOutEventDetails",
    TaskScheduled => "taskScheduledEventDetails",
    TaskStarted => "taskStartedEventDetails",
    TaskSubmitted => "taskSubmittedEventDetails",
    TaskSucceeded => "taskSucceededEventDetails",
    TaskFailed => "taskFailedEventDetails",
    TaskTimedOut => "taskTimedOutEventDetails",
    EvaluationFailed => "evaluationFailedEventDetails",
}

/// What an event tells besides its type. Which members it has depends on the type.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names are Step Functions' own")]
pub struct Details {
    pub name: Option<Arc<str>>,
    pub index: Option<u32>,
    pub length: Option<usize>,
    pub input: Option<Arc<Value>>,
    pub output: Option<Arc<Value>>,
    pub parameters: Option<Arc<Value>>,
    pub assigned: Vec<(Arc<str>, Arc<Value>)>,
    pub error: Option<Arc<str>>,
    pub cause: Option<Arc<str>>,
    pub location: Option<Arc<str>>,
    pub state: Option<Arc<str>>,
    pub resource: Option<Arc<str>>,
    pub resource_type: Option<&'static str>,
    pub timeout_s: Option<u64>,
    pub heartbeat_s: Option<u64>,
    pub role: Option<Arc<str>>,
    pub redrives: Option<u32>,
    pub region: Option<Arc<str>>,
}

/// One event of a history. It serialises to the JSON of `GetExecutionHistory`, with `timestamp` in seconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEvent {
    /// Its number, from 1.
    pub id: u64,
    /// The event before it in its branch; 0 for the first ones.
    pub previous: u64,
    /// When, in milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Its type.
    pub kind: HistoryKind,
    /// What it tells.
    pub details: Details,
}

impl Details {
    /// As JSON, with documents as texts.
    fn to_json(&self) -> Value {
        let mut members = Map::new();
        let mut text = |key: &str, value: Option<&str>| {
            if let Some(value) = value {
                members.insert(key.to_owned(), Value::from(value));
            }
        };
        text("name", self.name.as_deref());
        text("resource", self.resource.as_deref());
        text("resourceType", self.resource_type);
        text("error", self.error.as_deref());
        text("cause", self.cause.as_deref());
        text("location", self.location.as_deref());
        text("state", self.state.as_deref());
        text("roleArn", self.role.as_deref());
        text("region", self.region.as_deref());
        let mut number = |key: &str, value: Option<u64>| {
            if let Some(value) = value {
                members.insert(key.to_owned(), Value::from(value));
            }
        };
        number("index", self.index.map(u64::from));
        number("length", self.length.map(|length| length as u64));
        number("timeoutInSeconds", self.timeout_s);
        number("heartbeatInSeconds", self.heartbeat_s);
        number("redriveCount", self.redrives.map(u64::from));
        for (key, value) in [("input", &self.input), ("output", &self.output)] {
            if let Some(value) = value {
                members.insert(key.to_owned(), Value::from(value.to_string()));
                members.insert(format!("{key}Details"), json!({ "truncated": false }));
            }
        }
        if let Some(parameters) = &self.parameters {
            members.insert("parameters".to_owned(), Value::from(parameters.to_string()));
        }
        if !self.assigned.is_empty() {
            let assigned: Map<_, _> =
                self.assigned.iter().map(|(name, value)| (name.to_string(), Value::from(value.to_string()))).collect();
            members.insert("assignedVariables".to_owned(), Value::Object(assigned));
            members.insert("assignedVariablesDetails".to_owned(), json!({ "truncated": false }));
        }
        Value::Object(members)
    }
}

impl Serialize for HistoryEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut event = serializer.serialize_map(None)?;
        // Milliseconds as a fraction: exact for some 285,000 years.
        event.serialize_entry("timestamp", &(self.timestamp_ms as f64 / 1_000.0))?;
        event.serialize_entry("type", self.kind.name())?;
        event.serialize_entry("id", &self.id)?;
        event.serialize_entry("previousEventId", &self.previous)?;
        if !self.kind.details().is_empty() {
            event.serialize_entry(self.kind.details(), &self.details.to_json())?;
        }
        event.end()
    }
}
