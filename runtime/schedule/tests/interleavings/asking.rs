//! What was begun ahead and is asked for is found, wherever it stands.

use std::sync::Arc;

use loom::thread;

use crate::demand::{Changes, Claim, Demand};

/// Fails if `settle` counts before it changes, with `Relaxed` for the count or for its load in `count`, and if the worker looks at the tasks before it looks at the count.
#[test]
fn a_worker_that_sees_no_change_of_the_count_has_seen_what_is_asked_for() {
    loom::model(|| {
        let shared = Arc::new((Claim::default(), Changes::default()));
        let asking = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.0.ask(&shared.1))
        };
        let (claim, changes) = &*shared;
        let look = || (changes.count(), claim.demand());
        let (counted, seen) = look();
        let (counted_again, seen_again) = look();
        assert!(counted == 0 || seen == Demand::Asked, "the change was counted, and is not seen");
        assert!(counted_again == counted || seen_again == Demand::Asked);
        asking.join().unwrap();
        assert_eq!(look(), (1, Demand::Asked), "a worker that has seen no count looks once more");
    });
}

/// Fails if `settle` stores in place of exchanging.
#[test]
fn a_run_is_asked_for_or_given_up_and_not_both() {
    loom::model(|| {
        let shared = Arc::new((Claim::default(), Changes::default()));
        let giving_up = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.0.give_up(&shared.1))
        };
        let (claim, changes) = &*shared;
        claim.ask(changes);
        let seen = claim.demand();
        giving_up.join().unwrap();
        assert_ne!(seen, Demand::Speculative);
        assert_eq!((claim.demand(), changes.count()), (seen, 1));
    });
}
