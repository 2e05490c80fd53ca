//! What the single steps of a sandbox's life cost: medians over many repetitions on one pinned core, printed. Outputs are checked.
//!
//! The artifact is the tests' hand-made one: memory of 2 pages, table of 4 elements.
#![cfg(target_arch = "x86_64")]
#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "../tests/sandbox/guest.rs"]
mod guest;

use std::hint::black_box;
use std::time::{Duration, Instant};

use guest::{LIMITS, parts, prepare, template};
use sledge_sandbox::*;

/// Nanoseconds per repetition: median and 99th percentile of samples of `batch` repetitions each.
fn measure(name: &str, samples: usize, batch: u32, mut step: impl FnMut()) {
    for _ in 0..batch {
        step();
    }
    let mut times: Vec<f64> = (0..samples)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..batch {
                step();
            }
            start.elapsed().as_nanos() as f64 / f64::from(batch)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name:60} {:>10.0} ns  p99 {:>10.0} ns", times[samples / 2], times[samples * 99 / 100]);
}

fn main() {
    let worker = WorkerThread::enter(Duration::from_micros(500)).unwrap();
    let cores = affinity().unwrap();
    worker.pin(*cores.last().unwrap()).unwrap();
    let template = template();
    let mut pool = Pool::new(PoolLimits::default());

    let mut sandbox = template.instantiate().unwrap();
    let main = sandbox.main_instance().unwrap();
    let nothing = sandbox.export_function(main, "nothing").unwrap();
    measure("call of an empty function (prepare, resume, return)", 1000, 100, || {
        sandbox.prepare(nothing, &[]).unwrap();
        assert_eq!(sandbox.resume(), Event::Returned);
    });
    prepare(&mut sandbox, "many_host", &[Value::I64(i64::MAX)]);
    assert!(matches!(sandbox.resume(), Event::HostCall(_)));
    measure("host call (resume, suspend, one argument, one result)", 1000, 100, || {
        black_box(sandbox.host_args()[0].i32());
        sandbox.host_results(&[Value::I32(1)]).unwrap();
        assert!(matches!(sandbox.resume(), Event::HostCall(_)));
    });
    sandbox.finish();

    measure("pooled: take, empty function, put (memory 128 KiB)", 1000, 10, || {
        let mut sandbox = pool.take(&template).unwrap();
        let function = sandbox.export_function(main, "nothing").unwrap();
        sandbox.prepare(function, &[]).unwrap();
        assert_eq!(sandbox.resume(), Event::Returned);
        pool.put(sandbox);
    });
    for (pages, max) in [(0, 0), (1, 64), (17, 64)] {
        let mut parts = parts();
        parts.descriptor.modules[0].memories[0].ty.pages_min = pages;
        parts.descriptor.modules[0].memories[0].ty.pages_max = Some(max);
        if pages == 0 {
            parts.descriptor.modules[0].data.truncate(1);
        }
        let template = Template::new(&parts.load(), &LIMITS).unwrap();
        let name = format!("pooled: take, empty function, put (memory {} KiB)", pages * 64);
        measure(&name, 1000, 10, || {
            let mut sandbox = pool.take(&template).unwrap();
            let function = sandbox.export_function(main, "nothing").unwrap();
            sandbox.prepare(function, &[]).unwrap();
            assert_eq!(sandbox.resume(), Event::Returned);
            pool.put(sandbox);
        });
    }
    memories(&mut pool);
    measure("cold: instantiate from the template, empty function, drop", 300, 1, || {
        let mut sandbox = template.instantiate().unwrap();
        let function = sandbox.export_function(main, "nothing").unwrap();
        sandbox.prepare(function, &[]).unwrap();
        assert_eq!(sandbox.resume(), Event::Returned);
    });
    measure("trap (ud1), up to the event", 1000, 10, || {
        prepare(&mut sandbox, "unreachable", &[]);
        assert!(matches!(sandbox.resume(), Event::Trapped(_)));
    });
    measure("trap (memory), up to the event", 1000, 10, || {
        prepare(&mut sandbox, "load", &[Value::I32(-1)]);
        assert!(matches!(sandbox.resume(), Event::Trapped(_)));
    });
    measure("timer: arm and disarm", 300, 10, || {
        worker.arm();
        worker.disarm();
    });
    prepare(&mut sandbox, "tick", &[guest::who()]);
    measure("signal, suspension, resumption, return from the signal", 1000, 10, || {
        assert_eq!(sandbox.resume(), Event::Preempted);
    });
    sandbox.kill();
    let raise = || rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::ALARM).unwrap();
    measure("signal that suspends nothing", 1000, 10, || {
        raise();
        assert!(worker.take_tick());
    });
    measure("load and unload the artifact", 100, 1, || {
        black_box(Artifact::load(guest::bytes(), &LoadPolicy::default()).unwrap());
    });
    drop(worker);
    preemption(&template);
}

/// What writing costs: pages that earlier runs wrote to, growth, and pages that no run wrote to yet.
fn memories(pool: &mut Pool) {
    let template = |bounds, pages| {
        let mut parts = parts();
        parts.descriptor.modules[0].bounds[0] = bounds;
        parts.descriptor.modules[0].memories[0].ty.pages_min = pages;
        Template::new(&parts.load(), &LIMITS).unwrap()
    };
    let store = |sandbox: &mut Sandbox, address: i32| {
        prepare(sandbox, "store", &[Value::I32(address), Value::I32(1)]);
        assert_eq!(sandbox.resume(), Event::Returned);
    };
    for bounds in [awsm_abi::types::Bounds::Guard, awsm_abi::types::Bounds::Software] {
        let large = template(bounds, 40);
        measure(&format!("pooled: 5 pages of 2.5 MiB written to ({bounds})"), 1000, 10, || {
            let mut sandbox = pool.take(&large).unwrap();
            (0..5).for_each(|page| store(&mut sandbox, page * 0x8_0000 + 16));
            pool.put(sandbox);
        });
        let small = template(bounds, 2);
        measure(&format!("pooled: 128 KiB grown by 64 KiB, written to ({bounds})"), 1000, 10, || {
            let mut sandbox = pool.take(&small).unwrap();
            prepare(&mut sandbox, "grow", &[Value::I32(1)]);
            assert_eq!(sandbox.resume(), Event::Returned);
            store(&mut sandbox, 0x2_0000);
            pool.put(sandbox);
        });
    }
    let template = template(awsm_abi::types::Bounds::Guard, 40);
    let mut costs: Vec<f64> = (0..300)
        .map(|_| {
            pool.clear();
            let sandbox = pool.take(&template).unwrap();
            pool.put(sandbox);
            let mut sandbox = pool.take(&template).unwrap();
            let start = Instant::now();
            (0..6).for_each(|page| store(&mut sandbox, page * 0x4_0000 + 16));
            start.elapsed().as_nanos() as f64 / 6.0
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!("{:60} {:>10.0} ns", "first write to a page that is not learned yet", costs[150]);
    pool.clear();
}

/// Time that this thread has used, so that others on its core do not count.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What a tick of the timer costs: from the processor time of the same work with and without it. The interrupt itself, which can leave a virtual
/// machine, is included; so the same is measured without any guest.
fn preemption(template: &Template) {
    const ROUNDS: i64 = 3_000_000;
    const QUANTUM: Duration = Duration::from_micros(50);
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
    let cost = |work: &dyn Fn(&WorkerThread) -> (Duration, u32)| {
        let mut costs: Vec<f64> = (0..11)
            .map(|_| {
                let worker = WorkerThread::enter(QUANTUM).unwrap();
                worker.pin(*affinity().unwrap().last().unwrap()).unwrap();
                let (alone, _) = work(&worker);
                worker.arm();
                let (ticked, ticks) = work(&worker);
                (ticked.as_nanos() as f64 - alone.as_nanos() as f64) / f64::from(ticks)
            })
            .collect();
        costs.sort_by(f64::total_cmp);
        costs[5]
    };
    println!("{:60} {:>10.0} ns", "tick of the timer that suspends nothing", cost(&host));
    println!("{:60} {:>10.0} ns", "tick of the timer that suspends a guest, and its resumption", cost(&guest));
}
