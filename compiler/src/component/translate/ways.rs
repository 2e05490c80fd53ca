//! The ways that readable ends of streams and futures can take from one instance to another, as they are to be found in the code of adapters.

use std::collections::{BTreeMap, BTreeSet};

use wasmtime_environ::PrimaryMap;
use wasmtime_environ::component::{
    ComponentTypesBuilder, CoreDef, InterfaceType, Trampoline, TrampolineIndex, TypeFutureTableIndex, TypeStreamTableIndex,
};
use wasmtime_environ::fact::Import;
use wasmtime_environ::wasmparser::{Operator, Parser, Payload};

use super::unsupported;
use crate::error::CompileError;

/// The type of a stream or future, as one instance sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    Stream(TypeStreamTableIndex),
    Future(TypeFutureTableIndex),
}

impl Table {
    /// What it carries.
    pub(super) fn payload(self, types: &ComponentTypesBuilder) -> Option<InterfaceType> {
        match self {
            Table::Stream(index) => types[types[index].ty].payload,
            Table::Future(index) => types[types[index].ty].payload,
        }
    }
}

/// What a function that an adapter imports passes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    Nothing,
    Stream,
    Future,
}

impl Passed {
    pub(super) fn of(def: &CoreDef, trampolines: &PrimaryMap<TrampolineIndex, Trampoline>) -> Passed {
        match def {
            CoreDef::Trampoline(index) => match trampolines[*index] {
                Trampoline::StreamTransfer => Passed::Stream,
                Trampoline::FutureTransfer => Passed::Future,
                _ => Passed::Nothing,
            },
            _ => Passed::Nothing,
        }
    }

    pub(super) const fn of_import(import: &Import) -> Passed {
        match import {
            Import::StreamTransfer => Passed::Stream,
            Import::FutureTransfer => Passed::Future,
            _ => Passed::Nothing,
        }
    }
}

/// The ways that readable ends can take: for each type in an instance those in others, as which adapters pass them on.
#[derive(Debug, Default)]
pub(super) struct Ways(BTreeMap<Table, BTreeSet<Table>>);

impl Ways {
    /// Adds those of an adapter module, by the functions that it imports. It passes both types as numbers that are known, just before the call.
    pub(super) fn add(&mut self, wasm: &[u8], functions: &[Passed]) -> Result<(), CompileError> {
        if !functions.iter().any(|function| *function != Passed::Nothing) {
            return Ok(());
        }
        let unknown = |_| unsupported("an adapter of an unknown form (a bug)");
        for payload in Parser::new(0).parse_all(wasm) {
            let Payload::CodeSectionEntry(body) = payload.map_err(unknown)? else { continue };
            let mut last = [None; 2];
            for operator in body.get_operators_reader().map_err(unknown)? {
                let mut number = None;
                match operator.map_err(unknown)? {
                    Operator::I32Const { value } => number = Some(value as u32),
                    Operator::Call { function_index } => {
                        let table = match functions.get(function_index as usize) {
                            Some(Passed::Stream) => |number| Table::Stream(TypeStreamTableIndex::from_u32(number)),
                            Some(Passed::Future) => |number| Table::Future(TypeFutureTableIndex::from_u32(number)),
                            _ => {
                                last = [None; 2];
                                continue;
                            }
                        };
                        let [Some(from), Some(to)] = last else {
                            return Err(unsupported("an adapter of an unknown form (a bug)"));
                        };
                        self.0.entry(table(from)).or_default().insert(table(to));
                    }
                    _ => {}
                }
                last = [last[1], number];
            }
        }
        Ok(())
    }

    /// What can be reached from a type.
    pub(super) fn from(&self, table: Table) -> BTreeSet<Table> {
        let mut reached = BTreeSet::from([table]);
        let mut left = vec![table];
        while let Some(at) = left.pop() {
            let next = self.0.get(&at).into_iter().flatten();
            left.extend(next.filter(|table| reached.insert(**table)));
        }
        reached
    }
}
