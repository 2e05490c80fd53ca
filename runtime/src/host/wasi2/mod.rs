//! WASI 0.2, as components import it: interfaces by their track (`wasi:io/streams@0.2`).
//!
//! Signatures and semantics follow the packages' WIT. What preview 1 has, too, has its body there ([`wasi`](super::wasi)).

mod cli;
mod clocks;
mod config;
pub(in crate::host) mod error;
pub(in crate::host) mod filesystem;
pub(in crate::host) mod http;
mod keyvalue;
mod poll;
mod random;
pub(in crate::host) mod sockets;
pub(in crate::host) mod streams;
#[cfg(test)]
mod tests;

pub(in crate::host) use filesystem::is_private;
pub(in crate::host) use sockets::Reach;
#[cfg(test)]
pub(in crate::host) use tests::{RESULT, with_folders};

use awsm_abi::component::{REQUEST, RESPONSE};

use super::canonical::{FIRST_LASTING, Resource};
use super::wasi::{Descriptors, Grant};
use super::wasi3::Wasi3;
use super::{Args, HostFunction};
use filesystem::{FileDescriptor, Form as _, Wasi2};
use streams::{InputStream, OutputStream};

/// Module name of what serves and makes requests.
pub const HTTP: &str = "wasi:http/types@0.2";

/// Whether that function of a stream reads what each request has anew, unless the stream is a file.
#[must_use]
pub fn reads_stream(name: &str) -> bool {
    let reads = ["read", "blocking-read", "skip", "blocking-skip"];
    name.strip_prefix("[method]input-stream.").is_some_and(|name| reads.contains(&name)) || name.ends_with("splice")
}

/// Whether a call of that function with these arguments, which reaches what lies outside, leaves it as it is.
#[must_use]
pub fn only_reads_files(name: &str, args: &Args) -> bool {
    let Some((_, method)) = name.split_once('.') else { return false };
    match method {
        "open-at" => filesystem::only_reads(args.u32(5), args.u32(6)),
        "advise"
        | "stat"
        | "stat-at"
        | "read"
        | "readlink-at"
        | "is-same-object"
        | "metadata-hash"
        | "metadata-hash-at"
        | "read-directory-entry" => true,
        _ => false,
    }
}

/// Representation of standard input.
pub(in crate::host) const INPUT: u32 = FIRST_LASTING;
/// Representation of standard output.
pub(in crate::host) const OUTPUT: u32 = INPUT + 1;
/// Representation of standard error.
pub(in crate::host) const ERRORS: u32 = OUTPUT + 1;
/// Representation of the first granted folder. All of them stand there in the form of WASI 0.2, and behind that in the form of WASI 0.3.
const FOLDERS: u32 = ERRORS + 1;
/// Forms in which granted folders stand.
const FORMS: u32 = 2;

/// How many resources every invocation of a function with these folders has: [`Resources::reserve`](super::canonical::Resources::reserve).
pub(in crate::host) const fn standing(grants: &[Grant]) -> u32 {
    // Far fewer.
    FOLDERS - 1 + FORMS * grants.len() as u32
}

/// One of them, by its representation. Those of a request are there only where one is served.
pub(in crate::host) fn stand(
    grants: &[Grant],
    descriptors: &Descriptors,
    is_http: bool,
    representation: u32,
) -> Option<Box<dyn Resource>> {
    Some(match representation {
        REQUEST | RESPONSE if !is_http => return None,
        REQUEST => Box::new(http::IncomingRequest::default()),
        RESPONSE => Box::new(http::ResponseOutparam),
        INPUT => Box::new(InputStream::Standard),
        OUTPUT => Box::new(OutputStream::Output),
        ERRORS => Box::new(OutputStream::Errors),
        _ => {
            let (index, count) = (representation.checked_sub(FOLDERS)?, grants.len() as u32);
            let (place, index) = (index.checked_div(count)?, index.checked_rem(count)? as usize);
            let grant = grants.get(index)?;
            match place {
                Wasi2::PLACE => Box::new(FileDescriptor::<Wasi2>::granted(index, grant, descriptors)),
                Wasi3::PLACE => Box::new(FileDescriptor::<Wasi3>::granted(index, grant, descriptors)),
                _ => return None,
            }
        }
    })
}

/// All interfaces.
pub(in crate::host) const FUNCTIONS: &[&[HostFunction]] = &[
    error::FUNCTIONS,
    poll::FUNCTIONS,
    streams::FUNCTIONS,
    clocks::FUNCTIONS,
    random::FUNCTIONS,
    cli::FUNCTIONS,
    filesystem::FUNCTIONS,
    filesystem::SHARED,
    sockets::network::FUNCTIONS,
    sockets::lookup::FUNCTIONS,
    sockets::tcp::FUNCTIONS,
    sockets::listen::FUNCTIONS,
    sockets::udp::FUNCTIONS,
    sockets::datagrams::FUNCTIONS,
    sockets::options::FUNCTIONS,
    keyvalue::FUNCTIONS,
    config::FUNCTIONS,
    http::fields::FUNCTIONS,
    http::request::FUNCTIONS,
    http::incoming::FUNCTIONS,
    http::outgoing::FUNCTIONS,
    http::response::FUNCTIONS,
    http::outgoing_request::FUNCTIONS,
    http::options::FUNCTIONS,
    http::client::FUNCTIONS,
    http::error::FUNCTIONS,
];
