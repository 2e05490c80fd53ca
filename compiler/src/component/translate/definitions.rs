//! The components of a file as they stand there, as far as it matters for how many instances they make ([`super::census`]).

use std::collections::HashMap;

use awsm_abi::limits::COMPONENT_NESTING_MAX;
use wasmtime_environ::wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, Instance, Parser, Payload,
};

/// Why a component is not counted.
pub(super) enum Stop {
    /// It cannot be followed.
    Unknown,
    /// It is too large.
    Refused(String),
}

/// What matters here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Component,
    Instance,
}

/// A component as it stands in the file.
#[derive(Default)]
pub(super) struct Definition<'a> {
    /// Where it begins.
    pub(super) offset: usize,
    pub(super) steps: Vec<Step<'a>>,
    /// The components around it that it names, and those which components in it name.
    pub(super) captures: Vec<Capture>,
    /// Core instances of an instance of it, without those of instances in it.
    pub(super) core_instances: u64,
    /// All that is done to make an instance of it, likewise.
    pub(super) work: u64,
}

/// Where a component of those around is found from the one that is next around.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Capture {
    /// It has it by that index.
    Own(u32),
    /// It is the one that it captures itself at that place.
    Captured(u32),
}

/// What is done to make an instance, in the order of the file.
pub(super) enum Step<'a> {
    /// Index among all definitions.
    Define(usize),
    Import(Kind, &'a str),
    Instantiate(u32, Vec<(Kind, &'a str, u32)>),
    Bundle(Vec<(Kind, &'a str, u32)>),
    Alias(Kind, u32, &'a str),
    AliasOwn(u32),
    AliasCaptured(u32),
    Export(Kind, &'a str, u32),
}

const fn kind(kind: ComponentExternalKind) -> Option<Kind> {
    match kind {
        ComponentExternalKind::Component => Some(Kind::Component),
        ComponentExternalKind::Instance => Some(Kind::Instance),
        _ => None,
    }
}

/// All components of the file; the first is the whole.
pub(super) fn definitions(component: &[u8]) -> Result<Vec<Definition<'_>>, Stop> {
    let mut all = vec![Definition::default()];
    // Around what is read, and that itself; modules are none.
    let mut around: Vec<Option<usize>> = vec![Some(0)];
    let mut known: HashMap<(usize, Capture), u32> = HashMap::new();
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(|_| Stop::Unknown)? {
            Payload::ComponentSection { unchecked_range, .. } => {
                if around.len() > COMPONENT_NESTING_MAX {
                    let at = unchecked_range.start;
                    let message = format!(
                        "components are nested too deeply: at most {COMPONENT_NESTING_MAX} may be within each other, and that at offset {at:#x} is within as many"
                    );
                    return Err(Stop::Refused(message));
                }
                let index = all.len();
                all.push(Definition { offset: unchecked_range.start, ..Definition::default() });
                current(&mut all, &around)?.steps.push(Step::Define(index));
                around.push(Some(index));
            }
            Payload::ModuleSection { .. } => around.push(None),
            Payload::End(_) => drop(around.pop()),
            Payload::ComponentAliasSection(section) => {
                for alias in section {
                    let step = match alias.map_err(|_| Stop::Unknown)? {
                        ComponentAlias::InstanceExport { kind: of, instance_index, name } => {
                            kind(of).map(|kind| Step::Alias(kind, instance_index, name))
                        }
                        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count: 0, index } => {
                            Some(Step::AliasOwn(index))
                        }
                        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
                            Some(Step::AliasCaptured(capture(&mut all, &around, &mut known, count, index)?))
                        }
                        _ => None,
                    };
                    current(&mut all, &around)?.add(step, 0);
                }
            }
            payload => {
                if let Some(&Some(index)) = around.last() {
                    all[index].read(payload)?;
                }
            }
        }
    }
    Ok(all)
}

/// The component that is read.
fn current<'d, 'a>(all: &'d mut [Definition<'a>], around: &[Option<usize>]) -> Result<&'d mut Definition<'a>, Stop> {
    let index = around.last().copied().flatten().ok_or(Stop::Unknown)?;
    all.get_mut(index).ok_or(Stop::Unknown)
}

/// The place among what the component that is read captures, of the one with that index so many components further out. Those between capture it as well.
fn capture(
    all: &mut [Definition<'_>],
    around: &[Option<usize>],
    known: &mut HashMap<(usize, Capture), u32>,
    count: u32,
    index: u32,
) -> Result<u32, Stop> {
    let outermost = (around.len() - 1).checked_sub(count as usize).ok_or(Stop::Unknown)?;
    let mut capture = Capture::Own(index);
    let mut place = 0;
    for definition in &around[outermost + 1..] {
        let definition = definition.ok_or(Stop::Unknown)?;
        place = *known.entry((definition, capture)).or_insert_with(|| {
            all[definition].captures.push(capture);
            all[definition].captures.len() as u32 - 1
        });
        capture = Capture::Captured(place);
    }
    Ok(place)
}

impl<'a> Definition<'a> {
    fn add(&mut self, step: Option<Step<'a>>, more: usize) {
        self.work += 1 + more as u64;
        self.steps.extend(step);
    }

    /// Takes what a section says.
    fn read(&mut self, payload: Payload<'a>) -> Result<(), Stop> {
        let unknown = |_| Stop::Unknown;
        match payload {
            Payload::ComponentImportSection(section) => {
                for import in section {
                    let import = import.map_err(unknown)?;
                    self.add(kind(import.ty.kind()).map(|kind| Step::Import(kind, import.name.name)), 0);
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    let export = export.map_err(unknown)?;
                    self.add(kind(export.kind).map(|kind| Step::Export(kind, export.name.name, export.index)), 0);
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section {
                    match instance.map_err(unknown)? {
                        ComponentInstance::Instantiate { component_index, args } => {
                            let given = args.iter().filter_map(|one| Some((kind(one.kind)?, one.name, one.index)));
                            self.add(Some(Step::Instantiate(component_index, given.collect())), args.len());
                        }
                        ComponentInstance::FromExports(exports) => {
                            let given = exports.iter().filter_map(|one| Some((kind(one.kind)?, one.name.name, one.index)));
                            self.add(Some(Step::Bundle(given.collect())), exports.len());
                        }
                    }
                }
            }
            Payload::InstanceSection(section) => {
                for instance in section {
                    match instance.map_err(unknown)? {
                        Instance::Instantiate { args, .. } => {
                            self.core_instances += 1;
                            self.add(None, args.len());
                        }
                        Instance::FromExports(exports) => self.add(None, exports.len()),
                    }
                }
            }
            Payload::ComponentTypeSection(section) => self.work += u64::from(section.count()),
            Payload::CoreTypeSection(section) => self.work += u64::from(section.count()),
            Payload::ComponentCanonicalSection(section) => self.work += u64::from(section.count()),
            _ => {}
        }
        Ok(())
    }
}
