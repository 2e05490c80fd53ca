//! Source lines of an artifact that was compiled with `--debug`.

use gimli::{EndianSlice, LittleEndian};
use object::{Object, ObjectSection};

use super::artifact::Artifact;

/// An artifact's line table.
pub(super) struct Sources<'d>(addr2line::Context<EndianSlice<'d, LittleEndian>>);

impl<'d> Sources<'d> {
    /// None when it has none.
    pub(super) fn of(artifact: &Artifact<'d>) -> Option<Sources<'d>> {
        let section = |id: gimli::SectionId| {
            let data = artifact.file.section_by_name(id.name()).and_then(|section| section.data().ok());
            Ok::<_, gimli::Error>(EndianSlice::new(data.unwrap_or(&[]), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).ok()?;
        addr2line::Context::from_dwarf(dwarf).ok().map(Sources)
    }

    /// `file:line:column` of an address.
    pub(super) fn line(&self, address: u64) -> Option<String> {
        let location = self.0.find_location(address).ok()??;
        let (file, line) = (location.file?, location.line.filter(|&line| line > 0)?);
        let column = location.column.filter(|&column| column > 0).map_or_else(String::new, |column| format!(":{column}"));
        Some(format!("{}:{line}{column}", file.strip_prefix("./").unwrap_or(file).escape_debug()))
    }
}
