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

use crate::limits::WRITABLE_SPANS_SURE;
use crate::store::spans::{Span, Spans};
use crate::sys::page::{Access, page_bytes, protect_raw};
use crate::sys::room;

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
    /// Spans for which mappings were taken.
    granted: usize,
}

/// A range of addresses that belongs to a memory, as the fault handler reads it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct AddressRange {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Which of its pages can be written to. Only the handler of faults uses it while the guest runs.
    pub(crate) writable: *mut Writable,
}

/// Mappings that a span adds: itself, and what is read-only behind it.
const SPAN_MAPPINGS: usize = 2;

impl Writable {
    /// That of a memory of which the first `accessible` bytes can be written to.
    pub(crate) fn new(base: usize, accessible: usize) -> Writable {
        Writable { base, accessible, protected: false, spans: Spans::default(), added: 0, granted: 0 }
    }

    /// Takes mappings for so many spans; false, and nothing changed, when the process has too many already. More than a few are a matter of speed:
    /// they are not to take what another sandbox needs to exist.
    fn grant(&mut self, spans: usize) -> bool {
        if spans > self.granted {
            let mappings = (spans - self.granted) * SPAN_MAPPINGS;
            let is_granted =
                if spans <= WRITABLE_SPANS_SURE { room::MAPPINGS.take(mappings) } else { room::MAPPINGS.take_of_half(mappings) };
            if !is_granted {
                return false;
            }
        } else if spans < self.granted {
            room::MAPPINGS.give_back((self.granted - spans) * SPAN_MAPPINGS);
        }
        self.granted = spans;
        true
    }

    /// Makes what lies outside of `spans` read-only. Where there are no mappings for so many, the nearest are joined; where there are none for a few,
    /// everything stays writable, or becomes it.
    pub(crate) fn protect(&mut self, mut spans: Spans) {
        while !self.grant(spans.as_slice().len()) {
            if spans.as_slice().len() > WRITABLE_SPANS_SURE {
                spans.join_nearest();
                continue;
            }
            if self.protected {
                self.give_up();
                self.protected = false;
            }
            return;
        }
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
        // the memory calls when no reference for writing exists.
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
        let done = self.set(pages, Access::ReadWrite) && self.open_gap(gap);
        done || self.give_up()
    }

    /// Notes that `grown`, the end of what is accessible, was made writable.
    pub(crate) fn note_grown(&mut self, grown: Span) -> bool {
        self.accessible = grown.end;
        if !self.protected || grown.start == grown.end {
            return true;
        }
        let gap = self.spans.add(grown);
        self.open_gap(gap) || self.give_up()
    }

    /// Opens what lay between spans that were joined, and joins two more where there are no mappings for as many as there are.
    fn open_gap(&mut self, gap: Option<Span>) -> bool {
        let spans = self.spans.as_slice().len();
        let another = if spans <= self.granted || self.grant(spans) { None } else { self.spans.join_nearest() };
        gap.into_iter().chain(another).all(|gap| self.set(gap, Access::ReadWrite))
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
        self.grant(0);
    }
}
