//! Flat values: a value of the component model as values of the core (CanonicalABI.md, "Flattening").

use std::fmt::Write as _;

use awsm_abi::component::Violation;
use awsm_abi::types::ValType::{self, F32, F64, I32, I64};
use wasmtime_environ::component::{CanonicalAbiInfo, ComponentTypes, InterfaceType, TypeTupleIndex, VariantInfo};

use super::super::glue::{Glue, Loaded};
use super::Builder;

/// Bytes of code that loads one function's parameters: each case of a variant has its own.
const CODE_BYTES_MAX: usize = 64 << 10;

/// The cases of a variant: what each of them holds.
type Cases = Vec<Option<InterfaceType>>;

/// The core types of which a value consists.
pub(super) fn flat(types: &ComponentTypes, ty: &InterfaceType) -> Vec<ValType> {
    match *ty {
        InterfaceType::S64 | InterfaceType::U64 => vec![I64],
        InterfaceType::Float32 => vec![F32],
        InterfaceType::Float64 => vec![F64],
        InterfaceType::String | InterfaceType::List(_) | InterfaceType::Map(_) => vec![I32, I32],
        InterfaceType::Record(index) => types[index].fields.iter().flat_map(|field| flat(types, &field.ty)).collect(),
        InterfaceType::Tuple(index) => types[index].types.iter().flat_map(|ty| flat(types, ty)).collect(),
        InterfaceType::FixedLengthList(index) => flat(types, &types[index].element).repeat(types[index].size as usize),
        InterfaceType::Flags(index) => vec![I32; types[index].abi.flat_count.map_or(0, usize::from)],
        _ => match variant(types, ty) {
            None => vec![I32],
            Some((cases, _)) => {
                let mut joined = vec![I32];
                for case in cases.iter().flatten() {
                    for (index, ty) in (1..).zip(flat(types, case)) {
                        match joined.get_mut(index) {
                            None => joined.push(ty),
                            Some(slot) => *slot = join(*slot, ty),
                        }
                    }
                }
                joined
            }
        },
    }
}

/// What a variant, option or result may hold, and its layout.
fn variant<'a>(types: &'a ComponentTypes, ty: &InterfaceType) -> Option<(Cases, &'a VariantInfo)> {
    match *ty {
        InterfaceType::Variant(index) => Some((types[index].cases.values().copied().collect(), &types[index].info)),
        InterfaceType::Enum(index) => Some((vec![None; types[index].names.len()], &types[index].info)),
        InterfaceType::Option(index) => Some((vec![None, Some(types[index].ty)], &types[index].info)),
        InterfaceType::Result(index) => Some((vec![types[index].ok, types[index].err], &types[index].info)),
        _ => None,
    }
}

/// The type that holds either.
fn join(left: ValType, right: ValType) -> ValType {
    match (left, right) {
        _ if left == right => left,
        (I32, F32) | (F32, I32) => I32,
        _ => I64,
    }
}

/// A value of one type as what holds it.
fn widened(value: String, ty: ValType, slot: ValType) -> String {
    match (ty, slot) {
        _ if ty == slot => value,
        (F32, I32) => format!("(i32.reinterpret_f32 {value})"),
        (F32, I64) => format!("(i64.extend_i32_u (i32.reinterpret_f32 {value}))"),
        (F64, I64) => format!("(i64.reinterpret_f64 {value})"),
        _ => format!("(i64.extend_i32_u {value})"),
    }
}

/// Code that loads a value from memory: what makes it flat.
pub(super) struct Load<'a> {
    types: &'a ComponentTypes,
    /// Core types of the locals `$flat0`, `$flat1`, ....
    slots: &'a [ValType],
    /// The function that ends the invocation with a number of [`Violation`].
    trap: &'a str,
    code: String,
}

impl<'a> Load<'a> {
    /// Code that loads values one behind the other, from the address in the local `$from`. `slots`: their core types.
    /// None where that is too much.
    pub(super) fn all(
        types: &'a ComponentTypes,
        values: &[InterfaceType],
        slots: &'a [ValType],
        trap: &'a str,
    ) -> Option<String> {
        let mut load = Load { types, slots, trap, code: String::new() };
        load.fields(values.iter(), 0, 0);
        (!load.is_full()).then_some(load.code)
    }

    /// Whether there is so much of it that no more is added.
    const fn is_full(&self) -> bool {
        self.code.len() > CODE_BYTES_MAX
    }

    fn set(&mut self, slot: usize, ty: ValType, load: &str, at: u32) {
        if self.is_full() {
            return;
        }
        let value = widened(format!("({load} offset={at} (local.get $from))"), ty, self.slots[slot]);
        let _ = writeln!(self.code, "(local.set $flat{slot} {value})");
    }

    /// The next slot behind these fields.
    fn fields<'t>(&mut self, fields: impl Iterator<Item = &'t InterfaceType>, at: u32, mut slot: usize) -> usize {
        let mut end = at;
        for ty in fields {
            let CanonicalAbiInfo { size32, align32, .. } = *self.types.canonical_abi(ty);
            let start = end.next_multiple_of(align32);
            slot = self.value(ty, start, slot);
            end = start + size32;
        }
        slot
    }

    /// The next slot behind the value.
    fn value(&mut self, ty: &InterfaceType, at: u32, slot: usize) -> usize {
        let (core, load) = match *ty {
            InterfaceType::Bool | InterfaceType::U8 => (I32, "i32.load8_u"),
            InterfaceType::S8 => (I32, "i32.load8_s"),
            InterfaceType::U16 => (I32, "i32.load16_u"),
            InterfaceType::S16 => (I32, "i32.load16_s"),
            InterfaceType::S64 | InterfaceType::U64 => (I64, "i64.load"),
            InterfaceType::Float32 => (F32, "f32.load"),
            InterfaceType::Float64 => (F64, "f64.load"),
            InterfaceType::String | InterfaceType::List(_) | InterfaceType::Map(_) => {
                self.set(slot, I32, "i32.load", at);
                self.set(slot + 1, I32, "i32.load", at + 4);
                return slot + 2;
            }
            InterfaceType::Record(index) => {
                return self.fields(self.types[index].fields.iter().map(|field| &field.ty), at, slot);
            }
            InterfaceType::Tuple(index) => return self.fields(self.types[index].types.iter(), at, slot),
            InterfaceType::FixedLengthList(index) => {
                let list = &self.types[index];
                return self.fields((0..list.size).map(|_| &list.element), at, slot);
            }
            InterfaceType::Flags(index) => {
                let abi = &self.types[index].abi;
                let count = abi.flat_count.map_or(0, usize::from);
                let load = match abi.size32 {
                    1 => "i32.load8_u",
                    2 => "i32.load16_u",
                    _ => "i32.load",
                };
                for index in 0..count {
                    self.set(slot + index, I32, load, at + 4 * index as u32);
                }
                return slot + count;
            }
            InterfaceType::Enum(_) | InterfaceType::Variant(_) | InterfaceType::Option(_) | InterfaceType::Result(_) => {
                return self.variant(ty, at, slot);
            }
            InterfaceType::Char
            | InterfaceType::S32
            | InterfaceType::U32
            | InterfaceType::Own(_)
            | InterfaceType::Borrow(_)
            | InterfaceType::Future(_)
            | InterfaceType::Stream(_)
            | InterfaceType::ErrorContext(_) => (I32, "i32.load"),
        };
        self.set(slot, core, load, at);
        slot + 1
    }

    fn variant(&mut self, ty: &InterfaceType, at: u32, slot: usize) -> usize {
        let Some((cases, info)) = variant(self.types, ty) else { return slot };
        // The discriminant is as large as the number of cases demands (CanonicalABI.md, `discriminant_type`).
        let load = match cases.len() {
            0..=0x100 => "i32.load8_u",
            0x101..=0x1_0000 => "i32.load16_u",
            _ => "i32.load",
        };
        let (case_is, trap) = (format!("({load} offset={at} (local.get $from))"), self.trap);
        let (count, violation) = (cases.len(), Violation::InvalidDiscriminant as u32);
        let _ = writeln!(self.code, "(if (i32.ge_u {case_is} (i32.const {count})) (then (call {trap} (i32.const {violation}))))");
        self.set(slot, I32, load, at);
        for (number, case) in cases.iter().enumerate() {
            let Some(case) = case else { continue };
            if self.is_full() {
                break;
            }
            let _ = writeln!(self.code, "(if (i32.eq {case_is} (i32.const {number})) (then");
            self.value(case, at + info.payload_offset32, slot + 1);
            self.code.push_str("))\n");
        }
        slot + flat(self.types, ty).len()
    }
}

impl Builder<'_> {
    /// How values are loaded that are in memory. None where that is too much.
    pub(super) fn loaded(&self, values: TypeTupleIndex, glue: &mut Glue) -> Option<Loaded> {
        let slots = flat(self.types, &InterfaceType::Tuple(values));
        let code = Load::all(self.types, &self.types[values].types, &slots, &glue.trap())?;
        Some(Loaded { code, align: self.types[values].abi.align32, slots })
    }

    /// Whether a value is flat so. One that is in memory because it is too large is not.
    pub(super) fn is_flat(&self, ty: &InterfaceType, expected: &[ValType]) -> bool {
        self.types.canonical_abi(ty).flat_count.is_some() && flat(self.types, ty) == expected
    }
}
