//! The compilation of a program, from bytes to bytes.

use std::collections::BTreeMap;
use std::io;

use awsm_abi::cpu::Arch;
use awsm_abi::types::Bounds;
use inkwell::context::Context;

use crate::artifact::{self, CodeObject, DefaultRow, Parts};
use crate::divided::{self, Divided, Source, lines};
use crate::error::CompileError;
use crate::helpers;
use crate::llvm::{self, Ir, Machine, TargetCpu};
use crate::module::FuncId;
use crate::options::{CompileOptions, Effort, Emit};
use crate::parallel;
use crate::partition::Joined;
use crate::parts::{Compiler, PartKey};
use crate::program::Program;
use crate::progress::{Phase, Progress};
use crate::translate::{self, Unit, Whole};
use crate::watch::Watch;

/// Compiles a program to what [`CompileOptions::emit`] asks for: one artifact, or one text, of all of its modules.
///
/// LLVM runs in this process: a module on which it runs out of memory or stack ends the process. [`crate::isolated`] does not have that risk.
///
/// # Errors
/// When a module is invalid, uses what is not supported or exceeds a limit; when the plan does not fit the modules; when options do not go together;
/// when no linker is found. Any other error is a bug.
pub fn compile(program: &Program<'_>, options: &CompileOptions, progress: &dyn Progress) -> Result<Vec<u8>, CompileError> {
    compile_within(program, options, progress, &Surroundings::default())
}

/// What the child process of [`crate::isolated`] adds to a compilation. Nothing, where a program calls the library.
#[derive(Default)]
pub(crate) struct Surroundings<'a> {
    /// Functions that were given up before.
    pub(crate) slow: &'a [FuncId],
    /// What parts gave before.
    pub(crate) finished: BTreeMap<usize, Vec<u8>>,
    /// The parts that are wanted, if not all: nothing is linked then, and there is no output.
    pub(crate) only: Option<Vec<usize>>,
    /// Measures how long functions take, and limits memory.
    pub(crate) supervisor: Option<&'a dyn Supervisor>,
}

/// What watches a compilation, and sets its limits.
pub(crate) trait Supervisor: Sync {
    /// Is told how many bytes the threads' stacks will have, before they are made.
    fn reserve(&self, stack_bytes: usize) -> io::Result<()>;

    /// Where threads record on which function they work.
    fn watch(&self) -> &Watch;

    /// A part is done; not told of the only one, which is the output, unless parts were asked for.
    fn finished(&self, part: usize, output: &[u8]);
}

/// The same within surroundings.
pub(crate) fn compile_within(
    program: &Program<'_>,
    options: &CompileOptions,
    progress: &dyn Progress,
    surroundings: &Surroundings<'_>,
) -> Result<Vec<u8>, CompileError> {
    check(options)?;
    divided::divide(program, options, surroundings.slow, progress, |divided| generate(divided, options, progress, surroundings))
}

/// What the parts of a program are kept under ([`crate::parts`]), in their order; nothing for programs that are not worth it.
pub(crate) fn part_keys(
    program: &Program<'_>,
    options: &CompileOptions,
    slow: &[FuncId],
    compiler: &Compiler,
) -> Result<Vec<PartKey>, CompileError> {
    check(options)?;
    divided::divide(program, options, slow, &(), |divided| {
        divided.part_keys(options, compiler).map_err(CompileError::io("finding out what parts depend on"))
    })
}

fn generate(
    divided: &Divided<'_>,
    options: &CompileOptions,
    progress: &dyn Progress,
    surroundings: &Surroundings<'_>,
) -> Result<Vec<u8>, CompileError> {
    let Divided { cpu, whole, sources, parts, plan, composition } = *divided;
    let job = Job { whole, sources, parts, cpu, emit: options.emit, progress, surroundings };
    let wanted = surroundings.only.clone().unwrap_or_else(|| (0..parts.len()).collect());
    let threads = parallel::threads(options.jobs, wanted.len());
    if let Some(supervisor) = surroundings.supervisor {
        supervisor.reserve(threads * parallel::STACK_BYTES).map_err(CompileError::io("reserving stacks"))?;
        supervisor.watch().begin(job.to_watch(&wanted));
    }
    let outputs = job.run(&wanted, threads)?;
    if surroundings.only.is_some() {
        return Ok(Vec::new());
    }
    if let Emit::LlvmIr | Emit::Asm = options.emit {
        return Ok(job.join(outputs, if options.emit == Emit::LlvmIr { ';' } else { '#' }));
    }
    progress.begin(Phase::Link, 0);
    if options.emit == Emit::Obj {
        return artifact::relocatable(outputs, cpu.arch);
    }
    let code = outputs.into_iter().zip(0..).map(|(object, index)| {
        CodeObject::read(object, index, DefaultRow::Call, lines(&parts[index as usize], sources, options.emit))
    });
    let code = code.collect::<Result<Vec<_>, _>>()?;
    let description = composition.map(|composition| composition.described(whole.modules, whole.linked));
    let modules: Vec<_> = sources.iter().map(Source::parts).collect();
    let parts = Parts {
        modules: &modules,
        plan,
        component: description.as_ref(),
        segment: whole.segment,
        opt_level: options.opt_level,
        arch: cpu.arch,
        cpu_features: &cpu.features,
        debug: options.debug,
    };
    let machine = Machine::new(cpu, Effort::Level(options.opt_level))?;
    let helpers = helpers::build(&artifact::missing(&code), &machine, cpu.arch, code.len() as u32)?;
    artifact::assemble(&parts, code, helpers)
}

/// The generation of a program's code.
struct Job<'a> {
    whole: Whole<'a>,
    sources: &'a [Source<'a>],
    /// Of all modules.
    parts: &'a [Joined<'a>],
    cpu: &'a TargetCpu,
    emit: Emit,
    progress: &'a dyn Progress,
    surroundings: &'a Surroundings<'a>,
}

impl Job<'_> {
    /// What each of these parts gives, in their order.
    fn run(&self, wanted: &[usize], threads: usize) -> Result<Vec<Vec<u8>>, CompileError> {
        let parts = self.parts;
        let phases = PartProgress { progress: self.progress, is_whole: parts.len() == 1 };
        if !phases.is_whole {
            self.progress.begin(Phase::Generate, wanted.iter().map(|&index| parts[index].functions()).sum());
        }
        let weights: Vec<_> = wanted.iter().map(|&index| parts[index].bytes()).collect();
        let mut functions_done = 0;
        parallel::map(
            &weights,
            threads,
            |place| {
                let index = wanted[place];
                if let Some(finished) = self.surroundings.finished.get(&index) {
                    return Ok(finished.clone());
                }
                self.progress.part(index, Some(&parts[index].description(self.whole.modules)));
                let output = self.supervised(index, &phases);
                self.progress.part(index, None);
                output
            },
            |place| {
                functions_done += parts[wanted[place]].functions();
                phases.advance(functions_done);
            },
        )
    }

    fn supervised(&self, index: usize, phases: &PartProgress<'_>) -> Result<Vec<u8>, CompileError> {
        let Some(supervisor) = self.surroundings.supervisor else { return self.part(index, phases) };
        let output = supervisor.watch().part(index, || self.part(index, phases))?;
        // A process for parts of the program has no other output, even where there is only one part.
        if !phases.is_whole || self.surroundings.only.is_some() {
            supervisor.finished(index, &output);
        }
        Ok(output)
    }

    fn part(&self, index: usize, phases: &PartProgress<'_>) -> Result<Vec<u8>, CompileError> {
        let joined = &self.parts[index];
        let effort = joined.effort();
        let machine = Machine::new(self.cpu, effort)?;
        let context = Context::create();
        let ir = Ir::new(&context, &machine);
        ir.define_at_start(&artifact::text_symbol(index as u32));
        let mut all_bounds = Vec::new();
        let lines = lines(joined, self.sources, self.emit);
        phases.begin(Phase::Translate);
        for (member, &(home, part)) in joined.members.iter().enumerate() {
            let Source { module, layout, bounds, plan } = &self.sources[home];
            let is_first = !self.parts[..index].iter().any(|other| other.has(home));
            let unit = Unit::new(self.whole, module, &ir, *layout, bounds.clone(), part, &plan.shared);
            let unit = unit.with_lines_from(lines.start(member));
            if is_first {
                translate::entries(&unit)?;
            }
            translate::translate(&unit, part)?;
            all_bounds.extend_from_slice(bounds);
        }
        let code = ir.finish()?;

        phases.begin(Phase::Optimise);
        llvm::optimise(&code, &machine, effort, &all_bounds)?;
        if self.emit == Emit::LlvmIr {
            return Ok(code.print_to_string().to_bytes().to_vec());
        }
        phases.begin(Phase::Generate);
        if self.emit == Emit::Asm { machine.assembly(&code) } else { machine.object(&code) }
    }

    /// The functions of these parts that are worth watching.
    fn to_watch(&self, wanted: &[usize]) -> Vec<(FuncId, usize)> {
        let unfinished = wanted.iter().filter(|index| !self.surroundings.finished.contains_key(index));
        let members = unfinished.flat_map(|&index| &self.parts[index].members);
        members.flat_map(|&(home, part)| part.to_watch(self.sources[home].module)).collect()
    }

    /// Texts one after the other, each below a line that says what it is, if there are several.
    fn join(&self, outputs: Vec<Vec<u8>>, comment: char) -> Vec<u8> {
        let count = outputs.len();
        let mut all = Vec::new();
        for (index, (joined, text)) in self.parts.iter().zip(outputs).enumerate() {
            if count > 1 {
                let members = joined.members.iter().map(|&(home, part)| {
                    let module = match self.sources.len() {
                        1 => String::new(),
                        _ => format!(", module {home}"),
                    };
                    let functions = part.functions.first().zip(part.functions.last());
                    let functions =
                        functions.map_or_else(String::new, |(first, last)| format!(", functions {} to {}", first.0, last.0));
                    module + &functions
                });
                let members: String = members.collect();
                all.extend_from_slice(format!("{comment} part {} of {count}{members}\n", index + 1).as_bytes());
            }
            all.extend_from_slice(&text);
        }
        all
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
