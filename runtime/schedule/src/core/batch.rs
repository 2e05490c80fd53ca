//! Microtasks with classes on one simulated core, in simulated time. The figures are golden.
//!
//! The batch of the paper's sort, made small: 400 invocations, a fixed number in flight. Each reads (8 times 60 us of the processor and a wait of 5 ms), processes (10 ms) and writes
//! (as it reads); a last 60 us end it. That is 4.41 s of the processor in all.

use super::*;
use crate::classes::{Classes, Microtask, Shares, Site};

const QUANTUM: Duration = Duration::from_micros(500);
const WAIT: Duration = Duration::from_millis(5);

const READ: Site = Site(1);
const PROCESS: Site = Site(2);
const WRITE: Site = Site(3);

/// A stretch of the processor, and how it ends.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    microtask: Microtask,
    cpu: Duration,
    then: Then,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Waits(Duration),
    Phase,
    Ends,
}

/// What annotations say: how long reading, processing and writing computes at a time.
type Declared = [Duration; 3];

const RIGHT: Declared = [micros(60), micros(10_000), micros(60)];

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// What one invocation does. With annotations its guest says where a phase begins; without, all reads come from one place and all writes from another.
fn script(declared: Option<Declared>) -> VecDeque<Stretch> {
    let [read, process, write] = declared.map_or([None; 3], |declared| declared.map(Some));
    let stretch = |site, declared, cpu, then| Stretch { microtask: Microtask { site, declared }, cpu: micros(cpu), then };
    let mut all = VecDeque::new();
    // The first begins where the invocation does, and each of the others where the one before it called.
    let entry = if declared.is_some() { READ } else { Site::ENTRY };
    all.push_back(stretch(entry, read, 60, Then::Waits(WAIT)));
    all.extend([stretch(READ, read, 60, Then::Waits(WAIT)); 7]);
    if declared.is_some() {
        all.push_back(stretch(READ, read, 0, Then::Phase));
        all.push_back(stretch(PROCESS, process, 10_000, Then::Phase));
        all.push_back(stretch(WRITE, write, 60, Then::Waits(WAIT)));
    } else {
        all.push_back(stretch(READ, None, 10_060, Then::Waits(WAIT)));
    }
    all.extend([stretch(WRITE, write, 60, Then::Waits(WAIT)); 7]);
    all.push_back(stretch(WRITE, write, 60, Then::Ends));
    all
}

/// Of a mix: how many are there in all and in flight, for whom, and what each does.
struct Kind {
    tenant: u32,
    count: usize,
    in_flight: usize,
    script: VecDeque<Stretch>,
}

fn batch(in_flight: usize, declared: Option<Declared>) -> Kind {
    Kind { tenant: 0, count: 400, in_flight, script: script(declared) }
}

struct Guest {
    kind: usize,
    arrived: Duration,
    left: VecDeque<Stretch>,
    /// Since when it could go on with what stands first.
    ready: Duration,
}

/// What was seen of a kind.
#[derive(Debug, Default, Clone)]
struct Seen {
    /// When the last one ended.
    makespan: Duration,
    /// From when an invocation could go on with its longest stretch to when that had run.
    process: Vec<Duration>,
    took: Vec<Duration>,
    cpu: Duration,
    /// When each ended.
    ended: Vec<Duration>,
}

impl Seen {
    fn process_ms(&self) -> f64 {
        self.process.iter().sum::<Duration>().as_secs_f64() * 1_000.0 / self.process.len() as f64
    }
}

/// Plays kinds until all have ended, or until a time.
fn play(policy: Policy, classes: Option<Classes>, kinds: &[Kind], until: Duration) -> Vec<Seen> {
    let start = Instant::now();
    let mut core = Core::new(policy, QUANTUM, 1, start);
    core.set_classes(classes);
    let (mut seen, mut sent) = (vec![Seen::default(); kinds.len()], vec![0; kinds.len()]);
    let mut guests: Vec<Guest> = Vec::new();
    let (mut now, mut event) = (start, Event::Turn);
    while now - start < until {
        for (index, kind) in kinds.iter().enumerate() {
            while sent[index] < kind.count && sent[index] - seen[index].took.len() < kind.in_flight {
                sent[index] += 1;
                let id = TaskId(guests.len() as u32);
                core.announce(id, kind.script[0].microtask);
                let (tenant, function) = (TenantId(kind.tenant), FunctionId(index as u32));
                core.note(Event::Arrived(task(id, tenant, function, now)), now);
                guests.push(Guest { kind: index, arrived: now - start, left: kind.script.clone(), ready: now - start });
            }
        }
        core.note(event, now);
        event = match core.decide(now) {
            Action::Run(id) => {
                let guest = &mut guests[id.0 as usize];
                let seen = &mut seen[guest.kind];
                let stretch = guest.left.front_mut().expect("it has not ended");
                let ran = stretch.cpu.min(QUANTUM);
                (now, stretch.cpu) = (now + ran, stretch.cpu - ran);
                seen.cpu += ran;
                if stretch.cpu.is_zero() {
                    let (then, whole) =
                        (stretch.then, kinds[guest.kind].script[kinds[guest.kind].script.len() - guest.left.len()].cpu);
                    guest.left.pop_front();
                    if whole >= micros(5_000) {
                        seen.process.push(now - start - guest.ready);
                    }
                    if let Some(next) = guest.left.front() {
                        core.announce(id, next.microtask);
                    }
                    match then {
                        Then::Waits(wait) => {
                            guest.ready = now - start + wait;
                            Event::Blocked { ran, until: Some(now + wait) }
                        }
                        Then::Phase => {
                            // What begins without a wait could have gone on since the one before it could.
                            guest.ready = if whole.is_zero() { guest.ready } else { now - start };
                            Event::Phase { ran }
                        }
                        Then::Ends => {
                            seen.took.push(now - start - guest.arrived);
                            seen.ended.push(now - start);
                            seen.makespan = now - start;
                            Event::Ended { ran }
                        }
                    }
                } else {
                    Event::Preempted { ran }
                }
            }
            Action::Look => Event::Looked,
            Action::Io => Event::Turn,
            Action::Wait => {
                let Some(alarm) = core.alarm() else { break };
                now = now.max(alarm);
                Event::Turn
            }
            other => panic!("{other:?}"),
        };
        core.check();
    }
    seen
}

fn task(id: TaskId, tenant: TenantId, function: FunctionId, now: Instant) -> Task {
    Task {
        id,
        tenant,
        function,
        weight: 1,
        age: id.0.into(),
        arrived: now,
        deadline: now + Duration::from_secs(1_000),
        cpu_max: Duration::MAX,
        cpu: Duration::ZERO,
        started: false,
        level: 0,
        class: 0,
        is_speculative: false,
    }
}

const FOREVER: Duration = Duration::from_secs(1_000);

/// The orders that are compared.
fn orders() -> [(&'static str, Policy, Option<Classes>, Option<Declared>); 7] {
    let inferred = Classes { believes: false, ..Classes::default() };
    let free = Classes { limits: false, ..Classes::default() };
    // As many cores for each as the batch needs.
    let fixed = Classes { shares: Shares::Static([2, 1, 1, 20]), ..Classes::default() };
    [
        ("turns", Policy::RoundRobinStrict, None, None),
        ("oldest first", Policy::RoundRobin, None, None),
        ("inferred, all begin", Policy::RoundRobin, Some(Classes { limits: false, ..inferred }), None),
        ("declared, all begin", Policy::RoundRobin, Some(free), Some(RIGHT)),
        ("inferred", Policy::RoundRobin, Some(inferred), None),
        ("declared", Policy::RoundRobin, Some(Classes::default()), Some(RIGHT)),
        ("declared, static", Policy::RoundRobin, Some(fixed), Some(RIGHT)),
    ]
}

/// What each order makes of the batch with 1, 8 and 16 in flight: seconds until its end, and milliseconds that processing takes in the mean.
const FIGURES: [(&str, [(f64, f64); 3]); 7] = [
    ("turns", [(36.41, 10.1), (6.43, 37.1), (5.24, 108.0)]),
    ("oldest first", [(36.41, 10.1), (7.20, 12.6), (5.47, 19.8)]),
    ("inferred, all begin", [(36.41, 10.1), (4.99, 12.6), (4.48, 88.3)]),
    ("declared, all begin", [(36.41, 10.0), (4.97, 12.1), (4.48, 88.0)]),
    ("inferred", [(36.41, 10.1), (4.98, 12.1), (4.52, 20.0)]),
    ("declared", [(36.41, 10.0), (4.99, 11.9), (4.52, 19.7)]),
    ("declared, static", [(36.41, 10.0), (5.15, 12.5), (4.61, 17.4)]),
];

/// The figures are golden: the makespan to one percent, the mean to a tenth.
#[test]
fn the_figures_of_the_batch_are_as_they_were() {
    let mut table = String::new();
    let mut off = Vec::new();
    for ((name, policy, classes, declared), (expected, figures)) in orders().into_iter().zip(FIGURES) {
        assert_eq!(name, expected);
        for (in_flight, (makespan, process)) in [1, 8, 16].into_iter().zip(figures) {
            let seen = &play(policy, classes, &[batch(in_flight, declared)], FOREVER)[0];
            assert_eq!(seen.took.len(), 400, "{name}, {in_flight} in flight");
            let (seconds, millis) = (seen.makespan.as_secs_f64(), seen.process_ms());
            table += &format!("{name}, {in_flight} in flight: {seconds:.2} s, {millis:.1} ms\n");
            if (seconds / makespan - 1.0).abs() > 0.01 || (millis / process - 1.0).abs() > 0.1 {
                off.push((name, in_flight));
            }
        }
    }
    assert!(off.is_empty(), "{off:?}\n{table}");
}

/// Limits of admission keep processing short where it took as long as all in flight need, and cost no time.
#[test]
fn with_many_in_flight_processing_waits_for_few_others() {
    for (classes, declared) in [(Classes { believes: false, ..Classes::default() }, None), (Classes::default(), Some(RIGHT))] {
        let free = Classes { limits: false, ..classes };
        let [all, limited] =
            [free, classes].map(|classes| play(Policy::RoundRobin, Some(classes), &[batch(16, declared)], FOREVER).remove(0));
        assert!(all.process_ms() > 80.0, "{:.1} ms", all.process_ms());
        assert!(limited.process_ms() < 30.0, "{:.1} ms, {:.1} without limits", limited.process_ms(), all.process_ms());
        let (all, limited) = (all.makespan.as_secs_f64(), limited.makespan.as_secs_f64());
        assert!(limited < 1.02 * all, "{limited} s, {all} without limits");
    }
}

/// Whatever annotations say, the batch takes at most a tenth longer than without them.
#[test]
fn wrong_annotations_cost_at_most_a_tenth() {
    let inferred = Classes { believes: false, ..Classes::default() };
    let wrong = [
        [micros(10_000), micros(60), micros(10_000)],
        [micros(60), micros(60), micros(60)],
        [micros(10_000), micros(10_000), micros(10_000)],
        [micros(1), micros(1), micros(100_000_000)],
        [micros(500), micros(500), micros(500)],
    ];
    for in_flight in [1, 8, 16] {
        let makespan = |classes, declared| {
            play(Policy::RoundRobin, Some(classes), &[batch(in_flight, declared)], FOREVER)[0].makespan.as_secs_f64()
        };
        let without = makespan(inferred, None);
        for declared in wrong {
            let with = makespan(Classes::default(), Some(declared));
            assert!(with < 1.1 * without, "{in_flight} in flight, {declared:?}: {with:.2} s in place of {without:.2}");
        }
    }
}

/// Two tenants want more than half of the core each. Whatever one of them declares, each has half of it.
#[test]
fn what_a_tenant_declares_gains_it_nothing() {
    let time = Duration::from_secs(2);
    let claims: [Option<Declared>; 4] = [None, Some(RIGHT), Some([micros(1); 3]), Some([micros(100_000); 3])];
    for declared in claims {
        let kinds = [0, 1].map(|tenant| Kind { tenant, count: 10_000, ..batch(40, if tenant == 0 { declared } else { None }) });
        let seen = play(Policy::RoundRobin, Some(Classes::default()), &kinds, time);
        let part = seen[0].cpu.as_secs_f64() / (seen[0].cpu + seen[1].cpu).as_secs_f64();
        assert!((0.45..0.51).contains(&part), "{declared:?}: {part:.3}");
    }
}

/// A function that never computes for long is not held up by the long microtasks of another, nor by its limits.
#[test]
fn short_requests_beside_the_batch_take_no_longer_than_a_few_quanta() {
    let ping = [Stretch { microtask: Microtask::default(), cpu: micros(30), then: Then::Ends }];
    let ping = Kind { tenant: 0, count: 2_000, in_flight: 1, script: ping.into() };
    let seen = play(Policy::RoundRobin, Some(Classes::default()), &[batch(16, None), ping], FOREVER);
    let mut took = seen[1].took.clone();
    took.sort_unstable();
    assert!(took[1_980] <= 3 * QUANTUM, "{:?}", took[1_980]);
    assert_eq!((seen[0].took.len(), seen[1].took.len()), (400, 2_000));
}
