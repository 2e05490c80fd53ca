//! Source lines: from the module's own debug information (DWARF in custom sections, whose addresses count from the start of the code section's
//! contents) to a line table of the artifact, for `awsm explain`, debuggers and profilers.
//!
//! Rows stand where the trap table has rows: at what may trap, and at calls.

use std::collections::HashMap;

use awsm_abi::cpu::Arch;
use awsm_abi::descriptor::Text;
use gimli::write::{Address, AttributeValue, Dwarf, EndianVec, LineProgram, LineString, Sections, Unit, Writer};
use gimli::{Encoding, EndianSlice, Format, LineEncoding, LittleEndian};
use object::write::{Object, Relocation, SectionKind, SymbolId};
use object::{BinaryFormat, Endianness, RelocationFlags, elf};

use super::assemble::Parts;
use super::describe;
use super::text_symbol;
use crate::error::CompileError;
use crate::module::Module;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The lines of a module's source.
struct Lines<'a> {
    context: addr2line::Context<Slice<'a>>,
    /// Where the code section's contents start in the module.
    code_start: u32,
}

impl<'a> Lines<'a> {
    /// None when the module has no debug information that can be read: it is a custom section, which may hold anything.
    fn of(module: &Module<'a>) -> Option<Lines<'a>> {
        let section = |id: gimli::SectionId| {
            let found = module.debug_sections.iter().find(|(name, _)| *name == id.name());
            Ok::<_, gimli::Error>(EndianSlice::new(found.map_or(&[][..], |(_, data)| *data), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).ok()?;
        Some(Lines { context: addr2line::Context::from_dwarf(dwarf).ok()?, code_start: module.code_start })
    }

    /// File, line and column of a place in the module.
    fn find(&self, wasm_offset: u32) -> Option<(&str, u32, u32)> {
        let location = self.context.find_location(u64::from(wasm_offset.checked_sub(self.code_start)?)).ok()??;
        // In line programs names end with a NUL, and empty ones end lists.
        let file = location.file.filter(|file| !file.is_empty() && !file.contains('\0'))?;
        Some((file, location.line?, location.column.unwrap_or(0)))
    }
}

/// The object with the line tables of code ranges; none when no module has lines. Helpers, whose rows name no place, have none.
pub(super) fn object(parts: &Parts<'_>, texts: &[Text]) -> Result<Option<Vec<u8>>, CompileError> {
    let arch = parts.arch;
    let lines: Vec<_> = parts.modules.iter().map(|part| (part.module.wasm_base, Lines::of(part.module))).collect();
    let mut dwarf = Dwarf::new();
    for (index, text) in texts.iter().enumerate() {
        if let Some(unit) = unit(&lines, index, text) {
            dwarf.units.add(unit);
        }
    }
    if dwarf.units.count() == 0 {
        return Ok(None);
    }
    let mut sections = Sections::new(Section::default());
    let failed = |error: &dyn std::fmt::Display| CompileError::artifact(format_args!("line table not written: {error}"));
    dwarf.write(&mut sections).map_err(|error| failed(&error))?;
    let (architecture, r_type) = match arch {
        Arch::X86_64 => (object::Architecture::X86_64, elf::R_X86_64_64),
        Arch::Aarch64 => (object::Architecture::Aarch64, elf::R_AARCH64_ABS64),
    };
    let mut object = Object::new(BinaryFormat::Elf, architecture, Endianness::Little);
    let mut symbols: HashMap<usize, SymbolId> = HashMap::new();
    sections.for_each(|id, section| -> Result<(), CompileError> {
        if section.bytes.slice().is_empty() {
            return Ok(());
        }
        let place = object.add_section(Vec::new(), id.name().as_bytes().to_vec(), SectionKind::Debug);
        object.set_section_data(place, section.bytes.slice().to_vec(), 1);
        for &(offset, text, addend) in &section.addresses {
            let symbol = *symbols.entry(text).or_insert_with(|| describe::undefined(&mut object, &text_symbol(text as u32)));
            let flags = RelocationFlags::Elf { r_type };
            let relocation = Relocation { offset: offset as u64, symbol, addend, flags };
            object.add_relocation(place, relocation).map_err(|error| failed(&error))?;
        }
        Ok(())
    })?;
    object.write().map(Some).map_err(|error| failed(&error))
}

/// File, line and column of what an offset of the trap table stands for. `lines`: of each module, with where its offsets begin.
fn find<'l>(lines: &'l [(u32, Option<Lines<'_>>)], wasm_offset: u32) -> Option<(&'l str, u32, u32)> {
    let after = lines.partition_point(|(base, _)| *base <= wasm_offset);
    let (base, lines) = lines.get(after.checked_sub(1)?)?;
    lines.as_ref()?.find(wasm_offset - base)
}

/// The unit of a code range; none when no source line is known in it.
fn unit(lines: &[(u32, Option<Lines<'_>>)], index: usize, text: &Text) -> Option<Unit> {
    // Version 4, so that no section refers to another but through offsets that are right as they are: this is the only object with such sections.
    let encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 8 };
    let start = Address::Symbol { symbol: index, addend: 0 };
    let name = |text: &str| LineString::String(text.as_bytes().to_vec());
    let mut program = LineProgram::new(encoding, LineEncoding::default(), name("."), None, name("module.wasm"), None);
    let folder = program.default_directory();
    program.begin_sequence(Some(start));
    let (mut known, mut current) = (false, None);
    for row in &text.trap_rows {
        let place = find(lines, row.wasm_offset);
        if place == current {
            continue;
        }
        // Where no line is known, line 0 says so.
        let (file, line, column) = place.unwrap_or(("module.wasm", 0, 0));
        let file = program.add_file(name(file), folder, None);
        let next = program.row();
        next.address_offset = u64::from(row.code_offset);
        (next.file, next.line, next.column) = (file, u64::from(line), u64::from(column));
        program.generate_row();
        (known, current) = (known || place.is_some(), place);
    }
    program.end_sequence(text.bytes);
    if !known {
        return None;
    }
    let mut unit = Unit::new(encoding, program);
    let root = unit.root();
    let root = unit.get_mut(root);
    root.set(gimli::DW_AT_name, AttributeValue::String(b"module.wasm".to_vec()));
    root.set(gimli::DW_AT_producer, AttributeValue::String(b"awsm".to_vec()));
    root.set(gimli::DW_AT_low_pc, AttributeValue::Address(start));
    root.set(gimli::DW_AT_high_pc, AttributeValue::Udata(text.bytes));
    Some(unit)
}

/// A section in writing, and the addresses in it that the linker knows: where, of which code range, how far behind its start.
#[derive(Clone)]
struct Section {
    bytes: EndianVec<LittleEndian>,
    addresses: Vec<(usize, usize, i64)>,
}

impl Default for Section {
    fn default() -> Section {
        Section { bytes: EndianVec::new(LittleEndian), addresses: Vec::new() }
    }
}

impl Writer for Section {
    type Endian = LittleEndian;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn write(&mut self, bytes: &[u8]) -> gimli::write::Result<()> {
        self.bytes.write(bytes)
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> gimli::write::Result<()> {
        self.bytes.write_at(offset, bytes)
    }

    fn write_address(&mut self, address: Address, size: u8) -> gimli::write::Result<()> {
        let (value, symbol) = match address {
            Address::Constant(value) => (value, None),
            Address::Symbol { symbol, addend } => (0, Some((self.len(), symbol, addend))),
        };
        self.addresses.extend(symbol);
        self.write_udata(value, size)
    }
}
