//! The suite as it really computes: the functions and applications in `examples/sharing`.
//!
//! How much they compute follows from a number in each request, which is chosen so that a request takes the processor for as long as in the paper's artifact.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use sharing as examples;

use super::arrivals::Draw;
use super::bed::Bed;
use super::column::Column;
use super::load::Asked;
use super::runner::Runner;
use super::suite::{Class, Parts, Program, Served};
use crate::client::Client;
use crate::load::Expected;
use crate::{checkout, compiler};

/// Inputs of a function.
const INPUTS: u32 = 64;
/// Those of an application.
const JOURNEYS: u32 = 200;
/// How long each amount of work is looked at.
const LOOK: Duration = Duration::from_millis(400);
/// From one amount to the next, until it matters so much.
const MORE: u32 = 4;
const MATTERS: f64 = 2.0;

/// Functions with their classes, and what they compute in the artifact, in milliseconds. Those of the applications do what they do.
const BUSY_MS: [(&str, Class, f64); 9] = [
    ("lr-serv", Class::Ml, 1.3),
    ("cnn-serv", Class::Ml, 135.0),
    ("rnn-serv", Class::Ml, 11.0),
    ("ml-train", Class::Ml, 2_363.0),
    ("vid-conv", Class::Image, 24.0),
    ("img-rotate", Class::Image, 52.0),
    ("img-resize", Class::Image, 2.8),
    ("create-order", Class::Web, 0.5),
    ("pay-order", Class::Web, 0.5),
];

/// A function or an application.
#[derive(Debug, Clone)]
pub struct Example {
    name: &'static str,
    class: Class,
    accesses: usize,
    work: u32,
    /// Processor time of a request next to the store, in milliseconds.
    cpu_ms: f64,
    /// Of each input; none yet while it is calibrated.
    replies: Vec<Bytes>,
}

/// The names of all.
pub fn names() -> impl Iterator<Item = &'static str> {
    examples::FUNCTIONS.into_iter().chain(examples::APPLICATIONS)
}

/// Compiles them into the folder of `bed`.
///
/// # Errors
///
/// If they do not compile.
pub fn compiled(bed: &Bed) -> Result<PathBuf> {
    let artifact = bed.folder().join("sharing.so");
    compiler::compile(&checkout::root().join("examples/sharing"), &artifact)?;
    Ok(artifact)
}

impl Example {
    /// Finds out how much work a request has to be, and what each has to reply. The reply to the first input has to be what the same code says natively.
    ///
    /// # Errors
    ///
    /// If that reply is another one, or the functions do not run.
    pub fn calibrated(name: &'static str, bed: &Bed, parts: &Parts) -> Result<Example> {
        let known = BUSY_MS.iter().find(|(known, ..)| *known == name);
        let class = known.map_or(Class::Application, |(_, class, _)| *class);
        let least = Example { name, class, accesses: 0, work: u32::from(known.is_some()), cpu_ms: 0.0, replies: Vec::new() };
        bed.fill(&least, &least.functions(parts))?;
        let cpu_ms = |work: u32| -> Result<f64> {
            let program = Example { work, ..least.clone() };
            let mut runner = Runner::new(bed, &program, parts, (Column::Prewarmed, Duration::ZERO), 1, "");
            Ok(runner.unloaded(LOOK)?.cpu_ms)
        };
        let one = cpu_ms(least.work)?;
        let work = match known {
            Some((_, _, busy_ms)) if *busy_ms > one => work_of(*busy_ms, one, cpu_ms)?,
            _ => least.work,
        };
        let replies = least.replies(bed, parts, work)?;
        let mut memory = examples::Memory::new();
        memory.setup(1).ok().context("the native setup failed")?;
        let before = memory.uses();
        let native = memory.answer(name, examples::body(name, 0, work).as_bytes()).ok().context("no native answer")?;
        ensure!(replies.first().is_some_and(|first| *first == native), "{name} does not reply what the same code says natively");
        let after = memory.uses();
        let accesses = after.reads + after.writes - before.reads - before.writes;
        let cpu_ms = if work == least.work { one } else { cpu_ms(work)? };
        Ok(Example { accesses: usize::try_from(accesses)?, work, cpu_ms, replies, ..least })
    }

    /// What it replies to each input, next to the store.
    fn replies(&self, bed: &Bed, parts: &Parts, work: u32) -> Result<Vec<Bytes>> {
        let running = bed.serve(&[(Column::Prewarmed, &self.functions(parts))], Duration::ZERO, "")?;
        let mut client = Client::connect(running.server.address())?;
        let mut reply = |input| -> Result<Bytes> {
            let body = Bytes::from(examples::body(self.name, input, work));
            let reply = client.post(&format!("/{}", self.name), &body, &[])?;
            ensure!(reply.status.is_success(), "{}: {} {:?}", self.name, reply.status, reply.body);
            Ok(reply.body)
        };
        (0..self.keys()).map(&mut reply).collect()
    }
}

/// The work for which a request takes `busy_ms`, if it takes `one` with a work of 1: what more work takes is proportional to it.
fn work_of(busy_ms: f64, one: f64, cpu_ms: impl Fn(u32) -> Result<f64>) -> Result<u32> {
    let (mut work, mut took) = (1, one);
    while took < MATTERS * one && work <= examples::WORK_MAX / MORE {
        work *= MORE;
        took = cpu_ms(work)?;
    }
    let each = (took - one) / f64::from(work - 1);
    ensure!(each > 0.0, "more work takes no longer");
    Ok(((busy_ms - one) / each + 1.0).round().clamp(1.0, f64::from(examples::WORK_MAX)) as u32)
}

impl Program for Example {
    fn name(&self) -> &str {
        self.name
    }

    fn class(&self) -> Class {
        self.class
    }

    fn what(&self) -> String {
        let Example { work, cpu_ms, accesses, .. } = self;
        format!("Computes for {cpu_ms:.2} ms (work {work}), host calls included, {accesses} accesses")
    }

    fn keys(&self) -> u32 {
        if self.class == Class::Application { JOURNEYS } else { INPUTS }
    }

    fn accesses(&self) -> usize {
        self.accesses
    }

    fn functions(&self, parts: &Parts) -> Vec<Served> {
        let setup = examples::setups(INPUTS).map(|(name, ..)| name);
        let called = examples::STEPS.into_iter().filter(|_| self.class == Class::Application);
        let own = std::iter::once(self.name).filter(|_| self.class != Class::Application);
        let artifact = parts.example.clone().unwrap_or_default();
        let served = |name: &str| Served { name: name.to_owned(), artifact: artifact.clone(), lines: String::new() };
        setup.chain(called).chain(own).map(served).collect()
    }

    fn fill(&self) -> Vec<Asked> {
        let asked = |(name, from, to)| Asked {
            path: format!("/{name}"),
            body: examples::setup_body(from, to).into_bytes(),
            expected: Expected::Status(200),
        };
        examples::setups(INPUTS).map(asked).collect()
    }

    fn ask(&self, draw: &mut Draw) -> Asked {
        let input = draw.key();
        let reply = self.replies.get(input as usize);
        Asked {
            path: format!("/{}", self.name),
            body: examples::body(self.name, input, self.work).into_bytes(),
            expected: reply.map_or(Expected::Status(200), |reply| Expected::Body(reply.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_what_takes_as_long_as_wanted() {
        // 0.5 ms, and 0.02 ms for each unit of work beyond the first.
        let cpu_ms = |work: u32| Ok(0.5 + 0.02 * f64::from(work - 1));
        assert_eq!(work_of(2.5, 0.5, cpu_ms).unwrap(), 101);
        assert!(work_of(2.5, 0.5, |_| Ok(0.5)).is_err());
    }

    #[test]
    fn every_function_of_the_examples_has_a_busy_time() {
        assert!(examples::FUNCTIONS.iter().all(|name| BUSY_MS.iter().any(|(known, ..)| known == name)));
        assert_eq!(names().count(), 13);
    }
}
