//! The command `awsm`.

#![forbid(unsafe_code)]

mod cli;

use std::process::ExitCode;

use awsm_abi::limits::TIME_EXIT_STATUS;

fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("awsm: {error:#}");
            // By this status the program that set the limit knows that it was reached.
            let is_late = error.chain().any(|cause| matches!(cause.downcast_ref(), Some(awsm::CompileError::Time { .. })));
            if is_late { ExitCode::from(TIME_EXIT_STATUS) } else { ExitCode::FAILURE }
        }
    }
}
