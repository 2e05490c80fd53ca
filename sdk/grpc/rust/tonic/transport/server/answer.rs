//! Answers the request of the host with a service: whole messages by `sledge:rpc`, others from standard input to standard output.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Request, Response};
use sledge_grpc_rt::exchange;
use sledge_grpc_rt::rows::{GRPC_HEAD, GRPC_OK};
use sledge_grpc_rt::{entry, Errno};
use tower::util::BoxCloneService;
use tower::Service;

use super::super::compat::{self, BoxError, Piece, ReplyBody, ServerBody, Source};
use super::super::direct;
use super::super::service::rows;
use super::heads::{self, Head};
use crate::Status;

type BoxService = BoxCloneService<Request<ServerBody>, Response<ReplyBody>, BoxError>;

/// The services of a server.
#[derive(Default)]
pub(super) struct Names {
    /// Nothing where any service may be in it.
    pub(super) known: Option<Vec<&'static str>>,
    /// Those that can be called without routes and layers.
    pub(super) direct: Vec<(&'static str, Arc<direct::Service>)>,
}

struct Served {
    number: u64,
    names: Names,
    service: BoxService,
}

thread_local! {
    /// Room for a request, while there is none.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
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
pub(super) fn serve(names: Names, service: BoxService) -> Serving {
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

/// The server for a path, and the name of the service in it. A program may serve on several addresses: the one that has the service answers.
fn server_for<'a>(served: &'a [Served], path: &'a str) -> Option<(&'a Served, &'a str)> {
    let (name, method) = path.strip_prefix('/').and_then(|rest| rest.split_once('/')).unwrap_or_default();
    let found = if let [one] = served {
        Some(one)
    } else {
        let has = |one: &&Served| one.names.known.as_ref().is_some_and(|names| names.contains(&name));
        let may_have = |one: &&Served| one.names.known.is_none();
        served.iter().find(has).or_else(|| served.iter().find(may_have)).or(served.first())
    };
    // No route has an empty method.
    found.map(|found| (found, if method.is_empty() { "" } else { name }))
}

/// The service for a path.
fn service_for(path: &str) -> Option<BoxService> {
    server_for(&SERVED.lock().unwrap(), path).map(|(found, _)| found.service.clone())
}

/// The service for a path without what is around it, if that has no part in a request.
fn direct_for(path: &str) -> Option<Arc<direct::Service>> {
    let served = SERVED.lock().unwrap();
    let (found, name) = server_for(&served, path)?;
    found.names.direct.iter().find(|(of, _)| *of == name).map(|(_, service)| Arc::clone(service))
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
    let accepted = exchange::accept(ROOM.take()).map_err(told("the request"))?;
    let (path_and_headers, body) = accepted.text.split_at(accepted.body);
    let Head { request: head, is_plain } = heads::head(path_and_headers, accepted.headers)?;
    if accepted.is_whole && is_plain {
        if let Some(service) = direct_for(head.uri().path()) {
            let mut head = Some(head);
            let answering = poll_fn(|context| Poll::Ready(service.call(head.take().unwrap_or_default(), body, context))).await;
            ROOM.set(accepted.text);
            let Ok(response) = answering.await;
            return answered(response).await;
        }
    }
    let request = request(head, accepted);
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

/// Replies in one step where all is there.
async fn answered(mut response: Response<ReplyBody>) -> Result<(), BoxError> {
    let is_usual = response.status() == http::StatusCode::OK && !response.headers().contains_key(GRPC_STATUS);
    let data = if is_usual { direct::take_reply(response.body_mut()) } else { None };
    let Some(data) = data else {
        let (head, body) = response.into_parts();
        return reply(head, body).await;
    };
    let headers = response.headers();
    let says_nothing = headers.len() == 1 && headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/grpc");
    let rows = if says_nothing { None } else { Some(rows::of(headers)) };
    exchange::answer(rows.as_deref().unwrap_or(GRPC_HEAD), &data, GRPC_OK).map_err(told("the reply"))
}

/// The request with what there is of its body.
fn request(head: Request<()>, accepted: exchange::Accepted) -> Request<ServerBody> {
    let exchange::Accepted { text, body, is_whole, .. } = accepted;
    let body = if is_whole {
        RequestBody::Whole(Bytes::from(text).slice(body..))
    } else {
        let length = head.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        RequestBody::Comes { body: exchange::Body::new(length), buffer: Vec::new(), room: ROOM_BYTES }
    };
    head.map(|()| compat::server_body(body))
}

/// The request's body.
enum RequestBody {
    /// What is left of one that was there at the beginning.
    Whole(Bytes),
    Comes {
        body: exchange::Body,
        buffer: Vec<u8>,
        room: usize,
    },
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
