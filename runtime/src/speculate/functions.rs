//! What is known of versions of functions: of each a table by input, or by argument, which is bounded in bytes and entries. So code and configuration are a part of every key. Pure, without a clock or a lock.
//!
//! Where all of them have no room, the function that was not used for longest loses what it has not used for longest, one by one, and then goes itself.

use std::collections::HashMap;

use super::Of;
use super::bounded::{Bounded, Weigh};
use super::skips::Caution;
use crate::memo::key::Digest;

/// Entries of one function.
pub(super) const ENTRIES_MAX: usize = 1_000;
/// The part of all bytes that one function may have.
pub(super) const FUNCTION_PART: usize = 8;
/// Functions of which something is known.
pub(super) const FUNCTIONS_MAX: usize = 256;
/// Bytes of a function beside its name and its entries, about.
const FUNCTION_BYTES: usize = 512;

/// All of them: `V` is known of an input, and `M` of a function besides.
#[derive(Debug)]
pub(super) struct Functions<V, M> {
    of: HashMap<u64, Function<V, M>>,
    /// Counts uses.
    now: u64,
    bytes: usize,
    bytes_max: usize,
}

/// What is known of one.
#[derive(Debug)]
pub(super) struct Function<V, M> {
    pub(super) name: Box<str>,
    /// By the key of its input.
    pub(super) known: Bounded<Digest, V>,
    /// How far that stands for runs.
    pub(super) caution: Caution,
    pub(super) more: M,
    used: u64,
}

impl<V: Weigh, M> Function<V, M> {
    /// Bytes of it and of all that it has.
    pub(super) fn bytes(&self) -> usize {
        FUNCTION_BYTES + self.name.len() + self.known.bytes()
    }
}

impl<V: Weigh, M: Default> Functions<V, M> {
    /// None yet, and room for so many bytes.
    pub(super) fn new(bytes_max: usize) -> Functions<V, M> {
        Functions { of: HashMap::new(), now: 0, bytes: 0, bytes_max }
    }

    /// Bytes of all of them.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that all of them may have.
    pub(super) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// All of them by their versions, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&u64, &Function<V, M>)> {
        self.of.iter()
    }

    /// A version of a function. It is not used by that.
    pub(super) fn peek(&self, version: u64) -> Option<&Function<V, M>> {
        self.of.get(&version)
    }

    /// A version of a function, which is used now. What it has of memory must stay as it is.
    pub(super) fn get_mut(&mut self, version: u64) -> Option<&mut Function<V, M>> {
        let function = self.of.get_mut(&version)?;
        self.now += 1;
        function.used = self.now;
        Some(function)
    }

    /// Changes what is known of a version of a function, if something is. It may have no more then than before.
    pub(super) fn change(&mut self, version: u64, change: impl FnOnce(&mut Function<V, M>)) {
        if let Some(function) = self.of.get_mut(&version) {
            let before = function.bytes();
            change(function);
            self.bytes = self.bytes - before + function.bytes();
        }
    }

    /// Changes what is known of a version of a function, which is used now. Others make room for it, and then it makes room itself.
    pub(super) fn learn(&mut self, of: Of<'_>, change: impl FnOnce(&mut Function<V, M>)) {
        if !self.of.contains_key(&of.version) {
            if self.of.len() >= FUNCTIONS_MAX {
                self.drop_oldest();
            }
            let (known, caution) = (Bounded::new(self.bytes_max / FUNCTION_PART, ENTRIES_MAX), Caution::default());
            let function = Function { name: of.name.into(), known, caution, more: M::default(), used: 0 };
            self.bytes += function.bytes();
            self.of.insert(of.version, function);
        }
        self.get_mut(of.version);
        self.change(of.version, change);
        while self.bytes > self.bytes_max && self.evict() {}
    }

    /// Drops what is known of a version of a function.
    pub(super) fn forget(&mut self, version: u64) {
        if let Some(function) = self.of.remove(&version) {
            self.bytes -= function.bytes();
        }
    }

    /// Drops an entry of the function that was not used for longest, or the function where it has none; false where there is nothing.
    pub(super) fn evict(&mut self) -> bool {
        let Some(oldest) = self.of.values_mut().min_by_key(|function| function.used) else { return false };
        let before = oldest.bytes();
        if oldest.known.evict() {
            self.bytes = self.bytes - before + oldest.bytes();
        } else {
            self.drop_oldest();
        }
        true
    }

    fn drop_oldest(&mut self) {
        if let Some((version, _)) = self.of.iter().min_by_key(|(_, function)| function.used) {
            self.forget(*version);
        }
    }
}
