//! What came of it: numbers, every difference, and whether all of them are known.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::Verdict;
use super::scope::Scope;
use super::suite::Execution;

/// Executions in scope at the commit that `scripts/fetch-states-suite` gets: fewer mean that definitions were not found.
const IN_SCOPE_MIN: usize = 1_090;
/// How much of a difference is printed.
const SHOWN_CHARS_MAX: usize = 400;

/// What came of the executions of one scope.
#[derive(Default)]
struct Group {
    executions: usize,
    /// Those with the same end.
    ends: usize,
    /// Those with the same events.
    events: usize,
}

/// What came of all executions.
pub(crate) struct Report {
    snapshots: usize,
    groups: BTreeMap<&'static str, Group>,
    events: Vec<(String, String)>,
    outputs: Vec<(String, String)>,
    out_of_scope: BTreeMap<String, usize>,
}

impl Report {
    pub(crate) const fn new(snapshots: usize) -> Self {
        Self { snapshots, groups: BTreeMap::new(), events: Vec::new(), outputs: Vec::new(), out_of_scope: BTreeMap::new() }
    }

    pub(crate) fn out_of_scope(&mut self, rule: String) {
        *self.out_of_scope.entry(rule).or_default() += 1;
    }

    pub(crate) fn replayed(&mut self, execution: &Execution, scope: &Scope, verdict: Verdict) {
        let name = execution.name.clone();
        let group = self.groups.entry(title(scope)).or_default();
        group.executions += 1;
        group.ends += usize::from(!matches!(verdict, Verdict::Output(_)));
        group.events += usize::from(matches!(verdict, Verdict::Equal));
        match verdict {
            Verdict::EqualEnd | Verdict::Equal => {}
            Verdict::Events(difference) => self.events.push((name, difference)),
            Verdict::Output(difference) => self.outputs.push((name, difference)),
        }
    }

    pub(crate) fn print(&self) {
        for (title, differing) in [("output differs", &self.outputs), ("events differ", &self.events)] {
            println!("{title}: {}", differing.len());
            for (name, difference) in differing {
                println!("  {name}\n      {}", difference.chars().take(SHOWN_CHARS_MAX).collect::<String>());
            }
        }
        println!("out of scope: {}", self.out_of_scope.values().sum::<usize>());
        self.out_of_scope.iter().for_each(|(rule, count)| println!("  {count:5} {rule}"));
        let in_scope: usize = self.groups.values().map(|group| group.executions).sum();
        println!("in scope: {in_scope} executions of {} snapshots", self.snapshots);
        for (title, group) in &self.groups {
            let Group { executions, ends, events } = *group;
            print!("  {executions:5} {title}: {ends} ({:.1} %) end equally", percent(ends, executions));
            if events > 0 {
                print!(", {events} ({:.1} %) have equal events", percent(events, executions));
            }
            println!();
        }
    }

    /// Compares with the differences that are known.
    ///
    /// # Panics
    /// An unknown difference, or a known one that is not there; or too few executions.
    pub(crate) fn check(&self, known: &str) {
        let in_scope: usize = self.groups.values().map(|group| group.executions).sum();
        assert!(
            in_scope >= IN_SCOPE_MIN,
            "{in_scope} executions in scope are too few: look at what scripts/states-definitions says"
        );
        let lines = known.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let known: BTreeSet<&str> = lines
            .map(|line| {
                let (name, reason) = line.split_once(" | ").unwrap_or_else(|| panic!("`{line}` has no ` | ` and reason"));
                assert!(!reason.trim().is_empty(), "`{name}` has no reason");
                name.trim()
            })
            .collect();
        let differing: BTreeSet<&str> = self.outputs.iter().chain(&self.events).map(|(name, _)| name.as_str()).collect();
        let unknown: Vec<_> = differing.difference(&known).collect();
        let gone: Vec<_> = known.difference(&differing).collect();
        assert!(
            unknown.is_empty() && gone.is_empty(),
            "known-differences.txt is not true:\n  differ and do not stand there: {unknown:#?}\n  stand there and do not differ: {gone:#?}"
        );
    }
}

fn percent(count: usize, all: usize) -> f64 {
    100.0 * count as f64 / all.max(1) as f64
}

const fn title(scope: &Scope) -> &'static str {
    match scope {
        Scope::Whole => "compared whole",
        Scope::StandIn => "with stand-ins for tasks of other services",
        Scope::End => "compared by their ends",
        Scope::Refusal => "definitions that are refused",
        Scope::Out(_) => "",
    }
}
