//! What a run measures, and where it leaves its results.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::function::{Asked, FUNCTIONS, Function};
use super::peer::Peer;
use crate::checkout;
use crate::polybench::machine;

/// A function, and how it is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// What is asked for.
    pub function: &'static Function,
    /// By how many, with which body.
    pub asked: &'static Asked,
}

impl Scenario {
    /// Its name in tables.
    pub fn name(&self) -> String {
        format!("{}{}", self.function.name, self.asked.suffix)
    }

    /// What each client sends.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn body(&self) -> Result<Vec<u8>> {
        self.function.body(self.asked)
    }
}

/// What is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Beside `sledge`, which is always there.
    pub peers: Vec<Peer>,
    /// What they are asked for.
    pub scenarios: Vec<Scenario>,
    /// How often.
    pub turns: usize,
    /// How long at least, each time.
    pub time: Duration,
    /// Where the results go.
    pub folder: PathBuf,
}

impl Plan {
    /// A plan for today and this machine. Without names, all peers and all functions.
    ///
    /// # Errors
    ///
    /// If a name is unknown, nothing would be measured, or the date is unknown.
    pub fn new(peers: &[String], functions: &[String], turns: usize, time: Duration) -> Result<Plan> {
        ensure!(turns > 0, "at least one turn is needed");
        let peers = chosen("peer", &Peer::ALL, |peer| peer.name(), peers)?;
        let known: Vec<&Function> = FUNCTIONS.iter().collect();
        let mut scenarios = Vec::new();
        for function in chosen("function", &known, |function| function.name, functions)? {
            scenarios.extend(function.asked.iter().map(|asked| Scenario { function, asked }));
        }
        let folder = checkout::root().join("benches/runs").join(format!("{}-{}", machine::today()?, machine::slug()));
        Ok(Plan { peers, scenarios, turns, time, folder })
    }
}

/// Those of `all` that are named, in the order of `all`; all if none is.
fn chosen<T: Copy>(what: &str, all: &[T], name: impl Fn(&T) -> &'static str, wanted: &[String]) -> Result<Vec<T>> {
    if let Some(unknown) = wanted.iter().find(|wanted| all.iter().all(|one| name(one) != wanted.as_str())) {
        bail!("there is no {what} '{unknown}'; there are {}", all.iter().map(&name).collect::<Vec<_>>().join(", "));
    }
    Ok(all.iter().copied().filter(|one| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name(one))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_can_be_chosen_and_unknown_names_are_errors() {
        let plan = |peers: &[&str], functions: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            Plan::new(&owned(peers), &owned(functions), 1, Duration::ZERO)
        };
        let all = plan(&[], &[]).unwrap();
        assert_eq!((all.peers.len(), all.scenarios.len()), (Peer::ALL.len(), FUNCTIONS.iter().map(|f| f.asked.len()).sum()));
        let some = plan(&["node", "hyper", "node"], &["ping"]).unwrap();
        assert_eq!(some.peers, [Peer::Hyper, Peer::Node]);
        assert_eq!(some.scenarios.iter().map(Scenario::name).collect::<Vec<_>>(), ["ping-1", "ping-10", "ping-50", "ping"]);
        let sizes: Vec<_> =
            plan(&[], &["echo"]).unwrap().scenarios.iter().map(|scenario| scenario.body().unwrap().len()).collect();
        assert_eq!(sizes, [1_000, 10_000, 100_000, 1_000_000]);
        assert!(plan(&["nodejs"], &[]).unwrap_err().to_string().contains("there are hyper, "));
        assert!(plan(&[], &["pong"]).unwrap_err().to_string().contains("there are ping, "));
    }
}
