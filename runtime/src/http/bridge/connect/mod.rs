//! Connect: unary calls as ordinary requests, also with GET, and streams in envelopes; messages in bytes or in JSON.
//!
//! What is wrong with a request may be found while its function reads it. The function sees a body that breaks off, and the client learns the reason by
//! [`Refused`].

mod messages;
mod reply;
mod request;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hyper::Response;
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue};
use prost_reflect::MethodDescriptor;
use sledge_sandbox::Budget;

use crate::grpc::connect::{self, Query};
use crate::grpc::{Code, GRPC_TIMEOUT, Status, timeout_value};
use crate::http::body::Inward;
use crate::http::response::Answer;

use messages::{Format, Messages};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");
const TIMEOUT: HeaderName = HeaderName::from_static("connect-timeout-ms");
const STREAM_ENCODING: HeaderName = HeaderName::from_static("connect-content-encoding");
const STREAM_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("connect-accept-encoding");

/// Why a request cannot be carried out, once that is known.
#[derive(Clone, Debug, Default)]
struct Refused(Arc<Mutex<Option<Status>>>);

impl Refused {
    /// The first reason counts.
    fn set(&self, code: Code, message: impl Into<String>) {
        let mut status = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        status.get_or_insert_with(|| Status::new(code, message.into()));
    }

    fn get(&self) -> Option<Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A request in it.
#[derive(Debug)]
pub(super) struct Connect {
    is_stream: bool,
    messages: Messages,
    /// Of a request with GET.
    message: Option<Bytes>,
}

/// What is asked for, and what may be done for it.
pub(super) struct Asked {
    /// The method, where it is known.
    pub(super) method: Option<MethodDescriptor>,
    /// The largest message of a request.
    pub(super) message_bytes_max: usize,
    /// What messages need that become others.
    pub(super) budget: Option<Arc<Budget>>,
}

impl Connect {
    /// For a request with that head, which is one of gRPC then; none where the method is not called so.
    pub(super) fn begin(is_json: bool, is_stream: bool, asked: Asked, headers: &mut HeaderMap) -> Option<Connect> {
        let streams = |method: &MethodDescriptor| method.is_client_streaming() || method.is_server_streaming();
        if asked.method.as_ref().is_some_and(|method| streams(method) != is_stream) {
            return None;
        }
        let encoding = headers.remove(if is_stream { STREAM_ENCODING } else { CONTENT_ENCODING });
        let connect = Connect::new(is_json, is_stream, asked, encoding.as_ref().map_or(b"", HeaderValue::as_bytes))?;
        connect.head(headers);
        Some(connect)
    }

    /// For a request with GET.
    pub(super) fn get(query: Query, asked: Asked, headers: &mut HeaderMap) -> Option<Connect> {
        let is_json = match &*query.encoding {
            "json" => true,
            "proto" => false,
            _ => return None,
        };
        let connect = Connect::new(is_json, false, asked, query.compression.as_bytes())?;
        connect.head(headers);
        Some(Connect { message: Some(query.message.into()), ..connect })
    }

    fn new(is_json: bool, is_stream: bool, asked: Asked, encoding: &[u8]) -> Option<Connect> {
        let Asked { method, message_bytes_max, budget } = asked;
        let format = if is_json { Format::Json(method?) } else { Format::Proto };
        let refused = Refused::default();
        let is_packed = match encoding {
            b"" | b"identity" => false,
            b"gzip" => true,
            other => {
                let encoding = other.escape_ascii();
                refused.set(Code::Unimplemented, format!("unknown compression `{encoding}`; known: gzip, identity"));
                false
            }
        };
        let messages = Messages { format, is_packed, bytes_max: message_bytes_max, budget, refused };
        Some(Connect { is_stream, messages, message: None })
    }

    /// Makes the head of a request one of gRPC.
    fn head(&self, headers: &mut HeaderMap) {
        let refused = &self.messages.refused;
        if headers.remove(PROTOCOL_VERSION).is_some_and(|version| version != "1") {
            refused.set(Code::InvalidArgument, "connect-protocol-version is not 1");
        }
        headers.remove(GRPC_TIMEOUT);
        if let Some(timeout) = headers.remove(TIMEOUT) {
            match connect::timeout(timeout.as_bytes()) {
                Some(timeout) => drop(headers.insert(GRPC_TIMEOUT, timeout_value(timeout))),
                None => refused.set(Code::InvalidArgument, "connect-timeout-ms is not a number of up to ten digits"),
            }
        }
        headers.remove(STREAM_ACCEPT_ENCODING);
        super::as_grpc(headers, HeaderValue::from_static("application/grpc+proto"));
    }

    /// Whether it is known already that the request cannot be carried out.
    pub(super) fn is_refused(&self) -> bool {
        self.messages.refused.get().is_some()
    }

    /// How the request's body is read.
    pub(super) fn inward(&mut self) -> Box<dyn Inward> {
        if self.is_stream {
            Box::new(request::Envelopes::new(self.messages.clone()))
        } else {
            Box::new(request::Message::new(self.messages.clone(), self.message.take()))
        }
    }

    /// The reply, as the client gets it.
    pub(super) async fn reply(self, response: Response<Answer>) -> Response<Answer> {
        if self.is_stream { reply::stream(self.messages, response) } else { reply::unary(self.messages, response).await }
    }
}
