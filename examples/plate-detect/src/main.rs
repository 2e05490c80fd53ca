//! plate-detect as a function: the body (a JPEG) on standard input, the reply (a JPEG with a box round the licence plate) on standard
//! output. Where there is no plate, that is a line on standard error, and the reply has no box. What goes wrong is a line on standard error
//! and exit status 1, without a reply.

use std::io::{self, Read, Write};
use std::process::ExitCode;

/// Longest body that is read, in bytes.
const BODY_BYTES_MAX: u64 = 64 << 20;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("plate-detect: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut body = Vec::new();
    io::stdin()
        .lock()
        .take(BODY_BYTES_MAX + 1)
        .read_to_end(&mut body)
        .map_err(|error| format!("the body cannot be read: {error}"))?;
    if body.len() as u64 > BODY_BYTES_MAX {
        return Err(format!("the body has more than {BODY_BYTES_MAX} bytes"));
    }
    let marked = plate_detect::mark(&body).map_err(|error| error.to_string())?;
    if marked.plate.is_none() {
        eprintln!("plate-detect: there is no licence plate in the picture");
    }
    let mut reply = io::stdout().lock();
    reply.write_all(&marked.jpeg).and_then(|()| reply.flush()).map_err(|error| format!("the reply cannot be written: {error}"))
}
