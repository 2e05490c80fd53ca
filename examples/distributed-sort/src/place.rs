//! Where a task's data are: objects with names, each a file below `/data` or a value of the key-value store.

use std::fs;
use std::path::{Path, PathBuf};

use sledge::kv;

/// Most bytes of one read or write of several values: what the store takes together, with room for its keys.
const TRANSFER_BYTES_MAX: usize = 7 << 19;
/// Most values that the store reads or writes together.
const VALUES_MAX: usize = 1_024;

/// Where objects are.
#[derive(Debug)]
pub enum Place {
    /// Files of a folder, read and written one after the other.
    Files(PathBuf),
    /// Values of the store. About `transfer` bytes are read or written at a time: one wait each.
    Store {
        /// The bucket.
        bucket: kv::Bucket,
        /// Bytes of a transfer.
        transfer: usize,
    },
}

impl Place {
    /// The one of that name: `files` or `kv`.
    ///
    /// # Errors
    /// When there is none of that name, or the server has no store.
    pub fn open(name: &str, transfer: usize) -> Result<Place, String> {
        match name {
            "files" => Ok(Place::Files(PathBuf::from("/data"))),
            "kv" => {
                let bucket = kv::open("sort").map_err(|error| error.to_string())?;
                Ok(Place::Store { bucket, transfer: transfer.clamp(1, TRANSFER_BYTES_MAX) })
            }
            _ => Err(format!("`place` is `{name}`; it has to be `files` or `kv`")),
        }
    }

    /// What these objects of about `bytes` each hold, one behind the other.
    ///
    /// # Errors
    /// When one of them is missing, or cannot be read.
    pub fn read(&self, names: &[String], bytes: usize) -> Result<Vec<u8>, String> {
        let found = names.iter().zip(self.find(names, bytes)?);
        let all: Vec<_> =
            found.map(|(name, found)| found.ok_or_else(|| format!("{name} is not there"))).collect::<Result<_, _>>()?;
        Ok(all.concat())
    }

    /// What `PREFIX-0`, `PREFIX-1` and so on hold, one behind the other, up to the first that is missing.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn read_all(&self, prefix: &str, bytes: usize) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        for first in (0_usize..).step_by(16) {
            let names: Vec<String> = (first..first + 16).map(|number| format!("{prefix}-{number}")).collect();
            for found in self.find(&names, bytes)? {
                let Some(found) = found else { return Ok(all) };
                all.extend(found);
            }
        }
        Ok(all)
    }

    fn find(&self, names: &[String], bytes: usize) -> Result<Vec<Option<Vec<u8>>>, String> {
        match self {
            Place::Files(folder) => names.iter().map(|name| read_file(&folder.join(name))).collect(),
            Place::Store { bucket, transfer } => {
                let together = (transfer / bytes.max(1)).clamp(1, VALUES_MAX);
                let mut all = Vec::with_capacity(names.len());
                for names in names.chunks(together) {
                    let found = bucket.get_many(names).map_err(|error| format!("{} and others: {error}", names[0]))?;
                    all.extend(found.into_iter().map(|entry| entry.map(|entry| entry.value)));
                }
                Ok(all)
            }
        }
    }

    /// Writes objects.
    ///
    /// # Errors
    /// When one of them cannot be written.
    pub fn write(&self, objects: &[(String, &[u8])]) -> Result<(), String> {
        match self {
            Place::Files(folder) => objects.iter().try_for_each(|(name, bytes)| {
                fs::write(folder.join(name), bytes).map_err(|error| format!("{name} cannot be written: {error}"))
            }),
            Place::Store { bucket, transfer } => {
                let mut rest = objects;
                while !rest.is_empty() {
                    let (mut bytes, mut count) = (0, 0);
                    while count < rest.len().min(VALUES_MAX) && (count == 0 || bytes + rest[count].1.len() <= *transfer) {
                        bytes += rest[count].1.len();
                        count += 1;
                    }
                    let (now, then) = rest.split_at(count);
                    bucket.set_many(now).map_err(|error| format!("{} and others: {error}", now[0].0))?;
                    rest = then;
                }
                Ok(())
            }
        }
    }
}

fn read_file(path: &Path) -> Result<Option<Vec<u8>>, String> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}
