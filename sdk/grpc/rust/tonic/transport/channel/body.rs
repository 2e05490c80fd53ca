//! The reply of a call.

use std::sync::Arc;
use std::task::{ready, Context, Poll};

use sledge_grpc_rt::call::Call;
use tokio::sync::OwnedSemaphorePermit;

use super::super::compat::{Piece, Source};
use super::super::service::rows;
use super::call::broken;
use crate::Status;

/// How much is read at once, at first.
const ROOM_BYTES: usize = 4 << 10;
/// And at most.
const ROOM_BYTES_MAX: usize = 1 << 20;

/// Gives the reply's body, and behind it its trailers. The call is given up when this is dropped before.
pub(super) struct ReplyBody {
    call: Option<Arc<Call>>,
    buffer: Vec<u8>,
    room: usize,
    _permit: Option<OwnedSemaphorePermit>,
}

impl ReplyBody {
    pub(super) fn new(call: Arc<Call>, permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { call: Some(call), buffer: Vec::new(), room: ROOM_BYTES, _permit: permit }
    }
}

impl Source for ReplyBody {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, Status>>> {
        let Some(call) = &self.call else { return Poll::Ready(None) };
        if self.buffer.capacity() == 0 {
            self.buffer.reserve_exact(self.room);
        }
        let piece = match ready!(call.poll_read(context, &mut self.buffer)) {
            Ok(0) => call.trailers().map(|trailers| Piece::Trailers(rows::headers(&trailers))),
            Ok(_) => {
                if self.buffer.len() == self.buffer.capacity() {
                    self.room = ROOM_BYTES_MAX.min(self.room * 4);
                }
                return Poll::Ready(Some(Ok(Piece::Data(std::mem::take(&mut self.buffer).into()))));
            }
            Err(error) => Err(error),
        };
        call.cancel();
        self.call = None;
        Poll::Ready(Some(piece.map_err(broken)))
    }
}

impl Drop for ReplyBody {
    fn drop(&mut self) {
        if let Some(call) = &self.call {
            call.cancel();
        }
    }
}
