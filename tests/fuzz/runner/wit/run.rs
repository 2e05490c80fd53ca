//! One seed's component: compiled and run in modes, and held against what is known of it.

use super::parts::CANARY;
use super::{Kind, damaged, hostile};
use crate::check::{Difference, Report, panic_text};
use crate::subject;
use anyhow::{Context, Result};
use awsm::Program;
use awsm_abi::descriptor::ExternKind;
use sledge_sandbox::{Artifact, Extern, LoadPolicy, Pool, Sandbox, SandboxLimits, Template, WorkerThread};
use sledge_tests::command::{self, End};
use sledge_tests::spec::Mode;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// For one run of a component.
const RUN_TIME_MAX: Duration = Duration::from_secs(20);

/// How often a running component hands back control, to have the time looked at.
const QUANTUM: Duration = Duration::from_millis(20);

/// Runs in sandboxes of one pool: in a new one, and in those that were given back.
const ROUNDS: usize = 3;

/// As many bytes of a canary are none by chance.
const CANARY_BYTES: usize = 64;

/// The modes in which a seed's component is compiled: one of them, most often the quickest.
pub(crate) fn modes(kind: Kind, seed: u64, all: bool) -> Vec<Mode> {
    let every = ["guard", "software"].into_iter();
    let mut every: Vec<Mode> =
        every.flat_map(|bounds| (0..4).map(move |opt_level| Mode { bounds, opt_level, given_up: false })).collect();
    if !all || kind == Kind::Damaged {
        let index = if seed % 4 == 3 && kind != Kind::Damaged { (seed / 4) as usize % every.len() } else { 0 };
        every = vec![every[index]];
    }
    every
}

/// Makes and runs a seed's component. `begin` is told each mode before it begins, so that a crash has a name.
pub(crate) fn seed(kind: Kind, seed: u64, modes: &[Mode], begin: &mut dyn FnMut(Mode)) -> Report {
    let (text, ends) = match kind {
        Kind::Hostile => {
            let hostile = hostile::hostile(seed);
            (hostile.text, hostile.ends)
        }
        _ => (kind.text(seed), vec![End::Exit(0)]),
    };
    match wat::parse_str(&text) {
        Ok(bytes) => check(kind, &bytes, &ends, seed, modes, begin),
        Err(error) => Report { seed, unusable: Some(error.to_string()), ..Report::default() },
    }
}

/// The same for a component that is given.
pub(crate) fn given(kind: Kind, bytes: &[u8], seed: u64, modes: &[Mode], begin: &mut dyn FnMut(Mode)) -> Report {
    let ends = if kind == Kind::Hostile { hostile::hostile(seed).ends } else { vec![End::Exit(0)] };
    check(kind, bytes, &ends, seed, modes, begin)
}

fn check(kind: Kind, bytes: &[u8], ends: &[End], seed: u64, modes: &[Mode], begin: &mut dyn FnMut(Mode)) -> Report {
    let mut report = Report { seed, wasm_bytes: bytes.len() as u64, ..Report::default() };
    for mode in modes {
        begin(*mode);
        let done = catch_unwind(AssertUnwindSafe(|| match kind {
            Kind::Damaged => damage(bytes, *mode, &mut report),
            _ => run(bytes, ends, *mode, &mut report),
        }));
        let difference = match done {
            Ok(Ok(None)) => continue,
            Ok(Ok(Some(difference))) => difference,
            Ok(Err(error)) => of(*mode, "the component is compiled, loaded and run", format!("{error:#}")),
            Err(panic) => of(*mode, "no panic", panic_text(&*panic)),
        };
        report.differences.push(difference);
    }
    report
}

fn of(mode: Mode, expected: &str, got: String) -> Difference {
    Difference { mode: mode.to_string(), at: "component".to_owned(), expected: expected.to_owned(), got }
}

fn damage(bytes: &[u8], mode: Mode, report: &mut Report) -> Result<Option<Difference>> {
    let start = Instant::now();
    let counts = damaged::damaged(bytes, report.seed, mode)?;
    report.compile_ms += start.elapsed().as_millis() as u64;
    *report.runs.entry(mode.to_string()).or_default() += counts.refused + counts.compiled;
    *report.traps.entry("refused".to_owned()).or_default() += counts.refused;
    report.returned += counts.compiled;
    Ok(None)
}

fn run(bytes: &[u8], ends: &[End], mode: Mode, report: &mut Report) -> Result<Option<Difference>> {
    let start = Instant::now();
    let artifact = awsm::compile(&Program::of(bytes), &subject::options(mode), &());
    report.compile_ms += start.elapsed().as_millis() as u64;
    let artifact = Artifact::load(&artifact?, &LoadPolicy::default())?;
    let template = Template::new(&artifact, &SandboxLimits::default())?;
    let worker = WorkerThread::enter(QUANTUM)?;
    let mut pool = Pool::new();
    for round in 0..ROUNDS {
        let mut sandbox = pool.take(&template)?;
        if let Some(place) = canary(&mut sandbox)? {
            return Ok(Some(of(mode, "nothing of the invocation before", format!("round {round}: its canary, {place}"))));
        }
        let end = command::run(&worker, &mut sandbox, RUN_TIME_MAX);
        *report.runs.entry(mode.to_string()).or_default() += 1;
        match end {
            End::Exit(_) => report.returned += 1,
            End::Violation(violation) => *report.traps.entry(violation.message().to_owned()).or_default() += 1,
            End::Trap(code) => *report.traps.entry(code.message().to_owned()).or_default() += 1,
            End::Timeout => report.inconclusive += 1,
        }
        if !ends.contains(&end) {
            let expected = ends.iter().map(|end| format!("{end:?}")).collect::<Vec<_>>().join(" or ");
            return Ok(Some(of(mode, &expected, format!("round {round}: {end:?}"))));
        }
        pool.put(sandbox);
    }
    Ok(None)
}

/// Where a memory has the canary, if one has.
fn canary(sandbox: &mut Sandbox) -> Result<Option<String>> {
    let instances: Vec<_> = sandbox.instances().collect();
    for instance in instances {
        let (artifact, module) = sandbox.module(instance);
        let exports = artifact.descriptor().modules[module].exports.iter();
        let memories = exports.filter(|export| export.kind == ExternKind::Memory);
        let names: Vec<String> = memories.map(|export| export.name.clone()).collect();
        for name in names {
            let Some(Extern::Memory(memory)) = sandbox.export(instance, &name) else { continue };
            let memory = sandbox.memory_of(memory);
            let bytes = memory.slice(0, memory.len()).context("a memory has its own length")?;
            if let Some(at) = bytes.chunks_exact(CANARY_BYTES).position(|chunk| chunk.iter().all(|byte| *byte == CANARY)) {
                return Ok(Some(format!("module {module}, {name:?}, byte {}", at * CANARY_BYTES)));
            }
        }
    }
    Ok(None)
}
