//! The store in memory, and all functions and applications over it.

use std::collections::BTreeMap;

use crate::{Application, Error, World};

/// A function that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub function: String,
    /// How many functions wait for it.
    pub depth: usize,
    /// The keys that it read, in this order.
    pub reads: Vec<String>,
    /// The keys that it wrote or added to, in this order.
    pub writes: Vec<String>,
}

/// A store in memory, and all functions over it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    entries: BTreeMap<String, Vec<u8>>,
    steps: Vec<Step>,
    /// Functions that wait for others.
    depth: usize,
}

impl Memory {
    /// An empty one.
    #[must_use]
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Writes what the functions need.
    ///
    /// # Errors
    /// There are none in practice: the same function writes it that writes to a server's store.
    pub fn setup(&mut self) -> Result<(), Error> {
        self.answer(crate::SETUP, b"{}").map(drop)
    }

    /// What the function of that name replies.
    ///
    /// # Errors
    /// As for [`crate::answer`].
    pub fn answer(&mut self, name: &str, body: &[u8]) -> Result<Vec<u8>, Error> {
        let step = self.steps.len();
        self.steps.push(Step { function: name.to_owned(), depth: self.depth, ..Step::default() });
        self.depth += 1;
        let reply = crate::answer(name, &mut Native { memory: self, step }, body);
        self.depth -= 1;
        reply
    }

    /// What an execution of the application puts out: its functions, one after the other, as a plain program calls them.
    ///
    /// # Errors
    /// As for [`crate::answer`], of the first function that fails.
    pub fn execute(&mut self, application: Application, input: &[u8]) -> Result<Vec<u8>, Error> {
        crate::programs::execute(application, self, input)
    }

    /// What ran since it was asked last, in the order in which it began.
    pub fn take_steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    /// All keys and what there is under them, in the order of the keys.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value.as_slice()))
    }

    /// What there is under a key.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&[u8]> {
        self.entries.get(key).map(Vec::as_slice)
    }
}

/// A function's view of it.
struct Native<'a> {
    memory: &'a mut Memory,
    step: usize,
}

impl Native<'_> {
    fn step(&mut self) -> &mut Step {
        &mut self.memory.steps[self.step]
    }
}

impl World for Native<'_> {
    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        self.step().reads.push(key.to_owned());
        Ok(self.memory.entries.get(key).cloned())
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.step().writes.push(key.to_owned());
        self.memory.entries.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn add(&mut self, key: &str, delta: i64) -> Result<(), Error> {
        self.step().writes.push(key.to_owned());
        let before = self.memory.entries.get(key).map_or(Ok(0), |value| crate::world::parse::<i64>(key, value))?;
        self.memory.entries.insert(key.to_owned(), (before + delta).to_string().into_bytes());
        Ok(())
    }

    fn set_many(&mut self, pairs: &[(String, Vec<u8>)]) -> Result<(), Error> {
        pairs.iter().try_for_each(|(key, value)| self.set(key, value))
    }

    fn call(&mut self, name: &str, input: &[u8]) -> Result<Vec<u8>, Error> {
        self.memory.answer(name, input)
    }
}
