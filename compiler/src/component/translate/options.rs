//! The options with which functions are lifted and lowered, as the state and the host number them.

use awsm_abi::component as abi;
use wasmtime_environ::component::{CanonicalOptions, CanonicalOptionsDataModel, RuntimeReallocIndex, StringEncoding};

/// A number for options of `task.return`: the memory, if any, and how strings are encoded.
pub(super) fn return_options(memory: Option<u32>, encoding: u32) -> u32 {
    memory.map_or(0, |index| index + 1) << 2 | encoding
}

/// How strings are encoded, as adapters and the host number it.
pub(super) const fn encoding(encoding: StringEncoding) -> u32 {
    match encoding {
        StringEncoding::Utf8 => abi::strings::UTF8,
        StringEncoding::Utf16 => abi::strings::UTF16,
        StringEncoding::CompactUtf16 => abi::strings::LATIN1_OR_UTF16,
    }
}

/// What allocates memory for an instance, if it named anything.
pub(super) const fn realloc(options: &CanonicalOptions) -> Option<RuntimeReallocIndex> {
    match options.data_model {
        CanonicalOptionsDataModel::LinearMemory(options) => options.realloc,
        CanonicalOptionsDataModel::Gc {} => None,
    }
}
