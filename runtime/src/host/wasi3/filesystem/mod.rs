//! `wasi:filesystem`: what differs from [WASI 0.2](crate::host::wasi2::filesystem), where the bodies of most functions are.

mod streams;
#[cfg(test)]
mod tests;

use awsm_abi::types::ValType::{I32, I64};
use rustix::fs::FileType;

use crate::host::Effect::Stream;
use crate::host::canonical::{Lower, Lowering, Place, canonical, variant};
use crate::host::wasi::Errno;
use crate::host::wasi2::filesystem::{self, Form};
use crate::host::{HostFunction, Stop};

const TYPES: &str = "wasi:filesystem/types@0.3";

/// What only this version has: streams and futures of which the host has one end.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(TYPES, "[method]descriptor.read-via-stream", &[I32, I32, I64, I32, I32], &[], Stream, streams::read_via_stream),
    canonical(TYPES, "[method]descriptor.write-via-stream", &[I32, I32, I32, I64, I32], &[], Stream, streams::write_via_stream),
    canonical(TYPES, "[method]descriptor.append-via-stream", &[I32, I32, I32, I32], &[], Stream, streams::append_via_stream),
    canonical(TYPES, "[method]descriptor.read-directory", &[I32, I32, I32, I32], &[], Stream, streams::read_directory),
];

/// What it has as other versions do.
pub(in crate::host) const SHARED: &[HostFunction] = Wasi3::SHARED;

/// The form of WASI 0.3.
#[derive(Debug)]
pub(in crate::host) enum Wasi3 {}

impl Form for Wasi3 {
    const TYPES: &'static str = TYPES;
    const PREOPENS: &'static str = "wasi:filesystem/preopens@0.3";
    const PLACE: u32 = 1;
    const IS_BEFORE_1970: bool = true;
    type ErrorCode = Case;
    type DescriptorType = Case;

    /// The cases are those of WASI 0.2 but for `would-block`.
    fn error_code(errno: Errno) -> Case {
        match filesystem::ErrorCode::from(errno) {
            filesystem::ErrorCode::Access => Case(0),
            filesystem::ErrorCode::WouldBlock => Case(OTHER_ERROR),
            code => Case(code as u8 - 1),
        }
    }

    fn descriptor_type(ty: FileType) -> Case {
        Case(match ty {
            FileType::BlockDevice => 0,
            FileType::CharacterDevice => 1,
            FileType::Directory => 2,
            FileType::Fifo => 3,
            FileType::Symlink => 4,
            FileType::RegularFile => 5,
            FileType::Socket => 6,
            FileType::Unknown => 7,
        })
    }
}

/// The case `other` of an `error-code`.
const OTHER_ERROR: u8 = 36;

/// Which case it is of a variant whose last case is `other(option<string>)`. The host says no text with that, so it needs no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) struct Case(u8);

impl Lower for Case {
    const SIZE: u32 = variant::size(<Option<String> as Lower>::SIZE, <Option<String> as Lower>::ALIGN);
    const ALIGN: u32 = <Option<String> as Lower>::ALIGN;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        to.case(place, self.0);
        Ok(())
    }
}
