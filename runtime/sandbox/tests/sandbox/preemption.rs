//! The timer: endless loops are suspended and killed, results do not change however often a guest is preempted, ticks elsewhere do no harm.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use sledge_sandbox::*;

use crate::guest::{LIMITS, artifact, call, prepare, resume, template, thread_id, worker};

/// How many times longer a tick may take than on x86-64: tests for other processors run in emulators, which at 20 us do nothing but ticks.
const SLOWER: u64 = if cfg!(target_arch = "x86_64") { 1 } else { 50 };

fn ticking(quantum_us: u64) -> WorkerThread {
    let worker = WorkerThread::enter(Duration::from_micros(quantum_us * SLOWER)).unwrap();
    worker.arm();
    worker
}

#[test]
fn an_endless_loop_is_preempted_at_every_quantum_and_can_be_killed() {
    for quantum_us in [20, 100, 500] {
        let worker = ticking(quantum_us);
        let template = template();
        let mut endless = template.instantiate().unwrap();
        prepare(&mut endless, "spin", &[]);
        for _ in 0..200 {
            assert_eq!(endless.resume(), Event::Preempted);
            // Another's quick call between any two of its quanta.
            let mut quick = template.instantiate().unwrap();
            assert_eq!(call(&mut quick, "add", &[1, 2]), Ok(vec![Value::I32(3)]));
        }
        assert_eq!(endless.backtrace().frames[0].name.as_deref(), Some("spin"));
        endless.kill();
        drop(endless);
        worker.disarm();
    }
}

#[test]
fn a_disarmed_timer_does_not_tick() {
    let worker = ticking(100);
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "spin", &[]);
    assert_eq!(sandbox.resume(), Event::Preempted);
    worker.disarm();
    let _ = worker.take_tick();
    let start = Instant::now();
    prepare(&mut template().instantiate().unwrap(), "nothing", &[]);
    while start.elapsed() < Duration::from_millis(5 * SLOWER) {}
    assert!(!worker.take_tick());
    worker.arm();
    while !worker.take_tick() {}
}

#[test]
fn results_are_bit_for_bit_the_same_under_preemption() {
    const ROUNDS: i64 = 300_000;
    let expected = {
        let _worker = worker();
        let mut sandbox = template().instantiate().unwrap();
        prepare(&mut sandbox, "mix", &[Value::I64(ROUNDS)]);
        assert_eq!(sandbox.resume(), Event::Returned);
        sandbox.results()
    };
    let _worker = ticking(20);
    let template = template();
    let mut preemptions = 0u32;
    while preemptions < 500 {
        let mut sandboxes: Vec<_> = (0..4).map(|_| template.instantiate().unwrap()).collect();
        for sandbox in &mut sandboxes {
            prepare(sandbox, "mix", &[Value::I64(ROUNDS)]);
        }
        while !sandboxes.is_empty() {
            sandboxes.retain_mut(|sandbox| match sandbox.resume() {
                Event::Preempted => {
                    preemptions += 1;
                    // What a scheduler would do with vector registers of its own.
                    std::hint::black_box([1.5f64; 64].iter().sum::<f64>());
                    true
                }
                Event::Returned => {
                    assert_eq!(sandbox.results(), expected);
                    false
                }
                event => panic!("{event:?}"),
            });
        }
    }
}

#[test]
fn preempted_guests_move_between_threads() {
    const ROUNDS: i64 = 100_000;
    let template = template();
    let expected = {
        let _worker = worker();
        let mut sandbox = template.instantiate().unwrap();
        prepare(&mut sandbox, "mix", &[Value::I64(ROUNDS)]);
        assert_eq!(sandbox.resume(), Event::Returned);
        sandbox.results()
    };
    let mut moves = 0;
    while moves < 200 {
        moves += exchange(&template, ROUNDS, &expected);
    }
}

/// Two workers hand eight sandboxes to each other after every quantum, until all are done: the number of moves.
fn exchange(template: &Template, rounds: i64, expected: &[Value]) -> u32 {
    let (to_right, from_left) = mpsc::channel::<Sandbox>();
    let (to_left, from_right) = mpsc::channel::<Sandbox>();
    for i in 0..8 {
        let mut sandbox = template.instantiate().unwrap();
        prepare(&mut sandbox, "mix", &[Value::I64(rounds)]);
        if i % 2 == 0 { to_right.send(sandbox).unwrap() } else { to_left.send(sandbox).unwrap() }
    }
    let left_to_do = AtomicI32::new(8);
    let work = |from: mpsc::Receiver<Sandbox>, to: mpsc::Sender<Sandbox>| {
        let _worker = ticking(30);
        let mut moves = 0;
        while left_to_do.load(Ordering::SeqCst) > 0 {
            let Ok(mut sandbox) = from.recv_timeout(Duration::from_millis(1)) else { continue };
            match sandbox.resume() {
                Event::Preempted => {
                    moves += 1;
                    to.send(sandbox).unwrap();
                }
                Event::Returned => {
                    assert_eq!(sandbox.results(), expected);
                    left_to_do.fetch_sub(1, Ordering::SeqCst);
                }
                event => panic!("{event:?}"),
            }
        }
        moves
    };
    std::thread::scope(|scope| {
        let right = scope.spawn(|| work(from_left, to_left));
        let left = scope.spawn(|| work(from_right, to_right));
        right.join().unwrap() + left.join().unwrap()
    })
}

#[test]
fn a_guest_that_moved_uses_the_new_threads_signal_stack() {
    let template = template();
    let (mut endless, mut deep) = (template.instantiate().unwrap(), template.instantiate().unwrap());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let _worker = ticking(50);
            prepare(&mut endless, "spin", &[]);
            assert_eq!(endless.resume(), Event::Preempted);
        });
        first.join().unwrap();
    });
    // The first thread's signal stack is gone. Resuming returns through a frame that names it; the next fault must not land there.
    let _worker = ticking(50);
    assert_eq!(endless.resume(), Event::Preempted);
    assert_eq!(call(&mut deep, "recurse", &[0]).unwrap_err().code, TrapCode::StackExhausted);
    assert_eq!(endless.resume(), Event::Preempted);
}

#[test]
fn ticks_during_host_calls_traps_and_resets_do_no_harm() {
    let worker = ticking(20);
    let template = template();
    let mut pool = Pool::new();
    let (mut calls, mut ticks) = (0u64, 0u64);
    while calls < 20 || ticks < 20 {
        let mut sandbox = pool.take(&template).unwrap();
        prepare(&mut sandbox, "many_host", &[Value::I64(50)]);
        loop {
            match resume(&mut sandbox) {
                Event::HostCall(_) => sandbox.host_results(&[Value::I32(2)]).unwrap(),
                Event::Returned => break,
                event => panic!("{event:?}"),
            }
            ticks += u64::from(worker.take_tick());
        }
        assert_eq!(sandbox.results(), [Value::I64(100)]);
        for (name, code) in [
            ("unreachable", TrapCode::Unreachable),
            ("recurse", TrapCode::StackExhausted),
            ("recurse_host", TrapCode::StackExhausted),
            ("load", TrapCode::MemoryOutOfBounds),
        ] {
            let args = if name == "unreachable" { &[][..] } else { &[Value::I32(-1)] };
            prepare(&mut sandbox, name, args);
            let trap = loop {
                match resume(&mut sandbox) {
                    Event::HostCall(_) => sandbox.host_results(&[Value::I32(2)]).unwrap(),
                    Event::Trapped(trap) => break trap,
                    event => panic!("{event:?}"),
                }
            };
            assert_eq!(trap.code, code, "{name}");
        }
        assert_eq!(call(&mut sandbox, "add", &[1, 2]), Ok(vec![Value::I32(3)]));
        pool.put(sandbox);
        calls += 1;
    }
}

#[test]
fn a_signal_at_a_known_instruction_suspends_the_guest_right_there() {
    let _worker = worker();
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "tick", &[thread_id()]);
    for _ in 0..1000 {
        assert_eq!(sandbox.resume(), Event::Preempted);
        assert_eq!(sandbox.backtrace().frames.len(), 1);
    }
}

#[test]
fn a_stack_without_room_for_the_signal_is_exhausted_wherever_that_shows() {
    let _worker = worker();
    for pages in 0..20 {
        let limits = SandboxLimits { stack_bytes: (64 << 10) + pages * 4096, ..LIMITS };
        let template = Template::new(artifact(), &limits).unwrap();
        for name in ["recurse_tick", "leap_tick"] {
            let mut sandbox = template.instantiate().unwrap();
            prepare(&mut sandbox, name, &[thread_id()]);
            let mut depth = 0;
            let trap = loop {
                match sandbox.resume() {
                    Event::Preempted => depth += 1,
                    Event::Trapped(trap) => break trap,
                    event => panic!("{event:?}"),
                }
            };
            assert_eq!(trap.code, TrapCode::StackExhausted, "{name} at depth {depth}");
            assert_eq!(sandbox.backtrace().frames[0].name.as_deref(), Some(name), "at depth {depth}");
            // The signal is not blocked afterwards.
            prepare(&mut sandbox, "tick", &[thread_id()]);
            assert_eq!(sandbox.resume(), Event::Preempted);
        }
    }
}

#[test]
fn a_timer_set_for_later_leaves_the_guest_alone_until_then() {
    let worker = WorkerThread::enter(Duration::from_micros(100)).unwrap();
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "spin", &[]);
    let start = Instant::now();
    worker.arm_after(Duration::from_millis(20));
    assert_eq!(sandbox.resume(), Event::Preempted);
    assert!(start.elapsed() >= Duration::from_millis(20));
    let start = Instant::now();
    assert_eq!(sandbox.resume(), Event::Preempted);
    assert!(start.elapsed() < Duration::from_millis(20));
}

#[test]
fn a_guest_that_begins_shortly_before_a_tick_runs_on_and_not_for_ever() {
    let quantum = Duration::from_millis(20);
    let worker = WorkerThread::enter(quantum).unwrap();
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "spin", &[]);
    // Of the timer's first quantum, and of a later one.
    for pause in [15, 55] {
        worker.disarm();
        let _ = worker.take_tick();
        worker.arm_for(Instant::now());
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(pause) {}
        // What came meanwhile is no guest's.
        let _ = worker.take_tick();
        let begin = Instant::now();
        worker.arm_for(begin);
        assert_eq!(sandbox.resume(), Event::Preempted);
        let ran = begin.elapsed();
        assert!(ran >= quantum / 2, "{ran:?}");
        assert!(ran < 5 * quantum, "{ran:?}");
    }
    // Those that follow each other closely put the tick off.
    worker.disarm();
    let _ = worker.take_tick();
    let start = Instant::now();
    while start.elapsed() < 3 * quantum {
        worker.arm_for(Instant::now());
    }
    assert!(!worker.take_tick());
}

#[test]
fn slow_ticks_come_when_they_are_due_and_end_with_the_next_quantum() {
    let (first, interval) = (Duration::from_millis(20), Duration::from_millis(400));
    let worker = WorkerThread::enter(Duration::from_micros(100 * SLOWER)).unwrap();
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "spin", &[]);
    let start = Instant::now();
    worker.arm_slowly(start, first, interval);
    assert_eq!(sandbox.resume(), Event::Preempted);
    assert!(start.elapsed() >= first);
    // The timer runs on as it is, until a tick is due sooner than that.
    let again = Instant::now();
    worker.arm_slowly(again, interval, interval);
    assert_eq!(sandbox.resume(), Event::Preempted);
    assert!(start.elapsed() >= first + interval && again.elapsed() >= first, "{:?}", again.elapsed());
    let sooner = Instant::now();
    worker.arm_slowly(sooner, first, interval);
    assert_eq!(sandbox.resume(), Event::Preempted);
    assert!(sooner.elapsed() < interval, "{:?}", sooner.elapsed());
    // Any other guest gets a quantum.
    let usual = Instant::now();
    worker.arm_for(usual);
    for _ in 0..3 {
        assert_eq!(sandbox.resume(), Event::Preempted);
    }
    assert!(usual.elapsed() < interval, "{:?}", usual.elapsed());
    sandbox.kill();
}

/// A tick so far away that only something else can end a run before it.
const NEVER: Duration = Duration::from_secs(600);
/// What takes longer has waited for a tick.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn another_thread_preempts_a_guest_whose_ticks_are_slow() {
    let worker = ticking(500);
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "spin", &[]);
    // Only one that was preempted runs without ticks.
    assert_eq!(sandbox.resume(), Event::Preempted);
    for _ in 0..20 {
        let start = Instant::now();
        worker.arm_slowly(start, NEVER, NEVER);
        let alarm = worker.alarm();
        // Before the guest runs, while it begins to, or later.
        let ringing = std::thread::spawn(move || alarm.ring());
        assert_eq!(sandbox.resume(), Event::Preempted);
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        ringing.join().unwrap();
        let _ = worker.take_tick();
    }
    sandbox.kill();
    // One that has ended, or runs no guest, takes no harm.
    let alarm = std::thread::spawn(|| WorkerThread::enter(Duration::from_millis(1)).unwrap().alarm()).join().unwrap();
    alarm.ring();
    worker.alarm().ring();
    assert!(worker.take_tick());
}

/// Nothing else would end its run for long. Where ticks are frequent, the next one does.
#[test]
fn a_tick_that_comes_before_a_preempted_guest_goes_on_ends_its_run_where_ticks_are_slow() {
    let quantum = Duration::from_millis(40);
    let worker = WorkerThread::enter(quantum).unwrap();
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "spin", &[]);
    worker.arm();
    assert_eq!(sandbox.resume(), Event::Preempted);
    for _ in 0..3 {
        let start = Instant::now();
        worker.arm_slowly(start, NEVER, NEVER);
        worker.alarm().ring();
        assert_eq!(sandbox.resume(), Event::Preempted);
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        // It was taken.
        assert!(!worker.take_tick());
        worker.arm_for(Instant::now());
        let start = Instant::now();
        worker.alarm().ring();
        assert_eq!(sandbox.resume(), Event::Preempted);
        assert!(start.elapsed() >= quantum / 2, "{:?}", start.elapsed());
        let _ = worker.take_tick();
    }
    sandbox.kill();
}

#[test]
fn a_loop_of_builtins_is_preempted_too() {
    let worker = ticking(200);
    let mut sandbox = template().instantiate().unwrap();
    // A tick that comes while the worker serves a builtin counts for the guest that asked for it.
    prepare(&mut sandbox, "grow", &[Value::I32(0)]);
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(SLOWER) {}
    assert_eq!(sandbox.resume(), Event::Preempted);
    assert_eq!(resume(&mut sandbox), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I32(2)]);
    drop(worker);
}

#[test]
fn a_loop_of_host_calls_is_preempted_too() {
    let worker = ticking(200);
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "many_host", &[Value::I64(3)]);
    assert!(matches!(resume(&mut sandbox), Event::HostCall(_)));
    // A tick that comes while the host serves the call counts for the guest that asked for it: it may never be found in code of its own.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(SLOWER) {}
    sandbox.host_results(&[Value::I32(2)]).unwrap();
    worker.disarm();
    assert_eq!(sandbox.resume(), Event::Preempted);
    for _ in 0..2 {
        assert!(matches!(sandbox.resume(), Event::HostCall(_)));
        sandbox.host_results(&[Value::I32(2)]).unwrap();
    }
    assert_eq!(sandbox.resume(), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I64(6)]);
}
