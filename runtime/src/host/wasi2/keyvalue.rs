//! `wasi:keyvalue`: the store of the function's tenant, in both drafts that components import.
//!
//! `draft` counts without a sign, has numbers as cursors, and no compare-and-swap. `draft2` has the opposite of each. Both answer `get-many` in another way.

use awsm_abi::types::ValType::{I32, I64};
use bytes::Bytes;

use crate::host::Effect::{KvRead, KvWrite};
use crate::host::canonical::{Lower, Lowering, Own, Place, Resource, Typed, canonical, number};
use crate::host::kv;
use crate::host::kv::Range;
use crate::host::kv::component::{self as store, Fault, Form, Held, Page, answer};
use crate::host::{Call, Flat, HostFunction, Stop};
use crate::kv::{Change, Commit, Entry, KvError, Outcome};

const STORE: &str = "wasi:keyvalue/store@0.2.0-draft";
const STORE2: &str = "wasi:keyvalue/store@0.2.0-draft2";
const ATOMICS: &str = "wasi:keyvalue/atomics@0.2.0-draft";
const ATOMICS2: &str = "wasi:keyvalue/atomics@0.2.0-draft2";
const BATCH: &str = "wasi:keyvalue/batch@0.2.0-draft";
const BATCH2: &str = "wasi:keyvalue/batch@0.2.0-draft2";

/// Buckets of `draft`.
#[derive(Debug)]
enum Draft {}

/// Buckets of `draft2`.
#[derive(Debug)]
enum Draft2 {}

impl Form for Draft {
    const BUCKET: u32 = number(STORE, "bucket");
    type Error = Error;
}

impl Form for Draft2 {
    const BUCKET: u32 = number(STORE2, "bucket");
    type Error = Error;
}

/// An `error`; `access-denied` does not happen.
#[derive(Debug)]
enum Error {
    NoSuchStore,
    Other(String),
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::NoSuchStore => Error::NoSuchStore,
            other => Error::Other(other.to_string()),
        }
    }
}

impl Lower for Error {
    const SIZE: u32 = 12;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        match self {
            Error::NoSuchStore => Ok(()),
            Error::Other(words) => {
                to.case(place, 2);
                words.lower(to, place.plus(4))
            }
        }
    }
}

/// The interfaces.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(STORE, "open", &[I32, I32, I32, I32], &[I32], KvRead, store::open::<Draft>),
    canonical(STORE, "[method]bucket.get", &[I32, I32, I32, I32, I32], &[I32], KvRead, store::get::<Draft>),
    canonical(STORE, "[method]bucket.set", &[I32, I32, I32, I32, I32, I32, I32], &[I32], KvWrite, store::set::<Draft>),
    canonical(STORE, "[method]bucket.delete", &[I32, I32, I32, I32, I32], &[I32], KvWrite, store::delete::<Draft>),
    canonical(STORE, "[method]bucket.exists", &[I32, I32, I32, I32, I32], &[I32], KvRead, store::exists::<Draft>),
    canonical(STORE, "[method]bucket.list-keys", &[I32, I32, I32, I64, I32], &[I32], KvRead, list_keys),
    canonical(STORE2, "open", &[I32, I32, I32, I32], &[I32], KvRead, store::open::<Draft2>),
    canonical(STORE2, "[method]bucket.get", &[I32, I32, I32, I32, I32], &[I32], KvRead, store::get::<Draft2>),
    canonical(STORE2, "[method]bucket.set", &[I32, I32, I32, I32, I32, I32, I32], &[I32], KvWrite, store::set::<Draft2>),
    canonical(STORE2, "[method]bucket.delete", &[I32, I32, I32, I32, I32], &[I32], KvWrite, store::delete::<Draft2>),
    canonical(STORE2, "[method]bucket.exists", &[I32, I32, I32, I32, I32], &[I32], KvRead, store::exists::<Draft2>),
    canonical(STORE2, "[method]bucket.list-keys", &[I32, I32, I32, I32, I32, I32], &[I32], KvRead, list_keys_by_text),
    canonical(ATOMICS, "increment", &[I32, I32, I32, I32, I64, I32], &[I32], KvWrite, increment),
    canonical(ATOMICS2, "increment", &[I32, I32, I32, I32, I64, I32], &[I32], KvWrite, store::increment::<Draft2>),
    canonical(ATOMICS2, "[static]cas.new", &[I32, I32, I32, I32, I32], &[I32], KvRead, cas),
    canonical(ATOMICS2, "[method]cas.current", &[I32, I32, I32], &[I32], KvRead, current),
    canonical(ATOMICS2, "swap", &[I32, I32, I32, I32, I32], &[I32], KvWrite, swap),
    canonical(BATCH, "get-many", &[I32, I32, I32, I32, I32], &[I32], KvRead, get_many::<Draft>),
    canonical(BATCH, "set-many", &[I32, I32, I32, I32, I32], &[I32], KvWrite, store::set_many::<Draft>),
    canonical(BATCH, "delete-many", &[I32, I32, I32, I32, I32], &[I32], KvWrite, store::delete_many::<Draft>),
    canonical(BATCH2, "get-many", &[I32, I32, I32, I32, I32], &[I32], KvRead, get_many::<Draft2>),
    canonical(BATCH2, "set-many", &[I32, I32, I32, I32, I32], &[I32], KvWrite, store::set_many::<Draft2>),
    canonical(BATCH2, "delete-many", &[I32, I32, I32, I32, I32], &[I32], KvWrite, store::delete_many::<Draft2>),
];

/// `list-keys(self, cursor: option<u64>) -> result<key-response, error>`
fn list_keys(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let number = call.args.u64(3);
    let after = if call.is_some(2)? { store::marked::<Draft>(call, number)?.map(Some) } else { Ok(None) };
    let after = match after {
        Ok(after) => after,
        Err(fault) => return answer::<Draft, (Vec<String>, Option<u64>)>(call, 4, Err(fault)),
    };
    let range = Range { after, ..store::all::<Draft>(call)? };
    kv::keys(call, range, Page::default(), |call, page| {
        let response = match page {
            Ok(page) => {
                let cursor = page.next().map(|last| store::mark::<Draft>(call, last)).transpose()?;
                Ok((page.keys, cursor))
            }
            Err(error) => Err(error),
        };
        answer::<Draft, _>(call, 4, response)
    })
}

/// `list-keys(self, cursor: option<string>) -> result<key-response, error>`
fn list_keys_by_text(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let after = match store::after(call, 2)? {
        Ok(after) => after,
        Err(fault) => return answer::<Draft2, (Vec<String>, Option<String>)>(call, 5, Err(fault)),
    };
    let range = Range { after, ..store::all::<Draft2>(call)? };
    kv::keys(call, range, Page::default(), |call, page| {
        let response = page.map(|page| {
            let cursor = page.next().map(store::cursor);
            (page.keys, cursor)
        });
        answer::<Draft2, _>(call, 5, response)
    })
}

/// `increment(bucket, key, delta: u64) -> result<u64, error>`
fn increment(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let delta = i64::try_from(call.args.u64(4)).map_err(|_| KvError::Overflow);
    store::add::<Draft, u64>(call, delta, |sum| u64::try_from(sum).map_err(|_| KvError::Overflow))
}

/// How a draft answers `get-many`.
trait Found: Form {
    /// Of one key.
    type Pair: Lower;

    fn pair(name: String, entry: Option<Entry>) -> Self::Pair;
}

impl Found for Draft {
    type Pair = Option<(String, Bytes)>;

    fn pair(name: String, entry: Option<Entry>) -> Self::Pair {
        entry.map(|entry| (name, entry.value))
    }
}

impl Found for Draft2 {
    type Pair = (String, Option<Bytes>);

    fn pair(name: String, entry: Option<Entry>) -> Self::Pair {
        (name, entry.map(|entry| entry.value))
    }
}

/// `get-many(bucket, keys) -> result<list<...>, error>`: of each key what its draft says.
fn get_many<F: Found>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let (names, keys) = match store::key_list::<F>(call, 2)? {
        Ok((names, keys)) => (names, Ok(keys)),
        Err(error) => (Vec::new(), Err(error)),
    };
    kv::entries(call, keys, move |call, entries| {
        let pairs = entries.map(|entries| {
            let pairs = names.into_iter().zip(entries).map(|(name, entry)| F::pair(name, entry));
            pairs.collect::<Vec<_>>()
        });
        answer::<F, _>(call, 4, pairs)
    })
}

/// A `cas`: the version that a key had when it was last looked at.
#[derive(Debug)]
struct Cas {
    place: Held,
    version: u64,
}

impl Resource for Cas {
    fn memory_bytes(&self) -> usize {
        self.place.memory_bytes()
    }
}

impl Typed for Cas {
    const NUMBER: u32 = number(ATOMICS2, "cas");
}

/// A `cas-error`.
#[derive(Debug)]
enum CasError {
    StoreError(Error),
    CasFailed(Own),
}

impl Lower for CasError {
    const SIZE: u32 = 16;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        match self {
            CasError::StoreError(error) => error.lower(to, place.plus(4)),
            CasError::CasFailed(cas) => {
                to.case(place, 1);
                cas.lower(to, place.plus(4))
            }
        }
    }
}

/// `new(bucket, key) -> result<cas, error>`
fn cas(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let place = store::held::<Draft2>(call, 2)?;
    let held = place.clone();
    kv::find(call, place, move |call, entry| {
        let made = match held.and_then(|place| Ok(Cas { place, version: kv::version(entry?.as_ref()) })) {
            Ok(cas) => Ok(call.give(cas)?),
            Err(error) => Err(error),
        };
        answer::<Draft2, _>(call, 4, made)
    })
}

/// `current(self) -> result<option<list<u8>>, error>`: what there is now, which the swap then expects.
fn current(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<Cas>(1)?;
    let place = call.borrowed::<Cas>(1)?.place.clone();
    kv::find(call, Ok(place), move |call, entry| {
        if let Ok(entry) = &entry {
            call.context.ports.resource::<Cas>(representation)?.version = kv::version(entry.as_ref());
        }
        answer::<Draft2, _>(call, 2, entry.map(|entry| entry.map(|entry| entry.value)))
    })
}

/// `swap(cas, value) -> result<_, cas-error>`
fn swap(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let value = store::value(call, 2)?;
    let Cas { place, version } = *call.owned::<Cas>(1)?;
    let commit = value.and_then(|value| {
        let key = place.bucket_key()?;
        Ok(Commit::new(vec![(key.clone(), version)], vec![(key, Change::Put(value))]))
    });
    kv::commit(call, commit, false, move |call, outcome| {
        let result = match outcome {
            Ok(Outcome::Committed { .. }) => Ok(()),
            Ok(Outcome::Conflict { version, .. }) => Err(CasError::CasFailed(call.give(Cas { place, version })?)),
            Err(error) => Err(CasError::StoreError(Fault::from(error).into())),
        };
        call.lower(4, result)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::canonical::World;
    use crate::host::{Body, Process};
    use crate::kv::{Embedded, KvLimits, Space};

    /// Where results go.
    const RESULT: u64 = 16;
    /// Where blocks of results go.
    const ROOM: u32 = 0x1_0000;

    /// The number of a key of eight bytes.
    static MARK: HostFunction = canonical(STORE, "mark", &[I32, I32, I64], &[I64], KvRead, |call| {
        let key = call.args.u64(2).to_le_bytes();
        store::mark::<Draft>(call, &key).map(Flat::from)
    });

    /// The key of a number; zero for none.
    static MARKED: HostFunction = canonical(STORE, "marked", &[I32, I32, I64], &[I64], KvRead, |call| {
        let number = call.args.u64(2);
        let key = store::marked::<Draft>(call, number)?;
        Ok(Flat(key.map_or(0, |key| u64::from_le_bytes(key.as_ref().try_into().unwrap()))))
    });

    fn call(world: &mut World, interface: &str, name: &str, args: &[u64]) -> u64 {
        let function = FUNCTIONS.iter().find(|function| (function.module, function.name) == (interface, name)).unwrap();
        world.call(function, args, ROOM).unwrap().0
    }

    fn with_bucket() -> (World, u64) {
        let store = Embedded::in_memory(KvLimits::default()).unwrap();
        let kv = Some(Space::Embedded(store.space("t")));
        let mut world = World::new(Body::default(), Process { kv, ..Process::default() });
        call(&mut world, STORE, "open", &[0x100, 0, RESULT]);
        assert_eq!(world.bytes(RESULT, 1), [0]);
        let bucket = world.u32(RESULT + 4).into();
        (world, bucket)
    }

    #[test]
    fn a_number_stands_for_a_key_until_there_are_too_many() {
        let (mut world, bucket) = with_bucket();
        let before = world.context.kept_bytes();
        let mut mark = |key| world.call(&MARK, &[bucket, key], ROOM).unwrap().0;
        assert_eq!((mark(70), mark(71), mark(70)), (1, 2, 1));
        for key in 72..135 {
            assert_eq!(mark(key), key - 69);
        }
        // The first made room for the last; what they keep is counted.
        let mut key = |number| world.call(&MARKED, &[bucket, number], ROOM).unwrap().0;
        assert_eq!([key(1), key(2), key(65), key(66)], [0, 71, 134, 0]);
        assert!(world.context.kept_bytes() >= before + 64 * 8);
    }

    #[test]
    fn a_key_that_is_no_text_ends_the_invocation_and_a_long_one_is_an_error() {
        let (mut world, bucket) = with_bucket();
        world.memory().write(0x100, b"a\xff").unwrap();
        let get = FUNCTIONS.iter().find(|function| function.name == "[method]bucket.get").unwrap();
        let trapped = world.call(get, &[bucket, 0x100, 2, RESULT], ROOM);
        assert!(matches!(trapped, Err(Stop::Trap(_))), "{trapped:?}");
        assert_eq!(world.call(get, &[bucket, 0x100, 1, RESULT], ROOM), Ok(Flat::NONE));
        assert_eq!(world.bytes(RESULT, 5), [0, 0, 0, 0, 0], "none");
        world.call(get, &[bucket, 0x200, 1025, RESULT], ROOM).unwrap();
        assert_eq!((world.bytes(RESULT, 1), world.bytes(RESULT + 4, 1)), (vec![1], vec![2]), "other");
        let many = call(&mut world, BATCH, "get-many", &[bucket, 0x200, 1025, RESULT]);
        assert_eq!((many, world.bytes(RESULT, 1)), (0, vec![1]));
        assert_eq!(world.list(RESULT + 8), b"1025 keys together, of which there may be 1024");
    }
}
