//! `awsm explain`: what a place in an artifact's code, or in its module, stands for.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use awsm_abi::TrapCode;
use awsm_abi::descriptor::TrapRow;
use awsm_abi::text;
use clap::Args;

use super::artifact::{Artifact, Place};
use super::output::print;
use super::source::Sources;

/// Native addresses that are listed for a place in the module.
const PLACES_MAX: usize = 16;

/// Show the function, instruction and source line of a place in the code
///
/// WHERE is an address in the file, as nm, objdump, gdb and perf show it (0x1f40); a symbol and an offset (wasm[3]::add+0x12); or a place in the
/// WebAssembly module as sledge prints it in backtraces (`wasm offset 0x1f3`; a whole line of a backtrace does).
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Address, symbol+offset, or line of a backtrace
    #[arg(value_name = "WHERE")]
    place: String,
    /// A shared object that awsm made
    file: PathBuf,
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Question {
    Address(u64),
    Symbol(String, u64),
    /// An offset into a module, and its index where it is given: backtraces of components say it.
    Wasm(u32, Option<usize>),
}

/// Prints what is known.
pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let name = arguments.file.display().to_string();
    let bytes = awsm::frontend::read(&arguments.file)?;
    let artifact = Artifact::parse(&name, &bytes)?;
    let question = parse(&arguments.place).with_context(|| {
        format!(
            "{:?}: expected an address (0x1f40), a symbol and an offset (wasm[3]::add+0x12), or `wasm offset 0x1f3`",
            arguments.place
        )
    })?;
    let text = match question {
        Question::Wasm(offset, module) => explain_wasm(&artifact, offset, module)?,
        Question::Address(address) => explain_address(&artifact, address)?,
        Question::Symbol(symbol, offset) => {
            let address = artifact.symbol(&symbol).with_context(|| format!("{name}: no such symbol: {symbol}"))?;
            explain_address(&artifact, address + offset)?
        }
    };
    print(text.as_bytes())
}

fn parse(place: &str) -> Option<Question> {
    let place = place.trim();
    if let Some((before, offset)) = place.rsplit_once("wasm offset ") {
        let module = module_of(before);
        return number(first(offset)).and_then(|offset| u32::try_from(offset).ok()).map(|offset| Question::Wasm(offset, module));
    }
    if let Some(address) = number(place) {
        return Some(Question::Address(address));
    }
    let symbol = place.trim_start_matches('<').trim_end_matches('>');
    match symbol.rsplit_once('+').and_then(|(symbol, offset)| Some((symbol, number(offset)?))) {
        Some((symbol, offset)) => Some(Question::Symbol(symbol.to_owned(), offset)),
        None => (symbol.contains('[') || symbol.contains("::")).then(|| Question::Symbol(symbol.to_owned(), 0)),
    }
}

/// The number or word with which a text begins.
fn first(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len())]
}

/// The module that a line of a backtrace says, whatever the names in it are.
fn module_of(line: &str) -> Option<usize> {
    // The module's name stands in quotes behind its number. In the names before it, quotes follow a backslash.
    let is_quote = |&(at, _): &(usize, &str)| line[..at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0;
    let mut line = line.match_indices('"').find(is_quote).map_or(line, |(at, _)| &line[..at]);
    // Where it has none, the names behind its number stand between backticks, and have none in them.
    loop {
        let (before, last) = line.rsplit_once('`').unwrap_or(("", line));
        if let Some((_, module)) = last.rsplit_once(" of module ") {
            return first(module).parse().ok();
        }
        line = before.rsplit_once('`')?.0;
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Writes a line of the answer. Writing to a string cannot fail.
fn line(text: &mut String, key: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{key:<9}{value}");
}

fn explain_address(artifact: &Artifact<'_>, address: u64) -> Result<String> {
    let Some(text) = artifact.texts.iter().find(|text| (text.start..text.start + text.bytes).contains(&address)) else {
        let all = artifact.texts.iter().map(|text| format!("{:#x} to {:#x}", text.start, text.start + text.bytes));
        bail!("{}: {address:#x} is outside of the code, which is at {}", artifact.name, all.collect::<Vec<_>>().join(", "));
    };
    let mut answer = String::new();
    line(&mut answer, "address", format_args!("{address:#x}"));
    if let Some((symbol, offset)) = artifact.symbol_at(address) {
        line(&mut answer, "code", format_args!("{}+{offset:#x}", text::line(symbol)));
    }
    let offset = (address - text.start) as u32;
    let row = text.rows[..text.rows.partition_point(|row| row.code_offset <= offset)].last();
    // A row of another function, or of none, says nothing about this one.
    let row = row.filter(|row| {
        artifact.symbol_at(address).is_none_or(|(_, past)| address - past <= text.start + u64::from(row.code_offset))
    });
    match row.and_then(|row| Some((row, artifact.place_of_row(row)?))) {
        Some((row, place)) => {
            describe_wasm(&mut answer, artifact, &place);
            describe_trap(&mut answer, row);
            describe_source(&mut answer, artifact, address);
        }
        None => line(&mut answer, "wasm", "none: an entry, a helper, or a function's prologue"),
    }
    Ok(answer)
}

/// An answer for each module that has a function at this offset, or for the one that was given, with empty lines between.
fn explain_wasm(artifact: &Artifact<'_>, offset: u32, module: Option<usize>) -> Result<String> {
    let modules = (0..artifact.descriptor.modules.len()).filter(|index| module.is_none_or(|module| module == *index));
    let places = modules.filter_map(|module| artifact.place(module, offset));
    let answers: Vec<_> = places.map(|place| explain_place(artifact, &place)).collect();
    if answers.is_empty() {
        bail!("{}: no function contains wasm offset {offset:#x}", artifact.name);
    }
    Ok(answers.join("\n"))
}

fn explain_place(artifact: &Artifact<'_>, place: &Place) -> String {
    let mut answer = String::new();
    describe_wasm(&mut answer, artifact, place);
    let mut places = Vec::new();
    let wasm_offset = artifact.descriptor.modules[place.module].wasm_base.saturating_add(place.offset);
    for text in &artifact.texts {
        let rows = text.rows.iter().filter(|row| row.wasm_offset == wasm_offset);
        places.extend(rows.map(|row| (text.start + u64::from(row.code_offset), *row)));
    }
    if let Some((_, row)) = places.first() {
        describe_trap(&mut answer, row);
    }
    for (address, _) in places.iter().take(PLACES_MAX) {
        let symbol =
            artifact.symbol_at(*address).map_or_else(String::new, |(symbol, past)| format!(", {}+{past:#x}", text::line(symbol)));
        line(&mut answer, "address", format_args!("{address:#x}{symbol}"));
    }
    match places.first() {
        Some((address, _)) => describe_source(&mut answer, artifact, *address),
        None => line(&mut answer, "address", "none: no instruction there traps or calls, or it was optimised away"),
    }
    answer
}

fn describe_wasm(answer: &mut String, artifact: &Artifact<'_>, place: &Place) {
    let modules = &artifact.descriptor.modules;
    let module = &modules[place.module];
    let function = &module.functions[place.function];
    let number = module.imported_functions() as usize + place.function;
    let quoted = |name: &Option<String>| name.as_deref().map_or_else(String::new, |name| format!(" {name:?}"));
    let of_module = match modules.len() {
        1 => String::new(),
        _ => match artifact.descriptor.part(place.module as u32, number as u32) {
            Some(part) => format!(" of {part}"),
            None => format!(" of module {}{}", place.module, quoted(&module.name)),
        },
    };
    let (name, offset, within) = (quoted(&function.name), place.offset, place.offset - function.wasm_start);
    line(answer, "wasm", format_args!("offset {offset:#x}, byte {within} of the body of function {number}{name}{of_module}"));
}

fn describe_trap(answer: &mut String, row: &TrapRow) {
    match TrapCode::from_number(row.trap) {
        Some(code) => line(answer, "trap", code),
        None => line(answer, "trap", "none: a call, or nothing that traps"),
    }
}

fn describe_source(answer: &mut String, artifact: &Artifact<'_>, address: u64) {
    match Sources::of(artifact).and_then(|sources| sources.line(address)) {
        Some(place) => line(answer, "source", place),
        None => line(answer, "source", "unknown; compile a module with debug information with --debug"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_in_all_their_forms() {
        assert_eq!(parse("0x1f40"), Some(Question::Address(0x1f40)));
        assert_eq!(parse(" 64 "), Some(Question::Address(64)));
        assert_eq!(parse("   3: core::panic at wasm offset 0x1f3 (inlined)"), Some(Question::Wasm(0x1f3, None)));
        let frame = "   0: greet of module 3 \"main\" of instance `app` at wasm offset 0x1f3";
        assert_eq!(parse(frame), Some(Question::Wasm(0x1f3, Some(3))));
        for (function, part) in [
            ("greet", "3 \"x of module 9\" of instance `app`"),
            ("greet", "3 \"x\\\" of module 9 \\\"\" of instance `x of module 9`"),
            ("greet", "3 of instance `x of module 9` (number 2)"),
            ("x of module 9 \\\" `", "3 \"main\" (glue)"),
            ("x of module 9", "3 (`x of module 8` of instance `x of module 7`, called by the component)"),
            ("`x` of module 9`", "3"),
        ] {
            let frame = format!("   0: {function} of module {part} at wasm offset 0x1f3 (inlined)");
            assert_eq!(parse(&frame), Some(Question::Wasm(0x1f3, Some(3))), "{frame}");
        }
        assert_eq!(parse("wasm offset 0x10"), Some(Question::Wasm(16, None)));
        assert_eq!(parse("<wasm[3]::a+b+18>"), Some(Question::Symbol("wasm[3]::a+b".to_owned(), 18)));
        assert_eq!(parse("wasm[3]::add"), Some(Question::Symbol("wasm[3]::add".to_owned(), 0)));
        for wrong in ["", "add", "0xg", "wasm offset x", "wasm offset 0x100000000"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
