//! Mixes of functions on one simulated core: what each waits for in which order, in simulated time. The figures are golden: a change of the order that changes them is seen.

use super::*;
use std::collections::BTreeMap;

const QUANTUM: Duration = Duration::from_micros(500);

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between 0 and 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A function of a mix.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    /// Of all invocations, in parts.
    weight: f64,
    /// Microseconds of the processor before, between and behind its waits.
    cpu: &'static [f64],
    /// Microseconds of each wait.
    wait: f64,
    /// By how much the processor time varies, as a part of it.
    spread: f64,
    /// This part of the invocations takes so many times as long.
    tail: (f64, f64),
}

const fn kind(name: &'static str, weight: f64, cpu: &'static [f64], wait: f64) -> Kind {
    Kind { name, weight, cpu, wait, spread: 0.2, tail: (0.0, 1.0) }
}

/// The name of those that take many times as long as others of their function.
const LONG: &str = "long";

/// How a simulation is run.
struct Setting<'a> {
    policy: Policy,
    kinds: &'a [Kind],
    /// For so many seconds so much of the core, one after the other.
    loads: &'a [(f64, f64)],
    deadline: Duration,
    seed: u64,
}

impl Setting<'_> {
    /// The load at that time; none when it is over.
    fn load(&self, time: Duration) -> Option<f64> {
        let mut left = time.as_secs_f64();
        let load = self.loads.iter().find(|(seconds, _)| {
            left -= seconds;
            left < 0.0
        });
        load.map(|(_, load)| *load)
    }
}

/// What became of a function's invocations.
#[derive(Default, Debug)]
struct Fate {
    /// How long those took that were answered, in microseconds, in order.
    took: Vec<f64>,
    late: usize,
    /// When those arrived that were shed, in seconds.
    shed: Vec<f64>,
}

impl Fate {
    fn percentile(&self, part: f64) -> f64 {
        let index = ((self.took.len() as f64 * part) as usize).min(self.took.len().saturating_sub(1));
        self.took.get(index).copied().unwrap_or(f64::NAN)
    }

    fn p99_ms(&self) -> f64 {
        self.percentile(0.99) / 1_000.0
    }

    fn all(&self) -> usize {
        self.took.len() + self.late + self.shed.len()
    }
}

struct Guest {
    /// Its function's, or another where it is one of those that take long.
    name: &'static str,
    task: Task,
    /// Bursts that are left, the next one last; none for one that has ended.
    left: Vec<Duration>,
    wait: Duration,
}

/// Plays a mix: Poisson arrivals, guests that compute and wait, a worker that never does anything else.
fn simulate(setting: &Setting<'_>) -> BTreeMap<&'static str, Fate> {
    let Setting { policy, kinds, deadline, seed, .. } = *setting;
    let mut random = Random(seed);
    let weights: f64 = kinds.iter().map(|kind| kind.weight).sum();
    let mean = |kind: &Kind| kind.cpu.iter().sum::<f64>() * (1.0 + kind.tail.0 * (kind.tail.1 - 1.0));
    let mean: f64 = kinds.iter().map(|kind| kind.weight / weights * mean(kind)).sum();
    let start = Instant::now();
    let mut core = Core::new(policy, QUANTUM, 1, start);
    let names = kinds.iter().map(|kind| kind.name).chain([LONG]);
    let mut fates: BTreeMap<&'static str, Fate> = names.map(|name| (name, Fate::default())).collect();
    let (mut guests, mut now, mut next_arrival) = (Vec::<Guest>::new(), start, start);
    let mut event = Event::Turn;
    loop {
        while let Some(load) = setting.load(next_arrival - start).filter(|_| next_arrival <= now) {
            let mut pick = random.part() * weights;
            let index = kinds.iter().position(|kind| {
                pick -= kind.weight;
                pick < 0.0
            });
            let index = index.unwrap_or(kinds.len() - 1);
            let kind = &kinds[index];
            let times = if random.part() < kind.tail.0 { kind.tail.1 } else { 1.0 };
            let mut burst = |cpu: &f64| {
                Duration::from_nanos((cpu * times * 1_000.0 * (1.0 + kind.spread * (2.0 * random.part() - 1.0))) as u64)
            };
            let left = kind.cpu.iter().rev().map(&mut burst).collect();
            let id = TaskId(guests.len() as u32);
            let task = Task {
                id,
                tenant: TenantId(0),
                function: FunctionId(index as u32),
                age: guests.len() as u64,
                arrived: next_arrival,
                deadline: next_arrival + deadline,
                cpu_max: Duration::MAX,
                cpu: Duration::ZERO,
                started: false,
                level: 0,
                class: 0,
                is_speculative: false,
                weight: 1,
            };
            let wait = Duration::from_nanos((kind.wait * 1_000.0) as u64);
            let name = if times > 1.0 { LONG } else { kind.name };
            guests.push(Guest { name, task, left, wait });
            core.note(Event::Arrived(task), now);
            next_arrival += Duration::from_nanos((-(1.0 - random.part()).ln() * mean * 1_000.0 / load) as u64);
        }
        core.note(event, now);
        event = match core.decide(now) {
            Action::Run(id) => {
                let guest = &mut guests[id.0 as usize];
                let ran = guest.left.last().copied().unwrap_or_default().min(QUANTUM);
                now += ran;
                let left = guest.left.last_mut().expect("it has not ended");
                *left -= ran;
                if !left.is_zero() {
                    Event::Preempted { ran }
                } else if guest.left.len() > 1 {
                    guest.left.pop();
                    Event::Blocked { ran, until: Some(now + guest.wait) }
                } else {
                    let took = now - guest.task.arrived;
                    fates.get_mut(guest.name).expect("a kind").took.push(took.as_nanos() as f64 / 1_000.0);
                    Event::Ended { ran }
                }
            }
            Action::Kill(id, why) => {
                let Guest { name, task, .. } = &guests[id.0 as usize];
                let fate = fates.get_mut(name).expect("a kind");
                match why {
                    Why::Overload => fate.shed.push((task.arrived - start).as_secs_f64()),
                    Why::Deadline | Why::Cpu | Why::Unwanted | Why::Stopping => fate.late += 1,
                }
                Event::Dropped
            }
            Action::Look => Event::Looked,
            Action::Io => Event::Turn,
            Action::Wait => {
                let arrival = setting.load(next_arrival - start).map(|_| next_arrival);
                let Some(next) = core.alarm().into_iter().chain(arrival).min() else { break };
                now = now.max(next);
                Event::Turn
            }
            Action::Slacken => unreachable!("nothing is speculative"),
            Action::Give(_) => unreachable!("no other worker wants any"),
        };
    }
    assert_eq!(core.waiting(), 0);
    fates.values_mut().for_each(|fate| fate.took.sort_by(f64::total_cmp));
    assert_eq!(fates.values().map(Fate::all).sum::<usize>(), guests.len(), "each ends once");
    fates
}

const IO: Kind = kind("io", 1.0, &[100.0, 100.0, 100.0, 100.0, 100.0], 1_000.0);
const HOG: Kind = kind("hog", 0.05, &[20_000.0], 0.0);
const ORDERS: Kind = kind("orders", 0.6, &[250.0, 250.0], 2_000.0);
const RESIZE: Kind = kind("resize", 0.3, &[2_800.0], 0.0);
const RNN: Kind = kind("rnn", 0.1, &[11_000.0], 0.0);
const BIMODAL: Kind = Kind { tail: (0.05, 100.0), ..kind("bimodal", 1.0, &[200.0], 0.0) };

const MIXES: [(&str, &[Kind]); 4] =
    [("io", &[IO]), ("io and hog", &[IO, HOG]), ("orders, resize and rnn", &[ORDERS, RESIZE, RNN]), ("bimodal", &[BIMODAL])];

fn mix(policy: Policy, kinds: &[Kind], load: f64) -> BTreeMap<&'static str, Fate> {
    simulate(&Setting { policy, kinds, loads: &[(60.0, load)], deadline: Duration::from_secs(100), seed: 7 })
}

/// The 99th percentile of each function of each mix at three loads, in milliseconds.
fn table(policy: Policy) -> String {
    let mut table = String::new();
    for (name, kinds) in MIXES {
        for load in [0.5, 0.85, 0.95] {
            let fates = mix(policy, kinds, load);
            assert!(fates.values().all(|fate| fate.late + fate.shed.len() == 0), "{name} at {load}");
            let figures = fates.iter().filter(|(_, fate)| !fate.took.is_empty());
            let figures: Vec<_> = figures.map(|(name, fate)| format!("{name} {:.1}", fate.p99_ms())).collect();
            table += &format!("{name} at {load}: {}\n", figures.join(", "));
        }
    }
    table
}

/// The order as it is. If a change is wanted, so are its figures.
#[test]
fn the_figures_of_the_order_are_as_they_were() {
    assert_eq!(table(Policy::RoundRobin), GOLDEN, "{}", table(Policy::RoundRobin));
}

/// In turn regardless of function and age, as the order of Sledge's paper.
#[test]
fn no_function_of_any_mix_waits_longer_than_with_plain_turns() {
    for (name, kinds) in MIXES {
        for load in [0.5, 0.85, 0.95] {
            let (ours, plain) = (mix(Policy::RoundRobin, kinds, load), mix(Policy::RoundRobinStrict, kinds, load));
            for (function, fate) in ours.iter().filter(|(_, fate)| !fate.took.is_empty()) {
                let (ours, plain) = (fate.p99_ms(), plain[function].p99_ms());
                assert!(ours <= 1.05 * plain, "{name} at {load}: {function} {ours:.1} ms, {plain:.1} ms in plain turns");
            }
        }
    }
}

/// Ten endless loops, and a hundred requests of the same function that are not.
#[test]
fn endless_loops_do_not_stand_before_others_of_their_function() {
    let p99 = |loops: usize| {
        let start = Instant::now();
        let mut core = Core::new(Policy::RoundRobin, QUANTUM, 1, start);
        let (mut random, mut now, mut event) = (Random(3), start, Event::Turn);
        let mut arrivals: Vec<Duration> = vec![Duration::ZERO; loops];
        let mut time = Duration::from_millis(50);
        arrivals.extend((0..100).map(|_| {
            time += Duration::from_micros(random.next() % 8_000);
            time
        }));
        let mut left: Vec<Duration> = (0..arrivals.len())
            .map(|index| Duration::from_micros(if index < loops { u64::MAX / 2_000 } else { 1_000 }))
            .collect();
        let (mut next, mut took) = (0, Vec::new());
        while took.len() < 100 {
            while next < arrivals.len() && start + arrivals[next] <= now {
                let arrived = start + arrivals[next];
                let (id, age, deadline) = (TaskId(next as u32), next as u64, arrived + Duration::from_secs(3_600));
                let (tenant, function, cpu_max, cpu) = (TenantId(0), FunctionId(0), Duration::MAX, Duration::ZERO);
                core.note(
                    Event::Arrived(Task {
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
                    }),
                    now,
                );
                next += 1;
            }
            core.note(event, now);
            event = match core.decide(now) {
                Action::Run(id) => {
                    let left = &mut left[id.0 as usize];
                    let ran = (*left).min(QUANTUM);
                    *left -= ran;
                    now += ran;
                    if left.is_zero() {
                        took.push((now - start).saturating_sub(arrivals[id.0 as usize]));
                        Event::Ended { ran }
                    } else {
                        Event::Preempted { ran }
                    }
                }
                Action::Look => Event::Looked,
                Action::Io => Event::Turn,
                Action::Wait => {
                    now = start + arrivals[next];
                    Event::Turn
                }
                other => panic!("{other:?}"),
            };
        }
        took.sort_unstable();
        took[98]
    };
    let (alone, beside) = (p99(0), p99(10));
    assert!(beside <= 2 * alone, "{alone:?} alone, {beside:?} beside ten endless loops");
}

/// What is answered in time is at least 0.95 of what the core can do, whatever comes; and none of the processor time goes to what is late.
#[test]
fn what_cannot_meet_its_deadline_is_shed_before_it_costs_anything() {
    let kinds = [kind("f", 1.0, &[1_700.0], 0.0)];
    for load in [1.2, 1.7, 4.0, 10.0] {
        let loads = [(20.0, load), (10.0, 0.5)];
        let setting =
            Setting { policy: Policy::RoundRobin, kinds: &kinds, loads: &loads, deadline: Duration::from_secs(1), seed: 7 };
        let fate = &simulate(&setting)["f"];
        // Of both loads, the second of which is all answered.
        let possible = (20.0 + 10.0 * 0.5) / 0.001_7;
        let good = fate.took.len() as f64 / possible;
        assert!(good >= 0.95, "load {load}: {good:.2} of what is possible");
        assert_eq!(fate.late, 0, "load {load}");
        assert!(fate.p99_ms() < 1_000.0, "load {load}: {}", fate.p99_ms());
        let last = fate.shed.iter().copied().fold(0.0, f64::max);
        assert!(last < 21.0, "load {load}: one that came at {last} s was shed");
    }
}

/// With several functions that are all too many, too.
#[test]
fn overload_of_several_functions_costs_none_of_them_its_share() {
    let kinds =
        [kind("short", 0.9, &[300.0], 0.0), kind("long", 0.1, &[20_000.0], 0.0), kind("io", 0.3, &[200.0, 200.0], 5_000.0)];
    for load in [1.5, 5.0] {
        let setting = Setting {
            policy: Policy::RoundRobin,
            kinds: &kinds,
            loads: &[(30.0, load)],
            deadline: Duration::from_secs(1),
            seed: 11,
        };
        let fates = simulate(&setting);
        let used: f64 = kinds.iter().map(|kind| fates[kind.name].took.len() as f64 * kind.cpu.iter().sum::<f64>() / 1e6).sum();
        assert!(used >= 0.93 * 30.0, "load {load}: {used:.1} s of 30 were good for something");
        // None wants more than it gets, but the long one.
        assert!(fates["short"].shed.len() + fates["io"].shed.len() == 0 || load > 4.0, "load {load}");
    }
}

/// As [`table`] prints it.
const GOLDEN: &str = "\
io at 0.5: io 5.4
io at 0.85: io 11.3
io at 0.95: io 26.4
io and hog at 0.5: hog 83.7, io 6.6
io and hog at 0.85: hog 324.5, io 9.1
io and hog at 0.95: hog 987.3, io 10.1
orders, resize and rnn at 0.5: orders 3.8, resize 15.4, rnn 53.6
orders, resize and rnn at 0.85: orders 5.0, resize 50.1, rnn 154.6
orders, resize and rnn at 0.95: orders 5.8, resize 86.3, rnn 385.9
bimodal at 0.5: bimodal 2.4, long 94.8
bimodal at 0.85: bimodal 2.9, long 887.2
bimodal at 0.95: bimodal 3.0, long 1595.6
";
