//! New routes: the thread that publishes them waits for all that use the old ones.

use std::time::Duration;

use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::taken::Taken;

const LONG: Duration = Duration::from_secs(3_600);

/// One thread takes them, the other ends. Fails if `Taken::set` notifies no thread (the publisher waits for ever), and if `Taken::wait` is content with one of them.
#[test]
fn publishing_is_over_when_every_thread_has_taken_it_or_has_ended() {
    let mut model = Builder::new();
    // All orders of three threads take minutes; those with two switches at any place seconds.
    model.preemption_bound = Some(2);
    model.check(|| {
        let taken = Arc::new(Taken::new());
        let users: Vec<_> = [Some(1), None]
            .into_iter()
            .map(|number| {
                let (index, taken, uses_old) = (taken.join(0), Arc::clone(&taken), Arc::new(AtomicBool::new(true)));
                let still = Arc::clone(&uses_old);
                let thread = thread::spawn(move || {
                    // Relaxed: that the publisher sees it is for `Taken` to do.
                    still.store(false, Ordering::Relaxed);
                    taken.set(index, number);
                });
                (thread, uses_old)
            })
            .collect();
        let (threads, uses_old): (Vec<_>, Vec<_>) = users.into_iter().unzip();
        let publisher = thread::spawn(move || {
            assert!(taken.wait(1, LONG));
            let old = uses_old.iter().filter(|uses_old| uses_old.load(Ordering::Relaxed)).count();
            assert_eq!(old, 0, "threads still use the old routes");
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        publisher.join().unwrap();
    });
}

/// A thread that begins meanwhile has the new routes from its beginning, and is not waited for. Fails if `Taken::join` says that it has taken nothing.
#[test]
fn a_thread_that_begins_with_the_new_routes_is_not_waited_for() {
    loom::model(|| {
        let taken = Arc::new(Taken::new());
        let index = taken.join(0);
        let user = {
            let taken = Arc::clone(&taken);
            thread::spawn(move || {
                taken.join(1);
                taken.set(index, Some(1));
            })
        };
        let publisher = thread::spawn(move || assert!(taken.wait(1, LONG)));
        user.join().unwrap();
        publisher.join().unwrap();
    });
}
