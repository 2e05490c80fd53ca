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
