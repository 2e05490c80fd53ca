//! Ways in which the mechanism could be wrong. Tests switch them on, one at a time, to see that the checker (`tests/histories.rs`) notices each; elsewhere none can be, and the compiler removes
//! the question.

/// A mistake that could have been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
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
    /// A column of a pipeline that has read a key and writes it, too, is not squashed by a write before it.
    LostReadBit,
    /// A column that is opened again is taken for the one before.
    StaleEpoch,
    /// Columns are committed before their predecessors.
    OutOfOrder,
    /// A key is read from the farthest predecessor that knows it.
    ForwardedFromFarthest,
    /// What was read from a column is not expected to stay as it is when that is committed.
    RemapLost,
    /// The commit of a group expects nothing.
    GroupUnvalidated,
    /// Columns of a group have read a key at two versions.
    TwoVersions,
    /// What has read from a column that is given up goes on.
    GivenUpIsRead,
    /// What has read from a column that has failed then goes on.
    FailedIsRead,
    /// What has read from columns that the store has not committed goes on.
    RefusedIsRead,
    /// What the store has not committed is taken for committed.
    RefusedIsLeft,
    /// What a callee has written squashes nothing when it becomes its caller's.
    AbsorbIsSilent,
    /// A set of keys is not read by a list.
    ListIsNoRead,
    /// A sum that a commit under way makes is taken for the one that it will make.
    SumUnderWay,
    /// What was recalled is not compared with what predecessors have written.
    RecallUnchecked,
    /// What was recalled of the store is not expected when it is committed.
    RecallIsBlind,
    /// What was recalled goes on when a predecessor writes what it has read.
    RecallIsKept,
    /// What a callee that was begun ahead has read is not read by its caller.
    AdoptedReadLost,
    /// Where both have written a key, the caller's write stays.
    AdoptedUnder,
    /// It is adopted whatever its caller has written meanwhile.
    AdoptedUnchecked,
    /// It is adopted by a call with another argument.
    AdoptedOther,
    /// What it would have logged is logged before it is adopted; what a column would have, before that is committed.
    LoggedAhead,
    /// What a callee has written that its caller does not adopt becomes its caller's.
    RefusedStays,
    /// What a callee has read of the store is not compared with what the columns before its caller have written.
    AdoptedPastColumns,
    /// What a callee has read from a column that is gone is adopted.
    AdoptedOfGone,
    /// What a callee has read from a column does not depend on that any more when it is adopted.
    AdoptedOfNothing,
    /// What a known answer rests on is not read by the caller for which it stands for a run.
    KnownUnread,
    /// Where the caller has written a key, too, the caller's write stays.
    KnownUnder,
    /// A known answer stands for a run whatever the caller has written before.
    KnownUnchecked,
    /// The same of an answer to another argument.
    KnownOther,
    /// What a known answer rests on is read by the outermost caller, and not by those between.
    KnownCalleesLost,
    /// What the store is expected to have is not compared with what it has, where one key alone was read.
    ExpectedUnread,
    /// The table of answers says what a function has answered to another input.
    OtherEntry,
}

#[cfg(not(test))]
pub(crate) const fn is(_: Mutant) -> bool {
    false
}

#[cfg(test)]
pub(crate) fn is(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}

#[cfg(test)]
thread_local! {
    /// The one that is switched on for this thread.
    static ON: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Does something with that mutant switched on, or with none.
#[cfg(test)]
pub(crate) fn with<T>(mutant: Option<Mutant>, work: impl FnOnce() -> T) -> T {
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
