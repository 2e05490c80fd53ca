//! Exceptions, as generated code makes and reads them.
//!
//! A reference to an exception is its address. It lies in memory of the sandbox that is never larger than the runtime says, aligned to 16:
//!
//! ```text
//!   0  tag       u32: the number of its tag in the sandbox
//!   4  slots     u32: number of values
//!   8  offset    u32: where in its WebAssembly module it was thrown
//!  12  instance  u32: by which instance
//!  16  values    as slots (crate::calls)
//! ```
//!
//! `throw` takes the bytes from `next` of the record, up to `end`; where they do not suffice, it asks for room first
//! ([`EXCEPTION_ROOM`](crate::calls::builtin::EXCEPTION_ROOM)). Nothing frees an exception: asked for room, the runtime looks which ones can still be
//! reached. An address may stand anywhere in the sandbox, in registers and on the stack too, as long as it points into the exception.

use crate::calls::SLOT_BYTES;

/// Within the record: address of the first free byte, u64.
pub const RECORD_NEXT: u32 = 0;
/// Within the record: address behind the last free byte, u64.
pub const RECORD_END: u32 = 8;

/// Offset of the tag's number.
pub const TAG: u32 = 0;
/// Offset of the number of values.
pub const SLOTS: u32 = 4;
/// Offset of the place of the throw.
pub const OFFSET: u32 = 8;
/// Offset of the throwing instance's index.
pub const INSTANCE: u32 = 12;
/// Offset of the values.
pub const VALUES: u32 = 16;

/// Size of an exception with that many values.
#[must_use]
pub const fn bytes(slots: u32) -> u32 {
    VALUES + slots * SLOT_BYTES
}
