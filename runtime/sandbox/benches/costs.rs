//! What the single steps of a sandbox's life cost, on one pinned core. Outputs are checked.
//!
//! The artifact is the tests' hand-made one: memory of 2 pages, table of 4 elements.
#![cfg(target_arch = "x86_64")]
#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "../tests/sandbox/guest.rs"]
mod guest;

use std::hint::black_box;
use std::time::{Duration, Instant};

use awsm_abi::types::Bounds;
use criterion::{Criterion, criterion_group, criterion_main};
use guest::{LIMITS, parts, prepare, template};
use sledge_sandbox::*;

fn worker(quantum: Duration) -> WorkerThread {
    let worker = WorkerThread::enter(quantum).unwrap();
    worker.pin(*affinity().unwrap().last().unwrap()).unwrap();
    worker
}

/// A fresh sandbox, an empty function, the reset.
fn request(pool: &mut Pool, template: &Template) {
    let mut sandbox = pool.take(template).unwrap();
    let nothing = sandbox.export_function(sandbox.main_instance().unwrap(), "nothing").unwrap();
    sandbox.prepare(nothing, &[]).unwrap();
    assert_eq!(sandbox.resume(), Event::Returned);
    pool.put(sandbox);
}

fn crossings(criterion: &mut Criterion) {
    let _worker = worker(Duration::from_micros(500));
    let mut sandbox = template().instantiate().unwrap();
    let nothing = sandbox.export_function(sandbox.main_instance().unwrap(), "nothing").unwrap();
    criterion.bench_function("context-switch/to an empty function and back", |bencher| {
        bencher.iter(|| {
            sandbox.prepare(nothing, &[]).unwrap();
            assert_eq!(sandbox.resume(), Event::Returned);
        })
    });
    prepare(&mut sandbox, "many_host", &[Value::I64(i64::MAX)]);
    assert!(matches!(sandbox.resume(), Event::HostCall(_)));
    criterion.bench_function("host-call/one argument, one result", |bencher| {
        bencher.iter(|| {
            black_box(sandbox.host_args()[0].i32());
            sandbox.host_results(&[Value::I32(1)]).unwrap();
            assert!(matches!(sandbox.resume(), Event::HostCall(_)));
        })
    });
    sandbox.finish();
    criterion.bench_function("trap/ud1, up to the event", |bencher| {
        bencher.iter(|| {
            prepare(&mut sandbox, "unreachable", &[]);
            assert!(matches!(sandbox.resume(), Event::Trapped(_)));
        })
    });
    criterion.bench_function("trap/memory, up to the event", |bencher| {
        bencher.iter(|| {
            prepare(&mut sandbox, "load", &[Value::I32(-1)]);
            assert!(matches!(sandbox.resume(), Event::Trapped(_)));
        })
    });
}

fn lives(criterion: &mut Criterion) {
    let _worker = worker(Duration::from_micros(500));
    let hand_made = template();
    let mut pool = Pool::new();
    criterion.bench_function("load/hand-made artifact, loaded and unloaded", |bencher| {
        bencher.iter(|| black_box(Artifact::load(guest::bytes(), &LoadPolicy::default()).unwrap()))
    });
    let mut group = criterion.benchmark_group("instantiate");
    group.bench_function("from the template, empty function, drop", |bencher| {
        bencher.iter(|| {
            let mut sandbox = hand_made.instantiate().unwrap();
            let nothing = sandbox.export_function(sandbox.main_instance().unwrap(), "nothing").unwrap();
            sandbox.prepare(nothing, &[]).unwrap();
            assert_eq!(sandbox.resume(), Event::Returned);
        })
    });
    for (pages, max) in [(0, 0), (1, 64), (17, 64)] {
        let mut parts = parts();
        parts.descriptor.modules[0].memories[0].ty.pages_min = pages;
        parts.descriptor.modules[0].memories[0].ty.pages_max = Some(max);
        if pages == 0 {
            parts.descriptor.modules[0].data.truncate(1);
        }
        let template = Template::new(&parts.load(), &LIMITS).unwrap();
        let name = format!("pooled, empty function, memory of {} KiB", pages * 64);
        group.bench_function(name, |bencher| bencher.iter(|| request(&mut pool, &template)));
    }
    group.finish();
}

fn sized(bounds: Bounds, pages: u64) -> Template {
    let mut parts = parts();
    parts.descriptor.modules[0].bounds[0] = bounds;
    parts.descriptor.modules[0].memories[0].ty.pages_min = pages;
    Template::new(&parts.load(), &LIMITS).unwrap()
}

fn store(sandbox: &mut Sandbox, address: i32) {
    prepare(sandbox, "store", &[Value::I32(address), Value::I32(1)]);
    assert_eq!(sandbox.resume(), Event::Returned);
}

/// What writing costs: pages that earlier runs wrote to, growth, and pages that no run wrote to yet.
fn memories(criterion: &mut Criterion) {
    const FIRST_WRITES: u32 = 6;

    let _worker = worker(Duration::from_micros(500));
    let mut pool = Pool::new();
    let mut group = criterion.benchmark_group("memory");
    for bounds in [Bounds::Guard, Bounds::Software] {
        let large = sized(bounds, 40);
        group.bench_function(format!("pooled, 5 pages of 2.5 MiB written to, {bounds}"), |bencher| {
            bencher.iter(|| {
                let mut sandbox = pool.take(&large).unwrap();
                (0..5).for_each(|page| store(&mut sandbox, page * 0x8_0000 + 16));
                pool.put(sandbox);
            })
        });
        let small = sized(bounds, 2);
        group.bench_function(format!("pooled, 128 KiB grown by 64 KiB, written to, {bounds}"), |bencher| {
            bencher.iter(|| {
                let mut sandbox = pool.take(&small).unwrap();
                prepare(&mut sandbox, "grow", &[Value::I32(1)]);
                assert_eq!(sandbox.resume(), Event::Returned);
                store(&mut sandbox, 0x2_0000);
                pool.put(sandbox);
            })
        });
    }
    let template = sized(Bounds::Guard, 40);
    let mut first_writes = || {
        pool.clear();
        let sandbox = pool.take(&template).unwrap();
        pool.put(sandbox);
        let mut sandbox = pool.take(&template).unwrap();
        let start = Instant::now();
        (0..FIRST_WRITES as i32).for_each(|page| store(&mut sandbox, page * 0x4_0000 + 16));
        start.elapsed() / FIRST_WRITES
    };
    group.bench_function("first write to a page that is not learned yet", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| first_writes()).sum())
    });
    group.finish();
}

fn signals(criterion: &mut Criterion) {
    let worker = worker(Duration::from_micros(500));
    let mut group = criterion.benchmark_group("preemption");
    group.bench_function("timer, armed and disarmed", |bencher| {
        bencher.iter(|| {
            worker.arm();
            worker.disarm();
        })
    });
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "tick", &[guest::thread_id()]);
    group.bench_function("signal, suspension, resumption", |bencher| {
        bencher.iter(|| assert_eq!(sandbox.resume(), Event::Preempted))
    });
    sandbox.kill();
    group.bench_function("signal that suspends nothing", |bencher| {
        bencher.iter(|| {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::ALARM).unwrap();
            assert!(worker.take_tick());
        })
    });
    group.finish();
}

/// Time that this thread has used, so that others on its core do not count.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What a tick of the timer costs: from the processor time of the same work with and without it. The interrupt itself, which can leave a virtual
/// machine, is included; so the same is measured without any guest.
fn ticks(criterion: &mut Criterion) {
    const ROUNDS: i64 = 3_000_000;
    const QUANTUM: Duration = Duration::from_micros(50);

    let template = template();
    let guest = |worker: &WorkerThread| {
        let mut sandbox = template.instantiate().unwrap();
        prepare(&mut sandbox, "mix", &[Value::I64(ROUNDS)]);
        let (start, mut ticks) = (thread_time(), 0u32);
        while sandbox.resume() == Event::Preempted {
            ticks += 1;
        }
        let _ = worker.take_tick();
        (thread_time() - start, ticks)
    };
    let host = |worker: &WorkerThread| {
        let (start, mut ticks) = (thread_time(), 0u32);
        let mut number = 1u64;
        for _ in 0..3000 {
            for _ in 0..10_000 {
                number = black_box(number.wrapping_mul(3) ^ 1);
            }
            ticks += u32::from(worker.take_tick());
        }
        (thread_time() - start, ticks)
    };
    let mut group = criterion.benchmark_group("preemption");
    group.sample_size(11);
    let mut measure = |name: &str, work: &dyn Fn(&WorkerThread) -> (Duration, u32)| {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let worker = worker(QUANTUM);
                let (mut cost, mut ticks) = (Duration::ZERO, 0);
                while u64::from(ticks) < times {
                    let (alone, _) = work(&worker);
                    worker.arm();
                    let (ticked, more) = work(&worker);
                    worker.disarm();
                    cost += ticked.saturating_sub(alone);
                    ticks += more;
                }
                cost.mul_f64(times as f64 / f64::from(ticks))
            })
        });
    };
    measure("tick that suspends nothing", &host);
    measure("tick that suspends a guest, and its resumption", &guest);
    group.finish();
}

fn settings() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1))
}

criterion_group!(name = benches; config = settings(); targets = crossings, lives, memories, signals, ticks);
criterion_main!(benches);
