//! Command line of `awsm`: arguments in, files and messages out. What it does is done by the library.

mod artifact;
mod compile;
mod component;
mod componentize;
mod compose;
mod explain;
mod inspect;
mod output;
mod progress;
mod proto;
mod shell;
mod source;

use anyhow::Context;
use clap::{Parser, Subcommand};

pub(crate) use output::{CLOSED_EXIT_STATUS, Closed};

/// Compiles WebAssembly, C, C++ and Rust functions to sandboxed native shared objects for sledge.
#[derive(Debug, Parser)]
#[command(name = "awsm", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Compile(compile::Arguments),
    Componentize(componentize::Arguments),
    Compose(compose::Arguments),
    Proto(proto::Arguments),
    Inspect(inspect::Arguments),
    Explain(explain::Arguments),
    Completions(shell::Completions),
    #[command(hide = true)]
    Manual(shell::Manual),
    /// Generate code for `compile`, whose child this is
    #[command(hide = true)]
    Codegen,
}

/// Reads the process's arguments and does what they say.
pub(crate) fn run() -> anyhow::Result<()> {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(help) if !help.use_stderr() => return output::written(help.print()),
        Err(wrong) => wrong.exit(),
    };
    match arguments.command {
        Command::Compile(arguments) => compile::run(&arguments),
        Command::Componentize(arguments) => componentize::run(&arguments),
        Command::Compose(arguments) => compose::run(&arguments),
        Command::Proto(arguments) => proto::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Manual(arguments) => shell::manual(&arguments),
        Command::Codegen => awsm::isolated::serve().context("awsm codegen is internal to `awsm compile`"),
    }
}
