//! A worker whose guest is about to run without ticks, and a thread that has something for it, or an event of its epoll.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::state::{Armed, Fired, State};

/// Fails without the fence in `enter`, and without the one in `disturb`.
#[test]
fn a_guest_that_runs_without_ticks_is_interrupted_or_its_worker_has_seen_the_news() {
    loom::model(|| {
        let state = Arc::new(State::default());
        let news = Arc::new(AtomicBool::new(false));
        assert_eq!(state.arm(), Armed::Anew);
        let other = {
            let (state, news) = (Arc::clone(&state), Arc::clone(&news));
            thread::spawn(move || {
                news.store(true, Ordering::Relaxed);
                state.disturb()
            })
        };
        let runs = state.enter() && !news.load(Ordering::Relaxed);
        let interrupted = other.join().unwrap();
        assert!(!runs || interrupted, "it runs, and nothing tells its worker");
    });
}

/// Fails if `leave` stores `ARMED` whatever was there, or `fired` does not try again.
#[test]
fn an_event_interrupts_the_guest_or_keeps_the_next_one_from_running_without_ticks() {
    loom::model(|| {
        let state = Arc::new(State::default());
        state.arm();
        let watcher = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.fired())
        };
        let ran = state.enter();
        if ran {
            state.leave();
        }
        let fired = watcher.join().unwrap();
        assert!(!state.enter(), "an event was forgotten");
        assert!(ran || fired == Fired::Noted);
    });
}

/// Fails if `take_out` looks at the state and then stores the next one, or says that it is out before it has deleted it.
#[test]
fn a_worker_that_is_armed_is_registered() {
    loom::model(|| {
        let state = Arc::new(State::default());
        let registered = Arc::new(AtomicBool::new(true));
        state.arm();
        state.fired();
        let watcher = {
            let (state, registered) = (Arc::clone(&state), Arc::clone(&registered));
            thread::spawn(move || state.take_out(|| registered.store(false, Ordering::Relaxed)))
        };
        match state.arm() {
            Armed::Anew => registered.store(true, Ordering::Relaxed),
            Armed::Again | Armed::Not => {}
            Armed::Already => panic!("it had fired"),
        }
        watcher.join().unwrap();
        assert_eq!(state.is_armed(), registered.load(Ordering::Relaxed), "armed without being watched, or the other way round");
    });
}
