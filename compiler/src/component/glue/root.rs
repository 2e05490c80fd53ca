//! Glue at the root of a component: what the server calls.

use std::fmt::Write as _;

use awsm_abi::component::{self as abi, Violation};
use awsm_abi::types::ValType::{self, I32};

use super::tasks::{ALONE, ASYNC_TYPE, LIFTED_ASYNC, RESULT};
use super::{Glue, Loaded, MAY_BLOCK, Signature, Source, signature};

/// What the server calls as a task: where it is lifted as async, or answers requests as WASI 0.3 has it.
#[derive(Debug)]
pub(in super::super) struct Root {
    pub(in super::super) kind: RootKind,
    /// Address of its instance's record.
    pub(in super::super) record: u32,
    /// Number of its first function.
    pub(in super::super) entry: u32,
    /// The type of its result, and the options with which it returns that.
    pub(in super::super) result_type: u32,
    pub(in super::super) options: u32,
    pub(in super::super) callee: Source,
    pub(in super::super) callback: Option<Source>,
    /// Whether something may be thrown.
    pub(in super::super) throws: bool,
    /// What becomes of its result, where it is lifted as synchronous.
    pub(in super::super) returned: Option<Returned>,
}

/// A result in memory, at the address that a function has returned.
#[derive(Debug)]
pub(in super::super) struct Returned {
    pub(in super::super) loaded: Loaded,
    pub(in super::super) post_return: Option<Source>,
}

/// Functions of it that are called by number: those of a task, and what ends the invocation.
pub(in super::super) const ENTRIES_PER_ROOT: u32 = 4;

/// The interface of the resources that a request is and that its response goes to.
const HTTP_TYPES: &str = "wasi:http/types@0.2";

/// What it is.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum RootKind {
    /// A command: its result is how it ended.
    Command,
    /// What answers HTTP requests: it gets one in the instance with that handle table, and returns the response, whose strings are encoded so.
    Service { table: u32, encoding: u32 },
}

impl Glue {
    /// What the server calls for each request: the component gets it, and where the response goes. `has_operations`: as of [`Concurrency`](super::Concurrency).
    pub(in super::super) fn handler(&mut self, callee: &Source, post_return: Option<&Source>, table: u32, has_operations: bool) {
        let reserve = self.function(&Source::state("reserve"), &[I32], &[]);
        let new = self.function(&Source::state("new"), &[I32; 3], &[I32]);
        // To import it is all that there is to do.
        self.canonical(abi::REQUESTS);
        let handle_of = |resource, representation| {
            let ty = abi::resource(HTTP_TYPES, resource).unwrap_or_default();
            format!("(call {new} (i32.const {table}) (i32.const {ty}) (i32.const {representation}))")
        };
        let (request, response) = (handle_of("incoming-request", abi::REQUEST), handle_of("response-outparam", abi::RESPONSE));
        let may_block = self.global(&Source::state(MAY_BLOCK));
        let handle = self.function(callee, &[I32; 2], &[]);
        let after = post_return.map(|source| format!("(call {})", self.function(source, &[], &[])));
        let after = after.unwrap_or_default();
        let rest = if has_operations { self.rest() } else { String::new() };
        let body = format!(
            "(global.set {may_block} (i32.const 1))
             (call {reserve} (i32.const {table}))
             (call {handle} {request} {response})
             {after}
             {rest}
             (i32.const 0)"
        );
        self.export_as("sledge_handle", &Signature::new(&[], &[I32]), "", &body);
    }

    /// What the server calls to run a command. `has_operations`: as of [`Concurrency`](super::Concurrency).
    pub(in super::super) fn run(&mut self, callee: &Source, post_return: Option<&Source>, has_operations: bool) {
        let exit = self.canonical(abi::EXIT);
        let may_block = self.global(&Source::state(MAY_BLOCK));
        let run = self.function(callee, &[], &[I32]);
        let after = post_return.map(|source| format!("(call {} (local.get $result))", self.function(source, &[I32], &[])));
        let after = after.unwrap_or_default();
        let check = self.check_result();
        let rest = if has_operations { self.rest() } else { String::new() };
        let body = format!(
            "(global.set {may_block} (i32.const 1))
             (local.set $result (call {run}))
             {check}
             {after}
             {rest}
             (call {exit} (local.get $result))"
        );
        self.export_as("_start", &Signature::new(&[], &[]), "(local $result i32)", &body);
    }

    /// Traps where `$result` is no `result`: neither of its two cases.
    fn check_result(&mut self) -> String {
        let (trap, violation) = (self.trap(), Violation::InvalidDiscriminant as u32);
        format!("(if (i32.gt_u (local.get $result) (i32.const 1)) (then (call {trap} (i32.const {violation}))))")
    }

    /// What the server calls as a task: it makes the task, and runs what there is until that and what the host does for it are over.
    pub(in super::super) fn run_root(&mut self, root: &Root) {
        let Root { kind, record, entry, result_type, options, .. } = root;
        let may_block = self.global(&Source::state(MAY_BLOCK));
        let new = self.function(&Source::state("task new"), &[I32; 5], &[I32]);
        let complete = self.function(&Source::state("task complete"), &[I32], &[]);
        let rest = self.rest();
        let results: &[ValType] = if root.callback.is_some() || root.returned.is_some() { &[I32] } else { &[] };
        let mut over = if root.callback.is_some() { String::new() } else { "(i32.const 0)".to_owned() };
        let flags = match (&root.returned, &root.callback) {
            (Some(_), _) => ALONE | ASYNC_TYPE,
            (None, Some(_)) => LIFTED_ASYNC | ALONE | ASYNC_TYPE,
            (None, None) => LIFTED_ASYNC | ASYNC_TYPE,
        };
        let exit = self.canonical(abi::EXIT);
        let mut locals = String::new();
        let (mut call, give_back, name, ty, status, end) = match kind {
            RootKind::Command => {
                let callee = self.function(&root.callee, &[], results);
                let status = format!("(i32.load offset={RESULT} (local.get $task))");
                let check = self.check_result();
                (
                    format!("(call {callee})"),
                    format!("(param $result i32) {check} (i32.store offset={RESULT} (local.get $task) (local.get $result))"),
                    "_start",
                    Signature::new(&[], &[]),
                    status.clone(),
                    format!("(call {exit} {status})"),
                )
            }
            RootKind::Service { table, encoding } => {
                let to = table | encoding;
                let callee = self.function(&root.callee, &[I32], results);
                let reserve = self.function(&Source::state("reserve"), &[I32], &[]);
                let (served, respond) = (self.canonical(abi::SERVED), self.canonical(abi::RESPOND));
                let given = abi::response_params();
                let arguments: String = (1..=given.len()).map(|index| format!(" (local.get {index})")).collect();
                if let Some(returned) = &root.returned {
                    let flat: String = (0..given.len()).map(|index| format!(" (local.get $flat{index})")).collect();
                    let respond = format!("(call {respond} (i32.const {to}){flat})");
                    over = self.returned(returned, &respond);
                    locals = returned.loaded.locals();
                }
                (
                    format!("(call {reserve} (i32.const {table})) (call {callee} (call {served} (i32.const {table})))"),
                    format!("{} (call {respond} (i32.const {to}){arguments})", signature(given, &[])),
                    "sledge_handle",
                    Signature::new(&[], &[I32]),
                    "(i32.const 0)".to_owned(),
                    "(i32.const 0)".to_owned(),
                )
            }
        };
        if root.returned.is_some() {
            call = format!("(local.set $from {call})");
        }
        let callback = match &root.callback {
            Some(callback) => self.callback(callback, root.throws),
            None => "$run".to_owned(),
        };
        let members = format!("$run $give_back {callback} $end");
        let call = self.barrier(root.throws, "(result i32)", format!("{call} {over}"));
        let entries = self.entries();
        let _ = writeln!(
            self.functions,
            "(func $run (param $task i32) (result i32) {locals} {call})
             (func $give_back (param $task i32) {give_back})
             (func $rest {rest})
             ;; On another stack than the first nothing returns.
             (func $end (param $task i32) (result i32) (call $rest) (call {exit} {status}) unreachable)
             (elem (table {entries}) (i32.const {entry}) func {members})"
        );
        let body = format!(
            "(global.set {may_block} (i32.const 1))
             (local.set $task
               (call {new} (i32.const {record}) (i32.const {entry}) (i32.const {flags}) (i32.const {result_type}) (i32.const {options})))
             (call {complete} (local.get $task))
             (call $rest)
             {end}"
        );
        self.export_as(name, &ty, "(local $task i32)", &body);
    }

    /// Runs what there is until what the host does for the component by itself is over.
    fn rest(&mut self) -> String {
        let rest = self.function(&Source::state("rest"), &[], &[]);
        let unfinished = self.canonical(abi::UNFINISHED);
        format!(
            "(block $done
               (loop $more
                 (br_if $done (i32.eqz (call {unfinished})))
                 (call {rest})
                 (br $more)))"
        )
    }

    /// What follows where a function that is lifted as synchronous has returned the address of its result, in `$from`: as a task that returns it, and is over.
    fn returned(&mut self, returned: &Returned, respond: &str) -> String {
        let resolve = self.function(&Source::state("task resolve"), &[I32; 2], &[]);
        let load = self.load(&returned.loaded);
        let post_return = returned.post_return.as_ref().map(|source| self.function(source, &[I32], &[]));
        let post_return = post_return.map_or(String::new(), |function| format!("(call {function} (local.get $from))"));
        format!(
            "{load} {respond}
             (call {resolve} (local.get $task) (i32.const 2))
             {post_return}
             (i32.const 0)"
        )
    }
}
