//! Fuzzing, the part of it that continuous integration runs: the same seeds every time. `make fuzz MINUTES=n` tries others.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

/// How many seeds are modules. The run prints how often it executed what.
const MODULES: u32 = 120;

/// How many are components that pass values on, or stream them, lie, or are damaged. A damaged one is 25.
const COMPONENTS: u32 = 60;
const STREAMS: u32 = 40;
const HOSTILE: u32 = 40;
const DAMAGED: u32 = 3;

/// The first of them.
const FIRST: u32 = 1;

/// For the whole batch; it takes a fraction of this.
const TIME_MAX: Duration = Duration::from_secs(600);

#[test]
fn fixed_seeds_behave_as_in_the_reference() {
    fuzz("modules", MODULES);
}

#[test]
fn components_get_back_what_they_send() {
    fuzz("components", COMPONENTS);
}

#[test]
fn components_read_what_others_write() {
    fuzz("streams", STREAMS);
}

#[test]
fn components_that_lie_end_in_traps_and_leave_nothing() {
    fuzz("hostile", HOSTILE);
}

#[test]
fn damaged_components_are_refused_or_compiled() {
    fuzz("damaged", DAMAGED);
}

fn fuzz(kind: &str, seeds: u32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuzz"));
    command.args(["--kind", kind, "--from", &FIRST.to_string(), "--seeds", &seeds.to_string()]);
    let done = sledge_tests::process::run(&mut command, b"", TIME_MAX);
    // Not through `print!`: what a passing test prints that way is not shown.
    std::io::stdout().lock().write_all(&done.stdout).unwrap();
    assert_eq!(done.code(), 0, "{}\n{}", done.text(), done.stderr);
}
