//! Why a child ended without an answer.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use awsm_abi::text;

use super::Limits;
use crate::error::CompileError;
use crate::llvm::FUNCTION_SYMBOL_START;
use crate::progress::Phase;

/// How a child ended.
pub(super) struct End<'a> {
    pub(super) status: ExitStatus,
    /// Whether it was killed because its time was over.
    pub(super) timed_out: bool,
    /// What it wrote to standard error.
    pub(super) complaint: &'a str,
    /// What it was doing.
    pub(super) phase: Option<Phase>,
    /// Memory that this process, and so its child, may have anyway.
    pub(super) inherited_bytes_max: u64,
    /// On which parts of the module.
    pub(super) parts: &'a BTreeMap<usize, String>,
}

/// What is said where allocations fail, by LLVM, C++, Rust and the C library (which cannot load the unwinder then); and by Rust's threads about
/// C++'s `bad_alloc`, the one exception that LLVM's code lets pass.
const OUT_OF_MEMORY: [&str; 6] = [
    "out of memory",
    "bad_alloc",
    "memory allocation of",
    "Cannot allocate memory",
    "libgcc_s.so.1 must be installed",
    "cannot catch foreign exceptions",
];

/// Linux's numbers of the signals by which the kernel enforces limits, and of its own killing.
const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;

/// What is shown of a complaint, and of the parts.
const SHOWN_LINES_MAX: usize = 8;
const SHOWN_PARTS_MAX: usize = 4;

pub(super) fn of(end: &End<'_>, limits: &Limits) -> CompileError {
    let doing = doing(end);
    let limit_mb = limits.memory_bytes_max.min(end.inherited_bytes_max) >> 20;
    if end.timed_out || end.status.signal() == Some(SIGXCPU) {
        return CompileError::Time { doing, limit_s: limits.time_max.as_secs() };
    }
    if OUT_OF_MEMORY.iter().any(|words| end.complaint.contains(words)) {
        return CompileError::Memory { doing, limit_mb };
    }
    let ended = match end.status.signal() {
        Some(SIGKILL) => "was killed; perhaps the machine has no memory left".to_owned(),
        Some(signal) => format!("died of signal {signal}"),
        None => format!("ended with {}", end.status),
    };
    CompileError::Crashed { doing, ended, said: said(end.complaint) }
}

/// The phase, and the function if LLVM named it, or else the parts of the module that were in work.
fn doing(end: &End<'_>) -> String {
    let phase = match end.phase {
        None => "starting".to_owned(),
        Some(phase) => format!("in phase `{}`", phase.name()),
    };
    let parts: Vec<_> = end.parts.values().take(SHOWN_PARTS_MAX).map(String::as_str).collect();
    match function(end.complaint) {
        Some(function) => format!("{phase}, at function {}", text::line(function)),
        None if parts.is_empty() => phase,
        None => format!("{phase}, at {}", parts.join("; at ")),
    }
}

/// The symbol of the function that LLVM's stack of passes names last: `Running pass '...' on function '@"wasm[7]::name"'`.
fn function(complaint: &str) -> Option<&str> {
    let line = complaint.lines().rev().find(|line| line.contains("on function") && line.contains(FUNCTION_SYMBOL_START))?;
    let symbol = &line[line.rfind(FUNCTION_SYMBOL_START)?..];
    Some(symbol.trim_end_matches(['"', '\'', '.', ' ']))
}

/// The first lines, without LLVM's request to report it and its addresses.
fn said(complaint: &str) -> String {
    let is_shown = |line: &&str| !line.trim().is_empty() && !line.contains("PLEASE submit") && !line.starts_with(" #");
    let lines: Vec<_> = complaint.lines().filter(is_shown).take(SHOWN_LINES_MAX).map(text::line).collect();
    if lines.is_empty() { String::new() } else { format!("; it said:\n{}", lines.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(raw_status: i32, timed_out: bool, complaint: &str) -> String {
        let status = ExitStatus::from_raw(raw_status);
        let parts = [(1, "functions 1 to 9, the largest 3 \"f\"".to_owned())].into();
        let limits = Limits { memory_bytes_max: 64 << 20, ..Limits::default() };
        of(
            &End { status, timed_out, complaint, phase: Some(Phase::Generate), inherited_bytes_max: u64::MAX, parts: &parts },
            &limits,
        )
        .to_string()
    }

    #[test]
    fn every_end_says_what_to_do() {
        let text = verdict(SIGKILL, true, "");
        assert!(text.contains("600 s") && text.contains("--time-max-s") && text.contains("`generate`"), "{text}");
        assert!(verdict(6, false, "fatal runtime error: Rust cannot catch foreign exceptions, aborting\n").contains("64 MB"));
        assert!(verdict(SIGXCPU, false, "").contains("--time-max-s"));
        let text = verdict(6, false, "LLVM ERROR: out of memory\nAllocation failed\n");
        assert!(text.contains("64 MB") && text.contains("--memory-max-mb") && text.contains("largest 3 \"f\""), "{text}");
        let text = verdict(11, false, "");
        assert!(text.contains("signal 11") && text.contains("-O 1"), "{text}");
        assert!(verdict(SIGKILL, false, "").contains("memory"));
        assert!(verdict(1 << 8, false, "LLVM ERROR: no such thing\n").contains("no such thing"));
    }

    #[test]
    fn the_function_is_named_that_llvm_names() {
        let complaint = "Stack dump:\n0.\tRunning pass 'Function Pass Manager' on module 'wasm'.\n\
            1.\tRunning pass 'X86 DAG->DAG Instruction Selection' on function '@\"wasm[7]::a b\"'\n #0 0x00007f\n";
        let text = verdict(11, false, complaint);
        assert!(text.contains("at function wasm[7]::a b") && !text.contains("#0"), "{text}");
    }
}
