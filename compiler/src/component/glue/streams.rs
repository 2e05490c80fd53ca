//! Glue of streams and futures: reading and writing, and what copies values from one memory to another.

use std::fmt::Write as _;

use awsm_abi::component::{self as abi, Violation};
use awsm_abi::types::ValType::{self, I32, I64};

use super::{Glue, Lowered, MEMORY, PLACE_LOCALS, Signature, Source};

/// The most values of one copy (CanonicalABI.md, `Buffer.MAX_LENGTH`).
const COUNT_MAX: u32 = (1 << 28) - 1;

/// An end of streams or futures of one type, as an instance uses it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct End {
    /// The instance, and the address of its record.
    pub(in super::super) instance: u32,
    pub(in super::super) record: u32,
    /// The type of its handles' entries.
    pub(in super::super) entry: u32,
    /// Whether it is a future's.
    pub(in super::super) is_future: bool,
}

/// How the values of an end are copied.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Copied {
    /// Size and alignment of a value; zero where there is none.
    pub(in super::super) size: u32,
    pub(in super::super) align: u32,
    /// How it is copied.
    pub(in super::super) form: Form,
    /// How it is copied: the row or column of what copies numbers, or else the number of the function that copies to a reader, or that of a writer.
    pub(in super::super) entry: u32,
    /// The first of the functions that copy between its memory and the host.
    pub(in super::super) outside: u32,
    /// Whether the operation may be left waiting.
    pub(in super::super) is_async: bool,
}

/// The streams and futures of a function of the host.
#[derive(Debug, Default)]
pub(in super::super) struct Ends {
    pub(in super::super) params: Vec<EndParam>,
    pub(in super::super) results: Vec<EndResult>,
}

/// One among its parameters.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct EndParam {
    /// Which of the flat parameters.
    pub(in super::super) at: usize,
    /// Whether the parameter before says if there is one.
    pub(in super::super) is_optional: bool,
    /// The type of its handle's entry.
    pub(in super::super) entry: u32,
    /// What it carries.
    pub(in super::super) carries: abi::End,
}

/// One in its result.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct EndResult {
    /// Where in the result.
    pub(in super::super) offset: u32,
    /// Whether it is there only if the result is a `result` that says ok.
    pub(in super::super) is_in_ok: bool,
    /// The type of its handle's entry.
    pub(in super::super) entry: u32,
    /// What it carries.
    pub(in super::super) carries: abi::End,
}

impl Ends {
    /// Whether they are those of a function of the host.
    pub(in super::super) fn are_of(&self, function: &abi::Function) -> bool {
        let taken = |param: &EndParam| abi::Taken { at: param.at, is_optional: param.is_optional, end: param.carries };
        self.params.iter().map(taken).eq(function.takes.iter().copied())
            && self.results.iter().map(|result| result.carries).eq(function.ends.iter().copied())
    }
}

/// How values of an end are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Form {
    /// They are more than their bytes: an adapter passes them.
    Checked = 2,
    /// The bytes are all that they are.
    Plain = 1,
}

impl Glue {
    /// `stream.new` or `future.new`.
    pub(in super::super) fn pair(&mut self, instance: u32, record: u32, readable: u32, writable: u32) -> String {
        let leave = self.leave(instance);
        let new = self.function(&Source::state("pair new"), &[I32; 3], &[I64]);
        let body = format!("{leave}(call {new} (i32.const {record}) (i32.const {readable}) (i32.const {writable}))");
        self.export(&Signature::new(&[], &[I64]), "", &body)
    }

    /// Reading or writing.
    pub(in super::super) fn copy(&mut self, end: &End, copied: &Copied) -> String {
        let leave = self.leave(end.instance);
        let trap = self.function(&Source::state("trap"), &[I32], &[]);
        let copy = self.function(&Source::state("copy"), &[I32; 10], &[I32]);
        let End { record, entry: entry_type, is_future, .. } = end;
        let Copied { size, align, form, entry, outside, is_async } = copied;
        let count = if *is_future { "(i32.const 1)" } else { "(local.get 2)" };
        let mut body = leave;
        if !is_async {
            let check = self.function(&Source::state("check blocking"), &[], &[]);
            let _ = writeln!(body, "(call {check})");
        }
        if !is_future {
            let violation = Violation::CopyTooLarge as u32;
            let _ =
                writeln!(body, "(if (i32.gt_u {count} (i32.const {COUNT_MAX})) (then (call {trap} (i32.const {violation}))))");
        }
        if *size > 0 {
            let _ = writeln!(
                body,
                "(if {count} (then
                   (if (i32.and (local.get 1) (i32.const {})) (then (call {trap} (i32.const {}))))
                   (if (i64.gt_u
                         (i64.add (i64.extend_i32_u (local.get 1)) (i64.mul (i64.extend_i32_u {count}) (i64.const {size})))
                         (i64.shl (i64.extend_i32_u (memory.size)) (i64.const 16)))
                     (then (call {trap} (i32.const {}))))))",
                align - 1,
                Violation::UnalignedPointer as u32,
                Violation::ListOutOfBounds as u32,
            );
        }
        let (form, is_async) = (*form as u32, u32::from(*is_async));
        let _ = writeln!(
            body,
            "(call {copy} (i32.const {record}) (i32.const {entry_type}) (local.get 0) (local.get 1) {count}
               (i32.const {size}) (i32.const {form}) (i32.const {entry}) (i32.const {outside}) (i32.const {is_async}))"
        );
        self.export(&Signature::new(&[I32; 3][..if *is_future { 2 } else { 3 }], &[I32]), "", &body)
    }

    /// What copies numbers between the glue's memory and the host, and what goes on with that, as the functions of that number and the next. No handle is in it.
    pub(in super::super) fn copy_outside(&mut self, entry: u32) {
        let (copy, finish) = (self.canonical(abi::COPY), self.canonical(abi::FINISH));
        let entries = self.entries();
        let _ = writeln!(
            self.functions,
            "(func $copy (param i32 i32 i32 i32) (result i32)
               (call {copy} (i32.const 0) (local.get 1) (local.get 2) (local.get 3) (local.get 0)))
             (func $go_on (param i32) (result i32) (i32.wrap_i64 (call {finish} (local.get 0))))
             (elem (table {entries}) (i32.const {entry}) func $copy $go_on)"
        );
    }

    /// The same of any values. `table`: address of the handle table of the instance whose memory it is; `encoding`: how it encodes strings.
    pub(in super::super) fn exchange_outside(
        &mut self,
        entry: u32,
        instance: u32,
        table: u32,
        encoding: u32,
        realloc: Option<&Source>,
    ) {
        let (exchange, finish) = (self.canonical(abi::EXCHANGE), self.canonical(abi::FINISH));
        let reserve = self.function(&Source::state("reserve"), &[I32], &[]);
        let entries = self.entries();
        // Without realloc, there is nothing to be placed.
        // Only what is read is placed.
        let place = match realloc {
            None => String::new(),
            // Where there are streams, there are tasks.
            Some(_) => self.place_result(instance, realloc, true),
        };
        let place =
            |is_read: &str| format!("(if (i32.shr_u (local.get $packed) (i32.const 4)) (then (if {is_read} (then {place}))))");
        // Later, the end is all that is known: the kinds of writable ends are odd.
        let state = self.link(&Source::state(MEMORY), |name| format!("(memory {name} 0)"));
        let is_read_later = format!("(i32.eqz (i32.and (i32.load {state} (local.get 0)) (i32.const 1)))");
        let (place, place_later) = (place("(i32.eqz (local.get 3))"), place(&is_read_later));
        let table_and_encoding = table | encoding;
        let _ = writeln!(
            self.functions,
            "(func $copy (param i32 i32 i32 i32) (result i32) (local $packed i32) {PLACE_LOCALS}
               (call {reserve} (i32.const {table}))
               (local.set $packed
                 (call {exchange} (i32.const {table_and_encoding}) (local.get 1) (local.get 2) (local.get 3) (local.get 0)))
               {place}
               (local.get $packed))
             (func $go_on (param i32) (result i32) (local $packed i32) {PLACE_LOCALS}
               (call {reserve} (i32.const {table}))
               (local.set $packed (i32.wrap_i64 (call {finish} (local.get 0))))
               {place_later}
               (local.get $packed))
             (elem (table {entries}) (i32.const {entry}) func $copy $go_on)"
        );
    }

    /// The wrapper of a call that the host answers, with streams and futures among its parameters or in its result. What is lowered as async has returned then.
    pub(in super::super) fn lower_ends(
        &mut self,
        call: &Lowered<'_>,
        record: u32,
        ends: &Ends,
        ty: &Signature,
        is_lowered_async: bool,
    ) -> String {
        let &Lowered { interface, function, instance, table, .. } = call;
        let Ends { params, results } = ends;
        let mut body = self.leave(instance);
        let by_address = !results.is_empty() && (ty.results.is_empty() || is_lowered_async);
        let to = ty.params.len().saturating_sub(1);
        if by_address {
            let trap = self.function(&Source::state("trap"), &[I32], &[]);
            let violation = Violation::UnalignedPointer as u32;
            let _ = writeln!(body, "(if (i32.and (local.get {to}) (i32.const 3)) (then (call {trap} (i32.const {violation}))))");
        }
        if function.holds_more {
            let reserve = self.function(&Source::state("reserve"), &[I32], &[]);
            let _ = writeln!(body, "(call {reserve} (i32.const {table}))");
        }
        let mut locals = String::new();
        for &EndParam { at, is_optional, entry, .. } in params {
            let take = self.function(&Source::state("outside take"), &[I32; 3], &[I32]);
            let mut taken = format!("(call {take} (i32.const {record}) (i32.const {entry}) (local.get {at}))");
            if is_optional {
                taken = format!("(if (result i32) (local.get {}) (then {taken}) (else (i32.const 0)))", at - 1);
            }
            let _ = writeln!(body, "(local.set {at} {taken})");
        }
        for (index, EndResult { entry, .. }) in results.iter().enumerate() {
            let new = self.function(&Source::state("outside new"), &[I32; 2], &[I64]);
            let _ = write!(locals, "(local $end{index} i64)");
            let _ = writeln!(body, "(local.set $end{index} (call {new} (i32.const {record}) (i32.const {entry})))");
        }
        let given = function.given();
        let host_params: Vec<ValType> =
            std::iter::once(I32).chain(ty.params[..given].iter().copied()).chain(vec![I32; results.len()]).collect();
        let host = self.host(interface, function.name, &host_params, &[]);
        let mut arguments: String = (0..given).map(|index| format!(" (local.get {index})")).collect();
        for index in 0..results.len() {
            let _ = write!(arguments, " (i32.wrap_i64 (i64.shr_u (local.get $end{index}) (i64.const 32)))");
        }
        let _ = writeln!(body, "(call {host} (i32.const {}){arguments})", call.table_and_encoding());
        for &EndParam { at, is_optional, .. } in params {
            let begin = self.function(&Source::state("outside begin"), &[I32], &[]);
            let begun = format!("(call {begin} (local.get {at}))");
            let _ = match is_optional {
                true => writeln!(body, "(if (local.get {at}) (then {begun}))"),
                false => writeln!(body, "{begun}"),
            };
        }
        for (index, &EndResult { offset, is_in_ok, entry, .. }) in results.iter().enumerate() {
            let handle = format!("(i32.wrap_i64 (local.get $end{index}))");
            let store = format!("(i32.store offset={offset} (local.get {to}) {handle})");
            let _ = match by_address {
                true if is_in_ok => {
                    let drop = self.function(&Source::state("end drop"), &[I32; 3], &[]);
                    let dropped = format!("(call {drop} (i32.const {record}) (i32.const {entry}) {handle})");
                    writeln!(body, "(if (i32.load8_u (local.get {to})) (then {dropped}) (else {store}))")
                }
                true => writeln!(body, "{store}"),
                false => writeln!(body, "{handle}"),
            };
        }
        if is_lowered_async {
            body.push_str("(i32.const 2)");
        }
        self.export(ty, &locals, &body)
    }

    /// Gives an operation up.
    pub(in super::super) fn copy_cancel(&mut self, end: &End, is_async: bool) -> String {
        let leave = self.leave(end.instance);
        let cancel = self.function(&Source::state("copy cancel"), &[I32; 4], &[I32]);
        let body = format!(
            "{leave}(call {cancel} (i32.const {}) (i32.const {}) (i32.const {}) (local.get 0))",
            end.record,
            end.entry,
            u32::from(is_async)
        );
        self.export(&Signature::new(&[I32], &[I32]), "", &body)
    }

    /// Drops an end.
    pub(in super::super) fn end_drop(&mut self, end: &End) -> String {
        let leave = self.leave(end.instance);
        let drop = self.function(&Source::state("end drop"), &[I32; 3], &[]);
        let body = format!("{leave}(call {drop} (i32.const {}) (i32.const {}) (local.get 0))", end.record, end.entry);
        self.export(&Signature::new(&[I32], &[]), "", &body)
    }

    /// What copies bytes, in glue [between](Self::between) two memories, as the function of that number. A memory that is both stands there once.
    pub(in super::super) fn copy_bytes(&mut self, entry: u32) {
        let to = self.linked.len() - 1;
        let entries = self.entries();
        let _ = writeln!(
            self.functions,
            "(func $copy (param $from i32) (param $to i32) (param $count i32) (param $bytes i32)
               (memory.copy {to} 0 (local.get $to) (local.get $from) (local.get $bytes)))
             (elem (table {entries}) (i32.const {entry}) func $copy)"
        );
    }
}
