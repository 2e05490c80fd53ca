//! A number of bytes that many sandboxes, and whatever else a server keeps for its requests, share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What may be used altogether, and what of it is reserved. Counts promises, not pages: what is reserved may be used at any time, so that the
/// system never has to take anything away.
#[derive(Debug)]
pub struct Budget {
    max: u64,
    used: AtomicU64,
}

impl Budget {
    /// A budget of `bytes_max`.
    #[must_use]
    pub fn new(bytes_max: u64) -> Arc<Budget> {
        Arc::new(Budget { max: bytes_max, used: AtomicU64::new(0) })
    }

    /// What may be reserved altogether.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.max
    }

    /// What is reserved now.
    #[must_use]
    pub fn bytes_used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Reserves `bytes` until the share is dropped; none when there are not so many left.
    #[must_use]
    pub fn reserve(self: &Arc<Budget>, bytes: u64) -> Option<Share> {
        self.add(bytes).then(|| Share { budget: Arc::clone(self), bytes })
    }

    // Relaxed: a count that nothing else depends on.
    fn add(&self, bytes: u64) -> bool {
        let sum = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.max);
        bytes == 0 || self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).is_ok()
    }
}

/// Bytes of a [`Budget`], given back on drop.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Share {
    /// How many.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes it `bytes`, more or fewer; false, and nothing changed, when there are not so many left.
    #[must_use]
    pub fn resize(&mut self, bytes: u64) -> bool {
        if bytes > self.bytes {
            if !self.budget.add(bytes - self.bytes) {
                return false;
            }
        } else if bytes < self.bytes {
            self.budget.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_never_have_more_than_there_is_and_give_all_of_it_back() {
        let budget = Budget::new(1000);
        std::thread::scope(|scope| {
            for size in [1, 7, 300, 600] {
                let budget = &budget;
                scope.spawn(move || {
                    for _ in 0..2000 {
                        if let Some(mut share) = budget.reserve(size) {
                            assert!(budget.bytes_used() <= 1000);
                            let grown = share.resize(size + 200);
                            assert_eq!(share.bytes(), if grown { size + 200 } else { size });
                            assert!(share.resize(size / 2));
                        }
                    }
                });
            }
        });
        assert_eq!(budget.bytes_used(), 0);
        assert!(budget.reserve(1001).is_none() && budget.reserve(u64::MAX).is_none());
        let all = budget.reserve(1000).unwrap();
        assert!(budget.reserve(1).is_none() && budget.reserve(0).is_some());
        drop(all);
    }
}
