//! Messages, between Connect's forms and gRPC's.

use std::sync::Arc;

use bytes::Bytes;
use prost_reflect::MethodDescriptor;
use sledge_sandbox::{Budget, Share};

use super::Refused;
use crate::grpc::frame::{self, COMPRESSED, Frame};
use crate::grpc::pack::{UnpackError, unpacked};
use crate::grpc::{Code, Status, json};
use crate::host::BodyError;

/// Why a message is not taken for which there is no memory.
pub(super) const NO_MEMORY: &str = "no_memory";

/// Bytes of memory for a byte of a message whose fields are looked at one by one, at worst: each may be a field of a byte.
const LOOKED_AT_BYTES: u64 = 80;

/// So much is reserved at a time for what is kept.
const RESERVED_STEP_BYTES: u64 = 64 << 10;

/// How messages are written.
#[derive(Clone, Debug)]
pub(super) enum Format {
    /// As they are.
    Proto,
    /// In JSON.
    Json(MethodDescriptor),
}

/// What is known of the messages of a call.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    pub(super) format: Format,
    /// Whether those of the request may be compressed.
    pub(super) is_packed: bool,
    /// The largest one, unpacked.
    pub(super) bytes_max: usize,
    pub(super) budget: Option<Arc<Budget>>,
    pub(super) refused: Refused,
}

impl Messages {
    /// The type of a body of them.
    pub(super) const fn subtype(&self) -> &'static str {
        match self.format {
            Format::Proto => "proto",
            Format::Json(_) => "json",
        }
    }

    /// The frame of a message that has come.
    ///
    /// # Errors
    /// When there is something wrong with it, which the client is told.
    pub(super) fn inward(&self, message: &[u8], is_packed: bool) -> Result<Bytes, BodyError> {
        self.framed(message, is_packed).map_err(|(code, message)| {
            self.refused.set(code, message);
            BodyError::Broken
        })
    }

    fn framed(&self, message: &[u8], is_packed: bool) -> Result<Bytes, (Code, String)> {
        let opened;
        let message = if is_packed {
            opened = unpacked(message, self.bytes_max).map_err(|error| match error {
                UnpackError::TooLong(error) => (Code::ResourceExhausted, error.to_string()),
                UnpackError::Broken(_) => (Code::InvalidArgument, error.to_string()),
            })?;
            &opened
        } else {
            message
        };
        if message.len() > self.bytes_max {
            let error = frame::TooLong { bytes: message.len(), bytes_max: self.bytes_max };
            return Err((Code::ResourceExhausted, error.to_string()));
        }
        let Format::Json(method) = &self.format else { return Ok(frame::framed(0, message)) };
        let _share = self.claim(message.len()).ok_or_else(|| (Code::ResourceExhausted, NO_MEMORY.to_owned()))?;
        let bytes = json::to_bytes(&method.input(), message).map_err(|error| (Code::InvalidArgument, error))?;
        Ok(frame::framed(0, &bytes))
    }

    /// A message of a reply.
    ///
    /// # Errors
    /// When there is something wrong with it.
    pub(super) fn outward(&self, frame: Frame) -> Result<Bytes, Status> {
        let message = if frame.flags & COMPRESSED == 0 {
            frame.message
        } else {
            let opened = unpacked(&frame.message, self.bytes_max);
            opened.map_err(|error| Status::new(Code::Internal, format!("the reply: {error}")))?.into()
        };
        let Format::Json(method) = &self.format else { return Ok(message) };
        let _share = self.claim(message.len()).ok_or_else(|| Status::new(Code::ResourceExhausted, NO_MEMORY))?;
        let json = json::to_json(&method.output(), &message);
        json.map(Bytes::from)
            .map_err(|error| Status::new(Code::Internal, format!("the reply is no {}: {error}", method.output().full_name())))
    }

    /// Makes a share cover what is kept, where that is much; whether there is so much.
    pub(super) fn reserve(&self, share: &mut Option<Share>, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let Some(budget) = self.budget.as_ref().filter(|_| bytes > RESERVED_STEP_BYTES) else { return true };
        let wanted = bytes.next_multiple_of(RESERVED_STEP_BYTES);
        match share {
            Some(share) => share.bytes() >= bytes || share.resize(wanted),
            None => {
                *share = budget.claim(wanted);
                share.is_some()
            }
        }
    }

    /// What a message needs that is looked at; none where there is not so much.
    fn claim(&self, bytes: usize) -> Option<Option<Share>> {
        match &self.budget {
            None => Some(None),
            Some(budget) => budget.claim(bytes as u64 * LOOKED_AT_BYTES).map(Some),
        }
    }
}
