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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::config::FunctionConfig;
    use crate::invoke::caller::{CYCLES_MAX, Caller};
    use crate::invoke::function::Home;
    use crate::invoke::loaded::Loaded;
    use crate::invoke::{Dispatcher, Input, by_hand};

    fn function(instance: Instance) -> Arc<Function> {
        // What the setting may be said of is checked before.
        let loaded = Loaded { instance, ..by_hand::loaded(&FunctionConfig::new("f", "f.wasm")) };
        Arc::new(Function::new(loaded, Home::alone()))
    }

    fn invocation(dispatcher: &Arc<Dispatcher>, function: &Arc<Function>, above: Option<&Arc<Caller>>) -> Box<Invocation> {
        let admission = dispatcher.admit(function).expect("there is room");
        Invocation::new(
            Arc::clone(function),
            admission,
            above.map(|above| (Arc::clone(above), 1)),
            Input::default(),
            Instant::now(),
        )
    }

    fn caller(above: Option<&Arc<Caller>>) -> Arc<Caller> {
        Arc::new(Caller::new(crate::schedule::FunctionId(9), 1, Instant::now(), above.map(|above| (Arc::clone(above), 1))))
    }

    fn sandbox(function: &Function) -> Box<Sandbox> {
        Box::new(function.template.instantiate().expect("a sandbox"))
    }

    #[test]
    fn calls_on_behalf_of_one_request_find_what_the_last_one_left() {
        let (dispatcher, _deques) = Dispatcher::new(1, 1, 1_000, false);
        let (kept, other) = (function(Instance::Request), function(Instance::Request));
        let outermost = caller(None);
        let between = caller(Some(&outermost));
        let near = invocation(&dispatcher, &kept, Some(&outermost));
        let far = invocation(&dispatcher, &kept, Some(&between));
        assert!(near.kept_instance().is_none(), "there was no call yet");
        let first = sandbox(&kept);
        let address: *const Sandbox = &raw const *first;
        assert!(near.keep_instance(first).is_none());
        assert!(invocation(&dispatcher, &other, Some(&outermost)).kept_instance().is_none(), "it is another function's");
        assert!(invocation(&dispatcher, &kept, Some(&caller(None))).kept_instance().is_none(), "it is another request's");
        let found = far.kept_instance().expect("whichever of its callers calls");
        assert!(std::ptr::eq(&raw const *found, address));
        assert!(far.kept_instance().is_none(), "one call at a time uses it");
        // More than that go where fresh ones come from.
        assert!(far.keep_instance(found).is_none());
        for _ in 1..KEPT_MAX {
            assert!(near.keep_instance(sandbox(&kept)).is_none());
        }
        assert!(near.keep_instance(sandbox(&kept)).is_some());
        let left = outermost.close_kept();
        assert_eq!(left.len(), KEPT_MAX);
        assert!(left.iter().all(|(function, _)| Arc::ptr_eq(function, &kept)));
        assert!(near.kept_instance().is_none() && near.keep_instance(sandbox(&kept)).is_some(), "the request is over");
        assert!(outermost.close_kept().is_empty() && between.close_kept().is_empty());
        // The request's own instance is kept for no other.
        let own = invocation(&dispatcher, &kept, None);
        assert!(own.kept_instance().is_none() && own.keep_instance(sandbox(&kept)).is_some());
    }

    #[test]
    fn a_function_keeps_one_instance_or_none() {
        let (dispatcher, _deques) = Dispatcher::new(1, 1, 10, false);
        let (own, fresh) = (function(Instance::Application), function(Instance::Call));
        for above in [None, Some(&caller(None))] {
            let first = invocation(&dispatcher, &own, above);
            assert!(first.kept_instance().is_none());
            assert!(first.keep_instance(sandbox(&own)).is_none());
            let second = invocation(&dispatcher, &own, None);
            assert!(second.kept_instance().is_some() && second.kept_instance().is_none());
            let call = invocation(&dispatcher, &fresh, above);
            assert!(call.keep_instance(sandbox(&fresh)).is_some() && call.kept_instance().is_none());
        }
        // While its instance runs it waits for nothing that needs it.
        let cycles = [Instance::Application, Instance::Request, Instance::Call].map(|instance| function(instance).cycles_max());
        assert_eq!(cycles, [1, CYCLES_MAX, CYCLES_MAX]);
    }
}
