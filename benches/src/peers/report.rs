//! What a run came to: for each function and server numbers, or why there are none.

use std::fmt::{self, Write as _};

use super::peer::{Peer, SLEDGE};
use super::plan::Plan;
use crate::row::{self, Row};
use crate::spread::Spread;

/// What came of asking a server for a function.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A row for each turn.
    Measured(Vec<Row>),
    /// It is not here, or does not have the function: why.
    Missing(String),
    /// It is here and does not do what it should: what it did.
    Failed(String),
}

/// One server and one function.
#[derive(Debug, Clone)]
pub struct Line {
    /// The function, and how it was asked for.
    pub scenario: String,
    /// The server.
    pub server: &'static str,
    /// What came of it.
    pub outcome: Outcome,
}

/// All of it.
#[derive(Debug)]
pub struct Report {
    /// By scenario, `sledge` first.
    pub lines: Vec<Line>,
    peers: Vec<Peer>,
    turns: usize,
    conditions: String,
}

/// Numbers of a server, medians of its turns, and what `sledge` has of them.
struct Numbers {
    per_second: f64,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
    throughput: Option<f64>,
    p99: Option<f64>,
}

impl Report {
    /// Of a plan that was not carried out yet. `conditions` are machine, cores and versions.
    pub fn new(plan: &Plan, conditions: String) -> Report {
        Report { lines: Vec::new(), peers: plan.peers.clone(), turns: plan.turns, conditions }
    }

    /// How many servers failed at how many functions.
    pub fn failures(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line.outcome, Outcome::Failed(_))).count()
    }

    /// Names of the functions, as they were asked for.
    pub fn scenarios(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for line in &self.lines {
            if !names.contains(&line.scenario.as_str()) {
                names.push(&line.scenario);
            }
        }
        names
    }

    /// The peers, in the order of the tables.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// `sledge`'s throughput by a server's, the median of turns; none if one of them has not been measured.
    pub fn throughput(&self, scenario: &str, server: &str) -> Option<f64> {
        self.ratio(scenario, server, |row| row.per_second)
    }

    fn rows(&self, scenario: &str, server: &str) -> Option<&[Row]> {
        let line = self.lines.iter().find(|line| line.scenario == scenario && line.server == server)?;
        match &line.outcome {
            Outcome::Measured(rows) => Some(rows),
            Outcome::Missing(_) | Outcome::Failed(_) => None,
        }
    }

    fn ratio(&self, scenario: &str, server: &str, number: fn(&Row) -> f64) -> Option<f64> {
        let (first, own) = (self.rows(scenario, SLEDGE)?, self.rows(scenario, server)?);
        median(first.iter().zip(own).map(|(first, own)| number(first) / number(own)).collect())
    }

    fn numbers(&self, line: &Line) -> Option<Numbers> {
        let rows = self.rows(&line.scenario, line.server)?;
        let of = |number: fn(&Row) -> f64| median(rows.iter().map(number).collect());
        let compared = line.server != SLEDGE;
        Some(Numbers {
            per_second: of(|row| row.per_second)?,
            mean_us: of(|row| row.mean_us)?,
            p50_us: of(|row| row.p50_us)?,
            p99_us: of(|row| row.p99_us)?,
            throughput: self.throughput(&line.scenario, line.server).filter(|_| compared),
            p99: self.ratio(&line.scenario, line.server, |row| row.p99_us).filter(|_| compared),
        })
    }

    /// Every turn, and a line without numbers for what was not measured.
    pub fn csv(&self) -> String {
        let mut text = format!("# {}\n", self.conditions);
        let head = row::csv(&[]);
        let columns = head.trim_end().split(',').count();
        let _ = writeln!(text, "{},note", head.trim_end());
        for line in &self.lines {
            match &line.outcome {
                Outcome::Measured(rows) => {
                    let lines = row::csv(rows);
                    lines.lines().skip(1).for_each(|line| text.push_str(&format!("{line},\n")));
                }
                outcome => {
                    let note = outcome.to_string().replace('"', "\"\"").replace(['\r', '\n'], " ");
                    let _ = writeln!(text, "{},{}{}\"{note}\"", line.scenario, line.server, ",".repeat(columns - 1));
                }
            }
        }
        text
    }

    /// A table for each function, in Markdown, which reads well on a terminal, too.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        for scenario in self.scenarios() {
            let _ = write!(
                text,
                "\n## {scenario}\n\n\
                 | server | replies/s | mean us | p50 us | p99 us | sledge's replies/s to its | sledge's p99 to its |\n\
                 |---|---:|---:|---:|---:|---:|---:|\n"
            );
            for line in self.lines.iter().filter(|line| line.scenario == scenario) {
                let _ = match self.numbers(line) {
                    Some(numbers) => writeln!(text, "| {} | {numbers} |", line.server),
                    None => writeln!(text, "| {} | {} | | | | | |", line.server, line.outcome.to_string().replace('|', "\\|")),
                };
            }
        }
        text
    }

    /// The tables, with what one has to know to read them.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# Sledge and its peers\n\n{}.\n\nMade by `make bench-peers`. Every server has the same one core, all clients are on another; in each of {} turns \
             all servers are asked for a function, one after the other. Connections are kept, and each client sends its next request when the last \
             one was answered. Every reply is compared with one that was judged to be right.\n\nNumbers are medians of the turns. A ratio above 1 \
             of replies a second says that sledge answers more; one below 1 of p99 that it is done earlier. A function's source is the same for all \
             servers that run WebAssembly or a program, each compiled as is best for it: for `sledge` by `awsm compile`, natively by clang -O3 -march=native, as \
             WebAssembly for others by clang -O3 -msimd128, since their compilers make no vectors of loops. image-resize and plate-detect are in Rust, \
             built with target-cpu=native and target-feature=+simd128 instead.\n\n",
            self.conditions, self.turns
        );
        let _ = writeln!(
            text,
            "- `{SLEDGE}`: one worker, each request in a fresh sandbox that is preempted every half millisecond; before it sleeps, it looks for \
             requests for 50 us"
        );
        for peer in &self.peers {
            let _ = writeln!(text, "- `{}`: {}", peer.name(), peer.description());
        }
        text.push_str(&self.tables());
        text.push_str("\n![sledge's throughput to that of its peers](peers.svg)\n");
        text
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = |ratio: Option<f64>| ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        write!(
            f,
            "{:.0} | {:.1} | {:.1} | {:.1} | {} | {}",
            self.per_second,
            self.mean_us,
            self.p50_us,
            self.p99_us,
            ratio(self.throughput),
            ratio(self.p99)
        )
    }
}

/// On one line.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Measured(rows) => {
                let per_second = median(rows.iter().map(|row| row.per_second).collect()).unwrap_or(f64::NAN);
                let p99_us = median(rows.iter().map(|row| row.p99_us).collect()).unwrap_or(f64::NAN);
                write!(f, "{per_second:.0} a second, p99 {p99_us:.1} us")
            }
            Outcome::Missing(reason) => f.write_str(&reason.replace('\n', " ")),
            Outcome::Failed(reason) => write!(f, "failed: {}", reason.replace('\n', " ")),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.scenario, self.server, self.outcome)
    }
}

/// None of none.
fn median(numbers: Vec<f64>) -> Option<f64> {
    Spread::of(numbers).map(|spread| spread.median)
}
