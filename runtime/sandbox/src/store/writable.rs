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
//! | new, of an [image that is shared](crate::store::shared_image) | writable in the spans: what earlier sandboxes learned, or all but the image | as below |
//! | protected | writable in the spans | faults; [`learn`](Writable::learn) makes the page writable and part of a span, and the write is done again |
//!
//! Spans stay for the following runs. They are learned at first from what the first run changed, not from what it touched, and learned anew
//! when they have become large. The host asks before it writes ([`open`](Writable::open)): it never faults.
//!
//! **Of a shared image a page is private only if it lies in a span.** So the spans' part of it is what the budget counts. It is counted before the pages become
//! writable. If there is nothing left, they stay read-only, and the guest traps or the host is refused.
//!
//! `learn` runs in the handler of faults: nothing there allocates or locks.

use crate::budget::Share;
use crate::limits::{PRIVATE_AHEAD_BYTES, WRITABLE_SPANS_SURE};
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
    /// Whether the system refused to make something writable that is in `spans`: a reset would fault there.
    pub(crate) broken: bool,
    /// Whether a write was refused since the last reset, because the budget had nothing left.
    pub(crate) refused: bool,
    pub(crate) spans: Spans,
    /// Faults and host writes that added to the spans, since they were learned from a run.
    pub(crate) added: u32,
    /// Spans for which mappings were taken.
    granted: usize,
    /// What is mapped from the image that all sandboxes share; empty where nothing is.
    pub(crate) shared: Span,
    /// What is reserved for copies of pages in `shared`; none where that is not counted.
    private: Option<Share>,
    /// Bytes of `spans` in `shared`, all of which `private` covers.
    private_bytes: usize,
}

/// Where reservations come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// What is left. For handlers.
    Now,
    /// That, and what is idle.
    WithIdle,
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

/// Mappings that an image adds which is shared: itself, and what is behind it.
pub(crate) const SHARED_MAPPINGS: usize = 2;

/// What is reserved for a memory of which `private` bytes of the `shared` ones are in spans: these, and some of the others.
pub(crate) fn private_wanted(private: usize, shared: usize) -> u64 {
    (private + PRIVATE_AHEAD_BYTES.min(shared.saturating_sub(private))) as u64
}

impl Writable {
    /// That of a memory of which the first `accessible` bytes can be written to.
    pub(crate) fn new(base: usize, accessible: usize) -> Writable {
        Writable {
            base,
            accessible,
            protected: false,
            spans: Spans::default(),
            added: 0,
            granted: 0,
            shared: Span::default(),
            private: None,
            private_bytes: 0,
            refused: false,
            broken: false,
        }
    }

    /// Notes that `shared` was mapped, to be read, and makes `spans` of all that is accessible writable, or everything where there are no mappings for
    /// that. `private` is reserved for what is written. False when the memory cannot be used.
    pub(crate) fn share(&mut self, shared: Span, private: Option<Share>, spans: Spans) -> bool {
        debug_assert!(self.shared.end == 0 && shared.start < shared.end && shared.end <= self.accessible);
        room::MAPPINGS.add(SHARED_MAPPINGS);
        (self.shared, self.private) = (shared, private);
        // A part of it is new and cannot be written to yet.
        self.protected = true;
        self.protect_but(shared, spans)
    }

    /// What is reserved for copies of shared pages.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.private.as_ref().map_or(0, Share::bytes)
    }

    /// Bytes of shared pages that are private where `spans` are the writable ones.
    fn private_of(&self, spans: &Spans) -> usize {
        if self.shared.end == 0 { 0 } else { spans.within(self.shared).map(Span::len).sum() }
    }

    /// Has so many bytes of shared pages counted as private. False, and nothing changed, when there is less left.
    fn count(&mut self, bytes: usize, claim: Claim) -> bool {
        let wanted = bytes as u64;
        let done = self.private.as_mut().is_none_or(|share| {
            wanted <= share.bytes() || if claim == Claim::Now { share.grow_now(wanted) } else { share.resize(wanted) }
        });
        if done {
            self.private_bytes = bytes;
        }
        done
    }

    /// At the end of a reset: reserves what is in the spans and what may be written next, and no more.
    pub(crate) fn settle(&mut self) {
        self.refused = false;
        if self.shared.end == 0 {
            return;
        }
        let wanted = private_wanted(self.private_bytes, self.shared.len());
        if let Some(share) = self.private.as_mut().filter(|share| share.bytes() != wanted) {
            // Where there is less, a write that is not known may be refused.
            let _ = share.resize(wanted);
        }
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
    /// everything stays writable, or becomes it. False when the memory cannot be used: what is writable is more than can be counted, or less than it should be.
    pub(crate) fn protect(&mut self, spans: Spans) -> bool {
        self.protect_but(Span::default(), spans)
    }

    /// The same where a part is read-only already.
    fn protect_but(&mut self, part: Span, mut spans: Spans) -> bool {
        while !self.grant(spans.as_slice().len()) {
            if spans.as_slice().len() > WRITABLE_SPANS_SURE {
                spans.join_nearest();
                continue;
            }
            return !std::mem::take(&mut self.protected) || self.give_up(Claim::WithIdle);
        }
        if !self.count(self.private_of(&spans), Claim::WithIdle) {
            return false;
        }
        // Spans that were joined may have something read-only between them.
        let mut done = !self.protected || spans.as_slice().iter().all(|&span| self.set(span, Access::ReadWrite));
        spans.gaps(self.accessible, |gap| done = done && (gap.and(part) == Some(gap) || self.set(gap, Access::Read)));
        self.spans = spans;
        self.added = 0;
        self.protected = done;
        done || self.give_up(Claim::WithIdle)
    }

    /// Makes everything writable. False when that is refused: then it cannot be used any more.
    fn give_up(&mut self, claim: Claim) -> bool {
        let all = Span { start: 0, end: self.accessible };
        self.spans = Spans::default();
        if all.end > 0 {
            self.spans.add(all);
        }
        let done = self.count(self.shared.len(), claim) && self.set(all, Access::ReadWrite);
        self.broken |= !done;
        done
    }

    fn set(&self, span: Span, access: Access) -> bool {
        debug_assert!(span.end <= self.accessible);
        // SAFETY: These pages belong to the memory whose state this is. Reading stays possible; they become read-only only in `protect`, which
        // the memory calls when no reference for writing exists.
        span.end <= span.start || unsafe { protect_raw(self.base + span.start, span.len(), access) }
    }

    /// Makes `wanted` writable, if it is not: for the host. False when the system refuses.
    #[inline]
    pub(crate) fn open(&mut self, wanted: Span) -> bool {
        !self.protected || self.spans.first_covers(wanted) || self.open_elsewhere(wanted)
    }

    /// The same where the first span does not have it, which it has of most small memories.
    fn open_elsewhere(&mut self, wanted: Span) -> bool {
        if wanted.end <= wanted.start || self.spans.cover(wanted) {
            return true;
        }
        let page = page_bytes();
        let pages = Span { start: wanted.start / page * page, end: wanted.end.next_multiple_of(page).min(self.accessible) };
        let done = self.add(pages, Claim::WithIdle);
        self.refused |= !done;
        done
    }

    fn add(&mut self, pages: Span, claim: Claim) -> bool {
        let Some(gaps) = self.join(pages, claim) else { return false };
        self.added = self.added.saturating_add(1);
        let done = self.set(pages, Access::ReadWrite) && self.open_gaps(gaps);
        done || self.give_up(claim)
    }

    /// Notes that `grown`, the end of what is accessible, is about to be made writable. False when that cannot be.
    pub(crate) fn note_grown(&mut self, grown: Span) -> bool {
        let before = std::mem::replace(&mut self.accessible, grown.end);
        if !self.protected || grown.start == grown.end {
            return true;
        }
        let Some(gaps) = self.join(grown, Claim::WithIdle) else {
            self.accessible = before;
            return false;
        };
        self.open_gaps(gaps) || self.give_up(Claim::WithIdle)
    }

    /// Adds to the spans, and joins two more where there are no mappings for as many as there are: what lay between spans that were joined, which is to
    /// be opened. None, and nothing changed, where that is more than can be counted.
    fn join(&mut self, pages: Span, claim: Claim) -> Option<[Option<Span>; 2]> {
        let before = (self.shared.end > 0).then(|| self.spans.clone());
        let gap = self.spans.add(pages);
        let spans = self.spans.as_slice().len();
        let another = if spans <= self.granted || self.grant(spans) { None } else { self.spans.join_nearest() };
        if let Some(before) = before
            && !self.count(self.private_of(&self.spans), claim)
        {
            self.spans = before;
            return None;
        }
        Some([gap, another])
    }

    /// Makes what lay between spans writable.
    fn open_gaps(&self, gaps: [Option<Span>; 2]) -> bool {
        gaps.into_iter().flatten().all(|gap| self.set(gap, Access::ReadWrite))
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
        // Where there is nothing left for all of that, the page may still be had.
        let first = Span { start, end: (start + page).min(self.accessible) };
        let done = self.add(pages, Claim::Now) || (pages != first && self.add(first, Claim::Now));
        self.refused |= !done;
        done
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        self.grant(0);
        if self.shared.end > 0 {
            room::MAPPINGS.give_back(SHARED_MAPPINGS);
        }
    }
}
