//! How a worker whose guest runs without ticks learns that something has come.
//!
//! A guest that nothing else waits for runs on beyond its quantum (`worker/alone.rs`), and its worker does not look at its connections meanwhile. Two ways lead to it:
//!
//! * *From the network and from tokio's wakers.* All that wakes a task of the worker's runtime from outside makes the runtime's epoll readable. One thread, the
//!   *watcher*, has these in an epoll of its own, each for one event at a time (EPOLLONESHOT): the worker arms its own when a guest is about to run on. When it
//!   becomes readable, the watcher sends SIGALRM to the worker's thread, which preempts the guest as a tick does.
//! * *From [`Watcher::disturb`]*, for what wakes the worker's own task: that runs, so a wake-up is only noted in it, and nothing becomes readable.
//!
//! What the worker pays: one `epoll_ctl` when it arms, nothing while it is armed, and nothing at all while its guests end within a quantum. An epoll that another
//! one watches costs all its events and registrations a little more in the kernel. So it is added when it is first needed, and taken out again a second after it
//! was last.
//!
//! A worker is interrupted once in [`PAUSE`] at most. A signal that comes late finds another guest or none, which does no harm: the guest gets the rest
//! of its quantum, and elsewhere the signal is noted as a tick.

mod place;
mod runtime;
mod state;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use sledge_sandbox::Alarm;

use self::place::Place;
pub use self::runtime::epoll_of;
use self::state::{Armed, Fired};

/// Between two signals to one worker.
pub const PAUSE: Duration = Duration::from_micros(100);
/// For how long an epoll that was not armed again stays where it is watched.
const KEPT: Duration = Duration::from_secs(1);
/// Events that are taken at a time.
const EVENTS: usize = 64;
/// What stands for the bell among the workers' indices.
const BELL: u64 = u64::MAX;

/// Watches for all workers of a server.
#[derive(Debug)]
pub struct Watcher {
    epoll: OwnedFd,
    /// Tells the watcher's thread that a signal is due later.
    bell: OwnedFd,
    places: Box<[Place]>,
    epoch: Instant,
}

impl Watcher {
    /// Starts the thread, for so many workers.
    ///
    /// # Errors
    /// When the system refuses the thread or the descriptors.
    pub fn start(workers: usize) -> io::Result<Arc<Watcher>> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        let places = (0..workers).map(|_| Place::default()).collect();
        let watcher = Arc::new(Watcher { epoll, bell, places, epoch: Instant::now() });
        let own = Arc::clone(&watcher);
        thread::Builder::new().name("watcher".to_owned()).spawn(move || Watching::of(&own).go_on())?;
        Ok(watcher)
    }

    /// Takes in a worker: the epoll of its runtime, and how its thread is sent a signal.
    pub fn take_in(&self, index: usize, epoll: OwnedFd, alarm: Alarm) {
        self.places[index].take_in(epoll, alarm);
    }

    /// Has that worker watched from now on. What made its epoll readable before, and was not looked at yet, counts as new. False when it cannot be watched now.
    /// Called by the worker only, as are the next three.
    pub fn arm(&self, index: usize) -> bool {
        let place = &self.places[index];
        let Some(source) = place.epoll() else { return false };
        let data = EventData::new_u64(index as u64);
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        // First the state, then the system call: what fires meanwhile finds it armed.
        let done = match place.state.arm() {
            Armed::Already => return true,
            Armed::Not => return false,
            Armed::Again => epoll::modify(&self.epoll, source, data, flags),
            Armed::Anew => epoll::add(&self.epoll, source, data, flags),
        };
        if let Err(error) = done {
            tracing::debug!(worker = index, %error, "a worker cannot be watched: it goes on with ticks");
            place.state.give_up();
        }
        done.is_ok()
    }

    /// Whether nothing has come since the worker was armed.
    #[must_use]
    pub fn is_armed(&self, index: usize) -> bool {
        self.places[index].state.is_armed()
    }

    /// A guest is about to run without ticks. False when something has come since the worker was armed. After this the caller looks once more for what
    /// [`disturb`](Watcher::disturb) is called for: what it does not find then ends the run.
    pub fn enter(&self, index: usize) -> bool {
        self.places[index].state.enter()
    }

    /// The guest has stopped.
    pub fn leave(&self, index: usize) {
        self.places[index].state.leave();
    }

    /// Interrupts that worker if its guest runs without ticks. To be called by any thread, after it made known what the worker is to look at.
    pub fn disturb(&self, index: usize) {
        let place = &self.places[index];
        if place.state.disturb() {
            self.ring(place);
        }
    }

    /// The same of one such worker, if there is any.
    pub fn disturb_any(&self) {
        if let Some(place) = self.places.iter().find(|place| place.state.disturb()) {
            self.ring(place);
        }
    }

    /// The same of all of them.
    pub fn disturb_all(&self) {
        (0..self.places.len()).for_each(|index| self.disturb(index));
    }

    /// As if a guest ran without ticks on that worker, and nothing had come.
    #[cfg(test)]
    pub(crate) fn run_by_hand(&self, index: usize) {
        let state = &self.places[index].state;
        state.leave();
        state.arm();
        assert!(state.enter(), "nothing has come");
    }

    /// Whether something was made known since.
    #[cfg(test)]
    pub(crate) fn is_disturbed(&self, index: usize) -> bool {
        self.places[index].state.has_fired()
    }

    /// Sends the signal, now or as soon as the last one is long enough ago.
    fn ring(&self, place: &Place) {
        if !place.ring(self.now()) {
            // Not worth failing for: the floor's tick comes in any case.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    /// The time since it was made.
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

/// The watcher's thread.
struct Watching<'a> {
    watcher: &'a Watcher,
    /// When a worker that is not armed again by then is taken out, by index.
    taken_out: Vec<Option<Duration>>,
}

impl Watching<'_> {
    fn of(watcher: &Watcher) -> Watching<'_> {
        // The kernel may otherwise join its waits with others, for as long as two thirds of a pause.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
        Watching { watcher, taken_out: vec![None; watcher.places.len()] }
    }

    fn go_on(&mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            if let Err(error) = self.wait(&mut events) {
                // Cannot be, with valid descriptors. Workers have their floor's ticks.
                tracing::error!(%error, "workers are not watched any more");
                return;
            }
            for event in events.drain(..) {
                let event: epoll::Event = event;
                match event.data.u64() {
                    BELL => drop(rustix::io::read(&self.watcher.bell, &mut [0; 8])),
                    index => self.fired(index as usize),
                }
            }
            self.keep_time();
        }
    }

    /// Waits for events, or until something is due.
    fn wait(&self, events: &mut Vec<epoll::Event>) -> rustix::io::Result<()> {
        let Watcher { epoll, places, .. } = self.watcher;
        let due = places.iter().filter_map(Place::due).chain(self.taken_out.iter().flatten().copied()).min();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // An epoll's own time is in milliseconds.
        if let Some(due) = due {
            let left = due.saturating_sub(self.watcher.now());
            let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
            match poll(&mut [PollFd::new(epoll, PollFlags::IN)], Some(&left)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        match epoll::wait(epoll, rustix::buffer::spare_capacity(events), due.map(|_| &at_once)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A worker's epoll has become readable.
    fn fired(&mut self, index: usize) {
        let Some(place) = self.watcher.places.get(index) else { return };
        if place.state.fired() == Fired::Runs {
            // What is due later is looked for after this.
            place.ring(self.watcher.now());
        }
        self.taken_out[index] = Some(self.watcher.now() + KEPT);
    }

    /// Does what is due.
    fn keep_time(&mut self) {
        let now = self.watcher.now();
        for (place, taken_out) in self.watcher.places.iter().zip(&mut self.taken_out) {
            place.ring_late(now);
            if taken_out.is_some_and(|at| at <= now) {
                *taken_out = None;
                place.state.take_out(|| {
                    let _ = place.epoll().map(|source| epoll::delete(&self.watcher.epoll, source));
                });
            }
        }
    }
}

/// Those of `state`, which stands without tests: loom's tests compile that file, too (`tests/interleavings`).
#[cfg(test)]
mod tests {
    use super::state::{Armed, Fired, State};

    #[test]
    fn what_comes_between_arming_and_running_keeps_the_guest_from_running_without_ticks() {
        let state = State::default();
        assert!(!state.enter(), "it is not armed");
        assert_eq!(state.arm(), Armed::Anew);
        assert_eq!(state.arm(), Armed::Already);
        assert_eq!(state.fired(), Fired::Noted);
        assert!(!state.is_armed() && !state.enter(), "something has come");
        assert_eq!(state.arm(), Armed::Again);
        assert!(state.enter());
        assert_eq!(state.fired(), Fired::Runs);
        state.leave();
        assert!(!state.is_armed(), "what came is not forgotten");
    }

    #[test]
    fn one_that_stays_armed_needs_no_arming_and_only_a_running_guest_is_disturbed() {
        let state = State::default();
        assert_eq!(state.arm(), Armed::Anew);
        assert!(!state.disturb(), "no guest runs");
        for _ in 0..3 {
            assert!(state.enter());
            state.leave();
            assert_eq!(state.arm(), Armed::Already);
        }
        assert!(state.enter());
        assert!(state.disturb() && !state.disturb(), "once");
    }

    #[test]
    fn only_what_was_not_armed_again_is_taken_out() {
        let state = State::default();
        let deleted = |state: &State| {
            let mut is_deleted = false;
            state.take_out(|| is_deleted = true);
            is_deleted
        };
        state.arm();
        assert!(!deleted(&state));
        state.fired();
        assert_eq!(state.arm(), Armed::Again);
        assert!(!deleted(&state));
        state.fired();
        assert!(deleted(&state));
        assert_eq!(state.arm(), Armed::Anew);
        state.give_up();
        assert_eq!((state.arm(), state.enter()), (Armed::Not, false));
    }
}
