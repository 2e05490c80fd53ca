//! Frames: the whole, and each branch and iteration that is alive, with where it stands.
//!
//! A frame is in one phase at a time. `Ready` -> (`Waiting` | `Task` | `Parallel` | `Map` | `Ready` at the next state); a failure that is retried: -> `Backoff` -> `Retry`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::Purpose;
use super::ids::{FrameId, TaskId, TimerId, slot_of};
use super::limits::RESULTS_BYTES_MAX;
use crate::data::limits::VALUE_DEPTH_MAX;
use crate::data::{Variables, json_bytes};
use crate::definition::limits::NESTING_MAX;
use crate::definition::{MachineIndex, StateIndex};

/// A variable with its value.
pub(super) type Variable = (Arc<str>, Arc<Value>);

/// One branch or iteration, or the whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Frame {
    pub(super) id: FrameId,
    /// The slot of the frame whose state this is a part of.
    pub(super) parent: Option<u32>,
    /// Which branch or iteration of it.
    pub(super) number: u32,
    pub(super) machine: MachineIndex,
    pub(super) state: StateIndex,
    /// What the state was given.
    pub(super) input: Arc<Value>,
    /// What its own states assigned.
    pub(super) variables: Vec<Variable>,
    /// Bytes of them.
    pub(super) variable_bytes: usize,
    pub(super) phase: Phase,
    pub(super) entered_ms: i64,
    /// How often each retrier of the state was used; empty before the first time.
    pub(super) retries: Vec<u32>,
    /// The history's event before the state, the one of entering it, and the last event of the frame.
    pub(super) before_event: u64,
    pub(super) entered_event: u64,
    pub(super) last_event: u64,
    /// Of an iteration: its item.
    pub(super) item: Option<Arc<Value>>,
    /// The token of the task that waits for its callback.
    pub(super) token: Option<Arc<str>>,
    /// How many states it has entered.
    #[serde(default)]
    pub(super) entered: u32,
}

impl Frame {
    /// A frame that is about to enter a state: the whole, without variables.
    pub(super) const fn new(
        id: FrameId,
        machine: MachineIndex,
        state: StateIndex,
        input: Arc<Value>,
        now_ms: i64,
        last_event: u64,
    ) -> Self {
        Self {
            id,
            parent: None,
            number: 0,
            machine,
            state,
            input,
            variables: Vec::new(),
            variable_bytes: 0,
            phase: Phase::Ready,
            entered_ms: now_ms,
            retries: Vec::new(),
            before_event: last_event,
            entered_event: 0,
            last_event,
            item: None,
            token: None,
            entered: 0,
        }
    }

    /// How often its state was tried before.
    pub(super) fn attempt(&self) -> u32 {
        self.retries.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// What a frame waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// To enter its state.
    Ready,
    /// To try its state again.
    Retry,
    /// The end of a Wait.
    Waiting { timer: TimerId },
    /// The interval of a retrier.
    Backoff { timer: TimerId },
    /// A task.
    Task(Pending),
    /// Branches.
    Parallel(Branches),
    /// Iterations.
    Map(Box<Iterations>),
    /// Iterations have ended, and their results are to be kept.
    Ended(Box<Iterations>),
}

/// A task that was asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pending {
    pub(super) task: TaskId,
    pub(super) purpose: Purpose,
    pub(super) timeout: Option<TimerId>,
    pub(super) heartbeat: Option<TimerId>,
    pub(super) heartbeat_s: Option<u64>,
    /// `TaskStarted` was told.
    pub(super) started: bool,
    /// It has answered, and waits for its callback.
    pub(super) submitted: bool,
}

/// The branches of a Parallel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Branches {
    pub(super) running: u32,
    pub(super) results: Results,
}

/// Results of branches or iterations, with their bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Results {
    pub(super) values: Vec<Option<Arc<Value>>>,
    pub(super) bytes: usize,
}

impl Results {
    pub(super) fn new(count: usize) -> Self {
        Self { values: vec![None; count], bytes: 0 }
    }

    /// Puts a result to its place. False if all of them are too large.
    pub(super) fn put(&mut self, number: u32, value: Arc<Value>) -> bool {
        let Ok(bytes) = json_bytes(&value, RESULTS_BYTES_MAX.saturating_sub(self.bytes), VALUE_DEPTH_MAX) else { return false };
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(place) = self.values.get_mut(number as usize) {
            *place = Some(value);
        }
        true
    }

    /// All of them as an array. They are moved, not copied, where nothing else holds them.
    pub(super) fn take(&mut self) -> Arc<Value> {
        let values = std::mem::take(&mut self.values);
        Arc::new(Value::Array(values.into_iter().map(|value| value.map_or(Value::Null, Arc::unwrap_or_clone)).collect()))
    }
}

/// The iterations of a Map.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Iterations {
    /// What the iterations are about: an array, of items or of batches.
    pub(super) items: Arc<Value>,
    /// The items are ready inputs: batches.
    pub(super) batched: bool,
    /// The input of the state, after `InputPath`.
    pub(super) effective: Arc<Value>,
    pub(super) next: u32,
    pub(super) running: u32,
    pub(super) concurrency: u32,
    pub(super) results: Results,
    pub(super) failed: u64,
    /// Which have failed: for a `ResultWriter`, which keeps them apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) failures: Vec<u32>,
    /// How many may fail; none: the first failure is the state's own.
    pub(super) tolerated: Option<u64>,
}

/// All frames by slot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Frames {
    slots: Vec<Option<Frame>>,
    free: Vec<u32>,
}

impl Frames {
    pub(super) fn get(&self, slot: u32) -> Option<&Frame> {
        self.slots.get(slot as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Frame> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// The slot of a frame that is alive.
    pub(super) fn find(&self, id: FrameId) -> Option<u32> {
        let slot = slot_of(id.0);
        self.get(slot).filter(|frame| frame.id == id).map(|_| slot)
    }

    /// The slot that the next frame will have.
    pub(super) fn next_slot(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.slots.len() as u32)
    }

    /// Puts a frame into the next slot.
    pub(super) fn insert(&mut self, frame: Frame) {
        match self.free.pop() {
            Some(slot) => {
                if let Some(place) = self.slots.get_mut(slot as usize) {
                    *place = Some(frame);
                }
            }
            None => self.slots.push(Some(frame)),
        }
    }

    pub(super) fn remove(&mut self, slot: u32) -> Option<Frame> {
        let frame = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(frame)
    }

    /// How many are alive.
    pub(super) fn len(&self) -> usize {
        self.slots.len().saturating_sub(self.free.len())
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.free.clear();
    }

    /// Those that are alive.
    pub(super) fn alive(&self) -> impl Iterator<Item = &Frame> {
        self.slots.iter().flatten()
    }

    /// Others in their slots: what `with` makes of each.
    pub(super) fn map(&self, mut with: impl FnMut(&Frame) -> Frame) -> Frames {
        Frames { slots: self.slots.iter().map(|slot| slot.as_ref().map(&mut with)).collect(), free: self.free.clone() }
    }

    /// Bytes of the variables of all frames.
    pub(super) fn variable_bytes(&self) -> usize {
        self.slots.iter().flatten().map(|frame| frame.variable_bytes).fold(0, usize::saturating_add)
    }

    /// Slots of all frames below one, innermost last; of all frames, if none is given.
    pub(super) fn below(&self, ancestor: Option<u32>) -> Vec<u32> {
        let alive = self.slots.iter().enumerate().filter(|(_, frame)| frame.is_some()).map(|(slot, _)| slot as u32);
        alive.filter(|slot| ancestor.is_none_or(|ancestor| self.ancestors(*slot).any(|above| above == ancestor))).collect()
    }

    /// The slots above a frame, the nearest first.
    fn ancestors(&self, slot: u32) -> impl Iterator<Item = u32> {
        let parent = |slot: u32| self.get(slot).and_then(|frame| frame.parent);
        // No deeper than a definition nests, whatever a checkpoint says.
        std::iter::successors(parent(slot), move |above| parent(*above)).take(NESTING_MAX + 1)
    }

    /// The frames from one up to the whole.
    pub(super) fn chain(&self, slot: u32) -> impl Iterator<Item = &Frame> {
        std::iter::once(slot).chain(self.ancestors(slot)).filter_map(|slot| self.get(slot))
    }

    /// Where a frame is in the order in which all states would be entered one after the other, branches and iterations by their numbers: how many states each frame has entered from the whole on, and
    /// between them the numbers of branches and iterations; and how often the state was tried before.
    pub(super) fn path(&self, slot: u32) -> Vec<u32> {
        let attempt = self.get(slot).map_or(0, Frame::attempt);
        let mut path = vec![attempt];
        for frame in self.chain(slot) {
            path.push(frame.entered);
            path.extend(frame.parent.map(|_| frame.number));
        }
        path.reverse();
        path
    }

    /// Numbers of branches and iterations, from the outermost.
    pub(super) fn position(&self, slot: u32) -> Vec<u32> {
        let mut position: Vec<u32> = self.chain(slot).filter(|frame| frame.parent.is_some()).map(|frame| frame.number).collect();
        position.reverse();
        position
    }
}

/// The variables that a frame sees: its own, and those of the frames around it.
pub(super) struct Visible<'a> {
    pub(super) frames: &'a Frames,
    pub(super) slot: u32,
}

impl Variables for Visible<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.frames
            .chain(self.slot)
            .find_map(|frame| frame.variables.iter().find(|(own, _)| &**own == name).map(|(_, value)| &**value))
    }
}
