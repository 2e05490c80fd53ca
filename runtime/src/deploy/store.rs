//! Deployed functions on disk, for the next server.
//!
//! ```text
//!   NAME.json               settings, and which module; written last and replaced as a whole: what is in there is deployed
//!   NAME-DIGEST.wasm        the module
//! ```
//!
//! What a server that was killed left half done is a module that no settings name; it is removed when the folder is opened.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use awsm_abi::limits::MODULE_BYTES_MAX;
use serde_json::Value;

use crate::compile::read_at_most;
use crate::config::{self, FunctionConfig};

/// The version of the format of settings, in their key `format`; those without one have version 1.
const FORMAT: u64 = 1;
/// The largest file with a function's settings.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;

/// Why a deployed function was not kept, or is not found again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or the folder cannot be used.
    #[error("state_dir: {}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is not what was written there.
    #[error("state_dir: {}: {why}; put it right or remove it", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A later sledge has written it.
    #[error(
        "state_dir: {}: was written by a later sledge (format {found}; this one knows up to {FORMAT}): run that one again, or \
         remove the file and deploy the function again",
        path.display()
    )]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
}

/// A folder of deployed functions.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { path: path.to_owned(), source }
}

impl Store {
    /// Opens a folder, or makes it.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn open(folder: &Path) -> Result<Store, StoreError> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at(folder))?;
        let store = Store { folder: folder.to_owned() };
        store.sweep()?;
        Ok(store)
    }

    /// Keeps a function, instead of the one of that name.
    ///
    /// # Errors
    /// When it cannot be written. Then what was there is there.
    pub fn put(&self, config: &FunctionConfig, module: &[u8], digest: &blake3::Hash) -> Result<(), StoreError> {
        let name = module_name(&config.name, digest);
        self.write(&name, module)?;
        let mut settings = serde_json::to_value(config).unwrap_or_default();
        if let Value::Object(entries) = &mut settings {
            entries.remove("name");
            entries.insert("path".to_owned(), name.into());
            entries.insert("format".to_owned(), FORMAT.into());
        }
        self.write(&format!("{}.json", config.name), settings.to_string().as_bytes())?;
        self.sweep_or_warn();
        Ok(())
    }

    /// Keeps a function no longer.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), StoreError> {
        let path = self.folder.join(format!("{name}.json"));
        fs::remove_file(&path).map_err(at(&path))?;
        self.sweep_or_warn();
        Ok(())
    }

    /// All functions, each checked, with the paths of their modules.
    pub fn functions(&self) -> impl Iterator<Item = Result<FunctionConfig, StoreError>> {
        self.settings().into_iter().map(|path| self.function(&path))
    }

    fn function(&self, path: &Path) -> Result<FunctionConfig, StoreError> {
        let damaged = |why: String| StoreError::Damaged { path: path.to_owned(), why };
        let (name, module, settings) = self.read(path)?;
        let config = config::function("settings", &name, &module, settings).map_err(|error| damaged(error.to_string()))?;
        config::check_function("settings", &config).map_err(|error| damaged(error.to_string()))?;
        let bytes = read_at_most(&module, MODULE_BYTES_MAX).map_err(at(&module))?;
        if module.file_name() != Some(OsStr::new(&module_name(&name, &blake3::hash(&bytes)))) {
            return Err(StoreError::Damaged { path: module, why: "its content does not fit its name".to_owned() });
        }
        Ok(config)
    }

    /// Name, module and settings.
    fn read(&self, path: &Path) -> Result<(String, PathBuf, Value), StoreError> {
        let damaged = |why: String| StoreError::Damaged { path: path.to_owned(), why };
        let bytes = read_at_most(path, SETTINGS_BYTES_MAX).map_err(at(path))?;
        let mut settings: Value = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let format = settings.as_object_mut().and_then(|entries| entries.remove("format"));
        if let Some(found) = format.as_ref().and_then(Value::as_u64).filter(|found| *found > FORMAT) {
            return Err(StoreError::Newer { path: path.to_owned(), found });
        }
        let module = settings.as_object_mut().and_then(|entries| entries.remove("path"));
        let module = module.and_then(|module| Some(Path::new(module.as_str()?).file_name()?.to_owned()));
        let module = module.ok_or_else(|| damaged("names no module".to_owned()))?;
        let name = path.file_stem().and_then(OsStr::to_str).ok_or_else(|| damaged("has no name".to_owned()))?;
        Ok((name.to_owned(), self.folder.join(module), settings))
    }

    fn settings(&self) -> Vec<PathBuf> {
        self.files("json")
    }

    fn files(&self, extension: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> = entries.filter(|path| path.extension() == Some(OsStr::new(extension))).collect();
        files.sort();
        files
    }

    /// Writes a file as a whole.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.folder.join(name);
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            // So that the new name outlives a crash of the machine, too.
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(at(&path))
    }

    /// The same after a change, which is made whatever becomes of what it leaves behind.
    fn sweep_or_warn(&self) {
        if let Err(error) = self.sweep() {
            tracing::warn!(%error, "a module that is served no longer stays where it is");
        }
    }

    /// Removes modules that no settings name; none while settings cannot be read, which may name any.
    fn sweep(&self) -> Result<(), StoreError> {
        let named: Result<Vec<PathBuf>, _> = self.settings().iter().map(|path| self.read(path).map(|read| read.1)).collect();
        let Ok(named) = named else { return Ok(()) };
        for path in self.files("wasm").into_iter().filter(|path| !named.contains(path)) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
        Ok(())
    }
}

fn module_name(name: &str, digest: &blake3::Hash) -> String {
    format!("{name}-{}.wasm", digest.to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &[u8] = b"\0asm\x01\0\0\0";

    fn config(name: &str) -> FunctionConfig {
        FunctionConfig { deadline_ms: 77, ..FunctionConfig::new(name, "") }
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn what_was_put_is_there_for_the_next_and_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.put(&config("f"), MODULE, &blake3::hash(MODULE)).unwrap();
        let other = [MODULE, b"more"].concat();
        store.put(&config("f"), &other, &blake3::hash(&other)).unwrap();
        assert_eq!(files(folder.path()), 2, "the old module is gone");
        let again = Store::open(folder.path()).unwrap();
        let found: Vec<FunctionConfig> = again.functions().map(Result::unwrap).collect();
        assert_eq!((found.len(), found[0].name.as_str(), found[0].deadline_ms), (1, "f", 77));
        assert_eq!(fs::read(&found[0].path).unwrap(), other);
        again.remove("f").unwrap();
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn settings_of_a_later_format_are_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        store.put(&config("f"), MODULE, &blake3::hash(MODULE)).unwrap();
        let path = folder.path().join("f.json");
        let written = fs::read_to_string(&path).unwrap();
        let with = |format: &str| fs::write(&path, written.replace("\"format\":1", format)).unwrap();
        // As they were before they had one.
        with("\"deadline_ms\":77");
        assert_eq!(store.functions().next().unwrap().unwrap().deadline_ms, 77);
        with("\"format\":2");
        let error = Store::open(folder.path()).unwrap().functions().next().unwrap().unwrap_err().to_string();
        assert!(error.contains("later sledge (format 2; this one knows up to 1)") && error.contains("deploy"), "{error}");
        assert_eq!(files(folder.path()), 2, "its module stays");
    }

    #[test]
    fn what_was_left_half_done_is_removed_and_what_was_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f-00.wasm"), MODULE).unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert_eq!(files(folder.path()), 0);
        store.put(&config("f"), MODULE, &blake3::hash(MODULE)).unwrap();
        let module = store.functions().next().unwrap().unwrap().path;
        fs::write(&module, b"\0asm something else").unwrap();
        let error = store.functions().next().unwrap().unwrap_err();
        assert!(error.to_string().contains("does not fit its name"), "{error}");
    }
}
