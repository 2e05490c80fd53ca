//! Equal requests at the same time: one runs and *leads*, the others *follow*. They wait for what becomes of its run, and get the same answer where that may be given again.
//!
//! ```text
//!   arrive ---> leads ----> runs ----> close -----> check of what it read -----> land (an outcome)
//!        \                               |                                        |
//!         '--> follows --------- no more follow ------------------------------ followers go on: with the answer, or they run themselves
//! ```
//!
//! [`Flights`] is pure: it has no clock, no lock and no threads. [`handles`] is what a leader and a follower hold; what they do is done under the lock of the table. [`trust`] says for which
//! functions requests wait at all.
//!
//! Invariants:
//! * A flight is closed before it is looked whether what its run has read is still so. So each follower had arrived by then, and the answer is what a run at that moment would have been.
//! * Each follower goes on: when its flight lands, or when its leader is dropped, which lands it without an answer; at half of its time at the latest ([`patience`]).
//! * A request waits once, and what is called by another function never does. So no two wait for each other: what a run waits for does not wait for a flight.

pub mod handles;
#[cfg(test)]
mod tests;
pub mod trust;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use super::key::Key;

/// Requests that wait for one run, at most; more run themselves.
const FOLLOWERS_MAX: usize = 1_024;
/// Runs of a table that are waited for, at most; requests that equal others wait for none of them.
const FLIGHTS_MAX: usize = 1_024;

/// A run that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlightId(u64);

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What a request does that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It runs, and those that equal it wait for that.
    Leads(FlightId),
    /// It waits for a run.
    Follows(Ticket),
    /// It runs by itself.
    Runs,
}

/// The flights of a table. `W` wakes a follower, `E` answers it.
#[derive(Debug)]
pub struct Flights<W, E> {
    /// Those that may be followed.
    open: HashMap<Key, FlightId>,
    flights: BTreeMap<FlightId, Flight>,
    followers: HashMap<Ticket, Follower<W, E>>,
    /// Numbers that were given.
    last: u64,
}

#[derive(Debug)]
struct Flight {
    key: Key,
    followers: BTreeSet<Ticket>,
}

#[derive(Debug)]
enum Follower<W, E> {
    /// It waits for that flight.
    Waits(FlightId, Option<W>),
    /// The flight has landed: with an answer, or without.
    Landed(Option<E>),
}

/// How long a request waits that may take until `deadline`: as much time is left to run itself.
#[must_use]
pub fn patience(now: Instant, deadline: Instant) -> Instant {
    now + deadline.saturating_duration_since(now) / 2
}

impl<W, E> Default for Flights<W, E> {
    fn default() -> Flights<W, E> {
        Flights { open: HashMap::new(), flights: BTreeMap::new(), followers: HashMap::new(), last: 0 }
    }
}

impl<W, E: Clone> Flights<W, E> {
    /// A request has arrived. `may_follow`: whether it may wait.
    pub fn arrive(&mut self, key: Key, may_follow: bool) -> Arrival {
        if let Some(id) = self.open.get(&key).copied() {
            let room = self.flights.get_mut(&id).filter(|flight| may_follow && flight.followers.len() < FOLLOWERS_MAX);
            let Some(flight) = room else { return Arrival::Runs };
            self.last += 1;
            let ticket = Ticket(self.last);
            flight.followers.insert(ticket);
            self.followers.insert(ticket, Follower::Waits(id, None));
            return Arrival::Follows(ticket);
        }
        if self.flights.len() >= FLIGHTS_MAX {
            return Arrival::Runs;
        }
        self.last += 1;
        let id = FlightId(self.last);
        self.open.insert(key, id);
        self.flights.insert(id, Flight { key, followers: BTreeSet::new() });
        Arrival::Leads(id)
    }

    /// No more follow: the run is over. Whether any do; else the flight is over.
    pub fn close(&mut self, id: FlightId) -> bool {
        let Some(flight) = self.flights.get(&id) else { return false };
        // The next run of an equal request may be followed already.
        if self.open.get(&flight.key) == Some(&id) {
            self.open.remove(&flight.key);
        }
        let is_followed = !flight.followers.is_empty();
        if !is_followed {
            self.flights.remove(&id);
        }
        is_followed
    }

    /// A flight is over: its followers get that answer, or run. What wakes them.
    #[must_use]
    pub fn land(&mut self, id: FlightId, answer: Option<&E>) -> Vec<W> {
        self.close(id);
        let Some(flight) = self.flights.remove(&id) else { return Vec::new() };
        let mut wakers = Vec::new();
        for ticket in flight.followers {
            if let Some(Follower::Waits(_, waker)) = self.followers.insert(ticket, Follower::Landed(answer.cloned())) {
                wakers.extend(waker);
            }
        }
        wakers
    }

    /// Whether a follower waits no longer. Else `waker` wakes it when its flight lands, and no other that was given before.
    pub fn has_landed(&mut self, ticket: Ticket, waker: impl FnOnce() -> W) -> bool {
        match self.followers.get_mut(&ticket) {
            Some(Follower::Waits(_, waits)) => {
                *waits = Some(waker());
                false
            }
            Some(Follower::Landed(_)) | None => true,
        }
    }

    /// A follower waits no longer, whatever comes. What answers it, if its flight has landed with that.
    pub fn leave(&mut self, ticket: Ticket) -> Option<E> {
        match self.followers.remove(&ticket)? {
            Follower::Landed(answer) => answer,
            Follower::Waits(id, _) => {
                if let Some(flight) = self.flights.get_mut(&id) {
                    flight.followers.remove(&ticket);
                }
                None
            }
        }
    }

    /// Whether nothing is under way.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.flights.is_empty() && self.followers.is_empty()
    }
}
