//! gRPC-Web: frames are those of gRPC, so only trailers are said otherwise, and all of it as text where the client wants that.

use std::mem;
use std::ops::ControlFlow;

use bytes::Bytes;
use http_body_util::Either;
use hyper::Response;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TRAILER};

use super::{Inward, Outward};
use crate::grpc::web;
use crate::host::BodyError;
use crate::http::response::{Answer, Whole};

/// The types that clients and functions speak of: with the format of messages behind.
const TYPE: &str = "application/grpc-web";
const TEXT_TYPE: &str = "application/grpc-web-text";

/// A request in it.
#[derive(Debug)]
pub(super) struct Web {
    is_text: bool,
}

impl Web {
    /// Makes a request's headers those of gRPC.
    pub(super) fn begin(is_text: bool, headers: &mut HeaderMap) -> Web {
        let own = if is_text { TEXT_TYPE } else { TYPE };
        let ty = headers.get(CONTENT_TYPE).and_then(|ty| ty.to_str().ok()).and_then(|ty| ty.strip_prefix(own));
        let ty = HeaderValue::try_from(format!("application/grpc{}", ty.unwrap_or_default()));
        super::as_grpc(headers, ty.unwrap_or(HeaderValue::from_static("application/grpc")));
        Web { is_text }
    }

    pub(super) fn inward(&self) -> Option<Box<dyn Inward>> {
        self.is_text.then(|| Box::new(FromText::default()) as Box<dyn Inward>)
    }

    /// The reply, whose head may have its status already.
    pub(super) fn reply(&self, mut response: Response<Answer>) -> Response<Answer> {
        let own = if self.is_text { TEXT_TYPE } else { TYPE };
        let ty = response.headers().get(CONTENT_TYPE).and_then(|ty| ty.to_str().ok());
        let Some(format) = ty.and_then(|ty| ty.strip_prefix("application/grpc")) else { return response };
        if let Ok(ty) = HeaderValue::try_from(format!("{own}{format}")) {
            response.headers_mut().insert(CONTENT_TYPE, ty);
        }
        response.headers_mut().remove(CONTENT_LENGTH);
        response.headers_mut().remove(TRAILER);
        let mut outward = ToWeb { is_text: self.is_text };
        response.map(|body| match body {
            Either::Left(whole) => Either::Left(outward.whole(whole)),
            Either::Right(mut streamed) => {
                streamed.translate(Box::new(outward));
                Either::Right(streamed)
            }
        })
    }
}

#[derive(Debug, Default)]
struct FromText(web::Text);

impl Inward for FromText {
    fn data(&mut self, bytes: Bytes) -> Result<Bytes, BodyError> {
        self.0.decode(&bytes).map_err(|web::NotText| BodyError::Broken)
    }

    fn end(&mut self) -> Result<(), BodyError> {
        self.0.end().map_err(|web::NotText| BodyError::Broken)
    }
}

#[derive(Debug)]
struct ToWeb {
    is_text: bool,
}

impl ToWeb {
    fn said(&self, bytes: Bytes) -> Bytes {
        if self.is_text { web::encode(&bytes) } else { bytes }
    }

    /// A reply that is there. Without trailers its status is in its head.
    fn whole(&mut self, mut whole: Whole) -> Whole {
        let (bytes, trailers) = mem::take(&mut whole).into_parts();
        let end = trailers.map(|trailers| web::trailers(&trailers)).unwrap_or_default();
        let all = if end.is_empty() { bytes } else { [bytes, end].concat().into() };
        self.said(all).into()
    }
}

impl Outward for ToWeb {
    fn data(&mut self, bytes: Bytes) -> ControlFlow<Bytes, Bytes> {
        ControlFlow::Continue(self.said(bytes))
    }

    fn end(&mut self, trailers: HeaderMap) -> Bytes {
        self.said(web::trailers(&trailers))
    }
}
