//! Compiles what needs LLVM's C++ interface: passes, and the pipeline that knows them. All of `src/llvm/*.cpp` belongs to it.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

const SOURCES: &str = "src/llvm";

fn main() -> Result<(), Box<dyn Error>> {
    // A new file comes with a change of passes.h; watching the folder would make every change of a .rs file compile all of this again.
    let sources = files("cpp")?;
    for file in files("h")?.iter().chain(&sources) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .files(sources)
        // LLVM's own headers are not free of warnings; ours is not where they should show.
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
