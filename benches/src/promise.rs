//! `promises.toml`: every numeric target of this project, and whether a measured number keeps it.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::checkout;

/// A numeric target.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    /// What it is about and, at its end, the unit: `gps-ekf-so-kb`.
    pub name: String,
    /// Which promises are measured together, usually those of one piece of work.
    pub group: String,
    /// What the number has to be.
    pub bound: Bound,
    /// Its unit.
    pub unit: String,
    /// How it is measured, in a sentence.
    pub how: String,
}

/// What a number has to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Less than this.
    Below(f64),
    /// This or less.
    AtMost(f64),
    /// This or more.
    AtLeast(f64),
}

impl Bound {
    /// Is the promise kept? NaN keeps none.
    pub fn kept_by(self, measured: f64) -> bool {
        match self {
            Bound::Below(bound) => measured < bound,
            Bound::AtMost(bound) => measured <= bound,
            Bound::AtLeast(bound) => measured >= bound,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Bound::Below(bound) => format!("<{bound}"),
            Bound::AtMost(bound) => format!("<={bound}"),
            Bound::AtLeast(bound) => format!(">={bound}"),
        };
        f.pad(&text)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    promise: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    group: String,
    below: Option<f64>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    unit: String,
    how: String,
}

/// Where the promises are written down.
pub fn file() -> PathBuf {
    checkout::root().join("benches/promises.toml")
}

/// Reads [`file`].
///
/// # Errors
///
/// If it cannot be read or is not as [`parse`] wants it.
pub fn read() -> Result<Vec<Promise>> {
    let path = file();
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

/// The promises in `text`, in their order.
///
/// # Errors
///
/// If it is not TOML, has unknown keys, two promises of one name, or one without exactly one bound.
pub fn parse(text: &str) -> Result<Vec<Promise>> {
    let file: File = toml::from_str(text)?;
    let mut names = HashSet::new();
    let mut promises = Vec::new();
    for row in file.promise {
        ensure!(names.insert(row.name.clone()), "two promises are named {}", row.name);
        let bound = match (row.below, row.at_most, row.at_least) {
            (Some(bound), None, None) => Bound::Below(bound),
            (None, Some(bound), None) => Bound::AtMost(bound),
            (None, None, Some(bound)) => Bound::AtLeast(bound),
            _ => bail!("{}: exactly one of below, at_most and at_least is needed", row.name),
        };
        promises.push(Promise { name: row.name, group: row.group, bound, unit: row.unit, how: row.how });
    }
    Ok(promises)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_say_what_keeps_them() {
        assert!(Bound::Below(10.0).kept_by(9.99) && !Bound::Below(10.0).kept_by(10.0));
        assert!(Bound::AtMost(10.0).kept_by(10.0) && !Bound::AtMost(10.0).kept_by(10.01));
        assert!(Bound::AtLeast(2.0).kept_by(2.0) && !Bound::AtLeast(2.0).kept_by(1.9));
        assert!(!Bound::AtMost(10.0).kept_by(f64::NAN));
        assert_eq!(Bound::AtMost(10.0).to_string(), "<=10");
    }

    #[test]
    fn a_promise_needs_one_bound_a_name_of_its_own_and_known_keys() {
        let row = |more: &str| format!("[[promise]]\nname = \"a\"\ngroup = \"g\"\nunit = \"us\"\nhow = \"so\"\n{more}\n");
        assert_eq!(parse(&row("at_most = 3")).unwrap()[0].bound, Bound::AtMost(3.0));
        assert!(parse(&row("")).is_err());
        assert!(parse(&row("at_most = 3\nbelow = 4")).is_err());
        assert!(parse(&row("at_most = 3\nsurprise = 4")).is_err());
        assert!(parse(&(row("at_most = 3") + &row("below = 4"))).is_err());
    }
}
