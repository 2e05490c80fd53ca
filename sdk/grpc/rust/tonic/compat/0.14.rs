//! What this version of tonic has of its own: 0.13 and 0.14.

#[cfg(feature = "server")]
use std::convert::Infallible;

use bytes::Bytes;
#[cfg(feature = "server")]
use http::{Request, Response};

#[cfg(feature = "server")]
use crate::server::NamedService;
#[cfg(feature = "server")]
use crate::transport::direct::Service;
use crate::Status;

#[cfg(feature = "server")]
pub(crate) use crate::service::Routes;
pub(crate) use crate::BoxError;

/// A body without a type.
pub(crate) type TonicBody = crate::body::Body;

/// Takes its type from a body.
pub(crate) fn boxed<B>(body: B) -> TonicBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    TonicBody::new(body)
}

/// A service that can be routed.
#[cfg(feature = "server")]
pub trait Routed {
    /// Its name.
    const SERVICE: &'static str;

    /// It without a router, where there is a short way.
    fn direct(&self) -> Option<Service>;

    /// Routes to it alone.
    fn alone(self) -> Routes;

    /// Routes to it and others.
    fn beside(self, others: Routes) -> Routes;
}

#[cfg(feature = "server")]
impl<S> Routed for S
where
    S: tower::Service<Request<TonicBody>, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
    S::Response: axum::response::IntoResponse,
    S::Future: Send + 'static,
{
    const SERVICE: &'static str = S::NAME;

    fn direct(&self) -> Option<Service> {
        Some(Service::new(self.clone()))
    }

    fn alone(self) -> Routes {
        Routes::new(self)
    }

    fn beside(self, others: Routes) -> Routes {
        others.add_service(self)
    }
}

/// The reply that says a status.
#[cfg(feature = "server")]
pub(crate) fn of_status(status: Status) -> Response<TonicBody> {
    status.into_http()
}

/// Why a server is not reached.
#[cfg(feature = "channel")]
pub(crate) fn unreachable(why: String) -> BoxError {
    Box::new(crate::ConnectError(why.into()))
}

/// What else this version has in `transport`.
#[allow(unreachable_pub)]
pub mod more {}

/// And in `transport::server`.
#[cfg(feature = "server")]
#[allow(unreachable_pub)]
pub mod server_more {}
