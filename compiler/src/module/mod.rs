//! A parsed and validated WebAssembly module, in the form in which the translator and the descriptor want it.
//!
//! Everything here has passed wasmparser's validation and the limits of [`awsm_abi::limits`]; what follows may index without checking.

mod features;
mod limits;
mod names;
mod parse;
mod throws;
mod types;

pub(crate) use limits::check as limit;
pub(crate) use parse::parse;
pub(crate) use types::null_type;
pub(crate) use types::val_type;

use awsm_abi::calls;
use awsm_abi::descriptor::{ConstExpr, ConstOp, DataSegment, ElementItems, ElementSegment, Export, ExternKind, SegmentMode};
use awsm_abi::types::{FuncType, GlobalType, MemoryType, TableType};
use awsm_abi::vmctx;
use serde::{Deserialize, Serialize};
use wasmparser::FunctionBody;

/// Index of a module in its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ModuleIdx(pub(crate) u32);

/// Index of a function, imported functions first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct FuncIdx(pub(crate) u32);

/// A function of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct FuncId {
    pub(crate) module: ModuleIdx,
    pub(crate) function: FuncIdx,
}

/// Index of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TypeIdx(pub(crate) u32);

/// A module. Index spaces hold imports first.
#[derive(Default)]
pub(crate) struct Module<'a> {
    /// Which of its program's it is.
    pub(crate) index: ModuleIdx,
    /// Its size in bytes.
    pub(crate) bytes: u32,
    /// Where the trap table counts its bytes from: see [`awsm_abi::descriptor::ModuleDescriptor::wasm_base`].
    pub(crate) wasm_base: u32,
    /// From the name section.
    pub(crate) name: Option<String>,
    /// Function types.
    pub(crate) types: Vec<FuncType>,
    /// How each of them is declared.
    pub(crate) declared: Vec<Declared>,
    /// Number of types in each recursion group.
    pub(crate) groups: Vec<u32>,
    /// Imports, in their order.
    pub(crate) imports: Vec<Import>,
    /// Type of each function.
    pub(crate) functions: Vec<TypeIdx>,
    /// How many of them are imported.
    pub(crate) imported_functions: u32,
    /// Bodies of the defined functions.
    pub(crate) bodies: Vec<FunctionBody<'a>>,
    /// Names of functions, from the name section or else from an export; as many as there are functions.
    pub(crate) function_names: Vec<Option<String>>,
    /// Whether anything but calls of this module can reach the function.
    pub(crate) escapes: Vec<bool>,
    /// Whether the function makes tail calls, or is the target of a direct one.
    pub(crate) tail_calls: Vec<bool>,
    /// Whether functions return exceptions: those of [`throws`](Self::throws), and all that are reached by address.
    pub(crate) exceptions: bool,
    /// Whether the function may throw. Nothing does where there are no exceptions.
    pub(crate) throws: Vec<bool>,
    /// Types of tables.
    pub(crate) tables: Vec<TableType>,
    /// How many of them are imported.
    pub(crate) imported_tables: u32,
    /// Initial values of the defined tables' elements.
    pub(crate) table_inits: Vec<Option<ConstExpr>>,
    /// Types of memories.
    pub(crate) memories: Vec<MemoryType>,
    /// How many of them are imported.
    pub(crate) imported_memories: u32,
    /// Types of globals.
    pub(crate) globals: Vec<GlobalType>,
    /// How many of them are imported.
    pub(crate) imported_globals: u32,
    /// Initial values of the defined globals.
    pub(crate) global_inits: Vec<ConstExpr>,
    /// Types of tags.
    pub(crate) tags: Vec<TypeIdx>,
    /// How many of them are imported.
    pub(crate) imported_tags: u32,
    /// Exports.
    pub(crate) exports: Vec<Export>,
    /// The start function.
    pub(crate) start: Option<FuncIdx>,
    /// Element segments.
    pub(crate) elements: Vec<ElementSegment>,
    /// Data segments.
    pub(crate) data: Vec<DataSegment>,
    /// Their bytes.
    pub(crate) blob: Vec<u8>,
    /// Custom sections with debug information, by name.
    pub(crate) debug_sections: Vec<(&'a str, &'a [u8])>,
    /// Where the code section's contents start, from which debug information counts.
    pub(crate) code_start: u32,
}

/// What a type's declaration says beside its structure.
#[derive(Clone, Copy)]
pub(crate) struct Declared {
    /// Of which type it is a subtype.
    pub(crate) supertype: Option<u32>,
    /// Whether it can have no subtypes.
    pub(crate) is_final: bool,
}

/// An import.
pub(crate) struct Import {
    /// Module name.
    pub(crate) module: String,
    /// Field name.
    pub(crate) name: String,
    /// What is imported.
    pub(crate) ty: ImportType,
}

/// What is imported.
#[derive(Clone, Copy)]
pub(crate) enum ImportType {
    /// A function of that type.
    Function(TypeIdx),
    /// A table.
    Table(TableType),
    /// A memory.
    Memory(MemoryType),
    /// A global.
    Global(GlobalType),
    /// A tag of that type.
    Tag(TypeIdx),
}

impl ModuleIdx {
    /// What begins the description of something in it, for messages: nothing in a program's first module, which is mostly the only one.
    pub(crate) fn prefix(self) -> String {
        if self.0 == 0 { String::new() } else { format!("module {}, ", self.0) }
    }
}

impl Module<'_> {
    /// One of its functions, among those of the program.
    pub(crate) const fn id(&self, function: FuncIdx) -> FuncId {
        FuncId { module: self.index, function }
    }

    /// Type of a function.
    pub(crate) fn function_type(&self, function: FuncIdx) -> &FuncType {
        &self.types[self.functions[function.0 as usize].0 as usize]
    }

    /// Index of the defined function, if it is one, in [`Module::bodies`].
    pub(crate) fn defined(&self, function: FuncIdx) -> Option<usize> {
        function.0.checked_sub(self.imported_functions).map(|index| index as usize)
    }

    /// The defined functions' indices.
    pub(crate) fn defined_functions(&self) -> impl ExactSizeIterator<Item = FuncIdx> + use<> {
        let first = self.imported_functions;
        (0..self.bodies.len()).map(move |index| FuncIdx(first + index as u32))
    }

    /// What the layout of an instance's vmctx follows from.
    pub(crate) fn counts(&self) -> vmctx::Counts {
        vmctx::Counts {
            arguments: self.types.iter().map(|ty| calls::memory_params(ty, self.exceptions)).max().unwrap_or(0),
            memories: self.memories.len() as u32,
            tables: self.tables.len() as u32,
            imported_functions: self.imported_functions,
            imported_globals: self.imported_globals,
            types: self.types.len() as u32,
            tags: self.tags.len() as u32,
            globals: self.global_inits.len() as u32,
        }
    }

    /// The value of a global that never changes and is known now.
    pub(crate) fn constant_global(&self, index: u32) -> Option<ConstOp> {
        let defined = index.checked_sub(self.imported_globals)? as usize;
        match (self.globals[index as usize].mutable, self.global_inits[defined].as_slice()) {
            (false, &[ConstOp::GlobalGet(_) | ConstOp::RefNull(_) | ConstOp::RefFunc(_)]) => None,
            (false, &[op]) => Some(op),
            _ => None,
        }
    }

    /// Finds which functions escape: those exported, started, or referred to outside function bodies. A `ref.func` in a body refers to
    /// one of these, or the module would not be valid.
    fn find_escapes(&mut self) {
        self.escapes = vec![false; self.functions.len()];
        let mut escape = |function: u32| self.escapes[function as usize] = true;
        self.start.iter().for_each(|start| escape(start.0));
        self.exports.iter().filter(|export| export.kind == ExternKind::Function).for_each(|export| escape(export.index));
        let expressions = self.global_inits.iter().chain(self.table_inits.iter().flatten());
        let mut in_expression = |expression: &ConstExpr| {
            for op in expression {
                if let ConstOp::RefFunc(function) = op {
                    escape(*function);
                }
            }
        };
        expressions.for_each(&mut in_expression);
        for element in &self.elements {
            match &element.items {
                ElementItems::Expressions(items) => items.iter().for_each(&mut in_expression),
                ElementItems::Functions(items) => {
                    items.iter().for_each(|&function| in_expression(&vec![ConstOp::RefFunc(function)]));
                }
            }
            if let SegmentMode::Active { offset, .. } = &element.mode {
                in_expression(offset);
            }
        }
    }
}
