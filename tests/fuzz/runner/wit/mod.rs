//! Random components: they pass random values to each other, lie to each other, or are damaged. Everything follows from the seed.
//!
//! * `generate`: types and values; `types`: their text;
//! * `pair`: components that pass values on, and compare what they get (`spill`: what a callee does with flat parameters);
//! * `streams`: the same in a stream;
//! * `hostile`: a component that lies (`bad`: what is no value); `damaged`: bytes of components that are changed;
//! * `run`: compiles and runs them, and says whether they ended as they should.

mod bad;
mod damaged;
mod generate;
mod hostile;
mod pair;
mod parts;
mod run;
mod spill;
mod streams;
mod types;

pub(crate) use run::{given, modes, seed};

/// What a seed is made into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Modules, beside an interpreter.
    Modules,
    /// Components that give back what they get.
    Components,
    /// Components that pass values in a stream.
    Streams,
    /// Components that lie.
    Hostile,
    /// Components whose bytes are changed.
    Damaged,
}

impl Kind {
    /// Its name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Modules => "modules",
            Kind::Components => "components",
            Kind::Streams => "streams",
            Kind::Hostile => "hostile",
            Kind::Damaged => "damaged",
        }
    }

    /// The text of a seed's component; of a damaged one, before that.
    pub(crate) fn text(self, seed: u64) -> String {
        match self {
            Kind::Streams => streams::text(seed),
            Kind::Hostile => hostile::hostile(seed).text,
            _ => pair::text(seed),
        }
    }
}
