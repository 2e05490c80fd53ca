//! `wasi:random`. What may be insecure is as good as the rest.

use awsm_abi::types::ValType::{I32, I64};
use bytes::Bytes;

use crate::blocking;
use crate::component_trap::ComponentTrap;
use crate::host::Effect::Entropy;
use crate::host::canonical::canonical;
use crate::host::{Call, Flat, HostFunction, Stop};

const RANDOM: &str = "wasi:random/random@0.2";
const INSECURE: &str = "wasi:random/insecure@0.2";
const SEED: &str = "wasi:random/insecure-seed@0.2";
const RANDOM_3: &str = "wasi:random/random@0.3";
const INSECURE_3: &str = "wasi:random/insecure@0.3";

/// Bytes that are made at once; more are made beside the worker.
const STEP_BYTES: u64 = 32 << 10;
/// Bytes of one call.
const BYTES_MAX: u64 = 32 << 20;

/// The interfaces.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(RANDOM, "get-random-bytes", &[I32, I64, I32], &[I32], Entropy, bytes),
    canonical(RANDOM, "get-random-u64", &[I32], &[I64], Entropy, number),
    canonical(INSECURE, "get-insecure-random-bytes", &[I32, I64, I32], &[I32], Entropy, bytes),
    canonical(INSECURE, "get-insecure-random-u64", &[I32], &[I64], Entropy, number),
    canonical(SEED, "insecure-seed", &[I32, I32], &[], Entropy, seed),
    canonical(RANDOM_3, "get-random-bytes", &[I32, I64, I32], &[I32], Entropy, bytes),
    canonical(RANDOM_3, "get-random-u64", &[I32], &[I64], Entropy, number),
    canonical(INSECURE_3, "get-insecure-random-bytes", &[I32, I64, I32], &[I32], Entropy, bytes),
    canonical(INSECURE_3, "get-insecure-random-u64", &[I32], &[I64], Entropy, number),
    canonical("wasi:random/insecure-seed@0.3", "get-insecure-seed", &[I32, I32], &[], Entropy, seed),
];

/// `get-random-bytes(len) -> list<u8>`
fn bytes(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let length = call.args.u64(1);
    if length > BYTES_MAX {
        return Err(ComponentTrap::ResultTooLarge.into());
    }
    let entropy = call.context.ports.entropy()?;
    let make = move || {
        let mut bytes = vec![0; length as usize];
        entropy.fill(&mut bytes).map(|()| Bytes::from(bytes))
    };
    if length <= STEP_BYTES {
        return call.lower(2, make()?);
    }
    Err(call.wait(async move { blocking::run(make).await }, |call, bytes| call.lower(2, bytes?)))
}

fn make_number(call: &Call<'_>) -> Result<u64, Stop> {
    let mut bytes = [0; 8];
    call.context.ports.entropy()?.fill(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// `get-random-u64() -> u64`
fn number(call: &mut Call<'_>) -> Result<Flat, Stop> {
    make_number(call).map(Flat)
}

/// `insecure-seed() -> tuple<u64, u64>`: the same for as long as an invocation takes.
fn seed(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let seed = match &call.context.seed {
        Some(seed) => **seed,
        None => {
            let seed = (make_number(call)?, make_number(call)?);
            call.context.seed = Some(Box::new(seed));
            seed
        }
    };
    call.lower(1, seed)
}
