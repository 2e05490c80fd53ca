//! Calls, results, host calls; ending and dropping a sandbox at every point where it can be suspended.

use sledge_sandbox::*;

use crate::guest::{LIMITS, artifact, call, parts, prepare, resume, template, worker};
use crate::stores::{echo, nothing};

#[test]
fn arguments_go_in_and_results_come_out() {
    let _worker = worker();
    let mut sandbox = template().instantiate().unwrap();
    assert_eq!(call(&mut sandbox, "add", &[40, 2]), Ok(vec![Value::I32(42)]));
    assert_eq!(call(&mut sandbox, "add", &[i32::MAX, 1]), Ok(vec![Value::I32(i32::MIN)]));
    assert_eq!(call(&mut sandbox, "nothing", &[]), Ok(vec![]));
    assert_eq!(sandbox.result(0), None);
    assert!(sandbox.backtrace().frames.is_empty());
}

#[test]
fn host_calls_suspend_the_guest_and_go_on_with_their_results() {
    let _worker = worker();
    let mut sandbox = template().instantiate().unwrap();
    let main = sandbox.main_instance().unwrap();
    prepare(&mut sandbox, "twice_host", &[Value::I32(20)]);
    for (argument, answer) in [(20, 100), (21, -1)] {
        assert_eq!(resume(&mut sandbox), Event::HostCall(HostCall { instance: main, import: 0 }));
        assert_eq!(sandbox.host_args()[0].i32(), argument);
        assert_eq!(sandbox.host_values(), [Value::I32(argument)]);
        assert_eq!(sandbox.host_results(&[]), Err(CallError::Types { wanted: sandbox.host_call_type().unwrap().clone() }));
        assert!(matches!(sandbox.host_results(&[Value::I64(1)]), Err(CallError::Types { .. })));
        let names: Vec<_> = sandbox.backtrace().frames.iter().map(|frame| frame.name.clone().unwrap()).collect();
        assert_eq!(names, ["twice_host"]);
        sandbox.host_results(&[Value::I32(answer)]).unwrap();
        assert!(sandbox.host_args().is_empty());
    }
    assert_eq!(resume(&mut sandbox), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I32(99)]);
}

#[test]
fn a_host_call_without_results_needs_no_answer() {
    let _worker = worker();
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "call_nothing", &[]);
    assert!(matches!(resume(&mut sandbox), Event::HostCall(HostCall { import: 1, .. })));
    assert_eq!(resume(&mut sandbox), Event::Returned);
}

#[test]
fn the_host_sees_the_memory_during_a_call_and_after_it() {
    let _worker = worker();
    let mut sandbox = template().instantiate().unwrap();
    let main = sandbox.main_instance().unwrap();
    prepare(&mut sandbox, "twice_host", &[Value::I32(1)]);
    resume(&mut sandbox);
    let mut memory = sandbox.memory(main).unwrap();
    assert_eq!(memory.len(), 2 << 16);
    assert_eq!(memory.slice(16, 4), Ok(&b"wasm"[..]));
    memory.write_u32(0x1_fffc, 0xdead_beef).unwrap();
    assert_eq!(memory.write_u32(0x1_fffd, 0), Err(OutOfBounds));
    sandbox.finish();
    assert_eq!(call(&mut sandbox, "load", &[0x1_fffc]), Ok(vec![Value::I32(0xdead_beef_u32 as i32)]));
}

#[test]
fn misuse_is_refused() {
    let _worker = worker();
    let (mut sandbox, other) = (template().instantiate().unwrap(), template().instantiate().unwrap());
    let main = sandbox.main_instance().unwrap();
    let add = sandbox.export_function(main, "add").unwrap();
    assert!(matches!(sandbox.prepare(add, &[Value::I32(1)]), Err(CallError::Types { .. })));
    assert!(matches!(sandbox.prepare(add, &[Value::I32(1), Value::F32(1)]), Err(CallError::Types { .. })));
    let foreign = other.export_function(main, "add").unwrap();
    assert_eq!(sandbox.prepare(foreign, &[Value::I32(1), Value::I32(1)]), Err(CallError::Foreign));
    assert!(sandbox.export(main, "no such export").is_none());
    assert!(matches!(sandbox.host_results(&[]), Err(CallError::Busy { state: "new" })));
    prepare(&mut sandbox, "twice_host", &[Value::I32(1)]);
    resume(&mut sandbox);
    let busy = sandbox.prepare(add, &[Value::I32(1), Value::I32(1)]);
    assert_eq!(busy, Err(CallError::Busy { state: "suspended in a host call" }));
    sandbox.kill();
    assert!(matches!(sandbox.prepare(add, &[Value::I32(1), Value::I32(1)]), Err(CallError::Busy { state: "killed" })));
}

#[test]
fn a_callee_is_called_in_all_sandboxes_of_its_artifact_s_templates_and_in_no_others() {
    let _worker = worker();
    let other = template();
    let first = other.instantiate().unwrap();
    let main = first.main_instance().unwrap();
    let callee = first.callee(first.export_function(main, "call_nothing").unwrap()).unwrap();
    let add = first.export_function(main, "add").unwrap();
    assert!(matches!(first.callee(add), Err(CallError::Types { .. })), "it has parameters");
    drop(first);
    let mut second = template().instantiate().unwrap();
    assert_eq!(second.callee(add).unwrap_err(), CallError::Foreign);
    for _ in 0..2 {
        second.prepare_callee(&callee).unwrap();
        assert_eq!(second.result(0), None);
        assert!(matches!(resume(&mut second), Event::HostCall(HostCall { import: 1, .. })));
        assert_eq!(second.prepare_callee(&callee), Err(CallError::Busy { state: "suspended in a host call" }));
        assert_eq!(resume(&mut second), Event::Returned);
    }
    // Of the same artifact, but put together by hand; and of the same artifact loaded a second time, whose code lies elsewhere.
    let mut by_hand = Sandbox::new(&LIMITS).unwrap();
    let by_hand_main = by_hand.instantiate(artifact(), 0, &[echo(), nothing()]).unwrap();
    let function = by_hand.export_function(by_hand_main, "call_nothing").unwrap();
    assert_eq!(by_hand.callee(function).unwrap_err(), CallError::Foreign);
    assert_eq!(by_hand.prepare_callee(&callee), Err(CallError::Foreign));
    let mut elsewhere = Template::new(&parts().load(), &LIMITS).unwrap().instantiate().unwrap();
    assert_eq!(elsewhere.prepare_callee(&callee), Err(CallError::Foreign));
    // Where another instance was, a callee's instance could be another one.
    assert!(
        second.instantiate(artifact(), 0, &[echo(), nothing()]).is_err(),
        "a sandbox of a template has room for its plan alone"
    );
    second.kill();
    assert_eq!(second.prepare_callee(&callee), Err(CallError::Busy { state: "killed" }));
}

#[test]
#[should_panic(expected = "without its results")]
fn resuming_an_unanswered_host_call_panics() {
    let _worker = worker();
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "twice_host", &[Value::I32(1)]);
    resume(&mut sandbox);
    resume(&mut sandbox);
}

#[test]
#[should_panic(expected = "no call to resume")]
fn resuming_a_killed_sandbox_panics() {
    let _worker = worker();
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "nothing", &[]);
    sandbox.kill();
    sandbox.resume();
}

#[test]
#[should_panic(expected = "WorkerThread")]
fn resuming_on_a_thread_that_is_no_worker_panics() {
    let mut sandbox = template().instantiate().unwrap();
    prepare(&mut sandbox, "nothing", &[]);
    sandbox.resume();
}

#[test]
fn a_thread_is_a_worker_once_at_a_time_and_may_be_one_again() {
    let first = worker();
    assert_eq!(WorkerThread::enter(std::time::Duration::from_millis(1)).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    drop(first);
    let _second = worker();
    assert!(WorkerThread::enter(std::time::Duration::ZERO).is_err());
    let cores = affinity().unwrap();
    _second.pin(cores[0]).unwrap();
    assert_eq!(affinity().unwrap(), [cores[0]]);
    assert!(_second.pin(usize::MAX).is_err());
}

#[test]
fn sandboxes_may_be_dropped_new_prepared_in_a_host_call_returned_and_trapped() {
    let _worker = worker();
    let template = template();
    let make = |name: &str, args: &[Value], resumes: u32| {
        let mut sandbox = template.instantiate().unwrap();
        prepare(&mut sandbox, name, args);
        for _ in 0..resumes {
            resume(&mut sandbox);
        }
    };
    drop(template.instantiate().unwrap());
    make("twice_host", &[Value::I32(1)], 0);
    make("twice_host", &[Value::I32(1)], 1);
    make("nothing", &[], 1);
    make("unreachable", &[], 1);
}

#[test]
fn many_sandboxes_take_turns_on_one_thread() {
    let _worker = worker();
    let template = template();
    let mut sandboxes: Vec<_> = (0..50).map(|_| template.instantiate().unwrap()).collect();
    for sandbox in &mut sandboxes {
        prepare(sandbox, "many_host", &[Value::I64(20)]);
    }
    for round in 0..20 {
        for (i, sandbox) in sandboxes.iter_mut().enumerate() {
            assert!(matches!(resume(sandbox), Event::HostCall(_)));
            assert_eq!(sandbox.host_args()[0].i32(), round);
            sandbox.host_results(&[Value::I32(i as i32)]).unwrap();
        }
    }
    for (i, sandbox) in sandboxes.iter_mut().enumerate() {
        assert_eq!(resume(sandbox), Event::Returned);
        assert_eq!(sandbox.results(), [Value::I64(20 * i as i64)]);
    }
}

#[test]
fn a_suspended_sandbox_goes_on_where_it_was_on_another_thread() {
    let template = template();
    let mut sandbox = template.instantiate().unwrap();
    prepare(&mut sandbox, "many_host", &[Value::I64(100)]);
    for i in 0..100 {
        let thread = std::thread::spawn(move || {
            let _worker = worker();
            assert!(matches!(resume(&mut sandbox), Event::HostCall(_)));
            sandbox.host_results(&[Value::I32(i)]).unwrap();
            sandbox
        });
        sandbox = thread.join().unwrap();
    }
    let _worker = worker();
    assert_eq!(resume(&mut sandbox), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I64(99 * 100 / 2)]);
}

#[test]
fn the_memory_of_an_artifact_outlives_its_handle_while_a_sandbox_uses_it() {
    let _worker = worker();
    let artifact = crate::guest::parts().load();
    let template = Template::new(&artifact, &crate::guest::LIMITS).unwrap();
    assert!(artifact.code_bytes() > 100 && artifact.mapped_bytes() > artifact.code_bytes());
    let mut sandbox = template.instantiate().unwrap();
    drop((artifact, template));
    assert_eq!(call(&mut sandbox, "add", &[1, 2]), Ok(vec![Value::I32(3)]));
}

#[test]
fn artifacts_come_and_go_while_others_run() {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let worker = worker();
            worker.arm();
            let mut sandbox = template().instantiate().unwrap();
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                assert_eq!(call(&mut sandbox, "outer", &[-1]).unwrap_err().code, TrapCode::MemoryOutOfBounds);
                assert_eq!(call(&mut sandbox, "recurse_to", &[100]), Ok(vec![Value::I32(100)]));
            }
        });
        let loading = || {
            let _worker = worker();
            for i in 0..200 {
                let artifact = Artifact::load(crate::guest::bytes(), &LoadPolicy::default()).unwrap();
                let template = Template::new(&artifact, &crate::guest::LIMITS).unwrap();
                drop(artifact);
                let mut sandbox = template.instantiate().unwrap();
                assert_eq!(call(&mut sandbox, "add", &[i, 1]), Ok(vec![Value::I32(i + 1)]));
            }
        };
        let loaders = [scope.spawn(loading), scope.spawn(loading)];
        let ended: Vec<_> = loaders.into_iter().map(|loader| loader.join()).collect();
        done.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(ended.iter().all(Result::is_ok) && running.join().is_ok());
    });
}
