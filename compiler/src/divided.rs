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
use crate::linked::Linked;
use crate::llvm::TargetCpu;
use crate::module::{self, FuncId, Module};
use crate::options::{CompileOptions, Emit};
use crate::partition::{self, Joined, Plan};
use crate::parts::{Compiler, Group, PartKey};
use crate::program::{Checked, Program};
use crate::progress::Progress;
use crate::translate::{self, Whole};

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
    let composition = Composition::of(program)?;
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
    /// Those of modules that are divided: a module that is one part is compiled as fast as it is found in a folder.
    pub(crate) fn part_keys(&self, options: &CompileOptions, compiler: &Compiler) -> io::Result<Vec<Option<PartKey>>> {
        let mut groups = BTreeMap::new();
        let mut keys = Vec::new();
        for (index, joined) in self.parts.iter().enumerate() {
            let &[(home, part)] = joined.members.as_slice() else {
                keys.push(None);
                continue;
            };
            let Source { module, layout, bounds, plan } = &self.sources[home];
            if options.emit != Emit::So || partition::bodies_bytes(module) <= partition::WHOLE_BYTES {
                keys.push(None);
                continue;
            }
            let Whole { modules, linked, segment } = self.whole;
            let group = Group { module, bounds, layout_bytes: layout.size(), linked, modules, segment };
            // The first part of a module has its entries and thunks.
            let is_first = !groups.contains_key(&home);
            let hash = match groups.get(&home) {
                Some(&hash) => hash,
                None => *groups.entry(home).or_insert(group.hash(compiler, options, self.cpu)?),
            };
            keys.push(Some(group.part(hash, index, part, is_first, &plan.shared)?));
        }
        Ok(keys)
    }
}

/// Where lines of a part count from: from the start of its module's code, so that code does not depend on what stands before. In texts, which people read, and where
/// several modules share a part, from the start of the program.
pub(crate) fn lines_from(part: &Joined<'_>, sources: &[Source<'_>], emit: Emit) -> u32 {
    match part.members.as_slice() {
        &[(home, _)] if emit == Emit::So => sources[home].module.wasm_base + sources[home].module.code_start,
        _ => 0,
    }
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
