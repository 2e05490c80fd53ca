//! Commits to Redis: each is a script; plain ones that wait at the same time may be one together.
//!
//! A commit that is lost on its way may be made later. One with an id is asked about until it is known what became of it. Where reads are [joined](crate::kv::joined), every write names a time from which on Redis
//! refuses it, so that slots that it keeps closed can be [opened again](super::reopen).

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::{FromRedisValue, RedisError, Script, ScriptInvocation};

use super::merged::{Together, WRITES_MAX};
use super::shares::{Keys, Shares};
use super::{Space, not_ours};
use crate::kv::{BUCKETS_MAX, COMMIT_KNOWN, Change, Commit, Fence, KvError, Outcome, Record};

/// How often a commit is sent that the server knows by an id, and how long apart. All tries together take less time than [it is known](COMMIT_KNOWN).
const COMMIT_TRIES: usize = 4;
const COMMIT_PAUSE: Duration = Duration::from_millis(100);
/// Versions begin by chance somewhere from this on to twice as much, and the next one is larger by as much as that, by chance too: after the server has lost commits, or all it had, other commits
/// do not get their versions. So a version that was read says what was read, also over a failover. There are 2^43 of them.
const FIRST_MIN: u64 = 1 << 40;
const STEP_MAX: u64 = 1 << 20;

static COMMIT: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("../change.lua"), include_str!("../commit.lua"))));
static PUTS: LazyLock<Script> =
    LazyLock::new(|| Script::new(concat!(include_str!("../change.lua"), include_str!("../puts.lua"))));

/// Why a commit has no outcome.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    error: KvError,
    /// It was sent, and no answer came: it may have been made, or may still be until that time by Redis' clock. Without a time it was not made.
    made_until_ms: Option<u64>,
}

/// A script that makes commits, ready to be sent.
struct Attempt {
    script: ScriptInvocation<'static>,
    /// Whether it can make them: where Redis' time or incarnation are not known yet, it is only told them.
    can_be_made: bool,
    /// Until when, by Redis' clock.
    until_ms: u64,
}

/// What the server answers to a commit, in words.
type Words = Vec<String>;

/// What it answers to a script.
trait Answer: FromRedisValue {
    /// What time it is for Redis, and which incarnation of the store it has, if the script has come too late for either.
    fn late(&self) -> Option<(u64, u64)>;
}

impl Answer for Words {
    fn late(&self) -> Option<(u64, u64)> {
        let [first, redis_ms, incarnation] = &**self else { return None };
        if first == "late" { redis_ms.parse().ok().zip(incarnation.parse().ok()) } else { None }
    }
}

impl Answer for Vec<Words> {
    fn late(&self) -> Option<(u64, u64)> {
        if let [answer] = &**self { answer.late() } else { None }
    }
}

/// Plain commits can be sent together: none depends on what another expects.
impl Together for Commit {
    type Answer = Words;
    type Error = Failure;

    fn size(&self) -> usize {
        self.changes.len()
    }

    fn is_same(&self, _: &Commit) -> bool {
        false
    }

    fn without_answer() -> Failure {
        // The answer was not one of ours: what it is of was not made by our script.
        Failure { error: not_ours(), made_until_ms: None }
    }
}

/// Whether it only changes a few keys.
fn is_plain(commit: &Commit) -> bool {
    let Commit { expected, listed, changes, id, records, fence } = commit;
    let expects_nothing = expected.is_empty() && listed.is_empty() && records.is_empty() && id.is_none() && fence.is_none();
    expects_nothing && (1..=WRITES_MAX).contains(&changes.len())
}

impl Space {
    /// Makes a commit. Dropping the future does not take it back.
    ///
    /// # Errors
    /// When it is too large, there is no room, it adds to what is no number, its lease is over, or the server cannot be asked; then it may have been made.
    pub async fn commit(self, mut commit: Commit) -> Result<Outcome, KvError> {
        commit.check()?;
        if commit.fence.is_none() && !commit.records.is_empty() {
            // Records that another server owns must not be written.
            return Err(KvError::Fenced);
        }
        if commit.fence.is_some() && commit.id.is_none() {
            commit.id = Some(fastrand::u128(..).to_ne_bytes());
        }
        let Some(closed) = self.joined.as_ref().and_then(|joined| joined.close(commit.changes.iter().map(|(key, _)| key))) else {
            return self.make(commit).await.map_err(|failure| failure.error);
        };
        // It goes on by itself: what became of it has to be learnt, also if its function does not wait for that.
        let made = tokio::spawn(async move {
            let made = self.make(commit).await;
            match made.as_ref().err().and_then(|failure| failure.made_until_ms) {
                Some(until_ms) => {
                    closed.lost(until_ms);
                    self.redis.reopen();
                }
                None => closed.ended(),
            }
            made.map_err(|failure| failure.error)
        });
        made.await.unwrap_or_else(|error| Err(KvError::Unknown(error.to_string())))
    }

    async fn make(&self, commit: Commit) -> Result<Outcome, Failure> {
        let fence = commit.fence.clone();
        let answer = match &self.merging {
            Some(merging) if is_plain(&commit) => {
                let space = self.clone();
                Arc::clone(&merging.commits).ask(commit, |commits| space.make_several(commits)).await?
            }
            _ => self.answer(commit.id.is_some(), || self.attempt(&commit)).await?,
        };
        self.outcome(fence.as_ref(), &answer).map_err(|error| Failure { error, made_until_ms: None })
    }

    /// Plain commits one after the other: what the server answers to each.
    async fn make_several(self, commits: Vec<Commit>) -> Result<Vec<Words>, Failure> {
        if let [commit] = &*commits {
            return Ok(vec![self.answer(false, || self.attempt(commit)).await?]);
        }
        self.answer(false, || self.attempt_several(&commits)).await
    }

    /// Whether a commit says until when it may be made: one that is asked about again, and one that keeps slots closed until it cannot be made any more.
    const fn names_a_time(&self, commit: &Commit) -> bool {
        commit.id.is_some() || (self.joined.is_some() && !commit.changes.is_empty())
    }

    /// Until when what is sent now may be made, by Redis' clock, and by which incarnation; zero where that is not known.
    fn bounds(&self) -> (u64, u64) {
        // Relaxed: a number that orders nothing else.
        (self.redis.clock.not_after_ms(), self.keys.told.load(Ordering::Relaxed))
    }

    fn attempt(&self, commit: &Commit) -> Attempt {
        let (not_after_ms, told) = self.bounds();
        Attempt::of(self.script(commit, not_after_ms, told), self.names_a_time(commit), (not_after_ms, told))
    }

    fn attempt_several(&self, commits: &[Commit]) -> Attempt {
        let (names_a_time, bounds) = (self.joined.is_some(), self.bounds());
        let mut script = self.begin_script(&PUTS);
        if names_a_time {
            script.key(&self.keys.incarnation);
        }
        begin_arguments(&mut script, bounds);
        script.arg(self.redis.limits.tenant_bytes_max).arg(commits.len());
        commits.iter().for_each(|commit| changes(&mut script, commit));
        Attempt::of(script, names_a_time, bounds)
    }

    /// A script with the keys that each has.
    fn begin_script(&self, script: &'static Script) -> ScriptInvocation<'static> {
        let mut script = script.prepare_invoke();
        let Keys { values, order, version, bytes, scratch, buckets, .. } = &*self.keys;
        for key in [values, order, version, bytes, scratch, buckets] {
            script.key(key);
        }
        script
    }

    /// The script that makes a commit; if that names a time, not later than that, and in that incarnation only.
    pub(super) fn script(&self, commit: &Commit, not_after_ms: u64, told: u64) -> ScriptInvocation<'static> {
        let mut script = self.begin_script(&COMMIT);
        if self.names_a_time(commit) {
            script.key(&self.keys.incarnation);
        }
        if let Some(id) = &commit.id {
            script.key([self.keys.commit.as_bytes(), id].concat());
        }
        if commit.fence.is_some() {
            [Shares::RECORDS, Shares::RECORD_KEYS, Shares::OWNER, Shares::SEQUENCE].iter().for_each(|key| {
                script.key(*key);
            });
        }
        begin_arguments(&mut script, (not_after_ms, told));
        if let Some(fence) = &commit.fence {
            script.arg(fence.token()).arg(fence.seen());
        }
        script.arg(self.redis.limits.tenant_bytes_max).arg(commit.expected.len());
        for (key, version) in &commit.expected {
            script.arg(&*key.0).arg(*version);
        }
        script.arg(commit.listed.len());
        for (bucket, version) in &commit.listed {
            script.arg(&*bucket.0).arg(*version);
        }
        changes(&mut script, commit);
        if commit.fence.is_some() {
            script.arg(commit.records.len());
            for Record { key, value } in &commit.records {
                script.arg(&**key).arg(if value.is_some() { "p" } else { "d" }).arg(value.as_deref().unwrap_or_default());
            }
        }
        script
    }

    /// What the script's answer to a commit says.
    fn outcome(&self, fence: Option<&Fence>, answer: &[String]) -> Result<Outcome, KvError> {
        let number = |index: usize| answer.get(index).and_then(|text| text.parse().ok());
        match (answer.first().map(String::as_str), number(1)) {
            (Some("done"), Some(version)) => {
                let sum = answer.get(2).and_then(|text| text.parse().ok()).unwrap_or(0);
                if let Some((fence, sequence)) = fence.zip(number(3)) {
                    fence.saw(sequence);
                }
                Ok(Outcome::Committed { version, sum })
            }
            (Some("conflict"), Some(version)) => {
                let index = answer.get(2).and_then(|text| text.parse().ok()).unwrap_or(0);
                Ok(Outcome::Conflict { version, index })
            }
            (Some("full"), _) => Err(KvError::Full { key: "kv_tenant_bytes_max", bytes_max: self.redis.limits.tenant_bytes_max }),
            (Some("fenced"), _) => Err(KvError::Fenced),
            (Some("number"), _) => Err(KvError::NotANumber),
            (Some("overflow"), _) => Err(KvError::Overflow),
            _ => Err(not_ours()),
        }
    }

    /// What the server answers to a script that makes commits. One that it knows by an id is sent again where the answer does not come: it is made once, and the answer to it is the same.
    async fn answer<A: Answer>(&self, is_known: bool, make: impl Fn() -> Attempt) -> Result<A, Failure> {
        let tries_max = if is_known { COMMIT_TRIES } else { 1 };
        let (mut tries, mut was_sent, mut is_late) = (tries_max, false, false);
        let mut attempt = make();
        loop {
            tries -= 1;
            let error: RedisError = match self.redis.connection() {
                Ok(mut connection) => match attempt.script.invoke_async::<A>(&mut connection).await {
                    Ok(answer) => match answer.late() {
                        None => return Ok(answer),
                        // It may have been made before.
                        Some(_) if was_sent => {
                            let why = "Redis was asked again too late, or was emptied meanwhile";
                            return Err(Failure {
                                error: KvError::Unknown(why.to_owned()),
                                made_until_ms: Some(attempt.until_ms),
                            });
                        }
                        Some(_) if is_late => {
                            let why = "the clock of Redis is being set, or Redis is being emptied";
                            return Err(Failure { error: KvError::Unavailable(why.to_owned()), made_until_ms: None });
                        }
                        Some((redis_ms, incarnation)) => {
                            self.redis.clock.learn(redis_ms);
                            // Relaxed: as above.
                            self.keys.told.store(incarnation, Ordering::Relaxed);
                            attempt = make();
                            (is_late, tries) = (true, tries_max);
                            continue;
                        }
                    },
                    Err(error) => error,
                },
                Err(error) => error,
            };
            // Whatever the server says itself, it has not done it.
            let is_lost = error.is_io_error() || error.is_timeout() || error.is_connection_dropped();
            was_sent |= is_lost && attempt.can_be_made && !error.is_connection_refusal();
            if is_lost && tries > 0 {
                tracing::debug!(%error, "the key-value store is asked again what became of a commit");
            } else {
                let error = if was_sent && is_known { KvError::Unknown(error.to_string()) } else { error.into() };
                return Err(Failure { error, made_until_ms: was_sent.then_some(attempt.until_ms) });
            }
            tokio::time::sleep(COMMIT_PAUSE).await;
        }
    }
}

impl Attempt {
    fn of(script: ScriptInvocation<'static>, names_a_time: bool, (not_after_ms, told): (u64, u64)) -> Attempt {
        let can_be_made = !names_a_time || (not_after_ms != 0 && told != 0);
        Attempt { script, can_be_made, until_ms: if names_a_time { not_after_ms } else { u64::MAX } }
    }
}

/// The arguments with which each script begins.
fn begin_arguments(script: &mut ScriptInvocation<'static>, (not_after_ms, told): (u64, u64)) {
    script
        .arg(BUCKETS_MAX)
        .arg(COMMIT_KNOWN.as_millis() as u64)
        .arg(not_after_ms)
        .arg(told)
        .arg(fastrand::u64(1..))
        .arg(fastrand::u64(FIRST_MIN..2 * FIRST_MIN))
        .arg(fastrand::u64(1..=STEP_MAX));
}

/// What a commit changes.
fn changes(script: &mut ScriptInvocation<'static>, commit: &Commit) {
    script.arg(commit.changes.len());
    for (key, change) in &commit.changes {
        script.arg(&*key.0);
        match change {
            Change::Put(value) => script.arg("p").arg(&**value),
            Change::Delete => script.arg("d").arg(""),
            Change::Add(delta) => script.arg("a").arg(*delta),
        };
    }
}
