//! What one task says about itself, and what the server says about it.

use std::str::FromStr;

use anyhow::{Context, Result, ensure};

use super::data::Sum;
use crate::client::Reply;

/// What the function calls the tasks of each stage.
pub const TASKS: [&str; 2] = ["partition", "sort"];
/// What the function calls its phases: three of each stage.
pub const PHASES: [&str; 6] = ["read", "divide", "write", "collect", "sort", "store"];
/// Those of each stage that compute.
pub const COMPUTING: [&str; 2] = ["divide", "sort"];

/// A task that is done. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    /// What it read.
    pub sum: Sum,
    /// How long each of its phases lasted, waiting included, by the function's own clock.
    pub lasted: [f64; 3],
    /// For how long it ran in each of its phases.
    pub ran: [f64; 3],
    /// How long it waited for its data in all.
    pub waited: f64,
}

impl Done {
    /// Of a reply with `Server-Timing`.
    ///
    /// # Errors
    ///
    /// If it is none of a task of that stage.
    pub fn read(stage: usize, reply: &Reply) -> Result<Done> {
        let text = String::from_utf8_lossy(&reply.body);
        ensure!(reply.status.is_success(), "the task `{}`: status {}: {text}", TASKS[stage], reply.status);
        let timing = reply.headers.get("server-timing").context("a reply without Server-Timing")?;
        Done::parse(stage, &text, timing.to_str().context("Server-Timing")?)
    }

    fn parse(stage: usize, text: &str, timing: &str) -> Result<Done> {
        let phases = &PHASES[stage * 3..][..3];
        let mut done = Done { sum: Sum { records: said(text, "records")?, checksum: said(text, "checksum")? }, ..Done::EMPTY };
        for (index, name) in phases.iter().enumerate() {
            done.lasted[index] = said::<f64>(text, name)? / 1e6;
            done.ran[index] = timed(timing, &format!("phase-{name}"))?;
        }
        done.waited = timed(timing, "blocked")?;
        Ok(done)
    }

    const EMPTY: Done = Done { sum: Sum { records: 0, checksum: 0 }, lasted: [0.0; 3], ran: [0.0; 3], waited: 0.0 };
}

/// The number behind a name.
fn said<T: FromStr>(text: &str, name: &str) -> Result<T> {
    let mut words = text.split_whitespace().skip_while(|word| *word != name);
    let number = words.nth(1).and_then(|number| number.parse().ok());
    number.with_context(|| format!("there is no number `{name}` in the reply {text:?}"))
}

/// The duration of that name, in seconds.
fn timed(timing: &str, name: &str) -> Result<f64> {
    let mut entries = timing.split(',').filter_map(|entry| entry.trim().split_once(";dur="));
    let milliseconds = entries.find_map(|(known, number)| (known == name).then(|| number.parse::<f64>().ok())?);
    Ok(milliseconds.with_context(|| format!("there is no time `{name}` in Server-Timing: {timing}"))? / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_from_what_function_and_server_say() {
        let timing =
            "queue;dur=0.1, run;dur=9, blocked;dur=5.5000, phase-read;dur=1.0000, phase-divide;dur=2, phase-write;dur=0.5";
        let done = Done::parse(0, "read 1500 divide 2000 write 3000 records 7 checksum 18446744073709551615", timing).unwrap();
        assert_eq!(done.sum, Sum { records: 7, checksum: u64::MAX });
        assert_eq!((done.lasted, done.ran), ([0.0015, 0.002, 0.003], [0.001, 0.002, 0.0005]));
        assert_eq!(done.waited, 0.0055);
        let error = Done::parse(1, "collect 1 sort 2 store 3 records 7 checksum 1", timing).unwrap_err().to_string();
        assert!(error.contains("phase-collect"), "{error}");
        assert!(Done::parse(0, "read 1 divide 2", timing).unwrap_err().to_string().contains("`records`"));
    }
}
