//! Times the function, natively or as WebAssembly: the body on standard input, the reply on standard output, and on standard error the seconds
//! that a call took at best.
//!
//!     cargo run --release --features repeat --bin repeat < input.jpg > found.jpg

use std::process::ExitCode;

fn main() -> ExitCode {
    photograph::function::time("repeat", |body| plate_detect::mark(body).map(|marked| marked.jpeg))
}
