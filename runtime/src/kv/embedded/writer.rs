//! The thread that writes: groups of commits, each checked against the index and those before it, then one record of the log. What the log holds comes to the tree beside that (`fold.rs`).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::file::{File, LogError, Write};
use super::fold::Folder;
use super::frame;
use super::inbox::{Inbox, Next};
use super::log::{HEADER_BYTES, RECORD_BYTES_MAX};
use super::pending::Pending;
use super::recovery::BACK_OFF_MIN;
use super::{
    BucketKey, BucketName, Entry, FileError, KvError, KvLimits, Message, Outcome, Request, Shared, Source, Tenant, conflict, cost,
};
use crate::health::Health;
use crate::kv::{Change, Commit, Record, sum};

/// Commits that are written together with the first of a group.
const GROUP_MORE_MAX: usize = 255;
/// Bytes of a group's commits beyond which no more are added.
const GROUP_BYTES_MAX: usize = 4 << 20;
/// Room for a record of the log that is kept for the next one.
const FRAME_KEPT_BYTES: usize = 1 << 20;

/// The thread's own.
pub(super) struct Writer {
    /// What operators call the file.
    pub(super) name: String,
    pub(super) source: Source,
    /// None while it cannot be used.
    pub(super) file: Option<File>,
    /// What the log holds and the tree does not: entries here, records in what readers share.
    pub(super) pending: Pending,
    /// Writes that to the tree.
    pub(super) folder: Folder,
    /// The record of the log that is made.
    frame: Vec<u8>,
    /// The file's, and groups of commits that were acknowledged.
    pub(super) identity: u64,
    pub(super) sequence: u64,
    pub(super) shared: Arc<Shared>,
    pub(super) health: Arc<Health>,
    /// What may be in the file and may not.
    pub(super) doubtful: Option<Group>,
    /// What is wrong with the file, if it is none.
    pub(super) trouble: String,
    /// How long until the file is opened again, when that fails.
    pub(super) back_off: Duration,
    /// Bytes for which there has to be room before commits are taken again.
    pub(super) probe_bytes: usize,
    pub(super) limits: KvLimits,
    /// Bytes of all tenants, and of each.
    pub(super) total: u64,
    pub(super) used: HashMap<Box<str>, u64>,
}

/// What a commit came to, as it is told.
type Answer = Result<Outcome, KvError>;

/// Commits that become one transaction.
#[derive(Default)]
pub(super) struct Group {
    /// What becomes of tenants, before the index knows.
    drafts: HashMap<Box<str>, Draft>,
    total: u64,
    /// Where the outcome goes, and what it is if all goes well.
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
    /// Those that change something, in order.
    planned: Vec<Planned>,
    /// What the server itself writes with them, in order.
    records: Vec<Record>,
}

/// A tenant after the commits of a group.
struct Draft {
    entries: HashMap<BucketKey, Option<Entry>>,
    /// As of the index.
    buckets: HashMap<Box<[u8]>, u64>,
    version: u64,
    used: u64,
}

/// A commit that can be made: what each key that it changes becomes.
struct Planned {
    tenant: Arc<Tenant>,
    version: u64,
    entries: BTreeMap<BucketKey, Option<Entry>>,
}

impl Writer {
    pub(super) fn new(
        name: String,
        (source, folder): (Source, Folder),
        limits: KvLimits,
        shared: Arc<Shared>,
        health: Arc<Health>,
    ) -> Writer {
        Writer {
            name,
            source,
            file: None,
            pending: Pending::default(),
            folder,
            frame: Vec::new(),
            identity: 0,
            sequence: 0,
            shared,
            health,
            doubtful: None,
            trouble: String::new(),
            back_off: BACK_OFF_MIN,
            probe_bytes: 0,
            limits,
            total: 0,
            used: HashMap::new(),
        }
    }

    /// Makes commits until no handle of the store is left; then closes the file in good order.
    pub(super) fn work(mut self, messages: mpsc::Receiver<Message>) {
        let mut inbox = Inbox::new(messages);
        loop {
            if self.file.is_none() && !self.wait_for_file(&mut inbox) {
                return;
            }
            // What the log holds alone comes to the tree when there is time.
            let until = if self.is_folded() { None } else { Some(Instant::now() + self.folder.at.idle) };
            let first = match inbox.wait(until) {
                Next::Message(first) => first,
                Next::Late => {
                    self.fold_if(true);
                    continue;
                }
                Next::Gone => return self.end(),
            };
            let (requests, end) = group(first, &mut inbox);
            self.write(requests);
            if end.is_some() {
                // The sender is dropped behind that.
                return self.end();
            }
            if self.file.is_some() {
                self.fold_if(false);
            }
        }
    }

    /// Makes a group of commits, and answers them.
    fn write(&mut self, requests: Vec<Request>) {
        let mut group = Group { total: self.total, ..Group::default() };
        for Request { tenant, commit, answer } in requests {
            let result = self.plan(&tenant, commit, &mut group);
            group.answers.push((answer, result));
        }
        if group.planned.is_empty() && group.records.is_empty() {
            return group.answer();
        }
        let mut logged = self.log(&group);
        if let Err(LogError::NotMade(error)) = &logged {
            self.close(error, group.bytes());
            // What one file does not need any more when it is opened again, the other may have. It is open only if there is room for as much as this.
            if self.reopen() {
                logged = self.log(&group);
            }
        }
        match logged {
            Ok(()) => self.made(group),
            Err(LogError::NotMade(error)) => {
                if self.file.is_some() {
                    self.close(&error, group.bytes());
                }
                group.refuse(&self.trouble);
            }
            Err(LogError::Unknown(error)) => {
                self.close(&error, group.bytes());
                self.doubtful = Some(group);
            }
        }
    }

    /// Makes a group durable: in the log, if there is one and the group is not too large for it, else in the tree.
    fn log(&mut self, group: &Group) -> Result<(), LogError> {
        let versions = || group.drafts.iter().map(|(tenant, draft)| (&**tenant, draft.version));
        if self.log_mut().is_ok() && group.bytes() <= RECORD_BYTES_MAX {
            self.frame.clear();
            self.frame.shrink_to(FRAME_KEPT_BYTES);
            self.frame.resize(HEADER_BYTES, 0);
            frame::encode(&mut self.frame, group.writes(), versions(), &group.records);
            if self.frame.len() <= RECORD_BYTES_MAX {
                return self.append();
            }
        }
        // What is in the log is older: it has to be in the tree before.
        self.fold_all().map_err(LogError::NotMade)?;
        let file = self.file.as_mut().ok_or_else(|| LogError::NotMade(FileError::NotOpen))?;
        file.commit(group.writes(), versions(), &group.records)
    }

    /// Writes the record that was made to the log; where that has no room for it, waits until it has.
    fn append(&mut self) -> Result<(), LogError> {
        let sequence = self.sequence + 1;
        let mut frame = std::mem::take(&mut self.frame);
        let mut append = |writer: &mut Writer| writer.log_mut().map_err(LogError::NotMade)?.append(sequence, &mut frame);
        let mut appended = append(self);
        // It may be the limit of the log, or the disk on which it cannot grow: what it holds can go to the tree.
        if matches!(appended, Err(LogError::NotMade(_))) && !self.is_folded() {
            appended = self.fold_all().map_err(LogError::NotMade).and_then(|()| append(self));
        }
        self.frame = frame;
        appended
    }

    /// Lets readers see what is in the file, and the callers that wait know.
    pub(super) fn made(&mut self, mut group: Group) {
        self.sequence += 1;
        self.total = group.total;
        // What is in the tree at once is none of it; of what is doubtful, that is not known.
        let is_pending = self.file.as_mut().is_none_or(|file| file.log().is_some() && file.sequence < self.sequence);
        if is_pending {
            let versions = group.drafts.iter().map(|(tenant, draft)| (&**tenant, draft.version));
            self.pending.extend(group.writes(), versions);
        }
        for (name, draft) in group.drafts.drain() {
            self.used.insert(name, draft.used);
        }
        group.planned.drain(..).for_each(apply);
        if is_pending {
            // Behind the indexes: no record is seen before the entries that were committed with it.
            self.shared.overlay_mut().extend(group.records.drain(..));
        }
        // Release: a reader of records that sees it sees the indexes.
        self.shared.applied.store(self.sequence, Ordering::Release);
        group.answer();
    }

    /// What a commit comes to: changes, which the group has then, or a conflict.
    fn plan(&self, tenant: &Arc<Tenant>, commit: Commit, group: &mut Group) -> Result<Outcome, KvError> {
        let index = tenant.read();
        if commit.expected.is_empty() && commit.listed.is_empty() && commit.changes.is_empty() {
            // It concerns no tenant.
            group.records.extend(commit.records);
            return Ok(Outcome::Committed { version: index.version, sum: 0 });
        }
        let new = || Draft {
            entries: HashMap::new(),
            buckets: HashMap::new(),
            version: index.version,
            used: self.used.get(&tenant.name).copied().unwrap_or(0),
        };
        let draft = group.drafts.entry(tenant.name.clone()).or_insert_with(new);
        let find = |key: &BucketKey| draft.entries.get(key).map_or_else(|| index.entries.get(key), |entry| entry.as_ref());
        let bucket = |name: &BucketName| draft.buckets.get(&name.0).copied().unwrap_or_else(|| index.bucket(name));
        if let Some(conflict) = conflict(&commit, find, bucket) {
            return Ok(conflict);
        }
        if commit.changes.is_empty() {
            let version = draft.version;
            group.records.extend(commit.records);
            return Ok(Outcome::Committed { version, sum: 0 });
        }
        let version = draft.version + 1;
        let mut total_sum = 0;
        let mut entries: BTreeMap<BucketKey, Option<Entry>> = BTreeMap::new();
        for (key, change) in commit.changes {
            let value = match change {
                Change::Put(value) => Some(value),
                Change::Delete => None,
                Change::Add(delta) => {
                    let before = entries.get(&key).map_or_else(|| find(&key), |entry| entry.as_ref());
                    total_sum = sum(before.map(|entry| &*entry.value), delta)?;
                    Some(Bytes::from(total_sum.to_string()))
                }
            };
            entries.insert(key, value.map(|value| Entry { version, value }));
        }
        let size = |key: &BucketKey, entry: Option<&Entry>| entry.map_or(0, |entry| cost(key, &entry.value));
        let freed: u64 = entries.keys().map(|key| size(key, find(key))).sum();
        let taken: u64 = entries.iter().map(|(key, entry)| size(key, entry.as_ref())).sum();
        let after = |before: u64| before + taken - freed.min(before);
        let (tenant_after, total_after) = (after(draft.used), after(group.total));
        let KvLimits { bytes_max, tenant_bytes_max } = self.limits;
        // Whatever makes it smaller is always possible.
        if taken > freed && tenant_after > tenant_bytes_max {
            return Err(KvError::Full { key: "kv_tenant_bytes_max", bytes_max: tenant_bytes_max });
        }
        if taken > freed && total_after > bytes_max {
            return Err(KvError::Full { key: "kv_bytes_max", bytes_max });
        }
        let is_new_set = |(key, entry): &(&BucketKey, &Option<Entry>)| find(key).is_some() != entry.is_some();
        let buckets: Vec<Box<[u8]>> = entries.iter().filter(is_new_set).map(|(key, _)| key.bucket().into()).collect();
        draft.buckets.extend(buckets.into_iter().map(|bucket| (bucket, version)));
        (draft.used, draft.version, group.total) = (tenant_after, version, total_after);
        draft.entries.extend(entries.iter().map(|(key, entry)| (key.clone(), entry.clone())));
        group.planned.push(Planned { tenant: Arc::clone(tenant), version, entries });
        group.records.extend(commit.records);
        Ok(Outcome::Committed { version, sum: total_sum })
    }
}

/// The commits that wait, as many as become one group; and whom to tell of the end, if it is time for that.
fn group(first: Message, inbox: &mut Inbox) -> (Vec<Request>, Option<SyncSender<()>>) {
    let (mut requests, mut bytes, mut next) = (Vec::new(), 0, Some(first));
    while let Some(message) = next {
        match message {
            Message::Commit(request) => {
                bytes += request.commit.bytes() + request.commit.records.iter().map(Record::bytes).sum::<usize>();
                requests.push(request);
            }
            Message::Retry => {}
            Message::End(sender) => return (requests, Some(sender)),
        }
        next = if requests.len() > GROUP_MORE_MAX || bytes > GROUP_BYTES_MAX { None } else { inbox.take() };
    }
    (requests, None)
}

impl Draft {
    fn writes<'a>(&'a self, tenant: &'a str) -> impl Iterator<Item = Write<'a>> {
        self.entries.iter().map(move |(key, entry)| (tenant, key, entry.as_ref()))
    }
}

impl Group {
    /// What the file gets.
    fn writes(&self) -> impl Iterator<Item = Write<'_>> {
        self.drafts.iter().flat_map(|(tenant, draft)| draft.writes(tenant))
    }

    /// Bytes that it writes, as limits count them.
    fn bytes(&self) -> usize {
        let cost = |(_, key, entry): Write<'_>| cost(key, entry.map_or(&[], |entry| &entry.value));
        let records: usize = self.records.iter().map(Record::bytes).sum();
        usize::try_from(self.writes().map(cost).sum::<u64>()).unwrap_or(usize::MAX).saturating_add(records)
    }

    fn answer(self) {
        // Whose guest is gone needs no answer.
        self.answers.into_iter().for_each(|(answer, result)| drop(answer.send(result)));
    }

    /// Answers that nothing of it was done: those that conflicted did so with commits that never were.
    pub(super) fn refuse(mut self, words: &str) {
        self.answers.iter_mut().for_each(|(_, result)| *result = Err(KvError::Unavailable(words.to_owned())));
        self.answer();
    }
}

/// Lets readers see a commit.
fn apply(planned: Planned) {
    let Planned { tenant, version, entries } = planned;
    let mut index = tenant.write();
    index.version = version;
    entries.into_iter().for_each(|(key, entry)| index.put(key, entry));
}
