//! The warm path: what is written where is learned, restored, and costs neither page faults nor system calls.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use awsm_abi::types::Bounds;
use sledge_sandbox::*;

use crate::guest::{LIMITS, call, parts, worker};
use crate::syscalls::{Counts, count};

/// Bounds checks that memories can be made for. The guest's code is the same: it stays within.
const MODES: [Bounds; 2] = [Bounds::Guard, Bounds::Software];

fn template(bounds: Bounds, pages: u64) -> Template {
    let mut parts = parts();
    parts.descriptor.modules[0].bounds[0] = bounds;
    parts.descriptor.modules[0].memories[0].ty.pages_min = pages;
    Template::new(&parts.load(), &LIMITS).unwrap()
}

/// What a warm cycle costs: of several measurements the least, since the kernel has reasons of its own to take a page away.
fn warm(template: &Template, mut run: impl FnMut(&mut Sandbox)) -> Counts {
    const CYCLES: usize = 20;
    let mut pool = Pool::new();
    let mut cycle = || {
        let mut sandbox = pool.take(template).unwrap();
        run(&mut sandbox);
        pool.put(sandbox);
    };
    (0..5).for_each(|_| cycle());
    let counted = (0..20).map(|_| count(|| (0..CYCLES).for_each(|_| cycle())));
    counted.min_by_key(|counts| counts.faults as usize + counts.calls.len()).unwrap()
}

fn store(sandbox: &mut Sandbox, address: u32) {
    call(sandbox, "store", &[address.cast_signed(), 0x5a5a_5a5a]).unwrap();
}

#[test]
fn a_warm_request_takes_no_page_fault_and_no_system_call() {
    let _worker = worker();
    for bounds in MODES {
        for pages in [1, 2, 5, 40] {
            let template = template(bounds, pages);
            let empty = warm(&template, |sandbox| drop(call(sandbox, "nothing", &[]).unwrap()));
            assert_eq!(empty, Counts::default(), "{bounds}, {pages} pages, nothing done");
            let end = pages as u32 * 65536;
            let writes = warm(&template, |sandbox| {
                for address in [0, 16, 5000, end / 2, end - 4] {
                    store(sandbox, address);
                }
                let main = sandbox.main_instance().unwrap();
                sandbox.memory(main).unwrap().write(u64::from(end) / 4, b"by the host").unwrap();
            });
            assert_eq!(writes, Counts::default(), "{bounds}, {pages} pages, some written to");
            // More than so much is not kept in memory between requests.
            if u64::from(end) <= limits::KEEP_RESIDENT_BYTES as u64 / 2 {
                let all = warm(&template, |sandbox| drop(call(sandbox, "scribble", &[7]).unwrap()));
                assert_eq!(all, Counts::default(), "{bounds}, {pages} pages, all written to");
            }
        }
    }
}

#[test]
fn a_warm_request_that_grows_takes_no_page_fault_and_two_system_calls_only_where_growth_is_a_matter_of_protection() {
    let _worker = worker();
    for bounds in MODES {
        let counts = warm(&template(bounds, 2), |sandbox| {
            assert_eq!(call(sandbox, "grow", &[1]), Ok(vec![Value::I32(2)]));
            store(sandbox, 0x2_0000);
            store(sandbox, 0x2_fffc);
        });
        assert_eq!(counts.faults, 0, "{bounds}");
        // One to make the pages accessible, and one at the reset: without those, accesses behind the memory's end would not trap.
        let calls = if bounds == Bounds::Guard { [libc::SYS_mprotect; 40].to_vec() } else { Vec::new() };
        assert_eq!(counts.calls, calls, "{bounds}");
    }
}

#[test]
fn a_page_is_learned_by_one_fault_and_stays_learned() {
    let _worker = worker();
    let template = template(Bounds::Guard, 40);
    let mut pool = Pool::new();
    let mut run = |addresses: &[u32]| {
        let mut sandbox = pool.take(&template).unwrap();
        let counts = count(|| addresses.iter().for_each(|&address| store(&mut sandbox, address)));
        pool.put(sandbox);
        counts.calls.first().copied()
    };
    run(&[0x1_0000]);
    assert_eq!(run(&[0x1_0000]), None);
    assert_eq!(run(&[0x8_0000]), Some(libc::SYS_mprotect));
    assert_eq!(run(&[0x1_0000, 0x8_0000]), None);
}

/// An engine for a language writes to many pages far from each other. With a few spans, a reset would copy what lies between them.
#[test]
fn what_is_written_all_over_a_memory_is_learned_without_what_lies_between() {
    const PAGES: u32 = 40;
    const APART: u32 = 65_536;
    let _worker = worker();
    for bounds in MODES {
        let template = template(bounds, 50);
        let mut pool = Pool::new();
        let mut run = |offset: u32| {
            let mut sandbox = pool.take(&template).unwrap();
            (0..PAGES).for_each(|i| store(&mut sandbox, i * APART));
            // One at a time: of what follows a fault, nothing is counted.
            let faults = (0..10).filter(|i| !count(|| store(&mut sandbox, i * APART + offset)).calls.is_empty()).count();
            pool.put(sandbox);
            faults
        };
        // The first run is the one that is learned from.
        run(0);
        assert_eq!(run(0), 0, "{bounds}");
        assert_eq!(run(APART / 2), 10, "{bounds}: what lies between is read-only");
        assert_eq!(run(APART / 2), 0, "{bounds}");
    }
}

#[test]
fn whatever_is_written_by_whomever_is_gone_afterwards() {
    let _worker = worker();
    let mut seed = 20_260_101u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    for bounds in MODES {
        let template = template(bounds, 20);
        let mut pool = Pool::new();
        for cycle in 0..600 {
            let mut sandbox = pool.take(&template).unwrap();
            let main = sandbox.main_instance().unwrap();
            assert_eq!(sandbox.memory_bytes(), 20 << 16);
            assert_eq!(call(&mut sandbox, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]), "{bounds}, cycle {cycle}");
            if random(3) == 0 {
                let pages = random(44) as i32;
                assert_eq!(call(&mut sandbox, "grow", &[pages]), Ok(vec![Value::I32(20)]));
                assert_eq!(call(&mut sandbox, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]), "{bounds}, cycle {cycle}, grown");
            }
            let end = sandbox.memory_bytes();
            for _ in 0..random(12) {
                store(&mut sandbox, random(end - 3) as u32);
            }
            let mut memory = sandbox.memory(main).unwrap();
            for _ in 0..random(4) {
                let length = random(100_000).min(end);
                memory.slice_mut(random(end - length + 1), length).unwrap().fill(0xa5);
            }
            if random(4) == 0 {
                call(&mut sandbox, "memory_init", &[random(end - 4) as i32]).unwrap();
            }
            if random(20) == 0 {
                call(&mut sandbox, "scribble", &[0x33]).unwrap();
            }
            pool.put(sandbox);
            assert_eq!(pool.idle(), 1);
        }
    }
}

#[test]
fn what_lies_behind_a_memory_that_was_longer_once_traps() {
    let _worker = worker();
    let template = template(Bounds::Guard, 2);
    let mut pool = Pool::new();
    for _ in 0..4 {
        let mut sandbox = pool.take(&template).unwrap();
        call(&mut sandbox, "grow", &[4]).unwrap();
        store(&mut sandbox, 0x5_fffc);
        pool.put(sandbox);
        let mut sandbox = pool.take(&template).unwrap();
        for address in [0x2_0000, 0x1_fffd, 0x5_fffc, 0x5_fffd] {
            let store = call(&mut sandbox, "store", &[address, 1]).unwrap_err();
            assert_eq!(store.code, TrapCode::MemoryOutOfBounds);
            assert_eq!(call(&mut sandbox, "load", &[address]).unwrap_err().code, TrapCode::MemoryOutOfBounds);
        }
        call(&mut sandbox, "nothing", &[]).unwrap();
        pool.put(sandbox);
    }
}

/// Templates that are as if of different tenants.
fn tenants() -> Vec<Template> {
    MODES.iter().flat_map(|&bounds| [template(bounds, 3), template(bounds, 3), template(bounds, 9)]).collect()
}

/// Tenants of which each leaves its canary wherever it can, in sandboxes that `take` gives (for a worker, of a tenant's template) and `put` gets
/// back.
fn canaries(seed: u64, tenants: &[Template], take: impl Fn(usize, &Template) -> Box<Sandbox>, put: impl Fn(usize, Box<Sandbox>)) {
    let mut state = seed;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for cycle in 0..1500 {
        let (tenant, worker) = (random(tenants.len() as u64) as usize, random(2) as usize);
        let mut sandbox = take(worker, &tenants[tenant]);
        let what = format!("tenant {tenant}, cycle {cycle}, seed {seed}");
        assert_eq!(call(&mut sandbox, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]), "{what}");
        assert_eq!(call(&mut sandbox, "counter", &[]), Ok(vec![Value::I32(7)]), "{what}");
        assert_eq!(call(&mut sandbox, "call_element", &[0, 10]), Ok(vec![Value::I32(10)]), "{what}");
        let canary = 0x40 + tenant as i32;
        if random(2) == 0 {
            call(&mut sandbox, "grow", &[random(20) as i32]).unwrap();
            assert_eq!(call(&mut sandbox, "foreign_bytes", &[]), Ok(vec![Value::I32(0)]), "{what}, grown");
        }
        if random(3) == 0 {
            call(&mut sandbox, "scribble", &[canary]).unwrap();
        }
        let end = sandbox.memory_bytes();
        (0..random(6)).for_each(|_| drop(call(&mut sandbox, "store", &[random(end - 3) as i32, canary * 0x0101_0101]).unwrap()));
        // However it ends: in good order, by a trap in the middle, killed, exhausted.
        match random(5) {
            0 => drop(call(&mut sandbox, "unreachable", &[]).unwrap_err()),
            1 => drop(call(&mut sandbox, "recurse", &[0]).unwrap_err()),
            2 => sandbox.kill(),
            _ => {}
        }
        put(worker, sandbox);
    }
}

#[test]
fn no_tenant_ever_finds_what_another_left() {
    let _worker = worker();
    let pool = RefCell::new(Pool::new());
    canaries(
        7_351_942,
        &tenants(),
        |_, template| pool.borrow_mut().take(template).unwrap(),
        |_, sandbox| pool.borrow_mut().put(sandbox),
    );
}

/// Where the budget allows fewer sandboxes than there are tenants, so that stacks and memories of one become another's all the time.
#[test]
fn no_tenant_ever_finds_what_another_left_in_the_same_stack_and_memory() {
    let _worker = worker();
    let budget = Budget::new(3 << 20);
    let tenants: Vec<Template> = tenants().iter().map(|template| template.within(&budget)).collect();
    let pools = Pools::new(2);
    pools.lend_to(&budget);
    let exhausted = Cell::new(0);
    canaries(
        99_120_551,
        &tenants,
        |worker, template| {
            exhausted.set(exhausted.get() + u32::from(budget.reserve(512 << 10).is_none()));
            pools.take(worker, template).unwrap()
        },
        |worker, sandbox| pools.put(worker, sandbox, Instant::now()),
    );
    assert!(exhausted.get() > 50, "{} times only", exhausted.get());
}
