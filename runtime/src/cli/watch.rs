//! Waits until a file of a project changes.
//!
//! What comes from the system only says that something may have changed; whether it has, is seen by all files' sizes and times.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, SystemTime};

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::confine;

/// For how long nothing more may happen before a change counts as complete: editors and tools write several files.
const QUIET_TIME: Duration = Duration::from_millis(100);
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
    watcher: RecommendedWatcher,
    events: Receiver<()>,
    watched: BTreeSet<PathBuf>,
}

/// How the files of a project were at some moment: sizes and times.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Files(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

impl Watch {
    /// Watches a folder and those in it.
    ///
    /// # Errors
    /// When the system does not tell of changes.
    pub(super) fn new(folder: &Path) -> notify::Result<Watch> {
        let (sender, events) = mpsc::channel();
        // What kind of event it is, or that some were lost, is all the same.
        let made = confine::without_signals(|| notify::recommended_watcher(move |_| sender.send(()).unwrap_or(())));
        let watcher = made?;
        let mut watch = Watch { folder: folder.to_owned(), watcher, events, watched: BTreeSet::new() };
        watch.watcher.watch(folder, RecursiveMode::NonRecursive)?;
        watch.watched.insert(folder.to_owned());
        Ok(watch)
    }

    /// How the files are now.
    pub(super) fn files(&mut self) -> Files {
        let mut files = Files::default();
        self.look(&self.folder.clone(), &mut files);
        files
    }

    /// Waits until they are otherwise; how they are then.
    pub(super) fn wait(&mut self, before: &Files) -> Files {
        loop {
            // The watcher, which is ours, has the other end.
            let _ = self.events.recv();
            while self.events.recv_timeout(QUIET_TIME).is_ok() {}
            let now = self.files();
            if now != *before {
                return now;
            }
        }
    }

    /// Folders are watched before they are looked into, so that nothing is missed.
    fn look(&mut self, folder: &Path, files: &mut Files) {
        if self.watched.insert(folder.to_owned())
            && let Err(error) = self.watcher.watch(folder, RecursiveMode::NonRecursive)
        {
            tracing::warn!(folder = %folder.display(), %error, "changes in here are not seen");
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let Ok(metadata) = entry.metadata() else { continue };
            if name.starts_with('.') || files.0.len() >= FILES_MAX {
                continue;
            }
            if metadata.is_dir() && !NOT_SOURCES.contains(&&*name) {
                self.look(&path, files);
            } else if metadata.is_file() && !path.extension().is_some_and(|ending| MADE.iter().any(|made| ending == *made)) {
                files.0.insert(path, (metadata.len(), metadata.modified().ok()));
            }
        }
        if !folder.exists() {
            self.watched.remove(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_count_and_what_is_made_of_them_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/a.c", "1");
        let mut watch = Watch::new(folder.path()).unwrap();
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
}
