//! Executions that have ended and are kept for a while: when each is removed, what it takes up, and everything that is removed then.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::key::{EXPIRIES, HISTORIES, Key, checkpoint_key, listed_key, status_key, summary_key};
use super::summary::{Place, Summary};
use super::write::json;
use super::{Journal, damaged};
use crate::kv::{KvError, Order, Record};

/// An execution that is removed.
#[derive(Debug)]
pub struct Expired {
    /// Where it was found.
    pub place: Place,
    /// What it took up.
    pub bytes: u64,
    /// What is written for that.
    pub records: Vec<Record>,
}

/// An execution that has ended.
#[derive(Debug, Serialize, Deserialize)]
struct Expiry {
    #[serde(flatten)]
    place: Place,
    /// What it takes up.
    #[serde(default)]
    bytes: u64,
}

/// When an execution is removed that has ended and takes up so many bytes.
pub(in super::super) fn expiry(place: &Place, summary: &Summary, bytes: u64) -> Option<Record> {
    let at_ms = summary.expires_ms?;
    Some(Record::put(Key::new(EXPIRIES).time(at_ms).number(summary.id), json(&Expiry { place: place.clone(), bytes })))
}

impl Journal {
    /// How many executions have ended and are kept.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn kept(&self) -> Result<u64, KvError> {
        self.records.count((Bound::Included(&[EXPIRIES][..]), Bound::Excluded(&[EXPIRIES + 1][..])))
    }

    /// What is to be removed of each execution that is kept no longer: of so many at most.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn expired(&self, now_ms: i64, max: usize) -> Result<Vec<Expired>, KvError> {
        let mut found: Vec<(Vec<u8>, Expiry)> = Vec::new();
        let end = Key::new(EXPIRIES).time(now_ms);
        let bounds = (Bound::Included(&[EXPIRIES][..]), Bound::Excluded(&*end.0));
        self.records.scan(bounds, Order::Rising, |key, kept| {
            if let Ok(kept) = serde_json::from_slice(kept) {
                found.push((key.to_vec(), kept));
            }
            found.len() < max
        })?;
        found.into_iter().map(|(key, kept)| self.all_of(key, kept)).collect()
    }

    /// What is to be removed of an execution that has ended; none where it is not kept.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn removed(&self, place: &Place, summary: &Summary) -> Result<Option<Expired>, KvError> {
        let Some(at_ms) = summary.expires_ms else { return Ok(None) };
        let key = Key::new(EXPIRIES).time(at_ms).number(summary.id).0;
        let Some(found) = self.records.get(&key)? else { return Ok(None) };
        let kept = serde_json::from_slice(&found).map_err(|error| damaged(&place.name, &error))?;
        self.all_of(key, kept).map(Some)
    }

    /// All of an execution that has ended; `key` is the one by which it is removed.
    fn all_of(&self, key: Vec<u8>, Expiry { place, bytes }: Expiry) -> Result<Expired, KvError> {
        let mut records = vec![Record::remove(key)];
        if let Some(summary) = self.summary(&place)? {
            records.extend([
                Record::remove(summary_key(&place)),
                Record::remove(listed_key(&place, &summary)),
                Record::remove(status_key(&place, &summary, summary.status)),
                Record::remove(checkpoint_key(summary.id)),
            ]);
            self.all(&Key::new(HISTORIES).number(summary.id), 0, |key, _| {
                records.push(Record::remove(key));
                true
            })?;
        }
        Ok(Expired { place, bytes, records })
    }

    /// Calls `with` with the tenant of each execution that has ended and is kept, and the bytes that it takes up.
    ///
    /// # Errors
    /// As for [`summary`](Journal::summary).
    pub fn each_kept(&self, mut with: impl FnMut(&str, u64)) -> Result<(), KvError> {
        let bounds = (Bound::Included(&[EXPIRIES][..]), Bound::Excluded(&[EXPIRIES + 1][..]));
        self.records.scan(bounds, Order::Rising, |_, kept| {
            if let Ok(Expiry { place, bytes }) = serde_json::from_slice(kept) {
                with(&place.tenant, bytes);
            }
            true
        })
    }
}
