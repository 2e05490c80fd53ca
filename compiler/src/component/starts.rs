//! Modules that become instances after the start function of another has run.
//!
//! A sandbox begins as an image: all instances are there, with what their active segments write, and the start functions run behind that, in the order of
//! the plan. In the specification an instance's segments are written when it is made, so behind the start functions of earlier ones. Both are the same unless
//! such a start function sees the memory or table that a later segment is written to. That can only be one that the later module imports.
//!
//! So the segments of such a module become passive, and its start function writes them, as the specification defines it (core specification,
//! "Instantiation"): `memory.init` and `data.drop` for each, and what was its start function in the end.

use std::collections::BTreeMap;

use wasm_encoder::reencode::{self, Reencode as _, RoundtripReencoder};
use wasm_encoder::{
    CodeSection, DataCountSection, DataSection, ElementSection, Encode as _, Function, FunctionSection, Instruction, Module,
    RawSection, SectionId, StartSection, TypeSection,
};
use wasmparser::{ConstExpr, DataKind, ElementItems, ElementKind, Parser, Payload, TypeRef};

/// The order of sections (core specification, "Modules").
const ORDER: [SectionId; 13] = [
    SectionId::Type,
    SectionId::Import,
    SectionId::Function,
    SectionId::Table,
    SectionId::Memory,
    SectionId::Tag,
    SectionId::Global,
    SectionId::Export,
    SectionId::Start,
    SectionId::Element,
    SectionId::DataCount,
    SectionId::Code,
    SectionId::Data,
];

/// Why a module is none.
type Error = reencode::Error;

/// The module whose start function writes its segments. None where no segment goes to what it imports. It was validated.
///
/// # Errors
/// When it cannot be read.
pub(super) fn with_written_segments(wasm: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut parts = Parts::default();
    for payload in Parser::new(0).parse_all(wasm) {
        parts.add(payload?, wasm)?;
    }
    if parts.writes.is_empty() { Ok(None) } else { parts.assemble().map(Some) }
}

/// A module's sections, with what is to be changed.
#[derive(Default)]
struct Parts<'a> {
    /// Those that stay as they are, by their ids.
    raw: BTreeMap<u8, &'a [u8]>,
    custom: Vec<&'a [u8]>,
    types: TypeSection,
    functions: FunctionSection,
    elements: ElementSection,
    code: CodeSection,
    data: DataSection,
    /// How many types there are, and functions, imported ones included.
    type_count: u32,
    function_count: u32,
    /// How many tables and memories are imported.
    imported_tables: u32,
    imported_memories: u32,
    start: Option<u32>,
    /// What writes the segments.
    writes: Vec<Write>,
}

/// What writes a segment.
struct Write {
    /// Instructions that leave the offset, in the binary format.
    offset: Vec<u8>,
    length: u32,
    init: Instruction<'static>,
    drop: Instruction<'static>,
}

impl<'a> Parts<'a> {
    fn add(&mut self, payload: Payload<'a>, wasm: &'a [u8]) -> Result<(), Error> {
        let same = &mut RoundtripReencoder;
        match payload {
            Payload::TypeSection(section) => {
                for group in section.clone() {
                    self.type_count += group?.types().len() as u32;
                }
                same.parse_type_section(&mut self.types, section)?;
            }
            Payload::FunctionSection(section) => {
                self.function_count += section.count();
                same.parse_function_section(&mut self.functions, section)?;
            }
            Payload::ImportSection(section) => {
                for import in section.clone().into_imports() {
                    match import?.ty {
                        TypeRef::Func(_) | TypeRef::FuncExact(_) => self.function_count += 1,
                        TypeRef::Table(_) => self.imported_tables += 1,
                        TypeRef::Memory(_) => self.imported_memories += 1,
                        TypeRef::Global(_) | TypeRef::Tag(_) => {}
                    }
                }
                self.raw.insert(SectionId::Import as u8, &wasm[bytes(section.range())]);
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(section) => {
                for (index, element) in (0..).zip(section) {
                    self.element(index, element?)?;
                }
            }
            Payload::DataSection(section) => {
                for (index, segment) in (0..).zip(section) {
                    self.segment(index, segment?)?;
                }
            }
            Payload::CodeSectionEntry(body) => {
                self.code.raw(body.as_bytes());
            }
            Payload::CodeSectionStart { .. } | Payload::DataCountSection { .. } => {}
            Payload::CustomSection(section) => self.custom.push(&wasm[bytes(section.range())]),
            other => {
                if let Some((id, range)) = other.as_section() {
                    self.raw.insert(id, &wasm[bytes(range)]);
                }
            }
        }
        Ok(())
    }

    fn element(&mut self, index: u32, mut element: wasmparser::Element<'a>) -> Result<(), Error> {
        if let ElementKind::Active { table_index, offset_expr } = &element.kind
            && table_index.unwrap_or(0) < self.imported_tables
        {
            let length = match &element.items {
                ElementItems::Functions(items) => items.count(),
                ElementItems::Expressions(_, items) => items.count(),
            };
            self.writes.push(Write {
                offset: instructions(offset_expr)?,
                length,
                init: Instruction::TableInit { elem_index: index, table: table_index.unwrap_or(0) },
                drop: Instruction::ElemDrop(index),
            });
            element.kind = ElementKind::Passive;
        }
        RoundtripReencoder.parse_element(&mut self.elements, element)
    }

    fn segment(&mut self, index: u32, mut segment: wasmparser::Data<'a>) -> Result<(), Error> {
        if let DataKind::Active { memory_index, offset_expr } = &segment.kind
            && *memory_index < self.imported_memories
        {
            self.writes.push(Write {
                offset: instructions(offset_expr)?,
                length: segment.data.len() as u32,
                init: Instruction::MemoryInit { mem: *memory_index, data_index: index },
                drop: Instruction::DataDrop(index),
            });
            segment.kind = DataKind::Passive;
        }
        RoundtripReencoder.parse_data(&mut self.data, segment)
    }

    fn assemble(mut self) -> Result<Vec<u8>, Error> {
        let mut body = Function::new([]);
        for Write { offset, length, init, drop } in &self.writes {
            body.raw(offset.iter().copied());
            body.instructions().i32_const(0).i32_const(length.cast_signed());
            body.instruction(init).instruction(drop);
        }
        if let Some(start) = self.start {
            body.instruction(&Instruction::Call(start));
        }
        body.instruction(&Instruction::End);
        self.code.function(&body);
        self.types.ty().function([], []);
        self.functions.function(self.type_count);
        let start = StartSection { function_index: self.function_count };
        let mut module = Module::new();
        for section in ORDER {
            match section {
                SectionId::Type => module.section(&self.types),
                SectionId::Function => module.section(&self.functions),
                SectionId::Start => module.section(&start),
                SectionId::Element if !self.elements.is_empty() => module.section(&self.elements),
                SectionId::DataCount if !self.data.is_empty() => module.section(&DataCountSection { count: self.data.len() }),
                SectionId::Code => module.section(&self.code),
                SectionId::Data if !self.data.is_empty() => module.section(&self.data),
                other => match self.raw.get(&(other as u8)) {
                    Some(data) => module.section(&RawSection { id: other as u8, data }),
                    None => &mut module,
                },
            };
        }
        for data in self.custom {
            module.section(&RawSection { id: SectionId::Custom as u8, data });
        }
        Ok(module.finish())
    }
}

/// A range of bytes of what is in memory.
fn bytes(range: std::ops::Range<u64>) -> std::ops::Range<usize> {
    range.start as usize..range.end as usize
}

/// The instructions of a constant expression, without its end.
fn instructions(expression: &ConstExpr<'_>) -> Result<Vec<u8>, Error> {
    let mut code = Vec::new();
    let mut operators = expression.get_operators_reader();
    while !operators.is_end_then_eof() {
        RoundtripReencoder.instruction(operators.read()?)?.encode(&mut code);
    }
    Ok(code)
}
