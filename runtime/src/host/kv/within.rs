//! The store as an invocation with a transaction sees it: what it has read and written itself, and where that does not say it, the store.

use std::iter::Peekable;
use std::sync::Arc;
use std::vec;

use super::{Call, Flat, Listing, Range, Stop, boxed};
use crate::kv::{BucketKey, BucketName, COMMIT_KEYS_MAX, Change, Commit, Entry, KvError, Outcome, Space};
use crate::txn::{Early, Transaction};

/// As [`super::find`].
pub(super) fn find<R: Into<Flat>>(
    call: &mut Call<'_>,
    transaction: Arc<Transaction>,
    key: BucketKey,
    then: impl FnOnce(&mut Call<'_>, Result<Option<Entry>, KvError>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    if let Some(stall) = transaction.stalls(std::iter::once(&key)) {
        return Err(call.wait(stall, boxed(move |call, ()| find(call, transaction, key, then))));
    }
    match transaction.read(&key) {
        Ok(Some(entry)) => then(call, Ok(entry)),
        Ok(None) => {
            if let Space::Embedded(space) = call.context.ports.kv()?
                && transaction.contended(std::iter::once(&key)).is_empty()
            {
                let found = space.entry(&key).and_then(|entry| transaction.learn(&key, entry));
                return then(call, found);
            }
            let keys = vec![key.clone()];
            ask(call, Arc::clone(&transaction), keys, move |call, learnt| {
                then(call, learnt.and_then(|()| known(&transaction, &key)))
            })
        }
        Err(error) => then(call, Err(error)),
    }
}

/// As [`super::entries`].
pub(super) fn entries<R: Into<Flat>>(
    call: &mut Call<'_>,
    transaction: Arc<Transaction>,
    keys: Vec<BucketKey>,
    then: impl FnOnce(&mut Call<'_>, Result<Vec<Option<Entry>>, KvError>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    if let Some(stall) = transaction.stalls(keys.iter()) {
        return Err(call.wait(stall, boxed(move |call, ()| entries(call, transaction, keys, then))));
    }
    let expected = keys.iter().map(|key| (key.clone(), 0)).collect();
    let unknown = match transaction.needs(&Commit::new(expected, Vec::new()), false) {
        Ok(unknown) => unknown,
        Err(error) => return then(call, Err(error)),
    };
    let answer = move |call: &mut Call<'_>, learnt: Result<(), KvError>| {
        let entries = learnt.and_then(|()| keys.iter().map(|key| known(&transaction, key)).collect());
        then(call, entries)
    };
    match unknown.is_empty() {
        true => answer(call, Ok(())),
        false => {
            let transaction = call.context.transaction().cloned().ok_or(Stop::Refused)?;
            ask(call, transaction, unknown, answer)
        }
    }
}

/// As [`super::commit`].
pub(super) fn commit<R: Into<Flat>>(
    call: &mut Call<'_>,
    transaction: Arc<Transaction>,
    commit: Commit,
    wants_sum: bool,
    then: impl FnOnce(&mut Call<'_>, Result<Outcome, KvError>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    let added = commit.changes.iter().filter(|(_, change)| wants_sum && matches!(change, Change::Add(_))).map(|(key, _)| key);
    if let Some(stall) = transaction.stalls(commit.expected.iter().map(|(key, _)| key).chain(added)) {
        call.context.waiting_bytes = commit.bytes();
        return Err(call.wait(
            stall,
            boxed(move |call, ()| {
                call.context.waiting_bytes = 0;
                self::commit(call, transaction, commit, wants_sum, then)
            }),
        ));
    }
    match transaction.needs(&commit, wants_sum) {
        Ok(unknown) if unknown.is_empty() => then(call, transaction.make(&commit)),
        Ok(unknown) => {
            call.context.waiting_bytes = commit.bytes();
            ask(call, Arc::clone(&transaction), unknown, move |call, learnt| {
                call.context.waiting_bytes = 0;
                then(call, learnt.and_then(|()| transaction.make(&commit)))
            })
        }
        Err(error) => then(call, Err(error)),
    }
}

/// What the transaction knows of a key that it has learnt.
fn known(transaction: &Transaction, key: &BucketKey) -> Result<Option<Entry>, KvError> {
    Ok(transaction.read(key)?.flatten())
}

/// Learns what the store has under these keys. Where transactions take turns over some of them, waits for these turns first.
fn ask<R: Into<Flat>>(
    call: &mut Call<'_>,
    transaction: Arc<Transaction>,
    keys: Vec<BucketKey>,
    then: impl FnOnce(&mut Call<'_>, Result<(), KvError>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    let contended = transaction.contended(keys.iter());
    if contended.is_empty() {
        return fetch(call, transaction, keys, then);
    }
    let for_it = Arc::clone(&transaction);
    let turns = async move { for_it.take_turns(contended).await };
    let then = boxed(move |call, ()| fetch(call, transaction, keys, then));
    Err(call.wait(turns, then))
}

fn fetch<R: Into<Flat>>(
    call: &mut Call<'_>,
    transaction: Arc<Transaction>,
    keys: Vec<BucketKey>,
    then: impl FnOnce(&mut Call<'_>, Result<(), KvError>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    let learn = move |transaction: &Transaction, keys: Vec<BucketKey>, entries: Result<Vec<Option<Entry>>, KvError>| {
        let mut pairs = keys.iter().zip(entries?);
        pairs.try_for_each(|(key, entry)| transaction.learn(key, entry).map(|_| ()))
    };
    match call.context.ports.kv()? {
        Space::Embedded(space) => {
            let entries = space.get_many(&keys);
            then(call, learn(&transaction, keys, entries))
        }
        Space::Redis(space) => match transaction.fetched(&keys) {
            Early::Known(entries) => then(call, learn(&transaction, keys, Ok(entries))),
            Early::UnderWay(wait) => Err(call.wait(wait, boxed(move |call, ()| fetch(call, transaction, keys, then)))),
            Early::Unknown => {
                let entries = space.clone().get_many(keys.clone());
                let then = boxed(move |call, entries| then(call, learn(&transaction, keys, entries)));
                Err(call.wait(entries, then))
            }
        },
    }
}

/// As [`super::keys`].
pub(super) fn keys<L: Listing, R: Into<Flat>>(
    call: &mut Call<'_>,
    transaction: Arc<Transaction>,
    Range { bucket, prefix, after }: Range,
    list: L,
    then: impl FnOnce(&mut Call<'_>, Result<L, KvError>) -> Result<R, Stop> + Send + 'static,
) -> Result<R, Stop> {
    let bounds = bucket.key(&prefix).and_then(|first| Ok((first, after.map(|after| bucket.key(&after)).transpose()?)));
    let (first, after) = match bounds {
        Ok(bounds) => bounds,
        Err(error) => return then(call, Err(error)),
    };
    let own = transaction.own_keys(&bucket, after.as_ref().filter(|after| **after > first).unwrap_or(&first));
    let own =
        own.into_iter().filter(|(key, _)| key.key().starts_with(&prefix) && Some(key) != after.as_ref()).collect::<Vec<_>>();
    let mut merged = Merged { own: own.into_iter().peekable(), list, is_full: false };
    match call.context.ports.kv()? {
        Space::Embedded(space) => {
            let after = after.as_ref().map(BucketKey::key);
            let listed = space.keys(&bucket, &prefix, after, |key| merged.add(key));
            let listed = listed.and_then(|version| transaction.list(&bucket, version)).map(|()| merged.finish());
            then(call, listed)
        }
        Space::Redis(space) => {
            let listed = of_redis(space.clone(), transaction, bucket, (first, after), merged);
            Err(call.wait(listed, boxed(then)))
        }
    }
}

/// Page by page: a page of which the transaction has removed keys may leave room for more.
async fn of_redis<L: Listing>(
    space: crate::kv::redis::Space,
    transaction: Arc<Transaction>,
    bucket: BucketName,
    (first, mut after): (BucketKey, Option<BucketKey>),
    mut merged: Merged<L>,
) -> Result<L, KvError> {
    loop {
        let (keys, version) = space.clone().keys(bucket.clone(), first.clone(), after).await?;
        transaction.list(&bucket, version)?;
        let is_last = keys.len() <= COMMIT_KEYS_MAX;
        let takes_more = keys.iter().all(|key| merged.add(key));
        let Some(last) = keys.last().filter(|_| takes_more && !is_last) else { return Ok(merged.finish()) };
        after = Some(bucket.key(last)?);
    }
}

/// Keys of the store and of the transaction on their way to the guest, in order.
struct Merged<L> {
    /// Keys that the transaction has added, or removed.
    own: Peekable<vec::IntoIter<(BucketKey, bool)>>,
    list: L,
    is_full: bool,
}

impl<L: Listing> Merged<L> {
    /// Takes a key of the store, behind those of the transaction that come before it. Whether it takes more.
    fn add(&mut self, key: &[u8]) -> bool {
        self.add_own_before(Some(key));
        let own = self.own.next_if(|(own, _)| own.key() == key);
        if !self.is_full && own.is_none_or(|(_, is_there)| is_there) {
            self.is_full = !self.list.add(key);
        }
        !self.is_full
    }

    /// The list, with all of the transaction's that come behind.
    fn finish(mut self) -> L {
        self.add_own_before(None);
        self.list
    }

    fn add_own_before(&mut self, key: Option<&[u8]>) {
        while !self.is_full
            && let Some((own, is_there)) = self.own.next_if(|(own, _)| key.is_none_or(|key| own.key() < key))
        {
            self.is_full = is_there && !self.list.add(own.key());
        }
    }
}
