//! A whole pool of workers, simulated from seeds: the real schedulers, gates and hand-overs in simulated time, with clients that go, deadlines, budgets, calls, waits, deploys,
//! refusals of memory, drains and kills. A seed that fails is shrunk to a plan that can be played again:
//!
//! ```text
//!   make simulate SEEDS=1000000 FROM=0
//!   make simulate REPLAY=/tmp/plan.json
//! ```

mod check;
mod model;
mod plan;
mod pool;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use plan::{Plan, What};

use pool::{Seen, Violation, play};
use sledge_schedule::Rest;

/// Seeds that are played, if no others are asked for.
const SEEDS: u64 = 10_000;
/// Every seed has at least so many events.
const EVENTS_MIN: usize = 2_000;
/// Kinds of faults, each of which comes in at least one of a hundred seeds.
const FAULTS: [&str; 20] = [
    "after the end",
    "asked for",
    "callee of what ended",
    "client gone",
    "deadline",
    "deployed",
    "drained under load",
    "function full",
    "given up",
    "gone at the gate",
    "killed at the end",
    "late",
    "limit falls below what runs",
    "limit rises",
    "no memory",
    "overload",
    "processor time",
    "server full",
    "speculative and over",
    "woken for nothing",
];

/// What was seen in all seeds together.
#[derive(Default)]
struct Total {
    seeds: u64,
    events: usize,
    admitted: usize,
    answered: usize,
    seeds_with: BTreeMap<&'static str, u64>,
    seeds_with_stolen: u64,
    seeds_with_phases: u64,
    seeds_with_held: u64,
}

#[test]
fn nothing_is_lost_doubled_late_or_unfair_whatever_happens() {
    if let Ok(path) = std::env::var("REPLAY") {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let plan: Plan = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        println!("{:?}", try_play(&plan).unwrap_or_else(|violation| panic!("{path}: {violation}")));
        return;
    }
    let number = |name: &str, default| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => default,
    };
    let (from, seeds) = (number("FROM", 0), number("SEEDS", SEEDS));
    let began = Instant::now();
    let total = play_all(from, seeds);
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds, {} events, {} invocations of which {} were answered: {:.0} seeds a second",
        total.events,
        total.admitted,
        total.answered,
        total.seeds as f64 / seconds
    );
    for (name, count) in &total.seeds_with {
        println!("  {name}: in {count} seeds");
    }
    if seeds >= 1_000 {
        for name in FAULTS {
            let count = total.seeds_with.get(name).copied().unwrap_or(0);
            assert!(count * 100 >= seeds, "{name}: in {count} of {seeds} seeds");
        }
        assert!(total.seeds_with_stolen * 100 >= seeds, "work was stolen in {} of {seeds} seeds", total.seeds_with_stolen);
        assert!(total.seeds_with_phases * 10 >= seeds, "phases were played in {} of {seeds} seeds", total.seeds_with_phases);
        assert!(
            total.seeds_with_held * 100 >= seeds,
            "a worker held requests back in {} of {seeds} seeds",
            total.seeds_with_held
        );
    }
}

fn play_all(from: u64, seeds: u64) -> Total {
    let (next, total) = (AtomicU64::new(from), Mutex::new(Total::default()));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + seeds {
                        return;
                    }
                    let plan = Plan::random(seed);
                    match try_play(&plan) {
                        Ok(seen) => {
                            assert!(seen.events >= EVENTS_MIN, "seed {seed}: {} events", seen.events);
                            total.lock().expect("no thread has panicked").add(&seen);
                        }
                        Err(violation) => report(plan, &violation),
                    }
                }
            });
        }
    });
    total.into_inner().expect("no thread has panicked")
}

impl Total {
    fn add(&mut self, seen: &Seen) {
        self.seeds += 1;
        self.events += seen.events;
        self.admitted += seen.admitted;
        self.answered += seen.answered;
        for (name, _) in &seen.faults {
            *self.seeds_with.entry(name).or_default() += 1;
        }
        self.seeds_with_stolen += u64::from(seen.stolen > 0);
        self.seeds_with_phases += u64::from(seen.phases > 0);
        self.seeds_with_held += u64::from(seen.held);
    }
}

/// Plays a plan; a panic is a violation, too.
fn try_play(plan: &Plan) -> Result<Seen, Violation> {
    catch_unwind(AssertUnwindSafe(|| play(plan))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panic: {}", text.unwrap_or("no text")))
    })
}

/// Shrinks a plan that fails, writes it down, and fails.
fn report(plan: Plan, violation: &Violation) -> ! {
    let (seed, steps) = (plan.seed, plan.steps.len());
    let (plan, shrunk) = shrink(plan);
    let path = std::env::temp_dir().join(format!("sledge-simulation-{seed}.json"));
    let json = serde_json::to_string_pretty(&plan).expect("a plan is plain data");
    let written = std::fs::write(&path, &json).map(|()| path.display().to_string());
    panic!(
        "seed {seed}: {violation}\nshrunk from {steps} steps to {}: {shrunk}\n{json}\nreplay: make simulate REPLAY={}",
        plan.steps.len(),
        written.unwrap_or_else(|error| format!("FILE, with the lines above ({error})"))
    );
}

/// Leaves out what a plan can do without and fails nonetheless, whichever way.
fn shrink(mut plan: Plan) -> (Plan, Violation) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut violation = try_play(&plan).err().unwrap_or_default();
    let mut chunk = plan.steps.len() / 2;
    while chunk > 0 {
        let mut at = 0;
        while at < plan.steps.len() {
            let mut smaller = plan.clone();
            let end = (at + chunk).min(smaller.steps.len());
            // Without an end, no worker leaves.
            let ends: Vec<_> =
                smaller.steps.drain(at..end).filter(|step| matches!(step.what, What::Drain | What::Kill)).collect();
            smaller.steps.splice(at..at, ends);
            if smaller.steps.len() < plan.steps.len()
                && let Err(found) = try_play(&smaller)
            {
                (plan, violation) = (smaller, found);
            } else {
                at += chunk;
            }
        }
        chunk /= 2;
    }
    std::panic::set_hook(hook);
    (plan, violation)
}
