//! The heads of requests. Most requests of a service say what another one said, but for their bodies: what was made of it then is copied.

use std::cell::RefCell;

use bytes::Bytes;
use http::{HeaderMap, Request, Uri};

use super::super::compat::BoxError;
use super::super::service::rows;
use super::connection::TcpConnectInfo;

/// So many heads are kept, and so many bytes of one.
const KEPT_MAX: usize = 4;
const KEPT_BYTES_MAX: usize = 512;

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept { heads: Vec::new(), oldest: 0 }) };
}

struct Kept {
    heads: Vec<Known>,
    /// The one that is given up next.
    oldest: usize,
}

/// What was made of a head.
struct Known {
    text: Bytes,
    uri: Uri,
    headers: HeaderMap,
    is_plain: bool,
}

/// A request without its body.
pub(super) struct Head {
    pub(super) request: Request<()>,
    /// Whether it has no deadline and no message that may be compressed.
    pub(super) is_plain: bool,
}

/// The request with that path, and headers as rows behind it, which begin at `headers`.
pub(super) fn head(text: &[u8], headers: usize) -> Result<Head, BoxError> {
    let known = KEPT.with_borrow(|kept| {
        let known = kept.heads.iter().find(|known| *known.text == *text)?;
        Some((known.uri.clone(), known.headers.clone(), known.is_plain))
    });
    let (uri, headers, is_plain) = match known {
        Some(known) => known,
        None => {
            let text = Bytes::copy_from_slice(text);
            let uri = Uri::from_maybe_shared(text.slice(..headers))?;
            let headers = rows::headers(&text.slice(headers..));
            let is_plain = ["grpc-timeout", "grpc-encoding"].iter().all(|name| !headers.contains_key(*name));
            if text.len() <= KEPT_BYTES_MAX {
                keep(Known { text, uri: uri.clone(), headers: headers.clone(), is_plain });
            }
            (uri, headers, is_plain)
        }
    };
    let mut request = Request::new(());
    // Calls by gRPC have no other, and the server lets no other through.
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = uri;
    *request.version_mut() = http::Version::HTTP_2;
    *request.headers_mut() = headers;
    request.extensions_mut().insert(TcpConnectInfo { local_addr: None, remote_addr: None });
    Ok(Head { request, is_plain })
}

fn keep(known: Known) {
    KEPT.with_borrow_mut(|Kept { heads, oldest }| {
        if heads.len() < KEPT_MAX {
            heads.push(known);
        } else {
            heads[*oldest] = known;
            *oldest = (*oldest + 1) % KEPT_MAX;
        }
    });
}
