//! Every function that the host offers to components, and the resources that it makes.

use super::{Function, Interface};
use crate::types::ValType::{self, I32, I64};

/// The host's resources: interface and name. A resource's number is its place, from 1; it stands in artifacts, so new ones come last.
pub const RESOURCES: &[(&str, &str)] = &[
    ("wasi:io/error@0.2", "error"),
    ("wasi:io/poll@0.2", "pollable"),
    ("wasi:io/streams@0.2", "input-stream"),
    ("wasi:io/streams@0.2", "output-stream"),
    ("wasi:cli/terminal-input@0.2", "terminal-input"),
    ("wasi:cli/terminal-output@0.2", "terminal-output"),
    ("wasi:filesystem/types@0.2", "descriptor"),
    ("wasi:filesystem/types@0.2", "directory-entry-stream"),
    ("wasi:http/types@0.2", "fields"),
    ("wasi:http/types@0.2", "incoming-request"),
    ("wasi:http/types@0.2", "outgoing-request"),
    ("wasi:http/types@0.2", "request-options"),
    ("wasi:http/types@0.2", "response-outparam"),
    ("wasi:http/types@0.2", "incoming-response"),
    ("wasi:http/types@0.2", "incoming-body"),
    ("wasi:http/types@0.2", "future-trailers"),
    ("wasi:http/types@0.2", "outgoing-response"),
    ("wasi:http/types@0.2", "outgoing-body"),
    ("wasi:http/types@0.2", "future-incoming-response"),
    ("wasi:sockets/network@0.2", "network"),
    ("wasi:sockets/ip-name-lookup@0.2", "resolve-address-stream"),
    ("wasi:sockets/tcp@0.2", "tcp-socket"),
    ("wasi:sockets/udp@0.2", "udp-socket"),
    ("wasi:sockets/udp@0.2", "incoming-datagram-stream"),
    ("wasi:sockets/udp@0.2", "outgoing-datagram-stream"),
    ("wasi:keyvalue/store@0.2", "bucket"),
    ("wasi:keyvalue/atomics@0.2", "cas"),
];

/// A function whose result is flat, or in memory without lists.
const fn function(name: &'static str, params: &'static [ValType], results: &'static [ValType]) -> Function {
    Function { name, params, results, allocates: false }
}

/// A function whose result holds lists or strings. The last parameter is the address of the result.
const fn allocating(name: &'static str, params: &'static [ValType]) -> Function {
    Function { name, params, results: &[], allocates: true }
}

/// All interfaces.
pub const INTERFACES: &[Interface] = &[
    Interface { name: "wasi:cli/stdout@0.2", functions: &[function("get-stdout", &[], &[I32])] },
    Interface {
        name: "wasi:random/random@0.2",
        functions: &[allocating("get-random-bytes", &[I64, I32]), function("get-random-u64", &[], &[I64])],
    },
    Interface {
        name: "wasi:io/streams@0.2",
        functions: &[function("[method]output-stream.blocking-write-and-flush", &[I32, I32, I32, I32], &[])],
    },
];
