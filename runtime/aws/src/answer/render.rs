//! HTTP responses of answers and errors.

use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

use super::{Answer, RequestId};
use crate::error::ApiError;
use crate::operation;

/// The response to a request. Header and body of an error name its code, each with the namespace that AWS has there.
pub fn render<E: Serialize>(outcome: &Result<Answer<E>, ApiError>, request: RequestId) -> Response<Vec<u8>> {
    let body = match outcome {
        Ok(answer) => serde_json::to_vec(answer).map_err(|_| ApiError::internal_failure()),
        Err(error) => Err(error.clone()),
    };
    let mut response = match body {
        Ok(body) => Response::new(body),
        Err(error) => failure(&error),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(operation::CONTENT_TYPE));
    if let Ok(value) = HeaderValue::try_from(request.to_string()) {
        headers.insert(HeaderName::from_static("x-amzn-requestid"), value);
    }
    response
}

fn failure(error: &ApiError) -> Response<Vec<u8>> {
    #[derive(Serialize)]
    struct Body<'a> {
        __type: String,
        message: &'a str,
    }
    let code = error.code();
    let body = Body { __type: format!("{}#{}", code.namespace(), code.name()), message: error.message() };
    let mut response = Response::new(serde_json::to_vec(&body).unwrap_or_default());
    let status: StatusCode = code.status();
    *response.status_mut() = status;
    response.headers_mut().insert(HeaderName::from_static("x-amzn-errortype"), HeaderValue::from_static(code.name()));
    response
}
