//! Where things are in Redis: the names of all keys.
//!
//! Each tenant's share is in one slot of a cluster, the server's own in another. A commit with records touches both, so that a cluster is no place for them.

use std::sync::atomic::AtomicU64;

/// The keys of a tenant's share.
#[derive(Debug)]
pub(super) struct Keys {
    pub values: String,
    pub order: String,
    pub version: String,
    pub bytes: String,
    /// For what a commit needs meanwhile.
    pub scratch: String,
    /// Versions of the buckets' sets of keys.
    pub buckets: String,
    /// What the name begins with under which the answer to a commit is kept.
    pub commit: String,
    /// Which incarnation of the store it is: a number by chance, gone with all else when the server is emptied.
    pub incarnation: String,
    /// The one that was told last; zero before.
    pub told: AtomicU64,
}

impl Keys {
    pub(super) fn of(tenant: &str) -> Keys {
        let key = |what| format!("{{sledge:{tenant}}}:{what}");
        Keys {
            values: key("values"),
            order: key("order"),
            version: key("version"),
            bytes: key("bytes"),
            scratch: key("scratch"),
            buckets: key("buckets"),
            commit: key("commit:"),
            incarnation: key("incarnation"),
            told: AtomicU64::new(0),
        }
    }
}

/// The keys of what servers share.
pub(super) struct Shares;

impl Shares {
    /// A hash: the values of the records.
    pub(super) const RECORDS: &str = "{sledge}:records";
    /// A sorted set: their keys, in order.
    pub(super) const RECORD_KEYS: &str = "{sledge}:record-keys";
    /// The token of the server that owns the records, for as long as its lease lasts.
    pub(super) const OWNER: &str = "{sledge}:owner";
    /// How many commits have written records.
    pub(super) const SEQUENCE: &str = "{sledge}:sequence";
    /// A list: the ids of requests to the owner.
    pub(super) const INBOX: &str = "{sledge}:inbox";

    /// Where a request to the owner is.
    pub(super) fn asked(id: &str) -> String {
        format!("{{sledge}}:asked:{id}")
    }

    /// Where the answer to it is.
    pub(super) fn answered(id: &str) -> String {
        format!("{{sledge}}:answered:{id}")
    }
}
