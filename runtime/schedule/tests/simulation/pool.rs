//! A pool of workers in simulated time: the real schedulers and gates, guests that are nothing but times, one thread, one heap of events.
//!
//! What is checked at every event stands in `check.rs` and in the functions here that say [`Violation`].

mod ends;
mod gates;
mod side;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use sledge_schedule::demand::{Changes, Claim};
use sledge_schedule::{Action, Demand, Event, Microtask, Phase, Rank, Requests, Scheduler, Shared as _, Site, TaskId, Work as _};

use self::gates::{Limits, Wanted};
use self::side::{Job, Side};
pub(crate) use self::side::{Place, World};
use crate::check::Checks;
use crate::model::Model;
use crate::plan::{Ahead, Part, Plan, Random, What};

/// What must not happen.
pub(crate) type Violation = String;

/// A wake-up takes at most so long.
pub(crate) const WAKE_MAX: u64 = 60_000;
/// Answering one request, or reading one.
const IO: u64 = 2_000;
/// More events than any plan needs.
const EVENTS_MAX: usize = 400_000;

/// What was seen of a simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) events: usize,
    pub(crate) admitted: usize,
    pub(crate) answered: usize,
    /// How often each kind of fault came, by its name.
    pub(crate) faults: Vec<(&'static str, usize)>,
    /// How often each kind of hand-over between workers came.
    pub(crate) stolen: usize,
    /// Microtasks that ended with a phase; whether a worker held requests back.
    pub(crate) phases: usize,
    pub(crate) held: bool,
}

impl Seen {
    pub(crate) fn fault(&mut self, name: &'static str) {
        match self.faults.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.faults.push((name, 1)),
        }
    }
}

/// Everything that is known of an invocation.
pub(crate) struct Invocation {
    pub(crate) function: usize,
    pub(crate) tenant: u32,
    pub(crate) age: u64,
    pub(crate) deadline: u64,
    pub(crate) cpu: u64,
    /// For how long it was blocked.
    waited: u64,
    /// When it could have been run first.
    pub(crate) entered: u64,
    pub(crate) is_over: bool,
    pub(crate) started: bool,
    no_memory: bool,
    script: VecDeque<Part>,
    closed: Rc<Cell<bool>>,
    /// Whether it is asked for, if it was begun ahead; or if what calls it was.
    claim: Option<(Rc<Claim>, Rank)>,
    gate: Rc<Limits>,
    /// The invocation that waits for it, and for which of its waits.
    caller: Option<(usize, u64)>,
    /// Those that it waits for.
    callees: Vec<usize>,
    /// Its worker and number there, while it is blocked.
    blocked: Option<(usize, TaskId)>,
    /// Since when; until when, if it goes on without more.
    blocked_since: u64,
    blocked_until: Option<u64>,
    /// Whether it is blocked in a host call.
    pends: bool,
    /// Which of its waits this is, and whether it is done.
    wait: u64,
    wait_is_done: bool,
}

/// What a worker's thread does.
enum Thread {
    /// It waits in epoll.
    Waiting,
    /// It takes a turn next.
    Turn,
    /// It looks after connections.
    Io,
    /// It runs a guest.
    Running { run: Box<Run>, at_once: bool },
    /// It has left.
    Left,
}

/// A run that is under way.
struct Run {
    id: TaskId,
    job: Job,
    ran: u64,
    /// Whether it was speculative when that began.
    is_speculative: bool,
    end: End,
    /// Calls that it makes: function, script, and whether it waits.
    calls: Vec<(usize, Vec<Part>, bool)>,
}

enum End {
    Returns,
    Preempted,
    Sleeps(u64),
    Pends(u64),
    Phase(Option<u64>),
    Calls,
}

pub(crate) struct Worker {
    scheduler: Scheduler<Side>,
    thread: Thread,
    /// Requests that its connections have to read.
    inbox: VecDeque<usize>,
    /// Blocked tasks to which something has happened.
    woken: Vec<TaskId>,
    /// Whether it was woken while it was awake.
    is_notified: bool,
    /// Wake-ups under way.
    wakes: usize,
    /// Counts its waits, so that an alarm is known to be of an earlier one.
    waits: u64,
    to_answer: u64,
    /// Whether what it ran last was speculative, and it has not waited since.
    is_slack: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A step of the plan.
    Step(usize),
    /// A worker's thread goes on.
    Go(usize),
    /// A wake-up arrives.
    Wake(usize),
    /// What a wait of an invocation is for has happened.
    Done(usize, u64),
    /// A client does not wait any longer.
    Leaves(usize),
    /// The server tells a client that it took too long.
    Late(usize),
    /// It is known whether an invocation is asked for that was begun ahead.
    Settled(usize, bool),
    /// A worker's alarm, of that wait.
    Alarm(usize, u64),
}

/// Function, script, the time after which its client leaves, whether there is no memory, and what becomes of it if it is begun ahead.
type Unread = (usize, Vec<Part>, Option<u64>, bool, Option<Ahead>);

pub(crate) struct Pool<'a> {
    plan: &'a Plan,
    random: Random,
    start: Instant,
    pub(crate) now: u64,
    heap: BinaryHeap<Reverse<(u64, u64, Due)>>,
    sequence: u64,
    pub(crate) world: Rc<RefCell<World>>,
    pub(crate) workers: Vec<Worker>,
    gates: Vec<Rc<Limits>>,
    pub(crate) invocations: Vec<Invocation>,
    /// What is to be read.
    unread: Vec<Unread>,
    checks: Checks,
    seen: Seen,
}

impl Invocation {
    /// Whether it is asked for.
    pub(crate) fn demand(&self) -> Demand {
        self.claim.as_ref().map_or(Demand::Asked, |(claim, _)| claim.demand())
    }

    /// Where it stands if it is speculative.
    pub(crate) fn place(&self) -> (Option<Rank>, u64) {
        (self.claim.as_ref().map(|(_, rank)| *rank), self.age)
    }

    /// It is blocked no longer.
    fn end_wait(&mut self, now: u64) {
        self.waited += self.blocked_until.map_or(now, |until| until.min(now)).saturating_sub(self.blocked_since);
    }
}

impl Worker {
    /// Whether it sleeps, and no wake-up is under way to it.
    pub(crate) fn sleeps(&self) -> bool {
        matches!(self.thread, Thread::Waiting) && self.wakes == 0 && !self.is_notified
    }

    pub(crate) fn waiting(&self) -> usize {
        self.scheduler.waiting()
    }

    /// Whether what waits there is not begun now.
    pub(crate) fn holds(&self) -> bool {
        self.scheduler.is_holding()
    }

    /// Whether it runs only what is speculative.
    pub(crate) const fn is_slack(&self) -> bool {
        self.is_slack
    }

    pub(crate) fn has_unread(&self) -> bool {
        !self.inbox.is_empty()
    }
}

/// Plays a plan to its end.
pub(crate) fn play(plan: &Plan) -> Result<Seen, Violation> {
    let mut pool = Pool::new(plan);
    while let Some(Reverse((at, _, due))) = pool.heap.pop() {
        pool.now = at;
        pool.seen.events += 1;
        if pool.seen.events > EVENTS_MAX {
            return Err(format!("no end after {EVENTS_MAX} events"));
        }
        pool.happens(due)?;
        pool.note_dropped()?;
        pool.deliver();
        pool.note_moves();
        let Pool { checks, workers, world, now, invocations, .. } = &mut pool;
        checks.sleepers(*now, workers, &world.borrow(), invocations)?;
    }
    pool.end()
}

impl<'a> Pool<'a> {
    fn new(plan: &'a Plan) -> Pool<'a> {
        let start = Instant::now();
        let world = World {
            model: Model::new(plan.workers),
            requests: Requests::new(1, plan.requests_max),
            changes: Changes::default(),
            drains: false,
            unread: 0,
            moves: Vec::new(),
            dropped: Vec::new(),
        };
        let world = Rc::new(RefCell::new(world));
        let worker = |index| Worker {
            scheduler: Scheduler::new(
                plan.policy,
                Duration::from_nanos(plan.quantum),
                Side { world: Rc::clone(&world), index },
                start,
            )
            .with_classes(plan.classes.map(|classes| classes.settings())),
            thread: Thread::Turn,
            inbox: VecDeque::new(),
            woken: Vec::new(),
            is_notified: false,
            wakes: 0,
            waits: 0,
            to_answer: 0,
            is_slack: false,
        };
        let gate = |function: &crate::plan::Function| {
            let crate::plan::Function { follows, concurrency_max, queue_max, .. } = *function;
            Limits::new(Wanted { follows, concurrency_max, queue_max }, plan.workers, None)
        };
        let mut pool = Pool {
            plan,
            random: Random(plan.seed ^ 0xabcd),
            start,
            now: 0,
            heap: BinaryHeap::new(),
            sequence: 0,
            workers: (0..plan.workers).map(worker).collect(),
            gates: plan.functions.iter().map(gate).collect(),
            world,
            invocations: Vec::new(),
            unread: Vec::new(),
            checks: Checks::new(plan),
            seen: Seen::default(),
        };
        for (index, step) in plan.steps.iter().enumerate() {
            pool.at(step.at, Due::Step(index));
        }
        (0..plan.workers).for_each(|worker| pool.at(0, Due::Go(worker)));
        pool
    }

    fn at(&mut self, at: u64, due: Due) {
        self.sequence += 1;
        self.heap.push(Reverse((at.max(self.now), self.sequence, due)));
    }

    fn time(&self, at: u64) -> Instant {
        self.start + Duration::from_nanos(at)
    }

    fn happens(&mut self, due: Due) -> Result<(), Violation> {
        match due {
            Due::Step(index) => self.step(index),
            Due::Go(worker) => self.go(worker),
            Due::Wake(worker) => {
                self.workers[worker].wakes -= 1;
                self.notify(worker)
            }
            Due::Alarm(worker, wait) => {
                if self.workers[worker].waits == wait {
                    self.notify(worker)
                } else {
                    Ok(())
                }
            }
            Due::Done(index, wait) => {
                if self.invocations[index].wait == wait {
                    self.invocations[index].wait_is_done = true;
                    self.wake_task(index);
                }
                Ok(())
            }
            Due::Settled(index, is_asked) => {
                self.settled(index, is_asked);
                Ok(())
            }
            Due::Leaves(index) => {
                if !self.invocations[index].is_over {
                    self.seen.fault("client gone");
                    self.close(index);
                }
                Ok(())
            }
            Due::Late(index) => {
                if !self.invocations[index].is_over {
                    self.seen.fault("late");
                    self.close(index);
                }
                Ok(())
            }
        }
    }

    fn step(&mut self, index: usize) -> Result<(), Violation> {
        let plan = self.plan;
        match &plan.steps[index].what {
            What::Request { function, door, script, leaves, no_memory, ahead } => {
                if self.world.borrow().requests.phase() != Phase::Serving {
                    self.seen.fault("after the end");
                    return Ok(());
                }
                self.unread.push((*function, script.clone(), *leaves, *no_memory, *ahead));
                let request = self.unread.len() - 1;
                if plan.dedicated {
                    if let Some(job) = self.read(request) {
                        self.inject(job);
                    }
                } else {
                    self.world.borrow_mut().unread += 1;
                    let worker = *door % plan.workers;
                    self.workers[worker].inbox.push_back(request);
                    if matches!(self.workers[worker].thread, Thread::Waiting) {
                        // What epoll says is seen by the connection's task.
                        self.workers[worker].thread = Thread::Io;
                        let at = self.now + self.random.range(1_000, WAKE_MAX);
                        self.at(at, Due::Go(worker));
                    }
                }
            }
            &What::Deploy { function, concurrency_max, queue_max, follows } => {
                self.seen.fault("deployed");
                let function = function % self.gates.len();
                // What runs of the version before keeps that one's gate; a version of the same limits shares it.
                let wanted = Wanted { follows, concurrency_max, queue_max };
                if self.gates[function].wanted != wanted {
                    self.gates[function] = Limits::new(wanted, plan.workers, Some(&self.gates[function]));
                }
            }
            What::Wake { worker } => {
                self.seen.fault("woken for nothing");
                let worker = *worker % plan.workers;
                self.wake(worker);
            }
            What::Drain => {
                let requests = self.world.borrow().requests.count();
                if requests > 0 {
                    self.seen.fault("drained under load");
                }
                self.world.borrow().requests.advance(Phase::Draining);
                self.world.borrow_mut().drains = true;
                (0..plan.workers).for_each(|worker| self.wake(worker));
                self.close_when_read();
            }
            What::Kill => {
                self.world.borrow().requests.advance(Phase::Killing);
                (0..plan.workers).for_each(|worker| self.wake(worker));
            }
        }
        Ok(())
    }

    /// Sends the wake-ups that are due on their way.
    fn deliver(&mut self) {
        let wakes = std::mem::take(&mut self.world.borrow_mut().model.wakes);
        wakes.into_iter().for_each(|worker| self.wake(worker));
    }

    fn wake(&mut self, worker: usize) {
        self.workers[worker].wakes += 1;
        let at = self.now + self.random.range(1_000, WAKE_MAX);
        self.at(at, Due::Wake(worker));
    }

    /// A wake-up has arrived.
    fn notify(&mut self, worker: usize) -> Result<(), Violation> {
        match self.workers[worker].thread {
            Thread::Waiting => {
                self.workers[worker].thread = Thread::Turn;
                self.go(worker)
            }
            _ => {
                self.workers[worker].is_notified = true;
                Ok(())
            }
        }
    }

    /// The client of an invocation has gone, or its caller does not wait any longer.
    fn close(&mut self, index: usize) {
        self.invocations[index].closed.set(true);
        self.wake_task(index);
    }

    /// Something has happened to an invocation; if it is blocked, its worker is told.
    fn wake_task(&mut self, index: usize) {
        if let Some((worker, id)) = self.invocations[index].blocked {
            self.workers[worker].woken.push(id);
            self.wake(worker);
        }
    }

    /// An invocation is asked for that was begun ahead, or is not wanted any more.
    fn settled(&mut self, index: usize, is_asked: bool) {
        let invocation = &self.invocations[index];
        let Some((claim, _)) = invocation.claim.clone().filter(|_| !invocation.is_over) else { return };
        let world = self.world.borrow();
        if is_asked {
            claim.ask(&world.changes);
        } else {
            claim.give_up(&world.changes);
        }
        drop(world);
        // What it has called, too.
        let same = |of: &Invocation| of.claim.as_ref().is_some_and(|(of, _)| Rc::ptr_eq(of, &claim));
        for index in (0..self.invocations.len()).filter(|index| same(&self.invocations[*index])) {
            self.checks.settled(index, self.invocations[index].tenant);
        }
        self.seen.fault(if is_asked { "asked for" } else { "given up" });
        if !is_asked {
            self.close(index);
        }
    }

    /// A worker's thread goes on.
    fn go(&mut self, worker: usize) -> Result<(), Violation> {
        match std::mem::replace(&mut self.workers[worker].thread, Thread::Turn) {
            Thread::Turn => {
                self.workers[worker].is_notified = false;
                let now = self.time(self.now);
                self.workers[worker].scheduler.step(Event::Turn, now);
                self.next(worker)
            }
            Thread::Io => self.look_after_connections(worker),
            Thread::Running { run, at_once } => {
                let event = self.run_ends(worker, *run)?;
                let now = self.time(self.now);
                self.workers[worker].scheduler.step(event, now);
                if at_once { self.look_after_connections(worker) } else { self.next(worker) }
            }
            Thread::Waiting => Err(format!("worker {worker} goes on, and nothing woke it")),
            Thread::Left => {
                self.workers[worker].thread = Thread::Left;
                Ok(())
            }
        }
    }

    /// Reads the next request, if there is one, and else takes a turn.
    fn look_after_connections(&mut self, worker: usize) -> Result<(), Violation> {
        while let Some(request) = self.workers[worker].inbox.pop_front() {
            self.world.borrow_mut().unread -= 1;
            let job = self.read(request);
            self.close_when_read();
            let Some(job) = job else { continue };
            self.world.borrow_mut().moves.push((job.index, Place::Worker(worker)));
            self.note_moves();
            let now = self.time(self.now);
            let is_alone = {
                let world = self.world.borrow();
                world.model.injector.is_empty() && world.model.queues[worker].is_empty()
            };
            let task = job.task(TaskId(0));
            match self.workers[worker].scheduler.step(Event::Submitted(task), now) {
                Action::RunAtOnce(_) if !is_alone => {
                    return Err(format!("invocation {} runs at once, before what waits in queues", job.index));
                }
                Action::RunAtOnce(id) => {
                    self.checks.slack(worker, job.index, &self.invocations)?;
                    if self.runs(worker, id, job, true)? {
                        return Ok(());
                    }
                }
                _ => {
                    self.workers[worker].scheduler.step(Event::Arrived(job), now);
                }
            }
        }
        self.workers[worker].thread = Thread::Turn;
        self.at(self.now + 1_000, Due::Go(worker));
        Ok(())
    }

    /// Asks what to do until that takes time.
    fn next(&mut self, worker: usize) -> Result<(), Violation> {
        loop {
            self.poll_woken(worker);
            let now = self.time(self.now);
            let action = self.workers[worker].scheduler.step(Event::Next, now);
            self.note_moves();
            match action {
                Action::Run(id, job) => {
                    self.checks.order(worker, job.index, &self.invocations)?;
                    self.checks.slack(worker, job.index, &self.invocations)?;
                    if self.runs(worker, id, job, false)? {
                        return Ok(());
                    }
                }
                Action::Kill(_, job, why) => {
                    self.killed(worker, job, why)?;
                    self.workers[worker].scheduler.step(Event::Dropped, now);
                }
                Action::Io => {
                    let answers = std::mem::take(&mut self.workers[worker].to_answer);
                    let requests = self.workers[worker].inbox.len() as u64;
                    let took = (answers + requests).min(10) * IO;
                    self.checks.io(worker, took);
                    self.workers[worker].thread = Thread::Io;
                    self.at(self.now + took, Due::Go(worker));
                    return Ok(());
                }
                Action::Wait { alarm } => {
                    self.seen.held |= self.workers[worker].holds();
                    return self.waits(worker, alarm);
                }
                Action::Leave => {
                    if self.workers[worker].has_unread() {
                        return Err(format!("worker {worker} leaves, and has requests to read"));
                    }
                    self.workers[worker].thread = Thread::Left;
                    return Ok(());
                }
                Action::Noted | Action::RunAtOnce(_) => return Err(format!("worker {worker} is not told what to do")),
            }
        }
    }

    /// A worker has nothing to do: it looks after connections, and then its thread waits.
    fn waits(&mut self, worker: usize, alarm: Option<Instant>) -> Result<(), Violation> {
        let now = self.time(self.now);
        let this = &mut self.workers[worker];
        if this.has_unread() {
            this.thread = Thread::Io;
            self.at(self.now + IO, Due::Go(worker));
            return Ok(());
        }
        this.scheduler.step(Event::Rests, now);
        if this.is_notified || !this.scheduler.shared_mut().try_idle() {
            this.thread = Thread::Turn;
            self.at(self.now + 1_000, Due::Go(worker));
            return Ok(());
        }
        this.to_answer = 0;
        this.is_slack = false;
        this.thread = Thread::Waiting;
        this.waits += 1;
        let wait = this.waits;
        if let Some(alarm) = alarm {
            let at = (alarm - self.start).as_nanos() as u64 + self.random.below(WAKE_MAX);
            self.at(at, Due::Alarm(worker, wait));
        }
        Ok(())
    }

    fn poll_woken(&mut self, worker: usize) {
        let now = self.time(self.now);
        for id in std::mem::take(&mut self.workers[worker].woken) {
            let Some(job) = self.workers[worker].scheduler.task_mut(id) else { continue };
            let invocation = &mut self.invocations[job.index];
            if invocation.blocked == Some((worker, id)) && (invocation.wait_is_done || invocation.closed.get()) {
                invocation.blocked = None;
                invocation.end_wait(self.now);
                let (index, tenant) = (job.index, invocation.tenant);
                self.checks.moved(index, tenant, Place::Worker(worker));
                self.workers[worker].scheduler.step(Event::Ready(id), now);
            }
        }
    }

    /// Begins a run. False when there is nothing to run: that is over.
    fn runs(&mut self, worker: usize, id: TaskId, job: Job, at_once: bool) -> Result<bool, Violation> {
        let (index, now) = (job.index, self.now);
        let invocation = &mut self.invocations[index];
        if invocation.is_over {
            return Err(format!("invocation {index} is run after its end"));
        }
        // Its time may have come, and another worker may have taken it over since. What pends stays with the worker that polls it.
        if invocation.pends && invocation.blocked.is_some_and(|at| at != (worker, id)) {
            return Err(format!("invocation {index} is run by worker {worker}, and pends elsewhere"));
        }
        // A sleep is over when its time has come, and nothing else says so.
        if invocation.blocked.take().is_some() {
            invocation.end_wait(now);
            self.checks.moved(index, invocation.tenant, Place::Worker(worker));
        }
        if now >= invocation.deadline {
            return Err(format!("invocation {index} is run after its deadline"));
        }
        if invocation.started != job.task.started {
            return Err(format!("invocation {index}: begun twice, or gone on with before it began"));
        }
        if invocation.closed.get() || std::mem::take(&mut invocation.no_memory) {
            if !invocation.closed.get() {
                self.seen.fault("no memory");
            }
            self.over(worker, job)?;
            let time = self.time(now);
            self.workers[worker].scheduler.step(Event::Dropped, time);
            return Ok(false);
        }
        invocation.started = true;
        let is_speculative = invocation.demand() == Demand::Speculative;
        self.workers[worker].is_slack = is_speculative;
        let invocation = &mut self.invocations[index];
        self.checks.begins(worker);
        let quantum = self.plan.quantum;
        let tick = quantum + self.random.below(quantum / 8);
        let (mut ran, mut calls, mut end) = (200, Vec::new(), End::Returns);
        while let Some(part) = invocation.script.pop_front() {
            match part {
                Part::Run(time) if ran + time >= tick => {
                    let left = ran + time - tick.max(ran);
                    ran = ran.max(tick);
                    invocation.script.push_front(Part::Run(left));
                    end = End::Preempted;
                    break;
                }
                Part::Run(time) => ran += time,
                Part::Host(time) => ran += time,
                Part::Sleep(time) => {
                    end = End::Sleeps(time);
                    break;
                }
                Part::Pend(time) => {
                    end = End::Pends(time);
                    break;
                }
                Part::Phase(declared) => {
                    end = End::Phase(declared);
                    break;
                }
                Part::Call { function, script, waits } => {
                    calls.push((function, script, waits));
                    if waits {
                        end = End::Calls;
                        break;
                    }
                }
            }
            if ran >= tick {
                end = End::Preempted;
                break;
            }
        }
        self.workers[worker].thread =
            Thread::Running { run: Box::new(Run { id, job, ran, is_speculative, end, calls }), at_once };
        self.at(now + ran, Due::Go(worker));
        Ok(true)
    }

    /// A run is over: what comes of it.
    fn run_ends(&mut self, worker: usize, run: Run) -> Result<Event<Job>, Violation> {
        let Run { id, mut job, ran, is_speculative, end, calls } = run;
        let index = job.index;
        let time = Duration::from_nanos(ran);
        self.invocations[index].cpu += ran;
        (job.task.cpu, job.task.started) = (job.task.cpu + time, true);
        if !matches!(end, End::Preempted) {
            let declared = if let End::Phase(declared) = end { declared.map(Duration::from_nanos) } else { None };
            job.microtask = Microtask { site: Site(self.invocations[index].script.len() as u32 + 1), declared };
        }
        self.checks.ran(worker, self.invocations[index].tenant, (ran, is_speculative), &self.invocations)?;
        self.invocations[index].wait += 1;
        self.invocations[index].wait_is_done = false;
        let wait = self.invocations[index].wait;
        for (function, script, waits) in calls {
            let own = self.now + self.plan.functions[function].deadline;
            let deadline = if waits { own.min(self.invocations[index].deadline) } else { own };
            let callee = self.admit(function, script, deadline, waits.then_some((index, wait)));
            match callee {
                Some(callee) => {
                    if waits {
                        self.invocations[index].callees.push(callee);
                    }
                    if let Some(job) = self.enter(callee) {
                        self.world.borrow_mut().moves.push((callee, Place::Worker(worker)));
                        self.note_moves();
                        let now = self.time(self.now);
                        self.workers[worker].scheduler.step(Event::Arrived(job), now);
                    }
                }
                // It is answered at once.
                None if waits => self.invocations[index].wait_is_done = true,
                None => {}
            }
        }
        let is_answered = self.invocations[index].caller.is_none();
        let mut sleeps_until = None;
        let until = match end {
            End::Returns => {
                self.over(worker, job)?;
                self.seen.answered += 1;
                self.workers[worker].to_answer += u64::from(is_answered);
                return Ok(if is_answered { Event::Ended { ran: time } } else { Event::Returned { ran: time } });
            }
            End::Phase(_) => {
                self.seen.phases += 1;
                return Ok(Event::Phase { ran: time, work: job });
            }
            End::Preempted => return Ok(Event::Preempted { ran: time, work: job }),
            End::Sleeps(sleeps) => {
                sleeps_until = Some(self.now + sleeps);
                Some(self.time(self.now + sleeps))
            }
            End::Pends(takes) => {
                self.at(self.now + takes, Due::Done(index, wait));
                None
            }
            End::Calls => None,
        };
        let invocation = &mut self.invocations[index];
        if invocation.closed.get() || invocation.wait_is_done {
            return Ok(Event::Preempted { ran: time, work: job });
        }
        invocation.blocked = Some((worker, id));
        (invocation.blocked_since, invocation.blocked_until) = (self.now, sleeps_until);
        invocation.pends = until.is_none();
        self.checks.left(worker, index, invocation.tenant);
        Ok(Event::Blocked { ran: time, until, work: job })
    }
}
