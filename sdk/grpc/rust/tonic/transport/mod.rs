//! Server and channel of a function: requests come from `sledge:rpc`, and calls go there. Addresses have no meaning.

#[cfg(feature = "channel")]
pub mod channel;
mod compat;
pub(crate) mod direct;
mod error;
#[cfg(feature = "server")]
pub mod server;
mod service;
mod tls;
mod version;

#[cfg(feature = "channel")]
pub use self::channel::{Channel, ClientTlsConfig, Endpoint};
pub use self::compat::Body;
pub use self::error::Error;
#[cfg(feature = "server")]
pub use self::server::{Server, ServerTlsConfig};
pub use self::tls::{Certificate, Identity};
pub use http::Uri;

#[allow(unused_imports, unreachable_pub)]
pub use self::compat::more::*;
