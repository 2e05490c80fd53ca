//! The body of a request to another server: all of it, or what comes as the connection takes it.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, SizeHint};

/// Why a body does not go on.
type Reason = Box<dyn Error + Send + Sync>;

/// The body of a request.
pub struct RequestBody(Content);

enum Content {
    Whole(Full<Bytes>),
    Coming(UnsyncBoxBody<Bytes, Reason>),
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestBody")
    }
}

impl RequestBody {
    /// One that comes piece by piece.
    pub fn of(body: impl Body<Data = Bytes, Error: Error + Send + Sync + 'static> + Send + 'static) -> RequestBody {
        RequestBody(Content::Coming(body.map_err(|error| -> Reason { Box::new(error) }).boxed_unsync()))
    }
}

impl From<Full<Bytes>> for RequestBody {
    fn from(body: Full<Bytes>) -> RequestBody {
        RequestBody(Content::Whole(body))
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> RequestBody {
        Full::new(bytes).into()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Reason;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Reason>>> {
        match &mut self.0 {
            Content::Whole(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Content::Coming(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Whole(body) => body.is_end_stream(),
            Content::Coming(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(body) => body.size_hint(),
            Content::Coming(body) => body.size_hint(),
        }
    }
}
