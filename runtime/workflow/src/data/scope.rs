//! What a path may refer to in one step: the input, the context object, and the variables.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::BuildHasher;

use serde_json::{Map, Value};

use super::limits::{OUTPUT_BYTES_MAX, VISITS_MAX};

/// Where the values of variables are. The caller may look through the scopes of Parallel branches and Map iterations in it.
pub trait Variables {
    /// The value of the variable of that name, without `$`.
    fn get(&self, name: &str) -> Option<&Value>;
}

/// No variables at all.
impl Variables for () {
    fn get(&self, _: &str) -> Option<&Value> {
        None
    }
}

impl Variables for Map<String, Value> {
    fn get(&self, name: &str) -> Option<&Value> {
        Map::get(self, name)
    }
}

impl Variables for BTreeMap<String, Value> {
    fn get(&self, name: &str) -> Option<&Value> {
        BTreeMap::get(self, name)
    }
}

impl<S: BuildHasher> Variables for HashMap<String, Value, S> {
    fn get(&self, name: &str) -> Option<&Value> {
        HashMap::get(self, name)
    }
}

/// The limits of one step that the caller chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of JSON of the value that a template, an expression or a path with several results makes.
    pub output_bytes_max: usize,
    /// Nodes that the evaluation of one path, template or rule may visit.
    pub visits_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { output_bytes_max: OUTPUT_BYTES_MAX, visits_max: VISITS_MAX }
    }
}

/// What a path may refer to.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// `$`: the input of the state, or what the caller has made of it: the result of a task for ResultSelector, the item for ItemSelector.
    pub input: &'a Value,
    /// `$$`: the context object.
    pub context: &'a Value,
    /// `$name`.
    pub variables: &'a dyn Variables,
    /// How much a step may take.
    pub limits: Limits,
}

impl<'a> Scope<'a> {
    /// With the default limits.
    #[must_use]
    pub fn new(input: &'a Value, context: &'a Value, variables: &'a dyn Variables) -> Scope<'a> {
        Scope { input, context, variables, limits: Limits::default() }
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scope { input, context, limits, .. } = self;
        f.debug_struct("Scope").field("input", input).field("context", context).field("limits", limits).finish_non_exhaustive()
    }
}
