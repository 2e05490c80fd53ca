//! PolyBench: how long its kernels take as functions, beside native code, in one interleaved run.
//!
//! A [`plan::Plan`] says what is measured; [`build`] makes a program of every kernel in every [`variant::Variant`]; [`session`] runs
//! them in turns and keeps each time in a file, from which an interrupted run goes on; [`summary`] makes medians, ratios and means of
//! the times, [`plot`] a picture. The kernels time themselves (polybench/README.md), so that starting a process or a sandbox is no
//! part of it, and say the checksum of what they computed, which is compared before a time is kept.

pub mod build;
pub mod machine;
pub mod plan;
pub mod plot;
pub mod samples;
pub mod session;
pub mod summary;
pub mod variant;

use std::fs;

use anyhow::{Context, Result};

use plan::Plan;
use summary::Summary;

/// Measures what `plan` says, or what is missing of it, and writes raw times, tables and plots to its folder.
///
/// # Errors
///
/// If a kernel does not compile or does not run, computes something else than natively, or a file cannot be written.
pub fn run(plan: &Plan) -> Result<Summary> {
    fs::create_dir_all(&plan.folder).with_context(|| format!("cannot create {}", plan.folder.display()))?;
    let programs = build::programs(plan)?;
    let samples = session::measure(plan, &programs)?;
    let summary = Summary::new(plan, &samples)?;
    let write = |ending: &str, text: String| {
        let path = plan.file(ending);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    write("summary.csv", summary.csv())?;
    write("summary.md", summary.markdown(plan)?)?;
    plot::write(&summary, plan)?;
    Ok(summary)
}
