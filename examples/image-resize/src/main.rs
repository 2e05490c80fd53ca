//! image-resize as a function: the body (a JPEG) on standard input, the reply (a PNG of half the size) on
//! standard output. What goes wrong is a line on standard error and exit status 1, without a reply.

use std::io::{self, Read, Write};
use std::process::ExitCode;

/// Longest body that is read, in bytes.
const BODY_BYTES_MAX: u64 = 64 << 20;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("image-resize: {message}");
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
    let png = image_resize::halve(&body).map_err(|error| error.to_string())?;
    let mut reply = io::stdout().lock();
    reply.write_all(&png).and_then(|()| reply.flush()).map_err(|error| format!("the reply cannot be written: {error}"))
}
