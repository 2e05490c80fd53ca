//! What the runtime derives from a module's descriptor once, so that making an instance is filling in numbers.

use awsm_abi::ModuleDescriptor;
use awsm_abi::descriptor::{CodeRef, Export, ExternKind, ImportType};
use awsm_abi::types::{Bounds, FuncType, ValType};
use awsm_abi::vmctx::Layout;

use super::check::Spaces;

/// Name under which modules export the memory that their host reads and writes.
const MEMORY_EXPORT: &str = "memory";

/// A module of a loaded artifact.
pub(crate) struct Module {
    pub(crate) layout: Layout,
    /// Canonical id of each function type.
    pub(crate) type_ids: Vec<u32>,
    /// Every function, imports first.
    pub(crate) functions: Vec<FunctionCode>,
    pub(crate) imported_functions: u32,
    /// Each imported function.
    pub(crate) function_imports: Vec<FunctionImport>,
    pub(crate) imported_globals: u32,
    /// Whether its code reaches its first memory through the segment register.
    pub(crate) uses_segment: bool,
    /// Index of the memory exported as `memory`, or else of the first.
    pub(crate) main_memory: Option<u32>,
    /// The entries of function types that have one, sorted by canonical id.
    entries: Vec<Entry>,
    /// Indices of exports, sorted by name.
    exports: Vec<u32>,
}

/// A function's type and the address of its code; of an imported one, of the thunk. Zero where it has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionCode {
    pub(crate) ty: u32,
    pub(crate) code: usize,
}

/// An imported function. What each call of it needs stands here, in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionImport {
    /// Index of its type in the module.
    pub(crate) ty: u32,
    pub(crate) params: u32,
    pub(crate) results: u32,
    /// The canonical type of its result, if it has one.
    pub(crate) result: Option<ValType>,
}

impl FunctionImport {
    /// Number of slots that a call of it needs.
    pub(crate) fn slots(self) -> usize {
        self.params.max(self.results) as usize
    }
}

/// How the host calls functions of a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Canonical id of the type.
    pub(crate) id: u32,
    /// Its index in the module.
    pub(crate) ty: u32,
    pub(crate) address: usize,
}

impl Module {
    /// From a checked descriptor.
    pub(super) fn new(module: &ModuleDescriptor, type_ids: Vec<u32>, address: impl Fn(CodeRef) -> usize) -> Module {
        let spaces = Spaces::new(module);
        let mut functions = Vec::with_capacity(spaces.functions.len());
        let mut function_imports = Vec::new();
        for import in &module.imports {
            if let ImportType::Function { ty, thunk } = import.ty {
                let FuncType { params, results } = &module.types[ty as usize].ty;
                let result = match results[..] {
                    [result] => Some(result.map(|index| type_ids[index as usize])),
                    _ => None,
                };
                let (params, results) = (params.len() as u32, results.len() as u32);
                function_imports.push(FunctionImport { ty, params, results, result });
                functions.push(FunctionCode { ty, code: address(thunk) });
            }
        }
        let imported_functions = functions.len() as u32;
        functions.extend(
            module.functions.iter().map(|function| FunctionCode { ty: function.ty, code: function.code.map_or(0, &address) }),
        );
        let types = module.types.iter().zip(&type_ids).enumerate();
        let mut entries: Vec<Entry> =
            types.filter_map(|(i, (ty, &id))| Some(Entry { id, ty: i as u32, address: address(ty.entry?) })).collect();
        entries.sort_by_key(|entry| entry.id);
        let mut exports: Vec<u32> = (0..module.exports.len() as u32).collect();
        exports.sort_by_key(|&i| &module.exports[i as usize].name);
        let exported_memory = module.export(MEMORY_EXPORT).filter(|export| export.kind == ExternKind::Memory);
        let main_memory = exported_memory.map(|export| export.index).or((!spaces.memories.is_empty()).then_some(0));
        Module {
            layout: Layout::new(module.counts()).expect("the loader checked the layout's size"),
            type_ids,
            functions,
            imported_functions,
            function_imports,
            uses_segment: module.bounds.first() == Some(&Bounds::Segment),
            imported_globals: spaces.imported_globals as u32,
            main_memory,
            entries,
            exports,
        }
    }

    /// A type of the module as it is compared with those of others.
    pub(crate) fn canonical(&self, ty: ValType) -> ValType {
        ty.map(|index| self.type_ids[index as usize])
    }

    /// The entry for functions of the type with this canonical id.
    pub(crate) fn entry(&self, id: u32) -> Option<Entry> {
        let found = self.entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
        Some(self.entries[found])
    }

    /// The export of that name. `module` is the descriptor that this was made from.
    pub(crate) fn export<'a>(&self, module: &'a ModuleDescriptor, name: &str) -> Option<&'a Export> {
        let found = self.exports.binary_search_by(|&i| module.exports[i as usize].name.as_str().cmp(name)).ok()?;
        Some(&module.exports[self.exports[found] as usize])
    }
}
