//! What other workers get.

use super::*;

#[test]
fn an_idle_worker_gets_half_of_what_has_not_begun_and_one_started_a_quantum() {
    let mut played = Played::new(Policy::RoundRobin);
    played.wanted = true;
    for _ in 0..20 {
        played.arrive("short", 60, SOON);
    }
    played.play(4, |_| {});
    // Two ran, then connections were to be looked after.
    assert_eq!(played.given.len(), 1, "the first of nine");
    let mut played = Played::new(Policy::RoundRobin);
    played.wanted = true;
    for _ in 0..4 {
        played.arrive("long", 20_000, SOON);
    }
    played.play(10_000, |_| {});
    let mut given = played.given.clone();
    given.dedup();
    assert_eq!(given.len(), 3, "all but one, which it runs itself");
    assert_eq!(played.ended.len(), 1);
}

#[test]
fn the_last_one_is_not_given_away_and_started_ones_only_once_a_quantum() {
    let mut core = Core::new(Policy::RoundRobin, QUANTUM, 1, Instant::now());
    let now = Instant::now();
    let task = |id| {
        let (tenant, deadline, cpu) = (TenantId(0), now + SOON, Duration::ZERO);
        Task {
            id: TaskId(id),
            tenant,
            function: FunctionId(0),
            age: id.into(),
            arrived: now,
            deadline,
            cpu_max: Duration::MAX,
            cpu,
            started: true,
            level: 0,
            class: 0,
            is_speculative: false,
            weight: 1,
        }
    };
    (0..3).for_each(|id| core.note(Event::Arrived(task(id)), now));
    core.note(Event::Turn, now);
    assert_eq!(core.step(Event::Wanted, now), Action::Give(TaskId(2)));
    assert_eq!(core.step(Event::Given, now), Action::Run(TaskId(0)));
    assert_eq!(core.step(Event::Preempted { ran: QUANTUM }, now), Action::Run(TaskId(0)), "the oldest of a function comes first");
    core.note(Event::Preempted { ran: QUANTUM }, now);
    assert_eq!(core.step(Event::Wanted, now + QUANTUM / 2), Action::Io, "too soon");
    assert_eq!(core.step(Event::Wanted, now + QUANTUM), Action::Give(TaskId(1)));
    assert_eq!(core.step(Event::Wanted, now + 3 * QUANTUM), Action::Io, "the last one stays");
}

#[test]
fn half_of_what_has_not_begun_is_given_away() {
    let mut played = Played::new(Policy::RoundRobinStrict);
    (0..2).for_each(|_| played.arrive("long", 100_000, SOON));
    played.play(20, |_| {});
    assert_eq!(played.core.started, 2);
    (0..4).for_each(|_| played.arrive("new", 10, SOON));
    let mut given = 0;
    let mut action = played.core.step(Event::Wanted, played.now);
    while let Action::Give(_) = action {
        given += 1;
        action = played.core.step(Event::Given, played.now);
    }
    assert_eq!(given, 2);
}

/// The tenant that has most of what may be given away gives, whatever else the others have.
#[test]
fn of_several_tenants_that_one_gives_that_has_most_to_give() {
    for policy in POLICIES {
        let mut played = Played::new(policy);
        let add = |played: &mut Played, tenant, name, started| {
            let id = TaskId(played.tasks.len() as u32);
            let function = played.function(tenant, name);
            let (tenant, arrived, cpu, cpu_max) = (TenantId(tenant), played.now, Duration::ZERO, Duration::MAX);
            let (age, deadline) = (u64::from(id.0), arrived + SOON);
            let task = Task {
                id,
                tenant,
                function,
                age,
                arrived,
                deadline,
                cpu_max,
                cpu,
                started,
                level: 0,
                class: 0,
                is_speculative: false,
                weight: 1,
            };
            played.tasks.push(Guest { name, left: QUANTUM, task });
            played.core.note(Event::Arrived(task), arrived);
            id
        };
        (0..4).for_each(|_| _ = add(&mut played, 0, "begun", true));
        let few = add(&mut played, 1, "few", false);
        let more = [add(&mut played, 2, "more", false), add(&mut played, 2, "more", false)];
        add(&mut played, 3, "begun too", true);
        // None of the last one's is left.
        assert!(played.core.take_any(|task| task.tenant == TenantId(3)).is_some());
        let mut gives = |at| match played.core.step(Event::Wanted, played.now + at) {
            Action::Give(id) => Some(id),
            _ => None,
        };
        let mut given: Vec<_> = (0..3).map_while(|_| gives(Duration::ZERO)).collect();
        assert_eq!(given[..1], more[1..], "{policy:?}");
        given.sort_unstable();
        assert_eq!(given, [few, more[0], more[1]], "{policy:?}");
        assert!(gives(Duration::ZERO).is_some_and(|id| id.0 < 4), "{policy:?}: one that has begun");
        assert_eq!(gives(QUANTUM - Duration::from_nanos(1)), None, "{policy:?}: too soon for another, it runs one");
        assert!(gives(QUANTUM).is_some_and(|id| id.0 < 4), "{policy:?}");
    }
}

/// What another worker gets of one function may share what it has in its caches.
#[test]
fn what_is_given_away_is_of_one_function_as_long_as_that_has_any() {
    let mut played = Played::new(Policy::RoundRobin);
    for name in ["one", "other", "one", "other", "one"] {
        played.arrive(name, 10, SOON);
    }
    let mut given = Vec::new();
    let mut action = played.core.step(Event::Wanted, played.now);
    while let Action::Give(id) = action {
        given.push(played.tasks[id.0 as usize].name);
        let event = if given.len() < 4 { Event::Wanted } else { Event::Given };
        action = played.core.step(event, played.now);
    }
    assert_eq!(given[..3], ["one", "one", "one"], "{given:?}");
    assert_eq!(given[3..], ["other"], "the last one stays");
}
