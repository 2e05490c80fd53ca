//! Where an execution stands, and what its checkpoint's head says without the rest.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sledge_workflow::machine::{Execution, StartTask, Status, TimerId};

use super::super::pins::SETS_MAX;
use super::super::quota::Size;
use super::key::{checkpoint_key, last_number};
use super::summary::{Parent, Place};
use crate::kv::Record;

const HAS_ENDED: u8 = 1;
const HAS_TASKS: u8 = 2;
const HAS_KEY: u8 = 4;
const IS_QUEUED: u8 = 8;
const HAS_PINS: u8 = 16;
const HAS_SIZE: u8 = 32;
/// Bytes of a size: of the history in eight, of what it is and of the checkpoint in four each.
const SIZE_BYTES: usize = 16;
/// A fingerprint, a time and the flags. With [`HAS_SIZE`] the size follows. With [`HAS_PINS`] a number of sets follows, in one byte, and the number of each. Then come names that end with zeros, and with [`HAS_KEY`] the key.
const HEAD_BYTES: usize = 17;
/// Bytes of a whole head, at most: names of tenants and workflows are far shorter.
pub(super) const HEAD_BYTES_MAX: usize = 2_048;

/// Where an execution stands: all that is needed to go on with it.
#[derive(Debug, Deserialize)]
pub struct Checkpoint {
    /// Where it is found.
    pub place: Place,
    /// What the limits of its workflow are kept for, if it began with any.
    #[serde(default)]
    pub key: Option<Arc<str>>,
    /// The task that waits for it.
    #[serde(default)]
    pub parent: Option<Parent>,
    /// Tasks that have to be carried out.
    pub tasks: Vec<StartTask>,
    /// Timers, and when each runs out.
    pub timers: Vec<(TimerId, i64)>,
    /// The machine.
    pub execution: Execution,
}

/// The same, to be written as a [`Checkpoint`].
#[derive(Debug, Serialize)]
pub(in super::super) struct Standing<'a> {
    pub(in super::super) place: &'a Place,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) parent: Option<Parent>,
    pub(in super::super) tasks: Vec<&'a StartTask>,
    pub(in super::super) timers: Vec<(TimerId, i64)>,
    pub(in super::super) execution: &'a Execution,
    /// They stand in the head.
    #[serde(skip)]
    pub(in super::super) pins: Vec<u64>,
    /// What it takes up beside the checkpoint. That, too, stands in the head.
    #[serde(skip)]
    pub(in super::super) size: Size,
}

/// What the head of a checkpoint says, without reading all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The tenant and the name of its workflow.
    pub workflow: (Arc<str>, Arc<str>),
    /// Its definition.
    pub definition: u64,
    /// When its first timer runs out.
    pub due_ms: Option<i64>,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Whether tasks have to be carried out.
    pub has_tasks: bool,
    /// Whether it has not begun.
    pub is_queued: bool,
    /// What the limits of its workflow are kept for, if it began with any.
    pub key: Option<Arc<str>>,
    /// The numbers of the sets of versions to which it is pinned.
    pub pins: Vec<u64>,
    /// What it takes up.
    pub size: Size,
}

/// Where an execution stands.
pub(in super::super) fn checkpoint(id: u64, checkpoint: &Standing<'_>) -> Record {
    let has_ended = !matches!(checkpoint.execution.status(), Status::New | Status::Running);
    let due_ms = checkpoint.timers.iter().map(|(_, at_ms)| *at_ms).min().unwrap_or(i64::MAX);
    let pins = checkpoint.pins.get(..SETS_MAX).unwrap_or(&checkpoint.pins);
    let flags = [
        (has_ended, HAS_ENDED),
        (!checkpoint.tasks.is_empty(), HAS_TASKS),
        (checkpoint.key.is_some(), HAS_KEY),
        (checkpoint.execution.status() == Status::New, IS_QUEUED),
        (!pins.is_empty(), HAS_PINS),
        (true, HAS_SIZE),
    ];
    let flags = flags.iter().filter(|(is_so, _)| *is_so).fold(0, |flags, (_, flag)| flags | flag);
    let mut bytes = Vec::with_capacity(2_048);
    bytes.extend_from_slice(&checkpoint.execution.definition().to_be_bytes());
    bytes.extend_from_slice(&due_ms.to_be_bytes());
    bytes.push(flags);
    bytes.extend_from_slice(&checkpoint.size.history.to_be_bytes());
    bytes.extend_from_slice(&checkpoint.size.summary.to_be_bytes());
    // Its own, when that is known.
    bytes.extend_from_slice(&[0; 4]);
    if !pins.is_empty() {
        // At most `SETS_MAX`.
        bytes.push(pins.len() as u8);
        pins.iter().for_each(|number| bytes.extend_from_slice(&number.to_be_bytes()));
    }
    let Place { tenant, workflow, .. } = checkpoint.place;
    for name in [&**tenant, &**workflow].into_iter().chain(checkpoint.key) {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
    }
    // Executions always serialise.
    let _ = serde_json::to_writer(&mut bytes, checkpoint);
    let key = checkpoint_key(id);
    // Far below 4 GiB: a larger one is not committed.
    let own = u32::try_from(key.0.len() + bytes.len()).unwrap_or(u32::MAX);
    if let Some(place) = bytes.get_mut(HEAD_BYTES + SIZE_BYTES - 4..HEAD_BYTES + SIZE_BYTES) {
        place.copy_from_slice(&own.to_be_bytes());
    }
    Record::put(key, bytes)
}

impl Glance {
    /// Reads the head; what follows it is the checkpoint as JSON.
    pub(super) fn read(value: &[u8]) -> Option<(Glance, &[u8])> {
        let number = |at: usize| Some(u64::from_be_bytes(value.get(at..at + 8)?.try_into().ok()?));
        let (due_ms, flags) = (number(8)?.cast_signed(), value.get(16)?);
        let (mut pins, mut rest) = (Vec::new(), value.get(HEAD_BYTES..)?);
        let mut size = Size::default();
        if flags & HAS_SIZE != 0 {
            let (sizes, more) = rest.split_at_checked(SIZE_BYTES)?;
            let small = |at: usize| Some(u32::from_be_bytes(sizes.get(at..at + 4)?.try_into().ok()?));
            size = Size { history: number(HEAD_BYTES)?, summary: small(8)?, checkpoint: small(12)? };
            rest = more;
        }
        if flags & HAS_PINS != 0 {
            let (count, more) = rest.split_first()?;
            let (numbers, more) = more.split_at_checked(usize::from(*count) * size_of::<u64>())?;
            pins.extend(numbers.chunks_exact(size_of::<u64>()).filter_map(last_number));
            rest = more;
        }
        let has_key = flags & HAS_KEY != 0;
        let mut rest = rest.splitn(if has_key { 4 } else { 3 }, |byte| *byte == 0);
        let mut name = || Some(Arc::from(std::str::from_utf8(rest.next()?).ok()?));
        let glance = Glance {
            workflow: (name()?, name()?),
            definition: number(0)?,
            due_ms: (due_ms != i64::MAX).then_some(due_ms),
            has_ended: flags & HAS_ENDED != 0,
            has_tasks: flags & HAS_TASKS != 0,
            is_queued: flags & IS_QUEUED != 0,
            key: if has_key { Some(name()?) } else { None },
            pins,
            size,
        };
        Some((glance, rest.next()?))
    }
}
