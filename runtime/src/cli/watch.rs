//! Waits until a file of a project changes.
//!
//! What comes from the system only says that something may have changed; whether it has, is seen by all files' sizes and times. What `.gitignore`
//! names is no file of the project, nor is what this process writes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant, SystemTime};
use std::{fs, io};

use ignore::{DirEntry, WalkBuilder};
use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::confine;

/// For how long nothing more may happen before a change counts as complete: editors and tools write several files.
const QUIET_TIME: Duration = Duration::from_millis(100);
/// For how long that is waited for: where something is written all the time, there is no quiet.
const QUIET_WITHIN: Duration = Duration::from_secs(1);
/// Folders that are made by tools, or by installing what others wrote.
const NOT_SOURCES: [&str; 2] = ["target", "node_modules"];
/// Endings of what is made, not written.
const MADE: [&str; 3] = ["wasm", "so", "redb"];
/// Files beyond that many are not looked at.
const FILES_MAX: usize = 20_000;

/// A project's folder.
#[derive(Debug)]
pub(super) struct Watch {
    folder: PathBuf,
    /// Counts, whatever `.gitignore` says of it.
    config: PathBuf,
    /// Whether `.gitignore` files of folders above count: up to the repository's.
    is_in_repository: bool,
    /// Folders elsewhere that have files of the project, too.
    others: BTreeSet<PathBuf>,
    /// Files and folders that the server or its functions write.
    left_out: BTreeSet<PathBuf>,
    watcher: RecommendedWatcher,
    events: Receiver<()>,
    watched: BTreeSet<PathBuf>,
}

/// How the files of a project were at some moment: sizes and times.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<PathBuf, State>);

/// A file's size, and when it was written.
type State = (u64, Option<SystemTime>);

impl Watch {
    /// Watches a folder with a configuration of that name, and the folders in it.
    ///
    /// # Errors
    /// When the system does not tell of changes.
    pub(super) fn new(folder: &Path, config: &OsStr) -> notify::Result<Watch> {
        let folder = fs::canonicalize(folder)?;
        let config = folder.join(config);
        let (sender, events) = mpsc::channel();
        // What kind of event it is, or that some were lost, is all the same; but reading alone changes nothing.
        let tell = move |event: notify::Result<Event>| {
            if !event.is_ok_and(|event| is_reading(event.kind)) {
                sender.send(()).unwrap_or(());
            }
        };
        let watcher = confine::without_signals(|| notify::recommended_watcher(tell))?;
        let is_in_repository = folder.ancestors().any(|folder| folder.join(".git").exists());
        let (left_out, watched) = (BTreeSet::new(), BTreeSet::from([folder.clone()]));
        let others = BTreeSet::new();
        let mut watch = Watch { folder, config, is_in_repository, others, left_out, watcher, events, watched };
        watch.watcher.watch(&watch.folder, RecursiveMode::NonRecursive)?;
        Ok(watch)
    }

    /// From now on, looks into these folders, too.
    pub(super) fn look_into(&mut self, folders: impl IntoIterator<Item = PathBuf>) {
        // What is not there is named by the build.
        let found: BTreeSet<PathBuf> = folders.into_iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect();
        let is_in = |path: &Path, folder: &Path| path != folder && path.starts_with(folder);
        let is_inner = |path: &PathBuf| path.starts_with(&self.folder) || found.iter().any(|folder| is_in(path, folder));
        self.others = found.iter().filter(|path| !is_inner(path)).cloned().collect();
    }

    /// From now on, does not look at these files and folders.
    pub(super) fn leave_out(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        // What is not there yet may come.
        let canonical = |path: PathBuf| {
            fs::canonicalize(&path).ok().or_else(|| Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?)))
        };
        self.left_out = paths.into_iter().filter_map(canonical).collect();
    }

    /// How the files are now.
    pub(super) fn files(&mut self) -> Files {
        let left_out = self.left_out.clone();
        let mut walk = WalkBuilder::new(&self.folder);
        for folder in &self.others {
            walk.add(folder);
        }
        walk.require_git(false).parents(self.is_in_repository).ignore(false);
        walk.filter_entry(move |entry| !left_out.contains(entry.path()) && !is_foreign(entry));
        let outputs = outputs();
        let mut files = Files::default();
        // What is gone by now, or cannot be read, is no file of the project.
        for entry in walk.build().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                // Before it is looked into, so that nothing is missed.
                self.watch(entry.path());
            } else if metadata.is_file() && !is_made(entry.path()) && !outputs.contains(&identity(&metadata)) {
                files.add(entry.into_path(), &metadata);
            }
            if files.0.len() == FILES_MAX {
                tracing::warn!(
                    "more than {FILES_MAX} files; changes of further files are not detected; add irrelevant folders to .gitignore"
                );
                break;
            }
        }
        if let Ok(metadata) = fs::metadata(&self.config) {
            files.add(self.config.clone(), &metadata);
        }
        self.watched.retain(|folder| folder.exists());
        files
    }

    /// Waits until they are otherwise; how they are then.
    pub(super) fn wait(&mut self, before: &Files) -> Files {
        loop {
            // The watcher, which is ours, has the other end.
            let _ = self.events.recv();
            let end = Instant::now() + QUIET_WITHIN;
            while Instant::now() < end && self.events.recv_timeout(QUIET_TIME).is_ok() {}
            let now = self.files();
            if now != *before {
                return now;
            }
        }
    }

    fn watch(&mut self, folder: &Path) {
        if self.watched.insert(folder.to_owned())
            && let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive)
        {
            tracing::warn!(folder = %folder.display(), %error, "changes in this folder are not detected");
        }
    }
}

impl Files {
    fn add(&mut self, path: PathBuf, metadata: &Metadata) {
        self.0.insert(path, (metadata.len(), metadata.modified().ok()));
    }

    /// Whether this file is among them.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    /// Which files are there only now or only before, or are otherwise.
    pub(super) fn changed_since(&self, before: &Files) -> BTreeSet<PathBuf> {
        self.0.keys().chain(before.0.keys()).filter(|path| self.0.get(*path) != before.0.get(*path)).cloned().collect()
    }
}

impl FromIterator<(PathBuf, State)> for Files {
    fn from_iter<T: IntoIterator<Item = (PathBuf, State)>>(files: T) -> Files {
        Files(files.into_iter().collect())
    }
}

fn is_reading(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn is_foreign(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_dir()) && NOT_SOURCES.iter().any(|name| entry.file_name() == *name)
}

fn is_made(path: &Path) -> bool {
    path.extension().is_some_and(|ending| MADE.iter().any(|made| ending == OsStr::new(made)))
}

/// The files to which this process writes what it says, where they are files.
fn outputs() -> Vec<(u64, u64)> {
    let file = |output: &dyn AsFd| fs::File::from(output.as_fd().try_clone_to_owned().ok()?).metadata().ok();
    let all = [file(&io::stdout()), file(&io::stderr())];
    all.iter().flatten().filter(|metadata| metadata.is_file()).map(identity).collect()
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, path: &str, text: &str) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn sources_count_and_what_is_made_of_them_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write(folder.path(), path, text);
        write("sledge.toml", "");
        write("src/a.c", "1");
        let mut watch = Watch::new(folder.path(), "sledge.toml".as_ref()).unwrap();
        let before = watch.files();
        for made in ["a.wasm", "src/a.so", ".git/index", "src/.a.c.swp", "target/debug/a.c"] {
            write(made, "x");
        }
        assert_eq!(watch.files(), before);
        write("src/a.c", "12");
        let after = watch.wait(&before);
        assert_ne!(after, before);
        // In a folder that was not there before.
        write("src/new/b.c", "1");
        let more = watch.wait(&after);
        write("src/new/b.c", "12");
        assert_ne!(watch.wait(&more), more);
    }

    #[test]
    fn what_gitignore_names_does_not_count_but_the_configuration_does() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write(folder.path(), path, text);
        write(".gitignore", "out/\n*.log\nsledge.toml\n");
        write("sledge.toml", "");
        write("src/.gitignore", "/version.c\n");
        write("src/a.c", "1");
        let mut watch = Watch::new(folder.path(), "sledge.toml".as_ref()).unwrap();
        let before = watch.files();
        for ignored in ["out/a.c", "src/out/b.c", "build.log", "src/version.c"] {
            write(ignored, "x");
        }
        assert_eq!(watch.files(), before);
        write("sledge.toml", "# changed");
        let after = watch.files();
        assert_eq!(after.changed_since(&before).len(), 1);
        write("version.c", "x");
        assert_eq!(watch.files().changed_since(&after).len(), 1);
    }

    #[test]
    fn folders_elsewhere_count_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write(folder.path(), path, text);
        for file in ["project/sledge.toml", "project/proto/a.proto", "sources/cart/main.go", "sources/other.go"] {
            write(file, "");
        }
        let mut watch = Watch::new(&folder.path().join("project"), "sledge.toml".as_ref()).unwrap();
        watch.look_into(["sources", "sources/cart", "project/proto", "absent"].map(|name| folder.path().join(name)));
        assert_eq!(watch.others.len(), 1);
        let before = watch.files();
        assert_eq!(before.0.len(), 4);
        write("sources/cart/main.go", "1");
        let after = watch.wait(&before);
        assert_eq!(after.changed_since(&before).len(), 1);
    }

    #[test]
    fn what_the_server_writes_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write(folder.path(), path, text);
        for file in ["sledge.toml", "data/a", "src/a.c"] {
            write(file, "");
        }
        let mut watch = Watch::new(folder.path(), "sledge.toml".as_ref()).unwrap();
        watch.leave_out(["data", "data.db", "absent"].map(|name| folder.path().join(name)));
        let before = watch.files();
        write("data/b", "x");
        write("data.db", "x");
        assert_eq!(watch.files(), before);
    }

    #[test]
    fn looking_is_no_event() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), ".gitignore", "*.log");
        write(folder.path(), "sledge.toml", "");
        let mut watch = Watch::new(folder.path(), "sledge.toml".as_ref()).unwrap();
        let before = watch.files();
        assert_eq!(watch.files(), before);
        write(folder.path(), "a.log", "x");
        // The only events are those of this file: after them there is quiet.
        while watch.events.recv_timeout(QUIET_TIME).is_ok() {}
        assert_eq!(watch.files(), before);
        assert!(watch.events.recv_timeout(QUIET_TIME).is_err());
    }
}
