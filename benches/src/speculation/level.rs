//! The columns: one and the same server, which goes ahead of itself so far.

use anyhow::{Result, bail};

use super::program::Program;

/// A column: what stands in the configuration for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Level {
    /// Its name.
    pub name: &'static str,
    /// A line of each workflow, for a column of workflows.
    workflow: Option<&'static str>,
    /// A line of each function, for a column of functions that call each other.
    function: Option<&'static str>,
}

/// What each column is compared with.
pub const OFF: Level = Level { name: "off", workflow: Some(""), function: Some("") };

/// All columns, in their order. A server that does not know a line refuses its configuration, and the run ends with what it says.
pub const ALL: [Level; 6] = [
    OFF,
    Level { name: "paths", workflow: Some("speculation = \"paths\"\n"), function: None },
    Level { name: "outputs", workflow: Some("speculation = \"outputs\"\n"), function: None },
    Level { name: "stalls", workflow: Some("speculation = \"stalls\"\n"), function: None },
    Level { name: "calls", workflow: None, function: Some("speculation = \"calls\"\n") },
    Level { name: "skips", workflow: Some("speculation = \"skips\"\n"), function: Some("speculation = \"skips\"\n") },
];

/// The columns of these names, `off` first.
///
/// # Errors
///
/// If there is no column of a name.
pub fn named(names: &[String]) -> Result<Vec<&'static Level>> {
    for name in names {
        if ALL.iter().all(|level| level.name != name) {
            bail!("there is no level {name}; there are: {}", ALL.map(|level| level.name).join(", "));
        }
    }
    Ok(ALL.iter().filter(|level| level.name == OFF.name || names.iter().any(|name| name == level.name)).collect())
}

impl Level {
    /// The line for a workflow.
    pub fn of_workflow(&self) -> &'static str {
        self.workflow.unwrap_or_default()
    }

    /// The line for a function, of those that call each other.
    pub fn of_function(&self) -> &'static str {
        self.function.unwrap_or_default()
    }

    /// Whether it is a column of that program.
    pub fn is_of(&self, program: Program) -> bool {
        if program.calls() { self.function.is_some() } else { self.workflow.is_some() }
    }

    /// Whether nothing is speculated.
    pub fn is_off(&self) -> bool {
        *self == OFF
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_program_and_off_is_always_there() {
        let named = |names: &[&str]| named(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let of = |names: &[&str], program: &str| -> Vec<&str> {
            let program = Program::named(program).unwrap();
            named(names).unwrap().into_iter().filter(|level| level.is_of(program)).map(|level| level.name).collect()
        };
        let all = ALL.map(|level| level.name);
        assert_eq!(of(&all, "banking"), ["off", "paths", "outputs", "stalls", "skips"]);
        assert_eq!(of(&all, "ts-left"), ["off", "calls", "skips"]);
        assert_eq!(of(&["calls", "outputs"], "login"), ["off", "outputs"]);
        assert!(named(&["path"]).unwrap_err().to_string().contains("there are: off, paths, outputs, stalls, calls, skips"));
    }
}
