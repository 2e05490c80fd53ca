//! A guest's turn: a quantum, or, where nothing else waits, until something comes.

use std::mem;
use std::time::{Duration, Instant};

use super::Worker;
use crate::invoke::Invocation;
use crate::invoke::driver::Progress;
use crate::invoke::work::{Started, Unwaited, Work};
use crate::outcome::Failure;
use crate::schedule::{Event, TaskId, Why};

/// How a run came to its end.
pub(super) enum Left {
    /// With its invocation.
    Over { ran: Duration, is_call: bool },
    /// With the quantum.
    Preempted { ran: Duration, started: Box<Started> },
    /// With its microtask: it has said that the next one begins.
    Phase { ran: Duration, started: Box<Started> },
    /// It has to wait, and does not yet.
    Waits { at: Instant, ran: Duration, started: Box<Started>, unwaited: Unwaited },
}

impl Worker {
    pub(super) fn resume(&mut self, id: TaskId, started: Box<Started>, now: Instant) -> Event<Work> {
        if started.invocation.reply.is_closed() {
            // Its connection keeps the deadline too, and may have looked at the time first.
            let failure = if started.invocation.deadline <= now { Failure::Deadline } else { Failure::Cancelled };
            self.end_early(started, failure, now);
            return Event::Dropped;
        }
        let alone = self.alone.is_next(id) && self.enter_alone(&started, now);
        self.run(id, started, now, alone)
    }

    /// Whether a guest that begins to run at `begin` does so without ticks. If so, the timer is set for that.
    fn enter_alone(&mut self, started: &Started, begin: Instant) -> bool {
        let Invocation { function, times, deadline, .. } = &*started.invocation;
        let until = self.scheduler.alarm().map_or(*deadline, |alarm| alarm.min(*deadline));
        let (time, cpu) = (until.saturating_duration_since(begin), function.cpu_max.saturating_sub(times.cpu));
        // What came before belongs to no guest; what comes from now on does.
        let _ = self.thread.take_tick();
        // Where it runs what is speculative, it may have been woken for something that another worker has handed off.
        let is_wanted = || self.scheduler.is_slack() && self.dispatcher.exchange().is_busy(self.index);
        let is_alone = || self.scheduler.is_alone() && !self.waits.has_woken() && !is_wanted();
        let entered = if is_alone() { self.alone.enter(time, cpu, is_alone) } else { None };
        if let Some((first, interval)) = entered {
            self.thread.arm_slowly(begin, first, interval);
        }
        entered.is_some()
    }

    pub(super) fn kill(&mut self, id: TaskId, work: Work, failure: Failure, now: Instant) -> Event<Work> {
        match work {
            Work::Started(mut started) => {
                // What it waits for is given up.
                self.waits.end(&mut *started, id, now);
                self.end_early(started, failure, now);
            }
            Work::Checking(checking) => self.end_check(id, *checking, failure, now),
            // It was begun ahead, and nothing of it is seen.
            Work::Job(invocation) if failure == Failure::Cancelled => {
                tracing::debug!(function = invocation.function.name(), "given up before it began");
            }
            Work::Job(invocation) => self.refuse(invocation, failure, now),
        }
        Event::Dropped
    }

    /// Runs a quantum; or `alone`, until something comes, or it is time to look at the clock.
    pub(super) fn run(&mut self, id: TaskId, started: Box<Started>, begin: Instant, alone: bool) -> Event<Work> {
        self.pause.end(begin, self.settings.quantum);
        if !alone {
            // A tick that came before belongs to no guest.
            let _ = self.thread.take_tick();
            self.thread.arm_for(begin);
        }
        match self.run_until(Some(id), started, (begin, begin), alone) {
            Left::Over { ran, is_call: true } => Event::Returned { ran },
            Left::Over { ran, is_call: false } => Event::Ended { ran },
            Left::Preempted { ran, started } => Event::Preempted { ran, work: Work::Started(started) },
            Left::Phase { ran, started } => Event::Phase { ran, work: Work::Started(started) },
            Left::Waits { at, ran, started, unwaited } => self.wait(id, started, at, ran, unwaited),
        }
    }

    /// It waits from `now` on, unless it need not. It has run for so long.
    pub(super) fn wait(
        &mut self,
        id: TaskId,
        mut started: Box<Started>,
        now: Instant,
        ran: Duration,
        unwaited: Unwaited,
    ) -> Event<Work> {
        let Unwaited { until, pending } = unwaited;
        let blocks = self.waits.begin(&mut *started, id, now, until, pending);
        let work = Work::Started(started);
        if blocks { Event::Blocked { ran, until, work } } else { Event::Preempted { ran, work } }
    }

    /// Runs it from `begin` on, in the quantum that has begun at `quantum_began`. Without an id it is no task, and runs within its caller's turn.
    pub(super) fn run_until(
        &mut self,
        id: Option<TaskId>,
        mut started: Box<Started>,
        (begin, quantum_began): (Instant, Instant),
        mut alone: bool,
    ) -> Left {
        let host_calls = started.driver.context().host_calls();
        started.driver.start_clock(begin);
        // For how long it did not run, since what it has called did.
        let mut callees = Duration::ZERO;
        loop {
            let program = &started.invocation.function.program;
            let progress = if alone { started.driver.run_to_host_call(program) } else { started.driver.run(program) };
            let was_alone = mem::replace(&mut alone, false);
            if was_alone {
                self.alone.leave();
            }
            if started.driver.context().has_outgoing() {
                // Without ticks, what it calls has a turn of its own.
                let called = self.call(&mut started, (!was_alone).then_some(quantum_began));
                callees += called.ran;
                // It asks for its call's reply: that is no work between looks at the clock.
                if matches!(progress, Progress::Yields) && !was_alone && !called.quantum_is_over {
                    continue;
                }
            }
            let now = Instant::now();
            // An invocation that fails before its stream was taken is answered like all that fail.
            // One that is complete by now goes out as a whole, which costs less.
            if started.driver.context().has_stream()
                && !matches!(progress, Progress::Ended(Err(_)))
                && !(matches!(progress, Progress::Ended(Ok(()))) && started.driver.complete_stream())
            {
                self.begin_stream(&mut started, begin + callees, now);
            }
            let ran = (now - begin).saturating_sub(callees);
            let of_quantum = now - quantum_began;
            started.driver.count_time(now);
            let unwaited = match progress {
                // The timer ran already when this one began.
                Progress::Preempted if !was_alone && !rest_of_quantum(of_quantum, self.settings.quantum).is_zero() => {
                    self.thread.arm_after(rest_of_quantum(of_quantum, self.settings.quantum));
                    continue;
                }
                Progress::Yields if started.driver.context().is_turn_due() => {
                    self.answer_later(&mut started);
                    started.invocation.times.cpu += ran;
                    return Left::Phase { ran, started };
                }
                // Its quantum is not over, and a tick that comes in a host call counts.
                Progress::Yields if of_quantum < self.settings.quantum => {
                    if let (true, Some(id)) = (was_alone, id) {
                        self.alone.broke(id);
                        self.thread.arm_after(self.settings.quantum - of_quantum);
                    }
                    continue;
                }
                Progress::Preempted | Progress::Yields => {
                    self.answer_later(&mut started);
                    if let (Progress::Preempted, Some(id)) = (&progress, id) {
                        self.alone.follows(id, started.driver.context().host_calls() == host_calls);
                    }
                    self.shard.note(&started.invocation.function, |row| row.preemptions.add(1));
                    started.invocation.times.cpu += ran;
                    return Left::Preempted { ran, started };
                }
                Progress::Ended(result) => {
                    started.invocation.times.cpu += ran;
                    let is_call = started.invocation.identity.is_call();
                    self.end(started, result, now);
                    return Left::Over { ran, is_call };
                }
                Progress::Stale => {
                    started.invocation.times.cpu += ran;
                    self.answer_later(&mut started);
                    if let Err(failure) = self.run_again(&mut started, now) {
                        let is_call = started.invocation.identity.is_call();
                        self.end(started, Err(failure), now);
                        return Left::Over { ran, is_call };
                    }
                    return Left::Preempted { ran, started };
                }
                Progress::Waits { until } => Unwaited { until, pending: None },
                Progress::Pends(pending) => Unwaited { until: None, pending: Some(pending) },
            };
            self.answer_later(&mut started);
            started.invocation.times.cpu += ran;
            return Left::Waits { at: now, ran, started, unwaited };
        }
    }
}

/// What an invocation gets that was preempted after so long by a tick that was due before it ran: the rest of its quantum if that is worth another tick, else nothing.
/// So no run is longer than a quantum.
pub(super) fn rest_of_quantum(ran: Duration, quantum: Duration) -> Duration {
    if ran < quantum / 2 { quantum - ran } else { Duration::ZERO }
}

/// How an invocation fails that is ended for that reason.
pub(super) const fn failure(why: Why) -> Failure {
    match why {
        Why::Deadline => Failure::Deadline,
        Why::Cpu => Failure::CpuLimit,
        Why::Overload => Failure::Shed,
        Why::Unwanted => Failure::Cancelled,
        Why::Stopping => Failure::Stopping,
    }
}
