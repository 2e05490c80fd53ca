//! Requests that are not begun, since their later microtasks would only wait: what others get of them, and when.

use super::*;
use sledge_schedule::Site;

const LONG: Duration = Duration::from_millis(10);

impl Pool {
    /// Worker 0 knows that the function reads and then computes for long; one such request reads, and so many others wait.
    fn holding(workers: usize, waiting: u32) -> Pool {
        let mut pool = Pool::with_classes(workers, Some(Classes::default()));
        let id = pool.reads();
        pool.step(0, Event::Ready(id));
        pool.turn(0);
        assert!(matches!(pool.next(0), Action::Run(..)));
        pool.now += LONG;
        pool.step(0, Event::Ended { ran: LONG });
        pool.rest(0);
        pool.reads();
        (0..waiting).for_each(|_| pool.arrive(0));
        pool
    }

    /// A request that runs up to where it reads.
    fn reads(&mut self) -> TaskId {
        self.arrive(0);
        self.turn(0);
        let Action::Run(id, job) = self.next(0) else { panic!("it is not held") };
        let work = Job { microtask: Microtask { site: Site(1), declared: Some(LONG) }, ..job };
        self.step(0, Event::Blocked { ran: Duration::from_micros(60), until: None, work });
        id
    }

    /// What worker 0 does in a turn in which nothing happens.
    fn holds(&mut self) -> Action<Job> {
        self.turn(0);
        let action = self.next(0);
        assert!(self.workers[0].is_holding());
        action
    }

    fn quantum_from(&self, now: Instant) -> Action<Job> {
        let Some(alarm) = self.workers[0].alarm() else { panic!("it waits for no more than a quantum") };
        assert_eq!(alarm, now + QUANTUM);
        Action::Wait { alarm: Some(alarm) }
    }
}

#[test]
fn a_worker_waits_for_a_quantum_with_what_it_holds() {
    let mut pool = Pool::holding(2, 3);
    assert_eq!(pool.holds(), pool.quantum_from(pool.now));
    assert_eq!((pool.handed_off(0), pool.workers[0].waiting()), (0, 3), "the other worker has something to do");
}

#[test]
fn a_worker_that_holds_requests_does_not_wait_while_there_is_more_for_any_worker() {
    let mut pool = Pool::holding(2, 1);
    pool.turn(0);
    for _ in 0..4 {
        let injected = pool.job();
        pool.common.model.borrow_mut().inject(injected);
    }
    assert_eq!(pool.next(0), Action::Io);
    assert_eq!(
        (pool.workers[0].waiting(), pool.common.model.borrow().injector.len()),
        (3, 2),
        "it took its half, and leaves the other"
    );
    pool.common.model.borrow_mut().injector.clear();
    assert_eq!(pool.next(0), pool.quantum_from(pool.now));
}

#[test]
fn an_idle_worker_gets_some_of_what_is_held_once_a_quantum() {
    let mut pool = Pool::holding(2, 6);
    pool.rest(1);
    assert_eq!(pool.holds(), pool.quantum_from(pool.now));
    assert_eq!((pool.handed_off(0), pool.workers[0].waiting()), (3, 3), "it stays there while this one waits");
    let offered = pool.now;
    let taken = |pool: &mut Pool| {
        pool.common.model.borrow_mut().queues[0].clear();
        pool.common.model.borrow_mut().rest[1] = Rest::Idle;
    };
    taken(&mut pool);
    pool.now = offered + QUANTUM - Duration::from_nanos(1);
    assert!(matches!(pool.holds(), Action::Wait { .. }));
    assert_eq!((pool.handed_off(0), pool.workers[0].waiting()), (0, 3), "no quantum has gone by");
    pool.now = offered + QUANTUM;
    assert!(matches!(pool.holds(), Action::Wait { .. }));
    assert_eq!((pool.handed_off(0), pool.workers[0].waiting()), (2, 1));
}
