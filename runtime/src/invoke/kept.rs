//! Instances that are not fresh for every call: of one request, whose calls of a function use the same one again, and of a function that keeps its own.
//!
//! An instance is kept only if its call ended in good order and left nothing open ([`Driver::is_reusable`](super::driver::Driver::is_reusable)); else the
//! next call begins with what the function's template says. It is used by one call at a time: a call that finds none gets another one. No instance ever goes from one
//! request to another, unless its function says that it keeps it.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sledge_sandbox::Sandbox;

use super::Invocation;
use super::function::Function;
use crate::config::Instance;

/// Idle instances that one request keeps. Calls of more than that at the same time leave theirs to others.
const KEPT_MAX: usize = 64;

/// The idle instances of the functions that a request calls.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<State>);

#[derive(Debug)]
enum State {
    Open(Vec<(Arc<Function>, Box<Sandbox>)>),
    /// The request is over.
    Closed,
}

impl Default for State {
    fn default() -> State {
        State::Open(Vec::new())
    }
}

impl Kept {
    /// One of that function: that version of it.
    fn take(&self, function: &Arc<Function>) -> Option<Box<Sandbox>> {
        let State::Open(kept) = &mut *lock(&self.0) else { return None };
        let index = kept.iter().rposition(|(of, _)| Arc::ptr_eq(of, function))?;
        Some(kept.swap_remove(index).1)
    }

    /// Keeps one, or gives it back.
    fn put(&self, function: &Arc<Function>, sandbox: Box<Sandbox>) -> Option<Box<Sandbox>> {
        match &mut *lock(&self.0) {
            State::Open(kept) if kept.len() < KEPT_MAX => {
                kept.push((Arc::clone(function), sandbox));
                None
            }
            _ => Some(sandbox),
        }
    }

    /// Gives all of them back, and keeps none from now on.
    pub(super) fn close(&self) -> Vec<(Arc<Function>, Box<Sandbox>)> {
        match mem::replace(&mut *lock(&self.0), State::Closed) {
            State::Open(kept) => kept,
            State::Closed => Vec::new(),
        }
    }
}

/// The one instance of a function that keeps it.
#[derive(Debug, Default)]
pub(super) struct Own(Mutex<Option<Box<Sandbox>>>);

impl Invocation {
    /// The instance that is kept for it, in the state in which the last call left it.
    pub(crate) fn kept_instance(&self) -> Option<Box<Sandbox>> {
        match self.function.instance {
            Instance::Call => None,
            Instance::Request => self.identity.above()?.outermost().kept.take(&self.function),
            Instance::Application => lock(&self.function.own.0).take(),
        }
    }

    /// Keeps the instance in which it ran for the next call, or gives it back.
    pub(crate) fn keep_instance(&self, sandbox: Box<Sandbox>) -> Option<Box<Sandbox>> {
        match (self.function.instance, self.identity.above()) {
            (Instance::Request, Some(above)) => above.outermost().kept.put(&self.function, sandbox),
            (Instance::Application, _) => lock(&self.function.own.0).replace(sandbox),
            (Instance::Call, _) | (Instance::Request, None) => Some(sandbox),
        }
    }
}

fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    // Single insertions and removals, which cannot be half done.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
