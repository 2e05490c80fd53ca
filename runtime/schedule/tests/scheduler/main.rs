//! Workers' schedules, one step after the other: what they hand off to each other, what they take back, and the numbers of their tasks.

#[path = "../simulation/model.rs"]
#[allow(dead_code)]
mod model;

mod asked;
mod holding;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use model::Model;
use sledge_schedule::demand::Changes;
use sledge_schedule::{
    Action, Classes, Demand, Event, FunctionId, IO_INTERVAL, Microtask, Phase, Policy, Rest, Scheduler, Shared, Task, TaskId,
    TenantId, Why, Work,
};

const QUANTUM: Duration = Duration::from_micros(500);

/// An invocation, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    name: u32,
    task: Task,
    microtask: Microtask,
}

impl Work for Job {
    fn task(&self, id: TaskId) -> Task {
        Task { id, ..self.task }
    }

    fn microtask(&self) -> Microtask {
        self.microtask
    }
}

/// What workers share.
struct Common {
    model: RefCell<Model<Job>>,
    phase: Cell<Phase>,
    is_finished: Cell<bool>,
    changes: Changes,
}

/// One worker's side of it.
struct Side(Rc<Common>, usize);

impl Shared for Side {
    type Work = Job;

    fn workers(&self) -> usize {
        self.0.model.borrow().queues.len()
    }

    fn has_injected(&self) -> bool {
        !self.0.model.borrow().injector.is_empty()
    }

    fn take_injected(&mut self) -> Vec<Job> {
        self.0.model.borrow_mut().take_injected(|job| job.demand() == Demand::Asked)
    }

    fn push(&mut self, job: Job) {
        self.0.model.borrow_mut().queues[self.1].push_back(job);
    }

    fn pop(&mut self) -> Option<Job> {
        self.0.model.borrow_mut().queues[self.1].pop_front()
    }

    fn is_queue_empty(&self) -> bool {
        self.0.model.borrow().queues[self.1].is_empty()
    }

    fn steal(&mut self) -> usize {
        self.0.model.borrow_mut().steal(self.1)
    }

    fn set_backlog(&mut self, backlog: bool) {
        self.0.model.borrow_mut().set_backlog(self.1, backlog);
    }

    fn others(&self) -> Rest {
        self.0.model.borrow().others(self.1)
    }

    fn busy(&mut self) {
        self.0.model.borrow_mut().rest[self.1] = Rest::Busy;
    }

    fn try_idle(&mut self) -> bool {
        self.0.model.borrow_mut().try_rest(self.1, Rest::Idle)
    }

    fn try_slack(&mut self) -> bool {
        self.0.model.borrow_mut().try_rest(self.1, Rest::Slack)
    }

    fn changes(&self) -> u64 {
        self.0.changes.count()
    }

    fn phase(&self) -> Phase {
        self.0.phase.get()
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished.get()
    }
}

/// Workers that are told step by step what happens.
struct Pool {
    common: Rc<Common>,
    workers: Vec<Scheduler<Side>>,
    now: Instant,
    jobs: u32,
}

impl Pool {
    fn new(workers: usize) -> Pool {
        Pool::with_classes(workers, None)
    }

    fn with_classes(workers: usize, classes: Option<Classes>) -> Pool {
        let (model, phase) = (RefCell::new(Model::new(workers)), Cell::new(Phase::Serving));
        let common = Rc::new(Common { model, phase, is_finished: Cell::new(false), changes: Changes::default() });
        let now = Instant::now();
        let worker =
            |index| Scheduler::new(Policy::RoundRobin, QUANTUM, Side(Rc::clone(&common), index), now).with_classes(classes);
        Pool { workers: (0..workers).map(worker).collect(), common, now, jobs: 0 }
    }

    /// A new one, all of one function.
    fn job(&mut self) -> Job {
        let (name, arrived) = (self.jobs, self.now);
        self.jobs += 1;
        let (deadline, cpu_max, cpu) = (arrived + Duration::from_secs(3_600), Duration::MAX, Duration::ZERO);
        let (tenant, function, age) = (TenantId(0), FunctionId(0), u64::from(name));
        // The number means nothing yet.
        let id = TaskId(99);
        Job {
            name,
            task: Task {
                id,
                tenant,
                function,
                weight: 1,
                age,
                arrived,
                deadline,
                cpu_max,
                cpu,
                started: false,
                level: 0,
                class: 0,
                is_speculative: false,
            },
            microtask: Microtask::default(),
        }
    }

    fn step(&mut self, worker: usize, event: Event<Job>) -> Action<Job> {
        self.workers[worker].step(event, self.now)
    }

    fn arrive(&mut self, worker: usize) {
        let job = self.job();
        assert_eq!(self.step(worker, Event::Arrived(job)), Action::Noted);
    }

    fn turn(&mut self, worker: usize) {
        assert_eq!(self.step(worker, Event::Turn), Action::Noted);
    }

    fn next(&mut self, worker: usize) -> Action<Job> {
        self.step(worker, Event::Next)
    }

    /// The name of what it runs next, to its end.
    fn run(&mut self, worker: usize, micros: u64) -> u32 {
        let Action::Run(_, job) = self.next(worker) else { panic!("worker {worker} has something to run") };
        let ran = Duration::from_micros(micros);
        self.now += ran;
        self.step(worker, Event::Ended { ran });
        job.name
    }

    /// What it does next in a turn in which no connection has anything to do.
    fn next_after_io(&mut self, worker: usize) -> Action<Job> {
        self.turn(worker);
        match self.next(worker) {
            Action::Io => {
                self.turn(worker);
                self.next(worker)
            }
            action => action,
        }
    }

    /// A worker has nothing to do, and waits.
    fn rest(&mut self, worker: usize) {
        self.turn(worker);
        assert_eq!(self.next(worker), Action::Wait { alarm: None });
        assert_eq!(self.step(worker, Event::Rests), Action::Noted);
    }

    /// What a worker has handed off, and others have not taken.
    fn handed_off(&self, worker: usize) -> usize {
        self.common.model.borrow().queues[worker].len()
    }

    /// Worker 0 has many, runs guests for a while, and hands some off to one that rests.
    fn with_backlog(workers: usize, jobs: u32) -> Pool {
        let mut pool = Pool::new(workers);
        (1..workers).for_each(|worker| pool.rest(worker));
        (0..jobs).for_each(|_| pool.arrive(0));
        pool.turn(0);
        assert_eq!([pool.run(0, 60), pool.run(0, 60)], [0, 1]);
        assert_eq!(pool.next(0), Action::Io);
        pool
    }
}

#[test]
fn a_worker_that_has_run_guests_for_a_while_hands_half_of_what_waits_off_to_one_that_rests() {
    let mut pool = Pool::with_backlog(2, 10);
    assert_eq!((pool.handed_off(0), pool.workers[0].waiting()), (4, 4));
    assert_eq!(pool.common.model.borrow().wakes, [1]);
    assert_eq!((pool.next(0), pool.handed_off(0)), (Action::Io, 4), "once a turn");
    // The other one takes half of that.
    pool.turn(1);
    let first = pool.run(1, 10);
    assert_eq!((pool.workers[1].take_stolen(), pool.workers[1].take_stolen()), (2, 0));
    assert_eq!((pool.handed_off(0), pool.workers[1].waiting()), (2, 1));
    // And then the rest, one after the other.
    let mut all = vec![first];
    for _ in 0..3 {
        pool.turn(1);
        all.push(pool.run(1, 10));
    }
    all.sort_unstable();
    assert_eq!((&all[..], pool.workers[1].take_stolen()), (&[6, 7, 8, 9][..], 2), "those that would wait longest");
    assert_eq!(pool.workers[0].take_stolen(), 0);
}

#[test]
fn a_worker_that_has_something_of_its_own_steals_nothing() {
    let mut pool = Pool::with_backlog(2, 10);
    let injected = pool.job();
    pool.common.model.borrow_mut().inject(injected);
    pool.turn(1);
    assert_eq!((pool.run(1, 10), pool.handed_off(0), pool.workers[1].take_stolen()), (injected.name, 4, 0));
}

#[test]
fn nothing_is_handed_off_while_all_have_something_to_do_or_one_is_all_there_is() {
    let pool = Pool::with_backlog(1, 10);
    assert_eq!((pool.handed_off(0), pool.workers[0].waiting()), (0, 8));
    let mut pool = Pool::with_backlog(2, 3);
    assert_eq!((pool.handed_off(0), pool.workers[0].waiting()), (0, 1));
    pool.arrive(1);
    pool.turn(1);
    (0..4).for_each(|_| pool.arrive(0));
    assert_eq!((pool.next(0), pool.handed_off(0)), (Action::Io, 0), "the other one is busy");
}

#[test]
fn what_no_other_took_for_a_quantum_is_taken_back() {
    let mut pool = Pool::with_backlog(2, 10);
    let handed_off = pool.now;
    pool.now = handed_off + QUANTUM - Duration::from_nanos(1);
    pool.turn(0);
    assert_eq!((pool.handed_off(0), pool.workers[0].waiting()), (4, 4));
    pool.now = handed_off + QUANTUM;
    pool.turn(0);
    assert_eq!((pool.handed_off(0), pool.workers[0].waiting()), (0, 8));
    assert!(!pool.common.model.borrow().backlog[0], "others need not look");
    assert_eq!((2..10).map(|_| pool.run(0, 1)).collect::<Vec<_>>(), (2..10).collect::<Vec<_>>(), "by age, as before");
}

#[test]
fn a_worker_that_may_begin_nothing_waits_with_nothing_handed_off() {
    /// As many may be blocked at a time.
    const BLOCKED_MAX: usize = 16_384;
    let mut pool = Pool::new(2);
    pool.rest(1);
    pool.turn(0);
    for _ in 0..BLOCKED_MAX {
        pool.arrive(0);
        let Action::Run(_, work) = pool.next(0) else { panic!("it may begin") };
        pool.step(0, Event::Blocked { ran: Duration::ZERO, until: None, work });
    }
    (0..4).for_each(|_| pool.arrive(0));
    pool.now += IO_INTERVAL;
    assert_eq!((pool.next(0), pool.handed_off(0)), (Action::Io, 2));
    pool.turn(0);
    assert!(matches!(pool.next(0), Action::Wait { alarm: Some(_) }));
    assert_eq!((pool.handed_off(0), pool.workers[0].waiting()), (0, 4));
}

#[test]
fn a_request_runs_at_once_where_nothing_else_waits() {
    let mut pool = Pool::new(1);
    let job = pool.job();
    let Action::RunAtOnce(id) = pool.step(0, Event::Submitted(job.task)) else { panic!("nothing waits") };
    pool.step(0, Event::Preempted { ran: QUANTUM, work: job });
    assert_eq!(pool.workers[0].waiting(), 1);
    assert_eq!(pool.workers[0].task_mut(id).map(|job| job.name), Some(job.name));
    assert_eq!(pool.next_after_io(0), Action::Run(id, job), "under the number that it got");
    assert!(pool.workers[0].task_mut(id).is_none(), "it is in the worker's hands");
    pool.step(0, Event::Ended { ran: QUANTUM });
    pool.turn(0);
    // Not before what any worker may take, nor before what it handed off.
    let (submitted, other) = (pool.job(), pool.job());
    pool.common.model.borrow_mut().inject(other);
    assert_eq!(pool.step(0, Event::Submitted(submitted.task)), Action::Noted);
    pool.common.model.borrow_mut().injector.clear();
    pool.common.model.borrow_mut().queues[0].push_back(other);
    assert_eq!(pool.step(0, Event::Submitted(submitted.task)), Action::Noted);
    pool.common.model.borrow_mut().queues[0].clear();
    assert!(matches!(pool.step(0, Event::Submitted(submitted.task)), Action::RunAtOnce(_)));
}

#[test]
fn numbers_of_tasks_are_used_again() {
    let mut pool = Pool::new(2);
    let mut numbers = Vec::new();
    for _ in 0..100 {
        // One that ends, one that waits and goes on, one that is refused to run at once, and one that runs at once.
        (0..2).for_each(|_| pool.arrive(0));
        pool.turn(0);
        pool.run(0, 1);
        let Action::Run(id, work) = pool.next(0) else { panic!("another waits") };
        let refused = pool.job();
        pool.common.model.borrow_mut().inject(refused);
        assert_eq!(pool.step(0, Event::Submitted(refused.task)), Action::Noted);
        pool.common.model.borrow_mut().injector.clear();
        pool.step(0, Event::Blocked { ran: Duration::ZERO, until: None, work });
        assert!(pool.workers[0].task_mut(id).is_some());
        pool.step(0, Event::Ready(id));
        numbers.push(id);
        assert_eq!(pool.next_after_io(0), Action::Run(id, work));
        pool.step(0, Event::Returned { ran: Duration::ZERO });
        let task = pool.job().task;
        let Action::RunAtOnce(id) = pool.step(0, Event::Submitted(task)) else { panic!("nothing waits") };
        numbers.push(id);
        pool.step(0, Event::Dropped);
        pool.step(0, Event::Rests);
    }
    assert!(numbers.iter().all(|id| id.0 < 3), "{numbers:?}");
}

#[test]
fn a_worker_leaves_when_nothing_can_come_and_ends_what_it_has_when_the_server_is_killed() {
    let mut pool = Pool::new(2);
    (0..2).for_each(|_| pool.arrive(0));
    let injected = pool.job();
    pool.common.model.borrow_mut().inject(injected);
    pool.common.phase.set(Phase::Draining);
    pool.turn(0);
    assert_eq!(pool.run(0, 1), 0, "it finishes what it has");
    pool.common.phase.set(Phase::Killing);
    pool.turn(0);
    let mut killed: Vec<u32> = std::iter::from_fn(|| match pool.next(0) {
        Action::Kill(_, job, Why::Stopping) => {
            pool.step(0, Event::Dropped);
            Some(job.name)
        }
        _ => None,
    })
    .collect();
    killed.sort_unstable();
    assert_eq!(killed, [1, 2]);
    pool.turn(0);
    assert_eq!(pool.next(0), Action::Wait { alarm: None });
    pool.common.is_finished.set(true);
    pool.turn(0);
    assert_eq!(pool.next(0), Action::Leave);
}
