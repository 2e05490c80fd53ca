//! Mode `segment` across threads: a guest that is preempted, calls the host or shares a thread with others finds its memory wherever it goes on.

use crate::endless::prepared;
use awsm::{Bounds, CompileOptions, OptLevel, Program};
use awsm_abi::types::{FuncType, ValType};
use sledge_sandbox::{Artifact, Event, Extern, LoadPolicy, Sandbox, SandboxLimits, Value, WorkerThread};
use std::sync::mpsc;
use std::time::Duration;

/// Counts in memory, so that every step needs the register, and asks the host now and then.
const COUNTING: &str = r#"(module
    (import "test" "ask" (func $ask (param i32) (result i32)))
    (memory 1)
    (func (export "count") (param $to i32) (result i32)
      (loop $again
        (i32.store offset=4096 (i32.const 0) (i32.add (i32.load offset=4096 (i32.const 0)) (i32.const 1)))
        (if (i32.eqz (i32.rem_u (i32.load offset=4096 (i32.const 0)) (i32.const 5000000)))
          (then (i32.store (i32.const 8) (i32.add (i32.load (i32.const 8))
            (call $ask (i32.load offset=4096 (i32.const 0)))))))
        (br_if $again (i32.lt_u (i32.load offset=4096 (i32.const 0)) (local.get $to))))
      (i32.add (i32.load offset=4096 (i32.const 0)) (i32.load (i32.const 8)))))"#;

fn compile(text: &str, bounds: Bounds) -> Artifact {
    let options = CompileOptions { bounds, opt_level: OptLevel::O2, ..CompileOptions::default() };
    let wasm = wat::parse_str(text).unwrap();
    Artifact::load(&awsm::compile(&Program::single(&wasm), &options, &()).unwrap(), &LoadPolicy::default()).unwrap()
}

fn counting(artifact: &Artifact, to: i32) -> Sandbox {
    let mut sandbox = Sandbox::new(&SandboxLimits::default()).unwrap();
    let ask = Extern::HostFunction(FuncType { params: vec![ValType::I32], results: vec![ValType::I32] });
    let instance = sandbox.instantiate(artifact, 0, &[ask]).unwrap();
    let function = sandbox.export_function(instance, "count").unwrap();
    sandbox.prepare(function, &[Value::I32(to)]).unwrap();
    sandbox
}

/// Runs what arrives for a quantum, and hands it on; sends what has returned to `done`.
fn work(arriving: &mpsc::Receiver<Sandbox>, next: &mpsc::Sender<Sandbox>, done: &mpsc::Sender<Vec<Value>>) -> [usize; 2] {
    let worker = WorkerThread::enter(Duration::from_micros(500)).unwrap();
    let [mut preemptions, mut asked] = [0; 2];
    while let Ok(mut sandbox) = arriving.recv() {
        worker.restart();
        match sandbox.resume() {
            Event::Preempted => preemptions += 1,
            Event::HostCall(_) => {
                let number = sandbox.host_args()[0].i32();
                sandbox.host_results(&[Value::I32(number / 5_000_000)]).unwrap();
                asked += 1;
            }
            Event::Returned => {
                done.send(sandbox.results()).unwrap();
                continue;
            }
            other => panic!("{other:?}"),
        }
        // Sending fails when the receiver has seen all results and has gone.
        let _ = next.send(sandbox);
    }
    worker.disarm();
    [preemptions, asked]
}

#[test]
fn guests_move_between_threads_with_their_register() {
    // One of another mode is among them.
    let artifacts = [compile(COUNTING, Bounds::Segment), compile(COUNTING, Bounds::Segment), compile(COUNTING, Bounds::Guard)];
    let ((to_left, left), (to_right, right), (done, results)) = (mpsc::channel(), mpsc::channel(), mpsc::channel());
    let limits = [20_000_000, 35_000_000, 25_000_000];
    for (artifact, limit) in artifacts.iter().zip(limits) {
        to_left.send(counting(artifact, limit)).unwrap();
    }
    let threads = [(left, to_right, done.clone()), (right, to_left, done)];
    let threads = threads.map(|(arriving, next, done)| std::thread::spawn(move || work(&arriving, &next, &done)));
    let mut got: Vec<Vec<Value>> = (0..limits.len()).map(|_| results.recv_timeout(Duration::from_secs(60)).unwrap()).collect();
    got.sort_by_key(|values| format!("{values:?}"));
    // To each count the sum of what was answered: 1 + 2 + ... for every five millions.
    assert_eq!(got, [[Value::I32(20_000_010)], [Value::I32(25_000_015)], [Value::I32(35_000_028)]]);
    drop(results);
    for _ in threads {}
}

#[test]
fn modules_of_other_modes_are_refused_in_the_same_sandbox() {
    let text = r#"(module (memory 1) (func (export "f") (result i32) (i32.load (i32.const 0))))"#;
    let mut sandbox = prepared(&compile(text, Bounds::Segment), "f", &[]);
    let error = sandbox.instantiate(&compile(text, Bounds::Guard), 0, &[]).unwrap_err().to_string();
    assert!(error.contains("--bounds segment") && error.contains("one mode"), "{error}");
    sandbox.instantiate(&compile("(module)", Bounds::Segment), 0, &[]).unwrap();
    let _worker = WorkerThread::enter(Duration::from_secs(1)).unwrap();
    assert_eq!(sandbox.resume(), Event::Returned);
}

/// Asks the host, and adds what it answers to a sum in memory, so often.
const ADDING: &str = r#"(module
    (import "test" "ask" (func $ask (param i32) (result i32)))
    (memory 1)
    (func (export "add") (param $times i32) (result i32)
      (loop $again
        (i32.store offset=4096 (i32.const 0)
          (i32.add (call $ask (i32.load offset=4096 (i32.const 0))) (i32.load offset=4096 (i32.const 0))))
        (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
      (i32.load offset=4096 (i32.const 0))))"#;

/// Two stacks in one instance and one in another: each goes on with the memory of its own instance, on whatever thread.
#[test]
fn each_stack_goes_on_with_its_own_register() {
    const TIMES: i32 = 20;
    let artifact = compile(ADDING, Bounds::Segment);
    let mut sandbox = Sandbox::new(&SandboxLimits::default()).unwrap();
    let ask = || Extern::HostFunction(FuncType { params: vec![ValType::I32], results: vec![ValType::I32] });
    let [one, other] = [(); 2].map(|()| sandbox.instantiate(&artifact, 0, &[ask()]).unwrap());
    // To each what it is answered.
    let calls = [(one, 1), (other, 1_000), (one, 1_000_000)];
    let mut fibers = Vec::new();
    for (instance, _) in calls {
        let function = sandbox.export_function(instance, "add").unwrap();
        if fibers.is_empty() {
            sandbox.prepare(function, &[Value::I32(TIMES)]).unwrap();
            fibers.push(sandbox.fiber());
        } else {
            fibers.push(sandbox.start(function, &[Value::I32(TIMES)]).unwrap());
        }
        let _worker = WorkerThread::enter(Duration::from_secs(1)).unwrap();
        assert!(matches!(sandbox.resume(), Event::HostCall(_)));
        assert_eq!(sandbox.host_values(), [Value::I32(0)]);
    }
    let mut results = Vec::new();
    for round in 1..=TIMES {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _worker = WorkerThread::enter(Duration::from_secs(1)).unwrap();
                for (fiber, (instance, answer)) in fibers.iter().zip(calls) {
                    sandbox.select(*fiber).unwrap();
                    sandbox.host_results(&[Value::I32(answer)]).unwrap();
                    match sandbox.resume() {
                        Event::HostCall(_) if instance == other => {
                            assert_eq!(sandbox.host_values(), [Value::I32(1_000 * round)]);
                        }
                        Event::HostCall(_) => {}
                        Event::Returned => results.push(sandbox.results()),
                        event => panic!("round {round}: {event:?}"),
                    }
                }
            });
        });
    }
    let expected = [TIMES + 1_000_000 * (TIMES - 1), 1_000 * TIMES, 1_000_001 * TIMES];
    assert_eq!(results, expected.map(|sum| [Value::I32(sum)]));
}
