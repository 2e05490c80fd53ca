//! What is wrong with a server that serves nevertheless: the list behind `/readyz`, `GET /status` and the metric `sledge_problems`.
//!
//! A part of the server that cannot do its work [reports](Health::report) that, and [clears](Health::clear) it when it can again. Both are
//! logged once, when it changes. Nothing here is on a request's path.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

/// The part of the server that something is wrong with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A function, by name: it is quarantined.
    Function(String),
    /// A workflow, by name: its definition is wrong.
    Workflow(String),
    /// A folder whose files clients can read, by address and route: it cannot be opened.
    Folder(String),
    /// The answers from a table of a function's version: one was wrong.
    Answers(String, u64),
    /// The key-value store.
    KeyValueStore,
    /// A file of `state_dir` that names no function.
    StateFile(String),
    /// The certificate of TLS, or its key.
    Certificate,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Function(name) => write!(f, "function {name}"),
            Subject::Workflow(name) => write!(f, "workflow {name}"),
            Subject::Folder(route) => write!(f, "folder {route}"),
            Subject::Answers(name, version) => write!(f, "memo {name} version {version}"),
            Subject::KeyValueStore => f.write_str("kv"),
            Subject::StateFile(name) => write!(f, "state_dir {name}"),
            Subject::Certificate => f.write_str("certificate"),
        }
    }
}

/// What is wrong with which part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Which, as [`Subject`] is displayed.
    pub subject: String,
    /// What is wrong with it, and what to do.
    pub reason: String,
}

/// All that is wrong at this time.
#[derive(Debug, Default)]
pub struct Health {
    problems: Mutex<BTreeMap<Subject, String>>,
    changed: watch::Sender<()>,
}

impl Health {
    /// Something is wrong with `subject`, for `reason`; in place of what was reported of it before.
    pub fn report(&self, subject: Subject, reason: impl Into<String>) {
        let reason = reason.into();
        let mut problems = self.problems();
        if problems.get(&subject) != Some(&reason) {
            tracing::error!(%subject, reason, "degraded");
            problems.insert(subject, reason);
            self.changed.send_replace(());
        }
    }

    /// Nothing is wrong with `subject` any more.
    pub fn clear(&self, subject: &Subject) {
        if self.problems().remove(subject).is_some() {
            tracing::info!(%subject, "no longer degraded");
            self.changed.send_replace(());
        }
    }

    /// Says when that changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// What is wrong, by subject.
    #[must_use]
    pub fn problems_now(&self) -> Vec<Problem> {
        let problem = |(subject, reason): (&Subject, &String)| Problem { subject: subject.to_string(), reason: reason.clone() };
        self.problems().iter().map(problem).collect()
    }

    fn problems(&self) -> MutexGuard<'_, BTreeMap<Subject, String>> {
        // Nothing that is done under the lock can panic half-way.
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_report_of_a_subject_counts_until_it_is_cleared() {
        let health = Health::default();
        let subjects = || health.problems_now().iter().map(|problem| problem.subject.clone()).collect::<Vec<_>>();
        health.report(Subject::KeyValueStore, "the disk is full");
        health.report(Subject::Function("f".to_owned()), "its artifact is truncated");
        health.report(Subject::KeyValueStore, "the disk fails");
        assert_eq!(subjects(), ["function f", "kv"]);
        assert_eq!(health.problems_now()[1].reason, "the disk fails");
        health.clear(&Subject::Function("f".to_owned()));
        health.clear(&Subject::Function("g".to_owned()));
        assert_eq!(subjects(), ["kv"]);
    }
}
