//! From the log to the tree: what several groups of commits came to becomes one transaction of redb, on a thread of its own, while the writer goes on.
//!
//! ```text
//!   writer: fresh layer ── freeze ──> frozen layer ── Job ──> folder: one transaction of the tree
//!                                        └ gone, and its places in the log free, when that is durable
//! ```
//!
//! The writer alone decides: it begins a fold, takes note of its end, and waits for it where the log has no room, where a group goes to the tree itself, and before it closes the file. So there is one
//! transaction of redb at a time, and the log's places are free only when the tree has what was there. What the writer freezes it keeps until then.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;

use redb::Database;

use super::FileError;
use super::file;
use super::log::Log;
use super::pending::{Layer, Pending};
use super::writer::Writer;
use crate::confine;

/// When the log is written to the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoldAt {
    /// Bytes in the log from which on it is.
    pub(super) bytes: u64,
    /// Keys of entries and records that were written, from which on it is.
    pub(super) keys: usize,
    /// For how long no commit has to come until it is.
    pub(super) idle: Duration,
}

/// A thousand small commits at once: what redb's transaction costs is then little for each, and takes some 10 ms of a thread beside the writer.
pub(super) const FOLD_AT: FoldAt = FoldAt { bytes: 4 << 20, keys: 8_192, idle: Duration::from_millis(200) };

/// The thread that folds, as the writer sees it.
pub(super) struct Folder {
    /// None where there is no log.
    thread: Option<Thread>,
    pub(super) at: FoldAt,
    /// What is being written, and up to which sequence.
    running: Option<(Arc<Pending>, u64)>,
}

struct Thread {
    jobs: Sender<Job>,
    ends: Receiver<Result<(), FileError>>,
}

struct Job {
    database: Arc<Database>,
    pending: Arc<Pending>,
    layer: Arc<Layer>,
    sequence: u64,
}

impl Folder {
    /// Of a store without a log.
    pub(super) const fn none() -> Folder {
        Folder { thread: None, at: FOLD_AT, running: None }
    }

    /// Starts the thread. It ends with the writer.
    ///
    /// # Errors
    /// When the system has none.
    pub(super) fn start(at: FoldAt) -> io::Result<Folder> {
        let ((jobs, todo), (done, ends)) = (channel(), channel());
        confine::thread("kv-fold", move || work(&todo, &done))?;
        Ok(Folder { thread: Some(Thread { jobs, ends }), at, running: None })
    }
}

fn work(jobs: &Receiver<Job>, ends: &Sender<Result<(), FileError>>) {
    while let Ok(Job { database, pending, layer, sequence }) = jobs.recv() {
        let end = file::fold(&database, &pending, &layer, sequence);
        // The writer may close the file as soon as it knows: nothing here may hold it open.
        drop((database, pending, layer));
        if ends.send(end).is_err() {
            return;
        }
    }
}

/// The thread has ended, which it does not do before the writer.
fn gone() -> FileError {
    FileError::Log(io::Error::other("the thread that writes it to the file has ended"))
}

impl Writer {
    /// Whether the tree has all that was acknowledged.
    pub(super) fn is_folded(&self) -> bool {
        self.folder.running.is_none() && self.pending.is_empty() && self.shared.overlay().count() == 0
    }

    /// The log, where there is one.
    pub(super) fn log_mut(&mut self) -> Result<&mut Log, FileError> {
        self.file.as_mut().and_then(|file| file.log()).ok_or(FileError::NotOpen)
    }

    /// Takes note of a fold that has ended, and begins one if the log is large, or `is_idle`. Closes the file when one failed.
    pub(super) fn fold_if(&mut self, is_idle: bool) {
        if let Err(error) = self.settle(false) {
            return self.close(&error, 0);
        }
        let at = self.folder.at;
        let is_large = self.log_mut().is_ok_and(|log| log.live_bytes() >= at.bytes)
            || self.pending.count() + self.shared.overlay().count() >= at.keys;
        if self.folder.running.is_none()
            && (is_large || is_idle)
            && let Err(error) = self.begin_fold()
        {
            self.close(&error, 0);
        }
    }

    /// Has all that was acknowledged in the tree.
    ///
    /// # Errors
    /// When that fails: then the file cannot be used any more.
    pub(super) fn fold_all(&mut self) -> Result<(), FileError> {
        self.settle(true)?;
        self.begin_fold()?;
        self.settle(true)
    }

    fn begin_fold(&mut self) -> Result<(), FileError> {
        if self.is_folded() {
            return Ok(());
        }
        let (Some(file), Some(thread)) = (&self.file, &self.folder.thread) else { return Ok(()) };
        let pending = Arc::new(std::mem::take(&mut self.pending));
        let layer = self.shared.overlay_mut().freeze();
        let job = Job { database: file.shared(), pending: Arc::clone(&pending), layer, sequence: self.sequence };
        self.folder.running = Some((pending, self.sequence));
        if thread.jobs.send(job).is_err() {
            self.thaw();
            return Err(gone());
        }
        Ok(())
    }

    /// Takes note of the end of a fold, if one runs and has ended, or `waits` for that.
    fn settle(&mut self, waits: bool) -> Result<(), FileError> {
        let (Some((_, sequence)), Some(thread)) = (&self.folder.running, &self.folder.thread) else { return Ok(()) };
        let end = if waits {
            thread.ends.recv().unwrap_or_else(|_| Err(gone()))
        } else {
            match thread.ends.try_recv() {
                Ok(end) => end,
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => Err(gone()),
            }
        };
        let sequence = *sequence;
        if let Err(error) = end {
            self.thaw();
            return Err(error);
        }
        self.folder.running = None;
        // The tree has it: a reader that does not find it in the layer begins its transaction later.
        self.shared.overlay_mut().folded();
        if let Some(file) = &mut self.file {
            file.folded(sequence);
        }
        Ok(())
    }

    /// What was being written may be in the tree or not: it is written again, beneath what came later.
    fn thaw(&mut self) {
        if let Some((frozen, _)) = self.folder.running.take() {
            let newer = std::mem::replace(&mut self.pending, Arc::unwrap_or_clone(frozen));
            self.pending.absorb(&newer);
        }
        self.shared.overlay_mut().thaw();
    }

    /// Before the file is closed after an error: waits until no thread uses it.
    pub(super) fn stop_fold(&mut self) {
        // An error is one more of the file that is closed; what it was about is pending again.
        let _ = self.settle(true);
    }

    /// Closes the file in good order: the tree has everything, and the log is not needed.
    pub(super) fn end(mut self) {
        self.shared.set_database(None);
        if let Err(error) = self.settle(true) {
            return self.close(&error, 0);
        }
        let Some(file) = self.file.take() else { return };
        let ended = file.end(&self.pending, self.shared.overlay().fresh(), self.sequence);
        if let Err(error) = ended {
            // All of it is in the log, and is read there when the store is opened again.
            tracing::warn!(file = self.name, %error, "the key-value store's log could not be written to its file at the end");
        }
    }
}
