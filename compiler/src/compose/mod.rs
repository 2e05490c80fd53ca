//! Composing: components become one, in which the exports of some are the imports of others.
//!
//! ```text
//! plug:   the imports of one component (the socket), and of the plugs <- the exports of others (the plugs)      by their names
//! wire:   a file that names instances, and for each import the instance that has it           as it says
//! ```
//!
//! What nothing satisfies remains an import of the composition: the host's. wac-graph checks types and writes the component; only this file names it.
//! Names are matched as components do: `a:b/c@0.2.1` is satisfied by `a:b/c@0.2.0`. A name without a version stands for the one that there is.

mod error;
mod wiring;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

use awsm_abi::text;
use wac_graph::types::{Package, SubtypeChecker, are_semver_compatible};
use wac_graph::{CompositionGraph, EncodeOptions, NodeId, PackageId};

use crate::component;
use crate::text_parser;

pub use error::ComposeError;
pub use wiring::{Export, Exports, Instance, Source, Wiring};

/// Names that an error lists.
const LISTED_MAX: usize = 20;

/// A component, and what messages call it: its file.
#[derive(Clone, Debug)]
pub struct Part {
    /// What messages call it.
    pub name: String,
    /// The component, binary or text.
    pub bytes: Vec<u8>,
}

/// Satisfies imports of `socket`, and of each of `plugs`, with what the plugs export; the composition exports what the socket does.
///
/// # Errors
/// When one is no component, a plug satisfies nothing, an export is not what the import of its name has to be, or plugs need each other.
pub fn plug(socket: &Part, plugs: &[Part]) -> Result<Vec<u8>, ComposeError> {
    let mut composer = Composer::default();
    let mut instances = Vec::new();
    for part in std::iter::once(socket).chain(plugs) {
        let added = composer.add(part)?;
        instances.push((composer.graph.instantiate(added.package), added));
    }
    // By their places: the same file may be given twice.
    let mut needs: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (to, (node, importer)) in instances.iter().enumerate() {
        for import in composer.imports(importer) {
            let mut first: Option<&Added> = None;
            for (from, (plug_node, plug)) in instances.iter().enumerate().skip(1).filter(|(from, _)| *from != to) {
                let Some(export) = composer.satisfying(plug, &import)? else { continue };
                if let Some(first) = first {
                    let (first, second) = (first.name.clone(), plug.name.clone());
                    return Err(ComposeError::Twice { first, second, import, importer: importer.name.clone() });
                }
                first = Some(plug);
                composer.bind((*node, importer, &import), (*plug_node, plug, &export))?;
                needs.entry(to).or_default().insert(from);
            }
        }
    }
    for (from, (_, plug)) in instances.iter().enumerate().skip(1) {
        if !needs.values().any(|plugs| plugs.contains(&from)) {
            return Err(composer.useless(plug, &instances));
        }
    }
    if let Some(circle) = circle(&needs) {
        return Err(ComposeError::Circle(list(circle.into_iter().map(|at| &instances[at].1.name))));
    }
    let (node, socket) = &instances[0];
    composer.export_all(*node, socket)?;
    composer.encode()
}

/// Makes what a wiring says; `part` gives a component by the file that the wiring names.
///
/// # Errors
/// When a name in it stands for nothing, an export is not what an import has to be, or instances need each other. Those of `part`.
pub fn wire<E: From<ComposeError>>(wiring: &Wiring, mut part: impl FnMut(&str) -> Result<Part, E>) -> Result<Vec<u8>, E> {
    let mut composer = Composer::default();
    // A file is read once, however many instances it has.
    let mut files: BTreeMap<&str, Added> = BTreeMap::new();
    let mut instances: BTreeMap<&str, (NodeId, Added)> = BTreeMap::new();
    for (name, instance) in &wiring.instances {
        let added = match files.get(&*instance.component) {
            Some(added) => added.clone(),
            None => {
                let added = composer.add(&part(&instance.component)?)?;
                files.insert(&instance.component, added.clone());
                added
            }
        };
        let added = Added { name: format!("{} ({})", text::name(name), added.name), ..added };
        instances.insert(name, (composer.graph.instantiate(added.package), added));
    }
    composer.wire(wiring, &instances)?;
    Ok(composer.encode()?)
}

/// A component of the graph.
#[derive(Clone, Debug)]
struct Added {
    name: String,
    package: PackageId,
}

/// A composition in the making.
#[derive(Debug, Default)]
struct Composer {
    graph: CompositionGraph,
    count: usize,
}

impl Composer {
    fn add(&mut self, part: &Part) -> Result<Added, ComposeError> {
        let failed = |message: String| ComposeError::Part { component: part.name.clone(), message };
        let bytes = text_parser::to_binary(None, &part.bytes).map_err(failed)?;
        if wasmparser::Parser::is_core_wasm(&bytes) {
            let words = "this is a core module, and only components can be composed; \
                         `awsm componentize` or the target wasm32-wasip2 make components";
            return Err(failed(words.to_owned()));
        }
        component::validate(&bytes).map_err(|error| failed(text::line(&format!("not a valid component: {error}"))))?;
        self.count += 1;
        let name = format!("composed:part{}", self.count);
        let package = Package::from_bytes(&name, None, bytes.into_owned(), self.graph.types_mut());
        let package = package.map_err(|error| failed(text::line(&format!("{error:#}"))))?;
        let package = self.graph.register_package(package).map_err(|error| failed(text::line(&error.to_string())))?;
        Ok(Added { name: part.name.clone(), package })
    }

    fn imports(&self, added: &Added) -> Vec<String> {
        self.graph.types()[self.graph[added.package].ty()].imports.keys().cloned().collect()
    }

    fn exports(&self, added: &Added) -> Vec<String> {
        self.graph.types()[self.graph[added.package].ty()].exports.keys().cloned().collect()
    }

    /// Says that none of these components imports what a plug exports.
    fn useless(&self, plug: &Added, instances: &[(NodeId, Added)]) -> ComposeError {
        let others: Vec<&Added> =
            instances.iter().map(|(_, other)| other).filter(|other| other.package != plug.package).collect();
        let names: Vec<&str> = others.iter().map(|other| &*other.name).collect();
        let imports: BTreeSet<String> = others.iter().flat_map(|other| self.imports(other)).collect();
        ComposeError::Useless {
            plug: plug.name.clone(),
            others: names.join(" or "),
            exports: list_or_nothing(&self.exports(plug)),
            imports: list_or_nothing(&imports.into_iter().collect::<Vec<_>>()),
        }
    }

    /// The export of a plug that satisfies an import: the one of that name, or of a compatible version, or without one.
    fn satisfying(&self, plug: &Added, import: &str) -> Result<Option<String>, ComposeError> {
        let mut exports = self.exports(plug);
        if exports.iter().any(|export| export == import) {
            return Ok(Some(import.to_owned()));
        }
        exports
            .retain(|export| if export.contains('@') { are_semver_compatible(export, import) } else { base(import) == export });
        if exports.len() > 1 {
            let (component, found) = (plug.name.clone(), list(&exports));
            return Err(ComposeError::Ambiguous { component, name: import.to_owned(), found });
        }
        Ok(exports.pop())
    }

    /// The import of an instance for which a name stands.
    fn import(&self, added: &Added, name: &str) -> Result<String, ComposeError> {
        let imports = self.imports(added);
        let component = || added.name.clone();
        match named(name, &imports) {
            Ok(Some(import)) => Ok(import.to_owned()),
            Ok(None) => {
                let offer = offer("imports", &imports);
                Err(ComposeError::NoImport { component: component(), import: name.to_owned(), offer })
            }
            Err(found) => Err(ComposeError::Ambiguous { component: component(), name: name.to_owned(), found }),
        }
    }

    /// The same of its exports.
    fn export(&self, added: &Added, name: &str) -> Result<String, ComposeError> {
        let exports = self.exports(added);
        let component = || added.name.clone();
        match named(name, &exports) {
            Ok(Some(export)) => Ok(export.to_owned()),
            Ok(None) => {
                let offer = offer("exports", &exports);
                Err(ComposeError::NoExport { component: component(), export: name.to_owned(), offer })
            }
            Err(found) => Err(ComposeError::Ambiguous { component: component(), name: name.to_owned(), found }),
        }
    }

    /// An instance's import becomes another's export. Both names are theirs.
    fn bind(&mut self, to: (NodeId, &Added, &str), from: (NodeId, &Added, &str)) -> Result<(), ComposeError> {
        let ((node, importer, import), (source, provider, export)) = (to, from);
        let types = self.graph.types();
        let imported = types[self.graph[importer.package].ty()].imports.get(import);
        let exported = types[self.graph[provider.package].ty()].exports.get(export);
        if let (Some(imported), Some(exported)) = (imported, exported) {
            let mut cache = HashSet::default();
            let checked = SubtypeChecker::new(&mut cache).is_subtype(*exported, types, *imported, types);
            checked.map_err(|error| ComposeError::Mismatch {
                component: importer.name.clone(),
                import: import.to_owned(),
                provider: provider.name.clone(),
                export: export.to_owned(),
                reason: text::line(&format!("{error:#}")),
            })?;
        }
        let encoding = |error: &dyn std::error::Error| ComposeError::Encoding(chain(error));
        let alias = self.graph.alias_instance_export(source, export).map_err(|error| encoding(&error))?;
        self.graph.set_instantiation_argument(node, import, alias).map_err(|error| encoding(&error))
    }

    /// Exports an instance's export under that name.
    fn export_as(&mut self, node: NodeId, export: &str, name: &str) -> Result<(), ComposeError> {
        let encoding = |error: &dyn std::error::Error| ComposeError::Encoding(chain(error));
        let alias = self.graph.alias_instance_export(node, export).map_err(|error| encoding(&error))?;
        self.graph.export(alias, name).map_err(|error| encoding(&error))
    }

    fn export_all(&mut self, node: NodeId, added: &Added) -> Result<(), ComposeError> {
        let exports = self.exports(added);
        exports.iter().try_for_each(|export| self.export_as(node, export, export))
    }

    /// Binds imports and exports as a wiring says.
    fn wire(&mut self, wiring: &Wiring, instances: &BTreeMap<&str, (NodeId, Added)>) -> Result<(), ComposeError> {
        let instance = |place: &str, name: &str| {
            instances.get(name).cloned().ok_or_else(|| ComposeError::NoInstance {
                place: place.to_owned(),
                name: name.to_owned(),
                offer: list(instances.keys()),
            })
        };
        let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, wanted) in &wiring.instances {
            let place = format!("instances.{}.with", text::name(name));
            let (node, importer) = instance(&place, name)?;
            for (import, source) in &wanted.with {
                let (provider_node, provider) = instance(&place, source.instance())?;
                let import_name = self.import(&importer, import)?;
                let export = self.export(&provider, source.export().unwrap_or(&import_name)).or_else(|error| {
                    // Under the name that the file has, if it has no version.
                    if source.export().is_none() { self.export(&provider, import) } else { Err(error) }
                })?;
                needs.entry(name).or_default().insert(source.instance());
                self.bind((node, &importer, &import_name), (provider_node, &provider, &export))?;
            }
        }
        if let Some(circle) = circle(&needs) {
            return Err(ComposeError::Circle(list(circle)));
        }
        match &wiring.exports {
            Exports::All(name) => {
                let (node, added) = instance("exports", name)?;
                self.export_all(node, &added)
            }
            Exports::Each(exports) if exports.is_empty() => Err(ComposeError::NoExports),
            Exports::Each(exports) => exports.iter().try_for_each(|(name, source)| {
                let (node, added) = instance("exports", source.instance())?;
                let export = self.export(&added, source.export().unwrap_or(name))?;
                // The version belongs to the name, whether the file has it or not.
                let name = if base(&export) == name { &export } else { name };
                self.export_as(node, &export, name)
            }),
        }
    }

    fn encode(&self) -> Result<Vec<u8>, ComposeError> {
        self.graph.encode(EncodeOptions::default()).map_err(|error| ComposeError::Encoding(chain(&error)))
    }
}

/// Another's error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(words, ": {cause}");
        source = cause.source();
    }
    text::line(&words)
}

/// A name without its version.
fn base(name: &str) -> &str {
    name.split_once('@').map_or(name, |(base, _)| base)
}

/// Which of these a name stands for: itself, one of a compatible version, or the one of any version where it has none.
///
/// # Errors
/// Those for which it stands, when it stands for several.
fn named<'n>(name: &str, names: &'n [String]) -> Result<Option<&'n str>, String> {
    if let Some(same) = names.iter().find(|other| *other == name) {
        return Ok(Some(same));
    }
    let is_one = |other: &&String| if name.contains('@') { are_semver_compatible(name, other) } else { base(other) == name };
    let found: Vec<&String> = names.iter().filter(is_one).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => Err(list(several)),
    }
}

/// Names in quotation marks.
fn list(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("{:?}", name.as_ref())).collect();
    let more = if quoted.len() > LISTED_MAX { format!(" and {} more", quoted.len() - LISTED_MAX) } else { String::new() };
    format!("{}{more}", quoted[..quoted.len().min(LISTED_MAX)].join(", "))
}

/// The same, in words where there are none.
fn list_or_nothing(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { list(names) }
}

/// What a component has of these, in words.
fn offer(verb: &str, names: &[String]) -> String {
    format!("it {verb} {}", list_or_nothing(names))
}

/// Instances that need each other, if there are any.
fn circle<N: Copy + Ord>(needs: &BTreeMap<N, BTreeSet<N>>) -> Option<Vec<N>> {
    let mut left = needs.clone();
    // What needs nothing that is left can be made; the rest is in a circle, or needs one that is.
    loop {
        let ready: Vec<N> =
            left.iter().filter(|(_, on)| on.iter().all(|on| !left.contains_key(on))).map(|(name, _)| *name).collect();
        if ready.is_empty() {
            break;
        }
        ready.iter().for_each(|name| drop(left.remove(name)));
    }
    // The one from which each leads to the next.
    let mut path = vec![*left.keys().next()?];
    loop {
        let next = *left[path.last()?].iter().find(|on| left.contains_key(*on))?;
        if let Some(start) = path.iter().position(|name| *name == next) {
            return Some(path.split_off(start));
        }
        path.push(next);
    }
}
