//! The stack that compilers of C and Rust keep in linear memory: whether a trap is what became of its overflow.
//!
//! Address-taken variables lie there, below the first global that the linker (wasm-ld) defines, its stack pointer. Where nothing lies below the
//! stack (`--stack-first`), what overflows it wraps around to addresses that no memory has, so that it traps. Only looked at after such a trap.

use std::fmt;

use awsm_abi::ModuleDescriptor;
use awsm_abi::descriptor::{ConstOp, SegmentMode};
use awsm_abi::types::{GlobalType, ValType};
use sledge_sandbox::Sandbox;

/// What a stack has at least; globals that begin with less are others.
const BYTES_MIN: u32 = 1024;
/// The linker aligns its end to this.
const ALIGNMENT: u32 = 16;
/// Of a stack that a quarter is left of, the function that trapped may have wanted that: its own frame need not be counted yet.
const NEARLY_EMPTY: u32 = 4;

/// A stack in linear memory that overflowed, or that little was left of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryStack {
    /// Its size, if that is known.
    bytes: Option<u32>,
    /// What was left of it, less than nothing after an overflow.
    left: i32,
}

impl MemoryStack {
    /// What an access out of bounds in that sandbox was due to, if it was due to this.
    #[must_use]
    pub fn overflowed(sandbox: &Sandbox) -> Option<MemoryStack> {
        let instance = sandbox.main_instance()?;
        let (artifact, module) = sandbox.module(instance);
        let module = artifact.descriptor().modules.get(module)?;
        let end = end(module)?;
        let left = sandbox.defined_global(instance, 0)?.u32().cast_signed();
        // With data below it, it overflowed only when it went through all of that.
        let bytes = is_first(module, end).then_some(end);
        let is_over = left < bytes.map_or(0, |bytes| bytes / NEARLY_EMPTY).cast_signed();
        is_over.then_some(MemoryStack { bytes, left })
    }
}

/// Where the stack pointer begins, if the first global is one.
fn end(module: &ModuleDescriptor) -> Option<u32> {
    let global = module.globals.first()?;
    match global.init.as_slice() {
        &[ConstOp::I32Const(end)] if global.ty == (GlobalType { value: ValType::I32, mutable: true }) => {
            let end = end.cast_unsigned();
            (end >= BYTES_MIN && end.is_multiple_of(ALIGNMENT)).then_some(end)
        }
        _ => None,
    }
}

/// Whether no data lies below the stack's end.
fn is_first(module: &ModuleDescriptor, end: u32) -> bool {
    module.data.iter().all(|segment| match &segment.mode {
        SegmentMode::Active { offset, .. } => {
            matches!(offset.as_slice(), &[ConstOp::I32Const(start)] if start.cast_unsigned() >= end)
        }
        SegmentMode::Passive | SegmentMode::Declared => true,
    })
}

impl fmt::Display for MemoryStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stack that C and Rust keep in linear memory")?;
        if let Some(bytes) = self.bytes {
            write!(f, " ({} KiB)", bytes / 1024)?;
        }
        match self.left {
            ..0 => f.write_str(" overflowed")?,
            left => write!(f, " had {left} bytes left, and may have overflowed")?,
        }
        f.write_str(
            "; for 1 MiB: `awsm compile FILE.c -- -Wl,-z,stack-size=1048576`, for more than that in Rust `-C link-arg=-zstack-size=BYTES`",
        )
    }
}
