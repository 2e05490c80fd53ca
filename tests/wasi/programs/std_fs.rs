//! Rust's standard library on files: what programs do without knowing that they are in a sandbox.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::time::{Duration, Instant, SystemTime};

fn kind<T>(result: io::Result<T>) -> ErrorKind {
    result.err().expect("it fails").kind()
}

fn main() -> io::Result<()> {
    // Contents.
    fs::write("/w/file", "first\nsecond\n")?;
    assert_eq!(fs::read_to_string("/w/file")?.lines().collect::<Vec<_>>(), ["first", "second"]);
    let mut file = OpenOptions::new().read(true).append(true).open("/w/file")?;
    file.write_all(b"third\n")?;
    file.seek(SeekFrom::Start(6))?;
    let mut rest = String::new();
    file.read_to_string(&mut rest)?;
    assert_eq!(rest, "second\nthird\n");
    let large: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write("/w/large", &large)?;
    assert_eq!(fs::read("/w/large")?, large);
    assert_eq!(fs::copy("/w/large", "/w/copy")?, 1_000_000);

    // What is known about it.
    let metadata = fs::metadata("/w/large")?;
    assert!(metadata.is_file() && metadata.len() == 1_000_000);
    assert!(metadata.modified()? <= SystemTime::now() + Duration::from_secs(1));
    let file = File::options().write(true).open("/w/large")?;
    file.set_len(10)?;
    file.sync_all()?;
    file.sync_data()?;
    let long_ago = SystemTime::UNIX_EPOCH + Duration::new(1_000_000, 7);
    file.set_modified(long_ago)?;
    assert_eq!((file.metadata()?.len(), file.metadata()?.modified()?), (10, long_ago));

    // Folders.
    fs::create_dir_all("/w/a/b/c")?;
    fs::rename("/w/large", "/w/a/b/moved")?;
    let mut names: Vec<_> = fs::read_dir("/w/a/b")?.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["c", "moved"]);
    assert_eq!(fs::read("/w/a/b/moved")?, &large[..10]);
    fs::remove_dir_all("/w/a")?;

    // Errors are what they are elsewhere.
    assert_eq!(kind(File::open("/w/a")), ErrorKind::NotFound);
    // ENOENT or ENOTCAPABLE (for which Rust has no name), as its version of the library has it: the host is not asked.
    assert!(matches!(File::open("/elsewhere").unwrap_err().raw_os_error(), Some(44 | 76)));
    assert_eq!(kind(fs::create_dir("/w/file")), ErrorKind::AlreadyExists);
    assert_eq!(kind(fs::write("/r/new", "")), ErrorKind::ReadOnlyFilesystem);
    assert_eq!(kind(fs::remove_file("/r/kept")), ErrorKind::ReadOnlyFilesystem);
    assert_eq!(kind(fs::rename("/w/file", "/w2/file")), ErrorKind::CrossesDevices);
    assert_eq!(kind(fs::read("/w/file/x")), ErrorKind::NotADirectory);
    assert!(fs::read("/w/../outside/secret").is_err() && fs::read("/w/out/secret").is_err());
    assert_eq!(fs::read_to_string("/r/kept")?, "kept");

    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(50));
    assert!(begun.elapsed() >= Duration::from_millis(50));
    println!("std_fs");
    Ok(())
}
