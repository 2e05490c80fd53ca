//! Deployed functions on disk, for the next server.
//!
//! ```text
//!   NAME.json               settings, and which module; written last and replaced as a whole: what is in there is deployed
//!   NAME.history            its versions, the present one last
//!   NAME-DIGEST.wasm        a module of one of these
//! ```
//!
//! Settings are `{"format": 1, "digest": DIGEST, "settings": {...}}`, with a BLAKE3 digest of the settings as they are written; before that format
//! they stood there by themselves, which is still read. What is damaged is one function's misfortune. What a server that was killed left half done
//! is a module that no settings name; it is removed when the folder is opened.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use awsm_abi::limits::MODULE_BYTES_MAX;
use serde_json::{Map, Value, json};

use super::history::{Deployed, History, Version};
use super::quarantine::Unusable;
use crate::compile::read_at_most;
use crate::config::{self, FunctionConfig};

/// The largest file with a function's settings.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// The largest file with a function's versions.
const HISTORY_BYTES_MAX: u64 = 64 << 20;
/// The format in which settings and versions are written.
const FORMAT: u64 = 1;

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
}

/// What a folder holds.
#[derive(Debug, Default)]
pub struct Contents {
    /// Names of functions.
    pub functions: Vec<String>,
    /// Files with settings whose names are those of no function.
    pub strange: Vec<String>,
}

/// A function's settings, as its file has them.
struct Settings {
    module: PathBuf,
    settings: Value,
    /// Why they may not be what was written.
    doubt: Option<String>,
}

/// A folder of deployed functions.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    /// So many versions of each are kept.
    versions_max: usize,
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { path: path.to_owned(), source }
}

impl Store {
    /// Opens a folder, or makes it; it keeps so many versions of each function.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn open(folder: &Path, versions_max: usize) -> Result<Store, StoreError> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(at(folder))?;
        let store = Store { folder: folder.to_owned(), versions_max };
        store.sweep()?;
        Ok(store)
    }

    /// Keeps a function as its next version, of which that is `what` but for module and settings; its number, unless the versions cannot be read.
    ///
    /// # Errors
    /// When it cannot be written. Then what was there is there.
    pub fn put(
        &self,
        config: &FunctionConfig,
        module: &[u8],
        digest: &blake3::Hash,
        what: Deployed,
    ) -> Result<Option<u64>, StoreError> {
        let (name, file) = (&config.name, module_name(&config.name, digest));
        self.write(&file, module)?;
        let settings = settings_of(config);
        // Before it is deployed: afterwards nothing may fail.
        let versions = self.versions(name).map(|mut history| {
            let digest = digest.to_hex().to_string();
            let number = history.add(Deployed { digest, module_bytes: module.len() as u64, settings: settings.clone(), ..what });
            history.keep(self.versions_max);
            (number, history)
        });
        let number = match versions {
            Ok((number, mut history)) => {
                let text = history_text(&mut history, HISTORY_BYTES_MAX);
                self.write(&format!("{name}.history"), text.as_bytes())?;
                Some(number)
            }
            Err(error) => {
                tracing::error!(function = name, error = error.to_string(), "deployed, but this version is not kept");
                None
            }
        };
        let mut settings = settings;
        settings.insert("path".to_owned(), file.into());
        let settings = Value::Object(settings);
        let file = json!({ "format": FORMAT, "digest": digest_of(&settings), "settings": settings });
        self.write(&format!("{name}.json"), file.to_string().as_bytes())?;
        self.sweep_or_warn();
        Ok(number)
    }

    /// The versions of a function; none where there is no function.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn versions(&self, name: &str) -> Result<History, StoreError> {
        let path = self.folder.join(format!("{name}.json"));
        let present = match self.read(&path) {
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(History::default()),
            // What is damaged is not what was deployed.
            Ok(Settings { doubt: Some(_), .. }) | Err(_) => None,
            Ok(present) => Some(present),
        };
        let mut history = self.history(name)?;
        if let Some(Settings { module, settings: Value::Object(settings), .. }) = present {
            let digest = module.file_stem().and_then(OsStr::to_str).and_then(|stem| stem.rsplit('-').next());
            let module_bytes = fs::metadata(&module).map(|module| module.len()).unwrap_or_default();
            history.settle(Deployed {
                digest: digest.unwrap_or_default().to_owned(),
                module_bytes,
                settings,
                ..Deployed::default()
            });
        }
        Ok(history)
    }

    /// The versions of a function as they were written; none where none were.
    fn history(&self, name: &str) -> Result<History, StoreError> {
        let path = self.folder.join(format!("{name}.history"));
        let wrong = |why: String| {
            let why = format!("{why}; restore the file, or remove it and give up the versions before the present one");
            at(&path)(io::Error::new(io::ErrorKind::InvalidData, why))
        };
        let bytes = match read_at_most(&path, HISTORY_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(History::default()),
            bytes => bytes.map_err(at(&path))?,
        };
        let mut file: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(format!("damaged: {error}")))?;
        match file.get("format").and_then(Value::as_u64) {
            Some(FORMAT) => {}
            Some(format) if format > FORMAT => return Err(wrong(format!("has format {format}, of a newer sledge"))),
            _ => return Err(wrong("damaged: invalid format".to_owned())),
        }
        let versions = file["versions"].take();
        if file["digest"].as_str() != Some(&digest_of(&versions)) {
            return Err(wrong("damaged: the content does not match its digest".to_owned()));
        }
        let versions: Vec<Version> = serde_json::from_value(versions).map_err(|error| wrong(format!("damaged: {error}")))?;
        History::new(versions).ok_or_else(|| wrong("damaged: the versions are in no order".to_owned()))
    }

    /// A version of a function: its settings and its module.
    ///
    /// # Errors
    /// When the settings are none, or the module is not what was written.
    pub fn version(&self, name: &str, version: &Version) -> Result<(FunctionConfig, Vec<u8>), StoreError> {
        let Deployed { digest, settings, .. } = &version.what;
        let path = self.folder.join(format!("{name}-{digest}.wasm"));
        let wrong = |why: String| at(&path)(io::Error::new(io::ErrorKind::InvalidData, why));
        let module = read_at_most(&path, MODULE_BYTES_MAX).map_err(at(&path))?;
        if blake3::hash(&module).to_hex().as_str() != digest {
            return Err(wrong("damaged: the content does not match the file name".to_owned()));
        }
        let config = config::function("settings", name, &path, Value::Object(settings.clone()));
        let config = config.and_then(|config| config::check_function("settings", &config).map(|()| config));
        Ok((config.map_err(|error| wrong(format!("version {}: {error}", version.version)))?, module))
    }

    /// Where the module of a function with that digest is, as long as a version has it.
    #[must_use]
    pub fn module(&self, name: &str, digest: &blake3::Hash) -> PathBuf {
        self.folder.join(module_name(name, digest))
    }

    /// Keeps a function no longer.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), StoreError> {
        let path = self.folder.join(format!("{name}.json"));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&path)(error)),
            _ => {}
        }
        let history = self.folder.join(format!("{name}.history"));
        match fs::remove_file(&history) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&history)(error)),
            _ => {}
        }
        // Also where other settings are damaged, so that it is not known which modules these name.
        for path in self.files("wasm")?.into_iter().filter(|path| is_module_of(path, name)) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
        self.sweep_or_warn();
        Ok(())
    }

    /// What there is.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn contents(&self) -> Result<Contents, StoreError> {
        let mut contents = Contents::default();
        for path in self.files("json")? {
            let name = path.file_stem().and_then(OsStr::to_str).filter(|name| {
                let config = FunctionConfig::new(*name, "");
                config::check_function("settings", &config).is_ok()
            });
            match name {
                Some(name) => contents.functions.push(name.to_owned()),
                None => contents.strange.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned()),
            }
        }
        Ok(contents)
    }

    /// A function, checked, with the path of its module; none where there is none of that name.
    ///
    /// # Errors
    /// When its settings or its module are not what was written.
    pub fn function(&self, name: &str) -> Option<Result<FunctionConfig, Box<Unusable>>> {
        let path = self.folder.join(format!("{name}.json"));
        let read = match self.read(&path) {
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return None,
            read => read,
        };
        let unusable = |config: Option<FunctionConfig>, reason: String| {
            let config = config.unwrap_or_else(|| FunctionConfig::new(name, ""));
            Err(Box::new(Unusable { config, has_settings: false, reason }))
        };
        let Settings { module, settings, doubt } = match read {
            Ok(settings) => settings,
            Err(error) => return Some(unusable(None, error.to_string())),
        };
        let config = config::function("settings", name, &module, settings);
        let config = config.and_then(|config| config::check_function("settings", &config).map(|()| config));
        Some(match (config, doubt) {
            (Ok(config), None) => {
                whole_module(&config).map(|()| config.clone()).map_err(|why| Unusable::new(&config, why).into())
            }
            (config, Some(doubt)) => unusable(config.ok(), format!("state_dir: {}: {doubt}", path.display())),
            (Err(error), None) => unusable(None, format!("state_dir: {}: {error}", path.display())),
        })
    }

    fn read(&self, path: &Path) -> Result<Settings, StoreError> {
        let wrong = |why: String| at(path)(io::Error::new(io::ErrorKind::InvalidData, why));
        let bytes = read_at_most(path, SETTINGS_BYTES_MAX).map_err(at(path))?;
        let mut file: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(format!("damaged: {error}")))?;
        let (mut settings, doubt) = match file.get("format").and_then(Value::as_u64) {
            None if file.get("settings").is_some() => {
                (file["settings"].take(), Some("damaged: the format is missing".to_owned()))
            }
            None => (file, None),
            Some(FORMAT) => {
                let settings = file["settings"].take();
                let is_whole = file["digest"].as_str() == Some(&digest_of(&settings));
                (settings, (!is_whole).then(|| "damaged: the content does not match its digest".to_owned()))
            }
            Some(0) => return Err(wrong("damaged: invalid format".to_owned())),
            Some(format) => {
                let advice = "written by a newer sledge: start that version, or deploy the function again";
                return Err(wrong(format!("has format {format}, but this sledge reads formats up to {FORMAT}; {advice}")));
            }
        };
        let module = settings.as_object_mut().and_then(|entries| entries.remove("path"));
        let module = module.and_then(|module| Some(Path::new(module.as_str()?).file_name()?.to_owned()));
        let module = module.ok_or_else(|| wrong("damaged: the module is missing".to_owned()))?;
        Ok(Settings { module: self.folder.join(module), settings, doubt })
    }

    fn files(&self, extension: &str) -> Result<Vec<PathBuf>, StoreError> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(at(&self.folder))? {
            files.push(entry.map_err(at(&self.folder))?.path());
        }
        files.retain(|path| path.extension() == Some(OsStr::new(extension)));
        files.sort();
        Ok(files)
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
            tracing::warn!(%error, "cannot delete the file of a removed module");
        }
    }

    /// Removes modules that no settings and no versions name; none while there are some that are damaged or whose module is not there, which may name any.
    fn sweep(&self) -> Result<(), StoreError> {
        let mut named = HashSet::new();
        for path in self.files("json")? {
            match self.read(&path) {
                Ok(Settings { module, doubt: None, .. }) if module.exists() => drop(named.insert(module)),
                _ => return Ok(()),
            }
        }
        for path in self.files("history")? {
            if !path.with_extension("json").exists() {
                // Its function is removed, or was never deployed.
                fs::remove_file(&path).map_err(at(&path))?;
                continue;
            }
            let name = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
            let Ok(history) = self.history(name) else { return Ok(()) };
            let module = |version: &Version| self.folder.join(format!("{name}-{}.wasm", version.what.digest));
            named.extend(history.versions().iter().map(module));
        }
        for path in self.files("wasm")?.into_iter().filter(|path| !named.contains(path)) {
            fs::remove_file(&path).map_err(at(&path))?;
        }
        Ok(())
    }
}

/// Whether a function's module is what was written.
fn whole_module(config: &FunctionConfig) -> Result<(), String> {
    let path = &config.path;
    let bytes = read_at_most(path, MODULE_BYTES_MAX).map_err(|error| at(path)(error).to_string())?;
    if path.file_name() == Some(OsStr::new(&module_name(&config.name, &blake3::hash(&bytes)))) {
        return Ok(());
    }
    Err(format!("state_dir: {}: damaged: the content does not match the file name", path.display()))
}

/// Versions as they are written. The oldest are left out where all would be more than is read.
fn history_text(history: &mut History, bytes_max: u64) -> String {
    loop {
        let versions = serde_json::to_value(history.versions()).unwrap_or_default();
        let text = json!({ "format": FORMAT, "digest": digest_of(&versions), "versions": versions }).to_string();
        let count = history.versions().len();
        if text.len() as u64 <= bytes_max || count <= 1 {
            return text;
        }
        history.keep(count / 2);
    }
}

/// A function's settings as they are written, without its name and its path.
fn settings_of(config: &FunctionConfig) -> Map<String, Value> {
    let mut settings = match serde_json::to_value(config) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    settings.remove("name");
    settings.remove("path");
    settings
}

fn digest_of(content: &Value) -> String {
    blake3::hash(content.to_string().as_bytes()).to_hex().to_string()
}

/// Whether that is the path of a module of the function.
fn is_module_of(path: &Path, name: &str) -> bool {
    let digest = path.file_stem().and_then(OsStr::to_str).and_then(|stem| stem.strip_prefix(name)?.strip_prefix('-'));
    digest.is_some_and(|digest| blake3::Hash::from_hex(digest).is_ok())
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
        let store = Store::open(folder.path(), 2).unwrap();
        store.put(&config("f"), MODULE, &blake3::hash(MODULE), Deployed::default()).unwrap();
        let other = [MODULE, b"more"].concat();
        let number = store.put(&config("f"), &other, &blake3::hash(&other), Deployed::default()).unwrap();
        assert_eq!((number, files(folder.path())), (Some(2), 4), "settings, versions and two modules");
        let again = Store::open(folder.path(), 2).unwrap();
        assert_eq!(again.contents().unwrap().functions, ["f"]);
        let found = again.function("f").unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.deadline_ms), ("f", 77));
        assert_eq!(fs::read(&found.path).unwrap(), other);
        again.remove("f").unwrap();
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn versions_are_kept_with_their_modules_until_there_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 2).unwrap();
        let modules: Vec<Vec<u8>> = (0..3).map(|number| [MODULE, &[number]].concat()).collect();
        for (number, module) in (1..).zip(&modules) {
            let config = FunctionConfig { deadline_ms: number, ..config("f") };
            let what = Deployed { author: Some(format!("author {number}")), ..Deployed::default() };
            assert_eq!(store.put(&config, module, &blake3::hash(module), what).unwrap(), Some(number));
        }
        // The first is gone, and of the others all is there, for the next server, too.
        assert_eq!(files(folder.path()), 4);
        let store = Store::open(folder.path(), 2).unwrap();
        let history = store.versions("f").unwrap();
        for (version, number) in history.versions().iter().zip([2, 3]) {
            assert_eq!((version.version, version.what.author.clone()), (number, Some(format!("author {number}"))));
            assert_eq!(version.what.module_bytes, 9);
            let (config, module) = store.version("f", version).unwrap();
            assert_eq!((config.deadline_ms, module), (number, modules[number as usize - 1].clone()));
        }
        fs::write(folder.path().join(module_name("f", &blake3::hash(&modules[1]))), b"else").unwrap();
        let wrong = store.version("f", &history.versions()[0]).unwrap_err().to_string();
        assert!(wrong.contains("does not match the file name"), "{wrong}");
        assert_eq!(store.versions("g").unwrap(), History::default());
        // All of it goes, also where the settings of another function are damaged, so that nothing else is removed.
        fs::write(folder.path().join("g.json"), "{").unwrap();
        store.remove("f").unwrap();
        assert_eq!(files(folder.path()), 1);
    }

    #[test]
    fn versions_that_would_be_too_many_bytes_are_left_out() {
        let mut history = History::default();
        for number in 0..8 {
            history.add(Deployed { digest: number.to_string().repeat(1_000), ..Deployed::default() });
        }
        assert!(history_text(&mut history.clone(), 10_000).len() > 8_000, "all fit");
        assert!(history_text(&mut history, 4_500).len() <= 4_500);
        assert_eq!(history.versions().iter().map(|version| version.version).collect::<Vec<_>>(), [5, 6, 7, 8]);
        history_text(&mut history, 1);
        assert_eq!(history.present().map(|version| version.version), Some(8), "the present one stays");
    }

    /// A server is killed after it has written a version and before it has deployed that; another server deploys that knows no versions.
    #[test]
    fn the_present_version_is_what_the_settings_say() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 9).unwrap();
        let [json, history] = ["f.json", "f.history"].map(|name| folder.path().join(name));
        let put = |deadline_ms| {
            let config = FunctionConfig { deadline_ms, ..config("f") };
            store.put(&config, MODULE, &blake3::hash(MODULE), Deployed { author: Some("a".to_owned()), ..Deployed::default() })
        };
        let numbers = || store.versions("f").unwrap().versions().iter().map(|version| version.version).collect::<Vec<_>>();
        put(1).unwrap();
        let first = fs::read(&json).unwrap();
        put(2).unwrap();
        fs::write(&json, first).unwrap();
        assert_eq!(numbers(), [1]);
        assert_eq!((put(3).unwrap(), numbers()), (Some(2), vec![1, 2]));
        let newest = fs::read(&json).unwrap();
        put(4).unwrap();
        put(5).unwrap();
        let kept = fs::read(&history).unwrap();
        fs::write(&history, String::from_utf8(kept).unwrap().replace("\"deadline_ms\":3", "\"deadline_ms\":30")).unwrap();
        // Damaged: nothing is said of versions, and no module is lost; deploying goes on.
        fs::write(folder.path().join(module_name("f", &blake3::hash(b"x"))), b"x").unwrap();
        assert!(store.versions("f").unwrap_err().to_string().contains("f.history: damaged"));
        assert_eq!(put(6).unwrap(), None);
        assert_eq!((files(folder.path()), store.function("f").unwrap().unwrap().deadline_ms), (4, 6));
        // Removed: the present one is the first, of an unknown time.
        fs::remove_file(&history).unwrap();
        fs::write(&json, newest).unwrap();
        let versions = store.versions("f").unwrap();
        let present = versions.present().unwrap();
        assert_eq!(
            (present.version, present.what.author.clone(), present.what.settings["deadline_ms"].as_u64()),
            (1, None, Some(3))
        );
        assert_eq!((put(7).unwrap(), numbers(), files(folder.path())), (Some(2), vec![1, 2], 3));
        // Versions of what is not there are none.
        fs::remove_file(&json).unwrap();
        Store::open(folder.path(), 9).unwrap();
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn what_was_left_half_done_is_removed_and_what_was_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f-00.wasm"), MODULE).unwrap();
        let store = Store::open(folder.path(), 2).unwrap();
        assert_eq!(files(folder.path()), 0);
        store.put(&config("f"), MODULE, &blake3::hash(MODULE), Deployed::default()).unwrap();
        let module = store.function("f").unwrap().unwrap().path;
        fs::write(&module, b"\0asm something else").unwrap();
        let wrong = store.function("f").unwrap().unwrap_err();
        assert!(wrong.has_settings && wrong.reason.contains("does not match the file name"), "{wrong:?}");
        assert!(store.function("g").is_none());
        store.remove("f").unwrap();
        assert_eq!(files(folder.path()), 0);
    }

    /// Whatever bit of the settings flips, they are not taken for what was written; and no module is lost for that.
    #[test]
    fn settings_that_were_changed_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 2).unwrap();
        store
            .put(
                &FunctionConfig { route: Some("/there".to_owned()), ..config("f") },
                MODULE,
                &blake3::hash(MODULE),
                Deployed::default(),
            )
            .unwrap();
        let path = folder.path().join("f.json");
        let good = fs::read(&path).unwrap();
        for index in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[index] ^= 1 << bit;
                fs::write(&path, &bytes).unwrap();
                let wrong = store.function("f").unwrap().unwrap_err();
                assert!(!wrong.has_settings && wrong.reason.contains("f.json"), "{wrong:?}");
            }
        }
        let end = good.len() - 100;
        fs::write(&path, &good[..end]).unwrap();
        let store = Store::open(folder.path(), 2).unwrap();
        assert_eq!(store.function("f").unwrap().unwrap_err().config.routes(), ["/f"]);
        fs::write(&path, String::from_utf8(good.clone()).unwrap().replace("77", "78")).unwrap();
        assert_eq!(store.function("f").unwrap().unwrap_err().config.routes(), ["/there"]);
        fs::write(&path, String::from_utf8(good.clone()).unwrap().replace("\"format\":1", "\"format\":2")).unwrap();
        assert!(store.function("f").unwrap().unwrap_err().reason.contains("newer sledge"));
        fs::write(&path, good).unwrap();
        assert_eq!(store.function("f").unwrap().unwrap().deadline_ms, 77);
        fs::write(folder.path().join("a b.json"), "{}").unwrap();
        assert_eq!(store.contents().unwrap().strange, ["a b.json"]);
    }

    #[test]
    fn settings_of_earlier_versions_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 2).unwrap();
        store.put(&config("f"), MODULE, &blake3::hash(MODULE), Deployed::default()).unwrap();
        let path = folder.path().join("f.json");
        let file: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        fs::write(&path, file["settings"].to_string()).unwrap();
        let store = Store::open(folder.path(), 2).unwrap();
        assert_eq!(store.function("f").unwrap().unwrap().deadline_ms, 77);
    }
}
