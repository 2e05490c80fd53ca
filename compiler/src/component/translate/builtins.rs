//! Built-in functions of the asynchronous component model.

use wasmtime_environ::component::{Component, OptionsIndex, RuntimeComponentInstanceIndex, Trampoline};

use super::super::glue::{Builtin, Glue, Signature};
use super::ends::{READABLE_FUTURE, READABLE_STREAM, WRITABLE_FUTURE, WRITABLE_STREAM};
use super::options::{encoding, realloc, return_options};
use super::ways::Table;
use super::{Builder, unsupported};
use crate::error::CompileError;

/// The options of a built-in function.
pub(super) const fn options(trampoline: &Trampoline) -> Option<OptionsIndex> {
    match trampoline {
        Trampoline::WaitableSetWait { options, .. }
        | Trampoline::WaitableSetPoll { options, .. }
        | Trampoline::StreamRead { options, .. }
        | Trampoline::StreamWrite { options, .. }
        | Trampoline::FutureRead { options, .. }
        | Trampoline::FutureWrite { options, .. }
        | Trampoline::ErrorContextNew { options, .. }
        | Trampoline::ErrorContextDebugMessage { options, .. } => Some(*options),
        _ => None,
    }
}

/// The instance that waits inside of its call of a built-in function, if that waits.
fn waits(trampoline: &Trampoline, component: &Component) -> Option<RuntimeComponentInstanceIndex> {
    let (instance, is_async) = match trampoline {
        Trampoline::StreamRead { instance, options, .. }
        | Trampoline::StreamWrite { instance, options, .. }
        | Trampoline::FutureRead { instance, options, .. }
        | Trampoline::FutureWrite { instance, options, .. } => (instance, component.options[*options].async_),
        Trampoline::SubtaskCancel { instance, async_ } => (instance, *async_),
        Trampoline::WaitableSetWait { instance, .. } | Trampoline::ThreadYield { instance, .. } => (instance, false),
        _ => return None,
    };
    (!is_async).then_some(*instance)
}

impl Builder<'_> {
    /// The wrapper of a built-in function of the asynchronous component model.
    pub(super) fn builtin(&mut self, trampoline: &Trampoline, ty: &Signature, glue: &mut Glue) -> Result<String, CompileError> {
        if let Some(instance) = waits(trampoline, self.component) {
            self.may_wait(instance.as_u32());
        }
        let simple = |name| Builtin { name, option: None, option_last: false, leaves: true, takes_instance: true };
        let with = |name, option| Builtin { option: Some(option), ..simple(name) };
        let (builtin, instance) = match trampoline {
            Trampoline::TaskReturn { instance, results, options } => {
                let options = &self.component.options[*options];
                let memory = options.memory();
                let number = return_options(memory.map(|index| index.as_u32()), encoding(options.string_encoding));
                let mask = if memory.is_some() { u32::MAX } else { 3 };
                return Ok(glue.task_return(instance.as_u32(), results.as_u32(), number, mask, ty));
            }
            Trampoline::WaitableSetWait { instance, options } => return Ok(self.event("set wait", *instance, *options, glue)),
            Trampoline::WaitableSetPoll { instance, options } => return Ok(self.event("set poll", *instance, *options, glue)),
            Trampoline::StreamNew { instance, ty } => {
                let ty = self.types[*ty].ty.as_u32();
                return Ok(self.pair(*instance, READABLE_STREAM | ty, WRITABLE_STREAM | ty, glue));
            }
            Trampoline::FutureNew { instance, ty } => {
                let ty = self.types[*ty].ty.as_u32();
                return Ok(self.pair(*instance, READABLE_FUTURE | ty, WRITABLE_FUTURE | ty, glue));
            }
            Trampoline::StreamRead { instance, ty, options } => {
                return self.copy(self.stream(*instance, *ty, READABLE_STREAM), Table::Stream(*ty), *options, glue);
            }
            Trampoline::StreamWrite { instance, ty, options } => {
                return self.copy(self.stream(*instance, *ty, WRITABLE_STREAM), Table::Stream(*ty), *options, glue);
            }
            Trampoline::FutureRead { instance, ty, options } => {
                return self.copy(self.future(*instance, *ty, READABLE_FUTURE), Table::Future(*ty), *options, glue);
            }
            Trampoline::FutureWrite { instance, ty, options } => {
                return self.copy(self.future(*instance, *ty, WRITABLE_FUTURE), Table::Future(*ty), *options, glue);
            }
            Trampoline::StreamCancelRead { instance, ty, async_ } => {
                return Ok(glue.copy_cancel(&self.stream(*instance, *ty, READABLE_STREAM).0, *async_));
            }
            Trampoline::StreamCancelWrite { instance, ty, async_ } => {
                return Ok(glue.copy_cancel(&self.stream(*instance, *ty, WRITABLE_STREAM).0, *async_));
            }
            Trampoline::FutureCancelRead { instance, ty, async_ } => {
                return Ok(glue.copy_cancel(&self.future(*instance, *ty, READABLE_FUTURE).0, *async_));
            }
            Trampoline::FutureCancelWrite { instance, ty, async_ } => {
                return Ok(glue.copy_cancel(&self.future(*instance, *ty, WRITABLE_FUTURE).0, *async_));
            }
            Trampoline::StreamDropReadable { instance, ty } => {
                return Ok(glue.end_drop(&self.stream(*instance, *ty, READABLE_STREAM).0));
            }
            Trampoline::StreamDropWritable { instance, ty } => {
                return Ok(glue.end_drop(&self.stream(*instance, *ty, WRITABLE_STREAM).0));
            }
            Trampoline::FutureDropReadable { instance, ty } => {
                return Ok(glue.end_drop(&self.future(*instance, *ty, READABLE_FUTURE).0));
            }
            Trampoline::FutureDropWritable { instance, ty } => {
                return Ok(glue.end_drop(&self.future(*instance, *ty, WRITABLE_FUTURE).0));
            }
            Trampoline::ErrorContextNew { instance, .. } => {
                return Ok(glue.error_new(instance.as_u32(), self.record(*instance)));
            }
            Trampoline::ErrorContextDebugMessage { instance, options, .. } => {
                let realloc = realloc(&self.component.options[*options]);
                let realloc = realloc.and_then(|index| self.reallocs.get(&index));
                return Ok(glue.error_message(instance.as_u32(), self.record(*instance), realloc));
            }
            Trampoline::BackpressureInc { instance } => (Builtin { leaves: false, ..simple("backpressure inc") }, instance),
            Trampoline::BackpressureDec { instance } => (Builtin { leaves: false, ..simple("backpressure dec") }, instance),
            Trampoline::TaskCancel { instance } => (Builtin { takes_instance: false, ..simple("task cancel") }, instance),
            Trampoline::WaitableSetNew { instance } => (simple("set new"), instance),
            Trampoline::WaitableSetDrop { instance } => (simple("set drop"), instance),
            Trampoline::WaitableJoin { instance } => (simple("join"), instance),
            Trampoline::SubtaskDrop { instance } => (simple("subtask drop"), instance),
            Trampoline::SubtaskCancel { instance, async_ } => (with("subtask cancel", *async_), instance),
            Trampoline::ErrorContextDrop { instance, .. } => (simple("error drop"), instance),
            Trampoline::ThreadYield { instance, cancellable } => {
                (Builtin { takes_instance: false, ..with("yield", *cancellable) }, instance)
            }
            Trampoline::ThreadIndex { instance }
            | Trampoline::ThreadNewIndirect { instance, .. }
            | Trampoline::ThreadResumeLater { instance }
            | Trampoline::ThreadSuspend { instance, .. }
            | Trampoline::ThreadSuspendThenResume { instance, .. }
            | Trampoline::ThreadYieldThenResume { instance, .. }
            | Trampoline::ThreadSuspendThenPromote { instance, .. }
            | Trampoline::ThreadYieldThenPromote { instance, .. } => return Ok(self.not_offered(trampoline, *instance, ty, glue)),
            other => return Err(unsupported(format!("`{}`", other.symbol_name()))),
        };
        Ok(glue.builtin(&builtin, instance.as_u32(), self.record(*instance), ty))
    }

    /// A built-in function whose call traps.
    fn not_offered(
        &mut self,
        trampoline: &Trampoline,
        instance: RuntimeComponentInstanceIndex,
        ty: &Signature,
        glue: &mut Glue,
    ) -> String {
        let name = trampoline.symbol_name();
        self.warnings.insert(format!("`{name}` of the asynchronous component model is not supported: a call of it traps"));
        glue.unsupported(instance.as_u32(), ty)
    }

    fn event(
        &self,
        name: &'static str,
        instance: RuntimeComponentInstanceIndex,
        options: OptionsIndex,
        glue: &mut Glue,
    ) -> String {
        glue.event(name, instance.as_u32(), self.record(instance), self.component.options[options].cancellable)
    }

    fn pair(&self, instance: RuntimeComponentInstanceIndex, readable: u32, writable: u32, glue: &mut Glue) -> String {
        glue.pair(instance.as_u32(), self.record(instance), readable, writable)
    }
}
