//! Workflows in Amazon States Language.
//!
//! - `data`: values at rest: paths, templates, intrinsics, comparisons of Choice.
//! - `definition`: what a file says, checked, with the place of every mistake.
//! - `machine`: one execution as a pure step function.

pub mod data;
pub mod definition;
pub mod machine;
