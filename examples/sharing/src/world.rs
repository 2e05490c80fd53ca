//! What functions have around them: a store, and other functions. In the server it is the host's; natively it is a map, and calls are calls.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The request makes no sense.
    Asked(String),
    /// The store, or a function that is called, does not give what is needed.
    Broken(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Asked(reason) | Error::Broken(reason)) = self;
        f.write_str(reason)
    }
}

impl std::error::Error for Error {}

/// A value of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// That of the write that made it.
    pub version: u64,
    /// What it wrote.
    pub value: Vec<u8>,
}

/// A store, and other functions. Each use is one wait.
pub trait World {
    /// What there is under a key.
    ///
    /// # Errors
    /// When the store does not work; so for all that follow.
    fn get(&mut self, key: &str) -> Result<Option<Entry>, Error>;

    /// Puts a value under a key.
    ///
    /// # Errors
    /// As for [`World::get`].
    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Error>;

    /// Puts several values under their keys.
    ///
    /// # Errors
    /// As for [`World::get`].
    fn set_many(&mut self, pairs: &[(String, Vec<u8>)]) -> Result<(), Error>;

    /// Puts a value under a key if it has this version; whether it had.
    ///
    /// # Errors
    /// As for [`World::get`].
    fn swap(&mut self, key: &str, version: u64, value: &[u8]) -> Result<bool, Error>;

    /// What another function replies.
    ///
    /// # Errors
    /// When it does not.
    fn call(&mut self, name: &str, input: &[u8]) -> Result<Vec<u8>, Error>;
}

/// The value of a key that has to be there.
pub(crate) fn read(world: &mut dyn World, key: &str) -> Result<Vec<u8>, Error> {
    match world.get(key)? {
        Some(entry) => Ok(entry.value),
        None => Err(Error::Broken(format!("{key} is not in the store; the setup function writes it"))),
    }
}

/// The same, from JSON.
pub(crate) fn read_json<T: DeserializeOwned>(world: &mut dyn World, key: &str) -> Result<T, Error> {
    parse(key, &read(world, key)?)
}

/// What a value, or a reply of the function `source`, says in JSON.
pub(crate) fn parse<T: DeserializeOwned>(source: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::Broken(format!("{source}: {error}")))
}

/// What goes over the wire or into the store.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("records have text as keys")
}

/// Most bytes and entries that are written together, below what the store takes.
const BATCH_BYTES_MAX: usize = 2 << 20;
const BATCH_ENTRIES_MAX: usize = 512;

/// Writes everything, in batches; the number of entries and of their bytes.
pub(crate) fn write_all(
    world: &mut dyn World,
    entries: impl Iterator<Item = (String, Vec<u8>)>,
) -> Result<(usize, usize), Error> {
    let (mut batch, mut batch_bytes) = (Vec::new(), 0);
    let (mut count, mut total) = (0, 0);
    for (key, value) in entries {
        let bytes = key.len() + value.len();
        if batch.len() == BATCH_ENTRIES_MAX || (batch_bytes + bytes > BATCH_BYTES_MAX && !batch.is_empty()) {
            world.set_many(&batch)?;
            batch.clear();
            batch_bytes = 0;
        }
        batch.push((key, value));
        batch_bytes += bytes;
        (count, total) = (count + 1, total + bytes);
    }
    if !batch.is_empty() {
        world.set_many(&batch)?;
    }
    Ok((count, total))
}

/// How often the store was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Values that were read.
    pub reads: u64,
    /// Values that were written.
    pub writes: u64,
    /// Calls of functions.
    pub calls: u64,
}

/// A store in memory, and all functions over it.
#[derive(Debug, Default)]
pub struct Memory {
    entries: BTreeMap<(&'static str, String), Entry>,
    /// That of the last write.
    version: u64,
    /// Since the beginning.
    uses: Uses,
}

impl Memory {
    /// An empty one.
    #[must_use]
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Writes the first inputs of the nine functions, and all of the railway.
    ///
    /// # Errors
    /// There are none in practice: the same functions write it that write to a server's store.
    pub fn setup(&mut self, inputs: u32) -> Result<(), Error> {
        for (name, from, to) in setups(inputs) {
            self.answer(name, setup_body(from, to).as_bytes())?;
        }
        Ok(())
    }

    /// What the function of that name replies.
    ///
    /// # Errors
    /// As for [`crate::answer`].
    pub fn answer(&mut self, name: &str, body: &[u8]) -> Result<Vec<u8>, Error> {
        crate::answer(name, &mut Native { memory: self, bucket: crate::bucket(name) }, body)
    }

    /// How often it was used since it was made.
    #[must_use]
    pub fn uses(&self) -> Uses {
        self.uses
    }
}

/// The requests that write the first inputs of the nine functions, and all of the railway: to which function, from which input, up to which.
pub fn setups(inputs: u32) -> impl Iterator<Item = (&'static str, u32, u32)> {
    let ranges = (0..inputs).step_by(crate::SETUP_INPUTS_MAX as usize);
    let serving = ranges.map(move |from| (crate::serving::SETUP, from, inputs.min(from + crate::SETUP_INPUTS_MAX)));
    serving.chain([(crate::tickets::SETUP, 0, crate::TRIPS)])
}

/// The body of a request to a setup function.
#[must_use]
pub fn setup_body(from: u32, to: u32) -> String {
    format!(r#"{{"from": {from}, "to": {to}}}"#)
}

/// A function's view of it.
struct Native<'a> {
    memory: &'a mut Memory,
    bucket: &'static str,
}

impl World for Native<'_> {
    fn get(&mut self, key: &str) -> Result<Option<Entry>, Error> {
        self.memory.uses.reads += 1;
        Ok(self.memory.entries.get(&(self.bucket, key.to_owned())).cloned())
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.memory.uses.writes += 1;
        self.memory.version += 1;
        let entry = Entry { version: self.memory.version, value: value.to_owned() };
        self.memory.entries.insert((self.bucket, key.to_owned()), entry);
        Ok(())
    }

    fn set_many(&mut self, pairs: &[(String, Vec<u8>)]) -> Result<(), Error> {
        pairs.iter().try_for_each(|(key, value)| self.set(key, value))
    }

    fn swap(&mut self, key: &str, version: u64, value: &[u8]) -> Result<bool, Error> {
        let found = self.memory.entries.get(&(self.bucket, key.to_owned())).map_or(0, |entry| entry.version);
        if found == version {
            self.set(key, value)?;
        }
        Ok(found == version)
    }

    fn call(&mut self, name: &str, input: &[u8]) -> Result<Vec<u8>, Error> {
        self.memory.uses.calls += 1;
        self.memory.answer(name, input)
    }
}
