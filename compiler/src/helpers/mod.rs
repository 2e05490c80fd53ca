//! What LLVM's code may call that is not WebAssembly's: memory and rounding helpers, in LLVM's own text, as an object of their own.
//!
//! An artifact leaves nothing undefined. Only helpers that its code wants are in it; they have a code range and a trap table like all other
//! code, so that faults in them are the guest's and they can be preempted.

use awsm_abi::cpu::Arch;
use inkwell::context::Context;

use crate::artifact::{CodeObject, DefaultRow, text_symbol};
use crate::error::CompileError;
use crate::lines::Lines;
use crate::llvm::{Machine, parse_text, retain};

const NAMES: [&str; 11] =
    ["memcpy", "memmove", "memset", "trunc", "truncf", "floor", "floorf", "ceil", "ceilf", "roundeven", "roundevenf"];

/// Makes the object with the helpers in `wanted`, code range `text_index`; none when nothing is.
///
/// # Errors
/// When something is wanted that is no helper: a bug.
pub(crate) fn build(
    wanted: &[String],
    machine: &Machine,
    arch: Arch,
    text_index: u32,
) -> Result<Option<CodeObject>, CompileError> {
    if wanted.is_empty() {
        return Ok(None);
    }
    if let Some(unknown) = wanted.iter().find(|name| !NAMES.contains(&name.as_str())) {
        return Err(CompileError::artifact(format_args!("the code calls {unknown}, which awsm does not provide")));
    }
    let context = Context::create();
    let module = parse_text(&context, &text(arch))?;
    machine.adopt(&module);
    retain(&module, machine, wanted, &text_symbol(text_index))?;
    let object = machine.object(&module)?;
    CodeObject::read(object, text_index, DefaultRow::Access, Lines::own()).map(Some)
}

fn text(arch: Arch) -> String {
    let big = match arch {
        Arch::X86_64 => include_str!("x86_64.ll"),
        Arch::Aarch64 => include_str!("aarch64.ll"),
    };
    let double = [
        ("$F", "double"),
        ("$I", "i64"),
        ("$L", "f64"),
        ("$S", ""),
        ("$M", "52"),
        ("$E", "2047"),
        ("$B", "1023"),
        ("$X", "0x4330000000000000"),
    ];
    let float = [
        ("$F", "float"),
        ("$I", "i32"),
        ("$L", "f32"),
        ("$S", "f"),
        ("$M", "23"),
        ("$E", "255"),
        ("$B", "127"),
        ("$X", "0x4160000000000000"),
    ];
    let fill = |values: [(&str, &str); 8]| {
        values.iter().fold(include_str!("round.ll").to_owned(), |text, (key, value)| text.replace(key, value))
    };
    [include_str!("memory.ll"), big, &fill(double), &fill(float)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::TargetCpu;
    use crate::options::{Cpu, Effort, OptLevel};

    #[test]
    fn all_helpers_stand_on_their_own_on_both_architectures() {
        let wanted: Vec<_> = NAMES.iter().map(|&name| name.to_owned()).collect();
        for arch in Arch::ALL {
            let cpu = TargetCpu::resolve(&Cpu::Baseline, arch).unwrap();
            let machine = Machine::new(&cpu, Effort::Level(OptLevel::O2)).unwrap();
            let object = build(&wanted, &machine, arch, 1).unwrap().unwrap();
            assert!(object.undefined.is_empty(), "{arch:?}: {:?}", object.undefined);
            assert!(NAMES.iter().all(|name| object.function(name).is_some()));
        }
    }

    #[test]
    fn an_unknown_helper_is_an_error_that_names_it() {
        let cpu = TargetCpu { arch: Arch::HOST, tune: "generic".to_owned(), features: Vec::new() };
        let machine = Machine::new(&cpu, Effort::Level(OptLevel::O2)).unwrap();
        let error = build(&["fmod".to_owned()], &machine, Arch::HOST, 1).err().unwrap().to_string();
        assert!(error.contains("fmod"), "{error}");
    }
}
