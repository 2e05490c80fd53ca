//! What functions have around them: a store, and other functions. In the server it is the host's; natively it is a map.

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

impl Error {
    /// The name that a workflow's `Catch` looks for.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Error::Asked(_) => "InvalidInput",
            Error::Broken(_) => "Broken",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Error::Asked(reason) | Error::Broken(reason)) = self;
        f.write_str(reason)
    }
}

impl std::error::Error for Error {}

/// A store, and other functions. Each use is one wait.
pub trait World {
    /// What there is under a key.
    ///
    /// # Errors
    /// When the store does not work; so for all that follow.
    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Puts a value under a key.
    ///
    /// # Errors
    /// As for [`World::get`].
    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Error>;

    /// Adds to a number, without looking at it.
    ///
    /// # Errors
    /// As for [`World::get`].
    fn add(&mut self, key: &str, delta: i64) -> Result<(), Error>;

    /// Puts several values under their keys.
    ///
    /// # Errors
    /// As for [`World::get`].
    fn set_many(&mut self, pairs: &[(String, Vec<u8>)]) -> Result<(), Error>;

    /// What another function replies.
    ///
    /// # Errors
    /// When it does not.
    fn call(&mut self, name: &str, input: &[u8]) -> Result<Vec<u8>, Error>;
}

/// What a request says in JSON. Fields that the function does not know are passed over: a workflow may give more than is needed.
pub(crate) fn asked<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Asked(format!("the body: {error}")))
}

/// What a value, or a reply of the function `source`, says in JSON.
pub(crate) fn parse<T: DeserializeOwned>(source: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| Error::Broken(format!("{source}: {error}")))
}

/// What goes over the wire or into the store.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("records have text as keys")
}

/// Entries that are written together, below what the store takes.
const BATCH_ENTRIES_MAX: usize = 512;

/// Writes everything, in batches; the number of entries.
pub(crate) fn write_all(world: &mut dyn World, entries: &[(String, Vec<u8>)]) -> Result<usize, Error> {
    entries.chunks(BATCH_ENTRIES_MAX).try_for_each(|batch| world.set_many(batch))?;
    Ok(entries.len())
}
