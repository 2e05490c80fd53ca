//! Control operators (core specification, section 2.4.8), without calls.

use awsm_abi::calls::SLOT_BYTES;
use awsm_abi::trap::TrapCode;
use awsm_abi::types::ValType;
use inkwell::values::{BasicValueEnum, IntValue};
use wasmparser::{BlockType, BrTable, Operator};

use super::entries::build_return;
use super::frame::{Frame, FrameKind, Join};
use super::function::FunctionTranslator;
use crate::error::CompileError;
use crate::llvm::AliasClass;
use crate::module::val_type;

impl<'ctx> FunctionTranslator<'_, 'ctx> {
    /// Translates a control operator; false when `op` is none. Sees unreachable operators too, and keeps track of their nesting.
    pub(super) fn control(&mut self, op: &Operator<'_>) -> Result<bool, CompileError> {
        if !self.reachable {
            match op {
                Operator::Block { .. }
                | Operator::Loop { .. }
                | Operator::If { .. }
                | Operator::TryTable { .. }
                | Operator::Try { .. } => self.dead_frames += 1,
                Operator::Else if self.dead_frames == 0 => self.begin_else()?,
                Operator::Catch { tag_index } if self.dead_frames == 0 => self.begin_catch(Some(*tag_index))?,
                Operator::CatchAll if self.dead_frames == 0 => self.begin_catch(None)?,
                Operator::End if self.dead_frames == 0 => self.end()?,
                Operator::Delegate { relative_depth } if self.dead_frames == 0 => self.delegate(*relative_depth)?,
                Operator::End | Operator::Delegate { .. } => self.dead_frames -= 1,
                _ => {}
            }
            return Ok(true);
        }
        match op {
            Operator::Unreachable => {
                self.trap(TrapCode::Unreachable)?;
                self.reachable = false;
            }
            Operator::Nop => {}
            Operator::Block { blockty } => self.begin_block(*blockty),
            Operator::Loop { blockty } => self.begin_loop(*blockty)?,
            Operator::If { blockty } => self.begin_if(*blockty)?,
            Operator::Else => self.begin_else()?,
            Operator::End => self.end()?,
            Operator::Br { relative_depth } => {
                self.branch(*relative_depth)?;
                self.reachable = false;
            }
            Operator::TryTable { try_table } => self.begin_try_table(try_table)?,
            Operator::Try { blockty } => self.begin_try(*blockty)?,
            Operator::Catch { tag_index } => self.begin_catch(Some(*tag_index))?,
            Operator::CatchAll => self.begin_catch(None)?,
            Operator::Delegate { relative_depth } => self.delegate(*relative_depth)?,
            Operator::BrIf { relative_depth } => {
                let condition = self.pop_condition()?;
                self.branch_if(condition, *relative_depth)?;
            }
            Operator::BrOnNull { relative_depth } => {
                let reference = self.pop_int();
                let null = self.is_null(reference)?;
                self.branch_if(null, *relative_depth)?;
                self.push(reference);
            }
            Operator::BrOnNonNull { relative_depth } => {
                let null = self.is_null(self.top_int())?;
                let condition = self.builder.build_not(null, "")?;
                self.branch_if(condition, *relative_depth)?;
                self.pop();
            }
            Operator::BrTable { targets } => {
                self.branch_table(targets)?;
                self.reachable = false;
            }
            Operator::Return => {
                self.branch(self.frames.len() as u32 - 1)?;
                self.reachable = false;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Numbers of parameters and types of results of a block.
    pub(super) fn signature(&self, ty: BlockType) -> (Vec<ValType>, Vec<ValType>) {
        match ty {
            BlockType::Empty => (Vec::new(), Vec::new()),
            BlockType::Type(ty) => (Vec::new(), val_type(ty).into_iter().collect()),
            BlockType::FuncType(index) => {
                let ty = &self.unit.module.types[index as usize];
                (ty.params.clone(), ty.results.clone())
            }
        }
    }

    pub(super) fn open(&mut self, kind: FrameKind<'ctx>, params: usize, results: Vec<ValType>) {
        self.frames.push(Frame { kind, results, height: self.stack.len() - params, join: None, handler: None });
    }

    fn begin_block(&mut self, ty: BlockType) {
        let (params, results) = self.signature(ty);
        self.open(FrameKind::Block, params.len(), results);
    }

    fn begin_loop(&mut self, ty: BlockType) -> Result<(), CompileError> {
        let (params, results) = self.signature(ty);
        let from = self.block();
        let header = self.new_join(&params)?;
        self.builder.build_unconditional_branch(header.block)?;
        let values = self.pop_many(params.len());
        header.add_edge(from, &values);
        self.enter(&header);
        self.open(FrameKind::Loop { header }, params.len(), results);
        Ok(())
    }

    fn begin_if(&mut self, ty: BlockType) -> Result<(), CompileError> {
        let (params, results) = self.signature(ty);
        let condition = self.pop_condition()?;
        let (then, otherwise) = (self.new_block(), self.new_block());
        self.builder.build_conditional_branch(condition, then, otherwise)?;
        self.builder.position_at_end(then);
        let params = self.stack[self.stack.len() - params.len()..].to_vec();
        let count = params.len();
        self.open(FrameKind::If { otherwise, params }, count, results);
        Ok(())
    }

    fn begin_else(&mut self) -> Result<(), CompileError> {
        if self.reachable {
            self.branch(0)?;
        }
        let frame = self.innermost();
        let height = frame.height;
        if let FrameKind::If { otherwise, params } = std::mem::replace(&mut frame.kind, FrameKind::Else) {
            self.stack.truncate(height);
            self.stack.extend(params);
            self.builder.position_at_end(otherwise);
            self.reachable = true;
        }
        Ok(())
    }

    /// Ends the innermost frame, of whatever kind.
    pub(super) fn end(&mut self) -> Result<(), CompileError> {
        // An if without else passes its parameters on as results.
        if matches!(self.innermost().kind, FrameKind::If { .. }) {
            self.begin_else()?;
        }
        if self.reachable && self.innermost().join.is_some() {
            self.branch(0)?;
            self.reachable = false;
        }
        let frame = self.frames.pop().expect("validated: every end closes a frame");
        self.pass_on(&frame, self.frames.len())?;
        if let Some(join) = &frame.join {
            self.stack.truncate(frame.height);
            self.enter(join);
        } else if !self.reachable {
            self.stack.truncate(frame.height);
        }
        if matches!(frame.kind, FrameKind::Body) && self.reachable {
            self.build_return(frame.results.len())?;
        }
        Ok(())
    }

    fn build_return(&mut self, results: usize) -> Result<(), CompileError> {
        let mut values = self.pop_many(results);
        if let Some(at) = self.results {
            for (index, &value) in values.iter().enumerate() {
                let slot = self.to_slot(value)?;
                self.store(self.at(at, index as u32 * SLOT_BYTES), slot.into(), AliasClass::Results)?;
            }
            values.clear();
        }
        values.extend(self.returns_exception.then(|| BasicValueEnum::from(self.types.i64.const_zero())));
        self.reachable = false;
        build_return(&self.builder, &values)
    }

    pub(super) fn innermost(&mut self) -> &mut Frame<'ctx> {
        self.frames.last_mut().expect("validated: operators stand inside a frame")
    }

    /// Continues in `join` with the values that were brought there.
    fn enter(&mut self, join: &Join<'ctx>) {
        self.builder.position_at_end(join.block);
        self.stack.extend(join.values.iter().map(|phi| phi.as_basic_value()));
        self.reachable = true;
    }

    fn new_join(&self, types: &[ValType]) -> Result<Join<'ctx>, CompileError> {
        let current = self.block();
        let block = self.new_block();
        self.builder.position_at_end(block);
        let values = types.iter().map(|&ty| self.builder.build_phi(self.types.value(ty), "")).collect::<Result<_, _>>()?;
        self.builder.position_at_end(current);
        Ok(Join { block, values })
    }

    /// Where a branch to the frame at `depth` goes.
    fn target(&mut self, depth: u32) -> Result<Join<'ctx>, CompileError> {
        let index = self.frames.len() - 1 - depth as usize;
        if let FrameKind::Loop { header } = &self.frames[index].kind {
            return Ok(header.clone());
        }
        if self.frames[index].join.is_none() {
            let results = std::mem::take(&mut self.frames[index].results);
            self.frames[index].join = Some(self.new_join(&results)?);
            self.frames[index].results = results;
        }
        Ok(self.frames[index].join.clone().expect("was just made"))
    }

    /// Leaves for the frame at `depth` with the values on top of the stack, which stay there.
    pub(super) fn branch(&mut self, depth: u32) -> Result<(), CompileError> {
        let join = self.target(depth)?;
        join.add_edge(self.block(), &self.stack[self.stack.len() - join.values.len()..]);
        self.builder.build_unconditional_branch(join.block)?;
        Ok(())
    }

    /// As [`branch`](Self::branch), when `condition` holds.
    fn branch_if(&mut self, condition: IntValue<'ctx>, depth: u32) -> Result<(), CompileError> {
        let join = self.target(depth)?;
        let next = self.new_block();
        join.add_edge(self.block(), &self.stack[self.stack.len() - join.values.len()..]);
        self.builder.build_conditional_branch(condition, join.block, next)?;
        self.builder.position_at_end(next);
        Ok(())
    }

    fn branch_table(&mut self, table: &BrTable<'_>) -> Result<(), CompileError> {
        let selector = self.pop_int();
        let from = self.block();
        let default = self.target(table.default())?;
        let values = self.stack[self.stack.len() - default.values.len()..].to_vec();
        default.add_edge(from, &values);
        let mut cases = Vec::with_capacity(table.len() as usize);
        for (case, depth) in table.targets().enumerate() {
            let join = self.target(depth?)?;
            // A case that goes where the default goes anyway would only be another edge.
            if join.block != default.block {
                join.add_edge(from, &values);
                cases.push((self.const_i32(case as u32), join.block));
            }
        }
        self.builder.build_switch(selector, default.block, &cases)?;
        Ok(())
    }
}
