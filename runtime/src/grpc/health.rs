//! Messages of `grpc.health.v1`, in which the server says whether services are served.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::{DecodeError, Message};

use super::frame;

/// Whether a service is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Serving {
    /// It is.
    Serving = 1,
    /// It is known, and not served now.
    NotServing = 2,
    /// It is not known.
    ServiceUnknown = 3,
}

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Response {
    #[prost(int32, tag = "1")]
    status: i32,
}

#[derive(Clone, PartialEq, Message)]
struct List {
    #[prost(btree_map = "string, message", tag = "1")]
    statuses: BTreeMap<String, Response>,
}

/// The service that a client asks for; an empty name stands for the whole server.
///
/// # Errors
/// When the message is something else.
pub fn service(message: Bytes) -> Result<String, DecodeError> {
    Request::decode(message).map(|request| request.service)
}

/// The answer about one service, with its frame.
#[must_use]
pub fn one(serving: Serving) -> Bytes {
    frame::framed(0, &Response { status: serving as i32 }.encode_to_vec())
}

/// The answer about several.
#[must_use]
pub fn all(statuses: impl IntoIterator<Item = (String, Serving)>) -> Bytes {
    let statuses = statuses.into_iter().map(|(name, serving)| (name, Response { status: serving as i32 })).collect();
    frame::framed(0, &List { statuses }.encode_to_vec())
}
