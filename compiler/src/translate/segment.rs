//! The segment register across instances (mode `segment`). It leads to memory 0 of the instance whose code runs: callers see to that before
//! they leave their instance, and again when they are back. Where nothing else is called, nothing of this is emitted.

use awsm_abi::calls::builtin;
use awsm_abi::types::Bounds;
use awsm_abi::vmctx::{self, memory};
use inkwell::IntPredicate::NE;
use inkwell::values::{IntValue, PointerValue};

use super::function::FunctionTranslator;
use crate::error::CompileError;
use crate::llvm::AliasClass;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    /// Before a call of code of the instance `callee`, which may be this one.
    pub(super) fn segment_of(&mut self, callee: PointerValue<'ctx>) -> Result<(), CompileError> {
        if !self.unit.segment {
            return Ok(());
        }
        let base = self.at(callee, vmctx::SEGMENT_BASE);
        let base = self.invariant_load(self.types.ptr.into(), base)?.into_pointer_value();
        let current = self.current_segment()?;
        let strange = self.builder.build_int_compare(NE, base, current, "")?;
        let matters = self.builder.build_is_not_null(base, "")?;
        let switches = self.builder.build_and(strange, matters, "")?;
        self.switch_segment_if(switches, |translator| {
            let place = translator.at(callee, vmctx::INSTANCE_INDEX);
            Ok(translator.invariant_load(translator.types.i32.into(), place)?.into_int_value())
        })
    }

    /// After a call that may have led to other instances.
    pub(super) fn own_segment(&mut self) -> Result<(), CompileError> {
        if self.unit.bounds.first() != Some(&Bounds::Segment) {
            return Ok(());
        }
        let current = self.current_segment()?;
        let own = self.context_pointer(self.unit.layout.memory(0) + memory::BASE)?;
        let strange = self.builder.build_int_compare(NE, current, own, "")?;
        self.switch_segment_if(strange, |translator| translator.context_i32(vmctx::INSTANCE_INDEX))
    }

    fn current_segment(&mut self) -> Result<PointerValue<'ctx>, CompileError> {
        let cell = self.context_pointer(vmctx::SEGMENT)?;
        Ok(self.load(self.types.ptr.into(), cell, AliasClass::Segment)?.into_pointer_value())
    }

    fn switch_segment_if(
        &mut self,
        condition: IntValue<'ctx>,
        instance: impl FnOnce(&mut Self) -> Result<IntValue<'ctx>, CompileError>,
    ) -> Result<(), CompileError> {
        let (switch, done) = (self.new_block(), self.new_block());
        let branch = self.builder.build_conditional_branch(condition, switch, done)?;
        self.ir.unlikely(branch)?;
        self.builder.position_at_end(switch);
        let instance = instance(self)?;
        let instance = self.zext64(instance)?;
        self.builtin_void(builtin::SEGMENT, &[instance])?;
        self.builder.build_unconditional_branch(done)?;
        self.builder.position_at_end(done);
        Ok(())
    }
}
