//! Names of requests, by which operators find them in logs.

use std::fmt::{self, Display};

/// The name of a request, in `x-amzn-RequestId`: 128 bits of the caller's, written as a UUID is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub u128);

impl Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = |shift: u32, digits: u32| (self.0 >> shift) & ((1 << (digits * 4)) - 1);
        let (one, two, three, four, five) = (group(96, 8), group(80, 4), group(64, 4), group(48, 4), group(0, 12));
        write!(f, "{one:08x}-{two:04x}-{three:04x}-{four:04x}-{five:012x}")
    }
}
