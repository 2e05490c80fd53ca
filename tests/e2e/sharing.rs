//! `examples/sharing` by its own configuration: each function and each application replies what the same code replies natively, byte for byte.

use sharing::{APPLICATIONS, FUNCTIONS, Memory, TRAVEL, setup_body, setups};
use sledge_tests::process;
use sledge_tests::programs;
use sledge_tests::server::Server;
use std::time::Duration;

/// Inputs that are written.
const INPUTS: u32 = 6;

#[test]
fn all_functions_reply_what_they_reply_natively() {
    let source = programs::tests_folder().join("../examples/sharing");
    let folder = tempfile::tempdir_in(programs::folder()).expect("a folder");
    let artifact = folder.path().join("sharing.so");
    // The example's packages are compiled, too. At the default level they take most of a minute.
    let mut compile = programs::awsm_command(&["compile", "-O", "0"]);
    compile.arg(&source).arg("-o").arg(&artifact).args(["--", "--locked"]);
    let compiled = process::run(&mut compile, b"", Duration::from_secs(600));
    assert!(compiled.status.success(), "{compile:?}: {}", compiled.stderr);
    let config = std::fs::read_to_string(source.join("sledge.toml")).expect("the configuration");
    let path = folder.path().join("sledge.toml");
    std::fs::write(&path, config.replace("127.0.0.1:8080", "127.0.0.1:0")).expect("a configuration");
    let server = Server::start_with(&mut programs::sledge_command(&["serve", "--config", path.to_str().expect("UTF-8")]));

    let client = server.client();
    let mut memory = Memory::new();
    for (name, from, to) in setups(INPUTS) {
        let body = setup_body(from, to);
        let reply = client.post(&format!("/{name}"), &body);
        let native = memory.answer(name, body.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((reply.status, reply.body), (200, native), "{name}");
    }
    let ask = |name: &str, input: u32, work: u32, memory: &mut Memory| {
        let body = sharing::body(name, input, work);
        let reply = client.post(&format!("/{name}"), &body);
        let native = memory.answer(name, body.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (reply, native) = ((reply.status, reply.text()), (200, String::from_utf8_lossy(&native).into_owned()));
        assert_eq!(reply, native, "{name} {body}");
    };
    // Twice each: what they have written does not change what they reply.
    for name in [(); 2].into_iter().flat_map(|()| FUNCTIONS.into_iter().chain(APPLICATIONS).chain([TRAVEL])) {
        for (input, work) in [(0, 1), (3, 2), (INPUTS - 1, 7)] {
            ask(name, input, work, &mut memory);
        }
    }
    assert_refused(&server);
    server.stop();
}

/// What makes no sense, what is not set up, and what only functions may call.
fn assert_refused(server: &Server) {
    let client = server.client();
    let refused = client.post("/rnn-serv", r#"{"input": 1, "work": 0}"#);
    assert_eq!((refused.status, refused.text().starts_with("`work` is 0")), (400, true), "{refused:?}");
    assert_eq!(client.post("/rnn-serv", format!(r#"{{"input": {INPUTS}}}"#)).status, 500);
    server.wait_for_log(&format!("language/{INPUTS} is not in the store"));
    assert_eq!(client.post("/ts-order", r#"{"ask": {"number": 1}}"#).status, 404);
}
