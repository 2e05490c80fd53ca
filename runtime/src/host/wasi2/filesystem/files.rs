//! What is done with a descriptor itself.

use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{FileType, Timespec};
use xxhash_rust::xxh3::xxh3_128;

use super::{FileDescriptor, Form, Wasi2, answer, descriptor, just_on_disk, on_disk, refused, refused_file};
use crate::host::canonical::{Own, Typed};
use crate::host::wasi::descriptors::{Descriptor, File, Kind};
use crate::host::wasi::disk::begin;
use crate::host::wasi::files::{self, TRANSFER_BYTES_MAX, To};
use crate::host::wasi::stat::{self, Change, FDFLAGS_DSYNC, FDFLAGS_RSYNC, FDFLAGS_SYNC, Stat, Times};
use crate::host::wasi::{Errno, rights};
use crate::host::wasi2::streams::{InputStream, OpenFile, OutputStream};
use crate::host::{Call, Flat, Stop};

/// `descriptor-flags`
pub(super) const READ: u32 = 1 << 0;
pub(super) const WRITE: u32 = 1 << 1;
pub(super) const FILE_INTEGRITY_SYNC: u32 = 1 << 2;
pub(super) const DATA_INTEGRITY_SYNC: u32 = 1 << 3;
pub(super) const REQUESTED_WRITE_SYNC: u32 = 1 << 4;
pub(super) const MUTATE_DIRECTORY: u32 = 1 << 5;

/// A `datetime` or `instant`: seconds and nanoseconds. Both look alike as long as there is no time before 1970.
type Time = Option<(i64, u32)>;

/// A `descriptor-stat`: type, links, size, times of access, modification and change of status.
pub(super) type DescriptorStat<F> = (<F as Form>::DescriptorType, u64, u64, Time, Time, Time);

/// What is known about something on the disk.
pub(super) fn stat_of<F: Form>(stat: &Stat) -> DescriptorStat<F> {
    let time = |time: Timespec| {
        let seconds = if F::IS_BEFORE_1970 { time.tv_sec } else { time.tv_sec.max(0) };
        Some((seconds, u32::try_from(time.tv_nsec).unwrap_or(0)))
    };
    let Times { accessed, modified, changed } = stat.times;
    (F::descriptor_type(stat.ty), stat.names, stat.bytes, time(accessed), time(modified), time(changed))
}

/// A `metadata-hash-value`: the same for what is the same on the disk.
pub(super) fn hash_of(stat: &Stat) -> (u64, u64) {
    let mut identity = [0; 16];
    identity[..8].copy_from_slice(&stat.device.to_le_bytes());
    identity[8..].copy_from_slice(&stat.number.to_le_bytes());
    let hash = xxh3_128(&identity);
    (hash as u64, (hash >> 64) as u64)
}

/// The file that is argument 1, for a stream; it has to have that right.
pub(in crate::host) fn open_file<F: Form>(call: &mut Call<'_>, right: u64) -> Result<Result<OpenFile, Errno>, Stop> {
    let file = file_of(descriptor::<F>(call, 1)?, right);
    Ok(file.map(|file| OpenFile { file: file.contents.clone(), _open: Arc::clone(&file.open) }))
}

/// The file, if it has that right; to write below a grant that does not allow it is not permitted.
fn file_of(descriptor: &Descriptor, right: u64) -> Result<&File, Errno> {
    descriptor.file(right).map_err(|errno| match errno {
        Errno::BADF if right == rights::FD_WRITE && !descriptor.may_change() => Errno::PERM,
        Errno::ISDIR if right == rights::FD_WRITE => Errno::BADF,
        errno => refused(errno),
    })
}

/// Opens a stream on the file, which has to have that right.
fn via_stream<T: Typed>(
    call: &mut Call<'_>,
    index: usize,
    right: u64,
    stream: impl FnOnce(OpenFile) -> Result<T, Errno>,
) -> Result<Flat, Stop> {
    let stream = open_file::<Wasi2>(call, right)?.and_then(stream);
    let own: Result<Own, Stop> = stream.map_err(Stop::from).and_then(|stream| call.give(stream));
    answer::<Wasi2, _>(call, index, own)
}

/// `read-via-stream(self, offset) -> result<input-stream, error-code>`
pub(super) fn read_via_stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let at = call.args.u64(2);
    via_stream(call, 3, rights::FD_READ, |file| Ok(InputStream::File(file, files::offset(at)?)))
}

/// `write-via-stream(self, offset) -> result<output-stream, error-code>`
pub(super) fn write_via_stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let at = call.args.u64(2);
    via_stream(call, 3, rights::FD_WRITE, |file| Ok(OutputStream::File(file, To::Offset(files::offset(at)?))))
}

/// `append-via-stream(self) -> result<output-stream, error-code>`
pub(super) fn append_via_stream(call: &mut Call<'_>) -> Result<Flat, Stop> {
    via_stream(call, 2, rights::FD_WRITE, |file| Ok(OutputStream::File(file, To::End)))
}

/// `advise(self, offset, length, advice) -> result<_, error-code>`
pub(super) fn advise<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let (at, bytes, advice) = (call.args.u64(2), call.args.u64(3), call.case(4, 6)?);
    let work = files::advise(descriptor::<F>(call, 1)?, at, bytes, advice).map_err(refused_file);
    just_on_disk::<F>(call, 5, work)
}

/// `sync-data(self) -> result<_, error-code>`
pub(super) fn sync_data<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let work = files::sync_data(descriptor::<F>(call, 1)?);
    just_on_disk::<F>(call, 2, work)
}

/// `sync(self) -> result<_, error-code>`
pub(super) fn sync<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let work = files::sync(descriptor::<F>(call, 1)?);
    just_on_disk::<F>(call, 2, work)
}

/// `get-flags(self) -> result<descriptor-flags, error-code>`
pub(super) fn get_flags<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let FileDescriptor { descriptor, mutates, .. } = call.borrowed::<FileDescriptor<F>>(1)?;
    let has = |right: u64, flag: u32| if descriptor.base & right == 0 { 0 } else { flag };
    let opened = if let Kind::File(file) = &descriptor.kind { file.flags } else { 0 };
    let with = |flags: u16, flag: u32| if opened & flags == 0 { 0 } else { flag };
    let flags = has(rights::FD_READ | rights::FD_READDIR, READ)
        | has(rights::FD_WRITE, WRITE)
        | if *mutates { has(rights::PATH_CREATE_FILE, MUTATE_DIRECTORY) } else { 0 }
        | with(FDFLAGS_SYNC, FILE_INTEGRITY_SYNC)
        | with(FDFLAGS_DSYNC, DATA_INTEGRITY_SYNC)
        | with(FDFLAGS_RSYNC, REQUESTED_WRITE_SYNC);
    answer::<F, _>(call, 2, Ok(flags as u8))
}

/// `get-type(self) -> result<descriptor-type, error-code>`
pub(super) fn get_type<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let ty = match descriptor::<F>(call, 1)?.kind {
        Kind::File(_) => FileType::RegularFile,
        Kind::Folder(_) => FileType::Directory,
        Kind::Stream(_) | Kind::Rpc(_) => FileType::Unknown,
    };
    answer::<F, _>(call, 2, Ok(F::descriptor_type(ty)))
}

/// `set-size(self, size) -> result<_, error-code>`
pub(super) fn set_size<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let bytes = call.args.u64(2);
    let work = files::set_size(descriptor::<F>(call, 1)?, bytes).map_err(|errno| match errno {
        // As ftruncate(2) says of a file that is not open for writing.
        Errno::NOTCAPABLE => Errno::INVAL,
        errno => refused_file(errno),
    });
    just_on_disk::<F>(call, 3, work)
}

/// The `new-timestamp`s of arguments `index` to `index + 5`: of access and of modification.
pub(super) fn changes<F: Form>(call: &Call<'_>, index: usize) -> Result<Result<[Change; 2], Errno>, Stop> {
    let change = |index| {
        Ok::<_, Stop>(match call.case(index, 3)? {
            0 => Ok(Change::Keep),
            1 => Ok(Change::Now),
            _ => {
                let (seconds, nanoseconds) = (call.args.u64(index + 1).cast_signed(), call.args.u32(index + 2));
                if seconds < 0 && !F::IS_BEFORE_1970 { Err(Errno::OVERFLOW) } else { Change::to(seconds, nanoseconds) }
            }
        })
    };
    let (access, modification) = (change(index)?, change(index + 3)?);
    Ok(access.and_then(|access| Ok([access, modification?])))
}

/// `set-times(self, data-access-timestamp, data-modification-timestamp) -> result<_, error-code>`
pub(super) fn set_times<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let changes = changes::<F>(call, 2)?;
    let descriptor = descriptor::<F>(call, 1)?;
    let work = changes.and_then(|changes| stat::set_times(descriptor, changes));
    just_on_disk::<F>(call, 8, work)
}

/// `read(self, length, offset) -> result<tuple<list<u8>, bool>, error-code>`: whether there is nothing from that offset on.
pub(super) fn read(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let (bytes_max, at) = (call.args.u64(2).min(TRANSFER_BYTES_MAX) as usize, call.args.u64(3));
    let descriptor = descriptor::<Wasi2>(call, 1)?;
    let file = descriptor.file(rights::FD_READ).map_err(refused_file);
    let file = file.and_then(|file| Ok((file.contents.clone(), files::offset(at)?)));
    match file {
        Ok((file, at)) => files::read_then(call, file, Some(at), bytes_max, move |call, bytes| {
            let result = bytes.map(|bytes| {
                let is_end = bytes.is_empty() && bytes_max > 0;
                (Bytes::from(bytes), is_end)
            });
            answer::<Wasi2, _>(call, 4, result.map_err(Stop::from))
        }),
        Err(errno) => answer::<Wasi2, (Bytes, bool)>(call, 4, Err(errno.into())),
    }
}

/// `write(self, buffer: list<u8>, offset) -> result<filesize, error-code>`
pub(super) fn write(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let at = call.args.u64(4);
    let bytes = call.bytes(2)?;
    let bytes = bytes[..bytes.len().min(TRANSFER_BYTES_MAX as usize)].to_vec();
    let descriptor = descriptor::<Wasi2>(call, 1)?;
    let file = file_of(descriptor, rights::FD_WRITE).and_then(|file| Ok((file.contents.clone(), files::offset(at)?)));
    let work = file.map(|(file, at)| move || file.write(To::Offset(at), &bytes));
    on_disk::<Wasi2, _, _>(call, 5, work, |_, count| Ok(count as u64))
}

/// `stat(self) -> result<descriptor-stat, error-code>`
pub(super) fn stat<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let work = stat::stat_of(descriptor::<F>(call, 1)?);
    on_disk::<F, _, _>(call, 2, work, |_, stat| Ok(stat_of::<F>(&stat)))
}

/// `metadata-hash(self) -> result<metadata-hash-value, error-code>`
pub(super) fn metadata_hash<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let work = stat::stat_of(descriptor::<F>(call, 1)?);
    on_disk::<F, _, _>(call, 2, work, |_, stat| Ok(hash_of(&stat)))
}

/// `is-same-object(self, other: borrow<descriptor>) -> bool`
pub(super) fn is_same_object<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let one = stat::stat_of(descriptor::<F>(call, 1)?);
    let other = stat::stat_of(descriptor::<F>(call, 2)?);
    let (Ok(one), Ok(other)) = (one, other) else { return Ok(Flat::from(false)) };
    let work = move || matches!((one(), other()), (Ok(one), Ok(other)) if hash_of(&one) == hash_of(&other));
    Err(begin(call, work, |_, is_same| Ok(Flat::from(is_same))))
}
