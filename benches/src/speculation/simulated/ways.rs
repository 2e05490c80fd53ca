//! Which function follows which, by what earlier executions did: the rules of `runtime/src/speculate/paths.rs`, in short.

use std::collections::{BTreeMap, HashMap};

/// As often at least a path was gone before anything is predicted of it.
const SAMPLES_MIN: u32 = 2;
/// The part of its executions, in percent, that have gone the way which is predicted.
const SHARE_PERCENT: u32 = 60;

/// What followed something, and how often.
#[derive(Debug, Default)]
struct Counts(BTreeMap<String, u32>);

impl Counts {
    fn samples(&self) -> u32 {
        self.0.values().sum()
    }

    fn likeliest(&self) -> Option<String> {
        let (name, count) = self.0.iter().max_by_key(|(_, count)| **count)?;
        (count * 100 >= SHARE_PERCENT * self.samples()).then(|| name.clone())
    }
}

/// What followed paths, and functions whatever was before them.
#[derive(Debug, Default)]
pub(super) struct Ways {
    paths: HashMap<Vec<String>, Counts>,
    functions: HashMap<String, Counts>,
}

impl Ways {
    /// These functions were run, in this order.
    pub(super) fn went(&mut self, functions: &[String]) {
        for at in 1..functions.len() {
            let next = &functions[at];
            let counts = self.paths.entry(functions[..at].to_vec()).or_default();
            *counts.0.entry(next.clone()).or_default() += 1;
            let counts = self.functions.entry(functions[at - 1].clone()).or_default();
            *counts.0.entry(next.clone()).or_default() += 1;
        }
    }

    /// What follows that path, if that can be told.
    pub(super) fn next(&self, path: &[String]) -> Option<String> {
        let enough = |counts: &&Counts| counts.samples() >= SAMPLES_MIN;
        let counts = self.paths.get(path).filter(enough).or_else(|| self.functions.get(path.last()?).filter(enough))?;
        counts.likeliest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(names: &str) -> Vec<String> {
        names.chars().map(String::from).collect()
    }

    #[test]
    fn a_way_is_told_by_its_path_from_two_samples_and_sixty_percent_on() {
        let mut ways = Ways::default();
        ways.went(&path("abc"));
        assert_eq!(ways.next(&path("ab")), None);
        ways.went(&path("abc"));
        assert_eq!(ways.next(&path("ab")).as_deref(), Some("c"));
        // Where the path is new, what followed the function is asked.
        assert_eq!(ways.next(&path("xb")).as_deref(), Some("c"));
        ways.went(&path("abd"));
        assert_eq!(ways.next(&path("ab")).as_deref(), Some("c"));
        ways.went(&path("abd"));
        assert_eq!(ways.next(&path("ab")), None);
    }
}
