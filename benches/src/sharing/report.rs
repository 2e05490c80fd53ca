//! What was measured, as tables, pictures and JSON, and the figures that the paper has, too.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::arrivals::Pattern;
use super::column::Column;
use super::measured::{Cell, ColumnMeasured, Measured};
use super::others::{Hogs, Memory, Merging, Runnable, Utilisation};
use super::timeline::Timeline;
use crate::plot::{self, Plot};

/// The paper's figures: what they are about, and how many times better MXFaaS is than its baseline.
const PAPER: [(&str, f64); 6] = [
    ("mean latency", 5.2),
    ("p99", 7.4),
    ("throughput", 4.8),
    ("memory", 3.4),
    ("mean latency to pre-warming", 2.1),
    ("the same at the highest load", 2.9),
];

/// Everything.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Workers of the server.
    pub workers: usize,
    /// Invocations of a function at the same time, for each core, in the paper's baseline.
    pub nightcore: usize,
    /// From which everything was drawn.
    pub seed: u64,
    /// The programs.
    pub programs: Vec<Measured>,
    /// A function that waits, beside one that computes.
    pub hogs: Option<Hogs>,
    /// More that can run than cores.
    pub runnable: Vec<Runnable>,
    /// Utilisation over time.
    pub utilisation: Vec<Utilisation>,
    /// Reads that wait for others.
    pub merging: Vec<Merging>,
    /// Memory of images.
    pub memory: Vec<Memory>,
}

/// How many times better everything on is than a column; of several numbers the geometric mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// The mean latency, of all loads.
    pub mean: f64,
    /// The same at the highest load, each request for itself.
    pub mean_high: f64,
    /// The 99th percentile, of all loads.
    pub p99: f64,
    /// The highest rate with a mean of at most twice the unloaded one.
    pub throughput: f64,
}

impl Measured {
    fn column(&self, name: &str) -> Option<&ColumnMeasured> {
        self.columns.iter().find(|column| column.column == name)
    }
}

impl ColumnMeasured {
    /// Of all loads together.
    fn private_mb(&self) -> f64 {
        self.cells.iter().map(|cell| cell.private_mb).sum()
    }
}

/// NaN of none.
fn geometric_mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = numbers.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

impl Report {
    /// How many times better everything on is than the column of this name, over all programs.
    pub fn gain(&self, name: &str) -> Gain {
        let own = Column::Sledge.to_string();
        let pairs = || self.programs.iter().filter_map(|program| Some((program.column(name)?, program.column(&own)?)));
        let both = || pairs().flat_map(|(other, own)| other.cells.iter().zip(&own.cells));
        let ratio = |of: fn(&Cell) -> f64| geometric_mean(both().map(|(other, own)| of(other) / of(own)));
        let load_max = both().map(|(_, own)| own.load).fold(0.0, f64::max);
        let high = both().filter(|(_, own)| own.load == load_max && own.pattern == Pattern::Poisson);
        Gain {
            mean: ratio(|cell| cell.mean_ms),
            mean_high: geometric_mean(high.map(|(other, own)| other.mean_ms / own.mean_ms)),
            p99: ratio(|cell| cell.p99_ms),
            throughput: geometric_mean(pairs().filter_map(|(other, own)| Some(own.throughput? / other.throughput?))),
        }
    }

    /// Memory of all functions together with as many invocations at the same time: images of their own to shared ones.
    pub fn memory(&self) -> f64 {
        let sum = |of: fn(&Memory) -> f64| self.memory.iter().map(of).sum::<f64>();
        sum(|memory| memory.own_mb) / sum(|memory| memory.shared_mb)
    }

    /// What the program that comes least near to it has of its ceiling: of what the cores could do with the least processor time that a request took in any
    /// column.
    pub fn ceiling(&self) -> f64 {
        self.programs.iter().map(|program| self.ceiling_of(program)).fold(f64::NAN, f64::min)
    }

    fn ceiling_of(&self, program: &Measured) -> f64 {
        let least = program.columns.iter().filter(|column| column.column != Column::Memo.to_string()).map(|column| column.cpu_ms);
        let ceiling = self.workers as f64 * 1e3 / least.fold(f64::INFINITY, f64::min);
        program.column(&Column::Sledge.to_string()).map_or(f64::NAN, |own| own.capacity / ceiling)
    }

    /// Tables in Markdown.
    pub fn table(&self) -> String {
        let mut text = self.summary();
        for program in &self.programs {
            self.program(&mut text, program);
        }
        if let Some(hogs) = &self.hogs {
            hogs_table(&mut text, hogs);
        }
        if !self.runnable.is_empty() {
            runnable_table(&mut text, &self.runnable);
        }
        if !self.utilisation.is_empty() {
            utilisation_table(&mut text, &self.utilisation);
        }
        if !self.merging.is_empty() {
            merging_table(&mut text, &self.merging);
        }
        if !self.memory.is_empty() {
            self.memory_table(&mut text);
        }
        text
    }

    /// Names of the columns, in their order.
    fn columns(&self) -> impl Iterator<Item = &str> {
        self.programs.first().into_iter().flat_map(|program| program.columns.iter().map(|column| &*column.column))
    }

    fn summary(&self) -> String {
        let mut text = format!(
            "## How many times better `sledge` is\n\n{} worker(s), `nightcore` with {} invocations of a function at a time for each; geometric means over all programs \
             and loads.\n\n| to | mean latency | at the highest load | p99 | throughput |\n|---|---:|---:|---:|---:|\n",
            self.workers, self.nightcore
        );
        for (name, gain) in self.columns().filter(|name| *name != "sledge").map(|name| (name, self.gain(name))) {
            let Gain { mean, mean_high, p99, throughput } = gain;
            let throughput = if throughput.is_nan() { String::new() } else { format!("{throughput:.2}") };
            let _ = writeln!(text, "| {name} | {mean:.2} | {mean_high:.2} | {p99:.2} | {throughput} |");
        }
        let _ = writeln!(text, "\nThe program that comes least near to its ceiling has {:.2} of it.", self.ceiling());
        text += "\nThe paper has, of MXFaaS: ";
        let paper: Vec<String> = PAPER.iter().map(|(what, gain)| format!("{what} {gain}")).collect();
        let _ = writeln!(text, "{}.", paper.join(", "));
        text
    }

    fn program(&self, text: &mut String, program: &Measured) {
        let Measured { program: name, what, delay_ms, capacity, best, columns, .. } = program;
        let cells = columns.first().map_or(&[][..], |column| &column.cells[..]);
        let _ = writeln!(
            text,
            "\n## {name}, Redis {delay_ms} ms away\n\n{what}. {capacity:.1} requests a second are all that `sledge` can do, {:.2} of the ceiling; `nightcore-best` has {best} \
             for each worker. Latencies: mean / p99 in ms; `>`: not all were answered.\n",
            self.ceiling_of(program)
        );
        let heads: Vec<String> = cells.iter().map(|cell| format!("{:.0} %, {}", cell.load * 1e2, cell.pattern)).collect();
        let _ = writeln!(text, "| | alone ms | most/s | CPU ms | of the cores | at 2x/s | {} | private MB |", heads.join(" | "));
        let _ = writeln!(text, "|---|---:|---:|---:|---:|---:|{}---:|", "---:|".repeat(heads.len()));
        for column in columns {
            let latencies: Vec<String> = column.cells.iter().map(latencies).collect();
            let _ = writeln!(
                text,
                "| {} | {:.2} | {:.1} | {:.3} | {:.2} | {} | {} | {:.1} |",
                column.column,
                column.unloaded_ms,
                column.capacity,
                column.cpu_ms,
                column.utilisation,
                column.throughput.map_or_else(String::new, |throughput| format!("{throughput:.1}")),
                latencies.join(" | "),
                column.private_mb() / column.cells.len() as f64,
            );
        }
    }

    fn memory_table(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "\n## Memory of images\n\nPrivate memory beyond that of a server without functions, with as many invocations under way all the time. All together have {:.2} times as much if each \
             initialises its own image; the paper has 3.4.\n\n| | | at the same time | own images MB | a shared one MB |\n|---|---|---:|---:|---:|",
            self.memory()
        );
        for Memory { program, what, invocations, own_mb, shared_mb } in &self.memory {
            let _ = writeln!(text, "| {program} | {what} | {invocations} | {own_mb:.1} | {shared_mb:.1} |");
        }
    }

    /// Writes pictures: `path` with `-mean`, `-p99` and `-utilisation`, each as SVG and PNG.
    ///
    /// # Errors
    ///
    /// If one cannot be drawn or written.
    pub fn plot(&self, path: &Path) -> Result<()> {
        let named = |more: &str| path.with_file_name(format!("{}-{more}", path.file_name().unwrap_or_default().display()));
        self.latencies("Mean latency in ms", |cell| cell.mean_ms).write(&named("mean"))?;
        self.latencies("99th percentile of the latency in ms", |cell| cell.p99_ms).write(&named("p99"))?;
        if self.utilisation.is_empty() {
            return Ok(());
        }
        plot::write(&Timeline(&self.utilisation), &named("utilisation"))
    }

    fn latencies(&self, caption: &str, of: fn(&Cell) -> f64) -> Plot {
        let name = |program: &Measured, cell: &Cell| {
            let Measured { program, delay_ms, .. } = program;
            format!("{program} {delay_ms} ms, {:.0} %, {}", cell.load * 1e2, cell.pattern)
        };
        let cells =
            |program: &'_ Measured, column: &str| program.column(column).map_or(Vec::new(), |column| column.cells.clone());
        let own = Column::Sledge.to_string();
        let names =
            self.programs.iter().flat_map(|program| cells(program, &own).into_iter().map(move |cell| name(program, &cell)));
        let points = |column: &str| -> Vec<Option<f64>> {
            self.programs.iter().flat_map(|program| cells(program, column)).map(|cell| Some(of(&cell))).collect()
        };
        Plot {
            caption: caption.to_owned(),
            names: names.collect(),
            series: self.columns().map(|column| (column.to_owned(), points(column))).collect(),
            lines: Vec::new(),
        }
    }
}

/// The mean and the 99th percentile.
fn latencies(cell: &Cell) -> String {
    let least = if cell.unanswered > 0 { ">" } else { "" };
    format!("{least}{:.2} / {least}{:.2}", cell.mean_ms, cell.p99_ms)
}

fn hogs_table(text: &mut String, hogs: &Hogs) {
    let _ = writeln!(
        text,
        "\n## A function that waits beside one that computes for 20 ms\n\n85 % of the cores' time, 20 requests of the first for each of the second. Its p99 is {:.1} times lower than where \
         requests run on until they wait.\n\n| | mean ms | p99 ms | the other's mean ms | its p99 ms |\n|---|---:|---:|---:|---:|",
        hogs.gain()
    );
    for row in &hogs.rows {
        let ([mean, other_mean], [p99, other_p99]) = (row.mean_ms, row.p99_ms);
        let _ = writeln!(text, "| {} | {mean:.2} | {p99:.2} | {other_mean:.2} | {other_p99:.2} |", row.column);
    }
}

fn runnable_table(text: &mut String, rows: &[Runnable]) {
    let _ = writeln!(
        text,
        "\n## More that can run than cores\n\n{} at 90 % of the capacity, in bursts. So many run at the same time that on average so many can run for each core, and share it in turn. \
         The paper's p99 is 1.6 times as high with 20 % more, and 4 times with 50 %.\n\n| can run, by core | under way, by core | mean ms | p99 ms |\n|---|---:|---:|---:|",
        rows.first().map_or("", |row| &row.program)
    );
    for Runnable { by_core, limit, mean_ms, p99_ms, .. } in rows {
        let by_core = by_core.map_or("`sledge`".to_owned(), |by_core| format!("{by_core:.1}"));
        let limit = limit.map_or("auto".to_owned(), |limit| format!("{limit:.1}"));
        let _ = writeln!(text, "| {by_core} | {limit} | {mean_ms:.2} | {p99_ms:.2} |");
    }
}

fn utilisation_table(text: &mut String, rows: &[Utilisation]) {
    text.push_str("\n## Utilisation over time, at the highest load\n\n| | | mean | least | most | mean latency ms |\n|---|---|---:|---:|---:|---:|\n");
    for Utilisation { program, column, shares, mean_ms } in rows {
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let (least, most) = (shares.iter().copied().fold(f64::NAN, f64::min), shares.iter().copied().fold(f64::NAN, f64::max));
        let _ = writeln!(text, "| {program} | {column} | {mean:.2} | {least:.2} | {most:.2} | {mean_ms:.2} |");
    }
}

fn merging_table(text: &mut String, rows: &[Merging]) {
    text.push_str(
        "\n## Reads that wait for others, at the highest load\n\nThe paper shares 46 % of the accesses of img-rotate with 1,000 us.\n\n| | `kv_merge_us` | reads shared | mean ms | p99 ms |\n\
         |---|---:|---:|---:|---:|\n",
    );
    for Merging { program, merge_us, shared, mean_ms, p99_ms } in rows {
        let _ = writeln!(text, "| {program} | {merge_us} | {:.0} % | {mean_ms:.2} | {p99_ms:.2} |", shared * 1e2);
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite::Class;
    use super::*;

    fn cell(mean_ms: f64, private_mb: f64) -> Cell {
        Cell {
            load: 0.5,
            pattern: Pattern::Poisson,
            rate: 10.0,
            requests: 9,
            unanswered: usize::from(mean_ms > 50.0),
            mean_ms,
            p50_ms: mean_ms,
            p99_ms: mean_ms * 3.0,
            utilisation: 0.5,
            private_mb,
        }
    }

    fn column(name: &str, cpu_ms: f64, capacity: f64, cells: Vec<Cell>) -> ColumnMeasured {
        let throughput = Some(capacity / 2.0);
        ColumnMeasured { column: name.to_owned(), unloaded_ms: 1.0, capacity, cpu_ms, utilisation: 1.0, throughput, cells }
    }

    fn report() -> Report {
        let program = |name: &str, columns| Measured {
            program: name.to_owned(),
            class: Class::Web,
            what: "nothing".to_owned(),
            accesses: 2,
            delay_ms: 5.0,
            capacity: 900.0,
            best: 4,
            columns,
        };
        let programs = vec![
            program(
                "a",
                vec![
                    column("nightcore", 2.0, 100.0, vec![cell(80.0, 60.0)]),
                    column("sledge", 1.25, 700.0, vec![cell(20.0, 10.0)]),
                    column("memo", 0.1, 9_000.0, vec![cell(1.0, 1.0)]),
                ],
            ),
            program(
                "b",
                vec![column("nightcore", 1.0, 450.0, vec![cell(9.0, 12.0)]), column("sledge", 1.25, 900.0, vec![cell(9.0, 8.0)])],
            ),
        ];
        let memory = |own_mb: f64, shared_mb: f64| Memory {
            program: "a".to_owned(),
            what: "nothing".to_owned(),
            invocations: 32,
            own_mb,
            shared_mb,
        };
        Report {
            workers: 1,
            nightcore: 8,
            seed: 1,
            programs,
            hogs: None,
            runnable: Vec::new(),
            utilisation: Vec::new(),
            merging: Vec::new(),
            memory: vec![memory(30.0, 5.0), memory(30.0, 10.0)],
        }
    }

    #[test]
    fn gains_are_geometric_means_and_memory_is_that_of_all() {
        let gain = report().gain("nightcore");
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(gain.mean, 2.0) && close(gain.p99, 2.0), "{gain:?}");
        assert!(close(gain.throughput, 14.0_f64.sqrt()) && close(report().memory(), 4.0), "{gain:?}");
        assert!(report().gain("prewarmed").mean.is_nan());
    }

    #[test]
    fn the_ceiling_is_of_the_least_processor_time_that_runs_took() {
        // Of 800 a second, and of 1,000; answers from a table are no runs.
        assert!((report().ceiling() - 0.875).abs() < 1e-9, "{}", report().ceiling());
    }

    #[test]
    fn tables_name_what_was_not_answered() {
        let report = report();
        let table = report.table();
        for needed in
            ["| nightcore | 2.00 | 2.00 | 2.00 | 3.74 |", ">80.00 / >240.00", "| 20.00 / 60.00 |", "0.88 of the ceiling"]
        {
            assert!(table.contains(needed), "{needed} is missing in:\n{table}");
        }
        assert!(!table.contains("## Utilisation"));
    }
}
