//! Contents of files and entries of folders as streams: the host's ends of them. What fails is said in the future that comes with the stream.

use std::sync::Arc;

use super::{Case, Wasi3};
use crate::component_trap::ComponentTrap;
use crate::host::canonical::Resource;
use crate::host::wasi::files::{self, To};
use crate::host::wasi::{Errno, rights};
use crate::host::wasi2::error::Fault;
use crate::host::wasi2::filesystem::{EntryStream, Form as _, descriptor, entries_then, open_file};
use crate::host::wasi2::streams::{InputStream, OutputStream};
use crate::host::wasi3::ends::{self, ADDRESS, End, FaultCode, Moved, Outcome, Source, Transfer};
use crate::host::wasi3::pump;
use crate::host::{Call, Flat, Stop};

impl FaultCode for Case {
    fn of(fault: Fault) -> Case {
        Wasi3::error_code(if let Fault::Failed(errno) = fault { errno } else { Errno::IO })
    }
}

/// `read-via-stream(self, offset) -> tuple<stream<u8>, future<result<_, error-code>>>`
pub(super) fn read_via_stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let at = call.args.u64(2);
    let file = open_file::<Wasi3>(call, rights::FD_READ)?;
    let stream = file.and_then(|file| Ok(InputStream::File(file, files::offset(at)?)));
    let (stream, outcome) = begin(call, 4, stream, InputStream::Failed)?;
    call.share(call.args.u32(3), Arc::new(Source { stream, outcome }))?;
    Ok(Flat::NONE)
}

/// `write-via-stream(self, data: stream<u8>, offset) -> future<result<_, error-code>>`
pub(super) fn write_via_stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let at = call.args.u64(3);
    write(call, 4, files::offset(at).map(To::Offset))
}

/// `append-via-stream(self, data: stream<u8>) -> future<result<_, error-code>>`
pub(super) fn append_via_stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    write(call, 3, Ok(To::End))
}

/// What the component writes to the stream that is argument 2 goes to that place of the file.
fn write(call: &mut Call<'_>, future: usize, to: Result<To, Errno>) -> Result<Flat, Stop> {
    let file = open_file::<Wasi3>(call, rights::FD_WRITE)?;
    let stream = file.and_then(|file| Ok(OutputStream::File(file, to?)));
    let (stream, outcome) = begin(call, future, stream, OutputStream::Failed)?;
    pump::take(call, call.args.u32(2), stream, outcome)?;
    Ok(Flat::NONE)
}

/// `read-directory(self) -> tuple<stream<directory-entry>, future<result<_, error-code>>>`
pub(super) fn read_directory(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let stream = EntryStream::of(descriptor::<Wasi3>(call, 1)?);
    let (stream, outcome) = begin(call, 3, stream, EntryStream::EMPTY)?;
    call.share(call.args.u32(2), Arc::new(Entries { stream, outcome }))?;
    Ok(Flat::NONE)
}

/// Begins a transfer of a file or folder.
fn begin<T: Resource>(
    call: &mut Call<'_>,
    future: usize,
    stream: Result<T, Errno>,
    failed: T,
) -> Result<(u32, Arc<Outcome>), Stop> {
    ends::begin::<Case, _>(call, future, stream.map_err(Fault::Failed), failed)
}

/// Entries of a folder, which the component reads. Their names need memory of it.
#[derive(Debug)]
pub(super) struct Entries {
    /// The representation of the listing.
    pub(super) stream: u32,
    pub(super) outcome: Arc<Outcome>,
}

impl End for Entries {
    fn transfer(self: Arc<Self>, call: &mut Call<'_>, transfer: Transfer) -> Result<Flat, Stop> {
        let Transfer { count: count_max, writes: false, .. } = transfer else {
            return Err(ComponentTrap::NothingToResume.into());
        };
        entries_then(call, self.stream, count_max as usize, move |call, result| {
            let entries = result.unwrap_or_else(|errno| {
                self.outcome.end(Err(Fault::Failed(errno)));
                Vec::new()
            });
            if entries.is_empty() && count_max > 0 {
                self.outcome.end(Ok(()));
                return Ok(Moved::Dropped.into());
            }
            // As many as a listing keeps at most.
            let count = entries.len() as u32;
            let entries = entries.into_iter().map(|(ty, name)| (Wasi3::descriptor_type(ty), name));
            call.lower_each(ADDRESS, entries.collect())?;
            Ok(Moved::Values(count).into())
        })
    }

    fn close(&self, call: &mut Call<'_>) -> Result<(), Stop> {
        self.outcome.end(Ok(()));
        call.context.ports.drop_resource(self.stream)
    }
}
