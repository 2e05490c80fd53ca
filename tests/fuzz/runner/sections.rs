//! A module taken apart, so that a pass can add to its sections and rewrite its bodies. Knows nothing of what passes do.

use anyhow::{Context, Result, bail};
use wasm_encoder::reencode::{Reencode, RoundtripReencoder};
use wasm_encoder::{
    CodeSection, ConstExpr, DataCountSection, DataSection, ElementSection, ExportSection, Function, FunctionSection,
    GlobalSection, HeapType, ImportSection, Instruction, MemorySection, Module, StartSection, TableSection, TagSection,
    TypeSection, ValType,
};
use wasmparser::{
    CompositeInnerType, FunctionBody, Imports, MemoryType, Operator, Parser, Payload, TableInit, TableType, TypeRef,
};

/// A function's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) params: Vec<ValType>,
    pub(crate) results: Vec<ValType>,
}

/// What the index spaces hold, imports first.
#[derive(Debug, Default)]
pub(crate) struct Spaces {
    /// None for types that are not functions'.
    pub(crate) types: Vec<Option<Signature>>,
    /// Each function's type index.
    pub(crate) functions: Vec<u32>,
    pub(crate) functions_imported: usize,
    pub(crate) memories: Vec<MemoryType>,
    pub(crate) tables: Vec<TableType>,
    pub(crate) globals: u32,
    /// Bytes of each data segment, and elements of each element segment.
    pub(crate) data: Vec<u64>,
    pub(crate) elements: Vec<u64>,
}

impl Spaces {
    pub(crate) fn signature(&self, function: usize) -> Option<&Signature> {
        self.types.get(*self.functions.get(function)? as usize)?.as_ref()
    }
}

/// A module's sections, to be added to, and its bodies, to be rewritten.
#[derive(Debug, Default)]
pub(crate) struct Sections<'a> {
    pub(crate) spaces: Spaces,
    pub(crate) types: TypeSection,
    pub(crate) imports: ImportSection,
    pub(crate) functions: FunctionSection,
    pub(crate) tables: TableSection,
    pub(crate) memories: MemorySection,
    pub(crate) tags: TagSection,
    pub(crate) globals: GlobalSection,
    pub(crate) exports: ExportSection,
    pub(crate) start: Option<u32>,
    pub(crate) elements: ElementSection,
    pub(crate) data_count: Option<u32>,
    pub(crate) bodies: Vec<FunctionBody<'a>>,
    pub(crate) data: DataSection,
    /// No table has an initial value of its own.
    tables_plain: bool,
}

impl<'a> Sections<'a> {
    pub(crate) fn read(wasm: &'a [u8]) -> Result<Sections<'a>> {
        let mut sections = Sections { tables_plain: true, ..Sections::default() };
        for payload in Parser::new(0).parse_all(wasm) {
            sections.add(payload?).context("taking a module apart")?;
        }
        Ok(sections)
    }

    fn add(&mut self, payload: Payload<'a>) -> Result<()> {
        let (mut same, spaces) = (RoundtripReencoder, &mut self.spaces);
        match payload {
            Payload::TypeSection(section) => {
                for group in section.clone() {
                    for ty in group?.into_types() {
                        let signature = match &ty.composite_type.inner {
                            CompositeInnerType::Func(ty) => Some(Signature {
                                params: ty.params().iter().map(|ty| same.val_type(*ty)).collect::<Result<_, _>>()?,
                                results: ty.results().iter().map(|ty| same.val_type(*ty)).collect::<Result<_, _>>()?,
                            }),
                            _ => None,
                        };
                        spaces.types.push(signature);
                    }
                }
                same.parse_type_section(&mut self.types, section)?;
            }
            Payload::ImportSection(section) => {
                for imports in section.clone() {
                    let Imports::Single(_, import) = imports? else { bail!("compact imports") };
                    match import.ty {
                        TypeRef::Func(ty) => spaces.functions.push(ty),
                        TypeRef::Table(ty) => spaces.tables.push(ty),
                        TypeRef::Memory(ty) => spaces.memories.push(ty),
                        TypeRef::Global(_) => spaces.globals += 1,
                        _ => {}
                    }
                }
                spaces.functions_imported = spaces.functions.len();
                same.parse_import_section(&mut self.imports, section)?;
            }
            Payload::FunctionSection(section) => {
                spaces.functions.extend(section.clone().into_iter().collect::<Result<Vec<_>, _>>()?);
                same.parse_function_section(&mut self.functions, section)?;
            }
            Payload::TableSection(section) => {
                for table in section.clone() {
                    let table = table?;
                    self.tables_plain &= matches!(table.init, TableInit::RefNull);
                    spaces.tables.push(table.ty);
                }
                same.parse_table_section(&mut self.tables, section)?;
            }
            Payload::MemorySection(section) => {
                spaces.memories.extend(section.clone().into_iter().collect::<Result<Vec<_>, _>>()?);
                same.parse_memory_section(&mut self.memories, section)?;
            }
            Payload::TagSection(section) => same.parse_tag_section(&mut self.tags, section)?,
            Payload::GlobalSection(section) => {
                spaces.globals += section.count();
                same.parse_global_section(&mut self.globals, section)?;
            }
            Payload::ExportSection(section) => same.parse_export_section(&mut self.exports, section)?,
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(section) => {
                for element in section.clone() {
                    spaces.elements.push(match element?.items {
                        wasmparser::ElementItems::Functions(items) => u64::from(items.count()),
                        wasmparser::ElementItems::Expressions(_, items) => u64::from(items.count()),
                    });
                }
                same.parse_element_section(&mut self.elements, section)?;
            }
            Payload::DataCountSection { count, .. } => self.data_count = Some(count),
            Payload::DataSection(section) => {
                for data in section.clone() {
                    spaces.data.push(data?.data.len() as u64);
                }
                same.parse_data_section(&mut self.data, section)?;
            }
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            _ => {}
        }
        Ok(())
    }

    /// Adds a global of the module's own; its index.
    pub(crate) fn add_global(&mut self, ty: ValType, init: &ConstExpr) -> u32 {
        self.globals.global(wasm_encoder::GlobalType { val_type: ty, mutable: true, shared: false }, init);
        self.spaces.globals += 1;
        self.spaces.globals - 1
    }

    /// Adds a memory of the module's own.
    pub(crate) fn add_memory(&mut self, pages: u64) {
        let maximum = Some(pages);
        let ty = wasm_encoder::MemoryType { minimum: pages, maximum, memory64: false, shared: false, page_size_log2: None };
        self.memories.memory(ty);
    }

    /// Gives its own memories a page at least, and its own tables a few elements, where they have none: what is empty can only trap.
    pub(crate) fn enlarge(&mut self) {
        let imported = self.spaces.memories.len() - self.memories.len() as usize;
        let mut memories = MemorySection::new();
        for ty in &mut self.spaces.memories[imported..] {
            if ty.initial == 0 && ty.page_size_log2.is_none() {
                ty.initial = 1;
                ty.maximum = ty.maximum.map(|maximum| maximum.max(1));
            }
            if let Ok(ty) = RoundtripReencoder.memory_type(*ty) {
                memories.memory(ty);
            }
        }
        self.memories = memories;
        if self.tables_plain {
            let imported = self.spaces.tables.len() - self.tables.len() as usize;
            let mut tables = TableSection::new();
            for ty in &mut self.spaces.tables[imported..] {
                ty.initial = ty.initial.max(8);
                ty.maximum = ty.maximum.map(|maximum| maximum.max(ty.initial + 4));
                if let Ok(ty) = RoundtripReencoder.table_type(*ty) {
                    tables.table(ty);
                }
            }
            self.tables = tables;
        }
    }

    /// Puts the module together, with these bodies in place of its own.
    pub(crate) fn finish(self, bodies: &[Function]) -> Vec<u8> {
        let mut module = Module::new();
        module.section(&self.types).section(&self.imports).section(&self.functions).section(&self.tables).section(&self.memories);
        if !self.tags.is_empty() {
            module.section(&self.tags);
        }
        module.section(&self.globals).section(&self.exports);
        if let Some(function_index) = self.start {
            module.section(&StartSection { function_index });
        }
        module.section(&self.elements);
        if let Some(count) = self.data_count {
            module.section(&DataCountSection { count });
        }
        let mut code = CodeSection::new();
        for body in bodies {
            code.function(body);
        }
        module.section(&code).section(&self.data);
        module.finish()
    }
}

/// A body that is being rewritten: what it declares, and what comes out.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    pub(crate) signature: Signature,
    locals: Vec<(u32, ValType)>,
    locals_next: u32,
    temporaries: Vec<(ValType, Vec<u32>)>,
    pub(crate) operators: Vec<Operator<'a>>,
    out: Vec<Instruction<'a>>,
}

impl<'a> Body<'a> {
    pub(crate) fn read(body: &FunctionBody<'a>, signature: &Signature) -> Result<Body<'a>> {
        let mut locals = Vec::new();
        for group in body.get_locals_reader()? {
            let (count, ty) = group?;
            locals.push((count, RoundtripReencoder.val_type(ty)?));
        }
        let locals_next = signature.params.len() as u32 + locals.iter().map(|(count, _)| count).sum::<u32>();
        let operators = body.get_operators_reader()?.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(Body { signature: signature.clone(), locals, locals_next, temporaries: Vec::new(), operators, out: Vec::new() })
    }

    /// A new local; the `n`-th of that type is always the same.
    pub(crate) fn temporary(&mut self, ty: ValType, n: usize) -> u32 {
        let at = self.temporaries.iter().position(|(other, _)| *other == ty).unwrap_or_else(|| {
            self.temporaries.push((ty, Vec::new()));
            self.temporaries.len() - 1
        });
        while self.temporaries[at].1.len() <= n {
            self.temporaries[at].1.push(self.locals_next);
            self.locals.push((1, ty));
            self.locals_next += 1;
        }
        self.temporaries[at].1[n]
    }

    pub(crate) fn emit(&mut self, instructions: impl IntoIterator<Item = Instruction<'a>>) {
        self.out.extend(instructions);
    }

    /// The operator as it was.
    pub(crate) fn keep(&mut self, operator: Operator<'a>) -> Result<()> {
        self.out.push(RoundtripReencoder.instruction(operator)?);
        Ok(())
    }

    /// Leaves the function with zeros; false when one of its results has none.
    pub(crate) fn emit_return(&mut self) -> bool {
        let zeros: Option<Vec<_>> = self.signature.results.iter().map(|ty| zero(*ty)).collect();
        let Some(zeros) = zeros else { return false };
        self.out.extend(zeros);
        self.out.push(Instruction::Return);
        true
    }

    pub(crate) fn finish(self) -> Function {
        let mut function = Function::new(self.locals);
        for instruction in &self.out {
            function.instruction(instruction);
        }
        function
    }
}

/// The instruction that makes a type's zero or null.
fn zero(ty: ValType) -> Option<Instruction<'static>> {
    Some(match ty {
        ValType::I32 => Instruction::I32Const(0),
        ValType::I64 => Instruction::I64Const(0),
        ValType::F32 => Instruction::F32Const(0.0_f32.into()),
        ValType::F64 => Instruction::F64Const(0.0_f64.into()),
        ValType::V128 => Instruction::V128Const(0),
        ValType::Ref(ty) if ty.nullable => Instruction::RefNull(match ty.heap_type {
            HeapType::Abstract { .. } | HeapType::Concrete(_) => ty.heap_type,
            HeapType::Exact(_) => return None,
        }),
        ValType::Ref(_) => return None,
    })
}

/// An operator's name as wasmparser spells it: `I32Add`.
pub(crate) fn name(operator: &Operator<'_>) -> &'static str {
    macro_rules! names {
        ($( @$proposal:ident $op:ident $({ $($arg:ident: $argty:ty),* })? => $visit:ident ($($ann:tt)*))*) => {
            match operator {
                $( Operator::$op { .. } => stringify!($op), )*
                _ => "unknown",
            }
        };
    }
    wasmparser::for_each_operator!(names)
}
