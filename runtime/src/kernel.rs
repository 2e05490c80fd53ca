//! Settings of the kernel without which a server cannot work, looked at before it starts: better a clear refusal then than requests that fail
//! under load.
//!
//! Memories are address space that is reserved without being accessible, which counts nowhere; what becomes accessible counts as committed
//! where `vm.overcommit_memory` is 2. Each sandbox is a few mappings, of which a process has at most `vm.max_map_count`.

use std::fs;
use std::path::Path;

/// Mappings of one sandbox: its stack, the parts of its memory, and what lies between them; usually two or three.
const SANDBOX_MAPPINGS: u64 = 8;
/// Mappings of everything else: the program, threads, artifacts, buffers.
const OTHER_MAPPINGS: u64 = 1_000;
/// Sandboxes at the same time with which a server is still of use, for each worker.
const SANDBOXES_MIN: u64 = 16;

/// What a server may need.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Bytes of all sandboxes together.
    pub memory_bytes: u64,
    /// Worker threads.
    pub workers: u64,
    /// Sandboxes at the same time; idle ones give way.
    pub sandboxes_max: u64,
}

/// Why a server cannot work here.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// There is not so much memory to be had.
    #[error(
        "vm.overcommit_memory is 2, so that all processes together get {commit_bytes_max} bytes at most, but sandboxes may use \
         {memory_bytes} (`memory_total_bytes_max`); lower that, raise vm.overcommit_ratio, or set vm.overcommit_memory to 0"
    )]
    Commit {
        /// What there is.
        commit_bytes_max: u64,
        /// What is wanted.
        memory_bytes: u64,
    },
    /// There are not enough mappings.
    #[error(
        "vm.max_map_count is {mappings_max}; {workers} workers need {needed} at least: sysctl -w vm.max_map_count={recommended}, or have \
         fewer `workers`"
    )]
    Mappings {
        /// How many there may be.
        mappings_max: u64,
        /// For so many workers.
        workers: u64,
        /// Without which nothing works.
        needed: u64,
        /// With which everything does.
        recommended: u64,
    },
}

/// What all processes together may commit, in bytes, where the kernel limits that; `proc` is where it shows its settings (`/proc`).
#[must_use]
pub fn commit_bytes_max(proc: &Path) -> Option<u64> {
    if number(&proc.join("sys/vm/overcommit_memory"))? != 2 {
        return None;
    }
    let meminfo = fs::read_to_string(proc.join("meminfo")).ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("CommitLimit:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// Mappings that the kernel allows, and those with which no request has to be refused, where these are more.
#[must_use]
pub fn missing_mappings(proc: &Path, need: &Need) -> Option<(u64, u64)> {
    let mappings_max = number(&proc.join("sys/vm/max_map_count"))?;
    let recommended = mappings(need.sandboxes_max).max(mappings(need.workers.saturating_mul(SANDBOXES_MIN)));
    (mappings_max < recommended).then_some((mappings_max, recommended))
}

/// Mappings of a process with so many sandboxes.
const fn mappings(sandboxes: u64) -> u64 {
    sandboxes.saturating_mul(SANDBOX_MAPPINGS).saturating_add(OTHER_MAPPINGS)
}

/// Checks the settings below `proc`. What cannot be read is taken to be as it should.
///
/// # Errors
/// When a server with that need cannot work. Where it can, but not with as many requests as it may take, the log says so.
pub fn check(proc: &Path, need: &Need) -> Result<(), KernelError> {
    if let Some(commit_bytes_max) = commit_bytes_max(proc).filter(|max| *max < need.memory_bytes) {
        return Err(KernelError::Commit { commit_bytes_max, memory_bytes: need.memory_bytes });
    }
    let Some((mappings_max, recommended)) = missing_mappings(proc, need) else { return Ok(()) };
    let needed = mappings(need.workers.saturating_mul(SANDBOXES_MIN));
    if mappings_max < needed {
        return Err(KernelError::Mappings { mappings_max, workers: need.workers, needed, recommended });
    }
    tracing::warn!(
        mappings_max,
        recommended,
        "vm.max_map_count may be too small for `requests_max`: some would be answered with 503"
    );
    Ok(())
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEED: Need = Need { memory_bytes: 1 << 30, workers: 2, sandboxes_max: 4_000 };

    /// What the kernel would show: overcommitting, its limit in kB, mappings.
    fn proc(overcommit: &str, commit_kb: u64, mappings: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let settings = root.path().join("sys/vm");
        fs::create_dir_all(&settings).unwrap();
        fs::write(settings.join("overcommit_memory"), overcommit).unwrap();
        fs::write(settings.join("max_map_count"), mappings).unwrap();
        fs::write(root.path().join("meminfo"), format!("MemTotal: 1 kB\nCommitLimit: {commit_kb:8} kB\nCommitted_AS: 5 kB\n"))
            .unwrap();
        root
    }

    #[test]
    fn memory_that_could_never_be_had_is_refused_only_where_the_kernel_counts_it() {
        for overcommit in ["0\n", "1\n"] {
            let root = proc(overcommit, 1_000, "65530\n");
            assert_eq!((check(root.path(), &NEED), commit_bytes_max(root.path())), (Ok(()), None));
        }
        let root = proc("2\n", 1_000, "65530\n");
        let error = check(root.path(), &NEED).unwrap_err();
        assert_eq!(error, KernelError::Commit { commit_bytes_max: 1_024_000, memory_bytes: 1 << 30 });
        assert!(error.to_string().contains("vm.overcommit_memory is 2") && error.to_string().contains("memory_total_bytes_max"));
        assert_eq!(check(proc("2\n", 1 << 20, "65530\n").path(), &NEED), Ok(()));
    }

    #[test]
    fn too_few_mappings_are_refused_and_the_error_says_how_many_are_enough() {
        assert_eq!(check(proc("0", 1, "65530").path(), &NEED), Ok(()));
        // Enough to begin with: the log says so.
        assert_eq!(check(proc("0", 1, "1256").path(), &NEED), Ok(()));
        let error = check(proc("0", 1, "1255").path(), &NEED).unwrap_err();
        assert_eq!(error, KernelError::Mappings { mappings_max: 1_255, workers: 2, needed: 1_256, recommended: 33_000 });
        assert!(error.to_string().ends_with("sysctl -w vm.max_map_count=33000, or have fewer `workers`"), "{error}");
    }

    #[test]
    fn a_kernel_that_shows_nothing_is_taken_to_be_good() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(check(root.path(), &NEED), Ok(()));
        assert_eq!(check(Path::new("/proc"), &Need { memory_bytes: 1, workers: 1, sandboxes_max: 1 }), Ok(()));
    }
}
