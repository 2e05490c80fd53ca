//! Trap codes: the reasons for which a guest's execution ends early.
//!
//! Generated code states the reason of an explicit trap in the trapping instruction itself (LLVM's `ubsantrap`: on x86-64
//! `ud1l CODE(%eax), %eax`, raising SIGILL; on AArch64 `brk #(0x5500 | CODE)`, raising SIGTRAP), so that no optimisation can part
//! a trap from its reason. Implicit traps (faulting accesses) have theirs from the address that faulted. The artifact's
//! [trap table](crate::descriptor::TrapRow) adds where in the WebAssembly module it happened.

use core::fmt;

/// Why a guest trapped. The numbers are part of the ABI. Zero is never a trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TrapCode {
    /// The `unreachable` instruction was executed.
    Unreachable = 1,
    /// A load, store or bulk operation outside a linear memory.
    MemoryOutOfBounds = 2,
    /// A table access or bulk operation outside a table or segment.
    TableOutOfBounds = 3,
    /// `call_indirect` with an index outside its table.
    UndefinedElement = 4,
    /// `call_indirect` through a null table entry.
    UninitializedElement = 5,
    /// `call_indirect` to a function of another type.
    IndirectCallTypeMismatch = 6,
    /// Integer division or remainder by zero.
    IntegerDivideByZero = 7,
    /// Signed division overflow, or a float out of the integer's range.
    IntegerOverflow = 8,
    /// Conversion of NaN to an integer.
    InvalidConversionToInteger = 9,
    /// The native stack of the sandbox is used up.
    StackExhausted = 10,
    /// A null reference where one was needed.
    NullReference = 11,
    /// An atomic access that is not naturally aligned.
    UnalignedAtomic = 12,
    /// An exception that no handler caught.
    UncaughtException = 13,
    /// `memory.atomic.wait` on a memory that is not shared: nothing could ever end it.
    ExpectedSharedMemory = 14,
    /// More exceptions are alive than the sandbox has memory for.
    ExceptionsExhausted = 15,
    /// An illegal instruction or fault in guest code that matches no other reason: a bug of the compiler, contained.
    Internal = 63,
}

impl TrapCode {
    /// Every code, for tables and tests.
    pub const ALL: [TrapCode; 16] = [
        TrapCode::Unreachable,
        TrapCode::MemoryOutOfBounds,
        TrapCode::TableOutOfBounds,
        TrapCode::UndefinedElement,
        TrapCode::UninitializedElement,
        TrapCode::IndirectCallTypeMismatch,
        TrapCode::IntegerDivideByZero,
        TrapCode::IntegerOverflow,
        TrapCode::InvalidConversionToInteger,
        TrapCode::StackExhausted,
        TrapCode::NullReference,
        TrapCode::UnalignedAtomic,
        TrapCode::UncaughtException,
        TrapCode::ExpectedSharedMemory,
        TrapCode::ExceptionsExhausted,
        TrapCode::Internal,
    ];

    /// The code whose number this is.
    #[must_use]
    pub fn from_number(number: u8) -> Option<TrapCode> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// The number that stands in the trapping instruction and in the trap table.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The message of the official test suite for this trap; also what users read.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            TrapCode::Unreachable => "unreachable",
            TrapCode::MemoryOutOfBounds => "out of bounds memory access",
            TrapCode::TableOutOfBounds => "out of bounds table access",
            TrapCode::UndefinedElement => "undefined element",
            TrapCode::UninitializedElement => "uninitialized element",
            TrapCode::IndirectCallTypeMismatch => "indirect call type mismatch",
            TrapCode::IntegerDivideByZero => "integer divide by zero",
            TrapCode::IntegerOverflow => "integer overflow",
            TrapCode::InvalidConversionToInteger => "invalid conversion to integer",
            TrapCode::StackExhausted => "call stack exhausted",
            TrapCode::NullReference => "null reference",
            TrapCode::UnalignedAtomic => "unaligned atomic",
            TrapCode::UncaughtException => "uncaught exception",
            TrapCode::ExpectedSharedMemory => "expected shared memory",
            TrapCode::ExceptionsExhausted => "exception memory exhausted",
            TrapCode::Internal => "internal compiler error",
        }
    }

    /// The code as an identifier for machines: `memory_out_of_bounds`.
    #[must_use]
    pub const fn identifier(self) -> &'static str {
        match self {
            TrapCode::Unreachable => "unreachable",
            TrapCode::MemoryOutOfBounds => "memory_out_of_bounds",
            TrapCode::TableOutOfBounds => "table_out_of_bounds",
            TrapCode::UndefinedElement => "undefined_element",
            TrapCode::UninitializedElement => "uninitialized_element",
            TrapCode::IndirectCallTypeMismatch => "indirect_call_type_mismatch",
            TrapCode::IntegerDivideByZero => "integer_divide_by_zero",
            TrapCode::IntegerOverflow => "integer_overflow",
            TrapCode::InvalidConversionToInteger => "invalid_conversion_to_integer",
            TrapCode::StackExhausted => "stack_exhausted",
            TrapCode::NullReference => "null_reference",
            TrapCode::UnalignedAtomic => "unaligned_atomic",
            TrapCode::UncaughtException => "uncaught_exception",
            TrapCode::ExpectedSharedMemory => "expected_shared_memory",
            TrapCode::ExceptionsExhausted => "exceptions_exhausted",
            TrapCode::Internal => "internal",
        }
    }
}

impl fmt::Display for TrapCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_zero_is_no_trap() {
        for code in TrapCode::ALL {
            assert_eq!(TrapCode::from_number(code.number()), Some(code));
        }
        assert_eq!(TrapCode::from_number(0), None);
    }
}
