//! Ways in which the mechanism could be wrong. Tests switch them on, one at a time, to see that the checker (`tests/histories.rs`) notices each; elsewhere none can be, and the compiler removes
//! the question.

/// A mistake that could have been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// A key that a transaction also writes is not expected to be as it was read.
    LostRead,
    /// To add to a number is to read it.
    AddIsRead,
    /// To ask for a sum is not to read the number.
    SumIsBlind,
    /// What a callee has written becomes its caller's, whatever others have changed meanwhile.
    AbsorbUnchecked,
    /// A failure is believed before it is known that what was read has ever been there.
    TrapUnvalidated,
    /// What is read under a lock is not expected to stay as it is.
    LocksDecide,
}

#[cfg(not(test))]
pub(super) const fn is(_: Mutant) -> bool {
    false
}

#[cfg(test)]
pub(super) fn is(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}

#[cfg(test)]
thread_local! {
    /// The one that is switched on for this thread.
    static ON: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Does something with that mutant switched on, or with none.
#[cfg(test)]
pub(super) fn with<T>(mutant: Option<Mutant>, work: impl FnOnce() -> T) -> T {
    /// As it was before, also after a panic.
    struct Before(Option<Mutant>);
    impl Drop for Before {
        fn drop(&mut self) {
            ON.set(self.0);
        }
    }
    let _before = Before(ON.replace(mutant));
    work()
}
