//! Reuse: whatever a sandbox did, the next one of the pool is as new, and what trapped or was killed never comes back.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use awsm_abi::types::Bounds;
use sledge_sandbox::*;

use crate::guest::{LIMITS, artifact, call, parts, prepare, resume, template, worker};
#[cfg(target_arch = "x86_64")]
use crate::syscalls::count;
use crate::traps::{in_another_process, is_doomed};

#[test]
fn thousands_of_reuses_leave_nothing_behind() {
    let _worker = worker();
    let template = template();
    let mut pool = Pool::new();
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
    let mut pool = Pool::new();
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
    let mut pool = Pool::new();
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
    assert_eq!(pool.idle(), 4);
    pool.forget(&first);
    assert_eq!(pool.idle(), 1);
    pool.clear();
    assert_eq!(pool.idle(), 0);
}

#[test]
fn a_template_begins_with_nothing_of_the_one_that_was_made_before() {
    use awsm_abi::descriptor::{ConstOp, SegmentMode};
    let mut low = parts();
    low.descriptor.modules[0].data[1].mode = SegmentMode::Active { target: 0, offset: vec![ConstOp::I32Const(0)] };
    low.blob = b"lowslows".to_vec();
    // Where a template has failed half-way, too.
    let mut failing = parts();
    failing.descriptor.modules[0].data[1].mode = SegmentMode::Active { target: 0, offset: vec![ConstOp::I32Const(0x1_fffd)] };
    let (low, failing) = (low.load(), failing.load());
    for _ in 0..3 {
        for before in [&low, &failing] {
            assert_eq!(Template::new(before, &LIMITS).is_ok(), std::ptr::eq(before, &raw const low));
            let mut sandbox = template().instantiate().unwrap();
            let main = sandbox.main_instance().unwrap();
            let memory = sandbox.memory(main).unwrap();
            let written: Vec<usize> = (0..memory.len() as usize).filter(|&at| memory.slice(at as u64, 1) != Ok(&[0])).collect();
            assert_eq!(written, [16, 17, 18, 19]);
        }
    }
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
                let mut pool = Pool::new();
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
    let mut pool = Pool::new();
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
    let mut pool = Pool::new();
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

/// What one sandbox of the usual template takes of a budget.
fn one_bytes() -> u64 {
    let budget = Budget::new(1 << 30);
    let _sandbox = template().within(&budget).instantiate().unwrap();
    budget.bytes_used()
}

#[cfg(target_arch = "x86_64")] // system calls are counted there only
/// Takes a sandbox; whether it was idle, so that nothing of the system was needed.
fn take_counted(take: impl FnOnce() -> Result<Box<Sandbox>, InstantiateError>) -> (Box<Sandbox>, bool) {
    let mut taken = None;
    let counts = count(|| taken = Some(take()));
    (taken.unwrap().unwrap(), counts.calls.is_empty())
}

#[test]
#[cfg(target_arch = "x86_64")] // system calls are counted there only
fn those_go_that_were_used_least_recently_of_all_templates() {
    const PLACES: usize = 5;
    const SEED: u64 = 1_404;
    let _worker = worker();
    let budget = Budget::new(PLACES as u64 * one_bytes());
    let templates: Vec<Template> = (0..9).map(|_| other(2).within(&budget)).collect();
    let mut pool = Pool::new();
    // The templates whose sandboxes should be there, from the one that was used least recently on.
    let mut model: Vec<usize> = Vec::new();
    let mut random = SEED;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for step in 0..3_000 {
        // One of them is asked for as often as all others together, now and then two at the same time.
        let asked: Vec<usize> =
            (0..1 + usize::from(next(4) == 0)).map(|_| if next(2) == 0 { 0 } else { next(templates.len()) }).collect();
        let taken: Vec<_> = asked
            .iter()
            .map(|&asked| {
                let (sandbox, was_idle) = take_counted(|| pool.take(&templates[asked]));
                let at = model.iter().rposition(|&template| template == asked);
                assert_eq!(was_idle, at.is_some(), "seed {SEED}, step {step}: {asked} of {model:?}");
                match at {
                    Some(at) => drop(model.remove(at)),
                    None if budget.bytes_used() == budget.bytes_max() && model.len() > pool.idle() => drop(model.remove(0)),
                    None => {}
                }
                assert_eq!(pool.idle(), model.len(), "seed {SEED}, step {step}");
                sandbox
            })
            .collect();
        for (sandbox, asked) in taken.into_iter().zip(asked) {
            pool.put(sandbox);
            model.push(asked);
        }
    }
    assert_eq!(pool.idle(), PLACES, "as many as there is memory for");
}

#[test]
#[cfg(target_arch = "x86_64")] // system calls are counted there only
fn a_scan_of_many_templates_leaves_the_one_that_is_always_used() {
    let _worker = worker();
    let budget = Budget::new(20 * one_bytes());
    let hot = template().within(&budget);
    let mut pool = Pool::new();
    let first = pool.take(&hot).unwrap();
    pool.put(first);
    for number in 0..200 {
        let (mut sandbox, was_idle) = take_counted(|| pool.take(&hot));
        assert!(was_idle, "before template {number}");
        call(&mut sandbox, "scribble", &[number]).unwrap();
        pool.put(sandbox);
        let cold = pool.take(&other(2).within(&budget)).unwrap();
        pool.put(cold);
    }
    assert_eq!(pool.idle(), 20);
}

#[test]
fn of_several_pools_that_one_goes_that_was_used_least_recently() {
    let _worker = worker();
    let budget = Budget::new(4 * one_bytes());
    let templates: Vec<Template> = (0..4).map(|_| other(2).within(&budget)).collect();
    let pools = Pools::new(3);
    pools.lend_to(&budget);
    // Worker 1 has the first and the third, worker 2 the second and the last.
    let begin = Instant::now();
    let taken: Vec<_> = templates.iter().map(|template| pools.take(0, template).unwrap()).collect();
    for (number, sandbox) in taken.into_iter().enumerate() {
        pools.put(1 + number % 2, sandbox, begin + Duration::from_millis(number as u64));
    }
    let idle = || [1, 2].map(|worker| pools.idle(worker));
    let asked = pools.take(0, &other(2).within(&budget)).unwrap();
    assert_eq!(idle(), [1, 2], "a new one takes the place of the first");
    let share = budget.claim(one_bytes()).unwrap();
    assert_eq!(idle(), [1, 1], "a reply that of the second");
    let another = pools.take(0, &other(2).within(&budget)).unwrap();
    assert_eq!(idle(), [0, 1], "and the third");
    drop((asked, share, another));
}

#[test]
fn each_worker_trims_forgets_and_clears_its_own_pool() {
    let _worker = worker();
    let (first, second) = (template(), other(2));
    let pools = Pools::new(2);
    let begin = |worker: usize, template: &Template, count: usize| {
        let taken: Vec<_> = (0..count).map(|_| pools.take(worker, template).unwrap()).collect();
        taken.into_iter().for_each(|sandbox| pools.put(worker, sandbox, Instant::now()));
    };
    let idle = || [0, 1].map(|worker| pools.idle(worker));
    begin(0, &first, 3);
    begin(0, &second, 1);
    begin(1, &first, 2);
    assert_eq!((idle(), pools.trim(0, 10), idle()), ([4, 2], true, [4, 2]), "all were needed");
    // A few at a time; when none is left that was not needed, the trim is complete.
    assert_eq!((pools.trim(0, 3), idle()), (false, [1, 2]));
    assert_eq!((pools.trim(0, 1), idle()), (false, [0, 2]));
    assert_eq!((pools.trim(0, 1), pools.trim(0, 0), idle()), (true, false, [0, 2]));
    begin(0, &first, 2);
    begin(0, &second, 1);
    pools.forget(0, &first);
    assert_eq!(idle(), [1, 2]);
    pools.forget(0, &first);
    pools.clear(0);
    assert_eq!(idle(), [0, 2]);
    pools.clear(1);
    assert_eq!(idle(), [0, 0]);
}

#[test]
fn a_sandbox_that_is_used_again_at_once_is_as_new_and_was_never_idle() {
    let _worker = worker();
    let (template, pools) = (template(), Pools::new(1));
    assert!(pools.take_idle(0, &template).is_none(), "nothing is made");
    let mut sandbox = pools.take(0, &template).unwrap();
    for i in 0..100 {
        assert_eq!(call(&mut sandbox, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]), "use {i}");
        assert_eq!(call(&mut sandbox, "counter", &[]), Ok(vec![Value::I32(7)]));
        call(&mut sandbox, "scribble", &[0x5a + i]).unwrap();
        call(&mut sandbox, "data_drop", &[]).unwrap();
        sandbox = pools.renew(sandbox).expect("it ended in good order");
        assert_eq!(pools.idle(0), 0);
    }
    let _ = call(&mut sandbox, "unreachable", &[]);
    assert!(pools.renew(sandbox).is_none(), "it trapped");
    let mut killed = pools.take(0, &template).unwrap();
    killed.kill();
    assert!(pools.renew(killed).is_none() && pools.idle(0) == 0);
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
    let pools = Pools::new(3);
    pools.lend_to(&budget);
    let taken = pools.take(0, &first).unwrap();
    pools.put(0, taken, Instant::now());
    let mut made = pools.take(1, &first).unwrap();
    assert_eq!((pools.idle(0), budget.bytes_used()), (1, 2 * one), "there was room for a new one");
    call(&mut made, "scribble", &[0x77]).unwrap();
    let mut stolen = pools.take(1, &first).unwrap();
    assert_eq!((pools.idle(0), budget.bytes_used()), (0, 2 * one), "as it was");
    assert_eq!(call(&mut stolen, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]));
    assert!(matches!(pools.take(2, &first), Err(InstantiateError::Exhausted { .. })), "nothing is idle");
    // Of another template: taken apart, wherever it is.
    call(&mut stolen, "scribble", &[0x55]).unwrap();
    pools.put(1, stolen, Instant::now());
    let mut changed = pools.take(2, &second).unwrap();
    assert_eq!((pools.idle(1), budget.bytes_used()), (0, 2 * one));
    assert_eq!(call(&mut changed, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]));
    // A claim that cannot be met at all takes nothing from any pool.
    pools.put(2, changed, Instant::now());
    assert!(pools.take(0, &other(60).within(&budget)).is_err());
    assert_eq!(pools.idle(2), 1);
    drop(made);
}

/// One of the wanted template is taken as it is, wherever it lies, before an older one of another template is taken apart.
#[test]
fn what_fits_in_anothers_pool_goes_before_what_is_older() {
    let _worker = worker();
    let budget = Budget::new(2 * one_bytes());
    let (wanted, older) = (template().within(&budget), other(2).within(&budget));
    let pools = Pools::new(3);
    pools.lend_to(&budget);
    let begin = Instant::now();
    let taken = [&older, &wanted].map(|template| pools.take(1, template).unwrap());
    for (worker, sandbox) in taken.into_iter().enumerate() {
        pools.put(2 * worker, sandbox, begin + Duration::from_millis(worker as u64));
    }
    let sandbox = pools.take(1, &wanted).unwrap();
    assert_eq!([0, 2].map(|worker| pools.idle(worker)), [1, 0]);
    drop(sandbox);
}

/// What is lent is given back at once, and all of it.
#[derive(Debug, Default)]
struct Lent(Mutex<Option<Share>>);

impl Reclaim for Lent {
    fn reclaim(&self, _: u64) -> bool {
        self.0.lock().unwrap().take().is_some()
    }
}

#[test]
fn what_others_lend_goes_where_nothing_is_idle_any_more() {
    let _worker = worker();
    let budget = Budget::new(3 * one_bytes());
    let template = template().within(&budget);
    let pools = Pools::new(2);
    pools.lend_to(&budget);
    let lent = Arc::new(Lent(Mutex::new(budget.reserve(one_bytes()))));
    let owner: Weak<Lent> = Arc::downgrade(&lent);
    budget.lend(owner);
    let is_lent = || lent.0.lock().unwrap().is_some();
    let taken = [0, 1].map(|worker| pools.take(worker, &template).unwrap());
    let [first, second] = taken;
    pools.put(0, first, Instant::now());
    let third = pools.take(1, &template).unwrap();
    assert_eq!((pools.idle(0), is_lent()), (0, true), "one was idle");
    let fourth = pools.take(0, &template).unwrap();
    assert!(!is_lent());
    assert!(matches!(pools.take(0, &template), Err(InstantiateError::Exhausted { .. })), "nothing is left");
    drop((second, third, fourth));
}

#[test]
fn memory_grows_into_what_is_idle_elsewhere() {
    let _worker = worker();
    let budget = Budget::new(3 << 20);
    let template = template().within(&budget);
    let pools = Pools::new(2);
    pools.lend_to(&budget);
    let (first, mut second) = (pools.take(0, &template).unwrap(), pools.take(1, &template).unwrap());
    let left = budget.bytes_max() - budget.bytes_used();
    let pages = (left >> 16) as i32 + 1;
    assert_eq!(call(&mut second, "grow", &[pages]), Ok(vec![Value::I32(-1)]), "the other one is in use");
    assert_eq!(second.refusal(), Some(Refusal::Exhausted));
    pools.put(0, first, Instant::now());
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
    let mut pool = Pool::new();
    pool.put(Box::new(sandbox));
    assert_eq!(budget.bytes_used(), one + (1 << 20));
    drop(reply);
    assert_eq!(budget.bytes_used(), one);
}

/// A sandbox without mappings has to look at all of its memory at each reset. In a process of its own, since it takes all mappings that there are.
#[test]
fn a_sandbox_without_mappings_for_its_resets_gets_those_of_an_idle_one() {
    if !is_doomed() {
        let output = in_another_process("pooling::a_sandbox_without_mappings_for_its_resets_gets_those_of_an_idle_one");
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let _worker = worker();
    // Of few addresses each, so that mappings are exhausted first.
    let mut parts = parts();
    parts.descriptor.modules[0].bounds[0] = Bounds::Software;
    parts.descriptor.modules[0].memories[0].ty.pages_min = 16;
    let template = Template::new(&parts.load(), &LIMITS).unwrap();
    let mut pool = Pool::new();
    let [first, second, mut third] = [(); 3].map(|()| pool.take(&template).unwrap());
    pool.put(first);
    pool.put(second);
    assert_eq!(pool.idle(), 2, "there are mappings for both");
    let mut others = Vec::new();
    let error = loop {
        match Pool::new().take(&template) {
            Ok(sandbox) => others.push(sandbox),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, InstantiateError::OutOfMemory { .. }), "{error}");
    for page in 0..16 {
        call(&mut third, "store", &[page << 16, 1]).unwrap();
    }
    pool.put(third);
    assert_eq!(pool.idle(), 2, "one was given back for the third");
}
