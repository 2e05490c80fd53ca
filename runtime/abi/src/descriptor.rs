//! An artifact's descriptor: the section [`DESCRIPTOR_SECTION`](crate::DESCRIPTOR_SECTION), to whose start the one exported symbol points.
//!
//! ```text
//!   0  magic          8 bytes: 7f 61 77 73 6d 0d 0a 1a
//!   8  abi_version    u32
//!  12  texts          u32  number of code ranges
//!  16  payload_bytes  u64
//!  24  trap_rows      u64  number of rows
//!  32  blob_bytes     u64
//!  40  total_bytes    u64  of the whole descriptor
//!  48  text range     per code range { start: i64, bytes: u64, first_trap_row: u64, trap_rows: u64 }
//!      payload        a [`Descriptor`] in postcard's format, padded to 8
//!      trap table     per row { code_offset: u32, wasm_offset: u32, trap: u8, 3 bytes of zero }, sorted by code range, then offset
//!      blob           bytes of data segments
//! ```
//!
//! All numbers are little-endian. `start` is relative to its own address, so that an artifact needs no relocation at all; every other
//! reference to code is a [`CodeRef`]. There is one code range for each object file that code generation produced; together they hold all code
//! of the artifact, helpers included. [`encode`] and [`Raw::parse`] are the only writer and reader.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

use crate::component::Description;
use crate::cpu::Arch;
use crate::types::{Bounds, FuncType, GlobalType, MemoryType, TableType, ValType};
use crate::{ABI_VERSION, calls, vmctx};

/// First bytes of a descriptor.
pub const MAGIC: [u8; 8] = *b"\x7fawsm\r\n\x1a";
/// Size of the part before the code ranges.
pub const HEADER_BYTES: usize = 48;
/// Size of one code range.
pub const TEXT_BYTES: usize = 32;
/// Size of one row of the trap table.
pub const TRAP_ROW_BYTES: usize = 12;

/// What an artifact contains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Descriptor {
    /// Name and version of the compiler that made it, for people.
    pub compiler: String,
    /// Optimisation level, 0 to 3, for people.
    pub opt_level: u8,
    /// Instruction set of the code.
    pub arch: Arch,
    /// Features that the processor must have, from [`Arch::features`].
    pub cpu_features: Vec<String>,
    /// The core modules, at least one.
    pub modules: Vec<ModuleDescriptor>,
    /// How a sandbox is made of them: these instances, in this order. A plain function has one.
    pub plan: Vec<Instantiation>,
    /// The component that it was made of, for people.
    pub component: Option<Description>,
    /// Where code of functions became part of others, for backtraces: sorted by code range, start and depth. Not all of it is known.
    pub inlined: Vec<Inlined>,
}

/// Code of a function that became part of another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Inlined {
    /// Index of the code range.
    pub text: u32,
    /// Bytes from its start.
    pub start: u32,
    /// How many functions there are around it.
    pub depth: u32,
    /// Size of the code.
    pub bytes: u32,
    /// Where it was called: as [`TrapRow::wasm_offset`].
    pub call: u32,
}

/// One step of the plan: an instance of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instantiation {
    /// Index into [`Descriptor::modules`].
    pub module: u32,
    /// Where each import of that module comes from, in their order.
    pub imports: Vec<ImportSource>,
}

/// Where an instance's import comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportSource {
    /// The host, under the import's own names.
    Host,
    /// An export of an instance made by an earlier step.
    Instance {
        /// The step.
        instance: u32,
        /// The export's name.
        export: String,
    },
}

/// A place in the artifact's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeRef {
    /// Index of the code range.
    pub text: u32,
    /// Bytes from its start.
    pub offset: u32,
}

/// One core module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModuleDescriptor {
    /// From the name section.
    pub name: Option<String>,
    /// Where the trap table counts its bytes from: each module of a program follows the one before it. Zero for the first.
    pub wasm_base: u32,
    /// Function types, with the entry through which the host calls functions of that type (see [`crate::calls`]).
    pub types: Vec<TypeDescriptor>,
    /// Number of types in each recursion group, in their order. Types refer to others of their own and of earlier groups.
    pub groups: Vec<u32>,
    /// Whether its functions return exceptions (see [`crate::calls`]). All instances of a sandbox have to agree.
    pub exceptions: bool,
    /// Imports, in their order.
    pub imports: Vec<Import>,
    /// Defined functions, in their order: function `i` has index `imported functions + i`.
    pub functions: Vec<Function>,
    /// Defined tables.
    pub tables: Vec<Table>,
    /// Defined memories.
    pub memories: Vec<Memory>,
    /// How accesses to each memory are checked, imported memories first.
    pub bounds: Vec<Bounds>,
    /// Whether its code makes %gs lead to the memory of whom it calls ([`calls::builtin::SEGMENT`]), as all modules in a sandbox must if
    /// one has a memory in mode [`Bounds::Segment`].
    pub segment: bool,
    /// Defined globals.
    pub globals: Vec<Global>,
    /// Defined tags: the index of each one's type.
    pub tags: Vec<u32>,
    /// Exports.
    pub exports: Vec<Export>,
    /// Index of the start function.
    pub start: Option<u32>,
    /// Element segments.
    pub elements: Vec<ElementSegment>,
    /// Data segments.
    pub data: Vec<DataSegment>,
}

/// A function type and its entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeDescriptor {
    /// The type.
    pub ty: FuncType,
    /// Index of the type of which it is declared to be a subtype.
    pub supertype: Option<u32>,
    /// Whether no type can be declared to be a subtype of it.
    pub is_final: bool,
    /// The entry; none when no function of the type can be called from outside.
    pub entry: Option<CodeRef>,
}

/// An import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Module name.
    pub module: String,
    /// Field name.
    pub name: String,
    /// What is imported.
    pub ty: ImportType,
}

/// What is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportType {
    /// A function.
    Function {
        /// Index of its type.
        ty: u32,
        /// The thunk to call where the host provides it (see [`crate::calls`]).
        thunk: CodeRef,
    },
    /// A table.
    Table(TableType),
    /// A memory.
    Memory(MemoryType),
    /// A global.
    Global(GlobalType),
    /// A tag: the index of its type.
    Tag(u32),
}

impl ImportType {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ExternKind {
        match self {
            ImportType::Function { .. } => ExternKind::Function,
            ImportType::Table(_) => ExternKind::Table,
            ImportType::Memory(_) => ExternKind::Memory,
            ImportType::Global(_) => ExternKind::Global,
            ImportType::Tag(_) => ExternKind::Tag,
        }
    }
}

/// A defined function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Index of its type.
    pub ty: u32,
    /// Its code, in the guest's calling convention; none when it was inlined everywhere and nothing else can reach it.
    pub code: Option<CodeRef>,
    /// Size of the code in bytes.
    pub code_bytes: u32,
    /// Where its body begins in the WebAssembly module, in bytes from the module's start.
    pub wasm_start: u32,
    /// Where its body ends.
    pub wasm_end: u32,
    /// From the name section, or else from an export.
    pub name: Option<String>,
}

/// A defined table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Its type.
    pub ty: TableType,
    /// Initial value of the elements; null when absent.
    pub init: Option<ConstExpr>,
}

/// A defined memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Its type.
    pub ty: MemoryType,
}

/// A defined global.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Global {
    /// Its type.
    pub ty: GlobalType,
    /// Its initial value.
    pub init: ConstExpr,
}

/// An export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// What is exported.
    pub kind: ExternKind,
    /// Its index in the module's index space of that kind, imports first.
    pub index: u32,
}

/// Kinds of imports and exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExternKind {
    /// Function.
    Function,
    /// Table.
    Table,
    /// Memory.
    Memory,
    /// Global.
    Global,
    /// Tag.
    Tag,
}

impl fmt::Display for ExternKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExternKind::Function => "function",
            ExternKind::Table => "table",
            ExternKind::Memory => "memory",
            ExternKind::Global => "global",
            ExternKind::Tag => "tag",
        })
    }
}

/// A constant expression: operators of a stack machine that leaves one value.
pub type ConstExpr = Vec<ConstOp>;

/// An operator of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConstOp {
    /// Push an `i32`.
    I32Const(i32),
    /// Push an `i64`.
    I64Const(i64),
    /// Push an `f32`, given by its bits.
    F32Const(u32),
    /// Push an `f64`, given by its bits.
    F64Const(u64),
    /// Push a `v128`.
    V128Const(u128),
    /// Push the value of a global.
    GlobalGet(u32),
    /// Push null of a nullable reference type.
    RefNull(ValType),
    /// Push a reference to a function.
    RefFunc(u32),
    /// Pop two, push their sum.
    I32Add,
    /// Pop two, push their difference.
    I32Sub,
    /// Pop two, push their product.
    I32Mul,
    /// Pop two, push their sum.
    I64Add,
    /// Pop two, push their difference.
    I64Sub,
    /// Pop two, push their product.
    I64Mul,
}

/// An element segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElementSegment {
    /// Type of its elements.
    pub ty: ValType,
    /// What instantiation does with it.
    pub mode: SegmentMode,
    /// Its elements.
    pub items: ElementItems,
}

/// Elements of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ElementItems {
    /// References to these functions.
    Functions(Vec<u32>),
    /// The values of these expressions.
    Expressions(Vec<ConstExpr>),
}

impl ElementItems {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            ElementItems::Functions(items) => items.len(),
            ElementItems::Expressions(items) => items.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A data segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSegment {
    /// What instantiation does with it.
    pub mode: SegmentMode,
    /// Where its bytes begin in the descriptor's blob.
    pub blob_start: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// What instantiation does with a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SegmentMode {
    /// Nothing; `memory.init` or `table.init` may copy from it.
    Passive,
    /// Copies it to `offset` of the memory or table with that index, then drops it.
    Active {
        /// Index of the memory or table.
        target: u32,
        /// Where to.
        offset: ConstExpr,
    },
    /// Drops it: it only declares functions for `ref.func`.
    Declared,
}

impl ModuleDescriptor {
    /// The imports of one kind, in their index space's order.
    fn imports_where(&self, keep: impl Fn(&ImportType) -> bool) -> u32 {
        u32::try_from(self.imports.iter().filter(|import| keep(&import.ty)).count()).unwrap_or(u32::MAX)
    }

    /// Number of imported functions.
    #[must_use]
    pub fn imported_functions(&self) -> u32 {
        self.imports_where(|ty| matches!(ty, ImportType::Function { .. }))
    }

    /// Number of imported tables.
    #[must_use]
    pub fn imported_tables(&self) -> u32 {
        self.imports_where(|ty| matches!(ty, ImportType::Table(_)))
    }

    /// Number of imported memories.
    #[must_use]
    pub fn imported_memories(&self) -> u32 {
        self.imports_where(|ty| matches!(ty, ImportType::Memory(_)))
    }

    /// Number of imported globals.
    #[must_use]
    pub fn imported_globals(&self) -> u32 {
        self.imports_where(|ty| matches!(ty, ImportType::Global(_)))
    }

    /// Number of imported tags.
    #[must_use]
    pub fn imported_tags(&self) -> u32 {
        self.imports_where(|ty| matches!(ty, ImportType::Tag(_)))
    }

    /// What the layout of an instance's vmctx follows from.
    #[must_use]
    pub fn counts(&self) -> vmctx::Counts {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        vmctx::Counts {
            arguments: self.types.iter().map(|ty| calls::memory_params(&ty.ty, self.exceptions)).max().unwrap_or(0),
            memories: self.imported_memories().saturating_add(count(self.memories.len())),
            tables: self.imported_tables().saturating_add(count(self.tables.len())),
            imported_functions: self.imported_functions(),
            imported_globals: self.imported_globals(),
            types: count(self.types.len()),
            tags: self.imported_tags().saturating_add(count(self.tags.len())),
            globals: count(self.globals.len()),
        }
    }

    /// The export of that name.
    #[must_use]
    pub fn export(&self, name: &str) -> Option<&Export> {
        self.exports.iter().find(|export| export.name == name)
    }
}

impl Descriptor {
    /// Where the functions were called that code at an offset of a code range is part of, innermost first: as [`TrapRow::wasm_offset`]. `function`: the offset at which
    /// the function begins that they became part of.
    pub fn inlined_at(&self, text: u32, function: u32, offset: u32) -> Vec<u32> {
        let first = self.inlined.partition_point(|row| (row.text, row.start) < (text, function));
        let rows = self.inlined[first..].iter().take_while(|row| row.text == text && row.start <= offset);
        let mut around: Vec<_> = rows.filter(|row| offset - row.start < row.bytes).map(|row| (row.depth, row.call)).collect();
        around.sort_unstable_by(|a, b| b.cmp(a));
        around.into_iter().map(|(_, call)| call).collect()
    }

    /// The module to which an offset of the trap table belongs, and the offset in that module.
    #[must_use]
    pub fn place(&self, wasm_offset: u32) -> Option<(usize, u32)> {
        let after = self.modules.partition_point(|module| module.wasm_base <= wasm_offset);
        let index = after.checked_sub(1)?;
        Some((index, wasm_offset.checked_sub(self.modules[index].wasm_base)?))
    }
}

/// A row of the trap table: at this offset of the code range stands an instruction of that operator. Rows stand for what can trap and for
/// calls; an offset between two rows belongs to the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapRow {
    /// Bytes from the start of the code range.
    pub code_offset: u32,
    /// Bytes from the start of the WebAssembly module, plus [`ModuleDescriptor::wasm_base`]: code of several modules may lie in one code range.
    pub wasm_offset: u32,
    /// Number of the [`TrapCode`](crate::TrapCode) with which it may trap; zero for a call.
    pub trap: u8,
}

/// A code range, as the writer knows it before linking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Its size.
    pub bytes: u64,
    /// Its rows, sorted by offset.
    pub trap_rows: Vec<TrapRow>,
}

/// Why bytes are not a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescriptorError {
    /// They do not begin with [`MAGIC`].
    Magic,
    /// Another [`ABI_VERSION`].
    AbiVersion {
        /// The version found.
        found: u32,
    },
    /// They end too early, or sizes contradict each other.
    Truncated,
    /// The payload does not decode.
    Payload,
}

impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DescriptorError::Magic => f.write_str("the descriptor does not begin with awsm's magic bytes"),
            DescriptorError::AbiVersion { found } => {
                write!(f, "made for ABI version {found}, this is version {ABI_VERSION}: compile it again with a matching awsm")
            }
            DescriptorError::Truncated => f.write_str("the descriptor is truncated or its sizes contradict each other"),
            DescriptorError::Payload => f.write_str("the descriptor's payload does not decode"),
        }
    }
}

impl core::error::Error for DescriptorError {}

/// An encoded descriptor.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The bytes, with every text range's `start` zero.
    pub bytes: Vec<u8>,
    /// For each code range the offset of its `start`: there the linker writes `range - (descriptor + offset)`, 64 bits.
    pub text_starts: Vec<u64>,
}

/// Writes a descriptor.
#[must_use]
pub fn encode(descriptor: &Descriptor, texts: &[Text], blob: &[u8]) -> Encoded {
    // Serialising to a growing vector cannot fail: no map or sequence here has an unknown length.
    let mut payload = postcard::to_allocvec(descriptor).unwrap_or_default();
    let payload_bytes = payload.len();
    payload.resize(payload_bytes.next_multiple_of(8), 0);
    let rows: usize = texts.iter().map(|text| text.trap_rows.len()).sum();
    let total = HEADER_BYTES + texts.len() * TEXT_BYTES + payload.len() + rows * TRAP_ROW_BYTES + blob.len();

    let mut bytes = Vec::with_capacity(total);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&ABI_VERSION.to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(texts.len()).unwrap_or(u32::MAX).to_le_bytes());
    for number in [payload_bytes, rows, blob.len(), total] {
        bytes.extend_from_slice(&(number as u64).to_le_bytes());
    }
    let mut text_starts = Vec::with_capacity(texts.len());
    let mut first_row = 0u64;
    for text in texts {
        text_starts.push(bytes.len() as u64);
        for number in [0, text.bytes, first_row, text.trap_rows.len() as u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        first_row += text.trap_rows.len() as u64;
    }
    bytes.extend_from_slice(&payload);
    for row in texts.iter().flat_map(|text| &text.trap_rows) {
        bytes.extend_from_slice(&row.code_offset.to_le_bytes());
        bytes.extend_from_slice(&row.wasm_offset.to_le_bytes());
        bytes.extend_from_slice(&[row.trap, 0, 0, 0]);
    }
    bytes.extend_from_slice(blob);
    Encoded { bytes, text_starts }
}

/// A code range, as the reader finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawText<'a> {
    /// Start of the range relative to the start of the descriptor.
    pub start: i64,
    /// Size of the range.
    pub bytes: u64,
    rows: &'a [u8],
}

impl<'a> RawText<'a> {
    /// The rows of the trap table for this range, in the order in which they stand.
    pub fn trap_rows(&self) -> impl ExactSizeIterator<Item = TrapRow> + use<'a> {
        self.rows.chunks_exact(TRAP_ROW_BYTES).map(|row| TrapRow {
            code_offset: u32::from_le_bytes([row[0], row[1], row[2], row[3]]),
            wasm_offset: u32::from_le_bytes([row[4], row[5], row[6], row[7]]),
            trap: row[8],
        })
    }
}

/// A descriptor's parts, checked for size but not for meaning.
#[derive(Clone, Debug)]
pub struct Raw<'a> {
    /// The code ranges.
    pub texts: Vec<RawText<'a>>,
    /// The encoded [`Descriptor`]; see [`Raw::decode`].
    pub payload: &'a [u8],
    /// Bytes of data segments.
    pub blob: &'a [u8],
}

impl<'a> Raw<'a> {
    /// Splits a descriptor into its parts. `bytes` begins at the descriptor and may be longer.
    ///
    /// # Errors
    /// When it is none, is of another version, or its sizes do not fit `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Raw<'a>, DescriptorError> {
        use DescriptorError::Truncated;
        let number = |at: usize| -> Result<u64, DescriptorError> {
            let field = bytes.get(at..at + 8).ok_or(Truncated)?;
            Ok(u64::from_le_bytes(field.try_into().map_err(|_| Truncated)?))
        };
        let size = |at: usize| number(at).and_then(|n| usize::try_from(n).map_err(|_| Truncated));
        if bytes.get(..8).ok_or(Truncated)? != MAGIC {
            return Err(DescriptorError::Magic);
        }
        let word = number(8)?;
        let (found, texts) = (word as u32, (word >> 32) as usize);
        if found != ABI_VERSION {
            return Err(DescriptorError::AbiVersion { found });
        }
        let (payload_bytes, rows, blob_bytes, total) = (size(16)?, size(24)?, size(32)?, size(40)?);

        let after = |at: usize, bytes: Option<usize>| bytes.and_then(|n| at.checked_add(n)).ok_or(Truncated);
        let payload_at = after(HEADER_BYTES, texts.checked_mul(TEXT_BYTES))?;
        let rows_at = after(payload_at, payload_bytes.checked_next_multiple_of(8))?;
        let blob_at = after(rows_at, rows.checked_mul(TRAP_ROW_BYTES))?;
        if after(blob_at, Some(blob_bytes))? != total || total > bytes.len() {
            return Err(Truncated);
        }

        let table = &bytes[rows_at..blob_at];
        let texts = (0..texts)
            .map(|i| {
                let at = HEADER_BYTES + i * TEXT_BYTES;
                let (first, count) = (size(at + 16)?, size(at + 24)?);
                let last = first.checked_add(count).filter(|&last| last <= rows).ok_or(Truncated)?;
                Ok(RawText {
                    start: (number(at)? as i64).checked_add(at as i64).ok_or(Truncated)?,
                    bytes: number(at + 8)?,
                    rows: &table[first * TRAP_ROW_BYTES..last * TRAP_ROW_BYTES],
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Raw { texts, payload: &bytes[payload_at..payload_at + payload_bytes], blob: &bytes[blob_at..total] })
    }

    /// Decodes the payload.
    ///
    /// # Errors
    /// When it does not decode or something follows it.
    pub fn decode(&self) -> Result<Descriptor, DescriptorError> {
        match postcard::take_from_bytes(self.payload) {
            Ok((descriptor, [])) => Ok(descriptor),
            _ => Err(DescriptorError::Payload),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn sample() -> (Descriptor, Vec<Text>) {
        let descriptor = Descriptor {
            compiler: "awsm test".to_string(),
            opt_level: 3,
            arch: Arch::X86_64,
            cpu_features: vec!["avx2".to_string()],
            modules: Vec::new(),
            plan: vec![Instantiation { module: 0, imports: vec![ImportSource::Host] }],
            component: Some(Description { instances: vec![None, Some("app".to_string())], ..Description::default() }),
            inlined: vec![
                Inlined { text: 0, start: 10, depth: 1, bytes: 20, call: 5 },
                Inlined { text: 0, start: 12, depth: 2, bytes: 4, call: 7 },
                Inlined { text: 1, start: 0, depth: 1, bytes: 4, call: 9 },
            ],
        };
        let row = |code_offset| TrapRow { code_offset, wasm_offset: 7, trap: 2 };
        let texts = vec![Text { bytes: 100, trap_rows: vec![row(1), row(5)] }, Text { bytes: 50, trap_rows: vec![row(9)] }];
        (descriptor, texts)
    }

    #[test]
    fn what_is_written_is_read() {
        let (descriptor, texts) = sample();
        let encoded = encode(&descriptor, &texts, b"data");
        let raw = Raw::parse(&encoded.bytes).unwrap();
        assert_eq!(raw.decode().unwrap(), descriptor);
        assert_eq!(raw.blob, b"data");
        for (i, (text, read)) in texts.iter().zip(&raw.texts).enumerate() {
            assert_eq!(read.bytes, text.bytes);
            assert_eq!(read.start as u64, encoded.text_starts[i]);
            assert!(read.trap_rows().eq(text.trap_rows.iter().copied()));
        }
    }

    #[test]
    fn every_truncation_and_every_changed_header_byte_is_an_error_or_harmless() {
        let (descriptor, texts) = sample();
        let bytes = encode(&descriptor, &texts, b"data").bytes;
        for end in 0..bytes.len() {
            assert!(Raw::parse(&bytes[..end]).is_err(), "cut at {end}");
        }
        for at in 0..bytes.len() {
            for flip in [1u8, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= flip;
                if let Ok(raw) = Raw::parse(&bytes) {
                    let _ = raw.decode();
                    raw.texts.iter().for_each(|text| assert_eq!(text.trap_rows().count(), text.trap_rows().len()));
                }
            }
        }
    }

    #[test]
    fn code_is_part_of_all_functions_around_it() {
        let (descriptor, _) = sample();
        let expected: [((u32, u32), &[u32]); 6] =
            [((0, 9), &[]), ((0, 10), &[5]), ((0, 13), &[7, 5]), ((0, 16), &[5]), ((0, 30), &[]), ((1, 3), &[9])];
        for ((text, offset), calls) in expected {
            assert_eq!(descriptor.inlined_at(text, 0, offset), calls, "{text} {offset}");
        }
        assert_eq!(descriptor.inlined_at(0, 10, 13), [7, 5]);
        assert!(descriptor.inlined_at(0, 14, 15).is_empty(), "of the function before");
    }

    #[test]
    fn another_version_is_named() {
        let (descriptor, texts) = sample();
        let mut bytes = encode(&descriptor, &texts, b"").bytes;
        bytes[8] = 99;
        assert_eq!(Raw::parse(&bytes).unwrap_err(), DescriptorError::AbiVersion { found: 99 });
    }
}
