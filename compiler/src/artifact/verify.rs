//! The rules that every artifact keeps, checked on the linked file. A loader checks them again; here a violation is found where it was made.

use awsm_abi::DESCRIPTOR_SYMBOL;
use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSymbol};

use crate::error::CompileError;

type File<'d> = ElfFile64<'d, LittleEndian>;

fn unreadable(error: object::Error) -> CompileError {
    CompileError::artifact(format_args!("not readable as ELF: {error}"))
}

/// Checks a linked artifact.
///
/// # Errors
/// [`CompileError::Artifact`] names the rule that it breaks.
pub(super) fn verify(artifact: &[u8]) -> Result<(), CompileError> {
    let file = File::parse(artifact).map_err(unreadable)?;
    segments(&file)?;
    dynamic(&file, artifact)?;
    symbols(&file)
}

fn segments(file: &File<'_>) -> Result<(), CompileError> {
    let endian = LittleEndian;
    for header in file.elf_program_headers() {
        let flags = header.p_flags(endian);
        let (writable, executable) = (flags.0 & elf::PF_W.0 != 0, flags.0 & elf::PF_X.0 != 0);
        let broken = match header.p_type(endian) {
            elf::PT_LOAD if writable => Some("a segment is writable"),
            elf::PT_GNU_STACK if executable => Some("the stack would be executable"),
            elf::PT_TLS => Some("it has thread-local storage"),
            elf::PT_INTERP => Some("it wants an interpreter"),
            _ => None,
        };
        if let Some(rule) = broken {
            return Err(CompileError::artifact(rule));
        }
    }
    Ok(())
}

fn dynamic(file: &File<'_>, data: &[u8]) -> Result<(), CompileError> {
    let endian = LittleEndian;
    let sections = file.elf_header().sections(endian, data).map_err(unreadable)?;
    let Some((entries, _)) = sections.dynamic(endian, data).map_err(unreadable)? else {
        return Err(CompileError::artifact("it has no dynamic section"));
    };
    for entry in entries {
        let broken = match entry.d_tag(endian) {
            elf::DT_NEEDED => "it needs another library",
            elf::DT_RELA | elf::DT_REL | elf::DT_RELR | elf::DT_JMPREL | elf::DT_TEXTREL => "it wants relocating",
            elf::DT_INIT | elf::DT_INIT_ARRAY | elf::DT_PREINIT_ARRAY => "it has constructors",
            elf::DT_FINI | elf::DT_FINI_ARRAY => "it has destructors",
            _ => continue,
        };
        return Err(CompileError::artifact(broken));
    }
    Ok(())
}

fn symbols(file: &File<'_>) -> Result<(), CompileError> {
    let mut exported = 0;
    for symbol in file.dynamic_symbols() {
        let name = symbol.name().unwrap_or("?");
        if symbol.is_undefined() {
            return Err(CompileError::artifact(format_args!("it leaves {name} undefined")));
        }
        if symbol.elf_symbol().st_type() == elf::STT_GNU_IFUNC {
            return Err(CompileError::artifact(format_args!("{name} is an indirect function")));
        }
        if name != DESCRIPTOR_SYMBOL {
            return Err(CompileError::artifact(format_args!("it exports {name}")));
        }
        exported += 1;
    }
    if exported == 1 { Ok(()) } else { Err(CompileError::artifact("it does not export its descriptor")) }
}
