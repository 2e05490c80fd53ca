//! The command `awsm`.

#![forbid(unsafe_code)]
// They panic where the reader has gone.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod cli;

use std::io::Write as _;
use std::process::ExitCode;

use awsm_abi::limits::TIME_EXIT_STATUS;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if error.is::<cli::Closed>() {
                return ExitCode::from(cli::CLOSED_EXIT_STATUS);
            }
            // Where the reader of standard error has gone, the status says enough.
            let _ = writeln!(std::io::stderr(), "awsm: {}", words(&error));
            // By this status the program that set the limit knows that it was reached.
            let is_late = error.chain().any(|cause| matches!(cause.downcast_ref(), Some(awsm::CompileError::Time { .. })));
            if is_late { ExitCode::from(TIME_EXIT_STATUS) } else { ExitCode::FAILURE }
        }
    }
}

/// An error with its causes. Most of our errors say their causes themselves: nothing is said twice.
fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.ends_with(&cause) {
            words.extend([": ", &*cause]);
        }
    }
    words
}
