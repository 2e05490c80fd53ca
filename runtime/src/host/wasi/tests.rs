//! Host functions called as a guest would call them, on a real linear memory, without a guest.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use awsm_abi::types::MemoryType;
use bytes::Bytes;
use sledge_sandbox::{GuestMemory, MemoryHandle, Sandbox, SandboxLimits, Slot};

use super::{Access, DESCRIPTORS_MAX, Errno, FUNCTIONS, Grant, files, folders, paths, poll, random, streams};
use crate::host::{
    Args, Body, Call, Code, Context, Effect, Flat, LogLines, Output, Process, ReplyBytes, Stop, Streams, Waiter, Writer,
};

const PAGE: u32 = 64 << 10;
/// Addresses and lengths that are wrong, or nearly so, in a memory of two pages.
const AWKWARD: [u32; 9] = [0, 1, 2 * PAGE - 8, 2 * PAGE - 4, 2 * PAGE - 1, 2 * PAGE, i32::MAX as u32, u32::MAX - 7, u32::MAX];

struct World {
    sandbox: Sandbox,
    memory: MemoryHandle,
    context: Context,
    waiter: Waiter,
}

impl World {
    fn new(body: &'static [u8]) -> World {
        World::with_grants(body, Vec::new())
    }

    /// With a folder to write to, and one to read.
    fn with_folders(write: &Path, read: &Path) -> World {
        let grant = |host, guest, access| Grant::open(host, None, guest, access).unwrap();
        World::with_grants(b"", vec![grant(write, "/w", Access::Write), grant(read, "/r", Access::Read)])
    }

    fn with_grants(body: &'static [u8], grants: Vec<Grant>) -> World {
        let mut sandbox = Sandbox::new(&SandboxLimits::default()).unwrap();
        let ty = MemoryType { pages_min: 2, pages_max: Some(2), memory64: false, shared: false };
        let memory = sandbox.new_memory(ty).unwrap();
        let process = Arc::new(Process {
            name: "f".to_owned(),
            args: ["f", "one", ""].into_iter().collect(),
            env: ["A=b"].into_iter().collect(),
            grants,
            ..Process::default()
        });
        let log = LogLines::new(Arc::clone(&process), Arc::default(), Writer::default());
        let streams = Streams::of_request(Body::from(Bytes::from_static(body)), ReplyBytes::default(), 4 << 20, log);
        let context = Context::new(process, streams);
        World { sandbox, memory, context, waiter: Waiter::default() }
    }

    fn memory(&mut self) -> GuestMemory<'_> {
        self.sandbox.memory_of(self.memory)
    }

    /// Calls a function as often as it wants to go on.
    fn call(&mut self, name: &str, args: &[u64]) -> Result<(), Stop> {
        loop {
            match self.step(name, args) {
                Err(Stop::Again) => {}
                other => return other,
            }
        }
    }

    fn step(&mut self, name: &str, args: &[u64]) -> Result<(), Stop> {
        let function = FUNCTIONS.iter().find(|function| function.name == name).unwrap();
        let slots: Vec<Slot> = args.iter().map(|arg| Slot::from_bits(u128::from(*arg))).collect();
        let memory = Some(self.sandbox.memory_of(self.memory));
        let Code::Wasi(code) = function.code else { panic!("{name} is none of WASI's") };
        let args = Args::new(&slots);
        let mut call = Call::new(function, &args, memory, &mut self.context);
        let mut result = code(&mut call);
        while result == Err(Stop::Waits) {
            let pending = call.pending.take().expect("it says for what");
            let completion = self.waiter.wait(pending, None).unwrap().expect("there is no deadline");
            result = completion(&mut call).map(|answer| assert_eq!(answer, Flat::NONE));
        }
        result
    }

    /// Writes a list of buffers, each address and length.
    fn buffers(&mut self, at: u32, list: &[(u32, u32)]) {
        let mut memory = self.memory();
        for (index, (address, bytes)) in list.iter().enumerate() {
            let at = u64::from(at) + 8 * index as u64;
            memory.write_u32(at, *address).unwrap();
            memory.write_u32(at + 4, *bytes).unwrap();
        }
    }

    fn reply(&mut self) -> Vec<u8> {
        self.context.ports.open(Effect::Stream);
        match &self.context.ports.streams().unwrap().output {
            Output::Reply { bytes, .. } => bytes.pieces().collect::<Vec<_>>().concat(),
            _ => panic!("the output is a reply"),
        }
    }

    fn u32(&mut self, at: u64) -> u32 {
        self.memory().read_u32(at).unwrap()
    }
}

fn errno(errno: Errno) -> Result<(), Stop> {
    Err(Stop::Errno(errno))
}

#[test]
fn arguments_and_environment_are_strings_with_pointers() {
    let mut world = World::new(b"");
    world.call("args_sizes_get", &[0, 4]).unwrap();
    assert_eq!((world.u32(0), world.u32(4)), (3, 7));
    world.call("args_get", &[16, 100]).unwrap();
    assert_eq!([world.u32(16), world.u32(20), world.u32(24)], [100, 102, 106]);
    assert_eq!(world.memory().slice(100, 7).unwrap(), b"f\0one\0\0");
    world.call("environ_sizes_get", &[0, 4]).unwrap();
    assert_eq!((world.u32(0), world.u32(4)), (1, 4));
    world.call("environ_get", &[16, 100]).unwrap();
    assert_eq!(world.memory().slice(100, 4).unwrap(), b"A=b\0");
}

#[test]
fn a_body_is_read_into_several_buffers() {
    let mut world = World::new(b"hello world");
    world.buffers(0, &[(100, 4), (200, 0), (300, 100)]);
    world.call("fd_read", &[0, 0, 3, 64]).unwrap();
    assert_eq!(world.u32(64), 11);
    assert_eq!(world.memory().slice(100, 4).unwrap(), b"hell");
    assert_eq!(world.memory().slice(300, 7).unwrap(), b"o world");
    world.call("fd_read", &[0, 0, 3, 64]).unwrap();
    assert_eq!(world.u32(64), 0, "the end of the body");
}

#[test]
fn reading_over_the_list_of_buffers_reads_where_the_list_said_before() {
    let mut world = World::new(&[0xff; 40]);
    world.buffers(0, &[(0, 16), (100, 24)]);
    world.call("fd_read", &[0, 0, 2, 64]).unwrap();
    assert_eq!(world.u32(64), 40);
    assert_eq!(world.memory().slice(100, 24).unwrap(), [0xff; 24]);
}

#[test]
fn a_reply_is_written_from_several_buffers_even_if_they_overlap() {
    let mut world = World::new(b"");
    world.memory().write(100, b"abcdef").unwrap();
    world.buffers(0, &[(100, 4), (102, 4), (0, 0)]);
    world.call("fd_write", &[1, 0, 3, 64]).unwrap();
    assert_eq!(world.u32(64), 8);
    assert_eq!(world.reply(), b"abcdcdef");
}

#[test]
fn large_transfers_go_in_steps_and_come_out_whole() {
    let mut world = World::new(b"");
    world.memory().slice_mut(0, 2 * u64::from(PAGE)).unwrap().fill(7);
    let list: Vec<_> = (0..30).map(|_| (4096, 2 * PAGE - 4096)).collect();
    world.buffers(0, &list);
    assert_eq!(world.step("fd_write", &[1, 0, 30, 1024]), Err(Stop::Again));
    assert_eq!(world.reply().len() as u64, streams::STEP_BYTES);
    world.call("fd_write", &[1, 0, 30, 1024]).unwrap();
    assert_eq!(world.u32(1024), 30 * (2 * PAGE - 4096));
    assert_eq!(world.reply(), vec![7; 30 * (2 * PAGE as usize - 4096)]);
}

#[test]
fn a_reply_beyond_its_limit_ends_the_invocation() {
    let mut world = World::new(b"");
    let list: Vec<_> = (0..100).map(|_| (0, 2 * PAGE)).collect();
    world.buffers(0, &list);
    assert_eq!(world.call("fd_write", &[1, 0, 100, 1024]), Err(Stop::ReplyTooLarge));
}

#[test]
fn more_buffers_than_are_served_at_once_are_cut_off() {
    let mut world = World::new(b"");
    let list = vec![(0, 1); 2000];
    world.buffers(4096, &list);
    world.call("fd_write", &[1, 4096, 2000, 0]).unwrap();
    assert_eq!(world.u32(0), streams::BUFFERS_MAX);
    let list = vec![(0, 0); 2000];
    world.buffers(4096, &list);
    assert_eq!(world.call("fd_write", &[1, 4096, 2000, 0]), errno(Errno::INVAL));
}

#[test]
fn file_descriptors_that_are_not_open_for_it_are_refused() {
    let mut world = World::new(b"x");
    for (name, fd) in
        [("fd_read", 1), ("fd_read", 2), ("fd_read", 3), ("fd_write", 0), ("fd_write", 3), ("fd_write", 0xffff_ffff)]
    {
        assert_eq!(world.call(name, &[fd, 0, 0, 64]), errno(Errno::BADF), "{name} {fd}");
    }
    assert_eq!(world.call("fd_prestat_get", &[3, 0]), errno(Errno::BADF));
    for fd in 0..3 {
        assert_eq!(world.call("fd_seek", &[fd, 0, 0, 64]), errno(Errno::SPIPE));
        world.call("fd_close", &[fd]).unwrap();
        assert_eq!(world.call("fd_close", &[fd]), errno(Errno::BADF));
        assert_eq!(world.call("fd_seek", &[fd, 0, 0, 64]), errno(Errno::BADF));
    }
    assert_eq!(world.call("fd_close", &[u64::from(u32::MAX)]), errno(Errno::BADF));
}

#[test]
fn what_was_written_before_closing_remains_the_reply() {
    let mut world = World::new(b"");
    world.buffers(0, &[(0, 3)]);
    world.call("fd_write", &[1, 0, 1, 64]).unwrap();
    world.call("fd_close", &[1]).unwrap();
    assert_eq!(world.call("fd_write", &[1, 0, 1, 64]), errno(Errno::BADF));
    assert_eq!(world.context.take_reply(|_| None).0.into_bytes().len(), 3);
}

#[test]
fn streams_are_no_terminals() {
    let mut world = World::new(b"");
    for fd in 0..3 {
        world.call("fd_fdstat_get", &[fd, 0]).unwrap();
        assert_eq!(world.u32(0) & 0xff, 0, "filetype unknown");
        assert_eq!(world.memory().read_u64(8).unwrap() & 0b100, 0, "no right to seek");
        world.call("fd_fdstat_set_flags", &[fd, 4]).unwrap();
        assert_eq!(world.call("fd_fdstat_set_flags", &[fd, 0x20]), errno(Errno::INVAL));
    }
    assert_eq!(world.call("fd_fdstat_get", &[3, 0]), errno(Errno::BADF));
}

#[test]
fn random_bytes_are_made_in_steps_to_the_last() {
    let mut world = World::new(b"");
    let bytes = random::STEP_BYTES + 5000;
    assert_eq!(world.step("random_get", &[8, bytes]), Err(Stop::Again));
    world.call("random_get", &[8, bytes]).unwrap();
    let memory = world.memory();
    assert_eq!(memory.read_u64(0).unwrap(), 0);
    assert_eq!(memory.read_u64(8 + bytes).unwrap(), 0);
    for at in (8..bytes).step_by(1000) {
        assert_ne!(memory.read_u64(at).unwrap(), 0, "at {at}");
    }
    // The next call begins anew.
    world.call("random_get", &[8, 4]).unwrap();
}

#[test]
fn clocks_go_forward_and_only_two_exist() {
    let mut world = World::new(b"");
    for clock in [0, 1] {
        world.call("clock_time_get", &[clock, 1, 0]).unwrap();
        let first = world.memory().read_u64(0).unwrap();
        world.call("clock_time_get", &[clock, 1, 0]).unwrap();
        assert!(first > 0 && world.memory().read_u64(0).unwrap() >= first);
        world.call("clock_res_get", &[clock, 0]).unwrap();
    }
    assert_eq!(world.call("clock_time_get", &[2, 0, 0]), errno(Errno::INVAL));
    assert_eq!(world.call("clock_res_get", &[u64::from(u32::MAX), 0]), errno(Errno::INVAL));
}

#[test]
fn an_exit_ends_the_invocation_with_its_status() {
    assert_eq!(World::new(b"").call("proc_exit", &[3]), Err(Stop::Exit(3)));
}

/// Every function with every combination of awkward arguments: an error number or success, never a panic, nothing outside the memory.
#[test]
fn awkward_arguments_never_panic() {
    let mut world = World::new(b"some body");
    world.buffers(0, &[(0, 8), (2 * PAGE - 1, 1), (u32::MAX, u32::MAX)]);
    for function in FUNCTIONS {
        let count = function.params.len().min(4);
        for combination in 0..AWKWARD.len().pow(count as u32) {
            let arg = |index: usize| u64::from(AWKWARD[combination / AWKWARD.len().pow(index as u32) % AWKWARD.len()]);
            let args: Vec<u64> = (0..function.params.len()).map(arg).collect();
            let _ = world.call(function.name, &args);
            if world.reply().len() > 1 << 20 {
                world = World::new(b"some body");
                world.buffers(0, &[(0, 8), (2 * PAGE - 1, 1), (u32::MAX, u32::MAX)]);
            }
        }
    }
}

/// The same of a file and of folders, with all that they can do.
#[test]
fn awkward_arguments_never_panic_with_files() {
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for function in FUNCTIONS.iter().filter(|function| function.name.starts_with("fd_") || function.name.starts_with("path_")) {
        let mut world = World::with_folders(write.path(), read.path());
        let file = world.open("awkward", 1, RW).unwrap();
        world.memory().write(0, b"..").unwrap();
        let count = function.params.len().min(5) - 1;
        for fd in [3, 4, file] {
            for combination in 0..AWKWARD.len().pow(count as u32) {
                let arg = |index: usize| u64::from(AWKWARD[combination / AWKWARD.len().pow(index as u32) % AWKWARD.len()]);
                let args: Vec<u64> =
                    (0..function.params.len()).map(|index| if index == 0 { fd } else { arg(index - 1) }).collect();
                // Reserving that much may be possible.
                if function.name != "fd_allocate" {
                    let _ = world.call(function.name, &args);
                }
            }
        }
    }
}

#[test]
fn addresses_outside_the_memory_are_faults() {
    let mut world = World::new(b"some body");
    let outside = u64::from(2 * PAGE - 3);
    let end = u64::from(u32::MAX);
    let calls: [(&str, &[u64]); 12] = [
        ("args_get", &[outside, 0]),
        ("args_get", &[0, end]),
        ("args_sizes_get", &[0, outside]),
        ("environ_sizes_get", &[end, 0]),
        ("clock_time_get", &[0, 0, outside]),
        ("clock_res_get", &[0, end]),
        ("random_get", &[outside, 4]),
        ("random_get", &[8, end]),
        ("fd_read", &[0, outside, 1, 0]),
        ("fd_read", &[0, 0, 0x2000_0001, 0]),
        ("fd_write", &[1, 0, end, 0]),
        ("fd_fdstat_get", &[0, outside]),
    ];
    for (name, args) in calls {
        assert_eq!(world.call(name, args), errno(Errno::FAULT), "{name} {args:?}");
    }
    world.buffers(0, &[(100, 4), (2 * PAGE - 1, 2)]);
    assert_eq!(world.call("fd_read", &[0, 0, 2, 64]), errno(Errno::FAULT));
    assert_eq!(world.memory().read_u32(100).unwrap(), 0, "nothing is read when a buffer is wrong");
}

/// FD_READ, FD_SEEK, FD_TELL, FD_WRITE, FD_FILESTAT_GET, FD_FILESTAT_SET_SIZE.
const RW: u64 = 0x60_0066;

impl World {
    /// Puts a path into the memory, and is its address and length.
    fn path(&mut self, at: u64, path: &str) -> [u64; 2] {
        self.memory().write(at, path.as_bytes()).unwrap();
        [at, path.len() as u64]
    }

    /// Opens something below the first folder.
    fn open(&mut self, path: &str, oflags: u64, rights: u64) -> Result<u64, Stop> {
        let [at, bytes] = self.path(1000, path);
        self.call("path_open", &[3, 0, at, bytes, oflags, rights, rights, 0, 64])?;
        Ok(u64::from(self.u32(64)))
    }

    /// A subscription to a clock, or to a descriptor.
    fn subscribe(&mut self, index: u64, ty: u8, id: u32, timeout: u64) {
        let mut memory = self.memory();
        let at = 2048 + index * 48;
        memory.write_u64(at, 7 + index).unwrap();
        memory.write_u64(at + 8, u64::from(ty)).unwrap();
        memory.write_u32(at + 16, id).unwrap();
        memory.write_u64(at + 24, timeout).unwrap();
        memory.write_u64(at + 40, 0).unwrap();
    }
}

#[test]
fn a_sandbox_has_no_more_descriptors_than_the_limit() {
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut world = World::with_folders(write.path(), read.path());
    for expected in 5..DESCRIPTORS_MAX as u64 {
        assert_eq!(world.open("f", 1, RW), Ok(expected));
    }
    assert_eq!(world.open("f", 0, RW), Err(Stop::Errno(Errno::MFILE)));
    // The lowest that is free is the next.
    world.call("fd_close", &[17]).unwrap();
    assert_eq!(world.open("f", 0, RW), Ok(17));
}

#[test]
fn a_file_is_read_and_written_by_steps_of_bounded_size() {
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut world = World::with_folders(write.path(), read.path());
    let fd = world.open("large", 1, RW).unwrap();
    // The same page twenty times: more than one call moves.
    world.memory().slice_mut(u64::from(PAGE), u64::from(PAGE)).unwrap().fill(9);
    world.buffers(0, &[(PAGE, PAGE); 20]);
    world.call("fd_write", &[fd, 0, 20, 512]).unwrap();
    assert_eq!(u64::from(world.u32(512)), files::TRANSFER_BYTES_MAX);
    world.call("fd_seek", &[fd, 0, 0, 520]).unwrap();
    world.memory().slice_mut(u64::from(PAGE), u64::from(PAGE)).unwrap().fill(0);
    world.call("fd_read", &[fd, 0, 20, 512]).unwrap();
    assert_eq!(u64::from(world.u32(512)), files::TRANSFER_BYTES_MAX);
    assert!(world.memory().slice(u64::from(PAGE), u64::from(PAGE)).unwrap().iter().all(|byte| *byte == 9));
    assert_eq!(world.call("fd_pread", &[fd, 0, 20, u64::MAX, 512]), errno(Errno::INVAL), "an offset beyond what files can have");
}

#[test]
fn a_long_listing_comes_in_steps_and_whole() {
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for index in 0..1000 {
        std::fs::write(write.path().join(format!("{index:0>60}")), b"").unwrap();
    }
    let mut world = World::with_folders(write.path(), read.path());
    let room = u64::from(2 * PAGE) - 4096;
    world.call("fd_readdir", &[3, 4096, room, 0, 0]).unwrap();
    let used = u64::from(world.u32(0));
    assert!(used as usize > folders::LISTING_BYTES && used < room, "{used}");
    let mut names = std::collections::BTreeSet::new();
    let mut at = 4096;
    while at < 4096 + used {
        let bytes = u64::from(world.u32(at + 16));
        let name = world.memory().slice(at + 24, bytes).unwrap().to_vec();
        assert!(names.insert(String::from_utf8(name).unwrap()));
        at += 24 + bytes;
    }
    assert_eq!((at, names.len()), (4096 + used, 1002));
    // A buffer in which less than all fits is filled to its end.
    world.call("fd_readdir", &[3, 4096, 1001, 0, 0]).unwrap();
    assert_eq!(world.u32(0), 1001);
    assert_eq!(world.call("fd_readdir", &[3, 4096, 100, u64::MAX, 0]), errno(Errno::INVAL));
}

#[test]
fn paths_have_a_longest_length_and_an_encoding() {
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut world = World::with_folders(write.path(), read.path());
    assert_eq!(world.call("path_unlink_file", &[3, 0, paths::PATH_BYTES_MAX + 1]), errno(Errno::NAMETOOLONG));
    assert_eq!(world.call("path_unlink_file", &[3, 0, u64::from(u32::MAX)]), errno(Errno::FAULT));
    assert_eq!(world.call("path_unlink_file", &[3, 0, 0]), errno(Errno::NOENT));
    assert_eq!(world.call("path_unlink_file", &[3, 0, 1]), errno(Errno::INVAL), "a zero byte");
    world.memory().write(0, b"\xff").unwrap();
    assert_eq!(world.call("path_unlink_file", &[3, 0, 1]), errno(Errno::ILSEQ));
}

#[test]
fn waiting_ends_with_the_first_event_and_lists_may_overlap() {
    let mut world = World::new(b"body");
    let poll = [2048, 2048, 2, 0];
    world.subscribe(0, 0, 1, u64::MAX);
    world.subscribe(1, 0, 1, 50_000_000);
    let begun = Instant::now();
    world.call("poll_oneoff", &poll).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(50));
    // One event, at the place of the first subscription, of the second.
    assert_eq!((world.u32(0), world.u32(2048), world.u32(2048 + 8)), (1, 8, 0));

    // What is ready comes first: a body has bytes to read, a descriptor that is not open is an event too.
    world.subscribe(0, 1, 0, 0);
    world.subscribe(1, 2, 77, 0);
    world.call("poll_oneoff", &poll).unwrap();
    assert_eq!((world.u32(0), world.u32(2048 + 8), world.u32(2048 + 16)), (2, 1 << 16, 4));
    assert_eq!(world.u32(2048 + 32 + 8), 2 << 16 | u32::from(Errno::BADF.0));
    for count in [0, u64::from(poll::SUBSCRIPTIONS_MAX) + 1] {
        assert_eq!(world.call("poll_oneoff", &[2048, 2048, count, 0]), errno(Errno::INVAL));
    }
    world.subscribe(0, 9, 0, 0);
    assert_eq!(world.call("poll_oneoff", &[2048, 2048, 1, 0]), errno(Errno::INVAL), "no such type");
}
