//! Everything that one invocation may touch, each behind the effect that touching it has.
//!
//! ```text
//!   host::call opens the ports of the function's Effect --> HostFunction --Ports::kv, ::streams, ...--> Ok | Stop::Refused
//! ```
//!
//! Ports are made for one invocation and belong to it. A host function reaches the outside through them only, and only through those that its
//! [`Effect`] opens: one that declares [`Effect::Safe`] and reads the store ends the invocation with an internal error. So an invocation can be snapshotted,
//! repeated or run ahead of time by its effects alone. Open files are the exception: they come with the streams. What is behind a port can be exchanged (for buffered writes or replayed answers) without
//! a change to the host functions.

use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::drawn::Drawn;
use crate::host::call::Calls;
use crate::host::canonical::{Resource, Resources, Typed};
use crate::host::effect::{Effect, Effects};
use crate::host::fetch::Fetches;
use crate::host::rpc::Edges;
use crate::host::wasi::{Descriptors, Errno, Grant};
use crate::host::wasi2::Reach;
use crate::host::{Body, Input, LogLines, Output, Process, RequestHead, Stop, Strings, wasi2};
use crate::kv::{BucketName, Space};
use crate::reply::{Fields, ReplyBytes, ReplyHead, Writer as ReplyWriter};
use crate::upstream::Upstream;

/// The ports of one invocation. Its fields are for the [`Context`](super::Context): host functions come through the methods that check.
#[derive(Debug)]
pub(in crate::host) struct Ports {
    /// What the host call under way may touch.
    open: Effects,
    process: Arc<Process>,
    /// Where [`Effect::Stream`] leads to.
    pub(super) streams: Streams,
    /// What is open under which number.
    descriptors: Descriptors,
    /// What the request says beside its body, if there is a request.
    head: Option<Box<RequestHead>>,
    /// Buckets that are open, by their handles.
    buckets: Vec<BucketName>,
    /// Calls of other functions, once there is one.
    pub(super) calls: Option<Box<Calls>>,
    pub(super) fetches: Fetches,
    /// What sockets may reach, once one was asked for.
    sockets: Option<Box<Reach>>,
    /// What a component's handles stand for.
    resources: Resources,
    /// What [`Effect::Entropy`] leads to.
    entropy: Entropy,
    /// A share for each file or folder that a component has open.
    open_files_share: Option<Arc<()>>,
}

/// The standard streams of an invocation, and what it says about its reply.
#[derive(Debug)]
pub struct Streams {
    /// File descriptor 0.
    pub(in crate::host) input: Input,
    /// File descriptor 1.
    pub(in crate::host) output: Output,
    /// File descriptor 2.
    pub(in crate::host) errors: Output,
    /// What it has said about its reply.
    pub(in crate::host) reply_head: Option<Box<ReplyHead>>,
    /// What it has said is to come behind its reply.
    pub(in crate::host) trailers: Option<Box<Fields>>,
    /// Whether a component serves the request through `wasi:http`: then its standard streams are not the request's and the reply's.
    pub(in crate::host) is_http: bool,
    /// Whether it has said what the response is.
    pub(in crate::host) is_answered: bool,
    /// Whether reading file descriptor 0, and writing to 1, answers that there is nothing, or no room, in place of waiting.
    pub(in crate::host) input_is_nonblocking: bool,
    pub(in crate::host) output_is_nonblocking: bool,
    /// Whether all of the reply is kept until the invocation is over.
    holds_reply: bool,
}

/// What differs from one moment to the next, and what was drawn of it where that is kept.
#[derive(Clone, Debug, Default)]
pub(in crate::host) struct Entropy(Option<Drawn>);

impl Streams {
    /// Those of a request: its body goes in, a reply of at most `reply_bytes_max` comes out, errors go to the log.
    #[inline]
    #[must_use]
    pub const fn of_request(body: Body, reply: ReplyBytes, reply_bytes_max: usize, log: LogLines) -> Streams {
        let output = Output::Reply { bytes: reply, bytes_max: reply_bytes_max };
        Streams {
            input: Input::Body(body),
            output,
            errors: Output::Log(log),
            reply_head: None,
            trailers: None,
            is_http: false,
            is_answered: false,
            input_is_nonblocking: false,
            output_is_nonblocking: false,
            holds_reply: false,
        }
    }

    /// Its reply is a stream from now on: it goes out while it is written, or is kept.
    pub(in crate::host) fn stream(&mut self, mut writer: ReplyWriter) {
        if self.holds_reply {
            writer.hold();
        }
        self.output = Output::Stream(writer);
    }

    /// Those of a program: files of this process. Reading `input` waits until `deadline`, if there is one.
    #[must_use]
    pub const fn of_program(input: File, deadline: Option<Instant>, output: File, errors: File) -> Streams {
        let input = Input::File { file: input, deadline };
        Streams {
            input,
            output: Output::File(output),
            errors: Output::File(errors),
            reply_head: None,
            trailers: None,
            is_http: false,
            is_answered: false,
            input_is_nonblocking: false,
            output_is_nonblocking: false,
            holds_reply: false,
        }
    }
}

/// Ports that a host function of an effect reaches. What is beside its own stands here with the reason.
const fn reached_by(effect: Effect) -> Effects {
    let all = Effects::of(effect);
    match effect {
        // What it writes to file descriptor 2 goes to the log.
        Effect::Stream => all.and(Effect::Log),
        // Trailers are known with the body's end; a wait for the clock is one for a stream, too.
        Effect::Head | Effect::Entropy => all.and(Effect::Stream),
        // What a reply is depends on what the request wants. Why another server has not answered goes to the log. A call by gRPC is one of another function
        // or of another server, as the configuration says.
        Effect::External => all.and(Effect::Stream).and(Effect::Head).and(Effect::Log).and(Effect::Call),
        Effect::Reply => all.and(Effect::Stream).and(Effect::Head).and(Effect::Log),
        Effect::KvWrite => all.and(Effect::KvRead),
        // No function declares it: it is what a call of one that is external comes to.
        Effect::Safe | Effect::Log | Effect::KvRead | Effect::Call | Effect::Scratch => all,
    }
}

impl Ports {
    #[inline]
    pub(in crate::host) fn new(process: Arc<Process>, streams: Streams) -> Ports {
        let descriptors = Descriptors::new(&process.grants);
        let fetches = Fetches::default();
        Ports {
            open: Effects::default(),
            process,
            streams,
            descriptors,
            head: None,
            buckets: Vec::new(),
            calls: None,
            fetches,
            sockets: None,
            resources: Resources::default(),
            entropy: Entropy::default(),
            open_files_share: None,
        }
    }

    /// What it draws of the clock and of random numbers goes there, or comes from there.
    pub(in crate::host) fn draw_from(&mut self, drawn: Drawn) {
        self.entropy = Entropy(Some(drawn));
    }

    /// All of its reply is kept until it is over.
    pub(in crate::host) const fn hold_reply(&mut self) {
        self.streams.holds_reply = true;
    }

    pub(in crate::host) fn set_head(&mut self, head: Option<Box<RequestHead>>) {
        self.head = head;
    }

    /// Opens the ports of a host function that has this effect, and closes the others.
    pub(in crate::host) const fn open(&mut self, effect: Effect) {
        self.open = reached_by(effect);
    }

    /// The function's name. No effect is needed for what every invocation of the function has alike.
    pub(in crate::host) fn name(&self) -> &str {
        &self.process.name
    }

    /// The function's arguments.
    pub(in crate::host) fn args(&self) -> &Strings {
        &self.process.args
    }

    /// The function's environment.
    pub(in crate::host) fn env(&self) -> &Strings {
        &self.process.env
    }

    /// The folders that the function may use.
    pub(in crate::host) fn grants(&self) -> &[Grant] {
        &self.process.grants
    }

    /// Whether files or folders are open that were not when it began.
    pub(in crate::host) fn has_opened(&self) -> bool {
        self.descriptors.has_opened() || self.resources.has_more()
    }

    /// What a component's handles stand for. Each is made by a host function whose effect opened what is behind it.
    pub(in crate::host) fn resources_mut(&mut self) -> &mut Resources {
        if !self.resources.has_places() {
            self.resources.reserve(wasi2::standing(&self.process.grants));
        }
        &mut self.resources
    }

    /// What a component's handle stands for.
    pub(in crate::host) fn resource<T: Typed>(&mut self, representation: u32) -> Result<&mut T, Stop> {
        self.stand(representation);
        self.resources.get(representation)
    }

    /// Takes away what a component's handle stands for.
    pub(in crate::host) fn take_resource<T: Typed>(&mut self, representation: u32) -> Result<Box<T>, Stop> {
        self.stand(representation);
        self.resources.take(representation)
    }

    /// Keeps what a component's handle is to stand for; its representation. One that depends on `parent` has to be dropped before that.
    pub(in crate::host) fn insert_resource(&mut self, resource: Box<dyn Resource>, parent: Option<u32>) -> Result<u32, Stop> {
        if let Some(parent) = parent {
            self.stand(parent);
        }
        self.resources_mut().insert(resource, parent)
    }

    /// Makes what every invocation of the function has, if the representation stands for that.
    fn stand(&mut self, representation: u32) {
        if self.resources_mut().is_missing(representation)
            && let Some(resource) = wasi2::stand(&self.process.grants, &self.descriptors, self.streams.is_http, representation)
        {
            self.resources.stand(representation, resource);
        }
    }

    /// A component's handle was dropped, and with it what it stands for, unless that lasts.
    pub(in crate::host) fn drop_resource(&mut self, representation: u32) -> Result<(), Stop> {
        let is_served = self.streams.is_http;
        if let Some(mut resource) = self.resources_mut().drop_handle(representation, is_served)? {
            resource.dropped();
        }
        Ok(())
    }

    /// What a component's handles stand for, beside the streams.
    pub(in crate::host) fn resources_and_streams(&mut self) -> Result<(&mut Resources, &mut Streams), Stop> {
        self.check(Effect::Stream).map(|()| (&mut self.resources, &mut self.streams))
    }

    /// A share for each file or folder that a component has open.
    pub(in crate::host) fn open_files_share(&mut self) -> &Arc<()> {
        self.open_files_share.get_or_insert_default()
    }

    /// Whether anything beside the streams and resources can keep bytes: what the methods below count, calls and fetches. One condition without branches.
    #[inline]
    pub(super) const fn has_more_than_streams(&self) -> bool {
        self.sockets.is_some() | self.calls.is_some() | self.fetches.has_places() | self.descriptors.are_changed()
    }

    /// Bytes that the resources of a component keep.
    #[inline]
    pub(super) const fn resource_bytes(&self) -> usize {
        self.resources.memory_bytes()
    }

    /// Bytes that the kernel keeps for sockets.
    pub(super) fn socket_bytes(&self) -> usize {
        self.sockets.as_ref().map_or(0, |reach| reach.memory_bytes())
    }

    /// Bytes that it keeps of folders that it may change for itself.
    pub(super) fn scratch_bytes(&self) -> u64 {
        self.descriptors.scratch_bytes()
    }

    /// Whether what is changed through that descriptor is private to the invocation.
    pub(in crate::host) fn is_scratch(&self, fd: u32) -> bool {
        self.descriptors.is_scratch(fd)
    }

    /// Bytes that calls by gRPC keep.
    pub(super) fn rpc_bytes(&self) -> usize {
        self.descriptors.rpc_bytes()
    }

    /// A component serves the request through `wasi:http`. From then on its standard streams are the log's.
    pub(in crate::host) const fn serve_http(&mut self) {
        self.streams.is_http = true;
    }

    #[inline]
    fn check(&self, effect: Effect) -> Result<(), Stop> {
        if self.open.contains(effect) { Ok(()) } else { Err(self.closed(effect)) }
    }

    #[cold]
    fn closed(&self, effect: Effect) -> Stop {
        tracing::error!(function = self.process.name, port = ?effect, open = ?self.open, "a host function reached for what its effect does not open");
        Stop::Refused
    }

    pub(in crate::host) fn streams(&self) -> Result<&Streams, Stop> {
        self.check(Effect::Stream).map(|()| &self.streams)
    }

    pub(in crate::host) fn streams_mut(&mut self) -> Result<&mut Streams, Stop> {
        self.check(Effect::Stream).map(|()| &mut self.streams)
    }

    pub(in crate::host) fn descriptors(&self) -> Result<&Descriptors, Stop> {
        self.check(Effect::Stream).map(|()| &self.descriptors)
    }

    pub(in crate::host) fn descriptors_mut(&mut self) -> Result<&mut Descriptors, Stop> {
        self.check(Effect::Stream).map(|()| &mut self.descriptors)
    }

    /// What is open, beside the streams that are among it.
    pub(in crate::host) fn open_files(&mut self) -> Result<(&mut Descriptors, &mut Streams), Stop> {
        self.check(Effect::Stream).map(|()| (&mut self.descriptors, &mut self.streams))
    }

    /// Where messages for the operator go.
    pub(in crate::host) fn log(&mut self) -> Result<&mut Output, Stop> {
        self.check(Effect::Log).map(|()| &mut self.streams.errors)
    }

    /// The head of the request; none where there is no request.
    pub(in crate::host) fn head(&self) -> Result<Option<&RequestHead>, Stop> {
        self.check(Effect::Head).map(|()| self.head.as_deref())
    }

    pub(in crate::host) fn entropy(&self) -> Result<Entropy, Stop> {
        self.check(Effect::Entropy).map(|()| self.entropy.clone())
    }

    /// The key-value store of the function's tenant, for what the invocation comes to when it has ended.
    pub(super) fn store(&self) -> Option<&Space> {
        self.process.kv.as_ref()
    }

    /// The key-value store of the function's tenant, to read from.
    ///
    /// # Errors
    /// `ENOTSUP` where the server has none.
    pub(in crate::host) fn kv(&self) -> Result<&Space, Stop> {
        self.check(Effect::KvRead)?;
        self.process.kv.as_ref().ok_or(Stop::Errno(Errno::NOTSUP))
    }

    /// The same to write to.
    ///
    /// # Errors
    /// `ENOTSUP` where the server has none.
    pub(in crate::host) fn kv_mut(&mut self) -> Result<&Space, Stop> {
        self.check(Effect::KvWrite)?;
        self.kv()
    }

    /// Buckets that are open, by their handles.
    pub(in crate::host) fn buckets(&self) -> Result<&[BucketName], Stop> {
        self.check(Effect::KvRead).map(|()| &*self.buckets)
    }

    pub(in crate::host) fn buckets_mut(&mut self) -> Result<&mut Vec<BucketName>, Stop> {
        self.check(Effect::KvRead).map(|()| &mut self.buckets)
    }

    pub(in crate::host) fn calls(&mut self) -> Result<&mut Calls, Stop> {
        self.check(Effect::Call).map(|()| &mut **self.calls.get_or_insert_default())
    }

    pub(in crate::host) fn fetches(&mut self) -> Result<&mut Fetches, Stop> {
        self.check(Effect::External).map(|()| &mut self.fetches)
    }

    /// What sockets may reach; none where there are to be none.
    pub(in crate::host) fn sockets(&mut self) -> Result<Option<&mut Reach>, Stop> {
        self.check(Effect::External)?;
        let Some(policy) = &self.process.sockets else { return Ok(None) };
        Ok(Some(self.sockets.get_or_insert_with(|| Box::new(Reach::new(Arc::clone(policy))))))
    }

    /// Where calls by gRPC go.
    pub(in crate::host) fn edges(&self) -> Result<Option<&Arc<Edges>>, Stop> {
        self.check(Effect::External).map(|()| self.process.edges.as_ref())
    }

    /// The servers that may be asked.
    pub(in crate::host) fn upstream(&self) -> Result<Option<&Arc<Upstream>>, Stop> {
        self.check(Effect::External).map(|()| self.process.upstream.as_ref())
    }
}

impl Entropy {
    pub(in crate::host) fn now(&self, clock: ClockId) -> Timespec {
        match &self.0 {
            None => clock_gettime(clock),
            Some(drawn) => drawn.time(clock, || clock_gettime(clock)),
        }
    }

    pub(in crate::host) fn fill(&self, into: &mut [u8]) -> Result<(), Errno> {
        match &self.0 {
            None => Entropy::fill_anew(into),
            Some(drawn) => drawn.bytes(into, Entropy::fill_anew),
        }
    }

    fn fill_anew(mut into: &mut [u8]) -> Result<(), Errno> {
        while !into.is_empty() {
            match getrandom(&mut *into, GetRandomFlags::empty()) {
                Ok(count) => into = &mut into[count..],
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(Errno::IO),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use awsm_abi::types::MemoryType;
    use sledge_sandbox::{Sandbox, SandboxLimits};

    use super::*;
    use crate::host::{Args, Call, Code, Context, HostFunction, Outgoing, Writer, offered};

    /// A resource that keeps so many bytes.
    #[derive(Debug)]
    struct Kept(usize);

    impl Resource for Kept {
        fn memory_bytes(&self) -> usize {
            self.0
        }
    }

    fn context() -> Context {
        let process = Arc::new(Process::default());
        let log = LogLines::new(Arc::clone(&process), Arc::default(), Writer::default());
        Context::new(process, Streams::of_request(Body::default(), ReplyBytes::default(), 1, log))
    }

    fn call(function: &HostFunction, context: &mut Context) -> Result<i32, Stop> {
        let mut sandbox = Sandbox::new(&SandboxLimits::default()).unwrap();
        let memory = sandbox.new_memory(MemoryType { pages_min: 1, pages_max: None, memory64: false, shared: false }).unwrap();
        let args = Args::new(&[]);
        let mut call = Call::new(function, &args, Some(sandbox.memory_of(memory)), context);
        match function.code {
            Code::Own(code) => code(&mut call),
            Code::Wasi(code) => code(&mut call).map(|()| 0),
            Code::Canonical(code) => code(&mut call).map(|_| 0),
        }
    }

    /// What a host function of that effect gets from each port.
    fn reached(effect: Effect) -> Vec<Effect> {
        type Reach = fn(&mut Call<'_>) -> Result<i32, Stop>;
        const PORTS: [(Effect, Reach); 8] = [
            (Effect::Stream, |call| call.context.ports.streams_mut().map(|_| 0)),
            (Effect::Head, |call| call.context.ports.head().map(|_| 0)),
            (Effect::Entropy, |call| call.context.ports.entropy().map(|_| 0)),
            (Effect::Log, |call| call.context.ports.log().map(|_| 0)),
            (Effect::KvRead, |call| call.context.ports.buckets().map(|_| 0)),
            (Effect::KvWrite, |call| call.context.ports.kv_mut().map(|_| 0)),
            (Effect::Call, |call| call.context.ports.calls().map(|_| 0)),
            (Effect::External, |call| call.context.ports.upstream().map(|_| 0)),
        ];
        let opens = |(port, code): &(Effect, Reach)| {
            let function =
                HostFunction { module: "test", name: "port", params: &[], results: &[], effect, code: Code::Own(*code) };
            // Without a store it is answered that there is none, which a host function that may not write does not learn.
            (call(&function, &mut context()) != Err(Stop::Refused)).then_some(*port)
        };
        PORTS.iter().filter_map(opens).collect()
    }

    #[test]
    fn a_host_function_reaches_the_ports_of_its_effect_only() {
        use Effect::{Call, Entropy, External, Head, KvRead, KvWrite, Log, Safe, Stream};
        assert_eq!(reached(Safe), []);
        assert_eq!(reached(Stream), [Stream, Log]);
        assert_eq!(reached(Head), [Stream, Head]);
        assert_eq!(reached(Entropy), [Stream, Entropy]);
        assert_eq!(reached(Log), [Log]);
        assert_eq!(reached(KvRead), [KvRead]);
        assert_eq!(reached(KvWrite), [KvRead, KvWrite]);
        assert_eq!(reached(Call), [Call]);
        assert_eq!(reached(External), [Stream, Head, Log, Call, External]);
    }

    #[test]
    fn ports_close_with_the_next_host_call() {
        let function = |name| offered().find(|function| function.name == name).unwrap();
        let mut context = context();
        let _ = call(function("fd_write"), &mut context);
        assert!(context.ports.streams().is_ok());
        let _ = call(function("sched_yield"), &mut context);
        assert_eq!(context.ports.streams().err(), Some(Stop::Refused));
    }

    /// Each is looked for, also where it is all there is.
    #[test]
    fn what_is_kept_beside_the_streams_counts() {
        let kept = |put: fn(&mut Context)| {
            let mut context = context();
            assert_eq!(context.kept_bytes(), 0);
            put(&mut context);
            context.kept_bytes()
        };
        assert_eq!(kept(|context| context.waiting_bytes = 7), 7);
        let outgoing = |context: &mut Context| {
            let call = Outgoing { name: "f".into(), input: vec![0; 8].into(), host_call: 1, id: None, rpc: None };
            context.ports.calls.get_or_insert_default().outgoing.push_back(call);
        };
        assert_eq!(kept(outgoing), 8);
        let resource = |context: &mut Context| _ = context.ports.resources_mut().insert(Box::new(Kept(9)), None).unwrap();
        assert!(kept(resource) >= 9);
        assert_eq!(kept(|context| std::mem::forget(context.operations.get_or_insert_default().take(10))), 10);
    }

    #[test]
    fn no_host_function_reaches_for_more_than_its_effect_opens() {
        for function in offered() {
            assert_ne!(call(function, &mut context()), Err(Stop::Refused), "{} {}", function.module, function.name);
        }
    }
}
