//! The module that holds what the canonical ABI keeps between calls of a component.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use awsm_abi::component::{CANCEL, CANONICAL, CLOSE, LOOK, STACKS_MAX, SWITCH, Violation, WAIT, table};

use super::{MEMORY, signature};

/// Offset of the rows of resource types in the state's memory; `handles.wat` has it, too.
const ROWS_START: u32 = 16;
/// Size of one.
const ROW_BYTES: u32 = 16;
/// Size of what is known of a call in progress.
const CALL_BYTES: u32 = 8;
/// Size of what is known of a component instance with tasks.
const INSTANCE_BYTES: u32 = 32;
/// Size of what is known of a stack.
const STACK_BYTES: u32 = 96;
/// Size of a row of streams or futures, or of error contexts.
const END_ROW_BYTES: u32 = 8;
/// Pages that the state's memory may have.
const PAGES_MAX: u32 = 2048;
/// Size of a page.
const PAGE_BYTES: u32 = 1 << 16;

/// What the state has to hold.
#[derive(Debug, Default)]
pub(in super::super) struct State {
    /// Number of component instances.
    pub(in super::super) instances: u32,
    /// Resource types, as they are numbered in the component.
    pub(in super::super) rows: Vec<Row>,
    /// Of a component with tasks.
    pub(in super::super) concurrency: Option<Concurrency>,
}

/// A resource type as one component instance sees it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Row {
    /// The component instance.
    pub(in super::super) instance: u32,
    /// Number of the resource.
    pub(in super::super) resource: u32,
    /// Whether the instance defines it.
    pub(in super::super) is_home: bool,
}

/// What the state holds of tasks, streams and futures.
#[derive(Debug, Default)]
pub(in super::super) struct Concurrency {
    /// Types of streams, futures and error contexts, as they are numbered in the component: the instance that sees them, and the type of entries of its
    /// handle table.
    pub(in super::super) streams: Vec<(u32, u32)>,
    pub(in super::super) futures: Vec<(u32, u32)>,
    pub(in super::super) errors: Vec<(u32, u32)>,
    /// Whether the component calls async functions of the host, or shares streams and futures with it.
    pub(in super::super) has_operations: bool,
    /// Instances whose code may wait inside of a call.
    pub(in super::super) may_wait: BTreeSet<u32>,
    /// How many functions the tasks of the component have that are called by their number.
    pub(in super::super) entries: u32,
}

impl State {
    /// Address of a component instance's handle table.
    pub(in super::super) fn table(&self, instance: u32) -> u32 {
        ROWS_START + self.rows.len() as u32 * ROW_BYTES + instance * table::BYTES as u32
    }

    /// Address of the record of an instance with tasks.
    pub(in super::super) fn instance(&self, instance: u32) -> u32 {
        self.calls() + instance * INSTANCE_BYTES
    }

    /// Where calls in progress are described, or instances with tasks.
    fn calls(&self) -> u32 {
        self.table(self.instances)
    }

    /// Where free memory begins.
    fn free(&self) -> u32 {
        let end = match &self.concurrency {
            // The most calls in progress: an instance is not entered twice. The first place stands for none.
            None => self.calls() + (self.instances + 2) * CALL_BYTES,
            Some(concurrency) => self.stack(concurrency) + STACK_BYTES,
        };
        end.next_multiple_of(16)
    }

    /// Where rows of streams, futures and error contexts begin.
    fn end_rows(&self, _: &Concurrency) -> u32 {
        self.instance(self.instances)
    }

    /// Where the stack is described on which all begins.
    fn stack(&self, concurrency: &Concurrency) -> u32 {
        self.end_rows(concurrency) + concurrency.rows() * END_ROW_BYTES
    }

    /// The module. `traps` gives for each number with which adapters trap the [`Violation`] that it is.
    pub(in super::super) fn module(&self, traps: &[(u32, Violation)]) -> String {
        let mut text = String::from("(module $state\n");
        if self.concurrency.as_ref().is_some_and(|concurrency| !concurrency.may_wait.is_empty()) {
            let _ = writeln!(text, "(import \"{CANONICAL}\" \"{SWITCH}\" (func $host_switch (param i32)))");
        }
        if self.concurrency.as_ref().is_some_and(|concurrency| concurrency.has_operations) {
            // Imports come before all else.
            let _ = writeln!(
                text,
                "(import \"{CANONICAL}\" \"{WAIT}\" (func $host_wait (result i32)))
                 (import \"{CANONICAL}\" \"{LOOK}\" (func $host_look (result i32)))
                 (import \"{CANONICAL}\" \"{CANCEL}\" (func $host_cancel (param i32)))
                 (import \"{CANONICAL}\" \"{CLOSE}\" (func $host_close (param i32)))"
            );
        }
        text.push_str(include_str!("../state/handles.wat"));
        let pages = self.free().div_ceil(PAGE_BYTES);
        let _ = writeln!(text, "(memory (export \"{MEMORY}\") {pages} {PAGES_MAX})");
        // Not before the component is entered: no start function may wait.
        let _ = writeln!(text, "(global $may_block (export \"{MAY_BLOCK}\") (mut i32) (i32.const 0))");
        for instance in 0..self.instances {
            let _ = writeln!(text, "(global (export \"{}\") (mut i32) (i32.const 1))", flags(instance));
        }
        for (index, row) in self.rows.iter().enumerate() {
            let at = ROWS_START + index as u32 * ROW_BYTES;
            let words = [self.table(row.instance), row.resource, u32::from(row.is_home)];
            let _ = writeln!(text, "(data (i32.const {at}) \"{}\")", bytes(words));
        }
        for instance in 0..self.instances {
            let at = self.table(instance) + table::LENGTH as u32;
            let _ = writeln!(text, "(data (i32.const {at}) \"{}\")", bytes([1]));
        }
        let call = match &self.concurrency {
            None => {
                text.push_str(include_str!("../state/calls.wat"));
                let _ =
                    writeln!(text, "(global $calls_last i32 (i32.const {}))", self.calls() + (self.instances + 1) * CALL_BYTES);
                self.calls()
            }
            Some(concurrency) => {
                self.concurrency(concurrency, &mut text);
                0
            }
        };
        let _ = writeln!(text, "(data (i32.const 0) \"{}\")", bytes([self.free(), 0, call]));
        text.push_str("(func (export \"trap of adapter\") (param $code i32)\n");
        for &(code, violation) in traps {
            let number = violation as u32;
            let _ = writeln!(text, "(if (i32.eq (local.get $code) (i32.const {code})) (then (call $trap (i32.const {number}))))");
        }
        let _ = writeln!(text, "(call $trap (i32.const {})))", Violation::Adapter as u32);
        text.push_str(")\n");
        text
    }

    /// What a component with tasks has besides.
    fn concurrency(&self, concurrency: &Concurrency, text: &mut String) {
        text.push_str(include_str!("../state/tasks.wat"));
        text.push_str(include_str!("../state/stacks.wat"));
        text.push_str(include_str!("../state/streams.wat"));
        let _ = writeln!(text, "(global $stack (mut i32) (i32.const {}))", self.stack(concurrency));
        let _ = writeln!(text, "(global $stacks_max i32 (i32.const {STACKS_MAX}))");
        if concurrency.may_wait.is_empty() {
            text.push_str("(func $host_switch (param i32))\n");
        }
        let _ = writeln!(text, "(table $entries (export \"{ENTRIES}\") {} funcref)", concurrency.entries);
        let address = |base: u32, bytes: u32| format!("(i32.add (i32.const {base}) (i32.mul (local.get 0) (i32.const {bytes})))");
        let instance_at = address(self.calls(), INSTANCE_BYTES);
        let _ = writeln!(text, "(func $instance_at (param i32) (result i32) {instance_at})");
        for instance in 0..self.instances {
            let may_wait = u32::from(concurrency.may_wait.contains(&instance));
            let words = [self.table(instance), 0, 0, 0, 0, may_wait];
            let _ = writeln!(text, "(data (i32.const {}) \"{}\")", self.instance(instance), bytes(words));
        }
        let mut at = self.end_rows(concurrency);
        let kinds = [("stream", &concurrency.streams), ("future", &concurrency.futures), ("error", &concurrency.errors)];
        for (kind, rows) in kinds {
            let row_at = address(at, END_ROW_BYTES);
            let _ = writeln!(text, "(func ${kind}_row (param i32) (result i32) {row_at})");
            for &(instance, entry) in rows {
                let _ = writeln!(text, "(data (i32.const {at}) \"{}\")", bytes([self.instance(instance), entry]));
                at += END_ROW_BYTES;
            }
        }
        for kind in ["stream", "future"] {
            let ty = signature(&[awsm_abi::types::ValType::I32; 3], &[awsm_abi::types::ValType::I32]);
            let row = |index: u32| format!("(call ${kind}_row (local.get {index}))");
            let _ = writeln!(
                text,
                "(func (export \"transfer {kind}\"){ty}
                   (call $end_transfer (local.get 0)
                     (i32.load {from}) (i32.load offset=4 {from}) (i32.load {to}) (i32.load offset=4 {to})))",
                from = row(1),
                to = row(2),
            );
        }
        let _ = writeln!(
            text,
            "(func (export \"transfer error\") (param i32 i32 i32) (result i32)
               (call $error_transfer (i32.load (call $error_row (local.get 1))) (i32.load (call $error_row (local.get 2))) (local.get 0)))"
        );
        if !concurrency.has_operations {
            text.push_str(NO_OPERATIONS);
            return;
        }
        text.push_str(include_str!("../state/operations.wat"));
        text.push_str(include_str!("../state/outside.wat"));
    }
}

impl Concurrency {
    /// How many rows of streams, futures and error contexts there are.
    fn rows(&self) -> u32 {
        (self.streams.len() + self.futures.len() + self.errors.len()) as u32
    }
}

/// In the place of `operations.wat` and `outside.wat`: nothing is waited for outside, which is a deadlock.
const NO_OPERATIONS: &str = "(func $wait_for_host (call $trap (i32.const 20)))
(func $look_at_host)
(func $cancel_operation (param i32))
(func $cancel_operation_of (param i32))
(func $copy_outside (param i32))
(func $close_outside (param i32))
";

/// Export of the state: the functions of tasks that are called by number.
pub(super) const ENTRIES: &str = "entries";

/// Export of the state: whether the function that runs may wait in a call.
pub(in super::super) const MAY_BLOCK: &str = "may block";

/// Export of the state: the flag of a component instance, whether it may call out.
pub(in super::super) fn flags(instance: u32) -> String {
    format!("flags {instance}")
}

/// Words as a string of the text format.
fn bytes(words: impl IntoIterator<Item = u32>) -> String {
    let mut text = String::new();
    for byte in words.into_iter().flat_map(u32::to_le_bytes) {
        let _ = write!(text, "\\{byte:02x}");
    }
    text
}
