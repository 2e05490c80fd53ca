//! Schedules that are played: guests are nothing but how long they still run, time passes only while they do.

mod admission;
mod blocking;
mod classed;
mod giving;
mod levels;
mod random;
mod speculative;

use super::*;

const QUANTUM: Duration = Duration::from_micros(500);
const POLICIES: [Policy; 4] = [Policy::RoundRobin, Policy::RoundRobinStrict, Policy::Fifo, Policy::Edf];
const SOON: Duration = Duration::from_secs(3600);

impl Core {
    /// What a worker does in whose turn nothing else happens.
    fn step(&mut self, event: Event, now: Instant) -> Action {
        self.note(event, now);
        self.check();
        let action = self.decide(now);
        self.check();
        action
    }

    /// Everything that is counted is counted right. Looked at while it is little: a count that goes wrong does so before it is large.
    pub(super) fn check(&self) {
        if self.waiting > 64 {
            return;
        }
        let tasks = || {
            let of_groups = self.groups.iter().flat_map(Group::iter);
            of_groups.chain(self.tenants.iter().flat_map(|tenant| tenant.queue.iter()))
        };
        let started = |tasks: &mut dyn Iterator<Item = &Task>| {
            tasks.fold((0, 0), |(all, started), task| (all + 1, started + usize::from(task.started)))
        };
        assert_eq!((self.waiting, self.started), started(&mut tasks()));
        let mut of_tenants = vec![(0, 0); self.tenants.len()];
        for task in tasks() {
            let (all, started) = &mut of_tenants[task.tenant.0 as usize];
            (*all, *started) = (*all + 1, *started + usize::from(task.started));
        }
        assert!(self.tenants.iter().map(|tenant| (tenant.waiting, tenant.started)).eq(of_tenants));
        if self.classes.is_some() {
            for (index, tenant) in self.tenants.iter().enumerate() {
                let mut of_classes = [0; CLASSES];
                tasks().filter(|task| task.tenant.0 as usize == index).for_each(|task| of_classes[usize::from(task.class)] += 1);
                assert_eq!(tenant.sharing.waiting(), of_classes);
            }
        }
        if let Some(slack) = &self.slack {
            assert_eq!((slack.waiting(), slack.started()), started(&mut slack.iter()));
            assert!(slack.iter().all(|task| task.is_speculative && slack.has(task.id)));
        }
        for group in &self.groups {
            assert_eq!((group.waiting(), group.started()), started(&mut group.iter()));
        }
        assert_eq!(
            self.active,
            self.groups.chunks(self.groups_each).filter(|groups| groups.iter().any(|group| group.waiting() > 0)).count()
        );
        assert!(tasks().all(|task| !task.is_speculative));
        assert!(tasks().all(|task| self.earliest.is_some_and(|earliest| earliest <= task.deadline)));
    }

    fn is_blocked(&self, id: TaskId) -> bool {
        self.blocked.contains(id)
    }
}

/// A worker that is played.
struct Played {
    core: Core,
    now: Instant,
    /// By number.
    tasks: Vec<Guest>,
    ended: Vec<Ended>,
    given: Vec<TaskId>,
    turns: usize,
    /// Whether another worker has nothing to do.
    wanted: bool,
    /// What reading a request and writing its reply takes; so far in this turn.
    io: Duration,
    to_do: Duration,
}

#[derive(Clone, Copy)]
struct Guest {
    name: &'static str,
    left: Duration,
    task: Task,
}

#[derive(Clone, Copy, Debug)]
struct Ended {
    name: &'static str,
    tenant: u32,
    took: Duration,
    killed: Option<Why>,
}

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// SplitMix64.
fn random(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % below
}

impl Played {
    fn new(policy: Policy) -> Played {
        let now = Instant::now();
        let core = Core::new(policy, QUANTUM, 1, now);
        Played {
            core,
            now,
            tasks: Vec::new(),
            ended: Vec::new(),
            given: Vec::new(),
            turns: 0,
            wanted: false,
            io: Duration::ZERO,
            to_do: Duration::ZERO,
        }
    }

    fn arrive(&mut self, name: &'static str, micros: u64, deadline: Duration) {
        self.arrive_for(0, name, micros, deadline, Duration::MAX);
    }

    fn arrive_for(&mut self, tenant: u32, name: &'static str, micros: u64, deadline: Duration, cpu_max: Duration) {
        let id = TaskId(self.tasks.len() as u32);
        let (tenant, arrived, cpu) = (TenantId(tenant), self.now, Duration::ZERO);
        let function = self.function(tenant.0, name);
        let (age, deadline) = (u64::from(id.0), arrived + deadline);
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
            is_speculative: false,
            weight: 1,
        };
        self.tasks.push(Guest { name, left: Duration::from_micros(micros), task });
        self.core.note(Event::Arrived(task), self.now);
    }

    /// Functions are told apart by name, and those of different tenants.
    fn function(&self, tenant: u32, name: &str) -> FunctionId {
        let known = self.tasks.iter().find(|guest| (guest.task.tenant.0, guest.name) == (tenant, name));
        let next = || self.tasks.iter().map(|guest| guest.task.function.0 + 1).max().unwrap_or(0);
        known.map_or_else(|| FunctionId(next()), |guest| guest.task.function)
    }

    fn end(&mut self, id: TaskId, killed: Option<Why>) {
        let Guest { name, task, .. } = self.tasks[id.0 as usize];
        self.to_do += self.io;
        self.ended.push(Ended { name, tenant: task.tenant.0, took: self.now - task.arrived, killed });
    }

    fn run(&mut self, id: TaskId) -> Event {
        let guest = &mut self.tasks[id.0 as usize];
        let ran = guest.left.min(QUANTUM);
        self.now += ran;
        guest.left -= ran;
        guest.task.cpu += ran;
        guest.task.started = true;
        if guest.left.is_zero() {
            self.end(id, None);
            return Event::Ended { ran };
        }
        Event::Preempted { ran }
    }

    /// Plays until the worker waits, or for that many actions; `at_turn` is asked for arrivals at the beginning of each turn.
    fn play(&mut self, actions: usize, mut at_turn: impl FnMut(&mut Played)) {
        let mut event = Event::Turn;
        let mut asked = false;
        for _ in 0..actions {
            if event == Event::Turn {
                self.turns += 1;
                asked = false;
                at_turn(self);
            }
            event = match self.core.step(event, self.now) {
                Action::Run(id) => self.run(id),
                Action::Kill(id, why) => {
                    self.end(id, Some(why));
                    Event::Dropped
                }
                Action::Give(id) => {
                    self.given.push(id);
                    Event::Given
                }
                Action::Look => Event::Looked,
                Action::Slacken => Event::Slackens,
                Action::Io if self.wanted && !asked => {
                    asked = true;
                    Event::Wanted
                }
                Action::Io => {
                    self.now += std::mem::take(&mut self.to_do);
                    Event::Turn
                }
                Action::Wait => return,
            };
        }
    }

    fn names(&self) -> Vec<&'static str> {
        self.ended.iter().map(|ended| ended.name).collect()
    }

    fn find(&self, name: &str) -> Ended {
        *self.ended.iter().find(|ended| ended.name == name).unwrap_or_else(|| panic!("{name} ends"))
    }
}

#[test]
fn arrivals_run_in_their_order_and_then_the_worker_waits() {
    for policy in POLICIES {
        let mut played = Played::new(policy);
        for name in ["a", "b", "c"] {
            played.arrive(name, 10, SOON);
        }
        played.play(100, |_| {});
        assert_eq!(played.names(), ["a", "b", "c"]);
        assert_eq!(played.turns, 1);
    }
}

#[test]
fn an_endless_loop_starves_nobody() {
    let mut played = Played::new(Policy::RoundRobin);
    played.arrive("loop", u64::MAX / 2000, SOON);
    let mut count = 0;
    played.play(1_000, |played| {
        if count < 50 {
            count += 1;
            played.arrive("short", 10, SOON);
        }
    });
    assert_eq!(played.ended.len(), 50);
    for ended in &played.ended {
        assert!(ended.took <= 2 * QUANTUM + micros(10), "{ended:?}");
    }
    // Once the loop has had its first quantum.
    for ended in &played.ended[1..] {
        assert!(ended.took <= QUANTUM + 2 * micros(10), "{ended:?}");
    }
}

#[test]
fn what_is_to_be_killed_waits_for_its_turn_too() {
    let mut played = Played::new(Policy::RoundRobin);
    played.arrive("f", 1_000, SOON);
    played.play(20, |_| {});
    assert_eq!((played.ended.len(), played.core.waiting()), (1, 0));

    played.arrive_for(0, "costly", 5_000, SOON, QUANTUM);
    let mut event = Event::Turn;
    loop {
        event = match played.core.step(event, played.now) {
            Action::Io => Event::Turn,
            Action::Look => Event::Looked,
            Action::Run(_) => break,
            other => panic!("{other:?}"),
        };
    }
    played.core.note(Event::Preempted { ran: QUANTUM }, played.now);
    assert_eq!(played.core.waiting(), 1, "it has used more than it may");
    played.arrive("f", 1_000, SOON);
    played.arrive("f", 1_000, Duration::ZERO);
    assert_eq!(played.core.waiting(), 3, "and of two more, one cannot meet its deadline");
    assert_eq!(played.core.step(Event::Turn, played.now), Action::Kill(TaskId(1), Why::Cpu));
    assert_eq!(played.core.step(Event::Dropped, played.now), Action::Kill(TaskId(3), Why::Overload));
}

#[test]
fn a_flood_of_arrivals_does_not_starve_what_was_started() {
    let mut played = Played::new(Policy::RoundRobin);
    played.arrive("long", 5_000, SOON);
    played.play(5_000, |played| {
        while played.core.waiting() < 100 {
            played.arrive("flood", 7, SOON);
        }
    });
    let long = played.find("long");
    assert!(long.took <= micros(2 * 5_000 + 600), "{long:?}");
}

#[test]
fn functions_take_turns() {
    let mut played = Played::new(Policy::RoundRobin);
    for name in ["a", "b", "c", "d"] {
        played.arrive(name, 1_000, SOON);
    }
    played.play(1_000, |_| {});
    // Two quanta each, the second when each has had its first.
    assert_eq!(played.names(), ["a", "b", "c", "d"]);
    assert_eq!(played.ended[1].took, 6 * QUANTUM);
}

/// While both have something to run, one of weight 3 gets three times the time of one of weight 1, whatever each uses at once and however many it has.
#[test]
fn functions_get_shares_by_weight() {
    let mut played = Played::new(Policy::RoundRobin);
    for _ in 0..10 {
        played.arrive("light", 20_000, SOON);
    }
    for _ in 0..3 {
        played.arrive("heavy", 100_000, SOON);
    }
    played.tasks.iter_mut().filter(|guest| guest.name == "heavy").for_each(|guest| guest.task.weight = 3);
    let weighted: Vec<Task> = played.tasks.iter().map(|guest| guest.task).collect();
    // As they would have arrived.
    played.core = Core::new(Policy::RoundRobin, QUANTUM, 1, played.now);
    weighted.iter().for_each(|task| played.core.note(Event::Arrived(*task), played.now));
    played.play(300, |_| {});
    let used = |name| played.tasks.iter().filter(|guest| guest.name == name).map(|guest| guest.task.cpu).sum::<Duration>();
    let (heavy, light) = (used("heavy"), used("light"));
    assert!(light > 20 * QUANTUM, "{light:?}");
    let ratio = heavy.as_secs_f64() / light.as_secs_f64();
    assert!((2.8..3.2).contains(&ratio), "{heavy:?} to {light:?}");
}

#[test]
fn fifo_runs_each_to_its_end() {
    let mut played = Played::new(Policy::Fifo);
    for (name, micros) in [("long", 5_000), ("short", 10), ("middle", 700)] {
        played.arrive(name, micros, SOON);
    }
    played.play(1_000, |_| {});
    assert_eq!(played.names(), ["long", "short", "middle"]);
    assert_eq!(played.ended[0].took, micros(5_000));
}

#[test]
fn edf_runs_whose_deadline_is_earliest_also_in_place_of_one_that_has_begun() {
    let mut played = Played::new(Policy::Edf);
    played.arrive("late", 2_000, SOON);
    played.arrive("middle", 900, micros(10_000));
    let mut count = 0;
    played.play(1_000, |played| {
        count += 1;
        if count == 2 {
            played.arrive("urgent", 600, micros(2_000));
        }
    });
    assert_eq!(played.names(), ["urgent", "middle", "late"]);
    assert!(played.ended.iter().all(|ended| ended.killed.is_none()));
}

/// Whatever fits is done in time (the processor's use is below its capacity at every moment, less a quantum).
#[test]
fn edf_keeps_every_deadline_that_can_be_kept() {
    for seed in 1..30u64 {
        let mut played = Played::new(Policy::Edf);
        let (mut state, mut arrived, mut next) = (seed, 0, Duration::ZERO);
        let start = played.now;
        for _ in 0..20 {
            played.play(100_000, |played| {
                while arrived < 400 && played.now - start >= next {
                    arrived += 1;
                    let long = random(&mut state, 4) == 0;
                    // In the mean 1.1 ms of work every 2 ms.
                    let (run, deadline) = if long { (4_000, 60_000) } else { (150, 12_000) };
                    played.arrive(if long { "long" } else { "short" }, run, micros(deadline));
                    next += micros(500 + random(&mut state, 3_000));
                }
            });
            // Nothing to do until the next one comes.
            played.now = played.now.max(start + next);
        }
        let late = played.ended.iter().filter(|ended| ended.killed.is_some()).count();
        assert_eq!(late, 0, "seed {seed}");
    }
}

#[test]
fn a_deadline_kills_within_a_quantum_wherever_the_task_stands() {
    for policy in POLICIES {
        let mut played = Played::new(policy);
        let deadline = micros(7_777);
        played.arrive("other", 100_000, SOON);
        played.arrive("late", 1_000_000, deadline);
        for _ in 0..10 {
            played.arrive("other", 100_000, SOON);
        }
        played.play(100_000, |_| {});
        let late = played.find("late");
        assert_eq!(late.killed, Some(Why::Deadline), "{policy:?}");
        assert!(late.took >= deadline && late.took <= deadline + QUANTUM, "{policy:?}: {late:?}");
        assert_eq!(played.ended.iter().filter(|ended| ended.name == "other" && ended.killed.is_none()).count(), 11);
    }
}

#[test]
fn what_has_expired_is_dropped_before_it_runs() {
    let mut played = Played::new(Policy::Fifo);
    played.arrive("long", 10_000, SOON);
    for _ in 0..5 {
        played.arrive("expired", 1_000, micros(3_000));
    }
    played.play(10_000, |_| {});
    let expired = played.tasks.iter().filter(|guest| guest.name == "expired");
    assert!(expired.clone().all(|guest| guest.task.cpu.is_zero()), "none of them ran");
    assert_eq!(played.ended.iter().filter(|ended| ended.killed == Some(Why::Deadline)).count(), 5);
}

#[test]
fn a_budget_of_processor_time_is_kept_to_within_a_quantum() {
    let mut played = Played::new(Policy::RoundRobin);
    let budget = micros(3_300);
    played.arrive_for(0, "greedy", 1_000_000, SOON, budget);
    played.arrive_for(0, "modest", 3_000, SOON, budget);
    played.arrive("other", 50_000, SOON);
    played.play(100_000, |_| {});
    assert_eq!(played.find("greedy").killed, Some(Why::Cpu));
    let cpu = played.tasks[0].task.cpu;
    assert!(cpu >= budget && cpu < budget + QUANTUM, "{cpu:?}");
    assert_eq!(played.find("modest").killed, None);
    assert_eq!(played.find("other").killed, None);
}

/// How long a tenant's requests take, with and without a flood of another's: medians.
fn beside_flood(policy: Policy, run: u64, flood: u64) -> (Duration, Duration) {
    let took = |flooded: bool| {
        let mut played = Played::new(policy);
        let mut last = 0;
        played.play(30_000, |played| {
            while flooded && played.core.waiting() < 200 {
                played.arrive_for(1, "flood", flood, SOON, Duration::MAX);
            }
            // One client, which comes again when it was answered.
            let answered = played.ended.iter().filter(|ended| ended.tenant == 0).count();
            if answered == last && last < 40 {
                last += 1;
                played.arrive_for(0, "quiet", run, SOON, Duration::MAX);
            }
        });
        let mut times: Vec<_> = played.ended.iter().filter(|ended| ended.tenant == 0).map(|ended| ended.took).collect();
        times.sort_unstable();
        assert!(flooded || !times.is_empty());
        times[times.len() / 2]
    };
    (took(false), took(true))
}

#[test]
fn a_flood_at_one_tenant_leaves_the_others_within_twice_their_latency() {
    for policy in POLICIES {
        for flood in [300, 20_000] {
            let (alone, beside) = beside_flood(policy, 10_000, flood);
            assert!(beside <= 2 * alone + 2 * QUANTUM, "{policy:?}, flood of {flood} us: {alone:?} alone, {beside:?} beside it");
            // What is shorter than a quantum waits for one.
            let (_, beside) = beside_flood(policy, 100, flood);
            assert!(beside <= 2 * QUANTUM + micros(100), "{policy:?}, flood of {flood} us: {beside:?}");
        }
    }
}

#[test]
fn tenants_get_equal_parts_however_many_requests_they_send() {
    let mut played = Played::new(Policy::RoundRobin);
    let counts = [1, 10, 100];
    for (tenant, count) in counts.into_iter().enumerate() {
        for _ in 0..count {
            played.arrive_for(tenant as u32, "any", 1_000_000, SOON, Duration::MAX);
        }
    }
    played.play(3_000, |_| {});
    let cpu = |tenant| played.tasks.iter().filter(|guest| guest.task.tenant.0 == tenant).map(|guest| guest.task.cpu).sum();
    let cpus: [Duration; 3] = [cpu(0), cpu(1), cpu(2)];
    let (min, max) = (cpus.iter().min().unwrap(), cpus.iter().max().unwrap());
    assert!(*max - *min <= 2 * QUANTUM, "{cpus:?}");
}

#[test]
fn where_no_more_may_begin_functions_and_tenants_that_have_begun_nothing_are_passed_over() {
    for (policy, tenant) in [(Policy::RoundRobin, 0), (Policy::RoundRobin, 1), (Policy::RoundRobinStrict, 1)] {
        let mut played = Played::new(policy);
        for _ in 0..STARTED_MAX {
            played.arrive("begun", 100_000, SOON);
            let id = TaskId(played.tasks.len() as u32 - 1);
            let task = played.core.take_any(|task| task.id == id).expect("it waits");
            played.core.note(Event::Arrived(Task { started: true, ..task }), played.now);
        }
        played.arrive_for(tenant, "new", 10, SOON, Duration::MAX);
        // Each has a turn, and again.
        let mut event = Event::Turn;
        for _ in 0..4 {
            let action = played.core.step(event, played.now);
            let Action::Run(id) = action else { panic!("{policy:?}: {action:?}") };
            assert!(id.0 < STARTED_MAX as u32, "{policy:?}: a new one was begun");
            played.now += QUANTUM;
            played.core.note(Event::Preempted { ran: QUANTUM }, played.now);
            event = Event::Turn;
        }
    }
}

#[test]
fn connections_are_looked_after_at_least_once_a_quantum() {
    let mut played = Played::new(Policy::RoundRobin);
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
    let mut played = Played::new(Policy::RoundRobin);
    played.arrive("long", 10_000, SOON);
    let now = played.now;
    assert_eq!(played.core.step(Event::Turn, now), Action::Run(TaskId(0)));
    assert_eq!(played.core.step(Event::Preempted { ran: QUANTUM }, now + QUANTUM), Action::Io);
    assert_eq!(played.core.step(Event::Turn, now), Action::Run(TaskId(0)));
    played.core.note(Event::Preempted { ran: QUANTUM }, now);
    played.arrive("short", 1, SOON);
    assert_eq!(played.core.step(Event::Turn, now), Action::Run(TaskId(1)));
    assert_eq!(played.core.step(Event::Ended { ran: micros(1) }, now), Action::Io);
    assert_eq!(played.core.step(Event::Turn, now), Action::Run(TaskId(0)));
}

#[test]
fn a_request_runs_at_once_if_nothing_waits() {
    let mut played = Played::new(Policy::RoundRobin);
    played.arrive("any", 10, SOON);
    let (now, task) = (played.now, played.tasks[0].task);
    assert!(!played.core.may_run_at_once(task, played.now));
    assert_eq!(played.core.step(Event::Turn, now), Action::Run(task.id));
    played.core.note(Event::Ended { ran: micros(3) }, now);
    assert!(played.core.may_run_at_once(task, played.now));
    played.core.note(Event::Preempted { ran: QUANTUM }, now);
    assert!(!played.core.may_run_at_once(task, played.now));
    assert_eq!(played.core.waiting(), 1);
}

/// Where functions have no turns, what waits comes first, however short the request is.
#[test]
fn without_turns_of_functions_a_request_runs_at_once_only_if_nothing_waits() {
    for policy in [Policy::RoundRobinStrict, Policy::Fifo, Policy::Edf] {
        let mut played = Played::new(policy);
        played.arrive("short", 3, SOON);
        let (now, task) = (played.now, played.tasks[0].task);
        assert_eq!(played.core.step(Event::Turn, now), Action::Run(task.id));
        played.core.note(Event::Ended { ran: micros(3) }, now);
        assert!(played.core.may_run_at_once(task, played.now), "{policy:?}");
        played.core.note(Event::Ended { ran: micros(3) }, now);
        played.arrive("long", 1_000, SOON);
        assert!(!played.core.may_run_at_once(task, played.now), "{policy:?}");
    }
}

/// Beside long functions, too, while arrivals come first, and then there is another look for more of them before the next quantum.
#[test]
fn a_short_request_runs_at_once_before_what_has_begun_while_arrivals_come_first() {
    let mut played = Played::new(Policy::RoundRobin);
    played.arrive("long", 1_000_000, SOON);
    let mut now = played.now;
    // Its first quantum was an arrival's.
    for _ in 0..2 {
        assert_eq!(played.core.step(Event::Turn, now), Action::Run(TaskId(0)));
        now += QUANTUM;
        assert_eq!(played.core.step(Event::Preempted { ran: QUANTUM }, now), Action::Io);
    }
    let task = Task { id: TaskId(1), function: FunctionId(1), ..played.tasks[0].task };
    assert!(!played.core.may_run_at_once(task, played.now), "it is not known to be short");
    played.core.note(Event::Arrived(task), now);
    assert_eq!(played.core.step(Event::Turn, now), Action::Run(task.id));
    assert_eq!(played.core.step(Event::Ended { ran: micros(2) }, now), Action::Io);
    let mut looks = 0;
    loop {
        let mut runs = 0;
        while played.core.may_run_at_once(task, played.now) {
            runs += 1;
            played.core.note(Event::Ended { ran: micros(20) }, now);
        }
        match played.core.step(Event::Turn, now) {
            Action::Io => assert_eq!((runs, looks < 6), (5, true), "within IO_INTERVAL, and for a quantum in all"),
            Action::Run(_) => break,
            other => panic!("{other:?}"),
        }
        looks += 1;
    }
    assert_eq!(looks, 5, "five looks of 100 us are a quantum");
    played.core.note(Event::Preempted { ran: QUANTUM }, now);
    assert!(played.core.may_run_at_once(task, played.now));
    played.core.note(Event::Ended { ran: micros(2) }, now);
    for (function, run, is_short) in [(2, IO_INTERVAL, false), (3, IO_INTERVAL - micros(1), true)] {
        let function = FunctionId(function);
        played.core.group(function).ran_first(run);
        assert_eq!(played.core.may_run_at_once(Task { function, ..task }, played.now), is_short, "{run:?}");
    }
    played.core.note(Event::Ended { ran: micros(2) }, now);
    let other_tenant = Task { tenant: TenantId(1), ..task };
    assert!(!played.core.may_run_at_once(other_tenant, played.now), "whose turn it is decides the next turn");
}

#[test]
fn running_at_once_ends_when_connections_have_waited_long_enough() {
    let mut played = Played::new(Policy::RoundRobin);
    played.arrive("any", 10, SOON);
    let (now, task) = (played.now, played.tasks[0].task);
    assert_eq!(played.core.drain(), Some(task.id));
    let mut count = 0;
    while played.core.may_run_at_once(task, played.now) {
        count += 1;
        played.core.note(Event::Ended { ran: micros(30) }, now);
    }
    assert_eq!(count, 4);
    played.core.rest();
    assert!(played.core.may_run_at_once(task, played.now));
    played.core.note(Event::Ended { ran: IO_INTERVAL }, now);
    assert!(!played.core.may_run_at_once(task, played.now));
    assert_eq!(played.core.step(Event::Turn, now), Action::Look);
    assert_eq!(played.core.step(Event::Looked, now), Action::Wait);
    assert!(played.core.may_run_at_once(task, played.now));
}

#[test]
fn with_as_many_started_as_there_may_be_none_is_begun() {
    let mut played = Played::new(Policy::RoundRobinStrict);
    played.play(5_000, |played| {
        while played.tasks.len() < STARTED_MAX + 100 {
            played.arrive_for(played.tasks.len() as u32 % 3, "long", 100_000, SOON, Duration::MAX);
        }
    });
    let begun = played.tasks.iter().filter(|guest| guest.task.started).count();
    assert_eq!(begun, STARTED_MAX);
    played.play(1_000_000, |_| {});
    assert_eq!(played.ended.len(), STARTED_MAX + 100);
}

/// Clients that come back as soon as they are answered: what it takes to read and answer them is theirs, so that they cannot have more than
/// half of the worker while a long function runs.
#[test]
fn reading_and_answering_arrivals_counts_as_theirs() {
    let mut played = Played::new(Policy::RoundRobin);
    played.io = micros(9);
    played.arrive("long", u64::MAX / 2_000, SOON);
    played.play(20_000, |played| {
        while played.core.waiting() < 11 {
            played.arrive("ping", 2, SOON);
        }
    });
    let all = played.now - played.tasks[0].task.arrived;
    let long = played.tasks[0].task.cpu.as_secs_f64() / all.as_secs_f64();
    assert!((0.4..0.7).contains(&long), "the long function had {long:.2} of the time");
    let slowest = played.ended.iter().filter(|ended| ended.name == "ping").map(|ended| ended.took).max();
    assert!(slowest.is_some_and(|slowest| slowest <= 2 * QUANTUM + micros(100)), "{slowest:?}");
}

/// What connections cost counts once, beside what was run. One client, whose next request comes when its reply has been written.
#[test]
fn a_function_is_charged_for_its_runs_and_for_its_connections_once() {
    let mut played = Played::new(Policy::RoundRobin);
    played.arrive("long", u64::MAX / 2_000, SOON);
    let (mut event, mut shorts) = (Event::Turn, 0);
    for _ in 0..2_000 {
        played.core.note(event, played.now);
        if event == Event::Turn && played.core.waiting() < 2 {
            played.arrive("short", 400, SOON);
        }
        event = match played.core.decide(played.now) {
            Action::Run(id) => played.run(id),
            Action::Io => {
                // 400 us and 100 for its reply, as much as a quantum.
                played.now += micros(if matches!(event, Event::Ended { .. }) { 100 } else { 0 });
                shorts += usize::from(matches!(event, Event::Ended { .. }));
                Event::Turn
            }
            other => panic!("{other:?}"),
        };
    }
    let quanta = played.tasks[0].task.cpu.as_secs_f64() / QUANTUM.as_secs_f64();
    assert!((0.9..1.1).contains(&(shorts as f64 / quanta)), "{shorts} short ones beside {quanta} quanta");
}

/// Long requests that come in a burst, as those do that were answered in a burst, do not all stand before a short one.
#[test]
fn a_burst_of_long_arrivals_does_not_hold_up_a_short_function() {
    let mut played = Played::new(Policy::RoundRobin);
    played.arrive("long", 5_000, SOON);
    played.arrive("ping", 2, SOON);
    played.play(1_000, |_| {});
    for _ in 0..20 {
        played.arrive("long", 5_000, SOON);
    }
    played.ended.clear();
    let mut pings = 0;
    played.play(10_000, |played| {
        if pings < 50 {
            pings += 1;
            played.arrive("ping", 2, SOON);
        }
    });
    let slowest = played.ended.iter().filter(|ended| ended.name == "ping").map(|ended| ended.took).max();
    assert!(slowest.is_some_and(|slowest| slowest <= 3 * QUANTUM), "{slowest:?}");
    assert_eq!(played.ended.iter().filter(|ended| ended.name == "long").count(), 20);
}

/// A function whose arrivals end without having run (the client has gone, its deadline has passed, there is no sandbox) does not look short for it.
#[test]
fn what_ends_without_running_says_nothing_about_its_function() {
    let mut played = Played::new(Policy::RoundRobin);
    let now = played.now;
    let run = |played: &mut Played, name, event| {
        played.arrive(name, 5_000, SOON);
        let task = played.tasks.last().unwrap().task;
        assert_eq!(played.core.step(Event::Turn, now), Action::Run(task.id));
        played.core.note(event, now);
        task
    };
    run(&mut played, "long", Event::Ended { ran: micros(5_000) });
    let task = (0..20).map(|_| run(&mut played, "long", Event::Dropped)).last().unwrap();
    run(&mut played, "other", Event::Preempted { ran: QUANTUM });
    assert!(!played.core.may_run_at_once(task, played.now), "5 ms are not short");
}

/// A task that ran within the turn of what called it has used its own function's time, and none of its caller's.
#[test]
fn what_ran_within_its_callers_turn_has_used_its_own_functions_time() {
    for (called, first) in [("a", "b"), ("b", "a")] {
        let mut played = Played::new(Policy::RoundRobin);
        for name in ["a", "b", "caller"] {
            played.arrive(name, 10, SOON);
        }
        played.play(100, |_| {});
        let now = played.now;
        played.arrive("caller", 10, SOON);
        let caller = played.tasks.last().unwrap().task;
        assert_eq!(played.core.step(Event::Turn, now), Action::Run(caller.id));
        let task = played.tasks.iter().find(|guest| guest.name == called).unwrap().task;
        let ran = micros(400);
        played.core.note(Event::Called { task: Task { id: TaskId(99), started: false, ..task }, ran, is_over: true }, now);
        played.arrive("a", 10, SOON);
        played.arrive("b", 10, SOON);
        played.core.note(Event::Returned { ran: micros(10) }, now);
        let ended = played.ended.len();
        played.play(100, |_| {});
        assert_eq!(played.names()[ended], first, "{called} was called");
        assert_eq!(
            played.core.groups[task.function.0 as usize].first_run(),
            Some((micros(20) + ran) / 3),
            "it has run twice for itself"
        );
    }
}

/// What follows goes on before what waits, and not for longer than a quantum between two turns.
#[test]
fn what_follows_goes_on_until_a_quantum_is_over() {
    let mut played = Played::new(Policy::RoundRobin);
    let now = played.now;
    played.arrive("a", 10, SOON);
    played.play(100, |_| {});
    let task = played.tasks.last().unwrap().task;
    let at_once = |played: &mut Played, ran| {
        let ran_at_once = played.core.may_go_on_at_once(task);
        if ran_at_once {
            played.core.note(Event::Returned { ran }, now);
        }
        ran_at_once
    };
    assert!(at_once(&mut played, IO_INTERVAL));
    assert!(!played.core.may_run_at_once(task, now), "what arrives waits for the worker's turn");
    played.arrive("other", 10, SOON);
    let times = (0..100).take_while(|_| at_once(&mut played, QUANTUM / 10)).count();
    assert_eq!(times, usize::try_from((QUANTUM - IO_INTERVAL).as_micros().div_ceil((QUANTUM / 10).as_micros())).unwrap());
    // The turn comes, and the next time begins.
    let waiting = played.tasks.last().unwrap().task;
    assert_eq!(played.core.step(Event::Turn, now), Action::Run(waiting.id));
    played.core.note(Event::Ended { ran: micros(10) }, now);
    assert!(at_once(&mut played, micros(10)));
}
