//! Keys over which transactions of a tenant conflict again and again: they are taken one after the other there.
//!
//! Keys are alike if they differ in numbers only: `user:17` and `user:18` are of one *template*. Three conflicts on a template within a second make it hot (speculation.md, I6):
//! from then on a transaction that reads one of its keys has to hold the key's lock until it is over. Locks are given in the order in which they are asked for. They order
//! what would conflict otherwise, and nothing depends on them: a transaction that has waited for [`LOCK_TIME_MAX`] goes on without, so that two that wait for each other do not
//! do so for ever, and what is right is decided by the commit alone.
//!
//! A lock that thousands wait for is another matter: all of them would go on at the same time then, and all but one conflict, again and again. What can wait before it has begun (a task of a
//! durable execution) stands in the key's [line](Contention::line) instead. It holds nothing there, so that it may wait for as long as it takes, and only the first of the line waits for the
//! lock.
//!
//! A template cools down when its locks were free so often that the last conflict is long past.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as Lock, OwnedMutexGuard};

use crate::kv::BucketKey;

/// Conflicts that make a template hot.
const CONFLICTS: u32 = 3;
/// Within what time they have to come.
const CONFLICTS_TIME: Duration = Duration::from_secs(1);
/// How often in a row a lock has to be free for its template to cool down.
const CALM: u32 = 64;
/// For how long a lock is waited for.
pub const LOCK_TIME_MAX: Duration = Duration::from_millis(100);
/// For how long the first of a line waits for the lock. Where a transaction holds it longer, one after the other goes on without, not all at once.
pub const FIRST_TIME_MAX: Duration = Duration::from_secs(1);
/// Templates that are known, and keys with a lock, at most; beyond that transactions go on without.
const TEMPLATES_MAX: usize = 1_024;
const LOCKS_MAX: usize = 4_096;

/// A key's lock, held.
pub type Held = OwnedMutexGuard<()>;

/// A key over which transactions take turns, and its lock.
#[derive(Clone, Debug)]
pub struct Contended {
    /// The key.
    pub key: BucketKey,
    /// Its lock.
    pub lock: Arc<Lock<()>>,
}

/// The first place of a key's line, which is left when the lock is held.
#[derive(Debug)]
pub struct First {
    pub(super) contended: Contended,
    /// Whether nothing stood in the line.
    pub(super) was_free: bool,
    /// The next one is the first when this is dropped.
    pub(super) line: Held,
}

/// The keys of one tenant over which transactions conflict.
#[derive(Debug, Default)]
pub struct Contention {
    /// Whether any template is hot. Most tenants have none: then nothing is locked to find that out.
    is_hot: AtomicBool,
    heat: Mutex<Heat>,
}

#[derive(Debug, Default)]
struct Heat {
    templates: HashMap<u64, Template>,
    locks: HashMap<BucketKey, KeyLocks>,
}

/// How transactions take turns over a key.
#[derive(Clone, Debug, Default)]
struct KeyLocks {
    lock: Arc<Lock<()>>,
    /// Held by what is the first of the line.
    line: Arc<Lock<()>>,
}

impl KeyLocks {
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.lock) > 1 || Arc::strong_count(&self.line) > 1
    }
}

#[derive(Debug)]
struct Template {
    /// What its keys have in common.
    name: Box<str>,
    conflicts: u32,
    since: Instant,
    /// How often in a row a lock was free.
    calm: u32,
}

impl Template {
    const fn is_hot(&self) -> bool {
        self.conflicts >= CONFLICTS
    }
}

impl Contention {
    /// Transactions have conflicted over a key.
    pub fn conflicted(&self, key: &BucketKey, now: Instant) {
        let mut heat = self.heat();
        let of = template(key);
        if heat.templates.len() >= TEMPLATES_MAX && !heat.templates.contains_key(&of) {
            heat.templates.retain(|_, template| template.is_hot() || now.duration_since(template.since) < CONFLICTS_TIME);
            if heat.templates.len() >= TEMPLATES_MAX {
                return;
            }
        }
        let template =
            heat.templates.entry(of).or_insert_with(|| Template { name: alike(key).into(), conflicts: 0, since: now, calm: 0 });
        if !template.is_hot() && now.duration_since(template.since) >= CONFLICTS_TIME {
            (template.conflicts, template.since) = (0, now);
        }
        template.conflicts = template.conflicts.saturating_add(1);
        template.calm = 0;
        if template.is_hot() {
            // Relaxed: a transaction that does not see it yet goes on without, as before.
            self.is_hot.store(true, Ordering::Relaxed);
        }
    }

    /// The lock that a transaction has to hold before it reads that key, if it is of a hot template.
    #[must_use]
    pub fn lock(&self, key: &BucketKey) -> Option<Arc<Lock<()>>> {
        self.locks(key).map(|locks| locks.lock)
    }

    /// Stands in the line of a key, if it is of a hot template, until it is the first. To be asked for by what holds no lock and no place that others of the line may need, and to be
    /// [used](super::Transaction::take_first) before anything is read. Dropping the future leaves the line.
    pub async fn line(&self, key: &BucketKey) -> Option<First> {
        let KeyLocks { lock, line } = self.locks(key)?;
        let (line, was_free) = match Arc::clone(&line).try_lock_owned() {
            Ok(line) => (line, true),
            Err(_) => (line.lock_owned().await, false),
        };
        Some(First { contended: Contended { key: key.clone(), lock }, was_free, line })
    }

    fn locks(&self, key: &BucketKey) -> Option<KeyLocks> {
        if !self.is_hot.load(Ordering::Relaxed) {
            return None;
        }
        let mut heat = self.heat();
        let Heat { templates, locks } = &mut *heat;
        let of = template(key);
        if !templates.get(&of).is_some_and(Template::is_hot) {
            return None;
        }
        if let Some(locks) = locks.get(key) {
            return Some(locks.clone());
        }
        if locks.len() >= LOCKS_MAX {
            locks.retain(|_, locks| locks.is_used());
            if locks.len() >= LOCKS_MAX {
                return None;
            }
        }
        let new = KeyLocks::default();
        locks.insert(key.clone(), new.clone());
        Some(new)
    }

    /// A lock was asked for, and was free or not.
    pub fn locked(&self, key: &BucketKey, was_free: bool) {
        let mut heat = self.heat();
        let of = template(key);
        let Some(template) = heat.templates.get_mut(&of) else { return };
        template.calm = if was_free { template.calm + 1 } else { 0 };
        if template.calm >= CALM {
            heat.templates.remove(&of);
            heat.locks.retain(|_, locks| locks.is_used());
            let is_hot = heat.templates.values().any(Template::is_hot);
            self.is_hot.store(is_hot, Ordering::Relaxed);
        }
    }

    /// What transactions have conflicted over lately: what the keys have in common, how often, and whether transactions take turns there.
    #[must_use]
    pub fn conflicts(&self) -> Vec<(String, u32, bool)> {
        let heat = self.heat();
        heat.templates.values().map(|template| (template.name.to_string(), template.conflicts, template.is_hot())).collect()
    }

    /// How many conflicts there were over the templates that are known.
    #[cfg(test)]
    pub fn conflicts_sum(&self) -> u64 {
        self.heat().templates.values().map(|template| u64::from(template.conflicts)).sum()
    }

    fn heat(&self) -> MutexGuard<'_, Heat> {
        // Insertions and removals, which cannot be half done.
        self.heat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What keys have in common that differ in numbers only, as text: bucket, slash and key, with `#` for each number.
#[must_use]
pub fn alike(key: &BucketKey) -> String {
    let mut text = format!("{}/", key.bucket().escape_ascii());
    let mut was_digit = false;
    for byte in key.key() {
        let is_digit = byte.is_ascii_digit();
        match is_digit {
            true if was_digit => {}
            true => text.push('#'),
            false => text.extend(byte.escape_ascii().map(char::from)),
        }
        was_digit = is_digit;
    }
    text
}

/// A number for what keys have in common that differ in numbers only.
fn template(key: &BucketKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.bucket().hash(&mut hasher);
    let mut was_digit = false;
    for byte in key.key() {
        let is_digit = byte.is_ascii_digit();
        if !(is_digit && was_digit) {
            (if is_digit { b'0' } else { *byte }).hash(&mut hasher);
        }
        was_digit = is_digit;
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::kv::BucketName;

    fn key(name: &str) -> BucketKey {
        BucketName::new(b"b").unwrap().key(name.as_bytes()).unwrap()
    }

    #[test]
    fn three_conflicts_within_a_second_make_all_keys_alike_hot_each_with_its_own_lock() {
        let (contention, now) = (Contention::default(), Instant::now());
        contention.conflicted(&key("user:1"), now);
        contention.conflicted(&key("user:22"), now + CONFLICTS_TIME);
        contention.conflicted(&key("user:22"), now + CONFLICTS_TIME);
        assert!(contention.lock(&key("user:22")).is_none(), "the first was too long ago");
        contention.conflicted(&key("user:333"), now + CONFLICTS_TIME);
        let (one, other) = (contention.lock(&key("user:1")).unwrap(), contention.lock(&key("user:2")).unwrap());
        assert!(Arc::ptr_eq(&one, &contention.lock(&key("user:1")).unwrap()) && !Arc::ptr_eq(&one, &other));
        assert!(contention.lock(&key("users:1")).is_none());
    }

    #[test]
    fn a_template_cools_down_when_its_locks_are_free_and_a_busy_lock_keeps_it_hot() {
        let (contention, now, key) = (Contention::default(), Instant::now(), key("n"));
        (0..CONFLICTS).for_each(|_| contention.conflicted(&key, now));
        (0..CALM - 1).for_each(|_| contention.locked(&key, true));
        contention.locked(&key, false);
        (0..CALM - 1).for_each(|_| contention.locked(&key, true));
        assert!(contention.lock(&key).is_some());
        contention.locked(&key, true);
        assert!(contention.lock(&key).is_none() && !contention.is_hot.load(Ordering::Relaxed));
    }

    #[test]
    fn one_after_the_other_is_the_first_of_a_line_and_those_that_have_left_it_are_passed_over() {
        let (contention, now, key) = (Contention::default(), Instant::now(), key("n"));
        assert!(contention.line(&key).now_or_never().unwrap().is_none(), "it is not hot");
        (0..CONFLICTS).for_each(|_| contention.conflicted(&key, now));
        let first = contention.line(&key).now_or_never().unwrap().unwrap();
        assert!(first.was_free);
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(contention.line(&key))).collect();
        assert!(waiting.iter_mut().all(|waits| waits.now_or_never().is_none()));
        let other = Contention::lock(&contention, &key).unwrap();
        assert!(Arc::ptr_eq(&other, &first.contended.lock), "the line leads to the key's lock");
        drop(waiting.remove(0));
        drop(first);
        assert!((&mut waiting[1]).now_or_never().is_none(), "it is not its turn");
        let second = (&mut waiting[0]).now_or_never().unwrap().unwrap();
        assert!(!second.was_free);
        drop(second);
        assert!((&mut waiting[1]).now_or_never().is_some());
    }

    #[test]
    fn templates_and_locks_are_bounded() {
        let (contention, now) = (Contention::default(), Instant::now());
        let letters = |number: usize| format!("{number}").bytes().map(|digit| char::from(digit + 50)).collect::<String>();
        for number in 0..TEMPLATES_MAX + 10 {
            contention.conflicted(&key(&letters(number)), now);
        }
        assert_eq!(contention.heat().templates.len(), TEMPLATES_MAX);
        (0..CONFLICTS).for_each(|_| contention.conflicted(&key(&letters(7)), now));
        contention.conflicted(&key("another"), now + CONFLICTS_TIME);
        assert_eq!(contention.heat().templates.len(), 2, "what is past is forgotten");
        (0..CONFLICTS).for_each(|_| contention.conflicted(&key("n1"), now + CONFLICTS_TIME));
        let held: Vec<_> = (0..LOCKS_MAX).map(|number| contention.lock(&key(&format!("n{number}"))).unwrap()).collect();
        assert!(contention.lock(&key("n100000")).is_none());
        drop(held);
        assert!(contention.lock(&key("n100000")).is_some());
    }
}
