//! What `sledge kv` does with a store's file, and its log, while no server uses them. Both are only read: redb opens copies in memory.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{File as Disk, OpenOptions, TryLockError};
use std::io::{self, BufRead, Read as _, Write};
use std::path::Path;

use redb::StorageBackend as _;
use redb::backends::{FileBackend, InMemoryBackend};

use super::file::{Contents, File};
use super::lines::{self, LineError};
use super::log::Log;
use super::salvage::{Salvaged, salvage};
use super::{BucketKey, Entry, FileError, log_path};

/// Entries that are written in one transaction.
const BATCH: usize = 10_000;

/// Why a command on a file failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// What is wrong with a file, and what to do.
    #[error("{0}")]
    File(String),
    /// A server or a command uses the file.
    #[error("{0}")]
    InUse(String),
    /// There is something in place of the file that is to be made.
    #[error("{0} is there already: name a file that is not")]
    Exists(String),
    /// What was to be imported is no export.
    #[error("what is to be imported: {0}")]
    Lines(String),
    /// Nothing can be written to standard output.
    #[error("cannot write: {0}")]
    Out(#[source] io::Error),
}

/// What a file holds of one tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantCount {
    /// Its name.
    pub tenant: String,
    /// Its entries.
    pub entries: usize,
    /// Bytes of these, as `kv_tenant_bytes_max` counts them.
    pub bytes: u64,
    /// The version of its last commit.
    pub version: u64,
}

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By tenant, in order.
    pub tenants: Vec<TenantCount>,
    /// What is lost, in words; nothing of a good file.
    pub lost: Vec<String>,
    /// Entries of which nothing says whether they are the last ones.
    pub unverified: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for TenantCount { tenant, entries, bytes, version } in &self.tenants {
            writeln!(f, "tenant {tenant}: {entries} entries, {bytes} bytes, last version {version}")?;
        }
        for lost in &self.lost {
            writeln!(f, "lost: {lost}")?;
        }
        if self.unverified > 0 {
            writeln!(
                f,
                "{} of these entries lay in lost parts and were found in single pages: some may be older than what was written last, or were \
                 deleted since, or differ in single bytes",
                self.unverified
            )?;
        }
        let entries: usize = self.tenants.iter().map(|tenant| tenant.entries).sum();
        write!(f, "{entries} entries of {} tenants", self.tenants.len())
    }
}

/// Looks whether a file is good, and what it holds.
///
/// # Errors
/// When it is not, or cannot be read.
pub fn check(path: &Path) -> Result<Report, ToolError> {
    let (file, contents) = open(path)?;
    if file.was_damaged {
        let why = redb::Error::Corrupted("its pages do not fit their checksums".to_owned());
        return Err(ToolError::File(FileError::Redb(why).words(&path.display().to_string())));
    }
    Ok(report(&contents))
}

/// Writes what a file holds, as lines of JSON.
///
/// # Errors
/// When it is damaged, or cannot be read.
pub fn export(path: &Path, out: &mut impl Write) -> Result<(), ToolError> {
    let (file, contents) = open(path)?;
    lines::write(&contents, file.floor, out).map_err(ToolError::Out)
}

/// Makes a file of such lines.
///
/// # Errors
/// When there is one, it cannot be written, or these are no such lines.
pub fn import(new: &Path, lines: impl BufRead) -> Result<Report, ToolError> {
    let (contents, floor) = lines::read(lines).map_err(|error: LineError| ToolError::Lines(error.to_string()))?;
    make(new, &contents, floor)?;
    Ok(report(&contents))
}

/// Makes a file of what can be read of a damaged one.
///
/// # Errors
/// When it cannot be read at all, or the new one not be written.
pub fn rescue(path: &Path, new: &Path) -> Result<Report, ToolError> {
    let image = read(path)?;
    let opened = copy(&image);
    // What the tree says about the log, if it can be opened.
    let known = opened.as_ref().ok().map(|file| file.logged());
    let (salvaged, error) = match opened.and_then(loaded) {
        // redb reads all of it.
        Ok((file, contents)) if !file.was_damaged => {
            make(new, &contents, file.floor)?;
            return Ok(report(&contents));
        }
        Err(error @ FileError::Newer { .. }) => return Err(ToolError::File(error.words(&path.display().to_string()))),
        opened => (salvage(&image.tree), opened.err()),
    };
    let salvaged =
        with_log(salvaged, image.log, known).map_err(|error| ToolError::File(error.words(&path.display().to_string())))?;
    let salvaged = Salvaged { lost: salvaged.lost.into_iter().chain(error.and_then(lost_of_log)).collect(), ..salvaged };
    make(new, &salvaged.contents, salvaged.floor)?;
    Ok(Report { lost: salvaged.lost, unverified: salvaged.unverified, ..report(&salvaged.contents) })
}

/// What an error says is lost of the log.
fn lost_of_log(error: FileError) -> Option<String> {
    match error {
        FileError::LogGap { sequence } => Some(format!("record {sequence} of the log, and perhaps some behind it")),
        FileError::NoLog => Some("the log, and with it the last commits".to_owned()),
        FileError::OtherLog => {
            Some("what belongs to the file of the log, which was written beside another state of it".to_owned())
        }
        _ => None,
    }
}

/// Adds what a log holds, whichever of its last openings wrote it. `known` is the tree's nonce, if it may need a log, and the sequence up to which it is complete. Where neither is known, all
/// records that are there were written to the tree or are newer: one after the other they lead to what was there last.
fn with_log(mut salvaged: Salvaged, log: Option<Vec<u8>>, known: Option<(Option<u64>, u64)>) -> Result<Salvaged, FileError> {
    let Some(log) = log else { return Ok(salvaged) };
    let log = memory(&log).and_then(|backend| Log::open(Box::new(backend))).map_err(FileError::Log)?;
    let nonces = log.nonces().map_err(FileError::Log)?;
    let above = match known {
        Some((Some(nonce), above)) if nonces.contains(&Some(nonce)) => above,
        // The log of another store, or of a tree that needs none.
        Some(_) => return Ok(salvaged),
        None => 0,
    };
    let mut found = BTreeMap::new();
    for nonce in nonces.into_iter().flatten() {
        found.extend(log.found(nonce, above).map_err(FileError::Log)?);
    }
    for changes in found.into_values() {
        let of_group: HashMap<&str, u64> = changes.versions().collect();
        for (tenant, key, entry) in changes.writes() {
            let version = entry.map_or_else(|| of_group.get(tenant).copied().unwrap_or(0), |entry| entry.version);
            salvaged.put(tenant, key, version, entry);
        }
    }
    Ok(salvaged)
}

fn open(path: &Path) -> Result<(File, Contents), ToolError> {
    let image = read(path)?;
    copy(&image).and_then(loaded).map_err(|error| ToolError::File(error.words(&path.display().to_string())))
}

fn loaded(file: File) -> Result<(File, Contents), FileError> {
    let (contents, _) = file.contents()?;
    Ok((file, contents))
}

/// The bytes of a store's files.
struct Image {
    tree: Vec<u8>,
    log: Option<Vec<u8>>,
}

/// The bytes of files that do not change meanwhile: the tree's lock is that of the log, too.
fn read(path: &Path) -> Result<Image, ToolError> {
    let read = || {
        let mut file = Disk::open(path)?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => return Err(FileError::Redb(redb::Error::DatabaseAlreadyOpen)),
            // Where there are no locks, redb has none either.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut tree = Vec::new();
        file.read_to_end(&mut tree)?;
        let log = match std::fs::read(log_path(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            log => Some(log.map_err(FileError::Log)?),
        };
        Ok(Image { tree, log })
    };
    read().map_err(|error: FileError| {
        let words = error.words(&path.display().to_string());
        match error {
            FileError::Redb(redb::Error::DatabaseAlreadyOpen) => ToolError::InUse(words),
            _ => ToolError::File(words),
        }
    })
}

fn copy(image: &Image) -> Result<File, FileError> {
    if image.tree.is_empty() {
        return Err(FileError::Redb(redb::Error::Corrupted("it is empty".to_owned())));
    }
    File::open_with_log(memory(&image.tree)?, |is_needed| match &image.log {
        None if is_needed => Err(io::ErrorKind::NotFound.into()),
        log => Ok(Box::new(memory(log.as_deref().unwrap_or_default())?)),
    })
}

fn memory(bytes: &[u8]) -> io::Result<InMemoryBackend> {
    let backend = InMemoryBackend::new();
    backend.set_len(bytes.len() as u64)?;
    backend.write(0, bytes)?;
    Ok(backend)
}

/// Makes a new file.
fn make(path: &Path, contents: &Contents, floor: u64) -> Result<(), ToolError> {
    let name = path.display().to_string();
    let disk = OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => ToolError::Exists(name.clone()),
        _ => ToolError::File(FileError::from(error).words(&name)),
    })?;
    let made = FileBackend::new(disk).map_err(FileError::from).and_then(File::open).and_then(|file| fill(file, contents, floor));
    made.map_err(|error| {
        // Half of it is of no use.
        let _ = std::fs::remove_file(path);
        ToolError::File(error.words(&name))
    })
}

fn fill(mut file: File, contents: &Contents, floor: u64) -> Result<(), FileError> {
    let entries: Vec<(&str, &BucketKey, &Entry)> = contents
        .iter()
        .flat_map(|(tenant, content)| content.entries.iter().map(|(key, entry)| (&**tenant, key, entry)))
        .collect();
    for batch in entries.chunks(BATCH) {
        file.correct(batch.iter().map(|(tenant, key, entry)| (*tenant, *key, Some(*entry))), std::iter::empty(), 0)?;
    }
    file.correct(std::iter::empty(), contents.iter().map(|(tenant, content)| (&**tenant, content.version)), 0)?;
    file.set_floor(floor)
}

fn report(contents: &Contents) -> Report {
    let count = |(tenant, content): (&str, &super::file::Content)| TenantCount {
        tenant: tenant.to_string(),
        entries: content.entries.len(),
        bytes: super::used(&content.entries),
        version: content.version,
    };
    let mut tenants: Vec<TenantCount> = contents.iter().map(|(tenant, content)| count((tenant, content))).collect();
    tenants.sort_by(|one, other| one.tenant.cmp(&other.tenant));
    Report { tenants, ..Report::default() }
}
