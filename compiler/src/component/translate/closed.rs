//! Calls that need no record: of functions of a component instance that can call no other component.
//!
//! In a component with tasks, an adapter both sides of which are synchronous tells the state that a call begins and that it has returned. The state keeps a record
//! meanwhile: which instance runs, which is not to be entered again; what is lent to the call; the contexts of its caller; whether it may be entered only when it is
//! free. That takes 7 ns, and is for nothing where all of these hold:
//!
//! * **The function's type is not async.** Otherwise the call waits until the instance is free.
//! * **The adapter lends nothing.** Otherwise the handles have to be dropped before the call returns, and can be used again after it.
//! * **The instance is closed**: beside each other, its core instances import only functions of the host that are not async, `resource.new` and `resource.rep`, and
//!   `resource.drop` where no destructor of another instance is called. So the instance cannot be in the middle of a call that came to it again, and no built-in
//!   function asks which task runs.
//!
//! Such an adapter is compiled without these two calls. What it imports stays the same.

use std::collections::BTreeSet;
use std::ops::Range;

use wasmtime_environ::component::{
    CoreDef, GlobalInitializer, InstantiateModule, RuntimeComponentInstanceIndex, Trampoline, TypeResourceTable,
};
use wasmtime_environ::wasmparser::{FunctionBody, Operator, Parser, Payload};
use wasmtime_environ::{EntityRef as _, EntityType, StaticModuleIndex};

use super::{Builder, unsupported};
use crate::error::CompileError;

/// `nop`.
const NOP: u8 = 0x01;

/// The imported functions of a module of adapters that matter here, by their index.
#[derive(Default)]
struct Imports {
    enter: BTreeSet<u32>,
    exit: BTreeSet<u32>,
    lend: BTreeSet<u32>,
    /// How many functions it imports altogether.
    count: u32,
}

impl Builder<'_> {
    /// The component instances that are closed.
    pub(super) fn closed_instances(&self) -> BTreeSet<u32> {
        let (mut owners, mut open) = (Vec::new(), BTreeSet::new());
        for initializer in &self.component.initializers {
            let GlobalInitializer::InstantiateModule(InstantiateModule::Static(_, arguments), owner) = initializer else {
                continue;
            };
            owners.push(*owner);
            let Some(owner) = *owner else { continue };
            let is_inside = |argument: &CoreDef| match argument {
                CoreDef::Export(export) => owners.get(export.instance.index()) == Some(&Some(owner)),
                CoreDef::Trampoline(index) => self.calls_no_component(&self.trampolines[*index], owner),
                _ => false,
            };
            if !arguments.iter().all(is_inside) {
                open.insert(owner.as_u32());
            }
        }
        let all = owners.into_iter().flatten().map(RuntimeComponentInstanceIndex::as_u32);
        all.filter(|instance| !open.contains(instance)).collect()
    }

    /// Whether what an instance imports calls no component, and does not ask which task runs.
    fn calls_no_component(&self, trampoline: &Trampoline, owner: RuntimeComponentInstanceIndex) -> bool {
        match trampoline {
            Trampoline::LowerImport { lower_ty, .. } => !self.types[*lower_ty].async_,
            Trampoline::ResourceNew { .. } | Trampoline::ResourceRep { .. } => true,
            Trampoline::ResourceDrop { ty, .. } => {
                let TypeResourceTable::Concrete { ty, .. } = self.types[*ty] else { return false };
                let defined = self.component.defined_resource_index(ty);
                defined.is_none_or(|defined| self.component.defined_resource_instances[defined] == owner)
            }
            _ => false,
        }
    }

    /// A module of adapters, of which those do not tell the state of calls that need no record.
    pub(super) fn without_records(&self, index: StaticModuleIndex, arguments: &[CoreDef]) -> Result<Vec<u8>, CompileError> {
        let translated = &self.static_modules[index];
        let mut wasm = translated.wasm.to_vec();
        if self.closed.is_empty() {
            return Ok(wasm);
        }
        let mut imports = Imports::default();
        for (_, argument) in
            translated.module.imports().zip(arguments).filter(|((.., ty), _)| matches!(ty, EntityType::Function(_)))
        {
            if let CoreDef::Trampoline(trampoline) = argument {
                match &self.trampolines[*trampoline] {
                    Trampoline::EnterSyncCall => imports.enter.insert(imports.count),
                    Trampoline::ExitSyncCall => imports.exit.insert(imports.count),
                    Trampoline::ResourceTransferBorrow => imports.lend.insert(imports.count),
                    _ => false,
                };
            }
            imports.count += 1;
        }
        let unknown = |_| unsupported("an adapter of an unknown form (a bug)");
        for payload in Parser::new(0).parse_all(translated.wasm) {
            let Payload::CodeSectionEntry(body) = payload.map_err(unknown)? else { continue };
            for range in self.needless(&body, &imports).map_err(unknown)? {
                wasm[range].fill(NOP);
            }
        }
        Ok(wasm)
    }

    /// Where an adapter tells the state of a call that needs no record.
    fn needless(
        &self,
        body: &FunctionBody<'_>,
        imports: &Imports,
    ) -> Result<Vec<Range<usize>>, wasmtime_environ::wasmparser::BinaryReaderError> {
        let mut reader = body.get_operators_reader()?;
        // The last three operators, where each is a number: the caller, whether the type is async, the instance that is called.
        let mut numbers: Vec<(usize, i32)> = Vec::new();
        let (mut enter, mut exit) = (Vec::new(), Vec::new());
        while !reader.eof() {
            let start = reader.original_position();
            let operator = reader.read()?;
            let end = reader.original_position();
            if let Operator::I32Const { value } = operator {
                numbers.push((start, value));
                continue;
            }
            let numbers = std::mem::take(&mut numbers);
            let Operator::Call { function_index } = operator else { continue };
            // What functions of the module itself do is not looked at.
            if function_index >= imports.count || imports.lend.contains(&function_index) {
                return Ok(Vec::new());
            }
            if imports.exit.contains(&function_index) {
                exit.push(start..end);
            }
            if imports.enter.contains(&function_index) {
                match numbers.as_slice() {
                    [.., (first, _), (_, 0), (_, callee)] if self.closed.contains(&callee.cast_unsigned()) => {
                        enter.push(*first..end)
                    }
                    _ => return Ok(Vec::new()),
                }
            }
        }
        // One call of each, as adapters are written.
        Ok(if enter.len() == 1 && exit.len() == 1 { enter.into_iter().chain(exit).collect() } else { Vec::new() })
    }
}
