//! The nine functions. Each fetches its inputs one after the other, computes, and puts its output into the store.

mod cnn;
mod data;
mod float;
mod lr;
mod orders;
mod photo;
mod picture;
mod rnn;
mod train;
mod video;

use serde::{Deserialize, Serialize};

use crate::SETUP_INPUTS_MAX;
use crate::digest;
use crate::world::{Error, World, json, write_all};

/// Their names.
pub const FUNCTIONS: [&str; 9] =
    ["lr-serv", "cnn-serv", "rnn-serv", "ml-train", "vid-conv", "img-rotate", "img-resize", "create-order", "pay-order"];

/// The name of the function that writes their inputs.
pub(crate) const SETUP: &str = "suite-setup";

/// Most work of a request.
pub const WORK_MAX: u32 = 1_000_000;

/// What is asked of one of them.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    /// The number of the input.
    input: u32,
    /// How much is computed.
    #[serde(default = "one")]
    work: u32,
}

/// What one of them replies.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Answer {
    /// The number of the input.
    pub input: u32,
    /// The checksum of the output.
    pub digest: String,
    /// The output's length.
    pub bytes: usize,
    /// What there is to say about it.
    pub result: String,
}

/// What one of them made, and has put into the store.
struct Output {
    bytes: Vec<u8>,
    result: String,
}

/// What is asked of the setup.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetupAsk {
    /// The first input.
    pub(crate) from: u32,
    /// The one behind the last.
    pub(crate) to: u32,
}

const fn one() -> u32 {
    1
}

pub(crate) fn asked<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Asked(format!("the body: {error}")))
}

pub(crate) fn setup_asked(body: &[u8], inputs_max: u32) -> Result<SetupAsk, Error> {
    let ask: SetupAsk = asked(body)?;
    if ask.from > ask.to || ask.to - ask.from > inputs_max {
        return Err(Error::Asked(format!("from {} to {}: a request writes at most {inputs_max} inputs", ask.from, ask.to)));
    }
    Ok(ask)
}

pub(crate) fn setup_reply((entries, bytes): (usize, usize)) -> Vec<u8> {
    format!(r#"{{"entries":{entries},"bytes":{bytes}}}"#).into_bytes()
}

pub(crate) fn body(input: u32, work: u32) -> String {
    format!(r#"{{"input": {input}, "work": {work}}}"#)
}

pub(crate) fn answer(name: &str, world: &mut dyn World, body: &[u8]) -> Result<Vec<u8>, Error> {
    if name == SETUP {
        let ask = setup_asked(body, SETUP_INPUTS_MAX)?;
        return Ok(setup_reply(write_all(world, data::entries(ask.from, ask.to))?));
    }
    let function = match name {
        "lr-serv" => lr::serve,
        "cnn-serv" => cnn::serve,
        "rnn-serv" => rnn::serve,
        "ml-train" => train::train,
        "vid-conv" => video::convert,
        "img-rotate" => photo::rotate,
        "img-resize" => photo::resize,
        "create-order" => orders::create,
        "pay-order" => orders::pay,
        _ => return Err(Error::Asked(format!("there is no function `{name}`"))),
    };
    let Ask { input, work } = asked(body)?;
    if !(1..=WORK_MAX).contains(&work) {
        return Err(Error::Asked(format!("`work` is {work}; it has to be 1 to {WORK_MAX}")));
    }
    let Output { bytes, result } = function(world, input, work)?;
    Ok(json(&Answer { input, digest: digest::text(digest::hash(&bytes, 0)), bytes: bytes.len(), result }))
}

/// The numbers of a blob, or why it is none.
fn sized<'a>(key: &str, blob: &'a [u8], bytes: usize) -> Result<&'a [u8], Error> {
    if blob.len() == bytes { Ok(blob) } else { Err(Error::Broken(format!("{key} has {} bytes in place of {bytes}", blob.len()))) }
}
