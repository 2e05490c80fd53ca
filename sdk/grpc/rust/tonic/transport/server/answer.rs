//! Answers the request of the host with a service: whole messages by `sledge:rpc`, others from standard input to standard output.

use std::future::poll_fn;
use std::pin::{pin, Pin};
use std::sync::Mutex;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use sledge_grpc_rt::exchange;
use sledge_grpc_rt::{entry, Errno};
use tower::util::BoxCloneService;
use tower::Service;

use super::super::compat::{self, BoxError, Piece, ReplyBody, ServerBody, Source};
use super::super::service::rows;
use super::connection::TcpConnectInfo;
use crate::Status;

type BoxService = BoxCloneService<Request<ServerBody>, Response<ReplyBody>, BoxError>;

struct Served {
    number: u64,
    /// Nothing where any service may be in it.
    names: Option<Vec<&'static str>>,
    service: BoxService,
}

static SERVED: Mutex<Vec<Served>> = Mutex::new(Vec::new());

/// The reply is complete.
const COMPLETE: i32 = 0;
/// There is none.
const FAILED: i32 = 1;

/// How much of a body is read at once, at first.
const ROOM_BYTES: usize = 4 << 10;
/// And at most.
const ROOM_BYTES_MAX: usize = 1 << 20;

/// A server that serves. It ends where this is dropped.
pub(super) struct Serving(u64);

/// Serves.
pub(super) fn serve(names: Option<Vec<&'static str>>, service: BoxService) -> Serving {
    let mut served = SERVED.lock().unwrap();
    let number = served.last().map_or(0, |last| last.number + 1);
    served.push(Served { number, names, service });
    entry::serve(|| tokio::__sledge::answer(answer()));
    Serving(number)
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Ok(mut served) = SERVED.lock() {
            served.retain(|one| one.number != self.0);
        }
    }
}

/// The service for a path. A program may serve on several addresses: the one that has the service answers.
fn service_for(path: &str) -> Option<BoxService> {
    let served = SERVED.lock().unwrap();
    if let [one] = &served[..] {
        return Some(one.service.clone());
    }
    let name = path.strip_prefix('/').and_then(|rest| rest.split_once('/')).map_or("", |(name, _)| name);
    let has = |one: &&Served| one.names.as_ref().is_some_and(|names| names.contains(&name));
    let may_have = |one: &&Served| one.names.is_none();
    let found = served.iter().find(has).or_else(|| served.iter().find(may_have)).or(served.first());
    found.map(|one| one.service.clone())
}

async fn answer() -> i32 {
    match exchanged().await {
        Ok(()) => COMPLETE,
        Err(why) => {
            eprintln!("{why}");
            FAILED
        }
    }
}

fn told(what: &'static str) -> impl Fn(Errno) -> BoxError {
    move |error| format!("{what}: error {error}").into()
}

async fn exchanged() -> Result<(), BoxError> {
    let request = request()?;
    let Some(mut service) = service_for(request.uri().path()) else { return Err("no server serves any more".into()) };
    let response = match poll_fn(|context| service.poll_ready(context)).await {
        Ok(()) => service.call(request).await,
        Err(error) => Err(error),
    };
    let response = match response {
        Ok(response) => response,
        // Where it says no status, the connection would break off.
        Err(error) => compat::of_status(Status::try_from_error(error)?),
    };
    let (head, body) = response.into_parts();
    reply(head, body).await
}

fn request() -> Result<Request<ServerBody>, BoxError> {
    let exchange::Accepted { text, headers, body, is_whole } = exchange::accept().map_err(told("the request"))?;
    let text = Bytes::from(text);
    let fields = rows::headers(&text.slice(headers..body));
    let body = if is_whole {
        RequestBody::Whole(text.slice(body..))
    } else {
        let length = fields.get(http::header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        RequestBody::Comes { body: exchange::Body::new(length), buffer: Vec::new(), room: ROOM_BYTES }
    };
    let mut request = Request::new(compat::server_body(body));
    // Calls by gRPC have no other, and the server lets no other through.
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = http::Uri::from_maybe_shared(text.slice(..headers))?;
    *request.version_mut() = http::Version::HTTP_2;
    *request.headers_mut() = fields;
    request.extensions_mut().insert(TcpConnectInfo { local_addr: None, remote_addr: None });
    Ok(request)
}

/// The request's body.
enum RequestBody {
    /// What is left of one that was there at the beginning.
    Whole(Bytes),
    Comes { body: exchange::Body, buffer: Vec<u8>, room: usize },
}

impl Source for RequestBody {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, Status>>> {
        let (body, buffer, room) = match self {
            RequestBody::Whole(bytes) if bytes.is_empty() => return Poll::Ready(None),
            RequestBody::Whole(bytes) => return Poll::Ready(Some(Ok(Piece::Data(std::mem::take(bytes))))),
            RequestBody::Comes { body, buffer, room } => (body, buffer, room),
        };
        if buffer.capacity() == 0 {
            buffer.reserve_exact(*room);
        }
        let Poll::Ready(result) = body.poll_read(context, buffer) else { return Poll::Pending };
        Poll::Ready(match result {
            Ok(0) => None,
            Ok(_) => {
                if buffer.len() == buffer.capacity() {
                    *room = ROOM_BYTES_MAX.min(*room * 4);
                }
                Some(Ok(Piece::Data(std::mem::take(buffer).into())))
            }
            Err(error) => Some(Err(Status::internal(format!("the request's body breaks off: error {error}")))),
        })
    }
}

/// The reply on its way: its head goes out with the first wait, or with its end.
struct Reply {
    /// Its headers as rows, as long as they are not said.
    headers: Vec<u8>,
    streams: bool,
    waiting: Vec<Bytes>,
}

impl Reply {
    fn flush(&mut self) -> Result<(), BoxError> {
        if !self.streams {
            self.streams = true;
            exchange::answer(&std::mem::take(&mut self.headers), &[], &[]).map_err(told("the reply's head"))?;
            exchange::begin_stream().map_err(told("the reply's head"))?;
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), BoxError> {
        self.waiting.drain(..).try_for_each(|bytes| exchange::write(&bytes)).map_err(told("the reply's body"))
    }

    /// What is there is all of it, and those are its trailers.
    fn end(mut self, trailers: &HeaderMap) -> Result<(), BoxError> {
        if self.streams {
            each(trailers, exchange::set_trailer).map_err(told("a trailer of the reply"))?;
            return self.write();
        }
        let (several, body);
        body = match &self.waiting[..] {
            [] => &[],
            [one] => &one[..],
            more => {
                several = more.concat();
                &several[..]
            }
        };
        exchange::answer(&self.headers, body, &rows::of(trailers)).map_err(told("the reply"))
    }
}

async fn reply(head: http::response::Parts, body: ReplyBody) -> Result<(), BoxError> {
    if head.status != http::StatusCode::OK {
        exchange::set_status(head.status.as_u16()).map_err(told("the reply's status"))?;
    }
    // A reply of nothing but trailers has them in its head. Behind the head they mean the same.
    let (headers, trailers) = if head.headers.contains_key(GRPC_STATUS) { split(head.headers) } else { (head.headers, None) };
    let mut reply = Reply { headers: rows::of(&headers), streams: false, waiting: Vec::new() };
    if let Some(trailers) = trailers {
        return reply.end(&trailers);
    }
    let mut body = pin!(body);
    while let Some(piece) = poll_fn(|context| next(body.as_mut(), &mut reply, context)).await {
        match piece? {
            Piece::Data(bytes) => reply.waiting.push(bytes),
            Piece::Trailers(trailers) => return reply.end(&trailers),
        }
    }
    reply.end(&HeaderMap::new())
}

/// The next piece. Before it waits for one it sends what there is.
fn next(body: Pin<&mut ReplyBody>, reply: &mut Reply, context: &mut Context<'_>) -> Poll<Option<Result<Piece, BoxError>>> {
    match compat::poll_piece(body, context) {
        Poll::Ready(piece) => Poll::Ready(piece.map(|piece| piece.map_err(Into::into))),
        Poll::Pending => match reply.flush() {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Some(Err(error))),
        },
    }
}

const GRPC_STATUS: &str = "grpc-status";

/// The content type, and what is not it.
fn split(mut headers: HeaderMap) -> (HeaderMap, Option<HeaderMap>) {
    let mut head = HeaderMap::new();
    if let Some(kind) = headers.remove(http::header::CONTENT_TYPE) {
        head.insert(http::header::CONTENT_TYPE, kind);
    }
    (head, Some(headers))
}

fn each(headers: &HeaderMap, set: fn(&[u8], &[u8], bool) -> Result<(), Errno>) -> Result<(), Errno> {
    for name in headers.keys().filter(|name| rows::is_of_message(name)) {
        for (index, value) in headers.get_all(name).iter().enumerate() {
            set(name.as_str().as_bytes(), value.as_bytes(), index > 0)?;
        }
    }
    Ok(())
}
