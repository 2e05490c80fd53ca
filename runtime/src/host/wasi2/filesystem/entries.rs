//! Listing a folder.

use std::collections::VecDeque;
use std::sync::Arc;

use rustix::fs::FileType;

use super::{Form as _, TYPES, Wasi2, answer, descriptor};
use crate::host::canonical::{Resource, Typed, number};
use crate::host::wasi::contents::Base;
use crate::host::wasi::descriptors::{Descriptor, Open};
use crate::host::wasi::disk::begin;
use crate::host::wasi::{Errno, rights};
use crate::host::{Call, Flat, Stop};

/// Entries that are read at a time.
const ENTRIES: usize = 128;

/// An entry of a folder: type and name.
pub(in crate::host) type Listed = (FileType, String);

/// A `directory-entry-stream`, or what gives the entries of a `stream<directory-entry>`.
#[derive(Debug)]
pub(in crate::host) struct EntryStream {
    /// None where there is nothing to list.
    base: Option<Base>,
    /// That the system has the folder open, for as long as the stream does.
    _open: Option<Arc<Open>>,
    /// Where to go on.
    cookie: u64,
    /// What was read and not taken.
    entries: VecDeque<Listed>,
    is_last: bool,
}

impl EntryStream {
    /// A stream without entries.
    pub(in crate::host) const EMPTY: EntryStream =
        EntryStream { base: None, _open: None, cookie: 0, entries: VecDeque::new(), is_last: true };

    /// The entries of a folder, from the first.
    ///
    /// # Errors
    /// When it is no folder, or must not be listed.
    pub(in crate::host) fn of(descriptor: &Descriptor) -> Result<EntryStream, Errno> {
        let (folder, _) = descriptor.folder(rights::FD_READDIR)?;
        Ok(EntryStream { base: Some(folder.base.clone()), _open: folder.open.clone(), is_last: false, ..EntryStream::EMPTY })
    }
}

impl EntryStream {
    /// Whether it lists a folder that the invocation may change for itself.
    pub(super) const fn is_scratch(&self) -> bool {
        matches!(self.base, Some(Base::Scratch(_)))
    }
}

impl Resource for EntryStream {
    fn memory_bytes(&self) -> usize {
        let names: usize = self.entries.iter().map(|(_, name)| name.capacity()).sum();
        names + self.entries.capacity() * size_of::<Listed>()
    }
}

impl Typed for EntryStream {
    const NUMBER: u32 = number(TYPES, "directory-entry-stream");
}

/// Takes the next entries of a stream, at most so many, and goes on with them. None where at least one was wanted means that it is at its end.
pub(in crate::host) fn entries_then(
    call: &mut Call<'_>,
    representation: u32,
    count_max: usize,
    then: impl FnOnce(&mut Call<'_>, Result<Vec<Listed>, Errno>) -> Result<Flat, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    let stream = call.context.ports.resource::<EntryStream>(representation)?;
    let base = match &stream.base {
        Some(base) if stream.entries.is_empty() && !stream.is_last => base.clone(),
        _ => {
            let count = stream.entries.len().min(count_max);
            let entries = stream.entries.drain(..count).collect();
            call.context.ports.resources_mut().count(representation)?;
            return then(call, Ok(entries));
        }
    };
    let cookie = stream.cookie;
    let work = move || {
        let mut entries = VecDeque::new();
        let (cookie, is_last) = base.list(cookie, |entry| {
            if !matches!(entry.name, "." | "..") {
                entries.push_back((entry.ty, entry.name.to_owned()));
            }
            entries.len() < ENTRIES
        })?;
        Ok((entries, cookie, is_last))
    };
    Err(begin(call, work, move |call, listed| match listed {
        Ok(listed) => {
            let stream = call.context.ports.resource::<EntryStream>(representation)?;
            (stream.entries, stream.cookie, stream.is_last) = listed;
            entries_then(call, representation, count_max, then)
        }
        Err(errno) => then(call, Err(errno)),
    }))
}

/// `read-directory(self) -> result<directory-entry-stream, error-code>`
pub(super) fn read_directory(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let stream = EntryStream::of(descriptor::<Wasi2>(call, 1)?);
    let own = stream.map_err(Stop::from).and_then(|stream| call.give(stream));
    answer::<Wasi2, _>(call, 2, own)
}

/// `read-directory-entry(self) -> result<option<directory-entry>, error-code>`
pub(super) fn read_directory_entry(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let representation = call.representation::<EntryStream>(1)?;
    entries_then(call, representation, 1, |call, result| {
        let entry = result.map(|mut entries| entries.pop().map(|(ty, name)| (Wasi2::descriptor_type(ty), name)));
        answer::<Wasi2, _>(call, 2, entry.map_err(Stop::from))
    })
}
