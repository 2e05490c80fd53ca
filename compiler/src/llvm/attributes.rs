//! Attributes of functions and calls.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::values::{CallSiteValue, FunctionValue};

use super::cpu::TargetCpu;

/// The attributes in use, made once per context.
pub(super) struct Attributes {
    /// Of every function with a body.
    function: Vec<Attribute>,
    /// Of the parameter `vmctx`, beside its size.
    vmctx: Vec<Attribute>,
    /// LLVM's number of the attribute that says so.
    dereferenceable: u32,
    no_merge: Attribute,
    no_inline: Attribute,
}

impl Attributes {
    pub(super) fn new(context: &Context, cpu: &TargetCpu) -> Attributes {
        let named = |name: &str, value: u64| context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), value);
        let string = |name: &str, value: &str| context.create_string_attribute(name, value);
        let uwtable_async = 2;
        Attributes {
            // No `mustprogress` and no `willreturn`: endless loops and recursion are behaviour. The runtime unwinds by tables, so that frame
            // pointers are not needed, from any instruction. Probes make a frame larger than a page touch the guard page below the stack.
            function: vec![
                named("nounwind", 0),
                named("uwtable", uwtable_async),
                string("probe-stack", "inline-asm"),
                string("target-cpu", cpu.base()),
                string("target-features", &cpu.feature_string()),
                string("tune-cpu", &cpu.tune),
                // Loops are turned into calls of memset, memcpy and memmove, which `helpers` provides; not into these.
                string("no-builtin-strlen", ""),
                string("no-builtin-wcslen", ""),
                // What lies at %gs:0 is the guest's, and not, as with thread-local storage, the address that %gs stands for.
                string("indirect-tls-seg-refs", ""),
            ],
            // Not `noalias`: instances of one sandbox reach each other's globals.
            vmctx: vec![named("nonnull", 0), named("noundef", 0), named("align", 16)],
            dereferenceable: Attribute::get_named_enum_kind_id("dereferenceable"),
            no_merge: named("nomerge", 0),
            no_inline: named("noinline", 0),
        }
    }

    pub(super) fn of_function(&self, function: FunctionValue<'_>) {
        self.function.iter().for_each(|&attribute| function.add_attribute(AttributeLoc::Function, attribute));
    }

    /// `bytes`: size of the vmctx.
    pub(super) fn of_vmctx(&self, context: &Context, function: FunctionValue<'_>, bytes: u32) {
        self.vmctx.iter().for_each(|&attribute| function.add_attribute(AttributeLoc::Param(0), attribute));
        let size = context.create_enum_attribute(self.dereferenceable, u64::from(bytes));
        function.add_attribute(AttributeLoc::Param(0), size);
    }

    /// Keeps a call apart from others like it, whose place in the WebAssembly module is another.
    pub(super) fn no_merge(&self, call: CallSiteValue<'_>) {
        call.add_attribute(AttributeLoc::Function, self.no_merge);
    }

    pub(super) fn no_inline(&self, function: FunctionValue<'_>) {
        function.add_attribute(AttributeLoc::Function, self.no_inline);
    }
}
