//! WebAssembly's types as an artifact's descriptor carries them (core specification, section 2.3).

use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A value's type.
///
/// Generated code holds `i32`, `i64`, `f32`, `f64` as LLVM's types of that size, a reference to a function as an `i128` (see
/// [`crate::vmctx::funcref`]), one to a host's value as an `i64` (zero is null, otherwise index + 1 into the sandbox's list), and one to an
/// exception as an `i64` (zero is null, otherwise its address; see [`crate::exceptions`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ValType {
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
    /// 32-bit IEEE 754 float.
    F32,
    /// 64-bit IEEE 754 float.
    F64,
    /// 128-bit vector.
    V128,
    /// Reference.
    Ref(RefType),
}

/// A reference's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RefType {
    /// Whether it may be null.
    pub nullable: bool,
    /// What it refers to.
    pub heap: HeapType,
}

/// What a reference refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HeapType {
    /// Any function.
    Func,
    /// No function: the type of null.
    NoFunc,
    /// A value of the host.
    Extern,
    /// No such value.
    NoExtern,
    /// An exception.
    Exn,
    /// No exception.
    NoExn,
    /// A function of the type with that index in the module. Where types of several modules meet, the runtime's canonical id instead.
    Concrete(u32),
}

/// The kinds of references, which have no value in common and are held differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefKind {
    /// To functions.
    Func,
    /// To values of the host.
    Extern,
    /// To exceptions.
    Exn,
}

impl HeapType {
    /// Of which kind references to it are.
    #[must_use]
    pub const fn kind(self) -> RefKind {
        match self {
            HeapType::Func | HeapType::NoFunc | HeapType::Concrete(_) => RefKind::Func,
            HeapType::Extern | HeapType::NoExtern => RefKind::Extern,
            HeapType::Exn | HeapType::NoExn => RefKind::Exn,
        }
    }

    /// With another number for a concrete type.
    #[must_use]
    pub fn map(self, number: impl FnOnce(u32) -> u32) -> HeapType {
        match self {
            HeapType::Concrete(index) => HeapType::Concrete(number(index)),
            other => other,
        }
    }
}

impl RefType {
    /// The nullable reference to what `heap` says.
    #[must_use]
    pub const fn nullable(heap: HeapType) -> RefType {
        RefType { nullable: true, heap }
    }
}

impl ValType {
    /// Any function, or null.
    pub const FUNCREF: ValType = ValType::Ref(RefType::nullable(HeapType::Func));
    /// A host's value, or null.
    pub const EXTERNREF: ValType = ValType::Ref(RefType::nullable(HeapType::Extern));
    /// An exception, or null.
    pub const EXNREF: ValType = ValType::Ref(RefType::nullable(HeapType::Exn));

    /// Whether this is a reference type.
    #[must_use]
    pub const fn is_reference(self) -> bool {
        matches!(self, ValType::Ref(_))
    }

    /// Of which kind of reference it is, if it is one.
    #[must_use]
    pub const fn ref_kind(self) -> Option<RefKind> {
        match self {
            ValType::Ref(ty) => Some(ty.heap.kind()),
            _ => None,
        }
    }

    /// With another number for a concrete type.
    #[must_use]
    pub fn map(self, number: impl FnOnce(u32) -> u32) -> ValType {
        match self {
            ValType::Ref(ty) => ValType::Ref(RefType { heap: ty.heap.map(number), ..ty }),
            other => other,
        }
    }
}

impl fmt::Display for HeapType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeapType::Func => "func",
            HeapType::NoFunc => "nofunc",
            HeapType::Extern => "extern",
            HeapType::NoExtern => "noextern",
            HeapType::Exn => "exn",
            HeapType::NoExn => "noexn",
            HeapType::Concrete(index) => return write!(f, "{index}"),
        })
    }
}

impl fmt::Display for ValType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValType::I32 => "i32",
            ValType::I64 => "i64",
            ValType::F32 => "f32",
            ValType::F64 => "f64",
            ValType::V128 => "v128",
            ValType::Ref(RefType { nullable: false, heap }) => return write!(f, "(ref {heap})"),
            ValType::Ref(RefType { nullable: true, heap }) => match heap {
                HeapType::Func | HeapType::Extern | HeapType::Exn => return write!(f, "{heap}ref"),
                other => return write!(f, "(ref null {other})"),
            },
        })
    }
}

/// A function's type. Two are the same type when the recursion groups to which they belong are equal in structure.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FuncType {
    /// Parameter types, in order.
    pub params: Vec<ValType>,
    /// Result types, in order.
    pub results: Vec<ValType>,
}

impl FuncType {
    /// Number of [slots](crate::calls) that a call of this type through an entry or a host call needs.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.params.len().max(self.results.len())
    }
}

impl FuncType {
    /// With other numbers for concrete types.
    #[must_use]
    pub fn map(&self, number: impl Fn(u32) -> u32) -> FuncType {
        let list = |types: &[ValType]| types.iter().map(|ty| ty.map(&number)).collect();
        FuncType { params: list(&self.params), results: list(&self.results) }
    }
}

impl fmt::Display for FuncType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, types: &[ValType]| {
            f.write_str("(")?;
            for (i, ty) in types.iter().enumerate() {
                write!(f, "{}{ty}", if i == 0 { "" } else { ", " })?;
            }
            f.write_str(")")
        };
        list(f, &self.params)?;
        f.write_str(" -> ")?;
        list(f, &self.results)
    }
}

/// A table's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableType {
    /// Type of the elements; a reference type.
    pub element: ValType,
    /// Initial number of elements.
    pub elements_min: u64,
    /// Number of elements that it may grow to.
    pub elements_max: Option<u64>,
    /// Whether indices are 64 bits wide (memory64).
    pub table64: bool,
}

/// A linear memory's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryType {
    /// Initial size in pages of 64 KiB.
    pub pages_min: u64,
    /// Size in pages of 64 KiB that it may grow to.
    pub pages_max: Option<u64>,
    /// Whether addresses are 64 bits wide (memory64).
    pub memory64: bool,
    /// Whether it is shared between threads, of which a sandbox has one.
    pub shared: bool,
}

/// A global's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalType {
    /// Type of its value.
    pub value: ValType,
    /// Whether `global.set` may change it.
    pub mutable: bool,
}

/// How generated code keeps accesses inside a linear memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Bounds {
    /// No check in the code: everything that an access can reach is reserved address space, and what is not memory faults.
    Guard,
    /// As `Guard`, with the base of memory 0 in a segment register (%gs on x86-64). Other memories of such a module have another mode.
    Segment,
    /// An explicit comparison with the memory's length before each access.
    Software,
    /// Nothing is checked or promised: for measurement only; loaders refuse it unless forced.
    None,
}

impl Bounds {
    /// The name used on command lines and in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Bounds::Guard => "guard",
            Bounds::Segment => "segment",
            Bounds::Software => "software",
            Bounds::None => "none",
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
