//! Every limit of `awsm_abi::limits` that a module can reach: one more is refused with its name, the count, the limit and the place, before
//! anything of that size is made; the limit itself is not refused for it.

use awsm::{CompileError, Program};
use awsm_abi::limits as max;

use super::options;

/// A number as the binary format has it.
fn leb(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        bytes.push(if number == 0 { byte } else { byte | 0x80 });
        if number == 0 {
            return bytes;
        }
    }
}

fn section(id: u8, body: &[u8]) -> Vec<u8> {
    [&[id], leb(body.len() as u64).as_slice(), body].concat()
}

fn module(sections: &[Vec<u8>]) -> Vec<u8> {
    [b"\0asm\x01\0\0\0".as_slice(), &sections.concat()].concat()
}

/// A module of one function of type `() -> ()` with this body.
fn function(body: &[u8]) -> Vec<u8> {
    let code = [leb(1), leb(body.len() as u64), body.to_vec()].concat();
    module(&[section(1, &[1, 0x60, 0, 0]), section(3, &[1, 0]), section(10, &code)])
}

/// What a limit refused: its name, what was found, the limit. None where there was no such refusal.
fn refused(wasm: &[u8]) -> Option<(&'static str, u64, u64)> {
    match awsm::compile(&Program::single(wasm), &options(), &()) {
        Err(error @ CompileError::Limit { what, found, limit, offset }) => {
            let text = error.to_string();
            let place = format!("at offset {offset:#x}");
            assert!(text.contains(&place) && text.contains(what) && text.contains(&found.to_string()), "{text}");
            assert!(offset as usize <= wasm.len(), "{text}");
            Some((what, found, limit))
        }
        _ => None,
    }
}

/// The count stands at a section's beginning: nothing else is there to be read.
#[test]
fn a_section_that_promises_too_much_is_refused_before_it_is_read() {
    for (id, what, limit) in [
        (1, "types", max::TYPES_MAX),
        (2, "imports", max::IMPORTS_MAX),
        (3, "functions", max::FUNCTIONS_MAX),
        (4, "tables", max::MEMORIES_MAX),
        (5, "memories", max::MEMORIES_MAX),
        (6, "globals", max::GLOBALS_MAX),
        (7, "exports", max::EXPORTS_MAX),
        (9, "element segments", max::SEGMENTS_MAX),
        (11, "data segments", max::SEGMENTS_MAX),
    ] {
        for found in [limit as u64 + 1, u64::from(u32::MAX)] {
            assert_eq!(refused(&module(&[section(id, &leb(found))])), Some((what, found, limit as u64)));
        }
        assert_eq!(refused(&module(&[section(id, &leb(limit as u64))])), None, "{what}");
    }
}

#[test]
fn imports_and_definitions_are_counted_together() {
    let imports = |count: usize, kind: &[u8]| {
        let one = [b"\x01m\x01n".as_slice(), kind].concat();
        section(2, &[leb(count as u64), one.repeat(count)].concat())
    };
    let limit = max::MEMORIES_MAX as u64;
    let tables = [imports(max::MEMORIES_MAX, &[1, 0x70, 0, 1]), section(4, &[1, 0x70, 0, 1])];
    assert_eq!(refused(&module(&tables)), Some(("tables", limit + 1, limit)));
    let memories = [imports(max::MEMORIES_MAX, &[2, 0, 1]), section(5, &[1, 0, 1])];
    assert_eq!(refused(&module(&memories)), Some(("memories", limit + 1, limit)));
    let mut functions = vec![section(1, &[1, 0x60, 0, 0]), imports(2, &[0, 0])];
    functions.push(section(3, &leb(max::FUNCTIONS_MAX as u64 - 1)));
    let limit = max::FUNCTIONS_MAX as u64;
    assert_eq!(refused(&module(&functions)), Some(("functions", limit + 1, limit)));
}

#[test]
fn functions_are_limited_in_every_respect() {
    let locals = |count: u64| [leb(1), leb(count), vec![0x7f, 0x0b]].concat();
    let limit = max::LOCALS_MAX as u64;
    assert_eq!(refused(&function(&locals(limit + 1))), Some(("locals in a function", limit + 1, limit)));
    assert_eq!(refused(&function(&locals(u64::from(u32::MAX)))), Some(("locals in a function", u64::from(u32::MAX), limit)));

    let blocks = |count: usize| [vec![0], [0x02, 0x40].repeat(count), vec![0x0b; count + 1]].concat();
    let limit = max::NESTING_MAX;
    assert_eq!(refused(&function(&blocks(limit))), Some(("nested blocks", limit as u64 + 1, limit as u64)));
    assert_eq!(refused(&function(&blocks(limit - 1))), None);

    // The targets stand behind their number; here they are missing.
    let targets = |count: u64| [vec![0, 0x41, 0, 0x0e], leb(count), vec![0; 1 + count.min(70_000) as usize], vec![0x0b]].concat();
    let limit = max::BR_TABLE_TARGETS_MAX as u64;
    assert_eq!(refused(&function(&targets(limit + 1))), Some(("targets of a br_table", limit + 1, limit)));
}

/// Where wasmparser has the same limit, it speaks first, and names the place too.
#[test]
fn what_wasmparser_limits_is_refused_as_well() {
    let invalid = |wasm: &[u8], about: &str| match awsm::compile(&Program::single(wasm), &options(), &()) {
        Err(CompileError::Invalid { offset, message }) => {
            assert!(message.contains(about) && offset > 8, "{offset:#x}: {message}")
        }
        other => panic!("{about}: {other:?}"),
    };
    let body = [vec![0], vec![0x01; max::FUNCTION_BYTES_MAX], vec![0x0b]].concat();
    invalid(&function(&body), "function body size");
    let limit = max::PARAMS_MAX;
    let params = [vec![1, 0x60], leb(limit as u64 + 1), vec![0x7f; limit + 1], vec![0]].concat();
    invalid(&module(&[section(1, &params)]), "function params size is out of bounds");
    let results = [vec![1, 0x60, 0], leb(limit as u64 + 1), vec![0x7f; limit + 1]].concat();
    invalid(&module(&[section(1, &results)]), "function returns size is out of bounds");
}

#[test]
fn tables_and_constants_are_limited() {
    let limit = max::TABLE_ELEMENTS_MAX;
    for found in [limit + 1, u64::from(u32::MAX)] {
        let table = [vec![1, 0x70, 0], leb(found)].concat();
        assert_eq!(refused(&module(&[section(4, &table)])), Some(("table elements", found, limit)));
    }

    let limit = max::CONST_EXPR_OPERATORS_MAX;
    let sum = [vec![1, 0x7f, 0], [0x41, 1].to_vec(), [0x41, 1, 0x6a].repeat(limit / 2), vec![0x0b]].concat();
    assert_eq!(
        refused(&module(&[section(6, &sum)])),
        Some(("operators in a constant expression", limit as u64 + 1, limit as u64))
    );
}

/// What the specification itself forbids is invalid, not too much; it has its place, too.
#[test]
fn memories_are_limited_by_the_specification() {
    for (flags, pages) in [(0_u8, max::MEMORY32_PAGES_MAX + 1), (4, max::MEMORY64_PAGES_MAX + 1)] {
        let memory = [vec![1, flags], leb(pages)].concat();
        let error = awsm::compile(&Program::single(&module(&[section(5, &memory)])), &options(), &()).unwrap_err();
        assert!(matches!(error, CompileError::Invalid { offset, .. } if offset > 8), "{error}");
        assert!(error.to_string().contains("memory size must be at most"), "{error}");
    }
}

#[test]
fn a_module_is_limited_as_a_whole() {
    let found = max::MODULE_BYTES_MAX + 1;
    let wasm = vec![0; found as usize];
    assert_eq!(refused(&wasm), Some(("bytes of WebAssembly", found, max::MODULE_BYTES_MAX)));
}
