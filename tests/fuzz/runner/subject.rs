//! What is tested: awsm's code in a sandbox, of the module with its calls made exceptional (`throwing.rs`).

use crate::case::{Call, HostCall, Machine, Outcome, State, Step, Ty, Val, host_results};
use crate::prepare::REFUEL;
use crate::throwing::throwing;
use anyhow::{Context, Result};
use awsm::{Bounds, CompileOptions, OptLevel, Program};
use awsm_abi::descriptor::{ExternKind, ImportType};
use awsm_abi::types::{RefKind, ValType};
use sledge_sandbox::{
    Artifact, Event, Extern, FunctionHandle, InstanceId, InstantiateError, LoadPolicy, Sandbox, SandboxLimits, TrapCode, Value,
    WorkerThread,
};
use sledge_tests::spec::Mode;
use std::time::{Duration, Instant};

/// For one call, which takes the interpreter a second at most.
const CALL_TIME_MAX: Duration = Duration::from_secs(20);

/// How often a running guest hands back control, to have the time looked at.
const QUANTUM: Duration = Duration::from_millis(20);

/// As much as the fuel lets a guest use, at any optimisation level.
const STACK_BYTES: usize = 64 << 20;

pub(crate) struct Subject {
    artifact: Artifact,
    worker: WorkerThread,
    seed: u64,
    running: Option<(Sandbox, InstanceId)>,
}

/// The options of a mode.
pub(crate) fn options(mode: Mode) -> CompileOptions {
    let bounds = match mode.bounds {
        "guard" => Bounds::Guard,
        "segment" => Bounds::Segment,
        "software" => Bounds::Software,
        _ => Bounds::None,
    };
    let opt_level = OptLevel::from_number(mode.opt_level).unwrap_or_default();
    CompileOptions { bounds, opt_level, given_up: mode.given_up, ..CompileOptions::default() }
}

impl Subject {
    pub(crate) fn new(wasm: &[u8], mode: Mode, seed: u64) -> Result<Subject> {
        let wasm = throwing(wasm, seed)?;
        let artifact = awsm::compile(&Program::single(&wasm), &options(mode), &())?;
        let artifact = Artifact::load(&artifact, &LoadPolicy::default())?;
        Ok(Subject { artifact, worker: WorkerThread::enter(QUANTUM)?, seed, running: None })
    }

    fn imports(&self, sandbox: &mut Sandbox) -> Result<Vec<Extern>> {
        let descriptor = &self.artifact.descriptor().modules[0];
        let mut externs = Vec::new();
        for import in &descriptor.imports {
            externs.push(match &import.ty {
                ImportType::Function { ty, .. } => Extern::HostFunction(descriptor.types[*ty as usize].ty.clone()),
                ImportType::Memory(ty) => Extern::Memory(sandbox.new_memory(*ty)?),
                ImportType::Table(ty) => Extern::Table(sandbox.new_table(*ty, Value::zero(ty.element))?),
                ImportType::Global(ty) => {
                    let value = host_results(self.seed, 0, &[type_of(ty.value)])[0];
                    Extern::Global(sandbox.new_global(*ty, to_value(value))?)
                }
                ImportType::Tag(_) => anyhow::bail!("exceptions are not fuzzed"),
            });
        }
        Ok(externs)
    }

    /// Runs a function to its end.
    fn run(&mut self, function: FunctionHandle, arguments: &[Value]) -> Result<Step> {
        let (sandbox, _) = self.running.as_mut().context("an instance")?;
        sandbox.prepare(function, arguments)?;
        let deadline = Instant::now() + CALL_TIME_MAX;
        let mut host = Vec::new();
        self.worker.arm();
        let outcome = loop {
            match sandbox.resume() {
                Event::Returned => break Outcome::Returned(sandbox.results().into_iter().map(from_value).collect()),
                Event::Trapped(trap) => break ended(trap.code),
                Event::HostCall(call) => {
                    let arguments = sandbox.host_args();
                    let descriptor = &self.artifact.descriptor().modules[0];
                    let functions = descriptor.imports.iter().filter_map(|import| match import.ty {
                        ImportType::Function { ty, .. } => Some(ty),
                        _ => None,
                    });
                    let ty = functions.clone().nth(call.import as usize).context("no such import")?;
                    let ty = &descriptor.types[ty as usize].ty;
                    let arguments = ty.params.iter().zip(arguments).map(|(ty, slot)| from_slot(*ty, slot.bits())).collect();
                    let results =
                        host_results(self.seed, host.len(), &ty.results.iter().copied().map(type_of).collect::<Vec<_>>());
                    host.push(HostCall { import: call.import, arguments });
                    if !results.is_empty() {
                        sandbox.host_results(&results.into_iter().map(to_value).collect::<Vec<_>>())?;
                    }
                }
                Event::Preempted if Instant::now() < deadline => {}
                // No subject here reads the time.
                Event::Waits { .. } => {}
                Event::Preempted => {
                    sandbox.kill();
                    break Outcome::Broken(format!("still running after {CALL_TIME_MAX:?}"));
                }
            }
        };
        self.worker.disarm();
        let state = if matches!(outcome, Outcome::Returned(_)) { Some(self.state()?) } else { None };
        Ok(Step { outcome, host, state })
    }

    fn state(&mut self) -> Result<State> {
        let (sandbox, instance) = self.running.as_mut().context("an instance")?;
        let mut exports: Vec<_> = self.artifact.descriptor().modules[0].exports.iter().collect();
        exports.sort_by(|a, b| a.name.cmp(&b.name));
        let mut state = State::default();
        for export in exports.into_iter().filter(|export| export.kind != ExternKind::Function) {
            let name = export.name.clone();
            match sandbox.export(*instance, &name).context("an export is missing")? {
                Extern::Memory(memory) => {
                    let memory = sandbox.memory_of(memory);
                    state.memories.push((name, memory.slice(0, memory.len())?.to_vec()));
                }
                Extern::Global(global) => state.globals.push((name, from_value(sandbox.global_get(global)))),
                Extern::Table(table) => {
                    let elements = (0..sandbox.table_len(table)).filter_map(|i| sandbox.table_get(table, i));
                    state.tables.push((name, elements.map(from_value).collect()));
                }
                Extern::Function(_) | Extern::HostFunction(_) | Extern::Tag(_) => {}
            }
        }
        Ok(state)
    }
}

impl Machine for Subject {
    fn instantiate(&mut self) -> Result<Step> {
        self.running = None;
        let limits = SandboxLimits { stack_bytes: STACK_BYTES, ..SandboxLimits::default() };
        let mut sandbox = Sandbox::new(&limits)?;
        let imports = self.imports(&mut sandbox)?;
        let instance = match sandbox.instantiate(&self.artifact, 0, &imports) {
            Ok(instance) => instance,
            Err(InstantiateError::Trap(code)) => return Ok(Step { outcome: ended(code), host: Vec::new(), state: None }),
            Err(error) => return Err(error.into()),
        };
        let start = sandbox.start_function(instance);
        self.running = Some((sandbox, instance));
        match start {
            Some(start) => self.run(start, &[]),
            None => Ok(Step { outcome: Outcome::Returned(Vec::new()), host: Vec::new(), state: Some(self.state()?) }),
        }
    }

    fn call(&mut self, call: &Call) -> Result<Step> {
        let (sandbox, instance) = self.running.as_ref().context("an instance")?;
        let refuel = sandbox.export_function(*instance, REFUEL).context("no export to refuel")?;
        let function = sandbox.export_function(*instance, &call.export).context("no such export")?;
        self.run(refuel, &[])?;
        self.run(function, &call.arguments.iter().copied().map(to_value).collect::<Vec<_>>())
    }
}

fn ended(code: TrapCode) -> Outcome {
    Outcome::Trapped(match code {
        TrapCode::Unreachable => "unreachable",
        TrapCode::MemoryOutOfBounds => "memory",
        TrapCode::TableOutOfBounds | TrapCode::UndefinedElement => "table",
        TrapCode::UninitializedElement => "uninitialized",
        TrapCode::IntegerDivideByZero => "division",
        TrapCode::IntegerOverflow => "overflow",
        TrapCode::InvalidConversionToInteger => "conversion",
        TrapCode::IndirectCallTypeMismatch => "signature",
        TrapCode::StackExhausted => return Outcome::Inconclusive("stack"),
        // The reference throws nothing. Deep recursion keeps what its frames have caught, without optimisation longer than needed.
        TrapCode::ExceptionsExhausted => return Outcome::Inconclusive("exception memory"),
        other => other.message(),
    })
}

fn type_of(ty: ValType) -> Ty {
    match ty {
        ValType::I32 => Ty::I32,
        ValType::I64 => Ty::I64,
        ValType::F32 => Ty::F32,
        ValType::F64 => Ty::F64,
        ValType::V128 => Ty::V128,
        ValType::Ref(ty) => match ty.heap.kind() {
            RefKind::Func => Ty::Func,
            RefKind::Extern => Ty::Extern,
            RefKind::Exn => unreachable!("exceptions are not fuzzed"),
        },
    }
}

fn to_value(value: Val) -> Value {
    match value {
        Val::I32(value) => Value::I32(value),
        Val::I64(value) => Value::I64(value),
        Val::F32(bits) => Value::F32(bits),
        Val::F64(bits) => Value::F64(bits),
        Val::V128(bits) => Value::V128(bits),
        Val::Func { .. } => Value::FuncRef(None),
        Val::Extern(value) => Value::ExternRef(value),
    }
}

fn from_value(value: Value) -> Val {
    match value {
        Value::I32(value) => Val::I32(value),
        Value::I64(value) => Val::I64(value),
        Value::F32(bits) => Val::F32(bits),
        Value::F64(bits) => Val::F64(bits),
        Value::V128(bits) => Val::V128(bits),
        Value::FuncRef(function) => Val::Func { null: function.is_none() },
        Value::ExternRef(value) => Val::Extern(value),
        Value::ExnRef { .. } => unreachable!("exceptions are not fuzzed"),
    }
}

/// The value of a host call's argument; of a reference to a function only whether it is null.
fn from_slot(ty: ValType, bits: u128) -> Val {
    match ty {
        ValType::I32 => Val::I32(bits as i32),
        ValType::I64 => Val::I64(bits as i64),
        ValType::F32 => Val::F32(bits as u32),
        ValType::F64 => Val::F64(bits as u64),
        ValType::V128 => Val::V128(bits),
        ValType::Ref(ty) => match ty.heap.kind() {
            RefKind::Func => Val::Func { null: bits == 0 },
            RefKind::Extern => Val::Extern((bits as u64).checked_sub(1).map(|value| value as u32)),
            RefKind::Exn => unreachable!("exceptions are not fuzzed"),
        },
    }
}
