//! Reading a request's body, within its limit and in time.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use sledge_sandbox::{Budget, Share};

use crate::host::Body;
use crate::outcome::Failure;
use crate::patience::within;

/// Pieces smaller than this are joined, so that a body in tiny pieces costs no more memory than its bytes.
const PIECE_BYTES_MIN: usize = 16 << 10;
/// Bodies of at most this size are not counted: a connection's own buffers are as large.
const FREE_BYTES: u64 = 16 << 10;
/// So much is reserved at a time.
const RESERVED_STEP_BYTES: u64 = 64 << 10;

/// Whether a body says by itself that it is too large: decided before any of it is read.
#[must_use]
pub fn is_declared_too_large(body: &Incoming, bytes_max: u64) -> bool {
    body.size_hint().lower() > bytes_max
}

/// Reads a body; what it needs is reserved of `budget` as it comes.
///
/// # Errors
/// When it is larger than `bytes_max` (found out without reading more than that and one piece), ends early, takes longer than `time_max`, or
/// finds the budget exhausted.
pub async fn read(body: Incoming, bytes_max: u64, time_max: Duration, budget: Option<&Arc<Budget>>) -> Result<Body, Failure> {
    if body.is_end_stream() {
        return Ok(Body::default());
    }
    within(time_max, collect(body, bytes_max, budget)).await.unwrap_or(Err(Failure::BodyTimeout))
}

async fn collect(mut incoming: Incoming, bytes_max: u64, budget: Option<&Arc<Budget>>) -> Result<Body, Failure> {
    let mut body = Body::default();
    let mut share = None;
    let mut joined = BytesMut::new();
    let mut total = 0u64;
    while let Some(frame) = incoming.frame().await {
        // Trailers are no part of the body.
        let Ok(data) = frame.map_err(|_| Failure::BodyBroken)?.into_data() else { continue };
        total += data.len() as u64;
        if total > bytes_max {
            return Err(Failure::BodyTooLarge);
        }
        if total > FREE_BYTES && !budget.is_none_or(|budget| reserve(budget, &mut share, total)) {
            return Err(Failure::NoMemory);
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
    body.set_share(share);
    Ok(body)
}

/// Makes `share` cover `bytes`.
fn reserve(budget: &Arc<Budget>, share: &mut Option<Share>, bytes: u64) -> bool {
    let wanted = bytes.next_multiple_of(RESERVED_STEP_BYTES);
    match share {
        Some(share) => share.bytes() >= bytes || share.resize(wanted),
        None => {
            *share = budget.claim(wanted);
            share.is_some()
        }
    }
}
