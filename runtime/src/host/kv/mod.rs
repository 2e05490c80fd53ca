//! The key-value store of a function's tenant, as host functions reach it.
//!
//! ```text
//!   sledge:kv of core modules (flat) --------+
//!   wasi:keyvalue, spin, sledge:keyvalue ----+--> find, keys, entries, commit --> Space
//!     of components (component)
//! ```
//!
//! Reads are answered at once, from memory, where the store is in this process; what writes waits until it is durable. What is read and changed is noted
//! for what watches the invocation.

pub(in crate::host) mod component;
mod flat;
mod within;

pub(super) use flat::FUNCTIONS;

use bytes::Bytes;

use super::{Call, Context, Flat, Stop};
use crate::kv::{BucketKey, BucketName, Commit, Entry, KvError, Outcome, Space};

/// A bucket and a key in it that a call names.
pub(in crate::host) trait Place: Send + 'static {
    /// Both.
    ///
    /// # Errors
    /// When they are not where the call says.
    fn find<'p>(&'p self, call: &'p Call<'_>) -> Result<(&'p BucketName, &'p [u8]), Stop>;
}

/// Keys on their way to a guest.
pub(in crate::host) trait Listing: Send + 'static {
    /// Takes a key, if there is room for it.
    fn add(&mut self, key: &[u8]) -> bool;
}

/// The keys of a bucket that begin with `prefix` and come behind `after`.
#[derive(Clone, Debug)]
pub(in crate::host) struct Range {
    pub(in crate::host) bucket: BucketName,
    pub(in crate::host) prefix: Box<[u8]>,
    pub(in crate::host) after: Option<Box<[u8]>>,
}

/// The version of an entry; zero where there is none.
pub(in crate::host) fn version(entry: Option<&Entry>) -> u64 {
    entry.map_or(0, |entry| entry.version)
}

/// What goes on with a call when what it waited for has come.
type Then<T> = Box<dyn FnOnce(&mut Call<'_>, T) -> Result<Flat, Stop> + Send>;

/// The same of any kind: what waits is compiled once for all of a kind of operation, and not for each host function.
fn boxed<T, R: Into<Flat>>(then: impl FnOnce(&mut Call<'_>, T) -> Result<R, Stop> + Send + 'static) -> Then<T> {
    Box::new(move |call, came| then(call, came).map(Into::into))
}

/// Answers with what `then` makes of the entry at a place.
pub(in crate::host) fn find<P: Place, R: Into<Flat>>(
    call: &mut Call<'_>,
    place: Result<P, KvError>,
    then: impl FnOnce(&mut Call<'_>, Result<Option<Entry>, KvError>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    let then = noted(then);
    let place = match place {
        Ok(place) => place,
        Err(error) => return then(call, Err(error)),
    };
    if let Some(transaction) = call.context.transaction().cloned() {
        let (bucket, key) = place.find(call)?;
        return match bucket.key(key) {
            Ok(key) => within::find(call, transaction, key, then),
            Err(error) => then(call, Err(error)),
        };
    }
    match call.context.ports.kv()? {
        Space::Embedded(space) => {
            let (bucket, key) = place.find(call)?;
            let found = space.get(bucket, key, |entry| entry.cloned());
            note_find(call, &place, &found);
            then(call, found)
        }
        Space::Redis(space) => {
            let (bucket, key) = place.find(call)?;
            match space.get(bucket, key) {
                Ok(found) => {
                    let then = boxed(move |call, found| {
                        note_find(call, &place, &found);
                        then(call, found)
                    });
                    Err(call.wait(found, then))
                }
                Err(error) => then(call, Err(error)),
            }
        }
    }
}

/// Notes, for what watches the invocation, that it read the entry at that place.
fn note_find(call: &mut Call<'_>, place: &impl Place, found: &Result<Option<Entry>, KvError>) {
    if call.context.watch.is_some()
        && let Ok(entry) = found
        && let Ok((bucket, key)) = place.find(call)
        && let Ok(key) = bucket.key(key)
    {
        note_reads(call.context, [(key, version(entry.as_ref()))]);
    }
}

/// Notes where the store fails: on what the invocation depends then is not known.
fn noted<T, R>(
    then: impl FnOnce(&mut Call<'_>, Result<T, KvError>) -> Result<R, Stop> + Send + 'static,
) -> impl FnOnce(&mut Call<'_>, Result<T, KvError>) -> Result<R, Stop> + Send + 'static {
    move |call, found| {
        if found.is_err()
            && let Some(trace) = call.context.trace_effects()
        {
            trace.read_failed = true;
        }
        then(call, found)
    }
}

fn note_reads(context: &mut Context, reads: impl IntoIterator<Item = (BucketKey, u64)>) {
    if let Some(trace) = context.trace_effects() {
        trace.read.extend(reads);
    }
}

/// Answers with what `then` makes of the list, when it has taken the keys of a range in order, as far as it takes them.
pub(in crate::host) fn keys<L: Listing, R: Into<Flat>>(
    call: &mut Call<'_>,
    range: Range,
    mut list: L,
    then: impl FnOnce(&mut Call<'_>, Result<L, KvError>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    let then = noted(then);
    let Range { bucket, prefix, after } = range;
    if let Some(trace) = call.context.trace_effects() {
        trace.listed.push((bucket.clone(), prefix.clone()));
    }
    if let Some(transaction) = call.context.transaction().cloned() {
        return within::keys(call, transaction, Range { bucket, prefix, after }, list, then);
    }
    match call.context.ports.kv()? {
        Space::Embedded(space) => {
            let listed = space.keys(&bucket, &prefix, after.as_deref(), |key| list.add(key));
            if let (Ok(version), Some(trace)) = (&listed, call.context.trace_effects()) {
                trace.sets.push((bucket, *version));
            }
            then(call, listed.map(|_| list))
        }
        Space::Redis(space) => {
            let prefix = bucket.key(&prefix);
            let bounds = prefix.and_then(|prefix| Ok((prefix, after.map(|after| bucket.key(&after)).transpose()?)));
            let (prefix, after) = match bounds {
                Ok(bounds) => bounds,
                Err(error) => return then(call, Err(error)),
            };
            let noted = call.context.watch.is_some().then(|| bucket.clone());
            let keys = space.clone().keys(bucket, prefix, after);
            let then = boxed(move |call, keys: Result<(Vec<Bytes>, u64), KvError>| {
                let listed = keys.map(|(keys, version)| {
                    if let Some((trace, bucket)) = call.context.trace_effects().zip(noted) {
                        trace.sets.push((bucket, version));
                    }
                    let _ = keys.iter().all(|key| list.add(key));
                    list
                });
                then(call, listed)
            });
            Err(call.wait(keys, then))
        }
    }
}

/// Answers with what `then` makes of the entries under these keys, none of which changes between the others.
pub(in crate::host) fn entries<R: Into<Flat>>(
    call: &mut Call<'_>,
    keys: Result<Vec<BucketKey>, KvError>,
    then: impl FnOnce(&mut Call<'_>, Result<Vec<Option<Entry>>, KvError>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    let then = noted(then);
    let keys = match keys {
        Ok(keys) => keys,
        Err(error) => return then(call, Err(error)),
    };
    if let Some(transaction) = call.context.transaction().cloned() {
        return within::entries(call, transaction, keys, then);
    }
    let note = |call: &mut Call<'_>, keys: Vec<BucketKey>, entries: &Result<Vec<Option<Entry>>, KvError>| {
        if let Ok(entries) = entries {
            note_reads(call.context, keys.into_iter().zip(entries.iter().map(|entry| version(entry.as_ref()))));
        }
    };
    match call.context.ports.kv()? {
        Space::Embedded(space) => {
            let entries = space.get_many(&keys);
            note(call, keys, &entries);
            then(call, entries)
        }
        Space::Redis(space) => {
            let noted = if call.context.watch.is_some() { keys.clone() } else { Vec::new() };
            let entries = space.clone().get_many(keys);
            let then = boxed(move |call, entries| {
                note(call, noted, &entries);
                then(call, entries)
            });
            Err(call.wait(entries, then))
        }
    }
}

/// Makes a commit, waits until it is durable, and answers with what `then` makes of its outcome. `wants_sum`: whether it asks what additions come to. Within a transaction the commit
/// is a part of that, and waits for nothing but what it has to know.
pub(in crate::host) fn commit<R: Into<Flat>>(
    call: &mut Call<'_>,
    commit: Result<Commit, KvError>,
    wants_sum: bool,
    then: impl FnOnce(&mut Call<'_>, Result<Outcome, KvError>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    let then = noted(then);
    let commit = match commit.and_then(|commit| commit.check().map(|()| commit)) {
        Ok(commit) => commit,
        Err(error) => return then(call, Err(error)),
    };
    let space = call.context.ports.kv_mut()?.clone();
    if let Some(transaction) = call.context.transaction().cloned() {
        return within::commit(call, transaction, commit, wants_sum, then);
    }
    // What was expected and found is as good as read; what was not found so is not known.
    let noted = call.context.watch.is_some().then(|| commit.clone());
    call.context.waiting_bytes = commit.bytes();
    let then = boxed(move |call, outcome| {
        call.context.waiting_bytes = 0;
        if let Ok(Outcome::Committed { .. }) = &outcome
            && let Some((trace, commit)) = call.context.trace_effects().zip(noted)
        {
            trace.read.extend(commit.expected);
            trace.written.extend(commit.changes.into_iter().map(|(key, _)| key));
        }
        then(call, outcome)
    });
    Err(call.wait(space.commit(commit), then))
}
