//! With classes of microtasks, where they meet what else decides.

use super::*;
use crate::classes::{Classes, Microtask, Site};

const LONG: Duration = Duration::from_micros(10_000);

fn played_with_classes() -> (Played, Task) {
    let mut played = Played::new(Policy::RoundRobin);
    played.core.set_classes(Some(Classes::default()));
    played.arrive("reads and computes", 60, SOON);
    let task = played.tasks[0].task;
    (played, task)
}

#[test]
fn with_classes_a_request_runs_at_once_unless_it_is_held() {
    let (mut played, task) = played_with_classes();
    let now = played.now;
    assert_eq!(played.core.step(Event::Turn, now), Action::Run(task.id));
    let read = |core: &mut Core| {
        core.announce(task.id, Microtask { site: Site(1), declared: Some(LONG) });
        core.note(Event::Blocked { ran: micros(60), until: None }, now);
    };
    read(&mut played.core);
    played.core.note(Event::Ready(task.id), now);
    assert_eq!(played.core.step(Event::Turn, now), Action::Run(task.id));
    played.core.note(Event::Ended { ran: LONG }, now);
    assert_eq!(played.core.step(Event::Turn, now), Action::Look);
    assert_eq!(played.core.step(Event::Looked, now), Action::Wait);
    // Nothing of it is on its way, then a long microtask is.
    assert!(played.core.may_run_at_once(task, now));
    read(&mut played.core);
    let another = Task { id: TaskId(1), ..task };
    assert!(!played.core.may_run_at_once(another, now));
    let of_another_function = Task { function: FunctionId(1), ..another };
    assert!(played.core.may_run_at_once(of_another_function, now));
    played.core.note(Event::Ended { ran: micros(60) }, now);
}

#[test]
fn what_is_called_within_a_request_that_runs_at_once_counts_like_the_request_itself() {
    let mut played = Played::new(Policy::RoundRobin);
    played.arrive("any", 10, SOON);
    let (now, task) = (played.now, played.tasks[0].task);
    assert_eq!(played.core.drain(), Some(task.id));
    let callee = Task { id: TaskId(9), function: FunctionId(1), ..task };
    for called in [IO_INTERVAL - micros(4), micros(3)] {
        assert!(played.core.may_run_at_once(task, now));
        played.core.note(Event::Called { task: callee, ran: called, is_over: true }, now);
        played.core.note(Event::Ended { ran: micros(1) }, now);
    }
    assert!(!played.core.may_run_at_once(task, now), "connections have waited long enough");
}
