//! Control frames.

use awsm_abi::types::ValType;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, PhiValue, PointerValue};

/// An open block, loop or if, or the function's body.
pub(super) struct Frame<'ctx> {
    pub(super) kind: FrameKind<'ctx>,
    /// Types of its results.
    pub(super) results: Vec<ValType>,
    /// Height of the operand stack below its parameters.
    pub(super) height: usize,
    /// Where control continues after it; made by the first branch there.
    pub(super) join: Option<Join<'ctx>>,
    /// Where exceptions of what stands in it go, if it catches any.
    pub(super) handler: Option<Handler<'ctx>>,
}

/// Where exceptions go.
#[derive(Clone, Copy)]
pub(super) struct Handler<'ctx> {
    pub(super) block: BasicBlock<'ctx>,
    /// A cell on the stack with the exception.
    pub(super) exception: PointerValue<'ctx>,
}

/// Kinds of frames.
pub(super) enum FrameKind<'ctx> {
    /// The function's body.
    Body,
    Block,
    Loop {
        /// Where branches to it go.
        header: Join<'ctx>,
    },
    /// The first arm of an if.
    If {
        /// Where the second arm begins.
        otherwise: BasicBlock<'ctx>,
        /// The parameters, for the second arm.
        params: Vec<BasicValueEnum<'ctx>>,
    },
    /// The second arm of an if.
    Else,
    /// The body of a legacy try.
    Try,
    /// A handler of a legacy try.
    Catch {
        /// The exception, for rethrow.
        exception: PointerValue<'ctx>,
        /// Where exceptions go on that this handler and those before it do not catch.
        next: Option<BasicBlock<'ctx>>,
    },
}

/// A block that several others branch to, with the values they bring.
#[derive(Clone)]
pub(super) struct Join<'ctx> {
    pub(super) block: BasicBlock<'ctx>,
    pub(super) values: Vec<PhiValue<'ctx>>,
}

impl<'ctx> Join<'ctx> {
    /// Records that `from` branches here with `values`. To be called once per edge.
    pub(super) fn add_edge(&self, from: BasicBlock<'ctx>, values: &[BasicValueEnum<'ctx>]) {
        for (phi, value) in self.values.iter().zip(values) {
            phi.add_incoming(&[(value, from)]);
        }
    }
}

impl Frame<'_> {
    pub(super) fn body(results: &[ValType]) -> Self {
        Frame { kind: FrameKind::Body, results: results.to_vec(), height: 0, join: None, handler: None }
    }
}
