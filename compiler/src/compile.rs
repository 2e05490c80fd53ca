//! The compilation of one module, from bytes to bytes.

use std::panic::resume_unwind;
use std::thread;

use awsm_abi::limits::VMCTX_BYTES_MAX;
use awsm_abi::types::{Bounds, MemoryType};
use awsm_abi::vmctx::Layout;
use inkwell::context::Context;

use crate::artifact::{self, CodeObject, DefaultRow, Parts};
use crate::error::CompileError;
use crate::helpers;
use crate::llvm::{self, Ir, Machine, TargetCpu};
use crate::module;
use crate::options::{CompileOptions, Emit};
use crate::progress::{Phase, Progress};
use crate::translate::{self, Unit};

/// Reserved for LLVM's recursion over what a module nests deeply. Only what is used becomes memory.
const STACK_BYTES: usize = 256 << 20;

/// Compiles a WebAssembly module, given in the binary format, to what [`CompileOptions::emit`] asks for.
///
/// # Errors
/// When the module is invalid, uses what is not supported or exceeds a limit; when options do not go together; when no linker is found. Any
/// other error is a bug.
pub fn compile(wasm: &[u8], options: &CompileOptions, progress: &dyn Progress) -> Result<Vec<u8>, CompileError> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("awsm".to_owned()).stack_size(STACK_BYTES);
        let worker = builder
            .spawn_scoped(scope, || compile_here(wasm, options, progress))
            .map_err(CompileError::io("starting a thread"))?;
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn compile_here(wasm: &[u8], options: &CompileOptions, progress: &dyn Progress) -> Result<Vec<u8>, CompileError> {
    check(options)?;
    let cpu = TargetCpu::resolve(&options.cpu)?;
    let module = module::parse(wasm, progress)?;
    let layout = Layout::new(module.counts()).ok_or(CompileError::Limit {
        what: "bytes of instance data, or more",
        found: u64::from(VMCTX_BYTES_MAX) + 1,
        limit: u64::from(VMCTX_BYTES_MAX),
        offset: 0,
    })?;
    let machine = Machine::new(&cpu, options.opt_level)?;
    let context = Context::create();
    let ir = Ir::new(&context, &machine, layout.size());
    ir.define_at_start(&artifact::text_symbol(0));
    let bounds = module.memories.iter().map(|memory| bounds_of(memory, options.bounds)).collect();
    let unit = Unit::new(&module, ir, layout, bounds);
    translate::translate(&unit, progress)?;
    let entry_types = translate::entry_types(&unit);
    let Unit { ir, bounds, .. } = unit;
    let code = ir.finish()?;

    progress.begin(Phase::Optimise, 0);
    llvm::optimise(&code, &machine, options.opt_level, bounds.contains(&Bounds::Guard))?;
    if options.emit == Emit::LlvmIr {
        return Ok(code.print_to_string().to_bytes().to_vec());
    }
    progress.begin(Phase::Generate, 0);
    if options.emit == Emit::Asm {
        return machine.assembly(&code);
    }
    let object = machine.object(&code)?;
    if options.emit == Emit::Obj {
        return Ok(object);
    }
    progress.begin(Phase::Link, 0);
    let parts = Parts {
        module: &module,
        entry_types: &entry_types,
        bounds: &bounds,
        opt_level: options.opt_level,
        arch: cpu.arch,
        cpu_features: &cpu.features,
    };
    let code = CodeObject::read(object, 0, DefaultRow::Call)?;
    let helpers = helpers::build(&code.undefined, &machine, cpu.arch)?;
    artifact::assemble(&parts, &code, helpers.as_ref())
}

/// How accesses to a memory are checked: explicitly wherever an index has 64 bits, which no reserved address space can hold.
fn bounds_of(memory: &MemoryType, chosen: Bounds) -> Bounds {
    if memory.memory64 { Bounds::Software } else { chosen }
}

fn check(options: &CompileOptions) -> Result<(), CompileError> {
    match options.bounds {
        Bounds::Guard | Bounds::Software | Bounds::None => Ok(()),
        Bounds::Segment => Err(CompileError::Options {
            option: "bounds",
            value: options.bounds.to_string(),
            reason: "not available yet; give guard, software or none".to_owned(),
        }),
    }
}
