//! Which executions of a workflow may begin, where there are limits: pure, all times are given.
//!
//! What holds: for each key no more executions run than `running_max`, but for those that were redriven; no more begin within any `period_s` than twice `starts_max`, and in the long run
//! `starts_max` in each (a bucket of that many, which fills evenly). Executions of one key begin in the order in which they were started.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::WorkflowLimits;

/// Keys from which on those are looked for of which nothing need be known any more.
const SWEEP_MIN: usize = 64;

/// The gates of one workflow, one for each key that runs or waits.
#[derive(Debug, Default)]
pub(super) struct Gates {
    of_key: HashMap<Arc<str>, Gate>,
    /// Keys at which something may begin, or not any more: only these are looked at.
    changed: BTreeSet<Arc<str>>,
    /// When the next one of a key may begin that waits for that.
    timed: BTreeSet<(i64, Arc<str>)>,
    /// The limits for which that holds.
    limits: Option<WorkflowLimits>,
    /// How many keys there may be until the idle ones are removed.
    sweep_at: usize,
}

/// What is known of one key.
#[derive(Debug, Default)]
struct Gate {
    running: u64,
    /// Numbers of executions that wait, which rise with time.
    queued: BTreeSet<u64>,
    /// When the bucket is full again, in microseconds since 1970.
    full_us: i64,
}

/// The executions of one key, as operators see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The key; empty where the limits have none.
    pub key: Arc<str>,
    /// Executions that have begun and not ended.
    pub running: u64,
    /// Executions that wait.
    pub queued: usize,
}

impl Gate {
    /// When one more may begin; none where that depends on the end of another.
    fn opens_ms(&self, limits: Option<&WorkflowLimits>, now_ms: i64) -> Option<i64> {
        let Some(limits) = limits else { return Some(now_ms) };
        if limits.running_max.is_some_and(|max| self.running >= max) {
            return None;
        }
        let Some((interval_us, burst_us)) = rate(limits) else { return Some(now_ms) };
        // It has room for one more as soon as it lacks no more than all but one.
        let at_us = self.full_us.saturating_add(interval_us).saturating_sub(burst_us);
        Some(now_ms.max(at_us.div_euclid(1_000) + i64::from(at_us.rem_euclid(1_000) > 0)))
    }

    fn begin(&mut self, limits: Option<&WorkflowLimits>, now_ms: i64) {
        self.running += 1;
        if let Some((interval_us, _)) = limits.and_then(rate) {
            self.full_us = self.full_us.max(now_ms.saturating_mul(1_000)).saturating_add(interval_us);
        }
    }

    /// Whether it need not be known any more.
    fn is_idle(&self, now_ms: i64) -> bool {
        self.running == 0 && self.queued.is_empty() && self.full_us <= now_ms.saturating_mul(1_000)
    }
}

/// The time between two that begin, and that in which the bucket fills, in microseconds.
fn rate(limits: &WorkflowLimits) -> Option<(i64, i64)> {
    let burst_us = i64::try_from(limits.period_s).ok()?.checked_mul(1_000_000)?;
    let count = i64::try_from(limits.starts_max?).ok()?.max(1);
    Some((burst_us / count, burst_us))
}

impl Gates {
    /// Whether an execution that is started now may begin at once. It has begun then. Otherwise it has to [wait](Gates::wait).
    pub(super) fn admit(&mut self, key: &Arc<str>, limits: Option<&WorkflowLimits>, now_ms: i64) -> bool {
        if self.of_key.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.of_key.retain(|_, gate| !gate.is_idle(now_ms));
            self.sweep_at = self.of_key.len() * 2;
        }
        let gate = self.gate(key);
        let may_begin = gate.queued.is_empty() && gate.opens_ms(limits, now_ms).is_some_and(|at_ms| at_ms <= now_ms);
        if may_begin {
            gate.begin(limits, now_ms);
        }
        may_begin
    }

    fn gate(&mut self, key: &Arc<str>) -> &mut Gate {
        self.of_key.entry(Arc::clone(key)).or_default()
    }

    /// An execution waits.
    pub(super) fn wait(&mut self, key: &Arc<str>, id: u64) {
        self.gate(key).queued.insert(id);
        self.changed.insert(Arc::clone(key));
    }

    /// One that waited is waited for no more; whether it had waited.
    pub(super) fn give_up(&mut self, key: &str, id: u64) -> bool {
        self.of_key.get_mut(key).is_some_and(|gate| gate.queued.remove(&id))
    }

    /// An execution runs, whatever the limits say: it has begun before the server was started, or was redriven.
    pub(super) fn run(&mut self, key: &Arc<str>) {
        self.gate(key).running += 1;
    }

    /// One that ran does not any more.
    pub(super) fn end(&mut self, key: &Arc<str>) {
        if let Some(gate) = self.of_key.get_mut(key) {
            gate.running = gate.running.saturating_sub(1);
            self.changed.insert(Arc::clone(key));
        }
    }

    /// Those that may begin now, and have begun with this; and when the next one may, if that is known.
    pub(super) fn open(&mut self, limits: Option<&WorkflowLimits>, now_ms: i64) -> (Vec<(Arc<str>, u64)>, Option<i64>) {
        if self.limits.as_ref() != limits {
            self.limits = limits.cloned();
            self.timed.clear();
            self.changed.extend(self.of_key.keys().cloned());
        }
        while self.timed.first().is_some_and(|(at_ms, _)| *at_ms <= now_ms)
            && let Some((_, key)) = self.timed.pop_first()
        {
            self.changed.insert(key);
        }
        let mut begin = Vec::new();
        for key in std::mem::take(&mut self.changed) {
            let Some(gate) = self.of_key.get_mut(&key) else { continue };
            while let (Some(&id), Some(at_ms)) = (gate.queued.first(), gate.opens_ms(limits, now_ms)) {
                if at_ms > now_ms {
                    self.timed.insert((at_ms, Arc::clone(&key)));
                    break;
                }
                gate.queued.remove(&id);
                gate.begin(limits, now_ms);
                begin.push((Arc::clone(&key), id));
            }
            if gate.is_idle(now_ms) {
                self.of_key.remove(&key);
            }
        }
        begin.sort_unstable_by_key(|(_, id)| *id);
        (begin, self.timed.first().map(|(at_ms, _)| *at_ms))
    }

    /// One that was to begin has not: it waits again, before those that were started after it.
    pub(super) fn put_back(&mut self, key: &Arc<str>, id: u64) {
        self.end(key);
        self.wait(key, id);
    }

    /// All keys, those with the longest queues first; at most so many.
    pub(super) fn queues(&self, max: usize) -> Vec<Queue> {
        let queue =
            |(key, gate): (&Arc<str>, &Gate)| Queue { key: Arc::clone(key), running: gate.running, queued: gate.queued.len() };
        let mut queues: Vec<_> = self.of_key.iter().map(queue).filter(|queue| queue.running > 0 || queue.queued > 0).collect();
        queues.sort_unstable_by(|one, other| other.queued.cmp(&one.queued).then_with(|| one.key.cmp(&other.key)));
        queues.truncate(max);
        queues
    }

    /// Whether nothing is known of any key.
    pub(super) fn is_empty(&self) -> bool {
        self.of_key.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn limits(running_max: Option<u64>, starts_max: Option<u64>, period_s: u64) -> WorkflowLimits {
        WorkflowLimits { key: None, running_max, starts_max, period_s }
    }

    fn key(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn no_more_run_than_may_and_each_key_has_its_own() {
        let (limits, mut gates) = (limits(Some(2), None, 60), Gates::default());
        let limits = Some(&limits);
        assert!(gates.admit(&key("a"), limits, 0) && gates.admit(&key("a"), limits, 0));
        assert!(!gates.admit(&key("a"), limits, 0) && gates.admit(&key("b"), limits, 0));
        for id in [7, 5, 6] {
            gates.wait(&key("a"), id);
        }
        assert_eq!(gates.open(limits, 1), (vec![], None));
        gates.end(&key("a"));
        assert!(!gates.admit(&key("a"), limits, 1), "those that wait come first");
        assert_eq!(gates.open(limits, 1).0, [(key("a"), 5)]);
        gates.put_back(&key("a"), 5);
        assert_eq!(gates.open(limits, 1).0, [(key("a"), 5)]);
        assert!(gates.give_up("a", 6) && !gates.give_up("a", 6));
        gates.end(&key("a"));
        gates.end(&key("a"));
        assert_eq!(gates.open(limits, 2).0, [(key("a"), 7)]);
        let queue = |name, running, queued| Queue { key: key(name), running, queued };
        assert_eq!(gates.queues(9), [queue("a", 1, 0), queue("b", 1, 0)]);
        gates.end(&key("a"));
        gates.end(&key("b"));
        assert_eq!(gates.open(limits, 3), (vec![], None));
        assert!(gates.of_key.is_empty() && gates.timed.is_empty() && gates.changed.is_empty());
    }

    #[test]
    fn those_that_wait_begin_where_limits_are_taken_away() {
        let (limits, mut gates) = (limits(Some(1), Some(1), 60), Gates::default());
        assert!(gates.admit(&key("a"), Some(&limits), 0));
        for id in 0..3 {
            gates.wait(&key("a"), id);
        }
        assert_eq!(gates.open(None, 1).0.len(), 3);
    }

    /// Against a plain account of all that has begun: bursts at random, the rate is kept in each period and used in the long run.
    #[test]
    fn rates_are_kept_and_used() {
        for seed in 0..50 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (starts_max, period_s) = (random.u64(1..20), random.u64(1..5));
            let (limits, mut gates) = (limits(None, Some(starts_max), period_s), Gates::default());
            let (mut now_ms, mut id, mut begun, mut waiting) = (1_000_000, 0, Vec::new(), VecDeque::new());
            let end_ms = now_ms + 100_000;
            while now_ms < end_ms {
                let (begin, next_ms) = gates.open(Some(&limits), now_ms);
                for (_, id) in begin {
                    assert_eq!(waiting.pop_front(), Some(id), "seed {seed}");
                    begun.push(now_ms);
                }
                assert!(next_ms.is_none_or(|next| next > now_ms), "seed {seed}");
                assert_eq!(next_ms.is_some(), !waiting.is_empty(), "seed {seed}: all that waits is waited for");
                for _ in 0..random.u64(0..=starts_max * 2) {
                    id += 1;
                    if gates.admit(&key(""), Some(&limits), now_ms) {
                        begun.push(now_ms);
                    } else {
                        gates.wait(&key(""), id);
                        waiting.push_back(id);
                    }
                }
                let pause = random.i64(1..1_000);
                now_ms = next_ms.map_or(now_ms + pause, |next| next.min(now_ms + pause));
            }
            let period_ms = i64::try_from(period_s * 1_000).unwrap();
            for (at, from) in begun.iter().enumerate() {
                let within = begun[at..].iter().take_while(|begun| **begun < from + period_ms).count();
                assert!(within as u64 <= 2 * starts_max, "seed {seed}: {within} within a period");
            }
            // There was nearly always more than enough to begin.
            let expected = 100_000 / period_ms * i64::try_from(starts_max).unwrap();
            assert!(begun.len() as i64 >= expected * 98 / 100 - 1, "seed {seed}: {} of {expected}", begun.len());
        }
    }
}
