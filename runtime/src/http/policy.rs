//! What the configuration wants of all replies at a route, whatever its function says. Routes of most functions have none, and their requests pay for one look at that.

use std::sync::Arc;

use hyper::header::{HeaderMap, HeaderValue, VARY};
use hyper::http::request::Parts;
use sledge_sandbox::Budget;

use super::compression::{Compression, Wanted};
use super::cors::{Asker, Cors};
use super::handled::Handled;
use super::step::Step;
use crate::config::{CompressionConfig, FunctionConfig};

/// What is wanted of the replies at a route.
#[derive(Debug)]
pub struct Policy {
    cors: Option<Cors>,
    compression: Option<Compression>,
}

/// What is wanted of the reply to one request, as far as the request says it.
#[derive(Debug)]
pub(super) struct Finish {
    policy: Arc<Policy>,
    asker: Option<Asker>,
    wanted: Option<Wanted>,
}

impl Policy {
    /// What a configuration that was checked says of a function, which answers these methods; none where it says nothing. Memory is claimed of `budget`.
    #[must_use]
    pub fn of(config: &FunctionConfig, answered: &HeaderValue, budget: &Arc<Budget>) -> Option<Arc<Policy>> {
        Policy::new(config.cors.as_ref().map(|cors| Cors::new(cors, answered)), config.compression.as_ref(), budget)
    }

    /// One with these, if there are any. Memory is claimed of `budget`.
    pub(super) fn new(cors: Option<Cors>, compression: Option<&CompressionConfig>, budget: &Arc<Budget>) -> Option<Arc<Policy>> {
        let compression = compression.map(|compression| Compression::new(compression, budget));
        (cors.is_some() || compression.is_some()).then(|| Arc::new(Policy { cors, compression }))
    }

    /// For the reply to a request.
    pub(super) fn finish(self: &Arc<Policy>, head: &Parts) -> Box<Finish> {
        let asker = self.cors.as_ref().map(|cors| cors.asker(head));
        let wanted = self.compression.as_ref().map(|compression| compression.wanted(head));
        Box::new(Finish { policy: Arc::clone(self), asker, wanted })
    }
}

impl Finish {
    /// Whether the server has to answer, and no function.
    pub(super) fn is_preflight(&self) -> bool {
        self.asker.as_ref().is_some_and(Asker::is_preflight)
    }

    /// Makes a reply what is wanted, when it is there.
    pub(super) fn step(self: Box<Finish>, step: Step<Handled>) -> Step<Handled> {
        match step {
            Step::Now(handled) => Step::Now(self.handled(handled)),
            Step::Later(handled) => Step::later(async move { self.handled(handled.await) }),
        }
    }

    fn handled(self, mut handled: Handled) -> Handled {
        let Finish { policy, asker, wanted } = self;
        if let Some((cors, asker)) = policy.cors.as_ref().zip(asker) {
            cors.put(handled.response.headers_mut(), asker);
        }
        // Messages of gRPC are compressed one by one, where they are written.
        if let Some((compression, wanted)) = policy.compression.as_ref().zip(wanted).filter(|_| !handled.is_grpc) {
            handled.response = compression.put(handled.response, wanted);
        }
        handled
    }
}

/// Says that the reply depends on a header of the request, which is in lower case, unless it says so.
pub(super) fn vary(headers: &mut HeaderMap, name: &'static str) {
    let says = |value: &HeaderValue| {
        value.to_str().is_ok_and(|list| list.split(',').any(|item| item.trim().eq_ignore_ascii_case(name) || item.trim() == "*"))
    };
    if !headers.get_all(VARY).iter().any(says) {
        headers.append(VARY, HeaderValue::from_static(name));
    }
}
