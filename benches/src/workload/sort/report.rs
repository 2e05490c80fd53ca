//! What the runs of the sort come to: a table, JSON, distributions as pictures, and the bounds below which no scheduler gets.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::calibrate::UTILISATION;
use super::task::{COMPUTING, PHASES};
use super::{Need, Place, Run, Settings, Transfers, Variant};
use crate::ecdf::{Ecdf, Panel};
use crate::workload::classes::Classes;
use crate::workload::quantile;

/// The runs in one place.
#[derive(Debug)]
pub struct Outcome {
    /// Where.
    pub place: Place,
    /// How much at a time.
    pub transfers: Transfers,
    /// By variant, the blocking one first.
    pub runs: Vec<(Variant, Vec<Run>)>,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    workload: &'static str,
    megabytes: u64,
    chunks: usize,
    categories: usize,
    workers: usize,
    repeat: usize,
    seed: u64,
    /// By place.
    pub places: Vec<PlaceReport>,
    #[serde(skip)]
    outcomes: Vec<Outcome>,
}

/// One place.
#[derive(Debug, Serialize)]
pub struct PlaceReport {
    place: String,
    transfer_bytes: usize,
    rounds: u64,
    /// The least processor time that any variant took (median of its runs), for each core: a bound.
    pub cpu_alone_s: f64,
    variants: Vec<VariantReport>,
}

/// One variant there.
#[derive(Debug, Serialize)]
pub struct VariantReport {
    variant: String,
    in_flight: usize,
    classes: Classes,
    /// Of each run.
    makespan_s: Vec<f64>,
    /// Of each run.
    cpu_s: Vec<f64>,
    /// Of all runs.
    utilisation: f64,
    /// A bound: what blocking tasks waited for their data, at so many at a time; at least the longest wait of each stage.
    io_critical_path_s: f64,
    phases: Vec<PhaseReport>,
}

/// One phase of its tasks.
#[derive(Debug, Serialize)]
struct PhaseReport {
    phase: &'static str,
    lasted_p50_ms: f64,
    lasted_p99_ms: f64,
    ran_p50_ms: f64,
    ran_p99_ms: f64,
}

/// How long one phase lasted in each task of these runs, and for how long it ran, in seconds.
fn phase(runs: &[Run], phase: usize) -> (Vec<f64>, Vec<f64>) {
    let tasks = runs.iter().flat_map(|run| &run.tasks[phase / 3]);
    tasks.map(|done| (done.lasted[phase % 3], done.ran[phase % 3])).unzip()
}

fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    quantile(numbers, 0.5)
}

/// What the phases need, by a run of tasks that had a core each.
pub(super) fn needs(run: &Run) -> [Need; 6] {
    std::array::from_fn(|index| {
        let (lasted, ran) = phase(std::slice::from_ref(run), index);
        let (lasted, ran) = (median(lasted), median(ran));
        let percent = if lasted > 0.0 { ran / lasted * 100.0 } else { 100.0 };
        Need { cpu_us: ((ran * 1e6) as u64).max(1), cpu_percent: (percent as u64).clamp(1, 100) }
    })
}

/// What tasks wait at least, so many at a time, in seconds.
fn io_critical_path(run: &Run, in_flight: usize) -> f64 {
    let stage = |tasks: &Vec<super::task::Done>| {
        let waits = || tasks.iter().map(|done| done.waited);
        (waits().sum::<f64>() / in_flight as f64).max(waits().fold(0.0, f64::max))
    };
    run.tasks.iter().map(stage).sum()
}

impl Outcome {
    /// The runs of a variant, if there are any.
    fn of(&self, in_flight: usize, classes: Classes) -> Option<&[Run]> {
        let wanted = Variant { in_flight, classes };
        self.runs.iter().find_map(|(variant, runs)| (*variant == wanted).then_some(&runs[..]))
    }

    fn report(&self, workers: usize) -> PlaceReport {
        let cpu_s = |runs: &[Run]| median(runs.iter().map(|run| run.cpu_s)) / workers as f64;
        let cpu_alone_s = self.runs.iter().map(|(_, runs)| cpu_s(runs)).fold(f64::INFINITY, f64::min);
        let blocking = &self.runs[0].1;
        let variant = |(variant, runs): &(Variant, Vec<Run>)| {
            let phases = PHASES.into_iter().enumerate().map(|(index, name)| {
                let (lasted, ran) = phase(runs, index);
                let ms = |numbers: &Vec<f64>, share: f64| quantile(numbers.iter().copied(), share) * 1e3;
                PhaseReport {
                    phase: name,
                    lasted_p50_ms: ms(&lasted, 0.5),
                    lasted_p99_ms: ms(&lasted, 0.99),
                    ran_p50_ms: ms(&ran, 0.5),
                    ran_p99_ms: ms(&ran, 0.99),
                }
            });
            let all = |number: fn(&Run) -> f64| runs.iter().map(number).sum::<f64>();
            VariantReport {
                variant: variant.to_string(),
                in_flight: variant.in_flight,
                classes: variant.classes,
                makespan_s: runs.iter().map(|run| run.makespan_s).collect(),
                cpu_s: runs.iter().map(|run| run.cpu_s).collect(),
                utilisation: all(|run| run.cpu_s) / all(|run| run.makespan_s) / workers as f64,
                io_critical_path_s: median(blocking.iter().map(|run| io_critical_path(run, variant.in_flight * workers))),
                phases: phases.collect(),
            }
        };
        PlaceReport {
            place: self.place.to_string(),
            transfer_bytes: self.transfers.bytes,
            rounds: self.transfers.rounds,
            cpu_alone_s,
            variants: self.runs.iter().map(variant).collect(),
        }
    }

    fn plot(&self, report: &PlaceReport) -> Ecdf {
        let panel = |caption: &str, numbers: &dyn Fn(&[Run]) -> Vec<f64>, lines: Vec<(String, f64)>| Panel {
            caption: caption.to_owned(),
            series: self.runs.iter().map(|(variant, runs)| (variant.to_string(), numbers(runs))).collect(),
            lines,
        };
        let lasted = |name: &str| {
            let index = PHASES.iter().position(|known| *known == name).unwrap_or_default();
            move |runs: &[Run]| phase(runs, index).0.into_iter().map(|seconds| seconds * 1e3).collect::<Vec<f64>>()
        };
        let bound = vec![("processor time alone".to_owned(), report.cpu_alone_s)];
        Ecdf {
            caption: format!(
                "Distributed sort on {}, {} runs of each: share that took at most so long",
                self.place,
                self.runs[0].1.len()
            ),
            panels: vec![
                panel("Makespan, s", &|runs: &[Run]| runs.iter().map(|run| run.makespan_s).collect(), bound),
                panel("Write categorised pieces, ms", &lasted("write"), Vec::new()),
                panel("Sort a category, ms", &lasted("sort"), Vec::new()),
            ],
        }
    }
}

impl PlaceReport {
    /// The variant of that many tasks at a time, with classes or without.
    pub fn variant(&self, in_flight: usize, classes: bool) -> Option<&VariantReport> {
        self.variants.iter().find(|variant| variant.in_flight == in_flight && (variant.classes != Classes::Off) == classes)
    }
}

impl VariantReport {
    /// The median of its makespans.
    pub fn makespan_s(&self) -> f64 {
        median(self.makespan_s.iter().copied())
    }

    /// The I/O critical path.
    pub fn io_critical_path_s(&self) -> f64 {
        self.io_critical_path_s
    }

    /// How long a phase lasts in the median, in milliseconds.
    pub fn lasted_ms(&self, name: &str) -> f64 {
        self.phases.iter().find(|phase| phase.phase == name).map_or(f64::NAN, |phase| phase.lasted_p50_ms)
    }

    /// The largest ratio of the medians of a phase that computes to that of another variant.
    pub fn computing_ratio(&self, to: &VariantReport) -> f64 {
        COMPUTING.iter().map(|name| self.lasted_ms(name) / to.lasted_ms(name)).fold(0.0, f64::max)
    }
}

impl Report {
    pub(super) fn new(settings: &Settings, outcomes: Vec<Outcome>) -> Report {
        let Settings { megabytes, chunks, categories, repeat, workers, seed, .. } = *settings;
        let places = outcomes.iter().map(|outcome| outcome.report(workers)).collect();
        Report { workload: "sort", megabytes, chunks, categories, workers, repeat, seed, places, outcomes }
    }

    /// Tables in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for (place, outcome) in self.places.iter().zip(&self.outcomes) {
            text += &place.table(outcome, self.workers);
        }
        text
    }

    /// Writes a picture for each place: `path` with the place's name at its end, as SVG and as PNG.
    ///
    /// # Errors
    ///
    /// If one cannot be drawn or written.
    pub fn plot(&self, path: &Path) -> Result<()> {
        for (place, outcome) in self.places.iter().zip(&self.outcomes) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            outcome.plot(place).write(&path.with_file_name(format!("{stem}-{}", place.place)))?;
        }
        Ok(())
    }
}

impl PlaceReport {
    fn table(&self, outcome: &Outcome, workers: usize) -> String {
        let mut text = format!("## {}\n\n", self.place);
        let blocking = outcome.of(1, Classes::Off).unwrap_or_default();
        let used = blocking.iter().map(|run| run.cpu_s).sum::<f64>()
            / blocking.iter().map(|run| run.makespan_s).sum::<f64>()
            / workers as f64;
        let percent = used * 100.0;
        if outcome.place == Place::Files {
            let _ = writeln!(
                text,
                "Local files hardly wait: what is read is in the kernel's memory, and writing is copying, on the server's cores. Blocking tasks use {percent:.1} % of \
                 their cores.\n"
            );
        } else {
            let fits = if UTILISATION.contains(&used) { "" } else { ", which is not the 60 to 65 % that were wanted" };
            let (kilobytes, rounds) = (self.transfer_bytes >> 10, self.rounds);
            let _ = writeln!(
                text,
                "{kilobytes} KiB at a time, {rounds} rounds of hashing: blocking tasks use {percent:.1} % of their cores{fits}.\n"
            );
        }
        let _ = writeln!(text, "Processor time alone: {:.3} s (the least of all variants).\n", self.cpu_alone_s);
        text += "| variant | makespan s (least to most) | to the larger bound | processor s | cores used | I/O critical path s |\n|---|---:|---:|---:|---:|---:|\n";
        for variant in &self.variants {
            let at = |share: f64| quantile(variant.makespan_s.iter().copied(), share);
            let bound = self.cpu_alone_s.max(variant.io_critical_path_s);
            let _ = writeln!(
                text,
                "| {} | {:.3} ({:.3} to {:.3}) | {:.3} | {:.3} | {:.1} % | {:.3} |",
                variant.variant,
                at(0.5),
                at(0.0),
                at(1.0),
                at(0.5) / bound,
                median(variant.cpu_s.iter().copied()),
                variant.utilisation * 100.0,
                variant.io_critical_path_s
            );
        }
        text += "\nMilliseconds that each phase of a task lasts, waiting included: median / p99 (running: median)\n\n| variant |";
        PHASES.iter().for_each(|name| text += &format!(" {name} |"));
        text += &format!("\n|---|{}\n", "---:|".repeat(PHASES.len()));
        for variant in &self.variants {
            text += &format!("| {} |", variant.variant);
            for phase in &variant.phases {
                let PhaseReport { lasted_p50_ms, lasted_p99_ms, ran_p50_ms, .. } = phase;
                text += &format!(" {lasted_p50_ms:.2} / {lasted_p99_ms:.2} ({ran_p50_ms:.2}) |");
            }
            text.push('\n');
        }
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::Sum;
    use super::super::task::Done;
    use super::*;

    fn done(waited: f64, lasted: [f64; 3]) -> Done {
        Done { sum: Sum::default(), lasted, ran: lasted.map(|time| time / 2.0), waited }
    }

    fn run(makespan_s: f64, cpu_s: f64) -> Run {
        let tasks = [vec![done(0.3, [0.1, 0.2, 0.4]); 4], vec![done(0.1, [0.3, 0.6, 0.1]), done(0.5, [0.3, 0.6, 0.1])]];
        Run { makespan_s, cpu_s, tasks }
    }

    fn outcome() -> Outcome {
        let variant = |in_flight, classes| Variant { in_flight, classes };
        let runs = vec![
            (variant(1, Classes::Off), vec![run(10.0, 6.2), run(10.0, 6.2)]),
            (variant(8, Classes::Off), vec![run(7.0, 6.0), run(7.5, 6.0)]),
            (variant(8, Classes::Inferred), vec![run(6.1, 6.1)]),
        ];
        let place = Place::Redis(std::time::Duration::from_millis(5));
        Outcome { place, transfers: Transfers { bytes: 1 << 20, rounds: 2 }, runs }
    }

    #[test]
    fn bounds_are_the_least_processor_time_and_the_waits_at_so_many_at_a_time() {
        let report = outcome().report(1);
        assert_eq!(report.cpu_alone_s, 6.0);
        let path = |in_flight, classes| report.variant(in_flight, classes).unwrap().io_critical_path_s();
        assert!((path(1, false) - 1.8).abs() < 1e-9);
        // The longest wait of each stage.
        assert!((path(8, true) - 0.8).abs() < 1e-9);
        assert!((report.variant(1, false).unwrap().utilisation - 0.62).abs() < 1e-9);
        assert_eq!(report.variant(8, false).unwrap().lasted_ms("write"), 400.0);
        assert_eq!(report.variant(8, true).unwrap().computing_ratio(report.variant(8, false).unwrap()), 1.0);
        assert!(report.variant(16, false).is_none());
    }

    #[test]
    fn tables_name_variants_bounds_and_phases() {
        let outcome = outcome();
        let table = outcome.report(1).table(&outcome, 1);
        for needed in [
            "## redis-5",
            "1024 KiB at a time, 2 rounds of hashing: blocking tasks use 62.0 % of their cores.",
            "| blocking | 10.000 (10.000 to 10.000) | 1.667 | 6.200 | 62.0 % | 1.800 |",
            "| 8 in flight, classes inferred | 6.100 (6.100 to 6.100) | 1.017 |",
            "| variant | read | divide | write | collect | sort | store |",
            " 400.00 / 400.00 (200.00) |",
        ] {
            assert!(table.contains(needed), "{needed} is missing in:\n{table}");
        }
    }

    #[test]
    fn needs_are_what_ran() {
        let needs = needs(&run(1.0, 1.0));
        assert_eq!((needs[2].cpu_us, needs[2].cpu_percent), (200_000, 50));
    }
}
