//! Glue for built-in functions of the asynchronous component model: those that the state has, waiting, and error contexts.

use awsm_abi::component::Violation;
use awsm_abi::types::ValType::I32;

use super::{Glue, Signature, Source};

/// A built-in function that the state has, and what it takes beside the instance's record.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Builtin {
    /// The state's export.
    pub(in super::super) name: &'static str,
    /// A number that comes after the instance.
    pub(in super::super) option: Option<bool>,
    /// Whether the number comes last.
    pub(in super::super) option_last: bool,
    /// Whether the instance must be allowed to call out.
    pub(in super::super) leaves: bool,
    /// Whether the instance is passed.
    pub(in super::super) takes_instance: bool,
}

impl Glue {
    /// A built-in function that the state has.
    pub(in super::super) fn builtin(&mut self, builtin: &Builtin, instance: u32, record: u32, ty: &Signature) -> String {
        let leave = if builtin.leaves { self.leave(instance) } else { String::new() };
        let option = builtin.option.map(|option| format!("(i32.const {})", u32::from(option)));
        let mut arguments: Vec<String> = Vec::new();
        if builtin.takes_instance {
            arguments.push(format!("(i32.const {record})"));
        }
        let given = (0..ty.params.len()).map(|index| format!("(local.get {index})"));
        if builtin.option_last {
            arguments.extend(given);
            arguments.extend(option);
        } else {
            arguments.extend(option);
            arguments.extend(given);
        }
        let function = self.function(&Source::state(builtin.name), &vec![I32; arguments.len()], &ty.results);
        let body = format!("{leave}(call {function} {})", arguments.join(" "));
        self.export(ty, "", &body)
    }

    /// `waitable-set.wait` or `waitable-set.poll`: what the event says is written to the component's memory.
    pub(in super::super) fn event(&mut self, name: &'static str, instance: u32, record: u32, cancellable: bool) -> String {
        let leave = self.leave(instance);
        let function = self.function(&Source::state(name), &[I32; 3], &[I32]);
        let (first, second) = (self.global(&Source::state("event 1")), self.global(&Source::state("event 2")));
        let trap = self.function(&Source::state("trap"), &[I32], &[]);
        let cancellable = u32::from(cancellable);
        let body = format!(
            "{leave}(local.set $code (call {function} (i32.const {record}) (local.get 0) (i32.const {cancellable})))
             (if (i32.and (local.get 1) (i32.const 3)) (then (call {trap} (i32.const {}))))
             (i32.store (local.get 1) (global.get {first}))
             (i32.store offset=4 (local.get 1) (global.get {second}))
             (local.get $code)",
            Violation::UnalignedPointer as u32
        );
        self.export(&Signature::new(&[I32; 2], &[I32]), "(local $code i32)", &body)
    }

    /// `error-context.new`: the message is not kept.
    pub(in super::super) fn error_new(&mut self, instance: u32, record: u32) -> String {
        let leave = self.leave(instance);
        let new = self.function(&Source::state("error new"), &[I32], &[I32]);
        self.export(&Signature::new(&[I32; 2], &[I32]), "", &format!("{leave}(call {new} (i32.const {record}))"))
    }

    /// `error-context.debug-message`: it is empty.
    pub(in super::super) fn error_message(&mut self, instance: u32, record: u32, realloc: Option<&Source>) -> String {
        let leave = self.leave(instance);
        let check = self.function(&Source::state("error check"), &[I32; 2], &[]);
        let address = match realloc {
            Some(realloc) => {
                let realloc = self.function(realloc, &[I32; 4], &[I32]);
                format!("(call {realloc} (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))")
            }
            None => "(i32.const 1)".to_owned(),
        };
        let trap = self.trap();
        let violation = Violation::PointerOutOfBounds as u32;
        let body = format!(
            "{leave}(call {check} (i32.const {record}) (local.get 0))
             (if (i64.gt_u
                   (i64.add (i64.extend_i32_u (local.get 1)) (i64.const 8))
                   (i64.shl (i64.extend_i32_u (memory.size)) (i64.const 16)))
               (then (call {trap} (i32.const {violation}))))
             (i32.store (local.get 1) {address})
             (i32.store offset=4 (local.get 1) (i32.const 0))"
        );
        self.export(&Signature::new(&[I32; 2], &[]), "", &body)
    }
}
