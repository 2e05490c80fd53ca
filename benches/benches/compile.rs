//! How long `awsm compile` takes, the process included, from wasm to the shared object.
//!
//! From wasm and not from the source, so that clang is not in it. The floor is a program that does nothing.
#![forbid(unsafe_code)]

mod settings;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use settings::settings;
use sledge_benches::compiler::{compile, compile_with};
use sledge_benches::example::GPS_EKF;
use sledge_benches::{checkout, server};

fn compiling(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let noop_source = checkout::root().join("benches/functions/noop.c");
    let mut group = criterion.benchmark_group("compile");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).measurement_time(Duration::from_secs(4));
    for (name, source) in [("noop", noop_source), ("gps-ekf", GPS_EKF.source())] {
        let wasm = folder.path().join(name).with_extension("wasm");
        let output = folder.path().join(name).with_extension("so");
        compile_with(&source, &wasm, &["--emit", "wasm"]).expect("the source compiles to wasm");
        // The output is right before it is timed: what was compiled is served and answers.
        compile(&wasm, &output).expect("the wasm compiles");
        let function = server::Function { name, path: &output, content_type: "application/octet-stream" };
        let server = server::Server::start(folder.path(), &[function]).expect("what was compiled can be served");
        server.stop().expect("the server stops");
        group.bench_function(name, |bencher| bencher.iter(|| compile(black_box(&wasm), &output).expect("the wasm compiles")));
    }
    group.finish();
}

criterion_group!(name = benches; config = settings(); targets = compiling);
criterion_main!(benches);
