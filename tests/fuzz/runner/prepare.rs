//! What a module needs to be compared, added without chance: fuel, so that it ends at the same place on both sides; NaNs made canonical
//! where their bits would be seen, since which NaN an operator makes is not specified.

use crate::sections::{Body, Sections, name};
use anyhow::Result;
use wasm_encoder::{BlockType, ConstExpr, ExportKind, Function, Instruction, ValType};
use wasmparser::Operator;

/// What a call may use: one for each function entered and, where loops are counted, each turn of a loop.
pub(crate) const FUEL: i32 = 600;

/// The export that fills the fuel up.
pub(crate) const REFUEL: &str = "fuzz: refuel";

const NAN_F32: u32 = 0x7fc0_0000;
const NAN_F64: u64 = 0x7ff8_0000_0000_0000;

/// Prepares a module. Where `loops` is false its loops are known to end.
pub(crate) fn prepare(wasm: &[u8], loops: bool) -> Result<Vec<u8>> {
    let mut sections = Sections::read(wasm)?;
    let fuel = sections.add_global(ValType::I32, &ConstExpr::i32_const(FUEL));
    let refuel_type = sections.spaces.types.len() as u32;
    sections.types.ty().function([], []);
    sections.functions.function(refuel_type);
    sections.exports.export(REFUEL, ExportKind::Func, sections.spaces.functions.len() as u32);
    let mut bodies = Vec::new();
    for (i, body) in std::mem::take(&mut sections.bodies).iter().enumerate() {
        let Some(signature) = sections.spaces.signature(sections.spaces.functions_imported + i).cloned() else { continue };
        let mut body = Body::read(body, &signature)?;
        burn(&mut body, fuel);
        let mut before = "";
        for operator in std::mem::take(&mut body.operators) {
            let is_loop = matches!(operator, Operator::Loop { .. });
            let this = name(&operator);
            canonicalise_before(&mut body, this, before);
            body.keep(operator)?;
            canonicalise_after(&mut body, this);
            if is_loop && loops {
                burn(&mut body, fuel);
            }
            before = this;
        }
        bodies.push(body.finish());
    }
    let mut refuel = Function::new([]);
    refuel.instruction(&Instruction::I32Const(FUEL)).instruction(&Instruction::GlobalSet(fuel)).instruction(&Instruction::End);
    bodies.push(refuel);
    Ok(sections.finish(&bodies))
}

/// Takes one of the fuel, or leaves the function. Leaving is no trap: what the module did until then is compared.
fn burn(body: &mut Body<'_>, fuel: u32) {
    body.emit([Instruction::GlobalGet(fuel), Instruction::I32Eqz, Instruction::If(BlockType::Empty)]);
    if !body.emit_return() {
        body.emit([Instruction::Unreachable]);
    }
    body.emit([Instruction::End]);
    body.emit([Instruction::GlobalGet(fuel), Instruction::I32Const(1), Instruction::I32Sub, Instruction::GlobalSet(fuel)]);
}

/// The float on the stack is about to show its bits: to memory, to an integer, to a vector, or its sign to another number.
fn canonicalise_before(body: &mut Body<'_>, operator: &str, before: &str) {
    let ty = match operator {
        "F32Store" | "I32ReinterpretF32" | "F32Copysign" | "F32x4Splat" | "F32x4ReplaceLane" => ValType::F32,
        "F64Store" | "I64ReinterpretF64" | "F64Copysign" | "F64x2Splat" | "F64x2ReplaceLane" => ValType::F64,
        _ => return,
    };
    // Numbers that no operator made keep their bits.
    if matches!(before, "F32Load" | "F64Load" | "F32Const" | "F64Const" | "F32ReinterpretI32" | "F64ReinterpretI64") {
        return;
    }
    let value = body.temporary(ty, 0);
    let (constant, equal) = match ty {
        ValType::F32 => (Instruction::F32Const(f32::from_bits(NAN_F32).into()), Instruction::F32Eq),
        _ => (Instruction::F64Const(f64::from_bits(NAN_F64).into()), Instruction::F64Eq),
    };
    body.emit([Instruction::LocalTee(value), constant, Instruction::LocalGet(value), Instruction::LocalGet(value)]);
    body.emit([equal, Instruction::Select]);
}

/// A vector's bits are seen by whatever takes it next.
fn canonicalise_after(body: &mut Body<'_>, operator: &str) {
    let arithmetic = ["Add", "Sub", "Mul", "Div", "Sqrt", "Min", "Max", "Ceil", "Floor", "Trunc", "Nearest"];
    let makes = |prefix: &str| operator.strip_prefix(prefix).is_some_and(|rest| arithmetic.contains(&rest));
    let (constant, equal) = if makes("F32x4") || operator == "F32x4DemoteF64x2Zero" {
        (i128::from(NAN_F32) * 0x0000_0001_0000_0001_0000_0001_0000_0001, Instruction::F32x4Eq)
    } else if makes("F64x2") || operator == "F64x2PromoteLowF32x4" {
        (i128::from(NAN_F64) * 0x0000_0000_0000_0001_0000_0000_0000_0001, Instruction::F64x2Eq)
    } else {
        return;
    };
    let value = body.temporary(ValType::V128, 0);
    body.emit([Instruction::LocalTee(value), Instruction::V128Const(constant)]);
    body.emit([Instruction::LocalGet(value), Instruction::LocalGet(value), equal, Instruction::V128Bitselect]);
}
