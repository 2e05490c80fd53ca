//! No worker leaves while there is, or may come, a request.

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use crate::requests::Requests;
use crate::shared::Phase;

/// Fails if `close_source` is `Relaxed`, and if `is_over` reads the count first.
#[test]
fn a_worker_that_leaves_has_seen_every_request() {
    loom::model(|| {
        let shared = Arc::new((Requests::new(2, usize::MAX), AtomicUsize::new(0)));
        let source = |shared: &Arc<(Requests, AtomicUsize)>| {
            let shared = Arc::clone(shared);
            thread::spawn(move || {
                let (requests, admitted) = &*shared;
                assert!(requests.enter());
                admitted.fetch_add(1, Ordering::Relaxed);
                let _ = requests.close_source();
            })
        };
        let sources = [source(&shared), source(&shared)];
        let (requests, _) = &*shared;
        assert!(!requests.is_over(), "it leaves, and there are requests that are not over");
        sources.into_iter().for_each(|source| source.join().unwrap());
        assert!(!requests.is_over());
        let _ = (requests.leave(), requests.leave());
        assert!(requests.is_over());
    });
}

/// Fails if `leave` is `Relaxed`: the worker does not see what was done for the last request.
#[test]
fn a_worker_that_leaves_sees_what_was_done_for_the_last_request() {
    loom::model(|| {
        let shared = Arc::new((Requests::new(0, usize::MAX), AtomicUsize::new(0)));
        assert!(shared.0.enter());
        let ending = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.1.store(1, Ordering::Relaxed);
                let _ = shared.0.leave();
            })
        };
        if shared.0.is_over() {
            assert_eq!(shared.1.load(Ordering::Relaxed), 1);
        }
        ending.join().unwrap();
    });
}

#[test]
fn stopping_goes_forward_only() {
    loom::model(|| {
        let requests = Requests::new(1, 1);
        assert_eq!(requests.phase(), Phase::Serving);
        requests.advance(Phase::Draining);
        assert_eq!(requests.phase(), Phase::Draining);
        requests.advance(Phase::Killing);
        requests.advance(Phase::Draining);
        assert_eq!(requests.phase(), Phase::Killing);
        assert!(requests.enter());
        assert!(!requests.enter(), "one is the most");
        assert_eq!(requests.count(), 2, "both have to leave");
        assert!(!requests.leave() && requests.leave(), "workers wait for the last one");
    });
}

#[test]
fn the_last_source_and_while_the_server_stops_the_last_request_wake_the_workers() {
    loom::model(|| {
        let requests = Requests::new(2, 1);
        let leaves = || requests.enter() && requests.leave();
        assert!(!leaves(), "more may come");
        assert_eq!([requests.close_source(), requests.close_source()], [false, true]);
        requests.advance(Phase::Draining);
        assert!(leaves());
    });
}
