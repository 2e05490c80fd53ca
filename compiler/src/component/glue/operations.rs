//! Glue of async functions of the host: a call that has to wait becomes an operation, and the component goes on meanwhile.

use std::fmt::Write as _;

use awsm_abi::component::{self as abi, Violation};
use awsm_abi::types::ValType::{self, I32, I64};

use super::{Glue, Lowered, PLACE_LOCALS, Signature, Source};

/// Functions of an operation that are called by number: what goes on with it.
pub(in super::super) const ENTRIES_PER_OPERATION: u32 = 1;

/// A call of an async function of the host.
#[derive(Debug)]
pub(in super::super) struct Operation {
    /// Address of the record of the instance that calls, and of its handle table.
    pub(in super::super) record: u32,
    pub(in super::super) table: u32,
    /// Number of the function that goes on with it.
    pub(in super::super) entry: u32,
    /// Whether it is lowered as async: it returns the state of a subtask.
    pub(in super::super) is_lowered_async: bool,
    /// How its parameters are loaded, if they are in memory.
    pub(in super::super) loaded: Option<Loaded>,
    /// Size of its result in memory.
    pub(in super::super) result_bytes: u32,
}

impl Operation {
    /// Code that stores a flat result of that type where the component wants it, which is the address that `to` leaves.
    fn store(&self, ty: ValType, to: &str) -> String {
        let width = match self.result_bytes {
            1 => "8",
            2 => "16",
            _ => "",
        };
        format!("({ty}.store{width} {to} (local.get $result))")
    }
}

/// Values that are in memory, as flat ones.
#[derive(Debug)]
pub(in super::super) struct Loaded {
    /// What loads them from the address in the local `$from` to the locals `$flat0`, `$flat1`, ....
    pub(in super::super) code: String,
    pub(in super::super) align: u32,
    /// The types of these locals.
    pub(in super::super) slots: Vec<ValType>,
}

impl Loaded {
    /// The locals.
    pub(super) fn locals(&self) -> String {
        let mut locals = String::from("(local $from i32)");
        for (index, ty) in self.slots.iter().enumerate() {
            let _ = write!(locals, "(local $flat{index} {ty})");
        }
        locals
    }
}

impl Glue {
    /// The wrapper of a call of an async function that the host answers.
    pub(in super::super) fn operation(&mut self, call: &Lowered<'_>, operation: &Operation, ty: &Signature) -> String {
        let &Lowered { interface, function, instance, .. } = call;
        let &Operation { record, table, entry, is_lowered_async, ref loaded, .. } = operation;
        let flat = function.results.first().copied();
        // A flat result of what is lowered as async goes to where the last parameter says, which the host does not get.
        let given = ty.params.len() - usize::from(is_lowered_async && flat.is_some());
        let (mut load, mut load_locals) = (String::new(), String::new());
        let mut arguments: Vec<(ValType, String)> =
            ty.params[..given].iter().enumerate().map(|(index, ty)| (*ty, format!("(local.get {index})"))).collect();
        if let Some(loaded) = loaded {
            load_locals = loaded.locals();
            load = format!("(local.set $from (local.get 0))\n{}", self.load(loaded));
            let flat = loaded.slots.iter().enumerate().map(|(index, ty)| (*ty, format!("(local.get $flat{index})")));
            arguments = flat.chain(arguments.drain(1..)).collect();
        }
        let params: Vec<ValType> = std::iter::once(I32).chain(arguments.iter().map(|(ty, _)| *ty)).collect();
        let host_results = if function.allocates { vec![I32] } else { function.results.to_vec() };
        let host = self.host(interface, function.name, &params, &host_results);
        let result = host_results.first().copied();
        let arguments: String = arguments.iter().map(|(_, argument)| argument.as_str()).collect();
        let mut host_call = format!("(call {host} (i32.const {}){arguments})", call.table_and_encoding());
        if result.is_some() {
            host_call = format!("(local.set $result {host_call})");
        }
        let reserve = self.function(&Source::state("reserve"), &[I32], &[]);
        let begin = self.function(&Source::state("operation begin"), &[I32], &[I32]);
        let is_done = self.function(&Source::state("operation done"), &[], &[I32]);
        let give = self.function(&Source::state("operation drop"), &[I32], &[]);
        let mut place = String::new();
        if function.allocates {
            place = self.place_result(instance, call.realloc.as_ref(), call.has_tasks);
            place = format!("(if (local.get $result) (then {place}))");
        }
        let locals = |with: &str| {
            let result = result.map_or(String::new(), |ty| format!("(local $result {ty})"));
            let places = if function.allocates { PLACE_LOCALS } else { "" };
            format!("{result} {places} {with}")
        };
        let leave = self.leave(instance);
        let mut body = format!(
            "{leave}{load}(call {reserve} (i32.const {table}))
             (local.set $operation (call {begin} (i32.const {record})))
             {host_call}\n"
        );
        let to = format!("(local.get {given})");
        if is_lowered_async {
            let start = self.function(&Source::state("operation start"), &[I32; 3], &[I32]);
            let store = flat.map_or(String::new(), |ty| operation.store(ty, &to));
            let to = if flat.is_some() { to } else { "(i32.const 0)".to_owned() };
            let _ = writeln!(
                body,
                "(if (call {is_done}) (then {place} {store} (call {give} (local.get $operation)) (return (i32.const 2))))
                 (call {start} (local.get $operation) (i32.const {entry}) {to})"
            );
        } else {
            let run = self.function(&Source::state("operation run"), &[I32; 2], &[]);
            let kept = flat.map(|ty| {
                let kept = self.function(&Source::state("operation result"), &[I32], &[I64]);
                format!("(local.set $result {})", narrowed(ty, &format!("(call {kept} (local.get $operation))")))
            });
            let kept = kept.unwrap_or_default();
            let result = if flat.is_some() { "(local.get $result)" } else { "" };
            let _ = writeln!(
                body,
                "(if (call {is_done})
                   (then {place})
                   (else (call {run} (local.get $operation) (i32.const {entry})) {kept}))
                 (call {give} (local.get $operation))
                 {result}"
            );
        }
        let export = self.export(ty, &locals(&format!("(local $operation i32) {load_locals}")), &body);
        self.go_on(operation, result, flat, &is_done, &place, &locals(""));
        export
    }

    /// What loads values from the address in the local `$from`.
    pub(super) fn load(&mut self, loaded: &Loaded) -> String {
        let (trap, violation) = (self.trap(), Violation::UnalignedPointer as u32);
        let Loaded { code, align, .. } = loaded;
        format!(
            "(if (i32.and (local.get $from) (i32.const {})) (then (call {trap} (i32.const {violation}))))
             {code}",
            align - 1
        )
    }

    /// The function that goes on with an operation: whether it is over.
    fn go_on(
        &mut self,
        operation: &Operation,
        result: Option<ValType>,
        flat: Option<ValType>,
        is_done: &str,
        place: &str,
        locals: &str,
    ) {
        let table = operation.table;
        // Other calls may have used up the room that was there when it began.
        let reserve = self.function(&Source::state("reserve"), &[I32], &[]);
        let again = self.function(&Source::state("operation again"), &[I32], &[]);
        let finish = self.canonical(abi::FINISH);
        let finished = format!("(call {finish} (local.get $operation))");
        let finished = match result {
            Some(ty) => format!("(local.set $result {})", narrowed(ty, &finished)),
            None => format!("(drop {finished})"),
        };
        let keep = match flat {
            None => String::new(),
            Some(ty) if operation.is_lowered_async => {
                let to = self.function(&Source::state("operation place"), &[I32], &[I32]);
                operation.store(ty, &format!("(call {to} (local.get $operation))"))
            }
            Some(ty) => {
                let keep = self.function(&Source::state("operation keep"), &[I32, I64], &[]);
                format!("(call {keep} (local.get $operation) {})", widened(ty, "(local.get $result)"))
            }
        };
        let entries = self.entries();
        let entry = operation.entry;
        let _ = writeln!(
            self.functions,
            "(func $go_on_{entry} (param $operation i32) (result i32) {locals}
               (call {reserve} (i32.const {table}))
               (call {again} (local.get $operation))
               {finished}
               (if (i32.eqz (call {is_done})) (then (return (i32.const 0))))
               {place} {keep}
               (i32.const 1))
             (elem (table {entries}) (i32.const {entry}) func $go_on_{entry})"
        );
    }
}

/// A flat result out of 64 bits.
fn narrowed(ty: ValType, value: &str) -> String {
    match ty {
        I32 => format!("(i32.wrap_i64 {value})"),
        ValType::F32 => format!("(f32.reinterpret_i32 (i32.wrap_i64 {value}))"),
        ValType::F64 => format!("(f64.reinterpret_i64 {value})"),
        _ => value.to_owned(),
    }
}

/// A flat result as 64 bits.
fn widened(ty: ValType, value: &str) -> String {
    match ty {
        I32 => format!("(i64.extend_i32_u {value})"),
        ValType::F32 => format!("(i64.extend_i32_u (i32.reinterpret_f32 {value}))"),
        ValType::F64 => format!("(i64.reinterpret_f64 {value})"),
        _ => value.to_owned(),
    }
}
