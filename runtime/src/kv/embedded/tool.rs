//! What `sledge kv` does with a store's file while no server uses it. The file itself is only read: redb opens a copy in memory.

use std::fmt;
use std::fs::{File as Disk, OpenOptions, TryLockError};
use std::io::{self, BufRead, Read as _, Write};
use std::path::Path;

use redb::StorageBackend as _;
use redb::backends::{FileBackend, InMemoryBackend};

use super::file::{Contents, File};
use super::lines::{self, LineError};
use super::salvage::salvage;
use super::{BucketKey, Entry, FileError};

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
    let salvaged = match read(path).map(|bytes| (copy(&bytes).and_then(loaded), bytes))? {
        // redb reads all of it.
        (Ok((file, contents)), _) if !file.was_damaged => {
            make(new, &contents, file.floor)?;
            return Ok(report(&contents));
        }
        (Err(error @ FileError::Newer { .. }), _) => return Err(ToolError::File(error.words(&path.display().to_string()))),
        (_, bytes) => salvage(&bytes),
    };
    make(new, &salvaged.contents, salvaged.floor)?;
    Ok(Report { lost: salvaged.lost, unverified: salvaged.unverified, ..report(&salvaged.contents) })
}

fn open(path: &Path) -> Result<(File, Contents), ToolError> {
    let bytes = read(path)?;
    copy(&bytes).and_then(loaded).map_err(|error| ToolError::File(error.words(&path.display().to_string())))
}

fn loaded(file: File) -> Result<(File, Contents), FileError> {
    let contents = file.load()?;
    Ok((file, contents))
}

/// The bytes of a file that does not change meanwhile.
fn read(path: &Path) -> Result<Vec<u8>, ToolError> {
    let read = || {
        let mut file = Disk::open(path)?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => return Err(FileError::Redb(redb::Error::DatabaseAlreadyOpen)),
            // Where there are no locks, redb has none either.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error: FileError| {
        let words = error.words(&path.display().to_string());
        match error {
            FileError::Redb(redb::Error::DatabaseAlreadyOpen) => ToolError::InUse(words),
            _ => ToolError::File(words),
        }
    })
}

fn copy(bytes: &[u8]) -> Result<File, FileError> {
    if bytes.is_empty() {
        return Err(FileError::Redb(redb::Error::Corrupted("it is empty".to_owned())));
    }
    let backend = InMemoryBackend::new();
    backend.set_len(bytes.len() as u64)?;
    backend.write(0, bytes)?;
    File::open(backend)
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
