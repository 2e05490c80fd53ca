//! The fibers of a store that are not selected: suspended in host calls, not begun, or done.
//!
//! ```text
//!   Sandbox
//!     fiber     the selected one: its context is in the store's record, where stubs and handlers find it
//!     others    parked: stack, call, and the context as it was when another was selected
//! ```
//!
//! **One fiber is left for another only where its guest called an import, or where it does not run at all.** Anywhere else generated code may be in
//! the middle of something that it takes for one step, since all of a store's calls were one thread of execution to the compiler: between looking at a
//! reference's type in a table and loading its code, between the halves of a reference that is written, between taking room for an exception and
//! saying so, between writing a callee's arguments to its vmctx and their being read. Another fiber that ran then could make one function be called
//! as another. So what the timer suspended goes on, or the whole sandbox ends. Behind a call of an import the compiler assumes nothing of what
//! another could have changed, as it may lead to any other function.
//!
//! After a trap the others may go on, as another call may be made then: the specification's tests do that. A trap may stand anywhere between two
//! stores, too, since the compiler may move a store behind an access that turns out to trap. So a server does neither: after a trap a sandbox is
//! discarded with all its fibers ([`Sandbox::end`](crate::Sandbox::end) remembers it).

use std::mem;

use crate::fiber::call::{Call, Fiber};
use crate::fiber::record::Context;
use crate::fiber::stack::Stack;

/// A fiber that is not selected.
#[derive(Debug)]
pub(crate) struct Parked {
    number: u64,
    stack: Stack,
    call: Call,
    context: Context,
}

/// Those of a store, and stacks of such that ended.
#[derive(Debug, Default)]
pub(crate) struct Others {
    parked: Vec<Parked>,
    spare: Vec<Stack>,
}

impl Parked {
    /// One without a call on that stack.
    fn new(number: u64, stack: Stack) -> Parked {
        let context = Context::new(stack.guard_low(), stack.low(), stack.high());
        Parked { number, stack, call: Call::default(), context }
    }

    /// Selects it in the place of `fiber`, which is parked instead.
    ///
    /// All that is of one fiber changes its place here. What was left out would be taken from one stack to another: a stack pointer with the bounds of
    /// another stack, so that overflowing it is no trap; the slots of another's host call; the segment of another's memory.
    fn exchange(&mut self, fiber: &mut Fiber) {
        debug_assert!(fiber.may_be_left());
        mem::swap(&mut self.number, &mut fiber.number);
        mem::swap(&mut self.stack, &mut fiber.stack);
        mem::swap(&mut self.call, &mut fiber.call);
        mem::swap(&mut self.context, fiber.record.get_mut());
    }
}

impl Others {
    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.parked.len()
    }

    /// Their numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.parked.iter().map(|parked| parked.number)
    }

    /// Whether none of them is suspended, so that instances may be added.
    pub(crate) fn are_idle(&self) -> bool {
        self.parked.iter().all(|parked| parked.call.is_idle())
    }

    /// Whether what they did is known to be in good order, wherever they are suspended. None of them was preempted.
    pub(crate) fn are_sound(&self) -> bool {
        self.parked.iter().all(|parked| parked.call.is_sound())
    }

    /// The stack of one that ended.
    pub(crate) fn spare(&mut self) -> Option<Stack> {
        self.spare.pop()
    }

    /// Parks `fiber` and selects a new one on that stack.
    pub(crate) fn start(&mut self, fiber: &mut Fiber, number: u64, stack: Stack) {
        let mut started = Parked::new(number, stack);
        started.exchange(fiber);
        self.parked.push(started);
    }

    /// Parks `fiber` and selects the one with that number; false where there is none.
    pub(crate) fn select(&mut self, fiber: &mut Fiber, number: u64) -> bool {
        let found = self.parked.iter_mut().find(|parked| parked.number == number);
        found.map(|parked| parked.exchange(fiber)).is_some()
    }

    /// Ends the one with that number, whose stack is kept; none where there is none. Whether what it did is known to be in good order.
    pub(crate) fn end(&mut self, number: u64) -> Option<bool> {
        let at = self.parked.iter().position(|parked| parked.number == number)?;
        let Parked { stack, call, .. } = self.parked.swap_remove(at);
        self.spare.push(stack);
        Some(call.is_sound())
    }

    /// Calls `each` with all words that may lead to exceptions, on all their stacks.
    pub(crate) fn words(&self, each: &mut dyn FnMut(u64)) {
        self.parked.iter().for_each(|parked| parked.call.words(&parked.stack, &parked.context, each));
    }
}
