//! What an invocation was told by the clock and as random numbers, so that another one can be told the same: an initialisation that is repeated with other code of the same function.
//!
//! Without a clock or a source of random numbers of its own: what is drawn anew is asked for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, Timespec};

/// Random bytes and times that are kept of one initialisation. One that draws more cannot be repeated.
const BYTES_MAX: usize = 1 << 20;
/// What a time counts for.
const TIME_BYTES: usize = 32;

/// One thing that was drawn.
#[derive(Clone, Debug, PartialEq)]
enum Draw {
    Time(ClockId, Timespec),
    Bytes(Box<[u8]>),
}

/// All that was drawn, in order.
#[derive(Clone, Debug, Default)]
pub struct Drawn(Arc<Mutex<State>>);

#[derive(Clone, Debug, Default)]
struct State {
    draws: VecDeque<Draw>,
    bytes: usize,
    /// Whether it is drawn again, from the front.
    again: bool,
    /// Whether something was drawn that was not drawn before, or more than is kept.
    differs: bool,
}

impl Drawn {
    /// The same once more, to be drawn again from its beginning.
    #[must_use]
    pub fn again(&self) -> Drawn {
        let state = self.state().clone();
        Drawn(Arc::new(Mutex::new(State { again: true, ..state })))
    }

    /// Whether something else was drawn than before, or not all of it, where it is drawn again; or more than is kept of what was drawn before.
    #[must_use]
    pub fn differs(&self) -> bool {
        let state = self.state();
        state.again && (state.differs || !state.draws.is_empty())
    }

    /// The time of a clock.
    pub(super) fn time(&self, clock: ClockId, now: impl FnOnce() -> Timespec) -> Timespec {
        let mut state = self.state();
        if !state.again {
            let time = now();
            state.keep(TIME_BYTES, || Draw::Time(clock, time));
            return time;
        }
        match state.draws.pop_front() {
            Some(Draw::Time(of, time)) if of == clock => time,
            _ => {
                state.differs = true;
                now()
            }
        }
    }

    /// Random bytes, which `fill` makes.
    pub(super) fn bytes<E>(&self, into: &mut [u8], fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<(), E> {
        let mut state = self.state();
        if !state.again {
            fill(into)?;
            state.keep(into.len(), || Draw::Bytes((&*into).into()));
            return Ok(());
        }
        match state.draws.pop_front() {
            Some(Draw::Bytes(bytes)) if bytes.len() == into.len() => {
                into.copy_from_slice(&bytes);
                Ok(())
            }
            _ => {
                state.differs = true;
                fill(into)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What can panic under this lock allocates; the draws are whole before and after.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, bytes: usize, draw: impl FnOnce() -> Draw) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > BYTES_MAX {
            self.differs = true;
            self.draws = VecDeque::new();
        } else {
            self.draws.push_back(draw());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64) -> Timespec {
        Timespec { tv_sec: seconds, tv_nsec: 0 }
    }

    fn bytes(drawn: &Drawn, length: usize, fresh: u8) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let fill = |into: &mut [u8]| {
            into.fill(fresh);
            Ok::<_, ()>(())
        };
        drawn.bytes(&mut bytes, fill).unwrap();
        bytes
    }

    fn drawn() -> Drawn {
        let drawn = Drawn::default();
        assert_eq!(drawn.time(ClockId::Realtime, || time(1)), time(1));
        assert_eq!(bytes(&drawn, 3, 7), [7; 3]);
        assert_eq!(drawn.time(ClockId::Monotonic, || time(2)), time(2));
        assert!(!drawn.differs());
        drawn
    }

    #[test]
    fn what_was_drawn_is_drawn_again_in_its_order() {
        let first = drawn();
        // As often as is wanted.
        for _ in 0..2 {
            let again = first.again();
            assert_eq!(again.time(ClockId::Realtime, || time(8)), time(1));
            assert!(again.differs(), "there is more");
            assert_eq!(bytes(&again, 3, 9), [7; 3]);
            assert_eq!(again.time(ClockId::Monotonic, || time(9)), time(2));
            assert!(!again.differs());
        }
        assert!(!Drawn::default().again().differs(), "there was nothing");
    }

    #[test]
    fn what_is_drawn_otherwise_is_noticed() {
        type Other = fn(&Drawn);
        let others: [Other; 4] = [
            |again| _ = again.time(ClockId::Monotonic, || time(8)),
            |again| _ = bytes(again, 3, 9),
            |again| {
                again.time(ClockId::Realtime, || time(8));
                bytes(again, 4, 9);
                again.time(ClockId::Monotonic, || time(8));
            },
            |again| {
                again.time(ClockId::Realtime, || time(8));
                bytes(again, 3, 9);
                again.time(ClockId::Monotonic, || time(8));
                again.time(ClockId::Monotonic, || time(8));
            },
        ];
        let first = drawn();
        for other in others {
            let again = first.again();
            other(&again);
            assert!(again.differs(), "{again:?}");
        }
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let first = drawn();
        bytes(&first, BYTES_MAX, 1);
        assert!(first.again().differs() && first.state().draws.is_empty());
    }
}
