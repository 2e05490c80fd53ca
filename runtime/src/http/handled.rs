//! A request that is answered, and in which manner its client is.

use std::time::{Duration, Instant};

use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Response, Version};

use super::HttpService;
use super::bridge::Bridge;
use super::response::{self, Answer};
use super::router::{Place, Site};
use super::services::{self, Asked};
use super::step::Step;
use crate::grpc::{self, Kind};
use crate::outcome::Failure;

/// The answer, whose path was asked for, if it is any function's, and why the answer is none of a function's.
pub(super) struct Handled {
    pub(super) response: Response<Answer>,
    pub(super) place: Option<Place>,
    pub(super) failure: Option<Failure>,
    /// Whether the client speaks gRPC.
    pub(super) is_grpc: bool,
}

impl Handled {
    pub(super) fn answered(response: Response<Answer>, place: Option<Place>, manner: Manner) -> Handled {
        Handled { response, place, failure: None, is_grpc: manner.is_grpc() }
    }

    /// A failure, in the words of what the client speaks.
    pub(super) fn failed(failure: Failure, place: Option<Place>, manner: Manner) -> Handled {
        let response = match manner {
            Manner::Http => response::failure(&failure, place.as_ref()),
            Manner::Grpc { .. } => response::grpc_failure(&failure, place.as_ref()),
        };
        Handled { response, place, failure: Some(failure), is_grpc: manner.is_grpc() }
    }

    /// The same as the client gets it that speaks another protocol.
    pub(super) fn over(self, bridge: Option<Box<Bridge>>) -> Step<Handled> {
        match bridge {
            None => Step::Now(self),
            Some(bridge) => Step::later(async move { Handled { response: bridge.reply(self.response).await, ..self } }),
        }
    }
}

/// What a client speaks over HTTP.
#[derive(Clone, Copy)]
pub(super) enum Manner {
    /// Nothing else.
    Http,
    /// gRPC: what has failed is a status in trailers.
    Grpc {
        /// How long the call may take at most; none of an outer one where it is malformed.
        timeout: Option<Option<Duration>>,
    },
}

impl Manner {
    pub(super) fn of(kind: Kind, head: &Parts) -> Manner {
        if kind == Kind::Grpc && head.version == Version::HTTP_2 { Manner::grpc(&head.headers) } else { Manner::Http }
    }

    pub(super) fn grpc(headers: &HeaderMap) -> Manner {
        let timeout = headers.get(grpc::GRPC_TIMEOUT);
        Manner::Grpc { timeout: timeout.map_or(Some(None), |time| grpc::timeout(time.as_bytes()).map(Some)) }
    }

    /// The method of the server's own services that a path stands for.
    pub(super) fn asked(self, service: &HttpService, site: Site, path: &str) -> Option<Asked> {
        match self {
            Manner::Http => None,
            Manner::Grpc { .. } => services::asked(service, site, path),
        }
    }

    pub(super) const fn is_grpc(self) -> bool {
        matches!(self, Manner::Grpc { .. })
    }

    /// When the client has no more time.
    ///
    /// # Errors
    /// Where it says that, and not in the way of gRPC.
    pub(super) fn deadline(self) -> Result<Option<Instant>, Failure> {
        match self {
            Manner::Http | Manner::Grpc { timeout: Some(None) } => Ok(None),
            Manner::Grpc { timeout: Some(Some(time)) } => Ok(Instant::now().checked_add(time)),
            Manner::Grpc { timeout: None } => Err(Failure::BadHead("grpc_timeout_malformed")),
        }
    }
}
