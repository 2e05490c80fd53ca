//! Versions of tonic without a [short way](../../direct/mod.rs) of unary calls: there is no such service.

#[cfg(feature = "server")]
mod server {
    use std::convert::Infallible;
    use std::future::Ready;
    use std::task::Context;

    use bytes::BytesMut;
    use http::{Request, Response};

    use crate::transport::compat::ReplyBody;

    pub(crate) type Answering = Ready<Result<Response<ReplyBody>, Infallible>>;

    /// A service that is called without a router.
    pub enum Service {}

    impl Service {
        pub(crate) fn call(&self, _: Request<()>, _: &[u8], _: &mut Context<'_>) -> Answering {
            match *self {}
        }
    }

    pub(crate) fn take_reply(_: &mut ReplyBody) -> Option<BytesMut> {
        None
    }
}
#[cfg(feature = "server")]
pub(crate) use server::{take_reply, Service};
