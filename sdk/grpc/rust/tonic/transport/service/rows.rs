//! Metadata as rows.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue};
use sledge_grpc_rt::rows::Rows;

/// Fields of a connection, which the host has and does not take.
const OF_CONNECTIONS: [HeaderName; 8] = [CONNECTION, CONTENT_LENGTH, DATE, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Whether a field is one of the message.
pub(crate) fn is_of_message(name: &HeaderName) -> bool {
    !OF_CONNECTIONS.contains(name)
}

/// What rows say, values being parts of them. What is no header is left out.
pub(crate) fn headers(rows: &Bytes) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    for (name, value) in Rows(rows) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_maybe_shared(rows.slice_ref(value))) {
            headers.append(name, value);
        }
    }
    headers
}

/// Headers as rows.
pub(crate) fn of(headers: &HeaderMap) -> Vec<u8> {
    let mut rows = Vec::with_capacity(256);
    for (name, value) in headers.iter().filter(|(name, _)| is_of_message(name)) {
        sledge_grpc_rt::rows::push(&mut rows, name.as_str().as_bytes(), value.as_bytes());
    }
    rows
}
