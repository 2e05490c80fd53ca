//! The workloads of *MXFaaS* (ISCA 2023, table 1): nine functions that fetch, compute and store ([`FUNCTIONS`]), and four applications of
//! functions that call each other ([`APPLICATIONS`]). One more such application is of *SpecFaaS* (HPCA 2023, table 2): [`TRAVEL`].
//!
//! One artifact serves them all: a function does what its name says. Natively this is a library with the same functions over a store in
//! memory ([`Memory`]), so that a driver knows each reply. Nothing here reads a clock or random numbers.

mod digest;
#[cfg(target_family = "wasm")]
mod entry;
mod random;
mod serving;
mod tickets;
mod world;

pub use serving::{Answer, FUNCTIONS, WORK_MAX};
pub use tickets::{APPLICATIONS, DATES, Journey, STEPS, TRAVEL, TRIPS};
pub use world::{Entry, Error, Memory, Uses, World, setup_body, setups};

/// Most inputs that a request to a setup function may ask for.
pub const SETUP_INPUTS_MAX: u32 = 256;

/// All names that can be served.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.into_iter().chain([serving::SETUP]).chain(STEPS).chain([tickets::SETUP])
}

/// What the function of that name replies to this body. The world is that of its [bucket](bucket).
///
/// # Errors
/// When there is no such function, the body makes no sense, or something is not in the store.
pub fn answer(name: &str, world: &mut dyn World, body: &[u8]) -> Result<Vec<u8>, Error> {
    if name.starts_with(tickets::PREFIX) { tickets::answer(name, world, body) } else { serving::answer(name, world, body) }
}

/// The bucket of the store in which a function's keys are.
#[must_use]
pub fn bucket(name: &str) -> &'static str {
    if name.starts_with(tickets::PREFIX) { "tickets" } else { "sharing" }
}

/// The body of request number `input` to one of the [`FUNCTIONS`] or [`APPLICATIONS`], or to [`TRAVEL`].
#[must_use]
pub fn body(name: &str, input: u32, work: u32) -> String {
    if name.starts_with(tickets::PREFIX) { tickets::body(name, input, work) } else { serving::body(input, work) }
}

#[cfg(test)]
mod tests;
