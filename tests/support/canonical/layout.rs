//! Types of the component model: size, alignment, and what they are flattened to.

/// A type. Names of fields and cases are left out: the canonical ABI does without them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as the component model calls them")]
pub enum Type {
    Bool,
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
    F32,
    F64,
    Char,
    String,
    List(Box<Type>),
    /// A list of so many elements.
    Fixed(Box<Type>, u32),
    Map(Box<Type>, Box<Type>),
    Record(Vec<Type>),
    Tuple(Vec<Type>),
    Variant(Vec<Option<Type>>),
    Enum(u32),
    Flags(u32),
    Option(Box<Type>),
    Result(Option<Box<Type>>, Option<Box<Type>>),
    /// An owned handle.
    Own,
    /// A handle that is lent.
    Borrow,
}

/// A core type of the canonical ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as the specification calls them")]
pub enum Flat {
    I32,
    I64,
    F32,
    F64,
}

impl Flat {
    /// Flat parameters of a function, beyond which they are passed in memory.
    pub const PARAMS_MAX: usize = 16;
    /// Flat results, likewise.
    pub const RESULTS_MAX: usize = 1;

    /// Its name in the text format.
    #[must_use]
    pub const fn name(self) -> &'static str {
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
    #[must_use]
    pub fn constant(self, bits: u64) -> String {
        match self {
            Flat::I32 => format!("(i32.const {})", (bits as u32).cast_signed()),
            Flat::I64 => format!("(i64.const {})", bits.cast_signed()),
            Flat::F32 => format!("(f32.reinterpret_i32 (i32.const {}))", (bits as u32).cast_signed()),
            Flat::F64 => format!("(f64.reinterpret_i64 (i64.const {}))", bits.cast_signed()),
        }
    }
}

impl Type {
    /// The core type of what is one number, and its size in memory.
    #[must_use]
    pub const fn number(&self) -> Option<(Flat, u32)> {
        Some(match self {
            Type::Bool | Type::S8 | Type::U8 => (Flat::I32, 1),
            Type::S16 | Type::U16 => (Flat::I32, 2),
            Type::S32 | Type::U32 | Type::Char | Type::Own | Type::Borrow => (Flat::I32, 4),
            Type::S64 | Type::U64 => (Flat::I64, 8),
            Type::F32 => (Flat::F32, 4),
            Type::F64 => (Flat::F64, 8),
            Type::Flags(count) => (Flat::I32, flags_bytes(*count)),
            _ => return None,
        })
    }

    /// What lies in it one after the other, if that is how it is made.
    #[must_use]
    pub fn fields(&self) -> Option<Vec<&Type>> {
        match self {
            Type::Record(fields) | Type::Tuple(fields) => Some(fields.iter().collect()),
            Type::Fixed(element, count) => Some(vec![element; *count as usize]),
            _ => None,
        }
    }

    /// What its cases hold, if it has cases.
    #[must_use]
    pub fn cases(&self) -> Option<Vec<Option<&Type>>> {
        match self {
            Type::Variant(cases) => Some(cases.iter().map(Option::as_ref).collect()),
            Type::Enum(count) => Some(vec![None; *count as usize]),
            Type::Option(some) => Some(vec![None, Some(some)]),
            Type::Result(ok, err) => Some(vec![ok.as_deref(), err.as_deref()]),
            _ => None,
        }
    }

    /// What each element of it is made of, if it is a list or map.
    #[must_use]
    pub fn element(&self) -> Option<Vec<&Type>> {
        match self {
            Type::List(element) => Some(vec![element]),
            Type::Map(key, value) => Some(vec![key, value]),
            _ => None,
        }
    }

    /// Its size in memory.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.layout().0
    }

    /// Its alignment in memory.
    #[must_use]
    pub fn align(&self) -> u32 {
        self.layout().1
    }

    fn layout(&self) -> (u32, u32) {
        if let Some((_, bytes)) = self.number() {
            return (bytes, bytes);
        }
        if let Some(fields) = self.fields() {
            return fields_layout(&fields);
        }
        if let Some(cases) = self.cases() {
            let align = discriminant_bytes(cases.len()).max(payload_align(&cases));
            let size = cases.iter().flatten().map(|ty| ty.size()).max().unwrap_or(0);
            return ((payload_offset(&cases) + size).next_multiple_of(align), align);
        }
        // A pointer and a length.
        (8, 4)
    }

    /// Where the payload begins of what has cases.
    #[must_use]
    pub fn payload_offset(&self) -> u32 {
        payload_offset(&self.cases().unwrap_or_default())
    }

    /// The core types that pass it.
    #[must_use]
    pub fn flat(&self) -> Vec<Flat> {
        if let Some((flat, _)) = self.number() {
            return vec![flat];
        }
        if let Some(fields) = self.fields() {
            return fields.iter().flat_map(|ty| ty.flat()).collect();
        }
        if let Some(cases) = self.cases() {
            let mut joined = vec![Flat::I32];
            for ty in cases.into_iter().flatten() {
                for (index, flat) in ty.flat().into_iter().enumerate() {
                    match joined.get_mut(index + 1) {
                        Some(known) => *known = known.join(flat),
                        None => joined.push(flat),
                    }
                }
            }
            return joined;
        }
        vec![Flat::I32; 2]
    }
}

fn payload_align(cases: &[Option<&Type>]) -> u32 {
    cases.iter().flatten().map(|ty| ty.align()).max().unwrap_or(1)
}

fn payload_offset(cases: &[Option<&Type>]) -> u32 {
    discriminant_bytes(cases.len()).next_multiple_of(payload_align(cases))
}

/// Size and alignment of fields, one after the other.
#[must_use]
pub fn fields_layout(fields: &[&Type]) -> (u32, u32) {
    let (mut end, mut most) = (0_u32, 1);
    for ty in fields {
        let (size, align) = ty.layout();
        end = end.next_multiple_of(align) + size;
        most = most.max(align);
    }
    (end.next_multiple_of(most), most)
}

/// The size of the number that says which of so many cases there is.
#[must_use]
pub const fn discriminant_bytes(cases: usize) -> u32 {
    match cases {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

const fn flags_bytes(count: u32) -> u32 {
    match count {
        0..=8 => 1,
        9..=16 => 2,
        _ => 4,
    }
}
