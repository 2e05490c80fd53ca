//! Requests of web pages from other origins (Cross-Origin Resource Sharing, in the Fetch standard), where a function's `cors` says which may.
//!
//! Services of applications have theirs in `bridge`: calls by gRPC-Web and Connect need other headers.

use hyper::Method;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD,
    HeaderMap, HeaderValue, ORIGIN, VARY,
};
use hyper::http::request::Parts;

use crate::config::{CORS_ALL, CorsConfig};

const ALL: HeaderValue = HeaderValue::from_static(CORS_ALL);

/// Which pages may use a function, and how.
#[derive(Debug)]
pub(super) struct Cors {
    /// Origins of pages; none for all.
    origins: Option<Vec<HeaderValue>>,
    methods: HeaderValue,
    /// Headers that pages may send.
    headers: HeaderValue,
    /// Headers that pages see.
    exposed: HeaderValue,
    credentials: bool,
    max_age_s: HeaderValue,
}

/// What a request says of the page that it is from.
#[derive(Debug)]
pub(super) struct Asker {
    /// Its origin, if that is listed.
    origin: Option<HeaderValue>,
    /// For a question before a request: the headers that this will have.
    preflight: Option<Option<HeaderValue>>,
}

impl Asker {
    /// Whether the browser only asks.
    pub(super) const fn is_preflight(&self) -> bool {
        self.preflight.is_some()
    }
}

impl Cors {
    /// What a configuration that was checked says of a function which answers these methods.
    pub(super) fn new(config: &CorsConfig, answered: &HeaderValue) -> Cors {
        let CorsConfig { origins, methods, headers, exposed_headers, credentials, max_age_s } = config;
        // What was checked is a header's value.
        let value = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""));
        let is_all = origins.iter().any(|origin| origin == CORS_ALL);
        Cors {
            origins: (!is_all).then(|| origins.iter().map(|origin| value(origin)).collect()),
            methods: methods.as_ref().map_or_else(|| answered.clone(), |methods| value(&methods.join(", "))),
            headers: value(&headers.join(", ")),
            exposed: value(&exposed_headers.join(", ")),
            credentials: *credentials,
            max_age_s: (*max_age_s).into(),
        }
    }

    /// What a request says.
    pub(super) fn asker(&self, head: &Parts) -> Asker {
        let origin = head.headers.get(ORIGIN);
        let is_listed = |origin: &&HeaderValue| self.origins.as_ref().is_some_and(|listed| listed.contains(origin));
        let is_preflight =
            head.method == Method::OPTIONS && origin.is_some() && head.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let wanted = || head.headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
        Asker { origin: origin.filter(is_listed).cloned(), preflight: is_preflight.then(wanted) }
    }

    /// Says in a reply what the page may.
    pub(super) fn put(&self, headers: &mut HeaderMap, asker: Asker) {
        for name in [ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_EXPOSE_HEADERS] {
            headers.remove(name);
        }
        let Asker { origin, preflight } = asker;
        let origin = if self.origins.is_none() {
            // The same for all, so that caches need not keep one for each.
            ALL
        } else {
            super::policy::vary(headers, "origin");
            let Some(origin) = origin else { return };
            origin
        };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if self.credentials {
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        let Some(wanted) = preflight else {
            if !self.exposed.is_empty() {
                headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.clone());
            }
            return;
        };
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, self.methods.clone());
        // A `*` would not stand for `Authorization`, nor for any where there are credentials.
        let allowed = if self.headers == ALL { wanted } else { Some(self.headers.clone()) };
        if let Some(allowed) = allowed.filter(|allowed| !allowed.is_empty()) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        }
        headers.insert(ACCESS_CONTROL_MAX_AGE, self.max_age_s.clone());
        headers.append(VARY, HeaderValue::from_static("access-control-request-method, access-control-request-headers"));
    }
}
