//! Which cores servers and load have.

use std::sync::OnceLock;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Makes this thread, and processes that it starts, run on one core.
///
/// # Errors
///
/// If the kernel refuses.
pub fn pin(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).context("cannot bind this thread to a core")
}

/// A core for servers and one for the load: the same however this thread has been pinned since this was first asked.
///
/// # Errors
///
/// If there are not two, or the system does not say.
pub fn two() -> Result<[usize; 2]> {
    static ALL: OnceLock<CpuSet> = OnceLock::new();
    let cores = match ALL.get() {
        Some(cores) => cores,
        None => {
            let cores = sched_getaffinity(None).context("which cores are there?")?;
            ALL.get_or_init(|| cores)
        }
    };
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core));
    let both = cores.next().zip(cores.next()).context("needs two cores, one for the server and one for the load")?;
    Ok(both.into())
}
