//! Protocols that carry calls by gRPC otherwise: browsers speak [gRPC-Web](web).
//!
//! A request becomes one of gRPC before its function sees it, and the reply, whatever it is, becomes the protocol's on its way out. So functions and all that the
//! server does about them know gRPC only. What is translated are calls of services of [applications](Offer); other functions get requests as they come.

mod cors;
mod web;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Response;
use hyper::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use hyper::http::request::Parts;

use super::response::Answer;
use super::router::Router;
use super::{HttpService, Site, services};
use crate::grpc::{GRPC_TYPE, Kind, Offer};
use crate::host::BodyError;

pub(super) use cors::preflight;

/// What an extension of gRPC's protocol does to the head of a request.
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Makes a body of gRPC of what comes.
pub(super) trait Inward: fmt::Debug + Send {
    /// Some of it.
    ///
    /// # Errors
    /// When it is not what it should be.
    fn data(&mut self, bytes: Bytes) -> Result<Bytes, BodyError>;

    /// It is over.
    ///
    /// # Errors
    /// When it should not be.
    fn end(&mut self) -> Result<(), BodyError>;
}

/// Makes of the body of a reply of gRPC what the client gets.
pub(super) trait Outward: fmt::Debug {
    /// Some of it. What breaks here is the last of it.
    fn data(&mut self, bytes: Bytes) -> ControlFlow<Bytes, Bytes>;

    /// What stands at its end, in place of the trailers.
    fn end(&mut self, trailers: HeaderMap) -> Bytes;
}

/// A request in another protocol than gRPC, and how its reply is said in it.
#[derive(Debug)]
pub(super) struct Bridge {
    protocol: web::Web,
    cors: Option<HeaderValue>,
}

impl Bridge {
    /// For a request of that kind, if it calls a service of an application; its head is one of gRPC then.
    pub(super) fn of(kind: Kind, service: &HttpService, site: Site, head: &mut Parts) -> Option<Bridge> {
        let Kind::Web { is_text } = kind else { return None };
        let offer = offer(&service.router.borrow(), site, head.uri.path());
        // Also the services that the server itself offers are called so.
        let is_own = || services::asked(service, site, head.uri.path()).is_some();
        if offer.is_none() && !is_own() {
            return None;
        }
        let cors = offer.and_then(|offer| cors::allowed(&offer, &head.headers));
        let protocol = web::Web::begin(is_text, &mut head.headers);
        Some(Bridge { protocol, cors })
    }

    /// How the request's body is read.
    pub(super) fn inward(&self) -> Option<Box<dyn Inward>> {
        self.protocol.inward()
    }

    /// The reply as the client gets it.
    pub(super) fn reply(self, response: Response<Answer>) -> Response<Answer> {
        let mut response = self.protocol.reply(response);
        if let Some(origin) = self.cors {
            cors::expose(&mut response, origin);
        }
        response
    }
}

/// What has the service of a path at an address.
fn offer(router: &Router, site: Site, path: &str) -> Option<Arc<Offer>> {
    let (service, _) = path.strip_prefix('/')?.rsplit_once('/')?;
    router.offers(site).iter().find(|offer| offer.has(service)).map(Arc::clone)
}

/// Makes headers of a request those of gRPC with messages of that format.
fn as_grpc(headers: &mut HeaderMap, ty: HeaderValue) {
    headers.insert(CONTENT_TYPE, ty);
    headers.insert(TE, HeaderValue::from_static("trailers"));
    for name in [CONTENT_LENGTH, ACCEPT_ENCODING, GRPC_ACCEPT_ENCODING] {
        headers.remove(name);
    }
}
