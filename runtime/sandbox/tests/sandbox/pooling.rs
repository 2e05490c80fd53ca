//! Reuse: whatever a sandbox did, the next one of the pool is as new, and what trapped or was killed never comes back.

use sledge_sandbox::*;

use crate::guest::{LIMITS, artifact, call, parts, prepare, resume, template, worker};

#[test]
fn thousands_of_reuses_leave_nothing_behind() {
    let _worker = worker();
    let template = template();
    let mut pool = Pool::new(PoolLimits::default());
    for i in 0..3000 {
        let mut sandbox = pool.take(&template).unwrap();
        let main = sandbox.main_instance().unwrap();
        assert_eq!(call(&mut sandbox, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]), "cycle {i}");
        assert_eq!(call(&mut sandbox, "counter", &[]), Ok(vec![Value::I32(7)]));
        assert_eq!(call(&mut sandbox, "call_element", &[0, 10]), Ok(vec![Value::I32(10)]));
        assert_eq!(call(&mut sandbox, "memory_init", &[64]), Ok(vec![]), "a dropped segment is there again");
        assert_eq!(sandbox.memory_bytes(), 2 << 16);
        let Some(Extern::Table(table)) = sandbox.export(main, "table") else { panic!("no table") };
        assert_eq!(sandbox.table_len(table), 4);

        if i % 3 == 0 {
            assert_eq!(call(&mut sandbox, "grow", &[1 + i % 60]), Ok(vec![Value::I32(2)]));
            assert_eq!(call(&mut sandbox, "table_grow", &[i % 900]), Ok(vec![Value::I32(4)]));
        }
        assert_eq!(call(&mut sandbox, "foreign_bytes", &[]).unwrap(), [Value::I32(4)]);
        call(&mut sandbox, "scribble", &[0x5a + i]).unwrap();
        call(&mut sandbox, "data_drop", &[]).unwrap();
        pool.put(sandbox);
        assert_eq!(pool.idle(), 1);
    }
}

#[test]
fn what_trapped_was_killed_or_is_in_the_middle_of_something_is_discarded() {
    let worker = worker();
    let template = template();
    let mut pool = Pool::new(PoolLimits::default());
    let mut put = |prepare: &dyn Fn(&mut Sandbox)| {
        let mut sandbox = pool.take(&template).unwrap();
        prepare(&mut sandbox);
        pool.put(sandbox);
        let kept = pool.idle() == 1;
        pool.clear();
        kept
    };
    assert!(put(&|_| {}));
    assert!(put(&|sandbox| drop(call(sandbox, "add", &[1, 2]))));
    assert!(put(&|sandbox| prepare(sandbox, "nothing", &[])));
    assert!(!put(&|sandbox| drop(call(sandbox, "unreachable", &[]))));
    assert!(!put(&|sandbox| sandbox.kill()));
    assert!(!put(&|sandbox| {
        prepare(sandbox, "twice_host", &[Value::I32(1)]);
        resume(sandbox);
    }));
    assert!(put(&|sandbox| {
        prepare(sandbox, "twice_host", &[Value::I32(1)]);
        resume(sandbox);
        sandbox.finish();
    }));
    worker.arm();
    assert!(!put(&|sandbox| {
        prepare(sandbox, "spin", &[]);
        assert_eq!(sandbox.resume(), Event::Preempted);
    }));
    assert!(!put(&|sandbox| {
        prepare(sandbox, "spin", &[]);
        assert_eq!(sandbox.resume(), Event::Preempted);
        sandbox.finish();
    }));
}

#[test]
fn a_sandbox_is_only_used_again_by_its_own_template() {
    let _worker = worker();
    let mut other = parts();
    other.blob = b"elseelse".to_vec();
    let (first, second) = (template(), Template::new(&other.load(), &LIMITS).unwrap());
    let mut pool = Pool::new(PoolLimits { idle_max: 3 });
    let read = |pool: &mut Pool, template: &Template| {
        let mut sandbox = pool.take(template).unwrap();
        let main = sandbox.main_instance().unwrap();
        let text = sandbox.memory(main).unwrap().slice(16, 4).unwrap().to_vec();
        pool.put(sandbox);
        text
    };
    for _ in 0..3 {
        assert_eq!(read(&mut pool, &first), b"wasm");
        assert_eq!(read(&mut pool, &second), b"else");
    }
    assert_eq!(pool.idle(), 2);
    let three: Vec<_> = (0..3).map(|_| pool.take(&first).unwrap()).collect();
    three.into_iter().for_each(|sandbox| pool.put(sandbox));
    assert_eq!(pool.idle(), 3, "the limit");
    pool.forget(&first);
    assert_eq!(pool.idle(), 1);
}

#[test]
fn two_threads_with_a_pool_each_do_not_disturb_each_other() {
    let template = template();
    std::thread::scope(|scope| {
        for value in [1, 2] {
            let template = &template;
            scope.spawn(move || {
                let worker = worker();
                worker.arm();
                let mut pool = Pool::new(PoolLimits::default());
                for _ in 0..500 {
                    let mut sandbox = pool.take(template).unwrap();
                    assert_eq!(call(&mut sandbox, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]));
                    call(&mut sandbox, "scribble", &[value]).unwrap();
                    assert_eq!(call(&mut sandbox, "load", &[100]), Ok(vec![Value::I32(value * 0x0101_0101)]));
                    pool.put(sandbox);
                }
            });
        }
    });
}

#[test]
fn a_template_whose_segments_do_not_fit_is_an_error() {
    let mut parts = parts();
    parts.descriptor.modules[0].data[1].mode =
        awsm_abi::descriptor::SegmentMode::Active { target: 0, offset: vec![awsm_abi::descriptor::ConstOp::I32Const(0x1_fffd)] };
    let error = Template::new(&parts.load(), &LIMITS).unwrap_err();
    assert!(matches!(error, InstantiateError::Trap(TrapCode::MemoryOutOfBounds)), "{error}");
    let sandboxes: Vec<_> = (0..200).map(|_| Template::new(artifact(), &LIMITS).unwrap().instantiate().unwrap()).collect();
    assert_eq!(sandboxes.len(), 200);
}

#[test]
fn sandboxes_use_no_more_together_than_their_budget() {
    let _worker = worker();
    let plain = template();
    // Stack and records are counted, too.
    let one = {
        let budget = Budget::new(u64::MAX);
        let _sandbox = plain.within(&budget).instantiate().unwrap();
        budget.bytes_used()
    };
    assert!(one > LIMITS.stack_bytes as u64 + (2 << 16), "{one}");
    let budget = Budget::new(2 * one + (3 << 16));
    let template = plain.within(&budget);
    let mut pool = Pool::new(PoolLimits::default());
    let (mut first, second) = (pool.take(&template).unwrap(), pool.take(&template).unwrap());
    let error = pool.take(&template).unwrap_err();
    assert!(matches!(error, InstantiateError::Exhausted { .. }), "{error}");
    assert_eq!(call(&mut first, "grow", &[4]), Ok(vec![Value::I32(-1)]));
    assert_eq!(first.refusal(), Some(Refusal::Exhausted));
    assert_eq!(call(&mut first, "grow", &[2]), Ok(vec![Value::I32(2)]));
    // 64 KiB are free, of which the table has some.
    assert!(first.set_host_bytes((2 << 16) - 64) && !first.set_host_bytes((2 << 16) - 63), "what the host keeps is counted");
    assert_eq!(call(&mut first, "grow", &[1]), Ok(vec![Value::I32(-1)]));
    assert_eq!(budget.bytes_used(), budget.bytes_max());
    pool.put(first);
    assert_eq!(budget.bytes_used(), 2 * one, "a reset gives back what was used beyond the beginning");
    drop(second);
    // An idle sandbox of another function makes room.
    let mut other = parts();
    other.descriptor.modules[0].memories[0].ty.pages_min = 8;
    let other = Template::new(&other.load(), &LIMITS).unwrap().within(&budget);
    let sandbox = pool.take(&other).unwrap();
    assert_eq!(pool.idle(), 0);
    drop(sandbox);
    assert_eq!(budget.bytes_used(), 0);
}

#[test]
fn tables_and_what_the_host_keeps_count_against_the_limit_of_a_sandbox() {
    let _worker = worker();
    let limits = SandboxLimits { table_elements_max: 100_000, memory_bytes_max: 4 << 16, ..LIMITS };
    let mut sandbox = Template::new(artifact(), &limits).unwrap().instantiate().unwrap();
    // 64 KiB of tables are free.
    assert_eq!(call(&mut sandbox, "table_grow", &[4000]), Ok(vec![Value::I32(4)]));
    assert_eq!(sandbox.counted_bytes(), 2 << 16);
    assert_eq!(call(&mut sandbox, "table_grow", &[9000]), Ok(vec![Value::I32(-1)]));
    assert_eq!(call(&mut sandbox, "table_grow", &[5000]), Ok(vec![Value::I32(4004)]));
    assert_eq!(call(&mut sandbox, "grow", &[1]), Ok(vec![Value::I32(-1)]), "two pages and more than one of tables");
    assert_eq!(sandbox.refusal(), Some(Refusal::Limit));
}

#[test]
fn a_trim_gives_back_what_was_not_needed_since_the_last_one() {
    let mut other = parts();
    other.blob = b"elseelse".to_vec();
    let (busy, quiet) = (template(), Template::new(&other.load(), &LIMITS).unwrap());
    let mut pool = Pool::new(PoolLimits::default());
    let use_at_once = |pool: &mut Pool, template: &Template, count: usize| {
        let taken: Vec<_> = (0..count).map(|_| pool.take(template).unwrap()).collect();
        taken.into_iter().for_each(|sandbox| pool.put(sandbox));
    };
    use_at_once(&mut pool, &busy, 5);
    use_at_once(&mut pool, &quiet, 3);
    assert_eq!((pool.trim(), pool.idle()), (0, 8), "all were needed");
    use_at_once(&mut pool, &busy, 2);
    assert_eq!((pool.trim(), pool.idle()), (6, 2), "two of one at a time, none of the other");
    use_at_once(&mut pool, &busy, 1);
    assert_eq!((pool.trim(), pool.idle()), (1, 1));
    assert_eq!((pool.trim(), pool.idle()), (1, 0));
}

#[test]
fn a_full_pool_keeps_what_is_used_and_takes_from_whoever_has_most() {
    let mut other = parts();
    other.blob = b"elseelse".to_vec();
    let (first, second) = (template(), Template::new(&other.load(), &LIMITS).unwrap());
    let mut pool = Pool::new(PoolLimits { idle_max: 3 });
    let three: Vec<_> = (0..3).map(|_| pool.take(&first).unwrap()).collect();
    three.into_iter().for_each(|sandbox| pool.put(sandbox));
    let sandbox = pool.take(&second).unwrap();
    pool.put(sandbox);
    assert_eq!(pool.idle(), 3);
    pool.forget(&first);
    assert_eq!(pool.idle(), 1, "the one that was used last is kept");
}

/// The template with other data, so that its sandboxes are another's.
fn other(pages: u64) -> Template {
    let mut other = parts();
    other.descriptor.modules[0].memories[0].ty.pages_min = pages;
    Template::new(&other.load(), &LIMITS).unwrap()
}

#[test]
fn a_worker_takes_what_is_idle_in_anothers_pool_when_the_budget_is_exhausted_and_only_then() {
    let _worker = worker();
    let one = {
        let budget = Budget::new(1 << 30);
        let _sandbox = template().within(&budget).instantiate().unwrap();
        budget.bytes_used()
    };
    let budget = Budget::new(2 * one);
    let (first, second) = (template().within(&budget), other(2).within(&budget));
    let pools = Pools::new(3, PoolLimits::default());
    pools.lend_to(&budget);
    let taken = pools.take(0, &first).unwrap();
    pools.put(0, taken);
    let mut made = pools.take(1, &first).unwrap();
    assert_eq!((pools.idle(0), budget.bytes_used()), (1, 2 * one), "there was room for a new one");
    call(&mut made, "scribble", &[0x77]).unwrap();
    let mut stolen = pools.take(1, &first).unwrap();
    assert_eq!((pools.idle(0), budget.bytes_used()), (0, 2 * one), "as it was");
    assert_eq!(call(&mut stolen, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]));
    assert!(matches!(pools.take(2, &first), Err(InstantiateError::Exhausted { .. })), "nothing is idle");
    // Of another template: taken apart, wherever it is.
    call(&mut stolen, "scribble", &[0x55]).unwrap();
    pools.put(1, stolen);
    let mut changed = pools.take(2, &second).unwrap();
    assert_eq!((pools.idle(1), budget.bytes_used()), (0, 2 * one));
    assert_eq!(call(&mut changed, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]));
    // What cannot be had at all costs nobody anything.
    pools.put(2, changed);
    assert!(pools.take(0, &other(60).within(&budget)).is_err());
    assert_eq!(pools.idle(2), 1);
    drop(made);
}

#[test]
fn memory_grows_into_what_is_idle_elsewhere() {
    let _worker = worker();
    let budget = Budget::new(3 << 20);
    let template = template().within(&budget);
    let pools = Pools::new(2, PoolLimits::default());
    pools.lend_to(&budget);
    let (first, mut second) = (pools.take(0, &template).unwrap(), pools.take(1, &template).unwrap());
    let left = budget.bytes_max() - budget.bytes_used();
    let pages = (left >> 16) as i32 + 1;
    assert_eq!(call(&mut second, "grow", &[pages]), Ok(vec![Value::I32(-1)]), "the other one is in use");
    assert_eq!(second.refusal(), Some(Refusal::Exhausted));
    pools.put(0, first);
    assert_eq!(call(&mut second, "grow", &[pages]), Ok(vec![Value::I32(2)]));
    assert_eq!(pools.idle(0), 0);
}

#[test]
fn what_the_host_keeps_for_longer_stays_reserved() {
    let _worker = worker();
    let budget = Budget::new(8 << 20);
    let template = template().within(&budget);
    let mut sandbox = template.instantiate().unwrap();
    let one = budget.bytes_used();
    // A body that was received before there was a sandbox, and a reply that is sent after it.
    sandbox.join_share(budget.reserve(1 << 20).unwrap());
    assert!(sandbox.set_host_bytes(1 << 20));
    assert_eq!(budget.bytes_used(), one + (1 << 20), "counted once");
    let reply = sandbox.split_share(1 << 20).unwrap();
    assert_eq!(reply.bytes(), 1 << 20);
    let mut pool = Pool::new(PoolLimits::default());
    pool.put(Box::new(sandbox));
    assert_eq!(budget.bytes_used(), one + (1 << 20));
    drop(reply);
    assert_eq!(budget.bytes_used(), one);
}
