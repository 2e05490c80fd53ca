//! Which cores servers and load have.

use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Makes this thread, and processes that it starts, run on one core.
///
/// # Errors
///
/// If the kernel refuses.
pub fn pin(core: usize) -> Result<()> {
    pin_to(&[core])
}

/// The same with several cores.
///
/// # Errors
///
/// If the kernel refuses.
pub fn pin_to(cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    sched_setaffinity(None, &set).context("cannot bind this thread to its cores")
}

/// A core for servers and one for the load: the same however this thread has been pinned since this was first asked.
///
/// # Errors
///
/// If there are not two, or the system does not say.
pub fn two() -> Result<[usize; 2]> {
    let [first, second, ..] = all()?[..] else { bail!("needs two cores, one for the server and one for the load") };
    Ok([first, second])
}

/// All cores that this process had when this was first asked.
///
/// # Errors
///
/// If the system does not say.
pub fn all() -> Result<Vec<usize>> {
    static ALL: OnceLock<CpuSet> = OnceLock::new();
    let cores = match ALL.get() {
        Some(cores) => cores,
        None => {
            let cores = sched_getaffinity(None).context("which cores are there?")?;
            ALL.get_or_init(|| cores)
        }
    };
    Ok((0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core)).collect())
}
