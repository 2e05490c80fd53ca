//! Checks of a definition as a whole: states that no way leads to, variables that are assigned in two scopes.

use std::collections::HashMap;

use serde_json::Value;

use super::check::Node;
use super::mistake::shown;
use super::reader::{Assignment, Reader};
use super::state::{Kind, MachineIndex, Next, StateIndex};

impl Reader<'_> {
    /// States that no way leads to. Says nothing where a way is not known: that is a mistake of its own.
    pub(super) fn check_reachable(&mut self, states: &Node<'_>, base: u32, start: StateIndex, edges: &[Option<Vec<StateIndex>>]) {
        if edges.iter().any(Option::is_none) {
            return;
        }
        let mut reached = vec![false; edges.len()];
        let mut pending = vec![start];
        while let Some(state) = pending.pop() {
            let at = state.0.wrapping_sub(base) as usize;
            let Some(seen) = reached.get_mut(at) else { continue };
            if !std::mem::replace(seen, true) {
                pending.extend(edges.get(at).into_iter().flatten().flatten().copied());
            }
        }
        for ((name, node), reached) in states.members().zip(reached) {
            if !reached {
                let help = "name it in \"Next\", \"Default\" or a rule or catcher of another state, or remove it";
                self.checker.report_key(&node, format!("no state leads to \"{}\"", shown(name)), Some(help.to_owned()));
            }
        }
    }

    /// A variable of an outer scope is not assigned in an inner one (Developer Guide, "Scope of workflow variables"). The Parallel or Map around the inner scope may
    /// assign it nevertheless, as in Step Functions: it does so when the inner scope is gone.
    pub(super) fn check_variables(&mut self) {
        let assignments = std::mem::take(&mut self.assignments);
        // One state that assigns a variable of a machine, and whether others do so as well.
        let mut known: HashMap<(MachineIndex, &str), (StateIndex, bool)> = HashMap::new();
        for Assignment { machine, state, name, .. } in &assignments {
            let (first, several) = known.entry((*machine, name.as_str())).or_insert((*state, false));
            *several |= first != state;
        }
        for Assignment { machine, name, path, .. } in &assignments {
            let mut outer = self.around.get(machine.0 as usize).copied().flatten();
            while let Some((around, owner)) = outer {
                if known.get(&(around, name.as_str())).is_some_and(|(first, several)| *several || *first != owner) {
                    let node = Node { value: &Value::Null, path: path.clone() };
                    let message = format!("the variable \"{}\" is also assigned outside of this branch or item", shown(name));
                    let help = "use another name, and hand the value on in the output";
                    self.checker.report_key(&node, message, Some(help.to_owned()));
                    break;
                }
                outer = self.around.get(around.0 as usize).copied().flatten();
            }
        }
    }
}

/// The states that may follow one.
pub(crate) fn followers(next: Next, kind: &Kind) -> Vec<StateIndex> {
    let mut follow = Vec::new();
    if let Next::State(state) = next {
        follow.push(state);
    }
    if let Kind::Choice { rules, default } = kind {
        follow.extend(rules.iter().map(|rule| rule.next));
        follow.extend(*default);
    }
    if let Some(handlers) = kind.handlers() {
        follow.extend(handlers.catchers.iter().map(|catcher| catcher.next));
    }
    follow
}
