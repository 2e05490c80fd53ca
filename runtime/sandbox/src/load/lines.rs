//! Source lines of code: the line table of an artifact that was compiled with `--debug`. Others have none, and pay nothing.
//!
//! The table is only for people: what is wrong with it, it is left out for.

use std::collections::HashMap;

use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};

/// Places in source files, by address in the artifact's file.
pub(crate) struct Lines {
    files: Vec<String>,
    /// By ascending address.
    rows: Vec<Row>,
}

struct Row {
    address: u64,
    /// Index in `files`.
    file: usize,
    /// Counts from 1; 0 where none is known.
    line: u64,
    /// Counts from 1; 0 for the whole line.
    column: u64,
}

impl Lines {
    /// None when there are no such sections, or they cannot be read.
    pub(super) fn read<'a>(section: impl Fn(&'static str) -> &'a [u8]) -> Option<Lines> {
        if section(SectionId::DebugLine.name()).is_empty() {
            return None;
        }
        let dwarf = Dwarf::load(|id| Ok::<_, gimli::Error>(EndianSlice::new(section(id.name()), LittleEndian))).ok()?;
        let mut lines = Lines { files: Vec::new(), rows: Vec::new() };
        let mut units = dwarf.units();
        while let Some(header) = units.next().ok()? {
            let unit = dwarf.unit(header).ok()?;
            let Some(program) = unit.line_program.clone() else { continue };
            let mut rows = program.rows();
            // Of this unit.
            let mut files = HashMap::new();
            while let Some((header, row)) = rows.next_row().ok()? {
                let file = *files.entry(row.file_index()).or_insert_with(|| {
                    let name = row.file(header).and_then(|file| dwarf.attr_string(&unit, file.path_name()).ok());
                    lines.files.push(name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()));
                    lines.files.len() - 1
                });
                let line = row.line().filter(|_| !row.end_sequence()).map_or(0, |line| line.get());
                let column = match row.column() {
                    gimli::ColumnType::LeftEdge => 0,
                    gimli::ColumnType::Column(column) => column.get(),
                };
                lines.rows.push(Row { address: row.address(), file, line, column });
            }
        }
        lines.rows.sort_by_key(|row| row.address);
        Some(lines)
    }

    /// `file:line:column` of the code at an address in the file.
    pub(crate) fn at(&self, address: u64) -> Option<String> {
        let after = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(after.checked_sub(1)?).filter(|row| row.line > 0)?;
        // Names come from the module: no control bytes of theirs reach a terminal.
        let place = format!("{}:{}", self.files.get(row.file)?.escape_debug(), row.line);
        Some(if row.column > 0 { format!("{place}:{}", row.column) } else { place })
    }
}
