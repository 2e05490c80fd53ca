//! `wasi:cli`

use wasip2::cli::{environment, stderr, stdin, stdout, terminal_stderr, terminal_stdin, terminal_stdout};

use crate::say;

pub(crate) fn all() {
    // What it is called is the runtime's matter.
    say("get-arguments", &environment::get_arguments()[1..]);
    let mut variables = environment::get_environment();
    variables.sort();
    say("get-environment", variables);
    say("initial-cwd", environment::initial_cwd());
    say("get-terminal-stdin", terminal_stdin::get_terminal_stdin().is_some());
    say("get-terminal-stdout", terminal_stdout::get_terminal_stdout().is_some());
    say("get-terminal-stderr", terminal_stderr::get_terminal_stderr().is_some());
    let input = stdin::get_stdin();
    say("stdin: read nothing", input.read(0).map_err(|_| ()));
    say("stdin: blocking-read", input.blocking_read(100).map_err(|error| error.to_string()));
    say("stdin: blocking-skip", stdin::get_stdin().blocking_skip(100).map_err(|error| error.to_string()));
    say("stdin: blocking-read at the end", input.blocking_read(1).map_err(|error| error.to_string()));
    say("stdin: read at the end", input.read(1).map_err(|error| error.to_string()));
    say("stdin: ready at the end", input.subscribe().ready());
    let output = stdout::get_stdout();
    say("stdout: check-write gives room", output.check_write().is_ok_and(|bytes| bytes > 0));
    say("stdout: blocking-write-and-flush", output.blocking_write_and_flush(b"written\n").is_ok());
    say("stdout: write-zeroes none", output.check_write().is_ok() && output.write_zeroes(0).is_ok());
    let errors = stderr::get_stderr();
    say("stderr: blocking-write-and-flush", errors.blocking_write_and_flush(b"told\n").is_ok());
    say("stderr: ready", errors.subscribe().ready());
}
