//! Artifacts: the rules of the format, and what the descriptor says.

use awsm::{Arch, Bounds, CompileOptions, Cpu, OptLevel, Program};
use awsm_abi::descriptor::{Descriptor, ImportType, Raw, TrapRow};
use awsm_abi::{DESCRIPTOR_SECTION, DESCRIPTOR_SYMBOL, TrapCode};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, elf};

use super::{compile, options};

const MODULE: &str = r#"(module $sample
  (import "env" "log" (func $log (param i32)))
  (import "env" "base" (global $base i32))
  (memory (export "memory") 1 4)
  (table (export "table") 2 funcref)
  (elem (i32.const 0) $add $log)
  (global $count (mut i64) (i64.const 7))
  (data (i32.const 8) "hello")
  (data "passive")
  (func $add (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
  (func $inlined (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3)))
  (func (export "triple") (param i32) (result i32) (call $inlined (local.get 0)))
  (func (export "load") (param i32) (result i32) (i32.load offset=4 (local.get 0)))
  (func (export "divide") (param i32 i32) (result i32) (i32.div_u (local.get 0) (local.get 1)))
  (func (export "fill") (param i32 i32 i32) (memory.fill (local.get 0) (local.get 1) (local.get 2)))
  (func (export "copy") (param i32 i32 i32) (memory.copy (local.get 0) (local.get 1) (local.get 2))))"#;

struct Parsed {
    descriptor: Descriptor,
    /// Of each code range: its address in the file, its size, its rows.
    texts: Vec<(u64, u64, Vec<TrapRow>)>,
    blob: Vec<u8>,
}

fn parse(artifact: &[u8]) -> Parsed {
    let file = object::File::parse(artifact).unwrap();
    let section = file.section_by_name(DESCRIPTOR_SECTION).unwrap();
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(DESCRIPTOR_SYMBOL)).unwrap();
    assert_eq!(symbol.address(), section.address(), "the symbol is the section's start");
    let raw = Raw::parse(section.data().unwrap()).unwrap();
    let texts = raw.texts.iter();
    let texts = texts.map(|text| (section.address().wrapping_add_signed(text.start), text.bytes, text.trap_rows().collect()));
    Parsed { descriptor: raw.decode().unwrap(), texts: texts.collect(), blob: raw.blob.to_vec() }
}

/// Every rule that a loader relies on, checked without the code that the compiler checks itself with.
fn assert_rules(artifact: &[u8]) {
    let file = ElfFile64::<LittleEndian>::parse(artifact).unwrap();
    let endian = LittleEndian;
    for header in file.elf_program_headers() {
        assert_ne!(header.p_type(endian), elf::PT_TLS);
        assert_eq!(header.p_flags(endian).0 & elf::PF_W.0 & if header.p_type(endian) == elf::PT_LOAD { !0 } else { 0 }, 0);
    }
    let sections = file.elf_header().sections(endian, artifact).unwrap();
    let (entries, _) = sections.dynamic(endian, artifact).unwrap().unwrap();
    let allowed = [elf::DT_SYMTAB, elf::DT_SYMENT, elf::DT_STRTAB, elf::DT_STRSZ, elf::DT_GNU_HASH, elf::DT_NULL];
    for entry in entries {
        assert!(allowed.contains(&entry.d_tag(endian)), "dynamic entry {:?}", entry.d_tag(endian));
    }
    let exported: Vec<_> = file.dynamic_symbols().map(|symbol| symbol.name().unwrap().to_owned()).collect();
    assert_eq!(exported, [DESCRIPTOR_SYMBOL]);
    for section in file.sections() {
        let name = section.name().unwrap();
        assert!(!name.starts_with(".rel") && !name.starts_with(".debug"), "section {name}");
    }
    assert!(file.section_by_name(".eh_frame_hdr").is_some());
    assert!(file.symbols().any(|symbol| symbol.name() == Ok("wasm[1]::add")), "names are there for debuggers");
}

#[test]
fn artifacts_keep_the_rules_in_every_mode() {
    for bounds in [Bounds::Guard, Bounds::Software, Bounds::None] {
        for opt_level in [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3] {
            for (arch, cpu) in [(Arch::HOST, Cpu::Native), (Arch::X86_64, Cpu::Baseline), (Arch::Aarch64, Cpu::Baseline)] {
                let artifact = compile(MODULE, &CompileOptions { bounds, arch, opt_level, cpu, ..options() });
                assert_rules(&artifact);
                assert!(artifact.len() < 64 << 10, "{} bytes for a small module", artifact.len());
                assert_eq!(parse(&artifact).descriptor.arch, arch);
            }
        }
    }
}

#[test]
fn an_empty_module_is_an_artifact() {
    let artifact = compile("(module)", &options());
    let parsed = parse(&artifact);
    assert_eq!(parsed.descriptor.modules.len(), 1);
    assert_eq!(parsed.descriptor.plan.len(), 1);
}

#[test]
fn the_descriptor_says_what_the_module_says() {
    let parsed = parse(&compile(MODULE, &options()));
    let module = &parsed.descriptor.modules[0];
    assert_eq!(module.name.as_deref(), Some("sample"));
    assert!(matches!(module.imports[0].ty, ImportType::Function { .. }));
    assert!(matches!(module.imports[1].ty, ImportType::Global(_)));
    assert_eq!(module.memories[0].ty.pages_max, Some(4));
    assert_eq!(module.bounds, [Bounds::Guard]);
    assert_eq!(module.export("divide").unwrap().index, 5);
    assert_eq!(module.data[1].bytes, 7);
    assert_eq!(parsed.blob, b"hellopassive");
    let names: Vec<_> = module.functions.iter().map(|function| function.name.as_deref()).collect();
    assert_eq!(names[..3], [Some("add"), Some("inlined"), Some("triple")]);
    assert!(parsed.descriptor.cpu_features.iter().any(|feature| feature == "avx512f"));
}

#[test]
fn what_is_inlined_everywhere_is_dropped_and_what_escapes_is_not() {
    let module = &parse(&compile(MODULE, &options())).descriptor.modules[0];
    assert_eq!(module.functions[1].code, None, "the function that only one other calls");
    assert!(module.functions.iter().enumerate().all(|(index, function)| index == 1 || function.code.is_some()));
    let unoptimised = CompileOptions { opt_level: OptLevel::O0, ..options() };
    let module = &parse(&compile(MODULE, &unoptimised)).descriptor.modules[0];
    assert!(module.functions.iter().all(|function| function.code.is_some()));
}

#[test]
fn types_have_entries_where_their_functions_can_be_called_from_outside() {
    let text = r#"(module
      (type $a (func (param i32))) (type $b (func (param i64))) (type $same (func (param i32)))
      (func (export "f") (type $a)) (func (type $b)) (func (export "g") (type $same)))"#;
    let module = &parse(&compile(text, &options())).descriptor.modules[0];
    assert!(module.types[0].entry.is_some());
    assert!(module.types[1].entry.is_none());
    assert_eq!(module.types[0].entry, module.types[2].entry, "types equal in structure share their entry");
}

#[test]
fn every_place_lies_in_its_code_range() {
    let artifact = compile(MODULE, &options());
    let Parsed { descriptor, texts, .. } = parse(&artifact);
    let file = object::File::parse(artifact.as_slice()).unwrap();
    let text = file.section_by_name(".text").unwrap();
    for (start, bytes, rows) in &texts {
        assert!(*start >= text.address() && start + bytes <= text.address() + text.size());
        assert!(rows.is_sorted_by(|a, b| a.code_offset < b.code_offset), "rows are sorted");
        assert!(rows.iter().all(|row| u64::from(row.code_offset) < *bytes));
    }
    for function in &descriptor.modules[0].functions {
        let Some(code) = function.code else { continue };
        let (start, bytes, _) = &texts[code.text as usize];
        assert!(u64::from(code.offset) + u64::from(function.code_bytes) <= *bytes);
        let symbol = file.symbols().find(|symbol| symbol.address() == start + u64::from(code.offset) && symbol.size() > 0);
        assert!(symbol.unwrap().name().unwrap().contains(function.name.as_deref().unwrap()));
    }
}

#[test]
fn the_trap_table_says_where_and_why() {
    let Parsed { descriptor, texts, .. } = parse(&compile(MODULE, &options()));
    for (name, trap) in [("load", TrapCode::MemoryOutOfBounds), ("divide", TrapCode::IntegerDivideByZero)] {
        let module = &descriptor.modules[0];
        let index = module.export(name).unwrap().index - module.imported_functions();
        let function = &module.functions[index as usize];
        let code = function.code.unwrap();
        let own = code.offset..code.offset + function.code_bytes;
        let rows: Vec<_> = texts[code.text as usize].2.iter().filter(|row| own.contains(&row.code_offset)).collect();
        let row = rows.iter().find(|row| row.trap == trap.number()).unwrap_or_else(|| panic!("{name} has no row: {rows:?}"));
        assert!((function.wasm_start..function.wasm_end).contains(&row.wasm_offset));
    }
}

#[test]
fn helpers_are_there_only_if_needed_and_covered() {
    let none = parse(&compile(r#"(module (func (export "f")))"#, &options()));
    assert_eq!(none.texts.len(), 1);
    let both = parse(&compile(MODULE, &options()));
    assert_eq!(both.texts.len(), 2);
    let (_, _, rows) = &both.texts[1];
    assert!(!rows.is_empty() && rows.iter().all(|row| row.trap == TrapCode::MemoryOutOfBounds.number()));
}

#[test]
fn rounding_without_an_instruction_for_it_is_inside_too() {
    let text = r#"(module (func (export "f") (param f64 f32) (result f64 f32)
      (f64.floor (f64.mul (f64.ceil (local.get 0)) (f64.trunc (local.get 0))))
      (f32.floor (f32.mul (f32.ceil (local.get 1)) (f32.mul (f32.trunc (local.get 1)) (f32.nearest (local.get 1)))))))"#;
    let baseline = CompileOptions { cpu: Cpu::Baseline, ..options() };
    assert_eq!(parse(&compile(text, &baseline)).texts.len(), 2);
    assert_eq!(parse(&compile(text, &options())).texts.len(), 1);
}

#[test]
fn names_may_be_anything() {
    let text = r#"(module (func (export "a@b \22\5c\00\ff") ) (func (export "") ) (func (export "wasm[0]::x")))"#;
    let wasm = wat::parse_str(text.replace("\\ff", "\\c3\\bf")).unwrap();
    let artifact = awsm::compile(&Program::single(&wasm), &options(), &()).unwrap();
    let module = &parse(&artifact).descriptor.modules[0];
    assert_eq!(module.functions[0].name.as_deref(), Some("a@b \"\\\0\u{ff}"));
}

#[test]
fn the_same_input_gives_the_same_artifact() {
    assert!(compile(MODULE, &options()) == compile(MODULE, &options()));
}
