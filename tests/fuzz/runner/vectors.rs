//! Loops with vectors: as in `loops.rs`, with 128-bit values among the accumulators, loaded, computed with and stored in every way there is.

use crate::loops::Writer;
use wasm_encoder::{Instruction as I, MemArg, ValType};

macro_rules! list {
    ($($op:ident)*) => { &[$( I::$op ),*] };
}

/// Operators on one vector.
const UNARY: &[I<'static>] = list![
    V128Not I8x16Abs I8x16Neg I8x16Popcnt I16x8ExtAddPairwiseI8x16S I16x8ExtAddPairwiseI8x16U I16x8Abs I16x8Neg
    I16x8ExtendLowI8x16S I16x8ExtendHighI8x16S I16x8ExtendLowI8x16U I16x8ExtendHighI8x16U I32x4ExtAddPairwiseI16x8S
    I32x4ExtAddPairwiseI16x8U I32x4Abs I32x4Neg I32x4ExtendLowI16x8S I32x4ExtendHighI16x8S I32x4ExtendLowI16x8U
    I32x4ExtendHighI16x8U I64x2Abs I64x2Neg I64x2ExtendLowI32x4S I64x2ExtendHighI32x4S I64x2ExtendLowI32x4U
    I64x2ExtendHighI32x4U F32x4Ceil F32x4Floor F32x4Trunc F32x4Nearest F32x4Abs F32x4Neg F32x4Sqrt F64x2Ceil F64x2Floor
    F64x2Trunc F64x2Nearest F64x2Abs F64x2Neg F64x2Sqrt I32x4TruncSatF32x4S I32x4TruncSatF32x4U F32x4ConvertI32x4S
    F32x4ConvertI32x4U I32x4TruncSatF64x2SZero I32x4TruncSatF64x2UZero F64x2ConvertLowI32x4S F64x2ConvertLowI32x4U
    F32x4DemoteF64x2Zero F64x2PromoteLowF32x4
];

/// Operators on two.
const BINARY: &[I<'static>] = list![
    I8x16Swizzle I8x16Eq I8x16Ne I8x16LtS I8x16LtU I8x16GtS I8x16GtU I8x16LeS I8x16LeU I8x16GeS I8x16GeU I16x8Eq I16x8Ne
    I16x8LtS I16x8LtU I16x8GtS I16x8GtU I16x8LeS I16x8LeU I16x8GeS I16x8GeU I32x4Eq I32x4Ne I32x4LtS I32x4LtU I32x4GtS
    I32x4GtU I32x4LeS I32x4LeU I32x4GeS I32x4GeU I64x2Eq I64x2Ne I64x2LtS I64x2GtS I64x2LeS I64x2GeS F32x4Eq F32x4Ne F32x4Lt
    F32x4Gt F32x4Le F32x4Ge F64x2Eq F64x2Ne F64x2Lt F64x2Gt F64x2Le F64x2Ge V128And V128AndNot V128Or V128Xor
    I8x16NarrowI16x8S I8x16NarrowI16x8U I8x16Add I8x16AddSatS I8x16AddSatU I8x16Sub I8x16SubSatS I8x16SubSatU I8x16MinS
    I8x16MinU I8x16MaxS I8x16MaxU I8x16AvgrU I16x8Q15MulrSatS I16x8NarrowI32x4S I16x8NarrowI32x4U I16x8Add I16x8AddSatS
    I16x8AddSatU I16x8Sub I16x8SubSatS I16x8SubSatU I16x8Mul I16x8MinS I16x8MinU I16x8MaxS I16x8MaxU I16x8AvgrU
    I16x8ExtMulLowI8x16S I16x8ExtMulHighI8x16S I16x8ExtMulLowI8x16U I16x8ExtMulHighI8x16U I32x4Add I32x4Sub I32x4Mul I32x4MinS
    I32x4MinU I32x4MaxS I32x4MaxU I32x4DotI16x8S I32x4ExtMulLowI16x8S I32x4ExtMulHighI16x8S I32x4ExtMulLowI16x8U
    I32x4ExtMulHighI16x8U I64x2Add I64x2Sub I64x2Mul I64x2ExtMulLowI32x4S I64x2ExtMulHighI32x4S I64x2ExtMulLowI32x4U
    I64x2ExtMulHighI32x4U F32x4Add F32x4Sub F32x4Mul F32x4Div F32x4Min F32x4Max F32x4PMin F32x4PMax F64x2Add F64x2Sub F64x2Mul
    F64x2Div F64x2Min F64x2Max F64x2PMin F64x2PMax
];

/// Those of them that real programs' reductions use.
const REDUCTIONS: &[I<'static>] = list![
    I32x4Add I64x2Add F32x4Add F64x2Add F64x2Mul I16x8AddSatS I8x16MaxU F32x4Max V128Xor
];

/// A vector and an `i32`.
const SHIFTS: &[I<'static>] = list![
    I8x16Shl I8x16ShrS I8x16ShrU I16x8Shl I16x8ShrS I16x8ShrU I32x4Shl I32x4ShrS I32x4ShrU I64x2Shl I64x2ShrS I64x2ShrU
];

/// From a vector to an `i32`.
const TESTS: &[I<'static>] = list![
    V128AnyTrue I8x16AllTrue I8x16Bitmask I16x8AllTrue I16x8Bitmask I32x4AllTrue I32x4Bitmask I64x2AllTrue I64x2Bitmask
];

macro_rules! shapes {
    ($($ty:ident $lanes:literal $splat:ident $replace:ident),* $(,)?) => {
        &[$( (ValType::$ty, $lanes, I::$splat, |lane| I::$replace(lane)) ),*]
    };
}

/// A lane's type, their number, the operator that makes all lanes one number, and the one that replaces one.
type Lanes = (ValType, u64, I<'static>, fn(u8) -> I<'static>);

const SHAPES: &[Lanes] = shapes![
    I32 16 I8x16Splat I8x16ReplaceLane, I32 8 I16x8Splat I16x8ReplaceLane, I32 4 I32x4Splat I32x4ReplaceLane,
    I64 2 I64x2Splat I64x2ReplaceLane, F32 4 F32x4Splat F32x4ReplaceLane, F64 2 F64x2Splat F64x2ReplaceLane,
];

macro_rules! extracts {
    ($($ty:ident $lanes:literal $op:ident),* $(,)?) => { &[$( (ValType::$ty, $lanes, |lane| I::$op(lane)) ),*] };
}

/// A type, the number of lanes, the operator that takes one out.
type Extract = (ValType, u64, fn(u8) -> I<'static>);

const EXTRACTS: &[Extract] = extracts![
    I32 16 I8x16ExtractLaneS, I32 16 I8x16ExtractLaneU, I32 8 I16x8ExtractLaneS, I32 8 I16x8ExtractLaneU, I32 4 I32x4ExtractLane,
    I64 2 I64x2ExtractLane, F32 4 F32x4ExtractLane, F64 2 F64x2ExtractLane,
];

macro_rules! loads {
    ($($op:ident)*) => { &[$( |memarg| I::$op(memarg) ),*] };
}

const LOADS: &[fn(MemArg) -> I<'static>] = loads![
    V128Load V128Load V128Load V128Load8x8S V128Load8x8U V128Load16x4S V128Load16x4U V128Load32x2S V128Load32x2U
    V128Load8Splat V128Load16Splat V128Load32Splat V128Load64Splat V128Load32Zero V128Load64Zero
];

macro_rules! lanes {
    ($($op:ident $lanes:literal),* $(,)?) => { &[$( (|memarg, lane| I::$op { memarg, lane }, $lanes) ),*] };
}

/// An access of one lane, and how many there are.
type LaneAccess = (fn(MemArg, u8) -> I<'static>, u64);

const LOAD_LANES: &[LaneAccess] = lanes![V128Load8Lane 16, V128Load16Lane 8, V128Load32Lane 4, V128Load64Lane 2];
const STORE_LANES: &[LaneAccess] = lanes![V128Store8Lane 16, V128Store16Lane 8, V128Store32Lane 4, V128Store64Lane 2];

impl Writer<'_> {
    pub(crate) fn vector_statement(&mut self) {
        match self.random.below(10) {
            0..=3 => {
                let offset = self.address();
                self.vector(3);
                let arg = self.arg(offset);
                self.emit([I::V128Store(arg)]);
            }
            4 => {
                let offset = self.address();
                self.vector(2);
                let (arg, (store, lanes)) = (self.arg(offset), *self.random.pick(STORE_LANES));
                let lane = self.random.below(lanes) as u8;
                self.emit([store(arg, lane)]);
            }
            5 | 6 => {
                self.emit([I::LocalGet(Self::VECTOR)]);
                self.vector(2);
                let op = self.random.pick(REDUCTIONS).clone();
                self.emit([op, I::LocalSet(Self::VECTOR)]);
            }
            7 => {
                self.vector(2);
                self.emit([I::GlobalSet(Self::VECTOR_GLOBAL)]);
            }
            // A load whose result is not needed, or of which only a lane is needed.
            8 => {
                self.vector_load();
                self.emit([I::Drop]);
            }
            _ => {
                self.vector(3);
                self.emit([I::LocalSet(Self::VECTOR)]);
            }
        }
    }

    fn vector_load(&mut self) {
        let offset = self.address();
        let (arg, load) = (self.arg(offset), *self.random.pick(LOADS));
        self.emit([load(arg)]);
    }

    /// Puts a vector on the stack.
    pub(crate) fn vector(&mut self, deep: u32) {
        if deep == 0 || self.random.chance(15) {
            return match self.random.below(5) {
                0 => {
                    let constant = u128::from(self.random.i64().cast_unsigned()) | u128::from(self.random.f64()) << 64;
                    self.emit([I::V128Const(constant.cast_signed())]);
                }
                1 => self.emit([I::GlobalGet(Self::VECTOR_GLOBAL)]),
                2 => self.emit([I::LocalGet(Self::VECTOR)]),
                _ => self.vector_load(),
            };
        }
        match self.random.below(14) {
            0..=4 => {
                self.vector(deep - 1);
                self.vector(deep - 1);
                let op = self.random.pick(BINARY).clone();
                self.emit([op]);
            }
            5 | 6 => {
                self.vector(deep - 1);
                let op = self.random.pick(UNARY).clone();
                self.emit([op]);
            }
            7 => {
                self.vector(deep - 1);
                self.expression(ValType::I32, deep - 1);
                let op = self.random.pick(SHIFTS).clone();
                self.emit([op]);
            }
            8 => {
                let (ty, lanes, splat, replace) = self.random.pick(SHAPES).clone();
                if self.random.chance(50) {
                    self.expression(ty, deep - 1);
                    self.emit([splat]);
                } else {
                    let lane = self.random.below(lanes) as u8;
                    self.vector(deep - 1);
                    self.expression(ty, deep - 1);
                    self.emit([replace(lane)]);
                }
            }
            9 => {
                let offset = self.address();
                self.vector(deep - 1);
                let (arg, (load, lanes)) = (self.arg(offset), *self.random.pick(LOAD_LANES));
                let lane = self.random.below(lanes) as u8;
                self.emit([load(arg, lane)]);
            }
            10 => {
                self.vector(deep - 1);
                self.vector(deep - 1);
                let lanes = std::array::from_fn(|_| self.random.below(32) as u8);
                self.emit([I::I8x16Shuffle(lanes)]);
            }
            11 => {
                (0..3).for_each(|_| self.vector(deep - 1));
                self.emit([I::V128Bitselect]);
            }
            12 => {
                self.vector(deep - 1);
                self.vector(deep - 1);
                self.expression(ValType::I32, deep - 1);
                self.emit([I::Select]);
            }
            _ => self.vector_load(),
        }
    }

    /// Puts a number on the stack that comes out of a vector.
    pub(crate) fn number_of_vector(&mut self, ty: ValType, deep: u32) {
        self.vector(deep);
        if ty == ValType::I32 && self.random.chance(50) {
            let op = self.random.pick(TESTS).clone();
            return self.emit([op]);
        }
        let of_type: Vec<&Extract> = EXTRACTS.iter().filter(|(from, _, _)| *from == ty).collect();
        let (_, lanes, extract) = **self.random.pick(&of_type);
        let lane = self.random.below(lanes) as u8;
        self.emit([extract(lane)]);
    }
}
