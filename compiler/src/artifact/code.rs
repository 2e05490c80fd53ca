//! What there is to know of an object file that code generation produced.

use std::collections::{BTreeSet, HashMap};

use awsm_abi::descriptor::{CodeRef, Text, TrapRow};
use object::{Object, ObjectSection, ObjectSymbol, SectionIndex};

use super::trap_table;
use crate::error::CompileError;
use crate::lines::Lines;

/// An object file with code: one code range of the artifact.
pub(crate) struct CodeObject {
    /// The file.
    pub(crate) bytes: Vec<u8>,
    /// The code range, with its trap table.
    pub(crate) text: Text,
    /// Index of the code range.
    index: u32,
    /// What its lines stand for.
    pub(super) lines: Lines,
    /// Functions defined in it by symbol: offset and size.
    functions: HashMap<String, (u32, u32)>,
    /// Symbols that it wants from elsewhere.
    pub(crate) undefined: Vec<String>,
}

/// What stands at the start of a function that has no row of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultRow {
    /// Nothing traps before the next row: entries and thunks.
    Call,
    /// Anything may be an access out of bounds: memory helpers.
    Access,
}

fn broken(error: impl std::fmt::Display) -> CompileError {
    CompileError::llvm("reading the generated object", error)
}

impl CodeObject {
    /// Reads an object file that becomes code range `index`. `lines`: what its lines stand for.
    ///
    /// # Errors
    /// When it is not what code generation should produce: a bug.
    pub(crate) fn read(bytes: Vec<u8>, index: u32, default: DefaultRow, lines: Lines) -> Result<CodeObject, CompileError> {
        let file = object::File::parse(bytes.as_slice()).map_err(broken)?;
        let text = file.section_by_name(".text").ok_or_else(|| broken("no .text"))?;
        if let Some(other) = executable_sections(&file).find(|&section| section != text.index()) {
            return Err(broken(format!("code outside .text, in section {}", other.0)));
        }
        let mut functions = HashMap::new();
        let mut undefined = Vec::new();
        for symbol in file.symbols() {
            let name = symbol.name().map_err(broken)?;
            if symbol.is_undefined() && !name.is_empty() {
                undefined.push(name.to_owned());
            } else if symbol.kind() == object::SymbolKind::Text && symbol.section_index() == Some(text.index()) {
                let place = (u32::try_from(symbol.address()), u32::try_from(symbol.size()));
                let (Ok(offset), Ok(size)) = place else { return Err(broken("more than 4 GiB of code")) };
                functions.insert(name.to_owned(), (offset, size));
            }
        }
        let mut rows = trap_table::read(&file, text.index(), &lines)?;
        let trap = if default == DefaultRow::Access { awsm_abi::TrapCode::MemoryOutOfBounds.number() } else { 0 };
        let starts = functions.values().filter(|(_, size)| *size > 0);
        let starts = starts.map(|&(code_offset, _)| TrapRow { code_offset, wasm_offset: 0, trap }).collect();
        trap_table::add_starts(&mut rows, starts);
        let text = Text { bytes: text.size(), trap_rows: rows };
        Ok(CodeObject { text, index, lines, functions, undefined, bytes })
    }

    /// Where a function is and how large; none when it was dropped.
    pub(crate) fn function(&self, symbol: &str) -> Option<(CodeRef, u32)> {
        let &(offset, size) = self.functions.get(symbol)?;
        Some((CodeRef { text: self.index, offset }, size))
    }
}

/// Symbols that objects want and none of them has.
pub(crate) fn missing(objects: &[CodeObject]) -> Vec<String> {
    let wanted: BTreeSet<_> = objects.iter().flat_map(|object| &object.undefined).collect();
    let is_missing = |symbol: &&String| !objects.iter().any(|object| object.functions.contains_key(*symbol));
    wanted.into_iter().filter(is_missing).cloned().collect()
}

/// Where a function is and how large, among objects; none when it was dropped.
pub(super) fn find(objects: &[CodeObject], symbol: &str) -> Option<(CodeRef, u32)> {
    objects.iter().find_map(|object| object.function(symbol))
}

fn executable_sections<'f>(file: &'f object::File<'_>) -> impl Iterator<Item = SectionIndex> + 'f {
    file.sections()
        .filter(|section| section.kind() == object::SectionKind::Text && section.size() > 0)
        .map(|section| section.index())
}
