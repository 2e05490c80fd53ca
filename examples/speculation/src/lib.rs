//! The applications of *SpecFaaS* (HPCA 2023): six workflows of functions that use a store ([`Application`]), and call graphs of stubs
//! that compute, wait and call each other for as long as they are told ([`graphs`]).
//!
//! One artifact serves them all: a function does what its name says. Natively this is a library with the same functions over a store in
//! memory ([`Memory`]), and with the applications as plain programs, so that a driver knows each reply. Nothing here reads a clock or
//! random numbers.

mod applications;
mod data;
mod digest;
#[cfg(target_family = "wasm")]
mod entry;
mod functions;
pub mod graphs;
mod inputs;
mod memory;
mod programs;
mod random;
mod records;
mod world;

pub use applications::Application;
pub use functions::{FUNCTIONS, WORK_MAX};
pub use inputs::{Inputs, Mix, Paths};
pub use memory::{Memory, Step};
pub use world::{Error, World};

/// The name of the function that writes what all others need.
pub const SETUP: &str = "speculation-setup";

/// The bucket of the store in which all keys are.
pub const BUCKET: &str = "speculation";

/// All names that can be served: the workflows' functions, the stubs of the graphs, the setup.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.into_iter().chain(graphs::STUBS).chain([SETUP])
}

/// What the function of that name replies to this body.
///
/// # Errors
/// When there is no such function, the body makes no sense, or something is not in the store.
pub fn answer(name: &str, world: &mut dyn World, body: &[u8]) -> Result<Vec<u8>, Error> {
    if name == SETUP {
        let count = world::write_all(world, &data::entries())?;
        return Ok(format!(r#"{{"entries":{count}}}"#).into_bytes());
    }
    functions::answer(name, world, body)
        .or_else(|| graphs::answer(name, world, body))
        .unwrap_or_else(|| Err(Error::Asked(format!("there is no function `{name}`"))))
}

#[cfg(test)]
mod tests;
