//! The code generator for a target.

use inkwell::OptimizationLevel;
use inkwell::llvm_sys::prelude::{LLVMMemoryBufferRef, LLVMModuleRef};
use inkwell::llvm_sys::target_machine::{LLVMCodeGenFileType, LLVMTargetMachineRef};
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use inkwell::targets::{CodeModel, FileType, RelocMode, Target, TargetMachine, TargetTriple};

use super::cpu::TargetCpu;
use super::host;
use crate::error::CompileError;
use crate::options::{Effort, OptLevel};

unsafe extern "C" {
    /// Defined in `generate.cpp`.
    fn awsm_generate(
        module: LLVMModuleRef,
        machine: LLVMTargetMachineRef,
        kind: LLVMCodeGenFileType,
        quick: bool,
    ) -> LLVMMemoryBufferRef;
}

/// A code generator.
pub(crate) struct Machine {
    pub(super) machine: TargetMachine,
    pub(super) cpu: TargetCpu,
    /// Without passes whose time may grow faster than the code's size, thorough allocation of registers among them.
    quick: bool,
}

impl Machine {
    /// Makes one for `cpu`.
    pub(crate) fn new(cpu: &TargetCpu, effort: Effort) -> Result<Machine, CompileError> {
        host::initialise();
        let doing = "choosing the target";
        let triple = TargetTriple::create(cpu.arch.triple());
        let target = Target::from_triple(&triple).map_err(|error| CompileError::llvm(doing, error.to_string()))?;
        let level = match effort.level() {
            OptLevel::O0 => OptimizationLevel::None,
            OptLevel::O1 => OptimizationLevel::Less,
            OptLevel::O2 => OptimizationLevel::Default,
            OptLevel::O3 => OptimizationLevel::Aggressive,
        };
        let features = cpu.feature_string();
        let machine = target.create_target_machine(&triple, cpu.base(), &features, level, RelocMode::PIC, CodeModel::Small);
        let machine = machine.ok_or_else(|| CompileError::llvm(doing, format!("no machine for {}", cpu.arch.name())))?;
        Ok(Machine { machine, cpu: cpu.clone(), quick: effort == Effort::GivenUp })
    }

    /// Makes `module` one for this machine.
    pub(crate) fn adopt(&self, module: &Module<'_>) {
        module.set_triple(&self.machine.get_triple());
        module.set_data_layout(&self.machine.get_target_data().get_data_layout());
    }

    /// Generates an object file's bytes.
    pub(crate) fn object(&self, module: &Module<'_>) -> Result<Vec<u8>, CompileError> {
        self.generate(module, FileType::Object)
    }

    /// Generates assembly as text.
    pub(crate) fn assembly(&self, module: &Module<'_>) -> Result<Vec<u8>, CompileError> {
        self.machine.set_asm_verbosity(true);
        self.generate(module, FileType::Assembly)
    }

    fn generate(&self, module: &Module<'_>, kind: FileType) -> Result<Vec<u8>, CompileError> {
        let ty = match kind {
            FileType::Assembly => LLVMCodeGenFileType::LLVMAssemblyFile,
            FileType::Object => LLVMCodeGenFileType::LLVMObjectFile,
        };
        // SAFETY: module and target machine are live and belong to this thread. Nothing of them is kept.
        let buffer = unsafe { awsm_generate(module.as_mut_ptr(), self.machine.as_mut_ptr(), ty, self.quick) };
        if buffer.is_null() {
            return Err(CompileError::llvm("generating code", format!("no {kind:?} for {}", self.cpu.arch.name())));
        }
        // SAFETY: a buffer that is not null is ours to dispose of, which its owner does.
        let buffer = unsafe { MemoryBuffer::new(buffer) };
        let bytes = buffer.as_slice();
        // Assembly comes with the NUL that ends LLVM's buffers.
        Ok(bytes.strip_suffix(b"\0").filter(|_| kind == FileType::Assembly).unwrap_or(bytes).to_vec())
    }
}
