//! `awsm componentize`.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use awsm::componentize::componentize;
use awsm::frontend;
use clap::Args;

use super::output;

/// Make a component of a core module
///
/// INPUT is what a compiler without support for components wrote: a module whose functions import
/// and export what a world says, by the names of the canonical ABI (for example
/// `demo:words/shout@1.0.0#shout`). What it imports of WASI preview 1 becomes WASI 0.2. With Go:
///
///     GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o words.core.wasm
///     awsm componentize words.core.wasm --wit wit --world words -o words.wasm
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// Core module, binary or text
    input: PathBuf,
    /// File or folder of the world [default: the world that the module names in itself, if any]
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
    /// Name of the world, if there are several
    #[arg(long, value_name = "NAME", requires = "wit")]
    world: Option<String>,
    /// Output file; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Makes it and writes it.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let input = arguments.input.display();
    let mut inputs = vec![arguments.input.as_path()];
    inputs.extend(arguments.wit.as_deref());
    output::check(&arguments.output, inputs)?;
    let module = frontend::read(&arguments.input)?;
    // The parser of worlds reads files itself, to their ends. What a pipe holds is there only once.
    if let Some(wit) =
        arguments.wit.as_deref().filter(|wit| fs::metadata(wit).is_ok_and(|file| !file.is_dir() && !file.file_type().is_fifo()))
    {
        frontend::read(wit)?;
    }
    let wit = arguments.wit.as_deref().map(|wit| (wit, arguments.world.as_deref()));
    let component = componentize(&module, wit).with_context(|| input.to_string())?;
    output::write(&arguments.output, &component)
}
