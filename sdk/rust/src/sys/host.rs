//! The functions that the server offers, in their flat form. All that is `unsafe` about a function is in here.
//!
//! Every address that is handed out is that of a slice or a buffer which lives until the call returns, with its length beside it; the host
//! checks both against the sandbox's memory.

use std::ptr;
use std::time::Duration;

use super::{ENOTSUP, Found};
use crate::fetch;
use crate::note::Level;
use crate::request::Head;

/// What a first try has room for.
const ROOM_BYTES: usize = 4 << 10;
/// The length of a value that there is not.
const NOTHING: usize = u32::MAX as usize;

type Bytes = *const u8;

/// A key of a list.
#[repr(C)]
struct Key(Bytes, usize);

/// A key of a list, and its value; of length [`NOTHING`] to remove it.
#[repr(C)]
struct Pair(Bytes, usize, Bytes, usize);

/// A key of a list, and its expected version.
#[repr(C)]
struct Expected(Bytes, usize, u64);

/// Where the value of a key is.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Place {
    version: u64,
    offset: u32,
    length: u32,
}

#[link(wasm_import_module = "sledge:kv")]
unsafe extern "C" {
    #[link_name = "open"]
    fn open(name: Bytes, length: usize) -> i32;
    #[link_name = "get"]
    fn get(bucket: u32, key: Bytes, length: usize, value: *mut u8, capacity: usize, version: *mut u64) -> i32;
    #[link_name = "exists"]
    fn exists(bucket: u32, key: Bytes, length: usize) -> i32;
    #[link_name = "list-keys"]
    fn list_keys(
        bucket: u32,
        prefix: Bytes,
        prefix_length: usize,
        after: Bytes,
        after_length: usize,
        keys: *mut u8,
        capacity: usize,
    ) -> i32;
    #[link_name = "get-many"]
    fn get_many(bucket: u32, keys: *const Key, count: usize, found: *mut Place, values: *mut u8, capacity: usize) -> i32;
    #[link_name = "set"]
    fn set(bucket: u32, key: Bytes, length: usize, value: Bytes, value_length: usize, version: *mut u64) -> i32;
    #[link_name = "delete"]
    fn delete(bucket: u32, key: Bytes, length: usize) -> i32;
    #[link_name = "increment"]
    fn increment(bucket: u32, key: Bytes, length: usize, delta: i64, sum: *mut i64) -> i32;
    #[link_name = "compare-and-swap"]
    fn compare_and_swap(
        bucket: u32,
        key: Bytes,
        length: usize,
        expected: u64,
        value: Bytes,
        value_length: usize,
        version: *mut u64,
    ) -> i32;
    #[link_name = "set-many"]
    fn set_many(bucket: u32, pairs: *const Pair, count: usize, version: *mut u64) -> i32;
    #[link_name = "delete-many"]
    fn delete_many(bucket: u32, keys: *const Key, count: usize) -> i32;
    #[link_name = "commit"]
    fn commit(
        bucket: u32,
        expected: *const Expected,
        expected_count: usize,
        changes: *const Pair,
        change_count: usize,
        version: *mut u64,
    ) -> i32;
}

#[link(wasm_import_module = "sledge:call")]
unsafe extern "C" {
    #[link_name = "invoke"]
    fn invoke(name: Bytes, length: usize, input: Bytes, input_length: usize, reply: *mut u8, capacity: usize) -> i32;
    #[link_name = "start"]
    fn start(name: Bytes, length: usize, input: Bytes, input_length: usize) -> i32;
    #[link_name = "wait"]
    fn wait(call: u32, reply: *mut u8, capacity: usize) -> i32;
    #[link_name = "rest"]
    fn rest(reply: *mut u8, capacity: usize) -> i32;
    #[link_name = "send"]
    fn send(name: Bytes, length: usize, input: Bytes, input_length: usize) -> i32;
}

#[link(wasm_import_module = "sledge:http")]
unsafe extern "C" {
    #[link_name = "method"]
    fn method(text: *mut u8, capacity: usize) -> i32;
    #[link_name = "target"]
    fn target(text: *mut u8, capacity: usize) -> i32;
    #[link_name = "headers"]
    fn headers(rows: *mut u8, capacity: usize) -> i32;
    #[link_name = "trailer"]
    fn request_trailer(name: Bytes, length: usize, text: *mut u8, capacity: usize) -> i32;
    #[link_name = "status"]
    fn set_status(code: u32) -> i32;
    #[link_name = "set-header"]
    fn set_header(name: Bytes, length: usize, value: Bytes, value_length: usize) -> i32;
    #[link_name = "add-header"]
    fn add_header(name: Bytes, length: usize, value: Bytes, value_length: usize) -> i32;
    #[link_name = "set-trailer"]
    fn set_trailer(name: Bytes, length: usize, value: Bytes, value_length: usize) -> i32;
    #[link_name = "add-trailer"]
    fn add_trailer(name: Bytes, length: usize, value: Bytes, value_length: usize) -> i32;
    #[link_name = "stream"]
    fn begin_stream(length: i64) -> i32;
}

#[link(wasm_import_module = "sledge:fetch")]
unsafe extern "C" {
    #[link_name = "send"]
    fn fetch_begin(
        method: Bytes,
        method_length: usize,
        url: Bytes,
        url_length: usize,
        headers: Bytes,
        headers_length: usize,
        body: Bytes,
        body_length: usize,
        times: *const [u32; 2],
    ) -> i32;
    #[link_name = "status"]
    fn fetch_code(request: u32) -> i32;
    #[link_name = "headers"]
    fn fetch_rows(request: u32, rows: *mut u8, capacity: usize) -> i32;
    #[link_name = "read"]
    fn fetch_more(request: u32, buffer: *mut u8, capacity: usize) -> i32;
    #[link_name = "close"]
    fn fetch_end(request: u32) -> i32;
}

#[link(wasm_import_module = "sledge:note")]
unsafe extern "C" {
    #[link_name = "log"]
    fn note_log(level: i32, message: Bytes, length: usize) -> i32;
    #[link_name = "phase"]
    fn note_phase(id: u32) -> i32;
}

/// A result from zero, or an error number.
fn checked(result: i32) -> Result<u32, i32> {
    u32::try_from(result).map_err(|_| -result)
}

/// What `write` writes, which says how long it is and writes as much as fits; asked again where that is not all.
fn text(mut write: impl FnMut(*mut u8, usize) -> i32) -> Result<Vec<u8>, i32> {
    let mut bytes = Vec::with_capacity(ROOM_BYTES);
    loop {
        let length = checked(write(bytes.as_mut_ptr(), bytes.capacity()))? as usize;
        if length <= bytes.capacity() {
            // SAFETY: the host has written so many bytes, which the vector has room for.
            unsafe { bytes.set_len(length) };
            return Ok(bytes);
        }
        bytes.reserve_exact(length);
    }
}

fn keys_of(keys: &[&[u8]]) -> Vec<Key> {
    keys.iter().map(|key| Key(key.as_ptr(), key.len())).collect()
}

pub(crate) fn kv_open(name: &[u8]) -> Result<u32, i32> {
    // SAFETY: see above; so for all calls below that say nothing else.
    checked(unsafe { open(name.as_ptr(), name.len()) })
}

pub(crate) fn kv_get(bucket: u32, key: &[u8]) -> Result<Option<Found>, i32> {
    let mut version = 0;
    // SAFETY: see above.
    match text(|value, capacity| unsafe { get(bucket, key.as_ptr(), key.len(), value, capacity, &mut version) }) {
        Ok(value) => Ok(Some((version, value))),
        Err(super::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn kv_exists(bucket: u32, key: &[u8]) -> Result<bool, i32> {
    // SAFETY: see above.
    checked(unsafe { exists(bucket, key.as_ptr(), key.len()) }).map(|there| there == 1)
}

/// Some of the keys behind `after`; none at the end.
pub(crate) fn kv_list_keys(bucket: u32, prefix: &[u8], after: &[u8]) -> Result<Vec<Vec<u8>>, i32> {
    let mut rows = vec![0; 4 * ROOM_BYTES];
    let (at, room) = (rows.as_mut_ptr(), rows.len());
    // SAFETY: see above.
    let count = unsafe { list_keys(bucket, prefix.as_ptr(), prefix.len(), after.as_ptr(), after.len(), at, room) };
    let mut rest = &rows[..];
    Ok((0..checked(count)?).map_while(|_| row(&mut rest)).map(<[u8]>::to_vec).collect())
}

/// What stands behind its length in `rest`, and goes from there.
fn row<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk()?;
    let (row, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = behind;
    Some(row)
}

pub(crate) fn kv_get_many(bucket: u32, keys: &[&[u8]]) -> Result<Vec<Option<Found>>, i32> {
    let rows = keys_of(keys);
    let mut places = vec![Place::default(); keys.len()];
    // SAFETY: see above; there are as many places as keys.
    let values =
        text(|values, capacity| unsafe { get_many(bucket, rows.as_ptr(), rows.len(), places.as_mut_ptr(), values, capacity) })?;
    let found = |place: &Place| {
        let value = values.get(place.offset as usize..)?.get(..place.length as usize)?;
        (place.length as usize != NOTHING).then(|| (place.version, value.to_vec()))
    };
    Ok(places.iter().map(found).collect())
}

pub(crate) fn kv_set(bucket: u32, key: &[u8], value: &[u8]) -> Result<u64, i32> {
    let mut version = 0;
    // SAFETY: see above.
    checked(unsafe { set(bucket, key.as_ptr(), key.len(), value.as_ptr(), value.len(), &mut version) })?;
    Ok(version)
}

pub(crate) fn kv_delete(bucket: u32, key: &[u8]) -> Result<(), i32> {
    // SAFETY: see above.
    checked(unsafe { delete(bucket, key.as_ptr(), key.len()) }).map(drop)
}

pub(crate) fn kv_increment(bucket: u32, key: &[u8], delta: i64) -> Result<i64, i32> {
    let mut sum = 0;
    // SAFETY: see above.
    checked(unsafe { increment(bucket, key.as_ptr(), key.len(), delta, &mut sum) })?;
    Ok(sum)
}

pub(crate) fn kv_add(bucket: u32, key: &[u8], delta: i64) -> Result<(), i32> {
    // SAFETY: see above. Without an address for it, no sum is written.
    checked(unsafe { increment(bucket, key.as_ptr(), key.len(), delta, std::ptr::null_mut()) }).map(drop)
}

pub(crate) fn kv_compare_and_swap(bucket: u32, key: &[u8], expected: u64, value: &[u8]) -> Result<(bool, u64), i32> {
    let mut version = 0;
    let (at, length) = (value.as_ptr(), value.len());
    // SAFETY: see above.
    let made = checked(unsafe { compare_and_swap(bucket, key.as_ptr(), key.len(), expected, at, length, &mut version) })?;
    Ok((made == 1, version))
}

pub(crate) fn kv_set_many(bucket: u32, pairs: &[(&[u8], &[u8])]) -> Result<u64, i32> {
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| Pair(key.as_ptr(), key.len(), value.as_ptr(), value.len())).collect();
    let mut version = 0;
    // SAFETY: see above.
    checked(unsafe { set_many(bucket, pairs.as_ptr(), pairs.len(), &mut version) })?;
    Ok(version)
}

pub(crate) fn kv_delete_many(bucket: u32, keys: &[&[u8]]) -> Result<(), i32> {
    let keys = keys_of(keys);
    // SAFETY: see above.
    checked(unsafe { delete_many(bucket, keys.as_ptr(), keys.len()) }).map(drop)
}

pub(crate) fn kv_commit(bucket: u32, expected: &[(&[u8], u64)], changes: &[(&[u8], Option<&[u8]>)]) -> Result<(bool, u64), i32> {
    let expected: Vec<_> = expected.iter().map(|(key, version)| Expected(key.as_ptr(), key.len(), *version)).collect();
    let change = |(key, value): &(&[u8], Option<&[u8]>)| {
        let (at, length) = value.map_or((ptr::null(), NOTHING), |value| (value.as_ptr(), value.len()));
        Pair(key.as_ptr(), key.len(), at, length)
    };
    let changes: Vec<_> = changes.iter().map(change).collect();
    let mut version = 0;
    // SAFETY: see above.
    let made =
        checked(unsafe { commit(bucket, expected.as_ptr(), expected.len(), changes.as_ptr(), changes.len(), &mut version) })?;
    Ok((made == 1, version))
}

/// A whole reply, of which `write` writes what fits; what does not comes after it.
fn reply(write: impl FnOnce(*mut u8, usize) -> i32) -> Result<Vec<u8>, i32> {
    let mut bytes = Vec::with_capacity(ROOM_BYTES);
    let length = checked(write(bytes.as_mut_ptr(), bytes.capacity()))? as usize;
    let first = length.min(bytes.capacity());
    // SAFETY: the host has written so many bytes, which the vector has room for.
    unsafe { bytes.set_len(first) };
    if first < length {
        bytes.reserve_exact(length - first);
        let more = bytes.spare_capacity_mut();
        // SAFETY: see above.
        let written = checked(unsafe { rest(more.as_mut_ptr().cast(), more.len()) })? as usize;
        // SAFETY: as much as there was room for has been written, and no more than there is.
        unsafe { bytes.set_len(first + written.min(length - first)) };
    }
    Ok(bytes)
}

pub(crate) fn call_invoke(name: &str, input: &[u8]) -> Result<Vec<u8>, i32> {
    // SAFETY: see above.
    reply(|at, room| unsafe { invoke(name.as_ptr(), name.len(), input.as_ptr(), input.len(), at, room) })
}

pub(crate) fn call_start(name: &str, input: &[u8]) -> Result<u32, i32> {
    // SAFETY: see above.
    checked(unsafe { start(name.as_ptr(), name.len(), input.as_ptr(), input.len()) })
}

pub(crate) fn call_wait(call: u32) -> Result<Vec<u8>, i32> {
    // SAFETY: see above.
    reply(|at, room| unsafe { wait(call, at, room) })
}

pub(crate) fn call_send(name: &str, input: &[u8]) -> Result<(), i32> {
    // SAFETY: see above.
    checked(unsafe { send(name.as_ptr(), name.len(), input.as_ptr(), input.len()) }).map(drop)
}

pub(crate) fn fetch_send(request: &fetch::Request) -> Result<u32, i32> {
    let fetch::Request { method, url, headers, body, head_time_max, piece_time_max } = request;
    let mut rows = Vec::new();
    for text in headers.iter().flat_map(|(name, value)| [name.as_bytes(), value]) {
        rows.extend_from_slice(&(text.len() as u32).to_le_bytes());
        rows.extend_from_slice(text);
    }
    // 0 stands for what is usual.
    let ms = |time: Option<Duration>| time.map_or(0, |time| u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1));
    let times = [ms(*head_time_max), ms(*piece_time_max)];
    let (rows_at, body_at) = (rows.as_ptr(), body.as_ptr());
    // SAFETY: see above; the times are two numbers.
    checked(unsafe {
        fetch_begin(method.as_ptr(), method.len(), url.as_ptr(), url.len(), rows_at, rows.len(), body_at, body.len(), &times)
    })
}

pub(crate) fn fetch_status(request: u32) -> Result<u16, i32> {
    // SAFETY: there are no addresses.
    checked(unsafe { fetch_code(request) }).map(|code| code as u16)
}

pub(crate) fn fetch_headers(request: u32) -> Result<Vec<(String, Vec<u8>)>, i32> {
    // SAFETY: see above.
    text(|at, room| unsafe { fetch_rows(request, at, room) }).map(|rows| pairs(&rows))
}

pub(crate) fn fetch_read(request: u32, buffer: &mut [u8]) -> Result<usize, i32> {
    // SAFETY: see above.
    checked(unsafe { fetch_more(request, buffer.as_mut_ptr(), buffer.len()) }).map(|count| count as usize)
}

pub(crate) fn fetch_close(request: u32) {
    // SAFETY: there are no addresses. Nothing can be done about what goes wrong here.
    let _ = unsafe { fetch_end(request) };
}

/// Names and values, each behind its length.
fn pairs(rows: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut rest = rows;
    let pair = || Some((String::from_utf8_lossy(row(&mut rest)?).into_owned(), row(&mut rest)?.to_vec()));
    std::iter::from_fn(pair).collect()
}

/// What the request says beside its body, if there is one.
pub(crate) fn head() -> Option<Head> {
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // SAFETY: see above.
    let method = match text(|at, room| unsafe { method(at, room) }) {
        Err(ENOTSUP) => return None,
        method => string(&method.ok()?),
    };
    // SAFETY: see above.
    let target = string(&text(|at, room| unsafe { target(at, room) }).ok()?);
    // SAFETY: see above.
    let rows = text(|at, room| unsafe { headers(at, room) }).ok()?;
    Some(Head { method, target, headers: pairs(&rows) })
}

/// What came behind the request's body under that name.
pub(crate) fn trailer_of_request(name: &str) -> Option<Vec<u8>> {
    // SAFETY: see above.
    text(|at, room| unsafe { request_trailer(name.as_ptr(), name.len(), at, room) }).ok()
}

pub(crate) fn status(code: u16) -> Result<(), i32> {
    // SAFETY: there are no addresses.
    checked(unsafe { set_status(code.into()) }).map(drop)
}

/// Adds a header; the content type, of which there is one, is replaced.
pub(crate) fn header(name: &str, value: &[u8]) -> Result<(), i32> {
    let put = if name.eq_ignore_ascii_case("content-type") { set_header } else { add_header };
    // SAFETY: see above.
    checked(unsafe { put(name.as_ptr(), name.len(), value.as_ptr(), value.len()) }).map(drop)
}

/// Sets a trailer: in place of all of its name, or beside them.
pub(crate) fn trailer(name: &str, value: &[u8], more: bool) -> Result<(), i32> {
    let put = if more { add_trailer } else { set_trailer };
    // SAFETY: see above.
    checked(unsafe { put(name.as_ptr(), name.len(), value.as_ptr(), value.len()) }).map(drop)
}

/// The head goes out, and the body while it is written, of so many bytes.
pub(crate) fn stream(length: Option<u64>) -> Result<(), i32> {
    let length = length.map_or(Ok(-1), i64::try_from).map_err(|_| super::EFBIG)?;
    // SAFETY: there are no addresses.
    checked(unsafe { begin_stream(length) }).map(drop)
}

pub(crate) fn log(level: Level, message: &str) {
    // SAFETY: see above. What cannot be logged is dropped.
    let _ = unsafe { note_log(level as i32, message.as_ptr(), message.len()) };
}

pub(crate) fn phase(id: u32) {
    // SAFETY: there are no addresses.
    let _ = unsafe { note_phase(id) };
}
