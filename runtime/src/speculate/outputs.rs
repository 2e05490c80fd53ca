//! What a function will answer to an input: what it has answered before (speculation.md, S3).
//!
//! Only answers of committed runs are learned. An input that is answered in another way each time is not predicted: after [`WRONG_MAX`] wrong answers in a row it has to be answered as before
//! [`RIGHT_MIN`] times in a row. Each version of a function has answers of its own, so code and configuration are a part of every key.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use sledge_workflow::machine::Failure;

use super::Of;
use super::bounded::Weigh;
use super::functions::Functions;
use super::skips::{Grounds, Skip};
use super::value::{self, bytes_of};
use crate::kv::BucketKey;
use crate::memo::key::Digest;

/// The part of all bytes that one answer may have.
const ANSWER_PART: usize = 32;
/// Answers that differ from the ones before, in a row, after which an input is not predicted.
const WRONG_MAX: u8 = 3;
/// Answers that are the same as before, in a row, after which it is predicted again.
const RIGHT_MIN: u8 = 3;

/// What a function answers: an output, or how it failed.
pub type Answer = Result<Arc<Value>, Failure>;

/// What functions have answered.
#[derive(Debug)]
pub struct Outputs {
    functions: Functions<Known, Rates>,
}

#[derive(Debug)]
struct Known {
    answer: Answer,
    /// What it rests on, if that is known.
    grounds: Option<Arc<Grounds>>,
    /// The keys of the store that the last run has read.
    reads: Arc<[BucketKey]>,
    /// How often in a row the answer was another one than before.
    wrong: u8,
    /// How often in a row it was the same, where it is not trusted.
    right: u8,
    is_trusted: bool,
}

/// What a run that was committed leaves beside its answer.
#[derive(Clone, Debug, Default)]
pub struct Rest {
    /// What the answer rests on, if that is known.
    pub grounds: Option<Arc<Grounds>>,
    /// The keys of the store that it has read: none where nothing is fetched, and where these are many.
    pub reads: Arc<[BucketKey]>,
}

/// How often a function's answers were predicted, and whether they were right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rates {
    /// Predictions that were asked for.
    pub asked: u64,
    /// Those of them that there were.
    pub predicted: u64,
    /// Answers of committed runs that were as the table would have said.
    pub right: u64,
    /// Those that were not.
    pub wrong: u64,
    /// Those about which the table would have said nothing.
    pub unknown: u64,
    /// Answers that have stood for runs.
    pub skipped: u64,
}

impl Weigh for Known {
    fn heap_bytes(&self) -> usize {
        answer_bytes(&self.answer) + self.grounds.as_ref().map_or(0, |grounds| grounds.bytes()) + reads_bytes(&self.reads)
    }
}

fn answer_bytes(answer: &Answer) -> usize {
    match answer {
        Ok(output) => bytes_of(output),
        Err(Failure { error, cause }) => [error, cause].into_iter().flatten().map(|text| text.len()).sum(),
    }
}

fn reads_bytes(reads: &[BucketKey]) -> usize {
    reads.iter().map(|key| size_of::<BucketKey>() + key.bytes()).sum()
}

fn is_same(one: &Answer, other: &Answer) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => value::is_same(one, other),
        (one, other) => one == other,
    }
}

impl Known {
    /// The answer of another run came.
    fn came(&mut self, answer: &Answer, Rest { grounds, reads }: Rest) {
        self.grounds = grounds;
        self.reads = reads;
        if is_same(&self.answer, answer) {
            self.wrong = 0;
            self.right = self.right.saturating_add(1);
            self.is_trusted |= self.right >= RIGHT_MIN;
        } else {
            self.answer.clone_from(answer);
            self.right = 0;
            self.wrong = self.wrong.saturating_add(1);
            self.is_trusted &= self.wrong < WRONG_MAX;
        }
    }
}

impl Outputs {
    /// Nothing yet, and room for so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Outputs {
        Outputs { functions: Functions::new(bytes_max) }
    }

    /// What a version of a function will answer to the input of that key, if that is to be expected.
    pub fn predict(&mut self, version: u64, input: &Digest) -> Option<Answer> {
        let function = self.functions.get_mut(version)?;
        function.more.asked += 1;
        let answer = function.known.get_mut(input).filter(|known| known.is_trusted).map(|known| known.answer.clone())?;
        function.more.predicted += 1;
        Some(answer)
    }

    /// What a version of a function has answered last, whatever the input was; none where that was a failure.
    #[must_use]
    pub fn last(&self, version: u64) -> Option<Arc<Value>> {
        self.functions.peek(version)?.known.newest()?.answer.as_ref().ok().map(Arc::clone)
    }

    /// The keys of the store that the last run of a version of a function with that input has read: none where that is not known.
    #[must_use]
    pub fn reads(&self, version: u64, input: &Digest) -> Option<Arc<[BucketKey]>> {
        let known = self.functions.peek(version)?.known.peek(input)?;
        (!known.reads.is_empty()).then(|| Arc::clone(&known.reads))
    }

    /// What may stand for a run of a version of a function with that input, if what it rests on is so still.
    pub fn skip(&mut self, version: u64, input: &Digest) -> Option<Skip> {
        let function = self.functions.get_mut(version)?;
        let known = function.known.get_mut(input)?;
        let skip = Skip { answer: known.answer.as_ref().ok().cloned()?, grounds: known.grounds.clone()? };
        function.caution.takes().then_some(skip)
    }

    /// An answer that has stood for a run was right, and is committed.
    pub fn skipped(&mut self, version: u64) {
        if let Some(function) = self.functions.get_mut(version) {
            function.more.skipped += 1;
            function.caution.was_right();
        }
    }

    /// What such an answer rests on is not so any more.
    pub fn skipped_wrongly(&mut self, version: u64, input: Digest) {
        self.functions.change(version, |function| {
            function.caution.was_wrong();
            if let Some(known) = function.known.take(&input) {
                let without = Known { grounds: None, ..known };
                function.known.change(input, || without, |_| ());
            }
        });
    }

    /// Learns what a run has answered that was committed, and what it has read for that.
    pub fn learn(&mut self, of: Of<'_>, input: Digest, answer: &Answer, rest: Rest) {
        let grounds_bytes = rest.grounds.as_ref().map_or(0, |grounds| grounds.bytes());
        let bytes = answer_bytes(answer) + grounds_bytes + reads_bytes(&rest.reads);
        let is_too_large = bytes > self.functions.bytes_max() / ANSWER_PART;
        self.functions.learn(of, |function| {
            let Rates { right, wrong, unknown, .. } = &mut function.more;
            *match function.known.peek(&input).filter(|known| known.is_trusted) {
                None => unknown,
                Some(known) if known.answer == *answer => right,
                Some(_) => wrong,
            } += 1;
            if is_too_large {
                return function.known.remove(&input);
            }
            let reads = Arc::clone(&rest.reads);
            let first = || Known { answer: answer.clone(), grounds: None, reads, wrong: 0, right: 0, is_trusted: true };
            function.known.change(input, first, |known| known.came(answer, rest));
        });
    }

    /// Drops what is known of a version of a function.
    pub fn forget(&mut self, version: u64) {
        self.functions.forget(version);
    }

    /// Bytes of all of it.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.functions.bytes()
    }

    /// Drops what was not used for longest; false where there is nothing.
    pub fn evict(&mut self) -> bool {
        self.functions.evict()
    }

    /// All functions, for people: what they have answered is not shown.
    #[must_use]
    pub fn known(&self) -> Vec<KnownFunction> {
        let known = self.functions.iter().map(|(version, function)| KnownFunction {
            function: function.name.to_string(),
            version: *version,
            answers: function.known.len(),
            distrusted: function.known.iter().filter(|(_, known)| !known.is_trusted).count(),
            bytes: function.bytes(),
            rates: function.more,
        });
        let mut known: Vec<_> = known.collect();
        known.sort_unstable_by(|one, other| (&one.function, one.version).cmp(&(&other.function, other.version)));
        known
    }
}

/// What is known of a function's answers.
#[derive(Clone, Debug, Serialize)]
pub struct KnownFunction {
    /// Its name.
    pub function: String,
    /// The number of its version.
    pub version: u64,
    /// Inputs of which an answer is known.
    pub answers: usize,
    /// Those of them that are not predicted, since the answer was wrong too often.
    pub distrusted: usize,
    /// Bytes of all that.
    pub bytes: usize,
    /// How good predictions were.
    #[serde(flatten)]
    pub rates: Rates,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::functions::{ENTRIES_MAX, FUNCTION_PART, FUNCTIONS_MAX};
    use super::*;

    const F: Of<'_> = Of { name: "f", version: 7 };
    const MANY: usize = 1 << 20;

    fn key(number: u64) -> Digest {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    }

    fn answer(value: impl Into<Value>) -> Answer {
        Ok(Arc::new(value.into()))
    }

    fn failed(error: &str) -> Answer {
        Err(Failure { error: Some(error.into()), cause: None })
    }

    #[test]
    fn an_input_is_answered_as_before_also_by_a_failure_and_only_by_its_own_version() {
        let mut outputs = Outputs::new(MANY);
        assert_eq!(outputs.predict(7, &key(1)), None);
        outputs.learn(F, key(1), &answer(json!({ "a": 1 })), Rest::default());
        outputs.learn(F, key(2), &failed("Busy"), Rest::default());
        assert_eq!(outputs.predict(7, &key(1)), Some(answer(json!({ "a": 1 }))));
        assert_eq!(outputs.predict(7, &key(2)), Some(failed("Busy")));
        assert_eq!(outputs.predict(8, &key(1)), None);
        outputs.learn(F, key(1), &failed("Busy"), Rest::default());
        assert_eq!(outputs.predict(7, &key(1)), Some(failed("Busy")), "the last answer counts");
        outputs.forget(7);
        assert_eq!((outputs.predict(7, &key(1)), outputs.bytes()), (None, 0));
    }

    #[test]
    fn an_input_whose_answers_differ_is_not_predicted_until_they_are_the_same_again() {
        let mut outputs = Outputs::new(MANY);
        (0..3).for_each(|number| outputs.learn(F, key(1), &answer(number), Rest::default()));
        assert_eq!(outputs.predict(7, &key(1)), Some(answer(2)), "two were wrong");
        outputs.learn(F, key(1), &answer(2), Rest::default());
        (3..5).for_each(|number| outputs.learn(F, key(1), &answer(number), Rest::default()));
        assert_eq!(outputs.predict(7, &key(1)), Some(answer(4)), "not in a row");
        outputs.learn(F, key(1), &answer(5), Rest::default());
        assert_eq!(outputs.predict(7, &key(1)), None, "three were wrong");
        for _ in 0..10 {
            outputs.learn(F, key(1), &answer(5), Rest::default());
            outputs.learn(F, key(1), &answer(5), Rest::default());
            outputs.learn(F, key(1), &answer(6), Rest::default());
            assert_eq!(outputs.predict(7, &key(1)), None, "two are not enough");
        }
        (0..3).for_each(|_| outputs.learn(F, key(1), &answer(6), Rest::default()));
        assert_eq!(outputs.predict(7, &key(1)), Some(answer(6)));
        assert_eq!(outputs.known()[0].distrusted, 0);
    }

    #[test]
    fn it_is_counted_what_the_table_would_have_said() {
        let mut outputs = Outputs::new(MANY);
        outputs.learn(F, key(1), &answer(1), Rest::default());
        assert!(outputs.predict(7, &key(1)).is_some() && outputs.predict(7, &key(2)).is_none());
        (0..4).for_each(|number| outputs.learn(F, key(1), &answer(number), Rest::default()));
        outputs.learn(F, key(1), &answer(1), Rest::default());
        let known = &outputs.known()[0];
        // Unknown, then 0, 1, 2 for 1, 0, 1; what comes then is not trusted.
        let expected = Rates { asked: 2, predicted: 1, right: 0, wrong: 3, unknown: 3, skipped: 0 };
        assert_eq!((known.rates, known.answers, known.distrusted), (expected, 1, 1));
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room_by_bytes_by_entries_and_by_function() {
        let mut outputs = Outputs::new(8 * MANY);
        for number in 0..ENTRIES_MAX as u64 + 10 {
            outputs.learn(F, key(number), &answer(number), Rest::default());
            assert!(outputs.predict(7, &key(0)).is_some(), "it is used all the time");
        }
        assert_eq!(outputs.known()[0].answers, ENTRIES_MAX);
        assert!(outputs.predict(7, &key(1)).is_none());
        let large = |bytes: usize| answer("x".repeat(bytes));
        outputs.learn(F, key(0), &large(8 * MANY / ANSWER_PART), Rest::default());
        assert_eq!(outputs.predict(7, &key(0)), None, "it is too large, and the one before does not hold");
        for version in 0..FUNCTIONS_MAX as u64 + 10 {
            outputs.learn(Of { name: "g", version: 100 + version }, key(0), &large(10), Rest::default());
        }
        assert_eq!(outputs.functions.iter().count(), FUNCTIONS_MAX);
        assert!(outputs.functions.peek(7).is_none() && outputs.functions.peek(100).is_none());
    }

    #[test]
    fn the_bounds_hold_whatever_comes_and_a_function_leaves_room_for_others() {
        for seed in 0..10 {
            let (mut random, mut outputs) = (fastrand::Rng::with_seed(seed), Outputs::new(100_000));
            for _ in 0..3_000 {
                let version = random.u64(..12);
                let of = Of { name: "f", version };
                match random.u8(..20) {
                    0 => outputs.forget(version),
                    1 => _ = outputs.evict(),
                    2..8 => _ = outputs.predict(version, &key(random.u64(..200))),
                    _ => outputs.learn(of, key(random.u64(..200)), &answer("x".repeat(random.usize(..4_000))), Rest::default()),
                }
                assert!(outputs.bytes() <= 100_000, "seed {seed}: {} bytes", outputs.bytes());
                assert_eq!(
                    outputs.functions.iter().map(|(_, function)| function.bytes()).sum::<usize>(),
                    outputs.bytes(),
                    "seed {seed}"
                );
                for (_, function) in outputs.functions.iter() {
                    assert!(function.known.bytes() <= 100_000 / FUNCTION_PART, "seed {seed}");
                }
            }
            while outputs.evict() {}
            assert_eq!(outputs.bytes(), 0, "seed {seed}");
        }
    }

    #[test]
    fn what_the_last_run_with_an_input_has_read_is_known_and_counts() {
        let mut outputs = Outputs::new(MANY);
        let reads = |names: &[&str]| -> Arc<[BucketKey]> {
            let bucket = crate::kv::BucketName::new(b"b").unwrap();
            names.iter().map(|name| bucket.key(name.as_bytes()).unwrap()).collect()
        };
        let rest = |names: &[&str]| Rest { reads: reads(names), ..Rest::default() };
        outputs.learn(F, key(1), &answer(1), rest(&["a", "b"]));
        assert_eq!(outputs.reads(7, &key(1)), Some(reads(&["a", "b"])));
        let few = outputs.bytes();
        let names: Vec<String> = (0..30).map(|number| format!("key-{number}")).collect();
        outputs.learn(F, key(1), &answer(1), rest(&names.iter().map(String::as_str).collect::<Vec<_>>()));
        assert!(outputs.bytes() > few + 30 * 6);
        outputs.learn(F, key(1), &answer(2), Rest::default());
        assert_eq!(outputs.reads(7, &key(1)), None, "it has read nothing");
        assert_eq!(outputs.reads(7, &key(2)), None);
        assert_eq!(outputs.reads(8, &key(1)), None);
    }
}
