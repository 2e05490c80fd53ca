//! `wasi:filesystem`: the first granted folder may be written to, the second only be read.

use std::fmt::Debug;

use futures::join;
use wasip3::clocks::system_clock::Instant;
use wasip3::filesystem::preopens::get_directories;
use wasip3::filesystem::types::{
    Advice, Descriptor, DescriptorFlags, DescriptorStat, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};
use wasip3::wit_bindgen::StreamResult;
use wasip3::wit_stream;

const NONE: PathFlags = PathFlags::empty();
const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;
const READ: DescriptorFlags = DescriptorFlags::READ;
const WRITE: DescriptorFlags = DescriptorFlags::WRITE;

/// Prints what came of a call, an error by its name.
fn say<T: Debug>(what: &str, result: Result<T, ErrorCode>) {
    match result {
        Ok(value) => println!("{what}: {value:?}"),
        Err(code) => println!("{what}: {code:?}"),
    }
}

async fn read(file: &Descriptor, at: u64) -> Result<String, ErrorCode> {
    let (stream, told) = file.read_via_stream(at);
    let bytes = stream.collect().await;
    told.await.map(|()| String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes all of it; how much of it was taken.
async fn write(file: &Descriptor, bytes: &[u8], at: u64) -> Result<usize, ErrorCode> {
    let (mut writer, reader) = wit_stream::new();
    let (told, left) = join!(file.write_via_stream(reader, at).into_future(), async {
        let left = writer.write_all(bytes.to_vec()).await.len();
        drop(writer);
        left
    });
    told.map(|()| bytes.len() - left)
}

async fn append(file: &Descriptor, bytes: &[u8]) -> Result<usize, ErrorCode> {
    let (mut writer, reader) = wit_stream::new();
    let (told, left) = join!(file.append_via_stream(reader).into_future(), async {
        let left = writer.write_all(bytes.to_vec()).await.len();
        drop(writer);
        left
    });
    told.map(|()| bytes.len() - left)
}

async fn open(dir: &Descriptor, path: &str, open: OpenFlags, flags: DescriptorFlags) -> Result<Descriptor, ErrorCode> {
    dir.open_at(NONE, path.to_owned(), open, flags).await
}

async fn make(dir: &Descriptor, path: &str, contents: &[u8]) -> Descriptor {
    let file = open(dir, path, OpenFlags::CREATE | OpenFlags::TRUNCATE, READ | WRITE).await.expect("a file");
    assert_eq!(write(&file, contents, 0).await.ok(), Some(contents.len()));
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

async fn names(dir: &Descriptor) -> Result<Vec<(String, String)>, ErrorCode> {
    let (stream, told) = dir.read_directory();
    let entries = stream.collect().await;
    told.await?;
    let mut names: Vec<_> = entries.into_iter().map(|entry| (entry.name, format!("{:?}", entry.type_))).collect();
    names.sort();
    Ok(names)
}

pub(crate) async fn all() {
    let directories = get_directories();
    let listed: Vec<&str> = directories.iter().map(|(_, name)| name.as_str()).collect();
    println!("get-directories: {listed:?}");
    let dir = &directories[0].0;
    descriptors(dir).await;
    paths(dir).await;
    outside(dir).await;
    opening(dir).await;
    contents(dir).await;
    streams(dir).await;
    times(dir).await;
    links(dir).await;
    renaming(dir).await;
    removing(dir).await;
    say("read-directory at the end", names(dir).await);
}

async fn descriptors(dir: &Descriptor) {
    say("get-flags of the folder", dir.get_flags().await);
    say("get-type of the folder", dir.get_type().await);
    say("stat of the folder", dir.stat().await.map(stat));
    say("sync of the folder", dir.sync().await);
    say("sync-data of the folder", dir.sync_data().await);
    say("set-size of the folder", dir.set_size(1).await);
    say("advise of the folder", dir.advise(0, 1, Advice::Normal).await);
    say("read of the folder", read(&dir, 0).await);
    say("write of the folder", write(&dir, b"x", 0).await);
    say("append of the folder", append(dir, b"x").await);
    say("is-same-object of the folder", Ok(dir.is_same_object(dir).await));
    let file = make(dir, "file", b"contents").await;
    say("get-flags of a file", file.get_flags().await);
    say("get-type of a file", file.get_type().await);
    say("stat of a file", file.stat().await.map(stat));
    say("read-directory of a file", names(&file).await);
    say("open-at of a file", open(&file, "x", OpenFlags::empty(), READ).await.map(drop));
    say("stat-at of a file", file.stat_at(NONE, "x".to_owned()).await.map(stat));
    say("create-directory-at of a file", file.create_directory_at("x".to_owned()).await);
    say("readlink-at of a file", file.readlink_at("x".to_owned()).await);
    say("rename-at of a file", file.rename_at("x".to_owned(), dir, "y".to_owned()).await);
    say("link-at of a file", dir.link_at(NONE, "file".to_owned(), &file, "y".to_owned()).await);
    say("symlink-at of a file", file.symlink_at("x".to_owned(), "y".to_owned()).await);
    say("unlink-file-at of a file", file.unlink_file_at("x".to_owned()).await);
    say("remove-directory-at of a file", file.remove_directory_at("x".to_owned()).await);
    say("set-times-at of a file", file.set_times_at(NONE, "x".to_owned(), NewTimestamp::Now, NewTimestamp::Now).await);
    say("metadata-hash-at of a file", file.metadata_hash_at(NONE, "x".to_owned()).await.map(drop));
    say("is-same-object of folder and file", Ok(dir.is_same_object(&file).await));
    let again = open(dir, "file", OpenFlags::empty(), READ).await.expect("it is there");
    say("is-same-object of a file opened twice", Ok(file.is_same_object(&again).await));
    let hashes = [
        file.metadata_hash().await,
        again.metadata_hash().await,
        dir.metadata_hash_at(NONE, "file".to_owned()).await,
        dir.metadata_hash().await,
    ];
    let hashes = hashes.map(|hash| hash.map(|hash| (hash.lower, hash.upper)).ok());
    say("metadata-hash of a file is the same", Ok(hashes[0] == hashes[1] && hashes[1] == hashes[2]));
    say("metadata-hash of a folder is another", Ok(hashes[0] != hashes[3]));
}

async fn paths(dir: &Descriptor) {
    say("create-directory-at", dir.create_directory_at("folder".to_owned()).await);
    say("create-directory-at again", dir.create_directory_at("folder".to_owned()).await);
    say("create-directory-at below", dir.create_directory_at("folder/below".to_owned()).await);
    say("create-directory-at below nothing", dir.create_directory_at("nothing/below".to_owned()).await);
    say("create-directory-at below a file", dir.create_directory_at("file/below".to_owned()).await);
    say("create-directory-at a slash at the end", dir.create_directory_at("slash/".to_owned()).await);
    say("create-directory-at an empty path", dir.create_directory_at("".to_owned()).await);
    say("create-directory-at a zero", dir.create_directory_at("a\0b".to_owned()).await);
    say("create-directory-at a long name", dir.create_directory_at("n".repeat(300)).await);
    say("create-directory-at a long path", dir.create_directory_at("n/".repeat(3_000)).await);
    say("create-directory-at in other letters", dir.create_directory_at("grün".to_owned()).await);
    for path in ["file", "folder", "folder/", "folder/../file", "./file", "folder//below", "nothing", "file/", "file/x", "", "."]
    {
        say(&format!("stat-at {path:?}"), dir.stat_at(NONE, path.to_owned()).await.map(stat));
        say(&format!("stat-at {path:?}, following"), dir.stat_at(FOLLOW, path.to_owned()).await.map(stat));
    }
    say("metadata-hash-at nothing", dir.metadata_hash_at(NONE, "nothing".to_owned()).await.map(drop));
    say("read-directory", names(dir).await);
    let folder = open(dir, "folder", OpenFlags::DIRECTORY, READ).await.expect("it is there");
    say("read-directory below", names(&folder).await);
    say("create-directory-at from below", folder.create_directory_at("deeper".to_owned()).await);
    say("stat-at above what was opened", folder.stat_at(NONE, "../file".to_owned()).await.map(stat));
}

async fn outside(dir: &Descriptor) {
    say("symlink-at that leads out", dir.symlink_at("..".to_owned(), "out".to_owned()).await);
    say("symlink-at that is absolute", dir.symlink_at("/etc".to_owned(), "absolute".to_owned()).await);
    for path in ["..", "../x", "folder/../..", "/", "/etc/passwd", "out", "out/x", "absolute"] {
        say(&format!("stat-at {path:?}, following"), dir.stat_at(FOLLOW, path.to_owned()).await.map(stat));
        say(
            &format!("open-at {path:?}, following"),
            dir.open_at(FOLLOW, path.to_owned(), OpenFlags::empty(), READ).await.map(drop),
        );
    }
    for path in ["..", "../x", "/", "/x", "out/x"] {
        say(&format!("create-directory-at {path:?}"), dir.create_directory_at(path.to_owned()).await);
        say(&format!("unlink-file-at {path:?}"), dir.unlink_file_at(path.to_owned()).await);
        say(&format!("remove-directory-at {path:?}"), dir.remove_directory_at(path.to_owned()).await);
        say(&format!("symlink-at {path:?}"), dir.symlink_at("file".to_owned(), path.to_owned()).await);
        say(&format!("rename-at to {path:?}"), dir.rename_at("file".to_owned(), dir, path.to_owned()).await);
        say(&format!("rename-at from {path:?}"), dir.rename_at(path.to_owned(), dir, "new".to_owned()).await);
        say(&format!("link-at to {path:?}"), dir.link_at(NONE, "file".to_owned(), dir, path.to_owned()).await);
        say(&format!("readlink-at {path:?}"), dir.readlink_at(path.to_owned()).await);
        say(
            &format!("set-times-at {path:?}"),
            dir.set_times_at(NONE, path.to_owned(), NewTimestamp::Now, NewTimestamp::Now).await,
        );
    }
    say("readlink-at one that leads out", dir.readlink_at("out".to_owned()).await);
    say("readlink-at one that is absolute", dir.readlink_at("absolute".to_owned()).await);
    say("unlink-file-at one that leads out", dir.unlink_file_at("out".to_owned()).await);
    say("unlink-file-at one that is absolute", dir.unlink_file_at("absolute".to_owned()).await);
}

async fn opening(dir: &Descriptor) {
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
                let opened = match open(dir, path, flags, mode).await {
                    Ok(opened) => Ok((opened.get_type().await, opened.get_flags().await)),
                    Err(code) => Err(code),
                };
                say(&format!("open-at {path} with {name}, {mode:?}"), opened);
                if path == "none" {
                    let _ = dir.unlink_file_at("none".to_owned()).await;
                }
            }
        }
    }
    drop(make(dir, "file", b"contents").await);
}

async fn contents(dir: &Descriptor) {
    let file = make(dir, "numbers", b"0123456789").await;
    say("read", read(&file, 0).await);
    say("read from the middle", read(&file, 5).await);
    say("read at the end", read(&file, 10).await);
    say("read beyond the end", read(&file, 1_000).await);
    say("read nothing", read(&file, 0).await);
    say("read at an offset that is too large", read(&file, u64::MAX).await);
    say("write", write(&file, b"ab", 2).await);
    say("write nothing", write(&file, b"", 2).await);
    say("write beyond the end", write(&file, b"z", 12).await);
    say("read with a hole", read(&file, 0).await);
    say("write at an offset that is too large", write(&file, b"z", u64::MAX).await);
    say("set-size smaller", file.set_size(3).await);
    say("set-size larger", file.set_size(5).await);
    say("read after that", read(&file, 0).await);
    say("set-size that is too large", file.set_size(u64::MAX).await);
    for advice in [Advice::Normal, Advice::Sequential, Advice::Random, Advice::WillNeed, Advice::DontNeed, Advice::NoReuse] {
        say(&format!("advise {advice:?}"), file.advise(0, 3, advice).await);
    }
    say("advise at an offset that is too large", file.advise(u64::MAX, 1, Advice::Normal).await);
    say("sync", file.sync().await);
    say("sync-data", file.sync_data().await);
    let reader = open(dir, "numbers", OpenFlags::empty(), READ).await.expect("it is there");
    say("write to what is open to read", write(&reader, b"x", 0).await);
    say("set-size of what is open to read", reader.set_size(0).await);
    let writer = open(dir, "numbers", OpenFlags::empty(), WRITE).await.expect("it is there");
    say("read of what is open to write", read(&writer, 0).await);
    say("unlink-file-at while it is open", dir.unlink_file_at("numbers".to_owned()).await);
    say("read of what has no name", read(&file, 0).await);
    say("stat of what has no name", file.stat().await.map(stat));
}

async fn streams(dir: &Descriptor) {
    let file = make(dir, "streamed", b"0123456789").await;
    let (mut input, told) = file.read_via_stream(2);
    let (status, bytes) = input.read(Vec::with_capacity(3)).await;
    println!("read-via-stream: read {status:?} {bytes:?}");
    println!("read-via-stream: read nothing {:?}", input.read(Vec::new()).await.0);
    println!("read-via-stream: the rest {:?}", input.collect().await);
    say("read-via-stream: result", told.await);
    let (mut input, told) = file.read_via_stream(0);
    let (status, _) = input.read(Vec::with_capacity(1)).await;
    println!("read-via-stream: given up after {status:?}");
    drop(input);
    say("read-via-stream: result", told.await);
    let (mut input, told) = file.read_via_stream(1_000);
    println!("read-via-stream beyond the end: {:?}", matches!(input.read(Vec::with_capacity(1)).await.0, StreamResult::Dropped));
    say("read-via-stream beyond the end: result", told.await);
    say("write-via-stream of nothing", write(&file, b"", 0).await);
    say("append-via-stream", append(&file, b"end").await);
    say("append-via-stream of nothing", append(&file, b"").await);
    say("read after that", read(&file, 0).await);
    let (mut writer, reader) = wit_stream::new();
    let (written, ()) = join!(file.write_via_stream(reader, 4).into_future(), async {
        for piece in [b"ab".to_vec(), b"c".to_vec(), Vec::new(), b"de".to_vec()] {
            assert!(writer.write_all(piece).await.is_empty());
        }
        drop(writer);
    });
    say("write-via-stream in pieces", written);
    say("read after that", read(&file, 0).await);
    let (input, _told) = file.read_via_stream(0);
    let copy = make(dir, "copy", b"").await;
    say("write-via-stream of what is read elsewhere", copy.write_via_stream(input, 0).await);
    say("read after that", read(&copy, 0).await);
    let reader = open(dir, "streamed", OpenFlags::empty(), READ).await.expect("it is there");
    println!("write-via-stream of what is open to read fails: {}", write(&reader, b"x", 0).await.is_err());
    say("unlink-file-at", dir.unlink_file_at("streamed".to_owned()).await);
    say("unlink-file-at", dir.unlink_file_at("copy".to_owned()).await);
}

async fn times(dir: &Descriptor) {
    let file = make(dir, "timed", b"").await;
    let at = |seconds, nanoseconds| NewTimestamp::Timestamp(Instant { seconds, nanoseconds });
    let seen = async || {
        dir.stat_at(NONE, "timed".to_owned()).await.map(|stat| {
            let time = |time: Option<Instant>| time.map(|time| (time.seconds, time.nanoseconds));
            (time(stat.data_access_timestamp), time(stat.data_modification_timestamp))
        })
    };
    say("set-times", file.set_times(at(1_000, 5), at(2_000, 999_999_999)).await);
    say("stat-at after that", seen().await);
    say("set-times of one", file.set_times(NewTimestamp::NoChange, at(3_000, 0)).await);
    say("stat-at after that", seen().await);
    say("set-times-at", dir.set_times_at(NONE, "timed".to_owned(), at(4_000, 1), NewTimestamp::NoChange).await);
    say("stat-at after that", seen().await);
    say("set-times now", file.set_times(NewTimestamp::Now, NewTimestamp::Now).await);
    println!("stat-at after that: {}", seen().await.is_ok_and(|(one, other)| one > Some((4_000, 1)) && other > Some((3_000, 0))));
    say("set-times too late", file.set_times(at(i64::MAX, 0), NewTimestamp::NoChange).await);
    say("set-times-at nothing", dir.set_times_at(NONE, "nothing".to_owned(), at(1, 1), at(1, 1)).await);
    say("set-times of the folder", dir.set_times(at(5_000, 0), at(6_000, 0)).await);
    say("symlink-at to what was timed", dir.symlink_at("timed".to_owned(), "to-timed".to_owned()).await);
    say("set-times-at of a link", dir.set_times_at(NONE, "to-timed".to_owned(), at(1, 0), at(2, 0)).await);
    say("set-times-at of a link, following", dir.set_times_at(FOLLOW, "to-timed".to_owned(), at(7_000, 0), at(8_000, 0)).await);
    say("stat-at after that", seen().await);
    let _ = (dir.unlink_file_at("timed".to_owned()).await, dir.unlink_file_at("to-timed".to_owned()).await);
}

async fn links(dir: &Descriptor) {
    say("symlink-at", dir.symlink_at("file".to_owned(), "link".to_owned()).await);
    say("symlink-at where something is", dir.symlink_at("file".to_owned(), "link".to_owned()).await);
    say("symlink-at to nothing", dir.symlink_at("nothing".to_owned(), "dangling".to_owned()).await);
    say("symlink-at to a folder", dir.symlink_at("folder".to_owned(), "to-folder".to_owned()).await);
    say("symlink-at with an empty target", dir.symlink_at("".to_owned(), "empty".to_owned()).await);
    say("symlink-at to itself", dir.symlink_at("loop".to_owned(), "loop".to_owned()).await);
    say("readlink-at", dir.readlink_at("link".to_owned()).await);
    say("readlink-at of a file", dir.readlink_at("file".to_owned()).await);
    say("readlink-at of nothing", dir.readlink_at("nothing".to_owned()).await);
    for path in ["link", "dangling", "to-folder", "to-folder/", "to-folder/below", "loop"] {
        say(&format!("stat-at {path}"), dir.stat_at(NONE, path.to_owned()).await.map(stat));
        say(&format!("stat-at {path}, following"), dir.stat_at(FOLLOW, path.to_owned()).await.map(stat));
        say(&format!("open-at {path}"), open(dir, path, OpenFlags::empty(), READ).await.map(drop));
        say(
            &format!("open-at {path}, following"),
            dir.open_at(FOLLOW, path.to_owned(), OpenFlags::empty(), READ).await.map(drop),
        );
    }
    say("open-at with CREATE of a dangling link", open(dir, "dangling", OpenFlags::CREATE, READ | WRITE).await.map(drop));
    say("link-at", dir.link_at(NONE, "file".to_owned(), dir, "hard".to_owned()).await);
    say("stat-at of both names", dir.stat_at(NONE, "hard".to_owned()).await.map(stat));
    say("link-at where something is", dir.link_at(NONE, "file".to_owned(), dir, "hard".to_owned()).await);
    say("link-at of nothing", dir.link_at(NONE, "nothing".to_owned(), dir, "hard2".to_owned()).await);
    say("link-at of a folder", dir.link_at(NONE, "folder".to_owned(), dir, "hard2".to_owned()).await);
    say("link-at of a link", dir.link_at(NONE, "link".to_owned(), dir, "hard-link".to_owned()).await);
    say("link-at of a link, following", dir.link_at(FOLLOW, "link".to_owned(), dir, "hard2".to_owned()).await);
    say("read-directory", names(dir).await);
    for path in ["hard", "hard-link", "link", "dangling", "to-folder", "loop"] {
        say(&format!("unlink-file-at {path}"), dir.unlink_file_at(path.to_owned()).await);
    }
}

async fn renaming(dir: &Descriptor) {
    drop(make(dir, "one", b"1").await);
    drop(make(dir, "two", b"22").await);
    say("rename-at", dir.rename_at("one".to_owned(), dir, "three".to_owned()).await);
    say("rename-at of nothing", dir.rename_at("one".to_owned(), dir, "three".to_owned()).await);
    say("rename-at onto a file", dir.rename_at("two".to_owned(), dir, "three".to_owned()).await);
    say("stat-at after that", dir.stat_at(NONE, "three".to_owned()).await.map(stat));
    say("rename-at onto itself", dir.rename_at("three".to_owned(), dir, "three".to_owned()).await);
    say("rename-at onto a folder", dir.rename_at("three".to_owned(), dir, "folder".to_owned()).await);
    say("rename-at of a folder onto a file", dir.rename_at("folder".to_owned(), dir, "three".to_owned()).await);
    say("rename-at of a folder into itself", dir.rename_at("folder".to_owned(), dir, "folder/below/x".to_owned()).await);
    let folder = open(dir, "folder", OpenFlags::DIRECTORY, READ | DescriptorFlags::MUTATE_DIRECTORY).await.expect("it is there");
    say("rename-at to another descriptor", dir.rename_at("three".to_owned(), &folder, "moved".to_owned()).await);
    say("rename-at from another descriptor", folder.rename_at("moved".to_owned(), dir, "three".to_owned()).await);
    say("rename-at of a folder", dir.rename_at("folder".to_owned(), dir, "renamed".to_owned()).await);
    say("stat of what was renamed", folder.stat().await.map(stat));
    say("rename-at of a folder back", dir.rename_at("renamed".to_owned(), dir, "folder".to_owned()).await);
    say("create-directory-at to rename onto", dir.create_directory_at("full".to_owned()).await);
    say("create-directory-at in it", dir.create_directory_at("full/inner".to_owned()).await);
    say("rename-at onto a folder that is not empty", dir.rename_at("slash".to_owned(), dir, "full".to_owned()).await);
    say("rename-at onto a folder that is empty", dir.rename_at("full".to_owned(), dir, "slash".to_owned()).await);
}

async fn removing(dir: &Descriptor) {
    say("unlink-file-at", dir.unlink_file_at("three".to_owned()).await);
    say("unlink-file-at of nothing", dir.unlink_file_at("three".to_owned()).await);
    say("unlink-file-at of a folder", dir.unlink_file_at("folder".to_owned()).await);
    say("unlink-file-at a slash at the end", dir.unlink_file_at("file/".to_owned()).await);
    say("remove-directory-at of a file", dir.remove_directory_at("file".to_owned()).await);
    say("remove-directory-at of nothing", dir.remove_directory_at("nothing".to_owned()).await);
    say("remove-directory-at of what is not empty", dir.remove_directory_at("folder".to_owned()).await);
    say("remove-directory-at of itself", dir.remove_directory_at(".".to_owned()).await);
    say("remove-directory-at below", dir.remove_directory_at("folder/below".to_owned()).await);
    say("remove-directory-at deeper", dir.remove_directory_at("folder/deeper".to_owned()).await);
    say("remove-directory-at", dir.remove_directory_at("folder".to_owned()).await);
    say("create-directory-at to open", dir.create_directory_at("gone".to_owned()).await);
    let open_folder = open(dir, "gone", OpenFlags::DIRECTORY, READ).await;
    say("remove-directory-at of what is open", dir.remove_directory_at("gone".to_owned()).await);
    if let Ok(folder) = open_folder {
        say("create-directory-at in what is gone", folder.create_directory_at("x".to_owned()).await);
        say("read-directory of what is gone", names(&folder).await);
    }
}

/// Everything that changes something, in a folder that may only be read.
pub(crate) async fn read_only() {
    let dir = &get_directories()[1].0;
    say("get-flags", dir.get_flags().await);
    say("read-directory", names(dir).await);
    let file = open(dir, "kept", OpenFlags::empty(), READ).await.expect("it is there");
    say("get-flags of a file", file.get_flags().await);
    say("read", read(&file, 0).await);
    say("write", write(&file, b"x", 0).await);
    say("set-size", file.set_size(0).await);
    say("set-times", file.set_times(NewTimestamp::Now, NewTimestamp::Now).await);
    say("append", append(&file, b"x").await);
    say("sync", file.sync().await);
    say("sync-data", file.sync_data().await);
    say("advise", file.advise(0, 1, Advice::Normal).await);
    say("open-at to write", open(dir, "kept", OpenFlags::empty(), WRITE).await.map(drop));
    say("open-at to write nothing", open(dir, "nothing", OpenFlags::empty(), WRITE).await.map(drop));
    say("open-at with TRUNCATE", open(dir, "kept", OpenFlags::TRUNCATE, READ).await.map(drop));
    say("open-at with CREATE", open(dir, "new", OpenFlags::CREATE, READ).await.map(drop));
    say("open-at with CREATE of what is there", open(dir, "kept", OpenFlags::CREATE, READ).await.map(drop));
    say(
        "open-at of a folder to change it",
        open(dir, "folder", OpenFlags::DIRECTORY, READ | DescriptorFlags::MUTATE_DIRECTORY).await.map(drop),
    );
    say("create-directory-at", dir.create_directory_at("new".to_owned()).await);
    say("symlink-at", dir.symlink_at("kept".to_owned(), "new".to_owned()).await);
    say("link-at", dir.link_at(NONE, "kept".to_owned(), dir, "new".to_owned()).await);
    say("rename-at", dir.rename_at("kept".to_owned(), dir, "new".to_owned()).await);
    say("rename-at onto itself", dir.rename_at("kept".to_owned(), dir, "kept".to_owned()).await);
    say("unlink-file-at", dir.unlink_file_at("kept".to_owned()).await);
    say("unlink-file-at of nothing", dir.unlink_file_at("nothing".to_owned()).await);
    say("remove-directory-at", dir.remove_directory_at("folder".to_owned()).await);
    say("set-times-at", dir.set_times_at(NONE, "kept".to_owned(), NewTimestamp::Now, NewTimestamp::Now).await);
    say("set-times of the folder", dir.set_times(NewTimestamp::Now, NewTimestamp::Now).await);
    let other = &get_directories()[0].0;
    say("rename-at from what may be written to", other.rename_at("kept".to_owned(), dir, "new".to_owned()).await);
    say("rename-at to what may be written to", dir.rename_at("kept".to_owned(), other, "new".to_owned()).await);
    say("link-at to what may be written to", dir.link_at(NONE, "kept".to_owned(), other, "new".to_owned()).await);
}
