//! Where code of functions became part of others: read from what LLVM writes of it beside the line table, which the linker drops.

use std::borrow::Cow;

use awsm_abi::descriptor::Inlined;
use awsm_abi::limits::INLINED_MAX;
use gimli::{AttributeValue, DwarfSections, EndianSlice, LittleEndian, SectionId, constants};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};

use super::{CodeObject, ModuleParts};
use crate::error::CompileError;

fn broken(error: impl std::fmt::Display) -> CompileError {
    CompileError::llvm("reading the generated debug information", error)
}

/// Reads what is known of the code ranges that have code of several modules, sorted; of the first ones, where it is more than an artifact says.
pub(super) fn read(code: &[CodeObject], modules: &[ModuleParts<'_>]) -> Result<Vec<Inlined>, CompileError> {
    let mut inlined = Vec::new();
    for (text, object) in code.iter().enumerate() {
        if inlined.len() < INLINED_MAX && is_of_several(object, modules) {
            read_one(object, text as u32, &mut inlined)?;
        }
    }
    inlined.sort_unstable();
    inlined.truncate(INLINED_MAX);
    Ok(inlined)
}

/// Whether a code range has code of several modules.
fn is_of_several(object: &CodeObject, modules: &[ModuleParts<'_>]) -> bool {
    // Where functions start that say nothing, rows have no place.
    let places = object.text.trap_rows.iter().map(|row| row.wasm_offset).filter(|place| *place != 0);
    let mut of = places.map(|place| modules.partition_point(|part| part.module.wasm_base <= place));
    of.next().is_some_and(|first| of.any(|other| other != first))
}

fn read_one(object: &CodeObject, text: u32, inlined: &mut Vec<Inlined>) -> Result<(), CompileError> {
    let file = object::File::parse(object.bytes.as_slice()).map_err(broken)?;
    let sections = DwarfSections::load(|id: SectionId| section(&file, id.name()))?;
    let dwarf = sections.borrow(|data| EndianSlice::new(data, LittleEndian));
    let mut units = dwarf.units();
    while let Some(header) = units.next().map_err(broken)? {
        let unit = dwarf.unit(header).map_err(broken)?;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().map_err(broken)? {
            if entry.tag() != constants::DW_TAG_inlined_subroutine {
                continue;
            }
            let Some(AttributeValue::Udata(line)) = entry.attr_value(constants::DW_AT_call_line) else { continue };
            let line = u32::try_from(line).map_err(broken)?;
            // A call without a line: LLVM could not attribute it to one place.
            let Some(call) = object.lines.place(line) else { continue };
            let depth = u32::try_from(entry.depth()).map_err(broken)?;
            let mut ranges = dwarf.die_ranges(&unit, entry).map_err(broken)?;
            while let Some(range) = ranges.next().map_err(broken)? {
                let start = u32::try_from(range.begin).map_err(broken)?;
                let bytes = u32::try_from(range.end.saturating_sub(range.begin)).map_err(broken)?;
                inlined.push(Inlined { text, start, depth, bytes, call });
            }
        }
    }
    Ok(())
}

/// A section's bytes, with the places of what they refer to: none of the sections of an object file has an address yet.
fn section<'d>(file: &object::File<'d>, name: &str) -> Result<Cow<'d, [u8]>, CompileError> {
    let Some(section) = file.section_by_name(name) else { return Ok(Cow::Borrowed(&[])) };
    let mut data = section.uncompressed_data().map_err(broken)?;
    for (offset, relocation) in section.relocations() {
        let place = match relocation.target() {
            RelocationTarget::Symbol(index) => file.symbol_by_index(index).map_err(broken)?.address(),
            _ => 0,
        };
        let value = place.wrapping_add_signed(relocation.addend());
        let bytes = usize::from(relocation.size() / 8);
        let start = usize::try_from(offset).map_err(broken)?;
        let end = start.checked_add(bytes).filter(|_| bytes <= 8);
        let field =
            end.and_then(|end| data.to_mut().get_mut(start..end)).ok_or_else(|| broken("relocation outside its section"))?;
        field.copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
    Ok(data)
}
