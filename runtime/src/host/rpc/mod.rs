//! `sledge:rpc`: calls of services by gRPC, as docs/internals/grpc.md says: of functions of the same application without the network, and of other servers.
//!
//! ```text
//!   begin | call -> edges: which function, which server? -> worker (as for sledge:call) | upstream -> Exchange, behind a file descriptor
//! ```
//!
//! What is sent and comes are HTTP's heads, bodies and trailers; what gRPC says in them is the guest's business, but for how a call ends that has failed.

mod edges;
mod exchange;
mod remote;
mod whole;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use awsm_abi::types::ValType::{I32, I64};
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Uri};

use super::Effect::{External, Head, Stream};
use super::body::{Body, BodyError, Piece, Source};
use super::call::{CallFailure, CallId, Outgoing, RpcRequest};
use super::fetch::{self, RESERVED};
use super::fetch_span::ClientSpan;
use super::http::RequestHead;
use super::wasi::Errno;
use super::{Call, HostFunction, Stop, own};
use crate::grpc::{Code, GRPC_TIMEOUT, GRPC_TYPE, Status, timeout_value};
use crate::reply::{self, Fields, ReplyBytes, Writer};
use crate::upstream::RequestBody;

use edges::Edge;
use remote::{Sent, Upload};

pub use edges::{Destination, Edges};
pub(super) use exchange::{Exchange, Readable};

/// Module name of the imports.
const MODULE: &str = "sledge:rpc";
/// The longest path: `/SERVICE/METHOD`.
const PATH_BYTES_MAX: u32 = 8 << 10;
/// Metadata of a call, and their bytes.
const METADATA_MAX: usize = 64;
const METADATA_BYTES_MAX: u32 = 16 << 10;
/// Fields of most calls.
const HEADERS_COMMON: usize = 6;
/// Room for the fields of most replies.
const ROWS_BYTES: usize = 256;
/// What a call begins with. What is larger is written behind it.
const MESSAGE_BYTES_MAX: u32 = 8 << 20;
/// The request ends with its first bytes.
const FLAG_ENDS: u32 = 1 << 0;
/// For how long a callee waits for a request's body: longer than any deadline.
const BODY_TIME_MAX: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// The interface.
pub(super) const FUNCTIONS: &[HostFunction] = &[
    own(MODULE, "begin", &[I32, I32, I32, I32, I32, I32, I64, I32], External, begin),
    own(MODULE, "head", &[I32, I32, I32], Stream, |call| put_fields(call, Exchange::head)),
    own(MODULE, "trailers", &[I32, I32, I32], Stream, |call| put_fields(call, Exchange::trailers)),
    own(MODULE, "call", &[I32, I32, I32, I32, I32, I32, I64, I32, I32, I32], External, whole::call),
    own(MODULE, "accept", &[I32, I32, I32], Head, whole::accept),
    own(MODULE, "answer", &[I32, I32, I32, I32, I32, I32], Stream, whole::answer),
];

/// A call of a function that the worker is to make.
#[derive(Debug)]
pub(super) struct Begun {
    callee: Arc<str>,
    request: Option<Writer>,
}

/// A piece of the guest's memory, whose address and length are arguments `index` and `index + 1`.
fn piece<'a>(call: &'a Call<'_>, index: usize, bytes_max: u32) -> Result<&'a [u8], Stop> {
    let memory = call.memory.as_ref().ok_or(Errno::FAULT)?;
    let piece = memory.slice(call.args.address(index), call.args.u32(index + 1).into())?;
    if call.args.u32(index + 1) > bytes_max { Err(Errno::TOOBIG.into()) } else { Ok(piece) }
}

/// The path that arguments 0 and 1 name.
fn path(call: &Call<'_>) -> Result<PathAndQuery, Stop> {
    let path = PathAndQuery::try_from(piece(call, 0, PATH_BYTES_MAX)?).map_err(|_| Errno::INVAL)?;
    if path.query().is_some() || service(&path).is_none() { Err(Errno::INVAL.into()) } else { Ok(path) }
}

/// The service of a path.
fn service(path: &PathAndQuery) -> Option<&str> {
    let (service, method) = path.path().strip_prefix('/')?.rsplit_once('/')?;
    if service.is_empty() || method.is_empty() { None } else { Some(service) }
}

/// Whether that is a call with a whole request of a function of this server: what that does is a part of the caller's transaction, if it has one.
pub(super) fn joins(call: &Call<'_>, function: &HostFunction) -> bool {
    let is_whole = function.module == MODULE
        && match function.name {
            "begin" => call.args.u32(7) & FLAG_ENDS != 0,
            name => name == "call",
        };
    let edge = || {
        let path = path(call).ok()?;
        call.context.ports.edges().ok()??.find(service(&path)?).cloned()
    };
    is_whole && matches!(edge(), Some(Edge::Function(_)))
}

/// The head's fields: those that arguments 2 and 3 list, and what gRPC needs besides.
fn metadata(call: &Call<'_>, timeout: Option<Duration>) -> Result<HeaderMap, Stop> {
    let mut rows = piece(call, 2, METADATA_BYTES_MAX)?;
    let mut headers = HeaderMap::with_capacity(HEADERS_COMMON);
    while !rows.is_empty() {
        let name = HeaderName::from_bytes(fetch::row(&mut rows)?).map_err(|_| Errno::INVAL)?;
        let value = HeaderValue::from_bytes(fetch::row(&mut rows)?).map_err(|_| Errno::INVAL)?;
        if name == TE || name == GRPC_TIMEOUT {
            continue;
        }
        if RESERVED.contains(&name) {
            return Err(Errno::NOTSUP.into());
        }
        if headers.len() >= METADATA_MAX {
            return Err(Errno::TOOBIG.into());
        }
        headers.append(name, value);
    }
    headers.entry(CONTENT_TYPE).or_insert(GRPC_TYPE);
    headers.insert(TE, HeaderValue::from_static("trailers"));
    if let Some(timeout) = timeout {
        headers.insert(GRPC_TIMEOUT, timeout_value(timeout));
    }
    Ok(headers)
}

/// `begin(path, bytes, head, bytes, message, bytes, timeout_ns: i64, flags) -> fd`
fn begin(call: &mut Call<'_>) -> Result<i32, Stop> {
    let flags = call.args.u32(7);
    let exchange = begin_with(call, flags)?;
    open(call, exchange)
}

/// Begins the call that arguments 0 to 6 describe, as for `begin`.
fn begin_with(call: &mut Call<'_>, flags: u32) -> Result<Exchange, Stop> {
    if let Some(begun) = call.context.ports.calls()?.begun.take() {
        return begun_by_worker(call, *begun);
    }
    let edges = Arc::clone(call.context.ports.edges()?.ok_or(Errno::NOTSUP)?);
    let path = path(call)?;
    let edge = service(&path).and_then(|service| edges.find(service)).ok_or(Errno::NOENT)?;
    if flags & !FLAG_ENDS != 0 {
        return Err(Errno::INVAL.into());
    }
    // Before anything is begun.
    call.context.ports.descriptors()?.vacant()?;
    let given = u64::try_from(call.args.u64(6).cast_signed()).ok().map(Duration::from_nanos);
    let left = || call.context.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let timeout = given.map(|given| left().map_or(given, |left| given.min(left)));
    let headers = metadata(call, timeout)?;
    let message = Bytes::copy_from_slice(piece(call, 4, MESSAGE_BYTES_MAX)?);
    let (request, more) = if flags & FLAG_ENDS == 0 {
        let mut writer = Writer::new(ReplyBytes::default(), usize::MAX, None, false, false);
        let more = writer.begin().map(|(_, stream)| stream);
        (Some(writer), more)
    } else {
        (None, None)
    };
    match edge {
        Edge::Function(callee) => {
            let head = RequestHead { method: Method::POST, target: Uri::from(path), headers, is_secure: false };
            let rpc = RpcRequest { head: Box::new(head), more, timeout };
            let host_call = call.context.host_calls;
            let calls = call.context.ports.calls()?;
            let name = Arc::clone(callee);
            calls.outgoing.push_back(Outgoing { name, input: message, host_call, id: Some(CallId::Now), rpc: Some(rpc) });
            calls.begun = Some(Box::new(Begun { callee: Arc::clone(callee), request }));
            // The worker takes it from there before this is called again.
            Err(Stop::Again)
        }
        Edge::Server(server) => {
            let exchange = match fetch::share() {
                Some(share) => {
                    let bytes = message.len();
                    let body =
                        more.map_or_else(|| message.clone().into(), |more| RequestBody::of(Upload::new(message.clone(), more)));
                    let mut asked = Request::new(body);
                    (*asked.method_mut(), *asked.uri_mut()) = (Method::POST, server.origin.uri(path));
                    *asked.headers_mut() = headers;
                    call.context.name_request(&mut asked);
                    let span = call.context.trace().map(|trace| ClientSpan::begin(trace, &mut asked));
                    let deadline = timeout.map(|timeout| Instant::now() + timeout);
                    Exchange::sent(Sent::begin(server, asked, span, share), request, deadline, bytes)
                }
                None => Exchange::failed(&Status::new(Code::ResourceExhausted, "the worker has as many calls as it may")),
            };
            Ok(exchange)
        }
    }
}

/// The worker has made the call, or could not.
fn begun_by_worker(call: &mut Call<'_>, begun: Begun) -> Result<Exchange, Stop> {
    let Begun { callee, request } = begun;
    let exchange = match call.context.ports.calls()?.take_now().ok_or(Errno::IO)? {
        Ok(answer) => Exchange::called(callee, answer, request),
        Err(CallFailure::TooDeep) => return Err(Errno::LOOP.into()),
        Err(CallFailure::Failed(failure)) => Exchange::failed(&Status::of(&failure, Some(&callee))),
    };
    Ok(exchange)
}

/// Gives the guest a descriptor for it.
fn open(call: &mut Call<'_>, exchange: Exchange) -> Result<i32, Stop> {
    let fd = call.context.ports.descriptors_mut()?.open_rpc(Box::new(exchange))?;
    Ok(fd.cast_signed())
}

/// Writes as much of some fields as fits to the address and length that are arguments 1 and 2: of each its name's length (u32), its name, its value's length (u32),
/// its value. The answer is the length of all of it.
fn put_fields(call: &mut Call<'_>, fields: impl FnOnce(&mut Exchange) -> Option<&Fields>) -> Result<i32, Stop> {
    let (fd, at, room) = (call.args.u32(0), call.args.address(1), call.args.u32(2));
    let (memory, context) = call.split()?;
    memory.slice(at, room.into())?;
    let mut rows = Vec::with_capacity(ROWS_BYTES);
    context.ports.descriptors_mut()?.with_rpc(fd, |exchange| -> Result<(), Stop> {
        whole::push_rows(&mut rows, fields(exchange).ok_or(Errno::AGAIN)?.iter());
        Ok(())
    })?;
    memory.write(at, &rows[..rows.len().min(room as usize)])?;
    i32::try_from(rows.len()).map_err(|_| Errno::OVERFLOW.into())
}

/// The body of a call that its caller still writes.
#[must_use]
pub fn coming(more: reply::Stream) -> Body {
    Body::coming(Box::new(Written(more)), BODY_TIME_MAX)
}

/// What a caller writes.
#[derive(Debug)]
struct Written(reply::Stream);

impl Source for Written {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Piece> {
        self.0.poll_next(context).map(|next| match next {
            Some(Ok(bytes)) => Piece::Data(bytes),
            Some(Err(_)) => Piece::Broken(BodyError::Broken),
            None => Piece::End(HeaderMap::new()),
        })
    }
}
