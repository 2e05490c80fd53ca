//! A gate keeps its limits, and loses no request that waits.

use std::sync::Arc;
use std::time::Duration;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::gate::{Entrant, Gate};
use crate::in_flight::{InFlight, Used};
use crate::waking::no_time;

struct Request(bool);

impl Entrant for Request {
    fn let_in(&mut self) {
        self.0 = true;
    }

    fn is_gone(&self) -> bool {
        false
    }
}

/// Fails if `enter` compares with `>` in place of `>=`, and if `leave` lets none of those in that wait.
#[test]
fn one_at_a_time_and_each_of_them() {
    loom::model(|| {
        let shared = Arc::new((Gate::new(Some(1), None), AtomicUsize::new(0), Mutex::new(0)));
        let run = |shared: &(Gate<Request>, AtomicUsize, Mutex<usize>)| {
            let (gate, running, ran) = shared;
            let mut next = gate.enter(Request(false));
            while let Some(request) = next {
                assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0, "another runs");
                *ran.lock().unwrap() += 1;
                running.fetch_sub(1, Ordering::Relaxed);
                next = gate.leave(request.0);
            }
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || run(&shared))
        };
        run(&shared);
        other.join().unwrap();
        assert_eq!(*shared.2.lock().unwrap(), 2, "both have run");
    });
}

/// Fails if `take` compares with `<=`, and if a request that is refused keeps its place.
#[test]
fn no_more_are_taken_than_there_is_room_for() {
    loom::model(|| {
        let gate = Arc::new(Gate::<Request>::new(Some(1), Some(0)));
        let other = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || usize::from(gate.take(no_time)))
        };
        let taken = usize::from(gate.take(no_time)) + other.join().unwrap();
        assert!(taken <= 1, "{taken} are taken");
        if taken == 1 {
            assert!(gate.leave(false).is_none());
        }
        assert!(gate.take(no_time), "there is room again");
    });
}

/// The first that is over says how many may run: from one at a time to fourteen. Fails if `next` lets none in, and if `enter` lets one in before those that wait, where no other
/// would be over to let these in.
#[test]
fn a_limit_that_rises_lets_in_what_waits() {
    loom::model(|| {
        let shared = Arc::new((Gate::following(InFlight::new(1), None), Mutex::new(0)));
        let run = |shared: &(Gate<Request>, Mutex<usize>), requests: usize| {
            let (gate, ran) = shared;
            let mut let_in: Vec<Request> = (0..requests).filter_map(|_| gate.enter(Request(false))).collect();
            while let Some(request) = let_in.pop() {
                assert!(request.0, "it was not let in");
                *ran.lock().unwrap() += 1;
                gate.learn(Used { busy: Duration::from_micros(100), idle: Duration::from_micros(900) }, no_time());
                let mut next = gate.leave(true);
                while let Some(request) = next {
                    let_in.push(request);
                    next = gate.next();
                }
            }
        };
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || run(&shared, 1))
        };
        run(&shared, 3);
        other.join().unwrap();
        assert_eq!(*shared.1.lock().unwrap(), 4, "all have run");
    });
}
