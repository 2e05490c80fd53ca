//! `sledge:keyvalue/store`: the store with versions and commits, for components.

use awsm_abi::types::ValType::{I32, I64};
use bytes::Bytes;

use crate::host::Effect::{KvRead, KvWrite};
use crate::host::canonical::{Lower, Lowering, Place, canonical, number};
use crate::host::kv;
use crate::host::kv::component::{self as store, Fault, Form, Page, answer};
use crate::host::{Call, Flat, HostFunction, Stop};
use crate::kv::{COMMIT_KEYS_MAX, Change, Commit, Entry, KvError, Outcome};

const STORE: &str = "sledge:keyvalue/store@0.1";

/// Our own buckets.
#[derive(Debug)]
enum Own {}

impl Form for Own {
    const BUCKET: u32 = number(STORE, "bucket");
    type Error = Error;
}

/// An `error`.
#[derive(Debug)]
struct Error(Fault);

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error(fault)
    }
}

impl Lower for Error {
    const SIZE: u32 = 12;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        let case = match &self.0 {
            Fault::NoSuchStore => 0,
            Fault::Store(KvError::TooLarge { .. } | KvError::TooLong { .. } | KvError::TooMany { .. }) => 1,
            Fault::Store(KvError::Full { .. }) => 2,
            Fault::Store(KvError::NotANumber) => 3,
            Fault::Store(KvError::Overflow) => 4,
            Fault::Store(KvError::Unavailable(_) | KvError::Unknown(_) | KvError::Fenced) | Fault::Cursor | Fault::ManyKeys => 5,
        };
        to.case(place, case);
        if case == 5 { self.0.to_string().lower(to, place.plus(4)) } else { Ok(()) }
    }
}

/// An `outcome`.
#[derive(Clone, Copy, Debug)]
struct Made(Outcome);

impl Lower for Made {
    const SIZE: u32 = 16;
    const ALIGN: u32 = 8;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        let version = match self.0 {
            Outcome::Committed { version, .. } => version,
            Outcome::Conflict { version, .. } => {
                to.case(place, 1);
                version
            }
        };
        version.lower(to, place.plus(8))
    }
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(STORE, "open", &[I32, I32, I32, I32], &[I32], KvRead, store::open::<Own>),
    canonical(STORE, "[method]bucket.get", &[I32, I32, I32, I32, I32], &[I32], KvRead, get),
    canonical(STORE, "[method]bucket.set", &[I32, I32, I32, I32, I32, I32, I32], &[I32], KvWrite, set),
    canonical(STORE, "[method]bucket.delete", &[I32, I32, I32, I32, I32], &[I32], KvWrite, store::delete::<Own>),
    canonical(STORE, "[method]bucket.exists", &[I32, I32, I32, I32, I32], &[I32], KvRead, store::exists::<Own>),
    canonical(STORE, "[method]bucket.list-keys", &[I32, I32, I32, I32, I32, I32, I32, I32], &[I32], KvRead, list_keys),
    canonical(STORE, "[method]bucket.increment", &[I32, I32, I32, I32, I64, I32], &[I32], KvWrite, store::increment::<Own>),
    canonical(STORE, "[method]bucket.compare-and-swap", &[I32, I32, I32, I32, I64, I32, I32, I32], &[I32], KvWrite, swap),
    canonical(STORE, "[method]bucket.get-many", &[I32, I32, I32, I32, I32], &[I32], KvRead, get_many),
    canonical(STORE, "[method]bucket.set-many", &[I32, I32, I32, I32, I32], &[I32], KvWrite, set_many),
    canonical(STORE, "[method]bucket.delete-many", &[I32, I32, I32, I32, I32], &[I32], KvWrite, store::delete_many::<Own>),
    canonical(STORE, "[method]bucket.commit", &[I32, I32, I32, I32, I32, I32, I32], &[I32], KvWrite, commit),
];

/// The version of what an unconditional commit wrote.
fn version(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Committed { version, .. } | Outcome::Conflict { version, .. } => version,
    }
}

/// An `entry`.
fn entry(entry: Entry) -> (Bytes, u64) {
    (entry.value, entry.version)
}

/// `get(self, key) -> result<option<entry>, error>`
fn get(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let place = store::held::<Own>(call, 2)?;
    kv::find(call, place, |call, found| answer::<Own, _>(call, 4, found.map(|found| found.map(entry))))
}

/// `set(self, key, value) -> result<u64, error>`
fn set(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let commit = store::put::<Own>(call)?;
    kv::commit(call, commit, false, |call, outcome| answer::<Own, _>(call, 6, outcome.map(version)))
}

/// `list-keys(self, prefix, cursor: option<string>) -> result<key-response, error>`
fn list_keys(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let range = match (store::held::<Own>(call, 2)?, store::after(call, 4)?) {
        (Ok(held), Ok(after)) => held.range(after),
        (Err(error), _) => return answer::<Own, (Vec<String>, Option<String>)>(call, 7, Err(error)),
        (_, Err(fault)) => return answer::<Own, (Vec<String>, Option<String>)>(call, 7, Err(fault)),
    };
    kv::keys(call, range, Page::default(), |call, page| {
        let response = page.map(|page| {
            let cursor = page.next().map(store::cursor);
            (page.keys, cursor)
        });
        answer::<Own, _>(call, 7, response)
    })
}

/// `compare-and-swap(self, key, expected: u64, value) -> result<outcome, error>`
fn swap(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let (key, value) = (store::bucket_key::<Own>(call, 2)?, store::value(call, 5)?);
    let expected = call.args.u64(4);
    let commit = key.and_then(|key| Ok(Commit::new(vec![(key.clone(), expected)], vec![(key, Change::Put(value?))])));
    kv::commit(call, commit, false, |call, outcome| answer::<Own, _>(call, 7, outcome.map(Made)))
}

/// `get-many(self, keys) -> result<list<option<entry>>, error>`
fn get_many(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let keys = store::key_list::<Own>(call, 2)?.map(|(_, keys)| keys);
    kv::entries(call, keys, |call, entries| {
        let found = entries.map(|entries| entries.into_iter().map(|found| found.map(entry)).collect::<Vec<_>>());
        answer::<Own, _>(call, 4, found)
    })
}

/// `set-many(self, pairs) -> result<u64, error>`
fn set_many(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let commit = store::pairs::<Own>(call)?;
    kv::commit(call, commit, false, |call, outcome| answer::<Own, _>(call, 4, outcome.map(version)))
}

/// `commit(self, expected: list<expected>, writes: list<write>) -> result<outcome, error>`
fn commit(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let bucket = store::bucket::<Own>(call)?;
    let keys = call.args.u32(3) as usize + call.args.u32(5) as usize;
    if keys > COMMIT_KEYS_MAX {
        return answer::<Own, Made>(call, 6, Err(KvError::TooMany { keys, keys_max: COMMIT_KEYS_MAX }));
    }
    let (expected, writes) = (call.list::<(String, u64)>(2)?.into_iter(), call.list::<(String, Option<Bytes>)>(4)?.into_iter());
    let expected = expected.map(|(key, version)| Ok((bucket.key(key.as_bytes())?, version)));
    let changes = writes.map(|(key, value)| Ok((bucket.key(key.as_bytes())?, value.map_or(Change::Delete, Change::Put))));
    let expected = expected.collect::<Result<_, KvError>>();
    let commit = expected.and_then(|expected| Ok(Commit::new(expected, changes.collect::<Result<_, KvError>>()?)));
    kv::commit(call, commit, false, |call, outcome| answer::<Own, _>(call, 6, outcome.map(Made)))
}
