//! Values lowered: the memory that a core module begins with, constants, and the code that calls with them and compares.

use std::fmt::Write as _;

use super::{Encoding, Flat, Type, data, discriminant_bytes, fields_layout};
use crate::random::Random;

/// A value of some [`Type`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number, a character, flags or a truth value, by its bits. What is shorter than 32 bits is extended to them as its type says.
    Bits(u64),
    /// A string.
    String(String),
    /// The elements of a list; of a map, each of them a key and a value.
    List(Vec<Value>),
    /// What lies in a record, a tuple or a list of fixed length.
    Fields(Vec<Value>),
    /// The case with this index, and what it holds.
    Case(u32, Option<Box<Value>>),
    /// A handle of a resource that stands for this number. The code makes it: see [`Image`].
    Handle(u32),
    /// The pointer and length of a list or string, whatever they are.
    Raw(u32, u32),
    /// A string of these bytes, whatever they are, and of this length.
    Bytes(Vec<u8>, u32),
}

/// A memory, and code that works on it.
///
/// The code calls functions that the module has to have: `$differ` compares bytes ([`Image::DIFFER`]), `$make` makes an owned handle of a number, `$lend` one
/// that can be lent, `$held` says what an owned handle stands for.
#[derive(Debug)]
pub struct Image {
    /// The memory's first bytes; what is at the addresses of arguments and of expected strings.
    pub memory: Vec<u8>,
    /// The function that makes the calls.
    pub code: String,
    /// Its locals.
    pub locals: String,
    locals_count: usize,
    pub(super) encoding: Encoding,
    /// What is done where something differs.
    pub(super) otherwise: &'static str,
    noise: Option<Random>,
}

/// A value that is passed: a constant, or code that makes an `i32`.
enum Lowered {
    Bits(Flat, u64),
    Code(String),
}

impl Lowered {
    fn text(&self) -> String {
        match self {
            Lowered::Bits(flat, bits) => flat.constant(*bits),
            Lowered::Code(code) => code.clone(),
        }
    }
}

impl Image {
    /// A function that compares bytes in memory: one where they differ, zero where not.
    pub const DIFFER: &str = "(func $differ (param $one i32) (param $other i32) (param $length i32) (result i32)
      (block $done (loop $more
        (br_if $done (i32.eqz (local.get $length)))
        (if (i32.ne (i32.load8_u (local.get $one)) (i32.load8_u (local.get $other))) (then (return (i32.const 1))))
        (local.set $one (i32.add (local.get $one) (i32.const 1)))
        (local.set $other (i32.add (local.get $other) (i32.const 1)))
        (local.set $length (i32.sub (local.get $length) (i32.const 1)))
        (br $more)))
      (i32.const 0))";

    /// An empty one, of a component that encodes strings like this, and does `otherwise` where something differs.
    #[must_use]
    pub fn new(encoding: Encoding, otherwise: &'static str) -> Image {
        // Nothing is at address zero.
        let (code, locals) = (String::new(), String::new());
        Image { memory: vec![0; 16], code, locals, locals_count: 0, encoding, otherwise, noise: None }
    }

    /// Every bit that means nothing is random from here on.
    #[must_use]
    pub fn with_noise(mut self, noise: Random) -> Image {
        self.noise = Some(noise);
        self
    }

    /// The memory, as a string of the text format.
    #[must_use]
    pub fn data(&self) -> String {
        data(&self.memory)
    }

    /// The core type of a function as it is lowered.
    #[must_use]
    pub fn signature(params: &[Type], result: Option<&Type>) -> (Vec<Flat>, Vec<Flat>) {
        let mut params: Vec<Flat> = params.iter().flat_map(Type::flat).collect();
        if params.len() > Flat::PARAMS_MAX {
            params = vec![Flat::I32];
        }
        let mut results = result.map_or_else(Vec::new, Type::flat);
        if results.len() > Flat::RESULTS_MAX {
            params.push(Flat::I32);
            results.clear();
        }
        (params, results)
    }

    /// Adds a call of the core function of that name. With `expected`, the code notices where the result is another.
    ///
    /// # Panics
    /// When a value is not of its type.
    pub fn call(&mut self, name: &str, params: &[Type], result: Option<&Type>, arguments: &[Value], expected: Option<&Value>) {
        assert_eq!(arguments.len(), params.len(), "arguments of {name}");
        let mut passed = String::new();
        let flat: usize = params.iter().map(|ty| ty.flat().len()).sum();
        if flat > Flat::PARAMS_MAX {
            let at = self.place(&params.iter().collect::<Vec<_>>(), &arguments.iter().collect::<Vec<_>>());
            passed = Flat::I32.constant(u64::from(at));
        } else {
            for (ty, argument) in params.iter().zip(arguments) {
                passed.extend(self.lower(ty, argument).iter().map(Lowered::text));
            }
        }
        match (result, result.map(Type::flat).unwrap_or_default().as_slice()) {
            (Some(ty), [flat]) => {
                let local = self.local(*flat);
                let _ = writeln!(self.code, "(local.set {local} (call {name} {passed}))");
                if let Some(expected) = expected {
                    self.compare_flat(ty, expected, &format!("(local.get {local})"));
                }
            }
            (Some(ty), [_, ..]) => {
                let at = self.allocate(ty.size(), ty.align());
                let _ = writeln!(self.code, "(call {name} {passed} (i32.const {at}))");
                if let Some(expected) = expected {
                    self.compare(ty, expected, &format!("(i32.const {at})"), 0);
                }
            }
            _ => {
                let _ = writeln!(self.code, "(call {name} {passed})");
            }
        }
    }

    /// Writes fields to the memory, one after the other; where.
    pub fn place(&mut self, types: &[&Type], values: &[&Value]) -> u32 {
        let (size, align) = fields_layout(types);
        let at = self.allocate(size, align);
        self.store_fields(types, values, at);
        at
    }

    /// A new local of the function.
    pub fn local(&mut self, flat: Flat) -> String {
        let name = format!("$local{}", self.locals_count);
        self.locals_count += 1;
        let _ = write!(self.locals, "(local {name} {})", flat.name());
        name
    }

    /// So many bytes of the memory.
    pub fn allocate(&mut self, size: u32, align: u32) -> u32 {
        let at = (self.memory.len() as u32).next_multiple_of(align.max(1));
        self.memory.resize(at as usize, 0);
        let bytes = match &mut self.noise {
            Some(noise) => noise.bytes(size as usize),
            None => vec![0; size as usize],
        };
        self.memory.extend(bytes);
        at
    }

    fn noise(&mut self) -> u64 {
        self.noise.as_mut().map_or(0, Random::bits)
    }

    /// The bits by which a number is passed: those that mean nothing are noise.
    fn noisy(&mut self, ty: &Type, bits: u64) -> u64 {
        let width = match ty {
            Type::Bool => return if self.noise.is_some() && bits == 1 { (self.noise() & 0xffff_ff00) | bits } else { bits },
            Type::S8 | Type::U8 => 8,
            Type::S16 | Type::U16 => 16,
            Type::Flags(count) => *count,
            _ => return bits,
        };
        if self.noise.is_none() || width >= 32 {
            return bits;
        }
        let known = (1 << width) - 1;
        (bits & known) | (self.noise() & 0xffff_ffff & !known)
    }

    /// The constants that pass a value.
    fn lower(&mut self, ty: &Type, value: &Value) -> Vec<Lowered> {
        if let Some((flat, _)) = ty.number() {
            return vec![match (ty, value) {
                (Type::Own, Value::Handle(number)) => Lowered::Code(make(*number)),
                (Type::Borrow, Value::Handle(number)) => Lowered::Code(lend(*number)),
                _ => Lowered::Bits(flat, self.noisy(ty, bits(value))),
            }];
        }
        match (ty.fields(), ty.cases()) {
            (Some(types), _) => {
                let values = fields(value);
                assert_eq!(types.len(), values.len(), "{value:?} is not of type {ty:?}");
                types.into_iter().zip(values).flat_map(|(ty, value)| self.lower(ty, value)).collect()
            }
            (_, Some(cases)) => {
                let (index, payload) = case(value);
                let mut lowered = vec![Lowered::Bits(Flat::I32, u64::from(index))];
                if let (Some(Some(ty)), Some(payload)) = (cases.get(index as usize), payload) {
                    lowered.extend(self.lower(ty, payload));
                }
                let all = ty.flat();
                let given = lowered.len();
                for (place, flat) in lowered.iter_mut().zip(&all) {
                    let (upper, taken) = (self.noise() << 32, std::mem::replace(place, Lowered::Bits(*flat, 0)));
                    *place = match taken {
                        Lowered::Bits(Flat::I32 | Flat::F32, bits) if *flat == Flat::I64 => Lowered::Bits(*flat, bits | upper),
                        Lowered::Bits(_, bits) => Lowered::Bits(*flat, bits),
                        Lowered::Code(code) if *flat == Flat::I64 => Lowered::Code(format!("(i64.extend_i32_u {code})")),
                        Lowered::Code(code) => Lowered::Code(code),
                    };
                }
                lowered.extend(all[given..].iter().map(|flat| Lowered::Bits(*flat, self.noise())));
                lowered
            }
            _ => {
                let (pointer, length) = self.outside(ty, value);
                [pointer, length].map(|word| Lowered::Bits(Flat::I32, u64::from(word))).into()
            }
        }
    }

    /// Writes the content of a string, list or map: its pointer and length.
    fn outside(&mut self, ty: &Type, value: &Value) -> (u32, u32) {
        let (bytes, length) = match (ty.element(), value) {
            (_, Value::Raw(pointer, length)) => return (*pointer, *length),
            (None, Value::Bytes(bytes, length)) => (bytes.clone(), *length),
            (None, Value::String(text)) if self.encoding == Encoding::Compact && self.noise() % 4 == 1 => Encoding::wide(text),
            (None, Value::String(text)) => self.encoding.encode(text),
            (Some(types), Value::List(elements)) => {
                let (size, align) = fields_layout(&types);
                let place = self.allocate(size * elements.len() as u32, align);
                for (index, element) in elements.iter().enumerate() {
                    self.store_element(&types, element, place + index as u32 * size);
                }
                return (place, elements.len() as u32);
            }
            _ => panic!("{value:?} is not of type {ty:?}"),
        };
        let place = self.allocate(bytes.len() as u32, self.encoding.align());
        self.write(place, &bytes);
        (place, length)
    }

    /// Writes a value to the memory.
    fn store(&mut self, ty: &Type, value: &Value, at: u32) {
        if let Some((_, size)) = ty.number() {
            let code = match (ty, value) {
                (Type::Own, Value::Handle(number)) => make(*number),
                (Type::Borrow, Value::Handle(number)) => lend(*number),
                (Type::Bool, Value::Bits(1)) if self.noise.is_some() => {
                    let byte = 1 << (self.noise() % 8);
                    return self.write(at, &[byte]);
                }
                _ => {
                    let bits = self.noisy(ty, bits(value));
                    return self.write(at, &bits.to_le_bytes()[..size as usize]);
                }
            };
            let _ = writeln!(self.code, "(i32.store (i32.const {at}) {code})");
            return;
        }
        match (ty.fields(), ty.cases()) {
            (Some(types), _) => self.store_fields(&types, &fields(value), at),
            (_, Some(cases)) => {
                let (index, payload) = case(value);
                let bytes = discriminant_bytes(cases.len());
                self.write(at, &index.to_le_bytes()[..bytes as usize]);
                if let (Some(Some(held)), Some(payload)) = (cases.get(index as usize), payload) {
                    self.store(held, payload, at + ty.payload_offset());
                }
            }
            _ => {
                let (pointer, length) = self.outside(ty, value);
                self.write(at, &pointer.to_le_bytes());
                self.write(at + 4, &length.to_le_bytes());
            }
        }
    }

    fn store_fields(&mut self, types: &[&Type], values: &[&Value], at: u32) {
        assert_eq!(types.len(), values.len(), "{values:?} are not of types {types:?}");
        let mut next = at;
        for (value, ty) in values.iter().zip(types) {
            next = next.next_multiple_of(ty.align());
            self.store(ty, value, next);
            next += ty.size();
        }
    }

    fn store_element(&mut self, types: &[&Type], element: &Value, at: u32) {
        match types {
            [ty] => self.store(ty, element, at),
            _ => self.store_fields(types, &fields(element), at),
        }
    }

    pub(super) fn write(&mut self, at: u32, bytes: &[u8]) {
        self.memory[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

fn make(number: u32) -> String {
    format!("(call $make (i32.const {}))", number.cast_signed())
}

fn lend(number: u32) -> String {
    format!("(call $lend (i32.const {}))", number.cast_signed())
}

pub(super) fn bits(value: &Value) -> u64 {
    match value {
        Value::Bits(bits) => *bits,
        Value::Handle(number) => u64::from(*number),
        other => panic!("{other:?} is no number"),
    }
}

pub(super) fn fields(value: &Value) -> Vec<&Value> {
    match value {
        Value::Fields(values) => values.iter().collect(),
        other => panic!("{other:?} has no fields"),
    }
}

pub(super) fn case(value: &Value) -> (u32, Option<&Value>) {
    match value {
        Value::Case(index, payload) => (*index, payload.as_deref()),
        other => panic!("{other:?} has no cases"),
    }
}
