//! `wasi:random`

use wasip2::random::{insecure, insecure_seed, random};

use crate::say;

pub(crate) fn all() {
    for length in [0, 1, 100, 70_000] {
        say(&format!("get-random-bytes {length}"), random::get_random_bytes(length).len());
        say(&format!("get-insecure-random-bytes {length}"), insecure::get_insecure_random_bytes(length).len());
    }
    say("get-random-bytes differ", random::get_random_bytes(32) != random::get_random_bytes(32));
    say("get-insecure-random-bytes differ", insecure::get_insecure_random_bytes(32) != insecure::get_insecure_random_bytes(32));
    say("get-random-u64 differ", random::get_random_u64() != random::get_random_u64());
    say("get-insecure-random-u64 differ", insecure::get_insecure_random_u64() != insecure::get_insecure_random_u64());
    say("insecure-seed is the same", insecure_seed::insecure_seed() == insecure_seed::insecure_seed());
}
