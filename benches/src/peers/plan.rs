//! What a run measures, and where it leaves its results.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::function::{FUNCTIONS, Function};
use super::peer::Peer;
use crate::checkout;
use crate::polybench::machine;

/// Clients of the loads that are about throughput.
const CLIENTS: usize = 100;

/// A function, and how many clients ask for it at a time.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// What is asked for.
    pub function: &'static Function,
    /// By how many.
    pub clients: usize,
}

impl Scenario {
    /// Its name in tables.
    pub fn name(&self) -> String {
        if self.clients == CLIENTS { self.function.name.to_owned() } else { format!("{}-{}", self.function.name, self.clients) }
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
            // What is quick says how long one request takes where nothing waits.
            if function.is_quick {
                scenarios.push(Scenario { function, clients: 1 });
            }
            scenarios.push(Scenario { function, clients: CLIENTS });
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
        assert_eq!((all.peers.len(), all.scenarios.len()), (Peer::ALL.len(), FUNCTIONS.len() + 1));
        let some = plan(&["node", "hyper", "node"], &["ping"]).unwrap();
        assert_eq!(some.peers, [Peer::Hyper, Peer::Node]);
        assert_eq!(some.scenarios.iter().map(Scenario::name).collect::<Vec<_>>(), ["ping-1", "ping"]);
        assert!(plan(&["nodejs"], &[]).unwrap_err().to_string().contains("there are hyper, "));
        assert!(plan(&[], &["pong"]).unwrap_err().to_string().contains("there are ping, "));
    }
}
