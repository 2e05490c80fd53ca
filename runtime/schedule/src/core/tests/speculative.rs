//! What is speculative costs what is asked for nothing: two workers side by side, one of which has the speculative tasks too.

use super::*;
use crate::classes::{Classes, Microtask, Site};
use crate::task::Rank;

/// Seeds that are played.
const SEEDS: u64 = 1_000;
const TASKS: usize = 30;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Waits,
    Blocked,
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// As the other worker is told where it comes to be asked for.
    task: Task,
    rank: Rank,
    stand: Stand,
    /// It was asked for while it was blocked: to the other worker it is new when it goes on.
    is_new: bool,
}

/// A worker with all tasks, and one with those that are asked for. What happens, happens to both at the same time.
struct Both {
    all: Core,
    asked: Core,
    now: Instant,
    tasks: Vec<Known>,
    state: u64,
    seed: u64,
    seen: Seen,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    ran: usize,
    ran_speculative: usize,
    asked_for: usize,
    given_up: usize,
}

impl Both {
    fn new(seed: u64) -> Both {
        let policy = POLICIES[seed as usize % POLICIES.len()];
        let now = Instant::now();
        let worker = || {
            let mut core = Core::new(policy, QUANTUM, 1, now);
            // Half of those that have any.
            core.set_classes((seed / 4 % 2 == 1).then(Classes::default));
            core
        };
        Both { all: worker(), asked: worker(), now, tasks: Vec::new(), state: seed, seed, seen: Seen::default() }
    }

    fn below(&mut self, end: u64) -> u64 {
        random(&mut self.state, end)
    }

    fn note(&mut self, event: Event) {
        self.all.note(event, self.now);
        self.asked.note(event, self.now);
        self.check();
    }

    fn check(&self) {
        self.all.check();
        self.asked.check();
    }

    /// Both are told what a task does next.
    fn announce(&mut self, id: TaskId) {
        let microtask = Microtask { site: Site(self.below(3) as u32), declared: None };
        if self.all.has_classes() {
            self.all.announce(id, microtask);
            self.asked.announce(id, microtask);
        }
    }

    fn arrive(&mut self) {
        let id = TaskId(self.tasks.len() as u32);
        let tenant = self.below(3) as u32;
        let function = FunctionId(3 * tenant + self.below(3) as u32);
        let is_speculative = self.below(2) == 0;
        // Those whose time is over while nothing else is to be run are played elsewhere.
        let deadline = if is_speculative { SOON } else { micros(500 + self.below(200_000)) };
        let cpu_max = if self.below(6) == 0 { micros(self.below(4_000)) } else { Duration::MAX };
        let (age, arrived, cpu, tenant) = (u64::from(id.0), self.now, Duration::ZERO, TenantId(tenant));
        let deadline = self.now + deadline;
        let task = Task {
            id,
            tenant,
            function,
            age,
            arrived,
            deadline,
            cpu_max,
            cpu,
            started: false,
            level: 0,
            class: 0,
            is_speculative,
            weight: 1 + self.below(2) as u32,
        };
        let rank = Rank::new(self.below(4), [self.below(3) as u32]);
        self.tasks.push(Known { task, rank, stand: Stand::Waits, is_new: false });
        self.announce(id);
        if is_speculative {
            self.all.announce_rank(id, rank);
            self.all.note(Event::Arrived(task), self.now);
        } else {
            self.note(Event::Arrived(task));
        }
    }

    /// One that is blocked goes on.
    fn goes_on(&mut self, index: usize) {
        let Known { task, is_new, .. } = self.tasks[index];
        self.tasks[index].stand = Stand::Waits;
        self.all.note(Event::Ready(task.id), self.now);
        if std::mem::take(&mut self.tasks[index].is_new) || (!is_new && !task.is_speculative) {
            let event = if is_new { Event::Arrived(task) } else { Event::Ready(task.id) };
            self.asked.note(event, self.now);
        }
    }

    /// One that is speculative is asked for, or is not wanted any more.
    fn settle(&mut self, index: usize) {
        let Known { task, stand, .. } = self.tasks[index];
        if self.below(4) == 0 {
            self.seen.given_up += 1;
            self.all.note(Event::GivenUp(task.id), self.now);
            return;
        }
        self.seen.asked_for += 1;
        self.tasks[index].task.is_speculative = false;
        self.tasks[index].is_new = stand == Stand::Blocked;
        self.all.note(Event::Asked(task.id), self.now);
        if stand == Stand::Waits {
            self.asked.note(Event::Arrived(self.tasks[index].task), self.now);
        }
    }

    fn pick(&mut self, wanted: impl Fn(&Known) -> bool) -> Option<usize> {
        let found: Vec<_> = (0..self.tasks.len()).filter(|index| wanted(&self.tasks[*index])).collect();
        (!found.is_empty()).then(|| found[self.below(found.len() as u64) as usize])
    }

    fn happens(&mut self) {
        while self.tasks.len() < TASKS && self.below(8) == 0 {
            self.arrive();
        }
        if self.below(6) == 0
            && let Some(index) = self.pick(|known| known.stand == Stand::Blocked)
        {
            self.goes_on(index);
        }
        if self.below(20) == 0
            && let Some(index) = self.pick(|known| known.stand != Stand::Over && known.task.is_speculative)
        {
            self.settle(index);
            if self.all.slack.as_ref().is_some_and(|slack| slack.unwanted.contains(&self.tasks[index].task.id)) {
                self.tasks[index].stand = Stand::Over;
            }
        }
    }

    /// What the worker decides that has only what is asked for.
    fn decide_asked(&mut self) -> Action {
        loop {
            match self.asked.decide(self.now) {
                Action::Look => self.asked.note(Event::Looked, self.now),
                action => return action,
            }
        }
    }

    /// What comes of a run.
    fn run(&mut self, id: TaskId) -> Event {
        let ran = micros(1 + self.below(700)).min(QUANTUM);
        self.now += ran;
        let what = self.below(6);
        self.announce(id);
        let known = &mut self.tasks[id.0 as usize];
        (known.task.cpu, known.task.started) = (known.task.cpu + ran, true);
        match what {
            0 | 1 => {
                known.stand = Stand::Over;
                Event::Ended { ran }
            }
            // Its budget is used up: it is ended next.
            _ if known.task.cpu >= known.task.cpu_max => {
                known.stand = Stand::Over;
                Event::Preempted { ran }
            }
            2 | 3 => {
                known.stand = Stand::Blocked;
                Event::Blocked { ran, until: None }
            }
            4 => Event::Phase { ran },
            _ => Event::Preempted { ran },
        }
    }

    fn play(mut self) -> Seen {
        let seed = self.seed;
        self.note(Event::Turn);
        for _ in 0..200_000 {
            self.happens();
            let action = self.all.decide(self.now);
            match action {
                Action::Run(id) if self.tasks[id.0 as usize].task.is_speculative => {
                    self.seen.ran_speculative += 1;
                    let other = self.decide_asked();
                    assert_eq!(other, Action::Wait, "seed {seed}: {id:?} is speculative, and runs before what is asked for");
                    let earlier = self.all.slack.as_ref().and_then(|slack| {
                        let Known { task, rank, .. } = self.tasks[id.0 as usize];
                        let is_before = |other: &&Task| (self.tasks[other.id.0 as usize].rank, other.age) < (rank, task.age);
                        slack.iter().filter(|other| other.tenant == task.tenant).find(is_before)
                    });
                    assert_eq!(earlier, None, "seed {seed}: before {id:?}");
                    let event = self.run(id);
                    self.all.note(event, self.now);
                }
                Action::Run(id) => {
                    self.seen.ran += 1;
                    assert_eq!(self.decide_asked(), action, "seed {seed}: what is asked for runs in another order");
                    let event = self.run(id);
                    self.note(event);
                }
                Action::Kill(id, why) => {
                    let Known { task, .. } = self.tasks[id.0 as usize];
                    self.tasks[id.0 as usize].stand = Stand::Over;
                    self.all.note(Event::Dropped, self.now);
                    if !task.is_speculative {
                        assert_eq!(self.decide_asked(), action, "seed {seed}: {why:?}");
                        self.asked.note(Event::Dropped, self.now);
                    }
                }
                Action::Look => self.all.note(Event::Looked, self.now),
                Action::Slacken => self.all.note(Event::Slackens, self.now),
                Action::Io => {
                    let other = self.decide_asked();
                    assert!(matches!(other, Action::Io | Action::Wait), "seed {seed}: {other:?}");
                    let connections = micros(self.below(20));
                    self.now += connections;
                    self.note(Event::Turn);
                }
                Action::Wait => {
                    assert_eq!(self.decide_asked(), Action::Wait, "seed {seed}");
                    let waits = self.all.slack.as_ref().map_or(0, |slack| slack.waiting());
                    assert_eq!(waits, 0, "seed {seed}: it waits, and something speculative could run");
                    self.now += micros(50);
                    let is_over = self.tasks.iter().all(|known| known.stand == Stand::Over);
                    if is_over && self.tasks.len() == TASKS {
                        assert_eq!((self.all.waiting(), self.asked.waiting()), (0, 0), "seed {seed}");
                        assert!(!self.all.has_speculative(), "seed {seed}");
                        return self.seen;
                    }
                    self.note(Event::Turn);
                }
                Action::Give(_) => panic!("seed {seed}: no other worker wants any"),
            }
        }
        panic!("seed {seed}: it does not end");
    }
}

/// Also what was begun ahead and is asked for by now is run as if it had come then: so it waits no longer than any other.
#[test]
fn what_is_asked_for_runs_in_the_same_turns_with_and_without_what_is_speculative() {
    let mut total = Seen::default();
    for seed in 1..=SEEDS {
        let seen = Both::new(seed).play();
        total.ran += seen.ran;
        total.ran_speculative += seen.ran_speculative;
        total.asked_for += seen.asked_for;
        total.given_up += seen.given_up;
    }
    let each = [total.ran, total.ran_speculative, total.asked_for, total.given_up];
    assert!(each.iter().all(|count| *count as u64 > 2 * SEEDS), "{total:?}");
}
