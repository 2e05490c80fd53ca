//! What a Task's `Resource` may name, and what is refused when the definition is read.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// What a Task asks for. Kinds that this server does not have are refused when the definition is read, so that no execution finds one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// `fn:NAME[:QUALIFIER]`, with or without `.waitForTaskToken`, and a Lambda function's ARN: the state's input is the function's input, and what the function
    /// answers is the result.
    Function {
        /// The function's name in this server.
        name: Arc<str>,
        /// The version or alias.
        qualifier: Option<Arc<str>>,
        /// Whether the task ends with a callback in place of the function's answer.
        callback: bool,
    },
    /// `arn:aws:states:::lambda:invoke`, with or without `.waitForTaskToken`: the input is `{FunctionName, Payload, ...}`, the result `{Payload, StatusCode, ...}`.
    LambdaInvoke {
        /// Whether the task ends with a callback.
        callback: bool,
    },
    /// `http://...` and `https://...`: the input is the body of a POST to that address.
    Http {
        /// The address.
        url: Arc<str>,
    },
    /// `arn:aws:states:::http:invoke`: the input is `{ApiEndpoint, Method, Headers, QueryParameters, RequestBody, ...}`.
    HttpInvoke,
    /// `kv:get`, `kv:set`, `kv:add`, `kv:delete`: the input is `{Key, Value, ...}`. `kv:list`, `kv:scan`, of an `ItemReader` alone: `{Bucket, Prefix}`.
    KeyValue {
        /// What is done.
        operation: KeyValueOperation,
    },
    /// `workflow:NAME`, with or without a suffix: an execution of another workflow with the state's input.
    Workflow {
        /// The workflow's name in this server.
        name: Arc<str>,
        /// When the task ends.
        mode: WorkflowMode,
    },
    /// `arn:aws:states:::states:startExecution`, with or without a suffix: the input is `{StateMachineArn, Input, Name}`.
    StartExecution {
        /// When the task ends.
        mode: WorkflowMode,
    },
}

/// What is done with a key of the key-value store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyValueOperation {
    /// Reads a key.
    Get,
    /// Writes a key.
    Set,
    /// Adds to a number.
    Add,
    /// Removes a key.
    Delete,
    /// Gives the keys of a bucket: for `ItemReader` alone.
    List,
    /// Gives the keys of a bucket with their values: for `ItemReader` alone.
    Scan,
}

/// When a task that starts an execution ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkflowMode {
    /// When the execution has started.
    Start,
    /// When the execution has ended: its description with the output as text.
    Sync,
    /// When the execution has ended: its description with the output as JSON; `workflow:NAME` gives the output itself.
    SyncJson,
    /// When the callback is given.
    Callback,
}

/// Why a `Resource` is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ResourceError {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// Bytes of a name of a function or workflow.
const NAME_BYTES_MAX: usize = 200;
const CALLBACK: &str = ".waitForTaskToken";
const KNOWN: &str = "use fn:NAME, a Lambda function's ARN, arn:aws:states:::lambda:invoke, http(s)://..., arn:aws:states:::http:invoke, kv:get|set|add|delete, \
                     workflow:NAME or arn:aws:states:::states:startExecution[.sync|.sync:2|.waitForTaskToken]";

impl Resource {
    /// Reads the text of a `Resource`.
    ///
    /// # Errors
    /// Kinds that are unknown or not supported, bad names, unknown suffixes.
    pub fn parse(text: &str) -> Result<Self, ResourceError> {
        if let Some(name) = text.strip_prefix("fn:") {
            let (name, callback) = suffixed(name);
            let (name, qualifier) = name.split_once(':').map_or((name, None), |(name, qualifier)| (name, Some(qualifier)));
            return Ok(Self::Function { name: checked(name, "function")?, qualifier: qualified(qualifier)?, callback });
        }
        if let Some(name) = text.strip_prefix("workflow:") {
            return workflow(name);
        }
        if let Some(operation) = text.strip_prefix("kv:") {
            return key_value(operation);
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return http(text);
        }
        match text.split(':').collect::<Vec<_>>().as_slice() {
            ["arn", partition, "lambda", _, _, "function", name, rest @ ..] if is_partition(partition) => lambda(name, rest),
            ["arn", partition, "states", "", "", service, action @ ..] if is_partition(partition) => {
                service_call(service, &action.join(":"))
            }
            ["arn", partition, "states", _, _, "activity", name] if is_partition(partition) => Err(refused(
                &format!("activities are not supported: \"{name}\""),
                "use fn:NAME.waitForTaskToken, and let the worker answer with the task token",
            )),
            ["arn", ..] => Err(refused("the resource is not recognised", KNOWN)),
            _ => Err(refused("the resource has no known form", KNOWN)),
        }
    }

    /// Whether the task ends with a callback (`.waitForTaskToken`).
    #[must_use]
    pub const fn has_callback(&self) -> bool {
        match self {
            Self::Function { callback, .. } | Self::LambdaInvoke { callback } => *callback,
            Self::Workflow { mode, .. } | Self::StartExecution { mode } => matches!(mode, WorkflowMode::Callback),
            Self::Http { .. } | Self::HttpInvoke | Self::KeyValue { .. } => false,
        }
    }

    /// Whether a callback may end the task: of those that wait for one, and of executions that are waited for, which may give the token on.
    #[must_use]
    pub const fn takes_callback(&self) -> bool {
        match self {
            Self::Workflow { mode, .. } | Self::StartExecution { mode } => !matches!(mode, WorkflowMode::Start),
            _ => self.has_callback(),
        }
    }

    /// Whether the history calls it a Lambda function (`LambdaFunctionScheduled` ...) and not a service's task (`TaskScheduled` ...).
    #[must_use]
    pub const fn is_lambda(&self) -> bool {
        matches!(self, Self::Function { callback: false, .. })
    }

    /// Members that the input has, whatever else is in it.
    #[must_use]
    pub const fn required(&self) -> &'static [&'static str] {
        match self {
            Self::LambdaInvoke { .. } => &["FunctionName"],
            Self::HttpInvoke => &["ApiEndpoint", "Method"],
            Self::StartExecution { .. } => &["StateMachineArn"],
            Self::KeyValue { operation } if operation.is_of_bucket() => &[],
            Self::KeyValue { .. } => &["Key"],
            Self::Function { .. } | Self::Http { .. } | Self::Workflow { .. } => &[],
        }
    }

    /// `resourceType` and `resource` of the history's Task events.
    #[must_use]
    pub fn service(&self) -> (&'static str, &'static str) {
        match self {
            Self::Function { callback: true, .. } | Self::LambdaInvoke { callback: true } => {
                ("lambda", "invoke.waitForTaskToken")
            }
            Self::Function { .. } | Self::LambdaInvoke { .. } => ("lambda", "invoke"),
            Self::Http { .. } | Self::HttpInvoke => ("http", "invoke"),
            Self::KeyValue { operation } => ("kv", operation.name()),
            Self::Workflow { mode, .. } | Self::StartExecution { mode } => (
                "states",
                match mode {
                    WorkflowMode::Start => "startExecution",
                    WorkflowMode::Sync => "startExecution.sync",
                    WorkflowMode::SyncJson => "startExecution.sync:2",
                    WorkflowMode::Callback => "startExecution.waitForTaskToken",
                },
            ),
        }
    }
}

/// The function that `FunctionName` of a Lambda invocation names, and its version or alias: `NAME`, `NAME:QUALIFIER`, `ACCOUNT:function:NAME[:QUALIFIER]`, or an ARN.
///
/// # Errors
/// Another form, or a bad name.
pub fn function_name(text: &str) -> Result<(Arc<str>, Option<Arc<str>>), ResourceError> {
    let (name, qualifier) = match text.split(':').collect::<Vec<_>>().as_slice() {
        ["arn", partition, "lambda", _, _, "function", rest @ ..] if is_partition(partition) => name_and_qualifier(rest),
        [_, "function", rest @ ..] | rest => name_and_qualifier(rest),
    }
    .ok_or_else(|| refused("the function's name has too many parts", "give NAME or NAME:QUALIFIER"))?;
    Ok((checked(name, "function")?, qualified(qualifier)?))
}

/// The workflow that `StateMachineArn` names: `NAME`, or an ARN; a version or alias is left out.
///
/// # Errors
/// Another form, or a bad name.
pub fn workflow_name(text: &str) -> Result<Arc<str>, ResourceError> {
    match text.split(':').collect::<Vec<_>>().as_slice() {
        ["arn", partition, "states", _, _, "stateMachine", name]
        | ["arn", partition, "states", _, _, "stateMachine", name, _]
            if is_partition(partition) =>
        {
            checked(name, "workflow")
        }
        [name] => checked(name, "workflow"),
        _ => {
            Err(refused("the workflow's name has no known form", "give NAME, or arn:aws:states:REGION:ACCOUNT:stateMachine:NAME"))
        }
    }
}

fn name_and_qualifier<'t>(parts: &[&'t str]) -> Option<(&'t str, Option<&'t str>)> {
    match parts {
        [name] => Some((name, None)),
        [name, qualifier] => Some((name, Some(qualifier))),
        _ => None,
    }
}

impl KeyValueOperation {
    /// Whether it is about all keys of a bucket, and not about one.
    #[must_use]
    pub const fn is_of_bucket(self) -> bool {
        matches!(self, Self::List | Self::Scan)
    }

    /// `get`, `set`, `add`, `delete`, `list` or `scan`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
            Self::Add => "add",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Scan => "scan",
        }
    }
}

impl Display for Resource {
    /// As a definition may name it.
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (service, action) = self.service();
        match self {
            Self::Function { name, qualifier, callback } => {
                write!(out, "fn:{name}")?;
                if let Some(qualifier) = qualifier {
                    write!(out, ":{qualifier}")?;
                }
                out.write_str(if *callback { CALLBACK } else { "" })
            }
            Self::Http { url } => out.write_str(url),
            Self::KeyValue { .. } => write!(out, "kv:{action}"),
            Self::Workflow { name, mode } => {
                let suffix = match mode {
                    WorkflowMode::Start => ".start",
                    WorkflowMode::Sync => ".sync",
                    WorkflowMode::SyncJson => "",
                    WorkflowMode::Callback => CALLBACK,
                };
                write!(out, "workflow:{name}{suffix}")
            }
            Self::LambdaInvoke { .. } | Self::HttpInvoke | Self::StartExecution { .. } => {
                write!(out, "arn:aws:states:::{service}:{action}")
            }
        }
    }
}

/// Written as a definition names it.
impl Serialize for Resource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Resource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

fn refused(message: &str, help: &str) -> ResourceError {
    ResourceError { message: message.to_owned(), help: help.to_owned() }
}

fn is_partition(partition: &str) -> bool {
    matches!(partition, "aws" | "aws-cn" | "aws-us-gov")
}

/// A name without its `.waitForTaskToken`, and whether it had one.
fn suffixed(name: &str) -> (&str, bool) {
    name.strip_suffix(CALLBACK).map_or((name, false), |name| (name, true))
}

fn checked(name: &str, of: &str) -> Result<Arc<str>, ResourceError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.ends_with(".sync") || name.ends_with(".sync:2") {
        return Err(refused(&format!("a {of} has no suffix .sync"), "remove the suffix: the task waits for the answer anyway"));
    }
    if name.ends_with(CALLBACK) {
        return Err(refused(
            "this resource cannot wait for a task token",
            "use fn:NAME.waitForTaskToken or arn:aws:states:::lambda:invoke.waitForTaskToken",
        ));
    }
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.starts_with('.') || !name.chars().all(fits) {
        return Err(refused(
            &format!("\"{}\" is not a valid {of} name", super::mistake::shown(name)),
            &format!("give 1 to {NAME_BYTES_MAX} letters, digits, `.`, `-`, `_`, not starting with `.`"),
        ));
    }
    Ok(name.into())
}

fn workflow(text: &str) -> Result<Resource, ResourceError> {
    let (name, mode) = if let Some(name) = text.strip_suffix(CALLBACK) {
        (name, WorkflowMode::Callback)
    } else if let Some(name) = text.strip_suffix(".sync:2") {
        (name, WorkflowMode::SyncJson)
    } else if let Some(name) = text.strip_suffix(".sync") {
        (name, WorkflowMode::Sync)
    } else if let Some(name) = text.strip_suffix(".start") {
        (name, WorkflowMode::Start)
    } else {
        (text, WorkflowMode::SyncJson)
    };
    Ok(Resource::Workflow { name: checked(name, "workflow")?, mode })
}

fn key_value(operation: &str) -> Result<Resource, ResourceError> {
    let operation = match operation {
        "get" => KeyValueOperation::Get,
        "set" => KeyValueOperation::Set,
        "add" => KeyValueOperation::Add,
        "delete" => KeyValueOperation::Delete,
        "list" => KeyValueOperation::List,
        "scan" => KeyValueOperation::Scan,
        _ => return Err(refused("the key-value store has no such operation", "use kv:get, kv:set, kv:add or kv:delete")),
    };
    Ok(Resource::KeyValue { operation })
}

fn http(text: &str) -> Result<Resource, ResourceError> {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(refused("the address has no host, or has blanks in it", "give http://HOST/PATH or https://HOST/PATH"));
    }
    if host.contains('@') {
        return Err(refused(
            "the address has a user name in it",
            "use arn:aws:states:::http:invoke and give the header Authorization",
        ));
    }
    Ok(Resource::Http { url: text.into() })
}

fn lambda(name: &str, rest: &[&str]) -> Result<Resource, ResourceError> {
    let qualifier = match rest {
        [] => None,
        [qualifier] => Some(*qualifier),
        _ => {
            return Err(refused(
                "the function's ARN has too many parts",
                "give arn:aws:lambda:REGION:ACCOUNT:function:NAME[:QUALIFIER]",
            ));
        }
    };
    Ok(Resource::Function { name: checked(name, "function")?, qualifier: qualified(qualifier)?, callback: false })
}

/// A version or alias; `$LATEST` is the one with a sign in front.
fn qualified(qualifier: Option<&str>) -> Result<Option<Arc<str>>, ResourceError> {
    match qualifier {
        None => Ok(None),
        Some("$LATEST") => Ok(Some("$LATEST".into())),
        Some(qualifier) => checked(qualifier, "qualifier").map(Some),
    }
}

fn service_call(service: &str, action: &str) -> Result<Resource, ResourceError> {
    Ok(match (service, action) {
        ("lambda", "invoke") => Resource::LambdaInvoke { callback: false },
        ("lambda", "invoke.waitForTaskToken") => Resource::LambdaInvoke { callback: true },
        ("http", "invoke") => Resource::HttpInvoke,
        ("states", "startExecution") => Resource::StartExecution { mode: WorkflowMode::Start },
        ("states", "startExecution.sync") => Resource::StartExecution { mode: WorkflowMode::Sync },
        ("states", "startExecution.sync:2") => Resource::StartExecution { mode: WorkflowMode::SyncJson },
        ("states", "startExecution.waitForTaskToken") => Resource::StartExecution { mode: WorkflowMode::Callback },
        ("lambda" | "http" | "states", _) => {
            return Err(refused(&format!("the service {service} has no such action here"), KNOWN));
        }
        ("aws-sdk", _) => {
            return Err(refused("calls of the AWS SDK are not supported", "call the service from a function, and use fn:NAME"));
        }
        _ => {
            return Err(refused(
                &format!("the service \"{}\" is not supported", super::mistake::shown(service)),
                "call the service from a function, and use fn:NAME",
            ));
        }
    })
}
