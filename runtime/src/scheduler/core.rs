//! What a worker does next: a pure function of what it did so far and of the time.
//!
//! [`Core::step`] takes what happened and the time, and says what to do. It holds no sandbox, reads no clock and touches no queue, so that
//! tests can play any schedule to it. The worker carries its decisions out.
//!
//! Policy. Two classes share the worker: *arrivals*, which have not begun, and *started* sandboxes, which were preempted. Among the started
//! it goes round robin. Between the classes it goes by time: arrivals come first as long as they have credit; running them uses it up,
//! running a started sandbox gives it back, up to a quantum. So a short function waits behind long ones for one quantum, two if one of them
//! has just arrived, however many there are; and long ones get at least half of the core, however many short ones arrive.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a worker runs guests before it looks after connections again, if runs are shorter than a quantum.
pub const IO_INTERVAL: Duration = Duration::from_micros(100);

/// A started sandbox; the worker knows what is behind the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StartedId(pub u32);

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The worker has looked after connections and begins to run guests.
    Turn,
    /// It looked for an arrival and found none.
    NoArrival,
    /// What it was told to run or to kill is over.
    Ended {
        /// For how long it ran.
        ran: Duration,
    },
    /// What it was told to run was preempted.
    Preempted {
        /// Its number from now on.
        id: StartedId,
        /// When it must be over.
        deadline: Instant,
        /// For how long it ran.
        ran: Duration,
    },
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Take an arrival and run it; others' too if there is nothing else to do.
    Take {
        /// Whether to look in the queues of other workers.
        steal: bool,
    },
    /// Run this one.
    Resume(StartedId),
    /// Its deadline has passed: end it.
    Kill(StartedId),
    /// Look after connections, then come back at once.
    Io,
    /// There is nothing to do until somebody wakes the worker.
    Wait,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: StartedId,
    deadline: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Arrival,
    /// An arrival that runs before the worker's next turn.
    AtOnce,
    Started,
}

/// The state of one worker's schedule.
#[derive(Debug)]
pub struct Core {
    quantum: Duration,
    started: VecDeque<Entry>,
    /// No entry's deadline is earlier.
    earliest: Option<Instant>,
    /// How long arrivals may still run before the started, in nanoseconds; negative after an arrival ran for longer.
    credit: i64,
    running: Class,
    /// How long arrivals ran since the last turn, or since the worker last waited.
    at_once: Duration,
    turn_began: Option<Instant>,
    /// Whether something ended in this turn: a reply waits to be written.
    answered: bool,
    /// Whether there was no arrival when last asked for in this turn.
    dry: bool,
}

impl Core {
    /// A worker's schedule, with nothing to do.
    #[must_use]
    pub fn new(quantum: Duration) -> Core {
        Core {
            quantum,
            started: VecDeque::new(),
            earliest: None,
            credit: nanoseconds(quantum),
            running: Class::Arrival,
            at_once: Duration::ZERO,
            turn_began: None,
            answered: false,
            dry: false,
        }
    }

    /// Number of started sandboxes that wait for their turn.
    #[must_use]
    pub fn started(&self) -> usize {
        self.started.len()
    }

    /// Takes note of what happened and decides what to do next.
    pub fn step(&mut self, event: Event, now: Instant) -> Action {
        self.note(event, now);
        self.decide(now)
    }

    /// Whether a request that has just arrived may run at once, before the worker's next turn; `queued` says whether others wait. If so,
    /// [`Core::note`] what comes of it. After a while of this the worker's other duties come first, and others may help.
    pub fn may_run_at_once(&mut self, queued: bool) -> bool {
        let free = !queued && self.started.is_empty() && self.at_once < IO_INTERVAL;
        if free {
            self.running = Class::AtOnce;
        }
        free
    }

    /// Takes note that the worker is about to wait: nobody needs it.
    pub fn rest(&mut self) {
        self.at_once = Duration::ZERO;
    }

    /// Takes note of what happened.
    pub fn note(&mut self, event: Event, now: Instant) {
        match event {
            Event::Turn => {
                self.turn_began = Some(now);
                self.at_once = Duration::ZERO;
                self.answered = false;
                self.dry = false;
            }
            Event::NoArrival => self.dry = true,
            Event::Ended { ran } => {
                self.charge(ran);
                self.answered = true;
            }
            Event::Preempted { id, deadline, ran } => {
                self.charge(ran);
                self.earliest = Some(self.earliest.map_or(deadline, |earliest| earliest.min(deadline)));
                self.started.push_back(Entry { id, deadline });
            }
        }
    }

    /// The next started sandbox, for a worker that ends them all.
    pub fn drain(&mut self) -> Option<StartedId> {
        self.started.pop_front().map(|entry| entry.id)
    }

    fn charge(&mut self, ran: Duration) {
        match self.running {
            Class::Arrival => self.credit = self.credit.saturating_sub(nanoseconds(ran)),
            Class::AtOnce => {
                self.at_once += ran;
                self.credit = self.credit.saturating_sub(nanoseconds(ran));
            }
            Class::Started => self.credit = self.credit.saturating_add(nanoseconds(ran)).min(nanoseconds(self.quantum)),
        }
    }

    fn decide(&mut self, now: Instant) -> Action {
        if let Some(id) = self.expired(now) {
            self.running = Class::Started;
            return Action::Kill(id);
        }
        if self.dry && self.started.is_empty() {
            return Action::Wait;
        }
        if self.turn_began.is_some_and(|began| now.saturating_duration_since(began) >= IO_INTERVAL) {
            return Action::Io;
        }
        if self.started.is_empty() {
            // Nobody was kept waiting, so nothing is owed.
            self.credit = nanoseconds(self.quantum);
        }
        if !self.dry && self.credit > 0 {
            self.running = Class::Arrival;
            return Action::Take { steal: self.started.is_empty() };
        }
        if self.answered && !self.started.is_empty() {
            // No reply waits for a quantum of somebody else.
            return Action::Io;
        }
        match self.started.pop_front() {
            Some(entry) => {
                self.running = Class::Started;
                Action::Resume(entry.id)
            }
            None => Action::Wait,
        }
    }

    fn expired(&mut self, now: Instant) -> Option<StartedId> {
        if self.earliest? > now {
            return None;
        }
        let index = self.started.iter().position(|entry| entry.deadline <= now);
        let entry = index.and_then(|index| self.started.remove(index));
        if entry.is_none() {
            self.earliest = self.started.iter().map(|entry| entry.deadline).min();
        }
        entry.map(|entry| entry.id)
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_micros(500);
    const SOON: Duration = Duration::from_secs(3600);

    /// A worker that is played: guests are nothing but how long they still run, time passes only while they do.
    struct Played {
        core: Core,
        now: Instant,
        arrivals: VecDeque<Guest>,
        started: Vec<Option<Guest>>,
        ended: Vec<(&'static str, Duration, bool)>,
        turns: usize,
    }

    #[derive(Clone, Copy)]
    struct Guest {
        name: &'static str,
        left: Duration,
        began: Instant,
        deadline: Instant,
    }

    impl Played {
        fn new() -> Played {
            let now = Instant::now();
            let (arrivals, started, ended) = (VecDeque::new(), Vec::new(), Vec::new());
            Played { core: Core::new(QUANTUM), now, arrivals, started, ended, turns: 0 }
        }

        fn arrive(&mut self, name: &'static str, micros: u64, deadline: Duration) {
            let guest = Guest { name, left: Duration::from_micros(micros), began: self.now, deadline: self.now + deadline };
            self.arrivals.push_back(guest);
        }

        fn run(&mut self, mut guest: Guest) -> Event {
            let ran = guest.left.min(QUANTUM);
            self.now += ran;
            guest.left -= ran;
            if guest.left.is_zero() {
                self.ended.push((guest.name, self.now - guest.began, true));
                return Event::Ended { ran };
            }
            let id = StartedId(self.started.len() as u32);
            self.started.push(Some(guest));
            Event::Preempted { id, deadline: guest.deadline, ran }
        }

        /// Plays until the worker waits, or for that many actions; `at_turn` is asked for arrivals at the beginning of each turn.
        fn play(&mut self, actions: usize, mut at_turn: impl FnMut(&mut Played)) {
            let mut event = Event::Turn;
            for _ in 0..actions {
                if event == Event::Turn {
                    self.turns += 1;
                    at_turn(self);
                }
                event = match self.core.step(event, self.now) {
                    Action::Take { .. } => self.arrivals.pop_front().map_or(Event::NoArrival, |guest| self.run(guest)),
                    Action::Resume(id) => {
                        let guest = self.started[id.0 as usize].take().expect("is resumed once");
                        self.run(guest)
                    }
                    Action::Kill(id) => {
                        let guest = self.started[id.0 as usize].take().expect("is killed once");
                        self.ended.push((guest.name, self.now - guest.began, false));
                        Event::Ended { ran: Duration::ZERO }
                    }
                    Action::Io => Event::Turn,
                    Action::Wait => return,
                };
            }
        }

        fn names(&self) -> Vec<&'static str> {
            self.ended.iter().map(|(name, ..)| *name).collect()
        }
    }

    #[test]
    fn arrivals_run_in_their_order_and_then_the_worker_waits() {
        let mut played = Played::new();
        for name in ["a", "b", "c"] {
            played.arrive(name, 10, SOON);
        }
        played.play(100, |_| {});
        assert_eq!(played.names(), ["a", "b", "c"]);
        assert_eq!(played.turns, 1);
    }

    #[test]
    fn an_endless_loop_starves_nobody() {
        let mut played = Played::new();
        played.arrive("loop", u64::MAX / 2000, SOON);
        let mut count = 0;
        played.play(1_000, |played| {
            if count < 50 {
                count += 1;
                played.arrive("short", 10, SOON);
            }
        });
        assert_eq!(played.ended.len(), 50);
        for (_, took, _) in &played.ended {
            assert!(*took <= 2 * QUANTUM + Duration::from_micros(10), "{took:?}");
        }
        // Once the loop has had its first quantum.
        for (_, took, _) in &played.ended[1..] {
            assert!(*took <= QUANTUM + 2 * Duration::from_micros(10), "{took:?}");
        }
    }

    #[test]
    fn a_flood_of_arrivals_does_not_starve_what_was_started() {
        let mut played = Played::new();
        played.arrive("long", 5_000, SOON);
        played.play(5_000, |played| {
            while played.arrivals.len() < 100 {
                played.arrive("flood", 7, SOON);
            }
        });
        let long = played.ended.iter().find(|(name, ..)| *name == "long").expect("the long one ends");
        assert!(long.1 <= Duration::from_micros(2 * 5_000 + 600), "{:?}", long.1);
    }

    #[test]
    fn long_arrivals_and_the_started_take_turns() {
        let mut played = Played::new();
        for name in ["a", "b", "c", "d"] {
            played.arrive(name, 1_000, SOON);
        }
        played.play(1_000, |_| {});
        // Two quanta each, one as an arrival and one as a started sandbox.
        assert_eq!(played.names(), ["a", "b", "c", "d"]);
        assert_eq!(played.ended[1].1, 4 * QUANTUM);
    }

    #[test]
    fn a_deadline_kills_within_a_quantum_wherever_the_sandbox_stands_in_the_queue() {
        let mut played = Played::new();
        let deadline = Duration::from_micros(7_777);
        played.arrive("late", 1_000_000, deadline);
        for _ in 0..10 {
            played.arrive("other", 100_000, SOON);
        }
        played.play(100_000, |_| {});
        let late = played.ended.iter().find(|(name, ..)| *name == "late").expect("the late one ends");
        assert!(!late.2 && late.1 >= deadline && late.1 <= deadline + QUANTUM, "{late:?}");
        assert!(played.ended.iter().filter(|(name, _, whole)| *name == "other" && *whole).count() == 10);
    }

    #[test]
    fn connections_are_looked_after_at_least_once_a_quantum() {
        let mut played = Played::new();
        played.arrive("loop", u64::MAX / 2000, SOON);
        let mut last = None;
        played.play(2_000, |played| {
            let since = last.map(|last| played.now - last);
            assert!(since.is_none_or(|since| since <= QUANTUM + IO_INTERVAL), "{since:?}");
            last = Some(played.now);
            played.arrive("short", 30, SOON);
        });
        assert!(played.turns > 500);
    }

    #[test]
    fn no_reply_waits_for_a_quantum_of_another() {
        let mut core = Core::new(QUANTUM);
        let now = Instant::now();
        let late = now + SOON;
        assert_eq!(core.step(Event::Turn, now), Action::Take { steal: true });
        let preempted = Event::Preempted { id: StartedId(7), deadline: late, ran: QUANTUM };
        assert_eq!(core.step(preempted, now + QUANTUM), Action::Io);
        assert_eq!(core.step(Event::Turn, now), Action::Resume(StartedId(7)), "the arrival used the credit up");
        let preempted = Event::Preempted { id: StartedId(7), deadline: late, ran: QUANTUM };
        assert_eq!(core.step(preempted, now), Action::Take { steal: false });
        assert_eq!(core.step(Event::Ended { ran: Duration::from_micros(1) }, now), Action::Take { steal: false });
        assert_eq!(core.step(Event::NoArrival, now), Action::Io);
        assert_eq!(core.step(Event::Turn, now), Action::Take { steal: false });
        assert_eq!(core.step(Event::NoArrival, now), Action::Resume(StartedId(7)));
    }

    #[test]
    fn a_request_runs_at_once_only_if_nothing_waits() {
        let mut core = Core::new(QUANTUM);
        let now = Instant::now();
        assert!(!core.may_run_at_once(true));
        assert!(core.may_run_at_once(false));
        core.note(Event::Ended { ran: Duration::from_micros(3) }, now);
        assert!(core.may_run_at_once(false));
        core.note(Event::Preempted { id: StartedId(0), deadline: now + SOON, ran: QUANTUM }, now);
        assert!(!core.may_run_at_once(false));
    }

    #[test]
    fn running_at_once_ends_when_connections_have_waited_long_enough() {
        let mut core = Core::new(QUANTUM);
        let now = Instant::now();
        let mut count = 0;
        while core.may_run_at_once(false) {
            count += 1;
            core.note(Event::Ended { ran: Duration::from_micros(30) }, now);
        }
        assert_eq!(count, 4);
        core.rest();
        assert!(core.may_run_at_once(false));
        core.note(Event::Ended { ran: IO_INTERVAL }, now);
        assert!(!core.may_run_at_once(false));
        assert_eq!(core.step(Event::Turn, now), Action::Take { steal: true });
        assert!(core.may_run_at_once(false));
    }

    /// Whatever arrives: nothing is lost, nothing ends twice, and a deadline is kept to within a quantum.
    #[test]
    fn random_arrivals_all_end_once() {
        for seed in 1..50u64 {
            let mut state = seed;
            let mut random = move |below: u64| {
                // xorshift64
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % below
            };
            let mut played = Played::new();
            let mut arrived = 0;
            played.play(100_000, |played| {
                for _ in 0..random(4) {
                    if arrived < 200 {
                        arrived += 1;
                        played.arrive("any", 1 + random(3_000), Duration::from_micros(1 + random(100_000)));
                    }
                }
            });
            // The last turns may have brought nothing: play what is left.
            while arrived < 200 {
                arrived += 1;
                played.arrive("any", 100, SOON);
            }
            played.play(100_000, |_| {});
            assert_eq!(played.ended.len(), 200, "seed {seed}");
            assert_eq!(played.core.started(), 0, "seed {seed}");
        }
    }
}
