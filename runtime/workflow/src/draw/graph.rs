//! The graph of one machine: its states, and what leads from one to another.

use std::collections::HashMap;

use super::label;
use super::limits::EDGES_MAX;
use crate::definition::{Definition, Kind, Machine, Next, State, StateIndex};

/// What a vertex is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// The marker before the first state.
    Start,
    /// The marker of the end.
    End,
    State(StateIndex),
}

/// What leads from one node to another.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// What is said of it; empty if nothing.
    pub(super) label: String,
    /// A catcher.
    pub(super) dashed: bool,
    /// It goes back to a node that comes before: a loop.
    pub(super) back: bool,
}

/// The graph of a machine.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    /// By node: a node comes after those that lead to it, edges that go back apart.
    pub(super) order: Vec<usize>,
}

impl Graph {
    /// Of a machine with these states. With `markers` it has a start and an end.
    pub(super) fn new(definition: &Definition, machine: &Machine, states: &[StateIndex], markers: bool) -> Self {
        let mut nodes: Vec<_> = states.iter().map(|state| Node::State(*state)).collect();
        let at: HashMap<_, _> = states.iter().enumerate().map(|(at, state)| (*state, at)).collect();
        let mut edges = Edges { edges: Vec::new(), known: HashMap::new() };
        let start = at.get(&machine.start).copied().unwrap_or(0);
        let mut root = start;
        let mut end = None;
        if markers {
            root = nodes.len();
            nodes.push(Node::Start);
            edges.add(root, start, String::new(), false);
            end = Some(nodes.len());
            nodes.push(Node::End);
        }
        for (from, state) in states.iter().enumerate() {
            if let Some(state) = definition.state(*state) {
                edges.of_state(state, from, &at, end);
            }
        }
        let mut edges = edges.edges;
        // An end that nothing leads to is not drawn: a machine of which all ways fail.
        if let Some(end) = end.filter(|end| !edges.iter().any(|edge| edge.to == *end)) {
            nodes.truncate(end);
        }
        let order = sort(nodes.len(), root, &mut edges);
        Self { nodes, edges, order }
    }
}

struct Edges {
    edges: Vec<Edge>,
    /// By ends and style: edges between the same two nodes are one.
    known: HashMap<(usize, usize, bool), usize>,
}

impl Edges {
    fn add(&mut self, from: usize, to: usize, label: String, dashed: bool) {
        let count = self.edges.len();
        match self.known.get(&(from, to, dashed)).and_then(|at| self.edges.get_mut(*at)) {
            Some(edge) if edge.label.is_empty() || label.is_empty() => {}
            Some(edge) => {
                edge.label.push_str(" or ");
                edge.label.push_str(&label);
            }
            None if count >= EDGES_MAX => {}
            None => {
                self.known.insert((from, to, dashed), count);
                self.edges.push(Edge { from, to, label, dashed, back: false });
            }
        }
    }

    fn of_state(&mut self, state: &State, from: usize, at: &HashMap<StateIndex, usize>, end: Option<usize>) {
        let to = |state: &StateIndex| at.get(state).copied();
        match (&state.kind, state.next) {
            (Kind::Choice { rules, default }, _) => {
                for rule in rules {
                    if let Some(to) = to(&rule.next) {
                        self.add(from, to, label::condition(rule), false);
                    }
                }
                if let Some(to) = default.as_ref().and_then(to) {
                    self.add(from, to, "default".to_owned(), false);
                }
            }
            (Kind::Fail { .. }, _) => {}
            (Kind::Succeed, _) | (_, Next::End) => {
                if let Some(end) = end {
                    self.add(from, end, String::new(), false);
                }
            }
            (_, Next::State(next)) => {
                if let Some(to) = to(&next) {
                    self.add(from, to, String::new(), false);
                }
            }
        }
        for catcher in state.kind.handlers().into_iter().flat_map(|handlers| &handlers.catchers) {
            if let Some(to) = to(&catcher.next) {
                self.add(from, to, label::errors(catcher), true);
            }
        }
    }
}

/// How far the walk has come with a node.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    No,
    Open,
    Done,
}

fn mark(seen: &mut [Seen], node: usize, as_what: Seen) {
    if let Some(place) = seen.get_mut(node) {
        *place = as_what;
    }
}

/// Finds the edges that go back, in a walk into the depth, and an order for the others. The walk keeps its own stack.
fn sort(nodes: usize, root: usize, edges: &mut [Edge]) -> Vec<usize> {
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (at, edge) in edges.iter().enumerate() {
        if let Some(list) = leaving.get_mut(edge.from) {
            list.push(at);
        }
    }
    let mut seen = vec![Seen::No; nodes];
    let mut order = Vec::with_capacity(nodes);
    // All nodes are reached from the root; were one not, the walk would begin again at it.
    for first in std::iter::once(root).chain(0..nodes) {
        if seen.get(first) != Some(&Seen::No) {
            continue;
        }
        let mut stack = vec![(first, 0)];
        mark(&mut seen, first, Seen::Open);
        while let Some((node, next)) = stack.last_mut() {
            let node = *node;
            let edge = leaving.get(node).and_then(|list| list.get(*next)).and_then(|at| edges.get_mut(*at));
            *next += 1;
            let Some(edge) = edge else {
                mark(&mut seen, node, Seen::Done);
                order.push(node);
                stack.pop();
                continue;
            };
            match seen.get(edge.to) {
                Some(Seen::No) => {
                    mark(&mut seen, edge.to, Seen::Open);
                    stack.push((edge.to, 0));
                }
                Some(Seen::Open) => edge.back = true,
                _ => {}
            }
        }
    }
    order.reverse();
    order
}
