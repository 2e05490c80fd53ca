//! This program's own files in memory.

use std::ffi::c_void;
use std::ptr;

use rustix::mm::Advice;

use super::page::page_bytes;

/// Gives back the pages of code and constants, of this program and of the libraries that it has loaded: those that are used again come back from their
/// files, which the system has in memory as a rule. For a process that has begun what it will do for long, most of whose pages only beginning took.
pub fn release_program() {
    // SAFETY: The callback is one for this function, and keeps nothing of what it is given.
    unsafe { libc::dl_iterate_phdr(Some(release), ptr::null_mut()) };
}

/// Called with each of them.
unsafe extern "C" fn release(info: *mut libc::dl_phdr_info, _size: usize, _data: *mut c_void) -> libc::c_int {
    // SAFETY: The caller gives a description that is valid during this call, with so many headers.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr as usize, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    // SAFETY: A question without conditions.
    let is_of_kernel = base as u64 == unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    if is_of_kernel {
        return 0;
    }
    for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0) {
        let start = base + header.p_vaddr as usize;
        let end = (start + header.p_filesz as usize) / page_bytes() * page_bytes();
        let start = start.next_multiple_of(page_bytes());
        if start < end {
            // SAFETY: Whole pages of a segment that is never written to: what they hold is what the file holds. Not worth failing for.
            let _ = unsafe { rustix::mm::madvise(start as *mut c_void, end - start, Advice::LinuxDontNeed) };
        }
    }
    0
}
