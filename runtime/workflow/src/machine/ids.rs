//! Numbers by which an execution and its caller name tasks, timers and frames.
//!
//! A number holds the place of its frame (low bits) and a serial number that never occurs again in the execution (high bits): so that an event finds its frame at once,
//! and a late event finds that the frame now waits for something else.

use serde::{Deserialize, Serialize};

const SLOT_BITS: u32 = 24;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;

/// The slot of the timer of the whole execution, which no frame has.
pub(super) const EXECUTION_SLOT: u32 = SLOT_MASK as u32;

/// A piece of work that the caller carries out. Unique in its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u64);

/// A timer that the caller sets. Unique in its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimerId(pub u64);

/// A branch or iteration, or the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct FrameId(pub(super) u64);

pub(super) const fn number(serial: u64, slot: u32) -> u64 {
    (serial << SLOT_BITS) | (slot as u64 & SLOT_MASK)
}

pub(super) const fn slot_of(number: u64) -> u32 {
    (number & SLOT_MASK) as u32
}
