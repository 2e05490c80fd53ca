//! Tokens of pages: where a list goes on. They tell nothing that the client has not seen, and a client that makes one up gets another part of what it may see.

use sledge_aws::ApiError;
use sledge_aws::limits::NAME_MAX;

use crate::kv::Order;
use crate::workflow::durable::journal::Position;

/// What a token begins with: which list it is for.
const HISTORY: &str = "h";
const EXECUTIONS: &str = "e";
const MACHINES: &str = "m";

/// The letter of an order.
const fn letter(order: Order) -> &'static str {
    match order {
        Order::Rising => "r",
        Order::Falling => "f",
    }
}

/// Where the history of the execution with that number goes on: behind that event.
pub(super) fn behind_event(execution: u64, order: Order, behind: u64) -> String {
    format!("{HISTORY}.{}.{execution:x}.{behind:x}", letter(order))
}

/// The event that a token names.
pub(super) fn event(token: &str, execution: u64, order: Order) -> Result<u64, ApiError> {
    match parts(token) {
        Some([HISTORY, given, id, behind]) if given == letter(order) && number(id) == Some(execution) => {
            number(behind).ok_or_else(ApiError::invalid_token)
        }
        _ => Err(ApiError::invalid_token()),
    }
}

/// Where a list of executions goes on: behind that one.
pub(super) fn behind_execution(position: Position) -> String {
    format!("{EXECUTIONS}.{:x}.{:x}", position.started_ms, position.id)
}

/// The execution that a token names.
pub(super) fn position(token: &str) -> Result<Position, ApiError> {
    let read = || match parts(token)? {
        [EXECUTIONS, started, id] => Some(Position { started_ms: number(started)?.cast_signed(), id: number(id)? }),
        _ => None,
    };
    read().ok_or_else(ApiError::invalid_token)
}

/// Where a list of workflows goes on: behind that one.
pub(super) fn behind_machine(name: &str) -> String {
    format!("{MACHINES}.{name}")
}

/// The workflow that a token names.
pub(super) fn machine(token: &str) -> Result<&str, ApiError> {
    match token.split_once('.') {
        Some((MACHINES, name)) if (1..=NAME_MAX).contains(&name.len()) => Ok(name),
        _ => Err(ApiError::invalid_token()),
    }
}

/// A token's parts, where it has as many.
fn parts<const COUNT: usize>(token: &str) -> Option<[&str; COUNT]> {
    let mut parts = token.splitn(COUNT, '.');
    let mut found = [""; COUNT];
    for part in &mut found {
        *part = parts.next()?;
    }
    Some(found)
}

/// A number as this server writes it.
fn number(text: &str) -> Option<u64> {
    let is_own = !text.is_empty() && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    is_own.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}
