//! Glue of streams and futures: reading and writing, and what copies values from one memory to another.

use std::fmt::Write as _;

use awsm_abi::component::Violation;
use awsm_abi::types::ValType::{I32, I64};

use super::{Glue, Signature, Source};

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
    /// Whether the bytes are all that it is.
    pub(in super::super) is_plain: bool,
    /// The row or column of what copies it.
    pub(in super::super) entry: u32,
    /// Whether the operation may be left waiting.
    pub(in super::super) is_async: bool,
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
        let copy = self.function(&Source::state("copy"), &[I32; 9], &[I32]);
        let End { record, entry: entry_type, is_future, .. } = end;
        let Copied { size, align, is_plain, entry, is_async } = copied;
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
        let (is_plain, is_async) = (u32::from(*is_plain), u32::from(*is_async));
        let _ = writeln!(
            body,
            "(call {copy} (i32.const {record}) (i32.const {entry_type}) (local.get 0) (local.get 1) {count}
               (i32.const {size}) (i32.const {is_plain}) (i32.const {entry}) (i32.const {is_async}))"
        );
        self.export(&Signature::new(&[I32; 3][..if *is_future { 2 } else { 3 }], &[I32]), "", &body)
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
