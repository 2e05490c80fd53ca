//! How a state with the query language JSONPath moves data.
//!
//! Everything here is a pure function of JSON values. What a definition says is parsed once ([`Path`], [`ReferencePath`], [`Expression`], [`Template`], [`Rule`]);
//! what was parsed is shared between threads and applied to the [`Scope`] of one step. Nothing here knows a clock or a source of randomness: times and random numbers
//! come from the caller.
//!
//! Invariants:
//!
//! - No input, neither a definition nor a document, makes this code panic, recurse without bound, or take time or memory beyond what `limits` names.
//! - No value that is made here is nested deeper than [`VALUE_DEPTH_MAX`](limits::VALUE_DEPTH_MAX), so that it can be written as JSON and read again.
//! - A path that leads to one value borrows it from the document and clones nothing.
//!
//! Sources: the specification of the Amazon States Language (sections Paths, Payload Template, Intrinsic Functions, Choice State), the developer guide of AWS Step
//! Functions, and Jayway JsonPath, whose dialect both name.

pub mod choice;
mod cursor;
pub mod error;
pub mod expression;
pub mod intrinsic;
pub mod limits;
mod measure;
mod number;
pub mod path;
pub mod scope;
pub mod template;
pub mod timestamp;

pub use self::choice::{Rule, RuleError};
pub use self::error::{DataError, ErrorName};
pub use self::expression::Expression;
pub use self::intrinsic::Intrinsic;
pub(crate) use self::measure::{Excess, json_bytes};
pub use self::path::{Path, PathError, ReadError, ReferencePath};
pub use self::scope::{Limits, Scope, Variables};
pub use self::template::{Template, TemplateError};
pub use self::timestamp::Timestamp;
