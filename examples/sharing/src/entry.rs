//! The border to Sledge: which function this is, its store, its calls.

use sledge::{Reply, call, kv};

use crate::{Entry, Error, World};

/// The function's bucket of its tenant's store, and the tenant's other functions.
struct Host(kv::Bucket);

fn broken(key: &str, error: kv::Error) -> Error {
    Error::Broken(format!("{key}: {error}"))
}

impl World for Host {
    fn get(&mut self, key: &str) -> Result<Option<Entry>, Error> {
        let found = self.0.get(key).map_err(|error| broken(key, error))?;
        Ok(found.map(|kv::Entry { version, value }| Entry { version, value }))
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.0.set(key, value).map(drop).map_err(|error| broken(key, error))
    }

    fn set_many(&mut self, pairs: &[(String, Vec<u8>)]) -> Result<(), Error> {
        let first = pairs.first().map_or("", |(key, _)| key);
        self.0.set_many(pairs).map(drop).map_err(|error| broken(first, error))
    }

    fn swap(&mut self, key: &str, version: u64, value: &[u8]) -> Result<bool, Error> {
        let outcome = self.0.compare_and_swap(key, version, value).map_err(|error| broken(key, error))?;
        Ok(matches!(outcome, kv::Outcome::Committed(_)))
    }

    fn call(&mut self, name: &str, input: &[u8]) -> Result<Vec<u8>, Error> {
        call::invoke(name, input).map_err(|error| Error::Broken(format!("{name}: {error}")))
    }
}

/// The whole function, under each of its names. Status 400 for a body that makes no sense; 500, with the reason in the log, where the
/// store has not what it needs.
/// The whole function, under each of its names. Status 400 for a body that makes no sense; 500, with the reason in the log, where the
/// store has not what it needs.
#[sledge::function]
fn sharing(body: &[u8]) -> Result<Reply, String> {
    let name = std::env::args().next().unwrap_or_default();
    let bucket = kv::open(crate::bucket(&name)).map_err(|error| error.to_string())?;
    match crate::answer(&name, &mut Host(bucket), body) {
        Ok(reply) => Ok(Reply::new(200).with_header("content-type", "application/json").with_body(reply)),
        Err(Error::Asked(reason)) => Ok(Reply::new(400).with_body(reason)),
        Err(Error::Broken(reason)) => Err(reason),
    }
}
