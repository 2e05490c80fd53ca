//! `awsm compose`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use awsm::compose::{self, Part, Wiring};
use awsm::frontend;
use clap::Args;

use super::output;

/// Make one component of several
///
/// With --plug, what the plugs export satisfies what INPUT and the other plugs import, and the
/// composition exports what INPUT exports. If INPUT is a .toml file, it names the instances, the export that satisfies
/// each import, and what the composition exports:
///
///     exports = "front"
///     [instances.front]
///     component = "front.wasm"
///     with = { "demo:words/shout" = "loud" }
///     [instances.loud]
///     component = "loud.wasm"
///
/// Imports that nothing satisfies are imports of the composition.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// Component whose imports are satisfied, or a .toml file
    input: PathBuf,
    /// Component whose exports satisfy imports; once for each
    #[arg(long = "plug", value_name = "FILE")]
    plugs: Vec<PathBuf>,
    /// Output file; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Composes and writes.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let Arguments { input, output, .. } = arguments;
    let bytes = if input.extension().is_some_and(|extension| extension == "toml") {
        if !arguments.plugs.is_empty() {
            bail!("{}: it says what satisfies which import; --plug is for a component", input.display());
        }
        output::check(output, [input.as_path()])?;
        let text = String::from_utf8(frontend::read(input)?).with_context(|| input.display().to_string())?;
        let wiring = Wiring::parse(&text).map_err(|error| anyhow::anyhow!("{}: {error}", input.display()))?;
        let folder = input.parent().unwrap_or(Path::new(""));
        let component = |file: &str| {
            let file = folder.join(file);
            output::check(output, [file.as_path()])?;
            part(&file)
        };
        compose::wire(&wiring, component).with_context(|| input.display().to_string())?
    } else {
        if arguments.plugs.is_empty() {
            bail!("{}: nothing to compose it with; give --plug FILE, or a .toml file that wires components", input.display());
        }
        output::check(output, std::iter::once(input).chain(&arguments.plugs).map(PathBuf::as_path))?;
        let plugs = arguments.plugs.iter().map(|plug| part(plug)).collect::<Result<Vec<_>>>()?;
        compose::plug(&part(input)?, &plugs)?
    };
    output::write(output, &bytes)
}

/// The component in a file.
fn part(file: &Path) -> Result<Part> {
    Ok(Part { name: file.display().to_string(), bytes: frontend::read(file)? })
}
