//! One worker's schedule: what it has, what it takes from others and hands off to them, and what it does next.
//!
//! [`Scheduler::step`] is the only way in. The worker tells it what happened and when, and carries out what it answers. It reads no clock, runs no guest
//! and waits for nothing, so that a simulator can play a whole pool of them.
//!
//! Work belongs to the scheduler while it waits or is blocked, and to the worker from [`Action::Run`] or [`Action::Kill`] until the event that says what came of it.

use std::fmt;
use std::time::{Duration, Instant};

use crate::classes::{CLASSES, Classes, Microtask};
use crate::core::{self, Core, Why};
use crate::demand::Demand;
use crate::policy::Policy;
use crate::shared::{Phase, Rest, Shared};
use crate::task::{Rank, Task, TaskId};

/// How long what was handed off may wait for another worker: longer than one takes to wake up.
const HANDED_OFF_TIME_MIN: Duration = Duration::from_micros(200);

/// An invocation, as the scheduler sees it.
pub trait Work {
    /// What the order needs to know of it, under a number of the worker's.
    fn task(&self, id: TaskId) -> Task;

    /// What it does next, until it blocks or begins another phase. Asked only where microtasks have [classes](Classes).
    fn microtask(&self) -> Microtask {
        Microtask::default()
    }

    /// Whether it is asked for. If it is speculative that may change at any time, and then the count of [changes](Shared::changes) does.
    fn demand(&self) -> Demand {
        Demand::Asked
    }

    /// Where it stands as long as it is speculative.
    fn rank(&self) -> Rank {
        Rank::default()
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<W> {
    /// A connection of this thread has a request, outside of a turn: may it run at once? Answered with [`Action::RunAtOnce`] where it would be next anyway; otherwise it
    /// [arrives](Event::Arrived). The number in the task means nothing.
    Submitted(Task),
    /// The same of what follows what ran at once, as a part of the same work: the next task of a workflow. It goes on as what had its turn does, unless all that
    /// ran at once since the last turn has had as long as a quantum.
    Followed(Task),
    /// There is one more to run, when its turn comes: a request, or what a guest calls.
    Arrived(W),
    /// What a blocked task waited for is done.
    Ready(TaskId),
    /// What ran has ended, and a client is answered.
    Ended {
        /// For how long it ran.
        ran: Duration,
    },
    /// The same, of what another task called: no client is answered.
    Returned {
        /// For how long it ran.
        ran: Duration,
    },
    /// What ran has called this, which ran within its turn and not in a turn of its own. The number in the task means nothing.
    Called {
        /// As it was before.
        task: Task,
        /// For how long it ran.
        ran: Duration,
        /// Whether it is over. Else what is left of it [arrives](Event::Arrived).
        is_over: bool,
    },
    /// What was to be run or killed is over, and has not run.
    Dropped,
    /// What ran was preempted.
    Preempted {
        /// For how long it ran.
        ran: Duration,
        /// What is left of it.
        work: W,
    },
    /// What ran begins another microtask, and waits for its turn in that one's class.
    Phase {
        /// For how long it ran.
        ran: Duration,
        /// What is left of it.
        work: W,
    },
    /// What ran waits.
    Blocked {
        /// For how long it ran.
        ran: Duration,
        /// When it goes on; none if only what it waits for, or its deadline, ends that.
        until: Option<Instant>,
        /// What is left of it.
        work: W,
    },
    /// The worker has looked after connections and begins to run guests.
    Turn,
    /// The worker asks what to do next.
    Next,
    /// The worker's thread is about to wait.
    Rests,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<W> {
    /// Nothing: the scheduler has taken note.
    Noted,
    /// Run what was submitted.
    RunAtOnce(TaskId),
    /// Run this for a quantum.
    Run(TaskId, W),
    /// End this.
    Kill(TaskId, W, Why),
    /// Look after connections, then take another turn.
    Io,
    /// Wait until another thread wakes the worker, or until that time.
    Wait {
        /// When the next blocked task goes on, or is over.
        alarm: Option<Instant>,
    },
    /// Leave: the server has stopped.
    Leave,
}

/// One worker's schedule.
pub struct Scheduler<S: Shared> {
    core: Core,
    shared: S,
    quantum: Duration,
    /// What waits or is blocked, by its number.
    tasks: Vec<Option<S::Work>>,
    /// Numbers that are free.
    free: Vec<u32>,
    /// What the worker has in hand.
    current: Option<TaskId>,
    /// When something was last handed off, if it may be there still.
    handed_off: Option<Instant>,
    /// Whether something of that was asked for.
    handed_off_asked: bool,
    /// When idle workers were last asked whether they want what is not begun here.
    offered: Option<Instant>,
    /// Whether in this turn it was asked what idle workers want.
    asked: bool,
    /// Whether everything is to be ended.
    stops: bool,
    /// Whether the others have been told that there is only what is speculative to do.
    is_slack: bool,
    /// How often what is asked for had changed when it was looked last.
    changes: u64,
    stolen: u64,
}

impl<S: Shared> fmt::Debug for Scheduler<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scheduler { core, current, .. } = self;
        f.debug_struct("Scheduler").field("core", core).field("current", current).finish_non_exhaustive()
    }
}

impl<S: Shared<Work: Work>> Scheduler<S> {
    /// The schedule of a worker that has nothing to do.
    #[must_use]
    pub fn new(policy: Policy, quantum: Duration, shared: S, now: Instant) -> Scheduler<S> {
        Scheduler {
            core: Core::new(policy, quantum, shared.workers(), now),
            shared,
            quantum,
            tasks: Vec::new(),
            free: Vec::new(),
            current: None,
            handed_off: None,
            handed_off_asked: false,
            offered: None,
            asked: false,
            stops: false,
            is_slack: false,
            changes: 0,
            stolen: 0,
        }
    }

    /// Gives microtasks classes, before anything has happened. Under [`Policy::RoundRobin`] only.
    #[must_use]
    pub fn with_classes(mut self, classes: Option<Classes>) -> Scheduler<S> {
        self.core.set_classes(classes);
        self
    }

    /// Takes note of what happened at that time, and says what to do. Only [`Event::Next`], [`Event::Submitted`] and [`Event::Followed`] are answered with something to do.
    pub fn step(&mut self, event: Event<S::Work>, now: Instant) -> Action<S::Work> {
        match event {
            Event::Next => return self.next(now),
            Event::Submitted(task) => return self.submit(task, false, now),
            Event::Followed(task) => return self.submit(task, true, now),
            Event::Arrived(work) => self.add(work, now),
            Event::Ready(id) => {
                self.look_at(id, now);
                self.core.note(core::Event::Ready(id), now);
            }
            Event::Ended { ran } => self.over(core::Event::Ended { ran }, now),
            Event::Returned { ran } => self.over(core::Event::Returned { ran }, now),
            Event::Called { task, ran, is_over } => self.core.note(core::Event::Called { task, ran, is_over }, now),
            Event::Dropped => self.over(core::Event::Dropped, now),
            Event::Preempted { ran, work } => self.suspended(work, core::Event::Preempted { ran }, now),
            Event::Phase { ran, work } => self.suspended(work, core::Event::Phase { ran }, now),
            Event::Blocked { ran, until, work } => self.suspended(work, core::Event::Blocked { ran, until }, now),
            Event::Turn => self.begin_turn(now),
            Event::Rests => self.core.rest(),
        }
        Action::Noted
    }

    /// Number of tasks that wait for their turn, started or not.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.core.waiting()
    }

    /// Whether the worker has nothing to run but what it has in hand, and nothing of what it shares with others waits.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.current.is_some()
            && self.core.waiting() == 0
            && self.shared.is_queue_empty()
            && !self.shared.has_injected()
            && self.shared.phase() != Phase::Killing
    }

    /// Whether the others have been told that it has only what is speculative to do.
    #[must_use]
    pub const fn is_slack(&self) -> bool {
        self.is_slack
    }

    /// When the next blocked task goes on or is over.
    #[must_use]
    pub fn alarm(&self) -> Option<Instant> {
        self.core.alarm()
    }

    /// Whether what is called may begin within its caller's turn: not where no more may begin, nor where everything is to be ended.
    #[must_use]
    pub fn may_begin_within(&self) -> bool {
        !self.stops && !self.core.is_full()
    }

    /// Whether some of them wait for others to get on, and there is nothing else to run.
    #[must_use]
    pub const fn is_holding(&self) -> bool {
        self.core.is_holding()
    }

    /// A task that waits or is blocked.
    #[must_use]
    pub fn task_mut(&mut self, id: TaskId) -> Option<&mut S::Work> {
        self.tasks.get_mut(id.0 as usize)?.as_mut()
    }

    /// What the worker shares with others.
    #[must_use]
    pub const fn shared(&self) -> &S {
        &self.shared
    }

    /// The same.
    pub const fn shared_mut(&mut self) -> &mut S {
        &mut self.shared
    }

    /// How much it took over from other workers since that was last asked.
    pub const fn take_stolen(&mut self) -> u64 {
        std::mem::replace(&mut self.stolen, 0)
    }

    /// Microtasks by their class since that was last asked: how many have ended, and the processor time that they used, in nanoseconds. None where they have no classes.
    pub fn take_class_counts(&mut self) -> Option<[[u64; 2]; CLASSES]> {
        self.core.take_class_counts()
    }

    fn submit(&mut self, task: Task, follows: bool, now: Instant) -> Action<S::Work> {
        let is_alone = self.shared.is_queue_empty() && !self.shared.has_injected();
        self.shared.busy();
        self.is_slack = false;
        let id = self.vacant();
        if self.core.has_classes() {
            // Its number may have been another's.
            self.core.announce(id, Microtask::default());
        }
        let task = Task { id, ..task };
        let goes_on = follows && !self.stops && self.core.may_go_on_at_once(task);
        if goes_on || is_alone && self.core.may_run_at_once(task, now) {
            self.current = Some(id);
            return Action::RunAtOnce(id);
        }
        self.release(id);
        Action::Noted
    }

    fn begin_turn(&mut self, now: Instant) {
        self.shared.busy();
        self.is_slack = false;
        self.asked = false;
        self.stops = self.shared.phase() == Phase::Killing;
        // What no other worker took for a while.
        let time_max = self.quantum.max(HANDED_OFF_TIME_MIN);
        if self.handed_off.is_some_and(|at| now.saturating_duration_since(at) >= time_max) {
            self.take_queue(now);
        }
        if self.shared.has_injected() {
            self.take_injected(now);
        }
        self.core.note(core::Event::Turn, now);
    }

    fn next(&mut self, now: Instant) -> Action<S::Work> {
        if self.stops {
            self.look(now);
            while let Some(id) = self.core.drain() {
                if let Some(work) = self.take(id) {
                    return Action::Kill(id, work, Why::Stopping);
                }
            }
        }
        self.look_at_all(now);
        loop {
            let event = match self.core.decide(now) {
                core::Action::Run(id) => {
                    if self.is_slack && !self.core.runs_speculative() {
                        self.shared.busy();
                        self.is_slack = false;
                    }
                    match self.take(id) {
                        Some(work) => return Action::Run(id, work),
                        None => core::Event::Dropped,
                    }
                }
                core::Action::Kill(id, why) => match self.take(id) {
                    Some(work) => return Action::Kill(id, work, why),
                    None => core::Event::Dropped,
                },
                core::Action::Give(id) => self.hand_off(id, now),
                core::Action::Look if self.has_lent() => self.look_elsewhere(now),
                core::Action::Look => self.look(now),
                core::Action::Slacken if !self.is_slack && !self.shared.try_slack() => return Action::Io,
                core::Action::Slacken => {
                    self.is_slack = true;
                    core::Event::Slackens
                }
                core::Action::Io => match self.what_others_want() {
                    Some(event) => {
                        self.asked = true;
                        event
                    }
                    None => return Action::Io,
                },
                core::Action::Wait if self.core.is_holding() => match self.hold(now) {
                    Some(event) => event,
                    None if !self.shared.try_idle() => return Action::Io,
                    None => return Action::Wait { alarm: self.core.alarm() },
                },
                // It was handed off, and no worker took it.
                core::Action::Wait if !self.shared.is_queue_empty() => self.look(now),
                core::Action::Wait if !self.shared.try_idle() => return Action::Io,
                core::Action::Wait if self.shared.is_finished() => return Action::Leave,
                core::Action::Wait => return Action::Wait { alarm: self.core.alarm() },
            };
            self.core.note(event, now);
        }
    }

    /// There is nothing to run but what is not begun now: others may have some of that, once a quantum, since they may not begin it either. What is handed off stays in the queue
    /// while the worker waits.
    fn hold(&mut self, now: Instant) -> Option<core::Event> {
        let is_due = self.offered.is_none_or(|at| now.saturating_duration_since(at) >= self.quantum);
        let is_wanted = is_due && !self.asked && self.shared.is_queue_empty() && self.shared.others() > Rest::Busy;
        if is_wanted {
            (self.asked, self.offered) = (true, Some(now));
        }
        is_wanted.then_some(core::Event::Wanted)
    }

    /// What other workers want that do nothing which is asked for, if that was not asked in this turn: something else than what this worker does next.
    fn what_others_want(&self) -> Option<core::Event> {
        if self.asked || self.core.waiting() <= 1 {
            return None;
        }
        match self.shared.others() {
            Rest::Idle => Some(core::Event::WantedAll),
            Rest::Slack if self.core.waiting_asked() > 1 => Some(core::Event::Wanted),
            Rest::Slack | Rest::Busy => None,
        }
    }

    /// Finds out which of all that is speculative is asked for, or not wanted, if that may have changed.
    fn look_at_all(&mut self, now: Instant) {
        if !self.core.has_speculative() {
            return;
        }
        // Before the tasks: what changes from now on changes the count.
        let changes = self.shared.changes();
        if changes != std::mem::replace(&mut self.changes, changes) {
            self.core.speculative().into_iter().for_each(|id| self.look_at(id, now));
        }
    }

    /// Finds out whether something is asked for that was speculative.
    fn look_at(&mut self, id: TaskId, now: Instant) {
        if !self.core.has_speculative() {
            return;
        }
        match self.tasks.get(id.0 as usize).and_then(Option::as_ref).map(Work::demand) {
            Some(Demand::Asked) => self.core.note(core::Event::Asked(id), now),
            Some(Demand::Unwanted) => self.core.note(core::Event::GivenUp(id), now),
            Some(Demand::Speculative) | None => {}
        }
    }

    /// Whether all that it has handed off is speculative, and it has more of that: then this is another worker's for a while.
    fn has_lent(&self) -> bool {
        self.handed_off.is_some() && !self.handed_off_asked && self.core.waiting() > 0
    }

    /// Looks for work elsewhere, and takes in what there is, with what it has handed off.
    fn look(&mut self, now: Instant) -> core::Event {
        self.take_queue(now);
        self.look_elsewhere(now)
    }

    /// The same, but for what it has handed off, as long as there is nothing elsewhere.
    fn look_elsewhere(&mut self, now: Instant) -> core::Event {
        self.take_injected(now);
        if self.core.waiting_asked() == 0 || self.core.is_holding() {
            let stolen = self.shared.steal() as u64;
            self.stolen += stolen;
            if stolen > 0 {
                self.take_queue(now);
            }
        }
        core::Event::Looked
    }

    fn take_queue(&mut self, now: Instant) {
        while let Some(work) = self.shared.pop() {
            self.add(work, now);
        }
        (self.handed_off, self.handed_off_asked) = (None, false);
        self.shared.set_backlog(false);
    }

    fn take_injected(&mut self, now: Instant) {
        for work in self.shared.take_injected() {
            self.add(work, now);
        }
    }

    fn hand_off(&mut self, id: TaskId, now: Instant) -> core::Event {
        if let Some(work) = self.tasks.get_mut(id.0 as usize).and_then(Option::take) {
            self.release(id);
            self.handed_off_asked |= work.demand() == Demand::Asked;
            self.shared.push(work);
            self.handed_off.get_or_insert(now);
            self.shared.set_backlog(true);
        }
        core::Event::Given
    }

    /// What the worker had in hand is over.
    fn over(&mut self, event: core::Event, now: Instant) {
        if let Some(id) = self.current.take() {
            self.release(id);
        }
        self.core.note(event, now);
    }

    /// What the worker had in hand goes on later.
    fn suspended(&mut self, work: S::Work, event: core::Event, now: Instant) {
        if let Some(id) = self.current.take() {
            if self.core.has_classes() && Core::ends_microtask(&event) {
                self.core.announce(id, work.microtask());
            }
            if self.core.runs_speculative() {
                self.core.announce_rank(id, work.rank());
            }
            self.tasks[id.0 as usize] = Some(work);
            self.core.note(event, now);
            self.look_at(id, now);
        }
    }

    /// Takes a task for the worker.
    fn take(&mut self, id: TaskId) -> Option<S::Work> {
        let work = self.tasks.get_mut(id.0 as usize)?.take()?;
        self.current = Some(id);
        Some(work)
    }

    fn add(&mut self, work: S::Work, now: Instant) {
        let id = self.vacant();
        let task = work.task(id);
        if task.is_speculative {
            self.core.announce_rank(id, work.rank());
        }
        if self.core.has_classes() {
            self.core.announce(id, work.microtask());
        }
        self.tasks[id.0 as usize] = Some(work);
        self.core.note(core::Event::Arrived(task), now);
    }

    /// A number for a task.
    fn vacant(&mut self) -> TaskId {
        TaskId(self.free.pop().unwrap_or_else(|| {
            self.tasks.push(None);
            self.tasks.len() as u32 - 1
        }))
    }

    fn release(&mut self, id: TaskId) {
        debug_assert!(self.tasks[id.0 as usize].is_none());
        self.free.push(id.0);
    }
}
