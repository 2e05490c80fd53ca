//! Host functions of `wasi:filesystem@0.3` where they differ from WASI 0.2, called as a component's wrapper would call them.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use awsm_abi::component::{RESUME_DONE, Violation};
use rustix::fs::FileType;

use super::streams::Entries;
use super::{Case, TYPES, Wasi3};
use crate::component_trap::ComponentTrap;
use crate::host::canonical::{Lower, Own, World};
use crate::host::wasi::Errno;
use crate::host::wasi2::filesystem::Form as _;
use crate::host::wasi2::{RESULT, with_folders};
use crate::host::wasi3::ends::{End as _, Transfer};
use crate::host::{Call, Effect, Flat, Stop};

/// Seconds of a time before 1970.
const EARLY: i64 = -5;

/// The descriptors of the granted folders.
fn folders(world: &mut World, preopens: &str) -> [u64; 2] {
    world.ok(preopens, "get-directories", &[RESULT]);
    let list = u64::from(world.u32(RESULT));
    [world.u32(list).into(), world.u32(list + 12).into()]
}

/// Calls a method of a descriptor with a result at [`RESULT`]; the case of its error, if it fails. What the result holds begins at `payload`.
fn method(world: &mut World, name: &str, args: &[u64], payload: u64) -> Result<(), u8> {
    world.memory().write(RESULT, &[0xaa; 0x80]).unwrap();
    let args: Vec<u64> = args.iter().copied().chain([RESULT]).collect();
    world.ok(TYPES, &format!("[method]descriptor.{name}"), &args);
    match world.bytes(RESULT, 1)[0] {
        0 => Ok(()),
        _ => {
            assert_eq!(world.bytes(RESULT + payload + 1, 15), [0; 15], "no text");
            Err(world.bytes(RESULT + payload, 1)[0])
        }
    }
}

/// Opens a path below the descriptor; the handle.
fn open(world: &mut World, folder: u64, path: &str, open_flags: u64, flags: u64) -> Result<u64, u8> {
    let [at, length] = world.string(0x100, path);
    method(world, "open-at", &[folder, 1, at, length, open_flags, flags], 4)?;
    Ok(world.u32(RESULT + 4).into())
}

fn layout<T: Lower>() -> (u32, u32) {
    (T::SIZE, T::ALIGN)
}

#[test]
fn variants_with_a_text_have_room_for_it() {
    type Time = Option<(i64, u32)>;
    type Stat = (Case, u64, u64, Time, Time, Time);

    assert_eq!(layout::<Case>(), (16, 4));
    assert_eq!(layout::<Result<(), Case>>(), (20, 4));
    assert_eq!(layout::<Result<u8, Case>>(), (20, 4));
    assert_eq!(layout::<Result<Own, Case>>(), (20, 4));
    assert_eq!(layout::<Result<Case, Case>>(), (20, 4));
    assert_eq!(layout::<Result<String, Case>>(), (20, 4));
    assert_eq!(layout::<Result<(u64, u64), Case>>(), (24, 8));
    assert_eq!(layout::<Stat>(), (104, 8));
    assert_eq!(layout::<Result<Stat, Case>>(), (112, 8));
    assert_eq!(layout::<(Case, String)>(), (24, 4), "a directory-entry");
}

#[test]
fn cases_are_those_of_this_version() {
    for (errno, case) in [
        (Errno::ACCES, 0),
        (Errno::ALREADY, 1),
        (Errno::BADF, 2),
        (Errno::EXIST, 6),
        (Errno::INVAL, 11),
        (Errno::IO, 12),
        (Errno::NOENT, 19),
        (Errno::MFILE, 21),
        (Errno::NOTCAPABLE, 30),
        (Errno::PIPE, 31),
        (Errno::ROFS, 32),
        (Errno::XDEV, 35),
        (Errno::AGAIN, 36),
    ] {
        assert_eq!(Wasi3::error_code(errno), Case(case), "{}", errno.name());
    }
    for (ty, case) in [
        (FileType::BlockDevice, 0),
        (FileType::Directory, 2),
        (FileType::Symlink, 4),
        (FileType::RegularFile, 5),
        (FileType::Socket, 6),
        (FileType::Unknown, 7),
    ] {
        assert_eq!(Wasi3::descriptor_type(ty), Case(case), "{ty:?}");
    }
}

#[test]
fn results_stand_where_this_version_has_them() {
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(read.path().join("a"), "abc").unwrap();
    let mut world = with_folders(write.path(), read.path());
    let [writable, readable] = folders(&mut world, Wasi3::PREOPENS);
    assert!(!world.context.has_opened(), "they are part of a snapshot");

    let file = open(&mut world, writable, "f", 1, 3).unwrap();
    method(&mut world, "set-size", &[file, 3], 4).unwrap();
    method(&mut world, "get-flags", &[file], 4).unwrap();
    assert_eq!(world.bytes(RESULT + 4, 1), [3]);
    method(&mut world, "get-type", &[file], 4).unwrap();
    assert_eq!(world.bytes(RESULT + 4, 16), [vec![5], vec![0; 15]].concat());
    method(&mut world, "get-type", &[writable], 4).unwrap();
    assert_eq!(world.bytes(RESULT + 4, 1), [2]);
    method(&mut world, "set-times", &[file, 2, 7, 500, 2, EARLY.cast_unsigned(), 2_000_000_001], 4).unwrap();
    method(&mut world, "stat", &[file], 8).unwrap();
    let (modified, nanoseconds) = (world.memory().read_u64(RESULT + 72).unwrap(), world.u32(RESULT + 80));
    assert_eq!((modified.cast_signed(), nanoseconds), (EARLY + 2, 1));
    let modified = std::fs::metadata(write.path().join("f")).unwrap().modified().unwrap();
    assert_eq!(modified, UNIX_EPOCH - Duration::from_secs(3) + Duration::from_nanos(1));
    let stat = world.bytes(RESULT + 8, 64);
    assert_eq!(stat[..16], [vec![5], vec![0; 15]].concat());
    assert_eq!((stat[16], stat[24], stat[32], stat[40]), (1, 3, 1, 7), "links, size, time of access");
    assert_eq!(world.u32(RESULT + 8 + 48), 500);
    let [at, length] = world.string(0x100, "f");
    method(&mut world, "metadata-hash", &[file], 8).unwrap();
    let hash = world.bytes(RESULT + 8, 16);
    method(&mut world, "metadata-hash-at", &[writable, 0, at, length], 8).unwrap();
    assert_eq!(world.bytes(RESULT + 8, 16), hash);
    assert_eq!(world.ok(TYPES, "[method]descriptor.is-same-object", &[file, file]), 1);

    let early = [2, EARLY.cast_unsigned(), 0, 0, 0, 0];
    let early = [&[writable, 0, at, length][..], &early].concat();
    assert_eq!(method(&mut world, "set-times-at", &early, 4), Err(11), "invalid");
    let late = [file, 2, i64::MAX.cast_unsigned(), 1_000_000_000, 0, 0, 0];
    assert_eq!(method(&mut world, "set-times", &late, 4), Err(29), "overflow");
    let [link, link_length] = world.string(0x140, "link");
    method(&mut world, "symlink-at", &[writable, at, length, link, link_length], 4).unwrap();
    method(&mut world, "readlink-at", &[writable, link, link_length], 4).unwrap();
    assert_eq!(world.list(RESULT + 4), b"f");
    let across = [writable, at, length, readable, link, link_length];
    assert_eq!(method(&mut world, "rename-at", &across, 4), Err(30), "not-permitted");
    assert_eq!(method(&mut world, "stat-at", &[readable, 0, at, length], 8), Err(19), "no-entry");
    assert_eq!(open(&mut world, readable, "a", 0, 3), Err(30));
    assert_eq!(open(&mut world, readable, "../x", 0, 1), Err(30), "not-permitted");
}

/// What is told of a stream that has ended.
const DROPPED: u64 = 1;
/// Where entries of folders go.
const ENTRIES: u64 = 0x2000;

/// Reads entries of the stream with that representation, at most so many: what is told of it, and the names.
fn entries(world: &mut World, stream: u32, count_max: u32) -> (u64, Vec<String>) {
    let end = Arc::new(Entries { stream, outcome: Arc::default() });
    let transfer = Transfer { address: ENTRIES, count: count_max, writes: false };
    let Flat(packed) = world.run(Effect::Stream, &[0, ENTRIES], |call: &mut Call<'_>| end.transfer(call, transfer)).unwrap();
    let (count, mut room, mut address) = (packed >> 4, 0x1_0000, 0);
    if count > 0 {
        loop {
            let Flat(next) = world.glue("resume", address).unwrap();
            if next == RESUME_DONE.cast_unsigned() {
                break;
            }
            (address, room) = (room, room + next as u32);
        }
    }
    let name = |index| {
        let at = ENTRIES + 24 * index;
        assert_eq!(world.bytes(at, 16), [vec![5], vec![0; 15]].concat(), "a file");
        String::from_utf8(world.list(at + 16)).unwrap()
    };
    (packed, (0..count).map(name).collect())
}

#[test]
fn entries_of_a_folder_come_as_many_as_are_wanted() {
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for index in 0..300 {
        std::fs::write(read.path().join(format!("file-{index}")), "").unwrap();
    }
    let mut world = with_folders(write.path(), read.path());
    let [_, readable] = folders(&mut world, Wasi3::PREOPENS);
    let file = open(&mut world, readable, "file-7", 0, 1).unwrap();
    let (opened, of_folder, of_file) = (world.representation(file as u32), 11, 12);
    assert_eq!(opened, 10);
    for (handle, number) in [(readable, 1), (file, 3)] {
        world.invoke(TYPES, "[method]descriptor.read-directory", &[handle, number, number + 1]).unwrap();
    }

    assert_eq!(entries(&mut world, of_folder, 0), (0, Vec::new()), "there is something");
    let mut names = Vec::new();
    loop {
        let (packed, listed) = entries(&mut world, of_folder, 100);
        if listed.is_empty() {
            assert_eq!(packed, DROPPED);
            break;
        }
        assert!(listed.len() <= 100);
        names.extend(listed);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 300, "without the folder itself");
    assert_eq!(entries(&mut world, of_file, 100), (DROPPED, Vec::new()), "no folder");
}

#[test]
fn a_descriptor_of_another_version_is_another_type() {
    let (write, read) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut world = with_folders(write.path(), read.path());
    let other = folders(&mut world, "wasi:filesystem/preopens@0.2");
    let own = folders(&mut world, Wasi3::PREOPENS);
    for (module, handle) in [(TYPES, other[0]), ("wasi:filesystem/types@0.2", own[0])] {
        let called = world.invoke(module, "[method]descriptor.get-type", &[handle, RESULT]);
        let handle = handle as u32;
        assert_eq!(called, Err(Stop::Trap(ComponentTrap::Handle { handle, violation: Violation::HandleType })));
    }
    let compared = world.invoke(TYPES, "[method]descriptor.is-same-object", &[own[0], other[0]]);
    assert!(matches!(compared, Err(Stop::Trap(ComponentTrap::Handle { .. }))), "{compared:?}");

    // They stand for the same folders, and what each of them stands for stays when others are dropped.
    let representations = other.into_iter().chain(own).map(|handle| world.representation(handle as u32));
    assert_eq!(representations.collect::<Vec<_>>(), [6, 7, 8, 9]);
    assert!(open(&mut world, own[0], "f", 1, 3).is_ok());
    assert!(write.path().join("f").exists());
    assert_eq!(open(&mut world, own[1], "f", 1, 3), Err(30), "not-permitted");
    for representation in 6..10 {
        world.glue("drop", representation).unwrap();
    }
    method(&mut world, "get-type", &[own[1]], 4).unwrap();
}
