//! The segment register through which code compiled with `--bounds segment` reaches its first memory: %gs on x86-64. Nothing else in the process
//! uses it, but a thread's value is put back whenever a guest leaves.
//!
//! The kernel keeps it for each thread through its own switches and signals; a suspended guest's is in its record.

/// How the register is read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "other processors have no such register"))]
enum Way {
    /// By the processor's instructions, where the kernel allows them (FSGSBASE).
    Instruction,
    /// By asking the kernel.
    SystemCall,
}

/// Whether guests can have it here.
pub(crate) fn is_available() -> bool {
    way().is_some()
}

/// Runs `guest` with the register leading to `base`.
///
/// # Panics
/// When it cannot be set, before anything runs.
pub(crate) fn with_base<R>(base: usize, guest: impl FnOnce() -> R) -> R {
    let way = way().expect("artifacts that want a segment register are loaded only where there is one");
    let before = get(way);
    set(way, base);
    let result = guest();
    set(way, before);
    result
}

#[cfg(not(target_arch = "x86_64"))]
mod arch {
    use super::Way;

    pub(super) fn way() -> Option<Way> {
        None
    }
    pub(super) fn get(_: Way) -> usize {
        0
    }
    pub(super) fn set(_: Way, _: usize) {}
}

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::asm;
    use std::sync::OnceLock;

    use super::Way;

    /// In AT_HWCAP2: the kernel allows FSGSBASE (Linux 5.9).
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    /// Subfunctions of arch_prctl(2).
    const ARCH_SET_GS: libc::c_int = 0x1001;
    const ARCH_GET_GS: libc::c_int = 0x1004;

    pub(super) fn way() -> Option<Way> {
        static WAY: OnceLock<Option<Way>> = OnceLock::new();
        *WAY.get_or_init(|| {
            // SAFETY: No preconditions.
            if unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE != 0 {
                return Some(Way::Instruction);
            }
            // A filter of system calls may refuse it.
            let before = ask()?;
            tell(before).then_some(Way::SystemCall)
        })
    }

    pub(super) fn get(way: Way) -> usize {
        if way == Way::SystemCall {
            return ask().expect("arch_prctl told the segment's base before");
        }
        let base: usize;
        // SAFETY: The kernel allows the instruction; it changes nothing else.
        unsafe { asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
        base
    }

    pub(super) fn set(way: Way, base: usize) {
        if way == Way::SystemCall {
            assert!(tell(base), "arch_prctl set the segment's base before");
            return;
        }
        // SAFETY: The kernel allows the instruction, and `base` is an address of this process; no Rust code uses the register. Not `nomem`:
        // nothing that the guest does may be moved to the other side.
        unsafe { asm!("wrgsbase {}", in(reg) base, options(nostack, preserves_flags)) };
    }

    fn ask() -> Option<usize> {
        let mut base = 0usize;
        // SAFETY: The kernel writes a word to where the pointer leads.
        let done = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_GS, &raw mut base) };
        (done == 0).then_some(base)
    }

    fn tell(base: usize) -> bool {
        // SAFETY: No code of this process but guests' uses the register.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, base) == 0 }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn both_ways_reach_one_register() {
            let ways = [Way::SystemCall, Way::Instruction];
            let ways = &ways[..if way() == Some(Way::Instruction) { 2 } else { 1 }];
            let before = get(Way::SystemCall);
            for (i, &one) in ways.iter().enumerate() {
                set(one, 0x7000 + i);
                assert!(ways.iter().all(|&other| get(other) == 0x7000 + i), "{one:?}");
            }
            set(Way::SystemCall, before);
            assert_eq!(super::super::with_base(0x9000, || get(ways[0])), 0x9000);
            assert_eq!(get(ways[0]), before);
        }
    }
}

use arch::{get, set, way};
