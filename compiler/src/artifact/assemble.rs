//! Putting an artifact together.

use std::borrow::Cow;

use awsm_abi::component::Description;
use awsm_abi::cpu::Arch;
use awsm_abi::descriptor::{Instantiation, Text, encode};
use awsm_abi::types::Bounds;

use super::{CodeObject, describe, dwarf, link, verify};
use crate::error::CompileError;
use crate::module::{Module, TypeIdx};
use crate::options::OptLevel;

/// What an artifact is made of, besides code.
pub(crate) struct Parts<'a> {
    pub(crate) modules: &'a [ModuleParts<'a>],
    pub(crate) plan: &'a [Instantiation],
    /// The component that they were made of.
    pub(crate) component: Option<&'a Description>,
    pub(crate) segment: bool,
    pub(crate) opt_level: OptLevel,
    pub(crate) arch: Arch,
    pub(crate) cpu_features: &'a [String],
    /// Whether it gets a line table.
    pub(crate) debug: bool,
}

/// What there is of one module.
pub(crate) struct ModuleParts<'a> {
    pub(crate) module: &'a Module<'a>,
    /// For each type the one whose entry it uses.
    pub(crate) entry_types: Vec<Option<TypeIdx>>,
    pub(crate) bounds: &'a [Bounds],
}

/// Links an artifact from the modules' code and the helpers that it uses.
pub(crate) fn assemble(parts: &Parts<'_>, code: Vec<CodeObject>, helpers: Option<CodeObject>) -> Result<Vec<u8>, CompileError> {
    let descriptor = describe::describe(parts, &code)?;
    let mut objects: Vec<CodeObject> = code.into_iter().chain(helpers).collect();
    let texts: Vec<Text> = objects.iter_mut().map(|object| std::mem::take(&mut object.text)).collect();
    let encoded = encode(&descriptor, &texts, &blob(parts.modules));
    let descriptor = describe::object(&encoded, parts.arch)?;
    let mut files: Vec<&[u8]> = objects.iter().map(|object| object.bytes.as_slice()).collect();
    files.push(&descriptor);
    let lines = if parts.debug { dwarf::object(parts, &texts)? } else { None };
    let artifact = match &lines {
        Some(lines) => link::link_with_lines(&files, lines, parts.arch)?,
        None => link::link(&files, parts.arch)?,
    };
    verify::verify(&artifact)?;
    Ok(artifact)
}

/// The bytes of all data segments, module after module.
fn blob<'a>(modules: &[ModuleParts<'a>]) -> Cow<'a, [u8]> {
    match modules {
        [only] => Cow::Borrowed(&only.module.blob),
        modules => modules.iter().map(|part| part.module.blob.as_slice()).collect::<Vec<_>>().concat().into(),
    }
}

/// One relocatable object from the objects of all parts.
pub(crate) fn relocatable(mut objects: Vec<Vec<u8>>, arch: Arch) -> Result<Vec<u8>, CompileError> {
    match objects.pop() {
        Some(only) if objects.is_empty() => Ok(only),
        last => {
            objects.extend(last);
            let files: Vec<&[u8]> = objects.iter().map(Vec::as_slice).collect();
            link::merge(&files, arch)
        }
    }
}
