//! What a server says in its metrics about functions, and about what went ahead.

use std::collections::BTreeMap;

use serde::Serialize;

/// What runs of a function took together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Used {
    /// How many there were, however they ended.
    pub runs: f64,
    /// For how long they ran, in seconds.
    pub running_s: f64,
    /// For how long they waited for something else than their turn, in seconds.
    pub blocked_s: f64,
}

/// Everything, since the server was started or since something else was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counts {
    /// By name.
    pub functions: BTreeMap<String, Used>,
    /// Runs that were begun ahead, or left out, by what became of them.
    pub ahead: BTreeMap<String, f64>,
}

const RUNNING: &str = "sledge_running_seconds_total";
const BLOCKED: &str = "sledge_blocked_seconds_total";
const REQUESTS: &str = "sledge_requests_total";
const AHEAD: &str = "sledge_speculative_runs_total";

impl Counts {
    /// From the text of the metrics.
    pub fn parsed(text: &str) -> Counts {
        let mut counts = Counts::default();
        for line in text.lines() {
            let Some((name, value)) = line.rsplit_once(' ') else { continue };
            let (Some((metric, labels)), Ok(value)) = (name.split_once('{'), value.parse::<f64>()) else { continue };
            if metric == AHEAD {
                if let Some(result) = label(labels, "result") {
                    *counts.ahead.entry(result.to_owned()).or_default() += value;
                }
                continue;
            }
            let field: fn(&mut Used) -> &mut f64 = match metric {
                RUNNING => |used| &mut used.running_s,
                BLOCKED => |used| &mut used.blocked_s,
                REQUESTS => |used| &mut used.runs,
                _ => continue,
            };
            if let Some(function) = label(labels, "function") {
                *field(counts.functions.entry(function.to_owned()).or_default()) += value;
            }
        }
        counts
    }

    /// What came after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let used = |(name, now): (&String, &Used)| {
            let before = earlier.functions.get(name).copied().unwrap_or_default();
            let used = Used {
                runs: now.runs - before.runs,
                running_s: now.running_s - before.running_s,
                blocked_s: now.blocked_s - before.blocked_s,
            };
            (name.clone(), used)
        };
        let ahead = |(result, now): (&String, &f64)| (result.clone(), now - earlier.ahead.get(result).copied().unwrap_or(0.0));
        Counts { functions: self.functions.iter().map(used).collect(), ahead: self.ahead.iter().map(ahead).collect() }
    }

    /// Both together.
    pub fn add(&mut self, other: &Counts) {
        for (name, used) in &other.functions {
            let sum = self.functions.entry(name.clone()).or_default();
            sum.runs += used.runs;
            sum.running_s += used.running_s;
            sum.blocked_s += used.blocked_s;
        }
        for (result, count) in &other.ahead {
            *self.ahead.entry(result.clone()).or_default() += count;
        }
    }

    /// For how long functions ran, in milliseconds.
    pub fn running_ms(&self) -> f64 {
        self.functions.values().map(|used| used.running_s * 1e3).sum()
    }

    /// Runs with that result.
    pub fn of(&self, result: &str) -> f64 {
        self.ahead.get(result).copied().unwrap_or(0.0)
    }
}

/// The value of a label in `name="value",...}`.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.trim_end_matches('}').split(',').find_map(|one| one.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE sledge_requests counter\n\
        sledge_requests_total{function=\"a\",tenant=\"t\",outcome=\"ok\"} 7\n\
        sledge_requests_total{function=\"a\",tenant=\"t\",outcome=\"cancelled\"} 2\n\
        sledge_running_seconds_total{function=\"a\",tenant=\"t\"} 0.5\n\
        sledge_running_seconds_total{function=\"b\",tenant=\"t\"} 0.25\n\
        sledge_blocked_seconds_total{function=\"a\",tenant=\"t\"} 1.5\n\
        sledge_running_seconds{function=\"a\"} 9\n\
        sledge_speculative_runs_total{tenant=\"t\",result=\"adopted\"} 5\n\
        sledge_speculative_runs_total{tenant=\"u\",result=\"adopted\"} 1\n\
        sledge_speculative_runs_total{tenant=\"t\",result=\"dropped\"} 3\n";

    #[test]
    fn metrics_are_read_by_function_and_by_result() {
        let counts = Counts::parsed(TEXT);
        assert_eq!(counts.functions["a"], Used { runs: 9.0, running_s: 0.5, blocked_s: 1.5 });
        assert_eq!(counts.functions.len(), 2);
        assert_eq!(counts.running_ms(), 750.0);
        assert_eq!([counts.of("adopted"), counts.of("dropped"), counts.of("squashed")], [6.0, 3.0, 0.0]);
    }

    #[test]
    fn what_was_before_does_not_count() {
        let before = Counts::parsed(
            "sledge_running_seconds_total{function=\"a\",tenant=\"t\"} 0.125\nsledge_speculative_runs_total{tenant=\"t\",result=\"dropped\"} 1\n",
        );
        let mut counts = Counts::parsed(TEXT).since(&before);
        assert_eq!((counts.running_ms(), counts.of("dropped"), counts.of("adopted")), (625.0, 2.0, 6.0));
        counts.add(&before);
        assert_eq!(counts, Counts::parsed(TEXT));
    }
}
