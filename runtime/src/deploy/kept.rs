//! Files of functions that durable executions are pinned to, by the BLAKE3 digest of what is in them.
//!
//! They are copies, since the operator replaces the file of a configured function, and a deployment drops old versions. A module in `state_dir` is never changed, so it is linked where the file
//! system can do that. A file of the configuration is not: `cp` onto it would change the link, too.
//!
//! What is read back is compared with its digest: these files are native code. Knows neither functions nor executions.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use awsm_abi::limits::ARTIFACT_BYTES_MAX;
use blake3::Hash;

use crate::compile::read_at_most;
use crate::config::Config;
use crate::kv;
use crate::workflow::keeper::NotKept;

/// Files that are kept, at most.
const FILES_MAX: usize = 1_000;
/// Bytes of all of them: in a folder, and in memory.
const FOLDER_BYTES_MAX: u64 = 4 << 30;
const MEMORY_BYTES_MAX: u64 = 256 << 20;
/// What names of files begin with that are being written.
const UNFINISHED: &str = ".tmp";

/// Where files are kept.
#[derive(Debug)]
enum Place {
    /// In a folder, which is made when the first one is kept.
    Folder(PathBuf),
    /// In memory, as the executions are.
    Memory(HashMap<Hash, Arc<[u8]>>),
    /// Nowhere.
    None,
}

/// Files that are kept.
#[derive(Debug)]
pub(super) struct Kept(Mutex<Place>);

/// A file that is to be kept.
pub(super) struct Source {
    pub path: PathBuf,
    /// Whether the file is never changed, so that a link to it is as good as a copy.
    pub is_lasting: bool,
}

/// Where the files are of versions to which durable executions of a configuration are pinned; none where they are in memory.
#[must_use]
pub fn folder(config: &Config) -> Option<PathBuf> {
    let kv = config.kv.as_deref()?;
    if let Some(file) = kv::file(Some(kv)) {
        let mut folder = file.as_os_str().to_owned();
        folder.push(".pinned");
        return Some(folder.into());
    }
    config.state_dir.as_ref().filter(|_| kv::is_redis(kv)).map(|folder| folder.join("pinned"))
}

impl Kept {
    /// Beside the file of the store, where executions are; or in `state_dir`, where the store is on another server.
    pub(super) fn new(config: &Config) -> Kept {
        let place = match (folder(config), &config.kv) {
            (Some(folder), _) => Place::Folder(folder),
            (None, Some(kv)) if !kv::is_redis(kv) => Place::Memory(HashMap::new()),
            (None, _) => Place::None,
        };
        Kept(Mutex::new(place))
    }

    /// Keeps a file that has this digest.
    ///
    /// # Errors
    /// When there is no room, the file cannot be copied, or it has another digest now.
    pub(super) fn keep(&self, digest: &Hash, source: &Source) -> Result<(), NotKept> {
        let mut place = self.place();
        if holds(&place, digest) {
            return Ok(());
        }
        let of_source = |error: io::Error| NotKept::Impossible(format!("{}: {error}", source.path.display()));
        let bytes = fs::metadata(&source.path).map_err(of_source)?.len();
        check_room(&place, bytes)?;
        let read = || {
            let content = read_at_most(&source.path, ARTIFACT_BYTES_MAX).map_err(of_source)?;
            if blake3::hash(&content) == *digest {
                return Ok(content);
            }
            let why = "the file is not what is served any more; have the server read it (kill -HUP, or systemctl reload)";
            Err(NotKept::Impossible(format!("{}: {why}", source.path.display())))
        };
        match &mut *place {
            Place::Folder(folder) => {
                let file = folder.join(digest.to_hex().as_str());
                let at = |error: io::Error| NotKept::Impossible(format!("{}: {error}", file.display()));
                fs::DirBuilder::new().recursive(true).mode(0o700).create(&*folder).map_err(at)?;
                if source.is_lasting && fs::hard_link(&source.path, &file).is_ok() {
                    // So that the name outlives a crash of the machine, too.
                    return File::open(&*folder).and_then(|folder| folder.sync_all()).map_err(at);
                }
                write(folder, &file, &read()?).map_err(at)
            }
            Place::Memory(files) => {
                files.insert(*digest, read()?.into());
                Ok(())
            }
            Place::None => Err(nowhere()),
        }
    }

    /// Whether a file with that digest is kept.
    pub(super) fn has(&self, digest: &Hash) -> bool {
        holds(&self.place(), digest)
    }

    /// The content of a file.
    ///
    /// # Errors
    /// When it is not kept, or is not what was written.
    pub(super) fn read(&self, digest: &Hash) -> Result<Arc<[u8]>, String> {
        let file = match &*self.place() {
            Place::Folder(folder) => folder.join(digest.to_hex().as_str()),
            Place::Memory(files) => return files.get(digest).cloned().ok_or_else(|| "its file is not kept".to_owned()),
            Place::None => return Err(nowhere().to_string()),
        };
        let bytes = read_at_most(&file, ARTIFACT_BYTES_MAX).map_err(|error| format!("{}: {error}", file.display()))?;
        if blake3::hash(&bytes) != *digest {
            return Err(format!("{}: damaged: the content does not match the file name", file.display()));
        }
        Ok(bytes.into())
    }

    /// Removes all but these, and what a server has left that was killed while it wrote. Files with other names stay.
    ///
    /// # Errors
    /// When the folder cannot be read, or a file not be removed.
    pub(super) fn sweep(&self, needed: &HashSet<Hash>) -> io::Result<()> {
        let mut place = self.place();
        let folder = match &mut *place {
            Place::Folder(folder) => folder,
            Place::Memory(files) => {
                files.retain(|digest, _| needed.contains(digest));
                return Ok(());
            }
            Place::None => return Ok(()),
        };
        let entries = match fs::read_dir(&*folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_surplus = match Hash::from_hex(&*name) {
                Ok(digest) => !needed.contains(&digest),
                Err(_) => name.starts_with(UNFINISHED),
            };
            if is_surplus {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        // What it protects is the folder's content; of a map, single insertions and removals.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nowhere() -> NotKept {
    NotKept::Impossible(
        "there is no folder for versions that executions are pinned to: set `state_dir` in the configuration".to_owned(),
    )
}

fn holds(place: &Place, digest: &Hash) -> bool {
    match place {
        Place::Folder(folder) => folder.join(digest.to_hex().as_str()).is_file(),
        Place::Memory(files) => files.contains_key(digest),
        Place::None => false,
    }
}

/// Whether a file of so many bytes can be kept beside the others.
fn check_room(place: &Place, bytes: u64) -> Result<(), NotKept> {
    let (files, used, bytes_max) = match place {
        Place::Folder(folder) => {
            let sizes = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
            let (files, used) = sizes.fold((0, 0_u64), |(files, used), bytes| (files + 1, used.saturating_add(bytes)));
            (files, used, FOLDER_BYTES_MAX)
        }
        Place::Memory(files) => (files.len(), files.values().map(|file| file.len() as u64).sum(), MEMORY_BYTES_MAX),
        Place::None => return Err(nowhere()),
    };
    if files < FILES_MAX && used.saturating_add(bytes) <= bytes_max {
        return Ok(());
    }
    Err(NotKept::Full(format!(
        "{files} versions with {used} bytes are kept for executions that have not ended, and there may be {FILES_MAX} with {bytes_max}; end \
         executions, or move them to what is served (sledge workflow repin)"
    )))
}

/// Writes a file as a whole.
fn write(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // So that the new name outlives a crash of the machine, too.
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(folder: &Path) -> Config {
        Config { kv: Some(folder.join("kv.redb")), ..Config::default() }
    }

    fn source(folder: &Path, name: &str, content: &[u8]) -> (Hash, Source) {
        let path = folder.join(name);
        fs::write(&path, content).unwrap();
        (blake3::hash(content), Source { path, is_lasting: false })
    }

    #[test]
    fn a_copy_stays_when_the_file_is_changed_until_it_is_not_needed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(&config(folder.path()));
        let (digest, one) = source(folder.path(), "f.so", b"one");
        assert!(!kept.has(&digest) && !folder.path().join("kv.redb.pinned").exists());
        kept.keep(&digest, &one).unwrap();
        // Written in place, as `cp` does, and then removed.
        fs::write(&one.path, b"two").unwrap();
        assert_eq!(&*kept.read(&digest).unwrap(), b"one");
        fs::remove_file(&one.path).unwrap();
        kept.keep(&digest, &one).unwrap();
        // Another server finds it, removes what was not finished, and leaves alone what is not its own.
        let own = folder.path().join("kv.redb.pinned");
        fs::write(own.join(".tmpabc"), b"half").unwrap();
        fs::write(own.join("README"), b"words").unwrap();
        let kept = Kept::new(&config(folder.path()));
        kept.sweep(&HashSet::from([digest])).unwrap();
        assert!(kept.has(&digest) && own.join("README").exists() && !own.join(".tmpabc").exists());
        kept.sweep(&HashSet::new()).unwrap();
        assert!(!kept.has(&digest) && kept.read(&digest).is_err());
    }

    #[test]
    fn a_module_that_is_never_changed_is_linked() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(&config(folder.path()));
        let (digest, one) = source(folder.path(), "f-1.wasm", b"one");
        kept.keep(&digest, &Source { is_lasting: true, ..one }).unwrap();
        assert_eq!(fs::metadata(folder.path().join("f-1.wasm")).unwrap().nlink(), 2);
        fs::remove_file(folder.path().join("f-1.wasm")).unwrap();
        assert_eq!(&*kept.read(&digest).unwrap(), b"one");
    }

    #[test]
    fn what_is_not_what_it_was_is_not_kept_and_not_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(&config(folder.path()));
        let (digest, one) = source(folder.path(), "f.so", b"one");
        fs::write(&one.path, b"two").unwrap();
        let error = kept.keep(&digest, &one).unwrap_err().to_string();
        assert!(error.contains("f.so: the file is not what is served any more"), "{error}");
        fs::write(&one.path, b"one").unwrap();
        kept.keep(&digest, &one).unwrap();
        fs::write(folder.path().join("kv.redb.pinned").join(digest.to_hex().as_str()), b"ons").unwrap();
        assert!(kept.read(&digest).unwrap_err().contains("damaged"));
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::new(&config(folder.path()));
        let (digest, one) = source(folder.path(), "f.so", b"one");
        let own = folder.path().join("kv.redb.pinned");
        fs::create_dir(&own).unwrap();
        for number in 0..FILES_MAX {
            fs::write(own.join(blake3::hash(&number.to_le_bytes()).to_hex().as_str()), b"").unwrap();
        }
        assert!(matches!(kept.keep(&digest, &one), Err(NotKept::Full(_))));
        kept.sweep(&HashSet::new()).unwrap();
        kept.keep(&digest, &one).unwrap();
        // A file that would be too large as a whole; it takes no room on the disk.
        let large = Source { path: folder.path().join("large.so"), is_lasting: true };
        File::create(&large.path).unwrap().set_len(FOLDER_BYTES_MAX).unwrap();
        assert!(matches!(kept.keep(&blake3::hash(b"large"), &large), Err(NotKept::Full(_))));
        // Executions in memory have theirs in memory.
        let kept = Kept::new(&Config { kv: Some(kv::KV_MEMORY.into()), ..Config::default() });
        kept.keep(&digest, &one).unwrap();
        fs::remove_file(&one.path).unwrap();
        assert_eq!(&*kept.read(&digest).unwrap(), b"one");
        kept.sweep(&HashSet::new()).unwrap();
        assert!(!kept.has(&digest));
        // On another server's store it takes a folder.
        let (digest, one) = source(folder.path(), "f.so", b"one");
        let redis = |state_dir| Kept::new(&Config { kv: Some("redis://127.0.0.1".into()), state_dir, ..Config::default() });
        assert!(redis(None).keep(&digest, &one).unwrap_err().to_string().contains("`state_dir`"));
        redis(Some(folder.path().join("state"))).keep(&digest, &one).unwrap();
        assert!(folder.path().join("state/pinned").join(digest.to_hex().as_str()).exists());
    }
}
