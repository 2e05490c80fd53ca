//! Exceptions (core specification, section 2.4.8: throw, try_table), and their legacy form.
//!
//! A function that may throw returns one more value, an exception or zero ([`awsm_abi::exceptions`]). So a throw is a branch to the innermost handler
//! around it, or a return, and behind each call that may throw stands a branch. A handler looks at the exception's tag and branches to the label of
//! the clause that catches it, or on to the next handler outwards.

use awsm_abi::calls::SLOT_BYTES;
use awsm_abi::calls::builtin;
use awsm_abi::exceptions as object;
use awsm_abi::trap::TrapCode;
use awsm_abi::vmctx;
use inkwell::IntPredicate::{EQ, NE, ULT};
use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PointerValue};
use wasmparser::{BlockType, Catch, Operator, TryTable};

use super::entries::build_return;
use super::frame::{Frame, FrameKind, Handler};
use super::function::FunctionTranslator;
use crate::error::CompileError;
use crate::llvm::AliasClass;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    pub(super) fn exception(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        match *op {
            Operator::Throw { tag_index } => self.throw(tag_index)?,
            Operator::ThrowRef => {
                let exception = self.pop_int();
                let null = self.is_null(exception)?;
                self.trap_if(null, TrapCode::NullReference)?;
                self.send(exception, self.frames.len())?;
            }
            Operator::Rethrow { relative_depth } => {
                let index = self.frames.len() - 1 - relative_depth as usize;
                let FrameKind::Catch { exception, .. } = self.frames[index].kind else {
                    return Err(CompileError::llvm("building IR", "rethrow outside of a handler"));
                };
                let exception = self.builder.build_load(self.types.i64, exception, "")?.into_int_value();
                self.send(exception, self.frames.len())?;
            }
            _ => return Ok(false),
        }
        self.reachable = false;
        Ok(true)
    }

    /// Makes an exception of the operands, and throws it.
    fn throw(&mut self, tag: u32) -> Result<(), CompileError> {
        let (layout, ty) = (self.unit.layout, self.unit.module.tags[tag as usize]);
        let values = self.pop_many(self.unit.module.types[ty.0 as usize].params.len());
        let record = self.context_pointer(layout.exceptions())?;
        let bytes = self.const_i64(u64::from(object::bytes(values.len() as u32)));
        self.make_room(record, bytes)?;
        let exception = self.next_exception(record)?;
        let end = self.builder.build_int_add(exception, bytes, "")?;
        self.store(self.at(record, object::RECORD_NEXT), end.into(), AliasClass::ExceptionRecord)?;

        let at = self.builder.build_int_to_ptr(exception, self.types.ptr, "")?;
        let tag = self.context_i32(layout.tag(tag))?;
        let instance = self.context_i32(vmctx::INSTANCE_INDEX)?;
        let (slots, offset) = (self.const_i32(values.len() as u32), self.const_i32(self.offset()));
        let header = [(object::TAG, tag), (object::SLOTS, slots), (object::OFFSET, offset), (object::INSTANCE, instance)];
        for (place, value) in header {
            self.store(self.at(at, place), value.into(), AliasClass::Exception)?;
        }
        for (index, value) in values.into_iter().enumerate() {
            let slot = self.to_slot(value)?;
            self.store(self.at(at, object::VALUES + index as u32 * SLOT_BYTES), slot.into(), AliasClass::Exception)?;
        }
        self.send(exception, self.frames.len())
    }

    /// Where the next exception goes; no address is zero, which a handler in the same function need not ask then.
    fn next_exception(&self, record: PointerValue<'ctx>) -> Result<IntValue<'ctx>, CompileError> {
        let next = self.load(self.types.i64.into(), self.at(record, object::RECORD_NEXT), AliasClass::ExceptionRecord)?;
        next.as_instruction_value().map_or(Ok(()), |load| self.ir.not_zero(load))?;
        Ok(next.into_int_value())
    }

    /// Asks the host for room if `bytes` more do not fit.
    fn make_room(&mut self, record: PointerValue<'ctx>, bytes: IntValue<'ctx>) -> Result<(), CompileError> {
        let next = self.next_exception(record)?;
        let end = self.load(self.types.i64.into(), self.at(record, object::RECORD_END), AliasClass::ExceptionRecord)?;
        let room = self.builder.build_int_sub(end.into_int_value(), next, "")?;
        let full = self.builder.build_int_compare(ULT, room, bytes, "")?;
        let (ask, done) = (self.new_block(), self.new_block());
        let branch = self.builder.build_conditional_branch(full, ask, done)?;
        self.ir.unlikely(branch)?;
        self.builder.position_at_end(ask);
        self.builtin_void(builtin::EXCEPTION_ROOM, &[bytes])?;
        self.builder.build_unconditional_branch(done)?;
        self.builder.position_at_end(done);
        Ok(())
    }

    /// Throws what a callee threw, if it did.
    pub(super) fn throw_if(&mut self, exception: IntValue<'ctx>) -> Result<(), CompileError> {
        let thrown = self.builder.build_int_compare(NE, exception, self.types.i64.const_zero(), "")?;
        let (caught, passed) = (self.new_block(), self.new_block());
        let branch = self.builder.build_conditional_branch(thrown, caught, passed)?;
        self.ir.unlikely(branch)?;
        self.builder.position_at_end(caught);
        self.send(exception, self.frames.len())?;
        self.builder.position_at_end(passed);
        Ok(())
    }

    /// Leaves for the innermost handler of the outermost `frames` frames, or of the function.
    fn send(&mut self, exception: IntValue<'ctx>, frames: usize) -> Result<(), CompileError> {
        let handler = match self.frames[..frames].iter().rev().find_map(|frame| frame.handler).or(self.uncaught) {
            Some(handler) => handler,
            None => *self.uncaught.insert(self.new_handler()?),
        };
        self.builder.build_store(handler.exception, exception)?;
        self.builder.build_unconditional_branch(handler.block)?;
        Ok(())
    }

    fn new_handler(&self) -> Result<Handler<'ctx>, CompileError> {
        Ok(Handler { block: self.new_block(), exception: self.stack_cell(self.types.i64)? })
    }

    /// Returns what nothing in the function catches.
    pub(super) fn return_uncaught(&mut self) -> Result<(), CompileError> {
        let Some(handler) = self.uncaught else { return Ok(()) };
        self.builder.position_at_end(handler.block);
        if !self.returns_exception {
            // Where there are no exceptions: only null is thrown, and that traps.
            return self.trap(TrapCode::Internal);
        }
        let exception = self.builder.build_load(self.types.i64, handler.exception, "")?;
        let results = if self.results.is_some() { &[] } else { self.result_types };
        let mut values: Vec<BasicValueEnum<'ctx>> = results.iter().map(|&ty| self.types.value(ty).const_zero()).collect();
        values.push(exception);
        build_return(&self.builder, &values)
    }

    pub(super) fn begin_try_table(&mut self, table: &TryTable) -> Result<(), CompileError> {
        let (params, results) = self.signature(table.ty);
        let has_handler = self.unit.module.exceptions && !table.catches.is_empty();
        // Labels are those around it.
        let handler = if has_handler { Some(self.handler(&table.catches)?) } else { None };
        self.open(FrameKind::Block, params.len(), results);
        self.innermost().handler = handler;
        Ok(())
    }

    /// Builds the handler that the clauses of a try_table describe.
    fn handler(&mut self, catches: &[Catch]) -> Result<Handler<'ctx>, CompileError> {
        let (from, height) = (self.block(), self.stack.len());
        let handler = self.new_handler()?;
        self.builder.position_at_end(handler.block);
        let exception = self.builder.build_load(self.types.i64, handler.exception, "")?.into_int_value();
        let mut catches_all = false;
        for catch in catches {
            let (tag, with_reference, label) = match *catch {
                Catch::One { tag, label } => (Some(tag), false, label),
                Catch::OneRef { tag, label } => (Some(tag), true, label),
                Catch::All { label } => (None, false, label),
                Catch::AllRef { label } => (None, true, label),
            };
            let next = tag.map(|tag| self.match_tag(exception, tag)).transpose()?;
            if with_reference {
                self.push(exception);
            }
            self.branch(label)?;
            self.stack.truncate(height);
            let Some(next) = next else {
                catches_all = true;
                break;
            };
            self.builder.position_at_end(next);
        }
        if !catches_all {
            self.send(exception, self.frames.len())?;
        }
        self.builder.position_at_end(from);
        Ok(handler)
    }

    /// Continues, with the exception's values, when it has that tag; the block returned is for when it has not.
    fn match_tag(&mut self, exception: IntValue<'ctx>, tag: u32) -> Result<inkwell::basic_block::BasicBlock<'ctx>, CompileError> {
        let at = self.builder.build_int_to_ptr(exception, self.types.ptr, "")?;
        let found = self.load(self.types.i32.into(), self.at(at, object::TAG), AliasClass::Exception)?.into_int_value();
        let wanted = self.context_i32(self.unit.layout.tag(tag))?;
        let same = self.builder.build_int_compare(EQ, found, wanted, "")?;
        let (matched, next) = (self.new_block(), self.new_block());
        self.builder.build_conditional_branch(same, matched, next)?;
        self.builder.position_at_end(matched);
        let ty = self.unit.module.tags[tag as usize];
        for (index, &ty) in self.unit.module.types[ty.0 as usize].params.iter().enumerate() {
            let slot = self.at(at, object::VALUES + index as u32 * SLOT_BYTES);
            let value = self.load(self.types.value(ty), slot, AliasClass::Exception)?;
            self.push(value);
        }
        Ok(next)
    }

    // The legacy form: handlers stand inside the block.

    pub(super) fn begin_try(&mut self, ty: BlockType) -> Result<(), CompileError> {
        let (params, results) = self.signature(ty);
        let handler = self.new_handler()?;
        self.open(FrameKind::Try, params.len(), results);
        self.innermost().handler = Some(handler);
        Ok(())
    }

    /// Begins a handler: of a tag, or of everything.
    pub(super) fn begin_catch(&mut self, tag: Option<u32>) -> Result<(), CompileError> {
        if self.reachable {
            self.branch(0)?;
        }
        let frame = self.innermost();
        let height = frame.height;
        let (cell, block) = match (&frame.kind, frame.handler.take()) {
            (FrameKind::Catch { exception, next: Some(next) }, _) => (*exception, *next),
            (_, Some(handler)) => (handler.exception, handler.block),
            _ => return Err(CompileError::llvm("building IR", "catch outside of a try")),
        };
        self.stack.truncate(height);
        self.builder.position_at_end(block);
        self.reachable = true;
        let next = match tag {
            Some(tag) => {
                let exception = self.builder.build_load(self.types.i64, cell, "")?.into_int_value();
                Some(self.match_tag(exception, tag)?)
            }
            None => None,
        };
        self.innermost().kind = FrameKind::Catch { exception: cell, next };
        Ok(())
    }

    /// Ends a try that leaves its exceptions to the block at `depth` around it.
    pub(super) fn delegate(&mut self, depth: u32) -> Result<(), CompileError> {
        let frame = self.innermost();
        if let Some(handler) = frame.handler.take() {
            let from = self.block();
            self.builder.position_at_end(handler.block);
            let exception = self.builder.build_load(self.types.i64, handler.exception, "")?.into_int_value();
            self.send(exception, self.frames.len() - 1 - depth as usize)?;
            self.builder.position_at_end(from);
        }
        self.end()
    }

    /// Hands what a legacy try that has ended did not catch to the handlers around it.
    pub(super) fn pass_on(&mut self, frame: &Frame<'ctx>, frames: usize) -> Result<(), CompileError> {
        let (cell, block) = match (&frame.kind, frame.handler) {
            (FrameKind::Try, Some(handler)) => (handler.exception, handler.block),
            (FrameKind::Catch { exception, next: Some(next) }, _) => (*exception, *next),
            _ => return Ok(()),
        };
        let from = self.block();
        self.builder.position_at_end(block);
        let exception = self.builder.build_load(self.types.i64, cell, "")?.into_int_value();
        self.send(exception, frames)?;
        self.builder.position_at_end(from);
        Ok(())
    }
}
