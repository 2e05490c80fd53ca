//! A run over many seeds, by several workers at once.

use crate::features::Features;
use crate::statistics::Statistics;
use crate::wit::Kind;
use crate::worker::Worker;
use crate::{check::Report, failure};
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Seeds with differences after which a run has found enough.
const FAILURES_MAX: u64 = 25;

/// Failing modules that are made smaller, and failing components that are printed.
const SHRUNK_MAX: u64 = 4;

/// Between two lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(15);

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) kind: Kind,
    pub(crate) first: u64,
    /// Seeds at most, if there is a limit.
    pub(crate) seeds: Option<u64>,
    /// How long seeds are begun.
    pub(crate) time: Duration,
    pub(crate) jobs: usize,
    pub(crate) all_modes: bool,
}

/// Runs, prints what was found; whether all is well.
pub(crate) fn run(run: Run) -> Result<bool> {
    let start = Instant::now();
    let features = Features::probe();
    let next = AtomicU64::new(run.first);
    let last = run.first.saturating_add(run.seeds.unwrap_or(u64::MAX));
    let stop = AtomicU64::new(0);
    let (sender, reports) = mpsc::channel::<Result<Report>>();
    let mut statistics = Statistics::new(run.kind);
    let mut progress = Progress::new(run);
    println!("fuzz: {}, from seed {}, {} jobs", run.kind.name(), run.first, run.jobs);
    std::thread::scope(|scope| -> Result<()> {
        for _ in 0..run.jobs {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                let mut worker = Worker::new(run.kind, run.all_modes);
                while start.elapsed() < run.time && stop.load(Ordering::Relaxed) == 0 {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= last || sender.send(worker.try_seed(seed)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for report in reports {
            let report = report?;
            statistics.add(&report);
            for (i, difference) in report.differences.iter().enumerate() {
                let is_early = i == 0 && statistics.differences <= SHRUNK_MAX;
                progress.say(&failure::describe(run.kind, report.seed, difference));
                match failure::write(run.kind, report.seed, difference, &features, is_early) {
                    Ok(path) => progress.say(&format!("  text:     {}", path.display())),
                    Err(error) => progress.say(&format!("  text:     not written: {error:#}")),
                }
                // It is gone with the machine that found it, unless it is part of what is printed.
                if is_early && run.kind != Kind::Modules {
                    progress.say(&run.kind.text(report.seed));
                }
            }
            if statistics.differences >= FAILURES_MAX {
                stop.store(1, Ordering::Relaxed);
            }
            progress.update(&statistics);
        }
        Ok(())
    })?;
    progress.finish();
    print!("{}", statistics.text(&features, run.first, start.elapsed()));
    let problems = statistics.problems(&features);
    for problem in &problems {
        println!("fuzz: FAILED: {problem}");
    }
    Ok(problems.is_empty())
}

/// A bar on a terminal, lines elsewhere.
struct Progress {
    run: Run,
    bar: Option<ProgressBar>,
    start: Instant,
    said: Instant,
}

impl Progress {
    fn new(run: Run) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(run.seeds.unwrap_or(run.time.as_secs()));
            let style = ProgressStyle::with_template("{bar:30} {elapsed} {msg}").expect("a template");
            bar.set_style(style);
            bar
        });
        Progress { run, bar, start: Instant::now(), said: Instant::now() }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| println!("{text}")),
            None => println!("{text}"),
        }
    }

    fn update(&mut self, statistics: &Statistics) {
        match &self.bar {
            Some(bar) => {
                bar.set_position(if self.run.seeds.is_some() { statistics.seeds } else { self.start.elapsed().as_secs() });
                bar.set_message(statistics.line());
            }
            None if self.said.elapsed() >= LINE_INTERVAL => {
                self.said = Instant::now();
                println!("fuzz: {:.0} s: {}", self.start.elapsed().as_secs_f64(), statistics.line());
            }
            None => {}
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
