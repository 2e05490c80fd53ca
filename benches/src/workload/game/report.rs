//! What the game's runs come to.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::Settings;
use crate::ecdf::{Ecdf, Panel};
use crate::workload::classes::Classes;
use crate::workload::quantile;

/// A slice of the scheduler, in milliseconds: `quantum_us`, whose default is 500.
const SLICE_MS: f64 = 0.5;

/// Initialisations with so many cores' worth.
#[derive(Debug, Serialize)]
pub struct Initialised {
    /// How many.
    pub cores: f64,
    /// What each took; none where the machine has fewer cores.
    pub seconds: Vec<f64>,
}

/// The ticks of a game.
#[derive(Debug, Serialize)]
pub struct Ticks {
    /// So many play.
    pub players: usize,
    /// Whether other games were initialised meanwhile.
    pub beside: bool,
    /// Classes of the server.
    pub classes: Classes,
    /// From when each was due to its reply.
    pub ms: Vec<f64>,
}

impl Ticks {
    fn at(&self, share: f64) -> f64 {
        quantile(self.ms.iter().copied(), share)
    }

    fn name(&self) -> String {
        let beside = if self.beside { "beside initialisations" } else { "alone" };
        let classes = if self.classes == Classes::Off { String::new() } else { format!(", classes {}", self.classes.name()) };
        format!("{beside}{classes}")
    }
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Report {
    workload: &'static str,
    passes: u32,
    workers: usize,
    /// Initialisations.
    pub initialised: Vec<Initialised>,
    /// Ticks.
    pub ticks: Vec<Ticks>,
}

impl Report {
    pub(super) fn new(settings: &Settings, initialised: Vec<Initialised>, ticks: Vec<Ticks>) -> Report {
        Report { workload: "game", passes: settings.passes, workers: settings.workers, initialised, ticks }
    }

    /// By how many slices the 99th percentile of ticks beside initialisations is above that alone: the worst number of players. With classes where
    /// they were measured, else without.
    pub fn slices(&self) -> f64 {
        let classes = self.ticks.iter().map(|ticks| ticks.classes).find(|classes| *classes != Classes::Off);
        let classes = classes.unwrap_or(Classes::Off);
        let beside = self.ticks.iter().filter(|ticks| ticks.beside && ticks.classes == classes);
        beside.map(|ticks| (ticks.at(0.99) - self.alone(ticks)) / SLICE_MS).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The 99th percentile of the same game alone.
    fn alone(&self, of: &Ticks) -> f64 {
        let alone = self.ticks.iter().find(|ticks| !ticks.beside && (ticks.players, ticks.classes) == (of.players, of.classes));
        alone.map_or(f64::NAN, |alone| alone.at(0.99))
    }

    /// Tables in Markdown.
    pub fn table(&self) -> String {
        let mut text = "## Initialisation\n\n| cores' worth | seconds (least to most) |\n|---:|---:|\n".to_owned();
        for Initialised { cores, seconds } in &self.initialised {
            let at = |share: f64| quantile(seconds.iter().copied(), share);
            let shown = match seconds[..] {
                [] => "not measured: the machine has fewer cores".to_owned(),
                _ => format!("{:.3} ({:.3} to {:.3})", at(0.5), at(0.0), at(1.0)),
            };
            let _ = writeln!(text, "| {cores} | {shown} |");
        }
        text += "\n## Ticks\n\nFrom when a tick was due to its reply, 20 a second.\n\n\
                 | players | | p50 ms | p99 ms | alone + a slice ms |\n|---:|---|---:|---:|---:|\n";
        for ticks in &self.ticks {
            let bound = if ticks.beside { format!("{:.2}", self.alone(ticks) + SLICE_MS) } else { String::new() };
            let _ = writeln!(
                text,
                "| {} | {} | {:.2} | {:.2} | {bound} |",
                ticks.players,
                ticks.name(),
                ticks.at(0.5),
                ticks.at(0.99)
            );
        }
        text
    }

    /// Writes a picture, `path` with the endings `.svg` and `.png`.
    ///
    /// # Errors
    ///
    /// If it cannot be drawn or written.
    pub fn plot(&self, path: &Path) -> Result<()> {
        let measured = self.initialised.iter().filter(|initialised| !initialised.seconds.is_empty());
        let mut panels = vec![Panel {
            caption: "Initialisation, s".to_owned(),
            series: measured.map(|Initialised { cores, seconds }| (format!("{cores} cores"), seconds.clone())).collect(),
            lines: Vec::new(),
        }];
        for players in super::PLAYERS {
            let ticks = || self.ticks.iter().filter(move |ticks| ticks.players == players);
            let bounds = ticks().filter(|ticks| !ticks.beside && ticks.classes == Classes::Off);
            panels.push(Panel {
                caption: format!("Ticks with {players} players, ms"),
                series: ticks().map(|ticks| (ticks.name(), ticks.ms.clone())).collect(),
                lines: bounds.map(|alone| ("p99 alone + a slice".to_owned(), alone.at(0.99) + SLICE_MS)).collect(),
            });
        }
        Ecdf { caption: "Online game: share that took at most so long".to_owned(), panels }.write(&path.with_extension(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(players: usize, beside: bool, classes: Classes, ms: f64) -> Ticks {
        Ticks { players, beside, classes, ms: vec![1.0, ms] }
    }

    #[test]
    fn slices_are_those_of_the_worst_game_with_classes_if_there_are() {
        let settings = Settings { passes: 1, repeat: 1, seconds: 1.0, workers: 1, classes: None, seed: 1 };
        let off = Classes::Off;
        let mut all =
            vec![ticks(16, false, off, 2.0), ticks(16, true, off, 3.0), ticks(40, false, off, 4.0), ticks(40, true, off, 8.0)];
        let initialised =
            || vec![Initialised { cores: 0.5, seconds: vec![2.0] }, Initialised { cores: 4.0, seconds: Vec::new() }];
        assert_eq!(Report::new(&settings, initialised(), vec![]).slices(), f64::NEG_INFINITY);
        all.extend([ticks(16, false, Classes::Inferred, 2.0), ticks(16, true, Classes::Inferred, 2.25)]);
        let report = Report::new(&settings, initialised(), all);
        assert_eq!(report.slices(), 0.5);
        let table = report.table();
        for needed in
            ["| 0.5 | 2.000 (2.000 to 2.000) |", "| 4 | not measured", "| 40 | beside initialisations | 1.00 | 8.00 | 4.50 |"]
        {
            assert!(table.contains(needed), "{needed} is missing in:\n{table}");
        }
        let report = Report { ticks: report.ticks.into_iter().take(4).collect(), ..report };
        assert_eq!(report.slices(), 8.0);
    }
}
