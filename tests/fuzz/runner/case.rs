//! One module and the calls made of it: what both sides are given, what they answer, and when two answers are the same.

use crate::prepare::REFUEL;
use crate::random::Random;
use anyhow::Result;
use std::fmt;
use wasmparser::{ExternalKind, FuncType, Parser, Payload, TypeRef, ValType};

/// Calls of each exported function.
const CALLS_EACH: u32 = 3;

/// Calls of a module at most.
const CALLS_MAX: usize = 24;

/// A value on either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Val {
    I32(i32),
    I64(i64),
    F32(u32),
    F64(u64),
    V128(u128),
    /// Which function it is cannot be asked, only whether it is one.
    Func {
        null: bool,
    },
    Extern(Option<u32>),
}

/// Types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    I32,
    I64,
    F32,
    F64,
    V128,
    Func,
    Extern,
}

impl Val {
    /// Equal, or both NaNs: which one an operator makes is not specified.
    fn is_same(self, other: Val) -> bool {
        match (self, other) {
            (Val::F32(a), Val::F32(b)) => a == b || (f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan()),
            (Val::F64(a), Val::F64(b)) => a == b || (f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan()),
            _ => self == other,
        }
    }

    pub(crate) fn random(ty: Ty, random: &mut Random) -> Val {
        match ty {
            Ty::I32 => Val::I32(random.i32()),
            Ty::I64 => Val::I64(random.i64()),
            Ty::F32 => Val::F32(random.f32()),
            Ty::F64 => Val::F64(random.f64()),
            Ty::V128 => Val::V128(u128::from(random.bits()) | (u128::from(random.f64()) << 64)),
            Ty::Func => Val::Func { null: true },
            Ty::Extern => Val::Extern(random.chance(70).then(|| random.below(100) as u32)),
        }
    }
}

impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Val::I32(value) => write!(f, "i32 {value} ({value:#x})"),
            Val::I64(value) => write!(f, "i64 {value} ({value:#x})"),
            Val::F32(bits) => write!(f, "f32 {} ({bits:#x})", f32::from_bits(bits)),
            Val::F64(bits) => write!(f, "f64 {} ({bits:#x})", f64::from_bits(bits)),
            Val::V128(bits) => write!(f, "v128 {bits:#034x}"),
            Val::Func { null } => write!(f, "{}", if null { "ref.null func" } else { "ref.func" }),
            Val::Extern(None) => f.write_str("ref.null extern"),
            Val::Extern(Some(value)) => write!(f, "ref.extern {value}"),
        }
    }
}

fn list(values: &[Val]) -> String {
    values.iter().map(Val::to_string).collect::<Vec<_>>().join(", ")
}

/// A call of an exported function.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) export: String,
    pub(crate) arguments: Vec<Val>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.export, list(&self.arguments))
    }
}

/// What the guest asked of the host.
#[derive(Clone, Debug)]
pub(crate) struct HostCall {
    pub(crate) import: u32,
    pub(crate) arguments: Vec<Val>,
}

/// What the host answers: it depends on the seed and on how many calls came before, and on nothing else.
pub(crate) fn host_results(seed: u64, calls_before: usize, types: &[Ty]) -> Vec<Val> {
    let mut random = Random::new(seed.wrapping_add(calls_before as u64), "host");
    types.iter().map(|ty| Val::random(*ty, &mut random)).collect()
}

/// How a call, or an instantiation with its start function, ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Returned(Vec<Val>),
    Trapped(&'static str),
    /// It ran into a limit that is not the language's.
    Inconclusive(&'static str),
    /// It did what nothing may do.
    Broken(String),
}

/// What is there after a call, by its export's name.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) memories: Vec<(String, Vec<u8>)>,
    pub(crate) globals: Vec<(String, Val)>,
    pub(crate) tables: Vec<(String, Vec<Val>)>,
}

/// One call's end.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) outcome: Outcome,
    pub(crate) host: Vec<HostCall>,
    /// After a trap nothing is promised about it: the sandbox is discarded.
    pub(crate) state: Option<State>,
}

/// Something that runs a module.
pub(crate) trait Machine {
    /// A new instance, in place of the one before.
    fn instantiate(&mut self) -> Result<Step>;

    /// A call with full fuel.
    fn call(&mut self, call: &Call) -> Result<Step>;
}

/// The calls made of a module.
pub(crate) fn calls(wasm: &[u8], seed: u64) -> Result<Vec<Call>> {
    let (mut types, mut functions, mut imported) = (Vec::new(), Vec::new(), 0);
    let mut exports = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::TypeSection(section) => {
                for group in section {
                    for ty in group?.into_types() {
                        types.push(match ty.composite_type.inner {
                            wasmparser::CompositeInnerType::Func(ty) => Some(ty),
                            _ => None,
                        });
                    }
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    if let TypeRef::Func(ty) = import?.ty {
                        functions.push(ty);
                        imported += 1;
                    }
                }
            }
            Payload::FunctionSection(section) => {
                for ty in section {
                    functions.push(ty?);
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    if export.kind == ExternalKind::Func && export.index >= imported && export.name != REFUEL {
                        exports.push((export.name.to_string(), export.index));
                    }
                }
            }
            _ => {}
        }
    }
    let mut calls = Vec::new();
    for round in 0..CALLS_EACH {
        for (name, index) in &exports {
            let ty = functions.get(*index as usize).and_then(|ty| types.get(*ty as usize)?.as_ref());
            let Some(params) = ty.and_then(parameters) else { continue };
            let mut random = Random::new(seed.wrapping_add(u64::from(round)), name);
            let arguments = params.into_iter().map(|ty| Val::random(ty, &mut random)).collect();
            calls.push(Call { export: name.clone(), arguments });
        }
    }
    calls.truncate(CALLS_MAX);
    Ok(calls)
}

/// None when there is a type among them of which we have no values.
fn parameters(ty: &FuncType) -> Option<Vec<Ty>> {
    let one = |ty: &ValType| {
        Some(match *ty {
            ValType::I32 => Ty::I32,
            ValType::I64 => Ty::I64,
            ValType::F32 => Ty::F32,
            ValType::F64 => Ty::F64,
            ValType::V128 => Ty::V128,
            ValType::FUNCREF => Ty::Func,
            ValType::EXTERNREF => Ty::Extern,
            ValType::Ref(_) => return None,
        })
    };
    ty.params().iter().map(one).collect()
}

/// What differs between a step of the reference and ours: what was expected, and what we got.
pub(crate) fn difference(expected: &Step, got: &Step) -> Option<(String, String)> {
    let outcomes = match (&expected.outcome, &got.outcome) {
        (Outcome::Returned(a), Outcome::Returned(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(*b)),
        (Outcome::Trapped(a), Outcome::Trapped(b)) => a == b,
        _ => false,
    };
    if !outcomes {
        return Some((expected.outcome.to_string(), got.outcome.to_string()));
    }
    let same_call =
        |a: &HostCall, b: &HostCall| a.import == b.import && a.arguments.iter().zip(&b.arguments).all(|(a, b)| a.is_same(*b));
    if expected.host.len() != got.host.len() || !expected.host.iter().zip(&got.host).all(|(a, b)| same_call(a, b)) {
        return Some((format!("host calls {:?}", expected.host), format!("host calls {:?}", got.host)));
    }
    let (expected, got) = (expected.state.as_ref()?, got.state.as_ref()?);
    for ((name, a), (_, b)) in expected.globals.iter().zip(&got.globals) {
        if !a.is_same(*b) {
            return Some((format!("global {name:?}: {a}"), format!("global {name:?}: {b}")));
        }
    }
    for ((name, a), (_, b)) in expected.tables.iter().zip(&got.tables) {
        if a != b {
            return Some((format!("table {name:?}: {}", list(a)), format!("table {name:?}: {}", list(b))));
        }
    }
    for ((name, a), (_, b)) in expected.memories.iter().zip(&got.memories) {
        if a.len() != b.len() {
            return Some((format!("memory {name:?}: {} bytes", a.len()), format!("memory {name:?}: {} bytes", b.len())));
        }
        if let Some(at) = a.iter().zip(b).position(|(a, b)| a != b) {
            let show = |bytes: &[u8]| format!("memory {name:?} at {at:#x}: {:02x?}", &bytes[at..bytes.len().min(at + 16)]);
            return Some((show(a), show(b)));
        }
    }
    None
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Returned(values) => {
                write!(f, "returned {}", if values.is_empty() { "nothing".to_string() } else { list(values) })
            }
            Outcome::Trapped(kind) => write!(f, "trap: {kind}"),
            Outcome::Inconclusive(why) => write!(f, "inconclusive: {why}"),
            Outcome::Broken(what) => f.write_str(what),
        }
    }
}
