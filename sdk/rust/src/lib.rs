//! Write functions for Sledge in Rust.
//!
//! A function gets a request's body and gives the reply's body. As a *reactor* it is a library that is called for
//! each request, each time in a fresh copy of its initial state:
//!
//! ```
//! fn answer(body: &[u8]) -> Result<Vec<u8>, std::str::Utf8Error> {
//!     let text = std::str::from_utf8(body)?;
//!     Ok(text.to_uppercase().into_bytes())
//! }
//!
//! sledge_sdk::handler!(answer);
//! ```
//!
//! with `crate-type = ["cdylib"]` in its `[lib]`, compiled by `awsm compile FOLDER`. What the handler returns as an error
//! is written to the function's log, and the client is told that the function failed. A *command* needs nothing
//! of this crate: it is a program whose `main` reads standard input and writes standard output.
//!
//! This crate knows the two streams and the name of the entry point, and nothing else about Sledge.

mod sys;

use std::fmt::Display;
use std::io::{self, Read, Write};

/// What `sledge_handle` returns when the reply is complete.
pub const OK: i32 = 0;

/// What it returns when there is none.
pub const FAILED: i32 = 1;

/// Reads the body from standard input, calls `handler`, writes its reply to standard output; or its error, or why
/// the streams failed, to standard error. [`OK`] or [`FAILED`] accordingly. [`handler!`] exports a call of this.
pub fn handle<R: AsRef<[u8]>, E: Display>(handler: impl FnOnce(&[u8]) -> Result<R, E>) -> i32 {
    match exchange(&mut io::stdin().lock(), &mut io::stdout().lock(), handler) {
        Ok(()) => OK,
        Err(message) => {
            eprintln!("{message}");
            FAILED
        }
    }
}

fn exchange<R: AsRef<[u8]>, E: Display>(
    input: &mut impl Read,
    output: &mut impl Write,
    handler: impl FnOnce(&[u8]) -> Result<R, E>,
) -> Result<(), String> {
    let mut body = Vec::new();
    input.read_to_end(&mut body).map_err(|error| format!("the body cannot be read: {error}"))?;
    let reply = handler(&body).map_err(|error| error.to_string())?;
    output
        .write_all(reply.as_ref())
        .and_then(|()| output.flush())
        .map_err(|error| format!("the reply cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("no stream"))
        }
    }

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("no stream"))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn reversed(body: &[u8]) -> Result<Vec<u8>, String> {
        if body.is_empty() { Err("nothing to reverse".to_owned()) } else { Ok(body.iter().rev().copied().collect()) }
    }

    #[test]
    fn the_reply_is_what_the_handler_makes_of_the_body() {
        let mut output = Vec::new();
        exchange(&mut &b"abc"[..], &mut output, reversed).unwrap();
        assert_eq!(output, b"cba");
    }

    #[test]
    fn an_error_gives_no_reply() {
        let mut output = Vec::new();
        let error = exchange(&mut &b""[..], &mut output, reversed).unwrap_err();
        assert_eq!((error.as_str(), output.len()), ("nothing to reverse", 0));
    }

    #[test]
    fn broken_streams_are_errors() {
        let error = exchange(&mut Broken, &mut Vec::new(), reversed).unwrap_err();
        assert!(error.contains("body cannot be read"), "{error}");
        let error = exchange(&mut &b"abc"[..], &mut Broken, reversed).unwrap_err();
        assert!(error.contains("reply cannot be written"), "{error}");
    }
}
