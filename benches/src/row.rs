//! What a run of load came to: a row each, for a table to read, as CSV and as JSON.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::load::{Load, Outcome};
use crate::spread::Spread;

/// One load on one server, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was done.
    pub scenario: String,
    /// With which server.
    pub server: String,
    /// Which repetition.
    pub turn: usize,
    /// How many connections at a time.
    pub clients: usize,
    /// Whether each client kept its connection.
    pub keep_alive: bool,
    /// Requests a second that were due; none in a closed loop.
    pub rate: Option<f64>,
    /// Good replies that count.
    pub replies: u64,
    /// Refusals.
    pub refused: u64,
    /// Good replies a second.
    pub per_second: f64,
    /// Latencies: from the start of a request, in an open loop from when it was due.
    pub mean_us: f64,
    /// Half took at most that long.
    pub p50_us: f64,
    /// Nine in ten.
    pub p90_us: f64,
    /// Ninety-nine in a hundred.
    pub p99_us: f64,
    /// All but one in a thousand.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Row {
    /// What `load` came to.
    pub fn new(scenario: &str, server: &str, turn: usize, load: &Load, outcome: &Outcome) -> Row {
        Row {
            scenario: scenario.to_owned(),
            server: server.to_owned(),
            turn,
            clients: load.clients,
            keep_alive: !load.reconnect,
            rate: load.rate,
            replies: outcome.latencies.len(),
            refused: outcome.refused,
            per_second: outcome.per_second,
            mean_us: outcome.mean_us(),
            p50_us: outcome.median_us(),
            p90_us: outcome.quantile_us(0.9),
            p99_us: outcome.p99_us(),
            p999_us: outcome.quantile_us(0.999),
            max_us: outcome.quantile_us(1.0),
        }
    }
}

/// The rows as CSV, with a line of names before them.
pub fn csv(rows: &[Row]) -> String {
    let mut text =
        "scenario,server,turn,clients,keep_alive,rate,replies,refused,per_second,mean_us,p50_us,p90_us,p99_us,p999_us,max_us\n"
            .to_owned();
    for row in rows {
        let rate = row.rate.map(|rate| format!("{rate:.0}")).unwrap_or_default();
        writeln!(
            text,
            "{},{},{},{},{},{rate},{},{},{:.1},{:.1},{:.1},{:.1},{:.1},{:.1},{:.1}",
            row.scenario,
            row.server,
            row.turn,
            row.clients,
            row.keep_alive,
            row.replies,
            row.refused,
            row.per_second,
            row.mean_us,
            row.p50_us,
            row.p90_us,
            row.p99_us,
            row.p999_us,
            row.max_us
        )
        .expect("into a string");
    }
    text
}

/// Medians over turns as a table in Markdown. Behind each server but the first of a scenario stand the first's numbers to its own, turn by turn.
pub fn table(rows: &[Row]) -> String {
    let mut text = "| scenario | server | clients | replies/s | mean us | p50 us | p99 us | p99.9 us | first's replies/s to this | first's p99 to this |\n\
                    |---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let mut done: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        if done.contains(&(&row.scenario, &row.server)) {
            continue;
        }
        done.push((&row.scenario, &row.server));
        let of = |number: Number| median(turns(rows, &row.scenario, &row.server).map(number));
        let first = rows.iter().find(|other| other.scenario == row.scenario).map_or(row.server.as_str(), |first| &first.server);
        let ratio = |number: Number| {
            if first == row.server {
                return String::new();
            }
            ratio(rows, &row.scenario, [first, &row.server], number)
                .map(|ratio| format!("{:.2}", ratio.median))
                .unwrap_or_default()
        };
        let kept = if row.keep_alive { "" } else { ", new connections" };
        let rate = row.rate.map(|rate| format!(", {rate:.0} due a second")).unwrap_or_default();
        writeln!(
            text,
            "| {} | {} | {}{kept}{rate} | {:.0} | {:.1} | {:.1} | {:.1} | {:.1} | {} | {} |",
            row.scenario,
            row.server,
            row.clients,
            of(|row| row.per_second),
            of(|row| row.mean_us),
            of(|row| row.p50_us),
            of(|row| row.p99_us),
            of(|row| row.p999_us),
            ratio(|row| row.per_second),
            ratio(|row| row.p99_us)
        )
        .expect("into a string");
    }
    text
}

/// One of a row's numbers.
pub type Number = fn(&Row) -> f64;

fn turns<'a>(rows: &'a [Row], scenario: &'a str, server: &'a str) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(move |row| row.scenario == scenario && row.server == server)
}

/// What one server's turns of a scenario come to; none if there are none.
pub fn spread(rows: &[Row], scenario: &str, server: &str, number: Number) -> Option<Spread> {
    Spread::of(turns(rows, scenario, server).map(number))
}

/// What one server's turns are to another's, turn by turn; none if one has none.
pub fn ratio(rows: &[Row], scenario: &str, [server, to]: [&str; 2], number: Number) -> Option<Spread> {
    let (over, under) = (turns(rows, scenario, server), turns(rows, scenario, to));
    Spread::of(over.zip(under).map(|(over, under)| number(over) / number(under)))
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    Spread::of(numbers).map_or(f64::NAN, |spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(server: &str, turn: usize, per_second: f64) -> Row {
        Row {
            scenario: "ping".to_owned(),
            server: server.to_owned(),
            turn,
            clients: 10,
            keep_alive: true,
            rate: None,
            replies: 9,
            refused: 0,
            per_second,
            mean_us: 1.0,
            p50_us: 1.0,
            p90_us: 1.0,
            p99_us: 1e6 / per_second,
            p999_us: 1.0,
            max_us: 1.0,
        }
    }

    #[test]
    fn ratios_are_medians_of_turns_to_the_first_server() {
        let rows = [row("sledge", 0, 100.0), row("native", 0, 50.0), row("sledge", 1, 300.0), row("native", 1, 100.0)];
        let lines: Vec<_> = table(&rows).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[2].starts_with("| ping | sledge | 10 | 300 |") && lines[2].ends_with("|  |  |"), "{}", lines[2]);
        assert!(lines[3].starts_with("| ping | native | 10 | 100 |") && lines[3].ends_with("| 3.00 | 0.50 |"), "{}", lines[3]);
    }

    #[test]
    fn rows_outlive_csv() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("load.csv");
        let rows = [row("sledge", 0, 100.0), Row { rate: Some(5e3), ..row("handler in process", 1, 0.1) }];
        std::fs::write(&file, csv(&rows)).unwrap();
        assert_eq!(crate::tables::read::<Row>(&file).unwrap(), rows);
    }
}
