//! What the worker asks its schedule, to know for how long a guest may go on.

use super::*;

/// As many may be blocked at a time.
const BLOCKED_MAX: usize = 16_384;

#[test]
fn a_worker_is_alone_while_nothing_waits_but_for_what_it_runs() {
    let mut pool = Pool::new(2);
    assert!(!pool.workers[0].is_alone(), "it runs nothing");
    pool.arrive(0);
    pool.turn(0);
    let Action::Run(_, job) = pool.next(0) else { panic!("it has something to run") };
    assert!(pool.workers[0].is_alone());
    let another = pool.job();
    pool.common.model.borrow_mut().queues[0].push_back(another);
    assert!(!pool.workers[0].is_alone(), "it has handed something off");
    pool.common.model.borrow_mut().queues[0].clear();
    pool.common.model.borrow_mut().inject(another);
    assert!(!pool.workers[0].is_alone(), "any worker may take that");
    pool.common.model.borrow_mut().injector.clear();
    for (phase, is_alone) in [(Phase::Killing, false), (Phase::Draining, true), (Phase::Serving, true)] {
        pool.common.phase.set(phase);
        assert_eq!(pool.workers[0].is_alone(), is_alone, "{phase:?}");
    }
    pool.arrive(0);
    assert!(!pool.workers[0].is_alone(), "it has something else");
    pool.step(0, Event::Preempted { ran: QUANTUM, work: job });
    pool.next_after_io(0);
    assert!(!pool.workers[0].is_alone(), "the first one waits again");
}

#[test]
fn a_worker_knows_when_the_next_of_what_is_blocked_goes_on() {
    let mut pool = Pool::new(1);
    assert_eq!(pool.workers[0].alarm(), None);
    let now = pool.now;
    let until = |micros| Some(now + Duration::from_micros(micros));
    for until in [until(900), until(700), until(800)] {
        pool.arrive(0);
        pool.turn(0);
        let Action::Run(_, work) = pool.next(0) else { panic!("it has something to run") };
        pool.step(0, Event::Blocked { ran: Duration::ZERO, until, work });
    }
    assert_eq!(pool.workers[0].alarm(), until(700));
}

#[test]
fn what_is_called_may_begin_within_its_callers_turn_unless_all_ends_or_too_many_are_blocked() {
    let mut pool = Pool::new(1);
    pool.turn(0);
    assert!(pool.workers[0].may_begin_within());
    pool.common.phase.set(Phase::Killing);
    pool.turn(0);
    assert!(!pool.workers[0].may_begin_within());
    pool.common.phase.set(Phase::Serving);
    pool.turn(0);
    for _ in 0..BLOCKED_MAX {
        assert!(pool.workers[0].may_begin_within());
        pool.arrive(0);
        let Action::Run(_, work) = pool.next(0) else { panic!("it may begin") };
        pool.step(0, Event::Blocked { ran: Duration::ZERO, until: None, work });
    }
    assert!(!pool.workers[0].may_begin_within());
}

#[test]
fn microtasks_are_counted_where_they_have_classes() {
    for classes in [None, Some(Classes::default())] {
        let mut pool = Pool::with_classes(1, classes);
        pool.arrive(0);
        pool.turn(0);
        pool.run(0, 60);
        let counted = |times| classes.map(|_| [[times, times * 60_000], [0; 2], [0; 2], [0; 2]]);
        assert_eq!(pool.workers[0].take_class_counts(), counted(1));
        assert_eq!(pool.workers[0].take_class_counts(), counted(0));
    }
}
