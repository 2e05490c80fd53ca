//! An artifact as an ELF file: which bytes belong where, and nothing that a dynamic linker would have to do.
//!
//! Artifacts need no relocation and have nothing writable, so what is allowed is little; everything else is refused. Only program headers decide
//! what is mapped. Sections are used to find the descriptor and the unwind information, and are checked against the segments.

use std::ops::Range;

use awsm_abi::cpu::Arch;
use awsm_abi::limits::ARTIFACT_BYTES_MAX;
use awsm_abi::{DESCRIPTOR_SECTION, DESCRIPTOR_SYMBOL};
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, Sym};

use super::lines::Lines;
use crate::error::LoadError;
use crate::limits::{PROGRAM_HEADERS_MAX, SECTIONS_MAX};
use crate::sys::page::page_bytes;

/// A checked ELF file.
pub(super) struct Elf<'a> {
    /// What is mapped, by ascending address, each beginning on pages of its own.
    pub(super) segments: Vec<Segment<'a>>,
    /// Bytes from address 0 to the end of the last segment.
    pub(super) span: usize,
    /// Address and bytes of the descriptor's section; in a segment that is not executable.
    pub(super) descriptor: (usize, &'a [u8]),
    /// Addresses of the unwind information; in a segment.
    pub(super) eh_frame: Option<Range<usize>>,
    /// Addresses of the table by which it is searched; in a segment.
    pub(super) eh_frame_hdr: Option<Range<usize>>,
    /// Source lines of the code; not in any segment.
    pub(super) lines: Option<Lines>,
}

/// A segment to be mapped.
pub(super) struct Segment<'a> {
    pub(super) start: usize,
    pub(super) bytes: &'a [u8],
    pub(super) executable: bool,
}

impl Segment<'_> {
    fn addresses(&self) -> Range<usize> {
        self.start..self.start + self.bytes.len()
    }

    fn holds(&self, range: &Range<usize>) -> bool {
        self.start <= range.start && range.start <= range.end && range.end <= self.addresses().end
    }
}

impl Elf<'_> {
    /// Whether the addresses lie within one executable segment.
    pub(super) fn is_code(&self, range: &Range<usize>) -> bool {
        self.segments.iter().any(|segment| segment.executable && segment.holds(range))
    }
}

/// Parses and checks. `data` is aligned to 8.
pub(super) fn parse(data: &[u8]) -> Result<Elf<'_>, LoadError> {
    check_kind(data)?;
    let malformed = |what: &'static str| move |error| LoadError::rejected(format!("{what}: {error}"));
    let header = FileHeader64::<LE>::parse(data).map_err(malformed("the ELF header"))?;
    let program_headers = header.program_headers(LE, data).map_err(|_| truncated("the program header table", data))?;
    if program_headers.len() > PROGRAM_HEADERS_MAX {
        return Err(LoadError::rejected("too many program headers"));
    }
    let sections = header.sections(LE, data).map_err(|_| truncated("the section header table", data))?;
    if sections.len() > SECTIONS_MAX {
        return Err(LoadError::rejected("too many sections"));
    }
    // Before anything is called wrong with it: is it awsm's at all?
    let is_descriptor = |section| sections.section_name(LE, section).is_ok_and(|name| name == DESCRIPTOR_SECTION.as_bytes());
    if !sections.iter().any(is_descriptor) {
        return Err(LoadError::Foreign { what: format!("an ELF file without awsm's section `{DESCRIPTOR_SECTION}`") });
    }
    for program_header in program_headers {
        check_program_header(program_header, data)?;
    }
    let segments = segments(program_headers, data)?;
    let span = segments.last().map_or(0, |segment| segment.addresses().end);

    let mut elf = Elf { segments, span, descriptor: (0, &[]), eh_frame: None, eh_frame_hdr: None, lines: None };
    let mut descriptor = None;
    let mut debug = Vec::new();
    for section in sections.iter() {
        check_section(section)?;
        match sections.section_name(LE, section) {
            Ok(name) if name == DESCRIPTOR_SECTION.as_bytes() => descriptor = Some(loaded(&elf, section, data)?),
            Ok(b".eh_frame") => elf.eh_frame = Some(loaded(&elf, section, data)?),
            Ok(b".eh_frame_hdr") => elf.eh_frame_hdr = Some(loaded(&elf, section, data)?),
            Ok(name) if name.starts_with(b".debug_") => debug.extend(section.data(LE, data).map(|data| (name, data))),
            _ => {}
        }
    }
    elf.lines = Lines::read(|name| debug.iter().find(|(other, _)| *other == name.as_bytes()).map_or(&[], |(_, data)| *data));
    let exported = exported(&sections.symbols(LE, data, elf::SHT_DYNSYM).map_err(malformed("the dynamic symbols"))?)?;
    let Some(range) = descriptor.filter(|range| Some(range.start as u64) == exported) else {
        return Err(LoadError::Foreign {
            what: format!("a shared object without awsm's descriptor (symbol `{DESCRIPTOR_SYMBOL}`)"),
        });
    };
    let home = elf.segments.iter().find(|segment| segment.holds(&range) && !segment.executable);
    let home = home.ok_or_else(|| LoadError::rejected("the descriptor lies among code"))?;
    elf.descriptor = (range.start, &home.bytes[range.start - home.start..range.end - home.start]);
    Ok(elf)
}

fn truncated(what: &'static str, data: &[u8]) -> LoadError {
    LoadError::Truncated { what, bytes: data.len() }
}

/// Tells what is no artifact for this machine at all, by the first bytes.
fn check_kind(data: &[u8]) -> Result<(), LoadError> {
    const IDENT_BYTES: usize = 16;
    if !data.starts_with(b"\x7fELF") {
        let hint = match data {
            [] => " (the file is empty)",
            [0, b'a', b's', b'm', ..] => " but a WebAssembly module; run `awsm compile` on it first",
            _ => "; give a .so made by `awsm compile`",
        };
        return Err(LoadError::NotElf { hint });
    }
    if data.len() as u64 > ARTIFACT_BYTES_MAX {
        return Err(LoadError::rejected(format!("{} bytes, and artifacts have at most {ARTIFACT_BYTES_MAX}", data.len())));
    }
    if data.len() < size_of::<FileHeader64<LE>>() {
        return Err(truncated("the ELF header", data));
    }
    let foreign = |what: String| Err(LoadError::Foreign { what });
    if data[4] != 2 {
        return foreign("an ELF file of another class than 64 bits".to_string());
    }
    if data[5] != 1 {
        return foreign("a big-endian ELF file".to_string());
    }
    let half = |at: usize| u16::from_le_bytes([data[at], data[at + 1]]);
    let (kind, machine) = (half(IDENT_BYTES), half(IDENT_BYTES + 2));
    if kind != elf::ET_DYN.0 {
        let name = match kind {
            1 => "a relocatable object",
            2 => "an executable",
            4 => "a core dump",
            _ => "of an unknown kind",
        };
        return foreign(format!("an ELF file that is no shared object but {name}"));
    }
    let arch = match elf::Machine(machine) {
        elf::EM_X86_64 => Some(Arch::X86_64),
        elf::EM_AARCH64 => Some(Arch::Aarch64),
        _ => None,
    };
    if arch != Some(Arch::HOST) {
        let made_for = arch.map_or_else(|| format!("processor number {machine}"), |arch| arch.name().to_string());
        return foreign(format!("made for {made_for}, this machine is {}", Arch::HOST.name()));
    }
    Ok(())
}

/// Refuses what would need a dynamic linker, or is a danger.
fn check_program_header(header: &ProgramHeader64<LE>, data: &[u8]) -> Result<(), LoadError> {
    let executable = header.p_flags(LE).0 & elf::PF_X.0 != 0;
    match header.p_type(LE) {
        elf::PT_LOAD | elf::PT_NULL | elf::PT_PHDR | elf::PT_NOTE | elf::PT_GNU_EH_FRAME | elf::PT_GNU_PROPERTY => Ok(()),
        // A declaration of what a linker would protect; there is nothing to protect, since nothing is ever writable.
        elf::PT_GNU_RELRO => Ok(()),
        elf::PT_GNU_STACK if !executable => Ok(()),
        elf::PT_GNU_STACK => Err(LoadError::rejected("it asks for an executable stack")),
        elf::PT_TLS => Err(LoadError::rejected("it has thread-local variables")),
        elf::PT_INTERP => Err(LoadError::rejected("it asks for a dynamic linker")),
        elf::PT_DYNAMIC => {
            let entries = header.dynamic(LE, data).map_err(|_| truncated("the dynamic section", data))?;
            entries.unwrap_or_default().iter().try_for_each(|entry| check_dynamic(entry.tag(LE), entry.val(LE)))
        }
        other => Err(LoadError::rejected(format!("a segment of unknown type {:#x}", other.0))),
    }
}

fn check_dynamic(tag: elf::DynamicTag, value: u64) -> Result<(), LoadError> {
    const TEXTREL: u64 = 4;
    let what = match tag {
        elf::DT_NEEDED => "it needs another library",
        elf::DT_REL | elf::DT_RELA | elf::DT_RELR | elf::DT_JMPREL | elf::DT_PLTGOT => "it needs relocation",
        elf::DT_RELSZ | elf::DT_RELASZ | elf::DT_RELRSZ | elf::DT_PLTRELSZ if value != 0 => "it needs relocation",
        elf::DT_INIT | elf::DT_INIT_ARRAY | elf::DT_PREINIT_ARRAY => "it has a constructor",
        elf::DT_FINI | elf::DT_FINI_ARRAY => "it has a destructor",
        elf::DT_TEXTREL => "it wants its code relocated",
        elf::DT_FLAGS if value & TEXTREL != 0 => "it wants its code relocated",
        _ => return Ok(()),
    };
    Err(LoadError::rejected(what))
}

/// The segments to map: read-only or executable, whole, and each on pages of its own.
fn segments<'a>(headers: &[ProgramHeader64<LE>], data: &'a [u8]) -> Result<Vec<Segment<'a>>, LoadError> {
    let mut segments: Vec<Segment<'a>> = Vec::new();
    let page = page_bytes();
    let mut pages_end = 0;
    for header in headers.iter().filter(|header| header.p_type(LE) == elf::PT_LOAD) {
        let flags = header.p_flags(LE).0;
        if flags & elf::PF_W.0 != 0 {
            return Err(LoadError::rejected("it has a writable segment"));
        }
        let (start, bytes) = (header.p_vaddr(LE), header.p_memsz(LE));
        if bytes != header.p_filesz(LE) {
            return Err(LoadError::rejected("a segment is longer in memory than in the file"));
        }
        let contents = header.data(LE, data).map_err(|()| truncated("a segment", data))?;
        let end = start.checked_add(bytes).filter(|&end| end <= ARTIFACT_BYTES_MAX);
        let end = end.ok_or_else(|| LoadError::rejected("a segment lies beyond the size that artifacts may have"))?;
        if contents.is_empty() {
            continue;
        }
        // Both fit: they are at most ARTIFACT_BYTES_MAX.
        let (start, end) = (start as usize, end as usize);
        if start < pages_end {
            return Err(LoadError::rejected("segments overlap or are out of order"));
        }
        pages_end = end.next_multiple_of(page);
        segments.push(Segment { start, bytes: contents, executable: flags & elf::PF_X.0 != 0 });
        // The next may not begin on the same page, since pages have one protection.
    }
    if segments.is_empty() {
        return Err(LoadError::rejected("it has no segments"));
    }
    Ok(segments)
}

fn check_section(section: &SectionHeader64<LE>) -> Result<(), LoadError> {
    let what = match section.sh_type(LE) {
        elf::SHT_REL | elf::SHT_RELA | elf::SHT_RELR | elf::SHT_CREL => "it needs relocation",
        elf::SHT_INIT_ARRAY | elf::SHT_PREINIT_ARRAY => "it has a constructor",
        elf::SHT_FINI_ARRAY => "it has a destructor",
        _ => return Ok(()),
    };
    if section.sh_size(LE) == 0 { Ok(()) } else { Err(LoadError::rejected(what)) }
}

/// Addresses of a section, whose bytes must be those that are mapped there.
fn loaded(elf: &Elf<'_>, section: &SectionHeader64<LE>, data: &[u8]) -> Result<Range<usize>, LoadError> {
    let contradicts = || LoadError::rejected("a section contradicts the segments");
    let start = usize::try_from(section.sh_addr(LE)).map_err(|_| contradicts())?;
    let bytes = section.data(LE, data).map_err(|_| truncated("a section", data))?;
    let range = start..start.checked_add(bytes.len()).ok_or_else(contradicts)?;
    let segment = elf.segments.iter().find(|segment| segment.holds(&range)).ok_or_else(contradicts)?;
    let mapped = &segment.bytes[range.start - segment.start..range.end - segment.start];
    // The same place in the file, not merely equal bytes: comparing addresses costs nothing.
    if std::ptr::eq(mapped, bytes) { Ok(range) } else { Err(contradicts()) }
}

/// Address of the descriptor's symbol, the only one that may be there.
fn exported(symbols: &object::read::elf::SymbolTable<'_, FileHeader64<LE>>) -> Result<Option<u64>, LoadError> {
    let mut descriptor = None;
    for symbol in symbols.iter().skip(1) {
        let name = symbol.name(LE, symbols.strings()).unwrap_or(b"?");
        let what = match symbol.st_type() {
            _ if symbol.st_shndx(LE) == elf::SHN_UNDEF => "an undefined symbol",
            elf::STT_GNU_IFUNC => "an indirect function",
            elf::STT_TLS => "a thread-local variable",
            _ if name == DESCRIPTOR_SYMBOL.as_bytes() && descriptor.is_none() => {
                descriptor = Some(symbol.st_value(LE));
                continue;
            }
            _ => "an exported symbol that artifacts do not have",
        };
        return Err(LoadError::rejected(format!("{what}, `{}`", String::from_utf8_lossy(name).escape_debug())));
    }
    Ok(descriptor)
}
