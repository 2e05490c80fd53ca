//! The workflows of calls of functions (`fn:NAME`): each is made once, and anew where the function's settings have changed.
//!
//! An asynchronous call wakes by its workflow's name, and its queue is looked at by it: to build and parse a definition each time costs more than the step that follows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::AsynchronousConfig;
use crate::workflow::{Reach, Workflow};

/// Workflows that are kept, of all tenants; functions come and go. Beyond that all are made anew.
const KEPT_MAX: usize = 16_384;

/// A tenant, and the name of a function of it.
type Name = (Arc<str>, Arc<str>);

/// What each was made of, and the workflow.
#[derive(Debug, Default)]
pub(super) struct Called(Mutex<HashMap<Name, Made>>);

#[derive(Debug)]
struct Made {
    asynchronous: AsynchronousConfig,
    workflow: Arc<Workflow>,
}

impl Called {
    /// The workflow that calls that function, as the function is served now.
    pub(super) fn workflow(&self, tenant: &str, function: &str, reach: &Reach) -> Arc<Workflow> {
        let served = reach.functions.find(function).ok();
        let make =
            |asynchronous: &AsynchronousConfig| Arc::new(Workflow::of_function((tenant, function), asynchronous, reach.clone()));
        // Any name may be asked for: only those of functions are kept.
        let Some(served) = served else { return make(&AsynchronousConfig::default()) };
        let key: Name = (tenant.into(), function.into());
        // Single insertions, which cannot be half done.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.get(&key).filter(|made| match &served.asynchronous {
            Some(asynchronous) => made.asynchronous == *asynchronous,
            None => made.asynchronous == AsynchronousConfig::default(),
        });
        if let Some(made) = known {
            return Arc::clone(&made.workflow);
        }
        let asynchronous = served.asynchronous.clone().unwrap_or_default();
        let workflow = make(&asynchronous);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(key, Made { asynchronous, workflow: Arc::clone(&workflow) });
        workflow
    }
}
