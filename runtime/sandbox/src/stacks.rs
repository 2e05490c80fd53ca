//! The stacks of a guest that has several and says itself on which it goes on.

use crate::error::CallError;
use crate::sandbox::Sandbox;
use crate::value::{FiberId, FunctionHandle};

/// Fibers of one sandbox by the numbers that its guest has for them: 0 is the one on which it began, and each that it starts has the next number. Nothing is
/// kept of a guest that has one stack.
#[derive(Debug, Default)]
pub struct Stacks {
    fibers: Vec<FiberId>,
}

impl Stacks {
    /// Selects the stack with that number in a host call of the guest. The number that comes next starts one: a call of what `start` finds, a function without
    /// parameters.
    ///
    /// # Errors
    /// When there is no such stack, no room for another, or nothing to be called on it; as [`Sandbox::start`] and [`Sandbox::select`].
    pub fn switch(
        &mut self,
        sandbox: &mut Sandbox,
        number: u32,
        start: impl FnOnce(&Sandbox) -> Option<FunctionHandle>,
    ) -> Result<(), CallError> {
        if self.fibers.is_empty() {
            self.fibers.push(sandbox.fiber());
        }
        match self.fibers.get(number as usize) {
            Some(&fiber) => sandbox.select(fiber),
            None if number as usize == self.fibers.len() => {
                let start = start(&*sandbox).ok_or(CallError::NoFiber)?;
                self.fibers.push(sandbox.start(start, &[])?);
                Ok(())
            }
            None => Err(CallError::NoFiber),
        }
    }

    /// Whether the one on which the guest began is selected.
    #[must_use]
    pub fn is_first(&self, sandbox: &Sandbox) -> bool {
        self.fibers.first().is_none_or(|first| *first == sandbox.fiber())
    }
}
