//! Artifacts that were made earlier, by what they were made of.
//!
//! Artifacts are native code, so a user that can write into the folder could have it run. Therefore each carries a digest keyed with a secret that
//! only the owner of the folder can read, over its identity and its bytes: what was changed, or put in another's place, is not used.
//!
//! ```text
//!   key                       32 secret bytes, readable by the owner only
//!   HASH.artifact             digest (32 bytes), artifact
//!   parts/                    the compiler's cache, which it looks after
//! ```

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use awsm_abi::limits::ARTIFACT_BYTES_MAX;

use super::child::Parts;
use super::read_to_end;

const KEY_FILE: &str = "key";
const EXTENSION: &str = "artifact";
const PARTS_FOLDER: &str = "parts";

/// How old a file's time may be, by which those that were used last are known.
const USE_NOTED_EVERY: Duration = Duration::from_secs(3_600);

/// What an artifact was made of, as a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(blake3::Hash);

impl From<blake3::Hash> for Id {
    fn from(hash: blake3::Hash) -> Id {
        Id(hash)
    }
}

/// A folder of artifacts.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    key: [u8; blake3::KEY_LEN],
    bytes_max: u64,
}

/// Why a cached artifact is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not what was put there.
    #[error("{}: its digest is wrong: it was changed, or is another's; removed", path.display())]
    Tampered {
        /// The file.
        path: PathBuf,
    },
}

impl Cache {
    /// Opens a folder, or makes it; it will hold at most `bytes_max`, those that were used last.
    ///
    /// # Errors
    /// When that is not possible, or others could read its key.
    pub fn open(folder: &Path, bytes_max: u64) -> io::Result<Cache> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(Cache { folder: folder.to_owned(), key: key(folder)?, bytes_max })
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder in it for the compiler's own cache, of parts of modules, and how many bytes that may have.
    pub(super) fn parts(&self) -> Option<Parts> {
        let folder = std::path::absolute(self.folder.join(PARTS_FOLDER)).ok()?;
        Some(Parts { folder, bytes_max: self.bytes_max })
    }

    /// The artifact with that identity, if there is one.
    ///
    /// # Errors
    /// When there is one that cannot be read, or was tampered with; that one is removed.
    pub fn get(&self, id: &Id) -> Result<Option<Vec<u8>>, CacheError> {
        let path = self.path(id);
        let read = |source| CacheError::Read { path: path.clone(), source };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(read(error)),
        };
        let metadata = file.metadata().map_err(read)?;
        let mut bytes = read_to_end(&file, metadata.len(), ARTIFACT_BYTES_MAX + blake3::OUT_LEN as u64).map_err(read)?;
        let right = bytes.first_chunk::<{ blake3::OUT_LEN }>().is_some_and(|digest| {
            // Compared in constant time.
            blake3::Hash::from_bytes(*digest) == self.digest(id, &bytes[blake3::OUT_LEN..])
        });
        if !right {
            let _ = fs::remove_file(&path);
            return Err(CacheError::Tampered { path });
        }
        note_used(&file, &metadata);
        bytes.drain(..blake3::OUT_LEN);
        Ok(Some(bytes))
    }

    /// Keeps an artifact; those that were not used for longest go, if there is no room otherwise.
    ///
    /// # Errors
    /// When it cannot be written. Then nothing has changed.
    pub fn put(&self, id: &Id, artifact: &[u8]) -> io::Result<()> {
        let wanted = (artifact.len() + blake3::OUT_LEN) as u64;
        if wanted > self.bytes_max {
            return Err(io::Error::other(format!("it has {wanted} bytes; all may have {} (`cache_bytes_max`)", self.bytes_max)));
        }
        self.shrink(self.bytes_max - wanted)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(self.digest(id, artifact).as_bytes())?;
        file.write_all(artifact)?;
        file.persist(self.path(id)).map(drop).map_err(|error| error.error)
    }

    fn path(&self, id: &Id) -> PathBuf {
        self.folder.join(format!("{}.{EXTENSION}", id.0.to_hex()))
    }

    fn digest(&self, id: &Id, artifact: &[u8]) -> blake3::Hash {
        // The artifact first: BLAKE3 hashes eight of its chunks at a time only from where it begins.
        blake3::Hasher::new_keyed(&self.key).update(artifact).update(id.0.as_bytes()).finalize()
    }

    /// Removes those that were not used for longest until the others have at most `bytes_max`.
    fn shrink(&self, bytes_max: u64) -> io::Result<()> {
        let entries = fs::read_dir(&self.folder)?.flatten().filter(|entry| {
            let path = entry.path();
            path.extension().is_some_and(|extension| extension == EXTENSION)
        });
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total <= bytes_max {
                break;
            }
            // Another server may have removed it.
            let _ = fs::remove_file(path);
            total -= bytes;
        }
        Ok(())
    }
}

/// Notes that an artifact was used: so it goes last. Not worth failing for, nor a change of every file at every start of a server.
fn note_used(file: &File, metadata: &fs::Metadata) {
    #[expect(clippy::disallowed_methods, reason = "a file's time is that of the wall; only order among files comes of it")]
    let now = SystemTime::now();
    let is_noted = metadata.modified().is_ok_and(|noted| now.duration_since(noted).is_ok_and(|age| age < USE_NOTED_EVERY));
    if !is_noted {
        let _ = file.set_modified(now);
    }
}

/// The folder's key; a new one if there is none.
fn key(folder: &Path) -> io::Result<[u8; blake3::KEY_LEN]> {
    let path = folder.join(KEY_FILE);
    let mut key = [0; blake3::KEY_LEN];
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty())?;
            let mut file = tempfile::Builder::new().tempfile_in(folder)?;
            file.write_all(&key)?;
            // Another server may be first; then its key counts.
            match file.persist_noclobber(&path) {
                Ok(_) => return Ok(key),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => File::open(&path)?,
                Err(error) => return Err(error.error),
            }
        }
        Err(error) => return Err(error),
    };
    let mode = file.metadata()?.mode();
    if mode & 0o077 != 0 {
        let why = format!(
            "{} can be read or written by others (mode {:o}); remove it, and what is beside it",
            path.display(),
            mode & 0o777
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    file.read_exact(&mut key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> Id {
        Id(blake3::hash(&[number]))
    }

    #[test]
    fn what_was_put_is_found_also_later() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 1 << 20).unwrap();
        assert!(cache.get(&id(1)).unwrap().is_none());
        cache.put(&id(1), b"code").unwrap();
        let again = Cache::open(folder.path(), 1 << 20).unwrap();
        assert_eq!(again.get(&id(1)).unwrap().unwrap(), b"code");
        assert!(again.get(&id(2)).unwrap().is_none());
    }

    #[test]
    fn what_was_changed_or_moved_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 1 << 20).unwrap();
        let changes: [fn(&mut Vec<u8>); 4] =
            [|bytes| bytes[40] ^= 1, |bytes| bytes[0] ^= 1, |bytes| bytes.push(0), |bytes| bytes.truncate(20)];
        for change in changes {
            cache.put(&id(1), b"code that is longer").unwrap();
            let mut bytes = fs::read(cache.path(&id(1))).unwrap();
            change(&mut bytes);
            fs::write(cache.path(&id(1)), bytes).unwrap();
            assert!(matches!(cache.get(&id(1)), Err(CacheError::Tampered { .. })));
            assert!(cache.get(&id(1)).unwrap().is_none(), "it is gone");
        }
        cache.put(&id(1), b"code").unwrap();
        fs::rename(cache.path(&id(1)), cache.path(&id(2))).unwrap();
        assert!(matches!(cache.get(&id(2)), Err(CacheError::Tampered { .. })));
    }

    #[test]
    fn another_key_makes_all_worthless() {
        let folder = tempfile::tempdir().unwrap();
        Cache::open(folder.path(), 1 << 20).unwrap().put(&id(1), b"code").unwrap();
        fs::remove_file(folder.path().join(KEY_FILE)).unwrap();
        let cache = Cache::open(folder.path(), 1 << 20).unwrap();
        assert!(matches!(cache.get(&id(1)), Err(CacheError::Tampered { .. })));
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        Cache::open(folder.path(), 1 << 20).unwrap();
        fs::set_permissions(folder.path().join(KEY_FILE), fs::Permissions::from_mode(0o644)).unwrap();
        let error = Cache::open(folder.path(), 1 << 20).unwrap_err();
        assert!(error.to_string().contains("mode 644"), "{error}");
    }

    #[test]
    fn those_used_last_stay() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 3_200).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a file's time")]
        let old = SystemTime::now() - 2 * USE_NOTED_EVERY;
        for number in 0..3 {
            cache.put(&id(number), &[0; 1_000]).unwrap();
            File::options().write(true).open(cache.path(&id(number))).unwrap().set_modified(old).unwrap();
        }
        assert!(cache.get(&id(0)).unwrap().is_some(), "this one is used");
        cache.put(&id(3), &[0; 2_000]).unwrap();
        let left: Vec<u8> = (0..4).filter(|number| cache.get(&id(*number)).unwrap().is_some()).collect();
        assert_eq!(left, [0, 3]);
        assert!(cache.put(&id(4), &[0; 4_000]).unwrap_err().to_string().contains("cache_bytes_max"));
    }
}
