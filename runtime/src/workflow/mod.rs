//! Workflows in Amazon States Language: functions one after the other, at the same time, again where they fail, as a definition says.
//!
//! ```text
//!   http --input--> express | durable --Event--> sledge_workflow::machine --Action--> the same --> tasks: functions (Runner), the store, other workflows
//! ```
//!
//! The machine is pure (crate `sledge-workflow`). Here is what it asks for: time, random numbers, tasks. An execution is a future on one thread; the functions that it
//! calls run as all do, on any.
//!
//! Executions are *express*: they live as long as the request that waits for them, on its thread, and leave nothing behind; or *durable* (`type = "standard"`): they are in the store, and
//! on a thread of their own while they have something to do. Knows neither HTTP nor the worker.

pub mod durable;
mod express;
mod failure;
mod function;
mod http;
mod items;
pub mod keeper;
mod outbox;
pub mod request;
mod runner;
mod speculative;
mod store;

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use sledge_workflow::definition::{Definition, Resource, resource::WorkflowMode};
use sledge_workflow::machine::About;

use self::durable::journal::Place;
use crate::config::{AsynchronousConfig, FunctionConfig, SpeculationLevel, WorkflowConfig, WorkflowKind};
use crate::invoke::function::{Function, Neighbours};
use crate::invoke::urgency::Root;
use crate::kv::Space;
use crate::outcome::Failure;
use crate::reply;
use crate::speculate::Speculation;
use crate::speculate::depth::Load;
use crate::txn::contention::Contention;
use crate::upstream::{Allowed, Roots, Upstream};

pub use self::durable::Executions;
pub(crate) use self::express::now_ms;
pub use self::express::{Ended, Named, execute, execute_as};
pub use self::function::Call;
pub use self::runner::{Remote, called, invocation};
pub use self::speculative::story::{Stories, explained};

/// What the names of workflows begin with that are made of a function. No configured workflow is called so.
const OF_FUNCTION: &str = "fn:";
/// The state of such a workflow that calls the function.
const CALL: &str = "Call";
/// The longest time until a call is repeated: a day, in seconds.
const DELAY_S_MAX: u64 = 86_400;
/// Workflows that wait for each other, at most.
const DEPTH_MAX: u32 = 8;

/// Has functions called on behalf of an execution.
pub trait Runner {
    /// Begins a call of a function.
    ///
    /// # Errors
    /// When it is not admitted.
    fn begin(&self, call: Call<'_>) -> Result<reply::Answer, Failure>;

    /// Calls a function whose reply is not wanted.
    ///
    /// # Errors
    /// When it is not admitted.
    fn send(&self, function: &Arc<Function>, body: Bytes) -> Result<(), Failure>;

    /// A call has ended so.
    fn ended(&self, function: &Function, failure: Option<&Failure>);

    /// What an execution begins runs ahead for that begins now.
    fn root(&self) -> Root;

    /// How busy those are that run what is called.
    fn load(&self) -> Load;
}

/// The workflows of one tenant, by name.
#[derive(Debug, Default)]
pub struct Workflows(RwLock<HashMap<Box<str>, Weak<Workflow>>>);

impl Workflows {
    /// The workflow of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<Workflow>> {
        // Single insertions, which cannot be half done.
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name)?.upgrade()
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Workflow>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = known.values().filter_map(Weak::upgrade).collect();
        drop(known);
        all.sort_unstable_by(|one, other| one.config.name.cmp(&other.config.name));
        all
    }

    /// Makes one known, in place of the one of its name.
    pub fn put(&self, workflow: &Arc<Workflow>) {
        let mut workflows = self.0.write().unwrap_or_else(PoisonError::into_inner);
        workflows.retain(|_, known| known.strong_count() > 0);
        workflows.insert(workflow.config.name.as_str().into(), Arc::downgrade(workflow));
    }
}

/// What a workflow of a tenant can reach.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The functions that it may call.
    pub functions: Arc<Neighbours>,
    /// The workflows that it may have executed.
    pub workflows: Arc<Workflows>,
    /// Its tenant's share of the key-value store, if there is one.
    pub kv: Option<Space>,
    /// The keys over which its tenant's transactions conflict.
    pub contention: Arc<Contention>,
    /// What its executions that go ahead of themselves go by.
    pub speculation: Arc<Speculation>,
    /// What its executions did that went ahead of themselves.
    pub stories: Arc<Stories>,
    /// The roots to be believed about other servers.
    pub roots: Arc<Roots>,
    /// Where durable executions are started, if there is a store.
    pub executions: Option<Executions>,
}

/// A workflow that is served, or why it is not.
pub struct Workflow {
    /// What the configuration says.
    pub config: WorkflowConfig,
    definition: Result<Arc<Definition>, String>,
    reach: Reach,
    /// The other servers that it may ask, if any.
    upstream: Option<Arc<Upstream>>,
    deployed_ms: i64,
    /// What all its executions have in common; they have names of their own.
    about: About,
}

impl fmt::Debug for Workflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workflow").field("name", &self.config.name).field("problem", &self.problem()).finish_non_exhaustive()
    }
}

/// A workflow that is configured, and its definition or what is wrong with that.
pub type Defined = (WorkflowConfig, Result<Definition, String>);

/// Reads the definition that a configuration names.
///
/// # Errors
/// All that is wrong with it, each mistake with its line and column.
pub fn read(config: &WorkflowConfig) -> Result<Definition, String> {
    let path = config.path.display();
    let text = std::fs::read_to_string(&config.path).map_err(|error| format!("{path}: {error}"))?;
    let told = |mistakes: Vec<String>| mistakes.join("\n");
    let definition = Definition::parse(&text)
        .map_err(|mistakes| told(mistakes.iter().map(|mistake| format!("{path}:{mistake}")).collect()))?;
    let refused: Vec<_> =
        definition.resources().filter_map(|(state, resource)| Some((state, refusal(config.kind, resource)?))).collect();
    let refused = refused.into_iter().map(|(state, why)| format!("{path}: state {state:?}: {why}"));
    let excluded = config.excluded_problems(definition.states().iter().map(|state| &*state.name));
    let refused: Vec<_> = refused.chain(excluded.into_iter().map(|why| format!("{path}: {why}"))).collect();
    if refused.is_empty() { Ok(definition) } else { Err(told(refused)) }
}

/// What executions of that kind cannot do.
fn refusal(kind: WorkflowKind, resource: &Resource) -> Option<&'static str> {
    let is_express = kind == WorkflowKind::Express;
    match resource {
        resource if resource.has_callback() && is_express => Some(
            "an execution that lives no longer than its request does not wait for callbacks: make the workflow `type = \"standard\"`, or leave .waitForTaskToken out",
        ),
        Resource::Workflow { mode: WorkflowMode::Start, .. } | Resource::StartExecution { mode: WorkflowMode::Start }
            if is_express =>
        {
            Some(
                "an execution that is started and not waited for would have to outlive the request: make the workflow `type = \"standard\"`, or use workflow:NAME or startExecution.sync:2",
            )
        }
        _ => None,
    }
}

/// A workflow, as operators see it.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    /// Its name.
    pub name: String,
    /// Its tenant.
    pub tenant: String,
    /// How long its executions live.
    #[serde(rename = "type")]
    pub kind: WorkflowKind,
    /// Where clients start it.
    pub route: String,
    /// Whether its executions are paused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Why it is not served, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// When a file was changed last, in milliseconds since 1970.
fn changed_ms(path: &Path) -> Option<i64> {
    let since = std::fs::metadata(path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

impl Workflow {
    /// As operators see it.
    #[must_use]
    pub fn info(&self) -> Info {
        let WorkflowConfig { name, tenant, kind, .. } = &self.config;
        let problem = self.problem().map(str::to_owned);
        let paused = self.executions().is_some_and(|executions| executions.is_paused(tenant, name));
        Info { name: name.clone(), tenant: tenant.clone(), kind: *kind, route: self.config.route(), paused, problem }
    }

    /// One with that definition, or that is not served since it has none.
    #[must_use]
    pub fn new(config: WorkflowConfig, definition: Result<Definition, String>, reach: Reach) -> Workflow {
        let allowed = if config.http_hosts.is_empty() { None } else { Allowed::new(&config.http_hosts).ok() };
        let upstream = allowed.map(|allowed| Arc::new(Upstream::new(Arc::new(allowed), Arc::clone(&reach.roots))));
        let deployed_ms = changed_ms(&config.path).unwrap_or_else(now_ms);
        let WorkflowConfig { tenant, name, .. } = &config;
        let nothing: Arc<str> = "".into();
        let about = About {
            id: Arc::clone(&nothing),
            name: Arc::clone(&nothing),
            role: format!("arn:aws:iam::{tenant}:role/{name}").into(),
            machine_id: durable::name_of_workflow(tenant, name).into(),
            machine_name: name.as_str().into(),
            token_prefix: nothing,
        };
        Workflow { config, definition: definition.map(Arc::new), reach, upstream, deployed_ms, about }
    }

    /// One that calls a function of a tenant with its input as the body, and again where that fails, as is configured of asynchronous calls.
    fn of_function((tenant, function): (&str, &str), asynchronous: &AsynchronousConfig, reach: Reach) -> Workflow {
        let call = json!({ "Resource": format!("{OF_FUNCTION}{function}") });
        Workflow::of_calls((tenant, function), asynchronous, call, reach)
    }

    /// One that calls a function with [requests](request) as its inputs, if clients may ask for that and the store can keep them.
    #[must_use]
    pub fn of_requests(config: &FunctionConfig, reach: &Reach) -> Option<Workflow> {
        let asynchronous = config.asynchronous.as_ref().filter(|_| reach.executions.is_some())?;
        let call = json!({
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": { "FunctionName": config.name, "Request.$": "$" },
            "OutputPath": "$.Payload",
        });
        Some(Workflow::of_calls((&config.tenant, &config.name), asynchronous, call, reach.clone()))
    }

    /// One whose first state is that call.
    fn of_calls((tenant, function): (&str, &str), asynchronous: &AsynchronousConfig, mut call: Value, reach: Reach) -> Workflow {
        const ALL: [&str; 1] = ["States.ALL"];
        let AsynchronousConfig { retries, retry_after_s, on_failure, .. } = asynchronous;
        (call["Type"], call["End"]) = ("Task".into(), true.into());
        if *retries > 0 {
            call["Retry"] = json!([{
                "ErrorEquals": ALL, "IntervalSeconds": retry_after_s, "BackoffRate": 2.0, "MaxAttempts": retries, "MaxDelaySeconds": DELAY_S_MAX,
            }]);
        }
        let mut states = json!({});
        if let Some(on_failure) = on_failure {
            call["Catch"] = json!([{ "ErrorEquals": ALL, "ResultPath": "$.failure", "Next": "Tell" }]);
            states["Tell"] = json!({
                "Type": "Task",
                "Resource": format!("{OF_FUNCTION}{on_failure}"),
                "Parameters": { "function": function, "request.$": "$$.Execution.Input", "error.$": "$.failure.Error", "cause.$": "$.failure.Cause" },
                "ResultPath": null,
                "Retry": [{ "ErrorEquals": ALL, "IntervalSeconds": 1, "BackoffRate": 2.0, "MaxAttempts": 10, "MaxDelaySeconds": 600 }],
                "Next": "Failed",
            });
            states["Failed"] = json!({ "Type": "Fail", "ErrorPath": "$.failure.Error", "CausePath": "$.failure.Cause" });
        }
        states[CALL] = call;
        let definition = json!({ "StartAt": CALL, "States": states }).to_string();
        let definition = Definition::parse(&definition).map_err(|mistakes| format!("{mistakes:?}"));
        let config = WorkflowConfig::of_function(tenant, &format!("{OF_FUNCTION}{function}"), asynchronous);
        Workflow::new(config, definition, reach)
    }

    /// Its definition, if that is right.
    #[must_use]
    pub fn definition(&self) -> Option<&Arc<Definition>> {
        self.definition.as_ref().ok()
    }

    /// When the file with its definition was changed last, in milliseconds since 1970; where that is not known, since when it is served.
    #[must_use]
    pub const fn deployed_ms(&self) -> i64 {
        self.deployed_ms
    }

    /// Whether it is what that configuration and definition make.
    #[must_use]
    pub fn is(&self, config: &WorkflowConfig, definition: &Result<Definition, String>) -> bool {
        let is_same = match (&self.definition, definition) {
            (Ok(own), Ok(other)) => own.fingerprint() == other.fingerprint(),
            (Err(own), Err(other)) => own == other,
            _ => false,
        };
        is_same && self.config == *config
    }

    /// Makes it known to the other workflows of its tenant.
    pub fn register(self: &Arc<Self>) {
        self.reach.workflows.put(self);
    }

    /// Why it is not served, if it is not.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        self.definition.as_ref().err().map(String::as_str)
    }

    /// Whether its executions are durable.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        matches!(self.config.kind, WorkflowKind::Standard)
    }

    /// What its executions go by if they go ahead of themselves.
    fn speculation(&self) -> Option<&Speculation> {
        (self.config.speculation != SpeculationLevel::Off).then_some(&*self.reach.speculation)
    }

    /// Whether its executions go ahead of themselves.
    #[must_use]
    pub fn speculates(&self) -> bool {
        self.speculation().is_some()
    }

    /// What its executions did, and those of the other workflows of its tenant, that went ahead of themselves.
    #[must_use]
    pub fn stories(&self) -> &Stories {
        &self.reach.stories
    }

    /// Where durable executions of it are started, if there is a store.
    #[must_use]
    pub const fn executions(&self) -> Option<&Executions> {
        self.reach.executions.as_ref()
    }

    /// Where its execution of that name is found.
    #[must_use]
    pub fn place(&self, name: &str) -> Place {
        Place { tenant: self.config.tenant.as_str().into(), workflow: self.config.name.as_str().into(), name: name.into() }
    }

    /// How long an express execution may take.
    #[must_use]
    pub const fn time_max(&self) -> Duration {
        Duration::from_millis(self.config.deadline_ms)
    }
}
