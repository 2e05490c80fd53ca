//! What is known of a request besides its reply: its place among all others, and where its time went.

use std::sync::Arc;
use std::time::Duration;

use crate::phases::PhaseClock;
use crate::schedule::FunctionId;

/// Functions that wait for each other, one calling the next.
pub const DEPTH_MAX: u32 = 16;
/// How often one function may be among them.
pub const CYCLES_MAX: usize = 4;

/// A request's record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Counts the requests that the server has admitted, calls of functions by functions included.
    pub sequence: u64,
    /// Who called it, if that was a function.
    pub parent: Option<Parent>,
    /// Host calls that it made.
    pub host_calls: u32,
    /// The phase that it said it was in last.
    pub phase: u32,
    /// Time for which it could have run.
    pub ready: Duration,
    /// Time for which it ran, host calls included.
    pub running: Duration,
    /// Time for which it waited for something else than its turn.
    pub blocked: Duration,
    /// For how long it ran in each phase, if its function declares any: `running`, divided.
    pub phases: Option<Box<PhaseClock>>,
}

/// From where a function was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The caller's [`Record::sequence`].
    pub sequence: u64,
    /// Which of its host calls that was, from 1.
    pub host_call: u32,
}

/// An invocation that calls others, and who called it.
#[derive(Debug)]
pub struct Caller {
    function: FunctionId,
    /// Its number among all that were admitted, and that of its outermost caller.
    pub(super) sequence: u64,
    pub(super) root: u64,
    depth: u32,
    /// Who called it, and by which host call.
    pub(super) above: Option<(Arc<Caller>, u32)>,
}

impl Caller {
    /// The invocation of `function` with that number, called by `above`.
    #[must_use]
    pub fn new(function: FunctionId, sequence: u64, above: Option<(Arc<Caller>, u32)>) -> Caller {
        let (root, depth) = above.as_ref().map_or((sequence, 1), |(above, _)| (above.root, above.depth + 1));
        Caller { function, sequence, root, depth, above }
    }

    /// Whether it may call that function.
    #[must_use]
    pub fn may_call(&self, function: FunctionId) -> bool {
        let chain = std::iter::successors(Some(self), |caller| caller.above.as_ref().map(|(above, _)| &**above));
        self.depth < DEPTH_MAX && chain.filter(|caller| caller.function == function).count() < CYCLES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_and_cycles_end() {
        let chain = |functions: &[u32]| {
            let caller = |above: Option<Arc<Caller>>, id: &u32| {
                Some(Arc::new(Caller::new(FunctionId(*id), 1, above.map(|above| (above, 1)))))
            };
            functions.iter().fold(None, caller).unwrap()
        };
        assert!(chain(&[1, 1, 1]).may_call(FunctionId(1)));
        assert!(!chain(&[1, 1, 1, 1]).may_call(FunctionId(1)));
        assert!(!chain(&[1, 2, 1, 2, 1, 2, 1]).may_call(FunctionId(1)));
        assert!(chain(&[1, 2, 1, 2, 1, 2, 1]).may_call(FunctionId(2)));
        let long: Vec<u32> = (0..DEPTH_MAX).collect();
        assert!(chain(&long[1..]).may_call(FunctionId(99)));
        assert!(!chain(&long).may_call(FunctionId(99)));
    }
}
