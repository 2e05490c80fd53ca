//! What is executed: the paper's three suites.

use std::fmt;

use anyhow::{Context, Result};
use serde::{Serialize, Serializer};
pub use speculation::graphs::Split;
use speculation::{Application, graphs};

use super::ceiling::Computes;

/// The seed of the graphs.
pub const GRAPHS_SEED: u64 = 1;

/// A suite of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// Workflows.
    FaasChain,
    /// Functions that call each other.
    TrainTicket,
    /// Stubs that call each other.
    Alibaba,
}

/// An application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// A workflow.
    Workflow(Application),
    /// A function of the railway, by its name.
    Tickets(&'static str),
    /// The graph of that number.
    Graph(usize),
}

/// The railway's, in the paper's order.
const TICKETS: [&str; 5] = ["ts-tickets", "ts-trip-info", sharing::TRAVEL, "ts-left", "ts-cancel"];
/// The graphs, by how many functions each has.
const GRAPHS: [&str; 5] = ["graph-12", "graph-15", "graph-17", "graph-20", "graph-24"];

/// For how much of their time functions of graphs compute: percent of callers and of leaves, as `10/32`.
///
/// # Errors
///
/// If it is anything else.
pub fn split(text: &str) -> Result<Split, String> {
    let refused = || {
        let Split { callers_percent, leaves_percent } = Split::MAX;
        format!("`{text}` is not callers' and leaves' percent, such as 10/32; at most {callers_percent}/{leaves_percent}")
    };
    let (callers, leaves) = text.split_once('/').ok_or_else(refused)?;
    let percent = |text: &str, most: u32| text.parse().ok().filter(|percent| (1..=most).contains(percent)).ok_or_else(refused);
    let callers_percent = percent(callers, Split::MAX.callers_percent)?;
    Ok(Split { callers_percent, leaves_percent: percent(leaves, Split::MAX.leaves_percent)? })
}

impl Suite {
    /// All of them.
    pub const ALL: [Suite; 3] = [Suite::FaasChain, Suite::TrainTicket, Suite::Alibaba];
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Suite::FaasChain => "FaaSChain",
            Suite::TrainTicket => "TrainTicket",
            Suite::Alibaba => "Alibaba",
        })
    }
}

impl Serialize for Suite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Program {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Program> {
        let workflows = Application::ALL.into_iter().map(Program::Workflow);
        workflows.chain(TICKETS.into_iter().map(Program::Tickets)).chain((0..GRAPHS.len()).map(Program::Graph))
    }

    /// That of a name.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn named(name: &str) -> Result<Program> {
        let unknown = || {
            let all: Vec<&str> = Program::all().map(Program::name).collect();
            format!("there is no program {name}; there are: {}", all.join(", "))
        };
        Program::all().find(|program| program.name() == name).with_context(unknown)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Program::Workflow(application) => application.name(),
            Program::Tickets(name) => name,
            Program::Graph(number) => GRAPHS[number],
        }
    }

    /// Where it belongs.
    pub fn suite(self) -> Suite {
        match self {
            Program::Workflow(_) => Suite::FaasChain,
            Program::Tickets(_) => Suite::TrainTicket,
            Program::Graph(_) => Suite::Alibaba,
        }
    }

    /// Whether it is functions that call each other.
    pub fn calls(self) -> bool {
        self.suite() != Suite::FaasChain
    }

    /// The path of its requests.
    pub fn path(self) -> String {
        match self {
            Program::Workflow(_) | Program::Tickets(_) => format!("/{}", self.name()),
            Program::Graph(_) => format!("/{}", graphs::STUBS[0]),
        }
    }

    /// Its functions, without the setup.
    pub fn functions(self) -> Vec<&'static str> {
        match self {
            Program::Workflow(application) => application.functions().collect(),
            Program::Tickets(_) => sharing::names().filter(|name| name.starts_with("ts-") && *name != self.setup()).collect(),
            Program::Graph(_) => graphs::STUBS.to_vec(),
        }
    }

    /// The function that writes what they need.
    pub fn setup(self) -> &'static str {
        match self {
            Program::Tickets(_) => "ts-setup",
            Program::Workflow(_) | Program::Graph(_) => speculation::SETUP,
        }
    }

    /// The setup's body.
    pub fn setup_body(self) -> String {
        match self {
            Program::Tickets(_) => sharing::setup_body(0, sharing::TRIPS),
            Program::Workflow(_) | Program::Graph(_) => "{}".to_owned(),
        }
    }

    /// When its functions compute.
    pub fn computes(self) -> Computes {
        if matches!(self, Program::Graph(_)) { Computes::BeforeCalls } else { Computes::Last }
    }
}

impl Serialize for Program {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_names_of_their_own() {
        assert_eq!(Program::all().count(), 16);
        for program in Program::all() {
            assert_eq!(Program::named(program.name()).unwrap(), program);
        }
        let error = Program::named("bank").unwrap_err().to_string();
        assert!(error.starts_with("there is no program bank; there are: login, banking, "), "{error}");
    }

    #[test]
    fn graphs_are_named_for_their_functions() {
        let functions = graphs::five(GRAPHS_SEED).map(|graph| format!("graph-{}", graph.functions()));
        assert_eq!(functions, GRAPHS);
    }

    #[test]
    fn splits_are_percent_of_callers_and_of_leaves() {
        assert_eq!(split("5/16"), Ok(Split { callers_percent: 5, leaves_percent: 16 }));
        for wrong in ["5", "5/", "0/16", "91/16", "5/100", "a/b"] {
            assert!(split(wrong).unwrap_err().ends_with("at most 90/99"), "{wrong}");
        }
    }

    #[test]
    fn the_setup_is_none_of_the_functions() {
        for program in Program::all() {
            assert!(!program.functions().contains(&program.setup()), "{program:?}");
        }
        assert_eq!(Program::Tickets("ts-left").functions().len(), 32);
    }
}
