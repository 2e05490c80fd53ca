//! `wasi:io/error`: why a stream failed.

use awsm_abi::types::ValType::I32;

use super::filesystem::ErrorCode;
use super::{http, sockets};
use crate::host::Effect::Stream;
use crate::host::canonical::{Lower, Lowering, Own, Place, Resource, Typed, canonical, number};
use crate::host::wasi::Errno;
use crate::host::{Call, Flat, HostFunction, Stop};

/// An `error`.
#[derive(Debug)]
pub(in crate::host) struct IoError {
    /// What the system, or the host in its words, said.
    pub(in crate::host) errno: Errno,
    /// What it is where a body failed.
    pub(in crate::host) http: Option<http::ErrorCode>,
    /// What it is where a connection failed.
    pub(in crate::host) network: Option<sockets::ErrorCode>,
}

impl Resource for IoError {}

impl Typed for IoError {
    const NUMBER: u32 = number("wasi:io/error@0.2", "error");
}

/// Why an operation on a stream did not succeed, before the component is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum Fault {
    /// There is no more of it.
    Closed,
    /// A file failed so, or a standard stream, which may be one.
    Failed(Errno),
    /// The body of a message failed so.
    Http(http::ErrorCode),
    /// A connection failed so.
    Network(sockets::ErrorCode),
}

/// A `stream-error`.
#[derive(Debug)]
pub(in crate::host) enum StreamError {
    /// This failed.
    LastOperationFailed(Own),
    /// There is no more of it.
    Closed,
}

impl Lower for StreamError {
    const SIZE: u32 = 8;
    const ALIGN: u32 = 4;

    fn lower(self, to: &mut Lowering, place: Place) -> Result<(), Stop> {
        match self {
            StreamError::LastOperationFailed(error) => error.lower(to, place.plus(4)),
            StreamError::Closed => {
                to.case(place, 1);
                Ok(())
            }
        }
    }
}

impl Call<'_> {
    /// Gives what became of an operation on a stream to the component, at the address that is argument `index`.
    ///
    /// # Errors
    /// A trap, as for [`lower`](Call::lower).
    pub(in crate::host) fn lower_streamed<T: Lower>(&mut self, index: usize, result: Result<T, Fault>) -> Result<Flat, Stop> {
        let failed = IoError { errno: Errno::IO, http: None, network: None };
        let error = match result {
            Ok(value) => return self.lower(index, Ok::<_, StreamError>(value)),
            Err(Fault::Closed) => return self.lower(index, Err::<T, _>(StreamError::Closed)),
            Err(Fault::Failed(errno)) => IoError { errno, ..failed },
            Err(Fault::Http(code)) => IoError { http: Some(code), ..failed },
            Err(Fault::Network(code)) => IoError { network: Some(code), ..failed },
        };
        let error = StreamError::LastOperationFailed(self.give(error)?);
        self.lower(index, Err::<T, _>(error))
    }
}

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] =
    &[canonical("wasi:io/error@0.2", "[method]error.to-debug-string", &[I32, I32, I32], &[I32], Stream, to_debug_string)];

/// `to-debug-string(self) -> string`
fn to_debug_string(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let error = call.borrowed::<IoError>(1)?;
    let name = match (error.http, error.network) {
        (Some(code), _) => code.name(),
        (None, Some(code)) => code.name(),
        (None, None) => error.errno.name(),
    };
    call.lower(2, name)
}

/// `wasi:filesystem/types filesystem-error-code(error) -> option<error-code>`
pub(super) fn filesystem_error_code(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let error = call.borrowed::<IoError>(1)?;
    let is_file = error.http.is_none() && error.network.is_none();
    let code = is_file.then(|| ErrorCode::from(error.errno));
    call.lower(2, code)
}
