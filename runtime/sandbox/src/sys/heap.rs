//! The C library's heap: what its allocator keeps for later.

/// An allocation of at least so many bytes is a mapping of its own, which goes back to the system when it is freed. Above the pieces in which bodies
/// come, for which mappings made and faulted in anew would halve the throughput.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES_MIN: libc::c_int = 1 << 20;
/// So much that is free at the end of an arena stays there.
#[cfg(target_env = "gnu")]
const KEPT_BYTES_MAX: libc::c_int = 1 << 20;

/// Sets how much the allocator keeps. Left to itself it goes by the largest allocation that was ever freed, up to 32 MiB: a single large file that was
/// read lets every arena keep twice as much, for good.
pub fn bound_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: Any thread may call it at any time (mallopt(3)). It refuses only values that are out of range, which these are not.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
    }
}

/// Gives back to the system what is free in the heap, as far as it makes up whole pages. Looks at all of it, and holds up threads that allocate meanwhile: for
/// a process that has nothing else to do.
pub fn release_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: Any thread may call it at any time (malloc_trim(3)).
    unsafe {
        libc::malloc_trim(0);
    }
}
