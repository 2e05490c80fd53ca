//! Preemption where it hurts: at every single instruction, and at random under real functions. `make stress MINUTES=n` does the second for longer.

mod stepping;

use sledge_tests::programs;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

/// For a run that takes a fraction of this, the compiler's part included.
const TIME_MAX: Duration = Duration::from_secs(300);

#[test]
fn real_functions_compute_the_same_however_often_they_are_preempted() {
    // It uses the `awsm` beside it.
    let _ = programs::awsm();
    let mut command = Command::new(env!("CARGO_BIN_EXE_stress"));
    command.args(["--seconds", "12", "--seed", "20261120"]);
    let done = sledge_tests::process::run(&mut command, b"", TIME_MAX);
    // Not through `print!`: what a passing test prints that way is not shown.
    std::io::stdout().lock().write_all(&done.stdout).unwrap();
    assert_eq!(done.code(), 0, "{}\n{}", done.text(), done.stderr);
}
