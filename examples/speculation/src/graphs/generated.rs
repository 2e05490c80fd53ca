//! Graphs drawn from a seed, with the statistics of the paper's table 1 over all five.

use serde::Serialize;

use super::{Ask, Edge, Node, READS_MAX};
use crate::random::Random;
use crate::world::json;

/// Functions, those of them that call others, and calls that depend on the reply before them, of each graph: 17.6 functions, 3.46 callees of
/// each caller and 3.4 data dependences on average.
const SHAPES: [(u32, usize, usize); 5] = [(12, 3, 2), (15, 4, 3), (17, 5, 3), (20, 6, 4), (24, 6, 5)];
/// Levels on which functions call others: those below the last one are leaves.
const CALLER_LEVELS: usize = 4;
/// Calls that are not made for every input.
const CONDITIONAL: usize = 2;
/// How long a graph takes for each of its functions: 387.2 ms for 17.6 of them.
const EACH_US: f64 = 22_000.0;
/// Of its time, callees included, a caller waits for the store this share.
const CALLER_WAITS: f64 = 0.05;
/// How many of a hundred leaves write.
const WRITES_PERCENT: u32 = 25;

/// How fast a graph runs, and how sure its way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Units of work that take a millisecond.
    pub units_per_ms: u32,
    /// How long a read takes, in microseconds. It should not be so short that a function would need more than [`super::READS_MAX`].
    pub read_us: u32,
    /// How many hundredths of the times in the graph functions take.
    pub time_percent: u32,
    /// How many inputs of a hundred take the common path.
    pub common_percent: u32,
}

impl Default for Pace {
    /// The paper's times and branches, reads of a millisecond, and units of about 0.1 microseconds.
    fn default() -> Pace {
        Pace { units_per_ms: 10_000, read_us: 1_000, time_percent: 100, common_percent: 90 }
    }
}

/// For how much of their time functions compute, in percent. A leaf waits otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Split {
    /// Those that call others; of a time that includes their callees.
    pub callers_percent: u32,
    /// Those that do not.
    pub leaves_percent: u32,
}

impl Split {
    /// The largest shares: a caller has its callees and the store to wait for.
    pub const MAX: Split = Split { callers_percent: 90, leaves_percent: 99 };
}

impl Default for Split {
    fn default() -> Split {
        Split { callers_percent: 10, leaves_percent: 32 }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Function {
    busy_us: f64,
    wait_us: f64,
    writes: bool,
    /// Whether not all inputs call it.
    is_conditional: bool,
    /// Whether its input depends on the reply of the function called before it.
    follows: bool,
    /// Those that it calls, in this order.
    callees: Vec<usize>,
    /// How deep it is.
    level: usize,
}

/// The call graph of an application. Its first function is the one that clients call.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    functions: Vec<Function>,
}

/// The five graphs of a seed.
#[must_use]
pub fn five(seed: u64) -> [Graph; 5] {
    five_with(seed, Split::default())
}

/// The same whose functions compute for other shares of their time, at most [`Split::MAX`]. They have the same shapes, and take as long.
#[must_use]
pub fn five_with(seed: u64, split: Split) -> [Graph; 5] {
    let mut number = 0;
    SHAPES.map(|shape| {
        number += 1;
        Graph::drawn(&mut Random::of("graph", seed.wrapping_mul(8).wrapping_add(number)), shape, split)
    })
}

impl Graph {
    fn drawn(random: &mut Random, (functions, callers, dependences): (u32, usize, usize), split: Split) -> Graph {
        let mut graph = Graph { functions: vec![Function::default()] };
        // Callers first: a chain down to the last level on which there are any, then anywhere above that.
        for caller in 1..callers {
            let parent = if caller < CALLER_LEVELS { caller - 1 } else { graph.any(random, 0, caller, CALLER_LEVELS - 1) };
            graph.hang(random, parent);
        }
        // Those that call no caller have one leaf at least.
        for caller in 0..callers {
            if graph.functions[caller].callees.is_empty() {
                graph.hang(random, caller);
            }
        }
        while graph.functions.len() < functions as usize {
            let parent = random.below(callers as u32) as usize;
            graph.hang(random, parent);
        }
        let later: Vec<usize> = graph.functions.iter().flat_map(|function| function.callees.iter().skip(1)).copied().collect();
        for function in picked(random, later, dependences) {
            graph.functions[function].follows = true;
        }
        let leaves: Vec<usize> = (callers..graph.functions.len()).collect();
        for leaf in picked(random, leaves, CONDITIONAL) {
            graph.functions[leaf].is_conditional = true;
        }
        graph.times(random, callers, split);
        graph
    }

    /// One of the functions from `first` to before `end` that lies above the level.
    fn any(&self, random: &mut Random, first: usize, end: usize, level: usize) -> usize {
        let above: Vec<usize> = (first..end).filter(|function| self.functions[*function].level < level).collect();
        above[random.below(above.len() as u32) as usize]
    }

    /// Adds a function that another one calls, anywhere between its other calls.
    fn hang(&mut self, random: &mut Random, parent: usize) {
        let number = self.functions.len();
        let level = self.functions[parent].level + 1;
        self.functions.push(Function { level, ..Function::default() });
        let callees = &mut self.functions[parent].callees;
        callees.insert(random.below(callees.len() as u32 + 1) as usize, number);
    }

    /// Leaves take times of their own, callers what their callees take and a share of that.
    fn times(&mut self, random: &mut Random, callers: usize, split: Split) {
        let share = |percent: u32, most: u32| f64::from(percent.min(most)) / 100.0;
        let caller_busy = share(split.callers_percent, Split::MAX.callers_percent);
        let leaf_busy = share(split.leaves_percent, Split::MAX.leaves_percent);
        let mut takes: Vec<f64> = self.functions.iter().map(|_| f64::from(random.between(50, 150))).collect();
        // Callees have higher numbers.
        for caller in (0..callers).rev() {
            let callees: f64 = self.functions[caller].callees.iter().map(|callee| takes[*callee]).sum();
            takes[caller] = callees / (1.0 - caller_busy - CALLER_WAITS);
        }
        let scale = EACH_US * takes.len() as f64 / takes[0];
        for (function, takes) in self.functions.iter_mut().zip(takes) {
            let (busy, waits) =
                if function.callees.is_empty() { (leaf_busy, 1.0 - leaf_busy) } else { (caller_busy, CALLER_WAITS) };
            (function.busy_us, function.wait_us) = (busy * takes * scale, waits * takes * scale);
            function.writes = function.callees.is_empty() && random.is(WRITES_PERCENT);
        }
    }

    /// How many functions it has.
    #[must_use]
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// How many of them call others.
    #[must_use]
    pub fn callers(&self) -> usize {
        self.functions.iter().filter(|function| !function.callees.is_empty()).count()
    }

    /// How many functions wait for each other at most, the last one included.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.functions.iter().map(|function| function.level + 1).max().unwrap_or_default()
    }

    /// How long it takes, one function after the other, on the common path, in microseconds.
    #[must_use]
    pub fn time_us(&self) -> f64 {
        self.functions.iter().map(|function| function.busy_us + function.wait_us).sum()
    }

    /// The body of a request to the first of [`super::STUBS`].
    #[must_use]
    pub fn body(&self, input: u64, pace: Pace) -> String {
        String::from_utf8(json(&Ask { input, node: self.node(0, pace) })).unwrap_or_default()
    }

    fn node(&self, number: usize, pace: Pace) -> Node {
        let function = &self.functions[number];
        let time = f64::from(pace.time_percent) / 100.0;
        let edge = |callee: &usize| {
            let Function { is_conditional, follows, .. } = self.functions[*callee];
            let chance = (f64::from(pace.common_percent) / 100.0).powf(1.0 / CONDITIONAL as f64);
            let percent = if is_conditional { (100.0 * chance).round() as u32 } else { 100 };
            Edge { percent, follows, to: self.node(*callee, pace) }
        };
        Node {
            node: number as u32,
            work: (function.busy_us * time * f64::from(pace.units_per_ms) / 1_000.0) as u64,
            reads: ((function.wait_us * time / f64::from(pace.read_us.max(1))).round() as u32).clamp(1, READS_MAX),
            writes: function.writes,
            calls: function.callees.iter().map(edge).collect(),
        }
    }
}

/// So many of them, in their order.
fn picked(random: &mut Random, mut all: Vec<usize>, count: usize) -> Vec<usize> {
    while all.len() > count {
        all.remove(random.below(all.len() as u32) as usize);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::STUBS;
    use crate::{Error, Memory};
    use serde_json::Value;

    fn mean(of: impl Fn(&Graph) -> f64) -> f64 {
        five(1).iter().map(of).sum::<f64>() / 5.0
    }

    #[test]
    fn graphs_have_the_papers_statistics() {
        assert!((mean(|graph| graph.functions() as f64) - 17.6).abs() < 1e-9);
        let callers: usize = five(1).iter().map(Graph::callers).sum();
        let callees: usize = five(1).iter().map(|graph| graph.functions() - 1).sum();
        assert!((callees as f64 / callers as f64 - 3.4).abs() < 0.1, "{callees} of {callers}");
        assert!((mean(Graph::time_us) - 387_200.0).abs() < 1.0, "{}", mean(Graph::time_us));
        let follow = mean(|graph| graph.functions.iter().filter(|function| function.follows).count() as f64);
        assert!((follow - 3.4).abs() < 1e-9, "{follow}");
        for graph in (0..200).flat_map(five) {
            assert!((4..=5).contains(&graph.depth()), "{graph:?}");
            let total = graph.time_us();
            let busy = graph.functions[0].busy_us / total;
            assert!((busy - 0.10).abs() < 1e-9, "{busy}");
        }
        assert_eq!((five(4), five(4) == five(5)), (five(4), false));
    }

    #[test]
    fn functions_compute_for_other_shares_of_as_long_a_time() {
        for (callers_percent, leaves_percent) in [(5, 16), (20, 50), (40, 64)] {
            let all = five_with(1, Split { callers_percent, leaves_percent });
            let time: f64 = all.iter().map(Graph::time_us).sum::<f64>() / 5.0;
            assert!((time - 387_200.0).abs() < 1.0, "{time}");
            for (graph, usual) in all.iter().zip(five(1)) {
                let calls = |graph: &Graph| graph.functions.iter().map(|function| function.callees.clone()).collect::<Vec<_>>();
                assert_eq!(calls(graph), calls(&usual));
                let Function { busy_us, .. } = graph.functions[0];
                assert!((busy_us / graph.time_us() - f64::from(callers_percent) / 100.0).abs() < 1e-9, "{graph:?}");
                let leaf = graph.functions.iter().find(|function| function.callees.is_empty()).unwrap();
                let share = leaf.busy_us / (leaf.busy_us + leaf.wait_us);
                assert!((share - f64::from(leaves_percent) / 100.0).abs() < 1e-9, "{share}");
            }
        }
        // More than there is room for.
        assert!(five_with(1, Split { callers_percent: 300, leaves_percent: 300 })[0].time_us() > 0.0);
    }

    /// How many functions ran, by depth, for each of some inputs.
    fn ran(memory: &mut Memory, graph: &Graph, inputs: u64, pace: Pace) -> Vec<usize> {
        let mut ran = |input| {
            memory.take_steps();
            let reply = memory.answer(STUBS[0], graph.body(input, pace).as_bytes()).unwrap();
            let reply: Value = serde_json::from_slice(&reply).unwrap();
            let steps = memory.take_steps();
            assert!(steps.iter().all(|step| step.function == STUBS[step.depth] && !step.reads.is_empty()));
            assert_eq!(reply["ran"].as_u64().unwrap(), steps.len() as u64);
            steps.len()
        };
        (0..inputs).map(&mut ran).collect()
    }

    #[test]
    fn as_many_inputs_as_are_wanted_take_the_common_path() {
        let mut memory = Memory::new();
        memory.setup().unwrap();
        for graph in five(1) {
            for percent in [100, 90, 50] {
                let pace = Pace { units_per_ms: 0, common_percent: percent, ..Pace::default() };
                let ran = ran(&mut memory, &graph, 400, pace);
                let common = ran.iter().filter(|ran| **ran == graph.functions()).count();
                let expected = 4 * percent as usize;
                assert!(common.abs_diff(expected) <= if percent == 100 { 0 } else { 40 }, "{percent}: {common}");
            }
        }
    }

    #[test]
    fn the_same_input_has_the_same_reply() {
        let mut memory = Memory::new();
        memory.setup().unwrap();
        let [first, .., last] = five(1);
        let pace = Pace { units_per_ms: 1, ..Pace::default() };
        let mut reply = |graph: &Graph, input| memory.answer(STUBS[0], graph.body(input, pace).as_bytes()).unwrap();
        let before = reply(&first, 3);
        assert!(before != reply(&first, 4) && before != reply(&last, 3));
        assert_eq!(before, reply(&first, 3));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let mut memory = Memory::new();
        let mut reason =
            |name: &str, node: &str| match memory.answer(name, format!(r#"{{"input": 1, "node": {node}}}"#).as_bytes()) {
                Err(error) => error,
                Ok(_) => panic!("{node}"),
            };
        let leaf = r#"{"node": 1, "work": 0, "reads": 0, "writes": false, "calls": []}"#;
        assert!(
            matches!(reason("stub-1", &leaf.replace("\"reads\": 0", "\"reads\": 65")), Error::Asked(told) if told.contains("65 times"))
        );
        assert!(
            matches!(reason("stub-1", &leaf.replace("\"work\": 0", "\"work\": 100000001")), Error::Asked(told) if told.contains("`work`"))
        );
        assert!(
            matches!(reason("stub-1", &leaf.replace("\"reads\": 0", "\"reads\": 1")), Error::Broken(told) if told.contains("not in the store"))
        );
        let calls = leaf.replace("[]", &format!(r#"[{{"percent": 100, "follows": false, "to": {leaf}}}]"#));
        assert!(matches!(reason("stub-5", &calls), Error::Asked(told) if told.contains("deeper than 5")));
        assert!(matches!(reason("stub-1", "{}"), Error::Asked(told) if told.contains("missing field")));
    }
}
