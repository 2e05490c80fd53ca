//! Values of a script: arguments, expected results, and whether a value is what was expected.

use std::fmt;
use wast::core::{AbstractHeapType, HeapType, NanPattern, V128Pattern, WastArgCore, WastRetCore};
use wast::{WastArg, WastRet};

/// A value that goes into or comes out of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Val {
    I32(u32),
    I64(u64),
    /// By its bits.
    F32(u32),
    /// By its bits.
    F64(u64),
    V128(u128),
    /// Null or not; a script cannot tell functions apart.
    Func {
        null: bool,
    },
    /// The host's value, or null.
    Extern(Option<u32>),
    /// Null or not.
    Exn {
        null: bool,
    },
}

/// The null of a kind of reference; none for GC's.
fn null(ty: &HeapType<'_>) -> Option<Val> {
    use AbstractHeapType as Ty;
    match ty {
        HeapType::Abstract { ty: Ty::Func | Ty::NoFunc, .. } | HeapType::Concrete(_) => Some(Val::Func { null: true }),
        HeapType::Abstract { ty: Ty::Extern | Ty::NoExtern, .. } => Some(Val::Extern(None)),
        HeapType::Abstract { ty: Ty::Exn | Ty::NoExn, .. } => Some(Val::Exn { null: true }),
        _ => None,
    }
}

impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Val::I32(value) => write!(f, "i32 {} ({value:#x})", value.cast_signed()),
            Val::I64(value) => write!(f, "i64 {} ({value:#x})", value.cast_signed()),
            Val::F32(bits) => write!(f, "f32 {} ({bits:#x})", f32::from_bits(bits)),
            Val::F64(bits) => write!(f, "f64 {} ({bits:#x})", f64::from_bits(bits)),
            Val::V128(bits) => write!(f, "v128 {bits:#034x}"),
            Val::Func { null: true } => f.write_str("ref.null func"),
            Val::Func { null: false } => f.write_str("ref.func"),
            Val::Extern(None) => f.write_str("ref.null extern"),
            Val::Extern(Some(value)) => write!(f, "ref.extern {value}"),
            Val::Exn { null: true } => f.write_str("ref.null exn"),
            Val::Exn { null: false } => f.write_str("an exception"),
        }
    }
}

/// Values, separated by commas, for messages.
pub(crate) fn list(values: &[Val]) -> String {
    if values.is_empty() {
        return "no value".to_string();
    }
    values.iter().map(Val::to_string).collect::<Vec<_>>().join(", ")
}

/// The value of an argument; an error names the kind that we do not have.
pub(crate) fn argument(argument: &WastArg<'_>) -> Result<Val, String> {
    let WastArg::Core(argument) = argument else { return Err("components are not enabled".to_string()) };
    Ok(match argument {
        WastArgCore::I32(value) => Val::I32(value.cast_unsigned()),
        WastArgCore::I64(value) => Val::I64(value.cast_unsigned()),
        WastArgCore::F32(value) => Val::F32(value.bits),
        WastArgCore::F64(value) => Val::F64(value.bits),
        WastArgCore::V128(value) => Val::V128(u128::from_le_bytes(value.to_le_bytes())),
        WastArgCore::RefExtern(value) => Val::Extern(Some(*value)),
        other => {
            let null = if let WastArgCore::RefNull(ty) = other { null(ty) } else { None };
            return null.ok_or_else(|| format!("argument {other:?} is of a proposal that is not enabled"));
        }
    })
}

/// Whether `got` is what `expected` allows.
pub(crate) fn matches(expected: &WastRet<'_>, got: Val) -> bool {
    match expected {
        WastRet::Core(expected) => matches_core(expected, got),
        _ => false,
    }
}

fn matches_core(expected: &WastRetCore<'_>, got: Val) -> bool {
    match (expected, got) {
        (WastRetCore::I32(expected), Val::I32(got)) => expected.cast_unsigned() == got,
        (WastRetCore::I64(expected), Val::I64(got)) => expected.cast_unsigned() == got,
        (WastRetCore::F32(expected), Val::F32(got)) => matches_f32(expected, got),
        (WastRetCore::F64(expected), Val::F64(got)) => matches_f64(expected, got),
        (WastRetCore::V128(expected), Val::V128(got)) => matches_v128(expected, got.to_le_bytes()),
        (WastRetCore::RefNull(Some(ty)), got) => null(ty) == Some(got),
        (WastRetCore::RefNull(None), got) => {
            matches!(got, Val::Func { null: true } | Val::Extern(None) | Val::Exn { null: true })
        }
        (WastRetCore::RefExtern(expected), Val::Extern(Some(got))) => expected.is_none_or(|expected| expected == got),
        (WastRetCore::RefFunc(_), Val::Func { null }) => !null,
        (WastRetCore::Either(cases), got) => cases.iter().any(|case| matches_core(case, got)),
        _ => false,
    }
}

fn matches_f32(expected: &NanPattern<wast::token::F32>, got: u32) -> bool {
    const QUIET: u32 = 0x7fc0_0000;
    match expected {
        NanPattern::CanonicalNan => got & 0x7fff_ffff == QUIET,
        NanPattern::ArithmeticNan => got & QUIET == QUIET,
        NanPattern::Value(value) => value.bits == got,
    }
}

fn matches_f64(expected: &NanPattern<wast::token::F64>, got: u64) -> bool {
    const QUIET: u64 = 0x7ff8_0000_0000_0000;
    match expected {
        NanPattern::CanonicalNan => got & 0x7fff_ffff_ffff_ffff == QUIET,
        NanPattern::ArithmeticNan => got & QUIET == QUIET,
        NanPattern::Value(value) => value.bits == got,
    }
}

fn matches_v128(expected: &V128Pattern, got: [u8; 16]) -> bool {
    let lane4 = |lane: usize| u32::from_le_bytes([got[4 * lane], got[4 * lane + 1], got[4 * lane + 2], got[4 * lane + 3]]);
    let lane8 = |lane: usize| u64::from(lane4(2 * lane)) | u64::from(lane4(2 * lane + 1)) << 32;
    match expected {
        V128Pattern::I8x16(lanes) => lanes.iter().zip(got).all(|(lane, got)| lane.cast_unsigned() == got),
        V128Pattern::I16x8(lanes) => {
            lanes.iter().zip(got.chunks_exact(2)).all(|(lane, got)| lane.to_le_bytes().as_slice() == got)
        }
        V128Pattern::I32x4(lanes) => (0..4).all(|i| lanes[i].cast_unsigned() == lane4(i)),
        V128Pattern::I64x2(lanes) => (0..2).all(|i| lanes[i].cast_unsigned() == lane8(i)),
        V128Pattern::F32x4(lanes) => (0..4).all(|i| matches_f32(&lanes[i], lane4(i))),
        V128Pattern::F64x2(lanes) => (0..2).all(|i| matches_f64(&lanes[i], lane8(i))),
    }
}

/// What results a script expects, for messages.
pub(crate) fn expectation(results: &[WastRet<'_>]) -> String {
    if results.is_empty() {
        return "no value".to_string();
    }
    results.iter().map(describe).collect::<Vec<_>>().join(", ")
}

fn describe(expected: &WastRet<'_>) -> String {
    let WastRet::Core(expected) = expected else { return "a component's value".to_string() };
    describe_core(expected)
}

fn describe_core(expected: &WastRetCore<'_>) -> String {
    match expected {
        WastRetCore::I32(value) => Val::I32(value.cast_unsigned()).to_string(),
        WastRetCore::I64(value) => Val::I64(value.cast_unsigned()).to_string(),
        WastRetCore::F32(NanPattern::Value(value)) => Val::F32(value.bits).to_string(),
        WastRetCore::F64(NanPattern::Value(value)) => Val::F64(value.bits).to_string(),
        WastRetCore::F32(NanPattern::CanonicalNan) => "f32 nan:canonical".to_string(),
        WastRetCore::F64(NanPattern::CanonicalNan) => "f64 nan:canonical".to_string(),
        WastRetCore::F32(NanPattern::ArithmeticNan) => "f32 nan:arithmetic".to_string(),
        WastRetCore::F64(NanPattern::ArithmeticNan) => "f64 nan:arithmetic".to_string(),
        WastRetCore::RefExtern(Some(value)) => Val::Extern(Some(*value)).to_string(),
        WastRetCore::RefNull(_) => "ref.null".to_string(),
        WastRetCore::RefFunc(_) => "ref.func".to_string(),
        WastRetCore::Either(cases) => {
            format!("either of {}", cases.iter().map(describe_core).collect::<Vec<_>>().join(" | "))
        }
        other => format!("{other:?}"),
    }
}
