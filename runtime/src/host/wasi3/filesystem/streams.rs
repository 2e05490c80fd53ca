//! Contents of files and entries of folders as streams: the host's ends of them. What fails is said in the future that comes with the stream.

use std::sync::Arc;

use super::Wasi3;
use crate::host::canonical::Resource;
use crate::host::wasi::files::{self, To};
use crate::host::wasi::{Errno, rights};
use crate::host::wasi2::filesystem::{EntryStream, Form as _, descriptor, entries_then, open_file};
use crate::host::wasi2::streams::{InputStream, OutputStream};
use crate::host::wasi3::ends::{DROPPED, End, Outcome};
use crate::host::{Call, Flat, Stop};

/// `read-via-stream(self, offset) -> tuple<stream<u8>, future<result<_, error-code>>>`
pub(super) fn read_via_stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let at = call.args.u64(2);
    let file = open_file::<Wasi3>(call, rights::FD_READ)?;
    let stream = file.and_then(|file| Ok(InputStream::File(file, files::offset(at)?)));
    begin(call, (3, 4), stream, InputStream::Failed, |stream, outcome| End::Source { stream, outcome })
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
    begin(call, (2, future), stream, OutputStream::Failed, |stream, outcome| End::Sink { stream, outcome })
}

/// `read-directory(self) -> tuple<stream<directory-entry>, future<result<_, error-code>>>`
pub(super) fn read_directory(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let stream = EntryStream::of(descriptor::<Wasi3>(call, 1)?);
    begin(call, (2, 3), stream, EntryStream::EMPTY, |stream, outcome| End::Entries { stream, outcome })
}

/// Shares the ends of a transfer, whose numbers are arguments: that of the stream, and that of the future. Where there is nothing to transfer, the stream is one that has failed.
fn begin<T: Resource>(
    call: &mut Call<'_>,
    (data, future): (usize, usize),
    stream: Result<T, Errno>,
    failed: T,
    end: impl FnOnce(u32, Arc<Outcome>) -> End,
) -> Result<Flat, Stop> {
    let outcome = Arc::new(Outcome::default());
    let stream = stream.unwrap_or_else(|errno| {
        outcome.fail(errno);
        failed
    });
    let stream = call.context.ports.resources_mut().insert(Box::new(stream), None)?;
    call.share(call.args.u32(data), end(stream, Arc::clone(&outcome)))?;
    call.share(call.args.u32(future), End::Outcome(outcome))?;
    Ok(Flat::NONE)
}

/// The component reads entries of a folder, at most so many, to the address that is argument `index`. Their names need memory of the component.
pub(in crate::host::wasi3) fn read_entries(
    call: &mut Call<'_>,
    stream: u32,
    outcome: Arc<Outcome>,
    index: usize,
    count_max: u32,
) -> Result<Flat, Stop> {
    entries_then(call, stream, count_max as usize, move |call, result| {
        let entries = result.unwrap_or_else(|errno| {
            outcome.fail(errno);
            Vec::new()
        });
        match (entries.is_empty(), count_max) {
            (true, 0) => return Ok(Flat::from(0_u32)),
            (true, _) => {
                outcome.end(Ok(()));
                return Ok(Flat::from(DROPPED));
            }
            (false, _) => {}
        }
        // As many as a listing keeps at most.
        let count = entries.len() as u32;
        let entries = entries.into_iter().map(|(ty, name)| (Wasi3::descriptor_type(ty), name));
        call.lower_each(index, entries.collect())?;
        Ok(Flat::from(count << 4))
    })
}
