//! Answers from a table: a request that equals an earlier one is answered with what that run wrote, without a sandbox, where nothing can have changed meanwhile.
//!
//! ```text
//!   worker --Asked--> Memo::look --entry, `check` of the versions that it read--> reply with `Cache-Status: sledge; hit`
//!                         | miss             a request, or a commit          | stale
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
//! [`table`] is the entries and their bounds, [`seen`] what an operator is told about the runs.

pub mod callees;
pub mod check;
pub mod key;
pub mod rule;
pub mod seen;
pub mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};

use crate::health::{Health, Subject};
use crate::host::{Body, EffectTrace, RequestHead};
use crate::kv::{Commit, Space};
use crate::reply::{Content, ReplyHead};

use self::callees::Version;
use self::check::Check;
use self::key::{Asker, Digest, Key, Vary};
use self::rule::{Basis, Ended, Why};
use self::seen::{Explained, Seen};
use self::table::{Admitted, Table};

/// RFC 9211: how a cache has handled a request.
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// One answer of so many is compared with a run, where the developer says that the function is pure.
pub const COMPARED: u64 = 64;
/// Parts of an entry that are not its reply, about.
const ENTRY_BYTES: usize = 256;
/// Bytes of a version of a callee beside its name, about.
const CALLEE_BYTES: usize = 48;

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
}

/// What one version of a function has answered, and what its runs did.
pub struct Memo {
    of: Of,
    settings: Settings,
    asker: Asker,
    state: Mutex<State>,
    seen: Mutex<Seen>,
    /// Answers that were given, for every 64th to be compared.
    answers: AtomicU64,
    /// Whether an answer was wrong: then there are no more.
    is_off: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// What requests are told apart by.
    vary: Arc<Vary>,
    table: Table<Arc<Entry>>,
}

/// A remembered reply.
#[derive(Debug)]
pub struct Entry {
    /// What it says about itself, with `Cache-Status`.
    pub head: ReplyHead,
    /// Its body.
    pub body: Bytes,
    /// What the run read of the store, versions of keys and of sets of keys; and what it changed there.
    pub store: Commit,
    /// The versions of the functions that it called.
    pub callees: Box<[Version]>,
    /// Of status, head and body, before anything was added.
    digest: Digest,
}

/// A request that was looked for.
#[derive(Debug)]
pub struct Asked {
    body: Digest,
    /// What it says beside its body, for a function that asks.
    head: Option<Box<RequestHead>>,
    /// What its run is compared with.
    expected: Option<Arc<Entry>>,
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
    /// This may answer it: the store decides.
    Check(Box<Check>),
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
    pub fn new(of: Of, settings: Settings) -> Memo {
        let vary = Arc::new(Vary::new(settings.whole_head));
        let state = State { vary, table: Table::new(settings.bytes_max) };
        Memo {
            of,
            settings,
            asker: Asker::random(),
            state: Mutex::new(state),
            seen: Mutex::default(),
            answers: AtomicU64::new(0),
            is_off: AtomicBool::new(false),
        }
    }

    /// Looks for an answer to a request. `note` learns what became of it.
    pub fn look(&self, body: &Body, head: Option<&RequestHead>, now: Now<'_>, mut note: impl FnMut(Event)) -> Look {
        // What has not come cannot be compared, and what comes behind a body is in no key.
        if !body.is_complete() {
            return Look::Bypass;
        }
        let body = self.asker.body(body);
        let mut asked = Box::new(Asked { body, head: None, expected: None });
        match self.gives_answers().then(|| self.find(&asked, head)).flatten() {
            None => note(Event::Miss),
            Some((key, entry)) if !entry.has_callees_of(now) => {
                self.forget(&key, &entry);
                note(Event::Stale);
            }
            Some((key, entry)) if entry.takes_time(now.space) => {
                if !self.is_compared() {
                    return Look::Check(Box::new(Check { asked, key, entry }));
                }
                note(Event::Compared);
                asked.expected = Some(entry);
            }
            Some((key, entry)) => match entry.is_current(now.space) {
                Some(true) if self.is_compared() => {
                    note(Event::Compared);
                    asked.expected = Some(entry);
                }
                Some(true) => {
                    note(Event::Hit);
                    lock(&self.seen).answered += 1;
                    return Look::Hit(entry);
                }
                Some(false) => {
                    self.forget(&key, &entry);
                    note(Event::Stale);
                }
                // The store says nothing now; it may later.
                None => note(Event::Stale),
            },
        }
        asked.head = head.cloned().map(Box::new);
        Look::Run(asked)
    }

    /// Learns what a request's run did and wrote. `note` learns what becomes of it.
    pub fn learn(&self, asked: &Asked, trace: &EffectTrace, ended: &Ended<'_>, mut note: impl FnMut(Event)) {
        let judged = rule::judge(trace, ended, self.settings.pure);
        lock(&self.seen).ran(trace, judged.as_ref().err().copied());
        let basis = match judged {
            Ok(basis) => basis,
            Err(why) => return note(Event::Refused(why)),
        };
        let Some(content) = ended.content else { return };
        let digest = self.asker.reply(ended.head, content);
        if let Some(expected) = &asked.expected {
            // Where the store was changed meanwhile the two had not the same to go by.
            let Basis { store, callees } = &basis;
            let read_the_same = expected.store.expected == store.expected && expected.store.listed == store.listed;
            let had_the_same = read_the_same && *expected.callees == **callees;
            if had_the_same && (expected.digest != digest || expected.store.changes != store.changes) {
                self.switch_off();
            }
            return;
        }
        if !self.gives_answers() {
            return;
        }
        match self.remember(asked, trace, ended.head, content, (basis, digest)) {
            Ok(Admitted::Later) => {}
            Ok(Admitted::Now { evicted }) => {
                note(Event::Stored);
                if evicted > 0 {
                    note(Event::Evicted(evicted));
                }
            }
            Err(why) => note(Event::Refused(why)),
        }
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
        explained
    }

    /// Bytes that the table has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        lock(&self.state).table.bytes()
    }

    /// Drops all entries: its version is served no longer.
    pub fn clear(&self) {
        lock(&self.state).table.clear();
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

    fn is_compared(&self) -> bool {
        self.settings.pure && self.answers.fetch_add(1, Ordering::Relaxed) % COMPARED == COMPARED - 1
    }

    fn find(&self, asked: &Asked, head: Option<&RequestHead>) -> Option<(Key, Arc<Entry>)> {
        let vary = Arc::clone(&lock(&self.state).vary);
        let key = self.asker.key(&vary, asked.body, head);
        let entry = lock(&self.state).table.get(&key)?;
        Some((key, entry))
    }

    fn remember(
        &self,
        asked: &Asked,
        trace: &EffectTrace,
        head: Option<&ReplyHead>,
        content: &Content,
        (Basis { store, callees }, digest): (Basis, Digest),
    ) -> Result<Admitted, Why> {
        let mut state = lock(&self.state);
        if let Some(wider) = state.vary.wider(&trace.head)? {
            // The keys of all entries lack what this run has read.
            state.table.clear();
            state.vary = Arc::new(wider);
        }
        let key = self.asker.key(&state.vary, asked.body, asked.head.as_deref());
        let bytes = ENTRY_BYTES
            + size(content)
            + store.bytes()
            + callees.iter().map(|(name, _)| CALLEE_BYTES + name.len()).sum::<usize>()
            + head.map_or(0, head_bytes);
        if bytes > state.table.entry_bytes_max() {
            return Err(Why::Large);
        }
        let said = if store.changes.is_empty() { "sledge; hit" } else { "sledge; hit; detail=replayed" };
        let entry = || {
            let mut head = head.cloned().unwrap_or_default();
            // One that has no room for it says nothing.
            let _ = head.headers.put(CACHE_STATUS, HeaderValue::from_static(said), true);
            Arc::new(Entry { head, body: copied(content), store, callees: callees.into(), digest })
        };
        Ok(state.table.admit(key, bytes, entry))
    }

    fn switch_off(&self) {
        if self.is_off.swap(true, Ordering::Relaxed) {
            return;
        }
        self.clear();
        let Of { function, version, health } = &self.of;
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

fn size(content: &Content) -> usize {
    match content {
        Content::Whole(bytes) => bytes.len(),
        Content::Pieces(pieces) => pieces.0.iter().map(Bytes::len).sum(),
        Content::Stream(_) => 0,
    }
}

/// A copy: what a reply is written to is used again.
fn copied(content: &Content) -> Bytes {
    match content {
        Content::Whole(bytes) => Bytes::copy_from_slice(bytes),
        Content::Pieces(pieces) => pieces.join(),
        Content::Stream(_) => Bytes::new(),
    }
}

fn head_bytes(head: &ReplyHead) -> usize {
    head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 2 * size_of::<Bytes>()).sum()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is done under these locks cannot be half done, but by a bug; what is looked up then is still compared.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
