//! `wasi:cli`: arguments and environment, standard streams, the end.

use std::borrow::Cow;

use awsm_abi::types::ValType::I32;

use super::streams::{InputStream, OutputStream};
use super::{ERRORS, INPUT, OUTPUT};
use crate::host::Effect::{Safe, Stream};
use crate::host::canonical::{Own, canonical};
use crate::host::{Call, Flat, HostFunction, Stop};

const ENVIRONMENT: &str = "wasi:cli/environment@0.2";
const EXIT: &str = "wasi:cli/exit@0.2";
const ENVIRONMENT_3: &str = "wasi:cli/environment@0.3";
const EXIT_3: &str = "wasi:cli/exit@0.3";

/// The interfaces.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(ENVIRONMENT, "get-environment", &[I32, I32], &[I32], Safe, get_environment),
    canonical(ENVIRONMENT, "get-arguments", &[I32, I32], &[I32], Safe, get_arguments),
    canonical(ENVIRONMENT, "initial-cwd", &[I32, I32], &[I32], Safe, initial_cwd),
    canonical(EXIT, "exit", &[I32, I32], &[], Stream, exit),
    canonical(EXIT, "exit-with-code", &[I32, I32], &[], Stream, exit_with_code),
    canonical("wasi:cli/stdin@0.2", "get-stdin", &[I32], &[I32], Stream, get_stdin),
    canonical("wasi:cli/stdout@0.2", "get-stdout", &[I32], &[I32], Stream, get_stdout),
    canonical("wasi:cli/stderr@0.2", "get-stderr", &[I32], &[I32], Stream, get_stderr),
    canonical("wasi:cli/terminal-stdin@0.2", "get-terminal-stdin", &[I32, I32], &[], Safe, no_terminal),
    canonical("wasi:cli/terminal-stdout@0.2", "get-terminal-stdout", &[I32, I32], &[], Safe, no_terminal),
    canonical("wasi:cli/terminal-stderr@0.2", "get-terminal-stderr", &[I32, I32], &[], Safe, no_terminal),
    canonical(ENVIRONMENT_3, "get-environment", &[I32, I32], &[I32], Safe, get_environment),
    canonical(ENVIRONMENT_3, "get-arguments", &[I32, I32], &[I32], Safe, get_arguments),
    canonical(ENVIRONMENT_3, "get-initial-cwd", &[I32, I32], &[I32], Safe, initial_cwd),
    canonical(EXIT_3, "exit", &[I32, I32], &[], Stream, exit),
    canonical(EXIT_3, "exit-with-code", &[I32, I32], &[], Stream, exit_with_code),
    canonical("wasi:cli/terminal-stdin@0.3", "get-terminal-stdin", &[I32, I32], &[], Safe, no_terminal),
    canonical("wasi:cli/terminal-stdout@0.3", "get-terminal-stdout", &[I32, I32], &[], Safe, no_terminal),
    canonical("wasi:cli/terminal-stderr@0.3", "get-terminal-stderr", &[I32, I32], &[], Safe, no_terminal),
];

/// `get-environment() -> list<tuple<string, string>>`
fn get_environment(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let environment: Vec<_> = call.context.ports.env().variables().collect();
    call.lower(1, environment)
}

/// `get-arguments() -> list<string>`
fn get_arguments(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let arguments: Vec<_> = call.context.ports.args().each().map(Cow::into_owned).collect();
    call.lower(1, arguments)
}

/// `initial-cwd() -> option<string>`: there is none.
fn initial_cwd(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.lower(1, None::<String>)
}

/// `exit(status: result)`
fn exit(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Err(Stop::Exit(call.case(1, 2)?))
}

/// `exit-with-code(status-code: u8)`
fn exit_with_code(call: &mut Call<'_>) -> Result<Flat, Stop> {
    Err(Stop::Exit(call.args.u32(1) & 0xff))
}

/// `get-stdin() -> input-stream`
fn get_stdin(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give_standing::<InputStream>(INPUT).map(|own| Flat::from(own.0))
}

/// `get-stdout() -> output-stream`
fn get_stdout(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give_standing::<OutputStream>(OUTPUT).map(|own| Flat::from(own.0))
}

/// `get-stderr() -> output-stream`
fn get_stderr(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.give_standing::<OutputStream>(ERRORS).map(|own| Flat::from(own.0))
}

/// `get-terminal-stdin() -> option<terminal-input>` and the like: none, so that nothing is buffered by lines.
fn no_terminal(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.lower(1, None::<Own>)
}
