//! What the passes in C++ know as the code in Rust does: alias classes, names of passes, and symbols of functions. Defined here, once.
//!
//! `build.rs` compiles this file too, and writes the header `shared.h` from it and from `awsm-abi` (trap codes, limits). So a name or a number
//! that only one side has does not compile, and one that changes here changes there.

/// Defines an enumeration whose variants are named as in the code.
macro_rules! named {
    ($(#[$doc:meta])* $enum:ident { $($(#[$variant_doc:meta])* $variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub(crate) enum $enum { $($(#[$variant_doc])* $variant),* }

        impl $enum {
            /// Each of them, in the order of their numbers.
            pub(crate) const ALL: &[$enum] = &[$($enum::$variant),*];

            /// Its name, in metadata and in C++.
            pub(crate) const fn name(self) -> &'static str {
                match self { $($enum::$variant => stringify!($variant)),* }
            }
        }
    };
}

named! {
    /// Kinds of memory that generated code sees, as far as aliasing is concerned (see [`super::alias`]).
    AliasClass {
        /// The fixed part of a vmctx: never written while code runs.
        Context,
        /// A cell of a global that the instance defines.
        Global,
        /// A cell of an imported global.
        ImportedGlobal,
        /// A memory's record.
        MemoryRecord,
        /// The cell that says where the segment register leads.
        Segment,
        /// A table's record.
        TableRecord,
        /// A table's elements. Two imported tables may be one, so that all tables share the class.
        TableElement,
        /// Arguments of a call that are passed in memory.
        Arguments,
        /// Results of a call that are returned in memory.
        Results,
        /// The record of exceptions.
        ExceptionRecord,
        /// Exceptions.
        Exception,
        /// Contents of a linear memory that the instance defines: a class of its own for each, named with its index.
        Memory,
        /// Contents of an imported linear memory. Two imported ones may be one.
        ImportedMemory,
    }
}

/// What stands between the name of an alias class and the index of one of several, if it has one.
pub(crate) const ALIAS_INDEX_START: &str = "(";

/// What ends that index.
pub(crate) const ALIAS_INDEX_END: &str = ")";

/// Defines our own passes: the macro `pass!`, which gives their names as literals for pipelines, and [`PASSES`], by their classes in C++.
macro_rules! passes {
    ($($class:ident = $name:literal),* $(,)?) => {
        /// Our own passes: the class in C++, and the name in pipelines.
        #[allow(dead_code, reason = "build.rs alone needs it")]
        pub(crate) const PASSES: &[(&str, &str)] = &[$((stringify!($class), $name)),*];

        #[allow(unused_macros, reason = "build.rs needs none")]
        macro_rules! pass {
            $(($class) => { $name };)*
        }
        #[allow(unused_imports, reason = "build.rs needs none")]
        pub(crate) use pass;
    };
}

passes! {
    ImpliedChecksPass = "awsm-implied-checks",
    NeighbourChecksPass = "awsm-neighbour-checks",
    LoopChecksPass = "awsm-loop-checks",
    AffinePass = "awsm-affine",
    RerollPass = "awsm-reroll",
    SlpPass = "awsm-slp",
}

/// Begins the symbol of a function that a module defines; its index follows: `wasm[7]::name`, or, of another module than the first, that of the
/// module and then its own: `wasm[1:7]::name`.
pub(crate) const FUNCTION_SYMBOL_START: &str = "wasm[";

/// What ends a module's index.
pub(crate) const SYMBOL_MODULE_END: &str = ":";

/// What stands between a function's index and its name.
pub(crate) const FUNCTION_SYMBOL_INDEX_END: &str = "]::";

/// In a function's number, which is its index: how far to the left its module's index stands.
pub(crate) const FUNCTION_NUMBER_MODULE_SHIFT: u32 = 32;

/// In place of a function's number: none of the program's.
pub(crate) const NO_FUNCTION: u64 = u64::MAX;
