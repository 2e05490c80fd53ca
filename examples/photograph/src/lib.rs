//! What functions that take a photograph share: the photograph itself, from a JPEG within limits, and how a function meets its caller.
//!
//! Knows nothing of WebAssembly, Sledge or HTTP, and of none of the functions.

pub mod function;
mod picture;

pub use picture::{Colours, Error, Photograph};
