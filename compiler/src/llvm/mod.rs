//! All that touches LLVM below the level of single instructions: contexts, targets, attributes, metadata, passes. The only place in this
//! crate with `unsafe`.
//!
//! LLVM's C interface takes pointers whose types it does not check. inkwell closes most of that; what it leaves open is wrapped here, so that
//! the translator is safe code. Nothing here knows WebAssembly's operators.

#![allow(unsafe_code)]

mod address;
mod alias;
mod attributes;
mod cpu;
mod debug;
mod host;
mod ir;
mod keep;
mod lanes;
mod machine;
mod passes;
mod quiet;
mod shared;
mod text;
mod uses;
mod work;

pub(crate) use address::{offset_pointer, segment_pointer};
pub(crate) use alias::Access;
pub(crate) use cpu::{TargetCpu, names as cpu_names};
pub(crate) use debug::Scope;
pub(crate) use host::{say_where_it_fails, version};
pub(crate) use ir::{CallConv, Ir, Types, Visibility};
pub(crate) use machine::Machine;
pub(crate) use passes::optimise;
pub(crate) use shared::{
    AliasClass, FUNCTION_NUMBER_MODULE_SHIFT, FUNCTION_SYMBOL_INDEX_END, FUNCTION_SYMBOL_START, NO_FUNCTION, SYMBOL_MODULE_END,
};
pub(crate) use text::{parse_text, retain};
pub(crate) use work::saying_function;
