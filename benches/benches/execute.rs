//! How long functions compute, in a sandbox and as native code of the same source: some of PolyBench's kernels, and the paper's applications.
//!
//! The programs time themselves, as they do for `make polybench` and `make promises`, so that starting a process is no part of it.
#![forbid(unsafe_code)]

mod settings;

use std::time::Duration;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use settings::settings;
use sledge_benches::applications::{Place, Timed};
use sledge_benches::example::APPLICATIONS;
use sledge_benches::polybench::plan::Plan;
use sledge_benches::polybench::variant::Variant;
use sledge_benches::polybench::{build, machine, session};

const DATASET: &str = "MEDIUM";
/// A product of matrices, a stencil, a factorisation, dynamic programming.
const KERNELS: [&str; 4] = ["gemm", "jacobi-2d", "lu", "nussinov"];

fn kernels(criterion: &mut Criterion) {
    let variants = [Variant::Native, Variant::C_GUARD];
    let plan = Plan::new(DATASET, &KERNELS.map(str::to_owned), &variants, 1).expect("there are such kernels");
    let programs = build::programs(&plan).expect("the kernels compile");
    let _pinned = machine::Pinned::new().expect("a core");
    let mut group = criterion.benchmark_group("execute");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    for kernel in &plan.kernels {
        let run = |variant| {
            session::run(programs.command(kernel, variant).expect("it is built"), kernel, DATASET).expect("the kernel runs")
        };
        let expected = run(Variant::Native).result;
        for variant in variants {
            group.bench_function(format!("{kernel} {variant}"), |bencher| {
                bencher.iter_custom(|times| {
                    let once = |_| {
                        let outcome = run(variant);
                        assert_eq!(outcome.result, expected, "{kernel} as {variant}");
                        Duration::from_secs_f64(outcome.seconds)
                    };
                    (0..times).map(once).sum()
                })
            });
        }
    }
    group.finish();
}

fn applications(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let timed = APPLICATIONS.map(|example| (example.name, Timed::build(example, folder.path()).expect("it builds")));
    let _pinned = machine::Pinned::new().expect("a core");
    let mut group = criterion.benchmark_group("execute");
    // A run is a series of many calls by itself, and says what the quickest took.
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(4));
    for (name, timed) in timed {
        for (place, variant) in [(Place::Native, "native"), (Place::Sandbox, "c-guard")] {
            let seconds = || timed.seconds(place).expect("it runs");
            group.bench_function(format!("{name} {variant}"), |bencher| {
                bencher.iter_custom(|times| (0..times).map(|_| Duration::from_secs_f64(seconds())).sum())
            });
        }
    }
    group.finish();
}

criterion_group!(name = benches; config = settings(); targets = kernels, applications);
criterion_main!(benches);
