//! What a worker does next: a pure function of what it did so far and of the time.
//!
//! [`Core::note`] takes what happened and the time, [`Core::decide`] says what to do. It holds no sandbox, reads no clock and touches no queue,
//! so that tests can play any schedule to it (`core/tests.rs`). The worker carries its decisions out.
//!
//! Three decisions, one inside the other:
//!
//! 1. *Whose turn it is.* Tenants that have something to run get equal shares of the worker ([`shares`](super::shares)).
//! 2. *Which class*, under [`Policy::RoundRobin`]: *arrivals*, which have not begun, or *started* sandboxes, which were preempted. That goes by
//!    time: arrivals come first as long as they have credit; running them, and reading and answering them, uses it up; running a started
//!    sandbox gives it back, up to a quantum. So long functions get at least half of the tenant's share, however many short ones arrive.
//! 3. *Which of the class*: the started in turn, arrivals by fair queueing among functions ([`Functions`]), so that a short function waits
//!    behind long ones for a quantum or two, however many of them there are or arrive (round-robin); by arrival (fifo), or by deadline (edf);
//!    the last two know no classes.
//!
//! Before all of that come those whose time is over: the deadline, also of what has not begun, and the budget of processor time.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::blocked::Blocked;
use super::policy::Policy;
use super::shares::{Has, Shares, TenantId};

/// How long a worker runs guests before it looks after connections again, if runs are shorter than a quantum.
pub const IO_INTERVAL: Duration = Duration::from_micros(100);
/// Started sandboxes of one worker that wait for their turn; with as many it begins nothing until one has ended.
pub const STARTED_MAX: usize = 1_024;
/// Those that are blocked; likewise.
pub const BLOCKED_MAX: usize = 16_384;
/// The most that is given to another worker at a time.
pub const GIVEN_MAX: usize = 32;

/// A request or its sandbox; the worker knows what is behind the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A function, by its number; of one tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FunctionId(pub u32);

/// What there is to know of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Which function it calls.
    pub function: FunctionId,
    /// When the request was complete.
    pub arrived: Instant,
    /// When it must be over.
    pub deadline: Instant,
    /// The processor time it may use.
    pub cpu_max: Duration,
    /// The processor time it has used.
    pub cpu: Duration,
    /// Whether it has begun.
    pub started: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The worker has looked after connections and begins to run guests.
    Turn,
    /// There is one more task: a request, or what another worker gave.
    Arrived(Task),
    /// It looked for tasks elsewhere and took in what there was, if anything.
    Looked,
    /// What it was told to give away is not its any more.
    Given,
    /// What it was told to run or to kill is over.
    Ended {
        /// For how long it ran.
        ran: Duration,
    },
    /// The same, of what another task called: no client waits for a reply.
    Returned {
        /// For how long it ran.
        ran: Duration,
    },
    /// What it was told to run was preempted.
    Preempted {
        /// For how long it ran.
        ran: Duration,
    },
    /// What it was told to run waits.
    Blocked {
        /// For how long it ran.
        ran: Duration,
        /// When it goes on; none if only what it waits for, or its deadline, ends that.
        until: Option<Instant>,
    },
    /// What a blocked task waited for is done.
    Ready(TaskId),
    /// Another worker has nothing to do.
    Wanted,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run this one for a quantum.
    Run(TaskId),
    /// End it.
    Kill(TaskId, Why),
    /// Let another worker have it.
    Give(TaskId),
    /// Look for tasks elsewhere.
    Look,
    /// Look after connections, then come back at once.
    Io,
    /// There is nothing to do until somebody wakes the worker, or [`Core::alarm`].
    Wait,
}

/// Why a task is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its deadline has passed.
    Deadline,
    /// It has used its processor time up.
    Cpu,
}

/// Tasks in the order in which they run.
#[derive(Debug, Default)]
struct Line(VecDeque<(u64, Task)>);

impl Line {
    fn add(&mut self, rank: u64, task: Task) {
        // Among equals, what has begun stays first.
        let is_before = |other: u64| if task.started { other < rank } else { other <= rank };
        let behind_all = self.0.back().is_none_or(|(last, _)| is_before(*last));
        let at = if behind_all { self.0.len() } else { self.0.partition_point(|(other, _)| is_before(*other)) };
        self.0.insert(at, (rank, task));
    }

    fn take(&mut self, mut wanted: impl FnMut(&Task) -> bool) -> Option<Task> {
        let at = self.0.iter().position(|(_, task)| wanted(task))?;
        self.0.remove(at).map(|(_, task)| task)
    }
}

/// Where arrivals of each function stand in their tenant's line: start-time fair queueing, in nanoseconds of virtual time. An arrival of a
/// function whose arrivals usually run for long stands that much behind the one before it, and others may come between them.
#[derive(Debug, Default)]
struct Functions(Vec<FunctionClock>);

#[derive(Clone, Copy, Debug, Default)]
struct FunctionClock {
    /// Where its next arrival stands at the earliest.
    next: u64,
    /// For how long its arrivals run before they end or are preempted: a moving average.
    cost: u64,
}

impl Functions {
    fn of(&mut self, function: FunctionId) -> &mut FunctionClock {
        let index = function.0 as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, FunctionClock::default());
        }
        &mut self.0[index]
    }

    /// The rank of an arrival, where the line has come to `now`; a line that is empty forgets what stood in it.
    fn rank(&mut self, function: FunctionId, now: u64, line_is_empty: bool) -> u64 {
        let clock = self.of(function);
        let rank = if line_is_empty { now } else { now.max(clock.next) };
        clock.next = rank.saturating_add(clock.cost);
        rank
    }

    /// For how long its arrivals run, if that is known.
    fn cost(&self, function: FunctionId) -> Option<Duration> {
        let clock = self.0.get(function.0 as usize).filter(|clock| clock.cost > 0)?;
        Some(Duration::from_nanos(clock.cost))
    }

    /// An arrival ran for so long.
    fn ran(&mut self, function: FunctionId, time: Duration) {
        let clock = self.of(function);
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        clock.cost = if clock.cost == 0 { time } else { clock.cost - clock.cost / 8 + time / 8 };
    }
}

/// What one tenant has to run.
#[derive(Debug)]
struct Queue {
    /// What has not begun; without classes, everything.
    arrivals: Line,
    started: Line,
    /// How long arrivals may still run before the started, in nanoseconds; negative after an arrival ran for longer.
    credit: i64,
    /// How far the line of arrivals has come: the rank of the last one that began.
    reached: u64,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.arrivals.0.is_empty() && self.started.0.is_empty()
    }
}

/// The state of one worker's schedule.
#[derive(Debug)]
pub struct Core {
    policy: Policy,
    quantum: Duration,
    epoch: Instant,
    queues: Vec<Queue>,
    shares: Shares,
    functions: Functions,
    /// Tasks in the queues, and those of them that have begun.
    waiting: usize,
    started: usize,
    /// Where the next one goes that goes to the end.
    last_rank: u64,
    /// No task's deadline is earlier.
    earliest: Option<Instant>,
    /// Has used up its processor time, and is to be killed.
    exceeded: Option<TaskId>,
    /// Started sandboxes that wait, each until the time at which it goes on or is over.
    blocked: Blocked,
    running: Option<Task>,
    /// Whether that runs before the worker's next turn.
    running_at_once: bool,
    /// How long arrivals ran since the last turn, or since the worker last waited.
    at_once: Duration,
    turn_began: Option<Instant>,
    /// Whether something ended in this turn, or at once before it: connections are looked after before anything started runs.
    answered: bool,
    /// Whose arrival ran last in this turn or at once after it: who gave connections something to do.
    served: Option<TenantId>,
    /// Since when the worker looks after connections.
    io_began: Option<Instant>,
    /// Whether it looked elsewhere in this turn.
    looked: bool,
    /// How many to give away now.
    to_give: usize,
    /// When a started sandbox was last given away.
    gave_started: Option<Instant>,
}

impl Core {
    /// A worker's schedule, with nothing to do.
    #[must_use]
    pub fn new(policy: Policy, quantum: Duration, now: Instant) -> Core {
        Core {
            policy,
            quantum,
            epoch: now,
            queues: Vec::new(),
            shares: Shares::default(),
            functions: Functions::default(),
            waiting: 0,
            started: 0,
            last_rank: 0,
            earliest: None,
            exceeded: None,
            blocked: Blocked::default(),
            running: None,
            running_at_once: false,
            at_once: Duration::ZERO,
            turn_began: None,
            answered: false,
            served: None,
            io_began: None,
            looked: false,
            to_give: 0,
            gave_started: None,
        }
    }

    /// Number of tasks that wait for their turn, begun or not.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting + usize::from(self.exceeded.is_some())
    }

    /// When the next blocked task goes on or is over.
    #[must_use]
    pub fn alarm(&self) -> Option<Instant> {
        self.blocked.next()
    }

    /// Decides what to do next.
    pub fn decide(&mut self, now: Instant) -> Action {
        let action = self.decide_action(now);
        if action == Action::Io {
            self.io_began = Some(now);
        }
        action
    }

    /// Whether a request that has just arrived may run at once, before the worker's next turn: it would be next there, and nothing is gained by
    /// waiting. If so, [`Core::note`] what comes of it. After a while of this the worker's other duties come first, and others may help.
    pub fn may_run_at_once(&mut self, task: Task) -> bool {
        let is_next = self.waiting == 0 || self.goes_before_the_started(&task);
        let free = is_next && self.exceeded.is_none() && self.at_once < IO_INTERVAL;
        if free {
            self.running = Some(task);
            self.running_at_once = true;
        }
        free
    }

    /// Whether an arrival is short, and nothing waits but started sandboxes of the same tenant, before which arrivals still come.
    fn goes_before_the_started(&self, task: &Task) -> bool {
        let is_short = self.functions.cost(task.function).is_some_and(|cost| cost < IO_INTERVAL);
        is_short
            && self.policy == Policy::RoundRobin
            && !self.is_full()
            && self
                .queues
                .get(task.tenant.0 as usize)
                .is_some_and(|queue| queue.credit > 0 && queue.started.0.len() == self.waiting)
    }

    /// Whether no more may begin.
    fn is_full(&self) -> bool {
        self.started >= STARTED_MAX || self.blocked.count() >= BLOCKED_MAX
    }

    /// Takes note that the worker is about to wait: nobody needs it.
    pub fn rest(&mut self) {
        self.at_once = Duration::ZERO;
    }

    /// Takes note of what happened.
    pub fn note(&mut self, event: Event, now: Instant) {
        match event {
            Event::Turn => {
                let at_once = std::mem::take(&mut self.at_once);
                if let (Some(began), Some(tenant)) = (self.io_began.take(), self.served) {
                    self.charge_io(tenant, now.saturating_duration_since(began).saturating_sub(at_once));
                }
                self.turn_began = Some(now);
                // Who was answered meanwhile may have sent the next one already.
                self.answered = !at_once.is_zero();
                self.served = None;
                self.looked = false;
                self.to_give = 0;
            }
            Event::Arrived(task) => self.add(task),
            Event::Looked => self.looked = true,
            Event::Given => {}
            Event::Ended { ran } | Event::Returned { ran } => {
                self.answered |= matches!(event, Event::Ended { .. });
                if let Some(task) = self.running.take() {
                    self.served = Some(task.tenant);
                    self.charge(&task, ran);
                }
            }
            Event::Preempted { ran } => {
                if let Some(task) = self.suspended(ran) {
                    self.add(task);
                }
            }
            Event::Blocked { ran, until } => {
                if let Some(task) = self.suspended(ran) {
                    let until = until.map_or(task.deadline, |until| until.min(task.deadline));
                    self.blocked.add(until, task);
                }
            }
            Event::Ready(id) => self.blocked.remove(id).into_iter().for_each(|task| self.add(task)),
            Event::Wanted => {
                let not_begun = self.waiting - self.started;
                let enough = not_begun.div_ceil(2).clamp(1, GIVEN_MAX);
                self.to_give = enough.min(self.waiting.saturating_sub(1));
            }
        }
    }

    /// The next of all tasks, for a worker that ends them all.
    pub fn drain(&mut self) -> Option<TaskId> {
        if let Some(id) = self.exceeded.take() {
            return Some(id);
        }
        if let Some(task) = self.blocked.pop() {
            return Some(task.id);
        }
        let task = self.queues.iter_mut().find_map(|queue| {
            let Queue { arrivals, started, .. } = queue;
            arrivals.take(|_| true).or_else(|| started.take(|_| true))
        })?;
        self.removed(&task);
        Some(task.id)
    }

    /// What was running is suspended; none when its processor time is used up.
    fn suspended(&mut self, ran: Duration) -> Option<Task> {
        let mut task = self.running.take()?;
        self.charge(&task, ran);
        task.cpu += ran;
        task.started = true;
        if task.cpu >= task.cpu_max {
            self.exceeded = Some(task.id);
            return None;
        }
        Some(task)
    }

    fn add(&mut self, task: Task) {
        let index = task.tenant.0 as usize;
        let credit = nanoseconds(self.quantum);
        while self.queues.len() <= index {
            self.queues.push(Queue { arrivals: Line::default(), started: Line::default(), credit, reached: 0 });
        }
        let rank = match self.policy {
            Policy::RoundRobin if task.started => {
                self.last_rank += 1;
                self.last_rank
            }
            Policy::RoundRobin => {
                let queue = &self.queues[index];
                self.functions.rank(task.function, queue.reached, queue.arrivals.0.is_empty())
            }
            Policy::Fifo => self.since_epoch(task.arrived),
            Policy::Edf => self.since_epoch(task.deadline),
        };
        let queue = &mut self.queues[index];
        let has_classes = self.policy == Policy::RoundRobin;
        let line = if task.started && has_classes { &mut queue.started } else { &mut queue.arrivals };
        line.add(rank, task);
        self.waiting += 1;
        self.started += usize::from(task.started);
        self.earliest = Some(self.earliest.map_or(task.deadline, |earliest| earliest.min(task.deadline)));
        self.shares.wants(task.tenant);
    }

    fn removed(&mut self, task: &Task) {
        self.waiting -= 1;
        self.started -= usize::from(task.started);
    }

    fn since_epoch(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Connections were looked after for so long, which is part of what a tenant's arrivals cost. It counts only where somebody waited.
    fn charge_io(&mut self, tenant: TenantId, took: Duration) {
        if self.started == 0 {
            return;
        }
        self.shares.ran(tenant, took);
        if let Some(queue) = self.queues.get_mut(tenant.0 as usize) {
            queue.credit = queue.credit.saturating_sub(nanoseconds(took));
        }
    }

    /// `task` was running.
    fn charge(&mut self, task: &Task, ran: Duration) {
        if std::mem::take(&mut self.running_at_once) {
            self.at_once += ran;
        }
        let nanos = nanoseconds(ran);
        let mut more = false;
        if let Some(queue) = self.queues.get_mut(task.tenant.0 as usize) {
            let change = if task.started { nanos } else { -nanos };
            if !task.started {
                self.functions.ran(task.function, ran);
            }
            queue.credit = queue.credit.saturating_add(change).min(nanoseconds(self.quantum));
            more = !queue.is_empty();
        }
        self.shares.ran(task.tenant, ran);
        if more {
            self.shares.wants(task.tenant);
        }
    }

    fn decide_action(&mut self, now: Instant) -> Action {
        while self.blocked.next().is_some_and(|at| at <= now) {
            self.blocked.pop().into_iter().for_each(|task| self.add(task));
        }
        if let Some(id) = self.exceeded.take() {
            return Action::Kill(id, Why::Cpu);
        }
        if let Some(id) = self.expired(now) {
            return Action::Kill(id, Why::Deadline);
        }
        if self.to_give > 0 {
            self.to_give -= 1;
            if let Some(task) = self.give(now) {
                return Action::Give(task);
            }
            self.to_give = 0;
        }
        if self.waiting == 0 {
            return if self.looked { Action::Wait } else { Action::Look };
        }
        if self.turn_began.is_some_and(|began| now.saturating_duration_since(began) >= IO_INTERVAL) {
            return Action::Io;
        }
        self.next()
    }

    /// Runs the next task of the next tenant.
    fn next(&mut self) -> Action {
        // Where no more may begin, tenants that have begun nothing are passed over.
        let full = self.is_full();
        let queues = &mut self.queues;
        let has = |tenant: TenantId| {
            let queue = &queues[tenant.0 as usize];
            match (queue.is_empty(), full && !has_started(queue)) {
                (true, _) => Has::Nothing,
                (false, true) => Has::NothingNow,
                (false, false) => Has::Something,
            }
        };
        let Some(tenant) = self.shares.next(has) else { return Action::Wait };
        let queue = &mut queues[tenant.0 as usize];
        if queue.started.0.is_empty() {
            // Nobody was kept waiting, so nothing is owed.
            queue.credit = nanoseconds(self.quantum);
        }
        let begin = !full && !queue.arrivals.0.is_empty() && (queue.credit > 0 || queue.started.0.is_empty());
        let line = if begin || queue.started.0.is_empty() { &mut queue.arrivals } else { &mut queue.started };
        let at = line.0.iter().position(|(_, task)| !full || task.started).unwrap_or(0);
        if self.answered && line.0.get(at).is_some_and(|(_, task)| task.started) {
            // No reply waits for a quantum of somebody else.
            self.shares.wants(tenant);
            self.served = self.served.or(Some(tenant));
            return Action::Io;
        }
        let Some((rank, task)) = line.0.remove(at) else { return Action::Wait };
        if self.policy == Policy::RoundRobin && !task.started {
            queue.reached = queue.reached.max(rank);
        }
        self.removed(&task);
        self.running = Some(task);
        Action::Run(task.id)
    }

    /// One that another worker may have: the one that would wait here longest. Of the started at most one a quantum.
    fn give(&mut self, now: Instant) -> Option<TaskId> {
        let may_give_started = self.gave_started.is_none_or(|gave| now.saturating_duration_since(gave) >= self.quantum);
        let longest = |of: fn(&Queue) -> &Line| {
            let longest = self.queues.iter().enumerate().max_by_key(|(_, queue)| of(queue).0.len());
            longest.filter(|(_, queue)| !of(queue).0.is_empty()).map(|(index, _)| index)
        };
        let line = match (longest(|queue| &queue.arrivals), longest(|queue| &queue.started)) {
            (Some(index), _) => &mut self.queues[index].arrivals,
            (None, Some(index)) => &mut self.queues[index].started,
            (None, None) => return None,
        };
        let (_, task) = line.0.back().copied()?;
        if task.started {
            if !may_give_started {
                return None;
            }
            self.gave_started = Some(now);
        }
        line.0.pop_back();
        self.removed(&task);
        Some(task.id)
    }

    fn expired(&mut self, now: Instant) -> Option<TaskId> {
        if self.earliest? > now {
            return None;
        }
        let is_late = |task: &Task| task.deadline <= now;
        let late = self.queues.iter_mut().find_map(|queue| {
            let Queue { arrivals, started, .. } = queue;
            started.take(is_late).or_else(|| arrivals.take(is_late))
        });
        match late {
            Some(task) => self.removed(&task),
            None => {
                let tasks = self.queues.iter().flat_map(|queue| queue.arrivals.0.iter().chain(&queue.started.0));
                self.earliest = tasks.map(|(_, task)| task.deadline).min();
            }
        }
        late.map(|task| task.id)
    }
}

fn has_started(queue: &Queue) -> bool {
    !queue.started.0.is_empty() || queue.arrivals.0.iter().any(|(_, task)| task.started)
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
