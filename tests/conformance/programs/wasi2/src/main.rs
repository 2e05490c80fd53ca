//! Calls the functions of WASI 0.2, those of the interface that its first argument names, and prints a line for each: what was called, and what came of it.
//! What differs from run to run (times, numbers of ports and inodes, random numbers) is printed as what has to hold of it.

mod cli;
mod clocks;
mod filesystem;
mod http;
mod random;
mod sockets;
mod streams;

use std::fmt::Debug;

/// Prints what came of a call.
fn say(what: &str, result: impl Debug) {
    println!("{what}: {result:?}");
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("cli") => cli::all(),
        Some("exit-ok") => wasip2::cli::exit::exit(Ok(())),
        Some("exit-err") => wasip2::cli::exit::exit(Err(())),
        Some("clocks") => clocks::all(),
        Some("random") => random::all(),
        Some("filesystem") => filesystem::all(),
        Some("read-only") => filesystem::read_only(),
        Some("streams") => streams::all(),
        Some("sockets") => sockets::all(),
        Some("http") => http::all(),
        other => panic!("no such interface: {other:?}"),
    }
}
