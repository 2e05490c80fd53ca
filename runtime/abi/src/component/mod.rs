//! Components: what generated glue and host functions have to agree on.
//!
//! A component becomes core modules and glue: generated core modules that hold what the canonical ABI keeps between calls, and the wrappers through
//! which a component's core code reaches the host. A wrapper is an instance of its own, so that the host sees by the calling instance alone what it
//! may touch: the wrapper's first memory is the component's, its second the state's, where handle tables are. Wherever a component's options name no
//! memory, the state's is the only one.
//!
//! ```text
//! component's core code --canonical ABI--> wrapper --(table, the same arguments)--> host function
//!                                             |  <- if it `allocates`: 1 where the reply needs memory of the component
//!                                             |--(RESUME: 0, then each address)--> host: size and alignment of the next block, then the end
//!                                             `--> the component's realloc, for each of them
//! ```
//!
//! The host writes nothing to the component's memory before it has all addresses and has checked them.

mod description;
mod http;
mod own;
mod store;
mod wasi;

pub use description::{Call, Description, Direction, Doing, Role, cut};
pub use wasi::{INTERFACES, RESOURCES};

use alloc::string::{String, ToString};

use crate::types::ValType::{self, I32, I64};

/// Module name of what wrappers import beside interfaces.
pub const CANONICAL: &str = "sledge:canonical";
/// Where a wrapper goes on with a call that answered that it needs memory: `resume(address) -> next`. The first address is 0; each later one is where
/// the component's realloc placed the block that was asked for. `next` is the size of the next block in its low half, its alignment in its high half; or
/// [`RESUME_DONE`], as where nothing needs memory.
pub const RESUME: &str = "resume";
/// All blocks are placed and written.
pub const RESUME_DONE: i64 = -1;
/// Ends the invocation as a trap of the component model: `trap(code, value)`, with a number of [`Violation`]. `value` is [`NO_VALUE`], or what was wrong, as
/// [`Violation::value`] says: then bit 32 is set.
pub const TRAP: &str = "trap";
/// There is no value to be told of.
pub const NO_VALUE: i64 = 0;
/// `requests()`: what answers HTTP requests as WASI 0.2 has it imports this, and never calls it. By that the host knows that handles of [`REQUEST`] and [`RESPONSE`] are good.
pub const REQUESTS: &str = "requests";
/// The representation of the HTTP request that is served, an `incoming-request`. Glue makes the handle itself: a call of the host costs as much as all else at a request's begin.
pub const REQUEST: u32 = 1;
/// The representation of where its response goes, a `response-outparam`.
pub const RESPONSE: u32 = 2;
/// `exit(result)`: how a command ended: zero for success, as a `result` is flat.
pub const EXIT: &str = "exit";

/// `wait() -> operation`: suspends the sandbox until an operation of the host can go on: its number, zero where none is under way, or [`WAIT_OWN`] where
/// something went on that the host does by itself.
pub const WAIT: &str = "wait";
/// `look() -> operation`: the same without waiting for one: zero where none can go on yet.
pub const LOOK: &str = "look";
/// What [`WAIT`] returns then.
pub const WAIT_OWN: u32 = 1;
/// `finish(operation) -> result`: goes on with an operation whose time has come. Its result is that of the function which began it, widened.
pub const FINISH: &str = "finish";
/// `cancel(operation)`: gives an operation up.
pub const CANCEL: &str = "cancel";
/// `switch(stack)`: the guest goes on on another of its stacks, until it switches to this one. It numbers them in the order in which it asks for them; 0 is the one on
/// which the invocation began. The next number starts a stack, with a call of [`STACK`].
pub const SWITCH: &str = "switch";
/// Export of what imports [`SWITCH`]: what is called on a stack that starts. It does not return.
pub const STACK: &str = "stack";
/// The most stacks of an invocation, the first included. The last of them is kept for what ends the invocation.
pub const STACKS_MAX: u32 = 65;
/// Offset in the state's memory of the operation that a call may become, an `i32`: its record's address, by which the host knows it. Where the call has to wait, the
/// host takes the number and leaves zero; then the call's result has no meaning. Where it is zero before the call, the sandbox is suspended.
pub const OPERATION: u64 = 12;

/// `copy(table, address, count, writes, number) -> packed`: copies values between the component's memory and a stream or future of which the host has the other end, as reading and
/// writing do in the component model: 0 where it goes on, 1 where the host's end was dropped, and how many values from bit 4 on. It may become an operation.
pub const COPY: &str = "copy";
/// `exchange(table, address, count, writes, number) -> packed`: the same of values that hold strings, lists or handles. What the component reads may need memory of it
/// ([`RESUME`]) if at least one was copied.
pub const EXCHANGE: &str = "exchange";
/// `close(number)`: the component has dropped its end.
pub const CLOSE: &str = "close";

/// `served(table) -> handle`: the HTTP request that is being served, as a `request` of WASI 0.3.
pub const SERVED: &str = "served";
/// `respond(table, ...)`: its response, a `result<response, error-code>` of WASI 0.3 as it is flat.
pub const RESPOND: &str = "respond";
/// `unfinished() -> is_unfinished`: whether a response, or what the host passes on by itself, is still on its way when the function has returned.
pub const UNFINISHED: &str = "unfinished";

/// Signatures of the functions of [`CANONICAL`].
pub const CANONICAL_FUNCTIONS: &[crate::imports::Function] = &[
    crate::imports::Function { name: RESUME, params: &[I32], results: &[I64] },
    crate::imports::Function { name: TRAP, params: &[I32, I64], results: &[] },
    crate::imports::Function { name: REQUESTS, params: &[], results: &[] },
    crate::imports::Function { name: DROP, params: &[I32], results: &[] },
    crate::imports::Function { name: EXIT, params: &[I32], results: &[] },
    crate::imports::Function { name: WAIT, params: &[], results: &[I32] },
    crate::imports::Function { name: LOOK, params: &[], results: &[I32] },
    crate::imports::Function { name: FINISH, params: &[I32], results: &[I64] },
    crate::imports::Function { name: CANCEL, params: &[I32], results: &[] },
    crate::imports::Function { name: SWITCH, params: &[I32], results: &[] },
    crate::imports::Function { name: COPY, params: &[I32, I32, I32, I32, I32], results: &[I32] },
    crate::imports::Function { name: EXCHANGE, params: &[I32, I32, I32, I32, I32], results: &[I32] },
    crate::imports::Function { name: CLOSE, params: &[I32], results: &[] },
    crate::imports::Function { name: SERVED, params: &[I32], results: &[I32] },
    crate::imports::Function { name: RESPOND, params: &[I32, I32, I32, I32, I64, I32, I32, I32, I32], results: &[] },
    crate::imports::Function { name: UNFINISHED, params: &[], results: &[I32] },
];

/// A `result<response, error-code>` of WASI 0.3 as it is flat: what [`RESPOND`] takes behind the handle table.
#[must_use]
pub const fn response_params() -> &'static [ValType] {
    &[I32, I32, I32, I64, I32, I32, I32, I32]
}

/// `drop(representation)`: an owned handle of a resource of the host was dropped.
pub const DROP: &str = "drop";

/// How a component encodes its strings: the lowest bits of the handle table's address, as host functions get it.
pub mod strings {
    /// These bits. The addresses of [tables](super::table) have none of them.
    pub const MASK: u32 = 3;
    /// UTF-8.
    pub const UTF8: u32 = 0;
    /// UTF-16, little-endian. A length counts units.
    pub const UTF16: u32 = 1;
    /// Latin-1; or UTF-16, if the length has [`UTF16_TAG`].
    pub const LATIN1_OR_UTF16: u32 = 2;
    /// The bit of a length of [`LATIN1_OR_UTF16`] which says that the rest counts units of UTF-16.
    pub const UTF16_TAG: u32 = 1 << 31;
}

/// An interface that the host offers to components.
#[derive(Debug)]
pub struct Interface {
    /// Its name with its track: what [`track`] makes of the name in a component.
    pub name: &'static str,
    /// Its functions.
    pub functions: &'static [Function],
}

/// A function that the host offers to components.
#[derive(Debug)]
pub struct Function {
    /// Its name, as in a component: `get-stdout`, `[method]output-stream.write`.
    pub name: &'static str,
    /// Core types of its parameters as the canonical ABI lowers them, the address of the result included where there is one.
    pub params: &'static [ValType],
    /// Core types of its results.
    pub results: &'static [ValType],
    /// Whether its result holds a list or string. The host function's result is then whether memory is needed ([`RESUME`]); what is lowered has none.
    pub allocates: bool,
    /// The streams and futures among its parameters. The host function gets the numbers by which the host knows them ([`COPY`]).
    pub takes: &'static [Taken],
    /// Those that its result holds. The host function has no result then: behind its parameters it gets their numbers.
    pub ends: &'static [End],
    /// Whether its result holds something else beside them, which the host function writes; otherwise it does not get the address.
    pub holds_more: bool,
}

/// A stream or future, as far as the host and glue depend on what it carries. A component that declares another one is refused: what the host writes to its buffer,
/// and whether that is a handle, is known here only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether it is a future.
    pub is_future: bool,
    /// Size of a value.
    pub size: u32,
    /// Its alignment.
    pub align: u32,
    /// Whether a value holds strings, lists or handles: it goes through [`EXCHANGE`].
    pub is_value: bool,
}

/// A stream or future among the parameters of a function of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Which of the flat parameters.
    pub at: usize,
    /// Whether the parameter before says if there is one.
    pub is_optional: bool,
    /// What it is.
    pub end: End,
}

impl Function {
    /// How many of its flat parameters the host function gets: not the address of a result that is nothing but streams and futures.
    #[must_use]
    pub const fn given(&self) -> usize {
        self.params.len() - (self.ends.len() > 1 && !self.holds_more) as usize
    }
}

/// A handle table in the state's memory: what a component instance's handles stand for. Handles begin at 1.
pub mod table {
    /// Offset of the first free handle, an `i32`; zero for none.
    pub const FREE: u64 = 0;
    /// Offset of the number of entries that were ever used, the one of handle 0 included, an `i32`.
    pub const LENGTH: u64 = 4;
    /// Offset of the number of entries for which there is room, an `i32`.
    pub const CAPACITY: u64 = 8;
    /// Offset of the entries' address, an `i32`.
    pub const ENTRIES: u64 = 12;
    /// Size of a table's head.
    pub const BYTES: u64 = 16;
    /// How many more handles there is room for whenever the host is called: it makes no more in one call.
    pub const ROOM: u32 = 64;
    /// The most handles of one table.
    pub const HANDLES_MAX: u32 = 1 << 20;

    /// An entry.
    pub mod entry {
        /// Offset of the resource type's number, an `i32`; zero for an entry that is free.
        pub const TYPE: u64 = 0;
        /// Offset of what the handle stands for, an `i32`: a representation. Of a free entry, the next free handle.
        pub const REPRESENTATION: u64 = 4;
        /// Offset of how often it is lent to calls that have not returned, an `i32`.
        pub const LENDS: u64 = 8;
        /// Offset of what it is, an `i32`: [`OWN`], or the number of the call to which it is lent.
        pub const KIND: u64 = 12;
        /// Size of an entry.
        pub const BYTES: u64 = 16;
        /// An owned handle.
        pub const OWN: u32 = 0;
    }
}

/// The first number of resource types that components define. Below stand the host's: [`RESOURCES`], numbered from 1 in their order.
pub const OWN_RESOURCES_START: u32 = 1024;

/// What a component did that the component model forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Violation {
    /// It calls out while that is not allowed: in `realloc`, or in `post-return`.
    MayNotLeave = 1,
    /// It passes a handle that its instance does not have.
    UnknownHandle,
    /// It passes a handle of another resource.
    HandleType,
    /// It gives away or drops what is lent.
    Lent,
    /// It gives away what it has borrowed.
    NotOwned,
    /// It returns without having dropped what it borrowed.
    BorrowsRemain,
    /// It has as many handles as an instance may.
    HandlesExhausted,
    /// An instance is entered while a call of it waits.
    Reentered,
    /// A `char` is none.
    InvalidChar,
    /// A string lies outside of its memory, or is too long.
    StringOutOfBounds,
    /// A list lies outside of its memory, or is too long.
    ListOutOfBounds,
    /// A variant has no such case.
    InvalidDiscriminant,
    /// A pointer is not aligned as its type demands.
    UnalignedPointer,
    /// An exception leaves a component.
    UncaughtException,
    /// A string is not valid UTF-8.
    InvalidUtf8,
    /// A string is not valid UTF-16.
    InvalidUtf16,
    /// Anything else that an adapter of the compiler found.
    Adapter,
    /// It calls a built-in function that is not supported, or a function that the host does not offer.
    Unsupported,
    /// It waits in a call of a function whose type is not async.
    MayNotBlock,
    /// It waits for what cannot happen any more.
    Deadlock,
    /// An asynchronous function ends without having returned.
    NotReturned,
    /// It returns what is not the function's result, or with other options than the function has.
    InvalidReturn,
    /// A callback returns a code that does not exist.
    CallbackCode,
    /// It drops a waitable set that has members, or for which a task waits.
    SetInUse,
    /// It drops a subtask whose end it has not learnt.
    SubtaskUnresolved,
    /// It uses a waitable in a call that waits, while a waitable set has it.
    InWaitableSet,
    /// It drops the writable end of a future that was not written.
    FutureUnwritten,
    /// Backpressure is counted beyond its limits.
    Backpressure,
    /// It says that it is cancelled without having been told to.
    NotCancelled,
    /// It gives up a copy where none is under way.
    NothingToCancel,
    /// An instance reads what it has written itself, of a type for which that is not defined.
    SameInstance,
    /// It uses an end of a stream or future, or a waitable, for which something waits already.
    Concurrent,
    /// It drops an end of a stream or future that copies.
    DropBusy,
    /// It gives away an end of a stream or future that copies.
    LiftBusy,
    /// It reads from a stream whose writable end it knows to be dropped.
    StreamReadAfterDrop,
    /// It writes to a stream whose readable end it knows to be dropped.
    StreamWriteAfterDrop,
    /// It reads from a future that it has read.
    FutureReadTwice,
    /// It writes to a future that it has written, or whose readable end it knows to be dropped.
    FutureWriteTwice,
    /// It gives away a future that it has read.
    LiftReadFuture,
    /// It gives away a stream whose writable end it knows to be dropped.
    LiftDroppedStream,
    /// It gives away an end of a stream or future that a waitable set has.
    LiftFromWaitableSet,
    /// It cancels a subtask that is over, or that it has cancelled.
    CancelledTwice,
    /// It copies more values at once than may be.
    CopyTooLarge,
    /// More of its calls wait at once than there may be stacks.
    StacksExhausted,
    /// The place of parameters or of a result that it names does not lie in its memory.
    PointerOutOfBounds,
    /// A task returns that has returned, or was cancelled.
    ReturnedTwice,
    /// It calls `task.return` where no function runs that is lifted as async.
    NothingToReturn,
}

impl Violation {
    /// All of them.
    pub const ALL: [Violation; 47] = [
        Violation::MayNotLeave,
        Violation::UnknownHandle,
        Violation::HandleType,
        Violation::Lent,
        Violation::NotOwned,
        Violation::BorrowsRemain,
        Violation::HandlesExhausted,
        Violation::Reentered,
        Violation::InvalidChar,
        Violation::StringOutOfBounds,
        Violation::ListOutOfBounds,
        Violation::InvalidDiscriminant,
        Violation::UnalignedPointer,
        Violation::UncaughtException,
        Violation::InvalidUtf8,
        Violation::InvalidUtf16,
        Violation::Adapter,
        Violation::Unsupported,
        Violation::MayNotBlock,
        Violation::Deadlock,
        Violation::NotReturned,
        Violation::InvalidReturn,
        Violation::CallbackCode,
        Violation::SetInUse,
        Violation::SubtaskUnresolved,
        Violation::InWaitableSet,
        Violation::FutureUnwritten,
        Violation::Backpressure,
        Violation::NotCancelled,
        Violation::NothingToCancel,
        Violation::SameInstance,
        Violation::Concurrent,
        Violation::DropBusy,
        Violation::LiftBusy,
        Violation::StreamReadAfterDrop,
        Violation::StreamWriteAfterDrop,
        Violation::FutureReadTwice,
        Violation::FutureWriteTwice,
        Violation::LiftReadFuture,
        Violation::LiftDroppedStream,
        Violation::LiftFromWaitableSet,
        Violation::CancelledTwice,
        Violation::CopyTooLarge,
        Violation::StacksExhausted,
        Violation::PointerOutOfBounds,
        Violation::ReturnedTwice,
        Violation::NothingToReturn,
    ];

    /// The one of that number.
    #[must_use]
    pub fn of(number: u32) -> Option<Violation> {
        Violation::ALL.into_iter().find(|violation| *violation as u32 == number)
    }

    /// The value with which [`TRAP`] is called, if there is one: of a string the number of the first byte that is wrong, of a handle the handle.
    #[must_use]
    pub const fn value(passed: u64) -> Option<u32> {
        if passed >> 32 == 1 { Some(passed as u32) } else { None }
    }

    /// Whether it is a value that is wrong, and not a call.
    #[must_use]
    pub const fn is_of_value(self) -> bool {
        matches!(
            self,
            Violation::UnknownHandle
                | Violation::HandleType
                | Violation::Lent
                | Violation::NotOwned
                | Violation::InvalidChar
                | Violation::StringOutOfBounds
                | Violation::ListOutOfBounds
                | Violation::InvalidDiscriminant
                | Violation::UnalignedPointer
                | Violation::InvalidUtf8
                | Violation::InvalidUtf16
                | Violation::PointerOutOfBounds
        )
    }

    /// What a person is told.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Violation::MayNotLeave => "cannot leave component instance",
            Violation::UnknownHandle => "unknown handle index",
            Violation::HandleType => "handle index used with the wrong type",
            Violation::Lent => "cannot remove owned resource while borrowed",
            Violation::NotOwned => "cannot lift own resource from a borrow",
            Violation::BorrowsRemain => "borrow handles still remain at the end of the call",
            Violation::HandlesExhausted => "resource table has no free keys",
            Violation::Reentered => "cannot enter component instance",
            Violation::InvalidChar => "invalid `char` bit pattern",
            Violation::StringOutOfBounds => "string content out-of-bounds",
            Violation::ListOutOfBounds => "list content out-of-bounds",
            Violation::InvalidDiscriminant => "invalid variant discriminant",
            Violation::UnalignedPointer => "unaligned pointer",
            Violation::UncaughtException => "uncaught exception propagated out of component",
            Violation::InvalidUtf8 => "invalid utf8 encoding",
            Violation::InvalidUtf16 => "invalid utf16 encoding",
            Violation::Adapter => "a value cannot be passed between components",
            Violation::Unsupported => "a function that is not supported is called",
            Violation::MayNotBlock => "a function whose type is not async waits in a call",
            Violation::Deadlock => "deadlock: no task can go on, and nothing else is waited for",
            Violation::NotReturned => "an async function ended without `task.return`",
            Violation::InvalidReturn => "`task.return` with another type or other options than those of the task",
            Violation::CallbackCode => "a callback returned a code that does not exist",
            Violation::SetInUse => "waitable set dropped that has members or waiters",
            Violation::SubtaskUnresolved => "subtask dropped before its end was learnt",
            Violation::InWaitableSet => "waitable used in a call that waits, while a waitable set has it",
            Violation::FutureUnwritten => "writable end of a future dropped before it was written",
            Violation::Backpressure => "backpressure counted beyond its limits",
            Violation::NotCancelled => "`task.cancel` by a task that was not told to cancel",
            Violation::NothingToCancel => "copy cancelled where none is under way",
            Violation::SameInstance => "stream or future of this type read and written by one instance",
            Violation::Concurrent => "second operation on a waitable, stream or future while one is under way",
            Violation::DropBusy => "end of a stream or future dropped while it copies",
            Violation::LiftBusy => "end of a stream or future passed on while it copies",
            Violation::StreamReadAfterDrop => "stream read after its writable end is known to be dropped",
            Violation::StreamWriteAfterDrop => "stream written after its readable end is known to be dropped",
            Violation::FutureReadTwice => "future read twice",
            Violation::FutureWriteTwice => "future written twice, or after its readable end is known to be dropped",
            Violation::LiftReadFuture => "future passed on after it was read",
            Violation::LiftDroppedStream => "stream passed on after its writable end is known to be dropped",
            Violation::LiftFromWaitableSet => "stream or future passed on while a waitable set has it",
            Violation::CancelledTwice => "subtask cancelled twice, or after its end was learnt",
            Violation::CopyTooLarge => "copy of more values than may be copied at once",
            Violation::StacksExhausted => "too many calls wait at once",
            Violation::PointerOutOfBounds => "pointer out of bounds of memory",
            Violation::ReturnedTwice => "`task.return` by a task that has returned or was cancelled before",
            Violation::NothingToReturn => "`task.return` where no function runs that is lifted as async",
        }
    }
}

/// The interface's name with the versions that are compatible with each other written alike: `wasi:io/streams@0.2.9` is `wasi:io/streams@0.2`,
/// `a:b/c@1.4.2` is `a:b/c@1`. A pre-release is compatible with nothing else.
#[must_use]
pub fn track(name: &str) -> String {
    let Some((interface, version)) = name.rsplit_once('@') else { return name.to_string() };
    if version.contains('-') {
        return name.to_string();
    }
    let mut parts = version.split('.');
    let kept = match (parts.next(), parts.next(), parts.next()) {
        (Some("0"), Some("0"), Some(_)) => return name.to_string(),
        (Some("0"), Some(minor), _) => alloc::format!("0.{minor}"),
        (Some(major), ..) => major.to_string(),
        (None, ..) => return name.to_string(),
    };
    alloc::format!("{interface}@{kept}")
}

/// The release of WASI of which an interface is a candidate, if the host offers interfaces of that release: `0.3.0` of
/// `wasi:http/types@0.3.0-rc-2025-09-16`. Drafts that are offered under their own names are no candidates.
#[must_use]
pub fn candidate(name: &str) -> Option<&str> {
    let (interface, version) = name.rsplit_once('@')?;
    let (release, _) = version.split_once('-')?;
    let (package, _) = interface.split_once('/')?;
    // `wasi:http@0.3`
    let released = track(&alloc::format!("{package}@{release}"));
    let is_of_release = |offered: &Interface| {
        let parts = offered.name.split_once('/').zip(offered.name.rsplit_once('@'));
        parts.is_some_and(|((package, _), (_, track))| {
            released.strip_prefix(package).and_then(|rest| rest.strip_prefix('@')) == Some(track)
        })
    };
    let is_offered = INTERFACES.iter().any(|offered| offered.name == name);
    (!is_offered && INTERFACES.iter().any(is_of_release)).then_some(release)
}

/// The function of that interface, given with its track.
#[must_use]
pub fn function(interface: &str, name: &str) -> Option<&'static Function> {
    let interface = INTERFACES.iter().find(|offered| offered.name == interface)?;
    interface.functions.iter().find(|function| function.name == name)
}

/// The number of the host's resource of that interface, given with its track.
#[must_use]
pub fn resource(interface: &str, name: &str) -> Option<u32> {
    let position = RESOURCES.iter().position(|&(module, resource)| (module, resource) == (interface, name))?;
    u32::try_from(position + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_those_of_releases_that_are_offered() {
        for (name, wanted) in [
            ("wasi:http/types@0.3.0-rc-2025-09-16", Some("0.3.0")),
            ("wasi:http/handler@0.3.0-rc-2026-01-06", Some("0.3.0")),
            ("wasi:cli/run@0.2.0-rc-2023-12-05", Some("0.2.0")),
            ("wasi:http/types@0.3.0", None),
            ("wasi:http/types@0.4.0-rc-1", None),
            ("wasi:keyvalue/store@0.2.0-draft", None),
            ("wasi:keyvalue/store@0.2.0-draft3", None),
            ("wasi:config/store@0.2.0-rc.1", None),
            ("wasi:nn/tensor@0.2.0-rc-2024-10-28", None),
            ("a:b/c@0.2.0-rc", None),
            ("wasi:http", None),
            ("@-", None),
        ] {
            assert_eq!(candidate(name), wanted, "{name}");
        }
    }

    #[test]
    fn compatible_versions_have_one_name() {
        for (name, wanted) in [
            ("wasi:io/streams@0.2.9", "wasi:io/streams@0.2"),
            ("wasi:io/streams@0.2.12", "wasi:io/streams@0.2"),
            ("a:b/c@1.4.2", "a:b/c@1"),
            ("a:b/c@0.0.3", "a:b/c@0.0.3"),
            ("wasi:http/handler@0.3.0-rc-2026-01-06", "wasi:http/handler@0.3.0-rc-2026-01-06"),
            ("a:b/c", "a:b/c"),
        ] {
            assert_eq!(track(name), wanted);
        }
    }
}
