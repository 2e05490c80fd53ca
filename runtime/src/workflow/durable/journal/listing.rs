//! Lists of a workflow's executions.

use std::fmt;
use std::num::ParseIntError;
use std::ops::Bound;
use std::str::FromStr;
use std::sync::Arc;

use sledge_workflow::machine::Status;

use super::Journal;
use super::key::{BY_STATUS, Key, LISTED, of_workflow};
use super::summary::{Place, Summary};
use crate::kv::{KvError, Order};

/// Executions that one answer gives.
pub const LISTED_MAX: usize = 1_000;

/// Where a list of executions goes on: behind the one that began then and has that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// When that began.
    pub started_ms: i64,
    /// Its number.
    pub id: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.started_ms, self.id)
    }
}

impl FromStr for Position {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Position, ParseIntError> {
        let (started, id) = text.split_once('-').unwrap_or((text, ""));
        Ok(Position { started_ms: i64::from_str_radix(started, 16)?, id: u64::from_str_radix(id, 16)? })
    }
}

/// Which executions are listed.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The tenant of the workflow.
    pub tenant: Arc<str>,
    /// The workflow.
    pub workflow: Arc<str>,
    /// Only those.
    pub status: Option<Status>,
    /// Only those behind that one.
    pub after: Option<Position>,
    /// At most so many.
    pub max: usize,
}

/// A page of executions, the newest first, and where the next page begins.
pub type Page = (Vec<(Place, Summary)>, Option<Position>);

impl Journal {
    /// Executions of a workflow, the newest first.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn list(&self, listing: &Listing) -> Result<Page, KvError> {
        let Listing { tenant, workflow, status, after, max } = listing;
        let prefix = match status {
            Some(status) => of_workflow(BY_STATUS, tenant, workflow).status(*status),
            None => of_workflow(LISTED, tenant, workflow),
        };
        let start = match after {
            Some(Position { started_ms, id }) => Bound::Excluded(Key(prefix.0.clone()).falling(*started_ms, *id).0),
            None => Bound::Included(prefix.0.clone()),
        };
        let (max, mut places, mut has_more) = ((*max).clamp(1, LISTED_MAX), Vec::new(), false);
        let end = prefix.behind();
        let bounds = (start.as_ref().map(|key| &**key), end.as_ref().map(|key| &**key));
        self.records.scan(bounds, Order::Rising, |_, name| {
            has_more = places.len() == max;
            if !has_more {
                let name = String::from_utf8_lossy(name).into();
                places.push(Place { tenant: Arc::clone(tenant), workflow: Arc::clone(workflow), name });
            }
            !has_more
        })?;
        let mut found = Vec::with_capacity(places.len());
        for place in places {
            // One that was removed meanwhile is left out.
            found.extend(self.summary(&place)?.map(|summary| (place, summary)));
        }
        let last = found.last().map(|(_, summary)| Position { started_ms: summary.started_ms, id: summary.id });
        Ok((found, last.filter(|_| has_more)))
    }
}
