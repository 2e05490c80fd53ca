//! A bug of the host costs the request that met it, and nothing else.
//!
//! No host function of the server panics; so this one server runs in the test's own process, with a function that imports one that does.

use crate::assert_failure;
use sledge::config::{Config, FunctionConfig};
use sledge::deploy::{Candidate, Deployer};
use sledge::host::{Code, Effect, HostFunction, Imports, Offer, wasi};
use sledge::invoke::loaded::Loaded;
use sledge::load;
use sledge::server;
use sledge::server::prepare::prepare;
use sledge_sandbox::{Artifact, LoadPolicy};
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::programs;
use std::net::SocketAddr;
use std::sync::mpsc;

static PANICS: [HostFunction; 1] = [HostFunction {
    module: "test",
    name: "panic",
    params: &[],
    results: &[],
    effect: Effect::Stream,
    code: Code::Wasi(|_| panic!("a host function that panics, as the test wants")),
}];

static OFFERED: [&[HostFunction]; 2] = [&PANICS, wasi::FUNCTIONS];

/// Serves a function, from a file in `functions/`, that imports what `offered` has, on one worker in this process.
pub(crate) fn serve(file: &str, offered: Offer, change: impl FnOnce(&mut FunctionConfig)) -> SocketAddr {
    let path = programs::function_with(file, &["--allow-unknown-imports"]);
    let mut config = Config { listen: "127.0.0.1:0".to_owned(), workers: Some(1), requests_max: 10_000, ..Config::default() };
    let mut function = FunctionConfig::new("f", &path);
    change(&mut function);
    config.functions.push(function);
    config.admin = Some("none".to_owned());
    // The process is that of other tests, too.
    config.confined = false;
    let artifact = Artifact::open(&path, &LoadPolicy::default()).expect("it loads");
    let imports = Imports::resolve_with(artifact.descriptor(), offered).expect("all are on offer");
    let loaded = Loaded::with_imports(&artifact, &config.functions[0], imports).expect("a function");
    let candidate =
        Candidate { config: config.functions[0].clone(), digest: [0; 32].into(), version: None, module: None, loaded };
    let load = || Deployer::with_functions(&config, load::compiler(&config), |_| vec![Ok(candidate)]);
    let prepared = prepare(&config, None, load).expect("a function");
    let (ready, address) = mpsc::channel();
    // Ends with the process of the test: what ends a server is a signal.
    std::thread::spawn(move || {
        let reread = || Ok(Config::default());
        server::serve(&config, prepared, reread, |address| ready.send(address).expect("the test waits"))
    });
    address.recv_timeout(TIME_MAX).expect("it listens")
}

#[test]
fn a_panic_in_a_host_call_is_a_500_and_the_server_goes_on() {
    let address = serve("host-panic.wat", &OFFERED, |_| {});
    let client = Client::new(address, TIME_MAX);
    for _ in 0..20 {
        assert_eq!(client.post("/f", "-").text(), "ok");
        assert_failure(&client.post("/f", "p"), 500, "internal", "internal", Some("f"));
    }
    assert_eq!(client.post("/f", "-").text(), "ok");
}
