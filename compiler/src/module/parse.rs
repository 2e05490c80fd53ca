//! Reading a module, section by section, each checked against the limits, validated, and only then kept.

use awsm_abi::descriptor::{DataSegment, ElementItems, ElementSegment, Export, ExternKind, SegmentMode};
use awsm_abi::limits as max;
use wasmparser::{
    Catch, DataKind, ElementKind, ExternalKind, FuncToValidate, FuncValidatorAllocations, FunctionBody, KnownCustom, Operator,
    Parser, Payload, TableInit, TypeRef, ValidPayload, Validator, ValidatorResources, WasmFeatures,
};

use super::throws::Throws;
use super::{FuncIdx, Import, ImportType, Module, TypeIdx, features, limits, names, types};
use crate::error::CompileError;
use crate::options::CompileOptions;
use crate::progress::{Phase, Progress};

/// Why reading stopped.
pub(super) enum Failure {
    Wasm(wasmparser::Error),
    Other(CompileError),
}

impl From<wasmparser::Error> for Failure {
    fn from(error: wasmparser::Error) -> Failure {
        Failure::Wasm(error)
    }
}

impl From<CompileError> for Failure {
    fn from(error: CompileError) -> Failure {
        Failure::Other(error)
    }
}

/// Parses and validates a module.
///
/// # Errors
/// [`CompileError::Invalid`], [`CompileError::Unsupported`] or [`CompileError::Limit`].
pub(crate) fn parse<'a>(wasm: &'a [u8], options: &CompileOptions, progress: &dyn Progress) -> Result<Module<'a>, CompileError> {
    limits::check("bytes of WebAssembly", wasm.len() as u64, max::MODULE_BYTES_MAX, 0)?;
    progress.begin(Phase::Validate, 0);
    let accepted = features::accepted(options);
    let mut reader = Reader::default();
    reader.module.exceptions = options.foreign_exceptions;
    reader.read(wasm, accepted, progress).map_err(|failure| match failure {
        Failure::Wasm(error) => features::refusal(wasm, accepted, &error),
        Failure::Other(error) => error,
    })
}

#[derive(Default)]
struct Reader<'a> {
    module: Module<'a>,
    name_section: Option<wasmparser::NameSectionReader<'a>>,
    allocations: FuncValidatorAllocations,
    throws: Throws,
}

impl<'a> Reader<'a> {
    fn read(mut self, wasm: &'a [u8], accepted: WasmFeatures, progress: &dyn Progress) -> Result<Module<'a>, Failure> {
        self.module.bytes = wasm.len() as u32;
        let mut validator = Validator::new_with_features(accepted);
        let mut parser = Parser::new(0);
        parser.set_features(accepted);
        for payload in parser.parse_all(wasm) {
            let payload = payload?;
            if let Some((what, count, limit, offset)) = section_limit(&payload) {
                limits::check(what, u64::from(count) + self.imported(what), limit as u64, offset)?;
            }
            match validator.payload(&payload)? {
                ValidPayload::Func(function, body) => {
                    self.body(function, body)?;
                    progress.advance(self.module.bodies.len());
                }
                _ => self.section(payload, progress)?,
            }
        }
        if let Some(reader) = self.name_section {
            names::read(&mut self.module, reader);
        }
        names::complete(&mut self.module);
        self.module.tail_calls.resize(self.module.functions.len(), false);
        self.module.throws = match self.module.exceptions {
            true => self.throws.finish(self.module.imported_functions as usize),
            false => vec![false; self.module.functions.len()],
        };
        self.module.find_escapes();
        Ok(self.module)
    }

    fn section(&mut self, payload: Payload<'a>, progress: &dyn Progress) -> Result<(), Failure> {
        match payload {
            Payload::TypeSection(section) => self.types(section)?,
            Payload::ImportSection(section) => self.imports(section)?,
            Payload::FunctionSection(section) => {
                for ty in section {
                    self.module.functions.push(TypeIdx(ty?));
                }
            }
            Payload::TableSection(section) => self.tables(section)?,
            Payload::MemorySection(section) => {
                for ty in section {
                    self.module.memories.push(types::memory_type(&ty?));
                }
            }
            Payload::GlobalSection(section) => {
                for item in section.into_iter_with_offsets() {
                    let (offset, global) = item?;
                    self.module.globals.push(types::global_type(&global.ty, offset)?);
                    self.module.global_inits.push(types::const_expr(&global.init_expr)?);
                }
            }
            Payload::TagSection(section) => {
                for ty in section {
                    self.module.tags.push(TypeIdx(ty?.func_type_idx));
                }
                self.module.exceptions |= !self.module.tags.is_empty();
            }
            Payload::ExportSection(section) => self.exports(section)?,
            Payload::StartSection { func, .. } => self.module.start = Some(FuncIdx(func)),
            Payload::ElementSection(section) => self.elements(section)?,
            Payload::DataSection(section) => self.data(section)?,
            Payload::CodeSectionStart { count, unchecked_range, .. } => {
                self.module.code_start = unchecked_range.start as u32;
                self.module.tail_calls = vec![false; self.module.functions.len()];
                progress.begin(Phase::Validate, count as usize);
            }
            Payload::CustomSection(section) => {
                if let KnownCustom::Name(reader) = section.as_known() {
                    self.name_section = Some(reader);
                } else if section.name().starts_with(".debug_") {
                    self.module.debug_sections.push((section.name(), section.data()));
                }
            }
            // Validation has refused what is not of a core module; the rest carries nothing that is needed.
            _ => {}
        }
        Ok(())
    }

    fn types(&mut self, section: wasmparser::TypeSectionReader<'a>) -> Result<(), Failure> {
        for group in section {
            let group = group?;
            let before = self.module.types.len();
            for (offset, ty) in group.into_types_and_offsets() {
                let (ty, declared) = types::sub_type(&ty, offset)?;
                limits::check("types", self.module.types.len() as u64 + 1, max::TYPES_MAX as u64, offset)?;
                self.module.types.push(ty);
                self.module.declared.push(declared);
            }
            self.module.groups.push((self.module.types.len() - before) as u32);
        }
        Ok(())
    }

    fn body(&mut self, function: FuncToValidate<ValidatorResources>, body: FunctionBody<'a>) -> Result<(), Failure> {
        let range = body.range();
        limits::check("bytes in a function", range.end - range.start, max::FUNCTION_BYTES_MAX as u64, range.start)?;
        let mut validator = function.into_validator(std::mem::take(&mut self.allocations));
        let mut locals = u64::from(validator.len_locals());
        for group in body.get_locals_reader()? {
            locals = locals.saturating_add(u64::from(group?.0));
            limits::check("locals in a function", locals, max::LOCALS_MAX as u64, range.start)?;
        }
        let mut reader = body.get_binary_reader();
        validator.read_locals(&mut reader)?;
        for local in body.get_locals_reader()? {
            types::accepted(local?.1, range.start)?;
        }
        if self.module.exceptions {
            self.throws.begin();
        }
        let mut operators = wasmparser::OperatorsReader::new(reader);
        let mut handler_values = 0;
        while !operators.eof() {
            let (op, offset) = operators.read_with_offset()?;
            if let Operator::BrTable { targets } = &op {
                limits::check("targets of a br_table", u64::from(targets.len()), max::BR_TABLE_TARGETS_MAX as u64, offset)?;
            }
            validator.op(offset, &op)?;
            types::check_operator(&op, offset)?;
            handler_values += self.handler_values(&op);
            limits::check("values of handlers in a function", handler_values, max::HANDLER_VALUES_MAX as u64, offset)?;
            self.note_tail_call(&op);
            if self.module.exceptions {
                self.throws.operator(&op);
            }
            limits::check("nested blocks", u64::from(validator.control_stack_height()), max::NESTING_MAX as u64, offset)?;
        }
        operators.finish()?;
        self.allocations = validator.into_allocations();
        self.module.bodies.push(body);
        Ok(())
    }

    /// How many values of exceptions the clauses that an operator brings take.
    fn handler_values(&self, op: &Operator<'_>) -> u64 {
        let values = |tag: u32| self.module.types[self.module.tags[tag as usize].0 as usize].params.len() as u64 + 1;
        match op {
            Operator::TryTable { try_table } => {
                let tags = try_table.catches.iter().map(|catch| match *catch {
                    Catch::One { tag, .. } | Catch::OneRef { tag, .. } => values(tag),
                    Catch::All { .. } | Catch::AllRef { .. } => 1,
                });
                tags.sum()
            }
            Operator::Catch { tag_index } => values(*tag_index),
            _ => 0,
        }
    }

    /// Remembers a tail call in the body that is being read.
    fn note_tail_call(&mut self, op: &Operator<'_>) {
        let module = &mut self.module;
        let caller = module.imported_functions as usize + module.bodies.len();
        let callee = match op {
            Operator::ReturnCall { function_index } => *function_index as usize,
            Operator::ReturnCallIndirect { .. } | Operator::ReturnCallRef { .. } => caller,
            _ => return,
        };
        module.tail_calls[caller] = true;
        module.tail_calls[callee] = true;
    }

    fn imports(&mut self, section: wasmparser::ImportSectionReader<'a>) -> Result<(), Failure> {
        let offset = section.range().start;
        let module = &mut self.module;
        for import in section.into_imports() {
            let import = import?;
            let ty = match import.ty {
                TypeRef::Func(ty) => {
                    module.functions.push(TypeIdx(ty));
                    module.imported_functions += 1;
                    ImportType::Function(TypeIdx(ty))
                }
                TypeRef::Table(ty) => {
                    let ty = types::table_type(&ty, offset)?;
                    module.tables.push(ty);
                    module.imported_tables += 1;
                    ImportType::Table(ty)
                }
                TypeRef::Memory(ty) => {
                    let ty = types::memory_type(&ty);
                    module.memories.push(ty);
                    module.imported_memories += 1;
                    ImportType::Memory(ty)
                }
                TypeRef::Global(ty) => {
                    let ty = types::global_type(&ty, offset)?;
                    module.globals.push(ty);
                    module.imported_globals += 1;
                    ImportType::Global(ty)
                }
                TypeRef::Tag(ty) => {
                    let ty = TypeIdx(ty.func_type_idx);
                    module.tags.push(ty);
                    module.imported_tags += 1;
                    module.exceptions = true;
                    ImportType::Tag(ty)
                }
                other @ TypeRef::FuncExact(_) => {
                    return Err(CompileError::Unsupported { feature: format!("import of {other:?}"), offset }.into());
                }
            };
            module.imports.push(Import { module: import.module.to_owned(), name: import.name.to_owned(), ty });
        }
        for (what, limit) in [
            ("functions", max::FUNCTIONS_MAX),
            ("tables", max::MEMORIES_MAX),
            ("memories", max::MEMORIES_MAX),
            ("tags", max::TAGS_MAX),
            ("globals", max::GLOBALS_MAX),
        ] {
            limits::check(what, self.imported(what), limit as u64, offset)?;
        }
        Ok(())
    }

    /// How many of what a section defines were imported.
    fn imported(&self, what: &str) -> u64 {
        let count = match what {
            "functions" => self.module.imported_functions,
            "tables" => self.module.imported_tables,
            "memories" => self.module.imported_memories,
            "tags" => self.module.imported_tags,
            "globals" => self.module.imported_globals,
            _ => 0,
        };
        u64::from(count)
    }

    fn tables(&mut self, section: wasmparser::TableSectionReader<'a>) -> Result<(), Failure> {
        let offset = section.range().start;
        for table in section {
            let table = table?;
            self.module.tables.push(types::table_type(&table.ty, offset)?);
            self.module.table_inits.push(match &table.init {
                TableInit::RefNull => None,
                TableInit::Expr(expression) => Some(types::const_expr(expression)?),
            });
        }
        Ok(())
    }

    fn exports(&mut self, section: wasmparser::ExportSectionReader<'a>) -> Result<(), Failure> {
        let offset = section.range().start;
        for export in section {
            let export = export?;
            let kind = match export.kind {
                ExternalKind::Func => ExternKind::Function,
                ExternalKind::Table => ExternKind::Table,
                ExternalKind::Memory => ExternKind::Memory,
                ExternalKind::Global => ExternKind::Global,
                ExternalKind::Tag => ExternKind::Tag,
                other @ ExternalKind::FuncExact => {
                    return Err(CompileError::Unsupported { feature: format!("export of {other:?}"), offset }.into());
                }
            };
            self.module.exports.push(Export { name: export.name.to_owned(), kind, index: export.index });
        }
        Ok(())
    }

    fn elements(&mut self, section: wasmparser::ElementSectionReader<'a>) -> Result<(), Failure> {
        for element in section {
            let element = element?;
            let offset = element.range.start;
            let mode = match element.kind {
                ElementKind::Passive => SegmentMode::Passive,
                ElementKind::Declared => SegmentMode::Declared,
                ElementKind::Active { table_index, offset_expr } => {
                    SegmentMode::Active { target: table_index.unwrap_or(0), offset: types::const_expr(&offset_expr)? }
                }
            };
            let (ty, items) = match element.items {
                wasmparser::ElementItems::Functions(items) => {
                    (wasmparser::ValType::FUNCREF, ElementItems::Functions(items.into_iter().collect::<Result<_, _>>()?))
                }
                wasmparser::ElementItems::Expressions(ty, items) => {
                    let items = items.into_iter().map(|item| types::const_expr(&item?)).collect::<Result<_, Failure>>()?;
                    (wasmparser::ValType::Ref(ty), ElementItems::Expressions(items))
                }
            };
            self.module.elements.push(ElementSegment { ty: types::accepted(ty, offset)?, mode, items });
        }
        Ok(())
    }

    fn data(&mut self, section: wasmparser::DataSectionReader<'a>) -> Result<(), Failure> {
        for data in section {
            let data = data?;
            let mode = match data.kind {
                DataKind::Passive => SegmentMode::Passive,
                DataKind::Active { memory_index, offset_expr } => {
                    SegmentMode::Active { target: memory_index, offset: types::const_expr(&offset_expr)? }
                }
            };
            let blob_start = self.module.blob.len() as u64;
            self.module.blob.extend_from_slice(data.data);
            self.module.data.push(DataSegment { mode, blob_start, bytes: data.data.len() as u64 });
        }
        Ok(())
    }
}

/// What a section holds, how many, and how many are allowed.
fn section_limit(payload: &Payload<'_>) -> Option<(&'static str, u32, usize, u64)> {
    match payload {
        Payload::TypeSection(section) => Some(("types", section.count(), max::TYPES_MAX, section.range().start)),
        Payload::FunctionSection(section) => Some(("functions", section.count(), max::FUNCTIONS_MAX, section.range().start)),
        Payload::TableSection(section) => Some(("tables", section.count(), max::MEMORIES_MAX, section.range().start)),
        Payload::MemorySection(section) => Some(("memories", section.count(), max::MEMORIES_MAX, section.range().start)),
        Payload::GlobalSection(section) => Some(("globals", section.count(), max::GLOBALS_MAX, section.range().start)),
        Payload::TagSection(section) => Some(("tags", section.count(), max::TAGS_MAX, section.range().start)),
        Payload::ImportSection(section) => Some(("imports", section.count(), max::IMPORTS_MAX, section.range().start)),
        Payload::ExportSection(section) => Some(("exports", section.count(), max::EXPORTS_MAX, section.range().start)),
        Payload::ElementSection(section) => Some(("element segments", section.count(), max::SEGMENTS_MAX, section.range().start)),
        Payload::DataSection(section) => Some(("data segments", section.count(), max::SEGMENTS_MAX, section.range().start)),
        _ => None,
    }
}
