//! The reply of a call.

use std::sync::Arc;
use std::task::{ready, Context, Poll};

use bytes::Bytes;
use sledge_grpc_rt::call::{Call, Sizes};
use tokio::sync::OwnedSemaphorePermit;

use super::super::compat::{Piece, Source};
use super::super::service::rows;
use super::call::broken;
use crate::Status;

/// How much is read at once, at first.
const ROOM_BYTES: usize = 4 << 10;
/// And at most.
const ROOM_BYTES_MAX: usize = 1 << 20;

/// A reply that is there.
pub(super) struct WholeReply {
    text: Bytes,
    /// Where the body begins and ends.
    body: [usize; 2],
}

impl WholeReply {
    pub(super) fn new(text: Vec<u8>, sizes: Sizes) -> Self {
        let [head, body, _] = sizes.map(|size| size as usize);
        Self { text: text.into(), body: [head, head + body] }
    }

    /// Its headers as rows.
    pub(super) fn head(&self) -> Bytes {
        self.text.slice(..self.body[0])
    }
}

/// Gives the reply's body, and behind it its trailers. The call is given up when this is dropped before.
pub(super) struct ReplyBody {
    from: From,
    _permit: Option<OwnedSemaphorePermit>,
}

enum From {
    Whole(WholeReply),
    Call { call: Arc<Call>, buffer: Vec<u8>, room: usize },
    Over,
}

impl ReplyBody {
    pub(super) fn new(call: Arc<Call>, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { from: From::Call { call, buffer: Vec::new(), room: ROOM_BYTES }, _permit: permit }
    }

    pub(super) fn whole(reply: WholeReply, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { from: From::Whole(reply), _permit: permit }
    }
}

impl Source for ReplyBody {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, Status>>> {
        let piece = match &mut self.from {
            From::Whole(WholeReply { text, body: [begin, end] }) => {
                if begin < end {
                    let bytes = text.slice(*begin..*end);
                    *begin = *end;
                    return Poll::Ready(Some(Ok(Piece::Data(bytes))));
                }
                Ok(Piece::Trailers(rows::headers(&text.slice(*end..))))
            }
            From::Call { call, buffer, room } => {
                if buffer.capacity() == 0 {
                    buffer.reserve_exact(*room);
                }
                let piece = match ready!(call.poll_read(context, buffer)) {
                    Ok(0) => call.trailers().map(|trailers| Piece::Trailers(rows::headers(&trailers.into()))),
                    Ok(_) => {
                        if buffer.len() == buffer.capacity() {
                            *room = ROOM_BYTES_MAX.min(*room * 4);
                        }
                        return Poll::Ready(Some(Ok(Piece::Data(std::mem::take(buffer).into()))));
                    }
                    Err(error) => Err(error),
                };
                call.cancel();
                piece
            }
            From::Over => return Poll::Ready(None),
        };
        self.from = From::Over;
        Poll::Ready(Some(piece.map_err(broken)))
    }
}

impl Drop for ReplyBody {
    fn drop(&mut self) {
        if let From::Call { call, .. } = &self.from {
            call.cancel();
        }
    }
}
