//! What is shed, at the bounds of the decision.

use super::*;

/// A core of two workers in which invocations of functions 0 and 1 take a millisecond each.
fn known() -> (Core, Instant) {
    let now = Instant::now();
    let mut core = Core::new(Policy::RoundRobin, QUANTUM, 2, now);
    for function in [0, 1] {
        (0..200).for_each(|_| core.group(FunctionId(function)).ended(micros(1_000)));
        assert_eq!(core.group(FunctionId(function)).expected(), micros(1_000));
    }
    (core, now)
}

fn task_of(function: u32, id: u32, arrived: Instant, deadline: Duration) -> Task {
    let (tenant, function, cpu) = (TenantId(0), FunctionId(function), Duration::ZERO);
    let (deadline, cpu_max) = (arrived + deadline, Duration::MAX);
    let age = id.into();
    Task {
        id: TaskId(id),
        tenant,
        function,
        weight: 1,
        age,
        arrived,
        deadline,
        cpu_max,
        cpu,
        started: false,
        level: 0,
        class: 0,
        is_speculative: false,
    }
}

const NEXT: Duration = Duration::from_nanos(1);

#[test]
fn an_arrival_has_no_chance_if_all_workers_together_need_too_long_for_what_is_older() {
    let (mut core, now) = known();
    // It was late already when it came; but nothing of its function waits.
    assert!(!core.is_hopeless(&task_of(0, 0, now, micros(1_000)), now + micros(999)));
    (0..8).for_each(|id| core.add(task_of(0, id, now, SOON), now));
    core.check();
    // Eight milliseconds by two workers, then its own, and as much again in case it takes longer.
    let needed = micros(4_000 + 2 * 1_000);
    assert!(!core.is_hopeless(&task_of(0, 9, now, needed), now));
    assert!(core.is_hopeless(&task_of(0, 9, now, needed - NEXT), now));
    assert!(core.is_hopeless(&task_of(0, 9, now, needed), now + NEXT));
    assert!(!core.is_hopeless(&task_of(1, 9, now, micros(1_000)), now), "nothing of its function waits");
}

#[test]
fn a_task_is_begun_if_it_is_expected_to_meet_its_deadline_beside_other_functions() {
    let (mut core, now) = known();
    let needed = micros(2 * 1_000);
    let is_doomed = |core: &Core, left: Duration| core.is_doomed(&task_of(0, 0, now, SOON), now + SOON - left);
    assert!(!is_doomed(&core, needed) && is_doomed(&core, needed - NEXT));
    core.add(task_of(1, 1, now, SOON), now);
    // The other function has a turn for each of this one's, for as long as it has something to run.
    assert!(!is_doomed(&core, needed + micros(1_000)) && is_doomed(&core, needed + micros(1_000) - NEXT));
    core.add(task_of(1, 2, now, SOON), now);
    core.add(task_of(1, 3, now, SOON), now);
    assert!(!is_doomed(&core, 2 * needed) && is_doomed(&core, 2 * needed - NEXT));
    // Others of its own function come after it.
    core.add(task_of(0, 4, now, SOON), now);
    assert!(!is_doomed(&core, 2 * needed) && is_doomed(&core, 2 * needed - NEXT));
}

#[test]
fn a_task_needs_what_it_is_expected_to_take_and_some_more_but_never_all_that_it_has() {
    let (mut core, now) = known();
    let needed = |core: &Core, function: u32, deadline: u64| {
        core.needed(&task_of(function, 0, now, micros(deadline)), &core.groups[function as usize])
    };
    assert_eq!(needed(&core, 0, 1_000_000), micros(2_000));
    // A quarter of the rest.
    assert_eq!(needed(&core, 0, 3_000), micros(1_000 + 500));
    // Half of all that it has, and a quarter of the other half.
    assert_eq!(needed(&core, 0, 800), micros(400 + 100));
    // Two quanta are always to spare.
    (0..200).for_each(|_| core.group(FunctionId(2)).ended(micros(10)));
    assert_eq!(needed(&core, 2, 1_000_000), micros(10) + 2 * QUANTUM);
    // Of this nothing is known.
    core.group(FunctionId(3));
    assert_eq!(needed(&core, 3, 1_000_000), Duration::ZERO);
    core.policy = Policy::Fifo;
    assert_eq!(needed(&core, 0, 1_000_000), Duration::ZERO);
}
