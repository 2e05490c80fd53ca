//! What a function calls (speculation.md, S6, C5): callee and argument of each call, by the ordinal of the call.
//!
//! No definition says what a function calls. So it is learned from committed runs: how often which function was called as the first, the second, and so on; and how the argument follows: it is the one
//! with which the same input led to this call before, or the caller's own input, or always the same. Nothing is predicted with fewer than two samples.
//!
//! A call is to be expected only where it pays to begin it with its caller: where the caller takes longer to come to it than five launches, and what was begun so has saved more than it has cost.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::Of;
use super::benefit::Benefit;
use super::bounded::{Bounded, Weigh};
use super::counts::{Counts, SAMPLES_MIN};
use super::times::{Mean, worth};
use crate::memo::key::Digest;

/// Calls of one run that are told apart; later ones are not predicted.
pub const CALLS_MAX: usize = 32;
/// Bytes of an argument; one that is larger is not kept.
pub const ARGUMENT_BYTES_MAX: usize = 16 << 10;
/// Inputs of one caller that are known.
const INPUTS_MAX: usize = 256;
/// The part of all bytes that one caller's inputs may have.
const CALLER_PART: usize = 8;
/// Callers that are known.
const CALLERS_MAX: usize = 256;

/// A call that a run has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The name of the function that was called.
    pub callee: Arc<str>,
    /// With what; none where that is not kept.
    pub argument: Option<Bytes>,
    /// How long the run took to come to it.
    pub reached: Duration,
}

/// A call that is to be expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its place among the calls of the run, from 0.
    pub ordinal: usize,
    /// The name of the function that is called.
    pub callee: Arc<str>,
    /// With what.
    pub argument: Bytes,
    /// How the argument is known.
    pub follows: Follows,
}

/// How an argument follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Follows {
    /// The same input led to it.
    Input,
    /// It is the caller's own input.
    Equal,
    /// It is always the same.
    Constant,
}

/// What functions call.
#[derive(Debug)]
pub struct Sequences {
    callers: Bounded<u64, Caller>,
    inputs_bytes_max: usize,
}

#[derive(Debug)]
struct Caller {
    name: Box<str>,
    /// What was called, by the ordinal of the call.
    ordinals: Vec<Ordinal>,
    /// What was called, by the caller's input.
    inputs: Bounded<Digest, Calls>,
    /// The input of the last run.
    last: Option<Digest>,
}

#[derive(Debug, Default)]
struct Ordinal {
    /// None where the run made fewer calls.
    callees: Counts<Option<Arc<str>>>,
    last: Option<Call>,
    /// How often in a row callee and argument were the same. Runs with the input of the run before say nothing about others, and do not count.
    constant: u32,
    /// How often in a row the callee was the same, and the argument the caller's input; likewise.
    equal: u32,
    /// How long runs take to come to it.
    reached: Mean,
    /// What it has brought to begin it before.
    benefit: Benefit,
}

/// A call; without its argument where that is too large.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    callee: Arc<str>,
    argument: Option<Bytes>,
}

/// The calls of runs with one input.
#[derive(Debug, Default)]
struct Calls {
    made: Box<[Call]>,
    /// How many runs in a row have made them.
    runs: u32,
}

impl Call {
    /// A copy: an argument may be a part of something larger.
    fn of(made: &Made) -> Call {
        let argument = made.argument.as_ref().filter(|argument| argument.len() <= ARGUMENT_BYTES_MAX);
        let argument = argument.map(|argument| Bytes::copy_from_slice(argument));
        Call { callee: Arc::clone(&made.callee), argument }
    }

    fn heap_bytes(&self) -> usize {
        self.callee.len() + self.argument.as_ref().map_or(0, Bytes::len)
    }
}

impl Weigh for Calls {
    fn heap_bytes(&self) -> usize {
        self.made.iter().map(|call| size_of::<Call>() + call.heap_bytes()).sum()
    }
}

impl Weigh for Caller {
    fn heap_bytes(&self) -> usize {
        let of_ordinal = |ordinal: &Ordinal| {
            let names: usize = ordinal.callees.iter().filter_map(|(callee, _)| callee.as_ref()).map(|name| name.len()).sum();
            ordinal.callees.heap_bytes() + names + ordinal.last.as_ref().map_or(0, Call::heap_bytes)
        };
        let ordinals: usize = self.ordinals.iter().map(of_ordinal).sum();
        self.name.len() + self.ordinals.capacity() * size_of::<Ordinal>() + ordinals + self.inputs.bytes()
    }
}

impl Ordinal {
    fn ended(&mut self) {
        self.callees.add(&None);
    }

    fn called(&mut self, input: &[u8], is_new: bool, call: &Call) {
        self.callees.add(&Some(Arc::clone(&call.callee)));
        let is_same_callee = self.last.as_ref().is_some_and(|last| last.callee == call.callee);
        let is_same = self.last.as_ref() == Some(call);
        let is_equal = call.argument.as_ref().is_some_and(|argument| *argument == *input);
        let count = |count: u32, goes_on: bool| if goes_on { count.saturating_add(u32::from(is_new)) } else { 1 };
        self.equal = if is_equal { count(self.equal, is_same_callee && self.equal > 0) } else { 0 };
        self.constant = if call.argument.is_some() { count(self.constant, is_same) } else { 0 };
        self.last = Some(call.clone());
    }

    /// The argument of a callee, where it does not depend on what the input led to before.
    fn argument(&self, callee: &Arc<str>, input: &Bytes) -> Option<(Bytes, Follows)> {
        let last = self.last.as_ref().filter(|last| last.callee == *callee)?;
        if self.equal >= SAMPLES_MIN {
            return Some((input.clone(), Follows::Equal));
        }
        let argument = last.argument.as_ref().filter(|_| self.constant >= SAMPLES_MIN)?;
        Some((argument.clone(), Follows::Constant))
    }
}

impl Caller {
    fn ran(&mut self, input: &[u8], key: Digest, calls: Vec<Call>, made: &[Made]) {
        if self.ordinals.len() < calls.len() {
            self.ordinals.resize_with(calls.len(), Ordinal::default);
        }
        let is_new = self.last.replace(key) != Some(key);
        for (at, ordinal) in self.ordinals.iter_mut().enumerate() {
            match calls.get(at) {
                Some(call) => ordinal.called(input, is_new, call),
                None => ordinal.ended(),
            }
        }
        self.ordinals.iter_mut().zip(made).for_each(|(ordinal, made)| ordinal.reached.count(made.reached));
        self.inputs.change(key, Calls::default, |known| {
            known.runs = if *known.made == *calls { known.runs.saturating_add(1) } else { 1 };
            known.made = calls.into();
        });
    }

    fn expected(&mut self, input: &Bytes, key: &Digest, launch: Duration) -> Vec<Expected> {
        let mut expected = Vec::new();
        // So that it is used now.
        let _ = self.inputs.get_mut(key);
        let known = self.inputs.peek(key);
        // With enough runs of the same input, what they did counts; else what most runs did.
        let is_certain = known.is_some_and(|known| known.runs >= SAMPLES_MIN);
        for (at, ordinal) in self.ordinals.iter_mut().enumerate() {
            let known = known.and_then(|known| known.made.get(at));
            let callee = if is_certain {
                known.map(|call| Arc::clone(&call.callee))
            } else {
                let Some(likeliest) = ordinal.callees.likeliest() else { continue };
                likeliest.outcome
            };
            // No more calls.
            let Some(callee) = callee else { break };
            let of_input = known.filter(|known| known.callee == callee).and_then(|known| known.argument.clone());
            let follows = of_input.map(|argument| (argument, Follows::Input)).or_else(|| ordinal.argument(&callee, input));
            if let Some((argument, follows)) = follows
                && ordinal.reached.known().is_some_and(|reached| worth(reached, launch))
                && ordinal.benefit.verdict().is_started()
            {
                expected.push(Expected { ordinal: at, callee, argument, follows });
            }
        }
        expected
    }
}

impl Sequences {
    /// Nothing yet, and room for so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Sequences {
        Sequences { callers: Bounded::new(bytes_max, CALLERS_MAX), inputs_bytes_max: bytes_max / CALLER_PART }
    }

    /// The calls that a run of a version of a function will make, in their order, as far as these are to be expected and it pays to begin them with it; `key` is that of the input, and to begin a
    /// function costs so much time.
    pub fn expected(&mut self, version: u64, input: &Bytes, key: &Digest, launch: Duration) -> Vec<Expected> {
        self.callers.get_mut(&version).map_or_else(Vec::new, |caller| caller.expected(input, key, launch))
    }

    /// A call of that ordinal was begun before the run has come to it, and that was right: it has saved so much time, and has cost so much.
    pub fn adopted(&mut self, version: u64, ordinal: usize, saved: Duration, cost: Duration) {
        if let Some(benefit) = self.benefit(version, ordinal) {
            benefit.adopted(saved, cost);
        }
    }

    /// The same where that was wrong, and has wasted so much time.
    pub fn lost(&mut self, version: u64, ordinal: usize, wasted: Duration) {
        if let Some(benefit) = self.benefit(version, ordinal) {
            benefit.lost(wasted);
        }
    }

    fn benefit(&mut self, version: u64, ordinal: usize) -> Option<&mut Benefit> {
        Some(&mut self.callers.get_mut(&version)?.ordinals.get_mut(ordinal)?.benefit)
    }

    /// Learns the calls of a run that was committed, in their order.
    pub fn learn(&mut self, of: Of<'_>, input: &[u8], key: Digest, calls: &[Made]) {
        let made = calls.get(..CALLS_MAX).unwrap_or(calls);
        let calls: Vec<Call> = made.iter().map(Call::of).collect();
        let inputs_bytes_max = self.inputs_bytes_max;
        let new = || {
            let inputs = Bounded::new(inputs_bytes_max, INPUTS_MAX);
            Caller { name: of.name.into(), ordinals: Vec::new(), inputs, last: None }
        };
        self.callers.change(of.version, new, |caller| caller.ran(input, key, calls, made));
    }

    /// Drops what is known of a version of a function.
    pub fn forget(&mut self, version: u64) {
        self.callers.remove(&version);
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.callers.bytes()
    }

    /// Drops what was not used for longest; false where there is nothing.
    pub fn evict(&mut self) -> bool {
        self.callers.evict()
    }

    /// All that is known, for people: arguments are not shown.
    #[must_use]
    pub fn known(&self) -> Vec<KnownCaller> {
        let shown = |counts: &Counts<Option<Arc<str>>>| {
            counts.iter().map(|(callee, count)| (callee.as_deref().unwrap_or_default().to_owned(), *count)).collect()
        };
        let known = self.callers.iter().map(|(version, caller)| KnownCaller {
            function: caller.name.to_string(),
            version: *version,
            inputs: caller.inputs.len(),
            calls: caller.ordinals.iter().map(|ordinal| shown(&ordinal.callees)).collect(),
        });
        let mut known: Vec<_> = known.collect();
        known.sort_unstable_by(|one, other| (&one.function, one.version).cmp(&(&other.function, other.version)));
        known
    }
}

/// What a function calls.
#[derive(Clone, Debug, Serialize)]
pub struct KnownCaller {
    /// Its name.
    pub function: String,
    /// The number of its version.
    pub version: u64,
    /// Inputs of which the calls are known.
    pub inputs: usize,
    /// For each ordinal the functions that were called, and how often lately; an empty name where there was no such call.
    pub calls: Vec<Vec<(String, u32)>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const F: Of<'_> = Of { name: "f", version: 7 };
    const MS: Duration = Duration::from_millis(1);

    fn made(calls: &[(&str, &str)]) -> Vec<Made> {
        calls
            .iter()
            .map(|(callee, argument)| Made {
                callee: (*callee).into(),
                argument: Some(argument.as_bytes().to_vec().into()),
                reached: MS,
            })
            .collect()
    }

    fn key(input: &str) -> Digest {
        *blake3::hash(input.as_bytes()).as_bytes()
    }

    fn learn(sequences: &mut Sequences, input: &str, calls: &[(&str, &str)]) {
        sequences.learn(F, input.as_bytes(), key(input), &made(calls));
    }

    fn expected(sequences: &mut Sequences, input: &str) -> Vec<(usize, String, String, Follows)> {
        let expected = sequences.expected(7, &input.as_bytes().to_vec().into(), &key(input), Duration::ZERO);
        let shown = |Expected { ordinal, callee, argument, follows }: Expected| {
            (ordinal, callee.to_string(), String::from_utf8(argument.to_vec()).unwrap(), follows)
        };
        expected.into_iter().map(shown).collect()
    }

    fn call(ordinal: usize, callee: &str, argument: &str, follows: Follows) -> (usize, String, String, Follows) {
        (ordinal, callee.to_owned(), argument.to_owned(), follows)
    }

    #[test]
    fn arguments_follow_from_the_input_or_are_the_input_or_are_always_the_same() {
        let mut sequences = Sequences::new(1 << 20);
        assert_eq!(expected(&mut sequences, "x"), []);
        learn(&mut sequences, "x", &[("user", "x"), ("price", "EUR"), ("cart", "of x")]);
        assert_eq!(expected(&mut sequences, "x"), [], "one run says nothing");
        learn(&mut sequences, "y", &[("user", "y"), ("price", "EUR"), ("cart", "of y")]);
        let of_x = [
            call(0, "user", "x", Follows::Input),
            call(1, "price", "EUR", Follows::Input),
            call(2, "cart", "of x", Follows::Input),
        ];
        assert_eq!(expected(&mut sequences, "x"), of_x);
        assert_eq!(
            expected(&mut sequences, "z"),
            [call(0, "user", "z", Follows::Equal), call(1, "price", "EUR", Follows::Constant)]
        );
        learn(&mut sequences, "y", &[("user", "!"), ("price", "USD"), ("cart", "of y")]);
        assert_eq!(expected(&mut sequences, "z"), [], "neither holds any more");
        let of_y = [
            call(0, "user", "!", Follows::Input),
            call(1, "price", "USD", Follows::Input),
            call(2, "cart", "of y", Follows::Input),
        ];
        assert_eq!(expected(&mut sequences, "y"), of_y, "the last run with that input counts");
        sequences.forget(7);
        assert_eq!((expected(&mut sequences, "x").len(), sequences.bytes()), (0, 0));
        learn(&mut sequences, "x", &[("user", "!")]);
        learn(&mut sequences, "y", &[("user", "y")]);
        assert_eq!(expected(&mut sequences, "z"), [], "the argument was the input once, and the last one once");
    }

    #[test]
    fn the_callee_is_what_most_runs_have_called_unless_the_input_has_led_to_another_one_twice() {
        let mut sequences = Sequences::new(1 << 20);
        (0..6).for_each(|number| learn(&mut sequences, &format!("a{number}"), &[("f", "1"), ("end", "")]));
        learn(&mut sequences, "b", &[("g", "1")]);
        assert_eq!(
            expected(&mut sequences, "b"),
            [call(1, "end", "", Follows::Constant)],
            "f with an argument that is not known"
        );
        learn(&mut sequences, "b", &[("g", "1")]);
        assert_eq!(expected(&mut sequences, "b"), [call(0, "g", "1", Follows::Input)], "and no second call");
        assert_eq!(expected(&mut sequences, "a0").len(), 2);
        // Neither is likely now; what follows may be nevertheless.
        (0..4).for_each(|_| learn(&mut sequences, "b", &[("g", "1"), ("end", "")]));
        learn(&mut sequences, "c", &[("h", "2"), ("end", "")]);
        learn(&mut sequences, "d", &[("h", "3"), ("end", "")]);
        assert_eq!(expected(&mut sequences, "e"), [call(1, "end", "", Follows::Constant)]);
        // Most runs make no call.
        (0..60).for_each(|number| learn(&mut sequences, &format!("n{number}"), &[]));
        assert_eq!(expected(&mut sequences, "e"), []);
    }

    #[test]
    fn a_call_is_begun_where_the_caller_takes_longer_to_come_to_it_than_five_launches_and_it_has_paid() {
        let mut sequences = Sequences::new(1 << 20);
        let mut calls = made(&[("f", "1"), ("g", "2"), ("h", "3")]);
        calls.iter_mut().zip([0, 5, 6]).for_each(|(call, ms)| call.reached = ms * MS);
        (0..2).for_each(|_| sequences.learn(F, b"x", key("x"), &calls));
        let expected = |sequences: &mut Sequences, launch| {
            let expected = sequences.expected(7, &Bytes::from_static(b"x"), &key("x"), launch);
            expected.into_iter().map(|expected| expected.ordinal).collect::<Vec<_>>()
        };
        assert_eq!(expected(&mut sequences, MS), [2]);
        assert_eq!(expected(&mut sequences, MS / 2), [1, 2]);
        (0..4).for_each(|_| sequences.lost(7, 1, MS));
        assert_eq!(expected(&mut sequences, MS / 2), [2], "it has cost more than it has saved");
        (0..4).for_each(|_| sequences.adopted(7, 1, 11 * MS, MS));
        assert_eq!(expected(&mut sequences, MS / 2), [1, 2]);
        sequences.lost(7, 9, MS);
        sequences.adopted(8, 1, MS, MS);
        assert_eq!(expected(&mut sequences, MS / 2), [1, 2], "what is not known is nothing");
    }

    #[test]
    fn calls_arguments_inputs_and_callers_are_bounded() {
        let mut sequences = Sequences::new(200_000);
        let many: Vec<_> = (0..CALLS_MAX + 9).map(|_| ("f", "")).collect();
        (0..2).for_each(|_| learn(&mut sequences, "x", &many));
        assert_eq!(expected(&mut sequences, "x").len(), CALLS_MAX);
        let large = "x".repeat(ARGUMENT_BYTES_MAX + 1);
        (0..3).for_each(|_| learn(&mut sequences, "y", &[("f", &large)]));
        assert_eq!(expected(&mut sequences, "y"), [], "it is not kept");
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..3_000 {
            let (input, argument) = (random.u32(..1_000).to_string(), "x".repeat(random.usize(..3_000)));
            let of = Of { name: "f", version: random.u64(..400) };
            let calls: Vec<_> = (0..random.usize(..5)).map(|_| ("f", argument.as_str())).collect();
            sequences.learn(of, input.as_bytes(), key(&input), &made(&calls));
            assert!(sequences.bytes() <= 200_000 && sequences.callers.len() <= CALLERS_MAX, "{}", sequences.bytes());
            let caller = sequences.callers.peek(&of.version);
            assert!(
                caller.is_none_or(|caller| caller.inputs.len() <= INPUTS_MAX && caller.inputs.bytes() <= 200_000 / CALLER_PART)
            );
        }
        assert!(sequences.known().len() > 2);
        while sequences.evict() {}
        assert_eq!(sequences.bytes(), 0);
    }
}
