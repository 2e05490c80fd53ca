//! The host's functions in their flat form. All that is `unsafe` about them is in here.
//!
//! Each address that is handed out is that of a slice or a variable which lives until the call returns, with its length beside it.

use std::time::Duration;

/// A number of an error in WASI preview 1.
pub type Errno = i32;

pub const E2BIG: Errno = 1;
pub const EAGAIN: Errno = 6;
pub const EBADF: Errno = 8;
pub const ELOOP: Errno = 32;
pub const EMFILE: Errno = 33;
pub const ENOENT: Errno = 44;
pub const ENOTSUP: Errno = 58;

type Bytes = *const u8;

#[link(wasm_import_module = "sledge:http")]
extern "C" {
    #[link_name = "status"]
    fn http_status(code: u32) -> i32;
    #[link_name = "set-trailer"]
    fn http_set_trailer(name: Bytes, length: usize, value: Bytes, value_length: usize) -> i32;
    #[link_name = "add-trailer"]
    fn http_add_trailer(name: Bytes, length: usize, value: Bytes, value_length: usize) -> i32;
    #[link_name = "stream"]
    fn http_stream(length: i64) -> i32;
}

#[link(wasm_import_module = "sledge:rpc")]
extern "C" {
    #[link_name = "begin"]
    fn rpc_begin(
        path: Bytes,
        path_bytes: usize,
        head: Bytes,
        head_bytes: usize,
        message: Bytes,
        message_bytes: usize,
        timeout_ns: i64,
        flags: u32,
    ) -> i32;
    #[link_name = "head"]
    fn rpc_head(fd: u32, rows: *mut u8, room: usize) -> i32;
    #[link_name = "trailers"]
    fn rpc_trailers(fd: u32, rows: *mut u8, room: usize) -> i32;
    #[link_name = "call"]
    fn rpc_call(
        path: Bytes,
        path_bytes: usize,
        head: Bytes,
        head_bytes: usize,
        message: Bytes,
        message_bytes: usize,
        timeout_ns: i64,
        reply: *mut u8,
        room: usize,
        sizes: *mut Sizes,
    ) -> i32;
    #[link_name = "accept"]
    fn rpc_accept(text: *mut u8, room: usize, sizes: *mut Sizes) -> i32;
    #[link_name = "answer"]
    fn rpc_answer(
        headers: Bytes,
        headers_bytes: usize,
        body: Bytes,
        body_bytes: usize,
        trailers: Bytes,
        trailers_bytes: usize,
    ) -> i32;
}

/// Lengths of three pieces that stand behind each other.
pub type Sizes = [u32; 3];

/// The length of a body that is to be read by itself.
pub const NOT_WHOLE: u32 = u32::MAX;

#[repr(C)]
pub struct Iovec {
    pub at: *const u8,
    pub length: usize,
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
extern "C" {
    #[link_name = "fd_read"]
    fn wasi_fd_read(fd: u32, vectors: *const Iovec, count: usize, done: *mut usize) -> i32;
    #[link_name = "fd_write"]
    pub fn wasi_fd_write(fd: u32, vectors: *const Iovec, count: usize, done: *mut usize) -> i32;
    #[link_name = "fd_close"]
    fn wasi_fd_close(fd: u32) -> i32;
    #[link_name = "sock_shutdown"]
    fn wasi_sock_shutdown(fd: u32, how: u8) -> i32;
    #[link_name = "poll_oneoff"]
    fn wasi_poll_oneoff(wanted: *const Subscription, events: *mut Event, count: usize, done: *mut usize) -> i32;
}

/// `subscription` of WASI preview 1.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Subscription {
    userdata: u64,
    tag: u8,
    body: SubscriptionBody,
}

#[repr(C)]
#[derive(Clone, Copy)]
union SubscriptionBody {
    clock: SubscriptionClock,
    fd: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct SubscriptionClock {
    id: u32,
    timeout: u64,
    precision: u64,
    flags: u16,
}

/// `event` of WASI preview 1.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Event {
    pub userdata: u64,
    error: u16,
    kind: u8,
    bytes: u64,
    flags: u16,
}

const CLOCK_MONOTONIC: u32 = 1;
const TAG_CLOCK: u8 = 0;
const TAG_READ: u8 = 1;
const TAG_WRITE: u8 = 2;
const SHUTDOWN_WRITE: u8 = 2;

impl Subscription {
    pub fn clock(userdata: u64, after: Duration) -> Subscription {
        let timeout = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let clock = SubscriptionClock { id: CLOCK_MONOTONIC, timeout, precision: 0, flags: 0 };
        Subscription { userdata, tag: TAG_CLOCK, body: SubscriptionBody { clock } }
    }

    pub fn fd(userdata: u64, fd: u32, write: bool) -> Subscription {
        Subscription { userdata, tag: if write { TAG_WRITE } else { TAG_READ }, body: SubscriptionBody { fd } }
    }
}

fn checked(result: i32) -> Result<(), Errno> {
    if result < 0 {
        Err(-result)
    } else {
        Ok(())
    }
}

/// What the host has in pieces of unknown length: it writes what there is room for, and says how long all of it is.
fn all(room: usize, mut get: impl FnMut(*mut u8, usize) -> i32) -> Result<Vec<u8>, Errno> {
    let mut bytes: Vec<u8> = Vec::with_capacity(room);
    loop {
        let result = get(bytes.as_mut_ptr(), bytes.capacity());
        let length = usize::try_from(result).map_err(|_| -result)?;
        if length <= bytes.capacity() {
            // SAFETY: The host wrote that many bytes of the capacity that it was told.
            unsafe { bytes.set_len(length) };
            return Ok(bytes);
        }
        bytes = Vec::with_capacity(length);
    }
}

/// What became of a call that began with its whole body.
pub enum Begun {
    /// The reply is there: headers, body, and trailers, behind each other in the buffer.
    Whole(Sizes),
    /// It is this descriptor.
    Runs(u32),
}

/// Makes a call of one message. What of its reply is there at once goes into `reply`, up to its capacity.
pub fn call(path: &[u8], head: &[u8], message: &[u8], timeout_ns: i64, reply: &mut Vec<u8>) -> Result<Begun, Errno> {
    reply.clear();
    let mut sizes = [0; 3];
    // SAFETY: as this file says.
    let result = unsafe {
        rpc_call(
            path.as_ptr(),
            path.len(),
            head.as_ptr(),
            head.len(),
            message.as_ptr(),
            message.len(),
            timeout_ns,
            reply.as_mut_ptr(),
            reply.capacity(),
            &mut sizes,
        )
    };
    match u32::try_from(result) {
        Ok(0) => {
            // SAFETY: The host wrote these bytes, for which there was room.
            unsafe { reply.set_len((sizes[0] + sizes[1] + sizes[2]) as usize) };
            Ok(Begun::Whole(sizes))
        }
        Ok(fd) => Ok(Begun::Runs(fd)),
        Err(_) => Err(-result),
    }
}

/// The request: path and query, headers, and its body if that is [whole](NOT_WHOLE), behind each other in `text`.
pub fn accept(text: &mut Vec<u8>) -> Result<Sizes, Errno> {
    let mut sizes = [0; 3];
    loop {
        text.clear();
        // SAFETY: as this file says.
        let result = unsafe { rpc_accept(text.as_mut_ptr(), text.capacity(), &mut sizes) };
        let length = usize::try_from(result).map_err(|_| -result)?;
        if length <= text.capacity() {
            let body = if sizes[2] == NOT_WHOLE { 0 } else { sizes[2] as usize };
            // SAFETY: The host wrote these bytes, for which there was room.
            unsafe { text.set_len(length + body) };
            return Ok(sizes);
        }
        text.reserve_exact(length);
    }
}

/// Adds to the reply's headers, body and trailers.
pub fn answer(headers: &[u8], body: &[u8], trailers: &[u8]) -> Result<(), Errno> {
    // SAFETY: as this file says.
    checked(unsafe { rpc_answer(headers.as_ptr(), headers.len(), body.as_ptr(), body.len(), trailers.as_ptr(), trailers.len()) })
}

pub fn status(code: u16) -> Result<(), Errno> {
    // SAFETY: It takes a number.
    checked(unsafe { http_status(code.into()) })
}

pub fn trailer(name: &[u8], value: &[u8], more: bool) -> Result<(), Errno> {
    let set = if more { http_add_trailer } else { http_set_trailer };
    // SAFETY: as this file says.
    checked(unsafe { set(name.as_ptr(), name.len(), value.as_ptr(), value.len()) })
}

pub fn stream() -> Result<(), Errno> {
    // SAFETY: It takes a number.
    checked(unsafe { http_stream(-1) })
}

pub fn begin(path: &[u8], head: &[u8], message: &[u8], timeout_ns: i64, ends: bool) -> Result<u32, Errno> {
    // SAFETY: as this file says.
    let result = unsafe {
        rpc_begin(path.as_ptr(), path.len(), head.as_ptr(), head.len(), message.as_ptr(), message.len(), timeout_ns, ends.into())
    };
    u32::try_from(result).map_err(|_| -result)
}

pub fn head(fd: u32) -> Result<Vec<u8>, Errno> {
    // SAFETY: as this file says.
    all(512, |at, room| unsafe { rpc_head(fd, at, room) })
}

pub fn trailers(fd: u32) -> Result<Vec<u8>, Errno> {
    // SAFETY: as this file says.
    all(512, |at, room| unsafe { rpc_trailers(fd, at, room) })
}

/// Reads behind what `buffer` holds, up to its capacity; how much.
pub fn read(fd: u32, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
    let spare = buffer.spare_capacity_mut();
    let vector = Iovec { at: spare.as_mut_ptr().cast(), length: spare.len() };
    let mut done = 0;
    // SAFETY: as this file says.
    match unsafe { wasi_fd_read(fd, &vector, 1, &mut done) } {
        0 => {
            // SAFETY: The host wrote `done` bytes, at most as many as there is capacity for.
            unsafe { buffer.set_len(buffer.len() + done.min(vector.length)) };
            Ok(done)
        }
        error => Err(error),
    }
}

/// How much of it was taken.
pub fn write(fd: u32, bytes: &[u8]) -> Result<usize, Errno> {
    let vector = Iovec { at: bytes.as_ptr(), length: bytes.len() };
    let mut done = 0;
    // SAFETY: as this file says.
    match unsafe { wasi_fd_write(fd, &vector, 1, &mut done) } {
        0 => Ok(done),
        error => Err(error),
    }
}

pub fn shutdown(fd: u32) -> Result<(), Errno> {
    // SAFETY: It takes numbers.
    match unsafe { wasi_sock_shutdown(fd, SHUTDOWN_WRITE) } {
        0 => Ok(()),
        error => Err(error),
    }
}

pub fn close(fd: u32) {
    // SAFETY: It takes a number.
    unsafe { wasi_fd_close(fd) };
}

/// Waits for one of them. There is room for an event of each.
pub fn poll<'a>(wanted: &[Subscription], events: &'a mut [Event]) -> Result<&'a mut [Event], Errno> {
    let mut done = 0;
    // SAFETY: as this file says; the host writes as many events as it is told of at most.
    match unsafe { wasi_poll_oneoff(wanted.as_ptr(), events.as_mut_ptr(), wanted.len().min(events.len()), &mut done) } {
        0 => Ok(&mut events[..done]),
        error => Err(error),
    }
}
