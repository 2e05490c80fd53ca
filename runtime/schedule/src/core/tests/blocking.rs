//! Tasks that wait for something else than their turn.

use super::*;

/// A blocked task uses nothing, goes on when its time comes, and is over at its deadline whatever it waits for.
#[test]
fn a_blocked_task_leaves_the_worker_to_others_and_goes_on_in_time() {
    for policy in POLICIES {
        let mut played = Played::new(policy);
        let start = played.now;
        let begin = |played: &mut Played, name| {
            played.arrive(name, 100, SOON);
            let action = played.core.step(Event::Turn, played.now);
            assert_eq!(action, Action::Run(TaskId(played.tasks.len() as u32 - 1)), "{name}");
        };
        begin(&mut played, "late");
        played.core.note(Event::Blocked { ran: micros(10), until: Some(start + micros(3_000)) }, played.now);
        begin(&mut played, "soon");
        played.core.note(Event::Blocked { ran: micros(10), until: Some(start + micros(2_000)) }, played.now);
        assert_eq!((played.core.waiting(), played.core.alarm()), (0, Some(start + micros(2_000))));
        // The worker waits, and whatever else there is runs.
        assert_eq!(played.core.step(Event::Turn, played.now), Action::Look);
        assert_eq!(played.core.step(Event::Looked, played.now), Action::Wait);
        played.arrive("other", 50, SOON);
        played.play(100, |_| {});
        assert_eq!(played.names(), ["other"]);
        // Not a moment before its time.
        played.now = start + micros(1_999);
        played.play(100, |_| {});
        assert_eq!(played.names(), ["other"]);
        played.now = start + micros(2_000);
        played.play(100, |_| {});
        assert_eq!((played.names(), played.core.alarm()), (vec!["other", "soon"], Some(start + micros(3_000))));
        played.now = start + micros(5_000);
        played.play(100, |_| {});
        assert_eq!((played.names(), played.core.alarm()), (vec!["other", "soon", "late"], None));
        assert!(played.ended.iter().all(|ended| ended.killed.is_none()));
    }
}

#[test]
fn a_blocked_task_is_over_at_its_deadline() {
    for until in [None, Some(SOON)] {
        let mut played = Played::new(Policy::RoundRobin);
        let start = played.now;
        let task = |played: &mut Played| {
            played.arrive("waits", 100, micros(5_000));
            played.tasks[0].task
        };
        // Both ways in which it may have begun.
        if until.is_none() {
            task(&mut played);
            assert_eq!(played.core.step(Event::Turn, start), Action::Run(TaskId(0)));
        } else {
            let mut other = Played::new(Policy::RoundRobin);
            let task = Task { arrived: start, deadline: start + micros(5_000), ..task(&mut other) };
            played.tasks.push(Guest { name: "waits", left: micros(100), task });
            assert!(played.core.may_run_at_once(task, played.now));
        }
        let until = until.map(|until| start + until);
        played.core.note(Event::Blocked { ran: micros(10), until }, start);
        assert_eq!(played.core.alarm(), Some(start + micros(5_000)));
        played.now = start + micros(5_000);
        played.play(100, |_| {});
        assert_eq!(played.find("waits").killed, Some(Why::Deadline));
        assert_eq!((played.core.alarm(), played.core.waiting()), (None, 0));
    }
}

#[test]
fn a_blocked_task_keeps_its_place_and_its_budget() {
    let mut played = Played::new(Policy::RoundRobin);
    let start = played.now;
    for _ in 0..BLOCKED_MAX {
        played.arrive("waits", 100, SOON);
        assert!(matches!(played.core.step(Event::Turn, start), Action::Run(_)));
        played.core.note(Event::Blocked { ran: micros(1), until: None }, start);
    }
    // There are enough: what arrives waits until one of them has ended.
    played.arrive("one more", 10, SOON);
    assert_eq!(played.core.step(Event::Turn, start), Action::Wait);
    let drained = std::iter::from_fn(|| played.core.drain()).count();
    assert_eq!(drained, BLOCKED_MAX + 1);
    // What it has used up counts when it blocks as when it is preempted.
    played.arrive_for(0, "spends", 100, SOON, micros(50));
    assert!(matches!(played.core.step(Event::Turn, start), Action::Run(_)));
    let id = TaskId(played.tasks.len() as u32 - 1);
    let next = played.core.step(Event::Blocked { ran: micros(50), until: None }, start);
    assert_eq!(next, Action::Kill(id, Why::Cpu));
}

#[test]
fn what_a_blocked_task_waits_for_makes_it_ready() {
    let mut played = Played::new(Policy::RoundRobin);
    let start = played.now;
    played.arrive("waits", 100, SOON);
    assert!(matches!(played.core.step(Event::Turn, start), Action::Run(_)));
    let id = TaskId(played.tasks.len() as u32 - 1);
    played.core.note(Event::Blocked { ran: micros(10), until: None }, start);
    assert_eq!((played.core.waiting(), played.core.alarm()), (0, Some(start + SOON)));
    played.core.note(Event::Ready(id), start);
    assert_eq!((played.core.waiting(), played.core.alarm()), (1, None));
    // Once only, however often it is said.
    played.core.note(Event::Ready(id), start);
    played.core.note(Event::Ready(TaskId(99)), start);
    assert_eq!(played.core.waiting(), 1);
    assert_eq!(played.core.step(Event::Turn, start), Action::Run(id));
    assert_eq!(played.core.step(Event::Ended { ran: micros(10) }, start), Action::Look);
}

/// What came back from waiting goes before what came later, and what came later has its turn when that is over.
#[test]
fn of_a_function_the_oldest_runs_first_whatever_it_waited_for() {
    let mut played = Played::new(Policy::RoundRobin);
    let start = played.now;
    played.arrive("f", 100, SOON);
    assert_eq!(played.core.step(Event::Turn, start), Action::Run(TaskId(0)));
    played.core.note(Event::Blocked { ran: micros(10), until: None }, start);
    for _ in 0..3 {
        played.arrive("f", 2_000, SOON);
    }
    assert_eq!(played.core.step(Event::Turn, start), Action::Run(TaskId(1)));
    played.core.note(Event::Ready(TaskId(0)), start);
    assert_eq!(played.core.step(Event::Preempted { ran: QUANTUM }, start), Action::Run(TaskId(0)));
    assert_eq!(played.core.step(Event::Blocked { ran: micros(10), until: None }, start), Action::Run(TaskId(1)));
}
