//! Workflows in Amazon States Language.
//!
//! - `data`: values at rest: paths, templates, intrinsics, comparisons of Choice.

pub mod data;
