//! `wasi:sockets/ip-name-lookup`: all addresses of a listed name at once.

use std::sync::Arc;

use awsm_abi::types::ValType::I32;

use crate::host::Effect::External;
use crate::host::canonical::{canonical, errors};
use crate::host::wasi2::sockets;
use crate::host::wasi2::sockets::address::Ip;
use crate::host::wasi2::sockets::lookup::{Question, distinct, lookup_error, question};
use crate::host::{Call, Flat, HostFunction, Stop};
use crate::upstream::addresses;

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[canonical(
    "wasi:sockets/ip-name-lookup@0.3",
    "resolve-addresses",
    &[I32, I32, I32, I32],
    &[I32],
    External,
    resolve_addresses,
)];

/// An `error-code` of this interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum ErrorCode {
    AccessDenied,
    InvalidArgument,
    NameUnresolvable,
    TemporaryResolverFailure,
    PermanentResolverFailure,
    Other,
}

errors! { ErrorCode }

impl From<sockets::ErrorCode> for ErrorCode {
    fn from(code: sockets::ErrorCode) -> ErrorCode {
        match code {
            sockets::ErrorCode::AccessDenied => ErrorCode::AccessDenied,
            sockets::ErrorCode::InvalidArgument => ErrorCode::InvalidArgument,
            sockets::ErrorCode::NameUnresolvable => ErrorCode::NameUnresolvable,
            sockets::ErrorCode::TemporaryResolverFailure => ErrorCode::TemporaryResolverFailure,
            sockets::ErrorCode::PermanentResolverFailure => ErrorCode::PermanentResolverFailure,
            _ => ErrorCode::Other,
        }
    }
}

/// What a lookup gives.
type Found = Result<Vec<Ip>, ErrorCode>;

/// `resolve-addresses(name: string) -> result<list<ip-address>, error-code>`: where the name leads is where this invocation's sockets may go.
fn resolve_addresses(call: &mut Call<'_>) -> Result<Flat, Stop> {
    let (question, share) = match question(call, 1)? {
        Ok(question) => question,
        Err(code) => return call.lower::<Found>(3, Err(code.into())),
    };
    let name = match question {
        Question::Address(address) => return call.lower::<Found>(3, Ok(vec![Ip(address)])),
        Question::Name(name) => name,
    };
    let asked = Arc::clone(&name);
    // That the lookup is one of the invocation's ends with it.
    let look_up = async move { (addresses(&asked, 0).await, share) };
    Err(call.wait(look_up, move |call, (found, _share)| {
        let found = match found {
            Ok(found) => distinct(&found),
            Err(error) => return call.lower::<Found>(3, Err(lookup_error(&error).into())),
        };
        if found.is_empty() {
            return call.lower::<Found>(3, Err(ErrorCode::NameUnresolvable));
        }
        if let Some(reach) = call.context.ports.sockets()? {
            found.iter().for_each(|address| reach.learn(&name, *address));
        }
        call.lower::<Found>(3, Ok(found.into_iter().map(Ip).collect()))
    }))
}
