//! Random modules of loops over memory: what wasm-smith hardly ever makes, and what an optimiser turns inside out. Loops end by themselves,
//! so that no fuel stands between their operators; addresses walk upwards and downwards, with strides, scaled or masked, up to the memory's
//! last byte and, in some modules, beyond it.

use crate::random::Random;
use std::borrow::Cow;
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataCountSection, DataSection, ElementSection, Elements, ExportKind, ExportSection,
    Function, FunctionSection, GlobalSection, GlobalType, HeapType, Instruction as I, MemArg, MemArgTarget, MemorySection,
    MemoryType, Module, RefType, TableSection, TableType, TypeSection, ValType,
};

const TYPES: [ValType; 4] = [ValType::I32, ValType::I64, ValType::F32, ValType::F64];

/// Parameters of every function: two addresses, a count, one number of each type.
const PARAMS: [ValType; 7] = [ValType::I32, ValType::I32, ValType::I32, ValType::I32, ValType::I64, ValType::F32, ValType::F64];
const P: u32 = 0;
const Q: u32 = 1;
const N: u32 = 2;

/// Indices of the data segments that are passive, and of the element segments that are.
const PASSIVE_DATA: [u32; 2] = [3, 4];
const PASSIVE_ELEMENTS: [u32; 2] = [1, 2];

macro_rules! table {
    ($($op:ident: $from:ident => $to:ident),* $(,)?) => { &[$( (I::$op, ValType::$from, ValType::$to) ),*] };
}

/// Operators with one operand.
const UNARY: &[(I<'static>, ValType, ValType)] = table![
    I32Clz: I32 => I32, I32Ctz: I32 => I32, I32Popcnt: I32 => I32, I32Eqz: I32 => I32, I32Extend8S: I32 => I32, I32Extend16S: I32 => I32,
    I64Clz: I64 => I64, I64Ctz: I64 => I64, I64Popcnt: I64 => I64, I64Eqz: I64 => I32, I64Extend8S: I64 => I64, I64Extend16S: I64 => I64,
    I64Extend32S: I64 => I64, I32WrapI64: I64 => I32, I64ExtendI32S: I32 => I64, I64ExtendI32U: I32 => I64,
    F32Abs: F32 => F32, F32Neg: F32 => F32, F32Ceil: F32 => F32, F32Floor: F32 => F32, F32Trunc: F32 => F32, F32Nearest: F32 => F32,
    F32Sqrt: F32 => F32, F64Abs: F64 => F64, F64Neg: F64 => F64, F64Ceil: F64 => F64, F64Floor: F64 => F64, F64Trunc: F64 => F64,
    F64Nearest: F64 => F64, F64Sqrt: F64 => F64, F32DemoteF64: F64 => F32, F64PromoteF32: F32 => F64,
    I32TruncF32S: F32 => I32, I32TruncF32U: F32 => I32, I32TruncF64S: F64 => I32, I32TruncF64U: F64 => I32,
    I64TruncF32S: F32 => I64, I64TruncF32U: F32 => I64, I64TruncF64S: F64 => I64, I64TruncF64U: F64 => I64,
    I32TruncSatF32S: F32 => I32, I32TruncSatF32U: F32 => I32, I32TruncSatF64S: F64 => I32, I32TruncSatF64U: F64 => I32,
    I64TruncSatF32S: F32 => I64, I64TruncSatF32U: F32 => I64, I64TruncSatF64S: F64 => I64, I64TruncSatF64U: F64 => I64,
    F32ConvertI32S: I32 => F32, F32ConvertI32U: I32 => F32, F32ConvertI64S: I64 => F32, F32ConvertI64U: I64 => F32,
    F64ConvertI32S: I32 => F64, F64ConvertI32U: I32 => F64, F64ConvertI64S: I64 => F64, F64ConvertI64U: I64 => F64,
    I32ReinterpretF32: F32 => I32, I64ReinterpretF64: F64 => I64, F32ReinterpretI32: I32 => F32, F64ReinterpretI64: I64 => F64,
];

/// Operators with two operands of one type.
const BINARY: &[(I<'static>, ValType, ValType)] = table![
    I32Add: I32 => I32, I32Sub: I32 => I32, I32Mul: I32 => I32, I32DivS: I32 => I32, I32DivU: I32 => I32, I32RemS: I32 => I32,
    I32RemU: I32 => I32, I32And: I32 => I32, I32Or: I32 => I32, I32Xor: I32 => I32, I32Shl: I32 => I32, I32ShrS: I32 => I32,
    I32ShrU: I32 => I32, I32Rotl: I32 => I32, I32Rotr: I32 => I32, I32Eq: I32 => I32, I32Ne: I32 => I32, I32LtS: I32 => I32,
    I32LtU: I32 => I32, I32GtS: I32 => I32, I32GtU: I32 => I32, I32LeS: I32 => I32, I32LeU: I32 => I32, I32GeS: I32 => I32,
    I32GeU: I32 => I32, I64Add: I64 => I64, I64Sub: I64 => I64, I64Mul: I64 => I64, I64DivS: I64 => I64, I64DivU: I64 => I64,
    I64RemS: I64 => I64, I64RemU: I64 => I64, I64And: I64 => I64, I64Or: I64 => I64, I64Xor: I64 => I64, I64Shl: I64 => I64,
    I64ShrS: I64 => I64, I64ShrU: I64 => I64, I64Rotl: I64 => I64, I64Rotr: I64 => I64, I64Eq: I64 => I32, I64Ne: I64 => I32,
    I64LtS: I64 => I32, I64LtU: I64 => I32, I64GtS: I64 => I32, I64GtU: I64 => I32, I64LeS: I64 => I32, I64LeU: I64 => I32,
    I64GeS: I64 => I32, I64GeU: I64 => I32, F32Add: F32 => F32, F32Sub: F32 => F32, F32Mul: F32 => F32, F32Div: F32 => F32,
    F32Min: F32 => F32, F32Max: F32 => F32, F32Copysign: F32 => F32, F32Eq: F32 => I32, F32Ne: F32 => I32, F32Lt: F32 => I32,
    F32Gt: F32 => I32, F32Le: F32 => I32, F32Ge: F32 => I32, F64Add: F64 => F64, F64Sub: F64 => F64, F64Mul: F64 => F64,
    F64Div: F64 => F64, F64Min: F64 => F64, F64Max: F64 => F64, F64Copysign: F64 => F64, F64Eq: F64 => I32, F64Ne: F64 => I32,
    F64Lt: F64 => I32, F64Gt: F64 => I32, F64Le: F64 => I32, F64Ge: F64 => I32,
];

macro_rules! accesses {
    ($($op:ident: $ty:ident $width:literal),* $(,)?) => { &[$( (|arg| I::$op(arg), ValType::$ty, $width) ),*] };
}

pub(crate) use accesses;

/// An access, its value's type, its width in bytes.
pub(crate) type Access = (fn(MemArg) -> I<'static>, ValType, u64);

const LOADS: &[Access] = accesses![
    I32Load: I32 4, I32Load8S: I32 1, I32Load8U: I32 1, I32Load16S: I32 2, I32Load16U: I32 2, I64Load: I64 8, I64Load8S: I64 1,
    I64Load8U: I64 1, I64Load16S: I64 2, I64Load16U: I64 2, I64Load32S: I64 4, I64Load32U: I64 4, F32Load: F32 4, F64Load: F64 8,
];

const STORES: &[Access] = accesses![
    I32Store: I32 4, I32Store8: I32 1, I32Store16: I32 2, I64Store: I64 8, I64Store8: I64 1, I64Store16: I64 2, I64Store32: I64 4,
    F32Store: F32 4, F64Store: F64 8,
];

/// A module.
pub(crate) fn module(random: &mut Random) -> Vec<u8> {
    let pages = 1 + random.below(2);
    let mut module = Module::new();
    let (mut types, mut functions, mut exports, mut code) =
        (TypeSection::new(), FunctionSection::new(), ExportSection::new(), CodeSection::new());
    for ty in TYPES {
        types.ty().function(PARAMS, [ty]);
    }
    let count = 2 + random.below(4) as usize;
    let results: Vec<usize> = (0..count).map(|_| random.below(4) as usize).collect();
    // Out of bounds now and then, in one module of four.
    let edgy = random.chance(25);
    let (vectors, atomics) = (random.chance(50), random.chance(30));
    for (i, result) in results.iter().enumerate() {
        functions.function(*result as u32);
        exports.export(&format!("f{i}"), ExportKind::Func, i as u32);
        let (bytes, callees) = (pages << 16, &results[..i]);
        let writer = Writer { random, out: Vec::new(), bytes, edgy, vectors, atomics, callees, depth: 0, width: 8 };
        code.function(&writer.function(*result));
    }
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: pages,
        maximum: Some(pages + 1),
        memory64: false,
        shared: atomics,
        page_size_log2: None,
    });
    let mut globals = GlobalSection::new();
    for (i, ty) in TYPES.into_iter().enumerate() {
        let init = match ty {
            ValType::I32 => ConstExpr::i32_const(random.i32()),
            ValType::I64 => ConstExpr::i64_const(random.i64()),
            ValType::F32 => ConstExpr::f32_const(f32::from_bits(random.f32()).into()),
            _ => ConstExpr::f64_const(f64::from_bits(random.f64()).into()),
        };
        globals.global(GlobalType { val_type: ty, mutable: true, shared: false }, &init);
        exports.export(&format!("g{i}"), ExportKind::Global, i as u32);
    }
    let vector = GlobalType { val_type: ValType::V128, mutable: true, shared: false };
    globals.global(vector, &ConstExpr::v128_const(i128::from(random.i64())));
    exports.export("g4", ExportKind::Global, Writer::VECTOR_GLOBAL);
    exports.export("memory", ExportKind::Memory, 0);
    // What few loops touch: two tables, and segments to fill from.
    let mut tables = TableSection::new();
    let mut elements = ElementSection::new();
    for element_type in [RefType::FUNCREF, RefType::EXTERNREF] {
        exports.export(&format!("t{}", tables.len()), ExportKind::Table, tables.len());
        tables.table(TableType { element_type, minimum: 12, maximum: Some(20), table64: false, shared: false });
    }
    let all: Vec<u32> = (0..count as u32).collect();
    elements.active(Some(0), &ConstExpr::i32_const(2), Elements::Functions(Cow::Borrowed(&all)));
    for _ in 0..2 {
        elements.passive(Elements::Functions(Cow::Borrowed(&all)));
    }
    let mut data = DataSection::new();
    for at in [0, 0x4000, (pages << 16) - 1024] {
        let bytes = if random.chance(50) { random.bytes(1024) } else { numbers(random) };
        data.active(0, &ConstExpr::i32_const(at as i32), bytes);
    }
    for _ in PASSIVE_DATA {
        data.passive(random.bytes(200));
    }
    module.section(&types).section(&functions).section(&tables).section(&memories).section(&globals).section(&exports);
    module.section(&elements).section(&DataCountSection { count: data.len() }).section(&code).section(&data);
    module.finish()
}

/// A kilobyte of floats that are no NaNs.
fn numbers(random: &mut Random) -> Vec<u8> {
    (0..128).flat_map(|_| ((random.below(4000) as f64 - 2000.0) / 16.0).to_le_bytes()).collect()
}

pub(crate) struct Writer<'r> {
    pub(crate) random: &'r mut Random,
    out: Vec<I<'static>>,
    bytes: u64,
    pub(crate) edgy: bool,
    /// Whether there are vectors (`vectors.rs`).
    vectors: bool,
    /// Whether the memory is shared and accessed by atomic operators, too (`atomics.rs`).
    atomics: bool,
    /// Result types of the functions that may be called.
    callees: &'r [usize],
    /// Loops around.
    depth: u32,
    /// Of the elements that the innermost loop walks over.
    width: u64,
}

impl Writer<'_> {
    /// Counters of up to three loops, then two pointers, then an accumulator of each type and one of vectors, then
    /// the address of an atomic operator.
    const COUNTER: u32 = PARAMS.len() as u32;
    const POINTER: u32 = Self::COUNTER + 3;
    pub(crate) const SUM: u32 = Self::POINTER + 2;
    pub(crate) const VECTOR: u32 = Self::SUM + TYPES.len() as u32;
    pub(crate) const ADDRESS: u32 = Self::VECTOR + 1;
    /// The global behind those of the other types.
    pub(crate) const VECTOR_GLOBAL: u32 = TYPES.len() as u32;

    fn function(mut self, result: usize) -> Function {
        self.bases();
        let loops = 1 + self.random.below(2);
        for _ in 0..loops {
            self.one_loop();
            if self.random.chance(70) {
                self.rare();
            }
        }
        self.emit([I::LocalGet(Self::SUM + result as u32)]);
        if self.random.chance(50) {
            self.emit([I::GlobalGet(result as u32)]);
            self.binary(TYPES[result]);
        }
        self.emit([I::End]);
        let mut locals = vec![(5, ValType::I32)];
        locals.extend(TYPES.map(|ty| (1, ty)));
        locals.extend([(1, ValType::V128), (1, ValType::I32)]);
        let mut function = Function::new(locals);
        self.out.iter().for_each(|instruction| {
            function.instruction(instruction);
        });
        function
    }

    pub(crate) fn emit(&mut self, instructions: impl IntoIterator<Item = I<'static>>) {
        self.out.extend(instructions);
    }

    /// Makes addresses and count of the parameters what fits: any place in the first half, or up to the end.
    fn bases(&mut self) {
        for base in [P, Q] {
            let end = self.bytes as i32 - 2048 - 8;
            self.emit([I::LocalGet(base)]);
            match self.random.below(4) {
                0 | 1 => self.emit([I::I32Const(0x3fff), I::I32And]),
                2 => self.emit([I::I32Const(7), I::I32And, I::I32Const(end), I::I32Add]),
                // Behind the end with some of the last elements, in edgy modules.
                _ => {
                    let past = if self.edgy { 600 } else { 0 };
                    self.emit([I::I32Const(0xff), I::I32And, I::I32Const(end - 256 + past), I::I32Add]);
                }
            }
            self.emit([I::LocalSet(base)]);
        }
        let most = *self.random.pick(&[7, 15, 31, 63]);
        self.emit([I::LocalGet(N), I::I32Const(most), I::I32And, I::LocalSet(N)]);
    }

    /// A loop that ends: its counter is written nowhere else.
    fn one_loop(&mut self) {
        let counter = Self::COUNTER + self.depth;
        let downwards = self.random.chance(25);
        let checked_first = self.random.chance(60);
        let step = *self.random.pick(&[1, 1, 1, 2, 3]);
        let constant = if self.depth > 0 || self.random.chance(30) {
            Some(1 + self.random.below(if self.depth > 0 { 5 } else { 40 }))
        } else {
            None
        };
        let bound = constant.map_or(I::LocalGet(N), |n| I::I32Const(n as i32));
        let width = std::mem::replace(&mut self.width, *self.random.pick(&[1, 2, 4, 4, 8, 8, 16]));
        for (pointer, base) in [(Self::POINTER, P), (Self::POINTER + 1, Q)] {
            if self.depth == 0 {
                self.emit([I::LocalGet(base), I::LocalSet(pointer)]);
            }
        }
        if downwards {
            self.emit([bound.clone(), I::LocalSet(counter)]);
        } else {
            self.emit([I::I32Const(0), I::LocalSet(counter)]);
        }
        self.emit([I::Block(BlockType::Empty)]);
        if checked_first || downwards {
            self.emit([bound.clone(), I::I32Eqz, I::BrIf(0)]);
        }
        self.emit([I::Loop(BlockType::Empty)]);
        self.depth += 1;
        let statements = 1 + self.random.below(3);
        for _ in 0..statements {
            self.statement(0);
        }
        if self.depth < 3 && self.random.chance(20) {
            self.one_loop();
        }
        self.depth -= 1;
        if self.random.chance(8) {
            // Leaves early, if the numbers say so.
            self.expression(ValType::I32, 2);
            self.emit([I::BrIf(1)]);
        }
        if self.depth == 0 && self.random.chance(50) {
            let stride = self.width as i32 * step;
            self.emit([I::LocalGet(Self::POINTER), I::I32Const(stride), I::I32Add, I::LocalSet(Self::POINTER)]);
        }
        if downwards {
            self.emit([I::LocalGet(counter), I::I32Const(1), I::I32Sub, I::LocalTee(counter), I::BrIf(0)]);
        } else {
            self.emit([I::LocalGet(counter), I::I32Const(step), I::I32Add, I::LocalTee(counter), bound]);
            let less = if self.random.chance(50) { I::I32LtU } else { I::I32LtS };
            self.emit([less, I::BrIf(0)]);
        }
        self.emit([I::End, I::End]);
        self.width = width;
    }

    /// Operators on whole ranges and on tables. Their operands are made to fit by `mutate.rs`.
    fn rare(&mut self) {
        let sum = I::LocalSet(Self::SUM);
        let operands = |writer: &mut Self, count: usize| (0..count).for_each(|_| writer.expression(ValType::I32, 1));
        let (table, other) = (self.random.below(2) as u32, self.random.below(2) as u32);
        let null = I::RefNull(if table == 0 { HeapType::FUNC } else { HeapType::EXTERN });
        match self.random.below(17) {
            0 => {
                operands(self, 3);
                self.emit([I::MemoryFill(0)]);
            }
            1 => {
                operands(self, 3);
                self.emit([I::MemoryCopy { src_mem: 0, dst_mem: 0 }]);
            }
            2 => {
                operands(self, 3);
                let data_index = *self.random.pick(&PASSIVE_DATA);
                self.emit([I::MemoryInit { mem: 0, data_index }]);
            }
            3 => {
                operands(self, 1);
                self.emit([I::MemoryGrow(0), sum]);
            }
            4 => self.emit([I::MemorySize(0), sum]),
            5 => self.emit([I::DataDrop(PASSIVE_DATA[1])]),
            6 => self.emit([I::ElemDrop(PASSIVE_ELEMENTS[1])]),
            7 => {
                operands(self, 3);
                let elem_index = *self.random.pick(&PASSIVE_ELEMENTS);
                self.emit([I::TableInit { elem_index, table: 0 }]);
            }
            8 => {
                operands(self, 3);
                self.emit([I::TableCopy { src_table: table, dst_table: table }]);
            }
            9 => {
                operands(self, 1);
                self.emit([null]);
                operands(self, 1);
                self.emit([I::TableFill(table)]);
            }
            10 => {
                self.emit([null]);
                operands(self, 1);
                self.emit([I::TableGrow(table), sum]);
            }
            11 => {
                operands(self, 1);
                self.emit([I::TableGet(table), I::RefIsNull, sum]);
            }
            12 => {
                operands(self, 2);
                self.emit([I::TableGet(table), I::TableSet(table)]);
            }
            13 => {
                // One table's element or null, as the numbers say, into the other where the types agree.
                operands(self, 1);
                self.emit([I::TableGet(table), null]);
                operands(self, 1);
                self.emit([I::TypedSelect(ValType::Ref(if table == 0 { RefType::FUNCREF } else { RefType::EXTERNREF }))]);
                self.emit([I::RefIsNull, sum]);
            }
            14 => {
                operands(self, 1);
                if self.callees.is_empty() {
                    self.emit([I::Drop]);
                } else {
                    self.emit([I::RefFunc(0), I::TableSet(0)]);
                }
            }
            15 => {
                operands(self, 1);
                self.emit([I::I32Const(0x70), I::I32GtU, I::If(BlockType::Empty), I::Unreachable, I::End]);
            }
            _ => {
                // A choice of many.
                self.emit([I::Block(BlockType::Empty), I::Block(BlockType::Empty), I::Block(BlockType::Empty)]);
                operands(self, 1);
                self.emit([I::I32Const(3), I::I32And]);
                self.emit([I::BrTable(Cow::Owned(vec![0, 1, 2, 1]), 0), I::End]);
                self.statement(2);
                self.emit([I::End]);
                self.statement(2);
                self.emit([I::TableSize(other), sum, I::End]);
            }
        }
    }

    fn statement(&mut self, nested: u32) {
        if self.vectors && self.random.chance(40) {
            return self.vector_statement();
        }
        if self.atomics && self.random.chance(40) {
            return self.atomic_statement();
        }
        match self.random.below(12) {
            0..=4 => {
                let (store, ty, _) = self.access(STORES);
                let offset = self.address();
                self.expression(ty, 3);
                let arg = self.arg(offset);
                self.emit([store(arg)]);
            }
            5..=7 => {
                // A reduction.
                let ty = self.random.below(4) as u32;
                self.emit([I::LocalGet(Self::SUM + ty)]);
                self.expression(TYPES[ty as usize], 2);
                self.binary(TYPES[ty as usize]);
                self.emit([I::LocalSet(Self::SUM + ty)]);
            }
            8 if nested < 2 => {
                self.expression(ValType::I32, 2);
                self.emit([I::If(BlockType::Empty)]);
                self.statement(nested + 1);
                if self.random.chance(50) {
                    self.emit([I::Else]);
                    self.statement(nested + 1);
                }
                self.emit([I::End]);
            }
            9 => {
                let ty = self.random.below(4) as u32;
                self.expression(TYPES[ty as usize], 2);
                self.emit([I::GlobalSet(ty)]);
            }
            // A load whose result is not needed.
            10 => {
                let (load, _, _) = self.access(LOADS);
                let offset = self.address();
                let arg = self.arg(offset);
                self.emit([load(arg), I::Drop]);
            }
            11 if !self.callees.is_empty() && self.depth == 1 && self.random.chance(25) => {
                let callee = self.random.below(self.callees.len() as u64);
                for ty in PARAMS {
                    self.expression(ty, 1);
                }
                self.emit([I::Call(callee as u32), I::LocalSet(Self::SUM + self.callees[callee as usize] as u32)]);
            }
            _ if self.random.chance(15) => self.rare(),
            _ => {
                let ty = self.random.below(4) as u32;
                self.expression(TYPES[ty as usize], 3);
                self.emit([I::LocalSet(Self::SUM + ty)]);
            }
        }
    }

    /// Mostly as wide as what the loop walks over.
    fn access(&mut self, from: &'static [Access]) -> Access {
        let fitting: Vec<&Access> = from.iter().filter(|(_, _, width)| *width == self.width.min(8)).collect();
        if self.random.chance(70) && !fitting.is_empty() { **self.random.pick(&fitting) } else { *self.random.pick(from) }
    }

    /// Puts an address on the stack; the offset that goes with it.
    pub(crate) fn address(&mut self) -> u64 {
        let counter = I::LocalGet(Self::COUNTER + self.random.below(u64::from(self.depth.clamp(1, 3))) as u32);
        let base = I::LocalGet(*self.random.pick(&[P, Q]));
        let log2 = I::I32Const(self.width.trailing_zeros() as i32);
        let half = self.bytes as i32 / 2 - 1;
        let near = *self.random.pick(&[0, 0, 0, self.width, 2 * self.width, 16]);
        match self.random.below(8) {
            0..=2 => {
                self.emit([base, counter, log2, I::I32Shl, I::I32Add]);
                near
            }
            3 => {
                // Backwards from the end.
                self.emit([base, I::I32Const(1024), I::I32Add, counter, log2, I::I32Shl, I::I32Sub]);
                near
            }
            4 => {
                let pointer = Self::POINTER + self.random.below(2) as u32;
                self.emit([I::LocalGet(pointer)]);
                near
            }
            5 => {
                // Anywhere: a gather or a scatter.
                self.expression(ValType::I32, 1);
                self.emit([I::I32Const(half), I::I32And]);
                near
            }
            6 => {
                // Scaled by a multiplication, the constant part in the offset.
                self.emit([counter, I::I32Const(self.width as i32), I::I32Mul]);
                if self.random.chance(50) { self.bytes - 2048 } else { 0x4000 + near }
            }
            _ => {
                self.emit([base, counter, I::I32Add, I::I32Const(half), I::I32And]);
                near
            }
        }
    }

    pub(crate) fn arg(&mut self, offset: u64) -> MemArg {
        let offset = if self.edgy && self.random.chance(1) {
            *self.random.pick(&[self.bytes - 8, 0xffff_fff8, 0x8000_0000])
        } else {
            offset
        };
        MemArg { offset, align: 0, target: MemArgTarget::Memory(0), ordering: None }
    }

    pub(crate) fn expression(&mut self, ty: ValType, deep: u32) {
        if deep == 0 || self.random.chance(15) {
            return self.leaf(ty);
        }
        if self.vectors && self.random.chance(8) {
            return self.number_of_vector(ty, deep - 1);
        }
        match self.random.below(10) {
            0..=4 => {
                let ops: Vec<_> = BINARY.iter().filter(|(_, _, to)| *to == ty).collect();
                let (op, from, _) = *self.random.pick(&ops);
                self.expression(*from, deep - 1);
                self.expression(*from, deep - 1);
                self.emit([op.clone()]);
            }
            5 | 6 => {
                let ops: Vec<_> = UNARY.iter().filter(|(_, _, to)| *to == ty).collect();
                let (op, from, _) = *self.random.pick(&ops);
                self.expression(*from, deep - 1);
                self.emit([op.clone()]);
            }
            7 => {
                self.expression(ty, deep - 1);
                self.expression(ty, deep - 1);
                self.expression(ValType::I32, deep - 1);
                self.emit([I::Select]);
            }
            _ => self.load(ty),
        }
    }

    /// One of the type's operators that make a reduction.
    fn binary(&mut self, ty: ValType) {
        let ops: Vec<_> = BINARY.iter().filter(|(_, from, to)| *from == ty && *to == ty).collect();
        let op = if self.random.chance(50) { ops[self.random.below(3) as usize] } else { *self.random.pick(&ops) };
        self.emit([op.0.clone()]);
    }

    fn load(&mut self, ty: ValType) {
        let (load, from, _) = self.access(LOADS);
        let offset = self.address();
        let arg = self.arg(offset);
        if from == ty {
            self.emit([load(arg)]);
        } else {
            let of_type: Vec<_> = LOADS.iter().filter(|(_, from, _)| *from == ty).collect();
            let (load, _, _) = self.random.pick(&of_type);
            self.emit([load(arg)]);
        }
    }

    fn leaf(&mut self, ty: ValType) {
        let index = TYPES.iter().position(|other| *other == ty).unwrap_or(0) as u32;
        match self.random.below(6) {
            0 => {
                let constant = match ty {
                    ValType::I32 => I::I32Const(self.random.i32()),
                    ValType::I64 => I::I64Const(self.random.i64()),
                    ValType::F32 => I::F32Const(f32::from_bits(self.random.f32()).into()),
                    _ => I::F64Const(f64::from_bits(self.random.f64()).into()),
                };
                self.emit([constant]);
            }
            1 => self.emit([I::LocalGet(3 + index)]),
            2 => self.emit([I::LocalGet(Self::SUM + index)]),
            3 => self.emit([I::GlobalGet(index)]),
            4 if ty == ValType::I32 => self.emit([I::LocalGet(Self::COUNTER)]),
            _ => self.load(ty),
        }
    }
}
