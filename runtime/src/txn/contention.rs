//! Keys over which transactions of a tenant conflict again and again: they are taken one after the other there.
//!
//! Keys are alike if they differ in numbers only: `user:17` and `user:18` are of one *template*. Three conflicts on a template within a second make it hot (speculation.md, I6):
//! from then on a transaction that reads one of its keys has to hold the key's lock until it is over. Locks are given in the order in which they are asked for. They order
//! what would conflict otherwise, and nothing depends on them: a transaction that has waited for [`LOCK_TIME_MAX`] goes on without, so that two that wait for each other do not
//! do so for ever, and what is right is decided by the commit alone.
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
    locks: HashMap<BucketKey, Arc<Lock<()>>>,
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
        if !self.is_hot.load(Ordering::Relaxed) {
            return None;
        }
        let mut heat = self.heat();
        let Heat { templates, locks } = &mut *heat;
        let of = template(key);
        if !templates.get(&of).is_some_and(Template::is_hot) {
            return None;
        }
        if let Some(lock) = locks.get(key) {
            return Some(Arc::clone(lock));
        }
        if locks.len() >= LOCKS_MAX {
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            if locks.len() >= LOCKS_MAX {
                return None;
            }
        }
        let lock = Arc::new(Lock::new(()));
        locks.insert(key.clone(), Arc::clone(&lock));
        Some(lock)
    }

    /// A lock was asked for, and was free or not.
    pub fn locked(&self, key: &BucketKey, was_free: bool) {
        let mut heat = self.heat();
        let of = template(key);
        let Some(template) = heat.templates.get_mut(&of) else { return };
        template.calm = if was_free { template.calm + 1 } else { 0 };
        if template.calm >= CALM {
            heat.templates.remove(&of);
            heat.locks.retain(|_, lock| Arc::strong_count(lock) > 1);
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
