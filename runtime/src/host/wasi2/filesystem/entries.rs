//! Listing a folder.

use std::collections::VecDeque;
use std::sync::Arc;

use cap_std::fs::Dir;

use super::files::descriptor_type;
use super::{FileDescriptor, TYPES, answer, on_disk};
use crate::host::canonical::{Resource, Typed, number};
use crate::host::wasi::descriptors::Open;
use crate::host::wasi::{folders, rights};
use crate::host::{Call, Flat, Stop};

/// Entries that are read at a time.
const ENTRIES: usize = 128;

/// A `directory-entry-stream`.
#[derive(Debug)]
struct EntryStream {
    dir: Arc<Dir>,
    /// That the system has the folder open, for as long as the stream does.
    _open: Option<Arc<Open>>,
    /// Where to go on.
    cookie: u64,
    /// What was read and not taken: type and name.
    entries: VecDeque<(u8, String)>,
    is_last: bool,
}

impl Resource for EntryStream {
    fn memory_bytes(&self) -> usize {
        let names: usize = self.entries.iter().map(|(_, name)| name.capacity()).sum();
        names + self.entries.capacity() * size_of::<(u8, String)>()
    }
}

impl Typed for EntryStream {
    const NUMBER: u32 = number(TYPES, "directory-entry-stream");
}

/// `read-directory(self) -> result<directory-entry-stream, error-code>`
pub(super) fn read_directory(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let folder = call.borrowed::<FileDescriptor>(1)?.0.folder(rights::FD_READDIR);
    let stream = folder.map(|(folder, _)| EntryStream {
        dir: Arc::clone(&folder.dir),
        _open: folder.open.clone(),
        cookie: 0,
        entries: VecDeque::new(),
        is_last: false,
    });
    let own = stream.map_err(Stop::from).and_then(|stream| call.give(stream));
    answer(call, 2, own)
}

/// `read-directory-entry(self) -> result<option<directory-entry>, error-code>`
pub(super) fn read_directory_entry(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<EntryStream>(1)?;
    let stream = call.borrowed::<EntryStream>(1)?;
    if !stream.entries.is_empty() || stream.is_last {
        let entry = stream.entries.pop_front();
        call.context.ports.resources_mut().count(representation)?;
        return answer(call, 2, Ok(entry));
    }
    let (dir, cookie) = (Arc::clone(&stream.dir), stream.cookie);
    let work = move || {
        let mut entries = VecDeque::new();
        let (cookie, is_last) = folders::list(&dir, cookie, |entry| {
            if !matches!(entry.name, "." | "..") {
                entries.push_back((descriptor_type(entry.ty), entry.name.to_owned()));
            }
            entries.len() < ENTRIES
        })?;
        Ok((entries, cookie, is_last))
    };
    on_disk(call, 2, Ok(work), move |call, (entries, cookie, is_last)| {
        let stream = call.context.ports.resource::<EntryStream>(representation)?;
        (stream.entries, stream.cookie, stream.is_last) = (entries, cookie, is_last);
        let entry = stream.entries.pop_front();
        call.context.ports.resources_mut().count(representation)?;
        Ok(entry)
    })
}
