//! Values that cross the border between host and guest, and handles to what a sandbox holds.

use awsm_abi::types::{FuncType, HeapType, RefKind, ValType};

use crate::types;

/// A value's 16 bytes as they stand in arguments, results, globals and table elements (see [`awsm_abi::calls`]).
///
/// The accessors read the low bytes without asking what type was meant: that is known from the function's type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Slot(u128);

impl Slot {
    /// A slot whose bits are those of `bits`, zero-extended by the caller.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Slot {
        Slot(bits)
    }

    /// All 16 bytes.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// An `i32`, or the bits of an `f32`.
    #[must_use]
    pub const fn u32(self) -> u32 {
        self.0 as u32
    }

    /// An `i32`.
    #[must_use]
    pub const fn i32(self) -> i32 {
        self.0 as i32
    }

    /// An `i64`, or the bits of an `f64`.
    #[must_use]
    pub const fn u64(self) -> u64 {
        self.0 as u64
    }

    /// An `i64`.
    #[must_use]
    pub const fn i64(self) -> i64 {
        self.0 as i64
    }
}

/// Identity of a sandbox in this process; handles carry it, so that none is used with another sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SandboxId(pub(crate) u64);

/// An instance of a sandbox: its place in the order of instantiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub(crate) u32);

impl InstanceId {
    /// Its place, from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function of a sandbox, or a reference to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionHandle {
    pub(crate) sandbox: SandboxId,
    /// Address of the code: inside an artifact that the sandbox keeps alive.
    pub(crate) code: u64,
    /// Canonical id of its type.
    pub(crate) type_id: u32,
    /// Its instance's index in the sandbox.
    pub(crate) instance: u32,
}

/// A reference to a function, as a value.
pub type FuncRefHandle = FunctionHandle;

impl FunctionHandle {
    /// Whose function it is. An import served by the host belongs to the instance that imports it.
    #[must_use]
    pub const fn instance(self) -> InstanceId {
        InstanceId(self.instance)
    }

    /// The 16 bytes of the reference (see [`awsm_abi::vmctx::funcref`]).
    pub(crate) const fn to_slot(self) -> Slot {
        Slot((self.code as u128) | ((self.type_id as u128) << 64) | ((self.instance as u128) << 96))
    }
}

macro_rules! index_handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            pub(crate) sandbox: SandboxId,
            pub(crate) index: u32,
        }
    };
}

index_handle! {
    /// A table of a sandbox.
    TableHandle
}
index_handle! {
    /// A linear memory of a sandbox.
    MemoryHandle
}
index_handle! {
    /// A global of a sandbox.
    GlobalHandle
}
index_handle! {
    /// A tag of a sandbox.
    TagHandle
}

/// A fiber of a sandbox: a stack and the call on it. Of one that has ended, the handle leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FiberId {
    pub(crate) sandbox: SandboxId,
    pub(crate) number: u64,
}

/// What an instance imports or exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extern {
    /// A function of the same sandbox.
    Function(FunctionHandle),
    /// A table of the same sandbox.
    Table(TableHandle),
    /// A linear memory of the same sandbox.
    Memory(MemoryHandle),
    /// A global of the same sandbox.
    Global(GlobalHandle),
    /// A tag of the same sandbox.
    Tag(TagHandle),
    /// A function that the host serves, of this type in the importing module's numbers: a call of it suspends the guest with [`Event::HostCall`](crate::Event::HostCall).
    /// Only ever an import; exported again, it is a [`Extern::Function`].
    HostFunction(FuncType),
}

/// A WebAssembly value. Floats are given by their bits, so that no NaN is changed on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// 32-bit integer.
    I32(i32),
    /// 64-bit integer.
    I64(i64),
    /// Bits of a 32-bit float.
    F32(u32),
    /// Bits of a 64-bit float.
    F64(u64),
    /// 128-bit vector, lane 0 in the low bits.
    V128(u128),
    /// Reference to a function, or null.
    FuncRef(Option<FuncRefHandle>),
    /// Reference to a host's value, which is nothing but a number to the sandbox, or null.
    ExternRef(Option<u32>),
    /// Reference to an exception, of which the host sees only whether there is one. It gives nothing but null.
    ExnRef {
        /// Whether it is null.
        null: bool,
    },
}

impl Value {
    /// Whether the host may give it where a value of canonical type `ty` is wanted.
    pub(crate) fn matches(&self, ty: ValType) -> bool {
        match self {
            Value::I32(_) => ty == ValType::I32,
            Value::I64(_) => ty == ValType::I64,
            Value::F32(_) => ty == ValType::F32,
            Value::F64(_) => ty == ValType::F64,
            Value::V128(_) => ty == ValType::V128,
            Value::FuncRef(None) => types::takes_null(ty, RefKind::Func),
            Value::FuncRef(Some(function)) => {
                matches!(ty, ValType::Ref(ty) if types::heap_matches(HeapType::Concrete(function.type_id), ty.heap))
            }
            Value::ExternRef(None) => types::takes_null(ty, RefKind::Extern),
            Value::ExternRef(Some(_)) => matches!(ty, ValType::Ref(ty) if ty.heap == HeapType::Extern),
            Value::ExnRef { null } => *null && types::takes_null(ty, RefKind::Exn),
        }
    }

    /// Zero, or null, of a type.
    #[must_use]
    pub const fn zero(ty: ValType) -> Value {
        match ty {
            ValType::I32 => Value::I32(0),
            ValType::I64 => Value::I64(0),
            ValType::F32 => Value::F32(0),
            ValType::F64 => Value::F64(0),
            ValType::V128 => Value::V128(0),
            ValType::Ref(ty) => match ty.heap.kind() {
                RefKind::Func => Value::FuncRef(None),
                RefKind::Extern => Value::ExternRef(None),
                RefKind::Exn => Value::ExnRef { null: true },
            },
        }
    }

    /// The slot that holds it.
    pub(crate) const fn to_slot(self) -> Slot {
        Slot(match self {
            Value::I32(value) => value as u32 as u128,
            Value::I64(value) => value as u64 as u128,
            Value::F32(bits) => bits as u128,
            Value::F64(bits) => bits as u128,
            Value::V128(bits) => bits,
            Value::FuncRef(Some(function)) => return function.to_slot(),
            // No exception comes from the host.
            Value::FuncRef(None) | Value::ExternRef(None) | Value::ExnRef { .. } => 0,
            Value::ExternRef(Some(index)) => index as u128 + 1,
        })
    }

    /// Whether it holds a function of another sandbox.
    pub(crate) fn is_foreign(&self, sandbox: SandboxId) -> bool {
        matches!(self, Value::FuncRef(Some(function)) if function.sandbox != sandbox)
    }
}
