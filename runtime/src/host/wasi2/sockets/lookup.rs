//! `wasi:sockets/ip-name-lookup`: addresses of listed names. Where a name has led is where this invocation's sockets may go.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use awsm_abi::types::ValType::I32;
use tokio::task::JoinHandle;
use tracing::Level;

use super::address::Ip;
use super::network::Network;
use super::{ErrorCode, LOOKUP};
use crate::host::Effect::{External, Stream};
use crate::host::canonical::{Look, Own, Resource, Subject, Typed, canonical, number};
use crate::host::wasi2::streams::subscribe;
use crate::host::{Call, Flat, HostFunction, Stop};
use crate::upstream::addresses;

/// The longest name of a host (RFC 1035), and what may stand for one in other letters.
const NAME_BYTES_MAX: u64 = 253 * 4;
/// Addresses of one name.
const ADDRESSES_MAX: usize = 64;

/// The interface.
pub(in crate::host) const FUNCTIONS: &[HostFunction] = &[
    canonical(LOOKUP, "resolve-addresses", &[I32, I32, I32, I32, I32], &[], External, resolve_addresses),
    canonical(LOOKUP, "[method]resolve-address-stream.resolve-next-address", &[I32, I32, I32], &[], External, resolve_next),
    canonical(LOOKUP, "[method]resolve-address-stream.subscribe", &[I32, I32], &[I32], Stream, subscribe::<ResolveAddressStream>),
];

/// A `resolve-address-stream`.
#[derive(Debug)]
struct ResolveAddressStream {
    state: State,
    /// The name; none for an address, which leads nowhere else.
    name: Option<Arc<str>>,
    /// That the lookup is one of the invocation's.
    _share: Arc<()>,
}

#[derive(Debug)]
enum State {
    Asked(Task),
    Known(VecDeque<IpAddr>),
    Failed(ErrorCode),
}

/// A lookup under way, given up when it is dropped.
#[derive(Debug)]
struct Task(JoinHandle<io::Result<Vec<SocketAddr>>>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Resource for ResolveAddressStream {
    fn memory_bytes(&self) -> usize {
        ADDRESSES_MAX * size_of::<IpAddr>()
    }

    fn is_ready(&mut self, look: &mut Look<'_>) -> Result<bool, Stop> {
        let State::Asked(Task(task)) = &mut self.state else { return Ok(true) };
        let Poll::Ready(answer) = Pin::new(task).poll(&mut look.context()) else { return Ok(false) };
        self.state = match answer {
            Ok(Ok(found)) => State::Known(distinct(&found).into()),
            Ok(Err(error)) => State::Failed(lookup_error(&error)),
            Err(_) => State::Failed(ErrorCode::TemporaryResolverFailure),
        };
        Ok(true)
    }
}

impl Typed for ResolveAddressStream {
    const NUMBER: u32 = number(LOOKUP, "resolve-address-stream");
}

/// Each address once, in their order.
pub(in crate::host) fn distinct(found: &[SocketAddr]) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for address in found.iter().map(|found| found.ip().to_canonical()) {
        if addresses.len() < ADDRESSES_MAX && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Why there are no addresses. The standard library keeps only what the system's library says of it, in words.
pub(in crate::host) fn lookup_error(error: &io::Error) -> ErrorCode {
    let words = error.to_string();
    if words.contains("Temporary failure") {
        ErrorCode::TemporaryResolverFailure
    } else if words.contains("Non-recoverable failure") {
        ErrorCode::PermanentResolverFailure
    } else {
        ErrorCode::NameUnresolvable
    }
}

/// The name in the letters of the domain name system.
///
/// # Errors
/// `invalid-argument` where it is no name.
fn ascii(name: &str) -> Result<Cow<'_, str>, ErrorCode> {
    let ascii = if name.is_ascii() {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(idna::domain_to_ascii(name).map_err(|_| ErrorCode::InvalidArgument)?)
    };
    let is_label = |label: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(is_letter)
    };
    let labels = ascii.strip_suffix('.').unwrap_or(&ascii);
    if labels.len() > 253 || !labels.split('.').all(is_label) { Err(ErrorCode::InvalidArgument) } else { Ok(ascii) }
}

/// What is looked up.
#[derive(Debug)]
pub(in crate::host) enum Question {
    /// An address, which is its own answer.
    Address(IpAddr),
    /// A name that may be looked up.
    Name(Arc<str>),
}

/// The address that a text is; one of IPv6 may stand in brackets, as in a URL.
fn address(text: &str) -> Option<IpAddr> {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse().ok().map(IpAddr::V6),
        None => text.parse().ok(),
    }
}

/// The name that is argument `index` and the next, if it may be looked up, and that the lookup is one of the invocation's.
pub(in crate::host) fn question(call: &mut Call<'_>, index: usize) -> Result<Result<(Question, Arc<()>), ErrorCode>, Stop> {
    let Some(name) = call.text_within(index, NAME_BYTES_MAX)?.map(Cow::into_owned) else {
        return Ok(Err(ErrorCode::InvalidArgument));
    };
    let Some(reach) = call.context.ports.sockets()? else { return Ok(Err(ErrorCode::AccessDenied)) };
    let Some(share) = reach.look_up() else { return Ok(Err(ErrorCode::OutOfMemory)) };
    if let Some(address) = address(&name) {
        return Ok(Ok((Question::Address(address.to_canonical()), share)));
    }
    let name: Arc<str> = match ascii(&name) {
        Ok(name) => name.into(),
        Err(code) => return Ok(Err(code)),
    };
    if !reach.may_look_up(&name) {
        call.say(Level::WARN, &format!("wasi:sockets: {name} is not in the function's `socket_hosts`"))?;
        return Ok(Err(ErrorCode::AccessDenied));
    }
    Ok(Ok((Question::Name(name), share)))
}

/// What `resolve-addresses` gives.
type Asked = Result<Own, ErrorCode>;

/// `resolve-addresses(network: borrow<network>, name: string) -> result<resolve-address-stream, error-code>`
fn resolve_addresses(call: &mut Call<'_>) -> Result<Flat, Stop> {
    call.borrowed::<Network>(1)?;
    let (question, share) = match question(call, 2)? {
        Ok(question) => question,
        // Of names that may not be looked up nothing is known, as if the resolver had said so.
        Err(ErrorCode::AccessDenied) => return call.lower::<Asked>(4, Err(ErrorCode::PermanentResolverFailure)),
        Err(code) => return call.lower::<Asked>(4, Err(code)),
    };
    let name = match question {
        Question::Address(address) => {
            let state = State::Known(VecDeque::from([address]));
            let own = call.give(ResolveAddressStream { state, name: None, _share: share })?;
            return call.lower::<Asked>(4, Ok(own));
        }
        Question::Name(name) => name,
    };
    let asked = Arc::clone(&name);
    // Begun where the runtime is at hand; from there it goes on by itself.
    let begin = async move { Task(tokio::spawn(async move { addresses(&asked, 0).await })) };
    Err(call.wait(begin, move |call, task| {
        let own = call.give(ResolveAddressStream { state: State::Asked(task), name: Some(name), _share: share })?;
        call.lower::<Asked>(4, Ok(own))
    }))
}

/// `resolve-next-address(self) -> result<option<ip-address>, error-code>`
fn resolve_next(call: &mut Call<'_>) -> Result<Flat, Stop> {
    type Next = Result<Option<Ip>, ErrorCode>;
    let representation = call.representation::<ResolveAddressStream>(1)?;
    call.borrowed::<ResolveAddressStream>(1)?;
    if call.ready(&[Subject::Of(representation)])?.is_empty() {
        return call.lower::<Next>(2, Err(ErrorCode::WouldBlock));
    }
    let stream = call.context.ports.resource::<ResolveAddressStream>(representation)?;
    let name = stream.name.clone();
    let next = match &mut stream.state {
        State::Known(addresses) => Ok(addresses.pop_front()),
        State::Failed(code) => Err(*code),
        State::Asked(_) => Err(ErrorCode::WouldBlock),
    };
    if let (Ok(Some(address)), Some(name)) = (next, &name)
        && let Some(reach) = call.context.ports.sockets()?
    {
        reach.learn(name, address);
    }
    call.lower::<Next>(2, next.map(|address| address.map(Ip)))
}
