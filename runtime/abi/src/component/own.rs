//! Our own interfaces, as sdk/wit says them.

use super::Interface;
use super::wasi::{allocating, function};
use crate::types::ValType::{I32, I64};

/// `sledge:keyvalue/store@0.1`.
pub(super) const KEYVALUE: Interface = Interface {
    name: "sledge:keyvalue/store@0.1",
    functions: &[
        allocating("open", &[I32, I32, I32]),
        allocating("[method]bucket.get", &[I32, I32, I32, I32]),
        allocating("[method]bucket.set", &[I32, I32, I32, I32, I32, I32]),
        allocating("[method]bucket.delete", &[I32, I32, I32, I32]),
        allocating("[method]bucket.exists", &[I32, I32, I32, I32]),
        allocating("[method]bucket.list-keys", &[I32, I32, I32, I32, I32, I32, I32]),
        allocating("[method]bucket.increment", &[I32, I32, I32, I64, I32]),
        allocating("[method]bucket.compare-and-swap", &[I32, I32, I32, I64, I32, I32, I32]),
        allocating("[method]bucket.get-many", &[I32, I32, I32, I32]),
        allocating("[method]bucket.set-many", &[I32, I32, I32, I32]),
        allocating("[method]bucket.delete-many", &[I32, I32, I32, I32]),
        allocating("[method]bucket.commit", &[I32, I32, I32, I32, I32, I32]),
    ],
};

/// `sledge:call/functions@0.1`.
pub(super) const CALL: Interface = Interface {
    name: "sledge:call/functions@0.1",
    functions: &[
        allocating("invoke", &[I32, I32, I32, I32, I32]),
        function("start", &[I32, I32, I32, I32, I32], &[]),
        allocating("[method]pending.wait", &[I32, I32]),
        function("send", &[I32, I32, I32, I32, I32], &[]),
    ],
};

/// `sledge:http/exchange@0.1`.
pub(super) const HTTP: Interface = Interface {
    name: "sledge:http/exchange@0.1",
    functions: &[
        allocating("method", &[I32]),
        allocating("target", &[I32]),
        allocating("header", &[I32, I32, I32]),
        allocating("headers", &[I32]),
        allocating("trailer", &[I32, I32, I32]),
        function("status", &[I32, I32], &[]),
        function("set-header", &[I32, I32, I32, I32, I32], &[]),
        function("add-header", &[I32, I32, I32, I32, I32], &[]),
        function("set-trailer", &[I32, I32, I32, I32, I32], &[]),
        function("add-trailer", &[I32, I32, I32, I32, I32], &[]),
        function("stream", &[I32, I64, I32], &[]),
    ],
};

/// `sledge:note/notes@0.1`.
pub(super) const NOTE: Interface = Interface {
    name: "sledge:note/notes@0.1",
    functions: &[function("log", &[I32, I32, I32], &[]), function("phase", &[I32], &[])],
};
