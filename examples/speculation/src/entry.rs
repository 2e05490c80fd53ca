//! The border to Sledge: which function this is, its store, its calls.

use sledge::{Reply, call, kv};

use crate::{Error, World};

/// The applications' bucket of their tenant's store, and the tenant's other functions.
struct Host(kv::Bucket);

fn broken(key: &str, error: kv::Error) -> Error {
    Error::Broken(format!("{key}: {error}"))
}

impl World for Host {
    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.0.get(key).map_err(|error| broken(key, error))?.map(|entry| entry.value))
    }

    fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.0.set(key, value).map(drop).map_err(|error| broken(key, error))
    }

    fn add(&mut self, key: &str, delta: i64) -> Result<(), Error> {
        self.0.add(key, delta).map_err(|error| broken(key, error))
    }

    fn set_many(&mut self, pairs: &[(String, Vec<u8>)]) -> Result<(), Error> {
        let first = pairs.first().map_or("", |(key, _)| key);
        self.0.set_many(pairs).map(drop).map_err(|error| broken(first, error))
    }

    fn call(&mut self, name: &str, input: &[u8]) -> Result<Vec<u8>, Error> {
        call::invoke(name, input).map_err(|error| Error::Broken(format!("{name}: {error}")))
    }
}

/// The whole function, under each of its names. Status 400 for a body that makes no sense, 500 where the store has not what it needs. The
/// error's name and its reason are where workflows look for them.
#[sledge::function]
fn speculation(body: &[u8]) -> Result<Reply, String> {
    let name = std::env::args().next().unwrap_or_default();
    let bucket = kv::open(crate::BUCKET).map_err(|error| error.to_string())?;
    let (status, body) = match crate::answer(&name, &mut Host(bucket), body) {
        Ok(reply) => (200, reply),
        Err(error) => {
            let status = if matches!(error, Error::Asked(_)) { 400 } else { 500 };
            let told = serde_json::json!({ "errorType": error.name(), "errorMessage": error.to_string() });
            (status, told.to_string().into_bytes())
        }
    };
    Ok(Reply::new(status).with_header("content-type", "application/json").with_body(body))
}
