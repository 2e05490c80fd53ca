//! The client's side: a call of a channel that has no layers around it.

use std::any::TypeId;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem;

use http::header::CONTENT_TYPE;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue};
use sledge_grpc_rt::call::is_turn_over;

use super::message::{self, Scratch};
use crate::codec::Codec;
use crate::metadata::{MetadataMap, GRPC_CONTENT_TYPE, GRPC_TIMEOUT_HEADER};
use crate::transport::channel::{Channel, Made, Reply};
use crate::transport::Error;
use crate::{Request, Response, Status};

thread_local! {
    /// What is sent.
    static SENT: Scratch = const { Scratch::new() };
    /// What comes.
    static CAME: Scratch = const { Scratch::new() };
    /// What a reply says that says nothing of its own, head and trailers.
    static USUAL: RefCell<Option<HeaderMap>> = const { RefCell::new(None) };
}

/// The most bytes of a message, encoded and decoded.
pub(crate) type Limits = [Option<usize>; 2];

/// What became of a call.
pub(crate) enum Outcome<M1, M2, C> {
    /// It is over.
    Over(Result<Response<M2>, Status>),
    /// It has begun, and the reply is not there, or not a usual one.
    Goes(Reply, C),
    /// It has not begun, and is not for this way.
    Not(Request<M1>, C),
}

/// The channel, if the client calls one without layers.
pub(crate) fn channel<T>(inner: &mut T) -> Option<&mut Channel> {
    if type_id::<T>() != TypeId::of::<Channel>() {
        return None;
    }
    // SAFETY: `T` is `Channel`, as the two have the same number. A type with lifetimes has the number that it has with all of them `'static`; `Channel` has none.
    Some(unsafe { &mut *std::ptr::from_mut(inner).cast::<Channel>() })
}

/// The number of a type that may have lifetimes.
fn type_id<T>() -> TypeId {
    trait Numbered {
        fn number(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T> Numbered for PhantomData<T> {
        fn number(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let phantom = PhantomData::<T>;
    let numbered: &dyn Numbered = &phantom;
    // SAFETY: The two types differ in a lifetime alone, of which the method makes no use: it has no data of type `T`, and answers with a number.
    unsafe { mem::transmute::<&dyn Numbered, &(dyn Numbered + 'static)>(numbered) }.number()
}

/// Makes the call.
pub(crate) async fn call<M1, M2, C>(
    channel: &mut Channel,
    request: Request<M1>,
    path: &PathAndQuery,
    mut codec: C,
    [sent_max, came_max]: Limits,
) -> Outcome<M1, M2, C>
where
    C: Codec<Encode = M1, Decode = M2>,
{
    let has_metadata = !request.metadata().is_empty();
    if channel.has_limits() || (has_metadata && request.metadata().contains_key(GRPC_TIMEOUT_HEADER)) {
        return Outcome::Not(request, codec);
    }
    if is_turn_over() {
        tokio::task::yield_now().await;
    }
    let (metadata, _, message) = request.into_parts();
    let mut sent = SENT.with(Scratch::take);
    let encoded = message::encode(codec.encoder(), message, sent_max, &mut sent);
    let made = encoded.map_err(Into::into).and_then(|()| {
        let headers = has_metadata.then(|| metadata.into_sanitized_headers());
        channel.make(headers, path, &sent)
    });
    SENT.with(|scratch| scratch.put(sent));
    match made {
        Ok(Made::Whole(reply)) if reply.is_usual() && message::is_one(reply.message(), came_max) => {
            let mut came = CAME.with(Scratch::take);
            came.extend_from_slice(reply.message());
            reply.keep();
            let decoded = message::decode(codec.decoder(), &mut came, "Missing response message.");
            CAME.with(|scratch| scratch.put(came));
            Outcome::Over(match decoded {
                Ok(message) => Ok(Response::from_parts(usual(), message, Default::default())),
                Err(mut status) => {
                    status.metadata_mut().merge(MetadataMap::from_headers(head()));
                    Err(status)
                }
            })
        }
        Ok(made) => Outcome::Goes(channel.goes(made), codec),
        Err(error) => Outcome::Over(Err(Status::from_error_generic(Error::from_source(error)))),
    }
}

/// The head of a reply that says nothing of its own.
fn head() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(2);
    headers.insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
    headers
}

/// The same with its trailers.
fn usual() -> MetadataMap {
    MetadataMap::from_headers(USUAL.with_borrow_mut(|usual| {
        let usual = usual.get_or_insert_with(|| {
            let mut headers = head();
            headers.insert(Status::GRPC_STATUS, HeaderValue::from_static("0"));
            headers
        });
        usual.clone()
    }))
}
