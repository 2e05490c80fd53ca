//! What stands in for the server natively: a store, functions to be called, and what was said, all of this thread.
//!
//! The test runner gives each test a thread, so that tests know nothing of each other.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::{E2BIG, EACCES, EINVAL, EMFILE, ENOENT, EOVERFLOW, Found};
use crate::call;
use crate::fetch;
use crate::note::Level;
use crate::reply::Reply;
use crate::request::Head;

/// Limits of the server's store.
const KEY_BYTES_MAX: usize = 1 << 10;
const VALUE_BYTES_MAX: usize = 1 << 20;
const BUCKET_BYTES_MAX: usize = 64;
const BUCKETS_MAX: usize = 16;
const COMMIT_KEYS_MAX: usize = 1_024;
const COMMIT_BYTES_MAX: usize = 4 << 20;
/// And of its calls.
const INPUT_BYTES_MAX: usize = 4 << 20;
const CALLS_MAX: usize = 64;

/// Another server.
type Server = Rc<dyn Fn(&fetch::Request) -> Reply>;

/// Another function.
type Callee = Rc<dyn Fn(&[u8]) -> Result<Vec<u8>, call::Error>>;

#[derive(Default)]
pub(crate) struct World {
    /// By bucket and key.
    entries: BTreeMap<(Vec<u8>, Vec<u8>), Found>,
    version: u64,
    /// Buckets that are open, by their handles.
    buckets: Vec<Vec<u8>>,
    pub(crate) functions: HashMap<String, Callee>,
    pub(crate) servers: HashMap<String, Server>,
    fetches: Vec<Option<Reply>>,
    calls: Vec<Option<Result<Vec<u8>, i32>>>,
    pub(crate) head: Option<Head>,
    pub(crate) trailers: Vec<(String, Vec<u8>)>,
    pub(crate) logged: Vec<(Level, String)>,
    pub(crate) phases: Vec<u32>,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::default();
}

pub(crate) fn with<T>(look: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(look)
}

impl World {
    fn at(&self, bucket: u32, key: &[u8]) -> Result<(Vec<u8>, Vec<u8>), i32> {
        if key.len() > KEY_BYTES_MAX {
            return Err(E2BIG);
        }
        // Handles come from `kv_open`, and a `Bucket` cannot be made otherwise; those of a world that was forgotten are none.
        Ok((self.buckets.get(bucket as usize).ok_or(super::EINVAL)?.clone(), key.to_vec()))
    }

    fn version_of(&self, place: &(Vec<u8>, Vec<u8>)) -> u64 {
        self.entries.get(place).map_or(0, |(version, _)| *version)
    }

    fn commit(&mut self, bucket: u32, expected: &[(&[u8], u64)], changes: &[(&[u8], Option<&[u8]>)]) -> Result<(bool, u64), i32> {
        let values = changes.iter().map(|(_, value)| value.map_or(0, <[u8]>::len));
        let keys = expected.iter().map(|(key, _)| key.len()).chain(changes.iter().map(|(key, _)| key.len()));
        if values.clone().any(|bytes| bytes > VALUE_BYTES_MAX)
            || expected.len() + changes.len() > COMMIT_KEYS_MAX
            || values.chain(keys).sum::<usize>() > COMMIT_BYTES_MAX
        {
            return Err(E2BIG);
        }
        let places = changes.iter().map(|(key, value)| Ok((self.at(bucket, key)?, *value))).collect::<Result<Vec<_>, i32>>()?;
        for (key, version) in expected {
            let found = self.version_of(&self.at(bucket, key)?);
            if found != *version {
                return Ok((false, found));
            }
        }
        if places.is_empty() {
            return Ok((true, self.version));
        }
        self.version += 1;
        for (place, value) in places {
            match value {
                Some(value) => self.entries.insert(place, (self.version, value.to_vec())),
                None => self.entries.remove(&place),
            };
        }
        Ok((true, self.version))
    }
}

pub(crate) fn kv_open(name: &[u8]) -> Result<u32, i32> {
    if name.is_empty() || name.len() > BUCKET_BYTES_MAX || name.contains(&0) {
        return Err(EINVAL);
    }
    with(|world| {
        let found = world.buckets.iter().position(|open| open == name);
        if found.is_none() && world.buckets.len() == BUCKETS_MAX {
            return Err(EMFILE);
        }
        Ok(found.unwrap_or_else(|| {
            world.buckets.push(name.to_vec());
            world.buckets.len() - 1
        }) as u32)
    })
}

pub(crate) fn kv_get(bucket: u32, key: &[u8]) -> Result<Option<Found>, i32> {
    with(|world| Ok(world.entries.get(&world.at(bucket, key)?).cloned()))
}

pub(crate) fn kv_exists(bucket: u32, key: &[u8]) -> Result<bool, i32> {
    Ok(kv_get(bucket, key)?.is_some())
}

pub(crate) fn kv_list_keys(bucket: u32, prefix: &[u8], after: &[u8]) -> Result<Vec<Vec<u8>>, i32> {
    with(|world| {
        let (bucket, prefix) = world.at(bucket, prefix)?;
        let all = world.entries.keys().filter(|(other, key)| *other == bucket && key.starts_with(&prefix));
        let behind = all.filter(|(_, key)| after.is_empty() || key.as_slice() > after);
        Ok(behind.take(COMMIT_KEYS_MAX).map(|(_, key)| key.clone()).collect())
    })
}

pub(crate) fn kv_get_many(bucket: u32, keys: &[&[u8]]) -> Result<Vec<Option<Found>>, i32> {
    if keys.len() > COMMIT_KEYS_MAX {
        return Err(E2BIG);
    }
    let found = keys.iter().map(|key| kv_get(bucket, key)).collect::<Result<Vec<Option<Found>>, i32>>()?;
    let bytes: usize = found.iter().flatten().map(|(_, value)| value.len()).sum();
    if bytes > COMMIT_BYTES_MAX { Err(E2BIG) } else { Ok(found) }
}

pub(crate) fn kv_set(bucket: u32, key: &[u8], value: &[u8]) -> Result<u64, i32> {
    with(|world| Ok(world.commit(bucket, &[], &[(key, Some(value))])?.1))
}

pub(crate) fn kv_delete(bucket: u32, key: &[u8]) -> Result<(), i32> {
    with(|world| world.commit(bucket, &[], &[(key, None)]).map(drop))
}

pub(crate) fn kv_increment(bucket: u32, key: &[u8], delta: i64) -> Result<i64, i32> {
    let number = match kv_get(bucket, key)? {
        Some((_, value)) => {
            let parsed = std::str::from_utf8(&value).ok().and_then(|text| text.parse::<i64>().ok());
            // As the stores: what a sum would not be written as is none.
            parsed.filter(|number| number.to_string().as_bytes() == value).ok_or(EINVAL)?
        }
        None => 0,
    };
    let sum = number.checked_add(delta).ok_or(EOVERFLOW)?;
    kv_set(bucket, key, sum.to_string().as_bytes())?;
    Ok(sum)
}

pub(crate) fn kv_add(bucket: u32, key: &[u8], delta: i64) -> Result<(), i32> {
    kv_increment(bucket, key, delta).map(drop)
}

pub(crate) fn kv_compare_and_swap(bucket: u32, key: &[u8], expected: u64, value: &[u8]) -> Result<(bool, u64), i32> {
    with(|world| world.commit(bucket, &[(key, expected)], &[(key, Some(value))]))
}

pub(crate) fn kv_set_many(bucket: u32, pairs: &[(&[u8], &[u8])]) -> Result<u64, i32> {
    let changes: Vec<_> = pairs.iter().map(|(key, value)| (*key, Some(*value))).collect();
    with(|world| Ok(world.commit(bucket, &[], &changes)?.1))
}

pub(crate) fn kv_delete_many(bucket: u32, keys: &[&[u8]]) -> Result<(), i32> {
    let changes: Vec<_> = keys.iter().map(|key| (*key, None)).collect();
    with(|world| world.commit(bucket, &[], &changes).map(drop))
}

pub(crate) fn kv_commit(bucket: u32, expected: &[(&[u8], u64)], changes: &[(&[u8], Option<&[u8]>)]) -> Result<(bool, u64), i32> {
    with(|world| world.commit(bucket, expected, changes))
}

pub(crate) fn call_invoke(name: &str, input: &[u8]) -> Result<Vec<u8>, i32> {
    if input.len() > INPUT_BYTES_MAX {
        return Err(E2BIG);
    }
    // It may itself do all that a function may do.
    let callee = with(|world| world.functions.get(name).cloned()).ok_or(ENOENT)?;
    callee(input).map_err(call::Error::number)
}

pub(crate) fn call_start(name: &str, input: &[u8]) -> Result<u32, i32> {
    if input.len() > INPUT_BYTES_MAX {
        return Err(E2BIG);
    }
    let free = with(|world| world.calls.iter().position(Option::is_none).unwrap_or(world.calls.len()));
    if free == CALLS_MAX {
        return Err(EMFILE);
    }
    let reply = call_invoke(name, input);
    with(|world| {
        if free == world.calls.len() {
            world.calls.push(None);
        }
        world.calls[free] = Some(reply);
    });
    Ok(free as u32)
}

pub(crate) fn call_wait(call: u32) -> Result<Vec<u8>, i32> {
    with(|world| world.calls.get_mut(call as usize).and_then(Option::take)).unwrap_or(Err(EINVAL))
}

pub(crate) fn call_send(name: &str, input: &[u8]) -> Result<(), i32> {
    match call_invoke(name, input) {
        Err(E2BIG) => Err(E2BIG),
        _ => Ok(()),
    }
}

pub(crate) fn fetch_send(request: &fetch::Request) -> Result<u32, i32> {
    if request.body.len() > INPUT_BYTES_MAX {
        return Err(E2BIG);
    }
    let rest = ["http://", "https://"].iter().find_map(|scheme| request.url.strip_prefix(scheme)).ok_or(EINVAL)?;
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    for (name, value) in &request.headers {
        header(name, value)?;
    }
    let server = with(|world| world.servers.get(host).cloned()).ok_or(EACCES)?;
    let reply = server(request);
    with(|world| {
        if world.fetches.iter().flatten().count() == CALLS_MAX {
            return Err(EMFILE);
        }
        world.fetches.push(Some(reply));
        Ok(world.fetches.len() as u32 - 1)
    })
}

fn fetched<T>(request: u32, look: impl FnOnce(&mut Reply) -> T) -> Result<T, i32> {
    with(|world| world.fetches.get_mut(request as usize).and_then(Option::as_mut).map(look)).ok_or(EINVAL)
}

pub(crate) fn fetch_status(request: u32) -> Result<u16, i32> {
    fetched(request, |reply| reply.status)
}

pub(crate) fn fetch_headers(request: u32) -> Result<Vec<(String, Vec<u8>)>, i32> {
    fetched(request, |reply| reply.headers.clone())
}

pub(crate) fn fetch_read(request: u32, buffer: &mut [u8]) -> Result<usize, i32> {
    fetched(request, |reply| {
        let count = reply.body.len().min(buffer.len());
        buffer[..count].copy_from_slice(&reply.body[..count]);
        reply.body.drain(..count);
        count
    })
}

pub(crate) fn fetch_close(request: u32) {
    with(|world| world.fetches.get_mut(request as usize).map(Option::take));
}

pub(crate) fn head() -> Option<Head> {
    with(|world| world.head.clone())
}

pub(crate) fn trailer_of_request(name: &str) -> Option<Vec<u8>> {
    let is_named = |(known, _): &&(String, Vec<u8>)| known.eq_ignore_ascii_case(name);
    with(|world| world.trailers.iter().find(is_named).map(|(_, value)| value.clone()))
}

pub(crate) fn status(code: u16) -> Result<(), i32> {
    if (200..600).contains(&code) { Ok(()) } else { Err(EINVAL) }
}

pub(crate) fn header(name: &str, value: &[u8]) -> Result<(), i32> {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let is_value = value.iter().all(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f));
    if name.is_empty() || !name.as_bytes().iter().all(is_token) || !is_value {
        return Err(EINVAL);
    }
    let reserved = ["connection", "content-length", "date", "te", "trailer", "transfer-encoding", "upgrade"];
    if reserved.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) { Err(super::ENOTSUP) } else { Ok(()) }
}

pub(crate) fn trailer(name: &str, value: &[u8], _: bool) -> Result<(), i32> {
    header(name, value)?;
    let reserved = [
        "authorization",
        "cache-control",
        "content-encoding",
        "content-range",
        "content-type",
        "host",
        "keep-alive",
        "max-forwards",
        "proxy-connection",
        "set-cookie",
    ];
    if reserved.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) { Err(super::ENOTSUP) } else { Ok(()) }
}

/// Natively no client reads before a reply is whole.
pub(crate) fn stream(_: Option<u64>) -> Result<(), i32> {
    Ok(())
}

pub(crate) fn log(level: Level, message: &str) {
    eprintln!("{level:?}: {message}");
    with(|world| world.logged.push((level, message.to_owned())));
}

pub(crate) fn phase(id: u32) {
    with(|world| world.phases.push(id));
}
