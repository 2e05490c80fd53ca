//! Glue of what copies values that are more than numbers between ends of streams and futures: what its adapters take for functions of the two instances, and
//! the functions of readers that choose the adapter.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use awsm_abi::component::Violation;
use awsm_abi::types::ValType::I32;

use super::{Glue, Source};

impl Glue {
    /// The export that a reader's adapters call as `realloc`.
    pub(in super::super) fn seat(reader: u32) -> String {
        format!("realloc {reader}")
    }

    /// What adapters of copiers call, with the `realloc` of each reader, if it has one.
    ///
    /// An adapter asks for the place of the list before anything else: that is where the reader wants the values. So the list itself needs no memory.
    /// It is called for nothing but this list: what it calls as a function of the reader has nothing to do, and no call is in progress.
    pub(in super::super) fn seats(&mut self, reallocs: &[Option<&Source>]) {
        self.functions.push_str(
            "(global $place (export \"place\") (mut i32) (i32.const 0))
             (global $is_asked (export \"is asked\") (mut i32) (i32.const 0))
             (global (export \"flags\") (mut i32) (i32.const 1))
             (func (export \"callee\") (param i32 i32))
             (func (export \"enter\") (param i32 i32 i32))
             (func (export \"exit\"))\n",
        );
        for (reader, realloc) in (0..).zip(reallocs) {
            let realloc = match realloc {
                None => "unreachable".to_owned(),
                Some(source) => {
                    let realloc = self.function(source, &[I32; 4], &[I32]);
                    format!("(call {realloc} (local.get 0) (local.get 1) (local.get 2) (local.get 3))")
                }
            };
            let name = Glue::seat(reader);
            let _ = writeln!(
                self.functions,
                "(func (export \"{name}\") (param i32 i32 i32 i32) (result i32)
                   (if (i32.eqz (global.get $is_asked))
                     (then
                       (global.set $is_asked (i32.const 1))
                       (return (global.get $place))))
                   {realloc})"
            );
        }
    }

    /// The functions by number that copy to readers: each from the writers that it knows by their numbers, with what.
    pub(in super::super) fn copiers(&mut self, seats: usize, copiers: &BTreeMap<u32, Vec<(u32, Source)>>) {
        let global = |export: &str| Source { instance: seats, export: export.to_owned() };
        let (place, is_asked) = (self.global(&global("place")), self.global(&global("is asked")));
        let trap = self.trap();
        let entries = self.entries();
        for (entry, adapters) in copiers {
            let _ = writeln!(
                self.functions,
                "(func $copy{entry} (param $from i32) (param $to i32) (param $count i32) (param $writer i32)
                   (global.set {place} (local.get $to))
                   (global.set {is_asked} (i32.const 0))"
            );
            for (writer, adapter) in adapters {
                let adapter = self.function(adapter, &[I32; 2], &[]);
                let _ = writeln!(
                    self.functions,
                    "(if (i32.eq (local.get $writer) (i32.const {writer}))
                       (then
                         (call {adapter} (local.get $from) (local.get $count))
                         (return)))"
                );
            }
            let violation = Violation::Adapter as u32;
            let _ = writeln!(
                self.functions,
                "(call {trap} (i32.const {violation})))
                 (elem (table {entries}) (i32.const {entry}) func $copy{entry})"
            );
        }
    }
}
