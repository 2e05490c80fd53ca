//! JSONata, the query language of Amazon States Language, for a server whose tenants may be hostile (<https://docs.jsonata.org>, version 2.2).
//!
//! ```text
//!   source --parse--> Expression --evaluate(input, bindings, environment)--> JSON, or nothing
//! ```
//!
//! * `parse`, `ast`, `signature`: source into trees; [`variables`]: what an expression refers to;
//! * `evaluate`, `value`, `text`, `functions`: the interpreter; `regex`, `number`: ECMAScript's regular expressions and numbers; `json`: values into JSON;
//! * [`limits`], `meter`: what an evaluation may use, and has used; [`error`].
//!
//! This crate reads no clock, has no state beside tables that never change, and does no I/O: the caller passes time and seed in. So an evaluation gives the same result, or the same
//! error, wherever it runs. An expression cannot use more than its [`Limits`], whatever it and its input are: steps, nesting and memory are counted.

//!
//! Differences from jsonata-js 2.2, which its own test suite does not show:
//! * a predicate on nothing gives nothing, where jsonata-js may give an array of nulls (`missing[[0, 1]]`), and a transform leaves what is no object as it is;
//! * an infinite number and a function are errors where a result holds them (`D1001`, `U1004`), and half a surrogate pair is one in a string (`S0104`);
//! * a regular expression takes code points where `.` or a class takes half a surrogate pair there; after `(`, `[` and `{`, `/` begins one;
//! * objects keep the order of their fields even if these are integers; a transform sees a value as it is when it reaches it, and not what aliases of it become later;
//! * dates that do not exist (`2017-02-30`) are errors.

#![forbid(unsafe_code)]

mod ast;
pub mod error;
mod evaluate;
mod expression;
mod functions;
mod json;
pub mod limits;
mod meter;
mod number;
mod parse;
mod programs;
mod regex;
mod signature;
mod text;
mod value;
pub mod variables;

pub use error::Error;
pub use expression::{Environment, Expression};
pub use functions::Dialect;
pub use limits::Limits;
pub use variables::Reference;
