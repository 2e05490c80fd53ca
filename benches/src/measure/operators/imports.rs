//! Of the group `operators`: how soon a module is refused for an import that the runtime does not offer.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::checkout;
use crate::measure::Bench;

/// As large as an interpreter's module.
const MODULE_BYTES: u32 = 16 << 20;
/// Of so many the slowest counts, of each program.
const TIMES: usize = 5;
const COMMANDS: [(&str, &str); 2] = [("sledge", "run"), ("awsm", "compile")];

/// A module with one import that the runtime does not offer, and one segment of data.
fn module() -> Result<Vec<u8>> {
    let text = r#"(module (import "rb-js-abi-host" "eval-js" (func (param i32 i32) (result i32))) (memory 512) (func (export "_start")))"#;
    let mut module = wat::parse_str(text).context("the module")?;
    let segment = [&[1, 1][..], &leb(MODULE_BYTES), &vec![0; MODULE_BYTES as usize]].concat();
    module.push(11);
    module.extend(leb(u32::try_from(segment.len())?));
    module.extend(segment);
    Ok(module)
}

/// LEB128, as WebAssembly writes numbers.
fn leb(mut number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// From the command to its refusal, of `sledge run` and `awsm compile`. The first time of each does not count: it reads the program, and LLVM
/// with its 150 MB, from the disk.
pub(in crate::measure) fn refusal_ms(bench: &mut Bench) -> Result<f64> {
    let path = bench.folder.path().join("foreign.wasm");
    fs::write(&path, module()?)?;
    let mut slowest = 0.0_f64;
    for (turn, (program, command)) in (0..=TIMES).flat_map(|turn| COMMANDS.map(|command| (turn, command))) {
        let mut command_line = Command::new(checkout::program(program)?);
        command_line.arg(command).arg(&path).stdin(Stdio::null());
        let start = Instant::now();
        let done = command_line.output().with_context(|| format!("cannot run {program}"))?;
        let taken_ms = start.elapsed().as_secs_f64() * 1e3;
        if turn > 0 {
            slowest = slowest.max(taken_ms);
        }
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(!done.status.success() && said.contains("rb-js-abi-host"), "{program} {command} did not refuse it: {said}");
    }
    Ok(slowest)
}
