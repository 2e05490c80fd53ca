//! Which threads a server has, and where they run.

use super::error::{ServerError, thread_error};
use crate::config::{Config, Listeners};
use crate::kernel::Need;
use crate::memory;
use crate::schedule::STARTED_MAX;

/// Which threads there are, and where they run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) cores: Vec<usize>,
    pub(super) workers: usize,
    pub(super) dedicated: bool,
}

impl Plan {
    pub(crate) fn new(config: &Config) -> Result<Plan, ServerError> {
        let cores = sledge_sandbox::affinity().map_err(|error| thread_error("the workers", error))?;
        let dedicated = config.listeners == Listeners::Dedicated;
        Ok(Plan { cores, workers: config.worker_count(), dedicated })
    }

    /// What the kernel has to allow.
    pub(crate) fn need(&self, config: &Config) -> Need {
        let begun_max = config.requests_max.min(self.workers.saturating_mul(STARTED_MAX));
        Need {
            memory_bytes: config.memory_total_bytes_max.unwrap_or_else(memory::total_bytes_default),
            workers: self.workers as u64,
            sandboxes_max: begun_max as u64,
        }
    }

    pub(super) const fn listeners(&self) -> usize {
        if self.dedicated { 1 } else { self.workers }
    }

    /// The core of a thread: the listener's is the first, if it has one of its own.
    pub(super) fn core(&self, thread: usize) -> Option<usize> {
        let count = self.cores.len();
        (count > 0).then(|| self.cores[thread % count])
    }

    pub(super) fn worker_core(&self, index: usize) -> Option<usize> {
        self.core(if self.dedicated { index + 1 } else { index })
    }
}
