//! Glue between tasks: what adapters call when one side of a call is asynchronous, and `task.return`.

use std::fmt::Write as _;

use awsm_abi::component::Violation;
use awsm_abi::types::ValType::{self, I32};

use super::state::ENTRIES;
use super::{Glue, Signature, Source, signature};

/// Offset of a task's parameters in its record; `tasks.wat` describes it.
const PARAMS: u32 = 80;
/// Offset of its flat result.
pub(super) const RESULT: u32 = 64;
/// Offset of the address where the caller wants its result.
const RESULT_POINTER: u32 = 60;
/// Offset of the record of the instance that calls.
const CALLER: u32 = 224;
/// Offset of the number of its first function.
const ENTRY: u32 = 28;

/// Functions of a task that are called by number: how it begins, what takes its result, its callback.
pub(in super::super) const ENTRIES_PER_ADAPTER: u32 = 3;

/// A call between instances of which one side is asynchronous, as its adapter has it.
#[derive(Debug)]
pub(in super::super) struct Adapter {
    /// Address of the record of the instance that calls, and the instance itself.
    pub(in super::super) caller: u32,
    pub(in super::super) caller_index: u32,
    /// Address of the record of the instance that is called.
    pub(in super::super) callee_instance: u32,
    /// The type of its result, and the options with which it returns that.
    pub(in super::super) result_type: u32,
    pub(in super::super) options: u32,
    /// Whether the function's type is async.
    pub(in super::super) is_async_type: bool,
    /// Whether what is called is lifted as async.
    pub(in super::super) is_lifted_async: bool,
    /// What the caller passes.
    pub(in super::super) params: Vec<ValType>,
    /// Whether the last of what the caller passes is where the result goes.
    pub(in super::super) has_result_pointer: bool,
    /// Number of its first function.
    pub(in super::super) entry: u32,
    /// What is called.
    pub(in super::super) callee: Source,
    pub(in super::super) callee_type: Signature,
    pub(in super::super) callback: Option<Source>,
    pub(in super::super) post_return: Option<Source>,
}

/// Flags of tasks, as `tasks.wat` reads them: lifted as async; alone in the instance; of an async type.
pub(super) const LIFTED_ASYNC: u32 = 1;
pub(super) const ALONE: u32 = 2;
pub(super) const ASYNC_TYPE: u32 = 4;

impl Adapter {
    /// Flags of its tasks: they are alone in the instance, unless they keep a stack.
    fn flags(&self) -> u32 {
        let keeps_stack = self.is_lifted_async && self.callback.is_none();
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        flag(self.is_lifted_async, LIFTED_ASYNC) | flag(!keeps_stack, ALONE) | flag(self.is_async_type, ASYNC_TYPE)
    }
}

impl Glue {
    /// The state's functions by number.
    pub(super) fn entries(&mut self) -> String {
        self.link(&Source::state(ENTRIES), |name| format!("(table {name} 0 funcref)"))
    }

    /// What an adapter calls first: it makes the task. Its export.
    pub(in super::super) fn prepare(&mut self, adapter: &Adapter) -> String {
        let leave = self.leave(adapter.caller_index);
        let new = self.function(&Source::state("task new"), &[I32; 5], &[I32]);
        let Adapter { callee_instance, entry, result_type, options, .. } = adapter;
        let flags = adapter.flags();
        let mut body = format!(
            "{leave}(local.set $task
               (call {new} (i32.const {callee_instance}) (i32.const {entry}) (i32.const {flags})
                 (i32.const {result_type}) (i32.const {options})))\n"
        );
        for (index, ty) in adapter.params.iter().enumerate() {
            // Two functions and six numbers come before, which are known here.
            let (at, local) = (PARAMS as usize + 8 * index, 8 + index);
            let _ = writeln!(body, "({ty}.store offset={at} (local.get $task) (local.get {local}))");
        }
        if adapter.has_result_pointer {
            let last = 7 + adapter.params.len();
            let _ = writeln!(body, "(i32.store offset={RESULT_POINTER} (local.get $task) (local.get {last}))");
        }
        let prepared = self.global(&Source::state("prepared"));
        let caller = adapter.caller;
        let _ = writeln!(body, "(i32.store offset={CALLER} (local.get $task) (i32.const {caller}))");
        let _ = writeln!(body, "(global.set {prepared} (local.get $task))");
        let name = self.next_export();
        let params = signature(&adapter.params, &[]);
        let _ = writeln!(
            self.functions,
            "(func (export \"{name}\") (param funcref funcref i32 i32 i32 i32 i32 i32){params} (local $task i32)\n{body})"
        );
        name
    }

    /// What an adapter of a synchronous caller calls then: it runs the task that was made until it has returned.
    pub(in super::super) fn run_task(&mut self, results: &[ValType]) -> String {
        let name = self.next_export();
        let run = self.function(&Source::state("task run"), &[I32], &[]);
        let finish = self.function(&Source::state("task finish"), &[I32], &[]);
        let prepared = self.global(&Source::state("prepared"));
        let ty = signature(&[], results);
        // They are read before the record is given back.
        let loads: String = results.iter().map(|ty| format!("({ty}.load offset={RESULT} (local.get $task))")).collect();
        let _ = writeln!(
            self.functions,
            "(func (export \"{name}\") (param funcref i32){ty} (local $task i32)
               (local.set $task (global.get {prepared}))
               (call {run} (local.get $task))
               {loads}
               (call {finish} (local.get $task)))"
        );
        name
    }

    /// The functions of an adapter's tasks, by their numbers: a module that comes after the adapter, whose functions it calls. `start` copies parameters,
    /// `give_back` the result. `throws`: whether something may be thrown.
    pub(in super::super) fn task_functions(
        &mut self,
        adapter: &Adapter,
        start: &(Source, Signature),
        give_back: &(Source, Signature),
        throws: bool,
    ) {
        let start_name = self.function(&start.0, &start.1.params, &start.1.results);
        let return_name = self.function(&give_back.0, &give_back.1.params, &give_back.1.results);
        let callee = self.function(&adapter.callee, &adapter.callee_type.params, &adapter.callee_type.results);
        let resolve = self.function(&Source::state("task resolve"), &[I32; 2], &[]);
        let loads = start.1.params.iter().enumerate();
        let loads: String =
            loads.map(|(index, ty)| format!("({ty}.load offset={} (local.get $task))", PARAMS as usize + 8 * index)).collect();
        let call = format!("(call {callee} (call {start_name} {loads}))");
        let pointer = match adapter.has_result_pointer {
            true => format!("(i32.load offset={RESULT_POINTER} (local.get $task))"),
            false => String::new(),
        };
        let given = give_back.1.params.len() - usize::from(adapter.has_result_pointer);
        let returned = &give_back.1.params[..given];
        let store = match give_back.1.results.as_slice() {
            [] => None,
            [ty, ..] => Some((*ty, format!("({ty}.store offset={RESULT} (local.get $task) (local.get $result))"))),
        };
        let keep = |call: String| match &store {
            None => call,
            Some((_, store)) => format!("(local.set $result {call}) {store}"),
        };
        let result_local = store.as_ref().map_or(String::new(), |(ty, _)| format!("(local $result {ty})"));
        let arguments = |first: usize| (0..given).map(|index| format!("(local.get {})", first + index)).collect::<String>();
        // How it begins.
        let run = if adapter.callback.is_some() {
            let body = self.barrier(throws, "(result i32)", call);
            format!("(func $run (param $task i32) (result i32) {body})")
        } else if adapter.is_lifted_async {
            // It waits inside of calls, and is over when it returns.
            let body = self.barrier(throws, "", call);
            format!("(func $run (param $task i32) (result i32) {body} (i32.const 0))")
        } else {
            let locals: String = adapter.callee_type.results.iter().map(|ty| format!("(local {ty})")).collect();
            let count = adapter.callee_type.results.len();
            let sets: String = (0..count).rev().map(|index| format!("(local.set {})", 1 + index)).collect();
            let values: String = (0..count).map(|index| format!("(local.get {})", 1 + index)).collect();
            let returned = keep(format!("(call {return_name} {} {pointer})", arguments(1)));
            let post_return = adapter.post_return.as_ref().map_or(String::new(), |source| {
                format!("(call {} {values})", self.function(source, &adapter.callee_type.results, &[]))
            });
            let body = self.barrier(
                throws,
                "",
                format!(
                    "{call} {sets}
                     {returned}
                     (call {resolve} (local.get $task) (i32.const 2))
                     {post_return}"
                ),
            );
            format!("(func $run (param $task i32) (result i32) {locals} {result_local} {body} (i32.const 0))")
        };
        // What takes its result.
        let ty = signature(returned, &[]);
        let body = self.barrier(throws, "", keep(format!("(call {return_name} {} {pointer})", arguments(1))));
        let _ = writeln!(self.functions, "{run}\n(func $give_back (param $task i32){ty} {result_local} {body})");
        let mut members = String::from("$run $give_back");
        if let Some(callback) = &adapter.callback {
            let callback = self.callback(callback, throws);
            let _ = write!(members, " {callback}");
        }
        let entries = self.entries();
        let _ = writeln!(self.functions, "(elem (table {entries}) (i32.const {}) func {members})", adapter.entry);
    }

    /// A callback, as the name of a function with three parameters.
    pub(super) fn callback(&mut self, callback: &Source, throws: bool) -> String {
        let callback = self.function(callback, &[I32; 3], &[I32]);
        if !throws {
            return callback;
        }
        let call = format!("(call {callback} (local.get 0) (local.get 1) (local.get 2))");
        let body = self.barrier(throws, "(result i32)", call);
        let _ = writeln!(self.functions, "(func $callback (param i32 i32 i32) (result i32) {body})");
        "$callback".to_owned()
    }

    /// Code of a task that must not throw: what runs it may be a call of another component that waits.
    pub(super) fn barrier(&mut self, throws: bool, result: &str, code: String) -> String {
        if !throws {
            return code;
        }
        let trap = self.trap();
        let violation = Violation::UncaughtException as u32;
        format!(
            "(block $done {result}
               (block $thrown (br $done (try_table {result} (catch_all $thrown) {code})))
               (call {trap} (i32.const {violation}))
               unreachable)"
        )
    }

    /// `task.return` of an instance: the type of the result, and the options; where they name no memory, none matters.
    pub(in super::super) fn task_return(
        &mut self,
        instance: u32,
        result_type: u32,
        options: u32,
        mask: u32,
        ty: &Signature,
    ) -> String {
        let leave = self.leave(instance);
        let returning = self.function(&Source::state("task returning"), &[I32; 3], &[I32]);
        let resolve = self.function(&Source::state("task resolve"), &[I32; 2], &[]);
        let entries = self.entries();
        let arguments: String = (0..ty.params.len()).map(|index| format!("(local.get {index})")).collect();
        let params = signature(&ty.params, &[]);
        let body = format!(
            "{leave}(local.set $task (call {returning} (i32.const {result_type}) (i32.const {options}) (i32.const {mask})))
             (call_indirect {entries} (param i32){params}
               (local.get $task) {arguments} (i32.add (i32.load offset={ENTRY} (local.get $task)) (i32.const 1)))
             (call {resolve} (local.get $task) (i32.const 2))"
        );
        self.export(ty, "(local $task i32)", &body)
    }
}
