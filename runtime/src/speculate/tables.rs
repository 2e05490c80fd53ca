//! All tables of a tenant, and what they have of the server's memory.

use std::sync::Arc;

use serde::Serialize;
use sledge_sandbox::Budget;

use super::benefit::{Benefits, KnownEdge};
use super::outputs::{KnownFunction, Outputs};
use super::paths::{KnownBranch, Paths};
use super::replies::{KnownReplies, Replies};
use super::sequence::{KnownCaller, Sequences};
use super::stalls::{KnownStall, Stalls};
use super::times::{KnownTime, Times};
use super::values::Values;
use crate::memo::room::Room;

/// Bytes of all tables of a tenant.
pub const BYTES_MAX: usize = 7 << 20;
const OUTPUTS_BYTES_MAX: usize = 2 << 20;
const REPLIES_BYTES_MAX: usize = 2 << 20;
const VALUES_BYTES_MAX: usize = 1 << 20;
const SEQUENCES_BYTES_MAX: usize = 768 << 10;
const PATHS_BYTES_MAX: usize = 768 << 10;
const BENEFITS_BYTES_MAX: usize = 192 << 10;
const STALLS_BYTES_MAX: usize = 192 << 10;
const TIMES_BYTES_MAX: usize = 128 << 10;
const _: () = assert!(
    OUTPUTS_BYTES_MAX
        + REPLIES_BYTES_MAX
        + VALUES_BYTES_MAX
        + SEQUENCES_BYTES_MAX
        + PATHS_BYTES_MAX
        + BENEFITS_BYTES_MAX
        + STALLS_BYTES_MAX
        + TIMES_BYTES_MAX
        == BYTES_MAX
);
/// Tables take memory of the server by so many bytes, so that most changes need not ask for any.
const STEP_BYTES: usize = 16 << 10;

/// The tables.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) outputs: Outputs,
    pub(super) replies: Replies,
    pub(super) values: Values,
    pub(super) sequences: Sequences,
    pub(super) paths: Paths,
    pub(super) benefits: Benefits,
    pub(super) stalls: Stalls,
    pub(super) times: Times,
    room: Room,
    /// What they have of the server's memory.
    counted: usize,
}

/// What the tables know: not what functions have answered, nor with what they were called.
#[derive(Clone, Debug, Serialize)]
pub struct Known {
    /// Bytes of all tables.
    pub bytes: usize,
    /// The most that these may be.
    pub bytes_max: usize,
    /// Where executions went.
    pub branches: Vec<KnownBranch>,
    /// How predictable functions are.
    pub outputs: Vec<KnownFunction>,
    /// To how much replies of functions are known.
    pub replies: Vec<KnownReplies>,
    /// Of how many keys of the store it is known what is there.
    pub values: usize,
    /// What functions call.
    pub calls: Vec<KnownCaller>,
    /// What it has brought to start states ahead.
    pub edges: Vec<KnownEdge>,
    /// What states read that others write.
    pub stalls: Vec<KnownStall>,
    /// How long functions take.
    pub times: Vec<KnownTime>,
}

impl Tables {
    pub(super) fn new(budget: Option<Arc<Budget>>) -> Tables {
        Tables {
            outputs: Outputs::new(OUTPUTS_BYTES_MAX),
            replies: Replies::new(REPLIES_BYTES_MAX),
            values: Values::new(VALUES_BYTES_MAX),
            sequences: Sequences::new(SEQUENCES_BYTES_MAX),
            paths: Paths::new(PATHS_BYTES_MAX),
            benefits: Benefits::new(BENEFITS_BYTES_MAX),
            stalls: Stalls::new(STALLS_BYTES_MAX),
            times: Times::new(TIMES_BYTES_MAX),
            room: Room::new(budget),
            counted: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let Tables { outputs, replies, values, sequences, paths, benefits, stalls, times, .. } = self;
        let others = sequences.bytes() + paths.bytes() + benefits.bytes() + stalls.bytes() + times.bytes();
        outputs.bytes() + replies.bytes() + values.bytes() + others
    }

    /// Has the tables counted as they are now. Where there is no memory left for that, entries go.
    pub(super) fn fit(&mut self) {
        loop {
            let counted = self.bytes().next_multiple_of(STEP_BYTES);
            if counted == self.counted || self.room.resize(counted) {
                self.counted = counted;
                return;
            }
            if !self.evict() {
                return;
            }
        }
    }

    /// Drops entries until so many bytes less are counted, or there are none; false where that changes nothing.
    pub(super) fn give_back(&mut self, bytes: u64) -> bool {
        let had = self.counted;
        while (had.saturating_sub(self.bytes().next_multiple_of(STEP_BYTES)) as u64) < bytes && self.evict() {}
        self.fit();
        self.counted < had
    }

    /// Drops one entry: first what has most bytes and is learned again soonest.
    fn evict(&mut self) -> bool {
        let Tables { outputs, replies, values, sequences, paths, benefits, stalls, times, .. } = self;
        values.evict()
            || outputs.evict()
            || replies.evict()
            || sequences.evict()
            || paths.evict()
            || stalls.evict()
            || benefits.evict()
            || times.evict()
    }

    pub(super) fn forget_workflow(&mut self, workflow: u64) {
        self.paths.forget(workflow);
        self.benefits.forget(workflow);
        self.stalls.forget(workflow);
        self.times.forget(workflow);
    }

    pub(super) fn forget_function(&mut self, version: u64) {
        self.outputs.forget(version);
        self.replies.forget(version);
        self.sequences.forget(version);
    }

    pub(super) fn known(&self) -> Known {
        Known {
            bytes: self.bytes(),
            bytes_max: BYTES_MAX,
            branches: self.paths.known(),
            outputs: self.outputs.known(),
            replies: self.replies.known(),
            values: self.values.len(),
            calls: self.sequences.known(),
            edges: self.benefits.known(),
            stalls: self.stalls.known(),
            times: self.times.known(),
        }
    }
}
