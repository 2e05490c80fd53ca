//! The whole set of benchmarks, `make bench`: parts, each of which leaves its raw numbers as CSV in the run's folder, and a report over all.
//!
//! ```text
//!   part -> CSV -> figure -> compare -> report
//!                     record
//! ```
//!
//! A [`part::Part`] measures; [`record`] says what was measured with what, so that an interrupted run goes on where it was; [`figure`] makes numbers
//! with names of the CSV, and of nothing else; [`compare`] holds them against another run's; [`report`] writes it all down, and [`document`] quotes that.

pub mod compare;
pub mod document;
pub mod figure;
pub mod part;
pub mod record;
pub mod report;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::steps;
use part::Part;
use record::{Done, Record};

/// Between looks at whether a part has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Measures the parts that `folder` has not yet, under the conditions that `now` names. A part that fails keeps no other from being measured.
/// Returns the names of those that failed.
///
/// # Errors
///
/// If the folder cannot be written to.
pub fn measure(parts: &[Part], folder: &Path, now: Record) -> Result<Vec<&'static str>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut record = Record { parts: Record::read(folder)?.map(|before| before.parts).unwrap_or_default(), ..now };
    let (done, missing): (Vec<&Part>, Vec<&Part>) =
        parts.iter().partition(|part| record.has(part) && folder.join(part.file).is_file());
    done.iter().for_each(|part| steps::say(&format!("{}: was measured with the same programs", part.name)));
    let bar = steps::whole(missing.iter().map(|part| part.about_s).sum());
    let (mut before_s, mut failed) = (0, Vec::new());
    for (index, part) in missing.iter().enumerate() {
        let about = format!("part {} of {}, {}, about {} s", index + 1, missing.len(), part.name, part.about_s);
        bar.set_message(format!("{} min; {about}", bar.length().unwrap_or_default().div_ceil(60)));
        if !steps::are_visible() {
            println!("{about}");
        }
        // What is about other conditions, or unfinished, is not this run's.
        record.parts.remove(part.name);
        record.write(folder)?;
        let begin = Instant::now();
        let result = on_its_own(part, folder, |elapsed| bar.set_position(before_s + elapsed.as_secs().min(part.about_s)));
        let seconds = begin.elapsed().as_secs_f64();
        before_s += part.about_s;
        bar.set_position(before_s);
        steps::say(&match &result {
            Ok(()) => format!("{}: measured in {seconds:.0} s", part.name),
            Err(error) => format!("{}: FAILED after {seconds:.0} s: {error:#}", part.name),
        });
        let error = result.err().map(|error| format!("{error:#}"));
        failed.extend(error.is_some().then_some(part.name));
        record.parts.insert(part.name.to_owned(), Done { conditions: record.conditions.clone(), seconds, error });
        record.write(folder)?;
    }
    bar.finish_and_clear();
    Ok(failed)
}

/// On a thread of its own, which a part may bind to a core.
fn on_its_own(part: &Part, folder: &Path, look: impl Fn(Duration)) -> Result<()> {
    thread::scope(|scope| {
        let begin = Instant::now();
        let measuring = scope.spawn(|| (part.measure)(folder));
        while !measuring.is_finished() {
            thread::sleep(LOOK_INTERVAL);
            look(begin.elapsed());
        }
        measuring.join().unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked")))
    })
}
