//! What the writer does without a file: opens it again, first at once, then with back-off, finds out what is in there, and goes on.
//!
//! Readers have the index meanwhile, in which is only what was acknowledged. Commits that come are refused, and nothing of them is tried. Those whose transaction
//! failed in its last step, the fsync, are *doubtful*: they wait for the file, whose log or tree says by its sequence whether they are in there. Then they are in the index,
//! too, and acknowledged, or in neither and refused.
//!
//! What was acknowledged and may not be in the tree is in memory (`pending.rs`), so that the log is asked for nothing but what is doubtful. All that is pending is then written to the tree, and the
//! log begins anew. When the store is opened for the first time, what is pending is what the log holds.
//!
//! A file that is open again, be it a copy that is older, is compared with the index, entry by entry, and made to hold that; and it is usable only when something as large as what failed last
//! could be written, so that a full disk does not make it open and closed in turns. The server's own records are not in the index: they are what the tree says, and what is pending.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::file::File;
use super::inbox::{Inbox, Next};
use super::pending::Pending;
use super::writer::Writer;
use super::{BucketKey, COMMIT_BYTES_MAX, Entry, FileError, KvError, Message, Tenant, used};
use crate::health::Subject;

/// How long until the file is opened again for the second time; each further time it is twice as long.
pub(super) const BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// How long at most.
const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// The least for which there has to be room.
const PROBE_BYTES_MIN: usize = 64 << 10;

impl Writer {
    /// Opens the file for the first time.
    pub(super) fn open_first(&mut self) {
        self.reopen();
    }

    /// Waits until the file is open, and refuses commits; false when no handle of the store is left.
    pub(super) fn wait_for_file(&mut self, inbox: &mut Inbox) -> bool {
        // What failed while it was open is tried again at once.
        let mut next = Instant::now() + if self.is_open() { Duration::ZERO } else { self.back_off };
        loop {
            if Instant::now() >= next {
                if self.reopen() {
                    return true;
                }
                next = Instant::now() + self.back_off;
                self.back_off = (self.back_off * 2).min(BACK_OFF_MAX);
            }
            match inbox.wait(Some(next)) {
                Next::Gone | Next::Message(Message::End(_)) => return false,
                Next::Message(Message::Commit(request)) => {
                    drop(request.answer.send(Err(KvError::Unavailable(self.trouble.clone()))));
                }
                Next::Message(Message::Retry) => next = Instant::now(),
                Next::Late => {}
            }
        }
    }

    /// Uses the file no longer, for which there has to be room for so many bytes when it is used again.
    pub(super) fn close(&mut self, error: &FileError, bytes: usize) {
        self.stop_fold();
        self.shared.set_database(None);
        if let Some(file) = self.file.take() {
            file.discard();
        }
        (self.back_off, self.probe_bytes) = (BACK_OFF_MIN, bytes.clamp(PROBE_BYTES_MIN, COMMIT_BYTES_MAX));
        self.report(error);
    }

    /// Says what is wrong with the file.
    fn report(&mut self, error: &FileError) {
        self.trouble = error.words(&self.name);
        let meanwhile = if self.is_open() {
            "functions read what was written before, and their writes fail (error 29)"
        } else {
            "functions that use the key-value store answer 503"
        };
        let reason = format!("{}; until then {meanwhile}, and the server tries again by itself", self.trouble);
        self.health.report(Subject::KeyValueStore, reason);
    }

    fn is_open(&self) -> bool {
        self.shared.is_open.load(Ordering::Acquire)
    }

    /// Opens the file, and says whether that went well.
    pub(super) fn reopen(&mut self) -> bool {
        let opened = (self.source)().and_then(|mut file| {
            let entered = if self.is_open() { self.go_on(&mut file) } else { self.begin(&mut file) };
            match entered {
                Ok(()) => Ok(file),
                Err(error) => {
                    // redb would write as it closes it, and its panics are errors.
                    file.discard();
                    Err(error)
                }
            }
        });
        match opened {
            Ok(file) => {
                if file.was_damaged {
                    tracing::warn!(
                        file = self.name,
                        "the key-value store's file was damaged and is repaired: the last commit may be missing"
                    );
                }
                self.shared.set_database(Some(file.database()));
                self.file = Some(file);
                self.health.clear(&Subject::KeyValueStore);
                true
            }
            Err(error) => {
                self.report(&error);
                false
            }
        }
    }

    /// Takes over what a file and its log hold.
    fn begin(&mut self, file: &mut File) -> Result<(), FileError> {
        // Before anything is taken over: a log that lacks something stays as it is, for `sledge kv salvage`.
        let (contents, tail) = file.contents()?;
        let mut tenants = self.shared.tenants();
        tenants.fill(contents, file.floor);
        self.used = tenants.by_name.values().map(|tenant| (tenant.name.clone(), used(&tenant.read().entries))).collect();
        drop(tenants);
        self.total = self.used.values().sum();
        (self.identity, self.sequence) = (file.identity, file.sequence + tail.len() as u64);
        for changes in tail {
            self.pending.extend(changes.writes(), changes.versions());
            self.shared.overlay_mut().extend(changes.records);
        }
        self.shared.applied.store(self.sequence, Ordering::Release);
        // Release: a thread that sees it sees the indexes. It may: what it reads is in the file or its log. Where the disk is too full for what follows, it is served meanwhile.
        self.shared.is_open.store(true, Ordering::Release);
        self.start(file)
    }

    /// Has all that is pending in the tree, and the log begin anew.
    fn start(&mut self, file: &mut File) -> Result<(), FileError> {
        let mut overlay = self.shared.overlay_mut();
        file.start(&self.pending, overlay.fresh(), self.sequence)?;
        overlay.clear();
        self.pending = Pending::default();
        Ok(())
    }

    /// Goes on with the file that was open before.
    fn go_on(&mut self, file: &mut File) -> Result<(), FileError> {
        if file.identity != self.identity {
            return Err(FileError::Another);
        }
        // While the log is as it was: what follows makes it begin anew.
        let is_there = self.doubtful.is_some() && file.holds(self.sequence + 1)?;
        match self.doubtful.take() {
            Some(group) if is_there => self.made(group),
            Some(group) => group.refuse(&self.trouble),
            None => {}
        }
        self.start(file)?;
        self.correct(file)?;
        file.probe(self.probe_bytes)
    }

    /// Makes a file hold what the index does.
    fn correct(&self, file: &mut File) -> Result<(), FileError> {
        let tenants: BTreeMap<Box<str>, Arc<Tenant>> =
            self.shared.tenants().by_name.iter().map(|(name, tenant)| (name.clone(), Arc::clone(tenant))).collect();
        // Readers go on; this thread is the only one that writes.
        let indexes: Vec<_> = tenants.iter().map(|(name, tenant)| (&**name, tenant.read())).collect();
        let mut wanted = indexes.iter().flat_map(|(name, index)| index.named(name)).peekable();
        let mut writes: Vec<(Box<str>, BucketKey, Option<Entry>)> = Vec::new();
        let write = |(tenant, key, entry): (&str, &BucketKey, &Entry)| (tenant.into(), key.clone(), Some(entry.clone()));
        // Both come in order.
        file.each(|tenant, key, version, value| {
            while let Some(lost) = wanted.next_if(|(name, wanted, _)| (*name, &*wanted.0) < (tenant, key)) {
                writes.push(write(lost));
            }
            match wanted.next_if(|(name, wanted, _)| (*name, &*wanted.0) == (tenant, key)) {
                Some((_, _, entry)) if (entry.version, &*entry.value) == (version, value) => {}
                Some(changed) => writes.push(write(changed)),
                None => writes.push((tenant.into(), BucketKey(key.into()), None)),
            }
        })?;
        writes.extend(wanted.map(write));
        if writes.is_empty() && file.sequence == self.sequence {
            return Ok(());
        }
        let entries = writes.len();
        tracing::warn!(file = self.name, entries, "the key-value store's file differs from what was acknowledged, and is mended");
        let versions = indexes.iter().map(|(name, index)| (*name, index.version));
        let writes = writes.iter().map(|(tenant, key, entry)| (&**tenant, key, entry.as_ref()));
        file.correct(writes, versions, self.sequence)
    }
}
