//! What the one thread of a function keeps.

use std::cell::UnsafeCell;

/// A variable of a program that has one thread.
pub(crate) struct Single<T>(UnsafeCell<T>);

// SAFETY: This crate is for WebAssembly without threads (`lib.rs`), where nothing is shared between threads.
#[cfg(not(target_feature = "atomics"))]
unsafe impl<T> Sync for Single<T> {}

impl<T> Single<T> {
    pub(crate) const fn new(value: T) -> Single<T> {
        Single(UnsafeCell::new(value))
    }

    /// Calls `function` with it, which must not come back here.
    pub(crate) fn with<R>(&self, function: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: There is one thread, and no caller in this crate calls what could call this on the same variable: they take, put and
        // compare what lies in it, and wake wakers behind it.
        function(unsafe { &mut *self.0.get() })
    }
}

impl<T: Copy> Single<T> {
    pub(crate) fn get(&self) -> T {
        self.with(|value| *value)
    }

    pub(crate) fn set(&self, value: T) {
        self.with(|old| *old = value);
    }
}
