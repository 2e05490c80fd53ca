//! The queues between workers, one operation after the other. What happens at once is in `interleavings`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use sledge_schedule::{Exchange, Rest, Woken as Whom};

/// How often a worker was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Woken>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Says how often each worker was woken since it was last asked.
fn register(exchange: &Exchange<u32>) -> impl Fn() -> Vec<usize> {
    let woken: Vec<Arc<Woken>> = (0..exchange.workers()).map(|_| Arc::default()).collect();
    woken.iter().enumerate().for_each(|(index, woken)| exchange.register(index, &Waker::from(Arc::clone(woken))));
    move || woken.iter().map(|woken| woken.0.swap(0, Ordering::Relaxed)).collect()
}

#[test]
fn a_worker_takes_its_share_of_what_was_injected_and_leaves_the_others_theirs() {
    let (exchange, _deques) = Exchange::<u32>::new(4);
    assert!(exchange.take_injected(|_| true).is_empty());
    (0..10).for_each(|work| assert_eq!(exchange.inject(work), Whom::None, "no worker waits"));
    assert_eq!(exchange.take_injected(|_| true), [0, 1, 2], "a quarter of ten, rounded up");
    assert_eq!(exchange.take_injected(|_| true), [3, 4], "a quarter of seven");
    assert_eq!(exchange.take_injected(|_| true), [5, 6]);
    assert_eq!(
        (exchange.take_injected(|_| true), exchange.take_injected(|_| true), exchange.take_injected(|_| true)),
        (vec![7], vec![8], vec![9])
    );
    assert!(!exchange.has_injected());
}

#[test]
fn a_worker_does_not_wait_while_another_has_a_backlog() {
    let (exchange, _deques) = Exchange::<u32>::new(2);
    assert!(exchange.try_idle(0));
    exchange.busy(0);
    exchange.set_backlog(1, true);
    assert!(!exchange.try_idle(0));
    assert!(exchange.try_idle(1), "its own backlog is no reason");
}

#[test]
fn what_is_new_wakes_one_worker_that_is_idle() {
    let (exchange, _deques) = Exchange::<u32>::new(3);
    assert_eq!(exchange.workers(), 3);
    let woken = register(&exchange);
    exchange.inject(1);
    assert_eq!(woken(), [0, 0, 0], "none is idle");
    assert!(exchange.has_injected());
    assert_eq!(exchange.take_injected(|_| true), [1]);
    assert!(exchange.try_idle(1) && exchange.try_idle(2));
    assert_eq!((exchange.others(0), exchange.others(1)), (Rest::Idle, Rest::Idle));
    exchange.inject(2);
    assert_eq!(woken(), [0, 1, 0]);
    assert_eq!((exchange.is_idle(1), exchange.is_idle(2), exchange.others(2)), (false, true, Rest::Busy));
    exchange.set_backlog(0, true);
    assert_eq!(woken(), [0, 0, 1]);
    assert!(!exchange.is_idle(2) && exchange.others(0) == Rest::Busy);
    exchange.wake(0);
    assert_eq!(woken(), [1, 0, 0], "whatever it does");
    exchange.wake_all();
    assert_eq!(woken(), [1, 1, 1]);
}

#[test]
fn a_worker_that_runs_what_is_speculative_is_woken_where_none_is_idle() {
    let (exchange, _deques) = Exchange::<u32>::new(3);
    let woken = register(&exchange);
    assert!(exchange.try_slack(0) && exchange.try_idle(2));
    assert_eq!((exchange.others(1), exchange.others(2), exchange.is_idle(0)), (Rest::Idle, Rest::Slack, false));
    assert_eq!((exchange.inject(1), woken()), (Whom::Idle, vec![0, 0, 1]));
    assert_eq!((exchange.inject(2), woken()), (Whom::Slack(0), vec![1, 0, 0]));
    assert_eq!((exchange.inject(3), woken(), exchange.others(1)), (Whom::None, vec![0; 3], Rest::Busy));
    assert!(!exchange.try_slack(0), "there is something to be taken");
    exchange.take_injected(|_| false);
    assert!(exchange.try_slack(0));
    assert_eq!((exchange.set_backlog(1, true), woken()), (Whom::Slack(0), vec![1, 0, 0]));
    assert!(!exchange.try_slack(0) && exchange.try_slack(1), "it is another's backlog");
}

#[test]
fn what_does_not_count_is_taken_with_what_stands_behind_it() {
    let (exchange, _deques) = Exchange::<u32>::new(2);
    [1, 3, 2, 5, 7, 4, 9].into_iter().for_each(|work| assert_eq!(exchange.inject(work), Whom::None));
    let even = |work: &u32| work.is_multiple_of(2);
    assert_eq!(exchange.take_injected(even), [1, 3, 2, 5, 7, 4, 9], "its share is four, and there are two");
    [2, 1, 4, 3, 6, 8].into_iter().for_each(|work| assert_eq!(exchange.inject(work), Whom::None));
    assert_eq!(exchange.take_injected(even), [2, 1, 4, 3, 6], "its share is three");
    assert_eq!(exchange.take_injected(even), [8]);
}

#[test]
fn a_worker_without_a_backlog_and_one_without_others_wake_nobody() {
    for workers in [1, 2] {
        let (exchange, _deques) = Exchange::<u32>::new(workers);
        let woken = register(&exchange);
        assert!((0..workers).all(|worker| exchange.try_idle(worker)));
        exchange.set_backlog(0, workers == 1);
        assert_eq!(woken(), vec![0; workers]);
        assert!((0..workers).all(|worker| exchange.is_idle(worker)));
        exchange.busy(0);
        assert!(!exchange.is_idle(0));
    }
}

#[test]
fn a_worker_steals_from_the_next_one_that_has_something() {
    let (exchange, deques) = Exchange::<u32>::new(4);
    for other in [0, 1, 3] {
        deques[other].push(other as u32);
        exchange.set_backlog(other, true);
    }
    let steal = || {
        exchange.steal(2, &deques[2]);
        deques[2].pop()
    };
    assert_eq!([steal(), steal(), steal(), steal()], [Some(3), Some(0), Some(1), None]);
    assert!(exchange.try_idle(2), "none says that it has more");
}
