//! Which way Choices go: of the front, which guesses, and of the base, from which is learned.

use serde_json::Value;
use sledge_workflow::definition::{Definition, StateIndex};
use sledge_workflow::machine::{Guide, Way};

use super::hole;
use super::plan::Oracle;
use super::story::Story;
use crate::speculate::paths::{Path as WayPath, Target, Trail};

/// Says which way Choices go of whose input something is not there yet.
pub(super) struct Ahead<'a, O> {
    pub(super) oracle: &'a mut O,
    pub(super) way: &'a mut WayPath,
    pub(super) definition: &'a Definition,
    pub(super) story: &'a mut Story,
    /// Whether the oracle has said the way that a Choice goes.
    pub(super) is_guess: bool,
}

impl<O: Oracle> Guide for Ahead<'_, O> {
    fn choose(&mut self, choice: StateIndex, input: &Value) -> Way {
        // What is known of data says more than what is known of ways.
        self.is_guess = hole::is_in(input);
        if !self.is_guess {
            return Way::ByRules;
        }
        match self.oracle.way(choice, *self.way) {
            Way::ByRules => Way::Nowhere,
            way => way,
        }
    }

    fn went(&mut self, choice: StateIndex, rule: Option<usize>) {
        let target = target(rule);
        self.story.went_ahead(self.definition, (choice, *self.way), target, self.is_guess);
        *self.way = self.way.then(choice, target);
    }
}

/// Learns which way the base goes.
pub(in crate::workflow) struct Watched<'a>(pub(in crate::workflow) &'a mut Trail);

impl Guide for Watched<'_> {
    fn choose(&mut self, _: StateIndex, _: &Value) -> Way {
        Way::ByRules
    }

    fn went(&mut self, choice: StateIndex, rule: Option<usize>) {
        self.0.went(choice, target(rule));
    }
}

fn target(rule: Option<usize>) -> Target {
    rule.and_then(|rule| u32::try_from(rule).ok()).map_or(Target::Default, Target::Rule)
}
