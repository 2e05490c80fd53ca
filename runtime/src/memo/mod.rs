//! Answers from a table: a request that equals an earlier one is answered with what that run wrote, without a sandbox, where nothing can have changed meanwhile.
//!
//! ```text
//!   worker --Asked--> Memo::look --entry, `check` of the versions that it read--> reply with `Cache-Status: sledge; hit`
//!                         | miss             a request, or a commit          | stale
//!                         |--> an equal one runs: it waits for that (`flight`) ---> reply with `Cache-Status: sledge; fwd=miss; collapsed`
//!                         '--> the invocation runs, watched --EffectTrace--> Memo::learn
//! ```
//!
//! Each version of a function has a table of its own, so tenant, code and configuration are a part of every key, and a deployment, a rollback or a reload leaves no entry behind.
//!
//! Invariants:
//! * Only what a run read decides what it answers: its body, parts of its request's head, entries of the store, the functions that it called ([`callees`]). Each of them is in the key, or is looked at again before the answer is given ([`key`],
//!   [`Entry::store`]). A run that did anything else is not remembered ([`rule`]); an effect without a rule does not compile.
//! * An entry is given only to a request that had arrived before its versions were looked at: the answer is what a run at that moment would have been.
//! * What a run has changed of the store is changed again, by one commit that expects what it has read ([`check`]): the answer leaves after that, or the request runs.
//! * Nothing of a request but a keyed hash is kept, with a key that this process alone has.
//!
//! [`table`] is the entries and their bounds, [`flight`] equal requests at the same time, [`seen`] what an operator is told about the runs.

pub mod callees;
pub mod check;
pub mod entry;
pub mod flight;
pub mod key;
pub mod room;
pub mod rule;
pub mod seen;
pub(crate) mod state;
pub mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use sledge_sandbox::Budget;

use crate::health::{Health, Subject};
use crate::host::{Body, EffectTrace, RequestHead};
use crate::kv::Space;
use crate::reply::{Content, ReplyHead};

use self::check::{Check, Standing};
use self::flight::Arrival;
use self::flight::handles::{Follower, Lead};
use self::flight::trust::Trust;
use self::key::{Asker, Digest, Key, Vary};
use self::rule::{Basis, Ended, Why};
use self::seen::{Explained, Seen};
use self::state::{State, lock};
use self::table::Admitted;

pub use self::entry::{Entry, How};

/// One answer of so many is compared with a run, where the developer says that the function is pure.
pub const COMPARED: u64 = 64;

/// What a function's operator wants of the table.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether requests are answered from it; else runs are only looked at.
    pub answers: bool,
    /// Whether the developer says that clock, random numbers and the log do not count.
    pub pure: bool,
    /// Bytes of all its entries, at most.
    pub bytes_max: usize,
    /// Whether everything that a request's head says is a part of the key: of a component, which has many ways to it.
    pub whole_head: bool,
}

/// Whose table it is.
#[derive(Clone, Debug)]
pub struct Of {
    /// The function's name.
    pub function: String,
    /// The number of its version.
    pub version: u64,
    /// Where it is said that it was switched off.
    pub health: Option<Arc<Health>>,
    /// What its table shares with all else that the server keeps.
    pub budget: Option<Arc<Budget>>,
}

/// What one version of a function has answered, and what its runs did.
pub struct Memo {
    of: Of,
    settings: Settings,
    asker: Asker,
    state: Mutex<State>,
    seen: Mutex<Seen>,
    /// Whether requests wait for equal ones.
    trust: Trust,
    /// Requests that were answered without a run.
    answered: AtomicU64,
    /// Answers of what is said to be pure, for every 64th to be compared.
    answers: AtomicU64,
    /// Whether an answer was wrong: then there are no more.
    is_off: AtomicBool,
}

/// A request that was looked for.
#[derive(Debug)]
pub struct Asked {
    body: Digest,
    /// What it says beside its body, for a function that asks.
    head: Option<Box<RequestHead>>,
    /// What its run is compared with.
    expected: Option<Arc<Entry>>,
    /// Equal requests wait for its run.
    lead: Option<Lead>,
}

/// What a request finds besides itself.
#[derive(Clone, Copy)]
pub struct Now<'a> {
    /// What its tenant has in the store.
    pub space: Option<&'a Space>,
    /// The version of a function that a call by that name would reach.
    pub version: &'a dyn Fn(&str) -> Option<u64>,
}

/// What a look comes to.
#[derive(Debug)]
pub enum Look {
    /// This answers it.
    Hit(Arc<Entry>),
    /// This, which the run has left that it waited for.
    Collapsed(Arc<Entry>),
    /// This may answer it: the store decides.
    Check(Box<Check>),
    /// It waits for the run of an equal request.
    Wait(Follower),
    /// It runs, and is remembered.
    Run(Box<Asked>),
    /// It runs, unwatched.
    Bypass,
}

/// What became of a request or a run, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was answered from the table.
    Hit,
    /// The same, and what its run has changed of the store was changed again.
    Replayed,
    /// The run of an equal request has answered it.
    Collapsed,
    /// There was no entry for it.
    Miss,
    /// There was one, and what that had read of the store was changed.
    Stale,
    /// There was one, and the request ran to be compared with it.
    Compared,
    /// Its run was remembered.
    Stored,
    /// So many entries made room for it.
    Evicted(u64),
    /// Its run was not remembered, for that reason.
    Refused(Why),
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo").field("of", &self.of.function).field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Memo {
    /// An empty one.
    #[must_use]
    pub fn new(of: Of, settings: Settings) -> Arc<Memo> {
        let vary = Arc::new(Vary::new(settings.whole_head));
        let state = State::new(vary, settings.bytes_max, of.budget.clone());
        let memo = Arc::new(Memo {
            of,
            settings,
            asker: Asker::random(),
            state: Mutex::new(state),
            seen: Mutex::default(),
            trust: Trust::default(),
            answered: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            is_off: AtomicBool::new(false),
        });
        if let Some(budget) = &memo.of.budget {
            let owner: Weak<Memo> = Arc::downgrade(&memo);
            budget.lend(owner);
        }
        memo
    }

    /// Looks for an answer to a request. `may_wait`: whether it may wait for the run of an equal one; `note` learns what became of it.
    pub fn look(
        self: &Arc<Memo>,
        body: &Body,
        head: Option<&RequestHead>,
        now: Now<'_>,
        may_wait: bool,
        mut note: impl FnMut(Event),
    ) -> Look {
        // What has not come cannot be compared, and what comes behind a body is in no key.
        if !body.is_complete() {
            return Look::Bypass;
        }
        let body = self.asker.body(body);
        let mut asked = Box::new(Asked { body, head: None, expected: None, lead: None });
        if !self.gives_answers() {
            note(Event::Miss);
            asked.head = head.cloned().map(Box::new);
            return Look::Run(asked);
        }
        let vary = Arc::clone(&lock(&self.state).vary);
        let key = self.asker.key(&vary, body, head);
        let found = {
            let mut state = lock(&self.state);
            state.table.get(&key).ok_or_else(|| self.arrives(&mut state, key, may_wait))
        };
        let arrival = match found {
            Ok(entry) => match self.standing(&entry, now) {
                Standing::Holds | Standing::Asks if self.is_compared() => {
                    note(Event::Compared);
                    asked.expected = Some(entry);
                    Arrival::Runs
                }
                Standing::Holds => {
                    note(Event::Hit);
                    self.has_answered();
                    return Look::Hit(entry);
                }
                Standing::Asks => return Look::Check(Box::new(Check { asked, key, entry })),
                Standing::Stale => {
                    note(Event::Stale);
                    let mut state = lock(&self.state);
                    state.forget(&key, &entry);
                    self.arrives(&mut state, key, may_wait)
                }
                // The store says nothing now; it may later.
                Standing::Unknown => {
                    note(Event::Stale);
                    Arrival::Runs
                }
            },
            Err(arrival) => {
                if !matches!(arrival, Arrival::Follows(_)) {
                    note(Event::Miss);
                }
                arrival
            }
        };
        asked.head = head.cloned().map(Box::new);
        match arrival {
            Arrival::Runs => Look::Run(asked),
            Arrival::Leads(id) => {
                asked.lead = Some(Lead::new(self, id, &vary));
                Look::Run(asked)
            }
            Arrival::Follows(ticket) => Look::Wait(Follower::new(self, ticket, (key, vary), asked)),
        }
    }

    /// Learns what a request's run did and wrote. `note` learns what becomes of it. Gives what answers requests that wait for the run: to be [given](Asked::land) to them.
    pub fn learn(
        &self,
        asked: &mut Asked,
        trace: &EffectTrace,
        ended: &Ended<'_>,
        mut note: impl FnMut(Event),
    ) -> Option<Arc<Entry>> {
        let judged = rule::judge(trace, ended, self.settings.pure);
        lock(&self.seen).ran(trace, judged.as_ref().err().copied());
        let (basis, content) = match (judged, ended.content) {
            (Ok(basis), Some(content)) => (basis, content),
            (Err(why), _) => {
                self.refused(why, ended, note);
                return None;
            }
            (Ok(_), None) => return None,
        };
        let digest = self.asker.reply(ended.head, content);
        if let Some(expected) = &asked.expected {
            // Where the store was changed meanwhile the two had not the same to go by.
            if expected.rests_on(&basis) && (expected.digest != digest || expected.store.changes != basis.store.changes) {
                self.switch_off();
            }
            return None;
        }
        if !self.gives_answers() {
            return None;
        }
        // What a run has changed, each of those that equal it changes for itself: it need not wait.
        self.trust.ran(basis.store.changes.is_empty());
        let (entry, admitted) = match self.remember(asked, trace, ended.head, content, (basis, digest)) {
            Ok(remembered) => remembered,
            Err(why) => {
                self.refused(why, ended, note);
                return None;
            }
        };
        if let Admitted::Now { evicted } = admitted {
            note(Event::Stored);
            if evicted > 0 {
                note(Event::Evicted(evicted));
            }
        }
        entry
    }

    /// What an operator is told.
    #[must_use]
    pub fn explained(&self) -> Explained {
        let state = lock(&self.state);
        let (entries, bytes) = (state.table.len(), state.table.bytes());
        drop(state);
        let mut explained = lock(&self.seen).explained();
        (explained.entries, explained.bytes, explained.bytes_max) = (entries, bytes, self.settings.bytes_max);
        explained.memo = if self.settings.answers { "auto" } else { "observe" };
        (explained.pure, explained.is_off) = (self.settings.pure, self.is_off.load(Ordering::Relaxed));
        explained.answered = self.answered.load(Ordering::Relaxed);
        explained
    }

    /// Bytes that the table has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        lock(&self.state).table.bytes()
    }

    /// Drops all entries: its version is served no longer.
    pub fn clear(&self) {
        let mut state = lock(&self.state);
        state.table.clear();
        state.fit();
    }

    /// Whether the developer says that clock, random numbers and the log do not count.
    #[must_use]
    pub const fn is_pure(&self) -> bool {
        self.settings.pure
    }

    fn gives_answers(&self) -> bool {
        // Relaxed, as below: an answer that was given at the same time was given before.
        self.settings.answers && !self.is_off.load(Ordering::Relaxed)
    }

    /// Whether this answer is one that is compared with a run.
    fn is_compared(&self) -> bool {
        self.settings.pure && self.answers.fetch_add(1, Ordering::Relaxed) % COMPARED == COMPARED - 1
    }

    /// One more request was answered without a run.
    fn has_answered(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether requests wait for equal ones now.
    fn may_wait(&self) -> bool {
        self.trust.is_given() && self.gives_answers()
    }

    fn arrives(&self, state: &mut State, key: Key, may_follow: bool) -> Arrival {
        if self.may_wait() { state.flights.arrive(key, may_follow) } else { Arrival::Runs }
    }

    fn refused(&self, why: Why, ended: &Ended<'_>, mut note: impl FnMut(Event)) {
        note(Event::Refused(why));
        // That a client has gone says nothing about the function.
        if !ended.is_cancelled {
            self.trust.ran(false);
        }
    }

    /// Keeps an answer, or notes that there was one. Gives it where requests wait for it.
    fn remember(
        &self,
        asked: &mut Asked,
        trace: &EffectTrace,
        head: Option<&ReplyHead>,
        content: &Content,
        (basis, digest): (Basis, Digest),
    ) -> Result<(Option<Arc<Entry>>, Admitted), Why> {
        let mut state = lock(&self.state);
        if let Some(wider) = state.vary.wider(&trace.head)? {
            // The keys of all entries lack what this run has read.
            state.table.clear();
            state.vary = Arc::new(wider);
            self.trust.widened();
        }
        let key = self.asker.key(&state.vary, asked.body, asked.head.as_deref());
        let bytes = entry::bytes(head, content, &basis);
        if bytes > state.table.entry_bytes_max() {
            return Err(Why::Large);
        }
        let make = || Arc::new(Entry::new(head, content, basis, digest));
        let is_followed = asked.lead.as_mut().is_some_and(|lead| lead.close(&mut state.flights));
        // Requests that wait may differ in what they do not know to be read.
        let waited_for = is_followed && matches!(asked.lead.as_ref().map(|lead| lead.vary.wider(&trace.head)), Some(Ok(None)));
        if !waited_for {
            let admitted = state.table.admit(key, bytes, make);
            return Ok((None, state.fitted(admitted)));
        }
        let entry = make();
        // Its key has come more than once.
        state.table.expect(key);
        let admitted = state.table.admit(key, bytes, || Arc::clone(&entry));
        Ok((Some(entry), state.fitted(admitted)))
    }

    fn switch_off(&self) {
        if self.is_off.swap(true, Ordering::Relaxed) {
            return;
        }
        self.clear();
        let Of { function, version, health, .. } = &self.of;
        let reason = "`pure = true` does not hold: a run answered otherwise than an equal request before, so its version is no longer answered from the table; leave `pure` out, or find what \
                      the reply depends on";
        tracing::error!(function, version, reason, "answers from the table are off");
        if let Some(health) = health {
            health.report(Subject::Answers(function.clone(), *version), reason);
        }
    }
}

impl Drop for Memo {
    fn drop(&mut self) {
        if let (true, Some(health)) = (*self.is_off.get_mut(), &self.of.health) {
            health.clear(&Subject::Answers(self.of.function.clone(), self.of.version));
        }
    }
}
