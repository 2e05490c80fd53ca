//! The command line. Exit status: 0 for success, 1 for failure, 2 for wrong usage; `run` passes on the function's own.

mod build;
mod dev;
mod dirs;
mod doctor;
mod explain;
mod grants;
mod invoke;
mod kv;
mod made;
mod network;
mod new;
mod operate;
mod phases;
mod run;
mod serve;
mod shell;
mod versions;
mod watch;
mod workflow;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use rustix::process::Signal;

use crate::compile;
use crate::config;
use crate::deploy::Deployer;
use crate::health::Subject;
use crate::kv::KV_MEMORY;
use crate::kv::embedded::tool::{self, ToolError};
use crate::kv::file as kv_file;
use crate::load;
use crate::notice::To;
use crate::server::prepare::prepare;

/// Status of a command that failed.
const FAILURE: u8 = 1;
/// Status of a command that was used wrongly.
const USAGE: u8 = 2;
/// Status where the reader of standard output has gone, as `head` does: as of programs that the signal SIGPIPE ends, as a shell shows it.
const CLOSED: u8 = 128 + Signal::PIPE.as_raw() as u8;

#[derive(Debug, Parser)]
#[command(name = "sledge", version, about = "Serves WebAssembly functions, compiled by awsm, each request in a fresh sandbox")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// Deferred: what a command takes is described only where that command is given. Describing all of them is a part of every start.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    /// Run a function once, on standard input and output; the exit status is the function's
    Run(run::RunArgs),
    /// Create a project for a function, in a new folder
    New(new::NewArgs),
    /// Serve a project; rebuild and reload it when a file changes
    Dev(dev::DevArgs),
    /// Build applications: functions that call each other over gRPC
    Build(build::BuildArgs),
    /// Serve functions over HTTP
    Serve(serve::ServeArgs),
    /// Call a function of a running server
    Invoke(invoke::InvokeArgs),
    /// Deploy a WebAssembly module to a running server, as a new function or the next version of one
    Deploy(operate::DeployArgs),
    /// Remove a deployed function from a running server
    Remove(operate::RemoveArgs),
    /// List the versions of a deployed function
    Versions(versions::VersionsArgs),
    /// Show what differs between two versions of a deployed function
    Diff(versions::DiffArgs),
    /// Serve the version whole that a part of a function's requests goes to
    Promote(versions::PromoteArgs),
    /// Serve an earlier version of a deployed function again
    Rollback(versions::RollbackArgs),
    /// List the functions of a running server
    List(operate::AskArgs),
    /// Show the status of a running server, or of one function
    Status(operate::StatusArgs),
    /// Show the log of a function: its standard error
    Logs(operate::LogsArgs),
    /// Show the phases that a function declares, or measure them
    Phases(phases::PhasesArgs),
    /// Show what the runs of a function did, and why equal requests can be answered from a table or not
    ExplainEffects(explain::ExplainArgs),
    /// Finish running requests, then stop the server
    Drain(operate::AskArgs),
    /// Look for what keeps a server from working on this machine, and say what to do
    Doctor(doctor::DoctorArgs),
    /// Check, copy or salvage a key-value store's file while no server uses it
    #[command(subcommand)]
    Kv(kv::KvCommand),
    /// Check definitions of workflows
    #[command(subcommand)]
    Workflow(workflow::WorkflowCommand),
    /// Describe or check configuration files
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print completions of command lines for a shell
    Completions(shell::CompletionsArgs),
    /// Write a page of the manual for each command; what `make install` does
    #[command(hide = true)]
    Manual(shell::ManualArgs),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the JSON Schema of configuration files
    Schema,
    /// Check a configuration file as `serve` does: read the files that it names, and load its functions
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Configuration file: TOML, or JSON if its name ends in .json
    file: PathBuf,
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    // Not for users: how this program starts compilers.
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(command) if command == compile::LIMITED_COMMAND => return fail(compile::exec_limited(args)),
        Some(command) if command == compile::BROKER_COMMAND => {
            return compile::serve_broker().map_or_else(fail, |()| ExitCode::SUCCESS);
        }
        _ => {}
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let printed = error.print();
            return if error.use_stderr() { USAGE.into() } else { written(printed) };
        }
    };
    match cli.command {
        Command::Run(args) => run::run(args),
        Command::New(args) => new::new(&args),
        Command::Dev(args) => dev::dev(args),
        Command::Build(args) => build::build(&args),
        Command::Serve(args) => serve::serve(args),
        Command::Invoke(args) => invoke::invoke(args),
        Command::Deploy(args) => operate::deploy(args),
        Command::Remove(args) => operate::remove(&args),
        Command::Versions(args) => versions::versions(&args),
        Command::Diff(args) => versions::diff(&args),
        Command::Promote(args) => versions::promote(&args),
        Command::Rollback(args) => versions::rollback(&args),
        Command::List(args) => operate::list(&args),
        Command::Status(args) => operate::status(&args),
        Command::Logs(args) => operate::logs(&args),
        Command::Phases(args) => phases::phases(&args),
        Command::ExplainEffects(args) => explain::explain(&args),
        Command::Drain(args) => operate::drain(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Kv(command) => kv::kv(&command),
        Command::Workflow(command) => workflow::workflow(&command),
        Command::Config(ConfigCommand::Schema) => print_line(&schema_text()),
        Command::Config(ConfigCommand::Check(args)) => check(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Manual(args) => shell::manual(&args),
    }
}

/// The JSON Schema of configuration files, as people read it.
fn schema_text() -> String {
    serde_json::to_string_pretty(&config::schema()).unwrap_or_default()
}

fn check(args: &CheckArgs) -> ExitCode {
    let file = args.file.display();
    let mut problems = Vec::new();
    let prepared = config::read(&args.file).and_then(|mut config| {
        // A server that runs has its store open, and a check changes nothing: the file is looked at, and functions are loaded beside an empty one.
        if let Some(path) = kv_file(config.kv.as_deref()).filter(|path| path.exists()) {
            match tool::check(path) {
                Ok(_) | Err(ToolError::InUse(_)) => {}
                Err(error) => problems.push(format!("{file}: {}: {error}", Subject::KeyValueStore)),
            }
            config.kv = Some(KV_MEMORY.into());
        }
        let load = || Deployer::new(&config, load::compiler(&config).telling(To::Caller));
        Ok((prepare(&config, Some(&args.file), load)?, config.functions.len()))
    });
    let (prepared, functions) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return fail(error),
    };
    // What a server would begin with, and say so.
    let begun = prepared.deployer().health().problems_now();
    problems.extend(begun.iter().map(|problem| format!("{file}: {}: {}", problem.subject, problem.reason)));
    if problems.is_empty() { print_line(&format!("{file}: good; functions: {functions}")) } else { fail(problems.join("\n")) }
}

/// Writes a line to standard output.
fn print_line(line: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    written(writeln!(out, "{line}").and_then(|()| out.flush()))
}

/// What became of standard output. A reader that has gone is no failure of ours to report.
fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => CLOSED.into(),
        Err(error) => fail(format_args!("standard output: {error}")),
    }
}

/// Says what went wrong.
fn fail(error: impl std::fmt::Display) -> ExitCode {
    say(format_args!("sledge: {error}"));
    FAILURE.into()
}

/// Says that the command line is wrong.
fn usage(message: impl std::fmt::Display) -> ExitCode {
    say(format_args!("sledge: {message}"));
    USAGE.into()
}

/// Writes a line to standard error. Where its reader has gone, the status says enough.
fn say(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_two_dashes_belongs_to_the_function() {
        let cli = Cli::try_parse_from(["sledge", "run", "f.so", "--env", "A=b", "--", "--env", "x"]).unwrap();
        let Command::Run(args) = cli.command else { panic!("it is run") };
        assert_eq!(format!("{args:?}").matches("--env").count(), 1);
    }
}
