//! The short way of unary calls: where the original tonic goes to `transport/direct` of the replacement. A call that is not for that way goes on as the original says.

use std::path::Path;

use crate::{changes, Error};

/// What is changed in the original: of a file, what stands there and what stands there then.
const CHANGES: [(&str, &str, &str); 7] = [
    (
        "client/grpc.rs",
        "        let request = request.map(|m| tokio_stream::once(m));\n        self.client_streaming(request, path, codec).await\n",
        CLIENT,
    ),
    (
        "server/grpc.rs",
        "        S: UnaryService<T::Decode, Response = T::Encode>,\n        B: HttpBody + Send + 'static,\n        B::Error: Into<crate::BoxError> + Send,\n    {\n",
        SERVER,
    ),
    // A body that is there is a kind of its own.
    (
        "body.rs",
        "    Wrap(BoxBody),\n}\n",
        "    Wrap(BoxBody),\n    #[cfg(feature = \"server\")]\n    Whole(crate::transport::direct::whole::Whole),\n}\n",
    ),
    ("body.rs", "impl Default for Body {\n", BODY),
    (
        "body.rs",
        "            Kind::Wrap(body) => Pin::new(body).poll_frame(cx),\n",
        "            Kind::Wrap(body) => Pin::new(body).poll_frame(cx),\n            #[cfg(feature = \"server\")]\n            \
         Kind::Whole(whole) => Poll::Ready(whole.next()),\n",
    ),
    (
        "body.rs",
        "            Kind::Wrap(body) => body.size_hint(),\n",
        "            Kind::Wrap(body) => body.size_hint(),\n            #[cfg(feature = \"server\")]\n            \
         Kind::Whole(_) => http_body::SizeHint::default(),\n",
    ),
    (
        "body.rs",
        "            Kind::Wrap(body) => body.is_end_stream(),\n",
        "            Kind::Wrap(body) => body.is_end_stream(),\n            #[cfg(feature = \"server\")]\n            \
         Kind::Whole(whole) => whole.is_over(),\n",
    ),
];

const BODY: &str = "#[cfg(feature = \"server\")]
impl Body {
    /// One that is there.
    pub(crate) fn of_whole(whole: crate::transport::direct::whole::Whole) -> Self {
        Self::from_kind(Kind::Whole(whole))
    }

    /// It, if it is such a one.
    pub(crate) fn whole(&mut self) -> Option<&mut crate::transport::direct::whole::Whole> {
        match &mut self.kind {
            Kind::Whole(whole) => Some(whole),
            _ => None,
        }
    }
}

impl Default for Body {
";

const CLIENT: &str = "        #[cfg(feature = \"channel\")]
        let (request, codec) = {
            use crate::transport::direct::client;
            let GrpcConfig {
                origin,
                accept_compression_encodings,
                send_compression_encodings,
                max_decoding_message_size,
                max_encoding_message_size,
            } = &self.config;
            let is_plain = accept_compression_encodings.is_empty()
                && send_compression_encodings.is_none()
                && origin.path_and_query().is_none_or(|path| path == \"/\")
                && IS_KEPT;
            match client::channel(&mut self.inner).filter(|_| is_plain) {
                None => (request, codec),
                Some(channel) => {
                    let limits = [*max_encoding_message_size, *max_decoding_message_size];
                    match client::call(channel, request, &path, codec, limits).await {
                        client::Outcome::Over(result) => return result,
                        client::Outcome::Not(request, codec) => (request, codec),
                        client::Outcome::Goes(reply, codec) => {
                            let config = GrpcConfig {
                                origin: Uri::default(),
                                accept_compression_encodings: *accept_compression_encodings,
                                send_compression_encodings: None,
                                max_decoding_message_size: *max_decoding_message_size,
                                max_encoding_message_size: *max_encoding_message_size,
                            };
                            let mut rest = Grpc { inner: reply, config };
                            let nothing = Request::new(tokio_stream::empty());
                            return Box::pin(rest.client_streaming(nothing, path, codec)).await;
                        }
                    }
                }
            }
        };
        let request = request.map(|m| tokio_stream::once(m));
        self.client_streaming(request, path, codec).await
";

/// What says that a call is not cancelled by a handle (`IS_KEPT`), in versions where that can be.
const HANDLE: (&str, &str) =
    ("request.remove_cancellation_handle()", "request.extensions().get::<crate::CancellationHandle>().is_none()");

const SERVER: &str = "        S: UnaryService<T::Decode, Response = T::Encode>,
        B: HttpBody + Send + 'static,
        B::Error: Into<crate::BoxError> + Send,
    {
        #[cfg(feature = \"server\")]
        let req = {
            use crate::transport::direct::{message, server, whole};
            let mut req = req;
            let encoding = CompressionEncoding::from_accept_encoding_header(
                req.headers(),
                self.send_compression_encodings,
            );
            let frame = if encoding.is_none() {
                whole::take_message(req.body_mut(), self.max_decoding_message_size)
            } else {
                None
            };
            if let Some(mut frame) = frame {
                let (parts, _) = req.into_parts();
                let missing = \"Missing request message.\";
                let decoded = message::decode(self.codec.decoder(), &mut frame, missing);
                drop(frame);
                let response = match decoded {
                    Ok(message) => service.call(Request::from_http_parts(parts, message)).await,
                    Err(status) => Err(status),
                };
                return server::reply(
                    self.codec.encoder(),
                    response,
                    self.max_encoding_message_size,
                );
            }
            req
        };
";

/// A file of the original with what is changed in it.
///
/// # Errors
/// Where something that is to be changed is not in it.
pub fn changed(sources: &Path, path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    let changes = CHANGES.iter().filter(|(file, ..)| Path::new(file) == path);
    let has_handles = String::from_utf8_lossy(&bytes).contains(HANDLE.0);
    let bytes = changes::make(sources, path, bytes, changes.map(|(_, before, after)| (*before, *after)))?;
    if Path::new("client/grpc.rs") != path {
        return Ok(bytes);
    }
    let condition = if has_handles { HANDLE.1 } else { "true" };
    changes::make(sources, path, bytes, [("IS_KEPT", condition)].into_iter())
}
