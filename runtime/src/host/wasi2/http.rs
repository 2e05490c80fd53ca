//! `wasi:http`: the resources through which a request is served.

use crate::host::canonical::{Resource, Typed, number};

/// The request that is being served.
#[derive(Debug)]
pub(in crate::host) struct IncomingRequest;

/// Where its response goes.
#[derive(Debug)]
pub(in crate::host) struct ResponseOutparam;

impl Resource for IncomingRequest {}

impl Typed for IncomingRequest {
    const NUMBER: u32 = number("wasi:http/types@0.2", "incoming-request");
}

impl Resource for ResponseOutparam {}

impl Typed for ResponseOutparam {
    const NUMBER: u32 = number("wasi:http/types@0.2", "response-outparam");
}
