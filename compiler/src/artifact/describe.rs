//! The descriptor of a program, and the object file that holds it.

use awsm_abi::cpu::Arch;
use awsm_abi::descriptor::{
    DataSegment, Descriptor, Encoded, Function, Global, Import, ImportType, Memory, ModuleDescriptor, Table, TypeDescriptor,
};
use awsm_abi::types::FuncType;
use awsm_abi::{DESCRIPTOR_SECTION, DESCRIPTOR_SYMBOL};
use object::write::{Object, Relocation, StandardSegment, Symbol, SymbolId, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind, SymbolScope, elf};

use super::assemble::{ModuleParts, Parts};
use super::code::find;
use super::{CodeObject, inlined, text_symbol};
use crate::error::CompileError;
use crate::module::{self, Declared, FuncIdx, TypeIdx};
use crate::translate::{entry_symbol, function_symbol, thunk_symbol};

/// Describes an artifact of modules whose functions lie in `code`.
pub(super) fn describe(parts: &Parts<'_>, code: &[CodeObject]) -> Result<Descriptor, CompileError> {
    let mut blob_start = 0;
    let mut modules = Vec::new();
    for part in parts.modules {
        modules.push(describe_module(part, parts.segment, blob_start, code)?);
        blob_start += part.module.blob.len() as u64;
    }
    Ok(Descriptor {
        compiler: concat!("awsm ", env!("CARGO_PKG_VERSION"), ", LLVM 22").to_owned(),
        opt_level: parts.opt_level.number(),
        arch: parts.arch,
        cpu_features: parts.cpu_features.to_vec(),
        modules,
        plan: parts.plan.to_vec(),
        component: parts.component.cloned(),
        inlined: if parts.component.is_some() { inlined::read(code, parts.modules)? } else { Vec::new() },
    })
}

/// Describes a module, whose data begin in the artifact's at `blob_start`.
fn describe_module(
    part: &ModuleParts<'_>,
    segment: bool,
    blob_start: u64,
    code: &[CodeObject],
) -> Result<ModuleDescriptor, CompileError> {
    let module = part.module;
    let moved = |data: &DataSegment| DataSegment { blob_start: blob_start + data.blob_start, ..data.clone() };
    Ok(ModuleDescriptor {
        name: module.name.clone(),
        wasm_base: module.wasm_base,
        types: types(part, code)?,
        groups: module.groups.clone(),
        exceptions: module.exceptions,
        imports: imports(module, code)?,
        functions: functions(module, code),
        tables: tables(module),
        memories: defined(&module.memories, module.imported_memories).map(|&ty| Memory { ty }).collect(),
        bounds: part.bounds.to_vec(),
        segment,
        globals: globals(module),
        tags: defined(&module.tags, module.imported_tags).map(|ty| ty.0).collect(),
        exports: module.exports.clone(),
        start: module.start.map(|start| start.0),
        elements: module.elements.clone(),
        data: module.data.iter().map(moved).collect(),
    })
}

fn defined<T>(all: &[T], imported: u32) -> impl Iterator<Item = &T> {
    all.iter().skip(imported as usize)
}

fn missing(symbol: &str) -> CompileError {
    CompileError::artifact(format_args!("the code for {symbol} is missing"))
}

fn types(part: &ModuleParts<'_>, code: &[CodeObject]) -> Result<Vec<TypeDescriptor>, CompileError> {
    let entry = |entry: Option<TypeIdx>| {
        let symbol = entry.map(|ty| entry_symbol(part.module, ty));
        symbol.map(|symbol| find(code, &symbol).ok_or_else(|| missing(&symbol))).transpose()
    };
    let types = part.module.types.iter().zip(&part.module.declared).zip(&part.entry_types);
    let describe = |((ty, declared), &index): ((&FuncType, &Declared), &Option<TypeIdx>)| {
        Ok(TypeDescriptor {
            ty: ty.clone(),
            supertype: declared.supertype,
            is_final: declared.is_final,
            entry: entry(index)?.map(|(code, _)| code),
        })
    };
    types.map(describe).collect()
}

fn imports(module: &module::Module<'_>, code: &[CodeObject]) -> Result<Vec<Import>, CompileError> {
    let mut functions = 0;
    let mut import = |import: &module::Import| {
        let ty = match import.ty {
            module::ImportType::Function(ty) => {
                let symbol = thunk_symbol(module, FuncIdx(functions), import);
                functions += 1;
                let (thunk, _) = find(code, &symbol).ok_or_else(|| missing(&symbol))?;
                ImportType::Function { ty: ty.0, thunk }
            }
            module::ImportType::Table(ty) => ImportType::Table(ty),
            module::ImportType::Memory(ty) => ImportType::Memory(ty),
            module::ImportType::Global(ty) => ImportType::Global(ty),
            module::ImportType::Tag(ty) => ImportType::Tag(ty.0),
        };
        Ok(Import { module: import.module.clone(), name: import.name.clone(), ty })
    };
    module.imports.iter().map(&mut import).collect()
}

fn functions(module: &module::Module<'_>, code: &[CodeObject]) -> Vec<Function> {
    let function = |(index, body): (FuncIdx, &wasmparser::FunctionBody<'_>)| {
        let place = find(code, &function_symbol(module, index));
        let range = body.range();
        Function {
            ty: module.functions[index.0 as usize].0,
            code: place.map(|(code, _)| code),
            code_bytes: place.map_or(0, |(_, bytes)| bytes),
            wasm_start: range.start as u32,
            wasm_end: range.end as u32,
            name: module.function_names[index.0 as usize].clone(),
        }
    };
    module.defined_functions().zip(&module.bodies).map(function).collect()
}

fn tables(module: &module::Module<'_>) -> Vec<Table> {
    let types = defined(&module.tables, module.imported_tables);
    types.zip(&module.table_inits).map(|(&ty, init)| Table { ty, init: init.clone() }).collect()
}

fn globals(module: &module::Module<'_>) -> Vec<Global> {
    let types = defined(&module.globals, module.imported_globals);
    types.zip(&module.global_inits).map(|(&ty, init)| Global { ty, init: init.clone() }).collect()
}

/// Makes the object file of an encoded descriptor: its section, its symbol, and for each code range a relocation to that range's start.
pub(super) fn object(encoded: &Encoded, arch: Arch) -> Result<Vec<u8>, CompileError> {
    let failed = |error: object::write::Error| CompileError::artifact(format_args!("descriptor not written: {error}"));
    let (architecture, r_type) = match arch {
        Arch::X86_64 => (Architecture::X86_64, elf::R_X86_64_PC64),
        Arch::Aarch64 => (Architecture::Aarch64, elf::R_AARCH64_PREL64),
    };
    let mut object = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
    let segment = object.segment_name(StandardSegment::Data).to_vec();
    let section = object.add_section(segment, DESCRIPTOR_SECTION.as_bytes().to_vec(), SectionKind::ReadOnlyData);
    object.set_section_data(section, encoded.bytes.clone(), 16);
    object.add_symbol(Symbol {
        name: DESCRIPTOR_SYMBOL.as_bytes().to_vec(),
        value: 0,
        size: encoded.bytes.len() as u64,
        kind: SymbolKind::Data,
        scope: SymbolScope::Dynamic,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    for (text, &offset) in encoded.text_starts.iter().enumerate() {
        let symbol = undefined(&mut object, &text_symbol(text as u32));
        let flags = RelocationFlags::Elf { r_type };
        object.add_relocation(section, Relocation { offset, symbol, addend: 0, flags }).map_err(failed)?;
    }
    object.write().map_err(failed)
}

pub(super) fn undefined(object: &mut Object<'_>, name: &str) -> SymbolId {
    object.add_symbol(Symbol {
        name: name.as_bytes().to_vec(),
        value: 0,
        size: 0,
        kind: SymbolKind::Text,
        scope: SymbolScope::Unknown,
        weak: false,
        section: SymbolSection::Undefined,
        flags: SymbolFlags::None,
    })
}
