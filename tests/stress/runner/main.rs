//! Stress: real functions on several workers, suspended at random every few microseconds, moved, killed, in sandboxes that change hands; every
//! reply is compared, bit for bit, with that of an undisturbed run.
//!
//! The seed decides what is run, for how long and where; where exactly a signal comes is up to the machine. A failure is a wrong reply or a crash.
#![forbid(unsafe_code)]

mod subjects;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use sledge::invoke::driver::{Driver, Progress};
use sledge::outcome::Failure;
use sledge_sandbox::{Budget, Pools, WorkerThread};
use sledge_tests::random::Random;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use subjects::Subject;

/// Runs real functions under random preemption, and compares their replies.
#[derive(Debug, Parser)]
struct Arguments {
    /// How long to run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    minutes: u64,
    /// The same in seconds.
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    seconds: Option<u64>,
    /// The seed; by default, the time.
    #[arg(long)]
    seed: Option<u64>,
}

/// Threads that run guests; what one cannot do is to hand something to another.
const WORKERS: usize = 3;
/// Invocations that each has at the same time.
const RUNNING_MAX: usize = 6;
/// Quanta, in nanoseconds: 20 us on average.
const QUANTUM_NS: (u64, u64) = (1_000, 39_000);
/// For all sandboxes: fewer than there would be without it, so that they are made of one another.
const BUDGET_BYTES: u64 = 48 << 20;

/// What was done.
#[derive(Debug, Default)]
struct Counts {
    compared: AtomicU64,
    preemptions: AtomicU64,
    moves: AtomicU64,
    kills: AtomicU64,
    /// Guests that asked for memory when the others had all of it.
    refusals: AtomicU64,
}

/// An invocation that has begun, and whose it is.
struct Running<'a> {
    subject: &'a Subject,
    driver: Driver,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let time = arguments.seconds.map_or(Duration::from_secs(60 * arguments.minutes), Duration::from_secs);
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = arguments.seed.unwrap_or_else(now);
    println!("seed {seed}");
    let budget = Budget::new(BUDGET_BYTES);
    let subjects = subjects::load(&budget)?;
    let pools = Pools::new(WORKERS);
    pools.lend_to(&budget);
    let counts = Counts::default();
    let until = Instant::now() + time;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..WORKERS).map(|_| channel::<Running<'_>>()).unzip();
    thread::scope(|scope| {
        let workers: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(index, inbox)| {
                let worker = Worker { index, subjects: &subjects, pools: &pools, counts: &counts, others: senders.clone() };
                scope.spawn(move || worker.work(inbox, Random::new(seed, &format!("worker {index}")), until))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))?)
    })
    .with_context(|| format!("seed {seed}"))?;
    let Counts { compared, preemptions, moves, kills, refusals } = &counts;
    let [compared, preemptions, moves, kills, refusals] =
        [compared, preemptions, moves, kills, refusals].map(|count| count.load(Ordering::Relaxed));
    println!(
        "{compared} replies of {} functions compared; {preemptions} preemptions, {moves} moves, {kills} kills, {refusals} refused memory",
        subjects.len()
    );
    ensure!(refusals < compared, "most were refused memory");
    ensure!(compared > 0 && preemptions > 10 * compared.min(100) && moves > 0 && kills > 0, "too little happened");
    Ok(())
}

struct Worker<'a> {
    index: usize,
    subjects: &'a [Subject],
    pools: &'a Pools,
    counts: &'a Counts,
    others: Vec<Sender<Running<'a>>>,
}

impl<'a> Worker<'a> {
    fn work(self, inbox: Receiver<Running<'a>>, mut random: Random, until: Instant) -> Result<()> {
        let thread = WorkerThread::enter(Duration::from_micros(20))?;
        let mut running: Vec<Running<'a>> = Vec::new();
        while Instant::now() < until {
            running.extend(inbox.try_iter());
            if running.is_empty() || (running.len() < RUNNING_MAX && random.chance(20)) {
                let subject = random.pick(self.subjects);
                // Where all memory is in use, one of those that run has to end first.
                match self.pools.take(self.index, &subject.function.template) {
                    Ok(sandbox) => running.push(Running { subject, driver: subject.begin(sandbox) }),
                    Err(error) if error.is_exhaustion() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if running.is_empty() {
                continue;
            }
            let mut next = running.swap_remove(random.below(running.len() as u64) as usize);
            thread.arm_after(Duration::from_nanos(QUANTUM_NS.0 + random.below(QUANTUM_NS.1 - QUANTUM_NS.0)));
            let progress = next.driver.run(&next.subject.function.program);
            thread.disarm();
            match progress {
                Progress::Preempted | Progress::Yields => {
                    self.counts.preemptions.fetch_add(1, Ordering::Relaxed);
                    match random.below(1000) {
                        0..10 => {
                            self.counts.kills.fetch_add(1, Ordering::Relaxed);
                            next.driver.kill();
                            self.pools.put(self.index, next.driver.finish().sandbox, Instant::now());
                        }
                        10..60 => {
                            self.counts.moves.fetch_add(1, Ordering::Relaxed);
                            // A worker that has ended already lets it drop.
                            let _ = random.pick(&self.others).send(next);
                        }
                        _ => running.push(next),
                    }
                }
                Progress::Waits { .. } | Progress::Pends(_) | Progress::Stale => {
                    bail!("{}: it waits, and nothing wakes it", next.subject.name)
                }
                // How many run at the same time depends on the machine, and so whether they all fit.
                Progress::Ended(Err(Failure::NoMemory)) => {
                    self.counts.refusals.fetch_add(1, Ordering::Relaxed);
                    self.pools.put(self.index, next.driver.finish().sandbox, Instant::now());
                }
                Progress::Ended(result) => {
                    let name = &next.subject.name;
                    ensure!(result.is_ok(), "{name}: {result:?}");
                    let remains = next.driver.finish();
                    ensure!(remains.reply == next.subject.expected, "{name}: a wrong reply, {:?}", remains.reply);
                    self.counts.compared.fetch_add(1, Ordering::Relaxed);
                    self.pools.put(self.index, remains.sandbox, Instant::now());
                }
            }
        }
        Ok(())
    }
}
