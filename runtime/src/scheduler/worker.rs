//! One worker: carries out what [`Core`] decides.
//!
//! It works in two places, both on its own thread, never one inside the other:
//!
//! * In the task of the connection that brought a request, if nothing else waits: the request runs there and then, and the reply is written
//!   in the same breath ([`Local::submit`]).
//! * In the *turns* of a task of its own ([`Local::work`]). A turn runs guests for about [`IO_INTERVAL`](super::core::IO_INTERVAL) or one
//!   quantum, whichever is longer, and then gives the thread to the runtime, which polls the network and the tasks of connections that have
//!   something to do before it comes back.
//!
//! An idle worker waits in the runtime's epoll.
//!
//! Invariants: a sandbox is reset after its reply was handed over, before the next job is taken or the thread waits; the timer runs only
//! while there are guests to run, and for at most two ticks longer; what has started here stays here.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
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

/// A worker, as the other tasks of its thread see it.
pub struct Local {
    worker: RefCell<Worker>,
    crew: Arc<Crew>,
    index: usize,
}

struct Worker {
    core: Core,
    deque: Deque<Job>,
    crew: Arc<Crew>,
    index: usize,
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

thread_local! {
    /// For the runtime's hook, which is not told whose it is.
    static LOCAL: RefCell<Option<Rc<Local>>> = const { RefCell::new(None) };
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Local {
    /// Makes this thread the crew's worker with that index, which owns `deque`.
    ///
    /// # Errors
    /// When the system refuses the timer or the signal stack.
    pub fn new(crew: Arc<Crew>, index: usize, deque: Deque<Job>, settings: WorkerSettings) -> io::Result<Rc<Local>> {
        let worker = Worker {
            core: Core::new(settings.quantum),
            deque,
            crew: Arc::clone(&crew),
            index,
            started: Vec::new(),
            free: Vec::new(),
            pool: Pool::new(PoolLimits { idle_max: POOL_IDLE_MAX }),
            thread: WorkerThread::enter(settings.quantum)?,
            settings,
            finished: None,
        };
        let local = Rc::new(Local { worker: RefCell::new(worker), crew, index });
        LOCAL.set(Some(Rc::clone(&local)));
        Ok(local)
    }

    /// Runs a job at once if nothing else waits, else queues it.
    pub fn submit(&self, job: Job) {
        let mut worker = self.worker.borrow_mut();
        let queued = !worker.deque.is_empty();
        if worker.core.may_run_at_once(queued) {
            self.crew.busy(self.index);
            let event = worker.begin(job);
            worker.core.note(event, Instant::now());
            if worker.core.started() == 0 {
                return;
            }
        } else {
            worker.deque.push(job);
        }
        self.wake();
    }

    /// Makes the worker take a turn.
    fn wake(&self) {
        self.crew.wake(self.index);
    }

    /// Works until the server has stopped.
    pub async fn work(&self) {
        poll_fn(|task| {
            self.crew.seat(self.index, task.waker());
            Poll::Ready(())
        })
        .await;
        loop {
            let next = self.worker.borrow_mut().turn();
            match next {
                Next::Turn => tokio::task::yield_now().await,
                Next::Wait => {
                    let mut woken = false;
                    poll_fn(|_| if std::mem::replace(&mut woken, true) { Poll::Ready(()) } else { Poll::Pending }).await;
                }
                Next::Leave => return,
            }
        }
    }
}

/// What comes after a turn.
enum Next {
    /// Another one, after connections were looked after.
    Turn,
    /// Another one, when the worker is woken.
    Wait,
    /// Nothing: the server has stopped.
    Leave,
}

/// To be called whenever the runtime of a thread is about to wait.
pub fn before_wait() {
    LOCAL.with_borrow(|local| {
        if let Some(local) = local {
            let mut worker = local.worker.borrow_mut();
            worker.put_back();
            worker.core.rest();
            if !local.crew.try_idle(local.index) {
                local.wake();
            }
            // Stopping the timer after every request would cost more than a tick that comes while nobody runs. That tick also ends the
            // wait, so that this is called again.
            if worker.thread.take_tick() {
                worker.thread.disarm();
            }
        }
    });
}

impl Worker {
    fn turn(&mut self) -> Next {
        let (crew, index) = (Arc::clone(&self.crew), self.index);
        crew.busy(index);
        self.put_back();
        if crew.phase() == Phase::Killing {
            self.kill_all();
        }
        let mut event = Event::Turn;
        loop {
            event = match self.core.step(event, Instant::now()) {
                Action::Take { .. } if self.started.len() - self.free.len() >= STARTED_MAX => Event::NoArrival,
                Action::Take { steal } => match crew.take(index, &self.deque, steal) {
                    Some(job) => self.begin(job),
                    None => {
                        crew.set_backlog(index, false);
                        Event::NoArrival
                    }
                },
                Action::Resume(id) => self.resume(id),
                Action::Kill(id) => self.kill(id, Failure::Deadline),
                Action::Io => {
                    crew.set_backlog(index, !self.deque.is_empty());
                    return Next::Turn;
                }
                Action::Wait if !crew.try_idle(index) => return Next::Turn,
                Action::Wait if crew.is_over() => return Next::Leave,
                Action::Wait => return Next::Wait,
            };
        }
    }

    /// Takes a job and runs its first quantum.
    fn begin(&mut self, job: Job) -> Event {
        let taken = Instant::now();
        let Job { function, body, reply, arrived, deadline, admission } = job;
        if reply.is_closed() {
            tracing::debug!(function = function.name(), "nobody waits for the request any more");
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
        let now = Instant::now();
        if started.reply.is_closed() {
            // Its connection keeps the deadline too, and may have looked at the time first.
            let failure = if started.deadline <= now { Failure::Deadline } else { Failure::Cancelled };
            return self.end_early(started, failure);
        }
        self.run(started, now)
    }

    fn kill(&mut self, id: StartedId, failure: Failure) -> Event {
        match self.remove(id) {
            Some(started) => self.end_early(started, failure),
            None => Event::Ended { ran: Duration::ZERO },
        }
    }

    /// Runs a quantum.
    fn run(&mut self, mut started: Started, begin: Instant) -> Event {
        self.thread.arm();
        loop {
            let progress = started.execution.run();
            let now = Instant::now();
            let ran = now - begin;
            match progress {
                // The timer ran already when this one began; it gets at least half of its quantum.
                Progress::Preempted if ran < self.settings.quantum / 2 => self.thread.restart(),
                Progress::Preempted => {
                    let deadline = started.deadline;
                    return Event::Preempted { id: self.insert(started), deadline, ran };
                }
                Progress::Ended(result) => {
                    self.end(started, result, now);
                    return Event::Ended { ran };
                }
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
        while let Some(job) = self.crew.take(self.index, &self.deque, true) {
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
