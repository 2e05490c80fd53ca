//! Atomic operators and shared memories made plain, for a reference that knows neither. With one thread they mean the same but for two traps,
//! which a global tells from others: what follows sets it before it traps.

use crate::mutate::{memory_operand, operands_above};
use crate::sections::{Body, Sections, name};
use anyhow::{Context, Result};
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{BlockType, ConstExpr, ExportKind, Instruction as I, MemArg, MemoryType, Module, ValType};
use wasmparser::{MemArgTarget, Operator, Parser};

/// The export of the global.
pub(crate) const TRAP: &str = "fuzz: trap";

/// What it says, beside nothing.
pub(crate) const UNALIGNED: i32 = 1;
pub(crate) const NOT_SHARED: i32 = 2;

/// The same module without them, and whether it had any such operator.
pub(crate) fn plain(wasm: &[u8]) -> Result<(Vec<u8>, bool)> {
    let mut sections = Sections::read(wasm)?;
    let trap = sections.add_global(ValType::I32, &ConstExpr::i32_const(0));
    sections.exports.export(TRAP, ExportKind::Global, trap);
    let (mut bodies, mut atomics) = (Vec::new(), false);
    for (i, body) in std::mem::take(&mut sections.bodies).iter().enumerate() {
        let Some(signature) = sections.spaces.signature(sections.spaces.functions_imported + i) else { continue };
        let mut body = Body::read(body, signature)?;
        for operator in std::mem::take(&mut body.operators) {
            match name(&operator) {
                "AtomicFence" => body.emit([I::Nop]),
                name if name.contains("Atomic") => {
                    atomics = true;
                    Atomic::new(&mut body, name, &operator, &sections, trap)?.lower();
                }
                _ => body.keep(operator)?,
            }
        }
        bodies.push(body.finish());
    }
    let mut module = Module::new();
    utils::parse_core_module(&mut Unshared, &mut module, Parser::new(0), &sections.finish(&bodies))?;
    Ok((module.finish(), atomics))
}

/// Gives up the sharing of memories.
struct Unshared;

impl Reencode for Unshared {
    type Error = std::convert::Infallible;

    fn memory_type(&mut self, ty: wasmparser::MemoryType) -> Result<MemoryType, Error<Self::Error>> {
        wasm_encoder::reencode::RoundtripReencoder.memory_type(wasmparser::MemoryType { shared: false, ..ty })
    }
}

/// An operator that is being replaced; its operands are in locals.
struct Atomic<'b, 'a> {
    body: &'b mut Body<'a>,
    name: &'static str,
    arg: MemArg,
    /// Of what is in memory.
    width: u64,
    /// Of what is on the stack.
    ty: ValType,
    address: u32,
    operands: Vec<u32>,
    old: u32,
    wide: bool,
    shared: bool,
    trap: u32,
}

impl<'b, 'a> Atomic<'b, 'a> {
    fn new(
        body: &'b mut Body<'a>,
        name: &'static str,
        operator: &Operator<'a>,
        sections: &Sections<'_>,
        trap: u32,
    ) -> Result<Atomic<'b, 'a>> {
        let arg = memory_operand(operator)?.context("an atomic access without a memory")?;
        let MemArgTarget::Memory(memory) = arg.target else { anyhow::bail!("an atomic access to an array") };
        let memory_type = sections.spaces.memories[memory as usize];
        let ty = if name.starts_with("I64") || name.ends_with("Wait64") { ValType::I64 } else { ValType::I32 };
        let types = operands_above(name);
        let operands: Vec<u32> = types.iter().enumerate().map(|(i, ty)| body.temporary(*ty, i)).collect();
        let index = if memory_type.memory64 { ValType::I64 } else { ValType::I32 };
        let (address, old) = (body.temporary(index, 2), body.temporary(ty, 3));
        body.emit(operands.iter().rev().map(|local| I::LocalSet(*local)));
        body.emit([I::LocalSet(address)]);
        Ok(Atomic {
            body,
            name,
            arg: MemArg { offset: arg.offset, align: 0, target: wasm_encoder::MemArgTarget::Memory(memory), ordering: None },
            width: 1 << arg.max_align,
            ty,
            address,
            operands,
            old,
            wide: memory_type.memory64,
            shared: memory_type.shared,
            trap,
        })
    }

    fn lower(mut self) {
        self.check_alignment();
        let name = self.name;
        let is_64 = self.ty == ValType::I64;
        if name.contains("Wait") {
            if !self.shared {
                self.fail(NOT_SHARED);
            }
            self.body.emit([I::I32Const(2), I::I32Const(1)]);
            self.load();
            self.body.emit([I::LocalGet(self.operands[0]), if is_64 { I::I64Eq } else { I::I32Eq }, I::Select]);
        } else if name.contains("Notify") {
            self.load();
            self.body.emit([I::Drop, I::I32Const(0)]);
        } else if let Some((_, what)) = name.split_once("Rmw") {
            self.load();
            self.body.emit([I::LocalSet(self.old), I::LocalGet(self.address)]);
            self.update(what.trim_start_matches(|c: char| c.is_ascii_digit()), is_64);
            self.store();
            self.body.emit([I::LocalGet(self.old)]);
        } else if name.contains("Store") {
            self.body.emit([I::LocalGet(self.address), I::LocalGet(self.operands[0])]);
            self.store();
        } else {
            self.load();
        }
    }

    fn check_alignment(&mut self) {
        let mask = self.width as i64 - 1;
        let offset = self.arg.offset as i64 & mask;
        self.body.emit([I::LocalGet(self.address)]);
        if self.wide {
            self.body.emit([I::I64Const(offset), I::I64Add, I::I64Const(mask), I::I64And, I::I64Eqz, I::I32Eqz]);
        } else {
            self.body.emit([I::I32Const(offset as i32), I::I32Add, I::I32Const(mask as i32), I::I32And]);
        }
        self.body.emit([I::If(BlockType::Empty)]);
        self.fail(UNALIGNED);
        self.body.emit([I::End]);
    }

    fn fail(&mut self, why: i32) {
        self.body.emit([I::I32Const(why), I::GlobalSet(self.trap), I::Unreachable]);
    }

    fn load(&mut self) {
        let load = match (self.ty, self.width) {
            (ValType::I32, 1) => I::I32Load8U(self.arg),
            (ValType::I32, 2) => I::I32Load16U(self.arg),
            (ValType::I32, _) => I::I32Load(self.arg),
            (_, 1) => I::I64Load8U(self.arg),
            (_, 2) => I::I64Load16U(self.arg),
            (_, 4) => I::I64Load32U(self.arg),
            _ => I::I64Load(self.arg),
        };
        self.body.emit([I::LocalGet(self.address), load]);
    }

    fn store(&mut self) {
        self.body.emit([match (self.ty, self.width) {
            (ValType::I32, 1) => I::I32Store8(self.arg),
            (ValType::I32, 2) => I::I32Store16(self.arg),
            (ValType::I32, _) => I::I32Store(self.arg),
            (_, 1) => I::I64Store8(self.arg),
            (_, 2) => I::I64Store16(self.arg),
            (_, 4) => I::I64Store32(self.arg),
            _ => I::I64Store(self.arg),
        }]);
    }

    /// Puts what is to be stored on the stack.
    fn update(&mut self, what: &str, is_64: bool) {
        let (old, operand) = (I::LocalGet(self.old), I::LocalGet(self.operands[0]));
        let either = |narrow, wide| if is_64 { wide } else { narrow };
        if what.starts_with("Cmpxchg") {
            self.body.emit([I::LocalGet(self.operands[1]), old.clone(), old, operand]);
            if self.width < 8 {
                let mask = (1_i64 << (8 * self.width)) - 1;
                self.body.emit([either(I::I32Const(mask as i32), I::I64Const(mask)), either(I::I32And, I::I64And)]);
            }
            return self.body.emit([either(I::I32Eq, I::I64Eq), I::Select]);
        }
        let operation = match what {
            _ if what.starts_with("Add") => either(I::I32Add, I::I64Add),
            _ if what.starts_with("Sub") => either(I::I32Sub, I::I64Sub),
            _ if what.starts_with("And") => either(I::I32And, I::I64And),
            _ if what.starts_with("Or") => either(I::I32Or, I::I64Or),
            _ if what.starts_with("Xor") => either(I::I32Xor, I::I64Xor),
            _ => return self.body.emit([operand]),
        };
        self.body.emit([old, operand, operation]);
    }
}
