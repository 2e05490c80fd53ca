//! Reading a request's body, within its limit and in time.

use std::pin::pin;
use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use crate::host::Body;
use crate::outcome::Failure;

/// How long a body may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Pieces smaller than this are joined, so that a body in tiny pieces costs no more memory than its bytes.
const PIECE_BYTES_MIN: usize = 16 << 10;

/// Whether a body says by itself that it is too large: decided before any of it is read.
#[must_use]
pub fn is_declared_too_large(body: &Incoming, bytes_max: u64) -> bool {
    body.size_hint().lower() > bytes_max
}

/// Reads a body.
///
/// # Errors
/// When it is larger than `bytes_max` (found out without reading more than that and one piece), ends early, or takes too long.
pub async fn read(body: Incoming, bytes_max: u64) -> Result<Body, Failure> {
    if body.is_end_stream() {
        return Ok(Body::default());
    }
    let read = pin!(collect(body, bytes_max));
    // Bodies that came with their head, as most do, set no timer.
    tokio::time::timeout(TIMEOUT, read).await.unwrap_or(Err(Failure::BodyTimeout))
}

async fn collect(mut incoming: Incoming, bytes_max: u64) -> Result<Body, Failure> {
    let mut body = Body::default();
    let mut joined = BytesMut::new();
    let mut total = 0u64;
    while let Some(frame) = incoming.frame().await {
        // Trailers are no part of the body.
        let Ok(data) = frame.map_err(|_| Failure::BodyBroken)?.into_data() else { continue };
        total += data.len() as u64;
        if total > bytes_max {
            return Err(Failure::BodyTooLarge);
        }
        let is_whole = joined.is_empty() && incoming.is_end_stream();
        if is_whole || data.len() >= PIECE_BYTES_MIN {
            body.push(joined.split().freeze());
            body.push(data);
        } else {
            joined.extend_from_slice(&data);
            if joined.len() >= PIECE_BYTES_MIN {
                body.push(joined.split().freeze());
            }
        }
    }
    body.push(joined.freeze());
    Ok(body)
}
