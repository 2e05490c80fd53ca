//! `wasi:filesystem`: granted folders and what is below them. What is done with the disk is shared with preview 1, and most functions with WASI 0.3 ([`Form`]).

mod entries;
mod files;
mod paths;

use std::fmt;
use std::marker::PhantomData;

use awsm_abi::types::ValType::{I32, I64};
use rustix::fs::FileType;

pub(in crate::host) use entries::{EntryStream, entries_then};
pub(in crate::host) use files::open_file;

use super::{FOLDERS, error};
use crate::host::Effect::{External, Stream};
use crate::host::canonical::{Lower, Resource, Typed, canonical, enums, number};
use crate::host::wasi::descriptors::Descriptor;
use crate::host::wasi::disk::begin;
use crate::host::wasi::{Descriptors, Errno, Grant};
use crate::host::wasi3::Wasi3;
use crate::host::{Call, Flat, HostFunction, Stop};

const TYPES: &str = "wasi:filesystem/types@0.2";

/// What only this version has.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[method]descriptor.read-via-stream", &[I32, I32, I64, I32], &[], Stream, files::read_via_stream),
    canonical(TYPES, "[method]descriptor.write-via-stream", &[I32, I32, I64, I32], &[], Stream, files::write_via_stream),
    canonical(TYPES, "[method]descriptor.append-via-stream", &[I32, I32, I32], &[], Stream, files::append_via_stream),
    canonical(TYPES, "[method]descriptor.read", &[I32, I32, I64, I64, I32], &[I32], External, files::read),
    canonical(TYPES, "[method]descriptor.write", &[I32, I32, I32, I32, I64, I32], &[], External, files::write),
    canonical(TYPES, "[method]descriptor.read-directory", &[I32, I32, I32], &[], Stream, entries::read_directory),
    canonical(
        TYPES,
        "[method]directory-entry-stream.read-directory-entry",
        &[I32, I32, I32],
        &[I32],
        External,
        entries::read_directory_entry,
    ),
    canonical(TYPES, "filesystem-error-code", &[I32, I32, I32], &[], Stream, error::filesystem_error_code),
];

/// What it has as other versions do.
pub(in crate::host) const SHARED: &[HostFunction] = Wasi2::SHARED;

/// A version's form of the interfaces.
pub(in crate::host) trait Form: fmt::Debug + Sized + 'static {
    /// Module name of `types`.
    const TYPES: &'static str;
    /// Module name of `preopens`.
    const PREOPENS: &'static str;
    /// Its place among the forms: in that order the granted folders stand, once for each form.
    const PLACE: u32;
    /// Whether a time may lie before 1970.
    const IS_BEFORE_1970: bool;
    /// An `error-code`.
    type ErrorCode: Lower + 'static;
    /// A `descriptor-type`.
    type DescriptorType: Lower + 'static;

    /// The `error-code` of an error.
    fn error_code(errno: Errno) -> Self::ErrorCode;

    /// The `descriptor-type` of a file.
    fn descriptor_type(ty: FileType) -> Self::DescriptorType;

    /// The functions that all forms have.
    const SHARED: &'static [HostFunction] = &[
        canonical(
            Self::TYPES,
            "[method]descriptor.advise",
            &[I32, I32, I64, I64, I32, I32],
            &[],
            External,
            files::advise::<Self>,
        ),
        canonical(Self::TYPES, "[method]descriptor.sync-data", &[I32, I32, I32], &[], External, files::sync_data::<Self>),
        canonical(Self::TYPES, "[method]descriptor.get-flags", &[I32, I32, I32], &[], Stream, files::get_flags::<Self>),
        canonical(Self::TYPES, "[method]descriptor.get-type", &[I32, I32, I32], &[], Stream, files::get_type::<Self>),
        canonical(Self::TYPES, "[method]descriptor.set-size", &[I32, I32, I64, I32], &[], External, files::set_size::<Self>),
        canonical(
            Self::TYPES,
            "[method]descriptor.set-times",
            &[I32, I32, I32, I64, I32, I32, I64, I32, I32],
            &[],
            External,
            files::set_times::<Self>,
        ),
        canonical(Self::TYPES, "[method]descriptor.sync", &[I32, I32, I32], &[], External, files::sync::<Self>),
        canonical(
            Self::TYPES,
            "[method]descriptor.create-directory-at",
            &[I32, I32, I32, I32, I32],
            &[],
            External,
            paths::create_directory_at::<Self>,
        ),
        canonical(Self::TYPES, "[method]descriptor.stat", &[I32, I32, I32], &[], External, files::stat::<Self>),
        canonical(
            Self::TYPES,
            "[method]descriptor.stat-at",
            &[I32, I32, I32, I32, I32, I32],
            &[],
            External,
            paths::stat_at::<Self>,
        ),
        canonical(
            Self::TYPES,
            "[method]descriptor.set-times-at",
            &[I32, I32, I32, I32, I32, I32, I64, I32, I32, I64, I32, I32],
            &[],
            External,
            paths::set_times_at::<Self>,
        ),
        canonical(
            Self::TYPES,
            "[method]descriptor.link-at",
            &[I32, I32, I32, I32, I32, I32, I32, I32, I32],
            &[],
            External,
            paths::link_at::<Self>,
        ),
        canonical(
            Self::TYPES,
            "[method]descriptor.open-at",
            &[I32, I32, I32, I32, I32, I32, I32, I32],
            &[],
            External,
            paths::open_at::<Self>,
        ),
        canonical(
            Self::TYPES,
            "[method]descriptor.readlink-at",
            &[I32, I32, I32, I32, I32],
            &[I32],
            External,
            paths::readlink_at::<Self>,
        ),
        canonical(
            Self::TYPES,
            "[method]descriptor.remove-directory-at",
            &[I32, I32, I32, I32, I32],
            &[],
            External,
            paths::remove_directory_at::<Self>,
        ),
        canonical(
            Self::TYPES,
            "[method]descriptor.rename-at",
            &[I32, I32, I32, I32, I32, I32, I32, I32],
            &[],
            External,
            paths::rename_at::<Self>,
        ),
        canonical(
            Self::TYPES,
            "[method]descriptor.symlink-at",
            &[I32, I32, I32, I32, I32, I32, I32],
            &[],
            External,
            paths::symlink_at::<Self>,
        ),
        canonical(
            Self::TYPES,
            "[method]descriptor.unlink-file-at",
            &[I32, I32, I32, I32, I32],
            &[],
            External,
            paths::unlink_file_at::<Self>,
        ),
        canonical(
            Self::TYPES,
            "[method]descriptor.is-same-object",
            &[I32, I32, I32],
            &[I32],
            External,
            files::is_same_object::<Self>,
        ),
        canonical(Self::TYPES, "[method]descriptor.metadata-hash", &[I32, I32, I32], &[], External, files::metadata_hash::<Self>),
        canonical(
            Self::TYPES,
            "[method]descriptor.metadata-hash-at",
            &[I32, I32, I32, I32, I32, I32],
            &[],
            External,
            paths::metadata_hash_at::<Self>,
        ),
        canonical(Self::PREOPENS, "get-directories", &[I32, I32], &[I32], Stream, get_directories::<Self>),
    ];
}

/// The form of WASI 0.2.
#[derive(Debug)]
pub(in crate::host) enum Wasi2 {}

impl Form for Wasi2 {
    const TYPES: &'static str = TYPES;
    const PREOPENS: &'static str = "wasi:filesystem/preopens@0.2";
    const PLACE: u32 = 0;
    const IS_BEFORE_1970: bool = false;
    type ErrorCode = ErrorCode;
    type DescriptorType = u8;

    fn error_code(errno: Errno) -> ErrorCode {
        errno.into()
    }

    fn descriptor_type(ty: FileType) -> u8 {
        match ty {
            FileType::Unknown => 0,
            FileType::BlockDevice => 1,
            FileType::CharacterDevice => 2,
            FileType::Directory => 3,
            FileType::Fifo => 4,
            FileType::Symlink => 5,
            FileType::RegularFile => 6,
            FileType::Socket => 7,
        }
    }
}

/// Whether opening with these `open-flags` and `descriptor-flags` leaves everything as it is, and so does what is opened.
pub(super) const fn only_reads(open_flags: u32, descriptor_flags: u32) -> bool {
    open_flags & (paths::CREATE | paths::TRUNCATE) == 0 && descriptor_flags & files::WRITE == 0
}

/// A `descriptor`, in a version's form.
#[derive(Debug)]
pub(in crate::host) struct FileDescriptor<F> {
    descriptor: Descriptor,
    /// Whether it says of itself that a folder can be changed through it.
    mutates: bool,
    form: PhantomData<fn() -> F>,
}

impl<F: Form> FileDescriptor<F> {
    const fn new(descriptor: Descriptor, mutates: bool) -> FileDescriptor<F> {
        FileDescriptor { descriptor, mutates, form: PhantomData }
    }

    /// That of a granted folder.
    pub(in crate::host) fn granted(index: usize, grant: &Grant, descriptors: &Descriptors) -> FileDescriptor<F> {
        let descriptor = Descriptor::granted(index, grant, descriptors.overlay(index));
        let mutates = descriptor.may_change();
        FileDescriptor::new(descriptor, mutates)
    }
}

impl<F: Form> Resource for FileDescriptor<F> {}

impl<F: Form> Typed for FileDescriptor<F> {
    const NUMBER: u32 = number(F::TYPES, "descriptor");
}

/// The descriptor that is an argument.
pub(in crate::host) fn descriptor<'c, F: Form>(call: &'c mut Call<'_>, index: usize) -> Result<&'c Descriptor, Stop> {
    Ok(&call.borrowed::<FileDescriptor<F>>(index)?.descriptor)
}

/// Whether what a function does is private to the invocation: its first argument is a file or folder that the invocation may change for itself.
pub(in crate::host) fn is_private(call: &mut Call<'_>, function: &HostFunction) -> bool {
    if function.name.starts_with("[method]directory-entry-stream.") {
        return call.borrowed::<EntryStream>(1).is_ok_and(|stream| stream.is_scratch());
    }
    if function.module == Wasi2::TYPES {
        return descriptor::<Wasi2>(call, 1).is_ok_and(Descriptor::is_scratch);
    }
    function.module == Wasi3::TYPES && descriptor::<Wasi3>(call, 1).is_ok_and(Descriptor::is_scratch)
}

/// An `error-code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::host) enum ErrorCode {
    Access = 0,
    WouldBlock = 1,
    Already = 2,
    BadDescriptor = 3,
    Busy = 4,
    Quota = 6,
    Exist = 7,
    FileTooLarge = 8,
    IllegalByteSequence = 9,
    Interrupted = 11,
    Invalid = 12,
    Io = 13,
    IsDirectory = 14,
    Loop = 15,
    TooManyLinks = 16,
    NameTooLong = 18,
    NoDevice = 19,
    NoEntry = 20,
    InsufficientMemory = 22,
    InsufficientSpace = 23,
    NotDirectory = 24,
    NotEmpty = 25,
    NotRecoverable = 26,
    Unsupported = 27,
    NoSuchDevice = 29,
    Overflow = 30,
    NotPermitted = 31,
    Pipe = 32,
    ReadOnly = 33,
    InvalidSeek = 34,
    TextFileBusy = 35,
    CrossDevice = 36,
}

enums! { ErrorCode }

impl From<Errno> for ErrorCode {
    fn from(errno: Errno) -> ErrorCode {
        match errno {
            Errno::ACCES => ErrorCode::Access,
            Errno::AGAIN => ErrorCode::WouldBlock,
            Errno::ALREADY => ErrorCode::Already,
            Errno::BADF => ErrorCode::BadDescriptor,
            Errno::BUSY => ErrorCode::Busy,
            Errno::DQUOT => ErrorCode::Quota,
            Errno::EXIST => ErrorCode::Exist,
            Errno::FBIG => ErrorCode::FileTooLarge,
            Errno::ILSEQ => ErrorCode::IllegalByteSequence,
            Errno::INTR => ErrorCode::Interrupted,
            Errno::INVAL => ErrorCode::Invalid,
            Errno::ISDIR => ErrorCode::IsDirectory,
            Errno::LOOP => ErrorCode::Loop,
            Errno::MLINK => ErrorCode::TooManyLinks,
            Errno::NAMETOOLONG => ErrorCode::NameTooLong,
            Errno::NODEV => ErrorCode::NoDevice,
            Errno::NOENT => ErrorCode::NoEntry,
            // There is no case for too many descriptors.
            Errno::NOMEM | Errno::MFILE | Errno::NFILE => ErrorCode::InsufficientMemory,
            Errno::NOSPC => ErrorCode::InsufficientSpace,
            Errno::NOTDIR => ErrorCode::NotDirectory,
            Errno::NOTEMPTY => ErrorCode::NotEmpty,
            Errno::NOTRECOVERABLE => ErrorCode::NotRecoverable,
            Errno::NOTSUP | Errno::NOSYS => ErrorCode::Unsupported,
            Errno::NXIO => ErrorCode::NoSuchDevice,
            Errno::OVERFLOW => ErrorCode::Overflow,
            Errno::PERM | Errno::NOTCAPABLE => ErrorCode::NotPermitted,
            Errno::PIPE => ErrorCode::Pipe,
            Errno::ROFS => ErrorCode::ReadOnly,
            Errno::SPIPE => ErrorCode::InvalidSeek,
            Errno::TXTBSY => ErrorCode::TextFileBusy,
            Errno::XDEV => ErrorCode::CrossDevice,
            _ => ErrorCode::Io,
        }
    }
}

/// Gives what came of it to the component, at the address that is argument `index`.
fn answer<F: Form, T: Lower>(call: &mut Call<'_>, index: usize, result: Result<T, Stop>) -> Result<Flat, Stop> {
    match result {
        Ok(value) => call.lower(index, Ok::<T, F::ErrorCode>(value)),
        Err(Stop::Errno(errno)) => call.lower(index, Err::<T, _>(F::error_code(errno))),
        Err(stop) => Err(stop),
    }
}

/// Does `work` that may wait for a disk, if there is any to do, and gives what `finish` makes of it to the component, as argument `index` wants it.
fn on_disk<F: Form, T: Send + 'static, U: Lower + 'static>(
    call: &mut Call<'_>,
    index: usize,
    work: Result<impl FnOnce() -> Result<T, Errno> + Send + 'static, Errno>,
    finish: impl FnOnce(&mut Call<'_>, T) -> Result<U, Stop> + Send + 'static,
) -> Result<Flat, Stop> {
    match work {
        Ok(work) => Err(begin(call, work, move |call, result| {
            let result = result.map_err(Stop::from).and_then(|value| finish(call, value));
            answer::<F, _>(call, index, result)
        })),
        Err(errno) => answer::<F, U>(call, index, Err(refused(errno).into())),
    }
}

/// What a component is told where its grant does not allow something: not what it would be told of a disk that is read-only.
const fn refused(errno: Errno) -> Errno {
    if matches!(errno, Errno::ROFS) { Errno::PERM } else { errno }
}

/// The same where a file is wanted: to what only files can do, a folder is no descriptor at all.
const fn refused_file(errno: Errno) -> Errno {
    if matches!(errno, Errno::ISDIR) { Errno::BADF } else { refused(errno) }
}

/// The same where there is nothing to finish.
fn just_on_disk<F: Form>(
    call: &mut Call<'_>,
    index: usize,
    work: Result<impl FnOnce() -> Result<(), Errno> + Send + 'static, Errno>,
) -> Result<Flat, Stop> {
    on_disk::<F, _, _>(call, index, work, |_, ()| Ok(()))
}

/// `get-directories() -> list<tuple<descriptor, string>>`
fn get_directories<F: Form>(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let names: Vec<String> = call.context.ports.grants().iter().map(|grant| grant.name().to_owned()).collect();
    let mut folders = Vec::with_capacity(names.len());
    // Far fewer.
    let first = FOLDERS + F::PLACE * names.len() as u32;
    for (representation, name) in (first..).zip(names) {
        folders.push((call.give_standing::<FileDescriptor<F>>(representation)?, name));
    }
    call.lower(1, folders)
}
