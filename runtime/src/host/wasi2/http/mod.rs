//! `wasi:http`: the request that is served, its response, and requests to other servers.
//!
//! ```text
//!   incoming-request -> incoming-body -> input-stream       the request's body, as it comes     (request, incoming)
//!   outgoing-response -> response-outparam.set              head and body of the reply          (response)
//!   outgoing-request -> outgoing-handler.handle             -> future -> incoming-response      (outgoing_request, client)
//!   outgoing-body -> output-stream -> Writer -> connection  of a reply and of a request         (outgoing)
//! ```
//!
//! Which headers are kept from components, and what fails how, follows what other hosts of these interfaces do.

pub(in crate::host) mod client;
pub(in crate::host) mod error;
pub(in crate::host) mod fields;
pub(in crate::host) mod incoming;
pub(in crate::host) mod options;
pub(in crate::host) mod outgoing;
pub(in crate::host) mod outgoing_request;
pub(in crate::host) mod request;
pub(in crate::host) mod response;
mod sending;
#[cfg(test)]
mod tests;

pub(in crate::host) use error::ErrorCode;
pub(in crate::host) use incoming::Arriving;
pub(in crate::host) use options::RequestOptions;
pub(in crate::host) use outgoing::Outgoing;
pub(in crate::host) use request::IncomingRequest;
pub(in crate::host) use response::ResponseOutparam;

/// Module name of the types' imports.
const TYPES: &str = "wasi:http/types@0.2";
