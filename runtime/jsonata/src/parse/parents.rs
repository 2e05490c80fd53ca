//! The steps whose parents `%` means (<https://docs.jsonata.org/path-operators#-parent>).
//!
//! A `%` is a slot. While its step has not been found, the slot is in the list `seeking` of the nodes around it, with the number of levels still to go up.

use super::resolve::name;
use crate::ast::{Kind, Node, Slot};
use crate::error::{Error, Result};

#[derive(Default)]
pub(super) struct Parents {
    slots: Vec<SlotState>,
}

struct SlotState {
    /// Slots of the same step have the same number.
    label: usize,
    /// Steps still to go up.
    level: i64,
}

impl Parents {
    /// A new slot.
    pub(super) fn slot(&mut self) -> Slot {
        let slot = self.slots.len();
        self.slots.push(SlotState { label: slot, level: 1 });
        slot
    }

    /// Names of variables that hold the parents, by slot.
    pub(super) fn labels(&self) -> Vec<String> {
        self.slots.iter().map(|slot| format!("!{}", slot.label)).collect()
    }

    /// Looks for the step that a slot of a step's predicate means.
    pub(super) fn seek_from_predicate(&mut self, step: &mut Node, slot: Slot) -> Result<()> {
        if self.level(slot) == 1 {
            return self.seek(step, slot);
        }
        self.raise(slot, -1);
        Ok(())
    }

    fn level(&self, slot: Slot) -> i64 {
        self.slots.get(slot).map_or(0, |slot| slot.level)
    }

    fn raise(&mut self, slot: Slot, levels: i64) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.level += levels;
        }
    }

    /// Looks for the steps that the parents mean that the last step of a path refers to.
    pub(super) fn resolve(&mut self, node: &mut Node) -> Result<()> {
        let Kind::Path(path) = &mut node.kind else {
            return Ok(());
        };
        let Some((last, before)) = path.steps.split_last_mut() else {
            return Ok(());
        };
        let mut slots = last.seeking.clone();
        if let Kind::Parent(slot) = last.kind {
            slots.push(slot);
        }
        for slot in slots {
            let mut end = before.len();
            while self.level(slot) > 0 {
                if end == 0 {
                    node.seeking.push(slot);
                    break;
                }
                end -= 1;
                // Of adjacent steps that bind variables by `@`, all but the first have the same context.
                while end > 0
                    && before.get(end).is_some_and(|step| step.focus.is_some())
                    && before.get(end - 1).is_some_and(|step| step.focus.is_some())
                {
                    end -= 1;
                }
                if let Some(step) = before.get_mut(end) {
                    self.seek(step, slot)?;
                }
            }
        }
        Ok(())
    }

    /// Goes up one step, or more within a path.
    fn seek(&mut self, node: &mut Node, slot: Slot) -> Result<()> {
        match &mut node.kind {
            Kind::Name(_) | Kind::Wildcard => {
                self.raise(slot, -1);
                if self.level(slot) == 0 {
                    let label = node.ancestor.and_then(|ancestor| self.slots.get(ancestor)).map(|ancestor| ancestor.label);
                    if let (Some(label), Some(slot)) = (label, self.slots.get_mut(slot)) {
                        slot.label = label;
                    }
                    node.ancestor = Some(slot);
                    node.is_tuple = true;
                }
            }
            Kind::Parent(_) => self.raise(slot, 1),
            Kind::Block(parts) => {
                if let Some(last) = parts.last_mut() {
                    node.is_tuple = true;
                    self.seek(last, slot)?;
                }
            }
            Kind::Path(path) => {
                node.is_tuple = true;
                for (index, step) in path.steps.iter_mut().rev().enumerate() {
                    if index > 0 && self.level(slot) <= 0 {
                        break;
                    }
                    self.seek(step, slot)?;
                }
            }
            kind => return Err(Error::new("S0217").at(node.position).with_token(name(kind))),
        }
        Ok(())
    }
}
