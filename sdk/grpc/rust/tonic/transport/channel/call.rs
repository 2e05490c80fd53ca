//! One call: it begins with what there is of the request's body, and is done when the head of the reply is there.

use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, Request, Response};
use sledge_grpc_rt::call::{is_turn_over, Begun, Call};
use sledge_grpc_rt::{Errno, E2BIG, ELOOP, EMFILE, ENOENT, ENOTSUP};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

use super::super::compat::{self, BoxError, CallBody, CallReplyBody, Piece, Source};
use super::super::service::rows;
use super::body::{ReplyBody, WholeReply};
use super::BoxFuture;
use crate::Status;

/// How much of a body is gathered before the call begins.
pub(super) const FIRST_BYTES_MAX: usize = 64 << 10;

/// Replies with their heads and trailers up to that size are there with the call.
pub(super) const REPLY_BYTES: usize = 4 << 10;

/// What calls, without timeouts of its own.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) user_agent: HeaderValue,
    pub(super) timeout: Option<Duration>,
    pub(super) limit: Option<Arc<Semaphore>>,
}

impl Service<Request<CallBody>> for Caller {
    type Response = Response<CallReplyBody>;
    type Error = BoxError;
    type Future = Calling;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<CallBody>) -> Calling {
        let (mut head, body) = request.into_parts();
        head.headers.insert(USER_AGENT, self.user_agent.clone());
        let timeout = [self.timeout, of_header(&head.headers)].into_iter().flatten().min();
        let begin = Begin { head, body, timeout, first: First::Nothing };
        match &self.limit {
            None => Calling(State::Begins(begin), None),
            Some(limit) => Calling(State::Waits(Box::pin(permit(Arc::clone(limit))), Some(begin)), None),
        }
    }
}

async fn permit(limit: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    limit.acquire_owned().await.ok()
}

/// A call of which the head of the reply is not there yet. Holds its place among those that may run at once.
pub(super) struct Calling(State, Option<OwnedSemaphorePermit>);

enum State {
    Waits(BoxFuture<'static, Option<OwnedSemaphorePermit>>, Option<Begin>),
    Begins(Begin),
    Runs(Arc<Call>),
    Whole(WholeReply),
    Over,
}

/// Calls that the short way has made.
impl Calling {
    /// Of one whose message is sent in pieces.
    pub(super) fn begins(head: http::request::Parts, message: Bytes) -> Self {
        Self(
            State::Begins(Begin { head, body: compat::call_reply_body(Nothing), timeout: None, first: First::One(message) }),
            None,
        )
    }

    /// Of one whose reply is to come.
    pub(super) fn runs(call: Call) -> Self {
        Self(State::Runs(Arc::new(call)), None)
    }

    /// Of one whose reply is there.
    pub(super) fn whole(reply: WholeReply) -> Self {
        Self(State::Whole(reply), None)
    }

    /// Of none.
    pub(super) fn over() -> Self {
        Self(State::Over, None)
    }
}

/// A call that has not begun.
struct Begin {
    head: http::request::Parts,
    body: CallBody,
    timeout: Option<Duration>,
    first: First,
}

/// The reply of a call that has begun.
enum Reply {
    Whole(WholeReply),
    Comes(Arc<Call>),
}

/// What is behind a message that is all of a body.
struct Nothing;

impl Source for Nothing {
    fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Piece, Status>>> {
        Poll::Ready(None)
    }
}

/// The first bytes of its body.
enum First {
    Nothing,
    One(Bytes),
    More(Vec<u8>),
}

impl First {
    fn push(&mut self, bytes: Bytes) {
        *self = match std::mem::replace(self, First::Nothing) {
            First::Nothing => First::One(bytes),
            First::One(one) => First::More([one, bytes].concat()),
            First::More(mut more) => {
                more.extend_from_slice(&bytes);
                First::More(more)
            }
        };
    }

    fn bytes(&self) -> &[u8] {
        match self {
            First::Nothing => &[],
            First::One(one) => one,
            First::More(more) => more,
        }
    }
}

impl Begin {
    fn begin(mut self, context: &mut Context<'_>) -> Result<Reply, BoxError> {
        let ends = loop {
            if self.first.bytes().len() >= FIRST_BYTES_MAX {
                break false;
            }
            match compat::poll_piece(Pin::new(&mut self.body), context) {
                Poll::Ready(Some(Ok(Piece::Data(bytes)))) => self.first.push(bytes),
                Poll::Ready(Some(Err(status))) => return Err(status.into()),
                Poll::Ready(None | Some(Ok(Piece::Trailers(_)))) => break true,
                Poll::Pending => break false,
            }
        };
        let path = self.head.uri.path();
        let timeout_ns = self.timeout.map_or(-1, |timeout| i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX));
        let (head, message) = (rows::of(&self.head.headers), self.first.bytes());
        if ends {
            let mut reply = Vec::with_capacity(REPLY_BYTES);
            let begun = Call::make(path.as_bytes(), &head, message, timeout_ns, &mut reply);
            return Ok(match begun.map_err(|error| refused(path, error))? {
                Begun::Whole(sizes) => Reply::Whole(WholeReply::new(reply, sizes)),
                Begun::Runs(call) => Reply::Comes(Arc::new(call)),
            });
        }
        let call = Call::begin(path.as_bytes(), &head, message, timeout_ns, false);
        let call = Arc::new(call.map_err(|error| refused(path, error))?);
        tokio::spawn(send(Arc::clone(&call), self.body));
        Ok(Reply::Comes(call))
    }
}

/// Sends the rest of the request's body.
async fn send(call: Arc<Call>, mut body: CallBody) {
    loop {
        match poll_fn(|context| compat::poll_piece(Pin::new(&mut body), context)).await {
            Some(Ok(Piece::Data(mut bytes))) => {
                while !bytes.is_empty() {
                    match poll_fn(|context| call.poll_write(context, &bytes)).await {
                        Ok(taken) => drop(bytes.split_to(taken)),
                        // It is over, or given up.
                        Err(_) => return,
                    }
                }
            }
            Some(Err(_)) => return call.cancel(),
            None | Some(Ok(Piece::Trailers(_))) => {
                let _ = call.shutdown();
                return;
            }
        }
    }
}

impl Future for Calling {
    type Output = Result<Response<CallReplyBody>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            match std::mem::replace(&mut self.0, State::Over) {
                State::Waits(mut permit, begin) => match permit.as_mut().poll(context) {
                    Poll::Pending => {
                        self.0 = State::Waits(permit, begin);
                        return Poll::Pending;
                    }
                    Poll::Ready(permit) => {
                        self.1 = permit;
                        self.0 = begin.map_or(State::Over, State::Begins);
                    }
                },
                State::Begins(begin) if is_turn_over() => {
                    context.waker().wake_by_ref();
                    self.0 = State::Begins(begin);
                    return Poll::Pending;
                }
                State::Begins(begin) => match begin.begin(context) {
                    Ok(Reply::Whole(reply)) => self.0 = State::Whole(reply),
                    Ok(Reply::Comes(call)) => self.0 = State::Runs(call),
                    Err(error) => return Poll::Ready(Err(error)),
                },
                State::Runs(call) => match call.poll_head(context) {
                    Poll::Pending => {
                        self.0 = State::Runs(call);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(head)) => {
                        return Poll::Ready(Ok(response(&head.into(), ReplyBody::new(call, self.1.take()))));
                    }
                    Poll::Ready(Err(error)) => {
                        call.cancel();
                        return Poll::Ready(Err(broken(error).into()));
                    }
                },
                State::Whole(reply) => {
                    let head = reply.head();
                    return Poll::Ready(Ok(response(&head, ReplyBody::whole(reply, self.1.take()))));
                }
                State::Over => panic!("a call is polled when it is over"),
            }
        }
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        if let State::Runs(call) = &self.0 {
            call.cancel();
        }
    }
}

/// The reply with that head.
fn response(head: &Bytes, body: ReplyBody) -> Response<CallReplyBody> {
    let mut response = Response::new(compat::call_reply_body(body));
    *response.version_mut() = http::Version::HTTP_2;
    *response.headers_mut() = rows::headers(head);
    response
}

/// Why a call broke off.
pub(super) fn broken(error: Errno) -> Status {
    Status::internal(format!("the call broke off: error {error}"))
}

/// Why a call did not begin.
pub(super) fn refused(path: &str, error: Errno) -> BoxError {
    let service = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    match error {
        // Where a client would not find a server.
        ENOENT => compat::unreachable(format!("the function's `calls` does not name {service}")),
        ENOTSUP => compat::unreachable(format!("outside of an application there is no {service}")),
        E2BIG => Status::resource_exhausted(format!("a call of {service} is too large")).into(),
        EMFILE => Status::resource_exhausted(format!("too many calls at once: {service}")).into(),
        ELOOP => Status::resource_exhausted(format!("too many functions wait for each other: {service}")).into(),
        other => Status::internal(format!("a call of {service}: error {other}")).into(),
    }
}

/// What `grpc-timeout` says: up to 8 digits and a unit.
fn of_header(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at(text.len().checked_sub(1)?);
    let count: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    match unit {
        "H" => Some(Duration::from_secs(count * 60 * 60)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}
