//! The compilation of one module, from bytes to bytes.

use std::collections::BTreeMap;
use std::io;

use awsm_abi::cpu::Arch;
use awsm_abi::limits::VMCTX_BYTES_MAX;
use awsm_abi::types::{Bounds, MemoryType};
use awsm_abi::vmctx::Layout;
use inkwell::context::Context;

use crate::artifact::{self, CodeObject, DefaultRow, Parts};
use crate::error::CompileError;
use crate::helpers;
use crate::llvm::{self, Ir, Machine, TargetCpu};
use crate::module::{self, FuncIdx, Module};
use crate::options::{CompileOptions, Effort, Emit};
use crate::parallel;
use crate::partition::{self, Part, Plan};
use crate::progress::{Phase, Progress};
use crate::translate::{self, Unit};
use crate::watch::Watch;

/// Compiles a WebAssembly module, given in the binary format, to what [`CompileOptions::emit`] asks for.
///
/// LLVM runs in this process: a module on which it runs out of memory or stack ends the process. [`crate::isolated`] does not have that risk.
///
/// # Errors
/// When the module is invalid, uses what is not supported or exceeds a limit; when options do not go together; when no linker is found. Any
/// other error is a bug.
pub fn compile(wasm: &[u8], options: &CompileOptions, progress: &dyn Progress) -> Result<Vec<u8>, CompileError> {
    compile_within(wasm, options, progress, &Surroundings::default())
}

/// What a process for one compilation knows and wants to know of it; none of it where the process is somebody else's.
#[derive(Default)]
pub(crate) struct Surroundings<'a> {
    /// Functions that were given up before.
    pub(crate) slow: &'a [FuncIdx],
    /// What parts gave before.
    pub(crate) finished: BTreeMap<usize, Vec<u8>>,
    /// Who looks at how long functions take, and limits memory.
    pub(crate) supervisor: Option<&'a dyn Supervisor>,
}

/// Who looks after a compilation.
pub(crate) trait Supervisor: Sync {
    /// Is told how many bytes the threads' stacks will have, before they are made.
    fn reserve(&self, stack_bytes: usize) -> io::Result<()>;

    /// Who wants to know which function is being worked on.
    fn watch(&self) -> &Watch;

    /// A part is done; not told of the only one.
    fn finished(&self, part: usize, output: &[u8]);
}

/// The same within surroundings.
pub(crate) fn compile_within(
    wasm: &[u8],
    options: &CompileOptions,
    progress: &dyn Progress,
    surroundings: &Surroundings<'_>,
) -> Result<Vec<u8>, CompileError> {
    check(options)?;
    let cpu = TargetCpu::resolve(&options.cpu, options.arch)?;
    let module = module::parse(wasm, options, progress)?;
    let layout = Layout::new(module.counts()).ok_or(CompileError::Limit {
        what: "bytes of instance data, or more",
        found: u64::from(VMCTX_BYTES_MAX) + 1,
        limit: u64::from(VMCTX_BYTES_MAX),
        offset: 0,
    })?;
    let plan = partition::plan(&module, options, surroundings.slow)?;
    plan.huge.iter().for_each(|huge| progress.warn(&huge.warning(&module)));
    surroundings.slow.iter().for_each(|&function| progress.warn(&partition::slow_warning(&module, function)));
    let bounds = module.memories.iter().enumerate().map(|(index, memory)| bounds_of(index, memory, options.bounds));
    let bounds: Vec<_> = bounds.collect();
    let segment = options.bounds == Bounds::Segment;
    let job = Job {
        module: &module,
        layout,
        bounds: &bounds,
        segment,
        cpu: &cpu,
        plan: &plan,
        emit: options.emit,
        progress,
        surroundings,
    };
    let threads = parallel::threads(options.jobs, plan.parts.len());
    if let Some(supervisor) = surroundings.supervisor {
        supervisor.reserve(threads * parallel::STACK_BYTES).map_err(CompileError::io("reserving stacks"))?;
        supervisor.watch().begin(plan.to_watch(&module, &surroundings.finished));
    }
    let outputs = job.run(threads)?;
    if let Emit::LlvmIr | Emit::Asm = options.emit {
        return Ok(join(&plan, outputs, if options.emit == Emit::LlvmIr { ';' } else { '#' }));
    }
    progress.begin(Phase::Link, 0);
    if options.emit == Emit::Obj {
        return artifact::relocatable(outputs, cpu.arch);
    }
    let code = outputs.into_iter().zip(0..).map(|(object, index)| CodeObject::read(object, index, DefaultRow::Call));
    let code = code.collect::<Result<Vec<_>, _>>()?;
    let parts = Parts {
        module: &module,
        entry_types: &translate::entry_types(&module),
        bounds: &bounds,
        segment,
        opt_level: options.opt_level,
        arch: cpu.arch,
        cpu_features: &cpu.features,
        debug: options.debug,
    };
    let machine = Machine::new(&cpu, Effort::Level(options.opt_level))?;
    let helpers = helpers::build(&artifact::missing(&code), &machine, cpu.arch, code.len() as u32)?;
    artifact::assemble(&parts, code, helpers)
}

/// The generation of a module's code.
struct Job<'a> {
    module: &'a Module<'a>,
    layout: Layout,
    bounds: &'a [Bounds],
    segment: bool,
    cpu: &'a TargetCpu,
    plan: &'a Plan,
    emit: Emit,
    progress: &'a dyn Progress,
    surroundings: &'a Surroundings<'a>,
}

impl Job<'_> {
    /// What each part gives, in their order.
    fn run(&self, threads: usize) -> Result<Vec<Vec<u8>>, CompileError> {
        let parts = &self.plan.parts;
        let phases = PartProgress { progress: self.progress, is_whole: parts.len() == 1 };
        if !phases.is_whole {
            self.progress.begin(Phase::Generate, self.module.bodies.len());
        }
        let weights: Vec<_> = parts.iter().map(|part| part.bytes).collect();
        let mut functions_done = 0;
        parallel::map(
            &weights,
            threads,
            |index| {
                if let Some(finished) = self.surroundings.finished.get(&index) {
                    return Ok(finished.clone());
                }
                self.progress.part(index, Some(&parts[index].description(self.module)));
                let output = self.supervised(index, &phases);
                self.progress.part(index, None);
                output
            },
            |index| {
                functions_done += parts[index].functions.len();
                phases.advance(functions_done);
            },
        )
    }

    fn supervised(&self, index: usize, phases: &PartProgress<'_>) -> Result<Vec<u8>, CompileError> {
        let Some(supervisor) = self.surroundings.supervisor else { return self.part(index, phases) };
        let output = supervisor.watch().part(index, || self.part(index, phases))?;
        if !phases.is_whole {
            supervisor.finished(index, &output);
        }
        Ok(output)
    }

    fn part(&self, index: usize, phases: &PartProgress<'_>) -> Result<Vec<u8>, CompileError> {
        let part: &Part = &self.plan.parts[index];
        let machine = Machine::new(self.cpu, part.effort)?;
        let context = Context::create();
        let ir = Ir::new(&context, &machine, self.layout.size());
        ir.define_at_start(&artifact::text_symbol(index as u32));
        let unit = Unit::new(self.module, ir, self.layout, self.bounds.to_vec(), self.segment, part, &self.plan.shared);
        phases.begin(Phase::Translate);
        if index == 0 {
            translate::entries(&unit)?;
        }
        translate::translate(&unit, part)?;
        let Unit { ir, .. } = unit;
        let code = ir.finish()?;

        phases.begin(Phase::Optimise);
        llvm::optimise(&code, &machine, part.effort, self.bounds)?;
        if self.emit == Emit::LlvmIr {
            return Ok(code.print_to_string().to_bytes().to_vec());
        }
        phases.begin(Phase::Generate);
        if self.emit == Emit::Asm { machine.assembly(&code) } else { machine.object(&code) }
    }
}

/// What is told about parts: their phases while there is one, the number of functions done while there are several.
struct PartProgress<'a> {
    progress: &'a dyn Progress,
    is_whole: bool,
}

impl PartProgress<'_> {
    fn begin(&self, phase: Phase) {
        if self.is_whole {
            self.progress.begin(phase, 0);
        }
    }

    fn advance(&self, done: usize) {
        if !self.is_whole {
            self.progress.advance(done);
        }
    }
}

/// Texts one after the other, each below a line that says what it is, if there are several.
fn join(plan: &Plan, outputs: Vec<Vec<u8>>, comment: char) -> Vec<u8> {
    let count = outputs.len();
    let mut all = Vec::new();
    for (index, (part, text)) in plan.parts.iter().zip(outputs).enumerate() {
        if count > 1 {
            let functions = part.functions.first().zip(part.functions.last());
            let functions = functions.map_or_else(String::new, |(first, last)| format!(", functions {} to {}", first.0, last.0));
            all.extend_from_slice(format!("{comment} part {} of {count}{functions}\n", index + 1).as_bytes());
        }
        all.extend_from_slice(&text);
    }
    all
}

/// How accesses to a memory are checked: explicitly wherever an index has 64 bits, which no reserved address space can hold; and there is one
/// segment register.
fn bounds_of(index: usize, memory: &MemoryType, chosen: Bounds) -> Bounds {
    match chosen {
        _ if memory.memory64 => Bounds::Software,
        Bounds::Segment if index > 0 => Bounds::Guard,
        chosen => chosen,
    }
}

/// Whether options go together, without a module: what [`compile`] would say of them.
///
/// # Errors
/// When they do not; the error names the option and what may be given instead.
pub fn check(options: &CompileOptions) -> Result<(), CompileError> {
    TargetCpu::resolve(&options.cpu, options.arch)?;
    match options.bounds {
        Bounds::Segment if options.arch != Arch::X86_64 => Err(CompileError::Options {
            option: "bounds",
            value: options.bounds.to_string(),
            reason: format!("needs a segment register, which {} has not; give guard, software or none", options.arch.name()),
        }),
        Bounds::Guard | Bounds::Segment | Bounds::Software | Bounds::None => Ok(()),
    }
}
