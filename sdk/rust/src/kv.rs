//! The key-value store of the function's tenant.
//!
//! Every value has the version of the commit that wrote it, and versions only grow; 0 stands for a key that does not exist. What writes
//! returns when it is durable.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sys;

/// A bucket: keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket(u32);

/// What there is under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// That of the commit that wrote it.
    pub version: u64,
    /// What it wrote.
    pub value: Vec<u8>,
}

/// What became of a change on condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was made; what it wrote has this version.
    Committed(u64),
    /// It was not: the first key that had not the expected version has this one.
    Conflict(u64),
}

/// Why something was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The server has no key-value store.
    NoStore,
    /// A bucket's name is none.
    Name,
    /// A key, a value, a list or a commit is larger than it may be.
    TooLarge,
    /// More than 16 buckets are open.
    TooManyOpen,
    /// There is no room for this tenant, or for all together.
    Full,
    /// What was to be added to is no decimal number of 64 bits, or what was to be read no such JSON.
    NotSuch,
    /// The sum has more than 64 bits.
    Overflow,
    /// The store does not work. A change may have been made.
    Unavailable,
    /// Another of WASI's error numbers.
    Other(i32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::NoStore => "the server has no key-value store (`kv` in its configuration)",
            Error::Name => "a bucket's name has 1 to 64 bytes without zeros",
            Error::TooLarge => "larger than the key-value store takes: keys 1 KiB, values 1 MiB, commits and what is asked for together 1024 keys and 4 MiB",
            Error::TooManyOpen => "more than 16 buckets are open",
            Error::Full => "the key-value store has no more room for this tenant",
            Error::NotSuch => "the value is not of the kind that was wanted",
            Error::Overflow => "the sum has more than 64 bits",
            Error::Unavailable => "the key-value store does not work; the server's log says why",
            Error::Other(number) => return write!(f, "the key-value store: error {number}"),
        })
    }
}

impl std::error::Error for Error {}

impl From<i32> for Error {
    fn from(number: i32) -> Error {
        match number {
            sys::E2BIG => Error::TooLarge,
            sys::EDQUOT => Error::Full,
            sys::EINVAL => Error::NotSuch,
            sys::EIO => Error::Unavailable,
            sys::EMFILE => Error::TooManyOpen,
            sys::ENOTSUP => Error::NoStore,
            sys::EOVERFLOW => Error::Overflow,
            other => Error::Other(other),
        }
    }
}

fn outcome((made, version): (bool, u64)) -> Outcome {
    if made { Outcome::Committed(version) } else { Outcome::Conflict(version) }
}

fn entry((version, value): (u64, Vec<u8>)) -> Entry {
    Entry { version, value }
}

/// Opens a bucket, which needs not exist.
///
/// # Errors
/// When there is no store, or this is no name.
pub fn open(name: &str) -> Result<Bucket, Error> {
    match sys::kv_open(name.as_bytes()) {
        Ok(handle) => Ok(Bucket(handle)),
        Err(sys::EINVAL | sys::E2BIG) => Err(Error::Name),
        Err(number) => Err(number.into()),
    }
}

impl Bucket {
    /// What there is under a key.
    ///
    /// # Errors
    /// When the key is too long, or the store does not work; so for all that follow.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Entry>, Error> {
        Ok(sys::kv_get(self.0, key.as_ref())?.map(entry))
    }

    /// The same, from JSON.
    ///
    /// # Errors
    /// Besides, when it is no such JSON.
    pub fn get_json<T: DeserializeOwned>(&self, key: impl AsRef<[u8]>) -> Result<Option<T>, Error> {
        self.get(key)?.map(|entry| serde_json::from_slice(&entry.value).map_err(|_| Error::NotSuch)).transpose()
    }

    /// Whether there is something under a key.
    ///
    /// # Errors
    /// As for [`Bucket::get`].
    pub fn exists(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(sys::kv_exists(self.0, key.as_ref())?)
    }

    /// All keys that begin with `prefix`, in order.
    ///
    /// # Errors
    /// As for [`Bucket::get`].
    pub fn keys(&self, prefix: impl AsRef<[u8]>) -> Result<Vec<Vec<u8>>, Error> {
        let mut all: Vec<Vec<u8>> = Vec::new();
        loop {
            let more = sys::kv_list_keys(self.0, prefix.as_ref(), all.last().map_or(&[], |last| last))?;
            if more.is_empty() {
                return Ok(all);
            }
            all.extend(more);
        }
    }

    /// What there is under several keys at one moment.
    ///
    /// # Errors
    /// As for [`Bucket::get`].
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Entry>>, Error> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        Ok(sys::kv_get_many(self.0, &keys)?.into_iter().map(|found| found.map(entry)).collect())
    }

    /// Puts a value under a key; its version.
    ///
    /// # Errors
    /// As for [`Bucket::get`], and when there is no room.
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<u64, Error> {
        Ok(sys::kv_set(self.0, key.as_ref(), value.as_ref())?)
    }

    /// The same, as JSON.
    ///
    /// # Errors
    /// Besides, when it cannot be JSON.
    pub fn set_json<T: Serialize>(&self, key: impl AsRef<[u8]>, value: &T) -> Result<u64, Error> {
        self.set(key, serde_json::to_vec(value).map_err(|_| Error::NotSuch)?)
    }

    /// Removes a key, if it is there.
    ///
    /// # Errors
    /// As for [`Bucket::get`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<(), Error> {
        Ok(sys::kv_delete(self.0, key.as_ref())?)
    }

    /// Adds to a decimal number, which is 0 where there is none; the sum.
    ///
    /// # Errors
    /// Besides, when there is something else, or the sum has more than 64 bits.
    pub fn increment(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<i64, Error> {
        Ok(sys::kv_increment(self.0, key.as_ref(), delta)?)
    }

    /// The same without the sum. In a transaction that is no read: requests that add to the same number do not conflict.
    ///
    /// # Errors
    /// As for [`Bucket::increment`].
    pub fn add(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<(), Error> {
        Ok(sys::kv_add(self.0, key.as_ref(), delta)?)
    }

    /// Puts a value under a key if it has the version `expected`.
    ///
    /// # Errors
    /// As for [`Bucket::set`].
    pub fn compare_and_swap(&self, key: impl AsRef<[u8]>, expected: u64, value: impl AsRef<[u8]>) -> Result<Outcome, Error> {
        Ok(outcome(sys::kv_compare_and_swap(self.0, key.as_ref(), expected, value.as_ref())?))
    }

    /// Puts several values under their keys at once; their version.
    ///
    /// # Errors
    /// As for [`Bucket::set`].
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, pairs: &[(K, V)]) -> Result<u64, Error> {
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.as_ref(), value.as_ref())).collect();
        Ok(sys::kv_set_many(self.0, &pairs)?)
    }

    /// Removes several keys at once.
    ///
    /// # Errors
    /// As for [`Bucket::get`].
    pub fn delete_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<(), Error> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        Ok(sys::kv_delete_many(self.0, &keys)?)
    }

    /// Makes all changes (none to remove a key), if all keys have the versions expected of them, and else none.
    ///
    /// # Errors
    /// As for [`Bucket::set`].
    pub fn commit(&self, expected: &[(&[u8], u64)], changes: &[(&[u8], Option<&[u8]>)]) -> Result<Outcome, Error> {
        Ok(outcome(sys::kv_commit(self.0, expected, changes)?))
    }
}
