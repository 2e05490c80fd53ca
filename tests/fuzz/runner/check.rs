//! One module, run by the reference once and by us in several modes, and compared call by call.

use crate::case::{self, Call, Machine, Outcome, Step};
use crate::count::Counts;
use crate::features::Features;
use crate::generate::{self, Source};
use crate::prepare::prepare;
use crate::reference::Reference;
use crate::subject::{self, Subject};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sledge_tests::spec::Mode;
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// What became of a seed. A run is one call in one mode.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    /// Runs of each mode.
    pub(crate) runs: BTreeMap<String, u64>,
    pub(crate) returned: u64,
    pub(crate) inconclusive: u64,
    /// Runs that trapped, by kind.
    pub(crate) traps: BTreeMap<String, u64>,
    /// How often the reference executed each operator.
    pub(crate) operators: BTreeMap<String, u64>,
    pub(crate) differences: Vec<Difference>,
    pub(crate) compile_ms: u64,
    pub(crate) wasm_bytes: u64,
    /// The reference or this harness failed: nothing was compared.
    pub(crate) unusable: Option<String>,
}

/// Where we and the reference part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Difference {
    pub(crate) mode: String,
    /// The call, or what else was done.
    pub(crate) at: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

/// The modes in which a seed is compiled: guard at -O3 always, every other level and bounds mode in turn.
pub(crate) fn modes(seed: u64, all: bool) -> Vec<Mode> {
    let bounds: Vec<&'static str> = ["guard", "software", "segment"].into_iter().filter(|bounds| is_available(bounds)).collect();
    if all {
        return bounds
            .into_iter()
            .flat_map(|bounds| (0..4).map(move |opt_level| Mode { bounds, opt_level, given_up: false }))
            .collect();
    }
    let mut modes = vec![Mode { bounds: "guard", opt_level: 3, given_up: false }];
    for (i, bounds) in bounds.into_iter().enumerate() {
        let turn = (seed / 3 + i as u64) as u8;
        // What is given up comes in the place of -O3, which guard has always.
        modes.push(Mode { bounds, opt_level: turn % 4, given_up: bounds == "guard" && turn % 4 == 3 });
    }
    modes
}

/// Whether awsm has a bounds mode.
fn is_available(bounds: &'static str) -> bool {
    let mut options = subject::options(Mode { bounds, opt_level: 0, given_up: false });
    options.emit = awsm::Emit::LlvmIr;
    awsm::compile(&awsm::Program::single(b"\0asm\x01\0\0\0"), &options, &()).is_ok()
}

/// Makes, runs and compares a seed's module. `begin` is told each mode before it begins, so that a crash has a name.
pub(crate) fn seed(seed: u64, features: &Features, modes: &[Mode], begin: &mut dyn FnMut(Mode)) -> Report {
    match generate::module(seed, features) {
        Ok(wasm) => module(&wasm, seed, modes, begin),
        Err(error) => Report { seed, unusable: Some(format!("{error:#}")), ..Report::default() },
    }
}

/// The same for a module that is given. The seed chooses the calls' arguments.
pub(crate) fn module(wasm: &[u8], seed: u64, modes: &[Mode], begin: &mut dyn FnMut(Mode)) -> Report {
    let mut report = Report { seed, wasm_bytes: wasm.len() as u64, ..Report::default() };
    let (wasm, calls, expected, counts) = match expect(wasm, seed) {
        Ok(expected) => expected,
        Err(error) => return Report { unusable: Some(format!("{error:#}")), ..report },
    };
    report.operators = counts.into_iter().map(|(operator, count)| (operator.to_string(), count)).collect();
    for mode in modes {
        begin(*mode);
        let compared = catch_unwind(AssertUnwindSafe(|| compare(&wasm, *mode, &calls, &expected, &mut report)));
        let failure = match compared {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => format!("{error:#}"),
            Err(panic) => panic_text(&*panic),
        };
        let expected = "the module is compiled, loaded and run".to_string();
        report.differences.push(Difference { mode: mode.to_string(), at: "module".to_string(), expected, got: failure });
    }
    report
}

/// What is said of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()));
    format!("panic: {}", text.unwrap_or_default())
}

type Expected = (Vec<u8>, Vec<Call>, Vec<Step>, Counts);

/// What the reference does: a step for the instantiation, then one for each call.
fn expect(wasm: &[u8], seed: u64) -> Result<Expected> {
    let wasm = prepare(wasm, Source::of(seed) == Source::Smith).context("preparing")?;
    let calls = case::calls(&wasm, seed)?;
    let mut reference = Reference::new(&wasm, seed)?;
    let mut steps = vec![reference.instantiate()?];
    if matches!(steps[0].outcome, Outcome::Returned(_)) {
        let mut clean = true;
        for call in &calls {
            if !clean {
                reference.instantiate()?;
            }
            let step = reference.call(call)?;
            clean = matches!(step.outcome, Outcome::Returned(_));
            steps.push(step);
        }
    }
    let counts = reference.counts();
    Ok((wasm, calls, steps, counts))
}

fn compare(wasm: &[u8], mode: Mode, calls: &[Call], expected: &[Step], report: &mut Report) -> Result<()> {
    let start = Instant::now();
    let subject = Subject::new(wasm, mode, report.seed);
    report.compile_ms += start.elapsed().as_millis() as u64;
    let mut subject = subject?;
    let step = subject.instantiate()?;
    if !same(mode, "instantiation", &expected[0], &step, report) {
        return Ok(());
    }
    let mut clean = true;
    for (call, expected) in calls.iter().zip(&expected[1..]) {
        if matches!(expected.outcome, Outcome::Inconclusive(_)) {
            report.inconclusive += 1;
            clean = false;
            continue;
        }
        if !clean {
            subject.instantiate()?;
        }
        let step = subject.call(call)?;
        clean = matches!(step.outcome, Outcome::Returned(_));
        if !same(mode, &call.to_string(), expected, &step, report) {
            return Ok(());
        }
    }
    Ok(())
}

/// Counts a run; whether the next may follow.
fn same(mode: Mode, at: &str, expected: &Step, got: &Step, report: &mut Report) -> bool {
    if matches!(expected.outcome, Outcome::Inconclusive(_)) || matches!(got.outcome, Outcome::Inconclusive(_)) {
        report.inconclusive += 1;
        return false;
    }
    *report.runs.entry(mode.to_string()).or_default() += 1;
    match &expected.outcome {
        Outcome::Trapped(kind) => *report.traps.entry((*kind).to_string()).or_default() += 1,
        _ => report.returned += 1,
    }
    match case::difference(expected, got) {
        None => matches!(expected.outcome, Outcome::Returned(_)) || at != "instantiation",
        Some((expected, got)) => {
            report.differences.push(Difference { mode: mode.to_string(), at: at.to_string(), expected, got });
            false
        }
    }
}
