//! An invocation on a thread that has nothing else to do: `sledge run`, initialisation.

use std::thread;
use std::time::Instant;

use super::driver::{Driver, Progress};
use super::program::Program;
use crate::host::{Pending, Waiter};
use crate::outcome::Failure;

/// Runs an invocation to its end, or to `deadline`. The thread must be a worker, whose timer runs if there is a deadline. There are no functions to be called.
/// Requests to other servers stream what they send only if `waiter` was started.
///
/// # Errors
/// How it failed.
pub fn run(driver: &mut Driver, program: &Program, deadline: Option<Instant>, mut waiter: Waiter) -> Result<(), Failure> {
    loop {
        let progress = waiter.within(|| driver.run(program));
        driver.refuse_calls();
        let is_in_time = match progress {
            Progress::Ended(result) => return result,
            // No other has the store.
            Progress::Stale => return Err(Failure::Conflict),
            Progress::Preempted | Progress::Yields => deadline.is_none_or(|deadline| Instant::now() < deadline),
            Progress::Waits { until } => pause(until, deadline),
            Progress::Pends(pending) => wait(driver, program, pending, &mut waiter, deadline),
        };
        if !is_in_time {
            return Err(Failure::Deadline);
        }
    }
}

/// Waits for a host call; false when the deadline came first.
fn wait(driver: &mut Driver, program: &Program, pending: Pending, waiter: &mut Waiter, deadline: Option<Instant>) -> bool {
    let mut next = Some(pending);
    while let Some(pending) = next {
        next = match waiter.wait(pending, deadline) {
            Ok(None) => return false,
            Ok(Some(completion)) => driver.complete(program, Ok(completion)),
            Err(panicked) => driver.complete(program, Err(panicked)),
        };
    }
    true
}

/// Waits until a time, or for ever; false when the deadline came first.
fn pause(until: Option<Instant>, deadline: Option<Instant>) -> bool {
    let Some(end) = until.into_iter().chain(deadline).min() else {
        loop {
            thread::park();
        }
    };
    thread::sleep(end.saturating_duration_since(Instant::now()));
    until == Some(end)
}
