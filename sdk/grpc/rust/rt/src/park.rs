//! Where a function waits: one `poll_oneoff` over a clock, the request's body and the calls under way.
//!
//! tokio's scheduler calls [`park`] when no task can go on. A task that needs a file descriptor has left a waker here ([`until_readable`],
//! [`until_writable`]), which is woken once.

use std::task::Waker;
use std::time::Duration;

use crate::entry;
use crate::once::Single;
use crate::sys::{self, Event, Subscription};

struct Waiting {
    fd: u32,
    write: bool,
    waker: Waker,
}

struct Reactor {
    waiting: Vec<Waiting>,
    /// Kept for their memory.
    wanted: Vec<Subscription>,
    events: Vec<Event>,
}

static REACTOR: Single<Reactor> = Single::new(Reactor { waiting: Vec::new(), wanted: Vec::new(), events: Vec::new() });

/// The number of the clock's event.
const CLOCK: u64 = u64::MAX;

fn until(fd: u32, write: bool, waker: &Waker) {
    REACTOR.with(|reactor| match reactor.waiting.iter_mut().find(|one| one.fd == fd && one.write == write) {
        Some(one) => one.waker.clone_from(waker),
        None => reactor.waiting.push(Waiting { fd, write, waker: waker.clone() }),
    });
}

/// Wakes it when there is something to read, or nothing more will come.
pub fn until_readable(fd: u32, waker: &Waker) {
    until(fd, false, waker);
}

/// Whether there is something to read now, or nothing more will come.
pub fn is_readable(fd: u32) -> bool {
    let (mut events, nothing) = ([Event::default(); 2], Subscription::clock(CLOCK, Duration::ZERO));
    let found = sys::poll(&[Subscription::fd(0, fd, false), nothing], &mut events);
    // What cannot be waited for says why when it is read.
    found.map_or(true, |found| found.iter().any(|event| event.userdata != CLOCK))
}

/// Wakes it when something can be written.
pub fn until_writable(fd: u32, waker: &Waker) {
    until(fd, true, waker);
}

/// Wakes the tasks that wait for a file descriptor which is closed.
pub fn forget(fd: u32) {
    let gone: Vec<Waiting> = REACTOR.with(|reactor| {
        let (gone, stay) = std::mem::take(&mut reactor.waiting).into_iter().partition(|one| one.fd == fd);
        reactor.waiting = stay;
        gone
    });
    for waiting in gone {
        waiting.waker.wake();
    }
}

/// Waits for the first event that a task waits for, at most for that long, and wakes that task. It may return earlier.
pub fn park(timeout: Option<Duration>) {
    // Zero: it only looks, since some task can go on.
    if timeout != Some(Duration::ZERO) && entry::idle() {
        return;
    }
    let ready = REACTOR.with(|reactor| wait(reactor, timeout));
    for waiting in ready {
        waiting.waker.wake();
    }
}

fn wait(reactor: &mut Reactor, timeout: Option<Duration>) -> Vec<Waiting> {
    let Reactor { waiting, wanted, events } = reactor;
    if waiting.is_empty() && timeout == Some(Duration::ZERO) {
        return Vec::new();
    }
    wanted.clear();
    wanted.extend(waiting.iter().enumerate().map(|(index, one)| Subscription::fd(index as u64, one.fd, one.write)));
    wanted.extend(timeout.map(|timeout| Subscription::clock(CLOCK, timeout)));
    assert!(!wanted.is_empty(), "every task waits for something that never comes");
    events.resize(wanted.len(), Event::default());
    let found = match sys::poll(wanted, events) {
        Ok(found) => found,
        Err(error) => panic!("poll_oneoff: error {error}"),
    };
    let mut ready = Vec::new();
    // From the last, so that the others keep their places.
    found.sort_unstable_by_key(|event| std::cmp::Reverse(event.userdata));
    for event in found.iter().filter(|event| event.userdata != CLOCK) {
        ready.push(waiting.swap_remove(event.userdata as usize));
    }
    ready
}
