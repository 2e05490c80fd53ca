//! Whether functions of a workflow are started before those before them have ended, and those that a function calls before it has called them.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FunctionConfig;
use super::check::Problems;
use super::isolation::{Isolation, OutsideEffects};
use super::workflow::WorkflowConfig;

/// What executions speculate on. Each has what those before it have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpeculationLevel {
    /// Nothing: a function starts when those before it have ended.
    #[default]
    Off,
    /// The way that a Choice goes, and whether a task fails, by what earlier executions did. A state starts ahead whose input does not depend on what is not known yet.
    Paths,
    /// The same, and what a function answers to an input that it has answered before.
    Outputs,
    /// The same, and whether a function reads too early what one before it writes: then it waits for that.
    Stalls,
    /// The same, and a function whose answer is known does not run at all, where all that its answer rests on is as it was. The commit decides about that.
    Skips,
}

impl SpeculationLevel {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(super) const fn is_off(&self) -> bool {
        matches!(self, SpeculationLevel::Off)
    }
}

/// What a function speculates on. Each has what those before it have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CallSpeculation {
    /// Nothing: a function that it calls starts when it calls it.
    #[default]
    Off,
    /// What it calls, and with what, by what earlier runs did: functions that are expected to be called start with it.
    Calls,
    /// The same, and a function that it calls and whose reply is known does not run at all, where all that the reply rests on is as it was. The commit decides about that.
    Skips,
}

impl CallSpeculation {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    pub(super) const fn is_off(&self) -> bool {
        matches!(self, CallSpeculation::Off)
    }
}

/// The most that may be set for `speculation_depth_max`.
const DEPTH_MAX_MAX: u64 = 16;
/// States that a message lists.
const SHOWN_MAX: usize = 32;

/// As many as the paper lets run ahead where the machine has time.
pub(super) const fn depth_max_default() -> u32 {
    6
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(super) const fn is_depth_max_default(depth_max: &u32) -> bool {
    *depth_max == depth_max_default()
}

/// Checks these settings of a workflow; `at` is its key.
pub(super) fn check(at: &str, workflow: &WorkflowConfig, problems: &mut Problems<'_>) {
    let WorkflowConfig { speculation_depth_max, speculation_excluded, .. } = workflow;
    problems.range(format!("{at}.speculation_depth_max"), u64::from(*speculation_depth_max), 1, DEPTH_MAX_MAX);
    let mut seen = HashSet::new();
    for (index, state) in speculation_excluded.iter().enumerate().filter(|(_, state)| !seen.insert(state.as_str())) {
        problems.push(format!("{at}.speculation_excluded[{index}]"), format!("`{}` is listed twice", state.escape_default()));
    }
}

/// Checks the setting of a function; `at` is its key.
pub(super) fn check_function(at: &str, function: &FunctionConfig, problems: &mut Problems<'_>) {
    let FunctionConfig { speculation, isolation, effects, .. } = function;
    if *speculation == CallSpeculation::Off {
        return;
    }
    let why = match (isolation, effects) {
        (Isolation::None, _) => {
            "what it calls ahead could not be taken back: set `isolation = \"serializable\"`, or leave `speculation` out"
        }
        (_, OutsideEffects::Split) => {
            "what it calls ahead could not be taken back with `effects = \"split\"`: leave that out, or `speculation`"
        }
        (Isolation::Serializable, _) => return,
    };
    problems.push(format!("{at}.speculation"), why);
}

impl WorkflowConfig {
    /// What is wrong with the states that are excluded from speculation, where the definition has these.
    #[must_use]
    pub fn excluded_problems<'a>(&self, states: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
        if self.speculation_excluded.is_empty() {
            return Vec::new();
        }
        let known: HashSet<&str> = states.clone().collect();
        let unknown = self.speculation_excluded.iter().enumerate().filter(|(_, state)| !known.contains(state.as_str()));
        let message = |(index, state): (usize, &String)| {
            let mut listed: Vec<_> = states.clone().take(SHOWN_MAX).map(|state| state.escape_default().to_string()).collect();
            if known.len() > SHOWN_MAX {
                listed.push(format!("and {} more", known.len() - SHOWN_MAX));
            }
            let state = state.escape_default();
            format!("speculation_excluded[{index}]: there is no state `{state}`; the states are: {}", listed.join(", "))
        };
        unknown.map(message).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{self, Config, ConfigError};

    #[test]
    fn each_has_what_those_before_it_have_and_off_is_the_default() {
        let read = |name: &str| serde_json::from_value::<SpeculationLevel>(name.into()).unwrap();
        let all = ["off", "paths", "outputs", "stalls", "skips"].map(read);
        assert!(all.is_sorted_by(|one, other| one < other) && all[0] == SpeculationLevel::default());
        let read = |name: &str| serde_json::from_value::<CallSpeculation>(name.into()).unwrap();
        let all = ["off", "calls", "skips"].map(read);
        assert!(all.is_sorted_by(|one, other| one < other) && all[0] == CallSpeculation::default());
    }

    #[test]
    fn what_cannot_be_is_named() {
        let problems = |more: Value| {
            let mut workflow = json!({ "name": "w", "path": "w.json" });
            more.as_object().unwrap().iter().for_each(|(key, value)| workflow[key] = value.clone());
            let config: Config = serde_json::from_value(json!({ "kv": "memory", "workflows": [workflow] })).unwrap();
            match config::check(&config, None) {
                Ok(()) => Vec::new(),
                Err(ConfigError::Problems(list)) => list.iter().map(ToString::to_string).collect(),
                Err(other) => vec![other.to_string()],
            }
        };
        let good = json!({ "speculation": "outputs", "speculation_depth_max": 16, "speculation_excluded": ["A", "B"] });
        assert_eq!(problems(good), [""; 0]);
        assert_eq!(problems(json!({ "type": "standard", "speculation": "skips" })), [""; 0]);
        for depth_max in [0, 17] {
            let expected = format!("workflows[0].speculation_depth_max: {depth_max} is out of range; give 1 to 16");
            assert_eq!(problems(json!({ "speculation_depth_max": depth_max })), [expected]);
        }
        let twice = json!({ "speculation_excluded": ["A", "B", "A"] });
        assert_eq!(problems(twice), ["workflows[0].speculation_excluded[2]: `A` is listed twice"]);
    }

    #[test]
    fn a_function_whose_calls_could_not_be_taken_back_is_refused() {
        let problems = |more: Value| {
            let mut function = json!({ "name": "f", "path": "f.wasm", "speculation": "calls" });
            more.as_object().unwrap().iter().for_each(|(key, value)| function[key] = value.clone());
            let config: Config = serde_json::from_value(json!({ "kv": "memory", "functions": [function] })).unwrap();
            match config::check(&config, None) {
                Ok(()) => String::new(),
                Err(ConfigError::Problems(list)) => list.iter().map(ToString::to_string).collect(),
                Err(other) => other.to_string(),
            }
        };
        assert_eq!(problems(json!({ "isolation": "serializable" })), "");
        assert_eq!(problems(json!({ "isolation": "serializable", "effects": "outbox" })), "");
        assert_eq!(problems(json!({ "speculation": "off" })), "");
        assert_eq!(problems(json!({ "isolation": "serializable", "speculation": "skips" })), "");
        let skips = problems(json!({ "speculation": "skips" }));
        assert!(skips.contains("set `isolation = \"serializable\"`"), "{skips}");
        let plain = problems(json!({}));
        assert!(
            plain.starts_with("functions[0].speculation: ") && plain.contains("set `isolation = \"serializable\"`"),
            "{plain}"
        );
        let split = problems(json!({ "isolation": "serializable", "effects": "split" }));
        assert!(split.starts_with("functions[0].speculation: ") && split.contains("leave that out"), "{split}");
    }

    #[test]
    fn an_unknown_state_is_answered_with_those_that_there_are() {
        let config = |excluded: &[&str]| -> WorkflowConfig {
            serde_json::from_value(json!({ "name": "w", "path": "w.json", "speculation_excluded": excluded })).unwrap()
        };
        let problems = |excluded: &[&str], states: &[&str]| config(excluded).excluded_problems(states.iter().copied());
        assert_eq!(problems(&["B"], &["A", "B"]), [""; 0]);
        let expected = ["C", "D"].iter().zip([1, 2]);
        let expected: Vec<_> = expected
            .map(|(state, index)| format!("speculation_excluded[{index}]: there is no state `{state}`; the states are: A, B"))
            .collect();
        assert_eq!(problems(&["B", "C", "D"], &["A", "B"]), expected);
        let many: Vec<String> = (0..40).map(|number| format!("S{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(problems(&["x"], &many)[0].ends_with(", S31, and 8 more"));
    }
}
