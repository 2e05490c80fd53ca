//! The folder on disk.
//!
//! ```text
//!   HASH.part                 digest of HASH and what follows (32 bytes), an object file
//! ```
//!
//! An object file becomes native code. So the folder and each entry have to belong to the user that compiles, and other users cannot write to them.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use awsm_abi::limits::ARTIFACT_BYTES_MAX;
use blake3::Hash;

const EXTENSION: &str = ".part";

/// Begins the name of a file that is being written.
const UNFINISHED: &str = ".awsm-part-";

/// Of an entry; its object goes into an artifact.
const ENTRY_BYTES_MAX: u64 = ARTIFACT_BYTES_MAX + blake3::OUT_LEN as u64;

/// How old a file's time may be, by which those that were used last are known.
const USE_NOTED_EVERY: Duration = Duration::from_secs(3_600);

/// What awsm keeps for the user, in a folder of its own of the user's cache; none where the user has no such folder.
pub(crate) fn user_cache() -> Option<PathBuf> {
    let of = |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache"))).map(|cache| cache.join("awsm"))
}

/// Where parts are kept unless told otherwise: in the user's cache folder; none where there is no such folder.
#[must_use]
pub fn cache_folder_default() -> Option<PathBuf> {
    user_cache().map(|cache| cache.join("parts"))
}

/// A folder of parts.
#[derive(Debug)]
pub struct PartCache {
    folder: PathBuf,
    bytes_max: u64,
}

impl PartCache {
    /// How many bytes a folder may have unless told otherwise: the parts of 15 engines of JavaScript.
    pub const BYTES_MAX_DEFAULT: u64 = 1 << 30;

    /// A folder that need not be there yet. After each compilation it has at most `bytes_max`, those parts that were used last.
    #[must_use]
    pub const fn new(folder: PathBuf, bytes_max: u64) -> PartCache {
        PartCache { folder, bytes_max }
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many bytes it may have.
    pub(crate) const fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Makes the folder if it is not there, readable by its owner alone.
    ///
    /// # Errors
    /// When that is not possible, or when the folder is another user's or can be written by others.
    pub(crate) fn open(&self) -> io::Result<()> {
        let folder = &self.folder;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let metadata = fs::metadata(folder)?;
        if !is_own(&metadata) {
            let (user, mode) = (metadata.uid(), metadata.mode() & 0o7777);
            let why = format!("it belongs to another user, or can be written by others (user {user}, mode {mode:o})");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(())
    }

    /// An entry. None where there is none; one that is damaged, or another user's, is removed and not used.
    pub(crate) fn get(&self, id: &Hash) -> Option<Vec<u8>> {
        let path = self.path(id);
        let file = File::open(&path).ok()?;
        let metadata = file.metadata().ok()?;
        let entry = read(&file, &metadata, id);
        match &entry {
            Some(_) => note_used(&file, &metadata),
            // Another compiler may have removed it.
            None => drop(fs::remove_file(&path)),
        }
        entry
    }

    /// Keeps an entry: beside the others first, then under its name, so that other compilers see all of it or nothing.
    ///
    /// # Errors
    /// When it cannot be written, or is larger than [`get`](Self::get) accepts. Then nothing has changed.
    pub(crate) fn put(&self, id: &Hash, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > ARTIFACT_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("a part has more than {ARTIFACT_BYTES_MAX} bytes")));
        }
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder)?;
        file.write_all(digest(id, bytes).as_bytes())?;
        file.write_all(bytes)?;
        file.persist(self.path(id)).map(drop).map_err(|error| error.error)
    }

    /// Removes those that were not used for longest, until the others have at most the bytes that they may have.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn shrink(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if entry.file_name().to_str().is_some_and(is_ours) && metadata.is_file() {
                files.push((metadata.modified()?, metadata.len(), entry.path()));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total <= self.bytes_max {
                break;
            }
            // Another compiler may have removed it.
            let _ = fs::remove_file(path);
            total -= bytes;
        }
        Ok(())
    }

    fn path(&self, id: &Hash) -> PathBuf {
        self.folder.join(format!("{}{EXTENSION}", id.to_hex()))
    }
}

/// Whether a cache gives files such names. The user may have chosen a folder with other files, downloads that end in `.part` among them.
fn is_ours(name: &str) -> bool {
    // What a compiler that was killed has left grows old like all others.
    let is_entry = name.strip_suffix(EXTENSION).is_some_and(|id| id.len() == 2 * blake3::OUT_LEN && Hash::from_hex(id).is_ok());
    is_entry || name.starts_with(UNFINISHED)
}

/// Whether a file belongs to the user of this process, and others cannot write to it.
pub(crate) fn is_own(metadata: &fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

/// What an entry holds, if it is what was put there.
fn read(file: &File, metadata: &fs::Metadata, id: &Hash) -> Option<Vec<u8>> {
    if !is_own(metadata) || !metadata.is_file() || metadata.len() > ENTRY_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize + 1);
    file.take(ENTRY_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let expected = *bytes.first_chunk::<{ blake3::OUT_LEN }>()?;
    bytes.drain(..blake3::OUT_LEN);
    (digest(id, &bytes) == Hash::from_bytes(expected)).then_some(bytes)
}

fn digest(id: &Hash, bytes: &[u8]) -> Hash {
    // The object first: BLAKE3 hashes eight of its chunks at a time only from where it begins.
    blake3::Hasher::new_derive_key("awsm 2026-11-23 entry of the cache of parts").update(bytes).update(id.as_bytes()).finalize()
}

/// Notes that an entry was used: so it goes last. Not worth failing for, nor a change of every file by every compilation.
fn note_used(file: &File, metadata: &fs::Metadata) {
    // A file's time is that of the wall; only order among files comes of it.
    let now = SystemTime::now();
    let is_noted = metadata.modified().is_ok_and(|noted| now.duration_since(noted).is_ok_and(|age| age < USE_NOTED_EVERY));
    if !is_noted {
        let _ = file.set_modified(now);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn open(folder: &Path, bytes_max: u64) -> PartCache {
        let cache = PartCache::new(folder.to_owned(), bytes_max);
        cache.open().unwrap();
        cache
    }

    fn id(number: u8) -> Hash {
        blake3::hash(&[number])
    }

    #[test]
    fn what_was_put_is_found_also_later() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        let cache = open(&inner, 1 << 20);
        assert_eq!(cache.get(&id(1)), None);
        cache.put(&id(1), b"code").unwrap();
        cache.put(&id(1), b"code").unwrap();
        let again = open(&inner, 1 << 20);
        assert_eq!(again.get(&id(1)).unwrap(), b"code");
        assert_eq!(again.get(&id(2)), None);
        assert_eq!(fs::metadata(&inner).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(cache.path(&id(1))).unwrap().mode() & 0o077, 0);
    }

    #[test]
    fn what_was_changed_or_moved_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), 1 << 20);
        let changes: [fn(&mut Vec<u8>); 5] = [
            |bytes| bytes[40] ^= 1,
            |bytes| bytes[0] ^= 1,
            |bytes| bytes.push(0),
            |bytes| bytes.truncate(20),
            |bytes| bytes.clear(),
        ];
        for change in changes {
            cache.put(&id(1), b"code that is longer").unwrap();
            let mut bytes = fs::read(cache.path(&id(1))).unwrap();
            change(&mut bytes);
            fs::write(cache.path(&id(1)), bytes).unwrap();
            assert_eq!(cache.get(&id(1)), None);
            assert!(!cache.path(&id(1)).exists());
        }
        cache.put(&id(1), b"code").unwrap();
        fs::rename(cache.path(&id(1)), cache.path(&id(2))).unwrap();
        assert_eq!(cache.get(&id(2)), None);
    }

    #[test]
    fn what_others_can_write_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), 1 << 20);
        cache.put(&id(1), b"code").unwrap();
        fs::set_permissions(cache.path(&id(1)), fs::Permissions::from_mode(0o620)).unwrap();
        assert_eq!(cache.get(&id(1)), None);
        for mode in [0o770, 0o702] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            let error = cache.open().unwrap_err().to_string();
            assert!(error.contains("can be written by others") && error.contains(&format!("{mode:o}")), "{error}");
        }
    }

    #[test]
    fn those_used_last_stay_and_other_files_too() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), 3_200);
        let old = SystemTime::now() - 2 * USE_NOTED_EVERY;
        let set = |path: &Path, time| File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        let age = |path: &Path| set(path, old);
        let others = ["notes", "film.part", "0123.part", ".part-1"].map(|name| folder.path().join(name));
        let left = folder.path().join(format!("{UNFINISHED}1"));
        for path in others.iter().chain([&left]) {
            fs::write(path, [0; 4_000]).unwrap();
            set(path, old - USE_NOTED_EVERY);
        }
        for number in 0..4 {
            cache.put(&id(number), &[0; 1_000]).unwrap();
            age(&cache.path(&id(number)));
        }
        assert!(cache.get(&id(0)).is_some(), "this one is used");
        cache.put(&id(4), &[0; 1_000]).unwrap();
        cache.shrink().unwrap();
        let kept = (0..5).filter(|number| cache.get(&id(*number)).is_some()).count();
        assert!(kept == 3 && cache.get(&id(0)).is_some() && cache.get(&id(4)).is_some());
        assert!(others.iter().all(|other| other.exists()) && !left.exists());
    }
}
