//! The code that compares what comes back with what is expected.

use std::fmt::Write as _;

use super::image::{bits, case, fields};
use super::{Flat, Image, Type, Value, discriminant_bytes, fields_layout};

impl Image {
    /// Adds code that notices that a value which is one core value, at most, is not the expected one.
    pub(super) fn compare_flat(&mut self, ty: &Type, expected: &Value, got: &str) {
        if let Some((flat, _)) = ty.number() {
            return self.compare_number(ty, flat, expected, bits(expected), got);
        }
        match (ty.fields(), ty.cases()) {
            (Some(types), _) => {
                for (ty, expected) in types.into_iter().zip(fields(expected)) {
                    self.compare_flat(ty, expected, got);
                }
            }
            (_, Some(_)) => self.differs(Flat::I32, u64::from(case(expected).0), got),
            _ => panic!("{ty:?} is more than one core value"),
        }
    }

    fn compare_number(&mut self, ty: &Type, flat: Flat, expected: &Value, bits: u64, got: &str) {
        match (ty, expected) {
            (Type::Own, Value::Handle(_)) => self.differs(flat, bits, &format!("(call $held {got})")),
            _ => self.differs(flat, bits, got),
        }
    }

    /// Adds code that notices that the value at that address, plus an offset, is not the expected one.
    ///
    /// # Panics
    /// When a value is not of its type.
    pub fn compare(&mut self, ty: &Type, expected: &Value, base: &str, offset: u32) {
        if let Some((flat, size)) = ty.number() {
            let load = match (flat, size) {
                (Flat::I32, 1) => "i32.load8_u",
                (Flat::I32, 2) => "i32.load16_u",
                (Flat::I32, _) => "i32.load",
                (Flat::I64, _) => "i64.load",
                (Flat::F32, _) => "f32.load",
                (Flat::F64, _) => "f64.load",
            };
            let got = format!("({load} offset={offset} {base})");
            return self.compare_number(ty, flat, expected, kept(bits(expected), size), &got);
        }
        match (ty.fields(), ty.cases(), ty.element()) {
            (Some(types), ..) => self.compare_fields(&types, &fields(expected), base, offset),
            (_, Some(cases), _) => {
                let (index, payload) = case(expected);
                let load = ["i32.load8_u", "i32.load16_u", "", "i32.load"][discriminant_bytes(cases.len()) as usize - 1];
                self.differs(Flat::I32, u64::from(index), &format!("({load} offset={offset} {base})"));
                if let (Some(held), Some(payload)) = (cases[index as usize], payload) {
                    self.compare(held, payload, base, offset + ty.payload_offset());
                }
            }
            (.., Some(types)) => {
                let Value::List(elements) = expected else { panic!("{expected:?} is no list") };
                self.differs(Flat::I32, elements.len() as u64, &format!("(i32.load offset={} {base})", offset + 4));
                if let Some(bytes) = plain(&types, elements) {
                    return self.compare_bytes(&bytes, base, offset);
                }
                let local = self.local(Flat::I32);
                let _ = writeln!(self.code, "(local.set {local} (i32.load offset={offset} {base}))");
                let (size, _) = fields_layout(&types);
                for (index, element) in elements.iter().enumerate() {
                    let (base, offset) = (format!("(local.get {local})"), index as u32 * size);
                    match types.as_slice() {
                        [ty] => self.compare(ty, element, &base, offset),
                        types => self.compare_fields(types, &fields(element), &base, offset),
                    }
                }
            }
            _ => {
                let Value::String(text) = expected else { panic!("{expected:?} is no string") };
                let (bytes, length) = self.encoding.encode(text);
                self.differs(Flat::I32, u64::from(length), &format!("(i32.load offset={} {base})", offset + 4));
                self.compare_bytes(&bytes, base, offset);
            }
        }
    }

    fn compare_fields(&mut self, types: &[&Type], expected: &[&Value], base: &str, offset: u32) {
        let mut next = offset;
        for (value, ty) in expected.iter().zip(types) {
            next = next.next_multiple_of(ty.align());
            self.compare(ty, value, base, next);
            next += ty.size();
        }
    }

    /// Adds code that compares these bytes with those to which the pointer at that address leads.
    fn compare_bytes(&mut self, bytes: &[u8], base: &str, offset: u32) {
        let place = self.allocate(bytes.len() as u32, 1);
        self.write(place, bytes);
        let call = format!("(call $differ (i32.load offset={offset} {base}) (i32.const {place}) (i32.const {}))", bytes.len());
        let _ = writeln!(self.code, "(if {call} (then {}))", self.otherwise);
    }

    /// Adds code that notices that a value is not this constant. One NaN is as good as another.
    fn differs(&mut self, flat: Flat, bits: u64, got: &str) {
        let is_nan = match flat {
            Flat::F32 => f32::from_bits(bits as u32).is_nan(),
            Flat::F64 => f64::from_bits(bits).is_nan(),
            Flat::I32 | Flat::I64 => false,
        };
        let name = flat.name();
        let differs = match flat {
            Flat::F32 | Flat::F64 if is_nan => format!("({name}.eq {got} {got})"),
            Flat::F32 => format!("(i32.ne (i32.reinterpret_f32 {got}) (i32.const {}))", (bits as u32).cast_signed()),
            Flat::F64 => format!("(i64.ne (i64.reinterpret_f64 {got}) (i64.const {}))", bits.cast_signed()),
            Flat::I32 | Flat::I64 => format!("({name}.ne {got} {})", flat.constant(bits)),
        };
        let _ = writeln!(self.code, "(if {differs} (then {}))", self.otherwise);
    }
}

/// So many bytes of them.
const fn kept(bits: u64, size: u32) -> u64 {
    if size < 8 { bits & ((1 << (size * 8)) - 1) } else { bits }
}

/// The bytes of elements that are integers: all of them mean something.
fn plain(types: &[&Type], elements: &[Value]) -> Option<Vec<u8>> {
    let [ty] = types else { return None };
    let (flat, size) = ty.number()?;
    if !matches!(flat, Flat::I32 | Flat::I64) || matches!(ty, Type::Own) {
        return None;
    }
    Some(elements.iter().flat_map(|element| bits(element).to_le_bytes().into_iter().take(size as usize)).collect())
}
