//! Random changes to a random module, so that most of what it does ends well and what it touches lies where mistakes would be: addresses go
//! to the memory's last bytes, to 2 GiB and to 4 GiB; offsets too; divisors, indices and lengths mostly fit; indirect calls find a callee.

use crate::random::Random;
use crate::sections::{Body, Sections, name};
use anyhow::Result;
use std::borrow::Cow;
use wasm_encoder::reencode::{Reencode, RoundtripReencoder};
use wasm_encoder::{ConstExpr, Elements, Instruction, RefType, ValType};
use wasmparser::{MemArg, MemArgTarget, Operator};

/// Functions of a type in a row of the table of callees.
const CALLEES: u32 = 4;

/// How much of a module may go wrong, in percent of its operators.
#[derive(Clone, Copy, Debug)]
struct Temper {
    /// Operands left as they are.
    raw: u64,
    /// Accesses where every second one is out of bounds, or all are.
    edge: u64,
}

/// Changes a module's functions. `addresses` tells whether loads and stores are to be changed as well.
pub(crate) fn mutate(wasm: &[u8], random: &mut Random, addresses: bool) -> Result<Vec<u8>> {
    let mut sections = Sections::read(wasm)?;
    let calm = random.chance(55);
    let temper = if calm { Temper { raw: 0, edge: 0 } } else { Temper { raw: 1 + random.below(20), edge: 1 + random.below(20) } };
    sections.enlarge();
    let callees = add_callees(&mut sections);
    let mut bodies = Vec::new();
    for (i, body) in std::mem::take(&mut sections.bodies).iter().enumerate() {
        let Some(signature) = sections.spaces.signature(sections.spaces.functions_imported + i).cloned() else { continue };
        let mut pass =
            Pass { sections: &sections, body: Body::read(body, &signature)?, random, temper, addresses, callees: &callees };
        pass.run()?;
        bodies.push(pass.body.finish());
    }
    Ok(sections.finish(&bodies))
}

/// A table that holds, for every type that functions have, a row of them.
#[derive(Debug)]
struct Callees {
    table: u32,
    /// Of each type, where its row begins.
    rows: Vec<Option<u32>>,
}

fn add_callees(sections: &mut Sections<'_>) -> Option<Callees> {
    let spaces = &sections.spaces;
    let mut functions = Vec::new();
    let mut rows = Vec::new();
    for signature in &spaces.types {
        let same: Vec<u32> = (0..spaces.functions.len() as u32)
            .filter(|i| signature.is_some() && spaces.signature(*i as usize) == signature.as_ref())
            .collect();
        rows.push((!same.is_empty()).then_some(functions.len() as u32));
        functions.extend(same.iter().cycle().take(if same.is_empty() { 0 } else { CALLEES as usize }));
    }
    if functions.is_empty() {
        return None;
    }
    let size = functions.len() as u64;
    let ty = wasm_encoder::TableType {
        element_type: RefType::FUNCREF,
        minimum: size,
        maximum: Some(size),
        table64: false,
        shared: false,
    };
    sections.tables.table(ty);
    let table = spaces.tables.len() as u32;
    sections.elements.active(Some(table), &ConstExpr::i32_const(0), Elements::Functions(Cow::Owned(functions)));
    Some(Callees { table, rows })
}

struct Pass<'s, 'a> {
    sections: &'s Sections<'a>,
    body: Body<'a>,
    random: &'s mut Random,
    temper: Temper,
    addresses: bool,
    callees: &'s Option<Callees>,
}

/// Instructions of an index type.
#[derive(Clone, Copy, Debug)]
struct Index {
    wide: bool,
}

impl Index {
    fn ty(self) -> ValType {
        if self.wide { ValType::I64 } else { ValType::I32 }
    }

    fn constant(self, value: i64) -> Instruction<'static> {
        if self.wide { Instruction::I64Const(value) } else { Instruction::I32Const(value as i32) }
    }

    fn and(self) -> Instruction<'static> {
        if self.wide { Instruction::I64And } else { Instruction::I32And }
    }

    fn or(self) -> Instruction<'static> {
        if self.wide { Instruction::I64Or } else { Instruction::I32Or }
    }

    fn add(self) -> Instruction<'static> {
        if self.wide { Instruction::I64Add } else { Instruction::I32Add }
    }

    fn sub(self) -> Instruction<'static> {
        if self.wide { Instruction::I64Sub } else { Instruction::I32Sub }
    }

    fn shl(self) -> Instruction<'static> {
        if self.wide { Instruction::I64Shl } else { Instruction::I32Shl }
    }

    fn rem(self) -> Instruction<'static> {
        if self.wide { Instruction::I64RemU } else { Instruction::I32RemU }
    }
}

impl<'a> Pass<'_, 'a> {
    fn run(&mut self) -> Result<()> {
        for operator in std::mem::take(&mut self.body.operators) {
            self.operator(operator)?;
        }
        Ok(())
    }

    fn operator(&mut self, operator: Operator<'a>) -> Result<()> {
        use Operator as O;
        let raw = self.random.chance(self.temper.raw);
        match &operator {
            O::Unreachable if !raw && self.random.chance(40) && self.body.emit_return() => return Ok(()),
            O::I32DivS | O::I32DivU | O::I32RemS | O::I32RemU if !raw => {
                self.body.emit([Instruction::I32Const(1), Instruction::I32Or]);
                if matches!(operator, O::I32DivS) && self.random.chance(50) {
                    // Not -1 either, which overflows with the least number.
                    self.body.emit([Instruction::I32Const(0x7fff_ffff), Instruction::I32And]);
                }
            }
            O::I64DivS | O::I64DivU | O::I64RemS | O::I64RemU if !raw => {
                self.body.emit([Instruction::I64Const(1), Instruction::I64Or]);
            }
            _ if !raw => {
                if let Some((ty, limit)) = truncation(&operator) {
                    self.bound_float(ty, limit, name(&operator).ends_with('U'));
                }
            }
            _ => {}
        }
        match operator {
            O::CallIndirect { type_index, table_index } if !raw => {
                if let Some((table, row)) = self.callee_row(type_index) {
                    self.emit_callee(row, table_index);
                    self.body.emit([Instruction::CallIndirect { type_index, table_index: table }]);
                    return Ok(());
                }
            }
            O::ReturnCallIndirect { type_index, table_index } if !raw => {
                if let Some((table, row)) = self.callee_row(type_index) {
                    self.emit_callee(row, table_index);
                    self.body.emit([Instruction::ReturnCallIndirect { type_index, table_index: table }]);
                    return Ok(());
                }
            }
            O::MemoryGrow { mem } if self.random.chance(80) => {
                let index = self.memory_index(mem);
                self.body.emit([index.constant(1), index.and()]);
            }
            O::TableGrow { table } if self.random.chance(90) => {
                let index = self.table_index(table);
                self.body.emit([index.constant(3), index.and()]);
            }
            O::TableGet { table } if !raw => self.table_element(table),
            O::TableSet { table } if !raw => {
                let element = RoundtripReencoder.ref_type(self.sections.spaces.tables[table as usize].element_type)?;
                let value = self.body.temporary(ValType::Ref(element), 0);
                // A reference that is never null has no local without a value.
                if element.nullable {
                    self.body.emit([Instruction::LocalSet(value)]);
                    self.table_element(table);
                    self.body.emit([Instruction::LocalGet(value)]);
                }
            }
            O::DataDrop { .. } | O::ElemDrop { .. } if !raw && self.random.chance(70) => {
                self.body.emit([Instruction::Nop]);
                return Ok(());
            }
            O::MemoryFill { mem } if !raw => self.fill(mem),
            O::MemoryCopy { dst_mem, src_mem } if !raw => self.copy_memory(dst_mem, src_mem),
            O::MemoryInit { data_index, mem } if !raw => {
                let from = self.sections.spaces.data.get(data_index as usize).copied().unwrap_or(0);
                let to = (self.memory_bytes(mem), self.memory_index(mem));
                self.three(to, (from, Index { wide: false }), Index { wide: false });
            }
            O::TableInit { elem_index, table } if !raw => {
                let from = self.sections.spaces.elements.get(elem_index as usize).copied().unwrap_or(0);
                let to = (self.sections.spaces.tables[table as usize].initial, self.table_index(table));
                self.three(to, (from, Index { wide: false }), Index { wide: false });
            }
            O::TableCopy { dst_table, src_table } if !raw => {
                let tables = &self.sections.spaces.tables;
                let to = (tables[dst_table as usize].initial, self.table_index(dst_table));
                let from = (tables[src_table as usize].initial, self.table_index(src_table));
                self.three(to, from, Index { wide: to.1.wide && from.1.wide });
            }
            O::TableFill { table } if !raw => {
                let element = RoundtripReencoder.ref_type(self.sections.spaces.tables[table as usize].element_type)?;
                if element.nullable {
                    let (size, index) = (self.sections.spaces.tables[table as usize].initial, self.table_index(table));
                    let (length, value) = (self.body.temporary(index.ty(), 0), self.body.temporary(ValType::Ref(element), 0));
                    self.body.emit([index.constant(size as i64 + 1), index.rem(), Instruction::LocalSet(length)]);
                    self.body.emit([Instruction::LocalSet(value), Instruction::Drop]);
                    // As far back as its length.
                    self.body.emit([index.constant(size as i64), Instruction::LocalGet(length), index.sub()]);
                    self.body.emit([Instruction::LocalGet(value), Instruction::LocalGet(length)]);
                }
            }
            operator => return self.access(operator),
        }
        self.body.keep(operator)
    }

    fn callee_row(&self, type_index: u32) -> Option<(u32, u32)> {
        let callees = self.callees.as_ref()?;
        Some((callees.table, callees.rows.get(type_index as usize).copied().flatten()?))
    }

    /// Any index, of the kind that the call's own table has, picks one of a row.
    fn emit_callee(&mut self, row: u32, table: u32) {
        if self.table_index(table).wide {
            self.body.emit([Instruction::I32WrapI64]);
        }
        self.body.emit([Instruction::I32Const(CALLEES as i32 - 1), Instruction::I32And]);
        self.body.emit([Instruction::I32Const(row as i32), Instruction::I32Add]);
    }

    fn memory_index(&self, memory: u32) -> Index {
        Index { wide: self.sections.spaces.memories[memory as usize].memory64 }
    }

    fn table_index(&self, table: u32) -> Index {
        Index { wide: self.sections.spaces.tables[table as usize].table64 }
    }

    /// What the memory has from the beginning.
    fn memory_bytes(&self, memory: u32) -> u64 {
        let ty = &self.sections.spaces.memories[memory as usize];
        ty.initial << ty.page_size_log2.unwrap_or(16)
    }

    /// The index on the stack becomes one of the table's.
    fn table_element(&mut self, table: u32) {
        let (size, index) = (self.sections.spaces.tables[table as usize].initial, self.table_index(table));
        if size > 0 {
            self.body.emit([index.constant(size as i64), index.rem()]);
        }
    }

    /// The float on the stack becomes one that can be converted.
    fn bound_float(&mut self, ty: ValType, limit: f64, unsigned: bool) {
        let value = self.body.temporary(ty, 0);
        self.body.emit([Instruction::LocalSet(value), Instruction::LocalGet(value)]);
        if ty == ValType::F32 {
            if unsigned {
                self.body.emit([Instruction::F32Abs]);
            }
            self.body.emit([Instruction::F32Const(0.5_f32.into()), Instruction::LocalGet(value), Instruction::F32Abs]);
            self.body.emit([Instruction::F32Const((limit as f32).into()), Instruction::F32Lt]);
        } else {
            if unsigned {
                self.body.emit([Instruction::F64Abs]);
            }
            self.body.emit([Instruction::F64Const(0.5_f64.into()), Instruction::LocalGet(value), Instruction::F64Abs]);
            self.body.emit([Instruction::F64Const(limit.into()), Instruction::F64Lt]);
        }
        self.body.emit([Instruction::Select]);
    }

    /// Destination, value and length on the stack become those of a range that ends at the memory's end or lies near its beginning.
    fn fill(&mut self, memory: u32) {
        let (bytes, index) = (self.memory_bytes(memory), self.memory_index(memory));
        let (length, value) = (self.body.temporary(index.ty(), 0), self.body.temporary(ValType::I32, 3));
        self.body.emit([index.constant(if bytes == 0 { 0 } else { 127 }), index.and(), Instruction::LocalSet(length)]);
        self.body.emit([Instruction::LocalSet(value)]);
        self.range(bytes, index, length, index);
        self.body.emit([Instruction::LocalGet(value), Instruction::LocalGet(length)]);
    }

    fn copy_memory(&mut self, to: u32, from: u32) {
        let to = (self.memory_bytes(to), self.memory_index(to));
        let from = (self.memory_bytes(from), self.memory_index(from));
        self.three(to, from, Index { wide: to.1.wide && from.1.wide });
    }

    /// Destination, source and length on the stack become those of ranges inside what is so long.
    fn three(&mut self, to: (u64, Index), from: (u64, Index), length: Index) {
        let least = to.0.min(from.0);
        let source = self.body.temporary(from.1.ty(), 1);
        let count = self.body.temporary(length.ty(), 2);
        self.body.emit([length.constant(least.min(200) as i64 + 1), length.rem(), Instruction::LocalSet(count)]);
        self.range(from.0, from.1, count, length);
        self.body.emit([Instruction::LocalSet(source)]);
        self.range(to.0, to.1, count, length);
        self.body.emit([Instruction::LocalGet(source), Instruction::LocalGet(count)]);
    }

    /// The start on the stack becomes that of a range of so many, in a local, inside what is so long.
    fn range(&mut self, size: u64, index: Index, count: u32, counted: Index) {
        let count = |pass: &mut Self| {
            pass.body.emit([Instruction::LocalGet(count)]);
            if index.wide && !counted.wide {
                pass.body.emit([Instruction::I64ExtendI32U]);
            }
        };
        if self.random.chance(50) {
            // Up to the very end, or one further.
            self.body.emit([index.constant(i64::from(self.random.chance(self.temper.edge))), index.and()]);
            self.body.emit([index.constant(size as i64), index.add()]);
            count(self);
            self.body.emit([index.sub()]);
        } else {
            self.body.emit([index.constant(size as i64 + 1)]);
            count(self);
            self.body.emit([index.sub(), index.rem()]);
        }
    }

    /// Loads, stores and atomic operators; all others stay.
    fn access(&mut self, operator: Operator<'a>) -> Result<()> {
        let found = memory_operand(&operator)?.filter(|_| self.addresses);
        let Some((arg, memory)) = found.and_then(|arg| match arg.target {
            MemArgTarget::Memory(memory) => Some((arg, memory)),
            MemArgTarget::Array(_) => None,
        }) else {
            return self.body.keep(operator);
        };
        let (bytes, index, width) = (self.memory_bytes(memory), self.memory_index(memory), 1_u64 << arg.max_align);
        if bytes < 256 || self.random.chance(self.temper.raw) {
            return self.body.keep(operator);
        }
        let above = operands_above(name(&operator));
        let kept: Vec<u32> = above.iter().enumerate().map(|(i, ty)| self.body.temporary(*ty, 4 + i)).collect();
        self.body.emit(kept.iter().rev().map(|local| Instruction::LocalSet(*local)));
        let offset = self.address(bytes, index, width, name(&operator).contains("Atomic"));
        self.body.emit(kept.iter().map(|local| Instruction::LocalGet(*local)));
        let instruction = Offsets { found: None, offset: Some(offset) }.instruction(operator)?;
        self.body.emit([instruction]);
        Ok(())
    }

    /// The address on the stack becomes another; the offset that goes with it.
    fn address(&mut self, bytes: u64, index: Index, width: u64, aligned: bool) -> u64 {
        let log2 = i64::from(width.trailing_zeros());
        // A power of two, so that a mask keeps below.
        let half = 1_u64 << (bytes.ilog2() - 1);
        if self.random.chance(self.temper.edge) {
            return self.edge(bytes, index, width);
        }
        let align = |pass: &mut Self| {
            if aligned {
                pass.body.emit([index.constant(-(width as i64)), index.and()]);
            }
        };
        match self.random.below(9) {
            // The last access that fits, at a constant address or just before.
            0 => {
                let slots = *self.random.pick(&[1, 1, 2, 8]);
                self.body.emit([index.constant(slots - 1), index.and(), index.constant(log2), index.shl()]);
                let first = bytes as i64 - slots * width as i64;
                let offset = if self.random.chance(50) { first } else { 0 };
                self.body.emit([index.constant(first - offset), index.add()]);
                offset as u64
            }
            // Any of the last bytes.
            1 | 2 => {
                let offset = *self.random.pick(&[0, 1, 8, bytes as i64 - 64 - width as i64]);
                self.body.emit([index.constant(63), index.and()]);
                self.body.emit([index.constant(bytes as i64 - 64 - width as i64 + 1 - offset), index.add()]);
                align(self);
                if aligned { offset as u64 & !(width - 1) } else { offset as u64 }
            }
            // Scaled, the high bits shifted out or masked first.
            3 => {
                self.body.emit([index.constant(log2 + 1), index.shl(), index.constant(half as i64 - 1), index.and()]);
                align(self);
                0
            }
            4 => {
                self.body.emit([index.constant((half >> (log2 + 1)) as i64 - 1), index.and(), index.constant(log2), index.shl()]);
                *self.random.pick(&[0, width, half / 2]) & !(width - 1)
            }
            // Through a wider or a narrower number.
            5 if !index.wide => {
                let extend = if self.random.chance(50) { Instruction::I64ExtendI32S } else { Instruction::I64ExtendI32U };
                self.body.emit([extend, Instruction::I64Const(self.random.i64()), Instruction::I64Xor, Instruction::I32WrapI64]);
                self.body.emit([index.constant(half as i64 - 1), index.and()]);
                align(self);
                0
            }
            6 if !index.wide => {
                let narrow = *self.random.pick(&[16, 20, 24]);
                self.body.emit([Instruction::I32Const(narrow), Instruction::I32Shl, Instruction::I32Const(narrow)]);
                self.body.emit([Instruction::I32ShrU]);
                self.body.emit([index.constant(half as i64 - 1), index.and()]);
                align(self);
                0
            }
            // A sum that wraps back to where it belongs.
            7 => {
                let far = i64::from(self.random.i32());
                self.body.emit([index.constant(half as i64 - 1), index.and()]);
                align(self);
                self.body.emit([index.constant(far), index.add(), index.constant(-far), index.add()]);
                0
            }
            _ => {
                self.body.emit([index.constant(half as i64 - 1), index.and()]);
                align(self);
                self.random.below(half / 2) & !(width - 1)
            }
        }
    }

    /// An address that is out of bounds, always or now and then.
    fn edge(&mut self, bytes: u64, index: Index, width: u64) -> u64 {
        let mut offsets =
            vec![0, 1, width, bytes - 1, bytes, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_ffff - width, 0xffff_ffff];
        if index.wide {
            offsets.extend([0x1_0000_0000, u64::MAX / 2, u64::MAX - width, u64::MAX]);
        }
        match self.random.below(5) {
            // Half of them.
            0 | 1 => {
                self.body.emit([index.constant(1), index.and(), index.constant((bytes - width) as i64), index.add()]);
                0
            }
            2 => {
                self.body.emit([index.constant(15), index.and(), index.constant(bytes as i64 - 8 - width as i64), index.add()]);
                0
            }
            3 => {
                self.body.emit([index.constant(-16), index.or()]);
                *self.random.pick(&offsets)
            }
            _ => {
                self.body.emit([index.constant(255), index.and()]);
                *self.random.pick(&offsets)
            }
        }
    }
}

/// The float that a trapping conversion takes, and what it must stay below.
fn truncation(operator: &Operator<'_>) -> Option<(ValType, f64)> {
    let (p31, p32, p63, p64) = (2_147_483_648.0, 4_294_967_296.0, 9_223_372_036_854_775_808.0, 18_446_744_073_709_551_616.0);
    Some(match operator {
        Operator::I32TruncF32S => (ValType::F32, p31),
        Operator::I32TruncF32U => (ValType::F32, p32),
        Operator::I32TruncF64S => (ValType::F64, p31),
        Operator::I32TruncF64U => (ValType::F64, p32),
        Operator::I64TruncF32S => (ValType::F32, p63),
        Operator::I64TruncF32U => (ValType::F32, p64),
        Operator::I64TruncF64S => (ValType::F64, p63),
        Operator::I64TruncF64U => (ValType::F64, p64),
        _ => return None,
    })
}

/// Types of an access's operands above its address.
pub(crate) fn operands_above(name: &str) -> Vec<ValType> {
    let of_prefix = || match &name[..3] {
        "I64" => ValType::I64,
        "F32" => ValType::F32,
        "F64" => ValType::F64,
        _ => ValType::I32,
    };
    match name {
        "MemoryAtomicNotify" => vec![ValType::I32],
        "MemoryAtomicWait32" => vec![ValType::I32, ValType::I64],
        "MemoryAtomicWait64" => vec![ValType::I64, ValType::I64],
        _ if name.starts_with("V128") && (name.contains("Store") || name.contains("Lane")) => vec![ValType::V128],
        _ if name.contains("Cmpxchg") => vec![of_prefix(); 2],
        _ if name.contains("Rmw") || name.contains("Store") => vec![of_prefix()],
        _ => Vec::new(),
    }
}

/// The memory operand of a load, a store or an atomic operator.
pub(crate) fn memory_operand(operator: &Operator<'_>) -> Result<Option<MemArg>> {
    let mut hook = Offsets::default();
    hook.instruction(operator.clone())?;
    Ok(hook.found)
}

/// Finds an instruction's memory operand, and puts another offset into it.
#[derive(Debug, Default)]
struct Offsets {
    found: Option<MemArg>,
    offset: Option<u64>,
}

impl Reencode for Offsets {
    type Error = std::convert::Infallible;

    fn mem_arg(&mut self, arg: MemArg) -> Result<wasm_encoder::MemArg, wasm_encoder::reencode::Error<Self::Error>> {
        self.found = Some(arg);
        RoundtripReencoder.mem_arg(MemArg { offset: self.offset.unwrap_or(arg.offset), ..arg })
    }
}
