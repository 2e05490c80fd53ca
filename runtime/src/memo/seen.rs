//! What the runs of a function did, for `sledge explain-effects`.

use std::collections::BTreeSet;

use serde::Serialize;

use super::rule::Why;
use crate::host::{Effect, EffectTrace, HeadField};
use crate::kv::BucketKey;
use crate::txn::contention::alike;

/// Names of each kind that are listed; more are counted as that.
const NAMES_MAX: usize = 64;

/// What runs did so far.
#[derive(Debug, Default)]
pub struct Seen {
    runs: u64,
    repeatable: u64,
    refused: [u64; Why::ALL.len()],
    effects: BTreeSet<Effect>,
    head: Names,
    reads: Names,
    lists: Names,
    writes: Names,
}

/// Some names.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Names {
    /// The first of them.
    pub names: BTreeSet<String>,
    /// Whether there were more.
    pub has_more: bool,
}

/// The same as an operator gets it.
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    /// The setting.
    pub memo: &'static str,
    /// The developer's word.
    pub pure: bool,
    /// Whether an answer was wrong, so that there are no more.
    pub is_off: bool,
    /// Runs that were looked at.
    pub runs: u64,
    /// Those of them that depended on nothing else than their request and the store.
    pub repeatable: u64,
    /// Requests that were answered without a run: from the table, or by the run of an equal one.
    pub answered: u64,
    /// Why the others were not repeatable: code, number of runs, and meaning.
    pub refused: Vec<Refused>,
    /// What kinds of host functions they called.
    pub effects: Vec<String>,
    /// What they read of requests' heads.
    pub head: Names,
    /// Templates of the keys that they read, listed and wrote; `#` is a number.
    pub reads: Names,
    /// See there.
    pub lists: Names,
    /// See there.
    pub writes: Names,
    /// Entries of the table, and its bytes.
    pub entries: usize,
    /// See there.
    pub bytes: usize,
    /// The most that it may have.
    pub bytes_max: usize,
}

/// A reason, and how many runs it was that of.
#[derive(Clone, Debug, Serialize)]
pub struct Refused {
    /// Its name.
    pub reason: &'static str,
    /// Runs.
    pub runs: u64,
    /// What it means.
    pub meaning: &'static str,
}

impl Names {
    fn add(&mut self, name: String) {
        if self.names.len() < NAMES_MAX {
            self.names.insert(name);
        } else if !self.names.contains(&name) {
            self.has_more = true;
        }
    }

    fn add_keys<'a>(&mut self, keys: impl Iterator<Item = &'a BucketKey>) {
        keys.for_each(|key| self.add(alike(key)));
    }
}

impl Seen {
    /// Takes note of a run, and of why it was not repeatable.
    pub fn ran(&mut self, trace: &EffectTrace, why: Option<Why>) {
        self.runs += 1;
        match why {
            None => self.repeatable += 1,
            Some(why) => self.refused[why as usize] += 1,
        }
        self.effects.extend(Effect::ALL.into_iter().filter(|effect| trace.effects.contains(*effect)));
        trace.head.iter().for_each(|field| self.head.add(named(field)));
        self.reads.add_keys(trace.read.iter().map(|(key, _)| key));
        self.writes.add_keys(trace.written.iter());
        for (bucket, prefix) in &trace.listed {
            if let Ok(first) = bucket.key(prefix) {
                self.lists.add(format!("{}*", alike(&first)));
            }
        }
        if let Some(commit) = &trace.transaction {
            self.reads.add_keys(commit.expected.iter().map(|(key, _)| key));
            self.writes.add_keys(commit.changes.iter().map(|(key, _)| key));
        }
    }

    /// All of it.
    #[must_use]
    pub fn explained(&self) -> Explained {
        let refused = Why::ALL.into_iter().zip(self.refused).filter(|(_, runs)| *runs > 0);
        let refused = refused.map(|(why, runs)| Refused { reason: why.name(), runs, meaning: why.meaning() });
        Explained {
            memo: "",
            pure: false,
            is_off: false,
            runs: self.runs,
            repeatable: self.repeatable,
            answered: 0,
            refused: refused.collect(),
            effects: self.effects.iter().map(|effect| format!("{effect:?}").to_lowercase()).collect(),
            head: self.head.clone(),
            reads: self.reads.clone(),
            lists: self.lists.clone(),
            writes: self.writes.clone(),
            entries: 0,
            bytes: 0,
            bytes_max: 0,
        }
    }
}

fn named(field: &HeadField) -> String {
    match field {
        HeadField::Method => "the method".to_owned(),
        HeadField::Target => "the path".to_owned(),
        HeadField::Header(name) => format!("header {name}"),
        HeadField::Headers => "all headers".to_owned(),
        HeadField::Trailer(name) => format!("trailer {name}"),
    }
}
