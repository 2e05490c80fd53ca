//! gRPC-Web: frames are those of gRPC, so only trailers are said otherwise, and all of it as text where the client wants that.

use std::ops::ControlFlow;

use bytes::Bytes;
use http_body_util::Either;
use hyper::Response;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, TRAILER};

use crate::grpc::{self, GRPC_TYPE, web};
use crate::host::BodyError;
use crate::http::body::Inward;
use crate::http::response::{Answer, Whole};
use crate::http::streamed::Outward;

/// The types that clients and functions speak of: with the format of messages behind.
const TYPE: &str = "application/grpc-web";
const TEXT_TYPE: &str = "application/grpc-web-text";

/// A request in it.
#[derive(Debug)]
pub(super) struct Web {
    is_text: bool,
    /// The type of the request, which the reply has, too.
    ty: HeaderValue,
}

impl Web {
    /// Makes a request's headers those of gRPC.
    pub(super) fn begin(is_text: bool, headers: &mut HeaderMap) -> Web {
        let own = if is_text { TEXT_TYPE } else { TYPE };
        let ty = headers.get(CONTENT_TYPE).cloned().unwrap_or(HeaderValue::from_static(TYPE));
        let format = ty.as_bytes().strip_prefix(own.as_bytes()).unwrap_or_default();
        let grpc = HeaderValue::from_bytes(&[GRPC_TYPE.as_bytes(), format].concat());
        super::as_grpc(headers, grpc.unwrap_or(GRPC_TYPE));
        Web { is_text, ty }
    }

    pub(super) fn inward(&self) -> Option<Box<dyn Inward>> {
        self.is_text.then(|| Box::new(FromText::default()) as Box<dyn Inward>)
    }

    /// The reply, whose head may have its status already.
    pub(super) fn reply(self, mut response: Response<Answer>) -> Response<Answer> {
        if !grpc::is_grpc(response.headers()) {
            return response;
        }
        response.headers_mut().insert(CONTENT_TYPE, self.ty);
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

    fn end(&mut self) -> Result<Bytes, BodyError> {
        self.0.end().map(|()| Bytes::new()).map_err(|web::NotText| BodyError::Broken)
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

    /// A reply that is there.
    fn whole(&mut self, whole: Whole) -> Whole {
        let (bytes, trailers) = whole.into_parts();
        let end = self.end(trailers.unwrap_or_default());
        let bytes = self.said(bytes);
        if end.is_empty() { bytes.into() } else { Bytes::from([bytes, end].concat()).into() }
    }
}

impl Outward for ToWeb {
    fn data(&mut self, bytes: Bytes) -> ControlFlow<Bytes, Bytes> {
        ControlFlow::Continue(self.said(bytes))
    }

    fn end(&mut self, trailers: HeaderMap) -> Bytes {
        // Then the head has the status.
        if trailers.is_empty() { Bytes::new() } else { self.said(web::trailers(&trailers)) }
    }
}
