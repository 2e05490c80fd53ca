//! Differential fuzzing, the part of it that continuous integration runs: the same seeds every time. `make fuzz MINUTES=n` tries others.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

/// How many seeds. The run prints how often it executed what.
const SEEDS: u32 = 120;

/// The first of them.
const FIRST: u32 = 1;

/// For the whole batch; it takes a fraction of this.
const TIME_MAX: Duration = Duration::from_secs(600);

#[test]
fn fixed_seeds_behave_as_in_the_reference() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fuzz"));
    command.args(["--from", &FIRST.to_string(), "--seeds", &SEEDS.to_string()]);
    let done = sledge_tests::process::run(&mut command, b"", TIME_MAX);
    // Not through `print!`: what a passing test prints that way is not shown.
    std::io::stdout().lock().write_all(&done.stdout).unwrap();
    assert_eq!(done.code(), 0, "{}\n{}", done.text(), done.stderr);
}
