//! The levels of a function's invocations, and what is known of its function.

use super::*;

/// A function's invocation that has used so much, and has begun.
fn begun(id: u32, function: u32, cpu: Duration, now: Instant) -> Task {
    let (tenant, function) = (TenantId(0), FunctionId(function));
    let (deadline, cpu_max) = (now + SOON, Duration::MAX);
    let age = id.into();
    Task {
        id: TaskId(id),
        tenant,
        function,
        weight: 1,
        age,
        arrived: now,
        deadline,
        cpu_max,
        cpu,
        started: true,
        level: 0,
        class: 0,
        is_speculative: false,
    }
}

/// How many quanta each of several invocations of one function has of the next so many, which have used so much before.
fn quanta_of<const COUNT: usize>(used: [Duration; COUNT], quanta: usize) -> [usize; COUNT] {
    let now = Instant::now();
    let mut core = Core::new(Policy::RoundRobin, QUANTUM, 1, now);
    for (id, cpu) in (0..).zip(used) {
        core.note(Event::Arrived(begun(id, 0, cpu, now)), now);
    }
    let mut had = [0; COUNT];
    for _ in 0..quanta {
        let Action::Run(id) = core.step(Event::Turn, now) else { panic!("they do not end") };
        had[id.0 as usize] += 1;
        core.note(Event::Preempted { ran: QUANTUM }, now);
    }
    had
}

#[test]
fn one_drops_a_level_when_it_has_used_more_than_the_level_has() {
    let first = 3 * QUANTUM;
    assert_eq!(quanta_of([first, Duration::ZERO], 1), [1, 0], "not more");
    assert_eq!(quanta_of([first + Duration::from_nanos(1), Duration::ZERO], 1), [0, 1], "the level above comes first");
}

#[test]
fn the_last_level_has_no_end_and_a_quarter_of_the_time_of_the_one_above() {
    let last = 3 * QUANTUM * 4_u32.pow(4);
    let beyond = [last + QUANTUM, last * 4 + QUANTUM, last * 16 + QUANTUM, last * 1_000];
    for older in beyond {
        for younger in beyond {
            assert_eq!(quanta_of([older, younger], 20), [20, 0], "{older:?} and {younger:?} have used");
        }
    }
    // The level above it has four times its time.
    let [above, below] = quanta_of([last + QUANTUM, last - 100 * QUANTUM], 50);
    assert!((9..=11).contains(&above) && (39..=41).contains(&below), "{above} and {below} quanta");
}

#[test]
fn what_is_expected_is_the_mean_and_twice_the_mean_deviation() {
    let mut group = Group::default();
    assert_eq!((group.expected(), group.first_run()), (Duration::ZERO, None));
    group.ended(micros(100));
    assert_eq!(group.expected(), micros(100), "of one there is no deviation");
    // The mean becomes 150 us, and the deviation was 100.
    group.ended(micros(200));
    assert_eq!(group.expected(), micros(150 + 2 * 100));
    (0..200).for_each(|_| group.ended(micros(200)));
    assert!(group.expected().abs_diff(micros(200)) < micros(2), "{:?}", group.expected());
    group.ran_first(micros(30));
    assert_eq!(group.first_run(), Some(micros(30)));
    (0..7).for_each(|_| group.ran_first(micros(30)));
    group.ran_first(micros(110));
    assert_eq!(group.first_run(), Some(micros(40)), "an eighth of what is new");
}

#[test]
fn a_function_of_which_nothing_is_known_is_not_short() {
    let mut played = Played::new(Policy::RoundRobin);
    let now = played.now;
    // The second is known by its number only.
    for (id, function) in [(0, 0), (1, 2)] {
        played.core.note(Event::Arrived(Task { started: false, ..begun(id, function, Duration::ZERO, now) }), now);
    }
    let task = Task { started: false, ..begun(2, 1, Duration::ZERO, now) };
    assert!(!played.core.may_run_at_once(task, played.now));
    played.core.group(FunctionId(1)).ran_first(micros(1));
    assert!(played.core.may_run_at_once(task, played.now));
}
