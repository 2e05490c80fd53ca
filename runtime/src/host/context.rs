//! What belongs to one invocation on the host's side: its ports, work that a host call has begun, what is known of it.

mod drawn;
mod ports;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::Request;
use hyper::header::{Entry, HeaderName, HeaderValue};
use sledge_sandbox::Share;

use super::call::{CallFailure, CallId, Outgoing};
use super::canonical::{Lowering, Operations};
use super::effect::{Effect, EffectTrace, Watch};
use super::http::RequestHead;
use super::lines::Writer;
use super::rpc::Edges;
use super::stdio::{Input, Output};
use super::wasi::{BufferList, Grant};
use super::wasi3::Ends;
use crate::kv::Space;
use crate::outcome::Failure;
use crate::phases::{Phase, PhaseClock, Phases, Profiler};
use crate::reply::{Answer, BUFFER_BYTES_MIN, Content, Fields, Pipe, ReplyHead, Stream};
use crate::telemetry::Trace;
use crate::txn::held::Held;
use crate::txn::{PutOff, Transaction};
use crate::upstream::{SocketPolicy, Upstream};

/// By what servers know a request that may be made again.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

pub use drawn::Drawn;
pub(super) use ports::Ports;
pub use ports::Streams;

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

impl Strings {
    /// Each without its zero.
    pub(super) fn each(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.starts.iter().map(|start| {
            let rest = self.bytes.get(*start as usize..).unwrap_or_default();
            String::from_utf8_lossy(rest.split(|byte| *byte == 0).next().unwrap_or_default())
        })
    }

    /// Names and values, where each is `NAME=VALUE`.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, String)> {
        self.each().map(|variable| match variable.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (variable.into_owned(), String::new()),
        })
    }

    /// The value of that name.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let mut values = self.each().filter_map(|variable| Some(variable.strip_prefix(name)?.strip_prefix('=')?.to_owned()));
        values.next()
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
    /// Where its calls by gRPC go.
    pub edges: Option<Arc<Edges>>,
    /// What its sockets may do; without it, there are none.
    pub sockets: Option<Arc<SocketPolicy>>,
    /// The phases that it declares.
    pub phases: Option<Arc<Phases>>,
    /// Whether it is measured what its phases need.
    pub profiler: Profiler,
}

/// Whether the invocation waits for its turn where it begins a phase, and how far the host call is with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PhaseTurns {
    /// It does not.
    None,
    /// It does.
    Each,
    /// It is in the new phase, and its worker is to learn of that.
    Due,
}

/// The host's side of an invocation: its [ports](Ports), the host call under way, and what is known of it.
#[derive(Debug)]
pub struct Context {
    pub(super) ports: Ports,
    /// Bytes that the pending host call has moved, when it has begun and is to be called again.
    pub(super) progress: Option<u64>,
    /// Buffers of the pending host call: address and length. Kept, so that no call allocates.
    pub(super) buffers: BufferList,
    /// A component's result that needs memory of it.
    pub(super) lowering: Option<Box<Lowering>>,
    /// A component's calls that go on by themselves.
    pub(super) operations: Option<Box<Operations>>,
    /// The host's ends of a component's streams and futures.
    pub(super) ends: Option<Box<Ends>>,
    /// What a component was told as `insecure-seed`.
    pub(super) seed: Option<Box<(u64, u64)>>,
    /// Bytes that a pending call keeps.
    pub(super) waiting_bytes: usize,
    /// When it must be over, if that is known.
    deadline: Option<Instant>,
    request_id: Option<Arc<str>>,
    trace: Option<Arc<Trace>>,
    pub(super) host_calls: u32,
    pub(super) phase: u32,
    pub(super) phases: Option<Box<PhaseClock>>,
    turns: PhaseTurns,
    pub(super) watch: Option<Box<Watch>>,
    /// What it reads and writes of the key-value store, where that is one transaction, until that is over.
    transaction: Option<Arc<Transaction>>,
    /// Why a host call was refused, where that is known.
    pub(super) refused: Option<Failure>,
    /// Calls that begin when it has ended, since its transaction has put them off.
    put_off: Vec<PutOff>,
}

impl Context {
    /// That of a new invocation of a function.
    #[inline]
    #[must_use]
    pub fn new(process: Arc<Process>, streams: Streams) -> Context {
        let phases = PhaseClock::new(process.phases.as_ref(), process.profiler.profile());
        Context {
            ports: Ports::new(process, streams),
            progress: None,
            buffers: BufferList::new(),
            lowering: None,
            operations: None,
            ends: None,
            seed: None,
            waiting_bytes: 0,
            deadline: None,
            request_id: None,
            trace: None,
            host_calls: 0,
            phase: 0,
            phases,
            turns: PhaseTurns::None,
            watch: None,
            transaction: None,
            refused: None,
            put_off: Vec::new(),
        }
    }

    /// With what a request says beside its body, if there is a request.
    #[inline]
    #[must_use]
    pub fn with_head(mut self, head: Option<Box<RequestHead>>) -> Context {
        self.ports.set_head(head);
        self
    }

    /// From now on it serves a request through `wasi:http`.
    pub const fn serve_http(&mut self) {
        self.ports.serve_http();
    }

    /// With the request's id and its place in a trace, as far as there are any.
    #[inline]
    #[must_use]
    pub fn with_origin(mut self, request_id: Option<Arc<str>>, trace: Option<Arc<Trace>>) -> Context {
        (self.request_id, self.trace) = (request_id, trace);
        self
    }

    /// With when it must be over.
    #[inline]
    #[must_use]
    pub const fn until(mut self, deadline: Instant) -> Context {
        self.deadline = Some(deadline);
        self
    }

    /// With a turn for each phase, where microtasks have classes.
    #[inline]
    #[must_use]
    pub const fn with_phase_turns(mut self, has_turns: bool) -> Context {
        self.turns = if has_turns { PhaseTurns::Each } else { PhaseTurns::None };
        self
    }

    /// A phase begins, or the host call that began one is made again. Whether it is to be made again, so that the worker learns of it.
    pub(super) const fn begin_turn(&mut self) -> bool {
        let (turns, is_due) = match self.turns {
            PhaseTurns::None => (PhaseTurns::None, false),
            PhaseTurns::Each => (PhaseTurns::Due, true),
            PhaseTurns::Due => (PhaseTurns::Each, false),
        };
        self.turns = turns;
        is_due
    }

    /// Whether it has just begun a phase, and is to wait for its turn. The host call that said so is made again.
    #[must_use]
    pub fn is_turn_due(&self) -> bool {
        self.turns == PhaseTurns::Due
    }

    /// When it must be over, if that is known.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// With a transaction, if it has one.
    #[inline]
    #[must_use]
    pub fn within(mut self, transaction: Option<Arc<Transaction>>) -> Context {
        if transaction.is_some() {
            // Its reply is held until the commit was made.
            self.ports.hold_reply();
        }
        self.transaction = transaction;
        self
    }

    /// Its transaction, if it has one that is not over.
    #[must_use]
    pub const fn transaction(&self) -> Option<&Arc<Transaction>> {
        self.transaction.as_ref()
    }

    /// The key-value store of its tenant, if there is one.
    #[must_use]
    pub fn kv(&self) -> Option<&Space> {
        self.ports.store()
    }

    /// Whether a host call is looked at before it is made. One condition, without branches: asked before every one.
    #[inline]
    pub(super) const fn is_observed(&self) -> bool {
        self.watch.is_some() | self.transaction.is_some()
    }

    /// Names a request to another server, where it may be made again: for a task of a durable execution that the server repeats after a crash. A name of the function's own stays.
    pub(super) fn name_request<B>(&self, request: &mut Request<B>) {
        let Some(name) = self.transaction.as_ref().and_then(|transaction| transaction.next_request()) else { return };
        if let (Entry::Vacant(vacant), Ok(name)) = (request.headers_mut().entry(IDEMPOTENCY_KEY), HeaderValue::try_from(name)) {
            vacant.insert(name);
        }
    }

    /// Puts off the calls whose reply is not wanted, and that were not taken yet, until its transaction is over.
    pub fn put_off_calls(&mut self) {
        let Some(transaction) = self.transaction.as_ref().filter(|transaction| !transaction.may_split()) else { return };
        let Some(calls) = &mut self.ports.calls else { return };
        let (unanswered, others) = std::mem::take(&mut calls.outgoing).into_iter().partition(|call| call.id.is_none());
        calls.outgoing = others;
        let unanswered: VecDeque<Outgoing> = unanswered;
        if let Some(watch) = self.watch.as_mut().filter(|_| !unanswered.is_empty()) {
            // What it is a part of may have taken them over when it is over.
            watch.trace.has_sent = true;
        }
        for Outgoing { name, input, host_call, .. } in unanswered {
            transaction.put_off(PutOff { name, input, host_call });
        }
    }

    /// Its transaction is over: what was put off until then may be done, if it has ended well and none that goes on has taken that over.
    pub fn settled(&mut self, ended_well: bool) {
        if let Some(transaction) = self.transaction.take() {
            let calls = transaction.take_calls();
            if let Some(watch) = self.watch.as_mut().filter(|_| ended_well) {
                watch.trace.transaction = Some(transaction.made());
                watch.trace.has_sent |= !calls.is_empty();
                watch.trace.footprint = watch.footprint_bytes_max.and_then(|max| transaction.footprint(max)).map(Arc::new);
            }
            self.put_off = if ended_well { calls } else { Vec::new() };
        }
    }

    /// Calls that begin now that it has ended.
    pub fn take_put_off(&mut self) -> Vec<PutOff> {
        std::mem::take(&mut self.put_off)
    }

    /// Why its last host call was refused, where that is known.
    pub const fn take_refused(&mut self) -> Option<Failure> {
        self.refused.take()
    }

    /// With what watches it.
    #[must_use]
    pub fn watched(mut self, watch: Watch) -> Context {
        self.watch = Some(Box::new(watch));
        self
    }

    /// With what it draws of the clock and of random numbers kept there, or coming from there.
    #[must_use]
    pub fn drawing(mut self, drawn: Drawn) -> Context {
        self.ports.draw_from(drawn);
        self
    }

    /// The function's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.ports.name()
    }

    /// By what its client knows the request, where requests have ids.
    #[must_use]
    pub const fn request_id(&self) -> Option<&Arc<str>> {
        self.request_id.as_ref()
    }

    /// The request's place in a trace, if there are any.
    #[must_use]
    pub const fn trace(&self) -> Option<&Arc<Trace>> {
        self.trace.as_ref()
    }

    /// Host calls so far, each counted once.
    #[must_use]
    pub const fn host_calls(&self) -> u32 {
        self.host_calls
    }

    /// Counts a host call.
    pub const fn count_host_call(&mut self) {
        self.host_calls = self.host_calls.saturating_add(1);
    }

    /// Where it says it is in its work.
    #[must_use]
    pub const fn phase(&self) -> u32 {
        self.phase
    }

    /// What its function declares of the phase in which it is.
    #[must_use]
    pub fn declared(&self) -> Option<&Phase> {
        self.phases.as_ref().and_then(|phases| phases.current())
    }

    /// How long it was in which phase, if its function declares any or is profiled.
    pub const fn phases_mut(&mut self) -> &mut Option<Box<PhaseClock>> {
        &mut self.phases
    }

    /// What watches it, if anything does.
    #[must_use]
    pub fn watch(&self) -> Option<&Watch> {
        self.watch.as_deref()
    }

    /// The same, which from now on watches no more.
    pub const fn take_watch(&mut self) -> Option<Box<Watch>> {
        self.watch.take()
    }

    /// What it did, if it is over and was watched. What went through its streams counts: a line of the log, a reply that went out while it was written.
    pub fn take_trace(&mut self) -> Option<EffectTrace> {
        let mut trace = self.watch.take()?.trace;
        let streams = &self.ports.streams;
        if !matches!(&streams.errors, Output::Log(lines) if !lines.has_logged()) {
            trace.effects.insert(Effect::Log);
        }
        if !matches!(&streams.output, Output::Reply { .. }) {
            trace.effects.insert(Effect::Reply);
        }
        Some(trace)
    }

    /// Whether what it does is noted.
    #[must_use]
    pub const fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Where what it does is noted, if it is watched.
    pub(super) fn trace_effects(&mut self) -> Option<&mut EffectTrace> {
        self.watch.as_mut().map(|watch| &mut watch.trace)
    }

    /// Bytes that are kept in memory for this invocation: what is left of its body, its reply, what a call that waits holds, its private copies of files.
    #[inline]
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        let streams = &self.ports.streams;
        let body = if let Input::Body(body) = &streams.input { body.left() } else { 0 };
        let reply = match &streams.output {
            Output::Reply { bytes, .. } => bytes.memory_bytes(),
            Output::Stream(writer) => writer.memory_bytes(),
            Output::File(_) | Output::Log(_) => 0,
        };
        // Asked after every host call, and most functions have nothing but their streams and, as components, resources.
        let has_more = self.has_more_than_streams();
        debug_assert!(has_more || self.bytes_beside_streams() == 0, "not all of it is looked for");
        let beside = if has_more { self.bytes_beside_streams() } else { 0 };
        (body + reply + self.ports.resource_bytes()) as u64 + beside
    }

    /// Whether there is anything that [`bytes_beside_streams`](Self::bytes_beside_streams) counts. One condition without branches.
    #[inline]
    fn has_more_than_streams(&self) -> bool {
        self.lowering.is_some()
            | self.operations.is_some()
            | (self.waiting_bytes != 0)
            | self.transaction.is_some()
            | self.ports.has_more_than_streams()
    }

    #[cold]
    fn bytes_beside_streams(&self) -> u64 {
        let ports = &self.ports;
        let component = self.lowering.as_ref().map_or(0, |lowering| lowering.memory_bytes()) + ports.socket_bytes();
        let calls = ports.calls.as_ref().map_or(0, |calls| calls.bytes()) + ports.rpc_bytes();
        let operations = self.operations.as_ref().map_or(0, |operations| operations.memory_bytes());
        let transaction = self.transaction.as_ref().map_or(0, |transaction| transaction.bytes());
        (transaction + self.waiting_bytes + calls + ports.fetches.bytes() + component + operations) as u64 + ports.scratch_bytes()
    }

    /// Whether its reply is a stream that the worker has not taken yet.
    #[must_use]
    pub const fn has_stream(&self) -> bool {
        self.transaction.is_none() && matches!(&self.ports.streams.output, Output::Stream(writer) if !writer.has_begun())
    }

    /// That stream, and what was said about it.
    pub fn take_stream(&mut self) -> Option<(Arc<Pipe>, Stream, Option<Box<ReplyHead>>)> {
        let streams = &mut self.ports.streams;
        let Output::Stream(writer) = &mut streams.output else { return None };
        let (pipe, stream) = writer.begin()?;
        Some((pipe, stream, streams.reply_head.take()))
    }

    /// Makes the reply of an invocation that is over a whole one, where it was to be a stream but is complete before its head was sent. Whether it was made one.
    pub fn complete_stream(&mut self) -> bool {
        let streams = &mut self.ports.streams;
        if streams.trailers.is_some() {
            return false;
        }
        let Output::Stream(writer) = &mut streams.output else { return false };
        let Some((bytes, bytes_max)) = writer.take_whole() else { return false };
        streams.output = Output::Reply { bytes, bytes_max };
        true
    }

    /// What its reply lacks: all of it, or some of what it has said.
    #[must_use]
    pub fn shortfall(&self) -> Option<Failure> {
        let streams = &self.ports.streams;
        match &streams.output {
            _ if streams.is_http && !streams.is_answered => Some(Failure::ReplyMissing),
            Output::Stream(writer) => writer.shortfall(),
            _ => None,
        }
    }

    /// What it has said is to come behind its reply.
    #[must_use]
    pub fn trailers(&self) -> Option<&Fields> {
        self.ports.streams.trailers.as_deref()
    }

    /// The same, for the reply.
    pub const fn take_trailers(&mut self) -> Option<Box<Fields>> {
        self.ports.streams.trailers.take()
    }

    /// Whether it has called other functions since that was last asked.
    #[must_use]
    pub fn has_outgoing(&self) -> bool {
        self.ports.calls.as_ref().is_some_and(|calls| !calls.outgoing.is_empty())
    }

    /// The first of the calls of other functions that are to be made. The room for it is kept for the next one.
    pub fn next_outgoing(&mut self) -> Option<Outgoing> {
        self.ports.calls.as_mut()?.outgoing.pop_front()
    }

    /// A call was made, and its reply comes there; or it was not.
    pub fn called(&mut self, id: CallId, answer: Result<Answer, CallFailure>) {
        if let Some(calls) = &mut self.ports.calls {
            calls.called(id, answer);
        }
    }

    /// Whether it has opened files or folders and not closed them, or has other resources of the host.
    #[must_use]
    pub fn has_opened(&self) -> bool {
        self.ports.has_opened()
    }

    /// What is reserved for its body, for the sandbox, which counts it from now on.
    pub fn take_body_share(&mut self) -> Option<Share> {
        if let Input::Body(body) = &mut self.ports.streams.input { body.take_share() } else { None }
    }

    /// Which invocation its log lines name; none where its errors go to a file.
    #[must_use]
    pub const fn log_writer(&self) -> Option<&Writer> {
        if let Output::Log(lines) = &self.ports.streams.errors { Some(lines.writer()) } else { None }
    }

    /// Where its log lines wait, if it is ahead.
    #[must_use]
    pub const fn log_held(&self) -> Option<&Arc<Held>> {
        if let Output::Log(lines) = &self.ports.streams.errors { lines.holder() } else { None }
    }

    /// The reply that the guest wrote to file descriptor 1, and what it said about it. For an invocation that is over: the log's last line is written, too.
    ///
    /// A reply stays in memory until its client has taken it. `share` is asked to count so many bytes until then.
    #[must_use]
    pub fn take_reply(&mut self, share: impl FnOnce(usize) -> Option<Share>) -> (Content, Option<Box<ReplyHead>>) {
        let Streams { output, reply_head, .. } = &mut self.ports.streams;
        let counted = |bytes| if bytes >= BUFFER_BYTES_MIN { share(bytes) } else { None };
        let reply = match output {
            Output::Reply { bytes, .. } => {
                let share = counted(bytes.memory_bytes());
                bytes.take_content(share)
            }
            // It goes, or has gone, where it was asked for.
            Output::Stream(writer) => {
                writer.set_share(counted(writer.memory_bytes()));
                Content::Whole(Bytes::new())
            }
            Output::File(_) | Output::Log(_) => Content::Whole(Bytes::new()),
        };
        (reply, reply_head.take())
    }
}
