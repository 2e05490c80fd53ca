//! Speed-ups as pictures.

use std::path::Path;

use anyhow::Result;

use super::measured::Measured;
use super::paper::{PAPER, PAPER_HITS};
use super::program::Suite;
use super::report::Report;
use super::source::{Hits, Kind};
use crate::plot::Plot;

/// A speed-up that the paper has beside one of ours.
type Beside = fn(&Measured) -> Option<f64>;

/// Of the suite, at low load.
fn of_suite(measured: &Measured) -> Option<f64> {
    PAPER.iter().find(|paper| paper.suite == measured.suite).map(|paper| paper.loads[0])
}

/// Of the workflows, at the hit rate.
fn of_hits(measured: &Measured) -> Option<f64> {
    let Kind::Hits(Hits { paths, .. }) = measured.kind else { return None };
    let known = PAPER_HITS.iter().find(|(percent, ..)| *percent == paths && measured.suite == Suite::FaasChain);
    known.map(|(_, gain, _)| *gain)
}

fn of_none(_: &Measured) -> Option<f64> {
    None
}

/// One client: each column, the ceiling, and the paper's.
fn alone(caption: &str, all: &[Measured], levels: &[&str], name: impl Fn(&Measured) -> String, paper: Beside) -> Plot {
    let ahead = levels.iter().skip(1).map(|level| {
        let points = all.iter().map(|measured| Some(measured.speed_up(measured.column(level)?)));
        ((*level).to_owned(), points.collect::<Vec<_>>())
    });
    let ceiling = ("ceiling".to_owned(), all.iter().map(|measured| Some(measured.ceiling())).collect());
    let paper = ("the paper's suite".to_owned(), all.iter().map(paper).collect());
    // What has no points needs no place.
    let series = ahead.chain([ceiling, paper]).filter(|(_, points)| points.iter().any(Option::is_some)).collect();
    Plot { caption: caption.to_owned(), names: all.iter().map(name).collect(), series, lines: vec![(1.0, 0.6)] }
}

impl Report {
    /// Writes pictures: `path` with `-speed-up`, `-loads`, `-cores`, `-hits` and `-stores`, each as SVG and PNG.
    ///
    /// # Errors
    ///
    /// If one cannot be drawn or written.
    pub fn plot(&self, path: &Path) -> Result<()> {
        let named = |more: &str| path.with_file_name(format!("{}-{more}", path.file_name().unwrap_or_default().display()));
        let program = |measured: &Measured| measured.program.name().to_owned();
        let mut plots = vec![
            ("speed-up", alone("Speed-up, one client, Redis 1 ms away", &self.programs, &self.levels, program, of_suite)),
            ("loads", self.at_loads()),
            ("cores", self.on_more_cores()),
        ];
        let name = |measured: &Measured| match measured.kind {
            Kind::Hits(Hits { paths, .. }) => format!("{} {paths} %", measured.program.name()),
            kind => format!("{} {kind}", measured.program.name()),
        };
        plots.push(("hits", alone("Speed-up by hit rate, one client, Redis 1 ms away", &self.hits, &self.levels, name, of_hits)));
        let name = |measured: &Measured| format!("{} {}", measured.program.name(), measured.place);
        // The usual place stands among the others.
        let mut stores: Vec<Measured> =
            self.stores.iter().chain(self.programs.iter().filter(|_| !self.stores.is_empty())).cloned().collect();
        let place = |measured: &Measured| self.stores.iter().position(|other| other.program == measured.program);
        stores.sort_by_key(|measured| (place(measured), measured.place.delay(), measured.place.is_remote()));
        plots.push(("stores", alone("Speed-up by place of the store, one client", &stores, &self.levels, name, of_none)));
        for (name, plot) in plots.into_iter().filter(|(_, plot)| !plot.names.is_empty()) {
            plot.write(&named(name))?;
        }
        Ok(())
    }

    /// What was measured, and what is simulated of more cores, by suite and level.
    fn on_more_cores(&self) -> Plot {
        let cores: Vec<usize> = self.simulated_cores().collect();
        let suites = Suite::ALL.into_iter().flat_map(|suite| self.levels.iter().skip(1).map(move |level| (suite, *level)));
        let (mut measured, mut series) = (Vec::new(), Vec::new());
        for (suite, level) in suites {
            let simulated = cores.iter().map(|cores| Some(self.on_cores(suite, level, *cores, |cores| cores.speed_up).0));
            let simulated: Vec<Option<f64>> = simulated.map(|gain| gain.filter(|gain| gain.is_finite())).collect();
            if simulated.iter().all(Option::is_none) {
                continue;
            }
            let none = || cores.iter().map(|_| None);
            let seen = Some(self.speed_up(suite, level)).filter(|gain| gain.is_finite());
            measured.push((format!("{suite}, {level}, measured"), std::iter::once(seen).chain(none()).collect()));
            series.push((format!("{suite}, {level}"), std::iter::once(None).chain(simulated).collect()));
        }
        let names = std::iter::once(self.workers).chain(cores).map(|cores| format!("{cores} cores"));
        Plot {
            caption: "Speed-up by cores of the server, one client, Redis 1 ms away: measured, and simulated".to_owned(),
            names: if series.is_empty() { Vec::new() } else { names.collect() },
            series: measured.into_iter().chain(series).collect(),
            lines: vec![(1.0, 0.6)],
        }
    }

    /// All loads of all programs.
    fn at_loads(&self) -> Plot {
        let cells =
            || self.programs.iter().flat_map(|measured| (0..measured.off().loads.len()).map(move |load| (measured, load)));
        let name = |(measured, load): (&Measured, usize)| {
            format!("{} {:.0} %", measured.program.name(), measured.off().loads[load].load * 1e2)
        };
        let gain = |measured: &Measured, level: &str, load: usize| {
            measured.at_load(measured.column(level)?).nth(load).map(|(_, gain)| gain)
        };
        let series =
            self.levels.iter().skip(1).map(|level| {
                ((*level).to_owned(), cells().map(|(measured, load)| gain(measured, level, load)).collect::<Vec<_>>())
            });
        Plot {
            caption: "Speed-up by load, Redis 1 ms away".to_owned(),
            names: cells().map(name).collect(),
            series: series.filter(|(_, points)| points.iter().any(Option::is_some)).collect(),
            lines: vec![(1.0, 0.6)],
        }
    }
}
