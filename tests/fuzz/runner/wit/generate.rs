//! Random types of the component model, and values of them.

use sledge_tests::canonical::{Type, Value};
use sledge_tests::random::Random;

/// Types inside of each other.
const DEPTH_MAX: u32 = 4;

/// Types of one function, those inside of others included.
const TYPES_MAX: u32 = 25;

/// The size of one value in memory.
const SIZE_MAX: u32 = 160;

/// Values of one call, those inside of others included.
const VALUES_MAX: u32 = 80;

/// Types that are keys of a map.
const KEYS: [Type; 11] =
    [Type::Bool, Type::S8, Type::U8, Type::S16, Type::U16, Type::S32, Type::U32, Type::S64, Type::U64, Type::Char, Type::String];

/// Makes types and values.
pub(super) struct Generator {
    pub(super) random: Random,
    /// Whether types may hold owned handles.
    pub(super) owns: bool,
    /// Whether types may hold handles that are lent.
    pub(super) lends: bool,
    types: u32,
    values: u32,
    /// What the next handle stands for.
    next_handle: u32,
}

impl Generator {
    pub(super) fn new(random: Random) -> Generator {
        Generator { random, owns: false, lends: false, types: 0, values: 0, next_handle: 1000 }
    }

    /// Types of parameters: few, many, and so many that they are passed in memory.
    pub(super) fn params(&mut self) -> Vec<Type> {
        let count = *self.random.pick(&[0, 1, 1, 1, 2, 2, 3, 4, 5, 8, 15, 16, 17, 20]);
        self.types = 0;
        // Many are small, so that their number and not their size decides how they are passed.
        let depth = if count > 5 { 0 } else { DEPTH_MAX };
        (0..count).map(|_| self.ty(depth)).collect()
    }

    /// A type that is no larger than some.
    pub(super) fn ty(&mut self, depth: u32) -> Type {
        let ty = self.any(depth);
        if ty.size() > SIZE_MAX { self.leaf() } else { ty }
    }

    fn any(&mut self, depth: u32) -> Type {
        self.types += 1;
        if depth == 0 || self.types > TYPES_MAX || self.random.chance(20) {
            return self.leaf();
        }
        let inner = depth - 1;
        match self.random.below(10) {
            0 | 1 => Type::List(self.boxed(inner)),
            2 => Type::Fixed(self.boxed(inner), 1 + self.random.below(5) as u32),
            3 => Type::Map(Box::new(self.random.pick(&KEYS).clone()), self.boxed(inner)),
            4 | 5 => Type::Record(self.several(inner)),
            6 => Type::Tuple(self.several(inner)),
            7 => {
                let count = *self.random.pick(&[1, 2, 3, 4, 5, 7, 257]);
                // Of many cases, few hold something.
                let percent = if count > 7 { 1 } else { 70 };
                let case = |this: &mut Generator| this.random.chance(percent).then(|| this.ty(inner));
                Type::Variant((0..count).map(|_| case(self)).collect())
            }
            8 => Type::Option(self.boxed(inner)),
            _ => Type::Result(self.optional(inner), self.optional(inner)),
        }
    }

    fn boxed(&mut self, depth: u32) -> Box<Type> {
        Box::new(self.ty(depth))
    }

    fn optional(&mut self, depth: u32) -> Option<Box<Type>> {
        self.random.chance(70).then(|| self.boxed(depth))
    }

    fn several(&mut self, depth: u32) -> Vec<Type> {
        (0..1 + self.random.below(5)).map(|_| self.ty(depth)).collect()
    }

    fn leaf(&mut self) -> Type {
        match self.random.below(22) {
            0 => Type::Bool,
            1 => Type::S8,
            2 => Type::U8,
            3 => Type::S16,
            4 => Type::U16,
            5 => Type::S32,
            6 => Type::U32,
            7 => Type::S64,
            8 => Type::U64,
            9 | 10 => Type::F32,
            11 | 12 => Type::F64,
            13 => Type::Char,
            14 => Type::Enum(*self.random.pick(&[1, 2, 3, 255, 256, 257, 300])),
            15 | 16 => Type::Flags(1 + self.random.below(32) as u32),
            17 if self.owns => Type::Own,
            18 if self.lends => Type::Borrow,
            _ => Type::String,
        }
    }

    /// Values for a call.
    pub(super) fn arguments(&mut self, params: &[Type]) -> Vec<Value> {
        self.values = 0;
        params.iter().map(|ty| self.value(ty)).collect()
    }

    /// A value of that type.
    pub(super) fn value(&mut self, ty: &Type) -> Value {
        self.values += 1;
        if let Some(fields) = ty.fields() {
            return Value::Fields(fields.into_iter().map(|ty| self.value(ty)).collect());
        }
        if let Some(cases) = ty.cases() {
            let index = self.random.below(cases.len() as u64) as usize;
            return Value::Case(index as u32, cases[index].map(|ty| Box::new(self.value(ty))));
        }
        if let Some(types) = ty.element() {
            let count = self.length(types[0]);
            let element = |this: &mut Generator| match types.as_slice() {
                [ty] => this.value(ty),
                types => Value::Fields(types.iter().map(|ty| this.value(ty)).collect()),
            };
            return Value::List((0..count).map(|_| element(self)).collect());
        }
        let random = &mut self.random;
        let signed = |value: i32| u64::from(value.cast_unsigned());
        Value::Bits(match ty {
            Type::Bool => random.below(2),
            Type::S8 => signed(i32::from(random.i32() as i8)),
            Type::U8 => random.bits() & 0xff,
            Type::S16 => signed(i32::from(random.i32() as i16)),
            Type::U16 => random.bits() & 0xffff,
            Type::S32 | Type::U32 => signed(random.i32()),
            Type::S64 | Type::U64 => random.i64().cast_unsigned(),
            Type::F32 => u64::from(random.f32()),
            Type::F64 => random.f64(),
            Type::Char => u64::from(u32::from(character(random, 3))),
            Type::Flags(count) => random.bits() & ((1 << count) - 1),
            Type::Own | Type::Borrow => {
                self.next_handle += 1;
                return Value::Handle(self.next_handle);
            }
            _ => return Value::String(text(random)),
        })
    }

    /// How many elements a list has.
    fn length(&mut self, element: &Type) -> u64 {
        let is_plain = element.number().is_some() && !matches!(element, Type::F32 | Type::F64 | Type::Own | Type::Borrow);
        match self.random.below(10) {
            _ if self.values > VALUES_MAX => 0,
            0 | 1 => 0,
            2 if is_plain => 100 + self.random.below(900),
            _ => 1 + self.random.below(4),
        }
    }
}

/// A character: of ASCII, of Latin-1, of the first plane, or any.
fn character(random: &mut Random, class: u64) -> char {
    loop {
        let number = match random.below(class + 1) {
            0 => 0x20 + random.below(0x5f),
            1 => 0x80 + random.below(0x80),
            2 => *random.pick(&[0x100, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfffd, 0xffff, 0x20ac]),
            _ => *random.pick(&[0x1_0000, 0x10_ffff, 0x1_f600, 0, 0x7f, 0x80, 0xff]),
        };
        if let Some(character) = char::from_u32(number as u32) {
            return character;
        }
    }
}

/// A string. What is not ASCII may come late: transcoders go on from there in another way.
fn text(random: &mut Random) -> String {
    let length = *random.pick(&[0, 0, 1, 2, 7, 15, 16, 17, 33, 100]);
    let class = random.below(4);
    let plain = if random.chance(40) { random.below(length + 1) } else { 0 };
    (0..length).map(|index| character(random, if index < plain { 0 } else { class })).collect()
}

/// What comes back of a type: a handle that was lent comes back as what it stands for.
pub(super) fn returned(ty: &Type) -> Type {
    let all = |types: &[Type]| types.iter().map(returned).collect();
    let optional = |ty: &Option<Box<Type>>| ty.as_ref().map(|ty| Box::new(returned(ty)));
    match ty {
        Type::Borrow => Type::U32,
        Type::List(element) => Type::List(Box::new(returned(element))),
        Type::Fixed(element, count) => Type::Fixed(Box::new(returned(element)), *count),
        Type::Map(key, value) => Type::Map(key.clone(), Box::new(returned(value))),
        Type::Record(fields) => Type::Record(all(fields)),
        Type::Tuple(fields) => Type::Tuple(all(fields)),
        Type::Variant(cases) => Type::Variant(cases.iter().map(|ty| ty.as_ref().map(returned)).collect()),
        Type::Option(some) => Type::Option(Box::new(returned(some))),
        Type::Result(ok, err) => Type::Result(optional(ok), optional(err)),
        other => other.clone(),
    }
}

/// The sum of what a value's handles stand for.
pub(super) fn handles(value: &Value) -> u32 {
    let sum = |values: &[Value]| values.iter().map(handles).fold(0, u32::wrapping_add);
    match value {
        Value::Handle(number) => *number,
        Value::List(values) | Value::Fields(values) => sum(values),
        Value::Case(_, Some(payload)) => handles(payload),
        _ => 0,
    }
}
