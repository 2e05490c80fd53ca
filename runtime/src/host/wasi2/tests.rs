//! Host functions of WASI 0.2 called as a component's wrapper would call them, on real memories, without a guest.

use std::path::Path;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use awsm_abi::component::Violation;
use bytes::Bytes;
use hyper::header::HeaderMap;
use rustix::time::{ClockId, clock_gettime};

use crate::component_trap::ComponentTrap;
use crate::host::canonical::World;
use crate::host::wasi::{Access, Grant};
use crate::host::{Body, BodyError, Flat, HostFunction, Output, Piece, Process, Source, Stop, offered_to_components};

const STREAMS: &str = "wasi:io/streams@0.2";
const TYPES: &str = "wasi:filesystem/types@0.2";
/// Where results go.
pub(in crate::host) const RESULT: u64 = 16;
/// Where blocks of results go.
const ROOM: u32 = 0x1_0000;

fn function(module: &str, name: &str) -> &'static HostFunction {
    let found = offered_to_components().find(|function| function.module == module && function.name == name);
    found.unwrap_or_else(|| panic!("{module} {name}"))
}

fn world(body: &'static [u8]) -> World {
    let process = Process {
        name: "f".to_owned(),
        args: ["f", "grün", ""].into_iter().collect(),
        env: ["A=b=c", "EMPTY="].into_iter().collect(),
        ..Process::default()
    };
    World::new(Body::from(Bytes::from_static(body)), process)
}

/// With a folder to write to, and one to read.
pub(in crate::host) fn with_folders(write: &Path, read: &Path) -> World {
    let grant = |host, guest, access| Grant::open(host, None, guest, access).unwrap();
    let grants = vec![grant(write, "/w", Access::Write), grant(read, "/r", Access::Read)];
    World::new(Body::default(), Process { grants, ..Process::default() })
}

impl World {
    /// Calls a function; the blocks of its result come behind one another.
    pub(in crate::host) fn invoke(&mut self, module: &str, name: &str, args: &[u64]) -> Result<Flat, Stop> {
        self.call(function(module, name), args, ROOM)
    }

    /// The same of a call that has to succeed; what is flat of its result.
    pub(in crate::host) fn ok(&mut self, module: &str, name: &str, args: &[u64]) -> u64 {
        self.invoke(module, name, args).unwrap_or_else(|stop| panic!("{name}: {stop:?}")).0
    }

    /// Calls a method of a stream.
    fn stream(&mut self, method: &str, args: &[u64]) -> Result<u64, Stop> {
        self.invoke(STREAMS, &format!("[method]{method}"), args).map(|flat| flat.0)
    }

    /// Calls a method of a descriptor with a result at [`RESULT`]; the case of its error, if it fails.
    fn file(&mut self, method: &str, args: &[u64], payload: u64) -> Result<(), u8> {
        let args: Vec<u64> = args.iter().copied().chain([RESULT]).collect();
        self.ok(TYPES, &format!("[method]{method}"), &args);
        match self.bytes(RESULT, 1)[0] {
            0 => Ok(()),
            _ => Err(self.bytes(RESULT + payload, 1)[0]),
        }
    }

    /// Writes a string to an address; its address and length.
    pub(in crate::host) fn string(&mut self, at: u64, text: &str) -> [u64; 2] {
        self.memory().write(at, text.as_bytes()).unwrap();
        [at, text.len() as u64]
    }

    fn reply(&mut self) -> Vec<u8> {
        match self.streams() {
            Output::Reply { bytes, .. } => bytes.pieces().collect::<Vec<_>>().concat(),
            other => panic!("{other:?}"),
        }
    }

    /// Opens a path below the descriptor; the handle.
    fn open(&mut self, folder: u64, path: &str, open_flags: u64, flags: u64) -> Result<u64, u8> {
        let [at, length] = self.string(0x100, path);
        self.file("descriptor.open-at", &[folder, 1, at, length, open_flags, flags], 4)?;
        Ok(self.u32(RESULT + 4).into())
    }
}

#[test]
fn arguments_and_environment_are_lists() {
    let mut world = world(b"");
    world.ok("wasi:cli/environment@0.2", "get-arguments", &[RESULT]);
    let (list, count) = (u64::from(world.u32(RESULT)), world.u32(RESULT + 4));
    let arguments: Vec<_> = (0..u64::from(count)).map(|index| world.list(list + 8 * index)).collect();
    assert_eq!(arguments, [b"f".to_vec(), "grün".into(), Vec::new()]);
    world.ok("wasi:cli/environment@0.2", "get-environment", &[RESULT]);
    let (list, count) = (u64::from(world.u32(RESULT)), world.u32(RESULT + 4));
    let environment: Vec<_> = (0..2 * u64::from(count)).map(|index| world.list(list + 8 * index)).collect();
    assert_eq!(environment, [b"A".to_vec(), b"b=c".to_vec(), b"EMPTY".to_vec(), Vec::new()]);
    world.ok("wasi:cli/environment@0.2", "initial-cwd", &[RESULT]);
    assert_eq!(world.bytes(RESULT, 12), [0; 12]);
    assert_eq!(world.invoke("wasi:cli/exit@0.2", "exit", &[1]), Err(Stop::Exit(1)));
    assert_eq!(world.invoke("wasi:cli/exit@0.2", "exit-with-code", &[42]), Err(Stop::Exit(42)));
}

#[test]
fn standard_output_is_the_reply_and_standard_input_the_body() {
    let mut world = world(b"hello world");
    let input = world.ok("wasi:cli/stdin@0.2", "get-stdin", &[]);
    let output = world.ok("wasi:cli/stdout@0.2", "get-stdout", &[]);
    world.stream("input-stream.read", &[input, 5, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.list(RESULT + 4)), (0, b"hello".to_vec()));
    world.stream("input-stream.blocking-skip", &[input, 1, RESULT]).unwrap();
    assert_eq!(world.bytes(RESULT, 16), [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    world.stream("output-stream.check-write", &[output, RESULT]).unwrap();
    assert!(world.u32(RESULT + 8) > 0);
    let [at, length] = world.string(0x200, "abc");
    world.stream("output-stream.write", &[output, at, length, RESULT]).unwrap();
    world.stream("output-stream.blocking-write-zeroes-and-flush", &[output, 5_000, RESULT]).unwrap();
    world.stream("output-stream.blocking-splice", &[output, input, 100, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.u32(RESULT + 8)), (0, 5));
    assert_eq!(world.reply(), [b"abc".to_vec(), vec![0; 5_000], b"world".to_vec()].concat());
    // At its end: closed.
    world.stream("input-stream.blocking-read", &[input, 5, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.u32(RESULT + 4)), (1, 1));
    let pollable = world.stream("input-stream.subscribe", &[input]).unwrap();
    assert_eq!(world.ok("wasi:io/poll@0.2", "[method]pollable.ready", &[pollable]), 1);
}

#[test]
fn a_component_that_serves_http_has_no_standard_streams() {
    let mut world = world(b"body");
    let input = world.ok("wasi:cli/stdin@0.2", "get-stdin", &[]);
    let output = world.ok("wasi:cli/stdout@0.2", "get-stdout", &[]);
    world.context.serve_http();
    world.stream("input-stream.read", &[input, 5, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.u32(RESULT + 4)), (1, 1));
    let [at, length] = world.string(0x200, "abc");
    world.stream("output-stream.blocking-write-and-flush", &[output, at, length, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.reply()), (0, Vec::new()));
}

#[test]
fn a_stream_takes_no_more_than_it_has_said() {
    let mut world = world(b"");
    let output = world.ok("wasi:cli/stdout@0.2", "get-stdout", &[]);
    world.stream("output-stream.check-write", &[output, RESULT]).unwrap();
    let permit = u64::from(world.u32(RESULT + 8));
    let beyond = world.stream("output-stream.write-zeroes", &[output, permit + 1, RESULT]);
    assert_eq!(beyond, Err(Stop::Trap(ComponentTrap::BeyondPermit)));
    // The longest reply is 4 MiB.
    while world.reply().len() as u64 + permit <= 4 << 20 {
        world.stream("output-stream.write-zeroes", &[output, permit, RESULT]).unwrap();
    }
    assert_eq!(world.stream("output-stream.write-zeroes", &[output, permit, RESULT]), Err(Stop::ReplyTooLarge));
    let outside = world.stream("output-stream.write", &[output, 0x1_ffff, 2, RESULT]);
    assert_eq!(outside, Err(Stop::Trap(ComponentTrap::OutOfBounds)));
}

/// A body of which there is nothing before a time.
#[derive(Debug)]
struct Later(Instant, Option<&'static [u8]>);

impl Source for Later {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Piece> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let piece = self.1.take().map(|bytes| Piece::Data(Bytes::from_static(bytes)));
            return Poll::Ready(piece.unwrap_or_else(|| Piece::End(HeaderMap::new())));
        }
        let waker = context.waker().clone();
        std::thread::spawn(move || {
            std::thread::sleep(left);
            waker.wake();
        });
        Poll::Pending
    }
}

#[test]
fn a_body_that_comes_later_wakes_who_waits_for_it() {
    let begun = Instant::now();
    let later = begun + Duration::from_millis(40);
    let body = Body::coming(Box::new(Later(later, Some(b"abc"))), Duration::from_secs(60));
    let mut world = World::new(body, Process::default());
    let input = world.ok("wasi:cli/stdin@0.2", "get-stdin", &[]);
    world.stream("input-stream.read", &[input, 5, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.list(RESULT + 4)), (0, Vec::new()), "nothing yet");
    let pollable = world.stream("input-stream.subscribe", &[input]).unwrap();
    let timer = world.ok("wasi:clocks/monotonic-clock@0.2", "subscribe-duration", &[5_000_000]);
    for (at, handle) in [(0x100, pollable), (0x104, timer)] {
        world.memory().write_u32(at, handle as u32).unwrap();
    }
    // A stream that the guest waits for no more is not lost.
    world.ok("wasi:io/poll@0.2", "poll", &[0x100, 2, RESULT]);
    assert_eq!((world.u32(RESULT + 4), world.u32(ROOM.into())), (1, 1));
    world.ok("wasi:io/poll@0.2", "[method]pollable.block", &[pollable]);
    assert!(Instant::now() >= later);
    world.stream("input-stream.blocking-read", &[input, 5, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.list(RESULT + 4)), (0, b"abc".to_vec()));
    world.stream("input-stream.blocking-read", &[input, 5, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.u32(RESULT + 4)), (1, 1));
}

#[test]
fn a_body_that_does_not_come_in_time_ends_the_wait() {
    let never = Later(Instant::now() + Duration::from_secs(3_600), None);
    let mut world = World::new(Body::coming(Box::new(never), Duration::from_millis(20)), Process::default());
    let input = world.ok("wasi:cli/stdin@0.2", "get-stdin", &[]);
    let read = world.stream("input-stream.blocking-read", &[input, 5, RESULT]);
    assert_eq!(read, Err(Stop::Body(BodyError::TooSlow)));
}

#[test]
fn a_poll_ends_with_the_first_that_is_ready() {
    let mut world = world(b"");
    let begun = Instant::now();
    let subscribe =
        |world: &mut World, nanoseconds| world.ok("wasi:clocks/monotonic-clock@0.2", "subscribe-duration", &[nanoseconds]);
    let (never, soon) = (subscribe(&mut world, u64::MAX), subscribe(&mut world, 20_000_000));
    for (at, handle) in [(0x100, never), (0x104, soon), (0x108, soon)] {
        world.memory().write_u32(at, handle as u32).unwrap();
    }
    assert_eq!(world.ok("wasi:io/poll@0.2", "[method]pollable.ready", &[soon]), 0);
    world.ok("wasi:io/poll@0.2", "poll", &[0x100, 3, RESULT]);
    assert!(begun.elapsed() >= Duration::from_millis(20));
    assert_eq!(world.list(RESULT).len(), 2);
    assert_eq!(world.bytes(ROOM.into(), 8), [1, 0, 0, 0, 2, 0, 0, 0]);
    world.ok("wasi:io/poll@0.2", "[method]pollable.block", &[soon]);
    let now = world.ok("wasi:clocks/monotonic-clock@0.2", "now", &[]);
    let past = world.ok("wasi:clocks/monotonic-clock@0.2", "subscribe-instant", &[now]);
    assert_eq!(world.ok("wasi:io/poll@0.2", "[method]pollable.ready", &[past]), 1);
    let mut poll = |count| world.invoke("wasi:io/poll@0.2", "poll", &[0x100, count, RESULT]);
    assert_eq!(poll(0), Err(Stop::Trap(ComponentTrap::NoPollables)));
    assert_eq!(poll(4_097), Err(Stop::Trap(ComponentTrap::TooMany { max: 4_096, what: "pollables polled" })));
}

#[test]
fn clocks_and_random_numbers_are_those_of_preview_1() {
    let mut world = world(b"");
    world.ok("wasi:clocks/wall-clock@0.2", "now", &[RESULT]);
    let seconds = world.memory().read_u64(RESULT).unwrap();
    let now = clock_gettime(ClockId::Realtime).tv_sec.cast_unsigned();
    assert!(now - seconds < 5 && world.u32(RESULT + 8) < 1_000_000_000);
    assert!(world.ok("wasi:clocks/monotonic-clock@0.2", "resolution", &[]) > 0);
    world.ok("wasi:random/random@0.2", "get-random-bytes", &[40_000, RESULT]);
    let (one, other) = (world.list(RESULT), world.list(RESULT));
    assert_eq!((one.len(), one == other), (40_000, true));
    assert!(one.iter().any(|byte| *byte != one[0]));
    let numbers = [(); 2].map(|()| world.ok("wasi:random/random@0.2", "get-random-u64", &[]));
    assert_ne!(numbers[0], numbers[1]);
    let too_many = world.invoke("wasi:random/random@0.2", "get-random-bytes", &[u64::MAX, RESULT]);
    assert_eq!(too_many, Err(Stop::Trap(ComponentTrap::ResultTooLarge)));
}

#[test]
fn files_are_opened_written_and_read_below_granted_folders() {
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(read.path().join("a"), "abc").unwrap();
    let mut world = with_folders(write.path(), read.path());
    world.ok("wasi:filesystem/preopens@0.2", "get-directories", &[RESULT]);
    let (list, count) = (u64::from(world.u32(RESULT)), world.u32(RESULT + 4));
    assert_eq!((count, world.list(list + 4), world.list(list + 16)), (2, b"/w".to_vec(), b"/r".to_vec()));
    let (writable, readable) = (u64::from(world.u32(list)), u64::from(world.u32(list + 12)));
    assert!(!world.context.has_opened(), "they are part of a snapshot");

    // create, write
    let file = world.open(writable, "f", 1, 3).unwrap();
    let [at, length] = world.string(0x200, "hello");
    world.file("descriptor.write", &[file, at, length, 2], 8).unwrap();
    assert_eq!(world.u32(RESULT + 8), 5);
    assert_eq!(std::fs::read(write.path().join("f")).unwrap(), b"\0\0hello");
    world.file("descriptor.read", &[file, 100, 2], 4).unwrap();
    assert_eq!((world.list(RESULT + 4), world.bytes(RESULT + 12, 1)), (b"hello".to_vec(), vec![0]));
    world.file("descriptor.read", &[file, 100, 7], 4).unwrap();
    assert_eq!((world.list(RESULT + 4), world.bytes(RESULT + 12, 1)), (Vec::new(), vec![1]));

    // Streams, each with a place of its own, which outlive their descriptor.
    world.file("descriptor.append-via-stream", &[file], 4).unwrap();
    let append = u64::from(world.u32(RESULT + 4));
    world.file("descriptor.write-via-stream", &[file, 0], 4).unwrap();
    let overwrite = u64::from(world.u32(RESULT + 4));
    for stream in [append, overwrite, overwrite] {
        world.stream("output-stream.blocking-write-and-flush", &[stream, at, 2, RESULT]).unwrap();
        assert_eq!(world.u32(RESULT), 0);
    }
    world.file("descriptor.read-via-stream", &[file, 1], 4).unwrap();
    let input = u64::from(world.u32(RESULT + 4));
    world.stream("input-stream.read", &[input, 3, RESULT]).unwrap();
    assert_eq!(world.list(RESULT + 4), b"ehe");
    world.stream("input-stream.blocking-read", &[input, 100, RESULT]).unwrap();
    assert_eq!(world.list(RESULT + 4), b"llohe");
    world.stream("input-stream.read", &[input, 3, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.u32(RESULT + 4)), (1, 1));

    // A stream that has failed says why once.
    world.file("descriptor.write-via-stream", &[file, i64::MAX.cast_unsigned()], 4).unwrap();
    let output = u64::from(world.u32(RESULT + 4));
    world.file("descriptor.read-via-stream", &[file, i64::MAX.cast_unsigned()], 4).unwrap();
    let input = u64::from(world.u32(RESULT + 4));
    for case in [0, 1] {
        world.stream("output-stream.blocking-write-and-flush", &[output, at, 2, RESULT]).unwrap();
        assert_eq!((world.u32(RESULT), world.u32(RESULT + 4)), (1, case));
        world.stream("input-stream.blocking-read", &[input, 2, RESULT]).unwrap();
        assert_eq!((world.u32(RESULT), world.u32(RESULT + 4)), (1, case));
    }
    world.stream("output-stream.check-write", &[output, RESULT]).unwrap();
    assert_eq!((world.u32(RESULT), world.u32(RESULT + 8)), (1, 1));

    world.file("descriptor.set-size", &[file, 3], 1).unwrap();
    world.file("descriptor.set-times", &[file, 2, 7, 500, 0, 0, 0], 1).unwrap();
    world.file("descriptor.stat", &[file], 8).unwrap();
    let stat = world.bytes(RESULT + 8, 96);
    assert_eq!((stat[0], stat[16], stat[24], stat[32]), (6, 3, 1, 7));
    world.file("descriptor.sync", &[file], 1).unwrap();
    world.file("descriptor.sync-data", &[file], 1).unwrap();
    world.file("descriptor.get-flags", &[file], 1).unwrap();
    assert_eq!(world.bytes(RESULT + 1, 1), [3]);
    world.file("descriptor.get-type", &[writable], 1).unwrap();
    assert_eq!(world.bytes(RESULT + 1, 1), [3]);
    let [at, length] = world.string(0x100, "f");
    assert_eq!(world.ok(TYPES, "[method]descriptor.is-same-object", &[file, file]), 1);
    assert_eq!(world.ok(TYPES, "[method]descriptor.is-same-object", &[file, writable]), 0);
    world.file("descriptor.metadata-hash", &[file], 8).unwrap();
    let hash = world.bytes(RESULT + 8, 16);
    world.file("descriptor.metadata-hash-at", &[writable, 0, at, length], 8).unwrap();
    assert_eq!(world.bytes(RESULT + 8, 16), hash);

    // What is granted for reading is not changed, and nothing leads out.
    let file = world.open(readable, "a", 0, 1).unwrap();
    let [at, length] = world.string(0x200, "x");
    assert_eq!(world.file("descriptor.write", &[file, at, length, 0], 8), Err(31), "not-permitted");
    assert_eq!(world.open(readable, "a", 0, 3), Err(31));
    assert_eq!(world.open(readable, "b", 1, 1), Err(31));
    assert_eq!(world.open(readable, "b", 0, 1), Err(20), "no-entry");
    assert_eq!(world.open(readable, "../x", 0, 1), Err(31), "not-permitted");
    assert_eq!(world.open(readable, "", 0, 1), Err(20));
    assert_eq!(world.open(readable, "a\0", 0, 1), Err(12), "invalid");
    assert!(world.context.has_opened());
}

#[test]
fn descriptors_are_opened_and_refuse_as_in_other_hosts() {
    const NO_FLAGS: u64 = 0;
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(write.path().join("a"), "abc").unwrap();
    std::fs::write(read.path().join("a"), "abc").unwrap();
    let mut world = with_folders(write.path(), read.path());
    world.ok("wasi:filesystem/preopens@0.2", "get-directories", &[RESULT]);
    let list = u64::from(world.u32(RESULT));
    let (writable, readable) = (u64::from(world.u32(list)), u64::from(world.u32(list + 12)));
    let flags = |world: &mut World, handle| {
        world.file("descriptor.get-flags", &[handle], 1).unwrap();
        world.bytes(RESULT + 1, 1)[0]
    };
    // What can be neither read nor written can be read; what makes or truncates a file can write to it.
    let file = world.open(writable, "a", 0, NO_FLAGS).unwrap();
    assert_eq!(flags(&mut world, file), 1, "read");
    let made = world.open(writable, "b", 1, NO_FLAGS).unwrap();
    assert_eq!(flags(&mut world, made), 3, "read and write");
    let made = world.open(writable, "c", 1, 2).unwrap();
    assert_eq!(flags(&mut world, made), 2, "write");
    // A folder can be changed through what was opened to change it, as far as it says so.
    let folder = world.open(writable, ".", 2, NO_FLAGS).unwrap();
    let mutable = world.open(writable, ".", 2, 1 | 1 << 5).unwrap();
    assert_eq!([writable, readable, folder, mutable].map(|handle| flags(&mut world, handle)), [33, 1, 1, 33]);

    let [at, length] = world.string(0x200, "x");
    assert_eq!(world.file("descriptor.set-size", &[file, 0], 1), Err(12), "invalid");
    assert_eq!(world.file("descriptor.set-size", &[writable, 0], 1), Err(3), "bad-descriptor");
    assert_eq!(world.file("descriptor.advise", &[writable, 0, 0, 0], 1), Err(3));
    assert_eq!(world.file("descriptor.read", &[writable, 1, 0], 4), Err(3));
    assert_eq!(world.file("descriptor.write", &[writable, at, length, 0], 8), Err(3));
    assert_eq!(world.file("descriptor.write-via-stream", &[writable, 0], 4), Err(3));
    assert_eq!(world.file("descriptor.read-via-stream", &[writable, 0], 4), Err(14), "is-directory");
    world.file("descriptor.sync-data", &[writable], 1).unwrap();
    let kept = world.open(readable, "a", 0, 1).unwrap();
    for method in ["write-via-stream", "append-via-stream"] {
        let args = if method.starts_with('w') { vec![kept, 0] } else { vec![kept] };
        assert_eq!(world.file(&format!("descriptor.{method}"), &args, 4), Err(31), "{method}: not-permitted");
    }
    assert_eq!(world.file("descriptor.set-size", &[kept, 0], 1), Err(31));
}

#[test]
fn the_insecure_seed_stays_the_same() {
    let mut world = world(b"");
    let mut seed = |module: &str, name: &str| {
        world.ok(module, name, &[RESULT]);
        world.bytes(RESULT, 16)
    };
    let first = seed("wasi:random/insecure-seed@0.2", "insecure-seed");
    assert_eq!(seed("wasi:random/insecure-seed@0.2", "insecure-seed"), first);
    assert_eq!(seed("wasi:random/insecure-seed@0.3", "get-insecure-seed"), first);
}

#[test]
fn folders_are_made_listed_renamed_and_removed() {
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for index in 0..300 {
        std::fs::write(read.path().join(format!("file-{index}")), "").unwrap();
    }
    let mut world = with_folders(write.path(), read.path());
    world.ok("wasi:filesystem/preopens@0.2", "get-directories", &[RESULT]);
    let list = u64::from(world.u32(RESULT));
    let (writable, readable) = (u64::from(world.u32(list)), u64::from(world.u32(list + 12)));
    let [one, one_length] = world.string(0x100, "one");
    let [two, two_length] = world.string(0x140, "two");
    world.file("descriptor.create-directory-at", &[writable, one, one_length], 1).unwrap();
    assert_eq!(world.file("descriptor.create-directory-at", &[writable, one, one_length], 1), Err(7), "exist");
    world.file("descriptor.rename-at", &[writable, one, one_length, writable, two, two_length], 1).unwrap();
    let across = world.file("descriptor.rename-at", &[writable, two, two_length, readable, one, one_length], 1);
    assert_eq!(across, Err(31));
    world.file("descriptor.symlink-at", &[writable, two, two_length, one, one_length], 1).unwrap();
    world.file("descriptor.readlink-at", &[writable, one, one_length], 4).unwrap();
    assert_eq!(world.list(RESULT + 4), b"two");
    world.file("descriptor.stat-at", &[writable, 0, one, one_length], 8).unwrap();
    assert_eq!(world.bytes(RESULT + 8, 1), [5], "a symbolic link");
    world.file("descriptor.stat-at", &[writable, 1, one, one_length], 8).unwrap();
    assert_eq!(world.bytes(RESULT + 8, 1), [3], "a folder");
    world.file("descriptor.set-times-at", &[writable, 0, one, one_length, 2, 9, 0, 1, 0, 0], 1).unwrap();
    world.file("descriptor.unlink-file-at", &[writable, one, one_length], 1).unwrap();
    let long = world.file("descriptor.unlink-file-at", &[writable, 0x1000, 4_097], 1);
    assert_eq!(long, Err(18), "name-too-long");
    world.file("descriptor.remove-directory-at", &[writable, two, two_length], 1).unwrap();
    assert_eq!(std::fs::read_dir(write.path()).unwrap().count(), 0);

    world.file("descriptor.read-directory", &[readable], 4).unwrap();
    let entries = u64::from(world.u32(RESULT + 4));
    let mut names = Vec::new();
    loop {
        world.file("directory-entry-stream.read-directory-entry", &[entries], 4).unwrap();
        if world.bytes(RESULT + 4, 1) == [0] {
            break;
        }
        assert_eq!(world.bytes(RESULT + 8, 1), [6]);
        names.push(String::from_utf8(world.list(RESULT + 12)).unwrap());
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 300, "without the folder itself");
}

#[test]
fn the_network_is_refused() {
    let mut world = world(b"");
    let network = world.ok("wasi:sockets/instance-network@0.2", "instance-network", &[]);
    world.ok("wasi:sockets/tcp-create-socket@0.2", "create-tcp-socket", &[0, RESULT]);
    assert_eq!((world.u32(RESULT), world.bytes(RESULT + 4, 1)), (1, vec![1]));
    let [at, length] = world.string(0x200, "example.org");
    world.ok("wasi:sockets/ip-name-lookup@0.2", "resolve-addresses", &[network, at, length, RESULT]);
    assert_eq!((world.u32(RESULT), world.bytes(RESULT + 4, 1)), (1, vec![20]));
    let trap = world.invoke("wasi:sockets/tcp@0.2", "[method]tcp-socket.subscribe", &[network]);
    assert_eq!(trap, Err(Stop::Trap(ComponentTrap::Handle { handle: network as u32, violation: Violation::HandleType })),);
}

/// Whatever is passed, nothing panics.
#[test]
fn awkward_arguments_end_in_answers_or_traps() {
    const AWKWARD: [u64; 7] = [0, 1, 2, 0x1_fffc, 0x1_ffff, u32::MAX as u64, u64::MAX];
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // They wait for what does not come, or not soon.
    let waits = ["block", "poll", "wait-until", "wait-for"];
    for function in offered_to_components().filter(|function| !waits.iter().any(|name| function.name.ends_with(name))) {
        if function.module == "sledge:canonical" {
            continue;
        }
        let count = function.params.len() - 1;
        for first in AWKWARD {
            for rest in AWKWARD {
                let mut world = with_folders(write.path(), read.path());
                let _ = world.invoke("wasi:cli/stdout@0.2", "get-stdout", &[]);
                let _ = world.invoke("wasi:filesystem/preopens@0.2", "get-directories", &[RESULT]);
                let mut args = vec![rest; count];
                if let Some(arg) = args.first_mut() {
                    *arg = first;
                }
                let _ = world.call(function, &args, 0x1_ff00);
            }
        }
    }
}

#[test]
fn every_time_zone_is_utc() {
    let mut world = world(b"");
    let zone = "wasi:clocks/timezone@0.3";
    world.ok(zone, "iana-id", &[RESULT]);
    assert_eq!((world.bytes(RESULT, 1), world.u32(RESULT + 8)), (vec![1], 3));
    assert_eq!(world.bytes(ROOM.into(), 3), b"UTC");
    world.ok(zone, "utc-offset", &[u64::MAX, 1, RESULT]);
    assert_eq!((world.bytes(RESULT, 1), world.bytes(RESULT + 8, 8)), (vec![1], vec![0; 8]));
    world.ok(zone, "to-debug-string", &[RESULT]);
    assert_eq!((world.u32(RESULT), world.u32(RESULT + 4)), (ROOM, 3));
}
