//! `sledge:kv`: the key-value store of a function's tenant, as sdk/wit/keyvalue.wit says.
//!
//! Results below zero are WASI's error numbers, negated. Addresses of results may be 0 where the guest does not want them. See sdk/wit/README.md for the
//! layouts of lists.

use awsm_abi::types::ValType::{I32, I64};
use bytes::Bytes;
use sledge_sandbox::GuestMemory;

use super::{Listing, Place, Range};
use crate::host::Effect::{KvRead, KvWrite};
use crate::host::wasi::Errno;
use crate::host::{Call, Context, HostFunction, Stop, own};
use crate::kv::{
    BUCKET_BYTES_MAX, BucketKey, BucketName, COMMIT_BYTES_MAX, COMMIT_KEYS_MAX, Change, Commit, Entry, KEY_BYTES_MAX, KvError,
    Outcome, VALUE_BYTES_MAX,
};

/// Module name of the imports.
const MODULE: &str = "sledge:kv";
/// Buckets that one invocation has open.
const BUCKETS_MAX: usize = 16;
/// What stands in place of a length where there is no value.
const NOTHING: u32 = u32::MAX;

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    own(MODULE, "open", &[I32, I32], KvRead, open),
    own(MODULE, "get", &[I32, I32, I32, I32, I32, I32], KvRead, get),
    own(MODULE, "exists", &[I32, I32, I32], KvRead, exists),
    own(MODULE, "list-keys", &[I32, I32, I32, I32, I32, I32, I32], KvRead, list_keys),
    own(MODULE, "get-many", &[I32, I32, I32, I32, I32, I32], KvRead, get_many),
    own(MODULE, "set", &[I32, I32, I32, I32, I32, I32], KvWrite, set),
    own(MODULE, "delete", &[I32, I32, I32], KvWrite, delete),
    own(MODULE, "increment", &[I32, I32, I32, I64, I32], KvWrite, increment),
    own(MODULE, "compare-and-swap", &[I32, I32, I32, I64, I32, I32, I32], KvWrite, compare_and_swap),
    own(MODULE, "set-many", &[I32, I32, I32, I32], KvWrite, set_many),
    own(MODULE, "delete-many", &[I32, I32, I32], KvWrite, delete_many),
    own(MODULE, "commit", &[I32, I32, I32, I32, I32, I32], KvWrite, commit),
];

impl From<KvError> for Stop {
    fn from(error: KvError) -> Stop {
        Stop::Errno(match error {
            KvError::TooLarge { .. } | KvError::TooLong { .. } | KvError::TooMany { .. } => Errno::TOOBIG,
            KvError::Full { .. } => Errno::DQUOT,
            KvError::NotANumber => Errno::INVAL,
            KvError::Overflow => Errno::OVERFLOW,
            KvError::Unavailable(_) | KvError::Unknown(_) | KvError::Fenced => Errno::IO,
        })
    }
}

fn bucket(context: &Context, handle: u32) -> Result<&BucketName, Stop> {
    context.ports.buckets()?.get(handle as usize).ok_or(Stop::Errno(Errno::BADF))
}

/// A piece of the guest's memory of at most so many bytes.
fn piece<'a>(memory: &'a GuestMemory<'_>, at: u64, bytes: u32, bytes_max: usize) -> Result<&'a [u8], Stop> {
    let piece = memory.slice(at, bytes.into())?;
    if piece.len() > bytes_max { Err(Errno::TOOBIG.into()) } else { Ok(piece) }
}

/// A key of the call: its address and length are the arguments `index` and `index + 1`.
fn key<'a>(call: &'a Call<'_>, index: usize) -> Result<&'a [u8], Stop> {
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    piece(memory, call.args.address(index), call.args.u32(index + 1), KEY_BYTES_MAX)
}

/// The same as a key of the bucket that argument 0 names.
fn bucket_key(call: &Call<'_>, index: usize) -> Result<BucketKey, Stop> {
    Ok(bucket(call.context, call.args.u32(0))?.key(key(call, index)?)?)
}

/// A value of the call, as [`key`].
fn value(call: &Call<'_>, index: usize) -> Result<Bytes, Stop> {
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    Ok(Bytes::copy_from_slice(piece(memory, call.args.address(index), call.args.u32(index + 1), VALUE_BYTES_MAX)?))
}

/// `open(name, name_bytes) -> bucket`
fn open(call: &mut Call<'_>) -> Result<i32, Stop> {
    let (at, bytes) = (call.args.address(0), call.args.u32(1));
    let (memory, context) = call.split()?;
    context.ports.kv()?;
    let name = BucketName::new(piece(memory, at, bytes, BUCKET_BYTES_MAX)?).ok_or(Errno::INVAL)?;
    let buckets = context.ports.buckets_mut()?;
    if let Some(handle) = buckets.iter().position(|open| *open == name) {
        return Ok(handle as i32);
    }
    if buckets.len() >= BUCKETS_MAX {
        return Err(Errno::MFILE.into());
    }
    buckets.push(name);
    Ok(buckets.len() as i32 - 1)
}

/// The bucket and the key that arguments 0 to 2 name.
struct Named;

impl Place for Named {
    fn find<'p>(&'p self, call: &'p Call<'_>) -> Result<(&'p BucketName, &'p [u8]), Stop> {
        Ok((bucket(call.context, call.args.u32(0))?, key(call, 1)?))
    }
}

/// `get(bucket, key, key_bytes, value, value_bytes, version: *u64) -> bytes`: the value's length, of which as much is written as fits.
fn get(call: &mut Call<'_>) -> Result<i32, Stop> {
    super::find(call, Ok(Named), |call, entry| {
        let entry = entry?.ok_or(Errno::NOENT)?;
        let (at, room, version_at) = (call.args.address(3), u64::from(call.args.u32(4)), call.args.address(5));
        let (memory, _) = call.split()?;
        let fits = entry.value.len().min(room as usize);
        memory.slice(at, room)?;
        write_u64(memory, version_at, entry.version)?;
        memory.write(at, &entry.value[..fits])?;
        Ok(entry.value.len() as i32)
    })
}

/// `exists(bucket, key, key_bytes) -> 0 or 1`
fn exists(call: &mut Call<'_>) -> Result<i32, Stop> {
    super::find(call, Ok(Named), |_, entry| Ok(entry?.is_some().into()))
}

/// `list-keys(bucket, prefix, prefix_bytes, after, after_bytes, keys, keys_bytes) -> count`: each key as its length (u32) and its bytes.
fn list_keys(call: &mut Call<'_>) -> Result<i32, Stop> {
    let list = KeyList { room: (call.args.u32(6) as usize).min(COMMIT_BYTES_MAX), ..KeyList::default() };
    let bucket = bucket(call.context, call.args.u32(0))?.clone();
    let after = (call.args.u32(4) > 0).then(|| key(call, 3)).transpose()?.map(Box::from);
    let range = Range { bucket, prefix: key(call, 1)?.into(), after };
    super::keys(call, range, list, |call, list| list?.answer(call))
}

/// Keys on their way to the guest.
#[derive(Default)]
struct KeyList {
    bytes: Vec<u8>,
    count: usize,
    /// How much the guest has room for.
    room: usize,
    /// Whether there was one that did not fit.
    full: bool,
}

impl Listing for KeyList {
    fn add(&mut self, key: &[u8]) -> bool {
        self.full = self.bytes.len() + 4 + key.len() > self.room || self.count == COMMIT_KEYS_MAX;
        if !self.full {
            self.bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(key);
            self.count += 1;
        }
        !self.full
    }
}

impl KeyList {
    fn answer(self, call: &mut Call<'_>) -> Result<i32, Stop> {
        if self.full && self.count == 0 {
            return Err(Errno::RANGE.into());
        }
        let at = call.args.address(5);
        call.memory_mut()?.write(at, &self.bytes)?;
        Ok(self.count as i32)
    }
}

/// `get-many(bucket, keys: *(address, bytes), count, results: *(version: u64, offset, bytes), values, values_bytes) -> bytes`: values lie one behind the
/// other, as far as they fit; the result is what all need.
fn get_many(call: &mut Call<'_>) -> Result<i32, Stop> {
    let keys = keys(call, 1)?;
    super::entries(call, Ok(keys), |call, entries| put_many(call, &entries?))
}

fn put_many(call: &mut Call<'_>, entries: &[Option<Entry>]) -> Result<i32, Stop> {
    let (results, at, room) = (call.args.address(3), call.args.address(4), u64::from(call.args.u32(5)));
    let (memory, _) = call.split()?;
    memory.slice(at, room)?;
    memory.slice(results, 16 * entries.len() as u64)?;
    let mut used = 0;
    for (index, entry) in entries.iter().enumerate() {
        let result = results + 16 * index as u64;
        let (version, offset, bytes) = match entry {
            Some(entry) => (entry.version, used, entry.value.len() as u32),
            None => (0, 0, NOTHING),
        };
        memory.write_u64(result, version)?;
        memory.write_u32(result + 8, offset as u32)?;
        memory.write_u32(result + 12, bytes)?;
        if let Some(entry) = entry {
            if used + entry.value.len() as u64 <= room {
                memory.write(at + used, &entry.value)?;
            }
            used += entry.value.len() as u64;
        }
    }
    i32::try_from(used).map_err(|_| Errno::OVERFLOW.into())
}

/// `set(bucket, key, key_bytes, value, value_bytes, version: *u64) -> 0`
fn set(call: &mut Call<'_>) -> Result<i32, Stop> {
    let changes = vec![(bucket_key(call, 1)?, Change::Put(value(call, 3)?))];
    let version = call.args.address(5);
    write(call, Commit::new(Vec::new(), changes), version, 0, false)
}

/// `delete(bucket, key, key_bytes) -> 0`
fn delete(call: &mut Call<'_>) -> Result<i32, Stop> {
    let changes = vec![(bucket_key(call, 1)?, Change::Delete)];
    write(call, Commit::new(Vec::new(), changes), 0, 0, false)
}

/// `increment(bucket, key, key_bytes, delta: i64, sum: *i64) -> 0`
fn increment(call: &mut Call<'_>) -> Result<i32, Stop> {
    let changes = vec![(bucket_key(call, 1)?, Change::Add(call.args.u64(3).cast_signed()))];
    let sum = call.args.address(4);
    write(call, Commit::new(Vec::new(), changes), 0, sum, false)
}

/// `compare-and-swap(bucket, key, key_bytes, expected: u64, value, value_bytes, version: *u64) -> 0 or 1`: whether it did; `version` gets the new one, or
/// the one that there is.
fn compare_and_swap(call: &mut Call<'_>) -> Result<i32, Stop> {
    let key = bucket_key(call, 1)?;
    let commit = Commit::new(vec![(key.clone(), call.args.u64(3))], vec![(key, Change::Put(value(call, 4)?))]);
    let version = call.args.address(6);
    write(call, commit, version, 0, true)
}

/// `set-many(bucket, pairs: *(key, key_bytes, value, value_bytes), count, version: *u64) -> 0`
fn set_many(call: &mut Call<'_>) -> Result<i32, Stop> {
    let changes = changes(call, 1)?;
    let version = call.args.address(3);
    write(call, Commit::new(Vec::new(), changes), version, 0, false)
}

/// `delete-many(bucket, keys: *(address, bytes), count) -> 0`
fn delete_many(call: &mut Call<'_>) -> Result<i32, Stop> {
    let changes = keys(call, 1)?.into_iter().map(|key| (key, Change::Delete)).collect();
    write(call, Commit::new(Vec::new(), changes), 0, 0, false)
}

/// `commit(bucket, expected: *(key, key_bytes, version: u64), expected_count, changes, change_count, version: *u64) -> 0 or 1`; changes are as for
/// `set-many`, and those whose value has the length `0xffffffff` delete.
fn commit(call: &mut Call<'_>) -> Result<i32, Stop> {
    let count = count(call, 2)?;
    let (at, bucket) = (call.args.address(1), bucket(call.context, call.args.u32(0))?);
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    let mut expected = Vec::with_capacity(count);
    for row in rows(at, count, 16) {
        let key = piece(memory, memory.read_u32(row)?.into(), memory.read_u32(row + 4)?, KEY_BYTES_MAX)?;
        expected.push((bucket.key(key)?, memory.read_u64(row + 8)?));
    }
    let changes = changes(call, 3)?;
    let version = call.args.address(5);
    write(call, Commit::new(expected, changes), version, 0, true)
}

/// The length of a list, in argument `index`.
fn count(call: &Call<'_>, index: usize) -> Result<usize, Stop> {
    let count = call.args.u32(index) as usize;
    if count > COMMIT_KEYS_MAX { Err(Errno::TOOBIG.into()) } else { Ok(count) }
}

/// Addresses of the rows of a list. They may lie beyond the memory; reading there finds that out.
fn rows(at: u64, count: usize, bytes: usize) -> impl Iterator<Item = u64> {
    (0..count as u64).map(move |index| at + index * bytes as u64)
}

/// The keys in the list of arguments `index` and `index + 1`.
fn keys(call: &Call<'_>, index: usize) -> Result<Vec<BucketKey>, Stop> {
    let count = count(call, index + 1)?;
    let bucket = bucket(call.context, call.args.u32(0))?;
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    let key = |row| {
        let key = piece(memory, memory.read_u32(row)?.into(), memory.read_u32(row + 4)?, KEY_BYTES_MAX)?;
        Ok(bucket.key(key)?)
    };
    rows(call.args.address(index), count, 8).map(key).collect()
}

/// The changes in the list of arguments `index` and `index + 1`.
fn changes(call: &Call<'_>, index: usize) -> Result<Vec<(BucketKey, Change)>, Stop> {
    let count = count(call, index + 1)?;
    let bucket = bucket(call.context, call.args.u32(0))?;
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    let (mut changes, mut total) = (Vec::with_capacity(count), 0);
    for row in rows(call.args.address(index), count, 16) {
        let key = piece(memory, memory.read_u32(row)?.into(), memory.read_u32(row + 4)?, KEY_BYTES_MAX)?;
        let (at, bytes) = (memory.read_u32(row + 8)?, memory.read_u32(row + 12)?);
        let change = if bytes == NOTHING {
            Change::Delete
        } else {
            // Values may overlap: what is copied is bounded before it is.
            total += bytes as usize;
            if total > COMMIT_BYTES_MAX {
                return Err(Errno::TOOBIG.into());
            }
            Change::Put(Bytes::copy_from_slice(piece(memory, at.into(), bytes, VALUE_BYTES_MAX)?))
        };
        changes.push((bucket.key(key)?, change));
    }
    Ok(changes)
}

/// Makes a commit and waits for it. `conditional` says that a conflict is an answer: 0, and 1 for a commit that was made.
fn write(call: &mut Call<'_>, commit: Commit, version_at: u64, sum_at: u64, conditional: bool) -> Result<i32, Stop> {
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    for at in [version_at, sum_at] {
        if at != 0 {
            memory.slice(at, 8)?;
        }
    }
    super::commit(call, Ok(commit), sum_at != 0, move |call, outcome| {
        let memory = call.memory_mut()?;
        let committed = match outcome? {
            Outcome::Committed { version, sum } => {
                write_u64(memory, version_at, version)?;
                write_u64(memory, sum_at, sum.cast_unsigned())?;
                true
            }
            Outcome::Conflict { version, .. } => {
                write_u64(memory, version_at, version)?;
                false
            }
        };
        Ok(if conditional { i32::from(committed) } else { 0 })
    })
}

/// Writes a result, if anybody wants it.
fn write_u64(memory: &mut GuestMemory<'_>, at: u64, number: u64) -> Result<(), Stop> {
    if at != 0 {
        memory.write_u64(at, number)?;
    }
    Ok(())
}
