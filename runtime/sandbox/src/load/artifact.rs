//! A loaded artifact: its code at its address, and what is known of it.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Weak};

use awsm_abi::Descriptor;
use awsm_abi::descriptor::{CodeRef, DescriptorError, Raw, TrapRow};
use awsm_abi::limits::{ARTIFACT_BYTES_MAX, TEXTS_MAX};

use super::check::{self, LoadPolicy};
use super::lines::Lines;
use super::module::Module;
use super::{cpu, elf};
use crate::error::LoadError;
use crate::event::WasmLocation;
use crate::limits::DESCRIPTOR_BYTES_MAX;
use crate::load::arena::{CodeRange, Part};
use crate::types;

/// A loaded `.so` of `awsm`. Cheap to clone; its code is unmapped after the last clone, template and sandbox that uses it is gone.
#[derive(Clone)]
pub struct Artifact(Arc<Loaded>);

/// An artifact that may be gone.
#[derive(Clone)]
pub struct WeakArtifact(Weak<Loaded>);

impl WeakArtifact {
    /// Whether its code is still there.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.0.strong_count() > 0
    }
}

impl fmt::Debug for WeakArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakArtifact").field("is_loaded", &self.is_loaded()).finish()
    }
}

/// Everything about a loaded artifact.
pub(crate) struct Loaded {
    pub(crate) descriptor: Descriptor,
    pub(crate) modules: Vec<Module>,
    /// The code ranges, in the descriptor's order.
    texts: Vec<Text>,
    /// Where each defined function's code lies, by address.
    functions: Vec<CodeOfFunction>,
    /// The descriptor's blob, within `code`.
    blob: Range<usize>,
    /// Unwind information, and a table to find it by, within `code`.
    eh_frame: Option<Range<usize>>,
    eh_frame_hdr: Option<Range<usize>>,
    lines: Option<Lines>,
    code_bytes: usize,
    code: CodeRange,
}

/// A code range at its address.
struct Text {
    addresses: Range<usize>,
    rows: Vec<TrapRow>,
}

/// Code of a defined function.
#[derive(Clone, Debug)]
pub(crate) struct CodeOfFunction {
    pub(crate) addresses: Range<usize>,
    pub(crate) module: u32,
    /// Index in the module's function space.
    pub(crate) function: u32,
}

impl Artifact {
    /// Whether both are one, loaded once.
    pub(crate) fn is(&self, other: &Artifact) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Parses, checks and maps an artifact. The bytes are not needed afterwards.
    ///
    /// # Errors
    /// When anything about it is not as it must be; then nothing is mapped.
    pub fn load(bytes: &[u8], policy: &LoadPolicy) -> Result<Artifact, LoadError> {
        const ALIGN: usize = 8;
        let copy;
        let bytes = if (bytes.as_ptr() as usize).is_multiple_of(ALIGN) {
            bytes
        } else {
            // ELF's tables are read in place.
            copy = aligned(bytes);
            &copy[copy.len() - bytes.len()..]
        };
        // The order matters: nothing is mapped before all is checked, and what is checked are these bytes, which are private to this call. A file
        // that changes meanwhile changes nothing here.
        let elf = elf::parse(bytes)?;
        let (descriptor_at, section) = elf.descriptor;
        let raw = Raw::parse(section).map_err(|error| match error {
            DescriptorError::AbiVersion { found } => LoadError::AbiVersion { found },
            other => LoadError::rejected(other.to_string()),
        })?;
        if raw.payload.len() > DESCRIPTOR_BYTES_MAX || raw.texts.len() > TEXTS_MAX {
            return Err(LoadError::rejected("its descriptor is too large"));
        }
        let descriptor = raw.decode().map_err(|error| LoadError::rejected(error.to_string()))?;
        cpu::check(&descriptor.cpu_features)?;
        let ranges = text_ranges(&elf, descriptor_at, &raw)?;
        check::check(&descriptor, &raw.texts, raw.blob, policy)?;
        // Behind the checks, since ids are never given back: what is refused must not use them up.
        let type_ids = descriptor.modules.iter().map(types::canonical_ids).collect::<Option<Vec<_>>>();
        let type_ids = type_ids.ok_or_else(|| LoadError::rejected("this process knows too many function types already"))?;

        let parts = elf.segments.iter();
        let parts = parts.map(|s| Part { start: s.start, bytes: s.bytes, executable: s.executable }).collect::<Vec<_>>();
        let code = CodeRange::map(elf.span, &parts).map_err(LoadError::OutOfMemory)?;
        let base = code.address();
        let texts = raw
            .texts
            .iter()
            .zip(ranges)
            .map(|(text, range)| Text { addresses: base + range.start..base + range.end, rows: text.trap_rows().collect() });
        let texts = texts.collect::<Vec<_>>();
        let address = |code: CodeRef| texts[code.text as usize].addresses.start + code.offset as usize;
        let modules = descriptor.modules.iter().zip(type_ids).map(|(module, ids)| Module::new(module, ids, address)).collect();
        let functions = functions_by_address(&descriptor, address);
        let blob_at = descriptor_at + (raw.blob.as_ptr() as usize - section.as_ptr() as usize);
        // All of the descriptor but its blob was decoded above: in a large artifact megabytes of trap tables and names.
        for range in [descriptor_at..blob_at, blob_at + raw.blob.len()..descriptor_at + section.len()] {
            // SAFETY: The descriptor is read-only data of one segment. `Raw` has it from the file, and nothing has a reference to its copy.
            unsafe { code.discard(range) };
        }
        Ok(Artifact(Arc::new(Loaded {
            blob: blob_at..blob_at + raw.blob.len(),
            eh_frame: elf.eh_frame.clone(),
            eh_frame_hdr: elf.eh_frame_hdr.clone(),
            lines: elf.lines,
            code_bytes: parts.iter().filter(|part| part.executable).map(|part| part.bytes.len()).sum(),
            descriptor,
            modules,
            texts,
            functions,
            code,
        })))
    }

    /// Loads an artifact from a file.
    ///
    /// # Errors
    /// As [`Artifact::load`], naming the file.
    pub fn open(path: &Path, policy: &LoadPolicy) -> Result<Artifact, LoadError> {
        let in_file = |source| LoadError::File { path: path.to_path_buf(), source: Box::new(source) };
        let mut bytes = Vec::new();
        // A larger one is refused below.
        let read = File::open(path).and_then(|file| file.take(ARTIFACT_BYTES_MAX + 1).read_to_end(&mut bytes));
        read.map_err(|error| in_file(LoadError::Read(error)))?;
        Artifact::load(&bytes, policy).map_err(in_file)
    }

    /// What the artifact says of itself.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        &self.0.descriptor
    }

    /// Bytes of executable code.
    #[must_use]
    pub fn code_bytes(&self) -> usize {
        self.0.code_bytes
    }

    /// Bytes of addresses that code, read-only data, descriptor and the initial contents of memories take. The descriptor's take no memory after loading.
    #[must_use]
    pub fn mapped_bytes(&self) -> usize {
        self.0.code.bytes()
    }

    /// A handle that tells when it is gone.
    #[must_use]
    pub fn downgrade(&self) -> WeakArtifact {
        WeakArtifact(Arc::downgrade(&self.0))
    }

    /// What address 0 of its file has become.
    #[must_use]
    pub fn address(&self) -> usize {
        self.0.code.address()
    }

    /// Where the code of its functions lies, and their names as in backtraces, by ascending address.
    pub fn functions(&self) -> impl Iterator<Item = (Range<usize>, String)> + '_ {
        self.0.functions.iter().map(|function| {
            let name = self.0.name(function.module, function.function);
            (function.addresses.clone(), name.unwrap_or_else(|| format!("function {}", function.function)))
        })
    }

    /// Its insides.
    pub(crate) fn loaded(&self) -> &Loaded {
        &self.0
    }
}

impl fmt::Debug for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Artifact({:?})", self.0.code)
    }
}

/// A copy that ends at the end of an aligned buffer's bytes, and begins at an address divisible by 8.
fn aligned(bytes: &[u8]) -> Vec<u8> {
    let mut copy = Vec::with_capacity(bytes.len() + 8);
    let skip = (copy.as_ptr() as usize).wrapping_neg() % 8;
    copy.resize(skip, 0);
    copy.extend_from_slice(bytes);
    copy
}

/// Where the code ranges lie, as addresses in the file: in executable segments, and none over another.
fn text_ranges(elf: &elf::Elf<'_>, descriptor_at: usize, raw: &Raw<'_>) -> Result<Vec<Range<usize>>, LoadError> {
    let outside = || LoadError::rejected("a code range lies outside of the executable segments");
    let mut ranges = Vec::with_capacity(raw.texts.len());
    for text in &raw.texts {
        let start = i64::try_from(descriptor_at).ok().and_then(|at| at.checked_add(text.start)).ok_or_else(outside)?;
        let start = usize::try_from(start).map_err(|_| outside())?;
        let end = usize::try_from(text.bytes).ok().and_then(|bytes| start.checked_add(bytes)).ok_or_else(outside)?;
        if !(start == end || elf.is_code(&(start..end))) {
            return Err(outside());
        }
        ranges.push(start..end);
    }
    let mut sorted = ranges.clone();
    sorted.sort_by_key(|range| (range.start, range.end));
    if sorted.windows(2).any(|pair| pair[0].end > pair[1].start) {
        return Err(LoadError::rejected("code ranges overlap"));
    }
    Ok(ranges)
}

fn functions_by_address(descriptor: &Descriptor, address: impl Fn(CodeRef) -> usize) -> Vec<CodeOfFunction> {
    let mut functions = Vec::new();
    for (module_index, module) in descriptor.modules.iter().enumerate() {
        let imported = module.imported_functions();
        for (i, function) in module.functions.iter().enumerate() {
            if let Some(code) = function.code {
                let start = address(code);
                functions.push(CodeOfFunction {
                    addresses: start..start + function.code_bytes as usize,
                    module: module_index as u32,
                    function: imported + i as u32,
                });
            }
        }
    }
    functions.sort_by_key(|function| function.addresses.start);
    functions
}

impl Loaded {
    /// Bytes of the descriptor's blob; data segments were checked to lie within.
    pub(crate) fn blob(&self) -> &[u8] {
        // SAFETY: The loader found the descriptor's section within one segment, and the blob within the section.
        unsafe { self.code.slice(self.blob.clone()) }
    }

    /// The unwind information and its address.
    pub(crate) fn eh_frame(&self) -> Option<(&[u8], usize)> {
        self.section(self.eh_frame.clone()?)
    }

    /// The table of the unwind information and its address.
    pub(crate) fn eh_frame_hdr(&self) -> Option<(&[u8], usize)> {
        self.section(self.eh_frame_hdr.clone()?)
    }

    fn section(&self, range: Range<usize>) -> Option<(&[u8], usize)> {
        let address = self.code.address() + range.start;
        // SAFETY: The loader found the section within one segment.
        Some((unsafe { self.code.slice(range) }, address))
    }

    /// Whether an address lies in one of the code ranges.
    pub(crate) fn is_code(&self, address: usize) -> bool {
        self.texts.iter().any(|text| text.addresses.contains(&address))
    }

    /// The row of the trap table that an address belongs to: the last at or before it in its code range, or in its function, if it is in one.
    pub(crate) fn trap_row(&self, address: usize) -> Option<TrapRow> {
        let text = self.texts.iter().find(|text| text.addresses.contains(&address))?;
        let offset = (address - text.addresses.start) as u32;
        let after = text.rows.partition_point(|row| row.code_offset <= offset);
        let row = text.rows.get(after.checked_sub(1)?)?;
        let function = self.function_at(address).map_or(0, |function| function.addresses.start);
        (text.addresses.start + row.code_offset as usize >= function).then_some(*row)
    }

    /// The source line of a place in a WebAssembly module that has a row in the trap table, if the artifact knows lines.
    pub(crate) fn source(&self, module: u32, wasm_offset: u32) -> Option<String> {
        let lines = self.lines.as_ref()?;
        let wasm_offset = self.descriptor.modules.get(module as usize)?.wasm_base.checked_add(wasm_offset)?;
        let in_text = |text: &Text| {
            let row = text.rows.iter().find(|row| row.wasm_offset == wasm_offset)?;
            Some(text.addresses.start + row.code_offset as usize)
        };
        let address = self.texts.iter().find_map(in_text)?;
        lines.at((address - self.code.address()) as u64)
    }

    /// The name of a function that it defines, demangled.
    pub(crate) fn name(&self, module: u32, function: u32) -> Option<String> {
        let module = &self.descriptor.modules[module as usize];
        let defined = (function - module.imported_functions()) as usize;
        module.functions[defined].name.as_deref().map(|name| format!("{:#}", rustc_demangle::demangle(name)))
    }

    /// The function whose code an address lies in.
    pub(crate) fn function_at(&self, address: usize) -> Option<&CodeOfFunction> {
        let after = self.functions.partition_point(|function| function.addresses.start <= address);
        self.functions.get(after.checked_sub(1)?).filter(|function| function.addresses.contains(&address))
    }

    /// The place in a module for which an offset of the trap table stands; none where it lies in no function's body.
    pub(crate) fn place(&self, wasm_offset: u32) -> Option<WasmLocation> {
        let (module, offset) = self.descriptor.place(wasm_offset)?;
        let module = module as u32;
        Some(WasmLocation { module, function: self.function_of_wasm_offset(module, offset)?, offset })
    }

    /// Where the functions were called that the code at an address became part of, innermost first, as far as it is known.
    pub(crate) fn inlined_at(&self, address: usize) -> Vec<WasmLocation> {
        let Some(index) = self.texts.iter().position(|text| text.addresses.contains(&address)) else { return Vec::new() };
        let start = self.texts[index].addresses.start;
        let function = self.function_at(address).map_or(start, |function| function.addresses.start);
        let calls = self.descriptor.inlined_at(index as u32, (function - start) as u32, (address - start) as u32);
        calls.into_iter().map_while(|call| self.place(call)).collect()
    }

    /// The defined function of a module in whose body an offset into the WebAssembly module lies: its index in the function space.
    pub(crate) fn function_of_wasm_offset(&self, module: u32, offset: u32) -> Option<u32> {
        let info = self.modules.get(module as usize)?;
        let functions = &self.descriptor.modules[module as usize].functions;
        let after = functions.partition_point(|function| function.wasm_start <= offset);
        let index = after.checked_sub(1).filter(|&i| offset < functions[i].wasm_end)?;
        Some(info.imported_functions + index as u32)
    }
}
