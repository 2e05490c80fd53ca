//! Values of components in scripts: how they are lowered to what a core module passes, and the code that compares a result with what a script expects.

use std::fmt::Write as _;

use wasmparser::PrimitiveValType;
use wasmparser::component_types::{ComponentDefinedType, ComponentFuncType, ComponentValType};
use wasmparser::types::TypesRef;
use wast::component::WastVal;

/// Flat parameters of a function, from which on they are passed in memory.
const FLAT_PARAMS_MAX: usize = 16;
/// Flat results, likewise.
const FLAT_RESULTS_MAX: usize = 1;

/// A core type of the canonical ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flat {
    I32,
    I64,
    F32,
    F64,
}

impl Flat {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Flat::I32 => "i32",
            Flat::I64 => "i64",
            Flat::F32 => "f32",
            Flat::F64 => "f64",
        }
    }

    /// What holds a value of either.
    fn join(self, other: Flat) -> Flat {
        match (self, other) {
            (one, two) if one == two => one,
            (Flat::I32, Flat::F32) | (Flat::F32, Flat::I32) => Flat::I32,
            _ => Flat::I64,
        }
    }

    /// A constant, by its bits.
    fn constant(self, bits: u64) -> String {
        match self {
            Flat::I32 => format!("(i32.const {})", (bits as u32).cast_signed()),
            Flat::I64 => format!("(i64.const {})", bits.cast_signed()),
            Flat::F32 => format!("(f32.reinterpret_i32 (i32.const {}))", (bits as u32).cast_signed()),
            Flat::F64 => format!("(f64.reinterpret_i64 (i64.const {}))", bits.cast_signed()),
        }
    }
}

/// The form of a value in memory.
enum Shape {
    /// So many bytes.
    Number(Flat, u32),
    String,
    /// Elements, each of these one after the other.
    List(Vec<(String, ComponentValType)>),
    /// As many one after the other.
    Fields(Vec<(String, ComponentValType)>),
    /// One of these.
    Cases(Vec<(String, Option<ComponentValType>)>),
    Flags(Vec<String>),
}

/// What calls are made with: code, and the memory that it begins with.
pub(super) struct Calls<'t> {
    types: TypesRef<'t>,
    /// The memory's first bytes; what is at the addresses of arguments and of expected strings.
    pub(super) memory: Vec<u8>,
    /// The function that makes the calls.
    pub(super) code: String,
    /// Its locals.
    pub(super) locals: String,
    locals_count: usize,
}

impl<'t> Calls<'t> {
    pub(super) fn new(types: TypesRef<'t>) -> Calls<'t> {
        // Nothing is at address zero.
        Calls { types, memory: vec![0; 16], code: String::new(), locals: String::new(), locals_count: 0 }
    }

    /// The core type of a function as it is lowered.
    pub(super) fn signature(&self, function: &ComponentFuncType) -> Result<(Vec<Flat>, Vec<Flat>), String> {
        let mut params = self.flat_params(function)?;
        if params.len() > FLAT_PARAMS_MAX {
            params = vec![Flat::I32];
        }
        let mut results = function.result.map_or(Ok(Vec::new()), |ty| self.flat(ty))?;
        if results.len() > FLAT_RESULTS_MAX {
            params.push(Flat::I32);
            results.clear();
        }
        Ok((params, results))
    }

    fn flat_params(&self, function: &ComponentFuncType) -> Result<Vec<Flat>, String> {
        let mut flat = Vec::new();
        for (_, ty) in &function.params {
            flat.extend(self.flat(*ty)?);
        }
        Ok(flat)
    }

    /// Adds a call of the core function of that name. With `expected`, the code returns 1 where the result is another.
    pub(super) fn call(
        &mut self,
        name: &str,
        function: &ComponentFuncType,
        arguments: &[&WastVal<'_>],
        expected: Option<&[&WastVal<'_>]>,
    ) -> Result<(), String> {
        if arguments.len() != function.params.len() {
            return Err(format!("{} arguments for {} parameters", arguments.len(), function.params.len()));
        }
        let mut passed = String::new();
        if self.flat_params(function)?.len() > FLAT_PARAMS_MAX {
            let fields: Vec<_> = function.params.iter().map(|(name, ty)| (name.to_string(), *ty)).collect();
            let (size, align) = self.fields_layout(&fields)?;
            let at = self.allocate(size, align);
            let mut next = at;
            for ((_, ty), argument) in fields.iter().zip(arguments) {
                let (size, align) = self.layout(*ty)?;
                next = next.next_multiple_of(align);
                self.store(*ty, argument, next)?;
                next += size;
            }
            passed = Flat::I32.constant(u64::from(at));
        } else {
            for ((_, ty), argument) in function.params.iter().zip(arguments) {
                for (flat, bits) in self.lower(*ty, argument)? {
                    passed.push_str(&flat.constant(bits));
                }
            }
        }
        let results = function.result.map_or(Ok(Vec::new()), |ty| self.flat(ty))?;
        match (function.result, results.as_slice()) {
            (Some(ty), [flat]) => {
                let local = self.local(*flat);
                let _ = writeln!(self.code, "(local.set {local} (call {name} {passed}))");
                if let Some([expected]) = expected {
                    for (flat, bits) in self.lower(ty, expected)? {
                        self.differs(flat, bits, &format!("(local.get {local})"));
                    }
                }
            }
            (Some(ty), [_, ..]) => {
                let (size, align) = self.layout(ty)?;
                let at = self.allocate(size, align);
                let _ = writeln!(self.code, "(call {name} {passed} (i32.const {at}))");
                if let Some([expected]) = expected {
                    self.compare(ty, expected, &format!("(i32.const {at})"), 0)?;
                }
            }
            _ => {
                let _ = writeln!(self.code, "(call {name} {passed})");
            }
        }
        match expected {
            Some(expected) if expected.len() != usize::from(function.result.is_some()) => Err(format!(
                "{} results expected of a function that has {}",
                expected.len(),
                usize::from(function.result.is_some())
            )),
            _ => Ok(()),
        }
    }

    fn local(&mut self, flat: Flat) -> String {
        let name = format!("$local{}", self.locals_count);
        self.locals_count += 1;
        let _ = write!(self.locals, "(local {name} {})", flat.name());
        name
    }

    fn allocate(&mut self, size: u32, align: u32) -> u32 {
        let at = (self.memory.len() as u32).next_multiple_of(align.max(1));
        self.memory.resize((at + size) as usize, 0);
        at
    }

    fn shape(&self, ty: ComponentValType) -> Result<Shape, String> {
        let defined = match ty {
            ComponentValType::Primitive(primitive) => return primitive_shape(primitive),
            ComponentValType::Type(id) => &self.types[id],
        };
        let named = |name: &str, ty: Option<ComponentValType>| (name.to_owned(), ty);
        Ok(match defined {
            ComponentDefinedType::Primitive(primitive) => return primitive_shape(*primitive),
            ComponentDefinedType::Record(record) => {
                Shape::Fields(record.fields.iter().map(|(name, ty)| (name.to_string(), *ty)).collect())
            }
            ComponentDefinedType::Tuple(tuple) => Shape::Fields(tuple.types.iter().map(|ty| (String::new(), *ty)).collect()),
            ComponentDefinedType::FixedLengthList { element, length, .. } => {
                Shape::Fields(vec![(String::new(), *element); *length as usize])
            }
            ComponentDefinedType::Variant(variant) => {
                Shape::Cases(variant.cases.iter().map(|(name, case)| named(name, case.ty)).collect())
            }
            ComponentDefinedType::Enum(cases) => Shape::Cases(cases.iter().map(|name| named(name, None)).collect()),
            ComponentDefinedType::Option { ty, .. } => Shape::Cases(vec![named("none", None), named("some", Some(*ty))]),
            ComponentDefinedType::Result { ok, err, .. } => Shape::Cases(vec![named("ok", *ok), named("err", *err)]),
            ComponentDefinedType::List { element, .. } => Shape::List(vec![(String::new(), *element)]),
            ComponentDefinedType::Map { key, value, .. } => Shape::List(vec![(String::new(), *key), (String::new(), *value)]),
            ComponentDefinedType::Flags(names) => Shape::Flags(names.iter().map(ToString::to_string).collect()),
            other => return Err(format!("a value of type {other:?}")),
        })
    }

    fn flat(&self, ty: ComponentValType) -> Result<Vec<Flat>, String> {
        Ok(match self.shape(ty)? {
            Shape::Number(flat, _) => vec![flat],
            Shape::String | Shape::List(_) => vec![Flat::I32; 2],
            Shape::Fields(fields) => {
                let mut flat = Vec::new();
                for (_, ty) in fields {
                    flat.extend(self.flat(ty)?);
                }
                flat
            }
            Shape::Cases(cases) => {
                let mut joined = vec![Flat::I32];
                for ty in cases.into_iter().filter_map(|(_, ty)| ty) {
                    for (index, flat) in self.flat(ty)?.into_iter().enumerate() {
                        match joined.get_mut(index + 1) {
                            Some(known) => *known = known.join(flat),
                            None => joined.push(flat),
                        }
                    }
                }
                joined
            }
            Shape::Flags(names) => vec![Flat::I32; names.len().div_ceil(32)],
        })
    }

    /// Size and alignment.
    fn layout(&self, ty: ComponentValType) -> Result<(u32, u32), String> {
        Ok(match self.shape(ty)? {
            Shape::Number(_, bytes) => (bytes, bytes),
            Shape::String | Shape::List(_) => (8, 4),
            Shape::Fields(fields) => self.fields_layout(&fields)?,
            Shape::Cases(cases) => {
                let (mut size, mut align) = (0, discriminant_bytes(cases.len()));
                for ty in cases.iter().filter_map(|(_, ty)| *ty) {
                    let layout = self.layout(ty)?;
                    (size, align) = (size.max(layout.0), align.max(layout.1));
                }
                let payload = discriminant_bytes(cases.len()).next_multiple_of(self.payload_align(&cases)?);
                ((payload + size).next_multiple_of(align), align)
            }
            Shape::Flags(names) => match names.len() {
                0..=8 => (1, 1),
                9..=16 => (2, 2),
                count => (count.div_ceil(32) as u32 * 4, 4),
            },
        })
    }

    fn fields_layout(&self, fields: &[(String, ComponentValType)]) -> Result<(u32, u32), String> {
        let (mut end, mut most) = (0_u32, 1);
        for (_, ty) in fields {
            let (size, align) = self.layout(*ty)?;
            end = end.next_multiple_of(align) + size;
            most = most.max(align);
        }
        Ok((end.next_multiple_of(most), most))
    }

    fn payload_align(&self, cases: &[(String, Option<ComponentValType>)]) -> Result<u32, String> {
        let mut most = 1;
        for ty in cases.iter().filter_map(|(_, ty)| *ty) {
            most = most.max(self.layout(ty)?.1);
        }
        Ok(most)
    }

    /// The flat constants of a value.
    fn lower(&mut self, ty: ComponentValType, value: &WastVal<'_>) -> Result<Vec<(Flat, u64)>, String> {
        Ok(match self.shape(ty)? {
            Shape::Number(flat, _) => vec![(flat, number(value)?)],
            Shape::String | Shape::List(_) => {
                let at = self.allocate(8, 4);
                self.store(ty, value, at)?;
                let word = |at: u32| {
                    let bytes: [u8; 4] = self.memory[at as usize..][..4].try_into().unwrap_or_default();
                    u64::from(u32::from_le_bytes(bytes))
                };
                vec![(Flat::I32, word(at)), (Flat::I32, word(at + 4))]
            }
            Shape::Fields(fields) => {
                let mut flat = Vec::new();
                for (value, (_, ty)) in field_values(&fields, value)?.into_iter().zip(&fields) {
                    flat.extend(self.lower(*ty, value)?);
                }
                flat
            }
            Shape::Cases(cases) => {
                let (index, payload) = case(&cases, value)?;
                let mut flat: Vec<(Flat, u64)> = self.flat(ty)?.into_iter().map(|flat| (flat, 0)).collect();
                flat[0].1 = index as u64;
                if let (Some(ty), Some(payload)) = (cases[index].1, payload) {
                    for (place, (_, bits)) in flat[1..].iter_mut().zip(self.lower(ty, payload)?) {
                        place.1 = bits;
                    }
                }
                flat
            }
            Shape::Flags(names) => flag_words(&names, value)?.into_iter().map(|word| (Flat::I32, u64::from(word))).collect(),
        })
    }

    /// Writes a value to the memory.
    fn store(&mut self, ty: ComponentValType, value: &WastVal<'_>, at: u32) -> Result<(), String> {
        match self.shape(ty)? {
            Shape::Number(_, bytes) => self.write(at, &number(value)?.to_le_bytes()[..bytes as usize]),
            Shape::String => {
                let WastVal::String(text) = value else { return Err(mismatch(value)) };
                let place = self.allocate(text.len() as u32, 1);
                self.write(place, text.as_bytes());
                self.write(at, &place.to_le_bytes());
                self.write(at + 4, &(text.len() as u32).to_le_bytes());
            }
            Shape::List(fields) => {
                let elements = elements(&fields, value)?;
                let (size, align) = self.fields_layout(&fields)?;
                let place = self.allocate(size * elements.len() as u32, align);
                for (index, values) in elements.iter().enumerate() {
                    self.store_fields(&fields, values, place + index as u32 * size)?;
                }
                self.write(at, &place.to_le_bytes());
                self.write(at + 4, &(elements.len() as u32).to_le_bytes());
            }
            Shape::Fields(fields) => {
                self.store_fields(&fields, &field_values(&fields, value)?, at)?;
            }
            Shape::Cases(cases) => {
                let (index, payload) = case(&cases, value)?;
                let bytes = discriminant_bytes(cases.len());
                self.write(at, &(index as u32).to_le_bytes()[..bytes as usize]);
                if let (Some(ty), Some(payload)) = (cases[index].1, payload) {
                    self.store(ty, payload, at + bytes.next_multiple_of(self.payload_align(&cases)?))?;
                }
            }
            Shape::Flags(names) => {
                let (size, _) = self.layout(ty)?;
                let bytes: Vec<u8> = flag_words(&names, value)?.into_iter().flat_map(u32::to_le_bytes).collect();
                self.write(at, &bytes[..size as usize]);
            }
        }
        Ok(())
    }

    fn store_fields(&mut self, fields: &[(String, ComponentValType)], values: &[&WastVal<'_>], at: u32) -> Result<(), String> {
        let mut next = at;
        for (value, (_, ty)) in values.iter().zip(fields) {
            let (size, align) = self.layout(*ty)?;
            next = next.next_multiple_of(align);
            self.store(*ty, value, next)?;
            next += size;
        }
        Ok(())
    }

    fn write(&mut self, at: u32, bytes: &[u8]) {
        self.memory[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Adds code that returns 1 unless the value at that address, plus an offset, is the expected one.
    fn compare(&mut self, ty: ComponentValType, value: &WastVal<'_>, base: &str, offset: u32) -> Result<(), String> {
        match self.shape(ty)? {
            Shape::Number(flat, bytes) => {
                let load = match (flat, bytes) {
                    (Flat::I32, 1) => "i32.load8_u",
                    (Flat::I32, 2) => "i32.load16_u",
                    (Flat::I32, _) => "i32.load",
                    (Flat::I64, _) => "i64.load",
                    (Flat::F32, _) => "f32.load",
                    (Flat::F64, _) => "f64.load",
                };
                let kept = if bytes < 4 { number(value)? & ((1 << (bytes * 8)) - 1) } else { number(value)? };
                self.differs(flat, kept, &format!("({load} offset={offset} {base})"));
            }
            Shape::String => {
                let WastVal::String(text) = value else { return Err(mismatch(value)) };
                let place = self.allocate(text.len() as u32, 1);
                self.write(place, text.as_bytes());
                let length = text.len();
                self.differs(Flat::I32, length as u64, &format!("(i32.load offset={} {base})", offset + 4));
                let _ = writeln!(
                    self.code,
                    "(if (call $differ (i32.load offset={offset} {base}) (i32.const {place}) (i32.const {length})) (then (return (i32.const 1))))"
                );
            }
            Shape::List(fields) => {
                let elements = elements(&fields, value)?;
                self.differs(Flat::I32, elements.len() as u64, &format!("(i32.load offset={} {base})", offset + 4));
                let local = self.local(Flat::I32);
                let _ = writeln!(self.code, "(local.set {local} (i32.load offset={offset} {base}))");
                let (size, _) = self.fields_layout(&fields)?;
                for (index, values) in elements.iter().enumerate() {
                    self.compare_fields(&fields, values, &format!("(local.get {local})"), index as u32 * size)?;
                }
            }
            Shape::Fields(fields) => {
                self.compare_fields(&fields, &field_values(&fields, value)?, base, offset)?;
            }
            Shape::Cases(cases) => {
                let (index, payload) = case(&cases, value)?;
                let bytes = discriminant_bytes(cases.len());
                let load = ["i32.load8_u", "i32.load16_u", "", "i32.load"][bytes as usize - 1];
                self.differs(Flat::I32, index as u64, &format!("({load} offset={offset} {base})"));
                if let (Some(ty), Some(payload)) = (cases[index].1, payload) {
                    let payload_at = offset + bytes.next_multiple_of(self.payload_align(&cases)?);
                    self.compare(ty, payload, base, payload_at)?;
                }
            }
            Shape::Flags(names) => {
                let (size, _) = self.layout(ty)?;
                let load = match size {
                    1 => "i32.load8_u",
                    2 => "i32.load16_u",
                    _ => "i32.load",
                };
                for (index, word) in flag_words(&names, value)?.into_iter().enumerate() {
                    self.differs(Flat::I32, u64::from(word), &format!("({load} offset={} {base})", offset + index as u32 * 4));
                }
            }
        }
        Ok(())
    }

    fn compare_fields(
        &mut self,
        fields: &[(String, ComponentValType)],
        values: &[&WastVal<'_>],
        base: &str,
        offset: u32,
    ) -> Result<(), String> {
        let mut next = offset;
        for (value, (_, ty)) in values.iter().zip(fields) {
            let (size, align) = self.layout(*ty)?;
            next = next.next_multiple_of(align);
            self.compare(*ty, value, base, next)?;
            next += size;
        }
        Ok(())
    }

    /// Adds code that returns 1 where a value is not this constant. One NaN is as good as another.
    fn differs(&mut self, flat: Flat, bits: u64, value: &str) {
        let is_nan = match flat {
            Flat::F32 => f32::from_bits(bits as u32).is_nan(),
            Flat::F64 => f64::from_bits(bits).is_nan(),
            Flat::I32 | Flat::I64 => false,
        };
        let name = flat.name();
        let differs = match flat {
            Flat::F32 | Flat::F64 if is_nan => format!("({name}.eq {value} {value})"),
            Flat::F32 => format!("(i32.ne (i32.reinterpret_f32 {value}) (i32.const {}))", (bits as u32).cast_signed()),
            Flat::F64 => format!("(i64.ne (i64.reinterpret_f64 {value}) (i64.const {}))", bits.cast_signed()),
            Flat::I32 | Flat::I64 => format!("({name}.ne {value} {})", flat.constant(bits)),
        };
        let _ = writeln!(self.code, "(if {differs} (then (return (i32.const 1))))");
    }
}

fn primitive_shape(primitive: PrimitiveValType) -> Result<Shape, String> {
    use PrimitiveValType as P;
    Ok(match primitive {
        P::Bool | P::S8 | P::U8 => Shape::Number(Flat::I32, 1),
        P::S16 | P::U16 => Shape::Number(Flat::I32, 2),
        P::S32 | P::U32 | P::Char => Shape::Number(Flat::I32, 4),
        P::S64 | P::U64 => Shape::Number(Flat::I64, 8),
        P::F32 => Shape::Number(Flat::F32, 4),
        P::F64 => Shape::Number(Flat::F64, 8),
        P::String => Shape::String,
        P::ErrorContext => return Err("an error context".to_owned()),
    })
}

const fn discriminant_bytes(cases: usize) -> u32 {
    match cases {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// A number's bits. What is shorter than a core value is extended as its type says.
fn number(value: &WastVal<'_>) -> Result<u64, String> {
    let signed = |value: i32| u64::from(value.cast_unsigned());
    Ok(match value {
        WastVal::Bool(value) => u64::from(*value),
        WastVal::U8(value) => u64::from(*value),
        WastVal::S8(value) => signed(i32::from(*value)),
        WastVal::U16(value) => u64::from(*value),
        WastVal::S16(value) => signed(i32::from(*value)),
        WastVal::U32(value) => u64::from(*value),
        WastVal::S32(value) => signed(*value),
        WastVal::U64(value) => *value,
        WastVal::S64(value) => value.cast_unsigned(),
        WastVal::F32(value) => u64::from(value.bits),
        WastVal::F64(value) => value.bits,
        WastVal::Char(value) => u64::from(u32::from(*value)),
        other => return Err(mismatch(other)),
    })
}

fn mismatch(value: &WastVal<'_>) -> String {
    format!("{value:?} is not of the function's type")
}

/// The values of fields, in their order.
fn field_values<'v, 'w>(fields: &[(String, ComponentValType)], value: &'v WastVal<'w>) -> Result<Vec<&'v WastVal<'w>>, String> {
    let values: Vec<&WastVal<'_>> = match value {
        WastVal::Record(values) => values.iter().map(|(_, value)| value).collect(),
        WastVal::Tuple(values) | WastVal::List(values) => values.iter().collect(),
        other => return Err(mismatch(other)),
    };
    if values.len() == fields.len() { Ok(values) } else { Err(mismatch(value)) }
}

/// The values of a list's elements, each with its fields.
fn elements<'v, 'w>(fields: &[(String, ComponentValType)], value: &'v WastVal<'w>) -> Result<Vec<Vec<&'v WastVal<'w>>>, String> {
    match (fields, value) {
        ([_], WastVal::List(elements)) => Ok(elements.iter().map(|element| vec![element]).collect()),
        ([_, _], WastVal::Map(entries)) => Ok(entries.iter().map(|(key, value)| vec![key, value]).collect()),
        (fields, WastVal::List(entries)) => entries.iter().map(|entry| field_values(fields, entry)).collect(),
        _ => Err(mismatch(value)),
    }
}

/// The index of a case, and what it holds.
fn case<'v, 'w>(
    cases: &[(String, Option<ComponentValType>)],
    value: &'v WastVal<'w>,
) -> Result<(usize, Option<&'v WastVal<'w>>), String> {
    let (name, payload) = match value {
        WastVal::Variant(name, payload) => (*name, payload.as_deref()),
        WastVal::Enum(name) => (*name, None),
        WastVal::Option(None) => ("none", None),
        WastVal::Option(Some(payload)) => ("some", Some(&**payload)),
        WastVal::Result(Ok(payload)) => ("ok", payload.as_deref()),
        WastVal::Result(Err(payload)) => ("err", payload.as_deref()),
        other => return Err(mismatch(other)),
    };
    let index = cases.iter().position(|(known, _)| known == name).ok_or_else(|| mismatch(value))?;
    Ok((index, payload))
}

/// Flags as words.
fn flag_words(names: &[String], value: &WastVal<'_>) -> Result<Vec<u32>, String> {
    let WastVal::Flags(set) = value else { return Err(mismatch(value)) };
    let mut words = vec![0; names.len().div_ceil(32)];
    for flag in set {
        let index = names.iter().position(|name| name == flag).ok_or_else(|| mismatch(value))?;
        words[index / 32] |= 1 << (index % 32);
    }
    Ok(words)
}
