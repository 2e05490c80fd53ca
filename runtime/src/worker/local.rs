//! One worker: carries out what its [`Scheduler`] decides.
//!
//! It works in two places, both on its own thread, never one inside the other:
//!
//! * In the task of the connection that brought a request, if it would be next anyway: the request runs there and then, and the reply is
//!   written in the same breath ([`Local::take`](Intake::take)).
//! * In the *turns* of a task of its own ([`Local::work`]). A turn runs guests for about [`IO_INTERVAL`](crate::schedule::IO_INTERVAL) or one
//!   quantum, whichever is longer, and then gives the thread to the runtime, which polls the network and the tasks of connections that have
//!   something to do before it comes back.
//!
//! What a guest calls and waits for runs at once, within its caller's quantum ([`calls`]), and is a task of the scheduler only where it waits or is preempted.
//!
//! An idle worker waits in the runtime's epoll; before that it may look there a few times without waiting ([`Spin`]).
//!
//! Invariants: a sandbox is reset after its reply was handed over, before the next job is taken or the thread waits; the timer runs only
//! while there are guests to run, and for at most two ticks longer; a guest that runs for less than half a quantum sees no tick; what waits on this worker, its scheduler has;
//! a guest without ticks ([`Alone`]) runs only in a turn.

mod ahead;
mod calls;
mod known;
mod recall;
mod turn;

use std::cell::RefCell;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};
use std::{fmt, io, mem};

use sledge_sandbox::{Sandbox, Template, WorkerThread};
use tracing::Level;

use self::known::Proof;
use self::recall::{Ran, Recalled};
use self::turn::failure;
use super::alone::Alone;
use super::pause::Pause;
use super::shared::Place;
use super::spans::{Over, tell_later};
use super::spin::{SPIN_TIME, Spin};
use super::waits::Waits;
use crate::abort::AbortOnPanic;
use crate::config::Instance;
use crate::host::{Context, LogLines, Streams, Watch, Writer};
use crate::invoke::ahead::account::Entry;
use crate::invoke::driver::Driver;
use crate::invoke::function::Function;
use crate::invoke::work::{Checking, Started, Work};
use crate::invoke::{self, Dispatcher, Intake, Invocation, Times, WorkDeque};
use crate::memo::Asked;
use crate::metrics::Shard;
use crate::outcome::Failure;
use crate::reply::{Answer, Buffers, Content, Record, Reply, ReplyBytes, ReplyTo};
use crate::schedule::{Action, Classes, Event, Phase, Policy, Scheduler, Task, TaskId};
use crate::speculate::replies::REPLY_BYTES_MAX;

/// Sandboxes that are given back at a time, which takes about 20 us each.
const TRIM_COUNT_MAX: usize = 16;

/// What a worker is told.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSettings {
    /// Which invocation runs next.
    pub policy: Policy,
    /// How long a guest runs before others get their turn.
    pub quantum: Duration,
    /// Between two ticks of a guest that runs alone; none if each quantum ends by one.
    pub tick_max: Option<Duration>,
    /// Whether microtasks have classes, and how these are used.
    pub classes: Option<Classes>,
    /// The largest reply.
    pub reply_bytes_max: usize,
    /// After how long memory that is not needed is given back to the system.
    pub idle_memory: Option<Duration>,
}

/// A worker, as the other tasks of its thread see it.
pub struct Local {
    worker: RefCell<Worker>,
    dispatcher: Arc<Dispatcher>,
    index: usize,
}

struct Worker {
    scheduler: Scheduler<Place>,
    dispatcher: Arc<Dispatcher>,
    index: usize,
    /// What those wait for that are blocked.
    waits: Waits,
    spin: Spin,
    pause: Pause,
    alone: Alone,
    buffers: Buffers,
    /// When memory that was not needed until then is given back; none while there is nothing to give back.
    trim_at: Option<Instant>,
    thread: WorkerThread,
    settings: WorkerSettings,
    /// Sandboxes whose replies were handed over, to be put back when there is time: one, and what its callees have left.
    finished: Vec<(Box<Sandbox>, Arc<Function>)>,
    /// What answers the invocation that ran at once, for the task that brought it.
    answer: Option<Answer>,
    shard: Shard,
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
    /// Makes this thread the dispatcher's worker with that index, which owns `deque`.
    ///
    /// # Errors
    /// When the system refuses the timer or the signal stack.
    pub fn new(
        dispatcher: Arc<Dispatcher>,
        index: usize,
        deque: WorkDeque,
        settings: WorkerSettings,
        shard: Shard,
    ) -> io::Result<Rc<Local>> {
        let place = Place::new(Arc::clone(&dispatcher), index, deque);
        let worker = Worker {
            scheduler: Scheduler::new(settings.policy, settings.quantum, place, Instant::now()).with_classes(settings.classes),
            dispatcher: Arc::clone(&dispatcher),
            index,
            waits: Waits::new(Arc::clone(&dispatcher), index),
            spin: Spin::default(),
            pause: Pause::default(),
            alone: Alone::default(),
            buffers: Buffers::default(),
            trim_at: None,
            thread: WorkerThread::enter(settings.quantum)?,
            settings,
            finished: Vec::new(),
            answer: None,
            shard,
        };
        let local = Rc::new(Local { worker: RefCell::new(worker), dispatcher, index });
        LOCAL.set(Some(Rc::clone(&local)));
        Ok(local)
    }

    /// Lets guests run on without ticks, if the settings and the dispatcher say so: `epoll` is that of this thread's runtime.
    pub fn let_run_alone(&self, epoll: OwnedFd) {
        let mut worker = self.worker.borrow_mut();
        let WorkerSettings { quantum, tick_max, .. } = worker.settings;
        if let (Some(watcher), Some(tick_max)) = (self.dispatcher.watcher(), tick_max) {
            watcher.take_in(self.index, epoll, worker.thread.alarm());
            worker.alone = Alone::new(Arc::clone(watcher), self.index, quantum, tick_max);
        }
    }

    /// Makes the worker take a turn.
    fn wake(&self) {
        self.dispatcher.exchange().wake(self.index);
    }

    /// Works until the server has stopped.
    pub async fn work(&self) {
        poll_fn(|task| {
            self.dispatcher.exchange().register(self.index, task.waker());
            Poll::Ready(())
        })
        .await;
        let mut may_look = true;
        loop {
            let next = self.worker.borrow_mut().turn();
            match next {
                Next::Turn => tokio::task::yield_now().await,
                // A wake-up that came while this task looked is not heard again: so after a look there is one more turn.
                Next::Wait { .. } if may_look && self.is_look_worth_it() => may_look = self.look().await,
                Next::Wait { alarm } => {
                    may_look = true;
                    self.wait(alarm).await;
                }
                Next::Leave => return,
            }
        }
    }

    /// Gives back what is kept for functions that are served no longer.
    pub fn forget(&self, templates: &[Template]) {
        let mut worker = self.worker.borrow_mut();
        worker.put_back();
        templates.iter().for_each(|template| self.dispatcher.pools().forget(self.index, template));
        self.dispatcher.stir();
    }

    /// Gives back everything that is kept.
    pub fn forget_all(&self) {
        self.dispatcher.pools().clear(self.index);
        self.dispatcher.stir();
    }

    /// Waits until it is woken, or until `alarm`, or idle memory is to be given back. Whichever it was, the next turn finds out.
    async fn wait(&self, alarm: Option<Instant>) {
        let mut was_woken = false;
        let woken = poll_fn(|_| if mem::replace(&mut was_woken, true) { Poll::Ready(()) } else { Poll::Pending });
        let trim_at = self.worker.borrow().trim_at;
        match alarm.into_iter().chain(trim_at).min() {
            Some(at) => drop(tokio::time::timeout_at(at.into(), woken).await),
            None => woken.await,
        }
    }

    fn is_look_worth_it(&self) -> bool {
        self.dispatcher.phase() == Phase::Serving && self.worker.borrow_mut().spin.is_worth_it()
    }

    /// Looks for a while whether anything comes.
    async fn look(&self) -> bool {
        let until = Instant::now() + SPIN_TIME;
        let mut found = false;
        while !found && Instant::now() < until {
            tokio::task::yield_now().await;
            // A connection's task has run something, another worker has something to give, or what a guest waits for has happened.
            found = !self.dispatcher.exchange().is_idle(self.index) || self.worker.borrow().waits.has_woken();
        }
        self.worker.borrow_mut().spin.looked(found);
        found
    }
}

/// Runs an invocation at once if nothing else waits, else queues it.
impl Intake for &Local {
    const KEEPS_DEADLINES: bool = true;

    fn take(self, invocation: Box<Invocation>) -> Option<Answer> {
        self.take_as(invocation, Event::Submitted)
    }
}

/// Takes what follows, as a part of the same work, what the worker has run at once: it goes on where it can.
#[derive(Clone, Copy, Debug)]
pub struct Following<'a>(pub &'a Local);

impl Intake for Following<'_> {
    const KEEPS_DEADLINES: bool = true;

    fn take(self, invocation: Box<Invocation>) -> Option<Answer> {
        self.0.take_as(invocation, Event::Followed)
    }
}

impl Local {
    fn take_as(&self, mut invocation: Box<Invocation>, event: fn(Task) -> Event<Work>) -> Option<Answer> {
        // The task is a connection's, the state all workers'.
        let _abort = AbortOnPanic;
        let mut worker = self.worker.borrow_mut();
        // It has arrived just now.
        let now = invocation.times.arrived;
        if let Action::RunAtOnce(id) = worker.scheduler.step(event(invocation.task(TaskId(0), false)), now) {
            // A turn comes anyway.
            let is_due = worker.scheduler.waiting() > 0;
            let event = worker.begin(id, invocation, now);
            // Where it blocks, the worker's own task sets the alarm.
            let is_blocked = matches!(event, Event::Blocked { .. });
            worker.scheduler.step(event, now);
            let answer = worker.answer.take();
            let is_over = worker.scheduler.waiting() == 0 && !is_blocked;
            if !(is_due || is_over && !worker.spin.is_worth_it()) {
                self.wake();
            }
            return answer;
        }
        let answer = invocation.make_way();
        worker.scheduler.step(Event::Arrived(Work::Job(invocation)), now);
        self.wake();
        answer
    }
}

/// Queues an invocation.
impl Intake for &mut Worker {
    const KEEPS_DEADLINES: bool = true;

    fn take(self, mut invocation: Box<Invocation>) -> Option<Answer> {
        let answer = invocation.make_way();
        let now = invocation.times.arrived;
        self.scheduler.step(Event::Arrived(Work::Job(invocation)), now);
        answer
    }
}

/// What an invocation does that was taken.
enum Begun {
    /// It has a sandbox.
    Runs(Box<Started>),
    /// The store decides whether it is answered without one.
    Checks(Box<Checking>),
    /// It waits for the run of an equal request.
    Follows(Box<Invocation>),
    /// It is answered, or not wanted any more.
    Over,
}

/// What comes after a turn.
enum Next {
    /// Another one, after connections were looked after.
    Turn,
    /// Another one, when the worker is woken or at that time.
    Wait { alarm: Option<Instant> },
    /// Nothing: the server has stopped.
    Leave,
}

/// To be called whenever the runtime of a thread is about to wait.
pub fn before_wait() {
    LOCAL.with_borrow(|local| {
        if let Some(local) = local {
            let mut worker = local.worker.borrow_mut();
            worker.put_back();
            let now = Instant::now();
            worker.scheduler.step(Event::Rests, now);
            let trim = worker.set_trim(now);
            if trim || !local.dispatcher.exchange().try_idle(local.index) {
                local.wake();
            }
            // A tick that comes while no guest runs also ends the wait, so that this is called again.
            let ticked = worker.thread.take_tick();
            if worker.pause.begin(now, ticked) {
                worker.thread.disarm();
            }
        }
    });
}

impl Worker {
    fn turn(&mut self) -> Next {
        self.put_back();
        let mut now = Instant::now();
        self.trim(now);
        self.scheduler.step(Event::Turn, now);
        let next = loop {
            // Only now does the scheduler know of all that wait: what the last guest waits for may have happened by now.
            self.poll_woken(now);
            if self.alone.has_next() && self.scheduler.waiting() == 1 && self.alone.prepare() {
                break Next::Turn;
            }
            let event = match self.scheduler.step(Event::Next, now) {
                Action::Run(id, work) => self.run_work(id, work, now),
                Action::Kill(id, work, why) => self.kill(id, work, failure(why), now),
                Action::Io | Action::RunAtOnce(_) | Action::Noted => break Next::Turn,
                Action::Wait { alarm } => break Next::Wait { alarm },
                Action::Leave => break Next::Leave,
            };
            now = Instant::now();
            self.scheduler.step(event, now);
            if self.alone.take_over() {
                break Next::Turn;
            }
        };
        let stolen = self.scheduler.take_stolen();
        if stolen > 0 {
            self.shard.thread().stolen.add(stolen);
        }
        if let Some(counts) = self.scheduler.take_class_counts() {
            let sums = self.shard.thread().classes.iter().flatten();
            sums.zip(counts.as_flattened()).for_each(|(sum, count)| sum.add(*count));
        }
        next
    }

    /// Runs what its turn is.
    fn run_work(&mut self, id: TaskId, work: Work, now: Instant) -> Event<Work> {
        match work {
            Work::Job(invocation) => self.begin(id, invocation, now),
            Work::Checking(checking) => self.check(id, checking, now),
            Work::Started(mut started) => {
                self.waits.end(&mut *started, id, now);
                match started.unwaited.take() {
                    Some(unwaited) => self.wait(id, started, now, Duration::ZERO, unwaited),
                    None => self.resume(id, started, now),
                }
            }
        }
    }

    /// Takes an invocation and runs its first quantum.
    fn begin(&mut self, id: TaskId, invocation: Box<Invocation>, taken: Instant) -> Event<Work> {
        match self.start(invocation, taken) {
            Begun::Runs(started) => self.run(id, started, taken, false),
            Begun::Checks(checking) => self.check(id, checking, taken),
            Begun::Follows(invocation) => self.follow(id, invocation),
            Begun::Over => Event::Dropped,
        }
    }

    /// Answers an invocation from its function's table, or gives it its sandbox.
    fn start(&mut self, mut invocation: Box<Invocation>, taken: Instant) -> Begun {
        let function = &invocation.function;
        if invocation.reply.is_closed() {
            tracing::debug!(function = function.name(), "the client has gone");
            return Begun::Over;
        }
        let mut asked = None;
        let may_answer = function.memo.is_some() && invocation.deadline > taken;
        // One that has waited for the run of an equal request was taken before.
        if invocation.follows.is_none() {
            invocation.times.taken = taken;
        }
        if may_answer {
            match self.recall(invocation, taken) {
                Recalled::Runs(back, to_run) => (invocation, asked) = (back, to_run),
                Recalled::Checks(checking) => return Begun::Checks(checking),
                Recalled::Follows(invocation) => return Begun::Follows(invocation),
                Recalled::Over => return Begun::Over,
            }
        }
        self.give_sandbox(invocation, asked, taken).map_or(Begun::Over, Begun::Runs)
    }

    /// Gives an invocation its sandbox; none where it is over. `asked`: what its run is remembered under.
    fn give_sandbox(&mut self, mut invocation: Box<Invocation>, asked: Option<Box<Asked>>, now: Instant) -> Option<Box<Started>> {
        let is_late = invocation.deadline <= now;
        let function = &invocation.function;
        let kept = if is_late { None } else { invocation.kept_instance() };
        let is_kept = kept.is_some();
        // Where the request before was one of the same function, its sandbox is the next, and all of it is in the caches.
        let last = self.finished.pop_if(|(_, of)| !is_late && !is_kept && Arc::ptr_eq(of, function));
        if last.is_none() {
            // Meanwhile the sandbox of the request before is reset.
            if !is_kept {
                self.dispatcher.pools().prefetch(self.index, &function.template);
            }
            function.prefetch();
            self.shard.prefetch(function);
        }
        let mut clean = self.put_back_at(now);
        let renewed = last.and_then(|(sandbox, _)| {
            let renewed = self.dispatcher.pools().renew(sandbox);
            clean = self.note_reset(function, clean);
            renewed
        });
        let sandbox = match kept.or(renewed) {
            _ if is_late => Err(Failure::Deadline),
            Some(sandbox) => Ok((sandbox, clean)),
            None => self.sandbox(function, clean),
        };
        let (sandbox, ready) = match sandbox {
            Ok(sandbox) => sandbox,
            Err(failure) => {
                self.refuse(invocation, failure, now);
                return None;
            }
        };
        if let Err(failure) = self.count_ahead(&mut invocation, &sandbox) {
            self.finished.push((sandbox, Arc::clone(&invocation.function)));
            self.refuse(invocation, failure, now);
            return None;
        }
        let ready = if invocation.trace.is_some() { Instant::now() } else { ready };
        let instantiated = ready.saturating_duration_since(clean);
        invocation.times = Times { ready, instantiated, ..invocation.times };
        let is_watched = asked.is_some() || invocation.tells.is_some();
        let context = self.context(&mut invocation, is_watched);
        let driver = Driver::new(sandbox, context);
        let mut started = Box::new(Started {
            invocation,
            driver,
            calls_as: None,
            wait: None,
            unwaited: None,
            asked,
            callees: None,
            ahead: None,
        });
        if is_kept {
            started.driver.skip_to_last(&started.invocation.function.program);
        }
        if started.invocation.function.ahead.is_some() {
            self.begin_ahead(&mut started);
        }
        Some(started)
    }

    /// What an invocation sees of the outside; its input goes there.
    fn context(&self, invocation: &mut Invocation, is_watched: bool) -> Context {
        let (invoke::Input { head, body }, transaction) = invocation.begin();
        let Invocation { function, identity, request_id, trace, deadline, .. } = invocation;
        let request_id = request_id.take();
        let process = Arc::clone(&function.process);
        let writer = Writer { version: function.shown_version, request: identity.sequence, request_id: request_id.clone() };
        let held = transaction.as_ref().and_then(|transaction| transaction.held()).cloned();
        let log = LogLines::new(Arc::clone(&process), Arc::clone(&function.log), writer).held(held);
        let reply = ReplyBytes::new(self.buffers.clone());
        let streams = Streams::of_request(body, reply, self.settings.reply_bytes_max, log);
        let context = Context::new(process, streams)
            .with_head(head)
            .with_origin(request_id, trace.take())
            .until(*deadline)
            .with_phase_turns(self.settings.classes.is_some())
            .within(transaction);
        if !is_watched {
            return context;
        }
        let keeps_footprint = invocation.account.as_ref().is_some_and(|account| account.replies().is_some());
        context.watched(if keeps_footprint { Watch::keeping(REPLY_BYTES_MAX) } else { Watch::default() })
    }

    /// A sandbox for a function, and when it was there. To take an idle one takes less time than a look at the clock, and so none.
    fn sandbox(&self, function: &Function, now: Instant) -> Result<(Box<Sandbox>, Instant), Failure> {
        let pools = self.dispatcher.pools();
        if let Some(idle) = pools.take_idle(self.index, &function.template) {
            return Ok((idle, now));
        }
        let made = pools.take(self.index, &function.template).map_err(|error| {
            tracing::error!(function = function.name(), %error, "no sandbox");
            Failure::NoMemory
        })?;
        Ok((made, self.shard.now(now)))
    }

    /// Has one run again from its beginning, in a fresh sandbox: what it has read of the store was changed before its commit.
    ///
    /// # Errors
    /// When it cannot.
    fn run_again(&mut self, started: &mut Started, now: Instant) -> Result<(), Failure> {
        let invocation = &mut *started.invocation;
        self.shard.note(&invocation.function, |row| row.reruns.add(1));
        if !invocation.may_run_again() {
            return Err(Failure::Conflict);
        }
        let before = started.driver.context();
        (invocation.request_id, invocation.trace) = (before.request_id().cloned(), before.trace().cloned());
        let (sandbox, _) = self.sandbox(&invocation.function, now)?;
        let context = self.context(invocation, started.asked.is_some() || invocation.tells.is_some());
        // What it has called so far is gone with it.
        started.callees = None;
        self.end_ahead(started, Proof::Stale);
        let mut before = mem::replace(&mut started.driver, Driver::new(sandbox, context));
        before.kill();
        let remains = before.finish();
        self.finished.push((remains.sandbox, Arc::clone(&started.invocation.function)));
        if started.invocation.function.ahead.is_some() {
            self.begin_ahead(started);
        }
        Ok(())
    }

    fn end_early(&mut self, mut started: Box<Started>, failure: Failure, now: Instant) {
        // The store has the commit, and may make it.
        let failure = if started.driver.is_committing() { Failure::OutcomeUnknown } else { failure };
        let backtrace = started.driver.backtrace();
        started.driver.kill();
        let function = started.invocation.function.name();
        let reason = failure.reason();
        // A run that is ahead may turn out never to have been.
        match started.driver.context().log_held() {
            None => tracing::info!(function, reason = &*reason, backtrace = format_args!("\n{backtrace}"), "killed"),
            Some(held) => {
                let (function, reason, backtrace) = (function.to_owned(), reason.into_owned(), backtrace.to_string());
                held.put(Box::new(move || tracing::info!(function, reason, backtrace = format_args!("\n{backtrace}"), "killed")));
            }
        }
        self.end(started, Err(failure), now);
    }

    /// Hands the reply over.
    fn end(&mut self, mut started: Box<Started>, result: Result<(), Failure>, end: Instant) {
        self.begin_put_off(&mut started);
        let proof = Proof::of(&result, started.driver.context().transaction().is_none());
        self.end_ahead(&mut started, proof);
        let Started { invocation, driver, .. } = &mut *started;
        let phases = driver.take_phases().and_then(|phases| phases.end(result.is_ok()));
        let mut trailers = driver.take_trailers();
        // What a connection answers is counted there.
        let mut counts = invocation.reply.end(&result, &mut trailers) || invocation.identity.is_call();
        let (times, queued) = (invocation.times, invocation.times.queued());
        let function = &invocation.function;
        if let Some(account) = invocation.account.as_ref().filter(|_| counts && driver.context().log_held().is_some()) {
            account.put(Entry::Ended { function: Arc::clone(function), failure: result.as_ref().err().cloned() });
            counts = false;
        }
        self.shard.note(function, |row| {
            phases.iter().for_each(|phases| row.note_phases(phases));
            row.queue.observe(queued);
            row.instantiate.observe(times.instantiated);
            row.run.observe(end.saturating_duration_since(times.ready));
            row.ready.add(times.ready_until(end).as_nanos() as u64);
            row.running.add(times.cpu.as_nanos() as u64);
            row.blocked.add(times.blocked.as_nanos() as u64);
            if counts {
                row.ended(result.as_ref().err());
            }
        });
        if self.dispatcher.keeps_promises() {
            function.gate.observe(times.cpu);
        }
        invocation.admission.learn(&times, end);
        if let Err(failure) = &result {
            log_failure(function, driver, failure);
            // Whatever is not an end in good order is never reused.
            if !matches!(failure, Failure::Exit(_)) {
                driver.kill();
            }
        }
        // Relaxed: a version is marked before this thread is told to forget it.
        let retired = function.retired.load(Ordering::Relaxed);
        let context = driver.context();
        let record = Record { host_calls: context.host_calls(), phase: context.phase(), phases, ..invocation.record_at(end) };
        if let Some(trace) = context.trace() {
            match context.log_held().filter(|_| invocation.identity.is_speculative) {
                None => Over::of(invocation, end, result.as_ref().err()).tell(trace, &times, &record),
                Some(held) => tell_later(held, (invocation, end, result.as_ref().err()), trace, record.clone()),
            }
        }
        tracing::debug!(target: "sledge::request", function = function.name(), ?record, "over");
        let may_keep = function.instance != Instance::Call && result.is_ok() && !retired && driver.is_reusable(&function.program);
        let ran = Ran::of(&mut started, trailers.is_some());
        let (invocation, remains, calls_as) = started.finish();
        let landing = ran.and_then(|ran| self.remember(&invocation, ran, &remains, result.as_ref().err()));
        // Before the reply goes, since the next call may come from another thread at once.
        let sandbox = if may_keep { invocation.keep_instance(remains.sandbox) } else { Some(remains.sandbox) };
        let Invocation { function, reply, admission, identity, .. } = *invocation;
        let result = result.map(|()| remains.reply);
        let ran = times.since_taken(end);
        self.answer_with(reply.send(Reply { result, head: remains.head, trailers, queued, ran, record }));
        if let Some(landing) = landing {
            landing.land(&function);
        }
        self.put_back();
        self.finished.extend(sandbox.filter(|_| !retired).map(|sandbox| (sandbox, function)));
        // With the outermost one all that its callees have left is over.
        if let Some(calls_as) = calls_as
            && !identity.is_call()
        {
            let left = calls_as.close_kept();
            // Relaxed: as above.
            let left = left.into_iter().filter(|(function, _)| !function.retired.load(Ordering::Relaxed));
            self.finished.extend(left.map(|(function, sandbox)| (sandbox, function)));
        }
        drop(admission);
    }

    /// What it runs now goes on later: its reply comes then.
    fn answer_later(&mut self, started: &mut Started) {
        let Started { invocation, driver, asked, .. } = started;
        if let Some(asked) = asked
            && let Some(watch) = driver.context().watch()
        {
            asked.goes_on(&watch.trace);
        }
        let later = invocation.make_way();
        self.answer_with(later);
    }

    /// That is for the task that brought what runs, if it is anything.
    fn answer_with(&mut self, answer: Option<Answer>) {
        if answer.is_some() {
            self.answer = answer;
        }
    }

    /// Has a reply sent that goes out while it is written.
    fn begin_stream(&mut self, started: &mut Started, begin: Instant, now: Instant) {
        let Some((pipe, stream, head)) = started.driver.take_stream() else { return };
        let Invocation { times, reply, .. } = &mut *started.invocation;
        let (queued, ran) = (times.queued(), times.since_taken(now));
        let trailers = started.driver.context().trailers().map(|trailers| Box::new(trailers.clone()));
        // What is written of a reply that is not wanted goes nowhere.
        let after = if matches!(reply, ReplyTo::Nowhere) { ReplyTo::Nowhere } else { ReplyTo::Stream(pipe) };
        let reply = mem::replace(reply, after);
        // The quantum that is not over counts, too.
        let mut record = started.invocation.record_at(begin);
        record.running += now - begin;
        let reply = reply.send(Reply { result: Ok(Content::Stream(stream)), head, trailers, queued, ran, record });
        self.answer_with(reply);
    }

    /// Answers an invocation that has not begun and does not any more.
    fn refuse(&mut self, mut invocation: Box<Invocation>, failure: Failure, now: Instant) {
        tracing::debug!(function = invocation.function.name(), %failure, "not begun");
        if let Some(trace) = invocation.trace.take() {
            Over::of(&invocation, now, Some(&failure)).tell_queued(&trace);
        }
        let (queued, record) = (now.saturating_duration_since(invocation.times.arrived), invocation.record());
        let reply = Reply { result: Err(failure), head: None, trailers: None, queued, ran: Duration::ZERO, record };
        self.answer_with(invocation.reply.send(reply));
    }

    /// Resets and keeps what has finished.
    fn put_back(&mut self) {
        if !self.finished.is_empty() {
            self.put_back_at(Instant::now());
        }
    }

    /// The same at that time; returns when it is done.
    fn put_back_at(&mut self, mut begin: Instant) -> Instant {
        while let Some((sandbox, function)) = self.finished.pop() {
            self.dispatcher.pools().put(self.index, sandbox, begin);
            begin = self.note_reset(&function, begin);
        }
        begin
    }

    /// A sandbox was reset since `begin`; the time.
    fn note_reset(&self, function: &Function, begin: Instant) -> Instant {
        let end = self.shard.now(begin);
        self.shard.note(function, |row| row.reset.observe(end.saturating_duration_since(begin)));
        end
    }

    /// Gives back what was not needed for a while.
    fn trim(&mut self, now: Instant) {
        if self.trim_at.is_some_and(|at| at <= now) {
            // The rest with the next turn, before which connections are looked after.
            if !self.dispatcher.pools().trim(self.index, TRIM_COUNT_MAX) {
                return;
            }
            self.trim_at = None;
            self.buffers.clear();
            if self.dispatcher.comes_to_rest() {
                sledge_sandbox::release_heap();
            }
        }
    }

    /// Sets the time for that, if there may be something and none is set; whether it did.
    fn set_trim(&mut self, now: Instant) -> bool {
        let Some(idle_memory) = self.settings.idle_memory.filter(|_| self.trim_at.is_none()) else { return false };
        if self.dispatcher.pools().idle(self.index) == 0 && self.buffers.is_empty() && !self.dispatcher.is_stirred() {
            return false;
        }
        self.trim_at = Some(now + idle_memory);
        true
    }

    /// Goes on with host calls for which something has happened.
    fn poll_woken(&mut self, now: Instant) {
        for id in self.waits.take_woken() {
            let is_ready = match self.scheduler.task_mut(id) {
                Some(Work::Started(started)) => self.waits.poll(&mut **started, id, now),
                Some(Work::Checking(checking)) => self.waits.poll(&mut **checking, id, now),
                Some(Work::Job(invocation)) => self.waits.poll_follower(invocation, id),
                None => false,
            };
            if is_ready {
                self.scheduler.step(Event::Ready(id), now);
            }
        }
    }
}

fn log_failure(of: &Function, driver: &Driver, failure: &Failure) {
    let function = of.name();
    match failure {
        Failure::Trap(_) | Failure::MemoryStack(_) | Failure::Component { .. } | Failure::MemoryLimit | Failure::NoMemory => {
            let backtrace = driver.backtrace();
            let report = format!("{failure}\n{backtrace}");
            if let Some(writer) = driver.context().log_writer() {
                let (log, writer, name) = (Arc::clone(&of.log), writer.clone(), function.to_owned());
                let (reason, message) = (failure.reason().into_owned(), failure.to_string());
                let say = move || {
                    let Writer { version, request, request_id } = &writer;
                    log.push(&writer, Level::WARN, report.trim_end(), Instant::now());
                    let request_id = request_id.as_deref();
                    let (function, backtrace) = (&*name, format_args!("\n{backtrace}"));
                    tracing::warn!(function, version, request, request_id, reason, backtrace, "{message}");
                };
                // A run that is ahead may turn out never to have been.
                match driver.context().log_held() {
                    Some(held) => held.put(Box::new(say)),
                    None => say(),
                }
            }
        }
        // Those were logged where they were decided.
        Failure::Deadline | Failure::CpuLimit | Failure::Cancelled | Failure::Stopping => {}
        // Mistakes of clients.
        Failure::BodyBroken | Failure::BodyTooLarge | Failure::BodyTimeout => {}
        other => {
            let say = |function: &str, other: &Failure| tracing::warn!(function, reason = &*other.reason(), "{other}");
            // As above.
            match driver.context().log_held() {
                Some(held) => {
                    let (name, other) = (function.to_owned(), other.clone());
                    held.put(Box::new(move || say(&name, &other)));
                }
                None => say(function, other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_a_tick_stops_early_gets_the_rest_of_its_quantum_and_no_more() {
        let quantum = Duration::from_micros(500);
        let rest = |ran| super::turn::rest_of_quantum(Duration::from_micros(ran), quantum).as_micros();
        assert_eq!([rest(0), rest(1), rest(249)], [500, 499, 251]);
        assert_eq!([rest(250), rest(499), rest(500), rest(700)], [0; 4]);
    }
}
