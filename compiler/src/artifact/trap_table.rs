//! The trap table, read from the line table of an object file; `llvm::debug` says what lines and columns mean.

use awsm_abi::descriptor::TrapRow;
use gimli::{DebugLine, DebugLineOffset, LittleEndian};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex};

use crate::error::CompileError;
use crate::lines::Lines;

fn broken(error: impl std::fmt::Display) -> CompileError {
    CompileError::llvm("reading the generated line table", error)
}

/// Reads the rows of all code in section `text`, sorted by offset. `places`: what lines stand for.
pub(super) fn read(file: &object::File<'_>, text: SectionIndex, places: &Lines) -> Result<Vec<TrapRow>, CompileError> {
    let Some(section) = file.section_by_name(".debug_line") else { return Ok(Vec::new()) };
    let mut data = section.uncompressed_data().map_err(broken)?.into_owned();
    relocate(file, &section, text, &mut data)?;
    let lines = DebugLine::new(&data, LittleEndian);
    let program = lines.program(DebugLineOffset(0), 8, None, None).map_err(broken)?;
    let mut rows = Vec::new();
    let mut lines = program.rows();
    while let Some((_, line)) = lines.next_row().map_err(broken)? {
        // Line 0 stands for code that LLVM could not attribute to one place: it stays with what precedes it.
        let (Some(wasm_offset), false) = (line.line(), line.end_sequence()) else { continue };
        let trap = match line.column() {
            gimli::ColumnType::LeftEdge => 0,
            gimli::ColumnType::Column(column) => u8::try_from(column.get()).map_err(broken)?,
        };
        let code_offset = u32::try_from(line.address()).map_err(broken)?;
        let wasm_offset = u32::try_from(wasm_offset.get()).map_err(broken)?;
        let wasm_offset = places.place(wasm_offset).ok_or_else(|| broken("a line that stands for no place"))?;
        rows.push(TrapRow { code_offset, wasm_offset, trap });
    }
    rows.sort_by_key(|row| row.code_offset);
    Ok(rows)
}

/// Writes the addresses that the linker would: functions by their offset in `text`.
fn relocate<'d>(
    file: &object::File<'d>,
    section: &object::Section<'d, '_>,
    text: SectionIndex,
    data: &mut [u8],
) -> Result<(), CompileError> {
    for (offset, relocation) in section.relocations() {
        let place = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = file.symbol_by_index(index).map_err(broken)?;
                if symbol.section_index() != Some(text) {
                    continue;
                }
                symbol.address()
            }
            RelocationTarget::Section(index) if index == text => 0,
            _ => continue,
        };
        let address = place.wrapping_add_signed(relocation.addend());
        let bytes = usize::from(relocation.size() / 8);
        let start = usize::try_from(offset).map_err(broken)?;
        let field = data.get_mut(start..start + bytes).ok_or_else(|| broken("relocation outside its section"))?;
        field.copy_from_slice(&address.to_le_bytes()[..bytes]);
    }
    Ok(())
}

/// Adds rows where functions start that have none there, and drops rows that say what the one before them says.
pub(super) fn add_starts(rows: &mut Vec<TrapRow>, starts: Vec<TrapRow>) {
    let own: std::collections::HashSet<u32> = rows.iter().map(|row| row.code_offset).collect();
    rows.extend(starts.into_iter().filter(|start| !own.contains(&start.code_offset)));
    rows.sort_by_key(|row| row.code_offset);
    // Of rows at one offset the last holds: the others cover no byte.
    rows.dedup_by(|later, earlier| {
        if later.code_offset == earlier.code_offset {
            *earlier = *later;
        }
        later.code_offset == earlier.code_offset
    });
    rows.dedup_by(|later, earlier| (later.wasm_offset, later.trap) == (earlier.wasm_offset, earlier.trap));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(code_offset: u32, wasm_offset: u32, trap: u8) -> TrapRow {
        TrapRow { code_offset, wasm_offset, trap }
    }

    #[test]
    fn starts_are_added_and_repetitions_dropped() {
        let mut rows = vec![row(0, 5, 0), row(4, 9, 2), row(4, 7, 2), row(8, 7, 2), row(12, 5, 0)];
        add_starts(&mut rows, vec![row(0, 0, 0), row(16, 0, 0)]);
        assert_eq!(rows, [row(0, 5, 0), row(4, 7, 2), row(12, 5, 0), row(16, 0, 0)]);
    }
}
