//! Requests that tests own and change.

#![allow(dead_code, reason = "each test program uses a part")]

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sledge_aws::{ApiError, Message, Refusal, Request, SERVICE, Secret, Signer};

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) authority: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Sample {
    /// A request for an operation, without a signature.
    pub(crate) fn of(operation: &str, body: impl AsRef<[u8]>) -> Sample {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/x-amz-json-1.0"));
        headers.insert("x-amz-target", HeaderValue::try_from(format!("AWSStepFunctions.{operation}")).unwrap());
        headers.insert("host", HeaderValue::from_static("127.0.0.1:8080"));
        Sample { method: Method::POST, path: "/".to_owned(), query: None, authority: None, headers, body: body.as_ref().to_vec() }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Sample {
        self.headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        self
    }

    pub(crate) fn message(&self) -> Message<'_> {
        Message {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            authority: self.authority.as_deref(),
            headers: &self.headers,
            body: &self.body,
        }
    }

    pub(crate) fn read(&self) -> Result<Request, ApiError> {
        Request::read(&self.message())
    }

    /// Verifies with the one secret of a key.
    pub(crate) fn verify(&self, now_ms: i64, key: &str, secret: &str) -> Result<Signer, Refusal> {
        sledge_aws::verify(&self.message(), SERVICE, now_ms, |id| (id == key).then(|| Secret::new(secret)))
    }
}
