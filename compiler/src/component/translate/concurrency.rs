//! What the state has to know of tasks, streams and futures.

use std::collections::BTreeSet;

use wasmtime_environ::component::{
    RuntimeComponentInstanceIndex, TypeComponentLocalErrorContextTableIndex, TypeFutureTableIndex, TypeStreamTableIndex,
};

use super::super::glue::Concurrency;
use super::Builder;
use super::ends::{READABLE_FUTURE, READABLE_STREAM};

/// The type of entries of handle tables that are error contexts; `tasks.wat` has it, too.
const ERROR_CONTEXT: u32 = 0x8000_0003;

impl Builder<'_> {
    /// What the state has to know of streams, futures and error contexts.
    pub(super) fn concurrency(&self) -> Concurrency {
        let streams = (0..self.component.num_stream_tables as u32).map(TypeStreamTableIndex::from_u32).map(|index| {
            let table = &self.types[index];
            (table.instance.as_u32(), READABLE_STREAM | table.ty.as_u32())
        });
        let futures = (0..self.component.num_future_tables as u32).map(TypeFutureTableIndex::from_u32).map(|index| {
            let table = &self.types[index];
            (table.instance.as_u32(), READABLE_FUTURE | table.ty.as_u32())
        });
        let errors = (0..self.component.num_error_context_tables as u32)
            .map(TypeComponentLocalErrorContextTableIndex::from_u32)
            .map(|index| (self.types[index].instance.as_u32(), ERROR_CONTEXT));
        Concurrency {
            streams: streams.collect(),
            futures: futures.collect(),
            errors: errors.collect(),
            has_operations: false,
            may_wait: BTreeSet::new(),
            entries: self.copy_entries() + self.copiers.entries(),
        }
    }

    /// The first of so many numbers of functions that are called by number.
    pub(super) fn new_entries(&mut self, count: u32) -> u32 {
        let Some(concurrency) = &mut self.state.concurrency else { return 0 };
        concurrency.entries += count;
        concurrency.entries - count
    }

    /// Code of that instance may wait inside of a call.
    pub(super) fn may_wait(&mut self, instance: u32) {
        if let Some(concurrency) = &mut self.state.concurrency {
            concurrency.may_wait.insert(instance);
        }
    }

    /// Address of an instance's record in the state.
    pub(super) fn record(&self, instance: RuntimeComponentInstanceIndex) -> u32 {
        self.state.instance(instance.as_u32())
    }

    /// How many functions copy numbers from one memory to another: they come first, and behind them those that copy other values.
    pub(super) fn copy_entries(&self) -> u32 {
        self.component.num_runtime_memories.pow(2)
    }
}
