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

#[test]
fn with_classes_a_short_request_runs_at_once_beside_what_has_begun_if_its_class_is_next() {
    let (mut played, _) = played_with_classes();
    let mut now = played.now;
    let short = Task { id: TaskId(1), function: FunctionId(1), ..played.tasks[0].task };
    let mut run = |played: &mut Played| {
        assert_eq!(played.core.step(Event::Turn, now), Action::Run(TaskId(0)));
        now += QUANTUM;
        assert_eq!(played.core.step(Event::Preempted { ran: QUANTUM }, now), Action::Io);
        played.core.may_run_at_once(short, now)
    };
    // What has begun used its first quantum as one of the shortest class, and then one of the next.
    played.core.group(short.function).ran_first(micros(60));
    assert_eq!([run(&mut played), run(&mut played)], [false, true]);
}

#[test]
fn with_classes_functions_have_parts_by_weight_of_what_their_class_has() {
    let (mut played, template) = played_with_classes();
    let mut now = played.now;
    assert_eq!(played.core.drain(), Some(template.id));
    for (id, function, weight) in [(0, 4, 1), (1, 5, 3)] {
        let task = Task { id: TaskId(id), function: FunctionId(function), weight, ..template };
        played.core.announce(task.id, Microtask { site: Site(1), declared: Some(LONG) });
        played.core.note(Event::Arrived(task), now);
    }
    played.core.note(Event::Turn, now);
    let mut had = [0; 2];
    while had.iter().sum::<u32>() < 100 {
        match played.core.decide(now) {
            Action::Run(id) => {
                had[id.0 as usize] += 1;
                now += QUANTUM;
                played.core.note(Event::Preempted { ran: QUANTUM }, now);
            }
            _ => played.core.note(Event::Turn, now),
        }
    }
    assert_eq!(had, [25, 75]);
}
