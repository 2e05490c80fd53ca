//! A reactor whose reply goes out while it is written: `3 200` is answered with the numbers from 1 to 3, 200 milliseconds apart.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use sledge::{Body, Reply, Streaming};

#[sledge::function]
fn count(text: &str) -> Result<Streaming<impl FnOnce(&mut Body<'_>) -> io::Result<()>>, String> {
    let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
    let Ok([last, pause_ms]) = numbers.as_deref() else { return Err(format!("{text:?}: give a number and milliseconds")) };
    let (last, pause) = (*last, Duration::from_millis(*pause_ms));
    Ok(Reply::new(200).with_header("content-type", "text/plain").streaming(move |body| {
        (1..=last).try_for_each(|number| {
            sleep(if number > 1 { pause } else { Duration::ZERO });
            writeln!(body, "{number}")
        })
    }))
}
