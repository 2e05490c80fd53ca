//! What is served: programs of one or several functions, and what their requests are.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::arrivals::Draw;
use super::bed::Bed;
use super::load::Asked;
use super::{example, modelled};

/// Classes of the paper's table 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Training and inference.
    Ml,
    /// Pictures and videos.
    Image,
    /// Orders.
    Web,
    /// Several functions that call each other.
    Application,
}

/// What all programs are made of.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The function of the modelled programs.
    pub modelled: PathBuf,
    /// That of the examples, if any of them is asked for.
    pub example: Option<PathBuf>,
    /// Rounds of computing that a core does in a microsecond.
    pub rounds_per_us: f64,
}

/// A function as a server has it.
#[derive(Debug, Clone)]
pub struct Served {
    /// Its name.
    pub name: String,
    /// The artifact.
    pub artifact: PathBuf,
    /// More lines of its configuration, of which the last may be a table.
    pub lines: String,
}

/// A function or an application of the suite.
pub trait Program: fmt::Debug {
    /// Its name, and the path of its requests.
    fn name(&self) -> &str;
    /// Its class.
    fn class(&self) -> Class;
    /// What it really does.
    fn what(&self) -> String;
    /// How many different keys, or inputs, are drawn.
    fn keys(&self) -> u32;
    /// Accesses to the store of a request, one after the other.
    fn accesses(&self) -> usize;
    /// The functions to serve.
    fn functions(&self, parts: &Parts) -> Vec<Served>;
    /// Requests that store what others read; they can be sent in any order.
    fn fill(&self) -> Vec<Asked>;
    /// The next request.
    fn ask(&self, draw: &mut Draw) -> Asked;
}

/// Names of all programs.
pub fn names() -> impl Iterator<Item = &'static str> {
    example::names().chain(modelled::ALL.iter().map(|modelled| modelled.name))
}

impl Parts {
    /// Compiles what some programs need, and measures what the cores compute.
    ///
    /// # Errors
    ///
    /// If a function does not compile or run, or a name is unknown.
    pub fn of(names: &[String], bed: &Bed) -> Result<Parts> {
        let modelled = modelled::compiled(bed)?;
        let rounds_per_us = modelled::rounds_per_us(bed, &modelled)?;
        let with_examples = names.iter().any(|name| example::names().any(|known| known == name));
        let example = with_examples.then(|| example::compiled(bed)).transpose()?;
        Ok(Parts { modelled, example, rounds_per_us })
    }

    /// A program by its name, calibrated.
    ///
    /// # Errors
    ///
    /// If there is no such name, or the program does not run.
    pub fn program(&self, name: &str, bed: &Bed) -> Result<Box<dyn Program>> {
        if let Some(name) = example::names().find(|known| *known == name) {
            return Ok(Box::new(example::Example::calibrated(name, bed, self)?));
        }
        Ok(Box::new(modelled::named(name)?.calibrated(self.rounds_per_us)))
    }
}

/// There has to be a program of this name.
///
/// # Errors
///
/// If there is none.
pub fn check(name: &str) -> Result<()> {
    ensure!(names().any(|known| known == name), unknown(name));
    Ok(())
}

pub(super) fn unknown(name: &str) -> String {
    format!("there is no program {name}; there are: {}", names().collect::<Vec<_>>().join(", "))
}
