//! The disk under the store: now and then an fsync fails. The store does then what the embedded one does (`kv/embedded/recovery.rs`): it makes no commit until it has read its file again, and readers have what
//! was committed before meanwhile. Whether the commits whose record was under way are on the disk, all of them or none, is known when the file is read.

use fastrand::Rng;

use super::history::Ran;
use crate::kv::Commit;

/// How often an fsync fails in a history, at most.
const FAILURES_MAX: u32 = 4;

/// A commit of which it is not known whether it is on the disk.
pub(super) enum Doubtful {
    /// That of an execution's group.
    Group(usize),
    /// Another client's.
    Alone(Box<(Commit, Ran)>),
}

/// What becomes of a commit that reaches the disk.
pub(super) enum Write {
    Synced,
    /// The fsync has failed.
    Doubtful,
    /// The file was not read again yet: nothing of the commit is tried.
    Refused,
}

pub(super) struct Disk {
    failures_left: u32,
    /// What the failed fsync was for; none while the disk is good.
    doubtful: Option<Vec<Doubtful>>,
}

impl Disk {
    pub(super) fn new(rng: &mut Rng) -> Disk {
        Disk { failures_left: rng.u32(..=FAILURES_MAX), doubtful: None }
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.doubtful.is_some()
    }

    pub(super) fn write(&mut self, rng: &mut Rng) -> Write {
        match &self.doubtful {
            // It was in the same record.
            Some(_) if rng.u32(..3) == 0 => Write::Doubtful,
            Some(_) => Write::Refused,
            None if self.failures_left > 0 && rng.u32(..20) == 0 => {
                self.failures_left -= 1;
                self.doubtful = Some(Vec::new());
                Write::Doubtful
            }
            None => Write::Synced,
        }
    }

    /// The record of the failed fsync has that.
    pub(super) fn doubts(&mut self, doubtful: Doubtful) {
        self.doubtful.get_or_insert_default().push(doubtful);
    }

    /// The file is read again: what was doubtful, and whether it is there.
    pub(super) fn read_again(&mut self, rng: &mut Rng) -> (Vec<Doubtful>, bool) {
        (self.doubtful.take().unwrap_or_default(), rng.bool())
    }
}
