//! From standard input to standard output: what the exported entry point does.

use std::fmt::Display;
use std::io::{self, Read, Write};

use crate::reply::{Failed, IntoReply, Outgoing};
use crate::request::{FromRequest, Head};
use crate::sys;

/// The reply is complete.
const OK: i32 = 0;
/// There is none.
const FAILED: i32 = 1;

/// Answers the request with what `function` makes of it. `#[sledge::function]` exports a call of this.
pub fn handle<A: FromRequest<'static>, R: IntoReply>(function: impl FnOnce(A) -> R) -> i32 {
    match exchange(&mut io::stdin().lock(), &mut Live(io::stdout().lock()), function) {
        Ok(()) => OK,
        Err(Failed(why)) => {
            eprintln!("{why}");
            FAILED
        }
    }
}

fn exchange<A: FromRequest<'static>, R: IntoReply>(
    input: &mut impl Read,
    output: &mut impl Outgoing,
    function: impl FnOnce(A) -> R,
) -> Result<(), Failed> {
    let mut body = Vec::new();
    input.read_to_end(&mut body).map_err(|error| Failed(format!("the body cannot be read: {error}")))?;
    // It goes with the sandbox.
    match A::from_request(body.leak(), Head::of_this_request) {
        Ok(argument) => function(argument).reply(output),
        Err(refused) => refused.reply(output),
    }
}

/// The reply that the client gets.
struct Live<W>(W);

fn refused(what: &str, error: impl Display) -> Failed {
    Failed(format!("{what} of the reply: {error}"))
}

impl<W: Write> Outgoing for Live<W> {
    fn status(&mut self, code: u16) -> Result<(), Failed> {
        sys::status(code).map_err(|error| refused("the status", format_args!("{code}: error {error}")))
    }

    fn header(&mut self, name: &str, value: &[u8]) -> Result<(), Failed> {
        let shown = || String::from_utf8_lossy(value).into_owned();
        sys::header(name, value).map_err(|error| refused("a header", format_args!("{name}: {}: error {error}", shown())))
    }

    fn trailer(&mut self, name: &str, value: &[u8], more: bool) -> Result<(), Failed> {
        sys::trailer(name, value, more).map_err(|error| refused("a trailer", format_args!("{name}: error {error}")))
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        self.0.write_all(bytes).and_then(|()| self.0.flush()).map_err(|error| refused("the body", error))
    }

    fn stream(&mut self, length: Option<u64>) -> Result<(), Failed> {
        sys::stream(length).map_err(|error| refused("the length", format_args!("{length:?}: error {error}")))
    }
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
    fn the_reply_is_what_the_function_makes_of_the_body() {
        let mut output = Live(Vec::new());
        exchange(&mut &b"abc"[..], &mut output, reversed).unwrap();
        assert_eq!(output.0, b"cba");
    }

    #[test]
    fn an_error_gives_no_reply() {
        let mut output = Live(Vec::new());
        let error = exchange(&mut &b""[..], &mut output, reversed).unwrap_err();
        assert_eq!((error.0.as_str(), output.0.len()), ("nothing to reverse", 0));
    }

    #[test]
    fn broken_streams_are_errors() {
        let error = exchange(&mut Broken, &mut Live(Vec::new()), reversed).unwrap_err();
        assert!(error.0.contains("body cannot be read"), "{error:?}");
        let error = exchange(&mut &b"abc"[..], &mut Live(Broken), reversed).unwrap_err();
        assert!(error.0.contains("the body of the reply"), "{error:?}");
    }
}
