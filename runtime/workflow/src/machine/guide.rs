//! Which way Choices go: a caller may watch that, and may say it where the input of one is not known yet.
//!
//! A caller that goes ahead of what has happened steps a copy of the execution with outputs that are not there yet. A Choice whose input depends on these cannot be evaluated. The caller says which way
//! it probably goes, or that the branch goes no further for now. What comes of such a copy is never more than a guess: another one is made when it turns out to be wrong.

use serde_json::Value;

use crate::definition::StateIndex;

/// Which way a Choice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As its rules say.
    ByRules,
    /// Where that rule leads, whether it holds or not. The Choice hands its input on, and assigns nothing.
    Rule(usize),
    /// Where `Default` leads; likewise.
    Default,
    /// It is not left. The frame that is in it goes no further, whatever happens.
    Nowhere,
}

/// Says which way Choices go, and learns which way they went.
pub trait Guide {
    /// A Choice was entered with that input, after `InputPath`.
    fn choose(&mut self, choice: StateIndex, input: &Value) -> Way;

    /// It went where that rule leads; or `Default`, if none is said.
    fn went(&mut self, choice: StateIndex, rule: Option<usize>);
}
