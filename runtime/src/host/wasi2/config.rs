//! `wasi:config`: the function's environment, as its configuration says it. The drafts differ in nothing but their names.

use awsm_abi::types::ValType::I32;

use crate::host::Effect::Safe;
use crate::host::canonical::{Lower, Lowering, Place, canonical};
use crate::host::{Call, Flat, HostFunction, Stop};

const RC1: &str = "wasi:config/store@0.2.0-rc.1";
const DRAFT: &str = "wasi:config/store@0.2.0-draft";
const DRAFT_2024: &str = "wasi:config/store@0.2.0-draft-2024-09-27";
const RUNTIME: &str = "wasi:config/runtime@0.2.0-draft";
/// The longest key that is looked for.
const KEY_BYTES_MAX: u64 = 1 << 10;

/// The interfaces.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(RC1, "get", &[I32, I32, I32, I32], &[I32], Safe, get),
    canonical(RC1, "get-all", &[I32, I32], &[I32], Safe, get_all),
    canonical(DRAFT, "get", &[I32, I32, I32, I32], &[I32], Safe, get),
    canonical(DRAFT, "get-all", &[I32, I32], &[I32], Safe, get_all),
    canonical(DRAFT_2024, "get", &[I32, I32, I32, I32], &[I32], Safe, get),
    canonical(DRAFT_2024, "get-all", &[I32, I32], &[I32], Safe, get_all),
    canonical(RUNTIME, "get", &[I32, I32, I32, I32], &[I32], Safe, get),
    canonical(RUNTIME, "get-all", &[I32, I32], &[I32], Safe, get_all),
];

/// An `error`: `upstream(string)` or `io(string)`. Neither happens: the values are in memory.
enum Error {}

impl Lower for Error {
    const SIZE: u32 = 12;
    const ALIGN: u32 = 4;

    fn lower(self, _: &mut Lowering, _: Place) -> Result<(), Stop> {
        match self {}
    }
}

/// `get(key: string) -> result<option<string>, error>`
fn get(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let value = call.text_within(1, KEY_BYTES_MAX)?.and_then(|key| call.context.ports.env().variable(&key));
    call.lower(3, Ok::<_, Error>(value))
}

/// `get-all() -> result<list<tuple<string, string>>, error>`
fn get_all(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let variables: Vec<_> = call.context.ports.env().variables().collect();
    call.lower(1, Ok::<_, Error>(variables))
}
