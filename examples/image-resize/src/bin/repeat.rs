//! Times the function, natively or as WebAssembly: the body on standard input, the reply on standard output, and on standard error the seconds
//! that a call took at best.
//!
//!     cargo run --release --features repeat --bin repeat < input.jpg > half.png

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_millis(300);
/// Of a series of calls, at least.
const SERIES: Duration = Duration::from_millis(4);

fn main() -> io::Result<()> {
    let mut body = Vec::new();
    io::stdin().lock().read_to_end(&mut body)?;
    let call = || image_resize::halve(black_box(&body)).map_err(|error| io::Error::other(error.to_string()));
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
    io::stdout().lock().write_all(&reply)
}
