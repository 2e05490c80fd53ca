//! The suite by the busy times that the paper's artifact has: `benches/functions/shared-work.c` computes so long, and accesses the store so often.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::arrivals::{self, Draw};
use super::bed::Bed;
use super::column::Column;
use super::load::{Asked, Span};
use super::suite::{self, Class, Parts, Program, Served};
use crate::load::Expected;
use crate::workload::quantile;
use crate::{checkout, compiler};

/// The bit of an access that writes.
const WRITTEN: u32 = 1 << 31;
/// Values that are read and written.
const KEYS: u32 = 200;
/// Values that are stored by one request.
const FILLED: usize = 20;
/// Rounds with which is measured how many a core does, and how often.
const ROUNDS: u32 = 10_000_000;
const ROUNDS_TIMES: usize = 9;
/// What each function of an application initialises.
const CALLED_STATE_KIB: u32 = 256;

/// A function, or an application whose first function calls all others, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Modelled {
    /// Its name.
    pub name: &'static str,
    class: Class,
    /// What it computes in a request; of an application, what each function does.
    busy_ms: f64,
    /// What it initialises.
    state_kib: u32,
    /// Accesses of each function.
    accesses: usize,
    /// Functions that are called.
    called: usize,
    /// Rounds of computing in a microsecond, as measured.
    rounds_per_us: f64,
}

const fn function(name: &'static str, class: Class, busy_ms: f64, state_kib: u32, accesses: usize) -> Modelled {
    Modelled { name, class, busy_ms, state_kib, accesses, called: 0, rounds_per_us: 0.0 }
}

const fn application(name: &'static str, functions: usize) -> Modelled {
    Modelled { called: functions - 1, ..function(name, Class::Application, 0.3, CALLED_STATE_KIB, 1) }
}

/// All of them. Busy times are the artifact's; those of TrainTicket's functions, their accesses, and what all of them initialise are ours.
pub const ALL: [Modelled; 13] = [
    function("lr-serv-modelled", Class::Ml, 1.3, 1 << 10, 3),
    function("cnn-serv-modelled", Class::Ml, 135.0, 8 << 10, 3),
    function("rnn-serv-modelled", Class::Ml, 11.0, 2 << 10, 3),
    function("ml-train-modelled", Class::Ml, 2_363.0, 4 << 10, 8),
    function("vid-conv-modelled", Class::Image, 24.0, 1 << 10, 8),
    function("img-rotate-modelled", Class::Image, 52.0, 1 << 10, 4),
    function("img-resize-modelled", Class::Image, 2.8, 1 << 10, 4),
    function("create-order-modelled", Class::Web, 0.5, 256, 8),
    function("pay-order-modelled", Class::Web, 0.5, 256, 8),
    application("ts-tickets-modelled", 15),
    application("ts-trip-info-modelled", 24),
    application("ts-left-modelled", 5),
    application("ts-cancel-modelled", 4),
];

/// A request of one function.
#[derive(Debug, Default)]
struct Input {
    words: Vec<u32>,
    read: u64,
}

impl Input {
    fn new(rounds: u32, accesses: impl ExactSizeIterator<Item = (u32, bool)>, called: usize) -> Input {
        let mut input = Input { words: vec![rounds, accesses.len() as u32, called as u32], read: 0 };
        for (key, is_write) in accesses {
            let bytes = arrivals::value_bytes(key);
            input.words.extend([key | if is_write { WRITTEN } else { 0 }, bytes]);
            input.read += if is_write { 0 } else { u64::from(bytes) };
        }
        input
    }

    fn call(&mut self, called: Input) {
        self.words.push(called.words.len() as u32);
        self.words.extend(called.words);
        self.read += called.read;
    }

    fn asked(&self, name: &str) -> Asked {
        Asked {
            path: format!("/{name}"),
            body: self.words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            expected: Expected::Body(self.read.to_le_bytes().to_vec().into()),
        }
    }
}

/// The one of that name.
///
/// # Errors
///
/// If there is none.
pub fn named(name: &str) -> Result<Modelled> {
    ALL.into_iter().find(|modelled| modelled.name == name).with_context(|| suite::unknown(name))
}

impl Modelled {
    /// The same that computes for no longer than that, in milliseconds.
    pub fn with_busy_max(self, busy_ms: f64) -> Modelled {
        Modelled { busy_ms: self.busy_ms.min(busy_ms), ..self }
    }

    /// On cores that do so many rounds of computing in a microsecond.
    pub fn calibrated(self, rounds_per_us: f64) -> Modelled {
        Modelled { rounds_per_us, ..self }
    }

    fn input(&self, draw: &mut Draw, called: usize) -> Input {
        let rounds = (self.busy_ms * 1e3 * self.rounds_per_us) as u32;
        let accesses: Vec<(u32, bool)> = (0..self.accesses).map(|_| (draw.key(), draw.is_write())).collect();
        Input::new(rounds, accesses.into_iter(), called)
    }
}

impl Program for Modelled {
    fn name(&self) -> &str {
        self.name
    }

    fn class(&self) -> Class {
        self.class
    }

    fn what(&self) -> String {
        let Modelled { busy_ms, state_kib, called, accesses, .. } = self;
        let each = if *called > 0 { format!("{} functions, each ", called + 1) } else { String::new() };
        let whose = if *called > 0 { "assumed" } else { "the artifact's" };
        format!("{each}{busy_ms} ms busy ({whose}), {accesses} accesses, {state_kib} KiB initialised")
    }

    fn keys(&self) -> u32 {
        KEYS
    }

    fn accesses(&self) -> usize {
        self.accesses * (1 + self.called)
    }

    fn functions(&self, parts: &Parts) -> Vec<Served> {
        let Modelled { name, state_kib, called, .. } = self;
        let served = |name: String, kib: u32| Served {
            name,
            artifact: parts.modelled.clone(),
            lines: format!("env = {{ STATE_KIB = \"{kib}\", CALLED = \"{}-\" }}\n", self.name),
        };
        let others = (1..=*called).map(|number| served(format!("{name}-{number}"), CALLED_STATE_KIB));
        std::iter::once(served((*name).to_owned(), *state_kib)).chain(others).collect()
    }

    fn fill(&self) -> Vec<Asked> {
        let keys: Vec<u32> = (0..KEYS).collect();
        let some = |keys: &[u32]| Input::new(1, keys.iter().map(|key| (*key, true)), 0).asked(self.name);
        keys.chunks(FILLED).map(some).collect()
    }

    fn ask(&self, draw: &mut Draw) -> Asked {
        let mut input = self.input(draw, self.called);
        for _ in 0..self.called {
            let called = self.input(draw, 0);
            input.call(called);
        }
        input.asked(self.name)
    }
}

/// The I/O function that is measured beside [`hog`]: 0.5 ms of computing in five parts, and four reads between them.
pub fn waiter(rounds_per_us: f64) -> Modelled {
    function("waiter", Class::Web, 0.5, 64, 4).calibrated(rounds_per_us)
}

/// A function that computes for 20 ms.
pub fn hog(rounds_per_us: f64) -> Modelled {
    function("hog", Class::Ml, 20.0, 64, 0).calibrated(rounds_per_us)
}

/// Compiles the function of all these programs into the folder of `bed`.
///
/// # Errors
///
/// If it does not compile.
pub fn compiled(bed: &Bed) -> Result<PathBuf> {
    let artifact = bed.folder().join("shared-work.so");
    let source = checkout::root().join("benches/functions/shared-work.c");
    compiler::compile_with(&source, &artifact, &["--", "-mexec-model=reactor"])?;
    Ok(artifact)
}

/// How many rounds a core of the server does in a microsecond.
///
/// # Errors
///
/// If the function does not run.
pub fn rounds_per_us(bed: &Bed, artifact: &Path) -> Result<f64> {
    let hog = hog(0.0);
    let parts = Parts { modelled: artifact.to_owned(), example: None, rounds_per_us: 0.0 };
    let running = bed.serve(&[(Column::Prewarmed, &hog.functions(&parts))], Duration::ZERO, "")?;
    let asked = |rounds| Input::new(rounds, std::iter::empty(), 0).asked(hog.name);
    let span = Span { counted: Duration::ZERO, end: Duration::from_millis(1), grace: Duration::from_secs(60) };
    let took = |rounds| -> Result<f64> {
        let took: Vec<f64> = (0..ROUNDS_TIMES)
            .map(|_| running.closed(1, &[asked(rounds)], span)?.latencies_ms.first().copied().context("a request"))
            .collect::<Result<_>>()?;
        Ok(quantile(took, 0.5))
    };
    took(1)?;
    Ok(f64::from(ROUNDS) / (took(ROUNDS)? - took(1)?) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_each_function_does() {
        let application = application("a", 3).calibrated(100.0);
        let asked = application.ask(&mut Draw::new(1, KEYS));
        let parts = Parts { modelled: PathBuf::from("x.so"), example: None, rounds_per_us: 100.0 };
        let words: Vec<u32> = asked.body.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
        // Its own rounds, accesses and calls; an access; two calls of five words.
        assert_eq!((words[0], words[1], words[2]), (30_000, 1, 2));
        assert_eq!((words[5], words[11]), (5, 5));
        assert_eq!(words.len(), 3 + 2 + 2 * (1 + 5));
        let read: u64 = [3, 9, 15].iter().map(|at| if words[*at] < WRITTEN { u64::from(words[at + 1]) } else { 0 }).sum();
        assert!(matches!(asked.expected, Expected::Body(body) if *body == read.to_le_bytes()));
        assert_eq!(application.functions(&parts).iter().map(|one| &*one.name).collect::<Vec<_>>(), ["a", "a-1", "a-2"]);
        assert_eq!(application.accesses(), 3);
    }

    #[test]
    fn every_value_is_stored() {
        let filled: usize = ALL[0].fill().iter().map(|asked| (asked.body.len() / 4 - 3) / 2).sum();
        assert_eq!(filled, KEYS as usize);
    }
}
