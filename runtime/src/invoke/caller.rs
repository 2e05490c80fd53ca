//! Functions that call functions: what a callee knows of its callers, and how deep that may go.

use std::sync::Arc;
use std::time::Instant;

use sledge_sandbox::Sandbox;

use super::function::Function;
use super::kept::Kept;
use crate::schedule::FunctionId;

/// Functions that wait for each other, one calling the next.
pub const DEPTH_MAX: u32 = 16;
/// How often one function may be among them.
pub const CYCLES_MAX: usize = 4;

/// An invocation that calls others, and its own callers.
#[derive(Debug)]
pub struct Caller {
    function: FunctionId,
    /// Its number among all that were admitted, and that of its outermost caller.
    pub(super) sequence: u64,
    pub(super) root: u64,
    /// When it must be answered, and so those whose replies it waits for.
    pub(super) deadline: Instant,
    depth: u32,
    /// Of an outermost one: the instances that its calls have left.
    pub(super) kept: Kept,
    /// Its caller, and by which host call that called it.
    pub(super) above: Option<(Arc<Caller>, u32)>,
}

impl Caller {
    /// The invocation of `function` with that number, called by `above`.
    #[must_use]
    pub fn new(function: FunctionId, sequence: u64, deadline: Instant, above: Option<(Arc<Caller>, u32)>) -> Caller {
        let (root, depth) = above.as_ref().map_or((sequence, 1), |(above, _)| (above.root, above.depth + 1));
        Caller { function, sequence, root, deadline, depth, kept: Kept::default(), above }
    }

    /// Whether it may call that function, which is [`cycles_max`](Function::cycles_max) times among those that wait for each other at most.
    #[must_use]
    pub fn may_call(&self, function: FunctionId, cycles_max: usize) -> bool {
        self.depth < DEPTH_MAX && self.chain().filter(|caller| caller.function == function).count() < cycles_max
    }

    /// How many functions wait for what it calls.
    pub(crate) const fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether that function is it or one of its callers.
    pub(crate) fn is_below(&self, function: FunctionId) -> bool {
        self.chain().any(|caller| caller.function == function)
    }

    /// The outermost of its callers, on whose behalf it runs; itself if it has none.
    pub(super) fn outermost(&self) -> &Caller {
        self.chain().last().unwrap_or(self)
    }

    /// The instances that calls on its behalf have left; from now on none is kept. For the outermost one, when it is over.
    pub(crate) fn close_kept(&self) -> Vec<(Arc<Function>, Box<Sandbox>)> {
        self.kept.close()
    }

    /// It and its callers, from the innermost.
    fn chain(&self) -> impl Iterator<Item = &Caller> {
        std::iter::successors(Some(self), |caller| caller.above.as_ref().map(|(above, _)| &**above))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_and_cycles_end() {
        let chain = |functions: &[u32]| {
            let caller = |above: Option<Arc<Caller>>, id: &u32| {
                Some(Arc::new(Caller::new(FunctionId(*id), 1, Instant::now(), above.map(|above| (above, 1)))))
            };
            functions.iter().fold(None, caller).unwrap()
        };
        assert!(chain(&[1, 1, 1]).may_call(FunctionId(1), CYCLES_MAX));
        assert!(!chain(&[1, 1, 1, 1]).may_call(FunctionId(1), CYCLES_MAX));
        assert!(!chain(&[1, 2, 1, 2, 1, 2, 1]).may_call(FunctionId(1), CYCLES_MAX));
        assert!(chain(&[1, 2, 1, 2, 1, 2, 1]).may_call(FunctionId(2), CYCLES_MAX));
        assert!(!chain(&[1, 2]).may_call(FunctionId(1), 1) && chain(&[1, 2]).may_call(FunctionId(3), 1));
        let long: Vec<u32> = (0..DEPTH_MAX).collect();
        assert!(chain(&long[1..]).may_call(FunctionId(99), CYCLES_MAX));
        assert!(!chain(&long).may_call(FunctionId(99), CYCLES_MAX));
        let chain = chain(&[1, 2, 3]);
        assert_eq!(
            (chain.depth(), [0, 1, 2, 3, 4].map(|id| chain.is_below(FunctionId(id)))),
            (3, [false, true, true, true, false])
        );
    }
}
