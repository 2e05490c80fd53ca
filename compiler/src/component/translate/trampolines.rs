//! Trampolines, which wasmtime's runtime would answer: glue stands for them, as far as the state does not.

use wasmtime_environ::component::{CoreDef, RuntimeComponentInstanceIndex, RuntimeMemoryIndex, Trampoline, TrampolineIndex};

use super::super::glue::{Glue, Signature, Source};
use super::transcoders::transcoder;
use super::{Builder, builtins, tasks, unsupported};
use crate::error::CompileError;

/// What trampolines of a glue instance have in common.
#[derive(PartialEq, Eq)]
enum Group {
    /// They work on a memory of the component, or on none.
    Memory(Option<Source>),
    /// They copy from one to the other.
    Between(Source, Source),
}

/// A glue module in the making.
struct Making {
    group: Group,
    glue: Glue,
    /// The trampolines in it, and under which names it exports them.
    members: Vec<(TrampolineIndex, String)>,
}

impl Making {
    fn has(&self, index: TrampolineIndex) -> bool {
        self.members.iter().any(|member| member.0 == index)
    }
}

impl Builder<'_> {
    /// Makes the glue instances for those trampolines among the arguments that have none. Those that work on the same memory share one.
    pub(super) fn make_glue(&mut self, arguments: &[CoreDef]) -> Result<(), CompileError> {
        let mut groups: Vec<Making> = Vec::new();
        for argument in arguments {
            let CoreDef::Trampoline(index) = *argument else { continue };
            if self.made.contains_key(&index) || groups.iter().any(|making| making.has(index)) {
                continue;
            }
            let trampoline = &self.trampolines[index];
            if tasks::is_of_adapter(trampoline) {
                continue;
            }
            if let Some(source) = in_state(trampoline) {
                self.made.insert(index, source);
                continue;
            }
            let group = self.group(trampoline)?;
            let place = groups.iter().position(|making| making.group == group).unwrap_or_else(|| {
                let glue = match &group {
                    Group::Memory(memory) => Glue::new(memory.as_ref()),
                    Group::Between(from, to) => Glue::between(from, to),
                };
                groups.push(Making { group, glue, members: Vec::new() });
                groups.len() - 1
            });
            let ty = self.signature(self.component.trampolines[index])?;
            if let Some(export) = self.wrap(trampoline, &ty, &mut groups[place].glue)? {
                groups[place].members.push((index, export));
            } else {
                // It is refused in the end: until then anything stands for it.
                self.made.insert(index, Source::state("trap"));
            }
        }
        for Making { glue, members, .. } in groups {
            if members.is_empty() {
                continue;
            }
            let (text, linked) = glue.finish();
            let instance = self.instantiate(&text, &linked)?;
            self.made.extend(members.into_iter().map(|(index, export)| (index, Source { instance, export })));
        }
        Ok(())
    }

    /// On which memories a trampoline works.
    fn group(&self, trampoline: &Trampoline) -> Result<Group, CompileError> {
        let memory = |index: &RuntimeMemoryIndex| self.memory(*index);
        Ok(match trampoline {
            Trampoline::LowerImport { options, .. } => {
                let memory = self.component.options[*options].memory().as_ref().map(memory).transpose()?;
                Group::Memory(memory)
            }
            Trampoline::Transcoder { from64: true, .. } | Trampoline::Transcoder { to64: true, .. } => {
                return Err(unsupported("a memory of 64 bits in a component"));
            }
            Trampoline::Transcoder { from, to, .. } => Group::Between(memory(from)?, memory(to)?),
            other => match builtins::options(other).and_then(|options| self.component.options[options].memory()) {
                Some(index) => Group::Memory(Some(memory(&index)?)),
                None => Group::Memory(None),
            },
        })
    }

    /// Adds the wrapper of a trampoline to glue; the name of its export. None where the host does not offer what it stands for, which is noted.
    fn wrap(&mut self, trampoline: &Trampoline, ty: &Signature, glue: &mut Glue) -> Result<Option<String>, CompileError> {
        let table = |builder: &Self, instance: RuntimeComponentInstanceIndex| builder.state.table(instance.as_u32());
        Ok(Some(match trampoline {
            Trampoline::LowerImport { index, lower_ty, options } => {
                return self.lower(*index, *lower_ty, *options, ty, glue);
            }
            Trampoline::ResourceNew { instance, ty } => {
                glue.resource_new(instance.as_u32(), table(self, *instance), self.row(*ty).resource)
            }
            Trampoline::ResourceRep { instance, ty } => glue.resource_rep(table(self, *instance), self.row(*ty).resource),
            Trampoline::ResourceDrop { instance, ty } => {
                let end = self.destructor(*ty);
                glue.resource_drop(instance.as_u32(), table(self, *instance), self.row(*ty).resource, &end, self.throws)
            }
            Trampoline::Transcoder { op, .. } => glue.transcoder(transcoder(*op)),
            other => self.builtin(other, ty, glue)?,
        }))
    }
}

/// What the state exports itself.
fn in_state(trampoline: &Trampoline) -> Option<Source> {
    Some(Source::state(match trampoline {
        Trampoline::ResourceTransferOwn => "transfer own",
        Trampoline::ResourceTransferBorrow => "transfer borrow",
        Trampoline::EnterSyncCall => "enter",
        Trampoline::ExitSyncCall => "exit",
        Trampoline::Trap => "trap of adapter",
        Trampoline::StreamTransfer => "transfer stream",
        Trampoline::FutureTransfer => "transfer future",
        Trampoline::ErrorContextTransfer => "transfer error",
        _ => return None,
    }))
}
