//! A few disjoint ranges in ascending order: which parts of a memory may be written to.
//!
//! Of fixed size and without allocation, since the handler of faults adds to it.

use crate::limits::WRITABLE_SPANS_MAX;

/// A range of bytes, not empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }

    /// What both have; none where that is nothing.
    pub(crate) fn and(self, other: Span) -> Option<Span> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        (start < end).then_some(Span { start, end })
    }
}

/// At most [`WRITABLE_SPANS_MAX`] spans, none of which touches another.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Spans {
    /// One more than is kept, for the moment before two are joined.
    list: [Span; WRITABLE_SPANS_MAX + 1],
    count: usize,
}

impl Default for Spans {
    fn default() -> Spans {
        Spans { list: [Span::default(); WRITABLE_SPANS_MAX + 1], count: 0 }
    }
}

impl Spans {
    /// What of `0..end` is not in `part`.
    pub(crate) fn all_but(part: Span, end: usize) -> Spans {
        let mut spans = Spans::default();
        for rest in [Span { start: 0, end: part.start }, Span { start: part.end, end }] {
            if rest.start < rest.end {
                spans.add(rest);
            }
        }
        spans
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[Span] {
        &self.list[..self.count]
    }

    /// Bytes of all of them.
    pub(crate) fn bytes(&self) -> usize {
        self.as_slice().iter().map(|span| span.len()).sum()
    }

    /// What of them lies in `range`.
    pub(crate) fn within(&self, range: Span) -> impl Iterator<Item = Span> {
        self.as_slice().iter().filter_map(move |span| span.and(range))
    }

    /// Whether the first of them has all of `wanted`.
    #[inline]
    pub(crate) fn first_covers(&self, wanted: Span) -> bool {
        self.as_slice().first().is_some_and(|first| first.start <= wanted.start && wanted.end <= first.end)
    }

    /// Whether one of them has all of `wanted`.
    pub(crate) fn cover(&self, wanted: Span) -> bool {
        let behind = self.as_slice().partition_point(|span| span.start <= wanted.start);
        self.as_slice()[..behind].last().is_some_and(|span| wanted.end <= span.end)
    }

    /// The last span that begins at `at` or before it, and the one after that.
    pub(crate) fn around(&self, at: usize) -> (Option<Span>, Option<Span>) {
        let next = self.as_slice().partition_point(|span| span.start <= at);
        (next.checked_sub(1).map(|i| self.list[i]), self.as_slice().get(next).copied())
    }

    /// Adds a span and joins it with those that it touches. Where that makes one too many, the two with the least between them are joined,
    /// too: what was between them is returned.
    pub(crate) fn add(&mut self, span: Span) -> Option<Span> {
        let first = self.as_slice().partition_point(|other| other.end < span.start);
        let behind = self.as_slice().partition_point(|other| other.start <= span.end);
        if first < behind {
            let (start, end) = (self.list[first].start.min(span.start), self.list[behind - 1].end.max(span.end));
            self.list[first] = Span { start, end };
            self.list.copy_within(behind..self.count, first + 1);
            self.count -= behind - first - 1;
        } else {
            self.list.copy_within(first..self.count, first + 1);
            self.list[first] = span;
            self.count += 1;
        }
        if self.count <= WRITABLE_SPANS_MAX { None } else { self.join_nearest() }
    }

    /// Joins the two with the least between them; what was between them. None where there are no two.
    pub(crate) fn join_nearest(&mut self) -> Option<Span> {
        let pairs = self.as_slice().windows(2).enumerate();
        let (at, _) = pairs.min_by_key(|(_, pair)| pair[1].start - pair[0].end)?;
        let gap = Span { start: self.list[at].end, end: self.list[at + 1].start };
        self.list[at].end = self.list[at + 1].end;
        self.list.copy_within(at + 2..self.count, at + 1);
        self.count -= 1;
        Some(gap)
    }

    /// Takes away what lies at `end` or behind it.
    pub(crate) fn truncate(&mut self, end: usize) {
        self.count = self.as_slice().partition_point(|span| span.start < end);
        if let Some(last) = self.list[..self.count].last_mut() {
            last.end = last.end.min(end);
        }
    }

    /// Calls `each` with what of `0..end` lies between them.
    pub(crate) fn gaps(&self, end: usize, mut each: impl FnMut(Span)) {
        let mut at = 0;
        for span in self.as_slice() {
            if at < span.start {
                each(Span { start: at, end: span.start });
            }
            at = span.end;
        }
        if at < end {
            each(Span { start: at, end });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    #[test]
    fn what_was_added_is_covered_and_never_more_than_was_said() {
        const BYTES: usize = 1600;
        let (mut seed, mut joined) = (1u64, 0);
        for _ in 0..200 {
            let (mut spans, mut model) = (Spans::default(), [false; BYTES]);
            for _ in 0..200 {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let start = (seed >> 33) as usize % (BYTES - 10);
                let end = start + 1 + (seed >> 50) as usize % 9;
                let gap = spans.add(span(start, end));
                model[start..end].fill(true);
                if let Some(gap) = gap {
                    joined += 1;
                    assert!(model[gap.start..gap.end].iter().all(|&there| !there), "a gap is what was not there");
                    model[gap.start..gap.end].fill(true);
                }
                assert!(spans.as_slice().len() <= WRITABLE_SPANS_MAX);
                let mut found = [false; BYTES];
                spans.as_slice().iter().for_each(|span| found[span.start..span.end].fill(true));
                assert_eq!(found, model);
                assert!(spans.as_slice().windows(2).all(|pair| pair[0].end < pair[1].start));
                assert_eq!(spans.bytes(), model.iter().filter(|&&there| there).count());
                let within: usize = spans.within(span(BYTES / 4, BYTES / 2)).map(Span::len).sum();
                assert_eq!(within, model[BYTES / 4..BYTES / 2].iter().filter(|&&there| there).count());
                spans.gaps(BYTES, |gap| found[gap.start..gap.end].fill(true));
                assert_eq!(found, [true; BYTES]);
                assert!(spans.cover(span(start, end)));
                assert!(
                    spans.first_covers(spans.as_slice()[0])
                        && spans.as_slice()[1..].iter().all(|other| !spans.first_covers(*other))
                );
            }
            spans.truncate(BYTES / 2);
            assert!(spans.as_slice().iter().all(|span| span.start < span.end && span.end <= BYTES / 2));
            assert_eq!(spans.bytes(), model[..BYTES / 2].iter().filter(|&&there| there).count());
            let first = spans.as_slice()[0];
            spans.truncate(0);
            assert!(!spans.first_covers(first), "it is gone");
        }
        assert!(joined > 1000, "only {joined} joined");
    }
}
