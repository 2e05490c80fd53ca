//! A request by gRPC, whose status tells how it ended: its status of HTTP is 200 in all cases, and gRPC's often comes last, in trailers. So such a
//! request is counted, logged and traced when its reply is over.

use std::time::Instant;

use http_body_util::Either;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};

use super::access::{Line, Seen};
use super::response::Answer;
use super::router::Place;
use crate::grpc::{self, Code};
use crate::metrics::Shard;
use crate::telemetry::TraceId;

/// The status of a reply that is said in another protocol, in an extension of the response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said(pub(super) usize);

/// The status of a reply, if its head says it or all of it is there.
pub(super) fn status(response: &Response<Answer>) -> Option<usize> {
    grpc::status_in(response.headers()).or_else(|| match response.body() {
        Either::Left(whole) => whole.trailer(&grpc::GRPC_STATUS).map(grpc::status_number),
        Either::Right(_) => None,
    })
}

/// A request by gRPC that has got the head of its reply.
#[derive(Debug)]
pub(super) struct Called {
    shard: Shard,
    place: Option<Place>,
    line: Option<Line>,
    /// What the head says, if it does.
    status: Option<usize>,
    /// What the status is if neither the head nor trailers say it.
    otherwise: usize,
    /// Bytes of the body so far.
    bytes: u64,
}

impl Called {
    /// One with that response.
    pub(super) fn new(shard: &Shard, place: Option<&Place>, response: &Response<Answer>) -> Called {
        let status = response.extensions().get().map_or_else(|| status(response), |Said(status)| Some(*status));
        // As clients take what is no gRPC.
        let otherwise = match response.status() {
            StatusCode::OK => Code::Unknown,
            other => grpc::Status::of_http(other).code,
        };
        let place = place.cloned();
        Called { shard: shard.clone(), place, line: None, status, otherwise: otherwise as usize, bytes: 0 }
    }

    /// Has it logged when it is over.
    pub(super) fn log(&mut self, seen: Seen, status: StatusCode, begin: Instant, trace: Option<TraceId>) {
        self.line = Some(Line { seen, status, begin, trace });
    }

    /// A part of its reply goes out.
    pub(super) const fn note_bytes(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Its reply is over, with these trailers if it has any. The number of its status.
    pub(super) fn ended(self, trailers: Option<&HeaderMap>) -> usize {
        let status = trailers.and_then(grpc::status_in).or(self.status).unwrap_or(self.otherwise);
        self.ended_with(status)
    }

    /// Its client has left before its reply was over.
    pub(super) fn cancelled(self) -> usize {
        self.ended_with(Code::Cancelled as usize)
    }

    fn ended_with(self, status: usize) -> usize {
        let Called { shard, place, line, bytes, .. } = self;
        if let Some(place) = &place {
            shard.note_of(place.number(), place.labels(), |row| row.called(status));
        }
        if let Some(line) = line {
            line.log(place.as_ref(), bytes, Some(status));
        }
        status
    }
}

/// Ends those whose reply is there as a whole, and has the others ended with their bodies.
pub(super) fn answered(called: Called, response: &mut Response<Answer>) -> Option<usize> {
    match response.body_mut() {
        Either::Left(whole) => {
            let mut called = called;
            called.note_bytes(whole.len());
            Some(called.ended(None))
        }
        Either::Right(streamed) => {
            streamed.call(called);
            None
        }
    }
}
