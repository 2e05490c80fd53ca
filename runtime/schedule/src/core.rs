//! What a worker does next: a pure function of what it did so far and of the time.
//!
//! [`Core::note`] takes what happened and the time, [`Core::decide`] says what to do. It holds no sandbox, reads no clock and touches no queue,
//! so that tests can play any schedule to it (`core/tests/`). The worker carries its decisions out.
//!
//! Three decisions, one inside the other:
//!
//! 1. *Whose turn it is.* Tenants that have something to run get equal shares of the worker ([`turns`](super::turns)).
//!    With [`Classes`], of a tenant's time each class of microtasks has a share ([`classes`](super::classes)).
//! 2. *Which function*, under [`Policy::RoundRobin`]: shares by weight. So a short function waits behind long ones for a quantum or two, however many invocations
//!    they have. Reading and answering requests is part of what a function uses.
//! 3. *Which invocation*: of a function the oldest, in levels ([`group`](super::group)); under the other policies each in turn, by arrival, or by deadline.
//!
//! What was begun ahead and is not asked for runs where all of that leaves time ([`slack`](super::slack)).
//!
//! Before all of that come those whose time is over: the deadline, also of what has not begun, and the budget of processor time. An invocation that cannot be expected
//! to meet its deadline is ended before it costs processor time: when it arrives, if what is older leaves it no chance on any worker, or when its turn comes.

mod classed;
mod decision;
mod giving;
mod shedding;
mod speculative;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod batch;

#[cfg(test)]
mod simulation;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub use self::decision::Why;
pub(crate) use self::decision::{Action, Event};
use crate::blocked::Blocked;
use crate::classes::{CLASSES, Microtasks, Sharing};
use crate::group::Group;
use crate::in_flight::PER_WORKER_MAX;
use crate::policy::Policy;
use crate::run_queue::RunQueue;
use crate::slack::Slack;
use crate::task::{FunctionId, Task, TaskId, TenantId};
use crate::turns::{Has, Turn, Turns};

/// How long a worker runs guests before it looks after connections again, if runs are shorter than a quantum.
pub const IO_INTERVAL: Duration = Duration::from_micros(100);
/// Started sandboxes of one worker that wait for their turn; with as many it begins nothing until one has ended.
pub const STARTED_MAX: usize = 1_024;
/// Those that are blocked; likewise.
pub(crate) const BLOCKED_MAX: usize = 16_384;
const _: () = assert!(BLOCKED_MAX == PER_WORKER_MAX, "a function may have as many in flight as wait");
/// The most that is given to another worker at a time.
pub(crate) const GIVEN_MAX: usize = 32;

/// What one tenant has to run.
#[derive(Debug, Default)]
struct Tenant {
    turn: Turn,
    /// Its functions' turns, in each class; without classes in the first.
    functions: [Turns<FunctionId>; CLASSES],
    /// Its classes' turns.
    sharing: Sharing,
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
    /// By the number of the function; with classes several of each, one a class.
    groups: Vec<Group>,
    groups_each: usize,
    /// Functions that have something to run.
    active: usize,
    /// Microtasks, if they have classes.
    classes: Option<Box<Microtasks>>,
    /// All that waits is not begun now: until then at most.
    holds_until: Option<Instant>,
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
    /// The invocation that ended last in this turn or at once after it: what gave connections something to do.
    served: Option<(TenantId, FunctionId, u8)>,
    /// Since when the worker looks after connections.
    io_began: Option<Instant>,
    /// Whether it looked elsewhere in this turn.
    looked: bool,
    /// How many to give away now.
    to_give: usize,
    /// The group of which something was given away last.
    give_from: Option<usize>,
    /// When a started sandbox was last given away.
    gave_started: Option<Instant>,
    /// What is speculative, once there was anything. All else here is about what is asked for.
    slack: Option<Box<Slack>>,
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
            groups_each: 1,
            active: 0,
            classes: None,
            holds_until: None,
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
            slack: None,
        }
    }

    /// Number of tasks that wait for their turn, begun or not.
    #[must_use]
    pub(crate) fn waiting(&self) -> usize {
        let speculative = self.slack.as_ref().map_or(0, |slack| slack.waiting() + slack.unwanted.len());
        self.waiting + self.shed.len() + usize::from(self.exceeded.is_some()) + speculative
    }

    /// When the next blocked task goes on or is over, or one that is held may begin.
    #[must_use]
    pub(crate) fn alarm(&self) -> Option<Instant> {
        self.blocked.next().into_iter().chain(self.holds_until).min()
    }

    /// Decides what to do next.
    pub(crate) fn decide(&mut self, now: Instant) -> Action {
        let action = self.decide_asked(now);
        match action {
            Action::Io => self.io_began = Some(now),
            Action::Wait => return self.next_speculative(now),
            _ => {}
        }
        action
    }

    /// Whether a request that has just arrived may run at once, before the worker's next turn: it would be next there, and nothing is gained by
    /// waiting. If so, [`Core::note`] what comes of it. After a while of this the worker's other duties come first, and others may help.
    pub(crate) fn may_run_at_once(&mut self, mut task: Task, now: Instant) -> bool {
        if task.is_speculative {
            return self.may_run_speculative_at_once(task);
        }
        if self.classes.is_some() && !self.may_begin_at_once(&mut task, now) {
            return false;
        }
        let is_next = self.waiting == 0 || self.would_be_next(&task);
        let free = is_next && self.exceeded.is_none() && self.at_once < IO_INTERVAL;
        if free {
            if self.classes.is_some() {
                self.runs_in_class(&task, now);
            }
            self.running = Some(task);
            self.running_at_once = true;
        }
        free
    }

    /// Whether what follows may run at once, whatever waits, as what had its turn goes on: for as long as a turn takes in all. With classes each has its turn in its class.
    /// If so, [`Core::note`] what comes of it.
    pub(crate) fn may_go_on_at_once(&mut self, task: Task) -> bool {
        let time_max = self.quantum.max(IO_INTERVAL);
        let free = self.classes.is_none()
            && self.exceeded.is_none()
            && !self.is_full()
            && self.at_once < time_max
            && !task.is_speculative;
        if free {
            self.running = Some(task);
            self.running_at_once = true;
        }
        free
    }

    /// Whether an arrival is short, nothing of its function waits, nothing of other tenants does, and it is its function's turn.
    fn would_be_next(&self, task: &Task) -> bool {
        let of_function = self.of_function(task.function);
        let (Some(first), Some(group)) = (of_function.first(), of_function.get(usize::from(task.class))) else { return false };
        let Some(tenant) = self.tenants.get(task.tenant.0 as usize) else { return false };
        self.policy == Policy::RoundRobin
            && !self.is_full()
            && first.first_run().is_some_and(|run| run < IO_INTERVAL)
            && of_function.iter().all(|group| group.waiting() == 0)
            && tenant.waiting == self.waiting
            && tenant.functions[usize::from(task.class)].would_be_next(&group.turn)
            && (self.classes.is_none() || tenant.sharing.would_be_next(task.class))
    }

    /// Whether no more may begin.
    pub(crate) fn is_full(&self) -> bool {
        self.started >= STARTED_MAX || self.blocked.asked() >= BLOCKED_MAX
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
                if let (Some(began), Some((tenant, function, class))) = (self.io_began.take(), self.served) {
                    self.used(tenant, function, class, now.saturating_duration_since(began).saturating_sub(at_once));
                }
                self.turn_began = Some(now);
                // A client that was answered meanwhile may have sent the next one already.
                self.answered = !at_once.is_zero();
                self.served = None;
                self.looked = false;
                self.to_give = 0;
                self.holds_until = None;
                if let Some(slack) = &mut self.slack {
                    (slack.answered, slack.may_run, slack.to_give) = (false, false, 0);
                }
            }
            Event::Arrived(task) if task.is_speculative => self.slack().add(task),
            Event::Arrived(task) if !task.started && self.is_hopeless(&task, now) => self.shed.push_back(task.id),
            Event::Arrived(task) => {
                if let Some(classes) = &mut self.classes {
                    classes.arrived(&task);
                }
                self.add(task, now);
            }
            Event::Looked => self.looked = true,
            Event::Given => {}
            Event::Ended { ran } | Event::Returned { ran } => {
                if let Some(task) = self.running.take_if(|task| task.is_speculative) {
                    self.charge_speculative(&task, ran);
                    self.speculative_is_over(task.id);
                    return;
                }
                self.answered |= matches!(event, Event::Ended { .. });
                if let Some(task) = self.running.take() {
                    self.served = Some((task.tenant, task.function, task.class));
                    self.charge(&task, ran, true);
                    self.all_groups(task.function).iter_mut().for_each(|group| group.ended(task.cpu + ran));
                    if let Some(classes) = &mut self.classes {
                        classes.ended(&task);
                    }
                }
            }
            Event::Called { task, ran, is_over } => {
                if self.running_at_once {
                    self.at_once += ran;
                }
                if task.is_speculative {
                    return self.slack().ran(task.tenant, ran);
                }
                // It is a part of its caller's microtask.
                self.charge_group(&task, ran);
                if is_over {
                    self.all_groups(task.function).iter_mut().for_each(|group| group.ended(task.cpu + ran));
                }
            }
            Event::Dropped => {
                if let Some(task) = self.running.take_if(|task| task.is_speculative) {
                    self.charge_speculative(&task, Duration::ZERO);
                    return self.speculative_is_over(task.id);
                }
                if let Some(slack) = self.slack.as_mut().filter(|slack| slack.ends) {
                    (slack.ends, slack.answered) = (false, true);
                    return;
                }
                self.answered = true;
                if let Some(task) = self.running.take() {
                    self.running_at_once = false;
                    if let Some(classes) = &mut self.classes {
                        classes.dropped(&task);
                    }
                    self.want_again(&task);
                }
            }
            Event::Preempted { ran } | Event::Phase { ran } => {
                if let Some(task) = self.suspended(ran, matches!(event, Event::Phase { .. })) {
                    self.add(task, now);
                }
            }
            Event::Blocked { ran, until } => {
                if let Some(task) = self.suspended(ran, true) {
                    if let Some(classes) = self.classes.as_mut().filter(|_| !task.is_speculative) {
                        classes.blocked(&task, now);
                    }
                    let until = until.map_or(task.deadline, |until| until.min(task.deadline));
                    self.blocked.add(until, task);
                }
            }
            Event::Ready(id) => self.blocked.remove(id).into_iter().for_each(|task| self.add(task, now)),
            Event::Wanted | Event::WantedAll => {
                let not_begun = self.waiting - self.started;
                let enough = not_begun.div_ceil(2).clamp(1, GIVEN_MAX);
                self.to_give = enough.min(self.waiting.saturating_sub(1));
                if event == Event::WantedAll {
                    self.wanted_speculative();
                }
            }
            Event::Asked(id) => self.ask(id, now),
            Event::GivenUp(id) => self.give_up(id),
            Event::Slackens => self.slack().may_run = true,
        }
    }

    /// The next of all tasks, for a worker that ends them all.
    pub(crate) fn drain(&mut self) -> Option<TaskId> {
        if let Some(id) = self.exceeded.take().or_else(|| self.shed.pop_front()).or_else(|| self.next_unwanted()) {
            return Some(id);
        }
        let speculative = |slack: &mut Box<Slack>| slack.pop();
        let task =
            self.blocked.pop().or_else(|| self.take_any(|_| true)).or_else(|| self.slack.as_mut().and_then(speculative))?;
        if task.is_speculative {
            self.slack().forget(task.id);
        }
        self.gone(&task);
        Some(task.id)
    }

    /// Takes a task that is wanted, wherever it stands.
    fn take_any(&mut self, wanted: impl Fn(&Task) -> bool) -> Option<Task> {
        let of_group = self.groups.iter_mut().find_map(|group| group.take(&wanted));
        let task = of_group.or_else(|| self.tenants.iter_mut().find_map(|tenant| tenant.queue.take(&wanted)))?;
        self.removed(&task);
        Some(task)
    }

    /// What was running is suspended, its microtask over or not; none when its processor time is used up.
    fn suspended(&mut self, ran: Duration, is_over: bool) -> Option<Task> {
        let mut task = self.running.take()?;
        if task.is_speculative {
            self.charge_speculative(&task, ran);
        } else {
            self.charge(&task, ran, is_over);
        }
        task.cpu += ran;
        task.started = true;
        if task.cpu >= task.cpu_max {
            if task.is_speculative {
                self.speculative_is_over(task.id);
                self.slack().ends = true;
            } else {
                self.gone(&task);
            }
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

    /// What is known of a function stands in its first group.
    #[cfg(test)]
    fn group(&mut self, function: FunctionId) -> &mut Group {
        &mut self.all_groups(function)[0]
    }

    fn all_groups(&mut self, function: FunctionId) -> &mut [Group] {
        let (begin, each) = (function.0 as usize * self.groups_each, self.groups_each);
        if self.groups.len() <= begin {
            self.groups.resize_with(begin + each, Group::default);
        }
        &mut self.groups[begin..begin + each]
    }

    /// The groups of a function, if it is known.
    fn of_function(&self, function: FunctionId) -> &[Group] {
        let begin = function.0 as usize * self.groups_each;
        self.groups.get(begin..begin + self.groups_each).unwrap_or_default()
    }

    /// Where the group of a task stands.
    const fn group_of(&self, task: &Task) -> usize {
        task.function.0 as usize * self.groups_each + task.class as usize
    }

    fn add(&mut self, mut task: Task, now: Instant) {
        if task.is_speculative {
            return self.slack().add(task);
        }
        let quantum = self.quantum;
        if let Some(classes) = &mut self.classes {
            task.class = classes.classify(&task, now);
            self.tenant(task.tenant).sharing.added(task.class);
        }
        if self.policy == Policy::RoundRobin {
            let groups = self.all_groups(task.function);
            let was_idle = groups.iter().all(|group| group.waiting() == 0);
            groups[usize::from(task.class)].add(task, quantum);
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
        if self.classes.is_some() {
            tenant.sharing.wants(task.class);
        }
        let index = task.function.0 as usize * self.groups_each + usize::from(task.class);
        if let Some(group) = self.groups.get_mut(index).filter(|group| group.waiting() > 0) {
            tenant.functions[usize::from(task.class)].wants(task.function, &mut group.turn);
        }
    }

    /// A task that waited does so no longer.
    fn removed(&mut self, task: &Task) {
        self.waiting -= 1;
        self.started -= usize::from(task.started);
        if let Some(tenant) = self.tenants.get_mut(task.tenant.0 as usize) {
            tenant.waiting -= 1;
            tenant.started -= usize::from(task.started);
            if self.classes.is_some() {
                tenant.sharing.removed(task.class);
            }
        }
        let is_idle = self.of_function(task.function).iter().all(|group| group.waiting() == 0);
        self.active -= usize::from(is_idle && self.policy == Policy::RoundRobin);
    }

    fn since_epoch(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX)
    }

    /// `task` was running, and its microtask is over or not.
    fn charge(&mut self, task: &Task, ran: Duration, is_over: bool) {
        if std::mem::take(&mut self.running_at_once) {
            self.at_once += ran;
        }
        if let Some(classes) = &mut self.classes {
            classes.ran(task, ran, is_over);
        }
        self.charge_group(task, ran);
    }

    /// The time is the task's function's and tenant's.
    fn charge_group(&mut self, task: &Task, ran: Duration) {
        let quantum = self.quantum;
        let groups = self.all_groups(task.function);
        if !task.started {
            groups[0].ran_first(ran);
        }
        groups[usize::from(task.class)].used(task, ran, quantum);
        self.used(task.tenant, task.function, task.class, ran);
        self.want_again(task);
    }

    fn used(&mut self, tenant: TenantId, function: FunctionId, class: u8, time: Duration) {
        let Some(tenant) = self.tenants.get_mut(tenant.0 as usize) else { return };
        self.turns.used(&mut tenant.turn, time);
        if let Some(classes) = &self.classes {
            tenant.sharing.used(class, time, classes.shares(), classes.means(), self.quantum);
        }
        let index = function.0 as usize * self.groups_each + usize::from(class);
        if let Some(group) = self.groups.get_mut(index) {
            let time = group.weighted(time);
            tenant.functions[usize::from(class)].used(&mut group.turn, time);
        }
    }

    /// The same, but for what is speculative and is to be run.
    fn decide_asked(&mut self, now: Instant) -> Action {
        while self.blocked.next().is_some_and(|at| at <= now) {
            self.blocked.pop().into_iter().for_each(|task| self.add(task, now));
        }
        if let Some(id) = self.exceeded.take() {
            return Action::Kill(id, Why::Cpu);
        }
        if let Some(id) = self.shed.pop_front() {
            return Action::Kill(id, Why::Overload);
        }
        if let Some(id) = self.next_unwanted() {
            return Action::Kill(id, Why::Unwanted);
        }
        if let Some(id) = self.expired(now).or_else(|| self.next_late_speculative(now)) {
            return Action::Kill(id, Why::Deadline);
        }
        if self.to_give > 0 {
            self.to_give -= 1;
            if let Some(task) = self.give(now) {
                return Action::Give(task);
            }
            self.to_give = 0;
        }
        if let Some(task) = self.give_speculative(now) {
            return Action::Give(task);
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
        if self.classes.is_some() {
            return self.next_of_classes(now);
        }
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
            tenant.functions[0].next(look).and_then(|function| groups[function.0 as usize].first(full))
        } else {
            tenant.queue.first(full)
        };
        let Some(&task) = first else { return Action::Wait };
        self.run_first(task, full, now)
    }

    /// Runs the first one of a group, or of those in it that have begun.
    fn run_first(&mut self, task: Task, is_full: bool, now: Instant) -> Action {
        if self.answered && task.started {
            // No reply waits for a quantum of another.
            self.want_again(&task);
            self.served = self.served.or(Some((task.tenant, task.function, task.class)));
            return Action::Io;
        }
        let (index, class) = (self.group_of(&task), usize::from(task.class));
        if self.policy == Policy::RoundRobin {
            self.groups[index].take_first(is_full);
        } else if let Some(tenant) = self.tenants.get_mut(task.tenant.0 as usize) {
            tenant.queue.take(|other| other.id == task.id);
        }
        self.removed(&task);
        if !task.started && self.is_doomed(&task, now) {
            self.want_again(&task);
            return Action::Kill(task.id, Why::Overload);
        }
        let tenant = &mut self.tenants[task.tenant.0 as usize];
        self.turns.runs(&tenant.turn);
        if let Some(group) = self.groups.get(index) {
            tenant.functions[class].runs(&group.turn);
        }
        if self.classes.is_some() {
            self.runs_in_class(&task, now);
        }
        self.running = Some(task);
        Action::Run(task.id)
    }

    fn expired(&mut self, now: Instant) -> Option<TaskId> {
        if self.earliest? > now {
            return None;
        }
        let late = self.take_any(|task| task.deadline <= now);
        late.iter().for_each(|task| self.gone(task));
        if late.is_none() {
            let of_groups = self.groups.iter().flat_map(Group::iter);
            let of_queues = self.tenants.iter().flat_map(|tenant| tenant.queue.iter());
            self.earliest = of_groups.chain(of_queues).map(|task| task.deadline).min();
        }
        late.map(|task| task.id)
    }
}
