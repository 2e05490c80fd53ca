//! How many invocations of a function are in flight: the rule, one invocation after the other; and what comes of it, with the real gate, on cores in simulated time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use sledge_schedule::gate::Entrant;
use sledge_schedule::in_flight::PER_WORKER_MAX;
use sledge_schedule::{Gate, InFlight, Used};

/// How often the number may change, as `in_flight.rs` says.
const PERIOD: Duration = Duration::from_millis(200);

const MS: Duration = Duration::from_millis(1);

fn used(busy_us: u64, idle_us: u64) -> Used {
    Used { busy: Duration::from_micros(busy_us), idle: Duration::from_micros(idle_us) }
}

/// Plays so many invocations, a millisecond apart; how many may be in flight after each.
fn play(in_flight: &mut InFlight, now: &mut Instant, each: impl Iterator<Item = Used>) -> Vec<usize> {
    let step = |used| {
        *now += MS;
        *in_flight = in_flight.step(used, *now);
        in_flight.max()
    };
    each.map(step).collect()
}

fn changes(numbers: &[usize]) -> usize {
    numbers.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// N(1 + I/B)(1 + 1.5), by hand.
#[test]
fn the_first_invocation_sets_what_the_rule_gives() {
    let now = Instant::now();
    let after = |workers, used| InFlight::new(workers).step(used, now).max();
    assert_eq!([1, 2, 10].map(|workers| InFlight::new(workers).max()), [3, 5, 25], "as if it never waited");
    assert_eq!([1, 2, 10].map(|workers| after(workers, used(700, 0))), [3, 5, 25]);
    assert_eq!(after(1, used(100, 900)), 25);
    assert_eq!(after(2, used(480, 40_000)), 422, "2 x 84.3 x 2.5");
    assert_eq!(after(4, used(100, 50)), 15, "4 x 1.5 x 2.5");
    // Only the ratio counts.
    assert_eq!(after(4, used(100_000, 50_000)), 15);
}

#[test]
fn it_has_a_floor_and_an_end() {
    let now = Instant::now();
    assert_eq!(InFlight::new(0).max(), 3, "no workers count as one");
    assert_eq!(InFlight::new(3).step(used(1, 10_000_000), now).max(), 3 * PER_WORKER_MAX);
    assert_eq!(InFlight::new(3).step(used(0, 1), now).max(), 3 * PER_WORKER_MAX, "what never computes");
    assert_eq!(InFlight::new(3).step(used(0, 0), now).max(), 3 * PER_WORKER_MAX);
    assert_eq!(InFlight::new(usize::MAX).max(), usize::MAX);
}

#[test]
fn it_follows_a_change_within_a_few_periods_up_and_down() {
    let (mut in_flight, mut now) = (InFlight::new(2), Instant::now());
    let steady = play(&mut in_flight, &mut now, std::iter::repeat_n(used(100, 900), 1_000));
    assert_eq!((steady[0], changes(&steady)), (50, 0));
    // It waits ten times as long: 2 x 91 x 2.5.
    let up = play(&mut in_flight, &mut now, std::iter::repeat_n(used(100, 9_000), 1_000));
    assert!((404..=500).contains(&up[999]) && up[250] > 357, "{}, {}", up[250], up[999]);
    assert!(changes(&up) <= 3, "{} changes", changes(&up));
    let down = play(&mut in_flight, &mut now, std::iter::repeat_n(used(100, 0), 1_000));
    assert!(down[999] <= 6 && changes(&down) <= 6, "{} after {} changes", down[999], changes(&down));
}

/// What was known counts as much as sixteen invocations, however many of them there were.
#[test]
fn it_remembers_what_was_before() {
    let (mut in_flight, mut now) = (InFlight::new(2).step(used(1_000, 9_000), Instant::now()), Instant::now());
    for (count, idle_us, expected) in [(100, 9_000, 50), (16, 99_000, 275)] {
        for _ in 0..count {
            now += PERIOD / count;
            in_flight = in_flight.step(used(1_000, idle_us), now);
        }
        assert_eq!(in_flight.max(), expected);
    }
}

#[test]
fn a_gate_that_follows_says_what_it_knows() {
    let gate = Gate::<Invocation>::following(InFlight::new(2), None);
    gate.learn(used(1_000, 9_000), Instant::now());
    assert_eq!((gate.follows(), gate.limit(), gate.in_flight().map(|known| known.max())), (true, Some(50), Some(50)));
    let gate = Gate::<Invocation>::new(Some(3), None);
    assert_eq!((gate.follows(), gate.limit(), gate.in_flight()), (false, Some(3), None));
}

/// Not more often than once in a period, however much and however fast comes; and a single one that is quite different is one of many.
#[test]
fn it_changes_once_in_a_period_at_most() {
    let now = Instant::now();
    let mut in_flight = InFlight::new(2).step(used(100, 900), now);
    for index in 0..100_000_u32 {
        in_flight = in_flight.step(used(100, 90_000), now + index * Duration::from_micros(1));
        assert_eq!(in_flight.max(), 50);
    }
    assert!(in_flight.step(used(100, 90_000), now + PERIOD).max() > 2_000);
    let (mut in_flight, mut now) = (InFlight::new(2), now);
    let mut mixed = vec![used(100, 900); 400];
    mixed[150].idle = 5 * MS;
    let numbers = play(&mut in_flight, &mut now, mixed.into_iter());
    assert_eq!(changes(&numbers), 0, "{numbers:?}");
}

/// A ratio that wanders around the border between two numbers keeps one of them.
#[test]
fn it_does_not_flap() {
    let (mut in_flight, mut now) = (InFlight::new(2), Instant::now());
    // 2 x (1 + x) x 2.5 = 10.5 at x = 1.1: between 10 and 11.
    let wandering = (0..10_000).map(|index| used(1_000, if index / 200 % 2 == 0 { 1_000 } else { 1_200 }));
    let numbers = play(&mut in_flight, &mut now, wandering);
    assert_eq!(changes(&numbers), 0, "{:?}", numbers.iter().step_by(200).collect::<Vec<_>>());
    // Without a rule for small numbers one of them would be left at each step of a few percent.
    let (mut in_flight, mut now) = (InFlight::new(1), Instant::now());
    // 2.5 x (1 + x) = 4.5 at x = 0.8: between 4 and 5.
    let wandering = (0..10_000).map(|index| used(1_000, if index / 200 % 2 == 0 { 750 } else { 850 }));
    let numbers = play(&mut in_flight, &mut now, wandering);
    assert!(changes(&numbers) <= 1, "{} changes", changes(&numbers));
}

/// A clock that seems to go back changes nothing.
#[test]
fn time_that_goes_back_is_no_period() {
    let now = Instant::now() + 10 * PERIOD;
    let in_flight = InFlight::new(2).step(used(100, 900), now);
    assert_eq!(in_flight.step(used(100, 90_000), now - 5 * PERIOD).max(), in_flight.max());
}

/// An invocation in simulated time, in microseconds: bursts on a core, and after each of them a wait.
struct Invocation {
    number: usize,
    bursts: u32,
    busy: u64,
    idle: u64,
}

impl Entrant for Invocation {
    fn let_in(&mut self) {}

    fn is_gone(&self) -> bool {
        false
    }
}

/// What invocations of a function do at a time: bursts, and microseconds of each and of the wait behind it.
#[derive(Clone, Copy)]
struct Shape {
    bursts: u32,
    burst: u64,
    wait: u64,
}

/// What came of a simulation.
struct Played {
    /// The limit after each invocation that ended.
    limits: Vec<usize>,
    /// The part of their time for which the cores computed.
    busy: f64,
    /// How often more ran than the limit, because it fell.
    above: usize,
    ended: usize,
}

/// What cores take next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// What has been ready for longest.
    InTurn,
    /// What has come first.
    Oldest,
}

/// Plays so many invocations of each of these shapes in turn on cores. More wait at the gate all the time than it lets in.
fn saturate(cores: usize, order: Order, shapes: &[Shape], each: usize) -> Played {
    let start = Instant::now();
    let gate = Gate::<Invocation>::following(InFlight::new(cores), None);
    let all = shapes.len() * each;
    // SplitMix64: each burst and wait takes between a half and one and a half of its time.
    let mut seed = 0x5eed_0018_u64;
    let mut vary = move |time: u64| {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        time / 2 + ((mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32) % time.max(1)
    };
    // What happens when: a burst, or else a wait, of the invocation with that number is over.
    let mut events: BinaryHeap<Reverse<(u64, usize, bool)>> = BinaryHeap::new();
    let (mut ready, mut running) = (VecDeque::new(), Vec::from_iter((0..all).map(|_| None::<Invocation>)));
    let mut played = Played { limits: Vec::new(), busy: 0.0, above: 0, ended: 0 };
    let (mut free, mut now, mut computed, mut in_flight) = (cores, 0, 0, 0);
    for number in 0..all {
        if let Some(invocation) = gate.enter(Invocation { number, bursts: 0, busy: 0, idle: 0 }) {
            in_flight += 1;
            ready.push_back(invocation);
        }
    }
    loop {
        while free > 0 {
            let next = match order {
                Order::InTurn => Some(0),
                Order::Oldest => ready.iter().enumerate().min_by_key(|(_, one): &(_, &Invocation)| one.number).map(|(at, _)| at),
            };
            let Some(mut invocation) = next.and_then(|at| ready.remove(at)) else { break };
            free -= 1;
            let burst = vary(shapes[invocation.number / each].burst);
            (invocation.busy, computed) = (invocation.busy + burst, computed + burst);
            events.push(Reverse((now + burst, invocation.number, true)));
            let number = invocation.number;
            running[number] = Some(invocation);
        }
        let Some(Reverse((at, number, computes))) = events.pop() else { break };
        now = at;
        let mut invocation = running[number].take().expect("it runs or waits");
        let shape = shapes[number / each];
        if !computes {
            ready.push_back(invocation);
            continue;
        }
        free += 1;
        invocation.bursts += 1;
        if invocation.bursts < shape.bursts {
            let wait = vary(shape.wait);
            invocation.idle += wait;
            events.push(Reverse((now + wait, number, false)));
            running[number] = Some(invocation);
            continue;
        }
        let used = Used { busy: Duration::from_micros(invocation.busy), idle: Duration::from_micros(invocation.idle) };
        gate.learn(used, start + Duration::from_micros(now));
        let limit = gate.limit().expect("it follows");
        in_flight -= 1;
        let before = in_flight;
        let mut next = gate.leave(true);
        while let Some(invocation) = next {
            in_flight += 1;
            assert!(in_flight <= limit, "{in_flight} are let in, {limit} may be");
            ready.push_back(invocation);
            next = gate.next();
        }
        let is_full = in_flight >= limit || played.ended + 1 + in_flight == all;
        assert!(is_full, "{in_flight} run, {limit} may, and others wait");
        played.above += usize::from(before > limit);
        played.limits.push(limit);
        played.ended += 1;
    }
    played.busy = computed as f64 / (now * cores as u64) as f64;
    played
}

/// Reads and writes that wait for most of their time: the cores never run dry, and the number of invocations is about what the rule gives for what is simulated.
#[test]
fn cores_are_busy_at_what_the_rule_gives() {
    for (cores, order, shape, rule) in [
        (2, Order::InTurn, Shape { bursts: 9, burst: 60, wait: 5_000 }, 375.0),
        (2, Order::Oldest, Shape { bursts: 9, burst: 60, wait: 5_000 }, 375.0),
        (4, Order::InTurn, Shape { bursts: 5, burst: 100, wait: 1_000 }, 90.0),
        (4, Order::Oldest, Shape { bursts: 5, burst: 100, wait: 1_000 }, 90.0),
        (1, Order::Oldest, Shape { bursts: 5, burst: 200, wait: 5_000 }, 52.5),
        (1, Order::Oldest, Shape { bursts: 5, burst: 2_000, wait: 5_000 }, 7.5),
        (2, Order::InTurn, Shape { bursts: 1, burst: 2_000, wait: 0 }, 5.0),
    ] {
        let played = saturate(cores, order, &[shape], 20_000);
        let last = *played.limits.last().expect("they end") as f64;
        assert_eq!(played.ended, 20_000);
        assert!(played.busy > 0.97, "{cores} cores, {order:?}: {:.3} busy at {last} in flight", played.busy);
        assert!((last - rule).abs() <= 0.5 + 0.2 * rule, "{last} in place of {rule}");
        let settled = &played.limits[2_000..];
        assert!(changes(settled) <= 1, "{} changes", changes(settled));
    }
}

/// What a function does changes, and its limit falls far below what runs: these end, none is lost, and nothing begins until they are few enough.
#[test]
fn a_limit_that_falls_loses_nothing() {
    let (waits, computes) = (Shape { bursts: 9, burst: 60, wait: 20_000 }, Shape { bursts: 2, burst: 3_000, wait: 100 });
    let played = saturate(2, Order::InTurn, &[waits, computes, waits], 4_000);
    assert_eq!(played.ended, 12_000);
    let (most, last) = (played.limits.iter().max().expect("they end"), played.limits[8_000]);
    assert!(*most > 600 && last < 12, "{most}, then {last}");
    assert!(played.above > 100, "{} ended while more ran than the limit", played.above);
    assert!(changes(&played.limits) < 60, "{} changes", changes(&played.limits));
}
