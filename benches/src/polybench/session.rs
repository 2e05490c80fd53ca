//! Runs the programs in turns on one core.
//!
//! In each round every kernel runs once in every variant, one after the other, so that whatever the machine is doing meanwhile falls
//! on all of them; each round begins with another variant. What is short runs in more rounds.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use indicatif::ProgressBar;

use super::build::Programs;
use super::machine::Pinned;
use super::plan::Plan;
use super::samples::Samples;
use super::variant::Variant;
use crate::steps;

/// A kernel runs until its native times add up to this, in at most `EXTRA` times the rounds of the plan.
const SECONDS_MIN: f64 = 0.25;
const EXTRA: usize = 5;

/// What a program said about one run of its kernel.
#[derive(Debug)]
pub struct Outcome {
    /// Elements and checksum.
    pub result: String,
    /// What it took.
    pub seconds: f64,
}

/// Measures what is missing in the plan's raw file. Returns all of it.
///
/// # Errors
///
/// If a program fails or computes something else than the native one.
pub fn measure(plan: &Plan, programs: &Programs) -> Result<Samples> {
    let mut samples = Samples::open(&plan.file("raw.csv"), &programs.conditions)?;
    let pinned = Pinned::new()?;
    let at_least = plan.kernels.len() * plan.variants.len() * plan.rounds;
    steps::say(&format!("measuring on core {}; {} times are there already", pinned.core, samples.count()));
    let bar = steps::bar("measuring", at_least as u64);
    let mut results = HashMap::new();
    for round in 0..plan.rounds * EXTRA {
        let kernels: Vec<_> = plan.kernels.iter().filter(|kernel| round < rounds(plan, &samples, kernel)).collect();
        if round >= plan.rounds {
            bar.inc_length((kernels.len() * plan.variants.len()) as u64);
        }
        for kernel in kernels {
            one_round(plan, programs, &mut samples, &mut results, kernel, round, &bar)?;
        }
    }
    bar.finish_and_clear();
    Ok(samples)
}

/// How often a kernel runs, by how long it took natively in the first round.
fn rounds(plan: &Plan, samples: &Samples, kernel: &str) -> usize {
    let first = samples.of(kernel, &Variant::Native.to_string()).first();
    first.map_or(plan.rounds, |seconds| ((SECONDS_MIN / seconds).ceil() as usize).clamp(plan.rounds, plan.rounds * EXTRA))
}

fn one_round(
    plan: &Plan,
    programs: &Programs,
    samples: &mut Samples,
    results: &mut HashMap<String, String>,
    kernel: &str,
    round: usize,
    bar: &ProgressBar,
) -> Result<()> {
    let mut order = plan.variants.clone();
    order.rotate_left(round % plan.variants.len());
    let missing: Vec<_> = order.into_iter().filter(|variant| samples.of(kernel, &variant.to_string()).len() == round).collect();
    bar.inc((plan.variants.len() - missing.len()) as u64);
    if missing.is_empty() {
        return Ok(());
    }
    if !results.contains_key(kernel) {
        results.insert(kernel.to_owned(), run(programs.command(kernel, Variant::Native)?, kernel, &plan.dataset)?.result);
    }
    let expected = &results[kernel];
    for variant in missing {
        bar.set_message(format!("round {} {kernel} {variant}", round + 1));
        let outcome = run(programs.command(kernel, variant)?, kernel, &plan.dataset).with_context(|| variant.to_string())?;
        ensure!(
            !variant.is_exact() || outcome.result == *expected,
            "{kernel} as {variant} computed {}, native code {expected}: polybench/check shows where they differ",
            outcome.result
        );
        samples.keep(kernel, &variant.to_string(), outcome.seconds)?;
        bar.inc(1);
    }
    if !steps::are_visible() {
        let last = |variant: Variant| samples.of(kernel, &variant.to_string()).last().copied();
        let native = last(Variant::Native).unwrap_or(f64::NAN);
        let others: Vec<_> = plan.variants[1..].iter().filter_map(|v| Some(format!("{v} {:.2}", last(*v)? / native))).collect();
        println!("round {} {kernel}: native {native:.6} s; {}", round + 1, others.join(", "));
    }
    Ok(())
}

/// Runs a program and reads its two lines.
///
/// # Errors
///
/// If it fails or says something else.
pub fn run(mut command: Command, kernel: &str, dataset: &str) -> Result<Outcome> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {kernel}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("{kernel} failed ({}): {}", output.status, err.trim_end());
    }
    let head = format!("{kernel} {dataset} ");
    let after_head = |text: &str| text.trim_end().lines().last().and_then(|line| line.strip_prefix(&head)).map(str::to_owned);
    let result =
        after_head(&out).with_context(|| format!("{kernel}: expected '{head}COUNT CHECKSUM', got '{}'", out.trim_end()))?;
    let seconds = after_head(&err).and_then(|seconds| seconds.parse().ok());
    let seconds = seconds.with_context(|| format!("{kernel}: expected '{head}SECONDS', got '{}'", err.trim_end()))?;
    Ok(Outcome { result, seconds })
}
