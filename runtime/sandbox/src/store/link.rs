//! Whether what is given for a module's imports has the types that it wants (core specification, section 4.5.1 and 3.2).
//!
//! Generated code does not look at what it is linked to. So each comparison here is all that stands between two modules that disagree:
//!
//! * a function's type decides registers and slots of a call; a subtype's are the same, by the specification's rules;
//! * a memory's reservation decides whether accesses need checks: code compiled with guards must never get a memory without
//!   ([`Memory::suits`](crate::store::memory::Memory::suits));
//! * a mutable global's or a table's element type must be *equal*: what one module writes the other reads as its own type;
//! * a handle of another sandbox would lead into that one's memory.
//!
//! Types are compared by canonical ids (`types.rs`), since each module has numbers of its own.

use awsm_abi::descriptor::{Import, ImportType};
use awsm_abi::types::{FuncType, GlobalType, MemoryType, TableType};

use crate::error::InstantiateError;
use crate::store::Store;
use crate::store::instance::Instance;
use crate::types;
use crate::value::{Extern, FunctionHandle};

/// What an instance's imports stand for, by kind, in the order of its index spaces.
#[derive(Debug, Default)]
pub(crate) struct Linked {
    pub(crate) functions: Vec<FunctionHandle>,
    pub(crate) tables: Vec<u32>,
    pub(crate) memories: Vec<u32>,
    pub(crate) globals: Vec<u32>,
    pub(crate) tags: Vec<u32>,
}

/// Finds what each import of a new `instance` stands for.
pub(crate) fn link(store: &Store, instance: &Instance, imports: &[Extern]) -> Result<Linked, InstantiateError> {
    let descriptor = instance.descriptor();
    if imports.len() > descriptor.imports.len() {
        return Err(InstantiateError::Misuse("more imports were given than the module has"));
    }
    let mut linked = Linked::default();
    for (i, import) in descriptor.imports.iter().enumerate() {
        let Some(given) = imports.get(i) else { return Err(unknown(import)) };
        if store.is_foreign(given) {
            return Err(InstantiateError::Misuse("an import was given a handle of another sandbox"));
        }
        link_one(store, instance, import, given, &mut linked)?;
    }
    Ok(linked)
}

fn link_one(
    store: &Store,
    instance: &Instance,
    import: &Import,
    given: &Extern,
    linked: &mut Linked,
) -> Result<(), InstantiateError> {
    let module = instance.module();
    match (import.ty, given) {
        (ImportType::Function { ty, .. }, Extern::Function(function))
            if types::is_subtype(function.type_id, module.type_ids[ty as usize]) =>
        {
            linked.functions.push(*function);
        }
        (ImportType::Function { ty, .. }, Extern::HostFunction(host)) if *host == instance.descriptor().types[ty as usize].ty => {
            // Served by the module's own thunk, which calls the host.
            let thunk = module.functions[linked.functions.len()].code as u64;
            let type_id = module.type_ids[ty as usize];
            linked.functions.push(FunctionHandle { sandbox: store.id(), code: thunk, type_id, instance: instance.index });
        }
        (ImportType::Table(wanted), Extern::Table(table)) => {
            let table_given = &store.tables()[table.index as usize];
            let found = TableType { elements_min: table_given.length(), ..*table_given.ty() };
            let fits = module.canonical(wanted.element) == found.element
                && wanted.table64 == found.table64
                && limits_match((wanted.elements_min, wanted.elements_max), (found.elements_min, found.elements_max));
            if !fits {
                return Err(incompatible(import, instance, table_text(&found)));
            }
            linked.tables.push(table.index);
        }
        (ImportType::Memory(wanted), Extern::Memory(memory)) => {
            let memory_given = &store.memories()[memory.index as usize];
            let found = MemoryType { pages_min: memory_given.length() / awsm_abi::limits::PAGE_BYTES, ..*memory_given.ty() };
            let fits = wanted.memory64 == found.memory64
                && wanted.shared == found.shared
                && limits_match((wanted.pages_min, wanted.pages_max), (found.pages_min, found.pages_max));
            if !fits {
                return Err(incompatible(import, instance, memory_text(&found)));
            }
            let bounds = instance.descriptor().bounds[linked.memories.len()];
            if !memory_given.suits(bounds) {
                return Err(incompatible(
                    import,
                    instance,
                    "a memory without the address space that unchecked code needs".to_string(),
                ));
            }
            linked.memories.push(memory.index);
        }
        (ImportType::Global(wanted), Extern::Global(global)) => {
            let found = store.globals()[global.index as usize].ty;
            let value = module.canonical(wanted.value);
            let fits = if wanted.mutable { found.value == value } else { types::matches(found.value, value) };
            if wanted.mutable != found.mutable || !fits {
                return Err(incompatible(import, instance, global_text(&found)));
            }
            linked.globals.push(global.index);
        }
        (ImportType::Tag(ty), Extern::Tag(tag)) if module.type_ids[ty as usize] == store.tags()[tag.index as usize] => {
            linked.tags.push(tag.index);
        }
        (_, given) => return Err(incompatible(import, instance, given_text(store, given))),
    }
    Ok(())
}

/// Section 3.4.5.1 of the specification ("limits" under "import matching").
fn limits_match((wanted_min, wanted_max): (u64, Option<u64>), (min, max): (u64, Option<u64>)) -> bool {
    min >= wanted_min && wanted_max.is_none_or(|wanted| max.is_some_and(|max| max <= wanted))
}

/// An import for which nothing was given.
pub(crate) fn unknown(import: &Import) -> InstantiateError {
    let (module, name, kind) = (import.module.clone(), import.name.clone(), import.ty.kind());
    InstantiateError::UnknownImport { module, name, kind }
}

fn incompatible(import: &Import, instance: &Instance, given: String) -> InstantiateError {
    let wanted = match import.ty {
        // In the numbers that what is given is described with.
        ImportType::Function { ty, .. } => function_id_text(instance.module().type_ids[ty as usize]),
        ImportType::Table(ty) => table_text(&TableType { element: instance.module().canonical(ty.element), ..ty }),
        ImportType::Memory(ty) => memory_text(&ty),
        ImportType::Global(ty) => global_text(&GlobalType { value: instance.module().canonical(ty.value), ..ty }),
        ImportType::Tag(ty) => tag_text(instance.module().type_ids[ty as usize]),
    };
    InstantiateError::IncompatibleImport { module: import.module.clone(), name: import.name.clone(), wanted, given }
}

fn given_text(store: &Store, given: &Extern) -> String {
    match given {
        Extern::Function(function) => function_id_text(function.type_id),
        Extern::HostFunction(ty) => function_text(ty),
        Extern::Table(table) => table_text(store.tables()[table.index as usize].ty()),
        Extern::Memory(memory) => memory_text(store.memories()[memory.index as usize].ty()),
        Extern::Global(global) => global_text(&store.globals()[global.index as usize].ty),
        Extern::Tag(tag) => tag_text(store.tags()[tag.index as usize]),
    }
}

fn function_text(ty: &FuncType) -> String {
    format!("a function of type {ty}")
}

fn function_id_text(id: u32) -> String {
    types::by_id(id).map_or_else(String::new, |ty| function_text(&ty))
}

fn tag_text(id: u32) -> String {
    types::by_id(id).map_or_else(String::new, |ty| format!("a tag of type {ty}"))
}

fn limits_text(min: u64, max: Option<u64>) -> String {
    max.map_or_else(|| format!("at least {min}"), |max| format!("{min} to {max}"))
}

fn table_text(ty: &TableType) -> String {
    let kind = if ty.table64 { " with 64-bit indices" } else { "" };
    format!("a table of {} {}{kind}", limits_text(ty.elements_min, ty.elements_max), ty.element)
}

fn memory_text(ty: &MemoryType) -> String {
    let kind = if ty.memory64 { " with 64-bit addresses" } else { "" };
    format!("a{} memory of {} pages{kind}", if ty.shared { " shared" } else { "" }, limits_text(ty.pages_min, ty.pages_max))
}

fn global_text(ty: &GlobalType) -> String {
    format!("a {} global of {}", if ty.mutable { "mutable" } else { "constant" }, ty.value)
}

#[cfg(test)]
mod tests {
    use super::limits_match;

    #[test]
    fn limits_match_as_the_specification_says() {
        assert!(limits_match((1, None), (1, None)));
        assert!(limits_match((0, None), (1, Some(2))));
        assert!(limits_match((1, Some(3)), (2, Some(3))));
        assert!(!limits_match((2, None), (1, None)));
        assert!(!limits_match((1, Some(3)), (1, None)));
        assert!(!limits_match((1, Some(3)), (1, Some(4))));
    }
}
