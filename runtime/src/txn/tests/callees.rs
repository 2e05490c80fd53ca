//! Programs that call each other. What each of them does depends on its number and on what it has read, so that it can be begun before it is called, and be known from an earlier run.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::*;
use crate::txn::footprint::Footprint;

/// A program whose number has this bit calls others.
pub(super) const CALLS: u64 = 1 << 51;
/// One that is called. How deep it lies stands from [`DEPTH_BIT`] on.
const CALLED: u64 = 1 << 52;
const DEPTH_BIT: u32 = 8;
const DEPTH_MAX: u64 = 3;
/// Different ones that are called, of each depth.
const CALLED_COUNT: u64 = 4;
const CALLED_STEPS: u64 = 3;
const FOOTPRINT_BYTES_MAX: usize = 1 << 16;

/// What a program calls.
#[derive(Debug, Default)]
pub(super) struct Callees {
    /// What was begun before it is called, and whether that has ended.
    begun: Vec<(Program, bool)>,
    known: Option<Known>,
    /// What it and its callees have replied, and what has stood for a call.
    replied: Vec<Reply>,
    skipped: Vec<Reply>,
}

/// What a callee has come to: its number, what it has seen, and on what that rests.
#[derive(Clone, Debug)]
struct Reply {
    number: u64,
    seen: String,
    footprint: Arc<Footprint>,
}

/// What committed runs have replied, by number; and how many callees were adopted, refused and left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(Arc<Mutex<KnownRuns>>);

#[derive(Debug, Default)]
struct KnownRuns {
    replies: HashMap<u64, Reply>,
    counts: [usize; 3],
}

impl Known {
    pub(super) fn counts(&self) -> [usize; 3] {
        lock(&self.0).counts
    }

    fn count(&self, index: usize) {
        lock(&self.0).counts[index] += 1;
    }
}

impl Program {
    /// What it does next, if it calls others or is called.
    pub(super) fn next_of_callers(&self) -> Option<Step> {
        let is_called = self.number & CALLED != 0;
        if self.number & CALLS == 0 && !is_called {
            return None;
        }
        let depth = if is_called { (self.number >> DEPTH_BIT) & 3 } else { 0 };
        // What it calls is the same each time, as a rule; under which key it reads depends on what it has read.
        let mut random = fastrand::Rng::with_seed(self.number * 16 + self.step);
        let mixed = self.seen.bytes().fold(self.number, |mix, byte| mix.wrapping_mul(31).wrapping_add(byte.into()));
        let key = if random.u8(..4) == 0 { mixed % KEYS } else { random.u64(..KEYS) };
        // Half of what is called does little, and mostly reads.
        let is_calm = is_called && self.number.is_multiple_of(2);
        Some(match random.u8(..if is_calm { 9 } else { 12 }) {
            _ if self.step >= if is_called { CALLED_STEPS } else { STEPS } => Step::End,
            0..3 => Step::Get(key),
            3 | 4 if depth < DEPTH_MAX => {
                let other = if random.u8(..6) == 0 { mixed } else { random.u64(..) };
                Step::Ask(CALLED | ((depth + 1) << DEPTH_BIT) | (other % CALLED_COUNT))
            }
            3..6 => Step::Get(key),
            6 => Step::Put(key),
            7 => Step::List,
            8 => Step::Add(key, random.i64(1..5)),
            9 => Step::Sum(key, random.i64(1..5)),
            10 if self.step > 1 && mixed.is_multiple_of(3) => Step::Trap,
            10 => Step::Delete(key),
            _ => Step::Put(key),
        })
    }

    /// Begins some callees before it calls them, and remembers what it comes to there.
    pub(super) fn begin_callees(&mut self, known: &Known, random: &mut fastrand::Rng) {
        let depth = if self.number & CALLED == 0 { 0 } else { (self.number >> DEPTH_BIT) & 3 };
        self.callees.known = Some(known.clone());
        if (self.number & (CALLS | CALLED) == 0) || depth >= DEPTH_MAX {
            return;
        }
        for _ in 0..random.u64(..4) {
            let number = CALLED | ((depth + 1) << DEPTH_BIT) | random.u64(..CALLED_COUNT);
            let Some(beside) = Transaction::beside(&self.outer) else { return };
            let mut callee = Program { outer: Transaction::of_call(&beside), ..Program::new(number) };
            assert!(Arc::ptr_eq(&callee.outer, &beside), "it was opened for that run");
            callee.begin_callees(known, random);
            self.callees.begun.push((callee, false));
        }
    }

    /// Has a callee that was begun before go on, or drops it; now and then, if there is one.
    pub(super) fn callee_goes(&mut self, random: &mut fastrand::Rng, below: &impl Below) -> bool {
        let begun = &mut self.callees.begun;
        if begun.is_empty() || random.bool() {
            return false;
        }
        let at = random.usize(..begun.len());
        if random.u8(..32) == 0 {
            // It would have gone on until it is told.
            let (mut callee, ended) = begun.swap_remove(at);
            if !ended {
                callee.end(below);
            }
            return true;
        }
        let (callee, ended) = &mut begun[at];
        if !*ended && !callee.callee_goes(random, below) && !callee.go(below) {
            callee.settle_called();
            *ended = true;
        }
        true
    }

    /// Calls another one.
    pub(super) fn ask(&mut self, number: u64, below: &impl Below) {
        let (seen, well) = self.asked(number, below);
        _ = write!(self.seen, "asked {well} {seen};");
    }

    fn asked(&mut self, number: u64, below: &impl Below) -> (String, bool) {
        let of_known = |known: &Known| lock(&known.0).replies.get(&number).cloned();
        if let Some(known) = self.callees.known.clone()
            && let Some(reply) = of_known(&known)
            && self.outer.recall(&reply.footprint, None)
        {
            known.count(2);
            let seen = reply.seen.clone();
            self.callees.skipped.push(reply);
            return (seen, true);
        }
        if let Some(at) = self.callees.begun.iter().position(|(callee, _)| callee.number == number) {
            let (mut callee, ended) = self.callees.begun.remove(at);
            if !ended {
                callee.end(below);
            }
            let is_adopted = self.outer.adopt(&callee.outer);
            if let Some(known) = &self.callees.known {
                known.count(usize::from(!is_adopted));
            }
            if is_adopted {
                return self.take_over(callee);
            }
        }
        let mut callee = Program { outer: Transaction::join(&self.outer), ..Program::new(number) };
        callee.callees.known.clone_from(&self.callees.known);
        callee.end(below);
        self.take_over(callee)
    }

    fn take_over(&mut self, callee: Program) -> (String, bool) {
        let Program { seen, failed, callees, wrong, .. } = callee;
        self.callees.skipped.extend(callees.skipped);
        if !failed {
            self.callees.replied.extend(callees.replied);
        }
        self.wrong = self.wrong.take().or(wrong);
        (seen, !failed)
    }

    /// Goes on to its end, as a callee.
    fn end(&mut self, below: &impl Below) {
        while self.go(below) {}
        self.settle_called();
    }

    fn settle_called(&mut self) {
        let settled = self.outer.settle(!self.failed, None);
        assert!(matches!(settled, Settled::Done), "{settled:?}");
        self.callees.begun.clear();
        if !self.failed
            && let Some(footprint) = self.outer.footprint(FOOTPRINT_BYTES_MAX)
        {
            let reply = Reply { number: self.number, seen: self.seen.clone(), footprint: Arc::new(footprint) };
            self.callees.replied.push(reply);
        }
    }

    /// The run of a column is over: what it leaves is known when its commit is made.
    pub(super) fn leave(&mut self, known: &Known) {
        let (known, outer) = (known.clone(), Arc::clone(&self.outer));
        let Callees { replied, skipped, .. } = std::mem::take(&mut self.callees);
        let mut replied = if self.failed { Vec::new() } else { replied };
        replied.retain(|reply| outer.leaves(&reply.footprint));
        let left = outer.when_decided(Box::new(move |verdict, outer| {
            let known = &mut lock(&known.0).replies;
            match verdict {
                Verdict::Committed => known.extend(replied.into_iter().map(|reply| (reply.number, reply))),
                Verdict::Stale => {
                    let spoiled = skipped.iter().filter(|reply| outer.is_spoiled_by(&reply.footprint));
                    spoiled.for_each(|reply| _ = known.remove(&reply.number));
                }
            }
        }));
        assert!(left.is_none(), "its group decides");
    }
}
