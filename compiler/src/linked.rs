//! What a program's plan says about imports: which function of which module an imported function is, and which memory an imported memory.
//!
//! Code is generated once for a module, however many instances of it there are. So something is known only between modules of which the plan has exactly one
//! instance. There, a call of an imported function is a direct call, which may be inlined, and accesses to a memory are of one alias class in all modules
//! that see it.

use std::collections::HashMap;

use awsm_abi::descriptor::{ConstOp, ElementItems, ElementSegment, ExternKind, ImportSource, Instantiation, SegmentMode};
use wasmparser::Operator;

use crate::module::{FuncId, FuncIdx, ImportType, Module};

/// An imported function that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The function.
    pub(crate) function: FuncId,
    /// How far its instance lies behind the caller's in the plan, where that is not the instance from which the caller imports: a table led there.
    pub(crate) behind: Option<i32>,
}

/// What is known of the imports of a program's modules.
#[derive(Debug)]
pub(crate) struct Linked {
    /// For each module and each of its imported functions.
    functions: Vec<Vec<Option<Target>>>,
    /// For each module and each of its memories a number: memories with different numbers are different. None for what is not known.
    memories: Vec<Vec<Option<u32>>>,
    /// Whether the plan has exactly one instance of the module.
    is_single: Vec<bool>,
}

impl Linked {
    /// Looks at a plan that fits these modules.
    pub(crate) fn new(modules: &[Module<'_>], plan: &[Instantiation]) -> Linked {
        let mut instances = vec![Vec::new(); modules.len()];
        for (index, step) in plan.iter().enumerate() {
            instances[step.module as usize].push(index);
        }
        let mut program = Program { modules, plan, only: HashMap::new(), first_memory: Vec::new() };
        let mut memories = 0;
        for (module, instances) in modules.iter().zip(&instances) {
            if let &[only] = instances.as_slice() {
                program.only.insert(module.index.0, only);
            }
            program.first_memory.push(memories);
            memories += module.memories.len() as u32 - module.imported_memories;
        }
        let functions = modules.iter().map(|module| {
            let imported = 0..module.imported_functions;
            imported.map(|function| program.target(module, function)).collect()
        });
        let memories = modules.iter().map(|module| {
            let all = 0..module.memories.len() as u32;
            all.map(|memory| program.memory(module, memory)).collect()
        });
        Linked {
            functions: functions.collect(),
            memories: memories.collect(),
            is_single: instances.iter().map(|instances| instances.len() == 1).collect(),
        }
    }

    /// What an imported function of a module is.
    pub(crate) fn function(&self, module: &Module<'_>, function: FuncIdx) -> Option<Target> {
        self.functions[module.index.0 as usize][function.0 as usize]
    }

    /// The number of a memory, among all of the program.
    pub(crate) fn memory(&self, module: &Module<'_>, memory: u32) -> Option<u32> {
        self.memories[module.index.0 as usize][memory as usize]
    }

    /// Whether the plan has exactly one instance of a module.
    pub(crate) fn is_single(&self, module: &Module<'_>) -> bool {
        self.is_single[module.index.0 as usize]
    }
}

/// How often what is imported is looked for in another module. No plan is deeper: every step is to an earlier instance.
const STEPS_MAX: usize = 1000;

struct Program<'a> {
    modules: &'a [Module<'a>],
    plan: &'a [Instantiation],
    /// The only instance of each module that has one only.
    only: HashMap<u32, usize>,
    /// The number of the first memory that each module defines.
    first_memory: Vec<u32>,
}

impl Program<'_> {
    fn module(&self, instance: usize) -> &Module<'_> {
        &self.modules[self.plan[instance].module as usize]
    }

    /// The instance that exports what an instance imports, and the index there; none where the host provides it.
    fn import(&self, instance: usize, kind: ExternKind, index: u32) -> Option<(usize, u32)> {
        let of_kind = |(position, import): (usize, &crate::module::Import)| {
            let is_same = matches!(
                (kind, import.ty),
                (ExternKind::Function, ImportType::Function(_))
                    | (ExternKind::Memory, ImportType::Memory(_))
                    | (ExternKind::Table, ImportType::Table(_))
            );
            is_same.then_some(position)
        };
        let position = self.module(instance).imports.iter().enumerate().filter_map(of_kind).nth(index as usize)?;
        let ImportSource::Instance { instance: from, export } = &self.plan[instance].imports[position] else { return None };
        let from = *from as usize;
        let found = self.module(from).exports.iter().find(|found| found.name == *export && found.kind == kind)?;
        Some((from, found.index))
    }

    /// The instance that defines a function, and its index there.
    fn function(&self, mut instance: usize, mut function: u32) -> Option<(usize, u32)> {
        for _ in 0..STEPS_MAX {
            if function >= self.module(instance).imported_functions {
                return Some((instance, function));
            }
            (instance, function) = self.import(instance, ExternKind::Function, function)?;
        }
        None
    }

    /// The same, through functions that do nothing but call what stands at a fixed place of a table: what tools put between modules that import from each other.
    fn target(&self, module: &Module<'_>, function: u32) -> Option<Target> {
        let &caller = self.only.get(&module.index.0)?;
        let (mut instance, mut index) = self.function(caller, function)?;
        let mut led = false;
        for _ in 0..STEPS_MAX {
            let Some(behind) = self.behind_table(instance, FuncIdx(index)) else { break };
            (instance, index) = behind;
            led = true;
        }
        let found = self.module(instance);
        self.only.get(&found.index.0)?;
        let wanted = module.function_type(FuncIdx(function));
        if found.function_type(FuncIdx(index)) != wanted {
            return None;
        }
        let behind = led.then(|| instance as i32 - caller as i32);
        Some(Target { function: found.id(FuncIdx(index)), behind })
    }

    /// What a function calls that hands its parameters on to the element of a table, which one active segment of one other instance has set and nothing
    /// else can change.
    fn behind_table(&self, instance: usize, function: FuncIdx) -> Option<(usize, u32)> {
        let module = self.module(instance);
        self.only.get(&module.index.0)?;
        let (table, element, ty) = forwarded(module, function)?;
        // Nothing else is in the module than such functions: none of them changes the table.
        let is_shim = |index: usize| forwarded(module, FuncIdx(module.imported_functions + index as u32)).is_some();
        let defines_only_shims = (0..module.bodies.len()).all(is_shim);
        if !defines_only_shims || table < module.imported_tables || !module.elements.is_empty() || module.start.is_some() {
            return None;
        }
        let mut users = (0..self.plan.len()).filter(|&user| {
            let tables = 0..self.module(user).imported_tables;
            tables.into_iter().any(|imported| self.import(user, ExternKind::Table, imported) == Some((instance, table)))
        });
        let (user, None) = (users.next()?, users.next()) else { return None };
        let writer = self.module(user);
        // It has no code, and hands the table to no other instance.
        let exports_table = writer.exports.iter().any(|export| export.kind == ExternKind::Table);
        if !writer.bodies.is_empty() || writer.start.is_some() || exports_table {
            return None;
        }
        let [ElementSegment { mode: SegmentMode::Active { target: 0, offset }, items: ElementItems::Functions(items), .. }] =
            writer.elements.as_slice()
        else {
            return None;
        };
        let &[ConstOp::I32Const(start)] = offset.as_slice() else { return None };
        let item = *items.get(element.checked_sub(start.cast_unsigned())? as usize)?;
        let (target, index) = self.function(user, item)?;
        let called = self.module(target);
        (called.function_type(FuncIdx(index)) == &module.types[ty as usize]).then_some((target, index))
    }

    /// The number of a memory.
    fn memory(&self, module: &Module<'_>, memory: u32) -> Option<u32> {
        let number =
            |module: &Module<'_>, memory: u32| self.first_memory[module.index.0 as usize] + (memory - module.imported_memories);
        if memory >= module.imported_memories {
            return Some(number(module, memory));
        }
        let (mut instance, mut index) = (*self.only.get(&module.index.0)?, memory);
        for _ in 0..STEPS_MAX {
            (instance, index) = self.import(instance, ExternKind::Memory, index)?;
            let found = self.module(instance);
            if index >= found.imported_memories {
                self.only.get(&found.index.0)?;
                return Some(number(found, index));
            }
        }
        None
    }
}

/// The table, the element and the type of what a function calls with its own parameters, if that is all it does.
fn forwarded(module: &Module<'_>, function: FuncIdx) -> Option<(u32, u32, u32)> {
    let body = &module.bodies[module.defined(function)?];
    let params = module.function_type(function).params.len();
    if body.get_locals_reader().ok()?.get_count() != 0 {
        return None;
    }
    let mut operators = body.get_operators_reader().ok()?.into_iter();
    for index in 0..params as u32 {
        match operators.next()?.ok()? {
            Operator::LocalGet { local_index } if local_index == index => {}
            _ => return None,
        }
    }
    let Operator::I32Const { value } = operators.next()?.ok()? else { return None };
    let Operator::CallIndirect { type_index, table_index } = operators.next()?.ok()? else { return None };
    let Operator::End = operators.next()?.ok()? else { return None };
    let is_end = operators.next().is_none();
    let same_type = &module.types[type_index as usize] == module.function_type(function);
    (is_end && same_type).then_some((table_index, value.cast_unsigned(), type_index))
}
