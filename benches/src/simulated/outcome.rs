//! What came of a simulation.

use super::model::Nanoseconds;

/// The part of all requests that comes first and does not count.
const WARM_UP: usize = 10;

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// For each function how long its requests took, from when they were due.
    pub latencies: Vec<Latencies>,
    /// Requests that were answered with an error, since they would have been late.
    pub refused: usize,
    /// Good replies a second.
    pub per_second: f64,
    /// The part of their time for which workers did something.
    pub utilisation: f64,
    /// How many events were played.
    pub events: u64,
}

/// Latencies, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Latencies(Vec<f64>);

impl Latencies {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Their mean in milliseconds; NaN of none.
    pub fn mean_ms(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64 / 1e6
    }

    /// The nearest rank of a share, in milliseconds; NaN of none.
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(rank.max(1) - 1).map_or(f64::NAN, |took| took / 1e6)
    }

    /// Those of several functions together.
    pub fn of_all(each: &[Latencies]) -> Latencies {
        let mut all: Vec<f64> = each.iter().flat_map(|latencies| latencies.0.iter().copied()).collect();
        all.sort_by(f64::total_cmp);
        Latencies(all)
    }
}

/// Takes down what becomes of requests.
pub(super) struct Record {
    requests: usize,
    sent: usize,
    received: usize,
    /// When the first one was due that counts, and when the last reply came.
    began: Nanoseconds,
    ended: Nanoseconds,
    took: Vec<Vec<f64>>,
    refused: usize,
}

impl Record {
    pub(super) fn new(functions: usize, requests: usize) -> Record {
        Record { requests, sent: 0, received: 0, began: 0, ended: 0, took: vec![Vec::new(); functions], refused: 0 }
    }

    /// One more is sent: its number.
    pub(super) fn sent(&mut self, now: Nanoseconds) -> usize {
        if self.sent == self.requests / WARM_UP {
            self.began = now;
        }
        self.sent += 1;
        self.sent - 1
    }

    /// The reply to the one with that number, if it is a good one with how long it took.
    pub(super) fn received(&mut self, function: usize, number: usize, took: Option<f64>, now: Nanoseconds) {
        self.received += 1;
        if number < self.requests / WARM_UP {
            return;
        }
        self.ended = self.ended.max(now);
        match took {
            Some(took) => self.took[function].push(took.max(0.0)),
            None => self.refused += 1,
        }
    }

    /// Each worker has used so much time.
    pub(super) fn outcome(mut self, used: f64, events: u64) -> Outcome {
        assert_eq!(self.sent, self.received, "requests are answered once");
        self.took.iter_mut().for_each(|took| took.sort_by(f64::total_cmp));
        let good: usize = self.took.iter().map(Vec::len).sum();
        let seconds = (self.ended.saturating_sub(self.began)) as f64 / 1e9;
        let per_second = if seconds > 0.0 { good as f64 / seconds } else { 0.0 };
        // Alarms for deadlines of requests that were in time come long after the last reply.
        let utilisation = used / self.ended.max(1) as f64;
        let latencies = self.took.into_iter().map(Latencies).collect();
        Outcome { latencies, refused: self.refused, per_second, utilisation, events }
    }
}
