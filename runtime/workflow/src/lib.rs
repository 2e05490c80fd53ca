//! Workflows in Amazon States Language.
//!
//! - `calendar`: when a schedule is due.
//! - `data`: values at rest: paths, templates, intrinsics, comparisons of Choice.
//! - `dataset`: what a Map reads from a store, and writes there.
//! - `definition`: what a file says, checked, with the place of every mistake.
//! - `machine`: one execution as a pure step function.
//! - `rehearse`: tests of workflows with mocked tasks and virtual time.
//! - `draw`: the graph of a definition as SVG and as text.

pub mod calendar;
pub mod data;
pub mod dataset;
pub mod definition;
pub mod draw;
pub mod machine;
pub mod rehearse;
