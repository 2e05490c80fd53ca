//! No wake-up is lost: neither of a worker that is about to wait, nor of a task that is blocked.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Instant;

use crossbeam_deque::Worker as Deque;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use crate::exchange::Exchange;
use crate::task::TaskId;
use crate::wakeups::{Noted, Wakeups};

/// A worker's waker that says whether it was used.
#[derive(Default)]
pub(crate) struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Woken>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Woken {
    pub(crate) fn is_woken(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// An exchange, the queue of each worker and its waker.
pub(crate) type Pool = (Arc<Exchange<usize>>, Vec<Deque<usize>>, Vec<Arc<Woken>>);

/// A pool of so many workers.
pub(crate) fn exchange(workers: usize) -> Pool {
    let (exchange, deques) = Exchange::new(workers);
    let woken: Vec<Arc<Woken>> = (0..workers).map(|_| Arc::default()).collect();
    for (index, woken) in woken.iter().enumerate() {
        exchange.register(index, &Waker::from(Arc::clone(woken)));
    }
    (Arc::new(exchange), deques, woken)
}

/// Fails without the fence in `try_idle`, and without the one in `wake_one`.
#[test]
fn a_worker_that_is_about_to_wait_sees_what_is_injected_or_is_woken() {
    loom::model(|| {
        let (exchange, _deques, woken) = exchange(1);
        let injecting = {
            let exchange = Arc::clone(&exchange);
            thread::spawn(move || exchange.inject(7))
        };
        let waits = exchange.try_idle(0);
        injecting.join().unwrap();
        assert!(!waits || woken[0].is_woken(), "it waits, and something was injected");
    });
}

/// Fails without the fence in `try_idle`, and if `set_backlog` does not wake.
#[test]
fn a_worker_that_is_about_to_wait_sees_anothers_backlog_or_is_woken() {
    loom::model(|| {
        let (exchange, mut deques, woken) = exchange(2);
        let (own, others) = (deques.remove(0), deques.remove(0));
        let handing_off = {
            let exchange = Arc::clone(&exchange);
            thread::spawn(move || {
                others.push(7);
                exchange.set_backlog(1, true);
                others
            })
        };
        let waits = exchange.try_idle(0);
        let _others = handing_off.join().unwrap();
        assert!(!waits || woken[0].is_woken(), "it waits, and another worker has a backlog");
        exchange.steal(0, &own);
        assert_eq!(own.pop(), Some(7));
    });
}

/// Fails if `wake_one` wakes without taking the mark (`load` in place of `swap`): then both wake the same worker.
#[test]
fn two_that_inject_wake_two_workers() {
    loom::model(|| {
        let (exchange, _deques, woken) = exchange(2);
        assert!(exchange.try_idle(0) && exchange.try_idle(1));
        let injecting = {
            let exchange = Arc::clone(&exchange);
            thread::spawn(move || exchange.inject(1))
        };
        exchange.inject(2);
        injecting.join().unwrap();
        assert!(woken.iter().all(|woken| woken.is_woken()));
    });
}

/// Fails if `steal` does not keep the one that it popped.
#[test]
fn what_is_handed_off_is_taken_once() {
    loom::model(|| {
        let (exchange, mut deques, _woken) = exchange(2);
        let (owner, thief) = (deques.remove(0), deques.remove(0));
        owner.push(1);
        owner.push(2);
        exchange.set_backlog(0, true);
        let stealing = {
            let exchange = Arc::clone(&exchange);
            thread::spawn(move || {
                exchange.steal(1, &thief);
                std::iter::from_fn(|| thief.pop()).collect::<Vec<_>>()
            })
        };
        let mut all: Vec<usize> = std::iter::from_fn(|| owner.pop()).collect();
        exchange.set_backlog(0, false);
        all.extend(stealing.join().unwrap());
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}

/// Fails with `Relaxed` for the swap in `note` or for the one in `take`: the poll that follows does not see what the first note's thread has done since.
#[test]
fn what_happens_to_a_blocked_task_is_seen_by_a_poll() {
    loom::model(|| {
        let shared = Arc::new((Wakeups::default(), Noted::default(), AtomicUsize::new(0), AtomicBool::new(false)));
        let id = TaskId(3);
        let waking = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (wakeups, noted, happened, wakes) = &*shared;
                for number in 1..=2 {
                    happened.store(number, Ordering::Relaxed);
                    if wakeups.note(id, noted) {
                        wakes.store(true, Ordering::SeqCst);
                    }
                }
            })
        };
        let (wakeups, noted, happened, wakes) = &*shared;
        let poll = || wakeups.take(|_| Some(noted)).contains(&id).then(|| happened.load(Ordering::Relaxed));
        let seen = poll();
        waking.join().unwrap();
        // The worker that was woken takes another turn.
        let seen = if wakes.load(Ordering::SeqCst) { poll().or(seen) } else { seen };
        assert_eq!(seen, Some(2), "it is polled after the last that has happened");
    });
}

/// Fails if `take` clears the mark that there are some after it has taken the list.
#[test]
fn of_two_tasks_that_are_woken_both_are_polled() {
    loom::model(|| {
        let shared = Arc::new((Wakeups::default(), [Noted::default(), Noted::default()]));
        let waking = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.0.note(TaskId(1), &shared.1[1]))
        };
        let (wakeups, noted) = &*shared;
        assert!(wakeups.note(TaskId(0), &noted[0]));
        assert!(wakeups.has_some());
        let take = || wakeups.take(|id| noted.get(id.0 as usize));
        let mut taken = take();
        assert!(waking.join().unwrap(), "its worker is woken");
        taken.extend(take());
        taken.sort_unstable();
        assert_eq!(taken, [TaskId(0), TaskId(1)]);
        assert!(!wakeups.has_some());
    });
}

/// Time plays no part in what is tried here.
pub(crate) fn no_time() -> Instant {
    Instant::now()
}
