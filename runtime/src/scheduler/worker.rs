//! One worker: carries out what [`Core`] decides, as the main future of its thread's tokio runtime.
//!
//! Each poll of that future is a *turn*: it runs guests for about [`IO_INTERVAL`](super::core::IO_INTERVAL) or one quantum, whichever is
//! longer, and then gives the thread to the runtime, which looks after connections and comes back at once if there is more to run. An idle
//! worker waits in the runtime's epoll.
//!
//! Invariants: the timer runs only while there are guests to run; a sandbox is reset after its reply was handed over, and before the next
//! job is taken; what has started here stays here.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};
use std::{fmt, io};

use crossbeam_deque::Worker as Deque;
use sledge_sandbox::{Pool, PoolLimits, Sandbox, WorkerThread};
use tokio::sync::oneshot;

use super::core::{Action, Core, Event, StartedId};
use super::{Admission, Crew, Job, Phase, Reply};
use crate::execution::{Execution, Progress};
use crate::host::{Context, Input, LogLines, Output};
use crate::outcome::Failure;

/// Idle sandboxes that a worker keeps, of all functions together.
const POOL_IDLE_MAX: usize = 64;
/// Started sandboxes of one worker; with as many it takes no arrival until one has ended.
const STARTED_MAX: usize = 1_024;

/// What a worker is told.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSettings {
    /// How long a guest runs before others get their turn.
    pub quantum: Duration,
    /// The largest reply.
    pub reply_bytes_max: usize,
}

/// A worker's own queue, as its connections see it.
pub struct Queue {
    deque: Deque<Job>,
    crew: Arc<Crew>,
    index: usize,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("index", &self.index).field("jobs", &self.deque.len()).finish_non_exhaustive()
    }
}

impl Queue {
    /// The queue of the crew's worker with that index.
    #[must_use]
    pub fn new(deque: Deque<Job>, crew: Arc<Crew>, index: usize) -> Queue {
        Queue { deque, crew, index }
    }

    /// Queues a job and wakes the worker, on whose thread this is.
    pub fn push(&self, job: Job) {
        self.deque.push(job);
        self.crew.wake(self.index);
    }

    /// Wakes the worker, because something other than the queue changed.
    pub fn wake(&self) {
        self.crew.wake(self.index);
    }
}

/// A worker.
pub struct Worker {
    core: Core,
    queue: Rc<Queue>,
    started: Vec<Option<Started>>,
    /// Free places in `started`.
    free: Vec<u32>,
    pool: Pool,
    thread: WorkerThread,
    settings: WorkerSettings,
    /// A sandbox whose reply was handed over, to be put back when there is time.
    finished: Option<Sandbox>,
}

/// A job whose sandbox has run.
struct Started {
    execution: Execution,
    reply: oneshot::Sender<Reply>,
    admission: Admission,
    arrived: Instant,
    taken: Instant,
    deadline: Instant,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("queue", &self.queue).field("core", &self.core).finish_non_exhaustive()
    }
}

impl Worker {
    /// Makes this thread a worker.
    ///
    /// # Errors
    /// When the system refuses the timer or the signal stack.
    pub fn new(queue: Rc<Queue>, settings: WorkerSettings) -> io::Result<Worker> {
        Ok(Worker {
            core: Core::new(settings.quantum),
            queue,
            started: Vec::new(),
            free: Vec::new(),
            pool: Pool::new(PoolLimits { idle_max: POOL_IDLE_MAX }),
            thread: WorkerThread::enter(settings.quantum)?,
            settings,
            finished: None,
        })
    }

    /// Works until the server has stopped; `may_leave` says whether this thread's connections are all closed.
    pub async fn work(mut self, may_leave: impl Fn() -> bool) {
        poll_fn(|task| self.turn(task, &may_leave)).await;
    }

    fn turn(&mut self, task: &mut TaskContext<'_>, may_leave: &impl Fn() -> bool) -> Poll<()> {
        let (crew, index) = (Arc::clone(&self.queue.crew), self.queue.index);
        crew.seat(index, task.waker());
        crew.busy(index);
        self.put_back();
        if crew.phase() == Phase::Killing {
            self.kill_all();
        }
        let mut event = Event::Turn;
        loop {
            event = match self.core.step(event, Instant::now()) {
                Action::Take { .. } if self.started.len() - self.free.len() >= STARTED_MAX => Event::NoArrival,
                Action::Take { steal } => match crew.take(index, &self.queue.deque, steal) {
                    Some(job) => self.begin(job),
                    None => {
                        crew.set_backlog(index, false);
                        Event::NoArrival
                    }
                },
                Action::Resume(id) => self.resume(id),
                Action::Kill(id) => self.kill(id, Failure::Deadline),
                Action::Io => {
                    crew.set_backlog(index, !self.queue.deque.is_empty());
                    task.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Action::Wait => return self.wait(&crew, task, may_leave),
            };
        }
    }

    fn wait(&mut self, crew: &Crew, task: &TaskContext<'_>, may_leave: &impl Fn() -> bool) -> Poll<()> {
        if self.finished.is_some() || !crew.try_idle(self.queue.index) {
            task.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.thread.disarm();
        if crew.phase() != Phase::Serving && crew.requests() == 0 && may_leave() {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Takes a job and runs its first quantum.
    fn begin(&mut self, job: Job) -> Event {
        let taken = Instant::now();
        let Job { function, body, reply, arrived, deadline, admission } = job;
        if reply.is_closed() {
            tracing::debug!(function = function.name(), "the client went away before the request began");
            return Event::Ended { ran: Duration::ZERO };
        }
        self.put_back();
        let sandbox = if deadline <= taken { Err(Failure::Deadline) } else { self.sandbox(&function) };
        let sandbox = match sandbox {
            Ok(sandbox) => sandbox,
            Err(failure) => {
                tracing::debug!(function = function.name(), %failure, "not begun");
                let _ = reply.send(Reply { result: Err(failure), queued: taken - arrived, ran: Duration::ZERO });
                return Event::Ended { ran: Duration::ZERO };
            }
        };
        let process = Arc::clone(&function.process);
        let output = Output::Reply { bytes: Vec::new(), bytes_max: self.settings.reply_bytes_max };
        let errors = Output::Log(LogLines::new(Arc::clone(&process)));
        let context = Context::new(process, Input::Body(body), output, errors);
        let execution = Execution::new(function, sandbox, context);
        self.run(Started { execution, reply, admission, arrived, taken, deadline }, taken)
    }

    fn sandbox(&mut self, function: &crate::function::Function) -> Result<Sandbox, Failure> {
        self.pool.take(&function.template).map_err(|error| {
            tracing::error!(function = function.name(), %error, "no sandbox");
            Failure::NoSandbox
        })
    }

    fn resume(&mut self, id: StartedId) -> Event {
        let Some(started) = self.remove(id) else { return Event::Ended { ran: Duration::ZERO } };
        if started.reply.is_closed() {
            return self.end_early(started, Failure::Cancelled);
        }
        let now = Instant::now();
        self.run(started, now)
    }

    fn kill(&mut self, id: StartedId, failure: Failure) -> Event {
        match self.remove(id) {
            Some(started) => self.end_early(started, failure),
            None => Event::Ended { ran: Duration::ZERO },
        }
    }

    /// Runs a quantum.
    fn run(&mut self, mut started: Started, now: Instant) -> Event {
        self.thread.arm();
        let progress = started.execution.run();
        let end = Instant::now();
        let ran = end - now;
        match progress {
            Progress::Preempted => {
                let deadline = started.deadline;
                Event::Preempted { id: self.insert(started), deadline, ran }
            }
            Progress::Ended(result) => {
                self.end(started, result, end);
                Event::Ended { ran }
            }
        }
    }

    fn end_early(&mut self, mut started: Started, failure: Failure) -> Event {
        let backtrace = started.execution.backtrace();
        started.execution.kill();
        let function = started.execution.function().name();
        tracing::info!(function, reason = &*failure.reason(), backtrace = format_args!("\n{backtrace}"), "killed");
        self.end(started, Err(failure), Instant::now());
        Event::Ended { ran: Duration::ZERO }
    }

    /// Hands the reply over.
    fn end(&mut self, started: Started, result: Result<(), Failure>, end: Instant) {
        let Started { mut execution, reply, admission, arrived, taken, deadline: _ } = started;
        if let Err(failure) = &result {
            log_failure(&execution, failure);
            // Whatever is not an end in good order is never reused.
            if !matches!(failure, Failure::Exit(_)) {
                execution.kill();
            }
        }
        let remains = execution.finish();
        let reply_bytes = result.map(|()| remains.reply);
        // Nobody waits for it any more where this fails.
        let _ = reply.send(Reply { result: reply_bytes, queued: taken - arrived, ran: end - taken });
        self.put_back();
        self.finished = Some(remains.sandbox);
        drop(admission);
    }

    fn put_back(&mut self) {
        if let Some(sandbox) = self.finished.take() {
            self.pool.put(sandbox);
        }
    }

    fn insert(&mut self, started: Started) -> StartedId {
        if let Some(place) = self.free.pop() {
            self.started[place as usize] = Some(started);
            return StartedId(place);
        }
        self.started.push(Some(started));
        StartedId(self.started.len() as u32 - 1)
    }

    fn remove(&mut self, id: StartedId) -> Option<Started> {
        let started = self.started.get_mut(id.0 as usize)?.take()?;
        self.free.push(id.0);
        Some(started)
    }

    /// The server does not wait any longer.
    fn kill_all(&mut self) {
        while let Some(id) = self.core.drain() {
            self.kill(id, Failure::Stopping);
        }
        while let Some(job) = self.queue.crew.take(self.queue.index, &self.queue.deque, true) {
            let _ = job.reply.send(Reply { result: Err(Failure::Stopping), queued: job.arrived.elapsed(), ran: Duration::ZERO });
        }
    }
}

fn log_failure(execution: &Execution, failure: &Failure) {
    let function = execution.function().name();
    match failure {
        Failure::Trap(_) | Failure::MemoryLimit => {
            let backtrace = execution.backtrace();
            tracing::warn!(function, reason = &*failure.reason(), backtrace = format_args!("\n{backtrace}"), "{failure}");
        }
        // Those were logged where they were decided.
        Failure::Deadline | Failure::Cancelled | Failure::Stopping => {}
        other => tracing::warn!(function, reason = &*other.reason(), "{other}"),
    }
}
