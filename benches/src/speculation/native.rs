//! The functions natively: what they reply, and which of them run with which reads and writes.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use sharing::{Entry, World};
use speculation::{Memory, Step, graphs};

use super::program::Program;

/// An execution natively.
#[derive(Debug, Clone)]
pub struct Known {
    /// What it replies, if that was computed.
    pub reply: Option<Bytes>,
    /// Which functions run, in the order of the program.
    pub steps: Vec<Step>,
}

/// The stores of both packages in memory.
#[derive(Debug)]
pub struct Native {
    memory: Memory,
    railway: Railway,
}

impl Native {
    /// With all that the setups write.
    ///
    /// # Errors
    ///
    /// If a setup fails.
    pub fn new() -> Result<Native> {
        let mut memory = Memory::new();
        memory.setup()?;
        let mut railway = Railway::default();
        for (name, from, to) in sharing::setups(0) {
            railway.answer(name, sharing::setup_body(from, to).as_bytes())?;
        }
        Ok(Native { memory, railway })
    }

    /// Executes a program. A graph without `replies` computes nothing, so that only its steps are known: other keys behind what depends on a reply, but as many, and there
    /// a call that not all inputs make may be another one.
    ///
    /// # Errors
    ///
    /// If it fails.
    pub fn execute(&mut self, program: Program, body: &str, replies: bool) -> Result<Known> {
        self.memory.take_steps();
        self.railway.steps.clear();
        let reply = match program {
            Program::Workflow(application) => self.memory.execute(application, body.as_bytes())?,
            Program::Graph(_) if replies => self.memory.answer(graphs::STUBS[0], body.as_bytes())?,
            Program::Graph(_) => self.memory.answer(graphs::STUBS[0], idle(body)?.as_bytes())?,
            Program::Tickets(name) => self.railway.answer(name, body.as_bytes())?,
        };
        let steps = match program {
            Program::Tickets(_) => std::mem::take(&mut self.railway.steps),
            Program::Workflow(_) | Program::Graph(_) => self.memory.take_steps(),
        };
        Ok(Known { reply: replies.then(|| reply.into()), steps })
    }
}

/// The same graph, whose functions compute nothing.
fn idle(body: &str) -> Result<String> {
    let mut value: serde_json::Value = serde_json::from_str(body).context("the body of a graph")?;
    let node = value.get_mut("node").ok_or_else(|| anyhow!("a body without a graph"))?;
    rest(node);
    Ok(value.to_string())
}

fn rest(node: &mut serde_json::Value) {
    node["work"] = 0.into();
    for edge in node["calls"].as_array_mut().into_iter().flatten() {
        rest(&mut edge["to"]);
    }
}

/// A store in memory under the railway's functions, which are noted as they run.
#[derive(Debug, Default)]
struct Railway {
    entries: BTreeMap<String, Entry>,
    version: u64,
    steps: Vec<Step>,
    depth: usize,
}

impl Railway {
    fn answer(&mut self, name: &str, body: &[u8]) -> Result<Vec<u8>, sharing::Error> {
        let step = self.steps.len();
        self.steps.push(Step { function: name.to_owned(), depth: self.depth, ..Step::default() });
        self.depth += 1;
        let reply = sharing::answer(name, &mut Within { railway: self, step }, body);
        self.depth -= 1;
        reply
    }
}

/// A function's view of it.
struct Within<'a> {
    railway: &'a mut Railway,
    step: usize,
}

impl World for Within<'_> {
    fn get(&mut self, key: &str) -> Result<Option<Entry>, sharing::Error> {
        self.railway.steps[self.step].reads.push(key.to_owned());
        Ok(self.railway.entries.get(key).cloned())
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), sharing::Error> {
        self.railway.steps[self.step].writes.push(key.to_owned());
        self.railway.version += 1;
        let entry = Entry { version: self.railway.version, value: value.to_owned() };
        self.railway.entries.insert(key.to_owned(), entry);
        Ok(())
    }

    fn set_many(&mut self, pairs: &[(String, Vec<u8>)]) -> Result<(), sharing::Error> {
        pairs.iter().try_for_each(|(key, value)| self.set(key, value))
    }

    fn swap(&mut self, key: &str, version: u64, value: &[u8]) -> Result<bool, sharing::Error> {
        let found = self.railway.entries.get(key).map_or(0, |entry| entry.version);
        if found == version {
            self.set(key, value)?;
        }
        Ok(found == version)
    }

    fn call(&mut self, name: &str, input: &[u8]) -> Result<Vec<u8>, sharing::Error> {
        self.railway.answer(name, input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_railway_are_noted_with_their_keys() {
        let mut native = Native::new().unwrap();
        let known = native.execute(Program::Tickets("ts-cancel"), &sharing::body("ts-cancel", 17, 0), true).unwrap();
        let steps: Vec<(&str, usize)> = known.steps.iter().map(|step| (step.function.as_str(), step.depth)).collect();
        assert_eq!(steps, [("ts-cancel", 0), ("ts-order", 1), ("ts-refund-rate", 1), ("ts-pay-back", 1)]);
        assert_eq!(known.steps.iter().map(|step| step.reads.len()).sum::<usize>(), 4);
        assert_eq!(known.steps.iter().map(|step| step.writes.len()).sum::<usize>(), 3);
        // As the package's own store replies.
        let mut memory = sharing::Memory::new();
        memory.setup(0).unwrap();
        let reply = memory.answer("ts-cancel", sharing::body("ts-cancel", 17, 0).as_bytes()).unwrap();
        assert_eq!(known.reply.unwrap(), reply);
    }

    #[test]
    fn a_graph_without_work_has_the_same_steps() {
        let mut native = Native::new().unwrap();
        let pace = graphs::Pace { units_per_ms: 1, common_percent: 100, ..graphs::Pace::default() };
        let body = graphs::five(1)[0].body(3, pace);
        let known = native.execute(Program::Graph(0), &body, true).unwrap();
        let without = native.execute(Program::Graph(0), &body, false).unwrap();
        let shapes = |known: &Known| -> Vec<(String, usize, usize, usize)> {
            let shape = |step: &Step| (step.function.clone(), step.depth, step.reads.len(), step.writes.len());
            known.steps.iter().map(shape).collect()
        };
        assert_eq!(shapes(&known), shapes(&without));
        assert!(known.reply.is_some() && without.reply.is_none());
        assert!(known.steps.len() > 5);
    }
}
