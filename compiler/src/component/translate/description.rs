//! What the artifact says of the component: which step of the plan belongs to which component instance, and which functions of adapters are which calls.

use std::collections::HashSet;

use awsm_abi::component::{Call, Description, Role, cut};
use awsm_abi::limits::COMPONENT_CALLS_MAX;
use wasmparser::{ExternalKind, Operator, Parser, Payload, TypeRef};
use wasmtime_environ::component::{CoreDef, GlobalInitializer, InstantiateModule, RuntimeComponentInstanceIndex};
use wasmtime_environ::{EntityRef as _, EntityType};

use super::Builder;
use super::instances::CoreInstance;
use crate::component::names;
use crate::component::world;

/// The module name under which adapters import the functions that they call.
const CALLEE: &str = "callee";
/// The one under which they import the flags of component instances, by [`FLAGS_PREFIX`] and the instance's number.
const FLAGS: &str = "flags";
const FLAGS_PREFIX: &str = "instance";

impl Builder<'_> {
    /// The description, once all is built.
    pub(super) fn description(&self, bytes: &[u8]) -> Description {
        let mut roles = vec![Role::Glue; self.plan.len()];
        if let Some(state) = roles.first_mut() {
            *state = Role::State;
        }
        for instance in &self.instances {
            roles[instance.place] = match instance.owner {
                Some(owner) => Role::Code(owner.as_u32()),
                None => Role::Adapter,
            };
        }
        let instances = names::of_instances(bytes, self.component.num_runtime_component_instances as usize);
        Description { world: world::text(bytes).unwrap_or_default(), instances, roles, calls: self.calls() }
    }

    /// The calls that adapters make.
    fn calls(&self) -> Vec<Call> {
        let instantiated = self.component.initializers.iter().filter_map(|initializer| match initializer {
            GlobalInitializer::InstantiateModule(InstantiateModule::Static(_, arguments), _) => Some(arguments),
            _ => None,
        });
        let mut calls = Vec::new();
        for (instance, arguments) in self.instances.iter().zip(instantiated) {
            if instance.owner.is_none() {
                calls.extend(self.calls_of(instance, arguments));
            }
        }
        calls.sort_by_key(|call| (call.module, call.function));
        calls.truncate(COMPONENT_CALLS_MAX);
        calls
    }

    /// The calls of one adapter module.
    fn calls_of(&self, adapter: &CoreInstance, arguments: &[CoreDef]) -> Vec<Call> {
        let Some(&module) = self.compiled.get(&adapter.module) else { return Vec::new() };
        let functions = self.static_modules[adapter.module].module.imports().zip(arguments);
        let functions = functions.filter(|((.., ty), _)| matches!(ty, EntityType::Function(_)));
        let functions: Vec<&CoreDef> = functions.map(|(_, argument)| argument).collect();
        let found = adapters(self.static_modules[adapter.module].wasm).unwrap_or_default();
        let call = |found: Adapter| {
            let CoreDef::Export(export) = functions.get(found.callee as usize)? else { return None };
            let callee: RuntimeComponentInstanceIndex = self.instances.get(export.instance.index())?.owner?;
            let name = self.export(&export.clone()).ok()?.export;
            Some(Call {
                module: module as u32,
                function: found.function,
                name: cut(&name).to_owned(),
                caller: found.caller?,
                callee: callee.as_u32(),
                target: found.callee,
                at: found.at,
                direct: false,
            })
        };
        found.into_iter().filter_map(call).collect()
    }
}

/// A function of an adapter module.
struct Adapter {
    /// Its index.
    function: u32,
    /// Index of the function that it calls.
    callee: u32,
    /// Where it does.
    at: u32,
    /// The component instance at whose flags it looks first: the one that calls.
    caller: Option<u32>,
}

/// Looks for the calls in the code of an adapter module.
fn adapters(wasm: &[u8]) -> wasmparser::Result<Vec<Adapter>> {
    // By index: whether an imported function is what an adapter calls, and of which instance an imported global is the flags.
    let (mut functions, mut globals): (Vec<bool>, Vec<Option<u32>>) = (Vec::new(), Vec::new());
    let mut exported = HashSet::new();
    let mut adapters = Vec::new();
    let mut index = 0;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    match import.ty {
                        TypeRef::Func(_) | TypeRef::FuncExact(_) => functions.push(import.module == CALLEE),
                        TypeRef::Global(_) => {
                            let number = import.name.strip_prefix(FLAGS_PREFIX).filter(|_| import.module == FLAGS);
                            globals.push(number.and_then(|number| number.parse().ok()));
                        }
                        _ => {}
                    }
                }
                index = functions.len() as u32;
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    if export.kind == ExternalKind::Func {
                        exported.insert(export.index);
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                let function = index;
                index += 1;
                if !exported.contains(&function) {
                    continue;
                }
                let mut caller = None;
                for operator in body.get_operators_reader()?.into_iter_with_offsets() {
                    match operator? {
                        (Operator::GlobalGet { global_index }, _) if caller.is_none() => {
                            caller = globals.get(global_index as usize).copied().flatten();
                        }
                        (Operator::Call { function_index: callee }, at)
                            if functions.get(callee as usize).is_some_and(|is_callee| *is_callee) =>
                        {
                            adapters.push(Adapter { function, callee, at: at as u32, caller });
                            break;
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Ok(adapters)
}
