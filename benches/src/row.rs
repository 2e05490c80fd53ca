//! What a run of load came to: a row each, for a table to read, as CSV and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::load::{Load, Outcome};

/// One load on one server, once.
#[derive(Debug, Clone, Serialize)]
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
        let turns = |server: &str| {
            rows.iter().filter(|other| other.scenario == row.scenario && other.server == server).collect::<Vec<_>>()
        };
        let own = turns(&row.server);
        let of = |number: fn(&Row) -> f64| median(own.iter().map(|row| number(row)).collect());
        let first = rows.iter().find(|other| other.scenario == row.scenario).map_or(row.server.as_str(), |first| &first.server);
        let ratio = |number: fn(&Row) -> f64| {
            if first == row.server {
                return String::new();
            }
            let ratios = turns(first).iter().zip(&own).map(|(first, own)| number(first) / number(own)).collect();
            format!("{:.2}", median(ratios))
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

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
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
    fn each_row_has_as_many_values_as_there_are_names() {
        let text = csv(&[row("sledge", 0, 100.0)]);
        let counts: Vec<_> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(counts, [15, 15]);
    }
}
