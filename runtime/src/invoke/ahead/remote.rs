//! Calls by gRPC among the calls that a function is expected to make: what they say besides the message is a part of the argument, so that equal arguments are equal calls.

use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};

use crate::host::{RequestHead, RpcRequest};
use crate::speculate::sequence::ARGUMENT_BYTES_MAX;

/// What stands before the name of a function that is called by gRPC. No name of a function has a colon.
const PREFIX: &str = "grpc:";

/// A call as it is told apart from others: what is called, and with what.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The function, and how it is called.
    pub(crate) callee: Arc<str>,
    /// The message, and for a call by gRPC what is said besides.
    pub(crate) argument: Bytes,
}

impl Asked {
    /// That of a call. None where the callee sees what no argument says: a message that goes on, a time limit; where a message is too large to be kept; and where there is no such function.
    pub(crate) fn of(name: &Arc<str>, input: &Bytes, rpc: Option<&RpcRequest>) -> Option<Asked> {
        match rpc {
            None if name.starts_with(PREFIX) => None,
            None => Some(Asked { callee: Arc::clone(name), argument: input.clone() }),
            Some(RpcRequest { more: None, timeout: None, head }) if input.len() <= ARGUMENT_BYTES_MAX => {
                Some(Asked { callee: format!("{PREFIX}{name}").into(), argument: encoded(head, input) })
            }
            Some(_) => None,
        }
    }

    /// The name of the function, what it gets as its body, and what it sees as the request's head. None where that is no such call.
    pub(crate) fn request(callee: &Arc<str>, argument: &Bytes) -> Option<(Arc<str>, Bytes, Option<RpcRequest>)> {
        let Some(name) = callee.strip_prefix(PREFIX) else { return Some((Arc::clone(callee), argument.clone(), None)) };
        let (head, message) = decoded(argument.clone())?;
        Some((name.into(), message, Some(RpcRequest { head: Box::new(head), more: None, timeout: None })))
    }
}

/// Path and metadata, each part with its length before it, and the message.
fn encoded(head: &RequestHead, message: &Bytes) -> Bytes {
    let mut bytes = BytesMut::with_capacity(message.len() + 256);
    let put = |bytes: &mut BytesMut, part: &[u8]| {
        // Both have limits far below that.
        bytes.put_u32(part.len() as u32);
        bytes.put_slice(part);
    };
    put(&mut bytes, head.target.path().as_bytes());
    bytes.put_u32(head.headers.len() as u32);
    for (name, value) in &head.headers {
        put(&mut bytes, name.as_str().as_bytes());
        put(&mut bytes, value.as_bytes());
    }
    bytes.put_slice(message);
    bytes.freeze()
}

fn decoded(mut bytes: Bytes) -> Option<(RequestHead, Bytes)> {
    let part = |bytes: &mut Bytes| {
        let length = bytes.try_get_u32().ok()? as usize;
        (length <= bytes.len()).then(|| bytes.split_to(length))
    };
    let target = Uri::from_maybe_shared(part(&mut bytes)?).ok()?;
    let count = bytes.try_get_u32().ok()?;
    let mut headers = HeaderMap::new();
    for _ in 0..count {
        let name = HeaderName::from_bytes(&part(&mut bytes)?).ok()?;
        headers.append(name, HeaderValue::from_maybe_shared(part(&mut bytes)?).ok()?);
    }
    Some((RequestHead { method: Method::POST, target, headers, is_secure: false }, bytes))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rpc(path: &'static str, headers: &[(&'static str, &'static str)]) -> RpcRequest {
        let headers = headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let (target, headers) = (Uri::from_static(path), headers.collect());
        let head = RequestHead { method: Method::POST, target, headers, is_secure: false };
        RpcRequest { head: Box::new(head), more: None, timeout: None }
    }

    #[test]
    fn a_call_by_grpc_is_equal_to_one_with_the_same_method_metadata_and_message() {
        let of = |path, headers: &[_], message: &'static str| {
            Asked::of(&"f".into(), &Bytes::from(message), Some(&rpc(path, headers))).unwrap()
        };
        let asked = of("/s.S/M", &[("a", "1"), ("b", "2"), ("a", "3")], "message");
        let (name, message, again) = Asked::request(&asked.callee, &asked.argument).unwrap();
        let head = again.unwrap().head;
        assert_eq!((&*name, &*message, head.target.path()), ("f", &b"message"[..], "/s.S/M"));
        assert_eq!(head.headers, rpc("/", &[("a", "1"), ("b", "2"), ("a", "3")]).head.headers);
        let others = [
            of("/s.S/N", &[("a", "1"), ("b", "2"), ("a", "3")], "message"),
            of("/s.S/M", &[("a", "1"), ("b", "2"), ("a", "4")], "message"),
            of("/s.S/M", &[("a", "1"), ("b", "2")], "message"),
            of("/s.S/M", &[("a", "1"), ("b", "2"), ("a", "3")], "other"),
        ];
        assert!(others.iter().all(|other| other.argument != asked.argument && other.callee == asked.callee));
    }

    #[test]
    fn what_no_argument_says_and_what_is_no_argument_is_no_call_to_be_expected() {
        let of = |rpc: &RpcRequest| Asked::of(&"f".into(), &Bytes::new(), Some(rpc));
        let limited = RpcRequest { timeout: Some(Duration::from_secs(1)), ..rpc("/s.S/M", &[]) };
        assert!(of(&limited).is_none() && of(&rpc("/s.S/M", &[])).is_some());
        let large = Bytes::from(vec![0; ARGUMENT_BYTES_MAX + 1]);
        assert!(Asked::of(&"f".into(), &large, Some(&rpc("/s.S/M", &[]))).is_none());
        // A name that no function has is not taken for a call by gRPC.
        assert!(Asked::of(&"grpc:f".into(), &Bytes::new(), None).is_none());
        let whole = of(&rpc("/s.S/M", &[("a", "1")])).unwrap();
        let plain = Asked::of(&"f".into(), &whole.argument, None).unwrap();
        assert_ne!(plain.callee, whole.callee);
        for length in 0..whole.argument.len() {
            assert!(Asked::request(&whole.callee, &whole.argument.slice(..length)).is_none(), "{length}");
        }
    }
}
