//! `awsm proto`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use awsm::proto::{Function, Request, descriptors, generate, world_name};
use clap::Args;

use super::output::write;

/// Make WIT of .proto files
///
/// Messages and enums become types, in one interface for each package. Services become interfaces.
/// A function is a world: it exports the services that it offers, and imports those that it calls:
///
///     awsm proto shop.proto -I protos --export shop.v1.Cart --import shop.v1.Catalogue -o wit
///
/// Several functions are given with the names of their worlds. The world `application` is what they
/// are together:
///
///     awsm proto shop.proto -I protos --export cart=shop.v1.Cart \
///         --import cart=shop.v1.Catalogue --export catalogue=shop.v1.Catalogue -o wit
///
/// Without --export and --import, each service of the FILES has a world that exports it, and all
/// types of the FILES are written.
///
/// With --descriptors it writes descriptors in place of WIT, as `protoc --include_imports
/// --descriptor_set_out` does. Then nothing is refused that Protobuf has.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// .proto files (proto2, proto3, edition 2023), each in a folder of imports
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Folder in which FILES and what they import are looked for; once for each, the first that has a file counts [default: .]
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    includes: Vec<PathBuf>,
    /// Service that a function offers, by its full name; once for each
    #[arg(long = "export", value_name = "[WORLD=]SERVICE")]
    exports: Vec<String>,
    /// Service that a function calls; once for each
    #[arg(long = "import", value_name = "[WORLD=]SERVICE")]
    imports: Vec<String>,
    /// World of what is given without WORLD= [default: the name of the first service]
    #[arg(long, value_name = "NAME")]
    world: Option<String>,
    /// Package of the worlds
    #[arg(long, value_name = "NAMESPACE:NAME[@VERSION]", default_value = "sledge:application")]
    package: String,
    /// Write the descriptors of the FILES and what they import (a FileDescriptorSet) to the output file
    #[arg(long, conflicts_with_all = ["exports", "imports", "world", "package"])]
    descriptors: bool,
    /// Output folder; or one file with all packages, if it ends in .wit; `-` for standard output
    #[arg(short, long, value_name = "PATH")]
    output: PathBuf,
}

/// Makes it and writes it.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let functions = functions(arguments);
    if functions.is_empty() && arguments.world.is_some() {
        bail!("--world: it names the world of what --export and --import give, and there is neither");
    }
    let includes = if arguments.includes.is_empty() { vec![PathBuf::from(".")] } else { arguments.includes.clone() };
    if arguments.descriptors {
        return write(&arguments.output, &descriptors(&arguments.files, &includes)?);
    }
    let request = Request { files: arguments.files.clone(), includes, package: arguments.package.clone(), functions };
    let wit = generate(&request)?;
    let output = &arguments.output;
    if output.as_os_str() == "-" || output.extension().is_some_and(|extension| extension == "wit") {
        return write(output, wit.single().as_bytes());
    }
    for (file, text) in wit.files() {
        let path = output.join(file);
        let folder = path.parent().unwrap_or(output);
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        write(&path, text.as_bytes())?;
    }
    Ok(())
}

/// The functions, in the order in which they are first named.
fn functions(arguments: &Arguments) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    let given = arguments.exports.iter().map(|given| (true, given)).chain(arguments.imports.iter().map(|given| (false, given)));
    let mut default = arguments.world.clone();
    for (is_export, given) in given {
        let (world, service) = match given.split_once('=') {
            Some((world, service)) => (world.to_owned(), service),
            None => (default.get_or_insert_with(|| world_name(given)).clone(), &**given),
        };
        let at = functions.iter().position(|function| function.name == world).unwrap_or_else(|| {
            functions.push(Function { name: world, exports: Vec::new(), imports: Vec::new() });
            functions.len() - 1
        });
        let services = if is_export { &mut functions[at].exports } else { &mut functions[at].imports };
        services.push(service.to_owned());
    }
    functions
}
