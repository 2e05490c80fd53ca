//! What of a memory can be written to, and therefore may differ from its image: a few spans that are learned from what runs do.
//!
//! ```text
//!   base                                                    accessible
//!   | read-only | spans[0] | read-only | spans[1] | read-only |
//!                 restored               restored
//! ```
//!
//! | state | pages | a first write to a read-only page |
//! |---|---|---|
//! | new: not [`protected`](Writable::protected) | all writable | there is none |
//! | protected | writable in the spans | faults; [`learn`](Writable::learn) makes the page writable and part of a span, and the write is done again |
//!
//! Spans stay for the following runs. They are learned at first from what the first run changed, not from what it touched, and learned anew
//! when they have become large. The host asks before it writes ([`open`](Writable::open)): it never faults.
//!
//! `learn` runs in the handler of faults: nothing here allocates or locks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::{PROTECTED_MAPPINGS_SHARE, WRITABLE_SPANS_MAX};
use crate::spans::{Span, Spans};
use crate::sys::page::{Access, page_bytes, protect_raw};

/// Most bytes that one fault makes writable: a memory that is written from one end to the other faults seldom.
const LEARN_BYTES_MAX: usize = 1 << 20;

/// The state of a memory's protection. The handler of faults knows it by address.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Writable {
    /// Address of the memory's first byte.
    base: usize,
    /// What can be read.
    pub(crate) accessible: usize,
    /// Whether what is not in `spans` is read-only. Otherwise everything accessible is writable.
    pub(crate) protected: bool,
    pub(crate) spans: Spans,
    /// Faults and host writes that added to the spans, since they were learned from a run.
    pub(crate) added: u32,
    /// Whether mappings were set aside for the spans.
    reserved: bool,
}

/// Mappings that all memories of the process may add by protecting parts of themselves.
fn mappings_max() -> usize {
    static MAX: OnceLock<usize> = OnceLock::new();
    *MAX.get_or_init(|| {
        let system = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok().and_then(|text| text.trim().parse().ok());
        // What Linux has by default.
        system.unwrap_or(65_530) / PROTECTED_MAPPINGS_SHARE
    })
}

static MAPPINGS: AtomicUsize = AtomicUsize::new(0);

impl Writable {
    pub(crate) fn new(base: usize) -> Writable {
        Writable { base, accessible: 0, protected: false, spans: Spans::default(), added: 0, reserved: false }
    }

    /// Sets mappings aside for the spans; false when the process has too many already.
    pub(crate) fn reserve(&mut self) -> bool {
        if !self.reserved {
            let max = mappings_max();
            let add = |mappings: usize| Some(mappings + 2 * WRITABLE_SPANS_MAX).filter(|&sum| sum <= max);
            // Relaxed: a count that nothing else depends on.
            self.reserved = MAPPINGS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        }
        self.reserved
    }

    /// Makes what lies outside of `spans` read-only. When the system refuses, everything is writable.
    pub(crate) fn protect(&mut self, spans: Spans) {
        // Spans that were joined may have something read-only between them.
        let mut done = !self.protected || spans.as_slice().iter().all(|&span| self.set(span, Access::ReadWrite));
        spans.gaps(self.accessible, |gap| done = done && self.set(gap, Access::Read));
        self.spans = spans;
        self.added = 0;
        self.protected = true;
        if !done {
            self.give_up();
            self.protected = false;
        }
    }

    /// Makes everything writable.
    fn give_up(&mut self) -> bool {
        let all = Span { start: 0, end: self.accessible };
        self.spans = Spans::default();
        if all.end > 0 {
            self.spans.add(all);
        }
        self.set(all, Access::ReadWrite)
    }

    fn set(&self, span: Span, access: Access) -> bool {
        debug_assert!(span.end <= self.accessible);
        // SAFETY: These pages belong to the memory whose state this is. Reading stays possible; they become read-only only in `protect`, which
        // the memory calls when nobody has a reference for writing.
        span.end <= span.start || unsafe { protect_raw(self.base + span.start, span.len(), access) }
    }

    /// Makes `wanted` writable, if it is not: for the host. False when the system refuses.
    pub(crate) fn open(&mut self, wanted: Span) -> bool {
        if !self.protected || wanted.end <= wanted.start || self.spans.cover(wanted) {
            return true;
        }
        let page = page_bytes();
        let pages = Span { start: wanted.start / page * page, end: wanted.end.next_multiple_of(page).min(self.accessible) };
        self.add(pages)
    }

    fn add(&mut self, pages: Span) -> bool {
        self.added = self.added.saturating_add(1);
        let gap = self.spans.add(pages);
        let done = self.set(pages, Access::ReadWrite) && gap.is_none_or(|gap| self.set(gap, Access::ReadWrite));
        done || self.give_up()
    }

    /// Notes that `grown`, the end of what is accessible, was made writable.
    pub(crate) fn note_grown(&mut self, grown: Span) -> bool {
        self.accessible = grown.end;
        if !self.protected || grown.start == grown.end {
            return true;
        }
        self.spans.add(grown).is_none_or(|gap| self.set(gap, Access::ReadWrite) || self.give_up())
    }

    /// Notes that nothing at `end` or behind it is accessible any more.
    pub(crate) fn note_shrunk(&mut self, end: usize) {
        self.accessible = end;
        self.spans.truncate(end);
    }

    /// For a fault at `address`: true when that was a first write to a read-only page, which is writable now.
    pub(crate) fn learn(&mut self, address: usize) -> bool {
        let Some(at) = address.checked_sub(self.base).filter(|&at| at < self.accessible) else { return false };
        if !self.protected || self.spans.cover(Span { start: at, end: at + 1 }) {
            return false;
        }
        let page = page_bytes();
        let start = at / page * page;
        let mut pages = Span { start, end: start + page };
        // Where a span goes on, it will go on: twice as far each time.
        match self.spans.around(at) {
            (Some(before), behind) if before.end == pages.start => {
                let end = pages.start + before.len().clamp(page, LEARN_BYTES_MAX);
                pages.end = end.min(behind.map_or(self.accessible, |behind| behind.start)).max(pages.end);
            }
            (before, Some(behind)) if behind.start == pages.end => {
                let start = pages.end.saturating_sub(behind.len().clamp(page, LEARN_BYTES_MAX));
                pages.start = start.max(before.map_or(0, |before| before.end)).min(pages.start);
            }
            _ => {}
        }
        pages.end = pages.end.min(self.accessible);
        self.add(pages)
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        if self.reserved {
            MAPPINGS.fetch_sub(2 * WRITABLE_SPANS_MAX, Ordering::Relaxed);
        }
    }
}
