//! Replies of gRPC, in Connect's words.

use std::ops::ControlFlow;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Either};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TRAILER};
use hyper::{Response, StatusCode};

use super::messages::{Messages, NO_MEMORY};
use crate::grpc::connect::{self, END, Error, GRPC_DETAILS};
use crate::grpc::frame::{self, Frames};
use crate::grpc::{self, Code, GRPC_ACCEPT_ENCODING, GRPC_ENCODING, GRPC_MESSAGE, GRPC_STATUS, Status};
use crate::http::called::Said;
use crate::http::response::{Answer, Whole};
use crate::http::streamed::{Outward, Streamed};

/// What gRPC says of a body, and Connect does not.
const LEFT_OUT: [HeaderName; 5] = [CONTENT_LENGTH, CONTENT_TYPE, TRAILER, GRPC_ENCODING, GRPC_ACCEPT_ENCODING];

/// Makes the head of a reply one of this protocol; what it says of the end of the call, if it does. A reply that is no gRPC says so.
fn head(response: &mut Response<Answer>) -> Option<HeaderMap> {
    let is_grpc = response.status() == StatusCode::OK && grpc::is_grpc(response.headers());
    let status = response.status();
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    LEFT_OUT.iter().for_each(|name| drop(headers.remove(name)));
    let mut end = HeaderMap::new();
    if !is_grpc {
        Status::of_http(status).put(&mut end);
        return Some(end);
    }
    for name in [GRPC_STATUS, GRPC_MESSAGE, GRPC_DETAILS] {
        if let Some(value) = headers.remove(&name) {
            end.insert(name, value);
        }
    }
    (!end.is_empty()).then_some(end)
}

/// How a call ended, by its trailers, out of which that is taken.
fn error(messages: &Messages, trailers: &mut HeaderMap) -> Option<Error> {
    let error = Error::take(trailers);
    messages.refused.get().as_ref().map(Error::from).or(error)
}

/// The reply of a stream: messages in envelopes, and how it ended in the last one.
pub(super) fn stream(messages: Messages, mut response: Response<Answer>) -> Response<Answer> {
    let end = head(&mut response);
    if let Ok(ty) = HeaderValue::try_from(format!("application/connect+{}", messages.subtype())) {
        response.headers_mut().insert(CONTENT_TYPE, ty);
    }
    let mut outward = ToEnvelopes { messages, frames: Frames::new(usize::MAX), end };
    response.map(|body| match body {
        Either::Right(mut streamed) if outward.end.is_none() => {
            streamed.translate(Box::new(outward));
            Either::Right(streamed)
        }
        Either::Right(_) => Either::Left(outward.last(HeaderMap::new()).into()),
        Either::Left(whole) => {
            let (bytes, trailers) = whole.into_parts();
            let all = match outward.data(bytes) {
                ControlFlow::Continue(begin) => [begin, outward.last(trailers.unwrap_or_default())].concat().into(),
                ControlFlow::Break(all) => all,
            };
            Either::Left(all.into())
        }
    })
}

#[derive(Debug)]
struct ToEnvelopes {
    messages: Messages,
    frames: Frames,
    /// How the call ended, where the head has said it.
    end: Option<HeaderMap>,
}

impl ToEnvelopes {
    /// The last envelope.
    fn last(&mut self, trailers: HeaderMap) -> Bytes {
        let mut trailers = self.end.take().unwrap_or(trailers);
        let error = error(&self.messages, &mut trailers);
        frame::framed(END, &connect::end(error.as_ref(), &trailers))
    }
}

impl Outward for ToEnvelopes {
    fn data(&mut self, bytes: Bytes) -> ControlFlow<Bytes, Bytes> {
        self.frames.push(&bytes);
        let mut all = BytesMut::new();
        // They are as long as they may be.
        while let Ok(Some(frame)) = self.frames.take() {
            match self.messages.outward(frame) {
                Ok(message) => all.extend_from_slice(&frame::framed(0, &message)),
                Err(status) => {
                    let end = connect::end(Some(&Error::from(&status)), &HeaderMap::new());
                    all.extend_from_slice(&frame::framed(END, &end));
                    return ControlFlow::Break(all.freeze());
                }
            }
        }
        ControlFlow::Continue(all.freeze())
    }

    fn end(&mut self, trailers: HeaderMap) -> Bytes {
        self.last(trailers)
    }
}

/// The reply of a unary call: its message, or the error. Whether there is one is known at its end.
pub(super) async fn unary(messages: Messages, mut response: Response<Answer>) -> Response<Answer> {
    let end = head(&mut response);
    let (mut head, body) = response.into_parts();
    let (bytes, trailers) = match body {
        Either::Left(whole) => whole.into_parts(),
        Either::Right(_) if end.is_some() => (Bytes::new(), None),
        Either::Right(streamed) => collect(&messages, streamed).await,
    };
    let mut trailers = end.or(trailers).unwrap_or_default();
    let said = messages.refused.get().map(|status| status.code as usize).or_else(|| grpc::status_in(&trailers));
    if let Some(said) = said {
        head.extensions.insert(Said(said));
    }
    let result = match error(&messages, &mut trailers) {
        Some(error) => Err(error),
        None => message(&messages, &bytes).map_err(|status| Error::from(&status)),
    };
    for (name, value) in &trailers {
        if let Some(name) = connect::trailer_name(name) {
            head.headers.append(name, value.clone());
        }
    }
    let (ty, body) = match result {
        Ok(message) => (messages.subtype(), message),
        Err(Error { json, status }) => {
            head.status = status;
            ("json", json.to_string().into())
        }
    };
    let ty = if ty == "json" { "application/json" } else { "application/proto" };
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(ty));
    Response::from_parts(head, Either::Left(Whole::from(body)))
}

/// All of a reply that comes in pieces. Its size is limited where it is written, and counted here until it is known whose.
async fn collect(messages: &Messages, mut streamed: Box<Streamed>) -> (Bytes, Option<HeaderMap>) {
    let (mut bytes, mut share) = (BytesMut::new(), None);
    while let Some(frame) = streamed.frame().await {
        // Of a reply that fails its trailers say so.
        let Ok(frame) = frame else { break };
        match frame.into_data() {
            Ok(data) => bytes.extend_from_slice(&data),
            Err(frame) => return (bytes.freeze(), frame.into_trailers().ok()),
        }
        if !messages.reserve(&mut share, bytes.len()) {
            let mut trailers = HeaderMap::new();
            Status::new(Code::ResourceExhausted, NO_MEMORY).put(&mut trailers);
            return (Bytes::new(), Some(trailers));
        }
    }
    (bytes.freeze(), None)
}

/// The only message of a reply.
fn message(messages: &Messages, bytes: &[u8]) -> Result<Bytes, Status> {
    let mut frames = Frames::new(usize::MAX);
    frames.push(bytes);
    match frames.take() {
        Ok(Some(frame)) if frames.is_empty() => messages.outward(frame),
        Ok(Some(_)) => Err(Status::new(Code::Unimplemented, "the reply has more than one message")),
        _ => Err(Status::new(Code::Unimplemented, "the reply has no message")),
    }
}
