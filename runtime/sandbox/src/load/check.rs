//! Checks a descriptor against itself: every index, range and type, once, so that all later code may index.
//!
//! **What holds behind it.** All later code relies on these, and does not ask again:
//!
//! | what was checked | what relies on it | without it |
//! |---|---|---|
//! | code references lie in code ranges | entries and thunks are called, `call_indirect` jumps | a jump to any address of the arena |
//! | a function that is referred to, exported or the start has code | references to functions, which are made of its address | a reference to address 0, which tables take for null |
//! | bodies are in order and apart | binary search of functions by offset | backtraces name the wrong function |
//! | types name types of their own group or before | canonical ids are given in one pass | a type with the id of another: calls with wrong arguments |
//! | constant expressions have one value of the right kind | their slots are written without a look | a number that is taken for a reference |
//! | data lies in the blob | slices of it | a panic of the host while it makes an instance |
//! | minimum, maximum and bounds mode of memories fit | the reservation that unchecked code needs | an access behind the reservation |
//! | plan steps import from earlier steps, of the right kind | instances are made in order | a panic of the host |
//!
//! What is *not* checked is what the code does. That is the compiler's word: see [`crate::load`].

use std::collections::HashSet;

use awsm_abi::cpu::Arch;
use awsm_abi::descriptor::{
    CodeRef, ConstOp, DataSegment, ElementItems, ElementSegment, ExternKind, ImportSource, ImportType, Instantiation, RawText,
    SegmentMode,
};
use awsm_abi::limits::{
    CONST_EXPR_OPERATORS_MAX, FUNCTIONS_MAX, GLOBALS_MAX, MEMORIES_MAX, MEMORY32_PAGES_MAX, MEMORY64_PAGES_MAX, MODULES_MAX,
    PARAMS_MAX, TABLE_ELEMENTS_MAX, TAGS_MAX, TYPES_MAX,
};
use awsm_abi::types::{Bounds, GlobalType, HeapType, MemoryType, RefKind, RefType, TableType, ValType};
use awsm_abi::vmctx::Layout;
use awsm_abi::{Descriptor, ModuleDescriptor, TrapCode};

use crate::error::LoadError;
use crate::sys::segment;

pub(super) type Result<T = ()> = std::result::Result<T, LoadError>;

pub(super) fn ensure(condition: bool, what: impl FnOnce() -> String) -> Result {
    if condition { Ok(()) } else { Err(LoadError::rejected(what())) }
}

/// What the loader lets pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadPolicy {
    /// Accept code whose memory accesses are not checked (`--bounds none`). Such a guest can read and write everything: for measurements only.
    pub allow_unchecked: bool,
}

/// Checks everything that does not depend on where the code lies.
pub(super) fn check(descriptor: &Descriptor, texts: &[RawText<'_>], blob: &[u8], policy: &LoadPolicy) -> Result {
    ensure(descriptor.arch == Arch::HOST, || format!("its code is for {}", descriptor.arch.name()))?;
    for text in texts {
        check_text(text)?;
    }
    let modules = &descriptor.modules;
    ensure(!modules.is_empty() && modules.len() <= MODULES_MAX, || format!("{} modules", modules.len()))?;
    for (i, module) in modules.iter().enumerate() {
        let checked = Check { module, texts, blob }.run(policy);
        checked.map_err(|error| match error {
            LoadError::Rejected { what } => LoadError::rejected(format!("module {i}: {what}")),
            other => other,
        })?;
    }
    ensure(descriptor.plan.len() <= MODULES_MAX, || format!("a plan of {} steps", descriptor.plan.len()))?;
    descriptor.plan.iter().enumerate().try_for_each(|(i, step)| check_step(descriptor, i, step))?;
    descriptor.check_component().map_err(LoadError::rejected)
}

fn check_text(text: &RawText<'_>) -> Result {
    let mut before = None;
    for row in text.trap_rows() {
        ensure(u64::from(row.code_offset) < text.bytes, || "a trap row lies outside of its code".to_string())?;
        ensure(before <= Some(row.code_offset), || "the trap rows are not sorted".to_string())?;
        ensure(row.trap == 0 || TrapCode::from_number(row.trap).is_some(), || format!("a trap row has code {}", row.trap))?;
        before = Some(row.code_offset);
    }
    Ok(())
}

/// A step's imports must come from earlier instances and be of the right kind; types are compared when sandboxes are made.
fn check_step(descriptor: &Descriptor, at: usize, step: &Instantiation) -> Result {
    let wrong = |what: &str| LoadError::rejected(format!("plan step {at}: {what}"));
    let module = descriptor.modules.get(step.module as usize).ok_or_else(|| wrong("no such module"))?;
    ensure(step.imports.len() == module.imports.len(), || format!("plan step {at}: another number of imports than its module"))?;
    for (import, source) in module.imports.iter().zip(&step.imports) {
        let ImportSource::Instance { instance, export } = source else { continue };
        let provider = descriptor.plan[..at].get(*instance as usize).ok_or_else(|| wrong("an import from a later step"))?;
        let export = descriptor.modules[provider.module as usize].export(export).ok_or_else(|| wrong("no such export"))?;
        let kind = import.ty.kind();
        ensure(export.kind == kind, || format!("plan step {at}: a {kind} is imported from a {}", export.kind))?;
    }
    Ok(())
}

struct Check<'a> {
    module: &'a ModuleDescriptor,
    texts: &'a [RawText<'a>],
    blob: &'a [u8],
}

/// A type that names only the first `types` types.
fn value_type(ty: ValType, types: usize) -> Result {
    match ty {
        ValType::Ref(RefType { heap: HeapType::Concrete(index), .. }) => {
            ensure((index as usize) < types, || format!("type {index} does not exist, or only later"))
        }
        _ => Ok(()),
    }
}

/// The type that stands for all whose values are held in the same way.
const fn like(ty: ValType) -> ValType {
    match ty.ref_kind() {
        None => ty,
        Some(RefKind::Func) => ValType::FUNCREF,
        Some(RefKind::Extern) => ValType::EXTERNREF,
        Some(RefKind::Exn) => ValType::EXNREF,
    }
}

/// Types of everything in a module's index spaces, imports first.
pub(super) struct Spaces {
    /// Index of each function's type, and whether there is code for it.
    pub(super) functions: Vec<(u32, bool)>,
    pub(super) tables: Vec<TableType>,
    pub(super) memories: Vec<MemoryType>,
    pub(super) globals: Vec<GlobalType>,
    /// Index of each tag's type.
    pub(super) tags: Vec<u32>,
    pub(super) imported_globals: usize,
}

impl Spaces {
    pub(super) fn new(module: &ModuleDescriptor) -> Spaces {
        let mut spaces = Spaces {
            functions: Vec::new(),
            tables: Vec::new(),
            memories: Vec::new(),
            globals: Vec::new(),
            tags: Vec::new(),
            imported_globals: 0,
        };
        for import in &module.imports {
            match import.ty {
                ImportType::Function { ty, .. } => spaces.functions.push((ty, true)),
                ImportType::Table(ty) => spaces.tables.push(ty),
                ImportType::Memory(ty) => spaces.memories.push(ty),
                ImportType::Global(ty) => spaces.globals.push(ty),
                ImportType::Tag(ty) => spaces.tags.push(ty),
            }
        }
        spaces.imported_globals = spaces.globals.len();
        spaces.functions.extend(module.functions.iter().map(|function| (function.ty, function.code.is_some())));
        spaces.tables.extend(module.tables.iter().map(|table| table.ty));
        spaces.memories.extend(module.memories.iter().map(|memory| memory.ty));
        spaces.globals.extend(module.globals.iter().map(|global| global.ty));
        spaces.tags.extend(&module.tags);
        spaces
    }
}

impl Check<'_> {
    fn run(&self, policy: &LoadPolicy) -> Result {
        let module = self.module;
        let counts = [
            (module.types.len(), TYPES_MAX, "types"),
            (module.imports.len().saturating_add(module.functions.len()), FUNCTIONS_MAX, "functions"),
            (module.imported_tables() as usize + module.tables.len(), MEMORIES_MAX, "tables"),
            (module.imported_memories() as usize + module.memories.len(), MEMORIES_MAX, "memories"),
            (module.imported_globals() as usize + module.globals.len(), GLOBALS_MAX, "globals"),
            (module.imported_tags() as usize + module.tags.len(), TAGS_MAX, "tags"),
        ];
        for (count, max, what) in counts {
            ensure(count <= max, || format!("{count} {what}, and there may be {max}"))?;
        }
        ensure(Layout::new(module.counts()).is_some(), || "its vmctx would be too large".to_string())?;
        self.types()?;
        let spaces = Spaces::new(module);
        self.functions(&spaces)?;
        self.tags(&spaces)?;
        self.tables_and_memories(&spaces, policy)?;
        spaces.globals.iter().try_for_each(|global| self.value(global.value))?;
        for (i, global) in module.globals.iter().enumerate() {
            // A global's initial value may use those before it.
            self.expression(&global.init, global.ty.value, &spaces, spaces.imported_globals + i)?;
        }
        self.exports(&spaces)?;
        module.elements.iter().try_for_each(|segment| self.element_segment(segment, &spaces))?;
        module.data.iter().try_for_each(|segment| self.data_segment(segment, &spaces))
    }

    fn code(&self, code: CodeRef) -> Result {
        let text = self.texts.get(code.text as usize);
        let within = text.is_some_and(|text| u64::from(code.offset) < text.bytes);
        ensure(within, || "code outside of the code ranges".to_string())
    }

    fn types(&self) -> Result {
        let mut types = self.module.types.iter().enumerate();
        let mut end = 0usize;
        for &count in &self.module.groups {
            end = end.saturating_add(count as usize);
            for (index, ty) in types.by_ref().take(count as usize) {
                let most = ty.ty.params.len().max(ty.ty.results.len());
                ensure(most <= PARAMS_MAX, || format!("a function type with {most} parameters or results"))?;
                ty.entry.map_or(Ok(()), |entry| self.code(entry))?;
                ty.ty.params.iter().chain(&ty.ty.results).try_for_each(|&ty| value_type(ty, end))?;
                let supertype = ty.supertype.is_none_or(|supertype| (supertype as usize) < index);
                ensure(supertype, || "a type before its supertype".to_string())?;
            }
        }
        ensure(end == self.module.types.len(), || "another number of types than in their groups".to_string())
    }

    /// A type of the module that names another of its types only if it exists.
    fn value(&self, ty: ValType) -> Result {
        value_type(ty, self.module.types.len())
    }

    fn tags(&self, spaces: &Spaces) -> Result {
        for &ty in &spaces.tags {
            let ty = self.item(&self.module.types, ty, "type")?;
            ensure(ty.ty.results.is_empty(), || "a tag with results".to_string())?;
        }
        ensure(spaces.tags.is_empty() || self.module.exceptions, || "tags without exceptions".to_string())
    }

    fn functions(&self, spaces: &Spaces) -> Result {
        let module = self.module;
        for import in &module.imports {
            if let ImportType::Function { thunk, .. } = import.ty {
                self.code(thunk)?;
            }
        }
        for &(ty, _) in &spaces.functions {
            ensure((ty as usize) < module.types.len(), || format!("a function of type {ty}, which does not exist"))?;
        }
        let mut wasm_end = 0;
        for function in &module.functions {
            if let Some(code) = function.code {
                self.code(code)?;
                let end = u64::from(code.offset) + u64::from(function.code_bytes);
                ensure(end <= self.texts[code.text as usize].bytes, || "code outside of the code ranges".to_string())?;
            }
            let ordered = wasm_end <= function.wasm_start && function.wasm_start <= function.wasm_end;
            ensure(ordered, || "function bodies overlap or are out of order".to_string())?;
            wasm_end = function.wasm_end;
        }
        match module.start {
            Some(start) => {
                let &(ty, has_code) = self.item(&spaces.functions, start, "start function")?;
                let ty = &self.module.types[ty as usize];
                let callable = has_code && ty.ty.slots() == 0 && ty.entry.is_some();
                ensure(callable, || "the start function cannot be called".to_string())
            }
            None => Ok(()),
        }
    }

    fn item<'a, T>(&self, items: &'a [T], index: u32, what: &str) -> Result<&'a T> {
        items.get(index as usize).ok_or_else(|| LoadError::rejected(format!("{what} {index} does not exist")))
    }

    fn tables_and_memories(&self, spaces: &Spaces, policy: &LoadPolicy) -> Result {
        let module = self.module;
        for table in &spaces.tables {
            ensure(table.element.is_reference(), || format!("a table of {}", table.element))?;
            self.value(table.element)?;
            let sizes = table.elements_max.is_none_or(|max| table.elements_min <= max);
            ensure(sizes, || "a table whose minimum is above its maximum".to_string())?;
        }
        for table in &module.tables {
            ensure(table.ty.elements_min <= TABLE_ELEMENTS_MAX, || format!("a table of {} elements", table.ty.elements_min))?;
            if let Some(init) = &table.init {
                self.expression(init, table.ty.element, spaces, spaces.imported_globals)?;
            }
        }
        ensure(module.bounds.len() == spaces.memories.len(), || "not a bounds mode for each memory".to_string())?;
        let segments = module.bounds.iter().enumerate().filter(|&(_, &bounds)| bounds == Bounds::Segment);
        for (memory, _) in segments.clone() {
            ensure(memory == 0 && module.segment, || format!("bounds mode `segment` for memory {memory}"))?;
        }
        if segments.count() > 0 && !segment::is_available() {
            return Err(LoadError::NoSegment);
        }
        for (memory, &bounds) in spaces.memories.iter().zip(&module.bounds) {
            ensure(!memory.shared || memory.pages_max.is_some(), || "a shared memory without a maximum".to_string())?;
            let most = if memory.memory64 { MEMORY64_PAGES_MAX } else { MEMORY32_PAGES_MAX };
            let max = memory.pages_max.unwrap_or(most);
            ensure(memory.pages_min <= max && max <= most, || "a memory of impossible size".to_string())?;
            ensure(bounds == Bounds::Software || !memory.memory64, || "an unchecked memory with 64-bit addresses".to_string())?;
            match bounds {
                Bounds::Guard | Bounds::Segment | Bounds::Software => {}
                Bounds::None if policy.allow_unchecked => {}
                Bounds::None => return Err(LoadError::Unchecked),
            }
        }
        Ok(())
    }

    /// An expression of a value like those of type `ty` (references are told apart by kind only) that uses only the first `globals` globals.
    fn expression(&self, expression: &[ConstOp], ty: ValType, spaces: &Spaces, globals: usize) -> Result {
        let wrong = || LoadError::rejected("a constant expression has wrong types");
        ensure(expression.len() <= CONST_EXPR_OPERATORS_MAX, || "a constant expression is too long".to_string())?;
        let mut stack = Vec::new();
        for op in expression {
            let operand = match op {
                ConstOp::I32Add | ConstOp::I32Sub | ConstOp::I32Mul => Some(ValType::I32),
                ConstOp::I64Add | ConstOp::I64Sub | ConstOp::I64Mul => Some(ValType::I64),
                _ => None,
            };
            if operand.is_some() && (stack.pop() != operand || stack.pop() != operand) {
                return Err(wrong());
            }
            stack.push(like(match *op {
                ConstOp::I32Const(_) => ValType::I32,
                ConstOp::I64Const(_) => ValType::I64,
                ConstOp::F32Const(_) => ValType::F32,
                ConstOp::F64Const(_) => ValType::F64,
                ConstOp::V128Const(_) => ValType::V128,
                ConstOp::GlobalGet(index) => self.item(&spaces.globals[..globals], index, "global")?.value,
                ConstOp::RefNull(ty) if ty.is_reference() => ty,
                ConstOp::RefNull(_) => return Err(wrong()),
                ConstOp::RefFunc(index) => {
                    self.referable(index, spaces)?;
                    ValType::FUNCREF
                }
                ConstOp::I32Add | ConstOp::I32Sub | ConstOp::I32Mul => ValType::I32,
                ConstOp::I64Add | ConstOp::I64Sub | ConstOp::I64Mul => ValType::I64,
            }));
        }
        if stack == [like(ty)] { Ok(()) } else { Err(wrong()) }
    }

    /// A function of which a reference may be made.
    fn referable(&self, index: u32, spaces: &Spaces) -> Result {
        let &(_, has_code) = self.item(&spaces.functions, index, "function")?;
        ensure(has_code, || format!("function {index} is referred to, but has no code"))
    }

    fn exports(&self, spaces: &Spaces) -> Result {
        let mut names = HashSet::new();
        for export in &self.module.exports {
            ensure(names.insert(&export.name), || format!("two exports are named `{}`", export.name.escape_debug()))?;
            match export.kind {
                ExternKind::Function => {
                    self.referable(export.index, spaces)?;
                    let ty = &self.module.types[spaces.functions[export.index as usize].0 as usize];
                    ensure(ty.entry.is_some(), || {
                        format!("no entry for the exported function `{}`", export.name.escape_debug())
                    })?;
                }
                ExternKind::Table => drop(self.item(&spaces.tables, export.index, "table")?),
                ExternKind::Memory => drop(self.item(&spaces.memories, export.index, "memory")?),
                ExternKind::Global => drop(self.item(&spaces.globals, export.index, "global")?),
                ExternKind::Tag => drop(self.item(&spaces.tags, export.index, "tag")?),
            }
        }
        Ok(())
    }

    fn element_segment(&self, segment: &ElementSegment, spaces: &Spaces) -> Result {
        ensure(segment.ty.is_reference(), || format!("an element segment of {}", segment.ty))?;
        if let SegmentMode::Active { target, offset } = &segment.mode {
            let table = self.item(&spaces.tables, *target, "table")?;
            ensure(table.element.ref_kind() == segment.ty.ref_kind(), || {
                "an element segment for a table of another type".to_string()
            })?;
            let ty = if table.table64 { ValType::I64 } else { ValType::I32 };
            self.expression(offset, ty, spaces, spaces.globals.len())?;
        }
        match &segment.items {
            ElementItems::Functions(functions) => {
                ensure(segment.ty.ref_kind() == Some(RefKind::Func), || "functions in a segment of another type".to_string())?;
                functions.iter().try_for_each(|&function| self.referable(function, spaces))
            }
            ElementItems::Expressions(expressions) => expressions
                .iter()
                .try_for_each(|expression| self.expression(expression, segment.ty, spaces, spaces.globals.len())),
        }
    }

    fn data_segment(&self, segment: &DataSegment, spaces: &Spaces) -> Result {
        let end = segment.blob_start.checked_add(segment.bytes);
        let within = end.is_some_and(|end| end <= self.blob.len() as u64);
        ensure(within, || "a data segment lies outside of the artifact's data".to_string())?;
        match &segment.mode {
            SegmentMode::Active { target, offset } => {
                let memory = self.item(&spaces.memories, *target, "memory")?;
                let ty = if memory.memory64 { ValType::I64 } else { ValType::I32 };
                self.expression(offset, ty, spaces, spaces.globals.len())
            }
            SegmentMode::Passive => Ok(()),
            SegmentMode::Declared => Err(LoadError::rejected("a data segment that only declares")),
        }
    }
}
