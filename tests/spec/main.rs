//! The specification suite: the official scripts and our own (`ours/*.wast`), each in a process of its own (`spec-runner`), in the modes that
//! continuous integration has time for, two of them with a part of the official scripts; `all.rs` has every mode with all scripts. Fails with a list of all
//! directives that did not do what they say; prints a table of what was run.
//!
//! `SPEC_FILTER=text,text` runs the scripts only whose name contains one of the texts; `SPEC_FAILURES=file` appends the failures to a file as
//! well; `TEST_MACHINE=aarch64` runs everything in an emulator, with modules compiled here (see `sledge_tests::machine`).
//! One script alone: `cargo run --release -p sledge-tests --bin spec-runner guard-O3 wasm-v2/i32.wast --text`.

mod cancellable;
mod component_messages;
mod components;
mod core_modules;
mod effects;
mod endless;
mod expected;
mod killed;
mod parts;
mod program;
mod reach;
mod references;
mod roots;
mod segment;
mod slots;
mod suite;
mod summary;
mod tail_calls;

use awsm::{Bounds, OptLevel};
use expected::Expected;
use sledge_tests::spec::{Mode, ours};
use std::sync::{Mutex, PoisonError};

/// For tests that no script can say: every bounds mode, each at the lowest and at the highest level, and between.
const MODES: &[(Bounds, OptLevel)] = &[
    (Bounds::Guard, OptLevel::O0),
    (Bounds::Guard, OptLevel::O2),
    (Bounds::Guard, OptLevel::O3),
    (Bounds::Segment, OptLevel::O0),
    (Bounds::Segment, OptLevel::O2),
    (Bounds::Segment, OptLevel::O3),
    (Bounds::Software, OptLevel::O0),
    (Bounds::Software, OptLevel::O2),
    (Bounds::Software, OptLevel::O3),
];

/// What users have by default.
#[test]
fn guard_o3() {
    run("guard-O3", &[""]);
}

/// What differs from that as far as anything can.
#[test]
fn software_o0() {
    run("software-O0", &[""]);
}

/// Only how memory is addressed is another code.
#[test]
fn segment_o2() {
    run("segment-O2", &["address", "align", "bulk", "data", "endianness", "load", "memory", "store"]);
}

/// Functions that take too long: tail calls, exceptions and traps with the quick pipeline and the fast allocator of registers.
#[test]
fn guard_given_up() {
    run("guard-O3-given-up", &["br_", "call", "return", "throw", "trap", "try", "unreachable", "unwind"]);
}

/// Scripts of components. Those of streams have large adapters, which take minutes to optimise: `make test-components` runs them in other modes.
#[test]
fn scripts_of_components() {
    let all = ours("components").expect("scripts");
    let small = all.iter().filter(|script| !script.name.contains("streams")).cloned().collect();
    for (mode, scripts) in [("guard-O3", small), ("software-O0", all)] {
        let mode = Mode::parse(mode).expect("a mode");
        let expected = Expected::parse("", mode, |_| true).expect("no list");
        suite::run(mode, scripts, expected).unwrap_or_else(|error| panic!("{mode}: {error:#}"));
    }
}

fn run(mode: &str, parts: &[&str]) {
    // One mode at a time: each uses all cores.
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let result = core_modules::run(mode, parts);
    drop(turn);
    if let Err(error) = result {
        panic!("{mode}: {error:#}");
    }
}
