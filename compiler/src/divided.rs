//! A program that is parsed, checked and divided into parts: what compiling it begins with, and all that the keys of its parts need.

use std::collections::BTreeMap;
use std::io;

use awsm_abi::descriptor::Instantiation;
use awsm_abi::limits::{TEXTS_MAX, VMCTX_BYTES_MAX};
use awsm_abi::types::{Bounds, MemoryType};
use awsm_abi::vmctx::Layout;

use crate::artifact::ModuleParts;
use crate::component::Composition;
use crate::error::CompileError;
use crate::lines::Lines;
use crate::linked::Linked;
use crate::llvm::TargetCpu;
use crate::module::{self, FuncId, Module};
use crate::options::{CompileOptions, Emit};
use crate::partition::{self, Joined, Part, Plan};
use crate::parts::{self, Compiler, Environment, Member, PartKey};
use crate::program::{Checked, Program};
use crate::progress::Progress;
use crate::translate::{self, Whole};

/// Parts of a module that one process compiles: so many that starting it takes little of its time, and so few that a change of one costs little.
const BATCH_PARTS: usize = 16;

/// Parses and checks a program, and divides it. `slow`: functions that were given up before.
pub(crate) fn divide<T>(
    program: &Program<'_>,
    options: &CompileOptions,
    slow: &[FuncId],
    progress: &dyn Progress,
    then: impl FnOnce(&Divided<'_>) -> Result<T, CompileError>,
) -> Result<T, CompileError> {
    let cpu = TargetCpu::resolve(&options.cpu, options.arch)?;
    if program.is_component() && options.bounds == Bounds::Segment {
        return Err(CompileError::Options {
            option: "bounds",
            value: options.bounds.to_string(),
            reason: "a component has several memories, but there is one segment register; give guard, software or none"
                .to_owned(),
        });
    }
    let composition = Composition::of(program, options.unknown_imports)?;
    composition.iter().flat_map(|composition| &composition.warnings).for_each(|warning| progress.warn(warning));
    let composed = composition.as_ref().map(Composition::program);
    let Checked { modules, plan } = composed.as_ref().unwrap_or(program).check(options, progress)?;
    // They come from a process that had worked on hostile code.
    let is_defined = |id: &&FuncId| {
        let module = modules.get(id.module.0 as usize);
        module.is_some_and(|module| module.defined(id.function).is_some_and(|index| index < module.bodies.len()))
    };
    if let Some(unknown) = slow.iter().find(|id| !is_defined(id)) {
        return Err(CompileError::llvm("choosing what to give up", format_args!("no function {}", unknown.function.0)));
    }
    let sources = modules.iter().map(|module| Source::new(module, options, slow)).collect::<Result<Vec<_>, _>>()?;
    for source in &sources {
        source.plan.huge.iter().for_each(|huge| progress.warn(&huge.warning(source.module)));
        let slow = slow.iter().filter(|id| id.module == source.module.index);
        slow.for_each(|id| progress.warn(&partition::slow_warning(source.module, id.function)));
    }
    let linked = Linked::new(&modules, &plan);
    let mut parts = partition::join(sources.iter().map(|source| (source.module, &source.plan)), &linked, options.bounds);
    // What was given up comes last: earlier parts keep the numbers that they had when they were finished.
    parts.sort_by_key(Joined::apart);
    // And one for helpers.
    module::limit("code ranges", parts.len() as u64 + 1, TEXTS_MAX as u64, 0)?;
    let whole = Whole { modules: &modules, linked: &linked, segment: options.bounds == Bounds::Segment };
    then(&Divided { cpu: &cpu, whole, plan: &plan, sources: &sources, parts: &parts, composition: composition.as_ref() })
}

/// A program that is checked and divided.
#[derive(Clone, Copy)]
pub(crate) struct Divided<'a> {
    pub(crate) cpu: &'a TargetCpu,
    pub(crate) whole: Whole<'a>,
    pub(crate) plan: &'a [Instantiation],
    pub(crate) sources: &'a [Source<'a>],
    /// Of all modules.
    pub(crate) parts: &'a [Joined<'a>],
    /// What it was as a component.
    pub(crate) composition: Option<&'a Composition>,
}

impl Divided<'_> {
    /// What each part is kept under ([`crate::parts`]), for [`Emit::So`]; nothing for programs that are as fast compiled as found in a folder.
    pub(crate) fn part_keys(&self, options: &CompileOptions, compiler: &Compiler) -> io::Result<Vec<PartKey>> {
        let bytes: usize = self.sources.iter().map(|source| partition::bodies_bytes(source.module)).sum();
        if bytes <= partition::WHOLE_BYTES {
            return Ok(Vec::new());
        }
        let Whole { modules, linked, segment } = self.whole;
        let environment = |source: &Source<'_>| {
            let Source { module, layout, bounds, .. } = source;
            Environment { module, bounds, layout_bytes: layout.size(), linked, modules, segment }.hash()
        };
        let environments = self.sources.iter().map(environment).collect::<io::Result<Vec<_>>>()?;
        let base = parts::base(compiler, options, self.cpu)?;
        let mut keys: Vec<Option<PartKey>> = vec![None; self.parts.len()];
        for batch in self.batches() {
            let mut hasher = parts::Batch::new(base);
            for &index in &batch {
                let lines = lines(&self.parts[index], self.sources, options.emit);
                for (member, &(home, part)) in self.parts[index].members.iter().enumerate() {
                    let Source { module, plan, .. } = &self.sources[home];
                    let is_first = !self.parts[..index].iter().any(|other| other.has(home));
                    let (environment, line) = (environments[home], lines.start(member).0);
                    hasher.add(&Member { index, environment, module, part, is_first, shared: &plan.shared, line })?;
                }
            }
            let hash = hasher.finish();
            batch.into_iter().for_each(|index| keys[index] = Some(parts::key(hash, index, self.functions(index))));
        }
        // Without one, those behind it would be keys of other parts.
        keys.into_iter().collect::<Option<_>>().ok_or_else(|| io::Error::other("a part is in no batch"))
    }

    /// The functions of a part.
    fn functions(&self, index: usize) -> Vec<FuncId> {
        let members = self.parts[index].members.iter();
        members.flat_map(|&(home, part)| part.functions.iter().map(move |&f| self.sources[home].module.id(f))).collect()
    }

    /// Parts that one process compiles: of each module that is divided, some that follow each other, and each that was given up by itself; all others together.
    fn batches(&self) -> Vec<Vec<usize>> {
        let mut batches: BTreeMap<(Option<usize>, Option<usize>, usize), Vec<usize>> = BTreeMap::new();
        let mut ordinals = vec![0; self.sources.len()];
        for (index, joined) in self.parts.iter().enumerate() {
            let batch = match joined.members.as_slice() {
                &[(home, part)] if partition::bodies_bytes(self.sources[home].module) > partition::WHOLE_BYTES => {
                    let ordinal = ordinals[home];
                    ordinals[home] += 1;
                    (Some(home), part.apart, if part.apart.is_some() { 0 } else { ordinal / BATCH_PARTS })
                }
                _ => (None, None, 0),
            };
            batches.entry(batch).or_default().push(index);
        }
        batches.into_values().collect()
    }
}

/// What the lines of a part stand for.
pub(crate) fn lines(joined: &Joined<'_>, sources: &[Source<'_>], emit: Emit) -> Lines {
    if emit != Emit::So {
        return Lines::own();
    }
    let section = |&(home, _): &(usize, &Part)| {
        let module = sources[home].module;
        let end = module.bodies.last().map_or(module.code_start, |body| body.range().end as u32);
        (module.wasm_base + module.code_start, end - module.code_start + 1)
    };
    Lines::of_sections(joined.members.iter().map(section))
}

/// A module, and what follows from it alone.
pub(crate) struct Source<'a> {
    pub(crate) module: &'a Module<'a>,
    pub(crate) layout: Layout,
    pub(crate) bounds: Vec<Bounds>,
    pub(crate) plan: Plan,
}

impl<'a> Source<'a> {
    /// `slow`: functions of the program that were given up before.
    fn new(module: &'a Module<'a>, options: &CompileOptions, slow: &[FuncId]) -> Result<Source<'a>, CompileError> {
        let layout = Layout::new(module.counts()).ok_or(CompileError::Limit {
            what: "bytes of instance data, or more",
            found: u64::from(VMCTX_BYTES_MAX) + 1,
            limit: u64::from(VMCTX_BYTES_MAX),
            offset: 0,
        })?;
        let plan = partition::plan(module, options, slow)?;
        let memories = module.memories.iter().enumerate();
        let bounds = memories.map(|(index, memory)| bounds_of(index, memory, options.bounds)).collect();
        Ok(Source { module, layout, bounds, plan })
    }

    /// What the artifact needs of it, besides code.
    pub(crate) fn parts(&self) -> ModuleParts<'_> {
        ModuleParts { module: self.module, entry_types: translate::entry_types(self.module), bounds: &self.bounds }
    }
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
