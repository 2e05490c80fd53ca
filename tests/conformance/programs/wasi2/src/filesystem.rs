//! `wasi:filesystem`: the first granted folder may be written to, the second only be read.

use std::fmt::Debug;

use wasip2::clocks::wall_clock::Datetime;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Advice, Descriptor, DescriptorFlags, DescriptorStat, ErrorCode, NewTimestamp, OpenFlags, PathFlags, filesystem_error_code,
};
use wasip2::io::streams::StreamError;

const NONE: PathFlags = PathFlags::empty();
const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
const READ: DescriptorFlags = DescriptorFlags::READ;
const WRITE: DescriptorFlags = DescriptorFlags::WRITE;

/// Prints what came of a call, an error by its name.
fn say<T: Debug>(what: &str, result: Result<T, ErrorCode>) {
    match result {
        Ok(value) => println!("{what}: {value:?}"),
        Err(code) => println!("{what}: {}", code.name()),
    }
}

/// The same of a stream.
fn say_stream<T: Debug>(what: &str, result: Result<T, StreamError>) {
    match result {
        Ok(value) => println!("{what}: {value:?}"),
        Err(StreamError::Closed) => println!("{what}: closed"),
        Err(StreamError::LastOperationFailed(error)) => {
            println!(
                "{what}: {}",
                filesystem_error_code(&error).map_or("an unknown error".to_owned(), |code| code.name().to_owned())
            );
        }
    }
}

fn open(dir: &Descriptor, path: &str, open: OpenFlags, flags: DescriptorFlags) -> Result<Descriptor, ErrorCode> {
    dir.open_at(NONE, path, open, flags)
}

fn make(dir: &Descriptor, path: &str, contents: &[u8]) -> Descriptor {
    let file = open(dir, path, OpenFlags::CREATE | OpenFlags::TRUNCATE, READ | WRITE).expect("a file");
    assert_eq!(file.write(contents, 0), Ok(contents.len() as u64));
    file
}

/// What is the same in every run.
fn stat(stat: DescriptorStat) -> (String, u64, u64, bool) {
    let times = stat.data_access_timestamp.is_some() && stat.data_modification_timestamp.is_some();
    // A folder's size and links are the disk's matter.
    let is_folder = format!("{:?}", stat.type_).contains("Directory");
    let (links, size) = if is_folder { (0, 0) } else { (stat.link_count, stat.size) };
    (format!("{:?}", stat.type_), links, size, times)
}

fn names(dir: &Descriptor) -> Result<Vec<(String, String)>, ErrorCode> {
    let stream = dir.read_directory()?;
    let mut names = Vec::new();
    while let Some(entry) = stream.read_directory_entry()? {
        names.push((entry.name, format!("{:?}", entry.type_)));
    }
    names.sort();
    Ok(names)
}

pub(crate) fn all() {
    let directories = get_directories();
    let listed: Vec<&str> = directories.iter().map(|(_, name)| name.as_str()).collect();
    println!("get-directories: {listed:?}");
    let dir = &directories[0].0;
    descriptors(dir);
    paths(dir);
    outside(dir);
    opening(dir);
    contents(dir);
    streams(dir);
    times(dir);
    links(dir);
    renaming(dir);
    removing(dir);
    say("read-directory at the end", names(dir));
}

fn descriptors(dir: &Descriptor) {
    say("get-flags of the folder", dir.get_flags());
    say("get-type of the folder", dir.get_type());
    say("stat of the folder", dir.stat().map(stat));
    say("sync of the folder", dir.sync());
    say("sync-data of the folder", dir.sync_data());
    say("set-size of the folder", dir.set_size(1));
    say("advise of the folder", dir.advise(0, 1, Advice::Normal));
    say("read of the folder", dir.read(1, 0));
    say("write of the folder", dir.write(b"x", 0));
    say("read-via-stream of the folder", dir.read_via_stream(0).map(drop));
    say("write-via-stream of the folder", dir.write_via_stream(0).map(drop));
    say("append-via-stream of the folder", dir.append_via_stream().map(drop));
    say("is-same-object of the folder", Ok(dir.is_same_object(dir)));
    let file = make(dir, "file", b"contents");
    say("get-flags of a file", file.get_flags());
    say("get-type of a file", file.get_type());
    say("stat of a file", file.stat().map(stat));
    say("read-directory of a file", file.read_directory().map(drop));
    say("open-at of a file", open(&file, "x", OpenFlags::empty(), READ).map(drop));
    say("stat-at of a file", file.stat_at(NONE, "x").map(stat));
    say("create-directory-at of a file", file.create_directory_at("x"));
    say("readlink-at of a file", file.readlink_at("x"));
    say("rename-at of a file", file.rename_at("x", dir, "y"));
    say("link-at of a file", dir.link_at(NONE, "file", &file, "y"));
    say("symlink-at of a file", file.symlink_at("x", "y"));
    say("unlink-file-at of a file", file.unlink_file_at("x"));
    say("remove-directory-at of a file", file.remove_directory_at("x"));
    say("set-times-at of a file", file.set_times_at(NONE, "x", NewTimestamp::Now, NewTimestamp::Now));
    say("metadata-hash-at of a file", file.metadata_hash_at(NONE, "x").map(drop));
    say("is-same-object of folder and file", Ok(dir.is_same_object(&file)));
    let again = open(dir, "file", OpenFlags::empty(), READ).expect("it is there");
    say("is-same-object of a file opened twice", Ok(file.is_same_object(&again)));
    let hashes = [file.metadata_hash(), again.metadata_hash(), dir.metadata_hash_at(NONE, "file"), dir.metadata_hash()];
    let hashes = hashes.map(|hash| hash.map(|hash| (hash.lower, hash.upper)));
    say("metadata-hash of a file is the same", Ok(hashes[0] == hashes[1] && hashes[1] == hashes[2]));
    say("metadata-hash of a folder is another", Ok(hashes[0] != hashes[3]));
}

fn paths(dir: &Descriptor) {
    say("create-directory-at", dir.create_directory_at("folder"));
    say("create-directory-at again", dir.create_directory_at("folder"));
    say("create-directory-at below", dir.create_directory_at("folder/below"));
    say("create-directory-at below nothing", dir.create_directory_at("nothing/below"));
    say("create-directory-at below a file", dir.create_directory_at("file/below"));
    say("create-directory-at a slash at the end", dir.create_directory_at("slash/"));
    say("create-directory-at an empty path", dir.create_directory_at(""));
    say("create-directory-at a zero", dir.create_directory_at("a\0b"));
    say("create-directory-at a long name", dir.create_directory_at(&"n".repeat(300)));
    say("create-directory-at a long path", dir.create_directory_at(&"n/".repeat(3_000)));
    say("create-directory-at in other letters", dir.create_directory_at("grün"));
    for path in ["file", "folder", "folder/", "folder/../file", "./file", "folder//below", "nothing", "file/", "file/x", "", "."]
    {
        say(&format!("stat-at {path:?}"), dir.stat_at(NONE, path).map(stat));
        say(&format!("stat-at {path:?}, following"), dir.stat_at(FOLLOW, path).map(stat));
    }
    say("metadata-hash-at nothing", dir.metadata_hash_at(NONE, "nothing").map(drop));
    say("read-directory", names(dir));
    let folder = open(dir, "folder", OpenFlags::DIRECTORY, READ).expect("it is there");
    say("read-directory below", names(&folder));
    say("create-directory-at from below", folder.create_directory_at("deeper"));
    say("stat-at above what was opened", folder.stat_at(NONE, "../file").map(stat));
}

fn outside(dir: &Descriptor) {
    say("symlink-at that leads out", dir.symlink_at("..", "out"));
    say("symlink-at that is absolute", dir.symlink_at("/etc", "absolute"));
    for path in ["..", "../x", "folder/../..", "/", "/etc/passwd", "out", "out/x", "absolute"] {
        say(&format!("stat-at {path:?}, following"), dir.stat_at(FOLLOW, path).map(stat));
        say(&format!("open-at {path:?}, following"), dir.open_at(FOLLOW, path, OpenFlags::empty(), READ).map(drop));
    }
    for path in ["..", "../x", "/", "/x", "out/x"] {
        say(&format!("create-directory-at {path:?}"), dir.create_directory_at(path));
        say(&format!("unlink-file-at {path:?}"), dir.unlink_file_at(path));
        say(&format!("remove-directory-at {path:?}"), dir.remove_directory_at(path));
        say(&format!("symlink-at {path:?}"), dir.symlink_at("file", path));
        say(&format!("rename-at to {path:?}"), dir.rename_at("file", dir, path));
        say(&format!("rename-at from {path:?}"), dir.rename_at(path, dir, "new"));
        say(&format!("link-at to {path:?}"), dir.link_at(NONE, "file", dir, path));
        say(&format!("readlink-at {path:?}"), dir.readlink_at(path));
        say(&format!("set-times-at {path:?}"), dir.set_times_at(NONE, path, NewTimestamp::Now, NewTimestamp::Now));
    }
    say("readlink-at one that leads out", dir.readlink_at("out"));
    say("readlink-at one that is absolute", dir.readlink_at("absolute"));
    say("unlink-file-at one that leads out", dir.unlink_file_at("out"));
    say("unlink-file-at one that is absolute", dir.unlink_file_at("absolute"));
}

fn opening(dir: &Descriptor) {
    let all = [
        ("nothing", OpenFlags::empty()),
        ("CREATE", OpenFlags::CREATE),
        ("DIRECTORY", OpenFlags::DIRECTORY),
        ("EXCLUSIVE", OpenFlags::EXCLUSIVE),
        ("TRUNCATE", OpenFlags::TRUNCATE),
        ("CREATE | EXCLUSIVE", OpenFlags::CREATE | OpenFlags::EXCLUSIVE),
        ("CREATE | TRUNCATE", OpenFlags::CREATE | OpenFlags::TRUNCATE),
        ("CREATE | DIRECTORY", OpenFlags::CREATE | OpenFlags::DIRECTORY),
    ];
    for (name, flags) in all {
        for path in ["file", "folder", "none"] {
            for mode in [DescriptorFlags::empty(), READ, WRITE, READ | WRITE, READ | DescriptorFlags::MUTATE_DIRECTORY] {
                let opened = open(dir, path, flags, mode).and_then(|opened| Ok((opened.get_type()?, opened.get_flags()?)));
                say(&format!("open-at {path} with {name}, {mode:?}"), opened);
                if path == "none" {
                    let _ = dir.unlink_file_at("none");
                }
            }
        }
    }
    drop(make(dir, "file", b"contents"));
}

fn contents(dir: &Descriptor) {
    let file = make(dir, "numbers", b"0123456789");
    say("read", file.read(4, 0));
    say("read from the middle", file.read(100, 5));
    say("read at the end", file.read(4, 10));
    say("read beyond the end", file.read(4, 1_000));
    say("read nothing", file.read(0, 0));
    say("read at an offset that is too large", file.read(1, u64::MAX));
    say("write", file.write(b"ab", 2));
    say("write nothing", file.write(b"", 2));
    say("write beyond the end", file.write(b"z", 12));
    say("read with a hole", file.read(100, 0));
    say("write at an offset that is too large", file.write(b"z", u64::MAX));
    say("set-size smaller", file.set_size(3));
    say("set-size larger", file.set_size(5));
    say("read after that", file.read(100, 0));
    say("set-size that is too large", file.set_size(u64::MAX));
    for advice in [Advice::Normal, Advice::Sequential, Advice::Random, Advice::WillNeed, Advice::DontNeed, Advice::NoReuse] {
        say(&format!("advise {advice:?}"), file.advise(0, 3, advice));
    }
    say("advise at an offset that is too large", file.advise(u64::MAX, 1, Advice::Normal));
    say("sync", file.sync());
    say("sync-data", file.sync_data());
    let reader = open(dir, "numbers", OpenFlags::empty(), READ).expect("it is there");
    say("write to what is open to read", reader.write(b"x", 0));
    say("set-size of what is open to read", reader.set_size(0));
    let writer = open(dir, "numbers", OpenFlags::empty(), WRITE).expect("it is there");
    say("read of what is open to write", writer.read(1, 0));
    say("unlink-file-at while it is open", dir.unlink_file_at("numbers"));
    say("read of what has no name", file.read(3, 0));
    say("stat of what has no name", file.stat().map(stat));
}

fn streams(dir: &Descriptor) {
    let file = make(dir, "streamed", b"0123456789");
    let input = file.read_via_stream(2).expect("a stream");
    say_stream("read-via-stream: read", input.blocking_read(3));
    say_stream("read-via-stream: skip", input.blocking_skip(2));
    say_stream("read-via-stream: nothing", input.read(0));
    say_stream("read-via-stream: the rest", input.blocking_read(100));
    say_stream("read-via-stream: the end", input.blocking_read(100));
    say_stream("read-via-stream: behind the end", input.read(1));
    println!("read-via-stream: ready {}", input.subscribe().ready());
    drop(input);
    let output = file.write_via_stream(4).expect("a stream");
    println!("write-via-stream: room {}", output.check_write().is_ok_and(|bytes| bytes >= 4_096));
    say_stream("write-via-stream: write", output.write(b"abc"));
    say_stream("write-via-stream: blocking-flush", output.blocking_flush());
    say_stream("write-via-stream: blocking-write-and-flush", output.blocking_write_and_flush(b"de"));
    say_stream("write-via-stream: blocking-write-zeroes-and-flush", output.blocking_write_zeroes_and_flush(2));
    println!("write-via-stream: ready {}", output.subscribe().ready());
    drop(output);
    say("read after that", file.read(100, 0));
    let output = file.append_via_stream().expect("a stream");
    say_stream("append-via-stream: blocking-write-and-flush", output.blocking_write_and_flush(b"end"));
    drop(output);
    say("read after that", file.read(100, 0));
    let (output, input) = (file.write_via_stream(0).expect("a stream"), file.read_via_stream(4).expect("a stream"));
    say_stream("blocking-splice", output.blocking_splice(&input, 3));
    say_stream("blocking-flush", output.blocking_flush());
    drop((output, input));
    say("read after that", file.read(100, 0));
    let reader = open(dir, "streamed", OpenFlags::empty(), READ).expect("it is there");
    let written = reader.write_via_stream(0).map(|output| match output.blocking_write_and_flush(b"x") {
        Ok(()) => "written",
        Err(_) => "failed",
    });
    println!("write-via-stream of what is open to read fails: {}", written != Ok("written"));
    say("unlink-file-at", dir.unlink_file_at("streamed"));
}

fn times(dir: &Descriptor) {
    let file = make(dir, "timed", b"");
    let at = |seconds, nanoseconds| NewTimestamp::Timestamp(Datetime { seconds, nanoseconds });
    let seen = || {
        dir.stat_at(NONE, "timed").map(|stat| {
            let time = |time: Option<Datetime>| time.map(|time| (time.seconds, time.nanoseconds));
            (time(stat.data_access_timestamp), time(stat.data_modification_timestamp))
        })
    };
    say("set-times", file.set_times(at(1_000, 5), at(2_000, 999_999_999)));
    say("stat-at after that", seen());
    say("set-times of one", file.set_times(NewTimestamp::NoChange, at(3_000, 0)));
    say("stat-at after that", seen());
    say("set-times-at", dir.set_times_at(NONE, "timed", at(4_000, 1), NewTimestamp::NoChange));
    say("stat-at after that", seen());
    say("set-times now", file.set_times(NewTimestamp::Now, NewTimestamp::Now));
    println!("stat-at after that: {}", seen().is_ok_and(|(one, other)| one > Some((4_000, 1)) && other > Some((3_000, 0))));
    say("set-times too late", file.set_times(at(u64::MAX, 0), NewTimestamp::NoChange));
    say("set-times-at nothing", dir.set_times_at(NONE, "nothing", at(1, 1), at(1, 1)));
    say("set-times of the folder", dir.set_times(at(5_000, 0), at(6_000, 0)));
    say("symlink-at to what was timed", dir.symlink_at("timed", "to-timed"));
    say("set-times-at of a link", dir.set_times_at(NONE, "to-timed", at(1, 0), at(2, 0)));
    say("set-times-at of a link, following", dir.set_times_at(FOLLOW, "to-timed", at(7_000, 0), at(8_000, 0)));
    say("stat-at after that", seen());
    let _ = (dir.unlink_file_at("timed"), dir.unlink_file_at("to-timed"));
}

fn links(dir: &Descriptor) {
    say("symlink-at", dir.symlink_at("file", "link"));
    say("symlink-at where something is", dir.symlink_at("file", "link"));
    say("symlink-at to nothing", dir.symlink_at("nothing", "dangling"));
    say("symlink-at to a folder", dir.symlink_at("folder", "to-folder"));
    say("symlink-at with an empty target", dir.symlink_at("", "empty"));
    say("symlink-at to itself", dir.symlink_at("loop", "loop"));
    say("readlink-at", dir.readlink_at("link"));
    say("readlink-at of a file", dir.readlink_at("file"));
    say("readlink-at of nothing", dir.readlink_at("nothing"));
    for path in ["link", "dangling", "to-folder", "to-folder/", "to-folder/below", "loop"] {
        say(&format!("stat-at {path}"), dir.stat_at(NONE, path).map(stat));
        say(&format!("stat-at {path}, following"), dir.stat_at(FOLLOW, path).map(stat));
        say(&format!("open-at {path}"), open(dir, path, OpenFlags::empty(), READ).map(drop));
        say(&format!("open-at {path}, following"), dir.open_at(FOLLOW, path, OpenFlags::empty(), READ).map(drop));
    }
    say("open-at with CREATE of a dangling link", open(dir, "dangling", OpenFlags::CREATE, READ | WRITE).map(drop));
    say("link-at", dir.link_at(NONE, "file", dir, "hard"));
    say("stat-at of both names", dir.stat_at(NONE, "hard").map(stat));
    say("link-at where something is", dir.link_at(NONE, "file", dir, "hard"));
    say("link-at of nothing", dir.link_at(NONE, "nothing", dir, "hard2"));
    say("link-at of a folder", dir.link_at(NONE, "folder", dir, "hard2"));
    say("link-at of a link", dir.link_at(NONE, "link", dir, "hard-link"));
    say("link-at of a link, following", dir.link_at(FOLLOW, "link", dir, "hard2"));
    say("read-directory", names(dir));
    for path in ["hard", "hard-link", "link", "dangling", "to-folder", "loop"] {
        say(&format!("unlink-file-at {path}"), dir.unlink_file_at(path));
    }
}

fn renaming(dir: &Descriptor) {
    drop(make(dir, "one", b"1"));
    drop(make(dir, "two", b"22"));
    say("rename-at", dir.rename_at("one", dir, "three"));
    say("rename-at of nothing", dir.rename_at("one", dir, "three"));
    say("rename-at onto a file", dir.rename_at("two", dir, "three"));
    say("stat-at after that", dir.stat_at(NONE, "three").map(stat));
    say("rename-at onto itself", dir.rename_at("three", dir, "three"));
    say("rename-at onto a folder", dir.rename_at("three", dir, "folder"));
    say("rename-at of a folder onto a file", dir.rename_at("folder", dir, "three"));
    say("rename-at of a folder into itself", dir.rename_at("folder", dir, "folder/below/x"));
    let folder = open(dir, "folder", OpenFlags::DIRECTORY, READ | DescriptorFlags::MUTATE_DIRECTORY).expect("it is there");
    say("rename-at to another descriptor", dir.rename_at("three", &folder, "moved"));
    say("rename-at from another descriptor", folder.rename_at("moved", dir, "three"));
    say("rename-at of a folder", dir.rename_at("folder", dir, "renamed"));
    say("stat of what was renamed", folder.stat().map(stat));
    say("rename-at of a folder back", dir.rename_at("renamed", dir, "folder"));
    say("create-directory-at to rename onto", dir.create_directory_at("full"));
    say("create-directory-at in it", dir.create_directory_at("full/inner"));
    say("rename-at onto a folder that is not empty", dir.rename_at("slash", dir, "full"));
    say("rename-at onto a folder that is empty", dir.rename_at("full", dir, "slash"));
}

fn removing(dir: &Descriptor) {
    say("unlink-file-at", dir.unlink_file_at("three"));
    say("unlink-file-at of nothing", dir.unlink_file_at("three"));
    say("unlink-file-at of a folder", dir.unlink_file_at("folder"));
    say("unlink-file-at a slash at the end", dir.unlink_file_at("file/"));
    say("remove-directory-at of a file", dir.remove_directory_at("file"));
    say("remove-directory-at of nothing", dir.remove_directory_at("nothing"));
    say("remove-directory-at of what is not empty", dir.remove_directory_at("folder"));
    say("remove-directory-at of itself", dir.remove_directory_at("."));
    say("remove-directory-at below", dir.remove_directory_at("folder/below"));
    say("remove-directory-at deeper", dir.remove_directory_at("folder/deeper"));
    say("remove-directory-at", dir.remove_directory_at("folder"));
    let open_folder = dir.create_directory_at("gone").and_then(|()| open(dir, "gone", OpenFlags::DIRECTORY, READ));
    say("remove-directory-at of what is open", dir.remove_directory_at("gone"));
    if let Ok(folder) = open_folder {
        say("create-directory-at in what is gone", folder.create_directory_at("x"));
        say("read-directory of what is gone", names(&folder));
    }
}

/// Everything that changes something, in a folder that may only be read.
pub(crate) fn read_only() {
    let dir = &get_directories()[1].0;
    say("get-flags", dir.get_flags());
    say("read-directory", names(dir));
    let file = open(dir, "kept", OpenFlags::empty(), READ).expect("it is there");
    say("get-flags of a file", file.get_flags());
    say("read", file.read(100, 0));
    say("write", file.write(b"x", 0));
    say("set-size", file.set_size(0));
    say("set-times", file.set_times(NewTimestamp::Now, NewTimestamp::Now));
    say("write-via-stream", file.write_via_stream(0).map(drop));
    say("append-via-stream", file.append_via_stream().map(drop));
    say("sync", file.sync());
    say("sync-data", file.sync_data());
    say("advise", file.advise(0, 1, Advice::Normal));
    say("open-at to write", open(dir, "kept", OpenFlags::empty(), WRITE).map(drop));
    say("open-at to write nothing", open(dir, "nothing", OpenFlags::empty(), WRITE).map(drop));
    say("open-at with TRUNCATE", open(dir, "kept", OpenFlags::TRUNCATE, READ).map(drop));
    say("open-at with CREATE", open(dir, "new", OpenFlags::CREATE, READ).map(drop));
    say("open-at with CREATE of what is there", open(dir, "kept", OpenFlags::CREATE, READ).map(drop));
    say(
        "open-at of a folder to change it",
        open(dir, "folder", OpenFlags::DIRECTORY, READ | DescriptorFlags::MUTATE_DIRECTORY).map(drop),
    );
    say("create-directory-at", dir.create_directory_at("new"));
    say("symlink-at", dir.symlink_at("kept", "new"));
    say("link-at", dir.link_at(NONE, "kept", dir, "new"));
    say("rename-at", dir.rename_at("kept", dir, "new"));
    say("rename-at onto itself", dir.rename_at("kept", dir, "kept"));
    say("unlink-file-at", dir.unlink_file_at("kept"));
    say("unlink-file-at of nothing", dir.unlink_file_at("nothing"));
    say("remove-directory-at", dir.remove_directory_at("folder"));
    say("set-times-at", dir.set_times_at(NONE, "kept", NewTimestamp::Now, NewTimestamp::Now));
    say("set-times of the folder", dir.set_times(NewTimestamp::Now, NewTimestamp::Now));
    let other = &get_directories()[0].0;
    say("rename-at from what may be written to", other.rename_at("kept", dir, "new"));
    say("rename-at to what may be written to", dir.rename_at("kept", other, "new"));
    say("link-at to what may be written to", dir.link_at(NONE, "kept", other, "new"));
}
