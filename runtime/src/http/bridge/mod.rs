//! Protocols that carry calls by gRPC otherwise: browsers speak gRPC-Web (`web`), they and others Connect (`connect`).
//!
//! A request becomes one of gRPC before its function sees it, and the reply, whatever it is, becomes the protocol's on its way out. So functions and all that the
//! server does about them know gRPC only. What is translated are calls of services of [applications](Offer); other functions get requests as they come.

mod connect;
mod cors;
mod web;

use std::sync::Arc;

use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use hyper::http::request::Parts;
use hyper::{Method, Response, Uri};
use prost_reflect::MethodDescriptor;
use prost_types::MethodOptions;
use prost_types::method_options::IdempotencyLevel;

use super::body::Inward;
use super::called::{self, Said};
use super::response::Answer;
use super::router::{Place, Router};
use super::{HttpService, Site, services};
use crate::grpc::connect::Query;
use crate::grpc::{self, GRPC_ACCEPT_ENCODING, Kind, Offer, json};

use connect::{Asked, Connect};
use web::Web;

pub(super) use cors::preflight;

/// A request in another protocol than gRPC, and how its reply is said in it.
#[derive(Debug)]
pub(super) struct Bridge {
    protocol: Protocol,
    cors: Option<HeaderValue>,
}

#[derive(Debug)]
enum Protocol {
    Web(Web),
    Connect(Box<Connect>),
}

impl Bridge {
    /// For a request of that kind, if it calls a service of an application or one that the server itself offers, or could; its head is one of gRPC then. `place` is
    /// whose its path is.
    pub(super) fn of(kind: Kind, service: &HttpService, site: Site, place: Option<&Place>, head: &mut Parts) -> Option<Bridge> {
        let path = head.uri.path();
        let offer = match place {
            // What is not there is told in the words of gRPC, where the request says by its type that it understands them.
            None if matches!(kind, Kind::Web { .. }) && !service.router.borrow().offers(site).is_empty() => None,
            None => services::asked(service, site, path).map(|_| None)?,
            Some(place) => Some(offer(&service.router.borrow(), site, place.pattern())?),
        };
        let asked = || Asked::of(offer.as_deref(), place, path);
        let protocol = match kind {
            Kind::Web { is_text } => Protocol::Web(Web::begin(is_text, &mut head.headers)),
            Kind::Connect { is_json, is_stream } => {
                Protocol::Connect(Box::new(Connect::begin(is_json, is_stream, asked(), &mut head.headers)?))
            }
            Kind::Grpc | Kind::Other => return None,
        };
        let cors = offer.and_then(|offer| cors::allowed(&offer, &head.headers));
        Some(Bridge { protocol, cors })
    }

    /// For a request with GET, if it calls a method of an application that has no effects; its head is one of gRPC then.
    pub(super) fn of_get(service: &HttpService, site: Site, place: &Place, head: &mut Parts) -> Option<Bridge> {
        let query = head.uri.query()?;
        let offer = offer(&service.router.borrow(), site, place.pattern())?;
        let asked = Asked::of(Some(&offer), Some(place), head.uri.path());
        let has_no_effects = |method: &MethodDescriptor| {
            let level = method.method_descriptor_proto().options.as_ref().map(MethodOptions::idempotency_level);
            level == Some(IdempotencyLevel::NoSideEffects) && !method.is_client_streaming() && !method.is_server_streaming()
        };
        if !asked.method.as_ref().is_some_and(has_no_effects) {
            return None;
        }
        let connect = Connect::get(Query::read(query)?, asked, &mut head.headers)?;
        let mut uri = std::mem::take(&mut head.uri).into_parts();
        uri.path_and_query = uri.path_and_query.and_then(|both| both.path().parse().ok());
        head.uri = Uri::from_parts(uri).ok()?;
        head.method = Method::POST;
        let cors = cors::allowed(&offer, &head.headers);
        Some(Bridge { protocol: Protocol::Connect(Box::new(connect)), cors })
    }

    /// Whether the request cannot be carried out, which is for [`reply`](Bridge::reply) to say.
    pub(super) fn is_refused(&self) -> bool {
        match &self.protocol {
            Protocol::Web(_) => false,
            Protocol::Connect(connect) => connect.is_refused(),
        }
    }

    /// How the request's body is read.
    pub(super) fn inward(&mut self) -> Option<Box<dyn Inward>> {
        match &mut self.protocol {
            Protocol::Web(web) => web.inward(),
            Protocol::Connect(connect) => Some(connect.inward()),
        }
    }

    /// The reply as the client gets it.
    pub(super) async fn reply(self, response: Response<Answer>) -> Response<Answer> {
        let said = called::status(&response);
        let mut response = match self.protocol {
            Protocol::Web(web) => web.reply(response),
            Protocol::Connect(connect) => connect.reply(response).await,
        };
        // What was found out about it on its way out counts.
        if let Some(said) = said
            && response.extensions().get::<Said>().is_none()
        {
            response.extensions_mut().insert(Said(said));
        }
        if let Some(origin) = self.cors {
            cors::expose(&mut response, origin);
        }
        response
    }
}

impl Asked {
    /// The method of a path, of an application or of the server itself.
    fn of(offer: Option<&Offer>, place: Option<&Place>, path: &str) -> Asked {
        let pool = offer.map_or_else(|| Some(grpc::own_pool()), |offer| offer.pool.as_ref());
        let budget = match place {
            Some(Place::Served(route)) => route.function.template.budget().cloned(),
            _ => None,
        };
        Asked {
            method: pool.and_then(|pool| json::method(pool, path)),
            message_bytes_max: offer.map_or(services::MESSAGE_BYTES_MAX, |offer| offer.message_bytes_max),
            budget,
        }
    }
}

/// What has the service of a route at an address. A function that has no application may have a path of one.
fn offer(router: &Router, site: Site, pattern: &str) -> Option<Arc<Offer>> {
    let service = pattern.strip_prefix('/')?.strip_suffix("/*")?;
    router.offers(site).iter().find(|offer| offer.has(service)).map(Arc::clone)
}

/// Makes headers of a request those of gRPC with messages of that format.
fn as_grpc(headers: &mut HeaderMap, ty: HeaderValue) {
    headers.insert(CONTENT_TYPE, ty);
    headers.insert(TE, HeaderValue::from_static("trailers"));
    for name in [CONTENT_LENGTH, CONTENT_ENCODING, ACCEPT_ENCODING, GRPC_ACCEPT_ENCODING] {
        headers.remove(name);
    }
}
