//! Which of the expected calls are begun, and which of these a call adopts. Pure: what was begun is the caller's business.

use std::collections::VecDeque;
use std::fmt;

use crate::speculate::sequence::Expected;
use crate::txn::mutants::{self, Mutant};

/// The calls that a run is expected to make, in their order: first those that were begun, then those that were not.
pub(crate) struct Window<R> {
    begun: Vec<(Expected, R)>,
    expected: VecDeque<Expected>,
}

/// What a call comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reached<R> {
    /// What was begun for just this call, and the ordinal for which that was.
    pub(crate) adopted: Option<(usize, R)>,
    /// What was begun in place of it, and is not wanted; likewise.
    pub(crate) dropped: Option<(usize, R)>,
}

impl<R> fmt::Debug for Window<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("begun", &self.begun.len()).field("expected", &self.expected.len()).finish()
    }
}

impl<R> Window<R> {
    /// That of a run which has made no call.
    pub(crate) fn new(expected: Vec<Expected>) -> Window<R> {
        Window { begun: Vec::new(), expected: expected.into() }
    }

    /// Whether more calls are expected than were begun.
    pub(crate) fn expects_more(&self) -> bool {
        !self.expected.is_empty()
    }

    /// The call that is to be begun next, where at most `depth` that were begun may not have been reached. It is [put](Window::put) here when it was begun.
    pub(crate) fn next(&mut self, depth: usize) -> Option<Expected> {
        if self.begun.len() < depth { self.expected.pop_front() } else { None }
    }

    /// That call was begun.
    pub(crate) fn put(&mut self, expected: Expected, run: R) {
        self.begun.push((expected, run));
    }

    /// The run has come to a call. It adopts the first that was begun of that function with that argument, whichever call it was begun for: a call that comes out of its order is the same call.
    pub(crate) fn reached(&mut self, ordinal: usize, callee: &str, argument: &[u8]) -> Reached<R> {
        // What was to come until now need not be begun any more.
        while self.expected.pop_front_if(|expected| expected.ordinal <= ordinal).is_some() {}
        let is_equal = |expected: &Expected| {
            *expected.callee == *callee && (expected.argument == argument || mutants::is(Mutant::AdoptedOther))
        };
        let adopted = self.take(is_equal);
        let dropped = if adopted.as_ref().is_some_and(|(of, _)| *of == ordinal) {
            None
        } else {
            self.take(|other| other.ordinal == ordinal)
        };
        Reached { adopted, dropped }
    }

    /// What was begun and not reached.
    pub(crate) fn into_begun(self) -> impl Iterator<Item = (usize, R)> {
        self.begun.into_iter().map(|(expected, run)| (expected.ordinal, run))
    }

    fn take(&mut self, is_it: impl Fn(&Expected) -> bool) -> Option<(usize, R)> {
        let at = self.begun.iter().position(|(expected, _)| is_it(expected))?;
        let (expected, run) = self.begun.remove(at);
        Some((expected.ordinal, run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speculate::sequence::Follows;

    fn expected(ordinal: usize, callee: &str, argument: &'static str) -> Expected {
        Expected { ordinal, callee: callee.into(), argument: argument.into(), follows: Follows::Input }
    }

    /// One of which so many are begun, each under the number of its ordinal.
    fn window(depth: usize, calls: &[(&str, &'static str)]) -> Window<usize> {
        let all = calls.iter().enumerate().map(|(ordinal, (callee, argument))| expected(ordinal, callee, argument));
        let mut window = Window::new(all.collect());
        fill(&mut window, depth);
        window
    }

    fn fill(window: &mut Window<usize>, depth: usize) {
        while let Some(expected) = window.next(depth) {
            let ordinal = expected.ordinal;
            window.put(expected, ordinal);
        }
    }

    fn reached(adopted: Option<usize>, dropped: Option<usize>) -> Reached<usize> {
        let pair = |number: Option<usize>| number.map(|number| (number, number));
        Reached { adopted: pair(adopted), dropped: pair(dropped) }
    }

    #[test]
    fn a_call_adopts_what_is_equal_and_drops_what_was_begun_in_its_place() {
        let mut window = window(9, &[("f", "1"), ("g", "2"), ("f", "3"), ("h", "4")]);
        assert_eq!(window.reached(0, "f", b"1"), reached(Some(0), None));
        assert_eq!(window.reached(1, "g", b"3"), reached(None, Some(1)), "another argument");
        assert_eq!(window.reached(2, "h", b"4"), reached(Some(3), Some(2)), "it comes earlier");
        assert_eq!(window.reached(3, "h", b"4"), reached(None, None), "it was adopted once");
        assert_eq!(window.into_begun().count(), 0);
    }

    #[test]
    fn what_comes_out_of_its_order_is_adopted_and_what_is_never_called_is_left() {
        let mut window = window(9, &[("f", "1"), ("f", "1"), ("g", "2")]);
        assert_eq!(window.reached(0, "g", b"2"), reached(Some(2), Some(0)));
        assert_eq!(window.reached(1, "f", b"1"), reached(Some(1), None));
        let mut window = self::window(9, &[("f", "1"), ("g", "2")]);
        assert_eq!(window.reached(0, "f", b"1"), reached(Some(0), None));
        assert_eq!(window.into_begun().collect::<Vec<_>>(), [(1, 1)]);
    }

    #[test]
    fn as_many_are_begun_as_the_depth_says_and_none_whose_turn_is_over() {
        let mut window = window(2, &[("f", "1"), ("f", "2"), ("f", "3"), ("f", "4"), ("f", "5")]);
        assert!(window.expects_more());
        assert_eq!(window.reached(0, "f", b"1"), reached(Some(0), None));
        fill(&mut window, 2);
        assert_eq!(window.reached(1, "f", b"2"), reached(Some(1), None));
        assert_eq!(window.reached(2, "x", b""), reached(None, Some(2)));
        // The fourth call was not begun when it was made.
        assert_eq!(window.reached(3, "f", b"4"), reached(None, None));
        fill(&mut window, 0);
        assert!(window.expects_more(), "the fifth is still to come");
        fill(&mut window, 1);
        assert_eq!((window.expects_more(), window.into_begun().collect::<Vec<_>>()), (false, vec![(4, 4)]));
    }
}
