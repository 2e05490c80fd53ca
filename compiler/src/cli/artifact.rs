//! An artifact as a file, for commands that show something of it. Whether it may be run is the loader's decision, not theirs.

use anyhow::{Context, Result, bail};
use awsm_abi::DESCRIPTOR_SECTION;
use awsm_abi::descriptor::{Descriptor, Raw, RawText, TrapRow};
use object::{Object, ObjectSection, ObjectSymbol};

/// A file that awsm made.
pub(super) struct Artifact<'d> {
    pub(super) name: &'d str,
    pub(super) file: object::File<'d>,
    pub(super) descriptor: Descriptor,
    pub(super) texts: Vec<Text>,
    /// Size of its data segments.
    pub(super) blob_bytes: usize,
    /// Functions by address: where, how large, named how.
    symbols: Vec<(u64, u64, &'d str)>,
}

/// A code range.
pub(super) struct Text {
    /// Its address in the file.
    pub(super) start: u64,
    pub(super) bytes: u64,
    pub(super) rows: Vec<TrapRow>,
}

/// The place of an operator in one of an artifact's modules.
pub(super) struct Place {
    /// Index of the module.
    pub(super) module: usize,
    /// Index of the function among those that the module defines.
    pub(super) function: usize,
    /// Bytes from the start of the module.
    pub(super) offset: u32,
}

impl<'d> Artifact<'d> {
    /// Takes a file apart.
    pub(super) fn parse(name: &'d str, bytes: &'d [u8]) -> Result<Artifact<'d>> {
        let advice = || format!("{name}: not an artifact of awsm");
        let file = object::File::parse(bytes).with_context(advice)?;
        let Some(section) = file.section_by_name(DESCRIPTOR_SECTION) else {
            bail!("{name}: not an artifact of awsm: it has no section {DESCRIPTOR_SECTION}; `awsm compile` creates artifacts");
        };
        let raw = Raw::parse(section.data().with_context(advice)?).with_context(advice)?;
        let descriptor = raw.decode().with_context(advice)?;
        // What is searched for each of many things is no larger than the loader accepts.
        descriptor.check_component().map_err(anyhow::Error::msg).with_context(advice)?;
        let text = |text: &RawText<'_>| Text {
            start: section.address().wrapping_add_signed(text.start),
            bytes: text.bytes,
            rows: text.trap_rows().collect(),
        };
        let texts = raw.texts.iter().map(text).collect();
        let functions = file.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.size() > 0);
        let mut symbols: Vec<_> = functions.filter_map(|f| Some((f.address(), f.size(), f.name().ok()?))).collect();
        symbols.sort_unstable();
        Ok(Artifact { name, descriptor, texts, blob_bytes: raw.blob.len(), symbols, file })
    }

    /// The address of a symbol of code.
    pub(super) fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.iter().find(|(.., known)| *known == name).map(|&(address, ..)| address)
    }

    /// The symbol in whose code an address lies, and how far behind its start.
    pub(super) fn symbol_at(&self, address: u64) -> Option<(&'d str, u64)> {
        let after = self.symbols.partition_point(|&(start, ..)| start <= address);
        let &(start, bytes, name) = self.symbols.get(after.checked_sub(1)?)?;
        (address - start < bytes).then_some((name, address - start))
    }

    /// The place that an offset of the trap table stands for; none where it lies in no function's body.
    pub(super) fn place_of_row(&self, row: &TrapRow) -> Option<Place> {
        let (module, offset) = self.descriptor.place(row.wasm_offset)?;
        self.place(module, offset)
    }

    /// The place that an offset into a module stands for; none where it lies in no function's body.
    pub(super) fn place(&self, module: usize, offset: u32) -> Option<Place> {
        let functions = &self.descriptor.modules[module].functions;
        let function = functions.partition_point(|function| function.wasm_start <= offset).checked_sub(1)?;
        (offset < functions[function].wasm_end).then_some(Place { module, function, offset })
    }
}
