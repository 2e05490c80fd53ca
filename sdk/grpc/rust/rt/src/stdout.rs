//! Standard output is the reply, so what a program prints goes to standard error, the function's log.
//!
//! The linker puts this in the place of the C library's function (`--wrap=__wasi_fd_write`), which Rust's standard library calls, too. The reply goes
//! out by `sys::write`.

use crate::sys::{self, Iovec};

const STANDARD_OUTPUT: u32 = 1;
const STANDARD_ERROR: u32 = 2;

/// # Safety
/// As for the function that it replaces.
#[no_mangle]
unsafe extern "C" fn __wrap___wasi_fd_write(fd: u32, vectors: *const Iovec, count: usize, done: *mut usize) -> u16 {
    let fd = if fd == STANDARD_OUTPUT { STANDARD_ERROR } else { fd };
    // SAFETY: as for this function.
    (unsafe { sys::wasi_fd_write(fd, vectors, count, done) }) as u16
}
