//! `awsm inspect`: an artifact's descriptor or a component, for people.

use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use awsm::frontend::{self, Language, ProducerOptions};
use awsm::isolated::{self, Limits};
use awsm::{CompileError, Seen};
use awsm_abi::ABI_VERSION;
use awsm_abi::component::Role;
use awsm_abi::descriptor::{ExternKind, Import, ImportSource, ImportType, Instantiation, ModuleDescriptor};
use awsm_abi::text;
use awsm_abi::types::{GlobalType, MemoryType, TableType};
use clap::Args;

use super::artifact::Artifact;
use super::compile::THIS_PROGRAM;
use super::component::{self, Component};
use super::output::print;

/// Show what an artifact or a component contains and requires
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A shared object that awsm made, or a component (.wasm or .wat)
    file: PathBuf,
    /// List every function with the size of its code
    #[arg(long)]
    functions: bool,
}

/// How modules and components begin.
const WASM_MAGIC: &[u8] = b"\0asm";

/// What the process may use that reads a component.
const LIMITS: Limits = Limits { memory_bytes_max: 2 << 30, time_max: Duration::from_secs(60) };

/// Prints the descriptor on standard output.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let name = arguments.file.display().to_string();
    let is_text = matches!(Language::of(&arguments.file), Ok(Language::Wat));
    let bytes =
        if is_text { frontend::to_wasm(&arguments.file, &ProducerOptions::default())? } else { frontend::read(&arguments.file)? };
    if is_component(&bytes) {
        return print(describe_component(&name, &bytes)?.as_bytes());
    }
    if bytes.starts_with(WASM_MAGIC) {
        bail!("{name}: this is a core module of WebAssembly; `awsm compile` makes an artifact of it, which `awsm inspect` shows");
    }
    let artifact = Artifact::parse(&name, &bytes)?;
    print(describe(&artifact, bytes.len(), arguments.functions).as_bytes())
}

/// Whether a file begins as components do.
fn is_component(bytes: &[u8]) -> bool {
    bytes.starts_with(WASM_MAGIC) && bytes.get(6..8) == Some(&[1, 0])
}

/// What there is to say of a component that was not compiled. One that cannot be compiled as it is may be a part of others.
fn describe_component(name: &str, bytes: &[u8]) -> Result<String> {
    let Seen { outline, world } = seen(name, bytes)?;
    let mut text = format!("{:<13}{name}\n{:<13}{} bytes\n", "component", "file", bytes.len());
    let outline = match (outline, &world) {
        (Ok(outline), _) => Ok(outline),
        (Err(error), None) => bail!("{name}: {error}"),
        (Err(error), Some(_)) => Err(error),
    };
    text.push_str(&component::world(world.as_deref().unwrap_or(NO_WORLD)));
    match &outline {
        Ok(outline) => Component::outlined(outline).describe(&mut text),
        Err(error) => {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:<13}no: {error}", "runs alone");
        }
    }
    Ok(text)
}

/// What the process says that reads the component. The options of `awsm compile` that its errors name are none here.
fn seen(name: &str, bytes: &[u8]) -> Result<Seen> {
    let seen = isolated::outline(Path::new(THIS_PROGRAM), bytes, &LIMITS);
    seen.map_err(|error| match error {
        CompileError::Memory { limit_mb, .. } => anyhow!("{name}: reading it takes more than {limit_mb} MB of memory"),
        CompileError::Time { limit_s, .. } => anyhow!("{name}: reading it takes more than {limit_s} s of processor time"),
        CompileError::Crashed { ended, said, .. } => anyhow!("{name}: the process that reads it {ended}; this is a bug{said}"),
        error => anyhow::Error::new(error).context(name.to_owned()),
    })
}

/// What stands where a world would.
const NO_WORLD: &str = "(not known: it has no form in WIT, or is too long)";

/// The whole text.
fn describe(artifact: &Artifact<'_>, bytes: usize, functions: bool) -> String {
    let descriptor = &artifact.descriptor;
    let mut text = String::new();
    let mut line = |key: &str, value: &dyn Display| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key:<13}{value}");
    };
    let code: u64 = artifact.texts.iter().map(|text| text.bytes).sum();
    let rows: usize = artifact.texts.iter().map(|text| text.rows.len()).sum();
    line("artifact", &artifact.name);
    line("compiler", &format!("{}, -O{}", text::line(&descriptor.compiler), descriptor.opt_level));
    line("abi version", &ABI_VERSION);
    line("processor", &descriptor.arch.name());
    line("features", &text::line(&list(&descriptor.cpu_features)));
    line("file", &format!("{bytes} bytes"));
    line("code", &format!("{code} bytes"));
    line("data", &format!("{} bytes", artifact.blob_bytes));
    line("trap table", &format!("{rows} rows"));
    if let Some(found) = Component::in_artifact(artifact) {
        let known = descriptor.component.as_ref().map_or("", |component| &*component.world);
        text.push_str(&component::world(if known.is_empty() { NO_WORLD } else { known }));
        found.describe(&mut text);
    }
    let mut line = |key: &str, value: &dyn Display| {
        let _ = writeln!(text, "{key:<13}{value}");
    };
    // Of one module there is nothing to say.
    if descriptor.plan.len() > 1 {
        for (index, step) in descriptor.plan.iter().enumerate() {
            let role = descriptor.component.as_ref().and_then(|component| component.roles.get(index));
            line("instance", &instance(index, step, role, &descriptor.modules));
        }
    }
    for (index, module) in descriptor.modules.iter().enumerate() {
        line("module", &module.name.as_deref().map_or_else(|| index.to_string(), |name| format!("{index} {name:?}")));
        describe_module(module, functions, &mut line);
    }
    text
}

/// An instance of a program's plan: of which module it is, and where its imports come from.
fn instance(index: usize, step: &Instantiation, role: Option<&Role>, modules: &[ModuleDescriptor]) -> String {
    let name = modules.get(step.module as usize).and_then(|module| module.name.as_deref());
    let name = name.map_or_else(String::new, |name| format!(" {name:?}"));
    let from_host = step.imports.iter().filter(|source| **source == ImportSource::Host).count();
    let mut instances: Vec<u32> = step
        .imports
        .iter()
        .filter_map(|source| match source {
            ImportSource::Instance { instance, .. } => Some(*instance),
            ImportSource::Host => None,
        })
        .collect();
    instances.sort_unstable();
    instances.dedup();
    let instances = instances.iter().map(|instance| format!("instance {instance}"));
    let host = (from_host > 0).then(|| format!("the host ({from_host})"));
    let sources: Vec<String> = instances.chain(host).collect();
    let imports = if sources.is_empty() { String::new() } else { format!(", imports from {}", sources.join(", ")) };
    let role = role.map_or_else(String::new, |role| format!(", {role}"));
    format!("{index} of module {}{name}{role}{imports}", step.module)
}

fn describe_module(module: &ModuleDescriptor, functions: bool, line: &mut impl FnMut(&str, &dyn Display)) {
    let mut memories = 0;
    let mut memory = |ty: &MemoryType| {
        let bounds = module.bounds.get(memories).map_or("?", |bounds| bounds.name());
        memories += 1;
        format!("{}, bounds {bounds}", memory_type(ty))
    };
    for import in &module.imports {
        let Import { module: from, name, ty } = import;
        let ty = match ty {
            ImportType::Function { ty, .. } => {
                let ty = module.types.get(*ty as usize).map_or_else(|| "?".to_owned(), |ty| ty.ty.to_string());
                format!("function {ty}")
            }
            ImportType::Table(ty) => table_type(ty),
            ImportType::Memory(ty) => memory(ty),
            ImportType::Global(ty) => global_type(ty),
            ImportType::Tag(ty) => tag_type(module, *ty),
        };
        line("  import", &format!("{from:?} {name:?} {ty}"));
    }
    for defined in &module.memories {
        line("  memory", &memory(&defined.ty));
    }
    for table in &module.tables {
        line("  table", &table_type(&table.ty));
    }
    let compiled = module.functions.iter().filter(|function| function.code.is_some()).count();
    line("  functions", &format!("{} ({compiled} with code of their own)", module.functions.len()));
    line("  globals", &module.globals.len());
    for &tag in &module.tags {
        line("  tag", &tag_type(module, tag));
    }
    line("  exceptions", if module.exceptions { &"functions return them" } else { &"none" });
    line("  segments", &format!("{} data, {} element", module.data.len(), module.elements.len()));
    if let Some(start) = module.start {
        line("  start", &format!("function {start}"));
    }
    for export in &module.exports {
        line("  export", &format!("{:?} {} {}", export.name, export.kind, export_type(module, export.kind, export.index)));
    }
    if functions {
        let first = module.imported_functions();
        for (index, function) in (first..).zip(&module.functions) {
            let name = text::line(function.name.as_deref().unwrap_or(""));
            line("  function", &format!("{index:<6} {:>8} bytes  {name}", function.code_bytes));
        }
    }
}

/// A function's type where it is known, otherwise the index.
fn export_type(module: &ModuleDescriptor, kind: ExternKind, index: u32) -> String {
    let defined = index.checked_sub(module.imported_functions()).and_then(|i| module.functions.get(i as usize));
    match (kind, defined) {
        (ExternKind::Function, Some(function)) => {
            module.types.get(function.ty as usize).map_or_else(|| index.to_string(), |ty| ty.ty.to_string())
        }
        _ => index.to_string(),
    }
}

fn memory_type(ty: &MemoryType) -> String {
    let max = ty.pages_max.map_or_else(|| "no limit of its own".to_owned(), |max| format!("at most {max}"));
    let kind = if ty.memory64 { "memory64" } else { "memory" };
    format!("{kind} of {} pages of 64 KiB, {max}", ty.pages_min)
}

fn table_type(ty: &TableType) -> String {
    let max = ty.elements_max.map_or_else(|| "no limit of its own".to_owned(), |max| format!("at most {max}"));
    let kind = if ty.table64 { "table64" } else { "table" };
    format!("{kind} of {} {}, {max}", ty.elements_min, ty.element)
}

fn global_type(ty: &GlobalType) -> String {
    format!("global {}{}", if ty.mutable { "mut " } else { "" }, ty.value)
}

fn tag_type(module: &ModuleDescriptor, ty: u32) -> String {
    module.types.get(ty as usize).map_or_else(|| "?".to_owned(), |ty| format!("tag {}", ty.ty))
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none beyond the architecture's first version".to_owned() } else { items.join(" ") }
}
