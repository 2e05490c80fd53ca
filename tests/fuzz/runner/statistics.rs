//! What a run adds up to, what it prints of it, and whether it may be believed.

use crate::check::Report;
use crate::features::Features;
use crate::wit::Kind;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// Seeds from which on a run must have executed every operator often enough.
pub(crate) const LONG_RUN_SEEDS: u64 = 2_000;

/// How often.
const EXECUTIONS_MIN: u64 = 100;

/// Names of operators that cannot be executed: this one parses but is never valid.
const NEVER_VALID: &[&str] = &["TypedSelectMulti"];

#[derive(Debug)]
pub(crate) struct Statistics {
    kind: Kind,
    pub(crate) seeds: u64,
    pub(crate) differences: u64,
    unusable: BTreeMap<String, u64>,
    unusable_seeds: u64,
    runs: BTreeMap<String, u64>,
    returned: u64,
    inconclusive: u64,
    traps: BTreeMap<String, u64>,
    operators: BTreeMap<String, u64>,
    compile_ms: u64,
    wasm_bytes: u64,
}

impl Statistics {
    pub(crate) fn new(kind: Kind) -> Statistics {
        Statistics {
            kind,
            seeds: 0,
            differences: 0,
            unusable: BTreeMap::new(),
            unusable_seeds: 0,
            runs: BTreeMap::new(),
            returned: 0,
            inconclusive: 0,
            traps: BTreeMap::new(),
            operators: BTreeMap::new(),
            compile_ms: 0,
            wasm_bytes: 0,
        }
    }

    pub(crate) fn add(&mut self, report: &Report) {
        let sum = |to: &mut BTreeMap<String, u64>, from: &BTreeMap<String, u64>| {
            from.iter().for_each(|(name, count)| *to.entry(name.clone()).or_default() += count);
        };
        self.seeds += 1;
        self.differences += u64::from(!report.differences.is_empty());
        if let Some(why) = &report.unusable {
            self.unusable_seeds += 1;
            *self.unusable.entry(why.clone()).or_default() += 1;
        }
        sum(&mut self.runs, &report.runs);
        sum(&mut self.traps, &report.traps);
        sum(&mut self.operators, &report.operators);
        self.returned += report.returned;
        self.inconclusive += report.inconclusive;
        self.compile_ms += report.compile_ms;
        self.wasm_bytes += report.wasm_bytes;
    }

    pub(crate) fn runs(&self) -> u64 {
        self.runs.values().sum()
    }

    /// One line for a progress bar.
    pub(crate) fn line(&self) -> String {
        format!("{} seeds, {} runs, {} without trap, {} differences", self.seeds, self.runs(), self.share(), self.differences)
    }

    fn share(&self) -> String {
        format!("{:.1} %", self.returned as f64 * 100.0 / self.runs().max(1) as f64)
    }

    /// Operators executed less often than they have to be.
    fn rare(&self, features: &Features) -> Vec<(&'static str, u64)> {
        let all = features.operators().into_iter().filter(|name| !NEVER_VALID.contains(name));
        let counted = all.map(|name| (name, self.operators.get(name).copied().unwrap_or(0)));
        counted.filter(|(_, count)| *count < EXECUTIONS_MIN).collect()
    }

    /// All of it.
    pub(crate) fn text(&self, features: &Features, first: u64, time: Duration) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "fuzz: {}, seeds {first} to {} in {:.0} s; {} KB of WebAssembly, {:.0} s compiling",
            self.kind.name(),
            first + self.seeds.saturating_sub(1),
            time.as_secs_f64(),
            self.wasm_bytes / 1024,
            self.compile_ms as f64 / 1000.0
        );
        let modes = self.runs.iter().map(|(mode, runs)| format!("{mode} {runs}")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "  runs (calls compared): {}: {modes}", self.runs());
        let traps = self.traps.iter().map(|(kind, runs)| format!("{kind} {runs}")).collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "  without trap: {} ({}); traps: {traps}", self.returned, self.share());
        let _ = writeln!(text, "  inconclusive (stack, exception memory or time used up): {}", self.inconclusive);
        if self.kind == Kind::Modules {
            self.operators_text(features, &mut text);
        }
        if self.unusable_seeds > 0 {
            let _ = writeln!(text, "  unusable seeds: {}", self.unusable_seeds);
            for (why, count) in self.unusable.iter().take(10) {
                let _ = writeln!(text, "    {count} x {why}");
            }
        }
        let _ = writeln!(text, "  seeds with differences: {}", self.differences);
        text
    }

    fn operators_text(&self, features: &Features, text: &mut String) {
        let rare = self.rare(features);
        let all = features.operators().len() - NEVER_VALID.len();
        let _ = writeln!(text, "  proposals: {}", features.names().join(", "));
        let executed: u64 = self.operators.values().sum();
        let _ = writeln!(
            text,
            "  operators executed (counted in the interpreter): {executed}; {} of {all} at least {EXECUTIONS_MIN} times",
            all - rare.len()
        );
        if !rare.is_empty() {
            let rare = rare.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "  less often: {rare}");
        }
    }

    /// Why this run proves nothing, or proves that something is wrong.
    pub(crate) fn problems(&self, features: &Features) -> Vec<String> {
        let mut problems = Vec::new();
        if self.differences > 0 {
            problems.push(format!("{} seeds with differences", self.differences));
        }
        // What is hostile or damaged does not end well.
        if matches!(self.kind, Kind::Modules | Kind::Components | Kind::Streams) && self.returned * 2 <= self.runs() {
            problems.push(format!("only {} of the runs end without a trap; more than half must", self.share()));
        }
        let unusable_max = if self.kind == Kind::Modules { self.seeds / 20 } else { 0 };
        if self.unusable_seeds > unusable_max {
            problems.push(format!("{} of {} seeds were unusable; {unusable_max} may be", self.unusable_seeds, self.seeds));
        }
        let rare = self.rare(features).len();
        if self.kind == Kind::Modules && self.seeds >= LONG_RUN_SEEDS && rare > 0 {
            problems.push(format!("{rare} operators were executed less than {EXECUTIONS_MIN} times"));
        }
        problems
    }
}
