//! A request that has found its function: admitted, read, run, answered.
//!
//! Most of it is done within one poll of the connection's task: the body has come with the head, and the function runs there and then. Where something has to be
//! waited for, the rest becomes a [future](Step::Later).

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http_body_util::Either;
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderMap;

use super::HttpService;
use super::body::{self, Inward, Reading};
use super::bridge::Bridge;
use super::connections::Activity;
use super::framing::Refusal;
use super::handled::{Handled, Manner};
use super::response::{self, Trailing};
use super::router::{Place, Route};
use super::step::Step;
use crate::grpc;
use crate::host::{Body, RequestHead};
use crate::invoke::{Admission, Input, Invocation};
use crate::memory;
use crate::outcome::Failure;
use crate::reply::{self, Content, Reply};
use crate::telemetry::Trace;
use crate::timeout::within;

/// By what a request is known elsewhere, as far as that is wanted.
#[derive(Default)]
pub(super) struct Marks {
    pub(super) id: Option<Arc<str>>,
    pub(super) trace: Option<Arc<Trace>>,
}

/// What a request brings for its function.
pub(super) struct Brought {
    /// What it says beside its body, for a function that asks.
    pub(super) head: Option<Box<RequestHead>>,
    pub(super) incoming: Incoming,
    /// What makes a body of gRPC of it, if it comes in another protocol.
    pub(super) inward: Option<Box<dyn Inward>>,
    pub(super) marks: Marks,
}

/// A request and the function that answers it. It is counted when it is answered, and also when its client goes before that.
pub(super) struct Routed {
    service: Rc<HttpService>,
    activity: Rc<Activity>,
    route: Arc<Route>,
    manner: Manner,
    /// How its reply can have trailers.
    trailing: Trailing,
    /// Whether the client wants to know how long it took.
    is_timed: bool,
    bridge: Option<Box<Bridge>>,
    /// Empty, for the headers of its response.
    room: HeaderMap,
    is_counted: bool,
}

/// What is known of an invocation before its body is there.
struct Taken {
    admission: Admission,
    /// The client's, if it has one.
    deadline: Option<Instant>,
    /// Whether the function runs while its body comes.
    is_coming: bool,
}

impl Routed {
    pub(super) fn new(
        (service, activity): (&Rc<HttpService>, &Rc<Activity>),
        route: Arc<Route>,
        manner: Manner,
        (trailing, is_timed): (Trailing, bool),
        bridge: Option<Box<Bridge>>,
        room: HeaderMap,
    ) -> Routed {
        let (service, activity) = (Rc::clone(service), Rc::clone(activity));
        Routed { service, activity, route, manner, trailing, is_timed, bridge, room, is_counted: false }
    }

    /// Takes it in and has it run. What cannot be taken is refused before its body is read.
    pub(super) fn run(self, brought: Brought, task: &mut Context<'_>) -> Step<Handled> {
        let Brought { head, incoming, inward, marks } = brought;
        let taken = match self.take(&incoming, inward.is_some()) {
            Ok(taken) => taken,
            Err(failure) => return self.failed(failure),
        };
        let (bytes_max, time_max) = (self.service.body_bytes_max, self.service.timeouts.body);
        let body = if taken.is_coming {
            // It may be answered before all of it has come.
            self.activity.linger();
            body::stream(incoming, bytes_max, time_max, inward)
        } else if incoming.is_end_stream() {
            Body::default()
        } else {
            let mut reading = Reading::new(incoming, bytes_max);
            match reading.poll(self.route.function.template.budget(), task) {
                Poll::Ready(Ok(body)) => body,
                Poll::Ready(Err(failure)) => {
                    let failure = self.cut_off(failure);
                    return self.failed(failure);
                }
                Poll::Pending => return Step::later(self.read(reading, taken, head, marks)),
            }
        };
        let is_coming = taken.is_coming;
        let mut answer = self.begin(Input { head, body }, taken, marks);
        match answer.poll(task) {
            Poll::Ready(reply) => self.answered(reply, is_coming),
            Poll::Pending => Step::later(self.wait(answer, is_coming)),
        }
    }

    /// A place for it, and what is known of it so far.
    fn take(&self, incoming: &Incoming, is_translated: bool) -> Result<Taken, Failure> {
        let deadline = self.manner.deadline()?;
        if body::is_declared_too_large(incoming, self.service.body_bytes_max) || self.is_too_large() {
            return Err(Failure::BodyTooLarge);
        }
        let function = &self.route.function;
        let admission = self.service.dispatcher.admit(function)?;
        let is_coming = function.streams_body && (!incoming.is_end_stream() || is_translated);
        Ok(Taken { admission, deadline, is_coming })
    }

    /// Goes on when the rest of the body is there.
    async fn read(self, mut reading: Reading, taken: Taken, head: Option<Box<RequestHead>>, marks: Marks) -> Handled {
        let budget = self.route.function.template.budget();
        let whole = within(self.service.timeouts.body, poll_fn(|task| reading.poll(budget, task))).await;
        match whole.unwrap_or(Err(Failure::BodyTimeout)) {
            Ok(body) => {
                let answer = self.begin(Input { head, body }, taken, marks);
                self.wait(answer, false).await
            }
            Err(failure) => {
                let failure = self.cut_off(failure);
                self.failed(failure).result().await
            }
        }
    }

    /// Begins the invocation: it runs now or when it may.
    fn begin(&self, input: Input, taken: Taken, marks: Marks) -> reply::Answer {
        let mut invocation = Invocation::new(Arc::clone(&self.route.function), taken.admission, None, input, Instant::now());
        if let Some(deadline) = taken.deadline {
            invocation.deadline = invocation.deadline.min(deadline);
        }
        (invocation.request_id, invocation.trace) = (marks.id, marks.trace);
        self.service.dispatcher.begin(invocation, &*self.service)
    }

    /// Goes on when its reply is there.
    async fn wait(self, answer: reply::Answer, is_coming: bool) -> Handled {
        let reply = answer.reply().await;
        self.answered(reply, is_coming).result().await
    }

    /// Makes a response of the reply.
    fn answered(mut self, reply: Result<Reply, Failure>, is_coming: bool) -> Step<Handled> {
        let mut reply = match reply {
            Ok(reply) => reply,
            Err(failure) => return self.failed(failure),
        };
        let content = match std::mem::replace(&mut reply.result, Ok(Content::Whole(::bytes::Bytes::new()))) {
            Ok(content) => content,
            Err(failure) => {
                let failure = if is_coming { self.cut_off(failure) } else { failure };
                self.count(Some(&failure));
                let mut handled = Handled::failed(failure, Some(self.place()), self.manner);
                if self.is_timed {
                    response::add_timing(&mut handled.response, &reply);
                }
                return handled.over(self.bridge.take());
            }
        };
        match &content {
            Content::Whole(_) | Content::Pieces(_) => self.count(None),
            Content::Stream(stream) => match stream.accept() {
                Some(end) => self.count(end.as_ref().err()),
                // It is counted where it ends.
                None => self.is_counted = true,
            },
        }
        let content_type = &self.route.function.content_type;
        let (head, trailers, room) = (reply.head.take(), reply.trailers.take(), std::mem::take(&mut self.room));
        let mut response = response::success(content, head, (trailers, self.trailing), content_type, room);
        if let (Manner::Grpc { .. }, Either::Right(streamed)) = (self.manner, response.body_mut()) {
            streamed.speak_grpc(&self.route.function);
        }
        if self.is_timed {
            response::add_timing(&mut response, &reply);
        }
        Handled::answered(response, Some(self.place()), self.manner).over(self.bridge.take())
    }

    /// It has failed before there was a reply.
    fn failed(mut self, failure: Failure) -> Step<Handled> {
        self.count(Some(&failure));
        Handled::failed(failure, Some(self.place()), self.manner).over(self.bridge.take())
    }

    fn place(&self) -> Place {
        Place::Served(Arc::clone(&self.route))
    }

    fn count(&mut self, failure: Option<&Failure>) {
        self.is_counted = true;
        self.service.shard.note(&self.route.function, |row| row.ended(failure));
        if failure == Some(&Failure::NoMemory) {
            memory::release_heap_soon();
        }
    }

    fn is_too_large(&self) -> bool {
        self.activity.refusal() == Some(Refusal::TooLarge)
    }

    /// What the server cut off is not broken.
    fn cut_off(&self, failure: Failure) -> Failure {
        if failure == Failure::BodyBroken && self.is_too_large() { Failure::BodyTooLarge } else { failure }
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        if !self.is_counted {
            self.service.shard.note(&self.route.function, |row| {
                row.ended(Some(&Failure::Cancelled));
                if self.manner.is_grpc() {
                    row.called(grpc::Code::Cancelled as usize);
                }
            });
        }
    }
}
