//! The reference: wasmi, an interpreter. It runs the module that counts (`count.rs`), without atomic operators (`plain.rs`).

use crate::case::{Call, HostCall, Machine, Outcome, State, Step, Ty, Val, host_results};
use crate::count::{self, Counting, Counts};
use crate::plain::{self, plain};
use crate::prepare::REFUEL;
use anyhow::{Context, Result, bail};
use wasmi::{
    Config, Engine, Error, Extern, ExternRef, ExternType, Func, Global, Instance, Memory, Module, Mutability, Ref, Store, Table,
    TrapCode, ValType,
};

/// Operators of one call, roughly: more is not compared.
const FUEL: u64 = 60_000_000;

/// Frames of a guest: more than its own fuel lets it have.
const RECURSION_MAX: usize = 10_000;

/// Bytes of a guest's stack.
const STACK_BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Default)]
struct Host {
    calls: Vec<HostCall>,
}

pub(crate) struct Reference {
    engine: Engine,
    module: Module,
    counting: Counting,
    counts: Counts,
    seed: u64,
    atomics: bool,
    running: Option<(Store<Host>, Instance)>,
}

impl Reference {
    pub(crate) fn new(wasm: &[u8], seed: u64) -> Result<Reference> {
        let counting = Counting::new(wasm)?;
        let mut config = Config::default();
        config.wasm_multi_memory(true).wasm_memory64(true).wasm_custom_page_sizes(true).wasm_wide_arithmetic(true);
        config.wasm_tail_call(true).wasm_extended_const(true).wasm_simd(true).consume_fuel(true);
        config.set_max_recursion_depth(RECURSION_MAX).set_max_stack_height(STACK_BYTES_MAX);
        let engine = Engine::new(&config);
        let (plain, atomics) = plain(&counting.wasm)?;
        let module = Module::new(&engine, plain).context("the reference refuses the module")?;
        Ok(Reference { engine, module, counting, counts: Counts::new(), seed, atomics, running: None })
    }

    /// How often each operator was executed.
    pub(crate) fn counts(mut self) -> Counts {
        self.discard();
        self.counts
    }

    fn discard(&mut self) {
        if let Some((store, instance)) = self.running.take()
            && let Some(memory) = instance.get_memory(&store, count::MEMORY)
        {
            self.counting.add(memory.data(&store), &mut self.counts);
        }
    }

    fn imports(&self, store: &mut Store<Host>) -> Result<Vec<Extern>> {
        let mut externs = Vec::new();
        let mut functions = 0;
        for import in self.module.imports() {
            externs.push(match import.ty().clone() {
                ExternType::Func(ty) => {
                    let (seed, import) = (self.seed, functions);
                    functions += 1;
                    let types: Vec<Ty> = ty.results().iter().copied().map(type_of).collect();
                    Extern::Func(Func::new(&mut *store, ty, move |mut caller, arguments, results| {
                        let before = caller.data().calls.len();
                        let arguments = arguments.iter().map(|value| from_wasmi(value, &caller)).collect();
                        caller.data_mut().calls.push(HostCall { import, arguments });
                        for (result, value) in results.iter_mut().zip(host_results(seed, before, &types)) {
                            *result = to_wasmi(value, &mut caller);
                        }
                        Ok(())
                    }))
                }
                ExternType::Memory(ty) => Extern::Memory(Memory::new(&mut *store, ty)?),
                ExternType::Table(ty) => {
                    let null = wasmi::Val::default(ty.element());
                    Extern::Table(Table::new(&mut *store, ty, null)?)
                }
                ExternType::Global(ty) => {
                    let value = host_results(self.seed, 0, &[type_of(ty.content())])[0];
                    let value = to_wasmi(value, &mut *store);
                    let mutability = if ty.mutability().is_mut() { Mutability::Var } else { Mutability::Const };
                    Extern::Global(Global::new(&mut *store, value, mutability))
                }
            });
        }
        Ok(externs)
    }

    fn step(&mut self, result: Result<Vec<Val>, Error>) -> Result<Step> {
        let outcome = match result {
            Ok(values) => Outcome::Returned(values),
            Err(error) => match error.as_trap_code() {
                Some(TrapCode::UnreachableCodeReached) => self.unreachable(),
                Some(code) => ended(code),
                // wasmi has no trap for segments that do not fit their table.
                None if error.to_string().starts_with("out of bounds table access") => Outcome::Trapped("table"),
                None => bail!("the reference failed: {error}"),
            },
        };
        let Some((store, instance)) = &mut self.running else { return Ok(Step { outcome, host: Vec::new(), state: None }) };
        let host = std::mem::take(&mut store.data_mut().calls);
        let state = matches!(outcome, Outcome::Returned(_)).then(|| state(store, instance));
        Ok(Step { outcome, host, state })
    }
}

impl Reference {
    /// `unreachable`, the module's or that of `plain.rs`.
    fn unreachable(&self) -> Outcome {
        let said =
            self.running.as_ref().map(|(store, instance)| instance.get_global(store, plain::TRAP).map(|said| said.get(store)));
        match said {
            Some(Some(wasmi::Val::I32(plain::UNALIGNED))) => Outcome::Trapped("unaligned atomic"),
            Some(Some(wasmi::Val::I32(plain::NOT_SHARED))) => Outcome::Trapped("expected shared memory"),
            None if self.atomics => Outcome::Inconclusive("a start function's trap"),
            _ => Outcome::Trapped("unreachable"),
        }
    }
}

impl Machine for Reference {
    fn instantiate(&mut self) -> Result<Step> {
        self.discard();
        let mut store = Store::new(&self.engine, Host::default());
        store.set_fuel(FUEL)?;
        let imports = self.imports(&mut store)?;
        match Instance::new(&mut store, &self.module, &imports) {
            Ok(instance) => {
                self.running = Some((store, instance));
                self.step(Ok(Vec::new()))
            }
            Err(error) => {
                let mut step = self.step(Err(error))?;
                step.host = std::mem::take(&mut store.data_mut().calls);
                Ok(step)
            }
        }
    }

    fn call(&mut self, call: &Call) -> Result<Step> {
        let (store, instance) = self.running.as_mut().context("an instance")?;
        store.set_fuel(FUEL)?;
        instance.get_func(&*store, REFUEL).context("no export to refuel")?.call(&mut *store, &[], &mut [])?;
        let function = instance.get_func(&*store, &call.export).context("no such export")?;
        let arguments: Vec<_> = call.arguments.iter().map(|value| to_wasmi(*value, &mut *store)).collect();
        let mut results: Vec<_> = function.ty(&*store).results().iter().map(|ty| wasmi::Val::default(*ty)).collect();
        let ended = function.call(&mut *store, &arguments, &mut results);
        let results = results.iter().map(|value| from_wasmi(value, &*store)).collect();
        self.step(ended.map(|()| results))
    }
}

fn ended(code: TrapCode) -> Outcome {
    Outcome::Trapped(match code {
        TrapCode::UnreachableCodeReached => "unreachable",
        TrapCode::MemoryOutOfBounds => "memory",
        // wasmi does not tell an undefined element from a table's end.
        TrapCode::TableOutOfBounds => "table",
        TrapCode::IndirectCallToNull => "uninitialized",
        TrapCode::IntegerDivisionByZero => "division",
        TrapCode::IntegerOverflow => "overflow",
        TrapCode::BadConversionToInteger => "conversion",
        TrapCode::BadSignature => "signature",
        TrapCode::StackOverflow => return Outcome::Inconclusive("stack"),
        TrapCode::OutOfFuel => return Outcome::Inconclusive("time"),
        TrapCode::GrowthOperationLimited => return Outcome::Inconclusive("memory of the system"),
    })
}

fn state(store: &Store<Host>, instance: &Instance) -> State {
    let mut state = State::default();
    let mut exports: Vec<_> = instance.exports(store).map(|export| (export.name().to_string(), export.into_extern())).collect();
    exports.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, export) in exports {
        match export {
            Extern::Memory(memory) if name != count::MEMORY => state.memories.push((name, memory.data(store).to_vec())),
            Extern::Global(global) if name != plain::TRAP => state.globals.push((name, from_wasmi(&global.get(store), store))),
            Extern::Table(table) => {
                let elements = (0..table.size(store)).filter_map(|i| table.get(store, i));
                state.tables.push((name, elements.map(|element| from_wasmi(&element, store)).collect()));
            }
            _ => {}
        }
    }
    state
}

fn type_of(ty: ValType) -> Ty {
    match ty {
        ValType::I32 => Ty::I32,
        ValType::I64 => Ty::I64,
        ValType::F32 => Ty::F32,
        ValType::F64 => Ty::F64,
        ValType::V128 => Ty::V128,
        ValType::FuncRef => Ty::Func,
        ValType::ExternRef => Ty::Extern,
    }
}

fn to_wasmi(value: Val, mut store: impl wasmi::AsContextMut) -> wasmi::Val {
    match value {
        Val::I32(value) => wasmi::Val::I32(value),
        Val::I64(value) => wasmi::Val::I64(value),
        Val::F32(bits) => wasmi::Val::F32(f32::from_bits(bits).into()),
        Val::F64(bits) => wasmi::Val::F64(f64::from_bits(bits).into()),
        Val::V128(bits) => wasmi::Val::V128(bits.into()),
        Val::Func { .. } => wasmi::Val::FuncRef(Ref::Null),
        Val::Extern(None) => wasmi::Val::ExternRef(Ref::Null),
        Val::Extern(Some(number)) => wasmi::Val::ExternRef(Ref::Val(ExternRef::new(store.as_context_mut(), number))),
    }
}

fn from_wasmi(value: &wasmi::Val, store: impl wasmi::AsContext) -> Val {
    match value {
        wasmi::Val::I32(value) => Val::I32(*value),
        wasmi::Val::I64(value) => Val::I64(*value),
        wasmi::Val::F32(value) => Val::F32(value.to_bits()),
        wasmi::Val::F64(value) => Val::F64(value.to_bits()),
        wasmi::Val::V128(value) => Val::V128(value.as_u128()),
        wasmi::Val::FuncRef(value) => Val::Func { null: value.is_null() },
        wasmi::Val::ExternRef(value) => {
            let context = store.as_context();
            Val::Extern(value.val().and_then(|value| value.data(context).downcast_ref::<u32>().copied()))
        }
    }
}
