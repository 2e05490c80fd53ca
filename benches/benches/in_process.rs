//! What a request needs besides HTTP and scheduling, in this process on one core: loading an artifact, a fresh sandbox, whole requests, traps.
//!
//! `make promises` measures the same way (the library's module `warm`). The steps below these are in `runtime/sandbox/benches/costs.rs`.
#![forbid(unsafe_code)]

mod settings;

use std::hint::black_box;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use settings::settings;
use sledge_benches::example::{APPLICATIONS, ECHO, Example, IMAGE_RESIZE};
use sledge_benches::warm::{self, Warm};
use sledge_benches::{checkout, compiler};

/// Compiles one of the functions in benches/functions.
fn function(folder: &Path, file: &str) -> PathBuf {
    let artifact = folder.join(file).with_extension("so");
    compiler::compile(&checkout::root().join("benches/functions").join(file), &artifact).expect("the function compiles");
    artifact
}

fn example(folder: &Path, example: &Example) -> PathBuf {
    let artifact = folder.join(example.name).with_extension("so");
    compiler::compile(&example.source(), &artifact).expect("the example compiles");
    artifact
}

/// From a file to what can be invoked: reading it, checking it, code that can be executed, and the image of its memory.
fn loading(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifacts = [
        ("empty", function(folder.path(), "empty.wat")),
        ("hello", function(folder.path(), "hello.c")),
        (IMAGE_RESIZE.name, example(folder.path(), &IMAGE_RESIZE)),
    ];
    let _worker = warm::worker().expect("this thread becomes a worker");
    let mut group = criterion.benchmark_group("load");
    for (name, artifact) in artifacts {
        group
            .bench_function(name, |bencher| bencher.iter_with_large_drop(|| warm::load(black_box(&artifact)).expect("it loads")));
    }
    group.finish();
}

/// A sandbox from the pool, a function that does (next to) nothing, and the reset.
fn instantiating(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifacts = [
        ("empty", function(folder.path(), "empty.wat"), &b""[..]),
        ("hello", function(folder.path(), "hello.c"), b"Hello, world! 7\n"),
    ];
    let _worker = warm::worker().expect("this thread becomes a worker");
    let mut group = criterion.benchmark_group("instantiate");
    for (name, artifact, expected) in artifacts {
        let mut warm = Warm::new(&artifact).expect("it loads");
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let ended = warm.request(&Bytes::new()).expect("it runs");
                assert!(ended.outcome.is_ok() && ended.reply == expected, "{ended:?}");
            })
        });
    }
    group.finish();
}

/// Real bodies and replies, through the same door as a worker's.
fn requests(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let examples: Vec<_> = [&ECHO].into_iter().chain(APPLICATIONS).map(|it| (it, example(folder.path(), it))).collect();
    let _worker = warm::worker().expect("this thread becomes a worker");
    let mut group = criterion.benchmark_group("request-in-process");
    for (example, artifact) in examples {
        let mut warm = Warm::new(&artifact).expect("it loads");
        let body = Bytes::from(example.input().expect("the input is there"));
        let first = warm.request(&body).expect("it runs");
        assert!(first.outcome.is_ok(), "{first:?}");
        example.judge(&body, &first.reply).expect("the reply is right");
        group.bench_function(example.name, |bencher| {
            bencher.iter(|| {
                let ended = warm.request(&body).expect("it runs");
                assert!(ended.outcome.is_ok() && ended.reply == first.reply, "another reply than the first");
            })
        });
    }
    group.finish();
}

/// A request whose function traps: its sandbox is thrown away, the next one gets another.
fn traps(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let artifact = function(folder.path(), "trap.wat");
    let _worker = warm::worker().expect("this thread becomes a worker");
    let mut warm = Warm::new(&artifact).expect("it loads");
    let mut group = criterion.benchmark_group("trap");
    group.bench_function("whole request", |bencher| {
        bencher.iter(|| {
            let ended = warm.request(&Bytes::new()).expect("it runs");
            assert!(ended.outcome.is_err(), "{ended:?}");
        })
    });
    group.finish();
}

criterion_group!(name = benches; config = settings(); targets = loading, instantiating, requests, traps);
criterion_main!(benches);
