//! When requests come, and for which function.

use super::model::{Arrivals, Load, Nanoseconds, Stream, exponential};
use crate::random::Random;

/// How far apart clients of a closed loop begin, at most.
const STAGGER: Nanoseconds = 1_000_000;

/// The requests of a load. A *source* is a stream, or a client of a closed loop.
pub(super) struct Requests<'a> {
    load: &'a Load,
    /// How many more there are.
    left: usize,
}

impl<'a> Requests<'a> {
    pub(super) fn new(load: &'a Load, count: usize) -> Requests<'a> {
        Requests { load, left: count }
    }

    /// How many sources there are.
    pub(super) fn sources(&self) -> usize {
        match self.load {
            Load::Open(streams) => streams.len(),
            Load::Closed { clients, .. } => *clients,
        }
    }

    /// When the first one of a source is due.
    pub(super) fn first(&self, source: usize, random: &mut Random) -> Nanoseconds {
        match self.load {
            // Streams begin at any place between two of their requests.
            Load::Open(streams) => (random.unit() * gap(&streams[source], random) as f64) as Nanoseconds,
            Load::Closed { .. } => random.below(STAGGER),
        }
    }

    /// What a source sends now: for which function, and how many.
    pub(super) fn next(&mut self, source: usize, random: &mut Random) -> (usize, usize) {
        let (function, count) = match self.load {
            Load::Open(streams) => {
                let Stream { function, arrivals, .. } = streams[source];
                (function, if let Arrivals::Bursts(count) = arrivals { count as usize } else { 1 })
            }
            Load::Closed { functions, .. } => (picked(functions, random), 1),
        };
        let count = count.min(self.left);
        self.left -= count;
        (function, count)
    }

    /// The worker whose connection a source's request comes through: each client has one connection, and a stream has many or one.
    pub(super) fn worker(&self, source: usize, workers: usize, random: &mut Random) -> usize {
        match self.load {
            Load::Open(streams) => streams[source].worker.unwrap_or_else(|| random.below(workers as u64) as usize),
            Load::Closed { .. } => source % workers,
        }
    }

    /// When a stream sends again.
    pub(super) fn following(&self, source: usize, now: Nanoseconds, random: &mut Random) -> Option<Nanoseconds> {
        match self.load {
            Load::Open(streams) if self.left > 0 => Some(now + gap(&streams[source], random)),
            _ => None,
        }
    }

    /// Whether a client that was answered sends again.
    pub(super) fn sends_again(&self) -> bool {
        matches!(self.load, Load::Closed { .. }) && self.left > 0
    }
}

/// From one time at which a stream sends to the next.
fn gap(stream: &Stream, random: &mut Random) -> Nanoseconds {
    let (count, drawn) = match stream.arrivals {
        Arrivals::Even => (1, 1.0),
        Arrivals::Poisson => (1, exponential(random)),
        Arrivals::Bursts(count) => (count, exponential(random)),
    };
    (f64::from(count) * 1e9 / stream.per_second * drawn) as Nanoseconds
}

/// One of some, by their parts.
fn picked(functions: &[(usize, f64)], random: &mut Random) -> usize {
    let sum: f64 = functions.iter().map(|(_, part)| part).sum();
    let mut at = random.unit() * sum;
    let found = functions.iter().find(|(_, part)| {
        at -= part;
        at < 0.0
    });
    found.or(functions.last()).map_or(0, |(function, _)| *function)
}
