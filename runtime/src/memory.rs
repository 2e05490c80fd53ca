//! How much memory a server may use, and what it gives back when that does not suffice.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::kernel;

/// Where the system keeps what it lets control groups use (version 2, and the memory controller of version 1).
const GROUPS: [(&str, &str); 2] = [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

/// Taken where the system says nothing.
const UNKNOWN_BYTES: u64 = 1 << 30;

/// How long after a refusal the heap is given back: what was refused together is then gone together, and the heap is not searched more often.
const RELEASE_DELAY: Duration = Duration::from_secs(1);

/// Whether the heap is about to be given back.
static RELEASE_IS_DUE: AtomicBool = AtomicBool::new(false);

/// Gives back to the system, in a moment, what is free in the heap; for a request that was refused for want of memory. Pieces of refused bodies lie
/// between pieces of those that were taken, so the allocator keeps their pages although nothing is in them: half as much again as is counted, at
/// worst.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn release_heap_soon() {
    // Relaxed, here and below: nothing else is read by it.
    if RELEASE_IS_DUE.swap(true, Ordering::Relaxed) {
        return;
    }
    tokio::task::spawn_local(async {
        tokio::time::sleep(RELEASE_DELAY).await;
        // Before the heap is searched: what is freed meanwhile is for the next time.
        RELEASE_IS_DUE.store(false, Ordering::Relaxed);
        // Not on a thread for blocking work: its first allocation would cost an arena, 64 MiB of address space.
        let begin = Instant::now();
        sledge_sandbox::release_heap();
        tracing::debug!(took = ?begin.elapsed(), "the heap was given back after a request was refused for want of memory");
    });
}

/// Three quarters of what this process may use: the least of the machine's memory, its control groups' limits, and what the kernel lets all
/// processes commit, where it limits that. The rest is for the server
/// itself, its connections, and the kernel's side of both.
#[must_use]
pub fn total_bytes_default() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| physical(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = GROUPS.iter().flat_map(|(root, file)| group_limits(Path::new(root), file, &groups));
    limits.chain(machine).chain(kernel::commit_bytes_max(Path::new("/proc"))).min().unwrap_or(UNKNOWN_BYTES) / 4 * 3
}

/// The machine's memory in `/proc/meminfo`.
fn physical(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Limits of this process's groups (`/proc/self/cgroup`) and of all above them. Inside a container the paths may not exist; then the root's is
/// the container's.
fn group_limits(root: &Path, file: &str, groups: &str) -> Vec<u64> {
    let paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let folders = paths.flat_map(|path| Path::new(path.trim_start_matches('/')).ancestors().map(|folder| root.join(folder)));
    let read = |folder: &Path| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
    folders.chain([root.to_owned()]).filter_map(|folder| read(&folder)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_memory_is_read() {
        assert_eq!(physical("Something: 1 kB\nMemTotal:       16 kB\n"), Some(16 << 10));
        assert_eq!(physical("MemFree: 3 kB"), None);
        assert_eq!(physical("MemTotal: many kB"), None);
        assert!(total_bytes_default() > 1 << 20);
    }

    #[test]
    fn the_least_limit_of_a_group_and_those_above_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(root.path().join("memory.max"), "max\n").unwrap();
        fs::write(root.path().join("a/memory.max"), "1000\n").unwrap();
        fs::write(inner.join("memory.max"), "5000\n").unwrap();
        let found = group_limits(root.path(), "memory.max", "0::/a/b\n");
        assert_eq!(found.into_iter().min(), Some(1000));
        assert_eq!(group_limits(root.path(), "memory.max", "0::/elsewhere\n"), [0u64; 0]);
        fs::write(root.path().join("memory.max"), "700\n").unwrap();
        assert_eq!(group_limits(root.path(), "memory.max", "0::/elsewhere\n").first(), Some(&700));
    }
}
