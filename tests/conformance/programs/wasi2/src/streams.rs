//! `wasi:io/streams` and `wasi:io/error`: from standard input to standard output, and a connection to itself.

use std::fmt::Debug;

use wasip2::cli::{stdin, stdout};
use wasip2::io::poll;
use wasip2::io::streams::StreamError;

use crate::say;
use crate::sockets::pair;

fn said<T: Debug>(result: Result<T, StreamError>) -> Result<T, &'static str> {
    result.map_err(|error| if matches!(error, StreamError::Closed) { "closed" } else { "failed" })
}

pub(crate) fn all() {
    let (input, output) = (stdin::get_stdin(), stdout::get_stdout());
    say("splice nothing", said(output.splice(&input, 0)));
    say("blocking-splice", said(output.blocking_splice(&input, 5)));
    println!();
    say("blocking-splice of the rest", said(output.blocking_splice(&input, 1_000)));
    say("blocking-splice at the end", said(output.blocking_splice(&input, 1)));
    say("splice at the end", said(output.splice(&input, 1)));
    say("skip at the end", said(input.skip(1)));
    say("read nothing at the end", said(input.read(0)));
    say("poll both", poll::poll(&[&input.subscribe(), &output.subscribe()]));

    let Some((one, other)) = pair() else { return };
    say("read where nothing is", said(one.1.read(10)));
    say("skip where nothing is", said(one.1.skip(10)));
    say("ready where nothing is", one.1.subscribe().ready());
    say("ready to write", other.2.subscribe().ready());
    say("check-write gives room", other.2.check_write().is_ok_and(|bytes| bytes > 0));
    say("write", said(other.2.write(b"hello")));
    say("blocking-flush", said(other.2.blocking_flush()));
    one.1.subscribe().block();
    say("ready where something is", one.1.subscribe().ready());
    say("read nothing where something is", said(one.1.read(0)));
    say("read a part", said(one.1.read(2)));
    say("skip a part", said(one.1.skip(1)));
    say("read more than there is", said(one.1.read(100)));
    say("write nothing", said(other.2.write(b"")));
    say("write-zeroes", said(other.2.check_write().and_then(|_| other.2.write_zeroes(3))));
    say("blocking-flush", said(other.2.blocking_flush()));
    say("blocking-read of zeros", said(one.1.blocking_read(3)));
    say("blocking-write-and-flush", said(other.2.blocking_write_and_flush(&[b'x'; 4_096])));
    let mut count = 0;
    while count < 4_096 {
        count += one.1.blocking_read(1_000).expect("more").len();
    }
    say("bytes that came", count);
    say(
        "splice from one to the other",
        said(other.2.blocking_write_and_flush(b"spliced").and_then(|()| one.2.blocking_splice(&one.1, 7))),
    );
    say("blocking-read of what was spliced", said(other.1.blocking_read(7)));
    drop((other.1, other.2));
    drop(other.0);
    say("blocking-read when the other end is gone", said(one.1.blocking_read(1)));
    say("read when the other end is gone", said(one.1.read(1)));
    say("read nothing when the other end is gone", said(one.1.read(0)));
    say("ready when the other end is gone", one.1.subscribe().ready());
}
