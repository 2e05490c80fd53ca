//! How long a warm request takes over loopback on a kept-alive connection, as the client sees it.
//!
//! Beside each other in one run: a function that does nothing (the floor: HTTP, dispatch, a sandbox), the
//! examples, and what gps-ekf costs as a native process for each request (fork, exec, wait).
#![forbid(unsafe_code)]

mod settings;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use settings::settings;
use sledge_benches::checkout;
use sledge_benches::client::Client;
use sledge_benches::compiler::compile;
use sledge_benches::example::{EXAMPLES, GPS_EKF};
use sledge_benches::server::{Function, Server};

fn requests(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let noop = folder.path().join("noop.so");
    compile(&checkout::root().join("benches/functions/noop.c"), &noop).expect("noop compiles");
    let artifacts: Vec<_> = EXAMPLES
        .iter()
        .map(|example| {
            let output = folder.path().join(example.name).with_extension("so");
            compile(&example.source(), &output).expect("the example compiles")
        })
        .collect();
    let mut functions = vec![Function { name: "noop", path: &noop, content_type: "text/plain" }];
    functions.extend(EXAMPLES.iter().zip(&artifacts).map(|(example, artifact)| Function {
        name: example.name,
        path: &artifact.path,
        content_type: example.content_type,
    }));
    let server = Server::start(folder.path(), &functions).expect("the server starts");
    let mut client = Client::connect(server.address()).expect("the server accepts");

    let mut group = criterion.benchmark_group("request-over-loopback");
    let empty = Bytes::new();
    let reply = client.post("/noop", &empty, &[]).expect("noop answers");
    assert!(reply.status.is_success() && reply.body.is_empty(), "{reply:?}");
    group.bench_function("noop", |bencher| bencher.iter(|| client.post("/noop", &empty, &[]).expect("noop answers")));
    for example in EXAMPLES {
        let body = Bytes::from(example.input().expect("the input is there"));
        let route = format!("/{}", example.name);
        let reply = client.post(&route, &body, &[]).expect("the example answers");
        example.judge(&body, &reply.body).expect("the reply is right");
        group.bench_function(example.name, |bencher| {
            bencher.iter(|| client.post(&route, &body, &[]).expect("the example answers"))
        });
    }
    let native = native_gps_ekf(folder.path());
    let body = GPS_EKF.input().expect("the input is there");
    GPS_EKF.judge(&body, &spawn(&native, &body)).expect("the native reply is right");
    group.bench_function("gps-ekf-native-process", |bencher| bencher.iter(|| spawn(&native, &body)));
    group.finish();
    server.stop().expect("the server stops");
}

fn native_gps_ekf(folder: &Path) -> std::path::PathBuf {
    let program = folder.join("gps-ekf-native");
    let status = Command::new("cc").arg("-O3").arg("-o").arg(&program).arg(GPS_EKF.source()).arg("-lm").status();
    assert!(status.expect("cc runs").success());
    program
}

fn spawn(program: &Path, body: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("stdin is piped").write_all(body).expect("it reads");
    child.wait_with_output().expect("it ends").stdout
}

criterion_group!(name = benches; config = settings(); targets = requests);
criterion_main!(benches);
