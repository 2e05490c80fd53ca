//! The same functions behind `sledge` and behind what one would use instead, on the same cores in the same run.
//!
//! A [`plan::Plan`] says which; [`function`] makes of an example's one source what each peer takes; [`peer`] names the peers and `start` starts
//! them, one that is missing is a reason instead; [`session`] asks them in turns and compares every reply; [`report`] makes tables of what came of
//! it, [`plot`] a picture.

pub mod function;
pub(crate) mod nuclio;
pub mod peer;
pub mod plan;
pub mod plot;
pub mod report;
mod running;
pub mod session;
mod start;

use std::fs;

use anyhow::{Context, Result};

use plan::Plan;
use report::Report;

/// Measures what `plan` says, and writes raw numbers, tables and plots to its folder.
///
/// # Errors
///
/// If nothing can be measured at all, or a file cannot be written. What one peer does wrong is in the report.
pub fn run(plan: &Plan) -> Result<Report> {
    let report = session::measure(plan)?;
    fs::create_dir_all(&plan.folder).with_context(|| format!("cannot create {}", plan.folder.display()))?;
    let write = |name: &str, text: String| {
        let path = plan.folder.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    write("peers.csv", report.csv())?;
    write("peers.md", report.markdown())?;
    plot::write(&report, plan)?;
    Ok(report)
}
