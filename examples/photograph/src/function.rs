//! How a function meets its caller: the body on standard input, the reply on standard output. What goes wrong is a line on standard error and
//! exit status 1, without a reply.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::Error;

/// Longest body that is read, in bytes.
const BODY_BYTES_MAX: u64 = 64 << 20;

/// How long a function is timed.
const TIME: Duration = Duration::from_millis(300);
/// Of a series of calls, at least.
const SERIES: Duration = Duration::from_millis(4);

/// Answers one request; `name` stands before what is said on standard error.
pub fn answer(name: &str, function: impl FnOnce(&[u8]) -> Result<Vec<u8>, Error>) -> ExitCode {
    let answered = body().and_then(|body| function(&body).map_err(|error| error.to_string())).and_then(|reply| send(&reply));
    match answered {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{name}: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Calls the function again and again. Besides the reply, the seconds that a call took at best are written to standard error.
pub fn time(name: &str, function: impl Fn(&[u8]) -> Result<Vec<u8>, Error>) -> ExitCode {
    answer(name, |body| {
        let call = || function(black_box(body));
        let reply = call()?;
        // The quickest of many short series: others may want the processor, too.
        let (mut calls, mut least, mut total) = (1, f64::INFINITY, Duration::ZERO);
        while total < TIME || least == f64::INFINITY {
            let start = Instant::now();
            for _ in 0..calls {
                black_box(call()?);
            }
            let elapsed = start.elapsed();
            total += elapsed;
            if elapsed < SERIES {
                calls *= 2;
            } else {
                least = least.min(elapsed.as_secs_f64() / f64::from(calls));
            }
        }
        eprintln!("{least:.9e}");
        Ok(reply)
    })
}

fn body() -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    let read = io::stdin().lock().take(BODY_BYTES_MAX + 1).read_to_end(&mut body);
    read.map_err(|error| format!("the body cannot be read: {error}"))?;
    if body.len() as u64 > BODY_BYTES_MAX {
        return Err(format!("the body has more than {BODY_BYTES_MAX} bytes"));
    }
    Ok(body)
}

fn send(reply: &[u8]) -> Result<(), String> {
    let mut output = io::stdout().lock();
    output.write_all(reply).and_then(|()| output.flush()).map_err(|error| format!("the reply cannot be written: {error}"))
}
