//! How a request ends, whose fault that is, and what the client is told.
//!
//! [`Failure::status`] is the one place where errors become HTTP statuses. Details that only the operator should see (addresses,
//! backtraces, errors of the system) are in the log, never here.

use std::borrow::Cow;
use std::fmt;

use hyper::StatusCode;
use serde::Serialize;
use sledge_sandbox::TrapCode;

use crate::component_trap::ComponentTrap;
use crate::kv::KvError;
use crate::memory_stack::MemoryStack;

/// Why a request got no reply from its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No function has this route.
    NotFound,
    /// The route's function does not answer this method.
    MethodNotAllowed,
    /// The path is longer than any.
    PathTooLong,
    /// The head can be parsed and is not one that a client may send; why.
    BadHead(&'static str),
    /// The body is larger than `body_bytes_max`.
    BodyTooLarge,
    /// The body ended early or was malformed.
    BodyBroken,
    /// The body came too slowly.
    BodyTimeout,
    /// The server has as many requests as it takes.
    Busy,
    /// The function has as many requests as it takes.
    FunctionBusy,
    /// The server is not expected to be done in time.
    Overload,
    /// Its turn would come too late for its deadline, and so it was not begun.
    Shed,
    /// The server is stopping.
    Stopping,
    /// Something is wrong with the function itself, so that it is not served until an operator has put it right.
    Quarantined,
    /// All requests together use what memory the server has: no sandbox could be made, its body not kept, its memory not grow.
    NoMemory,
    /// The function uses the key-value store, whose file could not be opened since the server started.
    NoStore,
    /// The deadline passed, waiting included.
    Deadline,
    /// The function used up the processor time that a request of it has.
    CpuLimit,
    /// The guest trapped.
    Trap(TrapCode),
    /// The guest trapped outside of its memory, most likely since the stack that it keeps there overflowed.
    MemoryStack(MemoryStack),
    /// A component did what the component model forbids.
    Component {
        /// What.
        trap: ComponentTrap,
        /// The same in words, with where it was done.
        message: Box<str>,
    },
    /// The guest gave up (trapped or exited) after it was refused memory.
    MemoryLimit,
    /// The guest ended with this status, which is not zero.
    Exit(u32),
    /// The reply is larger than `reply_bytes_max`.
    ReplyTooLarge,
    /// The reply does not have the length that the function has said.
    ReplyIncomplete,
    /// The function has given up its reply without having said that it is whole, and it is no shorter than the length that it has said, if it has.
    ReplyUnfinished,
    /// A component has not said what the response is.
    ReplyMissing,
    /// The function is one transaction, and this host function does what cannot be taken back.
    EffectRefused {
        /// The host function's module.
        module: &'static str,
        /// Its name.
        name: &'static str,
    },
    /// Its transaction was not made, since others have changed what it has read, as often as it was tried.
    Conflict,
    /// Its transaction was not made; why.
    NotCommitted(KvError),
    /// The store did not say whether its transaction was made.
    OutcomeUnknown,
    /// The client went away.
    Cancelled,
    /// A bug of the host, contained.
    Internal,
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is wrong.
    Client,
    /// The function is wrong.
    Function,
    /// The server cannot, or not now.
    Host,
}

impl Failure {
    /// Whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Failure::NotFound
            | Failure::MethodNotAllowed
            | Failure::PathTooLong
            | Failure::BadHead(_)
            | Failure::BodyTooLarge
            | Failure::BodyBroken
            | Failure::BodyTimeout
            | Failure::Cancelled => Fault::Client,
            Failure::Deadline
            | Failure::CpuLimit
            | Failure::Trap(_)
            | Failure::MemoryStack(_)
            | Failure::Component { .. }
            | Failure::MemoryLimit
            | Failure::Exit(_)
            | Failure::ReplyTooLarge
            | Failure::ReplyIncomplete
            | Failure::ReplyUnfinished
            | Failure::ReplyMissing
            | Failure::EffectRefused { .. } => Fault::Function,
            Failure::FunctionBusy
            | Failure::Busy
            | Failure::Overload
            | Failure::Shed
            | Failure::Stopping
            | Failure::Quarantined
            | Failure::NoMemory
            | Failure::NoStore
            | Failure::Conflict
            | Failure::NotCommitted(_)
            | Failure::OutcomeUnknown
            | Failure::Internal => Fault::Host,
        }
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Failure::NotFound => StatusCode::NOT_FOUND,
            Failure::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Failure::PathTooLong => StatusCode::URI_TOO_LONG,
            Failure::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Failure::BadHead(_) | Failure::BodyBroken | Failure::Cancelled => StatusCode::BAD_REQUEST,
            Failure::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Failure::FunctionBusy => StatusCode::TOO_MANY_REQUESTS,
            Failure::Busy
            | Failure::Overload
            | Failure::Shed
            | Failure::Stopping
            | Failure::Quarantined
            | Failure::NoMemory
            | Failure::NoStore
            | Failure::Conflict
            | Failure::NotCommitted(KvError::Unavailable(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Failure::NotCommitted(KvError::Full { .. }) => StatusCode::INSUFFICIENT_STORAGE,
            Failure::Deadline => StatusCode::GATEWAY_TIMEOUT,
            Failure::CpuLimit
            | Failure::Trap(_)
            | Failure::MemoryStack(_)
            | Failure::Component { .. }
            | Failure::MemoryLimit
            | Failure::Exit(_)
            | Failure::ReplyTooLarge
            | Failure::ReplyIncomplete
            | Failure::ReplyUnfinished
            | Failure::ReplyMissing
            | Failure::EffectRefused { .. }
            | Failure::NotCommitted(_)
            | Failure::OutcomeUnknown
            | Failure::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Whether the same request may succeed when it is tried again in a moment.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(
            self,
            Failure::FunctionBusy
                | Failure::Overload
                | Failure::Shed
                | Failure::Busy
                | Failure::Stopping
                | Failure::NoMemory
                | Failure::NoStore
                | Failure::Conflict
                | Failure::NotCommitted(KvError::Unavailable(_))
        )
    }

    /// Every kind of failure that there is.
    pub const CODES: [&'static str; 21] = [
        "not_found",
        "method_not_allowed",
        "path_too_long",
        "body_too_large",
        "bad_request",
        "request_timeout",
        "too_many_requests",
        "unavailable",
        "quarantined",
        "cpu_limit",
        "deadline",
        "trap",
        "exit",
        "reply_too_large",
        "reply_incomplete",
        "effect_refused",
        "conflict",
        "not_committed",
        "outcome_unknown",
        "cancelled",
        "internal",
    ];

    /// The kind of failure, for machines; one of [`Failure::CODES`].
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Failure::NotFound => "not_found",
            Failure::MethodNotAllowed => "method_not_allowed",
            Failure::PathTooLong => "path_too_long",
            Failure::BodyTooLarge => "body_too_large",
            Failure::BadHead(_) | Failure::BodyBroken => "bad_request",
            Failure::BodyTimeout => "request_timeout",
            Failure::FunctionBusy => "too_many_requests",
            Failure::Busy | Failure::Overload | Failure::Shed | Failure::Stopping | Failure::NoMemory | Failure::NoStore => {
                "unavailable"
            }
            Failure::Quarantined => "quarantined",
            Failure::CpuLimit => "cpu_limit",
            Failure::Deadline => "deadline",
            Failure::Trap(_) | Failure::MemoryStack(_) | Failure::Component { .. } | Failure::MemoryLimit => "trap",
            Failure::Exit(_) => "exit",
            Failure::ReplyTooLarge => "reply_too_large",
            Failure::ReplyIncomplete | Failure::ReplyUnfinished | Failure::ReplyMissing => "reply_incomplete",
            Failure::EffectRefused { .. } => "effect_refused",
            Failure::Conflict => "conflict",
            Failure::NotCommitted(_) => "not_committed",
            Failure::OutcomeUnknown => "outcome_unknown",
            Failure::Cancelled => "cancelled",
            Failure::Internal => "internal",
        }
    }

    /// What happened within that kind, for machines.
    #[must_use]
    pub fn reason(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Failure::NotFound => "no_such_route",
            Failure::MethodNotAllowed => "see_allow",
            Failure::PathTooLong => "path_bytes_max",
            Failure::BadHead(why) => why,
            Failure::BodyTooLarge => "body_bytes_max",
            Failure::BodyBroken => "body_incomplete",
            Failure::BodyTimeout => "body_too_slow",
            Failure::FunctionBusy => "queue_max",
            Failure::Overload => "utilisation",
            Failure::Shed => "overloaded",
            Failure::CpuLimit => "cpu_limit",
            Failure::Busy => "requests_max",
            Failure::Stopping => "stopping",
            Failure::Quarantined => "quarantined",
            Failure::NoMemory => "no_memory",
            Failure::NoStore => "no_kv",
            Failure::Deadline => "deadline_exceeded",
            Failure::Trap(code) => code.identifier(),
            Failure::MemoryStack(_) => TrapCode::MemoryOutOfBounds.identifier(),
            Failure::Component { trap, .. } => trap.identifier(),
            Failure::MemoryLimit => "memory_limit",
            Failure::Exit(status) => return Cow::Owned(format!("status_{status}")),
            Failure::ReplyTooLarge => "reply_bytes_max",
            Failure::ReplyIncomplete => "declared_length",
            Failure::ReplyUnfinished => "unfinished",
            Failure::ReplyMissing => "no_response",
            Failure::EffectRefused { name, .. } => name,
            Failure::Conflict => "conflicts",
            Failure::NotCommitted(error) => error.reason(),
            Failure::OutcomeUnknown => "commit",
            Failure::Cancelled => "client_gone",
            Failure::Internal => "internal",
        })
    }

    /// The body of the answer: `{"code": ..., "reason": ..., "function": ...}`, the last one only where there is a function.
    #[must_use]
    pub fn to_json(&self, function: Option<&str>) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            code: &'a str,
            reason: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            function: Option<&'a str>,
        }
        // Three strings always serialise.
        serde_json::to_string(&Body { code: self.code(), reason: &self.reason(), function }).unwrap_or_default()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Trap(code) => write!(f, "trap: {code}"),
            Failure::MemoryStack(stack) => write!(f, "trap: {}: {stack}", TrapCode::MemoryOutOfBounds),
            Failure::Component { message, .. } => write!(f, "trap: {message}"),
            Failure::MemoryLimit => f.write_str("gave up after it was refused memory"),
            Failure::Exit(status) => write!(f, "exit status {status}"),
            Failure::EffectRefused { module, name } => write!(
                f,
                "{module}.{name} cannot be taken back, and `isolation` makes the function one transaction: leave the call out, or set `effects = \"split\"` if it need not happen \
                 together with the commit; requests over HTTP can also be sent after it, with `effects = \"outbox\"`"
            ),
            Failure::NotCommitted(error) => write!(f, "its transaction was not committed: {error}"),
            other => write!(f, "{}: {}", other.code(), other.reason()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_names_kind_reason_and_function() {
        let trap = Failure::Trap(TrapCode::MemoryOutOfBounds);
        assert_eq!(trap.to_json(Some("f")), r#"{"code":"trap","reason":"memory_out_of_bounds","function":"f"}"#);
        assert_eq!(Failure::Exit(3).to_json(Some("f")), r#"{"code":"exit","reason":"status_3","function":"f"}"#);
        assert_eq!(Failure::NotFound.to_json(None), r#"{"code":"not_found","reason":"no_such_route"}"#);
    }

    #[test]
    fn every_code_is_listed() {
        let all = [
            Failure::NotFound,
            Failure::MethodNotAllowed,
            Failure::PathTooLong,
            Failure::BadHead("host_missing"),
            Failure::BodyTooLarge,
            Failure::BodyBroken,
            Failure::BodyTimeout,
            Failure::Busy,
            Failure::FunctionBusy,
            Failure::Overload,
            Failure::Shed,
            Failure::Stopping,
            Failure::Quarantined,
            Failure::NoMemory,
            Failure::NoStore,
            Failure::Deadline,
            Failure::CpuLimit,
            Failure::Trap(TrapCode::Unreachable),
            Failure::Component { trap: ComponentTrap::OutOfBounds, message: Box::default() },
            Failure::MemoryLimit,
            Failure::Exit(1),
            Failure::ReplyTooLarge,
            Failure::ReplyIncomplete,
            Failure::ReplyUnfinished,
            Failure::ReplyMissing,
            Failure::EffectRefused { module: "m", name: "f" },
            Failure::Conflict,
            Failure::NotCommitted(KvError::NotANumber),
            Failure::OutcomeUnknown,
            Failure::Cancelled,
            Failure::Internal,
        ];
        for failure in all {
            assert!(Failure::CODES.contains(&failure.code()), "{failure:?}");
        }
    }

    #[test]
    fn statuses_say_whose_fault_it_is() {
        for failure in [Failure::NotFound, Failure::MethodNotAllowed, Failure::BodyTooLarge, Failure::BodyTimeout] {
            assert_eq!(failure.fault(), Fault::Client);
            assert!(failure.status().is_client_error());
        }
        for failure in
            [Failure::Trap(TrapCode::Unreachable), Failure::Exit(1), Failure::Deadline, Failure::Busy, Failure::Internal]
        {
            assert_ne!(failure.fault(), Fault::Client);
            assert!(failure.status().is_server_error());
        }
    }
}
