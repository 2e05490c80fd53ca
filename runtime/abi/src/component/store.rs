//! `wasi:keyvalue` and `wasi:config` in the drafts that tools and other servers have, and what Spin offers in their place.
//!
//! Drafts are compatible with nothing: each has its own name. wasmtime has `draft` of the first and `rc.1` of the second, Spin has `draft2` and
//! `draft-2024-09-27`, wasmCloud has `runtime` of the second. What Spin offers has one form for WASI 0.2 and one for 0.3, whose functions are async.

use super::wasi::{allocating, ending};
use super::{End, Function, Interface};
use crate::types::ValType::{I32, I64};

/// `bucket` with the parameters of its `list-keys`. Every error may be a string.
const fn store(list_keys: &'static [crate::types::ValType]) -> [Function; 6] {
    [
        allocating("open", &[I32, I32, I32]),
        allocating("[method]bucket.get", &[I32, I32, I32, I32]),
        allocating("[method]bucket.set", &[I32, I32, I32, I32, I32, I32]),
        allocating("[method]bucket.delete", &[I32, I32, I32, I32]),
        allocating("[method]bucket.exists", &[I32, I32, I32, I32]),
        allocating("[method]bucket.list-keys", list_keys),
    ]
}

const INCREMENT: Function = allocating("increment", &[I32, I32, I32, I64, I32]);

const BATCH: [Function; 3] = [
    allocating("get-many", &[I32, I32, I32, I32]),
    allocating("set-many", &[I32, I32, I32, I32]),
    allocating("delete-many", &[I32, I32, I32, I32]),
];

const CONFIG: [Function; 2] = [allocating("get", &[I32, I32, I32]), allocating("get-all", &[I32])];

/// `wasi:keyvalue/store@0.2.0-draft`.
pub(super) const STORE: Interface =
    Interface { name: "wasi:keyvalue/store@0.2.0-draft", functions: &store(&[I32, I32, I64, I32]) };

/// `wasi:keyvalue/store@0.2.0-draft2`.
pub(super) const STORE2: Interface =
    Interface { name: "wasi:keyvalue/store@0.2.0-draft2", functions: &store(&[I32, I32, I32, I32, I32]) };

/// `wasi:keyvalue/atomics@0.2.0-draft`.
pub(super) const ATOMICS: Interface = Interface { name: "wasi:keyvalue/atomics@0.2.0-draft", functions: &[INCREMENT] };

/// `wasi:keyvalue/atomics@0.2.0-draft2`.
pub(super) const ATOMICS2: Interface = Interface {
    name: "wasi:keyvalue/atomics@0.2.0-draft2",
    functions: &[
        allocating("[static]cas.new", &[I32, I32, I32, I32]),
        allocating("[method]cas.current", &[I32, I32]),
        INCREMENT,
        allocating("swap", &[I32, I32, I32, I32]),
    ],
};

/// `wasi:keyvalue/batch@0.2.0-draft`.
pub(super) const BATCH1: Interface = Interface { name: "wasi:keyvalue/batch@0.2.0-draft", functions: &BATCH };

/// `wasi:keyvalue/batch@0.2.0-draft2`.
pub(super) const BATCH2: Interface = Interface { name: "wasi:keyvalue/batch@0.2.0-draft2", functions: &BATCH };

/// `wasi:config`, whose drafts differ in nothing but their names.
pub(super) const CONFIG_RC1: Interface = Interface { name: "wasi:config/store@0.2.0-rc.1", functions: &CONFIG };
/// The same.
pub(super) const CONFIG_DRAFT: Interface = Interface { name: "wasi:config/store@0.2.0-draft", functions: &CONFIG };
/// The same.
pub(super) const CONFIG_2024: Interface = Interface { name: "wasi:config/store@0.2.0-draft-2024-09-27", functions: &CONFIG };
/// The same.
pub(super) const CONFIG_RUNTIME: Interface = Interface { name: "wasi:config/runtime@0.2.0-draft", functions: &CONFIG };

/// `fermyon:spin/key-value@2`.
pub(super) const SPIN_KEY_VALUE: Interface = Interface {
    name: "fermyon:spin/key-value@2",
    functions: &[
        allocating("[static]store.open", &[I32, I32, I32]),
        allocating("[method]store.get", &[I32, I32, I32, I32]),
        allocating("[method]store.set", &[I32, I32, I32, I32, I32, I32]),
        allocating("[method]store.delete", &[I32, I32, I32, I32]),
        allocating("[method]store.exists", &[I32, I32, I32, I32]),
        allocating("[method]store.get-keys", &[I32, I32]),
    ],
};

/// `fermyon:spin/variables@2`.
pub(super) const SPIN_VARIABLES: Interface =
    Interface { name: "fermyon:spin/variables@2", functions: &[allocating("get", &[I32, I32, I32])] };

/// A stream of keys.
const KEYS: End = End { is_future: false, size: 8, align: 4, is_value: true };
/// A future of how it ended.
const KEYS_OUTCOME: End = End { is_future: true, size: 16, align: 4, is_value: true };

/// `spin:key-value/key-value@3`.
pub(super) const SPIN3_KEY_VALUE: Interface = Interface {
    name: "spin:key-value/key-value@3",
    functions: &[
        allocating("[static]store.open", &[I32, I32, I32]),
        allocating("[method]store.get", &[I32, I32, I32, I32]),
        allocating("[method]store.set", &[I32, I32, I32, I32, I32, I32]),
        allocating("[method]store.delete", &[I32, I32, I32, I32]),
        allocating("[method]store.exists", &[I32, I32, I32, I32]),
        ending("[method]store.get-keys", &[I32, I32], &[], &[], &[KEYS, KEYS_OUTCOME]),
    ],
};

/// `spin:variables/variables@3`.
pub(super) const SPIN3_VARIABLES: Interface =
    Interface { name: "spin:variables/variables@3", functions: &[allocating("get", &[I32, I32, I32])] };
