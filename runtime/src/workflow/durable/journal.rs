//! The journal: what is written of executions, and reading it.
//!
//! ```text
//!   E tenant workflow name             -> Summary: what an execution is and how it ended
//!   C id                               -> Checkpoint: where it stands; of a failed one where it stood, for a redrive
//!   H id event                         -> events of its history from that number on, those of one step
//!   L tenant workflow !started !id     -> its name: all of a workflow, the newest first
//!   S tenant workflow status !started !id -> its name: the same by status
//!   F expires id                       -> its place, and the bytes that it takes up: what is removed when
//!   P tenant workflow                  -> nothing: the workflow is paused
//!   T tenant schedule                  -> when the schedule has started something last
//!   D fingerprint                      -> a definition with which executions began
//!   V number                           -> a Set: versions of functions to which executions are pinned
//! ```
//!
//! Numbers are big-endian, so that keys are in their order; `!` turns it around. Names end with a zero.

use std::fmt;
use std::num::ParseIntError;
use std::ops::Bound;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sledge_workflow::definition::Definition;
use sledge_workflow::machine::{Execution, HistoryEvent, Outcome, StartTask, Status, TaskId, TimerId};

use super::pins::{SETS_MAX, Set};
use super::quota::Size;
use super::timetable::Kept;
use crate::kv::{KvError, Order, Record, Records};

/// Events that one answer gives.
pub const EVENTS_MAX: usize = 1_000;
/// Bytes of events after which an answer ends: items that a Map has read are in its history, and large.
pub const EVENTS_BYTES_MAX: usize = 8 << 20;
const DAY_MS: i64 = 86_400_000;
/// Executions that one answer gives.
pub const LISTED_MAX: usize = 1_000;

const SUMMARIES: u8 = b'E';
const CHECKPOINTS: u8 = b'C';
const HISTORIES: u8 = b'H';
const LISTED: u8 = b'L';
const BY_STATUS: u8 = b'S';
const EXPIRIES: u8 = b'F';
const DEFINITIONS: u8 = b'D';
const SCHEDULES: u8 = b'T';
const PAUSED: u8 = b'P';
const PINS: u8 = b'V';

/// Where an execution is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// The tenant of its workflow.
    pub tenant: Arc<str>,
    /// Its workflow.
    pub workflow: Arc<str>,
    /// Its name, which no other execution of the workflow has as long as this one is kept.
    pub name: Arc<str>,
}

/// The task that waits for an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The execution of the task.
    pub execution: u64,
    /// The task.
    pub task: TaskId,
}

/// What an execution is, and how it has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Its number.
    pub id: u64,
    /// Whether it has ended, and how.
    pub status: Status,
    /// The [fingerprint](Definition::fingerprint) of its definition.
    pub definition: u64,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ms: Option<i64>,
    /// When it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// Whether it is paused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// How often it was redriven.
    #[serde(default)]
    pub redrives: u32,
    /// When it was redriven last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redriven_ms: Option<i64>,
    /// Its input.
    pub input: Arc<Value>,
    /// Its output, if it has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<Value>>,
    /// The error with which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The cause of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Arc<str>>,
    /// The task that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The numbers of the [sets](Set) of versions to which it was pinned when this was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<u64>,
    /// How often it was moved to another definition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub moves: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Summary {
    /// Whether it has not ended, and may not even have begun.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.status, Status::New | Status::Running)
    }

    /// That of an execution that is to begin later, and was started now.
    pub(super) fn queued(id: u64, definition: &Definition, input: Value, now_ms: i64, parent: Option<Parent>) -> Summary {
        Summary {
            id,
            status: Status::New,
            definition: definition.fingerprint(),
            started_ms: now_ms,
            stopped_ms: None,
            expires_ms: None,
            paused: false,
            redrives: 0,
            redriven_ms: None,
            input: Arc::new(input),
            output: None,
            error: None,
            cause: None,
            parent,
            pins: Vec::new(),
            moves: 0,
        }
    }

    /// That of an execution that begins.
    pub(super) fn new(id: u64, definition: &Definition, machine: &Execution, parent: Option<Parent>) -> Summary {
        let (input, status) = (Arc::clone(machine.input()), Status::Running);
        Summary { input, status, ..Summary::queued(id, definition, Value::Null, machine.started_ms(), parent) }
    }

    /// It goes on by that definition.
    pub(super) fn moved_to(&mut self, definition: &Definition) {
        if self.definition != definition.fingerprint() {
            self.definition = definition.fingerprint();
            self.moves = self.moves.saturating_add(1);
        }
    }

    /// It goes on again.
    pub(super) fn redriven(&mut self, machine: &Execution, now_ms: i64) {
        (self.status, self.redrives, self.redriven_ms) = (Status::Running, machine.redrives(), Some(now_ms));
        (self.stopped_ms, self.expires_ms, self.error, self.cause) = (None, None, None, None);
    }

    /// It has ended so, and is kept for so long.
    pub(super) fn ended(&mut self, outcome: &Outcome, now_ms: i64, retention_days: u32) {
        let kept_ms = i64::from(retention_days).saturating_mul(DAY_MS);
        (self.stopped_ms, self.expires_ms) = (Some(now_ms), Some(now_ms.saturating_add(kept_ms)));
        self.status = match outcome {
            Outcome::Succeeded(output) => {
                self.output = Some(Arc::clone(output));
                Status::Succeeded
            }
            Outcome::Failed(failure) | Outcome::Aborted(failure) => {
                (self.error, self.cause) = (failure.error.clone(), failure.cause.clone());
                if matches!(outcome, Outcome::Failed(_)) { Status::Failed } else { Status::Aborted }
            }
            Outcome::TimedOut => {
                self.error = Some("States.Timeout".into());
                Status::TimedOut
            }
        };
    }
}

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
pub(super) struct Standing<'a> {
    pub(super) place: &'a Place,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<Parent>,
    pub(super) tasks: Vec<&'a StartTask>,
    pub(super) timers: Vec<(TimerId, i64)>,
    pub(super) execution: &'a Execution,
    /// They stand in the head.
    #[serde(skip)]
    pub(super) pins: Vec<u64>,
    /// What it takes up beside the checkpoint. That, too, stands in the head.
    #[serde(skip)]
    pub(super) size: Size,
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

/// Where a list of executions goes on: behind the one that began then and has that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// When that began.
    pub started_ms: i64,
    /// Its number.
    pub id: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.started_ms, self.id)
    }
}

impl FromStr for Position {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Position, ParseIntError> {
        let (started, id) = text.split_once('-').unwrap_or((text, ""));
        Ok(Position { started_ms: i64::from_str_radix(started, 16)?, id: u64::from_str_radix(id, 16)? })
    }
}

/// Which executions are listed.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The tenant of the workflow.
    pub tenant: Arc<str>,
    /// The workflow.
    pub workflow: Arc<str>,
    /// Only those.
    pub status: Option<Status>,
    /// Only those behind that one.
    pub after: Option<Position>,
    /// At most so many.
    pub max: usize,
}

/// A page of executions, the newest first, and where the next page begins.
pub type Page = (Vec<(Place, Summary)>, Option<Position>);

/// A tenant, and the name of a workflow of it.
pub type WorkflowName = (Arc<str>, Arc<str>);

/// Events of a history.
#[derive(Debug)]
pub struct Events {
    /// Each as JSON.
    pub events: Vec<Box<RawValue>>,
    /// The number of the last one, if there are more behind it.
    pub next: Option<u64>,
}

/// Reads the journal. It may wait for the disk, or for Redis.
#[derive(Clone, Debug)]
pub struct Journal {
    records: Records,
}

/// An execution that is removed.
#[derive(Debug)]
pub struct Expired {
    /// Where it was found.
    pub place: Place,
    /// What it took up.
    pub bytes: u64,
    /// What is written for that.
    pub records: Vec<Record>,
}

/// An execution that has ended.
#[derive(Debug, Serialize, Deserialize)]
struct Expiry {
    #[serde(flatten)]
    place: Place,
    /// What it takes up.
    #[serde(default)]
    bytes: u64,
}

/// What a key is for, as far as its bytes count as an execution's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    History,
    Summary,
    Checkpoint,
    Other,
}

impl Part {
    pub(super) const fn of(key: &[u8]) -> Part {
        match key.first() {
            Some(&HISTORIES) => Part::History,
            Some(&SUMMARIES) => Part::Summary,
            Some(&CHECKPOINTS) => Part::Checkpoint,
            _ => Part::Other,
        }
    }
}

/// Builds a key.
struct Key(Vec<u8>);

impl Key {
    fn new(kind: u8) -> Key {
        Key(vec![kind])
    }

    fn name(mut self, name: &str) -> Key {
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        self
    }

    fn number(mut self, number: u64) -> Key {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    fn status(mut self, status: Status) -> Key {
        self.0.push(status as u8);
        self
    }

    /// A time and a number, the latest and largest first.
    fn falling(self, ms: i64, id: u64) -> Key {
        self.number(!ms.cast_unsigned()).number(!id)
    }

    fn time(self, ms: i64) -> Key {
        self.number(ms.max(0).cast_unsigned())
    }

    /// The first key behind all that begin so. A scan without that bound copies what lies there and was not folded into the tree yet.
    fn behind(&self) -> Bound<Vec<u8>> {
        let mut behind = self.0.clone();
        while let Some(last) = behind.pop() {
            if let Some(next) = last.checked_add(1) {
                behind.push(next);
                return Bound::Excluded(behind);
            }
        }
        Bound::Unbounded
    }
}

impl From<Key> for Box<[u8]> {
    fn from(key: Key) -> Box<[u8]> {
        key.0.into()
    }
}

fn checkpoint_key(id: u64) -> Key {
    Key::new(CHECKPOINTS).number(id)
}

fn summary_key(place: &Place) -> Key {
    Key::new(SUMMARIES).name(&place.tenant).name(&place.workflow).name(&place.name)
}

fn of_workflow(kind: u8, tenant: &str, workflow: &str) -> Key {
    Key::new(kind).name(tenant).name(workflow)
}

fn listed_key(place: &Place, summary: &Summary) -> Key {
    of_workflow(LISTED, &place.tenant, &place.workflow).falling(summary.started_ms, summary.id)
}

fn status_key(place: &Place, summary: &Summary, status: Status) -> Key {
    of_workflow(BY_STATUS, &place.tenant, &place.workflow).status(status).falling(summary.started_ms, summary.id)
}

/// JSON of what always is JSON.
fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// What is written when an execution begins, also again.
pub(super) fn begun(place: &Place, summary: &Summary, before: Option<&Summary>) -> Vec<Record> {
    let mut records = Vec::new();
    if let Some(before) = before {
        records.push(Record::remove(status_key(place, before, before.status)));
        records.extend(before.expires_ms.map(|at| Record::remove(Key::new(EXPIRIES).time(at).number(before.id))));
    }
    records.extend([
        Record::put(summary_key(place), json(summary)),
        Record::put(listed_key(place, summary), Bytes::copy_from_slice(place.name.as_bytes())),
        Record::put(status_key(place, summary, summary.status), Bytes::copy_from_slice(place.name.as_bytes())),
    ]);
    records
}

/// What is written when an execution has ended that was `before`.
pub(super) fn ended(place: &Place, summary: &Summary, before: Status) -> Vec<Record> {
    let name = || Bytes::copy_from_slice(place.name.as_bytes());
    let mut records = vec![
        Record::put(summary_key(place), json(summary)),
        Record::remove(status_key(place, summary, before)),
        Record::put(status_key(place, summary, summary.status), name()),
    ];
    // One that has not begun has nowhere to go on.
    if summary.status == Status::Succeeded || before == Status::New {
        records.push(Record::remove(checkpoint_key(summary.id)));
    }
    records
}

/// When an execution is removed that has ended and takes up so many bytes.
pub(super) fn expiry(place: &Place, summary: &Summary, bytes: u64) -> Option<Record> {
    let at_ms = summary.expires_ms?;
    Some(Record::put(Key::new(EXPIRIES).time(at_ms).number(summary.id), json(&Expiry { place: place.clone(), bytes })))
}

/// What an execution is, where nothing of it has changed by which it is found.
pub(super) fn changed(place: &Place, summary: &Summary) -> Record {
    Record::put(summary_key(place), json(summary))
}

/// Whether a workflow is paused.
pub(super) fn paused(tenant: &str, workflow: &str, paused: bool) -> Record {
    let key = of_workflow(PAUSED, tenant, workflow);
    if paused { Record::put(key, Bytes::new()) } else { Record::remove(key) }
}

/// A definition, to be found by its fingerprint.
pub(super) fn definition(definition: &Definition) -> Record {
    let source = Bytes::copy_from_slice(definition.source().as_bytes());
    Record::put(Key::new(DEFINITIONS).number(definition.fingerprint()), source)
}

/// When a schedule has started something last.
pub(super) fn schedule(tenant: &str, name: &str, kept: &Kept) -> Record {
    Record::put(of_workflow(SCHEDULES, tenant, name), json(kept))
}

/// Versions to which executions are pinned.
pub(super) fn pins(number: u64, set: &Set) -> Record {
    Record::put(Key::new(PINS).number(number), set.to_json())
}

/// No execution is pinned to that set.
pub(super) fn no_pins(number: u64) -> Record {
    Record::remove(Key::new(PINS).number(number))
}

/// Events of one step.
pub(super) fn history(id: u64, events: &[HistoryEvent]) -> Option<Record> {
    let first = events.first()?;
    Some(Record::put(Key::new(HISTORIES).number(id).number(first.id), json(&events)))
}

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
const HEAD_BYTES_MAX: usize = 2_048;

/// Where an execution stands.
pub(super) fn checkpoint(id: u64, checkpoint: &Standing<'_>) -> Record {
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
    fn read(value: &[u8]) -> Option<(Glance, &[u8])> {
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

/// The number at the end of a key.
fn last_number(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(*key.last_chunk::<8>()?))
}

fn damaged(what: &str, error: &impl std::fmt::Display) -> KvError {
    KvError::Unavailable(format!("the journal of executions is damaged: {what}: {error}"))
}

impl Journal {
    /// That of a store.
    #[must_use]
    pub const fn new(records: Records) -> Journal {
        Journal { records }
    }

    /// What an execution is; none where there is no such.
    ///
    /// # Errors
    /// When the store cannot be read now, or what is in it is damaged.
    pub fn summary(&self, place: &Place) -> Result<Option<Summary>, KvError> {
        let Some(found) = self.records.get(&summary_key(place).0)? else { return Ok(None) };
        serde_json::from_slice(&found).map(Some).map_err(|error| damaged(&place.name, &error))
    }

    /// Where an execution stands, or stood when it failed.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn checkpoint(&self, id: u64) -> Result<Option<(Checkpoint, Glance)>, KvError> {
        let Some(found) = self.records.get(&checkpoint_key(id).0)? else { return Ok(None) };
        let (glance, json) = Glance::read(&found).ok_or_else(|| damaged("a checkpoint", &"its head is wrong"))?;
        let checkpoint = serde_json::from_slice(json);
        checkpoint.map(|checkpoint| Some((checkpoint, glance))).map_err(|error| damaged("a checkpoint", &error))
    }

    /// What the head of an execution's checkpoint says; none where there is no such.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn glance(&self, id: u64) -> Result<Option<Glance>, KvError> {
        let Some(found) = self.records.get(&checkpoint_key(id).0)? else { return Ok(None) };
        let (glance, _) = Glance::read(&found).ok_or_else(|| damaged("a checkpoint", &"its head is wrong"))?;
        Ok(Some(glance))
    }

    /// The tenant of an execution that has not succeeded; none where there is no such.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn tenant(&self, id: u64) -> Result<Option<Arc<str>>, KvError> {
        Ok(self.glance(id)?.map(|glance| glance.workflow.0))
    }

    /// Versions to which executions are pinned.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn pins(&self, number: u64) -> Result<Option<Set>, KvError> {
        let Some(found) = self.records.get(&Key::new(PINS).number(number).0)? else { return Ok(None) };
        Set::from_json(&found).map(Some).map_err(|error| damaged("what executions are pinned to", &error))
    }

    /// The numbers of all sets of versions.
    pub(super) fn sets(&self) -> Result<Vec<u64>, KvError> {
        let mut numbers = Vec::new();
        self.all(&Key::new(PINS), 0, |key, _| {
            numbers.extend(last_number(key));
            true
        })?;
        Ok(numbers)
    }

    /// A definition with which executions began.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn definition(&self, fingerprint: u64) -> Result<Option<Definition>, KvError> {
        let Some(found) = self.records.get(&Key::new(DEFINITIONS).number(fingerprint).0)? else { return Ok(None) };
        let source = std::str::from_utf8(&found).map_err(|error| damaged("a definition", &error))?;
        let first = |mistakes: Vec<_>| mistakes.first().map(ToString::to_string).unwrap_or_default();
        Definition::parse(source).map(Some).map_err(|mistakes| damaged("a definition", &first(mistakes)))
    }

    /// When a schedule has started something last.
    pub(super) fn schedule(&self, tenant: &str, name: &str) -> Result<Option<Kept>, KvError> {
        let Some(found) = self.records.get(&of_workflow(SCHEDULES, tenant, name).0)? else { return Ok(None) };
        serde_json::from_slice(&found).map(Some).map_err(|error| damaged(name, &error))
    }

    /// Tenants and names of the workflows that are paused.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn paused_workflows(&self) -> Result<Vec<WorkflowName>, KvError> {
        let mut found = Vec::new();
        self.all(&Key::new(PAUSED), 0, |key, _| {
            let mut names = key.get(1..).unwrap_or_default().split(|byte| *byte == 0);
            let mut name = || names.next().and_then(|name| std::str::from_utf8(name).ok()).map(Arc::from);
            if let (Some(tenant), Some(workflow)) = (name(), name()) {
                found.push((tenant, workflow));
            }
            true
        })?;
        Ok(found)
    }

    /// Calls `with` with the number of each execution that has a checkpoint, and what the head of that says.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn each_checkpoint(&self, mut with: impl FnMut(u64, Glance)) -> Result<(), KvError> {
        self.all(&Key::new(CHECKPOINTS), HEAD_BYTES_MAX, |key, value| {
            if let Some((id, (glance, _))) = last_number(key).zip(Glance::read(value)) {
                with(id, glance);
            }
            true
        })
    }

    /// The largest number of an execution that was written.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn last_id(&self) -> Result<u64, KvError> {
        let mut last = 0;
        for kind in [CHECKPOINTS, HISTORIES] {
            let bounds = (Bound::Included(&[kind][..]), Bound::Excluded(&[kind + 1][..]));
            self.records.scan(bounds, Order::Falling, |key, _| {
                let number = key.get(1..9).and_then(last_number);
                last = last.max(number.unwrap_or(0));
                false
            })?;
        }
        Ok(last)
    }

    /// Executions of a workflow, the newest first.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn list(&self, listing: &Listing) -> Result<Page, KvError> {
        let Listing { tenant, workflow, status, after, max } = listing;
        let prefix = match status {
            Some(status) => of_workflow(BY_STATUS, tenant, workflow).status(*status),
            None => of_workflow(LISTED, tenant, workflow),
        };
        let start = match after {
            Some(Position { started_ms, id }) => Bound::Excluded(Key(prefix.0.clone()).falling(*started_ms, *id).0),
            None => Bound::Included(prefix.0.clone()),
        };
        let (max, mut places, mut has_more) = ((*max).clamp(1, LISTED_MAX), Vec::new(), false);
        let end = prefix.behind();
        let bounds = (start.as_ref().map(|key| &**key), end.as_ref().map(|key| &**key));
        self.records.scan(bounds, Order::Rising, |_, name| {
            has_more = places.len() == max;
            if !has_more {
                let name = String::from_utf8_lossy(name).into();
                places.push(Place { tenant: Arc::clone(tenant), workflow: Arc::clone(workflow), name });
            }
            !has_more
        })?;
        let mut found = Vec::with_capacity(places.len());
        for place in places {
            // One that was removed meanwhile is left out.
            found.extend(self.summary(&place)?.map(|summary| (place, summary)));
        }
        let last = found.last().map(|(_, summary)| Position { started_ms: summary.started_ms, id: summary.id });
        Ok((found, last.filter(|_| has_more)))
    }

    /// Events of an execution's history, from the first or from the last one on. `behind` is the number of the one before them.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn history(&self, id: u64, order: Order, behind: Option<u64>, max: usize) -> Result<Events, KvError> {
        let key = |number: u64| Key::new(HISTORIES).number(id).number(number).0;
        // Rows are steps: the one that holds the next event may begin before it.
        let (mut first, mut last) = (key(0), key(u64::MAX));
        match (order, behind) {
            (Order::Falling, Some(behind)) => last = key(behind),
            (Order::Rising, Some(behind)) => {
                let bounds = (Bound::Included(&*key(0)), Bound::Included(&*key(behind.saturating_add(1))));
                self.records.scan(bounds, Order::Falling, |key, _| {
                    first = key.to_vec();
                    false
                })?;
            }
            (_, None) => {}
        }
        let is_wanted = |number: u64| match (order, behind) {
            (_, None) => true,
            (Order::Rising, Some(behind)) => number > behind,
            (Order::Falling, Some(behind)) => number < behind,
        };
        let (max, mut bytes, mut events) = (max.clamp(1, EVENTS_MAX), 0, Vec::new());
        let (mut next, mut failed) = (None, None);
        let mut last_taken = None;
        let bounds = (Bound::Included(&*first), Bound::Included(&*last));
        self.records.scan(bounds, order, |key, value| {
            let mut step: Vec<Box<RawValue>> = match serde_json::from_slice(value) {
                Ok(step) => step,
                Err(error) => {
                    failed = Some(damaged("a history", &error));
                    return false;
                }
            };
            let first = last_number(key).unwrap_or_default();
            let numbered = step.drain(..).zip(first..).map(|(event, number)| (number, event));
            let mut numbered: Vec<_> = numbered.filter(|(number, _)| is_wanted(*number)).collect();
            if order == Order::Falling {
                numbered.reverse();
            }
            for (number, event) in numbered {
                if events.len() == max || bytes >= EVENTS_BYTES_MAX {
                    next = last_taken;
                    return false;
                }
                last_taken = Some(number);
                bytes += event.get().len();
                events.push(event);
            }
            true
        })?;
        failed.map_or(Ok(Events { events, next }), Err)
    }

    /// How many executions have ended and are kept.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn kept(&self) -> Result<u64, KvError> {
        self.records.count((Bound::Included(&[EXPIRIES][..]), Bound::Excluded(&[EXPIRIES + 1][..])))
    }

    /// What is to be removed of each execution that is kept no longer: of so many at most.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn expired(&self, now_ms: i64, max: usize) -> Result<Vec<Expired>, KvError> {
        let mut found: Vec<(Vec<u8>, Expiry)> = Vec::new();
        let end = Key::new(EXPIRIES).time(now_ms);
        let bounds = (Bound::Included(&[EXPIRIES][..]), Bound::Excluded(&*end.0));
        self.records.scan(bounds, Order::Rising, |key, kept| {
            if let Ok(kept) = serde_json::from_slice(kept) {
                found.push((key.to_vec(), kept));
            }
            found.len() < max
        })?;
        found.into_iter().map(|(key, kept)| self.all_of(key, kept)).collect()
    }

    /// What is to be removed of an execution that has ended; none where it is not kept.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn removed(&self, place: &Place, summary: &Summary) -> Result<Option<Expired>, KvError> {
        let Some(at_ms) = summary.expires_ms else { return Ok(None) };
        let key = Key::new(EXPIRIES).time(at_ms).number(summary.id).0;
        let Some(found) = self.records.get(&key)? else { return Ok(None) };
        let kept = serde_json::from_slice(&found).map_err(|error| damaged(&place.name, &error))?;
        self.all_of(key, kept).map(Some)
    }

    /// All of an execution that has ended; `key` is the one by which it is removed.
    fn all_of(&self, key: Vec<u8>, Expiry { place, bytes }: Expiry) -> Result<Expired, KvError> {
        let mut records = vec![Record::remove(key)];
        if let Some(summary) = self.summary(&place)? {
            records.extend([
                Record::remove(summary_key(&place)),
                Record::remove(listed_key(&place, &summary)),
                Record::remove(status_key(&place, &summary, summary.status)),
                Record::remove(checkpoint_key(summary.id)),
            ]);
            self.all(&Key::new(HISTORIES).number(summary.id), 0, |key, _| {
                records.push(Record::remove(key));
                true
            })?;
        }
        Ok(Expired { place, bytes, records })
    }

    /// Calls `with` with the tenant of each execution that has ended and is kept, and the bytes that it takes up.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn each_kept(&self, mut with: impl FnMut(&str, u64)) -> Result<(), KvError> {
        let bounds = (Bound::Included(&[EXPIRIES][..]), Bound::Excluded(&[EXPIRIES + 1][..]));
        self.records.scan(bounds, Order::Rising, |_, kept| {
            if let Ok(Expiry { place, bytes }) = serde_json::from_slice(kept) {
                with(&place.tenant, bytes);
            }
            true
        })
    }

    /// All whose keys begin so, with so much of each value as is wanted at least.
    fn all(&self, prefix: &Key, head_bytes: usize, with: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), KvError> {
        let end = prefix.behind();
        self.records.scan_heads((Bound::Included(&*prefix.0), end.as_ref().map(|key| &**key)), head_bytes, with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that begin otherwise are neither listed nor removed: no scan looks at what it finds there.
    #[test]
    fn a_bound_lies_right_behind_all_that_begin_alike() {
        let behind = |bytes: &[u8]| Key(bytes.to_vec()).behind();
        assert_eq!(behind(b"La"), Bound::Excluded(b"Lb".to_vec()));
        assert_eq!(behind(b"L\xff\xff"), Bound::Excluded(b"M".to_vec()));
        assert_eq!(behind(b"\xff"), Bound::Unbounded);
        for seed in 0..1_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut bytes =
                |max: usize| -> Vec<u8> { (0..random.usize(0..=max)).map(|_| [0, 1, 0xfe, 0xff][random.usize(0..4)]).collect() };
            let (prefix, key) = ([vec![b'L'], bytes(3)].concat(), [vec![b'L'], bytes(6)].concat());
            let Bound::Excluded(end) = behind(&prefix) else { panic!("seed {seed}") };
            assert_eq!(key >= prefix && key < end, key.starts_with(&prefix), "seed {seed}: {prefix:?} {key:?}");
        }
    }
}
