//! Requests of web pages from other origins (Cross-Origin Resource Sharing, in the Fetch standard): allowed where the application's `cors_origins` says so.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderName, HeaderValue,
    ORIGIN, VARY,
};
use hyper::{Response, StatusCode};

use super::offer;
use crate::grpc::Offer;
use crate::http::response::{Answer, Whole};
use crate::http::{HttpService, Site};
use http_body_util::Either;

/// For how long a browser need not ask again, in seconds: no browser believes it for longer.
const MAX_AGE_S: &str = "7200";

/// The answer to a browser that asks whether a page may make a request; none where it is not allowed, or nothing is asked.
pub(in crate::http) fn preflight(
    service: &HttpService,
    site: Site,
    pattern: &str,
    headers: &HeaderMap,
) -> Option<Response<Answer>> {
    headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    let origin = allowed(&*offer(&service.router.borrow(), site, pattern)?, headers)?;
    let mut response = Response::new(Either::Left(Whole::default()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let answer = response.headers_mut();
    answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET"));
    if let Some(wanted) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE_S));
    answer.insert(VARY, HeaderValue::from_static("origin, access-control-request-headers"));
    Some(response)
}

/// The origin of the page that makes a request, if it may.
pub(super) fn allowed(offer: &Offer, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let is_listed = |listed: &String| listed == "*" || listed.as_bytes() == origin.as_bytes();
    offer.cors_origins.iter().any(is_listed).then(|| origin.clone())
}

/// Lets the page see the reply, and all of its headers.
pub(super) fn expose(response: &mut Response<Answer>, origin: HeaderValue) {
    let headers = response.headers_mut();
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    let names = HeaderValue::try_from(names.join(", "));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if let Ok(names) = names {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, names);
    }
    headers.append(VARY, HeaderValue::from_static("origin"));
}
