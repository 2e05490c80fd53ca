//! Compiles what needs LLVM's C++ interface: passes, and the pipeline that knows them. All of `src/llvm/*.cpp` belongs to it. What they and
//! the code in Rust have to agree on comes to them as the header `shared.h`, which is written here.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use awsm_abi::TrapCode;
use awsm_abi::limits::{ACCESS_BYTES_MAX, MEMORY32_PAGES_MAX, PAGE_BYTES};

#[allow(dead_code, reason = "some of it is for the crate alone")]
#[path = "src/llvm/shared.rs"]
mod shared;

const SOURCES: &str = "src/llvm";

fn main() -> Result<(), Box<dyn Error>> {
    // A new file comes with a change of passes.h; watching the folder would make every change of a .rs file compile all of this again.
    let sources = files("cpp")?;
    for file in files("h")?.iter().chain(&sources) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    write_header(&out.join("shared.h"))?;
    // One unit for all of them: what the compiler works on is LLVM's headers, and those it reads once then, in place of once a file.
    let all = out.join("all.cpp");
    fs::write(&all, sources.iter().map(|source| include(source)).collect::<String>())?;
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file(all)
        .include(out)
        .include(SOURCES)
        // LLVM's headers cause warnings. This build shows only those of our own files.
        .flag("-isystem")
        .flag(include_dir()?)
        // As LLVM is built: its classes carry no type information, and errors are values.
        .flag("-fno-rtti")
        .flag("-fno-exceptions")
        .flag("-fvisibility=hidden")
        .flag_if_supported("-fvisibility-inlines-hidden")
        .extra_warnings(true)
        .try_compile("awsm_passes")?;
    Ok(())
}

/// Writes what C++ has to know of `shared.rs` and of `awsm-abi`.
fn write_header(path: &Path) -> Result<(), Box<dyn Error>> {
    let codes = TrapCode::ALL.iter().map(|code| (camel_case(code.identifier()), code.number()));
    let classes = shared::AliasClass::ALL.iter().map(|&class| (class.name().to_owned(), class as u8));
    let mut strings = vec![
        ("AliasIndexStart".to_owned(), shared::ALIAS_INDEX_START),
        ("FunctionSymbolStart".to_owned(), shared::FUNCTION_SYMBOL_START),
        ("SymbolModuleEnd".to_owned(), shared::SYMBOL_MODULE_END),
        ("FunctionSymbolIndexEnd".to_owned(), shared::FUNCTION_SYMBOL_INDEX_END),
    ];
    strings.extend(shared::PASSES.iter().map(|(class, name)| (format!("{class}Name"), *name)));
    let numbers = [
        ("FunctionNumberModuleShift", "unsigned", u64::from(shared::FUNCTION_NUMBER_MODULE_SHIFT)),
        ("NoFunction", "uint64_t", shared::NO_FUNCTION),
        ("AccessBytesMax", "uint64_t", ACCESS_BYTES_MAX),
        ("Memory32BytesMax", "uint64_t", MEMORY32_PAGES_MAX * PAGE_BYTES),
    ];

    let mut text =
        "// Written by build.rs, from src/llvm/shared.rs and the crate awsm-abi: change it there.\n\n#pragma once\n\n".to_owned();
    text.push_str("#include \"llvm/ADT/StringRef.h\"\n\n#include <cstdint>\n\nnamespace awsm {\n\n");
    write_enum(&mut text, "TrapCode", codes)?;
    write_enum(&mut text, "AliasClass", classes)?;
    text.push_str("struct AliasClassName {\n    AliasClass aliasClass;\n    llvm::StringLiteral name;\n};\n\n");
    text.push_str("inline constexpr AliasClassName AliasClassNames[] = {\n");
    for class in shared::AliasClass::ALL {
        writeln!(text, "    {{AliasClass::{0}, llvm::StringLiteral({0:?})}},", class.name())?;
    }
    text.push_str("};\n\n");
    for (name, value) in strings {
        writeln!(text, "inline constexpr llvm::StringLiteral {name}({value:?});")?;
    }
    for (name, ty, value) in numbers {
        writeln!(text, "inline constexpr {ty} {name} = {value}u;")?;
    }
    text.push_str("\n} // namespace awsm\n");
    Ok(fs::write(path, text)?)
}

/// The directive that includes a file of `src/llvm`.
fn include(source: &Path) -> String {
    format!("#include \"{}\"\n", source.file_name().unwrap_or_default().display())
}

fn write_enum(text: &mut String, name: &str, variants: impl Iterator<Item = (String, u8)>) -> std::fmt::Result {
    writeln!(text, "enum class {name} : uint8_t {{")?;
    for (variant, number) in variants {
        writeln!(text, "    {variant} = {number},")?;
    }
    writeln!(text, "}};\n")
}

/// `memory_out_of_bounds` as `MemoryOutOfBounds`.
fn camel_case(snake_case: &str) -> String {
    let words = snake_case.split('_').map(|word| word.chars());
    words.flat_map(|mut word| word.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(word)).collect()
}

fn files(extension: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = fs::read_dir(SOURCES)?.collect::<Result<Vec<_>, _>>()?;
    let wanted = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let mut files: Vec<_> = entries.into_iter().map(|entry| entry.path()).filter(wanted).collect();
    files.sort();
    Ok(files)
}

/// Where the headers are of the LLVM that `llvm-sys` found and links.
fn include_dir() -> Result<String, Box<dyn Error>> {
    let config = env::var("DEP_LLVM_22_CONFIG_PATH").map_err(|_| "llvm-sys found no LLVM 22: run scripts/setup")?;
    let output = Command::new(&config).arg("--includedir").output().map_err(|error| format!("{config}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{config} --includedir: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
