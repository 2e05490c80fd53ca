//! A guest's stack with an inaccessible guard below it.

use std::io;
use std::ops::Range;

use crate::limits::{STACK_BYTES_MAX, STACK_BYTES_MIN, STACK_GUARD_BYTES};
use crate::sys::page::{Access, Pages, page_bytes};

/// A stack.
///
/// ```text
///   guard_low      low                    high
///   | inaccessible | <- grows downwards   |
/// ```
#[derive(Debug)]
pub(crate) struct Stack {
    /// None of one on which nothing ever runs.
    pages: Option<Pages>,
    guard_bytes: usize,
}

impl Stack {
    /// A stack of about `bytes`, between the limits.
    pub(crate) fn new(bytes: usize) -> io::Result<Stack> {
        let (page, bytes) = (page_bytes(), Stack::size(bytes));
        let guard_bytes = STACK_GUARD_BYTES.next_multiple_of(page);
        let pages = Pages::reserve(guard_bytes + bytes, Access::None)?;
        // SAFETY: Fresh pages, to which no reference exists.
        unsafe { pages.protect(guard_bytes..guard_bytes + bytes, Access::ReadWrite)? };
        Ok(Stack { pages: Some(pages), guard_bytes })
    }

    /// One of no bytes, of a sandbox in which nothing ever runs.
    pub(crate) fn none() -> Stack {
        Stack { pages: None, guard_bytes: 0 }
    }

    /// Whether it is such a one.
    pub(crate) fn is_none(&self) -> bool {
        self.pages.is_none()
    }

    /// What one of about `bytes` takes of the process's room.
    pub(crate) fn room_of(bytes: usize) -> [usize; 2] {
        [STACK_GUARD_BYTES.next_multiple_of(page_bytes()) + Stack::size(bytes), Pages::MAPPINGS]
    }

    /// The size that a stack of about `bytes` has.
    pub(crate) fn size(bytes: usize) -> usize {
        bytes.clamp(STACK_BYTES_MIN, STACK_BYTES_MAX).next_multiple_of(page_bytes())
    }

    /// The same with nothing on it; none when the system refuses.
    pub(crate) fn emptied(self) -> Option<Stack> {
        let pages = self.pages.as_ref()?;
        // SAFETY: Nothing refers to a stack that is given away, and nothing runs on it.
        unsafe { pages.discard(self.guard_bytes..pages.bytes()) }.is_ok().then_some(self)
    }

    /// What it takes of the process's room.
    pub(crate) fn room(&self) -> [usize; 2] {
        self.pages.as_ref().map_or([0, 0], Pages::room)
    }

    fn addresses(&self) -> Range<usize> {
        self.pages.as_ref().map_or(0..0, Pages::addresses)
    }

    /// Lowest address of the guard.
    pub(crate) fn guard_low(&self) -> usize {
        self.addresses().start
    }

    /// Lowest accessible address.
    pub(crate) fn low(&self) -> usize {
        self.guard_low() + self.guard_bytes
    }

    /// Where the stack begins; a page border.
    pub(crate) fn high(&self) -> usize {
        self.addresses().end
    }

    /// The word at an address of the stack; none when the address lies elsewhere or is not aligned.
    ///
    /// The guest must not be running: the owner of its sandbox sees to that.
    pub(crate) fn read_word(&self, address: usize) -> Option<usize> {
        let within = address >= self.low() && address.checked_add(size_of::<usize>())? <= self.high();
        // SAFETY: An aligned word of the accessible part; plain memory, in which any bits are a word.
        (within && address.is_multiple_of(align_of::<usize>())).then(|| unsafe { *(address as *const usize) })
    }
}
