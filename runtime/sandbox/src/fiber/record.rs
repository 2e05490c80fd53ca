//! The record through which a guest, its worker and the signal handlers meet, and the switch between their stacks.
//!
//! ```text
//!   worker's stack                      guest's stack
//!   ...                                 [stack_high]  start stub's frame
//!   Sandbox::resume                     entry(vmctx, code, slots)      of the artifact
//!   sys: resume   --- guest_sp --->     guest functions ...
//!      ^                                thunk -> host_call stub        suspended by a host call, or
//!      +--------- worker_sp <---        kernel's frame, alarm handler  suspended by the timer, or
//!                                       (nothing)                      trapped: the fault handler went straight to worker_sp
//!                                       [stack_low]
//!                                       guard, inaccessible
//!                                       [guard_low]
//! ```
//!
//! No frame of Rust code is ever live on a guest's stack but the alarm handler's, which owns nothing: a guest's stack may be forgotten at any
//! suspension. Floating-point control words (MXCSR, x87) are not switched: guest code cannot change them and hosts do not.
//!
//! What must stay true for a switch to be safe:
//!
//! * **`CURRENT` says whose guest runs.** It is set before the switch and null after it, on the thread that switches. A handler that finds it null takes a
//!   fault for the host's. Were it set while the host runs, a handler would read the record of a sandbox that may be gone.
//! * **Rust code holds no reference to the record, the store or the stack across the switch** but through `&mut` of the caller: the guest writes to all of
//!   them. So `switch` works on raw pointers, and is given no borrow of the store.
//! * **Nothing with a destructor is live below the switch**: a trap comes back as from a plain return, and a suspended guest may never go on.
//! * **A guest's stack is as the stub left it until it is resumed.** `guest_sp` belongs with that stack; `others.rs` exchanges both or none.
//! * **The thread may be another one after a suspension.** What is the thread's (`CURRENT`, signal stack, mask, segment register) is set at each
//!   resumption and never kept.

use std::cell::Cell;
use std::ptr::{self, NonNull};

use crate::store::writable::AddressRange;
use crate::sys::switch::Switch;
use crate::sys::{self, Registers};

/// What the record holds of one fiber: of the one that is selected, which runs next. It is exchanged when another is selected.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Context {
    /// What the stubs know.
    pub(crate) switch: Switch,
    /// Bounds of the stack: `guard_low..stack_low` is inaccessible, `stack_low..stack_high` is the stack.
    pub(crate) guard_low: usize,
    pub(crate) stack_low: usize,
    pub(crate) stack_high: usize,
    /// Where the segment register leads while the guest runs, if its code uses it; else zero. Its code reads it
    /// ([`awsm_abi::vmctx::SEGMENT`]).
    pub(crate) segment: usize,
    /// Of a preemption: the kernel's signal frame on the guest's stack.
    pub(crate) interrupted: *mut libc::ucontext_t,
    /// Of a trap: the number of its code, or zero where the trap table decides.
    pub(crate) trap: u8,
    /// Of a trap: whether the registers' `pc` is where a call returns to, not the trapping instruction.
    pub(crate) after_call: bool,
    /// Of a trap: registers at the fault. A `pc` of zero means that they are not known.
    pub(crate) registers: Registers,
}

impl Context {
    /// That of a fiber with the stack `guard_low..stack_low..stack_high`, on which nothing runs yet.
    pub(crate) fn new(guard_low: usize, stack_low: usize, stack_high: usize) -> Context {
        Context {
            switch: Switch {
                worker_sp: 0,
                guest_sp: 0,
                event: 0,
                call: 0,
                caller: ptr::null_mut(),
                slots: ptr::null_mut(),
                entry: 0,
                entry_vmctx: ptr::null_mut(),
                entry_code: 0,
                entry_slots: ptr::null_mut(),
            },
            guard_low,
            stack_low,
            stack_high,
            segment: 0,
            interrupted: ptr::null_mut(),
            trap: 0,
            after_call: false,
            registers: Registers::default(),
        }
    }
}

/// One per sandbox, at a fixed address, behind every vmctx's `sandbox` pointer.
///
/// While a guest runs, only the stubs and the handlers of its own thread touch it; otherwise only the sandbox that owns it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Record {
    pub(crate) context: Context,
    /// What the guest's memories occupy, accessible or not: the same for all fibers.
    pub(crate) ranges: *const AddressRange,
    pub(crate) ranges_len: usize,
}

const _: () = assert!(
    std::mem::offset_of!(Record, context) + std::mem::offset_of!(Context, switch) == 0,
    "the stubs are given a record as its switch"
);

thread_local! {
    /// The sandbox whose guest runs on this thread; null while none does.
    static CURRENT: Cell<*mut Record> = const { Cell::new(ptr::null_mut()) };
}

/// The record of the guest that runs on this thread, or null. For handlers: neither allocates nor locks.
pub(crate) fn current() -> *mut Record {
    CURRENT.get()
}

/// A record that its sandbox owns. It never moves.
#[derive(Debug)]
pub(crate) struct RecordBox(NonNull<Record>);

impl RecordBox {
    /// A record whose selected fiber has that context.
    pub(crate) fn new(context: Context) -> RecordBox {
        let record = Box::new(Record { context, ranges: NonNull::dangling().as_ptr(), ranges_len: 0 });
        RecordBox(NonNull::from(Box::leak(record)))
    }

    /// Its address.
    pub(crate) fn as_ptr(&self) -> *mut Record {
        self.0.as_ptr()
    }

    /// Address of its cell for the segment register.
    pub(crate) fn segment(&self) -> *const usize {
        &raw const self.get().segment
    }

    /// Reads the selected fiber's context.
    pub(crate) fn get(&self) -> &Context {
        // SAFETY: The pointer is valid until drop. The guest is not running while a reference exists: `switch` takes `&mut self`.
        unsafe { &self.0.as_ref().context }
    }

    /// Changes it.
    pub(crate) fn get_mut(&mut self) -> &mut Context {
        // SAFETY: As for `get`; `&mut self` makes this the only reference.
        unsafe { &mut self.0.as_mut().context }
    }

    /// Says where the memories lie.
    pub(crate) fn set_ranges(&mut self, ranges: &[AddressRange]) {
        // SAFETY: As for `get_mut`.
        let record = unsafe { self.0.as_mut() };
        (record.ranges, record.ranges_len) = (ranges.as_ptr(), ranges.len());
    }

    /// Lets the guest run on this thread until something happens: one of the `EVENT_` numbers of [`sys::switch`].
    ///
    /// # Safety
    /// * `guest_sp` leads to a suspension of this guest or to a frame that [`sys::prepare_start`] made, and everything that the guest may
    ///   reach through it (artifacts, instances, memories, tables, slots) is alive and not borrowed.
    /// * This thread is a [`WorkerThread`](crate::WorkerThread), and runs no other guest.
    pub(crate) unsafe fn switch(&mut self) -> u32 {
        let record = self.0.as_ptr();
        let segment = self.get().segment;
        CURRENT.set(record);
        // SAFETY: By this function's contract.
        let resume = || unsafe { sys::resume(record.cast()) };
        if segment == 0 {
            resume()
        } else {
            sys::segment::with_base(segment, resume)
        }
        CURRENT.set(ptr::null_mut());
        self.get().switch.event
    }
}

impl Drop for RecordBox {
    fn drop(&mut self) {
        // SAFETY: Made by `Box::leak` in `new`; the guest is not running, since its sandbox is being dropped by its owner.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
