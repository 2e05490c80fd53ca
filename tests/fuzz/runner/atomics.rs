//! Loops with atomic operators on a shared memory: as in `loops.rs`. wasm-smith makes them, too, but never all of them.

use crate::loops::{Access, Writer, accesses};
use wasm_encoder::{Instruction as I, MemArg, Ordering, ValType};

const LOADS: &[Access] = accesses![
    I32AtomicLoad: I32 4, I32AtomicLoad8U: I32 1, I32AtomicLoad16U: I32 2, I64AtomicLoad: I64 8, I64AtomicLoad8U: I64 1,
    I64AtomicLoad16U: I64 2, I64AtomicLoad32U: I64 4,
];

const STORES: &[Access] = accesses![
    I32AtomicStore: I32 4, I32AtomicStore8: I32 1, I32AtomicStore16: I32 2, I64AtomicStore: I64 8, I64AtomicStore8: I64 1,
    I64AtomicStore16: I64 2, I64AtomicStore32: I64 4,
];

const UPDATES: &[Access] = accesses![
    I32AtomicRmwAdd: I32 4, I64AtomicRmwAdd: I64 8, I32AtomicRmw8AddU: I32 1, I32AtomicRmw16AddU: I32 2, I64AtomicRmw8AddU: I64 1,
    I64AtomicRmw16AddU: I64 2, I64AtomicRmw32AddU: I64 4, I32AtomicRmwSub: I32 4, I64AtomicRmwSub: I64 8, I32AtomicRmw8SubU: I32 1,
    I32AtomicRmw16SubU: I32 2, I64AtomicRmw8SubU: I64 1, I64AtomicRmw16SubU: I64 2, I64AtomicRmw32SubU: I64 4, I32AtomicRmwAnd: I32 4,
    I64AtomicRmwAnd: I64 8, I32AtomicRmw8AndU: I32 1, I32AtomicRmw16AndU: I32 2, I64AtomicRmw8AndU: I64 1, I64AtomicRmw16AndU: I64 2,
    I64AtomicRmw32AndU: I64 4, I32AtomicRmwOr: I32 4, I64AtomicRmwOr: I64 8, I32AtomicRmw8OrU: I32 1, I32AtomicRmw16OrU: I32 2,
    I64AtomicRmw8OrU: I64 1, I64AtomicRmw16OrU: I64 2, I64AtomicRmw32OrU: I64 4, I32AtomicRmwXor: I32 4, I64AtomicRmwXor: I64 8,
    I32AtomicRmw8XorU: I32 1, I32AtomicRmw16XorU: I32 2, I64AtomicRmw8XorU: I64 1, I64AtomicRmw16XorU: I64 2,
    I64AtomicRmw32XorU: I64 4, I32AtomicRmwXchg: I32 4, I64AtomicRmwXchg: I64 8, I32AtomicRmw8XchgU: I32 1, I32AtomicRmw16XchgU: I32 2,
    I64AtomicRmw8XchgU: I64 1, I64AtomicRmw16XchgU: I64 2, I64AtomicRmw32XchgU: I64 4,
];

const COMPARES: &[Access] = accesses![
    I32AtomicRmwCmpxchg: I32 4, I64AtomicRmwCmpxchg: I64 8, I32AtomicRmw8CmpxchgU: I32 1, I32AtomicRmw16CmpxchgU: I32 2,
    I64AtomicRmw8CmpxchgU: I64 1, I64AtomicRmw16CmpxchgU: I64 2, I64AtomicRmw32CmpxchgU: I64 4,
];

const WAITS: &[Access] = accesses![MemoryAtomicWait32: I32 4, MemoryAtomicWait64: I64 8];

impl Writer<'_> {
    pub(crate) fn atomic_statement(&mut self) {
        match self.random.below(10) {
            0 | 1 => {
                let (load, ty, width) = *self.random.pick(LOADS);
                let arg = self.aligned(width);
                self.emit([load(arg)]);
                self.result(ty);
            }
            2 | 3 => {
                let (store, ty, width) = *self.random.pick(STORES);
                let arg = self.aligned(width);
                self.expression(ty, 2);
                self.emit([store(arg)]);
            }
            4..=6 => {
                let (update, ty, width) = *self.random.pick(UPDATES);
                let arg = self.aligned(width);
                self.expression(ty, 2);
                self.emit([update(arg)]);
                self.result(ty);
            }
            7 | 8 => {
                let (compare, ty, width) = *self.random.pick(COMPARES);
                let arg = self.aligned(width);
                self.expected(ty, width, arg);
                self.expression(ty, 2);
                self.emit([compare(arg)]);
                self.result(ty);
            }
            _ if self.random.chance(30) => {
                let arg = self.aligned(4);
                self.expression(ValType::I32, 1);
                self.emit([I::MemoryAtomicNotify(arg), I::AtomicFence(Ordering::SeqCst)]);
                self.result(ValType::I32);
            }
            _ => {
                let (wait, ty, width) = *self.random.pick(WAITS);
                let arg = self.aligned(width);
                self.expected(ty, width, arg);
                let time = self.random.i64();
                self.emit([I::I64Const(time), wait(arg)]);
                self.result(ValType::I32);
            }
        }
    }

    /// Puts an address on the stack, and into a local, that is a multiple of `width` with its offset; now and then, in edgy modules, not.
    fn aligned(&mut self, width: u64) -> MemArg {
        let offset = self.address();
        let mut arg = self.arg(offset);
        if !(self.edgy && self.random.chance(2)) {
            self.emit([I::I32Const(-(width as i32)), I::I32And]);
            arg.offset &= !(width - 1);
        }
        self.emit([I::LocalTee(Self::ADDRESS)]);
        arg.align = width.ilog2();
        arg
    }

    /// Puts on the stack what is in memory there, or anything.
    fn expected(&mut self, ty: ValType, width: u64, arg: MemArg) {
        if self.random.chance(50) {
            return self.expression(ty, 2);
        }
        let of_cell = LOADS.iter().find(|(_, other, bytes)| *other == ty && *bytes == width);
        if let Some((load, _, _)) = of_cell {
            self.emit([I::LocalGet(Self::ADDRESS), load(arg)]);
        }
    }

    /// Takes a result from the stack.
    fn result(&mut self, ty: ValType) {
        let sum = Self::SUM + u32::from(ty == ValType::I64);
        let taken = if self.random.chance(20) { I::Drop } else { I::LocalSet(sum) };
        self.emit([taken]);
    }
}
