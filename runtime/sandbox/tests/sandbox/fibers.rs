//! Several calls on one sandbox: each on a stack of its own, one at a time, leaving each other at calls of the host.

use awsm_abi::types::*;
use sledge_sandbox::*;

use crate::guest::{LIMITS, artifact, call, parts, prepare, resume, template, thread_id, worker};

fn start(sandbox: &mut Sandbox, name: &str, args: &[Value]) -> Result<FiberId, CallError> {
    let function = sandbox.export_function(sandbox.main_instance().unwrap(), name).unwrap();
    sandbox.start(function, args)
}

fn names(sandbox: &Sandbox) -> Vec<String> {
    sandbox.backtrace().frames.iter().map(|frame| frame.name.clone().unwrap()).collect()
}

/// A sandbox whose first fiber is in the first of the host calls of `function(argument)`.
fn suspended(template: &Template, function: &str, argument: Value) -> Sandbox {
    let mut sandbox = template.instantiate().unwrap();
    prepare(&mut sandbox, function, &[argument]);
    assert!(matches!(resume(&mut sandbox), Event::HostCall(_)));
    sandbox
}

fn answer(sandbox: &mut Sandbox, value: i32) -> Event {
    sandbox.host_results(&[Value::I32(value)]).unwrap();
    resume(sandbox)
}

#[test]
fn what_one_fiber_writes_another_sees_when_it_goes_on() {
    let _worker = worker();
    let mut sandbox = suspended(&template(), "load_after_host", Value::I32(0x100));
    let first = sandbox.fiber();
    let second = start(&mut sandbox, "store", &[Value::I32(0x100), Value::I32(77)]).unwrap();
    assert_eq!((sandbox.fiber(), sandbox.host_call()), (second, None));
    assert_eq!(sandbox.fibers().collect::<Vec<_>>(), [second, first]);
    assert_eq!(resume(&mut sandbox), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I32(77)]);

    sandbox.select(first).unwrap();
    assert_eq!((sandbox.host_args()[0].i32(), names(&sandbox)), (0x100, vec!["load_after_host".to_string()]));
    assert_eq!(answer(&mut sandbox, 0), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I32(77)]);
    sandbox.select(second).unwrap();
    assert_eq!(sandbox.results(), [Value::I32(77)], "each has its own results");
    // A fiber that is done takes another call.
    assert_eq!(call(&mut sandbox, "add", &[1, 2]), Ok(vec![Value::I32(3)]));
}

#[test]
fn many_fibers_take_turns_at_each_host_call_and_move_between_threads() {
    const ROUNDS: i64 = 50;
    let (mut sandbox, fibers) = {
        let _worker = worker();
        let mut sandbox = suspended(&template(), "many_host", Value::I64(ROUNDS));
        let mut fibers = vec![sandbox.fiber()];
        for _ in 1..8 {
            fibers.push(start(&mut sandbox, "many_host", &[Value::I64(ROUNDS)]).unwrap());
            assert!(matches!(resume(&mut sandbox), Event::HostCall(_)));
        }
        (sandbox, fibers)
    };
    for round in 0..ROUNDS {
        // Each round on another thread, with a timer.
        let turn = std::thread::scope(|scope| {
            let turn = scope.spawn(|| {
                let worker = WorkerThread::enter(std::time::Duration::from_micros(50)).unwrap();
                worker.arm();
                for (i, &fiber) in fibers.iter().enumerate() {
                    sandbox.select(fiber).unwrap();
                    assert_eq!(i64::from(sandbox.host_args()[0].i32()), round);
                    let event = answer(&mut sandbox, i as i32);
                    assert_eq!(event == Event::Returned, round == ROUNDS - 1, "{event:?}");
                }
            });
            turn.join()
        });
        turn.unwrap();
    }
    for (i, fiber) in fibers.into_iter().enumerate() {
        sandbox.select(fiber).unwrap();
        assert_eq!(sandbox.results(), [Value::I64(ROUNDS * i as i64)]);
    }
}

#[test]
fn a_trap_ends_one_fiber_and_each_has_its_own_backtrace() {
    let _worker = worker();
    let mut sandbox = suspended(&template(), "many_host", Value::I64(3));
    let first = sandbox.fiber();
    let second = start(&mut sandbox, "outer", &[Value::I32(-1)]).unwrap();
    let event = resume(&mut sandbox);
    assert!(matches!(event, Event::Trapped(Trap { code: TrapCode::MemoryOutOfBounds, .. })), "{event:?}");
    let trapped = names(&sandbox);
    assert_eq!(trapped[trapped.len() - 2..], ["load_by_helper", "guest::outer"]);
    // A third one deep within calls.
    let third = start(&mut sandbox, "recurse_host", &[Value::I32(0)]).unwrap();
    assert!(matches!(resume(&mut sandbox), Event::HostCall(_)));
    (0..9).for_each(|_| assert!(matches!(answer(&mut sandbox, 0), Event::HostCall(_))));

    for (fiber, expected) in
        [(first, vec!["many_host".to_string()]), (second, trapped), (third, vec!["recurse_host".to_string(); 10])]
    {
        sandbox.select(fiber).unwrap();
        assert_eq!(names(&sandbox), expected);
    }
    sandbox.select(first).unwrap();
    (0..2).for_each(|_| assert!(matches!(answer(&mut sandbox, 5), Event::HostCall(_))));
    assert_eq!(answer(&mut sandbox, 5), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I64(15)]);
}

#[test]
fn each_stack_has_its_own_end() {
    let _worker = worker();
    let mut sandbox = suspended(&template(), "recurse_host", Value::I32(0));
    let first = sandbox.fiber();
    let second = start(&mut sandbox, "recurse", &[Value::I32(0)]).unwrap();
    let exhausted = |event| matches!(event, Event::Trapped(Trap { code: TrapCode::StackExhausted, .. }));
    assert!(exhausted(resume(&mut sandbox)));
    assert_eq!(sandbox.backtrace().frames[0].name.as_deref(), Some("recurse"));
    // The first has all of its own stack, and no more than that.
    sandbox.select(first).unwrap();
    let mut depth = 0;
    let end = loop {
        match answer(&mut sandbox, 0) {
            Event::HostCall(_) => depth += 1,
            end => break end,
        }
    };
    assert!(exhausted(end) && depth > 1000, "{depth}: {end:?}");
    sandbox.select(second).unwrap();
    assert_eq!(call(&mut sandbox, "recurse_to", &[100]), Ok(vec![Value::I32(100)]));
}

#[test]
fn a_preempted_fiber_goes_on_before_another_does() {
    let worker = worker();
    let mut sandbox = suspended(&template(), "load_after_host", Value::I32(16));
    let first = sandbox.fiber();
    let expected = {
        let mut alone = template().instantiate().unwrap();
        prepare(&mut alone, "mix", &[Value::I64(300_000)]);
        assert_eq!(resume(&mut alone), Event::Returned);
        alone.results()
    };
    let second = start(&mut sandbox, "mix", &[Value::I64(300_000)]).unwrap();
    worker.arm();
    let mut preemptions = 0;
    while sandbox.resume() == Event::Preempted {
        preemptions += 1;
        let busy = Err(CallError::Busy { state: "preempted" });
        assert_eq!(sandbox.select(first), busy);
        assert_eq!(sandbox.end(second), busy);
        assert_eq!(start(&mut sandbox, "nothing", &[]).map(drop), busy);
        assert_eq!((sandbox.fiber(), names(&sandbox)), (second, vec!["mix".to_string()]));
    }
    assert!(preemptions > 0);
    assert_eq!(sandbox.results(), expected);
    sandbox.select(first).unwrap();
    assert_eq!(answer(&mut sandbox, 0), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I32(i32::from_le_bytes(*b"wasm"))]);
}

#[test]
fn killing_a_preempted_fiber_ends_all_of_the_sandbox() {
    let _worker = worker();
    let mut pool = Pool::new();
    let mut sandbox = suspended(&template(), "many_host", Value::I64(3));
    let first = sandbox.fiber();
    start(&mut sandbox, "tick", &[thread_id()]).unwrap();
    assert_eq!(sandbox.resume(), Event::Preempted);
    sandbox.finish();
    assert_eq!(sandbox.select(first), Err(CallError::Busy { state: "killed" }));
    pool.put(Box::new(sandbox));
    assert_eq!(pool.idle(), 0);
}

#[test]
fn fibers_end_where_they_are_suspended_and_their_handles_with_them() {
    let _worker = worker();
    let mut sandbox = suspended(&template(), "many_host", Value::I64(2));
    let first = sandbox.fiber();
    let mut ended = Vec::new();
    let counted = sandbox.counted_bytes();
    for _ in 0..200 {
        let fiber = start(&mut sandbox, "recurse_host", &[Value::I32(0)]).unwrap();
        (0..20).for_each(|_| {
            let event = if sandbox.host_call().is_some() { answer(&mut sandbox, 0) } else { resume(&mut sandbox) };
            assert!(matches!(event, Event::HostCall(_)));
        });
        sandbox.end(fiber).unwrap();
        assert_eq!(sandbox.fiber(), first);
        assert!(!ended.contains(&fiber));
        ended.push(fiber);
    }
    assert_eq!(sandbox.counted_bytes(), counted + LIMITS.stack_bytes as u64, "one stack, again and again");
    for fiber in ended {
        assert_eq!(sandbox.select(fiber), Err(CallError::NoFiber));
        assert_eq!(sandbox.end(fiber), Err(CallError::NoFiber));
    }
    assert_eq!(sandbox.end(first), Err(CallError::NoFiber), "the first ends with the sandbox");
    let other = template().instantiate().unwrap();
    assert_eq!(sandbox.select(other.fiber()), Err(CallError::NoFiber));
    assert!(matches!(answer(&mut sandbox, 1), Event::HostCall(_)));
    assert_eq!(answer(&mut sandbox, 1), Event::Returned);
    // Dropped with fibers in all states.
    start(&mut sandbox, "many_host", &[Value::I64(2)]).unwrap();
    assert!(matches!(resume(&mut sandbox), Event::HostCall(_)));
    start(&mut sandbox, "nothing", &[]).unwrap();
    start(&mut sandbox, "tick", &[thread_id()]).unwrap();
    assert_eq!(sandbox.resume(), Event::Preempted);
    drop(sandbox);
}

#[test]
fn a_call_that_cannot_be_started_leaves_no_fiber() {
    let _worker = worker();
    let mut sandbox = suspended(&template(), "many_host", Value::I64(1));
    let first = sandbox.fiber();
    assert!(matches!(start(&mut sandbox, "add", &[Value::I32(1)]), Err(CallError::Types { .. })));
    let other = template().instantiate().unwrap();
    let foreign = other.export_function(other.main_instance().unwrap(), "nothing").unwrap();
    assert_eq!(sandbox.start(foreign, &[]), Err(CallError::Foreign));
    assert_eq!(sandbox.fibers().collect::<Vec<_>>(), [first]);
    assert_eq!(answer(&mut sandbox, 4), Event::Returned);
    assert_eq!(sandbox.results(), [Value::I64(4)]);
}

#[test]
fn their_number_and_their_stacks_are_limited() {
    let _worker = worker();
    let start_all = |limits: &SandboxLimits, budget: Option<&std::sync::Arc<Budget>>| {
        let template = Template::new(artifact(), limits).unwrap();
        let template = budget.map_or(template.clone(), |budget| template.within(budget));
        let mut sandbox = template.instantiate().unwrap();
        let mut count = 0;
        let error = loop {
            match start(&mut sandbox, "nothing", &[]) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(resume(&mut sandbox), Event::Returned, "the last one");
        (count, error, sandbox.refusal())
    };
    let large = SandboxLimits { memory_bytes_max: 1 << 30, ..LIMITS };
    let limit = limits::FIBERS_MAX;
    assert_eq!(start_all(&large, None), (limit - 1, CallError::Fibers { limit }, None));
    // 2 pages are the memory's.
    let fit = ((LIMITS.memory_bytes_max - (2 << 16)) / LIMITS.stack_bytes as u64) as usize;
    assert_eq!(start_all(&LIMITS, None), (fit, CallError::NoStack, Some(Refusal::Limit)));
    let budget = Budget::new(2 << 20);
    let (count, error, refusal) = start_all(&large, Some(&budget));
    assert_eq!((error, refusal), (CallError::NoStack, Some(Refusal::Exhausted)));
    assert!(count > 0 && count < 8, "{count}");
    assert_eq!(budget.bytes_used(), 0, "all is given back");
}

#[test]
fn a_reset_leaves_nothing_of_suspended_fibers() {
    let _worker = worker();
    let budget = Budget::new(64 << 20);
    let template = template().within(&budget);
    let mut pool = Pool::new();
    let sandbox = pool.take(&template).unwrap();
    pool.put(sandbox);
    let used = budget.bytes_used();
    let mut stale = Vec::new();
    for round in 0..20 {
        let mut sandbox = pool.take(&template).unwrap();
        assert_eq!((sandbox.fibers().count(), sandbox.counted_bytes(), pool.idle()), (1, 2 << 16, 0));
        assert!(stale.iter().all(|&fiber| sandbox.select(fiber) == Err(CallError::NoFiber)));
        assert_eq!(call(&mut sandbox, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]));
        for _ in 0..3 {
            stale.push(start(&mut sandbox, "load_after_host", &[Value::I32(round)]).unwrap());
            assert!(matches!(resume(&mut sandbox), Event::HostCall(_)));
        }
        let main = sandbox.main_instance().unwrap();
        sandbox.memory(main).unwrap().write_u32(0x8000, 0xdead).unwrap();
        // One of them is selected, or the first is, which has returned.
        if round % 2 == 0 {
            let first = sandbox.fibers().find(|fiber| !stale.contains(fiber)).unwrap();
            sandbox.select(first).unwrap();
        }
        assert!(sandbox.snapshot().is_none(), "an image would be without them");
        pool.put(sandbox);
        assert_eq!((pool.idle(), budget.bytes_used()), (1, used), "round {round}");
    }
    // What ended badly is not used again: a trap, also of one that was ended since; the first, suspended.
    let mut sandbox = pool.take(&template).unwrap();
    let fiber = start(&mut sandbox, "unreachable", &[]).unwrap();
    assert!(matches!(resume(&mut sandbox), Event::Trapped(_)));
    sandbox.end(fiber).unwrap();
    pool.put(sandbox);
    let mut sandbox = Box::new(suspended(&template, "many_host", Value::I64(2)));
    start(&mut sandbox, "nothing", &[]).unwrap();
    assert_eq!(resume(&mut sandbox), Event::Returned);
    pool.put(sandbox);
    assert_eq!((pool.idle(), budget.bytes_used()), (0, 0));
}

#[test]
fn a_guest_numbers_its_stacks_and_exits_on_any_of_them() {
    let _worker = worker();
    let template = template();
    let mut pool = Pool::new();
    for exits_on in 0..3 {
        let mut sandbox = Box::new(suspended(&template, "many_host", Value::I64(3)));
        let start = |sandbox: &Sandbox| sandbox.export_function(sandbox.main_instance()?, "nothing");
        let mut stacks = Stacks::default();
        assert!(stacks.is_first(&sandbox));
        assert_eq!(stacks.switch(&mut sandbox, 2, start), Err(CallError::NoFiber), "1 comes next");
        assert_eq!(stacks.switch(&mut sandbox, u32::MAX, start), Err(CallError::NoFiber));
        for number in 1..3 {
            stacks.switch(&mut sandbox, number, start).unwrap();
            assert!(!stacks.is_first(&sandbox));
        }
        let with_parameters = |sandbox: &Sandbox| sandbox.export_function(sandbox.main_instance()?, "add");
        assert!(matches!(stacks.switch(&mut sandbox, 3, with_parameters), Err(CallError::Types { .. })));
        assert_eq!(stacks.switch(&mut sandbox, 3, |_| None), Err(CallError::NoFiber), "nothing to be called");
        assert_eq!(sandbox.fibers().count(), 3);
        stacks.switch(&mut sandbox, 0, start).unwrap();
        assert!(stacks.is_first(&sandbox) && sandbox.host_call().is_some());
        stacks.switch(&mut sandbox, exits_on, start).unwrap();
        sandbox.finish();
        assert!(stacks.is_first(&sandbox) && sandbox.host_call().is_none());
        pool.put(sandbox);
        assert_eq!(pool.idle(), 1, "{exits_on}");
        drop(pool.take(&template).unwrap());
    }
}

#[test]
fn instances_are_added_only_where_no_fiber_is_suspended() {
    let _worker = worker();
    let mut sandbox = Sandbox::new(&LIMITS).unwrap();
    let echo = Extern::HostFunction(FuncType { params: vec![ValType::I32], results: vec![ValType::I32] });
    let imports = [echo, Extern::HostFunction(FuncType { params: vec![], results: vec![] })];
    sandbox.instantiate(artifact(), 0, &imports).unwrap();
    let fiber = start(&mut sandbox, "many_host", &[Value::I64(1)]).unwrap();
    assert!(matches!(resume(&mut sandbox), Event::HostCall(_)));
    start(&mut sandbox, "nothing", &[]).unwrap();
    assert!(matches!(sandbox.instantiate(artifact(), 0, &imports), Err(InstantiateError::Misuse(_))));
    sandbox.end(fiber).unwrap();
    sandbox.instantiate(artifact(), 0, &imports).unwrap();
    assert_eq!(call(&mut sandbox, "load", &[16]), Ok(vec![Value::I32(i32::from_le_bytes(*b"wasm"))]));
}

#[test]
fn exceptions_are_kept_that_only_another_fibers_stack_leads_to() {
    let _worker = worker();
    let mut parts = parts();
    parts.descriptor.modules[0].exceptions = true;
    parts.descriptor.modules[0].tags = vec![0];
    let template = Template::new(&parts.load(), &LIMITS).unwrap();
    let mut sandbox = suspended(&template, "throw_host", Value::I64(42));
    let mut fibers = vec![(sandbox.fiber(), 42)];
    for value in 43..46 {
        fibers.push((start(&mut sandbox, "throw_host", &[Value::I64(value)]).unwrap(), value));
        assert!(matches!(resume(&mut sandbox), Event::HostCall(_)));
    }
    // Many times what there is memory for.
    start(&mut sandbox, "throw_many", &[Value::I64(50_000)]).unwrap();
    assert_eq!(resume(&mut sandbox), Event::Returned);
    for (fiber, value) in fibers {
        sandbox.select(fiber).unwrap();
        assert_eq!(answer(&mut sandbox, 0), Event::Returned);
        assert_eq!(sandbox.results(), [Value::I64(value)]);
    }
}
