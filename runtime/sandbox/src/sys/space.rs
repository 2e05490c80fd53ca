//! Address space: how much there is and what reserving it costs, asked once; and large reservations that are kept where they are dear.
//!
//! | machine | [`wide`] | [`dear`] | code arena | large reservations that are given up |
//! |---|---|---|---|---|
//! | 47 bits of addresses and more | yes | no | [`ARENA_BYTES`] | unmapped |
//! | 39 bits (many kernels for AArch64), `ulimit -v` | no | no | [`ARENA_BYTES_NARROW`] | unmapped |
//! | emulators that note each page of a reservation (qemu) | no | yes | [`ARENA_BYTES_NARROW`] | kept for the next of that size |
//!
//! Such an emulator takes 100 ms and 48 MB for 8 GiB, and never gives the memory back.

use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::mm::{MapFlags, ProtFlags};

use crate::limits::{ARENA_BYTES, ARENA_BYTES_NARROW, KEPT_RESERVATIONS_MAX};

/// What is at least this large is kept where it is dear; and what is reserved to see whether it is.
const LARGE_BYTES: usize = 1 << 30;

/// A machine without this much has too little for as many guarded memories as a server may have requests.
const WIDE_BYTES: usize = 1 << 40;

/// A reservation takes microseconds, unless something looks at each of its pages.
const DEAR_TIME_MIN: Duration = Duration::from_millis(1);

/// Time to reserve `bytes` and give them back; none when they are not to be had.
fn try_to_reserve(bytes: usize) -> Option<Duration> {
    let start = Instant::now();
    // SAFETY: A new anonymous mapping at an address of the kernel's choice touches no existing memory; it is unmapped as it was mapped.
    unsafe {
        let base =
            rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        rustix::mm::munmap(base.ok()?, bytes).ok()?;
    }
    Some(start.elapsed())
}

/// Whether reserving address space costs time and memory in proportion to its size.
pub(crate) fn dear() -> bool {
    static DEAR: OnceLock<bool> = OnceLock::new();
    // Once may be slow by chance.
    *DEAR.get_or_init(|| (0..3).all(|_| try_to_reserve(LARGE_BYTES).is_some_and(|time| time >= DEAR_TIME_MIN)))
}

/// Whether there is address space for many guarded memories.
pub(crate) fn wide() -> bool {
    static WIDE: OnceLock<bool> = OnceLock::new();
    *WIDE.get_or_init(|| !dear() && try_to_reserve(WIDE_BYTES).is_some())
}

/// Whether this machine has address space for as many memories of unchecked code (`--bounds guard`) as a server may have requests: 8 GiB each.
/// Otherwise compile with `--bounds software`.
#[must_use]
pub fn room_for_guards() -> bool {
    wide()
}

/// How much address space to reserve for code.
pub(crate) fn arena_bytes() -> usize {
    if wide() { ARENA_BYTES } else { ARENA_BYTES_NARROW }
}

/// Reservations that are as new, by address and size.
static KEPT: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<(usize, usize)>> {
    // Nothing between lock and unlock leaves the list half changed.
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A kept reservation of that size, which the caller owns from now on.
pub(super) fn take(bytes: usize) -> Option<NonNull<u8>> {
    if bytes < LARGE_BYTES || !dear() {
        return None;
    }
    let mut kept = kept();
    let at = kept.iter().position(|&(_, size)| size == bytes)?;
    NonNull::new(kept.swap_remove(at).0 as *mut u8)
}

/// Whether a reservation of that size is worth keeping, and there is room for it.
pub(super) fn wants(bytes: usize) -> bool {
    bytes >= LARGE_BYTES && dear() && kept().len() < KEPT_RESERVATIONS_MAX
}

/// Keeps a reservation, inaccessible and zero as a new one; its owner gives it up.
pub(super) fn keep(base: NonNull<u8>, bytes: usize) {
    kept().push((base.as_ptr() as usize, bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_given_to_who_wants_that_size() {
        let base = NonNull::<u8>::dangling();
        keep(base, usize::MAX);
        assert_eq!(take(usize::MAX - 1), None);
        assert_eq!(take(usize::MAX), dear().then_some(base));
        assert!(!wants(LARGE_BYTES - 1));
    }

    #[test]
    fn more_than_there_are_addresses_cannot_be_reserved() {
        assert!(try_to_reserve(1 << 20).is_some());
        assert_eq!(try_to_reserve(1 << 60), None);
    }
}
