//! Parts of chapters that are made of the programs, so that they cannot be out of date. In a document each stands between `<!-- generated: NAME -->` and
//! `<!-- end -->`; what the document has there is for readers outside of the site.

mod commands;
mod configuration;
mod metrics;
mod wit;

use anyhow::{Result, bail};

use crate::Site;

pub use commands::subcommands;
pub use configuration::{TablePath, tables};

const BEGIN: &str = "<!-- generated: ";
const BEGIN_END: &str = " -->";
const END: &str = "<!-- end -->\n";

/// A document with its generated parts.
///
/// # Errors
/// When there is no such part, one does not end, or a program does not say what it takes.
pub fn fill(site: &Site, document: &str) -> Result<String> {
    let mut filled = String::new();
    let mut rest = document;
    while let Some(line) = rest.split_inclusive('\n').next() {
        rest = &rest[line.len()..];
        let Some(name) = line.trim_end().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(BEGIN_END)) else {
            filled += line;
            continue;
        };
        filled += &match name {
            "configuration" => configuration::chapter(),
            "commands" => commands::chapter(&site.programs, "sledge")? + &commands::chapter(&site.programs, "awsm")?,
            "metrics" => metrics::chapter(),
            "wit" => wit::chapter(&site.root)?,
            _ => bail!("there is no generated part `{name}`"),
        };
        let Some((_, behind)) = rest.split_once(END) else { bail!("the generated part `{name}` does not end: {}", END.trim()) };
        rest = behind;
    }
    Ok(filled)
}

/// The JSON Schemas, each with the name of its file.
#[must_use]
pub fn schemas() -> [(&'static str, String); 1] {
    [("sledge.schema.json", format!("{:#}\n", sledge::config::schema()))]
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', " ")
}
