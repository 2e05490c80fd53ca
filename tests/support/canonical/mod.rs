//! The canonical ABI once more, for tests: how values of components lie in memory and are passed, written after the specification and without the compiler.
//!
//! * `layout`: types, and their sizes, alignments and core types;
//! * `text`: strings in their encodings;
//! * `image`: values lowered to memory and constants;
//! * `compare`: the code that compares what comes back with them.

mod compare;
mod image;
mod layout;
mod text;

pub use image::{Image, Value};
pub use layout::{Flat, Type, discriminant_bytes, fields_layout};
pub use text::{Encoding, data};
