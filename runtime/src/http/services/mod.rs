//! The services of gRPC that the server itself offers: [`health`] and [`reflection`], at addresses where an application has clients. They are looked for where
//! no function has the path, so a function that offers one of them is called.
//!
//! A call is a task of its own, since its reply begins before its request ends. Reply and trailers go through the same pipe as those of a function.

mod health;
mod reflection;

use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf as _, Bytes};
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue};

use super::body::Inward;
use super::response::{self, Answer, Trailing};
use super::{HttpService, Site, body};
use crate::grpc::frame::{COMPRESSED, Frame, Frames};
use crate::grpc::pack::{UnpackError, unpacked};
use crate::grpc::{self, Code, GRPC_ACCEPT_ENCODING, GRPC_ENCODING, GRPC_STATUS, GRPC_TYPE, Status};
use crate::host::{Body, Stop};
use crate::outcome::Failure;
use crate::reply::{Content, Fields, ReplyBytes, Writer};

/// The largest message that one of these services takes: names.
pub(super) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Calls of one thread that watch something, and so have no end of their own.
const WATCHES_MAX: usize = 1_000;

/// A method of the server's own services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Check,
    List,
    Watch,
    Reflection,
}

/// The method that a path stands for at an address, if it is one of these.
pub(super) fn asked(service: &HttpService, site: Site, path: &str) -> Option<Asked> {
    let router = service.router.borrow();
    let offers = router.offers(site);
    if offers.is_empty() {
        return None;
    }
    match path.strip_prefix('/')?.split_once('/')? {
        (grpc::HEALTH, "Check") => Some(Asked::Check),
        (grpc::HEALTH, "List") => Some(Asked::List),
        (grpc::HEALTH, "Watch") => Some(Asked::Watch),
        (grpc::REFLECTION | grpc::REFLECTION_ALPHA, "ServerReflectionInfo") => {
            offers.iter().any(|offer| offer.reflects).then_some(Asked::Reflection)
        }
        _ => None,
    }
}

/// Answers a call. Its reply is over at the client's `deadline` at the latest.
pub(super) fn answer(
    service: &Rc<HttpService>,
    site: Site,
    asked: Asked,
    headers: &HeaderMap,
    (incoming, inward): (Incoming, Option<Box<dyn Inward>>),
    deadline: Option<Instant>,
) -> Response<Answer> {
    let body = body::stream(incoming, service.body_bytes_max, service.timeouts.body, inward);
    let mut replies = Writer::new(ReplyBytes::default(), usize::MAX, None, false, true);
    let content = match replies.begin() {
        Some((_, stream)) => Content::Stream(stream),
        None => Content::Whole(Bytes::new()),
    };
    let is_packed = headers.get(GRPC_ENCODING).is_some_and(|encoding| encoding == "gzip");
    let requests = Requests { body, frames: Frames::new(MESSAGE_BYTES_MAX), is_packed };
    let call = Call { service: Rc::clone(service), site, requests, replies };
    tokio::task::spawn_local(call.run(asked, deadline));
    let mut response = response::success(content, None, (None, Trailing::Framed), &GRPC_TYPE, HeaderMap::new());
    response.headers_mut().insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static("gzip, identity"));
    response
}

/// A call that is being answered.
struct Call {
    service: Rc<HttpService>,
    site: Site,
    requests: Requests,
    replies: Writer,
}

impl Call {
    async fn run(mut self, asked: Asked, deadline: Option<Instant>) {
        let pipe = Arc::clone(self.replies.pipe());
        let work = async {
            match asked {
                Asked::Check => health::check(&mut self).await,
                Asked::List => health::list(&mut self).await,
                Asked::Watch => health::watch(&mut self).await,
                Asked::Reflection => reflection::answer(&mut self).await,
            }
        };
        let late = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => pending().await,
            }
        };
        let result = tokio::select! {
            biased;
            // The client has gone.
            () = poll_fn(|context| pipe.poll_closed(context)) => return,
            result = work => result,
            () = late => Err(Status::of(&Failure::Deadline, None)),
        };
        let mut trailers = HeaderMap::new();
        match result {
            Ok(()) => drop(trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"))),
            Err(status) => status.put(&mut trailers),
        }
        pipe.finish(Ok(Some(Box::new(Fields::from(trailers)))));
    }

    /// Sends something, when there is room for it.
    async fn send(&mut self, pieces: impl IntoIterator<Item = Bytes>) {
        for mut piece in pieces {
            while !piece.is_empty() {
                match self.replies.write(&piece) {
                    Ok(0) => self.replies.room().await,
                    Ok(count) => piece.advance(count),
                    Err(_) => return,
                }
            }
        }
    }
}

/// The messages of a request.
struct Requests {
    body: Body,
    frames: Frames,
    /// Whether messages may be compressed, with gzip.
    is_packed: bool,
}

impl Requests {
    /// The next one, when it is there; none at the end. Not to be asked again after it was dropped half-way.
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            match self.frames.take() {
                Ok(Some(Frame { flags: COMPRESSED, message })) if self.is_packed => {
                    let message = unpacked(&message, MESSAGE_BYTES_MAX).map_err(|error| match error {
                        UnpackError::TooLong(error) => Status::new(Code::ResourceExhausted, error.to_string()),
                        UnpackError::Broken(_) => unreadable(error),
                    });
                    return message.map(|message| Some(message.into()));
                }
                Ok(Some(Frame { flags: COMPRESSED, .. })) => {
                    return Err(Status::new(Code::Unimplemented, "the request is compressed, and not by `grpc-encoding: gzip`"));
                }
                Ok(Some(Frame { message, .. })) => return Ok(Some(message)),
                Ok(None) => {}
                Err(error) => return Err(Status::new(Code::ResourceExhausted, error.to_string())),
            }
            if self.body.must_wait()
                && let Some(next) = self.body.next(None)
            {
                let came = next.await;
                self.body.came(came);
                continue;
            }
            let piece = self.body.take_piece(usize::MAX).map_err(|stop| match stop {
                Stop::Body(error) => Status::of(&error.into(), None),
                _ => Status::of(&Failure::Internal, None),
            })?;
            if !piece.is_empty() {
                self.frames.push(&piece);
            } else if self.frames.is_empty() {
                return Ok(None);
            } else {
                return Err(Status::new(Code::Internal, "the request ends in the middle of a message"));
            }
        }
    }

    /// The only one of a request that is no stream.
    async fn one(&mut self) -> Result<Bytes, Status> {
        self.next().await?.ok_or_else(|| Status::new(Code::Unimplemented, "the request has no message"))
    }
}

/// What cannot be decoded.
fn unreadable(error: impl std::fmt::Display) -> Status {
    Status::new(Code::Internal, format!("the request cannot be decoded: {error}"))
}

/// One of the calls that watch something.
struct Watching<'a>(&'a Cell<usize>);

impl Watching<'_> {
    /// # Errors
    /// When there are too many.
    fn begin(count: &Cell<usize>) -> Result<Watching<'_>, Status> {
        if count.get() >= WATCHES_MAX {
            return Err(Status::new(Code::ResourceExhausted, format!("{WATCHES_MAX} calls watch already")));
        }
        count.set(count.get() + 1);
        Ok(Watching(count))
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
