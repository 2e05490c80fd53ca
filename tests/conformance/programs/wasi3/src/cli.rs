//! `wasi:cli` and `wasi:random`

use futures::join;
use wasip3::cli::{environment, stderr, stdin, stdout, terminal_stderr, terminal_stdin, terminal_stdout};
use wasip3::random::{insecure, insecure_seed, random};
use wasip3::wit_bindgen::StreamResult;
use wasip3::wit_stream;

use crate::say;

pub(crate) async fn all() {
    // What it is called is the runtime's matter.
    say("get-arguments", &environment::get_arguments()[1..]);
    let mut variables = environment::get_environment();
    variables.sort();
    say("get-environment", variables);
    say("get-initial-cwd", environment::get_initial_cwd());
    say("get-terminal-stdin", terminal_stdin::get_terminal_stdin().is_some());
    say("get-terminal-stdout", terminal_stdout::get_terminal_stdout().is_some());
    say("get-terminal-stderr", terminal_stderr::get_terminal_stderr().is_some());
    let (mut input, read) = stdin::read_via_stream();
    let (status, bytes) = input.read(Vec::with_capacity(3)).await;
    say("stdin read", (matches!(status, StreamResult::Complete(3)), bytes));
    say("stdin collect", String::from_utf8(input.collect().await));
    say("stdin result", read.await);
    let (mut writer, reader) = wit_stream::new();
    let (left, written) = join!(
        async {
            let left = writer.write_all(b"written\n".to_vec()).await;
            drop(writer);
            left.len()
        },
        stdout::write_via_stream(reader).into_future()
    );
    say("stdout", (left, written));
    let (writer, reader) = wit_stream::new();
    drop(writer);
    say("stdout of an empty stream", stdout::write_via_stream(reader).await);
    let (mut writer, reader) = wit_stream::new();
    let (left, written) = join!(
        async {
            let left = writer.write_all(b"told\n".to_vec()).await;
            drop(writer);
            left.len()
        },
        stderr::write_via_stream(reader).into_future()
    );
    say("stderr", (left, written));
    numbers();
}

fn numbers() {
    for length in [0, 1, 100, 50_000] {
        say(
            &format!("get-random-bytes {length} gives as many, or fewer"),
            random::get_random_bytes(length).len() as u64 <= length,
        );
        say(
            &format!("get-insecure-random-bytes {length} gives as many, or fewer"),
            insecure::get_insecure_random_bytes(length).len() as u64 <= length,
        );
    }
    say("get-random-bytes 100", random::get_random_bytes(100).len());
    say("get-random-bytes differ", random::get_random_bytes(32) != random::get_random_bytes(32));
    say("get-random-u64 differ", random::get_random_u64() != random::get_random_u64());
    say("get-insecure-random-u64 differ", insecure::get_insecure_random_u64() != insecure::get_insecure_random_u64());
    say("get-insecure-seed is the same", insecure_seed::get_insecure_seed() == insecure_seed::get_insecure_seed());
}
