//! What belongs to one invocation on the host's side: its arguments and environment, its standard streams, work that a host call has
//! begun.

use std::sync::Arc;

use sledge_sandbox::Share;

use super::call::{CallFailure, CallId, Calls, Outgoing};
use super::effect::{EffectTrace, Watch};
use super::fetch::Fetches;
use super::http::RequestHead;
use super::stdio::{Input, Output};
use super::wasi::{Descriptors, Grant};
use crate::kv::{BucketName, Space};
use crate::phases::{PhaseClock, Phases};
use crate::reply::{Answer, Fields, Pipe, ReplyBytes, ReplyHead, Stream};
use crate::telemetry::Trace;
use crate::upstream::Upstream;

/// Zero-terminated strings, as a process gets its arguments and its environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings {
    /// The strings, one after the other, each with its zero.
    pub bytes: Vec<u8>,
    /// Where each begins.
    pub starts: Vec<u32>,
}

impl<S: AsRef<str>> FromIterator<S> for Strings {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Strings {
        let mut all = Strings::default();
        for string in strings {
            // Larger than the guest's address space: leave it out rather than wrap around.
            let Ok(start) = u32::try_from(all.bytes.len()) else { break };
            all.starts.push(start);
            all.bytes.extend_from_slice(string.as_ref().as_bytes());
            all.bytes.push(0);
        }
        all
    }
}

/// What every invocation of a function begins with.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// The function's name, for the log.
    pub name: String,
    /// Arguments; the first is the function's name.
    pub args: Strings,
    /// Environment, each `NAME=VALUE`.
    pub env: Strings,
    /// Folders that it may use, from file descriptor 3 on.
    pub grants: Vec<Grant>,
    /// Its tenant's key-value store, if the server has one.
    pub kv: Option<Space>,
    /// The servers that it may ask.
    pub upstream: Option<Arc<Upstream>>,
    /// The phases that it declares.
    pub phases: Option<Arc<Phases>>,
}

/// An invocation's side of the outside world.
#[derive(Debug)]
pub struct Context {
    /// Name, arguments and environment.
    pub process: Arc<Process>,
    /// File descriptor 0.
    pub input: Input,
    /// File descriptor 1.
    pub output: Output,
    /// File descriptor 2.
    pub errors: Output,
    /// What is open under which number.
    pub(super) descriptors: Descriptors,
    /// Bytes that the pending host call has moved, when it has begun and is to be called again.
    pub(super) progress: Option<u64>,
    /// Buffers of the pending host call: address and length. Kept, so that no call allocates.
    pub(super) buffers: Vec<(u64, u64)>,
    /// Buckets that are open, by their handles.
    pub(super) buckets: Vec<BucketName>,
    /// Bytes that a pending call keeps.
    pub(super) waiting_bytes: usize,
    /// What the request says beside its body, if the function may ask.
    pub request: Option<Box<RequestHead>>,
    /// What it has said about its reply.
    pub reply_head: Option<Box<ReplyHead>>,
    /// What it has said is to come behind its reply.
    pub trailers: Option<Box<Fields>>,
    /// Calls of other functions.
    pub(super) calls: Calls,
    /// Requests to other servers.
    pub(super) fetches: Fetches,
    /// By what its client knows the request, where requests have ids.
    pub request_id: Option<Arc<str>>,
    /// The request's place in a trace, if there are any.
    pub trace: Option<Arc<Trace>>,
    /// Whether it may turn out not to be wanted: then no effect of it may be seen before that is known.
    pub is_speculative: bool,
    /// Host calls so far, each counted once.
    pub host_calls: u32,
    /// Where it says it is in its work.
    pub phase: u32,
    /// How long it was in which phase, if it declares any.
    pub phases: Option<Box<PhaseClock>>,
    /// What watches it, if anything does.
    pub watch: Option<Box<Watch>>,
}

impl Context {
    /// The context of a new invocation.
    #[must_use]
    pub fn new(process: Arc<Process>, input: Input, output: Output, errors: Output) -> Context {
        let descriptors = Descriptors::new(&process.grants);
        let phases = process.phases.as_ref().map(|phases| Box::new(PhaseClock::new(phases)));
        Context {
            process,
            input,
            output,
            errors,
            descriptors,
            progress: None,
            buffers: Vec::new(),
            buckets: Vec::new(),
            waiting_bytes: 0,
            request: None,
            reply_head: None,
            trailers: None,
            calls: Calls::default(),
            fetches: Fetches::default(),
            request_id: None,
            trace: None,
            is_speculative: false,
            host_calls: 0,
            phase: 0,
            phases,
            watch: None,
        }
    }

    /// Where what it does is noted, if it is watched.
    pub(super) fn trace_effects(&mut self) -> Option<&mut EffectTrace> {
        self.watch.as_mut().map(|watch| &mut watch.trace)
    }

    /// Bytes that are kept in memory for this invocation: what is left of its body, its reply, what a call that waits holds.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        let body = if let Input::Body(body) = &self.input { body.left() } else { 0 };
        let reply = match &self.output {
            Output::Reply { bytes, .. } => bytes.memory_bytes(),
            Output::Stream(writer) => writer.memory_bytes(),
            Output::File(_) | Output::Log(_) => 0,
        };
        body as u64 + reply as u64 + self.waiting_bytes as u64 + (self.calls.bytes() + self.fetches.bytes()) as u64
    }

    /// Whether its reply is a stream that the worker has not taken yet.
    #[must_use]
    pub const fn has_stream(&self) -> bool {
        matches!(&self.output, Output::Stream(writer) if !writer.has_begun())
    }

    /// That stream, and what was said about it.
    pub fn take_stream(&mut self) -> Option<(Arc<Pipe>, Stream, Option<Box<ReplyHead>>)> {
        let Output::Stream(writer) = &mut self.output else { return None };
        let (pipe, stream) = writer.begin()?;
        Some((pipe, stream, self.reply_head.take()))
    }

    /// Whether it has written less than it has said.
    #[must_use]
    pub fn falls_short(&self) -> bool {
        matches!(&self.output, Output::Stream(writer) if writer.falls_short())
    }

    /// Whether it has called other functions since that was last asked.
    #[must_use]
    pub const fn has_outgoing(&self) -> bool {
        !self.calls.outgoing.is_empty()
    }

    /// The calls of other functions that are to be made.
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.calls.outgoing)
    }

    /// A call was made, and its reply comes there; or it was not.
    pub fn called(&mut self, id: CallId, answer: Result<Answer, CallFailure>) {
        self.calls.called(id, answer);
    }

    /// Whether it has opened files or folders and not closed them.
    #[must_use]
    pub fn has_opened(&self) -> bool {
        self.descriptors.has_opened()
    }

    /// What is reserved for its body, for the sandbox, which counts it from now on.
    pub fn take_body_share(&mut self) -> Option<Share> {
        if let Input::Body(body) = &mut self.input { body.take_share() } else { None }
    }

    /// The reply that the guest wrote to file descriptor 1. For an invocation that is over: the log's last line is written, too.
    #[must_use]
    pub fn into_reply(self) -> ReplyBytes {
        match self.output {
            Output::Reply { bytes, .. } => bytes,
            // A stream's has gone, or goes, where it was asked for.
            Output::Stream(_) | Output::File(_) | Output::Log(_) => ReplyBytes::default(),
        }
    }
}
