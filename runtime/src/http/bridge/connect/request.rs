//! Bodies of requests, which become frames of gRPC.

use bytes::{Bytes, BytesMut};
use sledge_sandbox::Share;

use super::messages::{Messages, NO_MEMORY};
use crate::grpc::Code;
use crate::grpc::frame::{COMPRESSED, Frames};
use crate::host::BodyError;
use crate::http::body::Inward;

/// The message of a unary call: all of the body, or of the query.
#[derive(Debug)]
pub(super) struct Message {
    messages: Messages,
    came: BytesMut,
    share: Option<Share>,
}

impl Message {
    pub(super) fn new(messages: Messages, message: Option<Bytes>) -> Message {
        Message { messages, came: message.map(BytesMut::from).unwrap_or_default(), share: None }
    }
}

impl Inward for Message {
    fn data(&mut self, bytes: Bytes) -> Result<Bytes, BodyError> {
        self.came.extend_from_slice(&bytes);
        if self.came.len() > self.messages.bytes_max {
            let what = format!("a message of more than {} bytes", self.messages.bytes_max);
            self.messages.refused.set(Code::ResourceExhausted, what);
            return Err(BodyError::TooLarge);
        }
        if !self.messages.reserve(&mut self.share, self.came.len()) {
            self.messages.refused.set(Code::ResourceExhausted, NO_MEMORY);
            return Err(BodyError::TooLarge);
        }
        Ok(Bytes::new())
    }

    fn end(&mut self) -> Result<Bytes, BodyError> {
        // An empty body may be an empty message without having been packed.
        let is_packed = self.messages.is_packed && !self.came.is_empty();
        let frame = self.messages.inward(&self.came, is_packed);
        self.came = BytesMut::new();
        self.share = None;
        frame
    }
}

/// The messages of a stream.
#[derive(Debug)]
pub(super) struct Envelopes {
    messages: Messages,
    frames: Frames,
}

impl Envelopes {
    pub(super) fn new(messages: Messages) -> Envelopes {
        let frames = Frames::new(messages.bytes_max);
        Envelopes { messages, frames }
    }
}

impl Inward for Envelopes {
    fn data(&mut self, bytes: Bytes) -> Result<Bytes, BodyError> {
        self.frames.push(&bytes);
        let mut all = BytesMut::new();
        loop {
            let frame = match self.frames.take() {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(all.freeze()),
                Err(error) => {
                    self.messages.refused.set(Code::ResourceExhausted, error.to_string());
                    return Err(BodyError::Broken);
                }
            };
            let is_packed = frame.flags & COMPRESSED != 0;
            if frame.flags & !COMPRESSED != 0 {
                self.messages.refused.set(Code::InvalidArgument, format!("an envelope with the flags {:#x}", frame.flags));
                return Err(BodyError::Broken);
            }
            if is_packed && !self.messages.is_packed {
                self.messages.refused.set(Code::Internal, "a compressed message without connect-content-encoding");
                return Err(BodyError::Broken);
            }
            all.extend_from_slice(&self.messages.inward(&frame.message, is_packed)?);
        }
    }

    fn end(&mut self) -> Result<Bytes, BodyError> {
        if self.frames.is_empty() {
            return Ok(Bytes::new());
        }
        self.messages.refused.set(Code::InvalidArgument, "the request ends in the middle of a message");
        Err(BodyError::Broken)
    }
}
