//! What a run that is ahead would have seen outside, as lines in the log: it waits until the run is committed, and is never seen if it is not.

use std::fmt;
use std::mem;
use std::sync::Mutex;

use super::lock;

/// What is done when the run is committed.
type Effect = Box<dyn FnOnce() + Send>;

/// What is held of one run.
#[derive(Default)]
pub struct Held(Mutex<State>);

enum State {
    Waits(Vec<Effect>),
    /// It is committed: nothing is held any more.
    Released,
}

impl Default for State {
    fn default() -> State {
        State::Waits(Vec::new())
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl Held {
    /// Does that when the run is committed, or now if it is.
    pub fn put(&self, effect: Effect) {
        if let State::Waits(effects) = &mut *lock(&self.0) {
            return effects.push(effect);
        }
        effect();
    }

    /// The run is committed: what was held is done, in order.
    pub fn release(&self) {
        if let State::Waits(effects) = mem::replace(&mut *lock(&self.0), State::Released) {
            effects.into_iter().for_each(|effect| effect());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_is_held_is_done_at_the_commit_and_what_comes_later_at_once() {
        let (held, done) = (Held::default(), Arc::new(AtomicUsize::new(0)));
        let then = |number: usize| -> Effect {
            let done = Arc::clone(&done);
            Box::new(move || done.store(10 * done.load(Ordering::Relaxed) + number, Ordering::Relaxed))
        };
        (1..=2).for_each(|number| held.put(then(number)));
        assert_eq!(done.load(Ordering::Relaxed), 0);
        held.release();
        held.put(then(3));
        held.release();
        assert_eq!(done.load(Ordering::Relaxed), 123);
        let dropped = Held::default();
        dropped.put(then(4));
        drop(dropped);
        assert_eq!(done.load(Ordering::Relaxed), 123);
    }
}
