//! What the adapters of copiers import, and what stands for that.

use wasmtime_environ::EntityIndex;
use wasmtime_environ::component::{ExportItem, RuntimeComponentInstanceIndex, RuntimeMemoryIndex, dfg};
use wasmtime_environ::fact::Import;
use wasmtime_environ::wasmparser::{Parser, Payload, TypeRef};

use super::super::instances::context_storage;
use super::super::transcoders::transcoder;
use super::super::unsupported;
use crate::component::glue::{Glue, MAY_BLOCK, Source, flags};
use crate::error::CompileError;

/// What takes the list that an adapter passes, and behind it the `realloc` functions of readers: numbers for what is not in the component.
pub(super) const CALLEE: u32 = 0;
pub(super) const REALLOC_START: u32 = 1;

/// What such a module imports.
#[derive(Debug)]
pub(super) struct Imported {
    pub(super) module: String,
    pub(super) name: String,
    pub(super) what: What,
}

/// What that is.
#[derive(Debug)]
pub(super) enum What {
    Source(Source),
    Memory(RuntimeMemoryIndex),
    /// What glue offers to copiers.
    Seat(String),
    Transcoder {
        name: &'static str,
        from: RuntimeMemoryIndex,
        to: RuntimeMemoryIndex,
    },
}

/// What stands for something that an adapter imports.
pub(super) fn what(import: &Import, outside: RuntimeComponentInstanceIndex) -> Result<What, CompileError> {
    let unknown = || unsupported("a copier that imports what is not known (a bug)");
    let memory = |def: &dfg::CoreDef| match def {
        dfg::CoreDef::Export(export) => Ok(RuntimeMemoryIndex::from_u32(export.instance.as_u32())),
        _ => Err(unknown()),
    };
    let seat = |export: &str| What::Seat(export.to_owned());
    Ok(match import {
        Import::CoreDef(dfg::CoreDef::InstanceFlags(instance)) if *instance == outside => seat("flags"),
        Import::CoreDef(dfg::CoreDef::InstanceFlags(instance)) => What::Source(Source::state(flags(instance.as_u32()))),
        Import::CoreDef(dfg::CoreDef::TaskMayBlock) => What::Source(Source::state(MAY_BLOCK)),
        Import::UnsafeIntrinsic(intrinsic) | Import::CoreDef(dfg::CoreDef::UnsafeIntrinsic(_, intrinsic)) => {
            What::Source(context_storage(*intrinsic)?)
        }
        Import::CoreDef(dfg::CoreDef::Trampoline(index)) => match index.as_u32() {
            CALLEE => seat("callee"),
            realloc => What::Seat(Glue::seat(realloc - REALLOC_START)),
        },
        Import::CoreDef(def @ dfg::CoreDef::Export(dfg::CoreExport { item: ExportItem::Index(EntityIndex::Memory(_)), .. })) => {
            What::Memory(memory(def)?)
        }
        Import::Transcode { op, from, from64: false, to, to64: false } => {
            What::Transcoder { name: transcoder(*op), from: memory(from)?, to: memory(to)? }
        }
        Import::ResourceTransferOwn => What::Source(Source::state("transfer own")),
        Import::StreamTransfer => What::Source(Source::state("transfer stream")),
        Import::FutureTransfer => What::Source(Source::state("transfer future")),
        Import::ErrorContextTransfer => What::Source(Source::state("transfer error")),
        Import::Trap => What::Source(Source::state("trap of adapter")),
        Import::EnterSyncCall => seat("enter"),
        Import::ExitSyncCall => seat("exit"),
        _ => return Err(unknown()),
    })
}

/// What a module imports, in its order, and whether that is a function.
pub(super) fn import_names(wasm: &[u8]) -> Result<Vec<(String, String, bool)>, CompileError> {
    let unknown = |_| unsupported("an adapter of an unknown form (a bug)");
    let mut names = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::ImportSection(section) = payload.map_err(unknown)? else { continue };
        for import in section.into_imports() {
            let import = import.map_err(unknown)?;
            names.push((import.module.to_owned(), import.name.to_owned(), matches!(import.ty, TypeRef::Func(_))));
        }
    }
    Ok(names)
}
