//! What was measured, as tables and JSON, with the figures that the paper has, too.

use std::fmt::Write as _;

use serde::Serialize;

use super::Settings;
use super::measured::{Column, Measured, median, ratio};
use super::paper::{PAPER, PAPER_HITS};
use super::program::Suite;
use super::source::Work;

/// Everything.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Workers of the server.
    pub workers: usize,
    /// From which everything was drawn.
    pub seed: u64,
    /// How much functions compute.
    pub work: Work,
    /// The columns.
    pub levels: Vec<&'static str>,
    /// All programs at the paper's hit rates.
    pub programs: Vec<Measured>,
    /// Other hit rates.
    pub hits: Vec<Measured>,
    /// Other places of the store.
    pub stores: Vec<Measured>,
    /// Inputs that are made to do harm.
    pub poison: Vec<Measured>,
}

/// The head of tables of programs and columns.
const HEAD: &str = "| level | alone ms | p99 ms | speed-up | of the ceiling | CPU ms | to off | in vain % | lazy % | adopted | dropped | squashed | left out |";
const RULE: &str = "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

impl Report {
    /// Nothing yet.
    pub fn new(settings: &Settings, work: Work) -> Report {
        Report {
            workers: settings.workers,
            seed: settings.seed,
            work,
            levels: settings.levels.iter().map(|level| level.name).collect(),
            programs: Vec::new(),
            hits: Vec::new(),
            stores: Vec::new(),
            poison: Vec::new(),
        }
    }

    /// Tables in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::new();
        if !self.programs.is_empty() {
            self.summary(&mut text);
            self.programs.iter().for_each(|measured| program(&mut text, measured));
        }
        let more = [("By hit rate", &self.hits), ("By place of the store", &self.stores)];
        for (title, all) in more.into_iter().filter(|(_, all)| !all.is_empty()) {
            let _ = writeln!(text, "\n## {title}\n\n| program | | ceiling {HEAD}\n|---|---|---:{RULE}");
            for measured in all {
                let what = if title == "By hit rate" { measured.kind.to_string() } else { measured.place.to_string() };
                for column in &measured.columns {
                    let _ = writeln!(
                        text,
                        "| {} | {what} | {:.2} {}",
                        measured.program.name(),
                        measured.ceiling(),
                        line(measured, column)
                    );
                }
            }
        }
        self.saturated_near(&mut text);
        if !self.poison.is_empty() {
            self.harm(&mut text);
        }
        self.simulated(&mut text);
        text
    }

    /// Columns beside `off`.
    fn ahead(&self) -> impl Iterator<Item = &'static str> {
        self.levels.iter().copied().skip(1)
    }

    fn summary(&self, text: &mut String) {
        let Report { workers, work, .. } = self;
        let _ = writeln!(
            text,
            "## How many times faster answers come\n\n{workers} worker(s), Redis 1 ms away; functions compute for {} ms, graphs take {} % of their times, of which callers compute {} % and leaves {} %. Each column to the same server without \
             speculation; geometric means over the programs of a suite. In brackets: the paper.\n",
            work.busy_ms, work.graph_percent, work.graph_busy.callers_percent, work.graph_busy.leaves_percent
        );
        let loads: Vec<f64> =
            self.programs.iter().flat_map(|one| &one.off().loads).map(|cell| cell.load).take(self.loads()).collect();
        let heads: String = loads.iter().map(|load| format!(" at {:.0} % |", load * 1e2)).collect();
        let _ = writeln!(
            text,
            "| suite | level | ceiling | alone | of the ceiling |{heads} cold | p99 % lower | at 2x/s | saturated | left out |"
        );
        let _ = writeln!(text, "|---|---|---:|---:|---:|{}---:|---:|---:|---:|---:|", "---:|".repeat(loads.len()));
        for suite in Suite::ALL {
            for level in self.ahead().filter(|level| self.speed_up(suite, level).is_finite()) {
                self.suite_line(text, suite, level, loads.len());
            }
        }
        let _ = writeln!(
            text,
            "\n`cold`: the first executions after a start, of which nothing was learned before. `p99 % lower`: at the highest load. `at 2x/s`: the highest rate with a \
             mean of at most twice what one client sees without speculation."
        );
    }

    /// How many loads there were.
    fn loads(&self) -> usize {
        self.programs.first().map_or(0, |measured| measured.off().loads.len())
    }

    fn suite_line(&self, text: &mut String, suite: Suite, level: &str, loads: usize) {
        let Some(paper) = PAPER.iter().find(|paper| paper.suite == suite) else { return };
        let ceiling = self.mean(suite, level, |measured, _| Some(measured.ceiling()));
        let share = self.mean(suite, level, |measured, column| Some(measured.share(column)));
        let _ = write!(text, "| {suite} | {level} | {ceiling:.2} | {:.2} | {share:.2} |", self.speed_up(suite, level));
        for load in 0..loads {
            let gain = self.mean(suite, level, |measured, column| measured.at_load(column).nth(load).map(|(_, gain)| gain));
            // The paper's loads are three.
            let beside = paper
                .loads
                .get(load)
                .filter(|_| loads == paper.loads.len())
                .map_or_else(String::new, |paper| format!(" ({paper})"));
            let _ = write!(text, " {gain:.2}{beside} |");
        }
        let cold = self.mean(suite, level, |measured, column| Some(ratio(&measured.off().cold_ms, &column.cold_ms)));
        let saturated = self.mean(suite, level, |measured, column| Some(ratio(&column.saturated, &measured.off().saturated)));
        let _ = writeln!(
            text,
            " {} ({}) | {:.0} ({}) | {:.2} ({}) | {saturated:.2} | {:.0} % |",
            shown(cold),
            paper.cold,
            self.p99_percent(suite, level),
            paper.p99_percent,
            self.throughput(suite, level),
            paper.throughput,
            self.left_out(suite, level) * 1e2
        );
    }

    /// Which part of the functions of a suite did not run, on average.
    fn left_out(&self, suite: Suite, level: &str) -> f64 {
        let of = self.programs.iter().filter(|measured| measured.suite == suite);
        let skipped: Vec<f64> = of.filter_map(|measured| Some(measured.skipped(measured.column(level)?))).collect();
        skipped.iter().sum::<f64>() / skipped.len() as f64
    }

    fn saturated_near(&self, text: &mut String) {
        let near: Vec<&Measured> = self.stores.iter().filter(|measured| !measured.off().saturated.is_empty()).collect();
        if near.is_empty() {
            return;
        }
        text.push_str("\n## A store in the server\n\n| program | level | one client, to off | saturated/s | to off |\n|---|---|---:|---:|---:|\n");
        for measured in near {
            for column in &measured.columns {
                let _ = writeln!(
                    text,
                    "| {} | {} | {:.3} | {:.1} | {:.3} |",
                    measured.program.name(),
                    column.level,
                    1.0 / measured.speed_up(column),
                    median(&column.saturated),
                    ratio(&column.saturated, &measured.off().saturated)
                );
            }
        }
    }

    fn harm(&self, text: &mut String) {
        text.push_str(
            "\n## Inputs that are made to do harm\n\nHow many times as long clients wait as without speculation, and by how much memory that belongs to no file has grown.\n\n\
             | program | inputs | level | one client | 8 clients | grown MB | in vain % | adopted | dropped | squashed |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for measured in &self.poison {
            for column in &measured.columns {
                let [adopted, dropped, squashed] = ahead(column);
                let _ = writeln!(
                    text,
                    "| {} | {} | {} | {:.3} | {:.3} | {:.1} | {:.1} | {adopted:.2} | {dropped:.2} | {squashed:.2} |",
                    measured.program.name(),
                    measured.kind,
                    column.level,
                    1.0 / measured.speed_up(column),
                    ratio(&column.crowd_ms, &measured.off().crowd_ms),
                    column.grown_mb.unwrap_or(f64::NAN),
                    measured.wasted_percent(column),
                );
            }
        }
    }
}

/// Nothing where there is no number.
fn shown(number: f64) -> String {
    if number.is_nan() { String::new() } else { format!("{number:.2}") }
}

fn ahead(column: &Column) -> [f64; 3] {
    ["adopted", "dropped", "squashed"].map(|result| column.ahead.get(result).copied().unwrap_or(0.0))
}

/// A column from its name on.
fn line(measured: &Measured, column: &Column) -> String {
    let [adopted, dropped, squashed] = ahead(column);
    format!(
        "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.3} | {:.2} | {:.1} | {:.1} | {adopted:.2} | {dropped:.2} | {squashed:.2} | {:.0} % |",
        column.level,
        median(&column.alone_ms),
        column.p99_ms,
        measured.speed_up(column),
        measured.share(column),
        median(&column.cpu_ms),
        measured.cpu(column),
        measured.wasted_percent(column),
        measured.lazy_percent(column),
        measured.skipped(column) * 1e2,
    )
}

fn program(text: &mut String, measured: &Measured) {
    let Measured { program, suite, place, kind, functions, functions_max, ideal_ms, costs, capacity, .. } = measured;
    let _ = writeln!(
        text,
        "\n## {} ({suite}), {place}, {kind}\n\n{functions:.1} functions on average, at most {functions_max}. A wait for the store takes {:.2} ms, an execution the processor for {:.2} ms. At best it takes \
         {ideal_ms:.2} ms: the ceiling is {:.2}. {:.1} executions a second are all that the server can do without speculation.\n\n{HEAD}\n{RULE}",
        program.name(),
        costs.wait_ms,
        costs.execution_cpu_ms,
        measured.ceiling(),
        capacity.unwrap_or(f64::NAN),
    );
    for column in &measured.columns {
        let _ = writeln!(text, "{}", line(measured, column));
    }
    let heads: String = measured
        .off()
        .loads
        .iter()
        .map(|cell| format!(" {:.0} %: mean / p99 ms | times faster | CPU ms |", cell.load * 1e2))
        .collect();
    let _ = writeln!(text, "\n| level |{heads} cold ms | saturated/s | at 2x/s |");
    let _ = writeln!(text, "|---|{}---:|---:|---:|", "---:|---:|---:|".repeat(measured.off().loads.len()));
    for column in &measured.columns {
        let _ = write!(text, "| {} |", column.level);
        for (cell, gain) in measured.at_load(column) {
            let least = if cell.unanswered > 0 { ">" } else { "" };
            let _ = write!(
                text,
                " {least}{:.2} / {least}{:.2} | {gain:.2} | {:.3} |",
                median(&cell.mean_ms),
                cell.p99_ms,
                median(&cell.cpu_ms)
            );
        }
        let _ = writeln!(
            text,
            " {} | {:.1} | {} |",
            shown(median(&column.cold_ms)),
            median(&column.saturated),
            shown(column.throughput.unwrap_or(f64::NAN))
        );
    }
    if *suite == Suite::FaasChain
        && let super::source::Kind::Hits(hits) = kind
        && let Some((_, gain, [lazy, cpu])) = PAPER_HITS.iter().find(|(percent, ..)| *percent == hits.paths)
    {
        let _ = writeln!(
            text,
            "\nThe paper has, of its suite at this hit rate: speed-up {gain}, processor time to off {cpu}, and {lazy} with lazy completion."
        );
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use speculation::graphs::Split;

    use super::super::ceiling::Costs;
    use super::super::program::Program;
    use super::super::source::{Hits, Kind};
    use super::super::{Settings, USUAL};
    use super::*;
    use crate::speculation::measured::Cell;

    pub(in super::super) fn column(level: &str, alone_ms: &[f64]) -> Column {
        Column {
            level: level.to_owned(),
            alone_ms: alone_ms.to_vec(),
            p99_ms: 9.0,
            cpu_ms: vec![1.0; alone_ms.len()],
            guest_ms: vec![0.5; alone_ms.len()],
            ..Column::default()
        }
    }

    pub(in super::super) fn measured(program: &str, columns: &[Column]) -> Measured {
        let program = Program::named(program).unwrap();
        Measured {
            program,
            suite: program.suite(),
            place: USUAL,
            kind: Kind::Hits(Hits::of_paper(program.suite())),
            functions: 3.0,
            functions_max: 4,
            ideal_ms: 2.0,
            costs: Costs { run_cpu_ms: BTreeMap::new(), wait_ms: 1.1, execution_cpu_ms: 1.0 },
            capacity: Some(500.0),
            columns: columns.to_vec(),
            simulated: None,
        }
    }

    pub(in super::super) fn report() -> Report {
        let work = Work { units_per_ms: 1.0, seals_per_ms: 1.0, busy_ms: 0.2, graph_percent: 20.0, graph_busy: Split::default() };
        Report::new(&Settings::usual(1), work)
    }

    #[test]
    fn tables_have_a_line_for_each_column_and_the_papers_figures() {
        let cell = |mean_ms: f64| Cell {
            load: 0.5,
            rate: 250.0,
            mean_ms: vec![mean_ms],
            p99_ms: 4.0 * mean_ms,
            replies: 100,
            unanswered: usize::from(mean_ms > 9.0),
            cpu_ms: vec![1.25],
        };
        let mut off = column("off", &[8.0]);
        (off.loads, off.saturated, off.throughput, off.cold_ms) = (vec![cell(10.0)], vec![500.0], Some(300.0), vec![9.0]);
        let mut outputs = column("outputs", &[2.5]);
        (outputs.loads, outputs.saturated, outputs.throughput, outputs.cold_ms) =
            (vec![cell(4.0)], vec![400.0], Some(600.0), vec![6.0]);
        outputs.ahead = [("adopted".to_owned(), 2.0), ("skipped".to_owned(), 1.5)].into();
        let mut report = report();
        report.programs = vec![measured("banking", &[off, outputs])];
        let text = report.table();
        for needed in [
            "| FaaSChain | outputs | 4.00 | 3.20 | 0.80 | 2.50 | 1.50 (5.2) | 60 (62) | 2.00 (4.1) | 0.80 | 50 % |",
            "## banking (FaaSChain), Redis 1 ms away, 90 % paths, 90 % repeats",
            "At best it takes 2.00 ms: the ceiling is 4.00. 500.0 executions a second",
            "| outputs | 2.50 | 9.00 | 3.20 | 0.80 | 1.000 | 1.00 | 0.0 | 0.0 | 2.00 | 0.00 | 0.00 | 50 % |",
            "| off | >10.00 / >40.00 | 1.00 | 1.250 | 9.00 | 500.0 | 300.00 |",
            "speed-up 5, processor time to off 1.03, and 1.09 with lazy completion",
        ] {
            assert!(text.contains(needed), "{needed} is missing in:\n{text}");
        }
        assert!(!text.contains("harm") && !text.contains("By hit rate"), "{text}");
        report.hits = report.programs.clone();
        assert!(report.table().contains("| banking | 90 % paths, 90 % repeats | 4.00 | outputs | 2.50 |"), "{}", report.table());
    }
}
