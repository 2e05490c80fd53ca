//! Which functions may throw: those that have a `throw` that no `catch_all` of their own surely catches, or call a function that may.

use wasmparser::{Catch, Operator};

/// What the bodies read so far say.
#[derive(Default)]
pub(super) struct Throws {
    /// For each defined function whether it throws whatever others do.
    throws: Vec<bool>,
    /// For each defined function those whose exceptions leave it, imported functions first.
    calls: Vec<Vec<u32>>,
    /// For each open block of the body that is being read whether it catches everything.
    blocks: Vec<bool>,
    /// How many of them do.
    catching: usize,
}

impl Throws {
    /// Begins a body.
    pub(super) fn begin(&mut self) {
        self.throws.push(false);
        self.calls.push(Vec::new());
        self.blocks = vec![false];
        self.catching = 0;
    }

    /// Notes an operator of the body.
    pub(super) fn operator(&mut self, op: &Operator<'_>) {
        let is_caught = self.catching > 0;
        match op {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } | Operator::Try { .. } => self.open(false),
            Operator::TryTable { try_table } => {
                self.open(try_table.catches.iter().any(|catch| matches!(catch, Catch::All { .. } | Catch::AllRef { .. })));
            }
            Operator::End => self.close(),
            Operator::Delegate { .. } => {
                // To a block that may lie outside of those that catch.
                self.close();
                self.throw();
            }
            Operator::Call { function_index } if !is_caught => self.call(*function_index),
            Operator::Throw { .. }
            | Operator::ThrowRef
            | Operator::Rethrow { .. }
            | Operator::CallIndirect { .. }
            | Operator::CallRef { .. }
                if !is_caught =>
            {
                self.throw();
            }
            // A tail call has left all blocks.
            Operator::ReturnCall { function_index } => self.call(*function_index),
            Operator::ReturnCallIndirect { .. } | Operator::ReturnCallRef { .. } => self.throw(),
            _ => {}
        }
    }

    fn open(&mut self, catches: bool) {
        self.blocks.push(catches);
        self.catching += usize::from(catches);
    }

    fn close(&mut self) {
        self.catching -= usize::from(self.blocks.pop().unwrap_or(false));
    }

    fn throw(&mut self) {
        if let Some(throws) = self.throws.last_mut() {
            *throws = true;
        }
    }

    fn call(&mut self, function: u32) {
        if let Some(calls) = self.calls.last_mut()
            && calls.last() != Some(&function)
        {
            calls.push(function);
        }
    }

    /// For every function whether it may throw. Imported ones may: other modules may serve them.
    pub(super) fn finish(self, imported: usize) -> Vec<bool> {
        let mut throws = vec![true; imported];
        throws.extend(&self.throws);
        let mut callers = vec![Vec::new(); throws.len()];
        for (index, calls) in self.calls.iter().enumerate() {
            calls.iter().for_each(|&callee| callers[callee as usize].push(imported + index));
        }
        let mut pending: Vec<usize> = (0..throws.len()).filter(|&function| throws[function]).collect();
        while let Some(function) = pending.pop() {
            for &caller in &callers[function] {
                if !std::mem::replace(&mut throws[caller], true) {
                    pending.push(caller);
                }
            }
        }
        throws
    }
}
