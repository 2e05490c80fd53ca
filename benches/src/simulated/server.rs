//! A server in simulated time: one heap of events, the real schedulers, gates and exchange, and workers that are nothing but times.
//!
//! A worker does one thing at a time, as the real one does (`runtime/src/worker`): it looks after connections, which is reading requests, sending commands to the store,
//! taking its answers and writing replies; or it runs a guest for as long as the scheduler says; or it sleeps. What comes while it is at work is seen when it next looks after
//! connections. What comes while a guest runs alone interrupts it.

mod parts;
mod runs;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

use sledge_schedule::{
    Action, Event, Exchange, FunctionId, Gate, InFlight, Scheduler, Shared as _, Task, TaskId, TenantId, Work as _,
};

use self::parts::{From, Invocation, Item, Run, Thread, Worker};
use super::model::{Concurrency, Function, Listeners, Load, Nanoseconds, Settings};
use super::outcome::{Outcome, Record};
use super::requests::Requests;
use super::side::{Bell, Job, Key, Side, Woken};
use crate::random::Random;

/// The most workers: one bit each.
pub const WORKERS_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// Requests of a stream, or of a client.
    Comes(usize),
    /// A worker is done with what it does.
    Done(usize, u32),
    /// The store's answer to an invocation of that worker has come.
    Answered(usize, Key),
    /// A worker's alarm.
    Alarm(usize),
}

struct Server<'a> {
    settings: &'a Settings,
    functions: &'a [Function],
    random: Random,
    start: Instant,
    now: Nanoseconds,
    events: BinaryHeap<Reverse<(Nanoseconds, u64, Due)>>,
    sequence: u64,
    exchange: Rc<Exchange<Job>>,
    woken: Woken,
    workers: Vec<Worker>,
    gates: Vec<Gate<Job>>,
    invocations: Vec<Invocation>,
    free: Vec<u32>,
    admitted: u64,
    requests: Requests<'a>,
    record: Record,
}

/// Plays so many requests, of which the first tenth does not count.
///
/// # Panics
///
/// If there are more workers than [`WORKERS_MAX`], a function without bursts, or a request is lost.
pub fn play(settings: &Settings, functions: &[Function], load: &Load, requests: usize, seed: u64) -> Outcome {
    assert!((1..=WORKERS_MAX).contains(&settings.workers), "{} workers", settings.workers);
    assert!(
        functions.iter().all(|function| function.bursts.len() == function.between.len() + 1),
        "bursts and what is between them"
    );
    let mut server = Server::new(settings, functions, load, requests, seed);
    for source in 0..server.requests.sources() {
        let at = server.requests.first(source, &mut server.random);
        server.at(at, Due::Comes(source));
    }
    while let Some(Reverse((at, _, due))) = server.events.pop() {
        server.now = at;
        server.happens(due);
        server.wake();
    }
    let used: Nanoseconds = server.workers.iter().map(|worker| worker.used).sum();
    server.record.outcome(used as f64 / settings.workers as f64, server.sequence)
}

impl<'a> Server<'a> {
    fn new(settings: &'a Settings, functions: &'a [Function], load: &'a Load, requests: usize, seed: u64) -> Server<'a> {
        let (exchange, deques) = Exchange::new(settings.workers);
        let (exchange, woken, start) = (Rc::new(exchange), Woken::new(AtomicU64::new(0)), Instant::now());
        let worker = |(index, deque)| {
            exchange.register(index, &Waker::from(Arc::new(Bell { woken: Arc::clone(&woken), worker: index })));
            let side = Side { exchange: Rc::clone(&exchange), index, deque, steals: settings.steals };
            let mut scheduler = Scheduler::new(settings.policy, settings.quantum, side, start);
            scheduler.shared_mut().try_idle();
            Worker {
                scheduler,
                thread: Thread::Asleep,
                began: 0,
                epoch: 0,
                items: VecDeque::new(),
                ready: 0,
                was_woken: false,
                alarm: None,
                used: 0,
            }
        };
        let gate = |_: &Function| match settings.concurrency {
            Concurrency::Unlimited => Gate::new(None, None),
            Concurrency::Fixed(max) => Gate::new(Some(max), None),
            Concurrency::Auto => Gate::following(InFlight::new(settings.workers), None),
        };
        let workers = deques.into_iter().enumerate().map(worker).collect();
        Server {
            settings,
            functions,
            random: Random(seed),
            start,
            now: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            exchange: Rc::clone(&exchange),
            woken,
            workers,
            gates: functions.iter().map(gate).collect(),
            invocations: Vec::new(),
            free: Vec::new(),
            admitted: 0,
            requests: Requests::new(load, requests),
            record: Record::new(functions.len(), requests),
        }
    }

    fn at(&mut self, at: Nanoseconds, due: Due) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, due)));
    }

    fn time(&self) -> Instant {
        self.start + Duration::from_nanos(self.now)
    }

    fn happens(&mut self, due: Due) {
        match due {
            Due::Comes(source) => self.come(source),
            Due::Done(worker, epoch) if self.workers[worker].epoch == epoch => self.go_on(worker),
            Due::Done(..) => {}
            Due::Answered(worker, key) => self.give(worker, Item::Answer(key)),
            Due::Alarm(worker) => {
                self.workers[worker].alarm = None;
                self.rouse(worker);
            }
        }
    }

    /// Requests of a source are due.
    fn come(&mut self, source: usize) {
        let (function, count) = self.requests.next(source, &mut self.random);
        for _ in 0..count {
            let number = self.record.sent(self.now);
            let from = From::Client { due: self.now, number, client: source };
            let key = self.admit(function, from);
            if self.settings.listeners == Listeners::Dedicated {
                self.inject_admitted(key);
                continue;
            }
            let worker = self.requests.worker(source, self.workers.len(), &mut self.random);
            self.give(worker, Item::Request(key));
        }
        if let Some(at) = self.requests.following(source, self.now, &mut self.random) {
            self.at(at, Due::Comes(source));
        }
    }

    fn admit(&mut self, function: usize, from: From) -> Key {
        let slot = self.free.pop().unwrap_or(self.invocations.len() as u32);
        let generation = self.invocations.get(slot as usize).map_or(0, |invocation| invocation.generation);
        let left = self.functions[function].burst(0, !self.settings.images, &mut self.random);
        let (burst, cpu, waited, since, was_preempted, blocked) = (0, 0, 0, 0, false, None);
        let invocation = Invocation { generation, function, burst, left, cpu, waited, was_preempted, blocked, since, from };
        match self.invocations.get_mut(slot as usize) {
            Some(place) => *place = invocation,
            None => self.invocations.push(invocation),
        }
        Key { slot, generation }
    }

    /// Takes an admitted invocation through its function's gate, if it may run.
    fn enter(&mut self, key: Key) -> Option<Job> {
        let function = self.invocations[key.slot as usize].function;
        self.admitted += 1;
        let arrived = self.time();
        let task = Task {
            id: TaskId(0),
            tenant: TenantId(0),
            function: FunctionId(function as u32),
            weight: 1,
            age: self.admitted,
            arrived,
            deadline: arrived + self.settings.deadline,
            cpu_max: Duration::MAX,
            cpu: Duration::ZERO,
            started: false,
            level: 0,
            class: 0,
            is_speculative: false,
        };
        self.gates[function].enter(Job { key, task, runs: false })
    }

    fn inject_admitted(&mut self, key: Key) {
        if let Some(job) = self.enter(key) {
            self.inject(job);
        }
    }

    /// Queues a job for the worker that has time first; where all are busy, one whose guest runs alone is interrupted.
    fn inject(&mut self, job: Job) {
        if self.exchange.inject(job) == sledge_schedule::Woken::None {
            let alone = |worker: &Worker| matches!(worker.thread, Thread::Runs(Run { is_alone: true, .. }));
            if let Some(worker) = self.workers.iter().position(alone) {
                self.rouse(worker);
            }
        }
    }

    /// The exchange has woken workers.
    fn wake(&mut self) {
        let mut woken = self.woken.swap(0, Ordering::Relaxed);
        while woken != 0 {
            let worker = woken.trailing_zeros() as usize;
            woken &= woken - 1;
            self.workers[worker].was_woken = true;
            self.rouse(worker);
        }
    }

    /// A worker's connections have something to do.
    fn give(&mut self, worker: usize, item: Item) {
        self.workers[worker].items.push_back(item);
        self.rouse(worker);
    }

    /// Something has come for a worker: that wakes it, and interrupts a guest that runs alone.
    fn rouse(&mut self, worker: usize) {
        let Worker { thread, began, .. } = &mut self.workers[worker];
        match thread {
            Thread::Asleep => self.begin(worker, Thread::Wakes, self.settings.costs.wake),
            Thread::Runs(run) if run.is_alone => {
                run.is_alone = false;
                run.ran = self.now - *began;
                run.computed = run.ran.min(run.computed);
                self.ends_at(worker, self.now);
            }
            _ => {}
        }
    }

    /// A worker begins something that takes so long.
    fn begin(&mut self, worker: usize, thread: Thread, takes: Nanoseconds) {
        let this = &mut self.workers[worker];
        (this.thread, this.began) = (thread, self.now);
        self.ends_at(worker, self.now + takes);
    }

    fn ends_at(&mut self, worker: usize, at: Nanoseconds) {
        self.workers[worker].epoch += 1;
        let epoch = self.workers[worker].epoch;
        self.at(at, Due::Done(worker, epoch));
    }

    /// A worker is done with what it did.
    fn go_on(&mut self, worker: usize) {
        let this = &mut self.workers[worker];
        this.used += self.now - this.began;
        match mem::replace(&mut this.thread, Thread::Asleep) {
            Thread::Asleep => {}
            Thread::Wakes => self.look_after_connections(worker),
            Thread::Looks => self.turn(worker),
            Thread::Does(item) => {
                if !self.does(worker, item) {
                    self.next_item(worker);
                }
            }
            Thread::Runs(run) => {
                let at_once = run.at_once;
                let event = self.run_ends(worker, run);
                self.step(worker, event);
                if at_once { self.next_item(worker) } else { self.decide(worker) }
            }
        }
    }

    fn step(&mut self, worker: usize, event: Event<Job>) -> Action<Job> {
        let now = self.time();
        self.workers[worker].scheduler.step(event, now)
    }

    fn look_after_connections(&mut self, worker: usize) {
        let this = &mut self.workers[worker];
        this.ready = this.items.len();
        if this.ready == 0 { self.begin(worker, Thread::Looks, self.settings.costs.look) } else { self.next_item(worker) }
    }

    fn next_item(&mut self, worker: usize) {
        let this = &mut self.workers[worker];
        let Some(ready) = this.ready.checked_sub(1) else { return self.turn(worker) };
        this.ready = ready;
        let Some(item) = this.items.pop_front() else { return self.turn(worker) };
        let costs = &self.settings.costs;
        let takes = match item {
            Item::Request(_) => costs.read,
            Item::Send(..) | Item::Answer(_) => costs.trip / 2,
            Item::Returned(_) => costs.call,
            Item::Reply(_) => costs.write,
        };
        self.begin(worker, Thread::Does(item), takes);
    }

    /// What comes of an item. Whether a guest runs for it at once.
    fn does(&mut self, worker: usize, item: Item) -> bool {
        match item {
            Item::Request(key) => {
                let Some(job) = self.enter(key) else { return false };
                if let Action::RunAtOnce(id) = self.step(worker, Event::Submitted(job.task(TaskId(0)))) {
                    self.run(worker, id, job, true);
                    return true;
                }
                self.step(worker, Event::Arrived(job));
            }
            Item::Send(key, takes) => self.at(self.now + takes, Due::Answered(worker, key)),
            Item::Answer(key) | Item::Returned(key) => self.unblock(key),
            Item::Reply(key) => self.reply(key, true),
        }
        false
    }

    /// What an invocation waited for is done.
    fn unblock(&mut self, key: Key) {
        let Server { invocations, functions, random, now, .. } = self;
        let invocation = &mut invocations[key.slot as usize];
        // It may have been ended meanwhile.
        let Some((worker, id)) = invocation.blocked.take_if(|_| invocation.generation == key.generation) else { return };
        invocation.waited += *now - invocation.since;
        invocation.burst += 1;
        invocation.left = functions[invocation.function].burst(invocation.burst, false, random);
        self.step(worker, Event::Ready(id));
    }

    fn turn(&mut self, worker: usize) {
        self.workers[worker].was_woken = false;
        self.step(worker, Event::Turn);
        self.decide(worker);
    }

    /// Does what the scheduler says, until that takes time.
    fn decide(&mut self, worker: usize) {
        loop {
            match self.step(worker, Event::Next) {
                Action::Run(id, job) => return self.run(worker, id, job, false),
                Action::Kill(_, job, _) => {
                    self.leave(&job);
                    self.reply(job.key, false);
                    self.step(worker, Event::Dropped);
                }
                Action::Wait { alarm } => return self.rest(worker, alarm),
                Action::Io | Action::RunAtOnce(_) | Action::Noted | Action::Leave => return self.look_after_connections(worker),
            }
        }
    }

    /// A worker has nothing to run.
    fn rest(&mut self, worker: usize, alarm: Option<Instant>) {
        if !self.workers[worker].items.is_empty() {
            return self.look_after_connections(worker);
        }
        self.step(worker, Event::Rests);
        let this = &mut self.workers[worker];
        if this.was_woken || !this.scheduler.shared_mut().try_idle() {
            return self.begin(worker, Thread::Looks, self.settings.costs.look);
        }
        this.thread = Thread::Asleep;
        let Some(alarm) = alarm else { return };
        let at = (alarm - self.start).as_nanos() as Nanoseconds;
        // One that is set already comes before it.
        if this.alarm.is_none_or(|set| at < set) {
            this.alarm = Some(at);
            self.at(at, Due::Alarm(worker));
        }
    }
}
