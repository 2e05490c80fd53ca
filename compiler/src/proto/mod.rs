//! Protobuf to WIT: messages become types, services become interfaces, functions become worlds.
//!
//! ```text
//! .proto -> read: protox, descriptors -> select: what is wanted; refusals -> catalog: names, cycles
//!        -> messages, services, worlds: WIT -> check: wit-parser, wasmparser -> files
//! ```
//!
//! `editions` reads files of an edition for protox.
//!
//! The same files and the same request give the same bytes. Rules, and why they are so, are in docs/internals/proto.md.

mod catalog;
mod check;
mod cycles;
mod editions;
mod error;
mod messages;
mod names;
mod packages;
mod read;
mod select;
mod services;
mod sources;
mod text;
mod uses;
mod worlds;
mod write;

#[cfg(test)]
mod random;

use std::path::PathBuf;

pub use error::{Place, ProtoError};

use catalog::Catalog;
use names::Package;
use select::Selection;
use write::Text;

/// The package of what all services share.
const GRPC: &str = include_str!("grpc.wit");

/// The name of a world for a service of this full name, where none is given.
#[must_use]
pub fn world_name(service: &str) -> String {
    names::kebab(service.rsplit('.').next().unwrap_or(service))
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct Request {
    /// The .proto files, each under one of `includes`.
    pub files: Vec<PathBuf>,
    /// The folders in which files and imports are looked for, in this order.
    pub includes: Vec<PathBuf>,
    /// The package of the worlds, such as `sledge:application`.
    pub package: String,
    /// The functions. Where there are none, there is one for each service of the files, which exports it, and all types of the files are written.
    pub functions: Vec<Function>,
}

/// A function: a world.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Full names of the services that it offers.
    pub exports: Vec<String>,
    /// Full names of the services that it calls.
    pub imports: Vec<String>,
}

/// WIT: a package of worlds, and those that it needs.
#[derive(Debug)]
pub struct Wit {
    root: Document,
    dependencies: Vec<Document>,
}

/// A package in a file of its own.
#[derive(Debug)]
struct Document {
    package: Package,
    body: String,
}

impl Wit {
    /// One file with all packages.
    #[must_use]
    pub fn single(&self) -> String {
        let mut text = Text::default();
        text.line(&format!("package {};", self.root.package));
        text.gap();
        text.insert(&self.root.body);
        for document in &self.dependencies {
            text.gap();
            text.open(&format!("package {}", document.package));
            text.insert(&document.body);
            text.close();
        }
        text.finish()
    }

    /// The files of a folder, as tools of WIT want it: `worlds.wit`, and the other packages under `deps/`.
    #[must_use]
    pub fn files(&self) -> Vec<(String, String)> {
        let file =
            |document: &Document| format!("package {};\n\n{}", document.package, document.body).trim_end().to_owned() + "\n";
        let mut files = vec![("worlds.wit".to_owned(), file(&self.root))];
        files.extend(self.dependencies.iter().map(|one| (format!("deps/{}", one.package.file()), file(one))));
        files
    }
}

/// The descriptors of .proto files, which stand under `includes`, and of what they import: a `FileDescriptorSet` of Protobuf.
///
/// # Errors
/// When a file cannot be read.
pub fn descriptors(files: &[PathBuf], includes: &[PathBuf]) -> Result<Vec<u8>, ProtoError> {
    read::descriptors(files, includes)
}

/// Makes WIT of .proto files.
///
/// # Errors
/// When a file cannot be read, something in it has no image in WIT, or a name in the request stands for nothing.
pub fn generate(request: &Request) -> Result<Wit, ProtoError> {
    let root = root_package(&request.package)?;
    let read = read::read(&request.files, &request.includes)?;
    let sources = &read.sources;
    let catalog = Catalog::of(&read.pool);
    let (selection, worlds) = if request.functions.is_empty() {
        let selection = Selection::of_files(&read.pool, &read.asked, sources)?;
        let worlds = worlds::of_services(&catalog, selection.services.values());
        (selection, worlds)
    } else {
        let worlds = worlds::of_functions(&read.pool, &request.functions)?;
        let services = worlds.iter().flat_map(|world| world.exports.iter().chain(&world.imports).cloned()).collect();
        (Selection::of_services(services, sources)?, worlds)
    };
    let ours = [root.clone(), uses::grpc_package()];
    let packages = packages::of(&read.pool, &catalog, sources, &selection, &ours)?;
    let mut dependencies = Vec::new();
    for proto in &packages {
        let mut text = Text::default();
        messages::write(&catalog, sources, &selection, proto, &mut text);
        for service in selection.services.values().filter(|service| service.package_name() == proto) {
            services::write(&catalog, sources, service, &mut text);
        }
        let Some(room) = catalog.rooms.get(proto) else { continue };
        dependencies.push(Document { package: room.package.clone(), body: text.finish() });
    }
    if !selection.services.is_empty() {
        let body = GRPC.split_once(";\n\n").map_or(GRPC, |(_, body)| body).to_owned();
        dependencies.push(Document { package: uses::grpc_package(), body });
    }
    let mut text = Text::default();
    worlds::write(&catalog, &worlds, &mut text);
    let wit = Wit { root: Document { package: root, body: text.finish() }, dependencies };
    check::check(&wit.single())?;
    Ok(wit)
}

/// The package of the worlds.
fn root_package(name: &str) -> Result<Package, ProtoError> {
    let refused = |reason: String| ProtoError::Name { what: "package", name: text::printable(name), reason };
    let (path, version) = match name.split_once('@') {
        Some((path, version)) => (path, Some(version.to_owned())),
        None => (name, None),
    };
    let (namespace, package) =
        path.split_once(':').ok_or_else(|| refused("it has to be NAMESPACE:NAME or NAMESPACE:NAME@VERSION".to_owned()))?;
    for part in [namespace, package] {
        wit_parser::validate_id(part).map_err(|error| refused(format!("no name of WIT: {error:#}")))?;
    }
    let package = Package { namespace: namespace.to_owned(), name: package.to_owned(), version };
    let is_version = |version: &str| version.chars().all(|one| one.is_ascii_alphanumeric() || matches!(one, '.' | '-' | '+'));
    if package.version.as_deref().is_some_and(|version| !is_version(version)) {
        return Err(refused("no version".to_owned()));
    }
    let text = format!("package {package};");
    wit_parser::Resolve::default().push_str("package.wit", &text).map_err(|error| refused(format!("{error:#}")))?;
    Ok(package)
}
