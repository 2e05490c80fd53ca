//! Buckets of components: what the packages that describe a key-value store have in common.
//!
//! Argument 0 of a call is the handle table; a method's bucket is argument 1. What fails is an `error` of the package in the result, and ends nothing.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use super::{Listing, Place, Range};
use crate::host::canonical::{Lower, Resource, Typed};
use crate::host::{Call, Flat, Stop};
use crate::kv::{
    BUCKET_BYTES_MAX, BucketKey, BucketName, COMMIT_BYTES_MAX, COMMIT_KEYS_MAX, Change, Commit, KEY_BYTES_MAX, KvError, Outcome,
    VALUE_BYTES_MAX,
};

/// The bucket that is opened without a name.
const DEFAULT: &str = "default";
/// The longest text of a cursor: a key in base64.
const CURSOR_BYTES_MAX: u64 = (KEY_BYTES_MAX as u64).div_ceil(3) * 4;
/// Places in the order of keys to which a bucket's numbers lead, the last ones.
const MARKS_MAX: usize = 64;

/// A package's form of the store.
pub(in crate::host) trait Form: fmt::Debug + 'static {
    /// The number of its bucket among the host's resources.
    const BUCKET: u32;
    /// How it says what failed.
    type Error: Lower + From<Fault>;
}

/// Why a component's operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::host) enum Fault {
    /// The server has no store, or that is no name of a bucket.
    NoSuchStore,
    /// The store says so.
    Store(KvError),
    /// A cursor that was not given.
    Cursor,
    /// More keys than one list holds.
    ManyKeys,
}

impl From<KvError> for Fault {
    fn from(error: KvError) -> Fault {
        Fault::Store(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoSuchStore => f.write_str("there is no such bucket"),
            Fault::Store(error) => error.fmt(f),
            Fault::Cursor => f.write_str("no cursor of this bucket"),
            Fault::ManyKeys => f.write_str("more keys than one list holds"),
        }
    }
}

/// A key's bytes.
type Key = Box<[u8]>;

/// A bucket that is open, in a package's form.
pub(in crate::host) struct Bucket<F> {
    name: BucketName,
    /// Keys behind which to go on, by the numbers that stand for them.
    marks: VecDeque<(u64, Box<[u8]>)>,
    form: PhantomData<fn() -> F>,
}

impl<F> fmt::Debug for Bucket<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<F: Form> Resource for Bucket<F> {
    fn memory_bytes(&self) -> usize {
        let marks = self.marks.iter().map(|(_, key)| key.len() + size_of::<(u64, Box<[u8]>)>()).sum::<usize>();
        BUCKET_BYTES_MAX + marks
    }
}

impl<F: Form> Typed for Bucket<F> {
    const NUMBER: u32 = F::BUCKET;
}

/// A bucket and a key, kept while the call waits.
#[derive(Clone, Debug)]
pub(in crate::host) struct Held {
    bucket: BucketName,
    key: Box<[u8]>,
}

impl Held {
    /// Both as one.
    pub(in crate::host) fn bucket_key(&self) -> Result<BucketKey, KvError> {
        self.bucket.key(&self.key)
    }

    /// The keys that begin with that key, and come behind another.
    pub(in crate::host) fn range(self, after: Option<Box<[u8]>>) -> Range {
        Range { bucket: self.bucket, prefix: self.key, after }
    }

    /// Bytes that it keeps.
    pub(in crate::host) fn memory_bytes(&self) -> usize {
        BUCKET_BYTES_MAX + self.key.len()
    }
}

impl Place for Held {
    fn find<'p>(&'p self, _: &'p Call<'_>) -> Result<(&'p BucketName, &'p [u8]), Stop> {
        Ok((&self.bucket, &self.key))
    }
}

/// The bucket that is argument 1.
pub(in crate::host) fn bucket<F: Form>(call: &mut Call<'_>) -> Result<BucketName, Stop> {
    Ok(call.borrowed::<Bucket<F>>(1)?.name.clone())
}

/// The key whose address and length are arguments `index` and `index + 1`.
fn key<'c>(call: &'c Call<'_>, index: usize) -> Result<Result<Cow<'c, str>, KvError>, Stop> {
    let bytes_max = KEY_BYTES_MAX;
    Ok(call.text_within(index, bytes_max as u64)?.ok_or(KvError::TooLong { what: "a key", bytes_max }))
}

/// The same, beside the bucket that is argument 1.
pub(in crate::host) fn held<F: Form>(call: &mut Call<'_>, index: usize) -> Result<Result<Held, KvError>, Stop> {
    let bucket = bucket::<F>(call)?;
    Ok(key(call, index)?.map(|key| Held { bucket, key: key.as_bytes().into() }))
}

/// The same as a key of that bucket.
pub(in crate::host) fn bucket_key<F: Form>(call: &mut Call<'_>, index: usize) -> Result<Result<BucketKey, KvError>, Stop> {
    let bucket = bucket::<F>(call)?;
    Ok(key(call, index)?.and_then(|key| bucket.key(key.as_bytes())))
}

/// The value whose address and length are arguments `index` and `index + 1`.
pub(in crate::host) fn value(call: &Call<'_>, index: usize) -> Result<Result<Bytes, KvError>, Stop> {
    let value = call.bytes(index)?;
    if value.len() > VALUE_BYTES_MAX {
        return Ok(Err(KvError::TooLarge { what: "a value", bytes: value.len(), bytes_max: VALUE_BYTES_MAX }));
    }
    Ok(Ok(Bytes::copy_from_slice(value)))
}

/// Whether the list whose length is argument `index + 1` may be as long.
pub(in crate::host) fn check_count(call: &Call<'_>, index: usize) -> Result<(), KvError> {
    let (keys, keys_max) = (call.args.u32(index + 1) as usize, COMMIT_KEYS_MAX);
    if keys > keys_max { Err(KvError::TooMany { keys, keys_max }) } else { Ok(()) }
}

/// The keys in the list whose address and length are arguments `index` and `index + 1`, by their names and as keys of the bucket that is argument 1.
#[expect(clippy::type_complexity, reason = "names, and the same as keys")]
pub(in crate::host) fn key_list<F: Form>(
    call: &mut Call<'_>,
    index: usize,
) -> Result<Result<(Vec<String>, Vec<BucketKey>), KvError>, Stop> {
    let bucket = bucket::<F>(call)?;
    if let Err(error) = check_count(call, index) {
        return Ok(Err(error));
    }
    let names = call.list::<String>(index)?;
    let keys = names.iter().map(|name| bucket.key(name.as_bytes())).collect::<Result<_, _>>();
    Ok(keys.map(|keys| (names, keys)))
}

/// The commit that sets the pairs in the list whose address and length are arguments 2 and 3.
pub(in crate::host) fn pairs<F: Form>(call: &mut Call<'_>) -> Result<Result<Commit, KvError>, Stop> {
    let bucket = bucket::<F>(call)?;
    if let Err(error) = check_count(call, 2) {
        return Ok(Err(error));
    }
    let pairs = call.list::<(String, Bytes)>(2)?.into_iter();
    let changes = pairs.map(|(name, value)| Ok((bucket.key(name.as_bytes())?, Change::Put(value)))).collect::<Result<_, _>>();
    Ok(changes.map(unconditional))
}

/// A commit that is made whatever there is.
pub(in crate::host) const fn unconditional(changes: Vec<(BucketKey, Change)>) -> Commit {
    Commit::new(Vec::new(), changes)
}

/// Gives the component what became of its operation, at the address that is argument `index`.
pub(in crate::host) fn answer<F: Form, T: Lower>(
    call: &mut Call<'_>,
    index: usize,
    result: Result<T, impl Into<Fault>>,
) -> Result<Flat, Stop> {
    call.lower(index, result.map_err(|fault| F::Error::from(fault.into())))
}

/// `open(identifier) -> result<bucket, error>`
pub(in crate::host) fn open<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let name = match call.context.ports.kv() {
        Ok(_) => call.text_within(1, BUCKET_BYTES_MAX as u64)?,
        Err(Stop::Errno(_)) => None,
        Err(stop) => return Err(stop),
    };
    let name = name.map(|name| if name.is_empty() { Cow::Borrowed(DEFAULT) } else { name });
    let opened = match name.and_then(|name| BucketName::new(name.as_bytes())) {
        Some(name) => Ok(call.give(Bucket::<F> { name, marks: VecDeque::new(), form: PhantomData })?),
        None => Err(Fault::NoSuchStore),
    };
    answer::<F, _>(call, 3, opened)
}

/// `get(self, key) -> result<option<list<u8>>, error>`
pub(in crate::host) fn get<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let place = held::<F>(call, 2)?;
    super::find(call, place, |call, entry| answer::<F, _>(call, 4, entry.map(|entry| entry.map(|entry| entry.value))))
}

/// `exists(self, key) -> result<bool, error>`
pub(in crate::host) fn exists<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let place = held::<F>(call, 2)?;
    super::find(call, place, |call, entry| answer::<F, _>(call, 4, entry.map(|entry| entry.is_some())))
}

/// Makes a commit whose result says no more than whether it was made.
pub(in crate::host) fn change<F: Form>(call: &mut Call<'_>, index: usize, commit: Result<Commit, KvError>) -> Result<Flat, Stop> {
    super::commit(call, commit, false, move |call, outcome| answer::<F, _>(call, index, outcome.map(|_| ())))
}

/// The commit that puts a value, the list of arguments 4 and 5, under the key of arguments 2 and 3.
pub(in crate::host) fn put<F: Form>(call: &mut Call<'_>) -> Result<Result<Commit, KvError>, Stop> {
    let (key, value) = (bucket_key::<F>(call, 2)?, value(call, 4)?);
    Ok(key.and_then(|key| Ok(unconditional(vec![(key, Change::Put(value?))]))))
}

/// `set(self, key, value) -> result<_, error>`
pub(in crate::host) fn set<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let commit = put::<F>(call)?;
    change::<F>(call, 6, commit)
}

/// `delete(self, key) -> result<_, error>`
pub(in crate::host) fn delete<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let key = bucket_key::<F>(call, 2)?;
    change::<F>(call, 4, key.map(|key| unconditional(vec![(key, Change::Delete)])))
}

/// `set-many(bucket, key-values) -> result<_, error>`
pub(in crate::host) fn set_many<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let commit = pairs::<F>(call)?;
    change::<F>(call, 4, commit)
}

/// `delete-many(bucket, keys) -> result<_, error>`
pub(in crate::host) fn delete_many<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let keys = key_list::<F>(call, 2)?;
    let commit = keys.map(|(_, keys)| unconditional(keys.into_iter().map(|key| (key, Change::Delete)).collect()));
    change::<F>(call, 4, commit)
}

/// Adds to the number under the key of arguments 2 and 3; `then` gets the sum.
pub(in crate::host) fn add<F: Form, T: Lower + 'static>(
    call: &mut Call<'_>,
    delta: Result<i64, KvError>,
    then: fn(i64) -> Result<T, KvError>,
) -> Result<Flat, Stop> {
    let key = bucket_key::<F>(call, 2)?;
    let commit = key.and_then(|key| Ok(unconditional(vec![(key, Change::Add(delta?))])));
    super::commit(call, commit, true, move |call, outcome| {
        let sum = outcome.and_then(|outcome| match outcome {
            Outcome::Committed { sum, .. } => then(sum),
            // Nothing was expected.
            Outcome::Conflict { .. } => Err(KvError::Unavailable("a conflict without a condition".to_owned())),
        });
        answer::<F, _>(call, 5, sum)
    })
}

/// `increment(bucket, key, delta: s64) -> result<s64, error>`
pub(in crate::host) fn increment<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let delta = call.args.u64(4).cast_signed();
    add::<F, i64>(call, Ok(delta), Ok)
}

/// Keys of a bucket on their way to a component, whose strings are in UTF-8: other keys are left out.
#[derive(Debug, Default)]
pub(in crate::host) struct Page {
    /// Those that are strings.
    pub(in crate::host) keys: Vec<String>,
    /// Bytes of them.
    pub(in crate::host) bytes: usize,
    /// How many it has seen.
    seen: usize,
    /// The last one that it has seen.
    last: Vec<u8>,
    /// Whether there are more.
    is_full: bool,
}

impl Page {
    /// The key behind which there are more.
    pub(in crate::host) fn next(&self) -> Option<&[u8]> {
        self.is_full.then_some(&*self.last)
    }
}

impl Listing for Page {
    fn add(&mut self, key: &[u8]) -> bool {
        self.is_full = self.seen == COMMIT_KEYS_MAX || self.bytes + key.len() > COMMIT_BYTES_MAX;
        if self.is_full {
            return false;
        }
        self.seen += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
        if let Ok(text) = std::str::from_utf8(key) {
            self.bytes += key.len();
            self.keys.push(text.to_owned());
        }
        true
    }
}

/// All keys of the bucket that is argument 1.
pub(in crate::host) fn all<F: Form>(call: &mut Call<'_>) -> Result<Range, Stop> {
    Ok(Range { bucket: bucket::<F>(call)?, prefix: Box::default(), after: None })
}

/// The text that stands for a key behind which to go on.
pub(in crate::host) fn cursor(key: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

/// The key for which the cursor stands, an option with its case in argument `index` and its text in the two behind it.
pub(in crate::host) fn after(call: &Call<'_>, index: usize) -> Result<Result<Option<Key>, Fault>, Stop> {
    if !call.is_some(index)? {
        return Ok(Ok(None));
    }
    let text = call.text_within(index + 1, CURSOR_BYTES_MAX)?;
    let key = text.and_then(|text| URL_SAFE_NO_PAD.decode(&*text).ok()).filter(|key| key.len() <= KEY_BYTES_MAX);
    Ok(key.map(|key| Some(key.into())).ok_or(Fault::Cursor))
}

/// The number that stands for a key behind which to go on, among those of the bucket that is argument 1.
pub(in crate::host) fn mark<F: Form>(call: &mut Call<'_>, key: &[u8]) -> Result<u64, Stop> {
    let representation = call.representation::<Bucket<F>>(1)?;
    let marks = &mut call.context.ports.resource::<Bucket<F>>(representation)?.marks;
    if let Some((number, _)) = marks.iter().find(|(_, marked)| **marked == *key) {
        return Ok(*number);
    }
    let number = marks.back().map_or(1, |(number, _)| number + 1);
    if marks.len() >= MARKS_MAX {
        marks.pop_front();
    }
    marks.push_back((number, key.into()));
    call.context.ports.resources_mut().count(representation)?;
    Ok(number)
}

/// The key for which that number stands.
pub(in crate::host) fn marked<F: Form>(call: &mut Call<'_>, number: u64) -> Result<Result<Box<[u8]>, Fault>, Stop> {
    let marks = &call.borrowed::<Bucket<F>>(1)?.marks;
    let mark = marks.iter().find(|(mark, _)| *mark == number);
    Ok(mark.map(|(_, key)| key.clone()).ok_or(Fault::Cursor))
}
