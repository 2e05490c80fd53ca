//! Waiting: what pollables stand for, and a guest that is suspended until one of them is ready.
//!
//! Nothing that is waited for is taken from its resource: each is looked at with a waker, and again when it was woken. So one wait has any number of subjects, and
//! whatever is not ready goes on where it is.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use super::{Resource, Resources, Typed, number};
use crate::host::signal::Signal;
use crate::host::{Call, Flat, Input, Output, Stop, Streams};

/// How often the worker looks at what wakes no waker: a file that is standard input of `sledge run`.
const LOOK_TIME: Duration = Duration::from_millis(5);

/// A `pollable`.
#[derive(Debug)]
pub(in crate::host) struct Pollable(pub(in crate::host) Subject);

/// What a pollable waits for.
#[derive(Clone, Copy, Debug)]
pub(in crate::host) enum Subject {
    /// A time; none for one that does not come.
    At(Option<Instant>),
    /// That the resource with this representation [is ready](Resource::is_ready), on which the pollable depends.
    Of(u32),
}

impl Resource for Pollable {}

impl Typed for Pollable {
    const NUMBER: u32 = number("wasi:io/poll@0.2", "pollable");
}

/// A look at what may be ready.
#[derive(Debug)]
pub(in crate::host) struct Look<'l> {
    /// The standard streams of the invocation.
    pub(in crate::host) streams: &'l mut Streams,
    /// The waker of the guest's wait; none for a look after which the guest does not wait.
    waker: Option<&'l Waker>,
    /// When to look again at the latest.
    until: Option<Instant>,
}

impl<'l> Look<'l> {
    /// What is to be woken when it may be ready.
    pub(in crate::host) fn context(&self) -> Context<'l> {
        Context::from_waker(self.waker.unwrap_or(Waker::noop()))
    }

    /// Whether the guest waits if nothing is ready.
    pub(in crate::host) const fn waits(&self) -> bool {
        self.waker.is_some()
    }

    /// It may be ready then.
    pub(in crate::host) fn wake_at(&mut self, time: Instant) {
        self.until = Some(self.until.map_or(time, |until| until.min(time)));
    }

    /// It wakes no waker: the worker looks again soon.
    pub(in crate::host) fn wake_soon(&mut self) {
        self.wake_at(Instant::now() + LOOK_TIME);
    }

    /// Whether the request's body can be read, or a file in its place.
    ///
    /// # Errors
    /// When the deadline of such a file is over.
    pub(in crate::host) fn at_input(&mut self) -> Result<bool, Stop> {
        let waits = self.waits();
        match &mut self.streams.input {
            Input::Body(body) if waits => {
                let Some(until) = body.begin_wait(&mut Context::from_waker(self.waker.unwrap_or(Waker::noop()))) else {
                    return Ok(true);
                };
                self.wake_at(until);
                Ok(false)
            }
            Input::Body(body) => Ok(body.look()),
            input @ Input::File { .. } => {
                let is_ready = input.wait_until(Some(Instant::now()))?;
                if !is_ready {
                    self.wake_soon();
                }
                Ok(is_ready)
            }
        }
    }

    /// Whether the reply can be written.
    pub(in crate::host) fn at_output(&mut self) -> bool {
        match &self.streams.output {
            Output::Stream(writer) => writer.poll_room(&self.context()).is_ready(),
            Output::Reply { .. } | Output::File(_) | Output::Log(_) => true,
        }
    }

    /// Whether a subject is ready.
    pub(in crate::host) fn at(&mut self, resources: &mut Resources, subject: Subject) -> Result<bool, Stop> {
        match subject {
            Subject::At(Some(time)) => {
                self.wake_at(time);
                Ok(time <= Instant::now())
            }
            Subject::At(None) => Ok(false),
            Subject::Of(representation) => resources.any(representation)?.is_ready(self),
        }
    }
}

impl Call<'_> {
    /// Which of these subjects are ready now, by their places.
    ///
    /// # Errors
    /// When the invocation ends by looking.
    pub(in crate::host) fn ready(&mut self, subjects: &[Subject]) -> Result<Vec<u32>, Stop> {
        self.look(subjects, None).map(|(ready, _)| ready)
    }

    /// Suspends the guest until one of these subjects may be ready; then `then` goes on with the call, and looks again.
    pub(in crate::host) fn until_ready(
        &mut self,
        subjects: &[Subject],
        then: impl FnOnce(&mut Call<'_>) -> Result<Flat, Stop> + Send + 'static,
    ) -> Stop {
        let signal = Arc::new(Signal::default());
        let waker = Waker::from(Arc::clone(&signal));
        let until = match self.look(subjects, Some(&waker)) {
            Ok((ready, until)) => {
                // It became so in between.
                if !ready.is_empty() {
                    waker.wake();
                }
                until
            }
            Err(stop) => return stop,
        };
        self.wait(signal.wait(until), move |call, ()| then(call))
    }

    /// Which are ready, and when to look again at the latest.
    fn look(&mut self, subjects: &[Subject], waker: Option<&Waker>) -> Result<(Vec<u32>, Option<Instant>), Stop> {
        let (resources, streams) = self.context.ports.resources_and_streams()?;
        let mut look = Look { streams, waker, until: None };
        let mut ready = Vec::new();
        for (index, subject) in (0..).zip(subjects) {
            if look.at(resources, *subject)? {
                ready.push(index);
            }
        }
        Ok((ready, look.until))
    }
}
