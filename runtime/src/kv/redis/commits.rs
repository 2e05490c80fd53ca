//! Commits to Redis: each is a script.
//!
//! A commit that is lost on its way may be made later. One with an id is asked about until it is known what became of it. Where reads are [joined](crate::kv::joined), every write names a time from which on Redis
//! refuses it, so that slots that it keeps closed can be [opened again](super::reopen).

use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{RedisError, Script, ScriptInvocation};

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

static COMMIT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../commit.lua")));

/// Why a commit has no outcome.
struct Failure {
    error: KvError,
    /// It was sent, and no answer came: it may have been made, or may still be until that time by Redis' clock. Without a time it was not made.
    made_until_ms: Option<u64>,
}

/// The script that makes a commit, ready to be sent.
struct Attempt {
    script: ScriptInvocation<'static>,
    /// Whether it can make it: where Redis' time or incarnation are not known yet, it is only told them.
    can_be_made: bool,
    /// Until when, by Redis' clock.
    until_ms: u64,
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
            return self.make(&commit).await.map_err(|failure| failure.error);
        };
        // It goes on by itself: what became of it has to be learnt, also if its function does not wait for that.
        let made = tokio::spawn(async move {
            let made = self.make(&commit).await;
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

    async fn make(&self, commit: &Commit) -> Result<Outcome, Failure> {
        let answer = self.answer(commit).await?;
        self.outcome(commit.fence.as_ref(), &answer).map_err(|error| Failure { error, made_until_ms: None })
    }

    /// Whether a commit says until when it may be made: one that is asked about again, and one that keeps slots closed until it cannot be made any more.
    const fn names_a_time(&self, commit: &Commit) -> bool {
        commit.id.is_some() || (self.joined.is_some() && !commit.changes.is_empty())
    }

    fn attempt(&self, commit: &Commit) -> Attempt {
        // Relaxed: a number that orders nothing else.
        let (not_after_ms, told) = (self.redis.clock.not_after_ms(), self.keys.told.load(Ordering::Relaxed));
        let names_a_time = self.names_a_time(commit);
        Attempt {
            script: self.script(commit, not_after_ms, told),
            can_be_made: !names_a_time || (not_after_ms != 0 && told != 0),
            until_ms: if names_a_time { not_after_ms } else { u64::MAX },
        }
    }

    /// The script that makes a commit; if that names a time, not later than that, and in that incarnation only.
    pub(super) fn script(&self, commit: &Commit, not_after_ms: u64, told: u64) -> ScriptInvocation<'static> {
        let mut script = COMMIT.prepare_invoke();
        let Keys { values, order, version, bytes, scratch, buckets, commit: known, incarnation, .. } = &*self.keys;
        for key in [values, order, version, bytes, scratch, buckets] {
            script.key(key);
        }
        if self.names_a_time(commit) {
            script.key(incarnation);
        }
        if let Some(id) = &commit.id {
            script.key([known.as_bytes(), id].concat());
        }
        if commit.fence.is_some() {
            [Shares::RECORDS, Shares::RECORD_KEYS, Shares::OWNER, Shares::SEQUENCE].iter().for_each(|key| {
                script.key(*key);
            });
        }
        script
            .arg(BUCKETS_MAX)
            .arg(COMMIT_KNOWN.as_millis() as u64)
            .arg(not_after_ms)
            .arg(told)
            .arg(fastrand::u64(1..))
            .arg(fastrand::u64(FIRST_MIN..2 * FIRST_MIN))
            .arg(fastrand::u64(1..=STEP_MAX));
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
        script.arg(commit.changes.len());
        for (key, change) in &commit.changes {
            script.arg(&*key.0);
            match change {
                Change::Put(value) => script.arg("p").arg(&**value),
                Change::Delete => script.arg("d").arg(""),
                Change::Add(delta) => script.arg("a").arg(*delta),
            };
        }
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

    /// What the server answers to a commit. One that it knows by an id is sent again where the answer does not come: it is made once, and the answer to it is the same.
    async fn answer(&self, commit: &Commit) -> Result<Vec<String>, Failure> {
        let is_known = commit.id.is_some();
        let tries_max = if is_known { COMMIT_TRIES } else { 1 };
        let (mut tries, mut was_sent, mut is_late) = (tries_max, false, false);
        let mut attempt = self.attempt(commit);
        loop {
            tries -= 1;
            let error: RedisError = match self.redis.connection() {
                Ok(mut connection) => match attempt.script.invoke_async::<Vec<String>>(&mut connection).await {
                    Ok(answer) => match late(&answer) {
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
                            attempt = self.attempt(commit);
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

/// What time it is for Redis, and which incarnation of the store it has, if a commit has come too late for either.
fn late(answer: &[String]) -> Option<(u64, u64)> {
    let [first, redis_ms, incarnation] = answer else { return None };
    if first == "late" { redis_ms.parse().ok().zip(incarnation.parse().ok()) } else { None }
}
