//! What a worker does next: a pure function of what it did so far and of the time.
//!
//! [`Core::note`] takes what happened and the time, [`Core::decide`] says what to do. It holds no sandbox, reads no clock and touches no queue,
//! so that tests can play any schedule to it (`core/tests/`). The worker carries its decisions out.
//!
//! Three decisions, one inside the other:
//!
//! 1. *Whose turn it is.* Tenants that have something to run get equal shares of the worker ([`turns`](super::turns)).
//! 2. *Which function*, under [`Policy::RoundRobin`]: shares by weight. So a short function waits behind long ones for a quantum or two, however many invocations
//!    they have. Reading and answering requests is part of what a function uses.
//! 3. *Which invocation*: of a function the oldest, in levels ([`group`](super::group)); under the other policies each in turn, by arrival, or by deadline.
//!
//! Before all of that come those whose time is over: the deadline, also of what has not begun, and the budget of processor time. An invocation that cannot be expected
//! to meet its deadline is ended before it costs processor time: when it arrives, if what is older leaves it no chance on any worker, or when its turn comes.

#[cfg(test)]
mod tests;

#[cfg(test)]
mod simulation;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::blocked::Blocked;
use crate::group::Group;
use crate::policy::Policy;
use crate::run_queue::RunQueue;
use crate::task::{FunctionId, Task, TaskId, TenantId};
use crate::turns::{Has, Turn, Turns};

/// How long a worker runs guests before it looks after connections again, if runs are shorter than a quantum.
pub const IO_INTERVAL: Duration = Duration::from_micros(100);
/// Started sandboxes of one worker that wait for their turn; with as many it begins nothing until one has ended.
pub const STARTED_MAX: usize = 1_024;
/// Those that are blocked; likewise.
pub(crate) const BLOCKED_MAX: usize = 16_384;
/// The most that is given to another worker at a time.
pub(crate) const GIVEN_MAX: usize = 32;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The worker has looked after connections and begins to run guests.
    Turn,
    /// There is one more task: a request, or what another worker gave.
    Arrived(Task),
    /// It looked for tasks elsewhere and took in what there was, if anything.
    Looked,
    /// What it was told to give away is not its any more.
    Given,
    /// What it was told to run is over.
    Ended {
        /// For how long it ran.
        ran: Duration,
    },
    /// The same, of what another task called: no client waits for a reply.
    Returned {
        /// For how long it ran.
        ran: Duration,
    },
    /// What runs has called this task, which ran within its turn.
    Called {
        /// As it was before.
        task: Task,
        /// For how long it ran.
        ran: Duration,
        /// Whether it is over.
        is_over: bool,
    },
    /// What it was told to run or to kill is over, and has not run.
    Dropped,
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
pub(crate) enum Action {
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
    /// There is nothing to do until another thread wakes the worker, or [`Core::alarm`].
    Wait,
}

/// Why a task is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its deadline has passed.
    Deadline,
    /// It has used its processor time up.
    Cpu,
    /// It has not started, and is not expected to meet its deadline.
    Overload,
    /// The server stops, and does not wait any longer.
    Stopping,
}

/// What one tenant has to run.
#[derive(Debug, Default)]
struct Tenant {
    turn: Turn,
    /// Its functions' turns.
    functions: Turns<FunctionId>,
    /// What it has to run where functions do not matter.
    queue: RunQueue,
    waiting: usize,
    started: usize,
}

/// The state of one worker's schedule.
#[derive(Debug)]
pub(crate) struct Core {
    policy: Policy,
    quantum: Duration,
    /// How many workers there are, this one among them.
    workers: u32,
    epoch: Instant,
    tenants: Vec<Tenant>,
    turns: Turns<TenantId>,
    /// By the number of the function.
    groups: Vec<Group>,
    /// Groups that have something to run.
    active: usize,
    /// What arrived and is to be ended at once.
    shed: VecDeque<TaskId>,
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
    /// Whose invocation ended last in this turn or at once after it: what gave connections something to do.
    served: Option<(TenantId, FunctionId)>,
    /// Since when the worker looks after connections.
    io_began: Option<Instant>,
    /// Whether it looked elsewhere in this turn.
    looked: bool,
    /// How many to give away now.
    to_give: usize,
    /// The function of which something was given away last.
    give_from: Option<FunctionId>,
    /// When a started sandbox was last given away.
    gave_started: Option<Instant>,
}

impl Core {
    /// The schedule of one of so many workers, with nothing to do.
    #[must_use]
    pub(crate) fn new(policy: Policy, quantum: Duration, workers: usize, now: Instant) -> Core {
        Core {
            policy,
            quantum,
            workers: u32::try_from(workers).unwrap_or(u32::MAX).max(1),
            epoch: now,
            tenants: Vec::new(),
            turns: Turns::default(),
            groups: Vec::new(),
            active: 0,
            shed: VecDeque::new(),
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
            give_from: None,
            gave_started: None,
        }
    }

    /// Number of tasks that wait for their turn, begun or not.
    #[must_use]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting + self.shed.len() + usize::from(self.exceeded.is_some())
    }

    /// When the next blocked task goes on or is over.
    #[must_use]
    pub(crate) fn alarm(&self) -> Option<Instant> {
        self.blocked.next()
    }

    /// Decides what to do next.
    pub(crate) fn decide(&mut self, now: Instant) -> Action {
        let action = self.decide_action(now);
        if action == Action::Io {
            self.io_began = Some(now);
        }
        action
    }

    /// Whether a request that has just arrived may run at once, before the worker's next turn: it would be next there, and nothing is gained by
    /// waiting. If so, [`Core::note`] what comes of it. After a while of this the worker's other duties come first, and others may help.
    pub(crate) fn may_run_at_once(&mut self, task: Task) -> bool {
        let is_next = self.waiting == 0 || self.would_be_next(&task);
        let free = is_next && self.exceeded.is_none() && self.at_once < IO_INTERVAL;
        if free {
            self.running = Some(task);
            self.running_at_once = true;
        }
        free
    }

    /// Whether an arrival is short, nothing of its function waits, nothing of other tenants does, and it is its function's turn.
    fn would_be_next(&self, task: &Task) -> bool {
        let Some(group) = self.groups.get(task.function.0 as usize) else { return false };
        let Some(tenant) = self.tenants.get(task.tenant.0 as usize) else { return false };
        self.policy == Policy::RoundRobin
            && !self.is_full()
            && group.first_run().is_some_and(|run| run < IO_INTERVAL)
            && group.waiting() == 0
            && tenant.waiting == self.waiting
            && tenant.functions.would_be_next(&group.turn)
    }

    /// Whether no more may begin.
    pub(crate) fn is_full(&self) -> bool {
        self.started >= STARTED_MAX || self.blocked.count() >= BLOCKED_MAX
    }

    /// Takes note that the worker is about to wait: there is nothing to do.
    pub(crate) fn rest(&mut self) {
        self.at_once = Duration::ZERO;
    }

    /// Takes note of what happened.
    pub(crate) fn note(&mut self, event: Event, now: Instant) {
        match event {
            Event::Turn => {
                let at_once = std::mem::take(&mut self.at_once);
                // What connections cost is a part of what a function costs. It counts where something waited meanwhile, as it does whenever they come first.
                if let (Some(began), Some((tenant, function))) = (self.io_began.take(), self.served) {
                    self.used(tenant, function, now.saturating_duration_since(began).saturating_sub(at_once));
                }
                self.turn_began = Some(now);
                // A client that was answered meanwhile may have sent the next one already.
                self.answered = !at_once.is_zero();
                self.served = None;
                self.looked = false;
                self.to_give = 0;
            }
            Event::Arrived(task) if !task.started && self.is_hopeless(&task, now) => self.shed.push_back(task.id),
            Event::Arrived(task) => self.add(task),
            Event::Looked => self.looked = true,
            Event::Given => {}
            Event::Ended { ran } | Event::Returned { ran } => {
                self.answered |= matches!(event, Event::Ended { .. });
                if let Some(task) = self.running.take() {
                    self.served = Some((task.tenant, task.function));
                    self.charge(&task, ran);
                    self.group(task.function).ended(task.cpu + ran);
                }
            }
            Event::Called { task, ran, is_over } => {
                if self.running_at_once {
                    self.at_once += ran;
                }
                self.charge_group(&task, ran);
                if is_over {
                    self.group(task.function).ended(task.cpu + ran);
                }
            }
            Event::Dropped => {
                self.answered = true;
                if let Some(task) = self.running.take() {
                    self.running_at_once = false;
                    self.want_again(&task);
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
    pub(crate) fn drain(&mut self) -> Option<TaskId> {
        if let Some(id) = self.exceeded.take().or_else(|| self.shed.pop_front()) {
            return Some(id);
        }
        if let Some(task) = self.blocked.pop() {
            return Some(task.id);
        }
        self.take_any(|_| true).map(|task| task.id)
    }

    /// Takes a task that is wanted, wherever it stands.
    fn take_any(&mut self, wanted: impl Fn(&Task) -> bool) -> Option<Task> {
        let of_group = self.groups.iter_mut().find_map(|group| group.take(&wanted));
        let task = of_group.or_else(|| self.tenants.iter_mut().find_map(|tenant| tenant.queue.take(&wanted)))?;
        self.removed(&task);
        Some(task)
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

    fn tenant(&mut self, tenant: TenantId) -> &mut Tenant {
        let index = tenant.0 as usize;
        if self.tenants.len() <= index {
            self.tenants.resize_with(index + 1, Tenant::default);
        }
        &mut self.tenants[index]
    }

    fn group(&mut self, function: FunctionId) -> &mut Group {
        let index = function.0 as usize;
        if self.groups.len() <= index {
            self.groups.resize_with(index + 1, Group::default);
        }
        &mut self.groups[index]
    }

    fn add(&mut self, task: Task) {
        let quantum = self.quantum;
        if self.policy == Policy::RoundRobin {
            let group = self.group(task.function);
            let was_idle = group.waiting() == 0;
            group.add(task, quantum);
            self.active += usize::from(was_idle);
        } else {
            let rank = self.rank(&task);
            self.tenant(task.tenant).queue.add(rank, task);
        }
        let tenant = self.tenant(task.tenant);
        tenant.waiting += 1;
        tenant.started += usize::from(task.started);
        self.waiting += 1;
        self.started += usize::from(task.started);
        self.earliest = Some(self.earliest.map_or(task.deadline, |earliest| earliest.min(task.deadline)));
        self.want_again(&task);
    }

    /// Where a task stands in its tenant's queue.
    fn rank(&mut self, task: &Task) -> u64 {
        match self.policy {
            Policy::RoundRobin | Policy::RoundRobinStrict => {
                self.last_rank += 1;
                self.last_rank
            }
            Policy::Fifo => self.since_epoch(task.arrived),
            Policy::Edf => self.since_epoch(task.deadline),
        }
    }

    /// The tenant and the function of a task wait for their turn again, if they have anything to run.
    fn want_again(&mut self, task: &Task) {
        let Some(tenant) = self.tenants.get_mut(task.tenant.0 as usize).filter(|tenant| tenant.waiting > 0) else { return };
        self.turns.wants(task.tenant, &mut tenant.turn);
        if let Some(group) = self.groups.get_mut(task.function.0 as usize).filter(|group| group.waiting() > 0) {
            tenant.functions.wants(task.function, &mut group.turn);
        }
    }

    /// A task that waited does so no longer.
    fn removed(&mut self, task: &Task) {
        self.waiting -= 1;
        self.started -= usize::from(task.started);
        if let Some(tenant) = self.tenants.get_mut(task.tenant.0 as usize) {
            tenant.waiting -= 1;
            tenant.started -= usize::from(task.started);
        }
        let is_idle = self.groups.get(task.function.0 as usize).is_some_and(|group| group.waiting() == 0);
        self.active -= usize::from(is_idle && self.policy == Policy::RoundRobin);
    }

    fn since_epoch(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX)
    }

    /// `task` was running.
    fn charge(&mut self, task: &Task, ran: Duration) {
        if std::mem::take(&mut self.running_at_once) {
            self.at_once += ran;
        }
        self.charge_group(task, ran);
    }

    /// The time is the task's function's and tenant's.
    fn charge_group(&mut self, task: &Task, ran: Duration) {
        let quantum = self.quantum;
        let group = self.group(task.function);
        if !task.started {
            group.ran_first(ran);
        }
        group.used(task, ran, quantum);
        self.used(task.tenant, task.function, ran);
        self.want_again(task);
    }

    fn used(&mut self, tenant: TenantId, function: FunctionId, time: Duration) {
        let Some(tenant) = self.tenants.get_mut(tenant.0 as usize) else { return };
        self.turns.used(&mut tenant.turn, time);
        if let Some(group) = self.groups.get_mut(function.0 as usize) {
            let time = group.weighted(time);
            tenant.functions.used(&mut group.turn, time);
        }
    }

    fn decide_action(&mut self, now: Instant) -> Action {
        while self.blocked.next().is_some_and(|at| at <= now) {
            self.blocked.pop().into_iter().for_each(|task| self.add(task));
        }
        if let Some(id) = self.exceeded.take() {
            return Action::Kill(id, Why::Cpu);
        }
        if let Some(id) = self.shed.pop_front() {
            return Action::Kill(id, Why::Overload);
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
        self.next(now)
    }

    /// Runs the next task of the next tenant.
    fn next(&mut self, now: Instant) -> Action {
        // Where no more may begin, tenants and functions that have begun nothing are passed over.
        let full = self.is_full();
        let has = |waiting: usize, started: usize| match (waiting, started) {
            (0, _) => Has::Nothing,
            (_, 0) if full => Has::NothingNow,
            _ => Has::Something,
        };
        let Core { tenants, turns, groups, .. } = self;
        let look = |tenant: TenantId| {
            let tenant = &mut tenants[tenant.0 as usize];
            tenant.turn.look(has(tenant.waiting, tenant.started))
        };
        let Some(tenant) = turns.next(look) else { return Action::Wait };
        let tenant = &mut tenants[tenant.0 as usize];
        let first = if self.policy == Policy::RoundRobin {
            let look = |function: FunctionId| {
                let group = &mut groups[function.0 as usize];
                group.turn.look(has(group.waiting(), group.started()))
            };
            tenant.functions.next(look).and_then(|function| groups[function.0 as usize].first(full))
        } else {
            tenant.queue.first(full)
        };
        let Some(&task) = first else { return Action::Wait };
        if self.answered && task.started {
            // No reply waits for a quantum of another.
            self.want_again(&task);
            self.served = self.served.or(Some((task.tenant, task.function)));
            return Action::Io;
        }
        if self.policy == Policy::RoundRobin {
            groups[task.function.0 as usize].take_first(full);
        } else {
            tenant.queue.take(|other| other.id == task.id);
        }
        self.removed(&task);
        if !task.started && self.is_doomed(&task, now) {
            self.want_again(&task);
            return Action::Kill(task.id, Why::Overload);
        }
        let tenant = &mut self.tenants[task.tenant.0 as usize];
        self.turns.runs(&tenant.turn);
        if let Some(group) = self.groups.get(task.function.0 as usize) {
            tenant.functions.runs(&group.turn);
        }
        self.running = Some(task);
        Action::Run(task.id)
    }

    /// Whether an arrival has no chance to meet its deadline: all workers together would take too long for what is older of its function.
    fn is_hopeless(&self, task: &Task, now: Instant) -> bool {
        let Some(group) = self.groups.get(task.function.0 as usize).filter(|group| group.waiting() > 0) else { return false };
        let at_best = group.backlog() / self.workers + self.needed(task, group);
        task.deadline.saturating_duration_since(now) < at_best
    }

    /// Whether a task whose turn has come cannot be expected to meet its deadline, beside what else is to be run.
    fn is_doomed(&self, task: &Task, now: Instant) -> bool {
        let Some(group) = self.groups.get(task.function.0 as usize) else { return false };
        let needed = self.needed(task, group);
        let left = task.deadline.saturating_duration_since(now);
        // Other functions have their turns meanwhile, for as long as they have something to run.
        if left >= needed * u32::try_from(self.active + 1).unwrap_or(u32::MAX) {
            return false;
        }
        let others = self.groups.iter().zip(0..).filter(|(_, index)| *index != task.function.0);
        let beside: Duration = others.map(|(other, _)| other.backlog().min(needed)).sum();
        left < needed + beside
    }

    /// The time without which a task is not begun: what it is expected to take, and as much again in case it takes longer, but so little that a task which has not waited
    /// always is. Nothing where nothing is known, or under a policy that does not care.
    fn needed(&self, task: &Task, group: &Group) -> Duration {
        if self.policy != Policy::RoundRobin || group.expected().is_zero() {
            return Duration::ZERO;
        }
        let whole = task.deadline.saturating_duration_since(task.arrived);
        let expected = group.expected().min(whole / 2);
        expected + expected.max(2 * self.quantum).min((whole - expected) / 4)
    }

    /// One that another worker may have: the one that would wait here longest. Of the started at most one a quantum.
    fn give(&mut self, now: Instant) -> Option<TaskId> {
        let may_give_started = self.gave_started.is_none_or(|gave| now.saturating_duration_since(gave) >= self.quantum);
        let started = self.waiting == self.started;
        if started && !may_give_started {
            return None;
        }
        let task = if self.policy == Policy::RoundRobin {
            let count = |group: &Group| if started { group.started() } else { group.waiting() - group.started() };
            let last =
                self.give_from.filter(|function| self.groups.get(function.0 as usize).is_some_and(|group| count(group) > 0));
            let most = || (0..).zip(&self.groups).max_by_key(|(_, group)| count(group)).map(|(index, _)| FunctionId(index));
            let function = last.or_else(most)?;
            self.give_from = Some(function);
            self.group(function).take_last(started)?
        } else {
            let count = |queue: &RunQueue| if started { queue.started() } else { queue.waiting() - queue.started() };
            self.tenants.iter_mut().max_by_key(|tenant| count(&tenant.queue))?.queue.take_last(started)?
        };
        if task.started {
            self.gave_started = Some(now);
        }
        self.removed(&task);
        Some(task.id)
    }

    fn expired(&mut self, now: Instant) -> Option<TaskId> {
        if self.earliest? > now {
            return None;
        }
        let late = self.take_any(|task| task.deadline <= now);
        if late.is_none() {
            let of_groups = self.groups.iter().flat_map(Group::iter);
            let of_queues = self.tenants.iter().flat_map(|tenant| tenant.queue.iter());
            self.earliest = of_groups.chain(of_queues).map(|task| task.deadline).min();
        }
        late.map(|task| task.id)
    }
}
