//! Calls the functions of WASI 0.3, those of the interface that its first argument names, and prints a line for each: what was called, and what came of it.
//! What differs from run to run is printed as what has to hold of it.

mod cli;
mod clocks;
mod filesystem;
mod http;
mod sockets;

use std::fmt::Debug;

use wasip3::exports::cli::run::Guest;

wasip3::cli::command::export!(Command);

struct Command;

/// Prints what came of a call.
fn say(what: &str, result: impl Debug) {
    println!("{what}: {result:?}");
}

impl Guest for Command {
    async fn run() -> Result<(), ()> {
        let arguments: Vec<String> = std::env::args().collect();
        match arguments.get(1).map(String::as_str) {
            Some("cli") => cli::all().await,
            Some("fails") => return Err(()),
            Some("clocks") => clocks::all().await,
            Some("filesystem") => filesystem::all().await,
            Some("read-only") => filesystem::read_only().await,
            Some("sockets") => sockets::all().await,
            Some("http") => http::all().await,
            other => panic!("no such interface: {other:?}"),
        }
        Ok(())
    }
}
