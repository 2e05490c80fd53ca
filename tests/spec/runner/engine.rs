//! Running in `sledge-sandbox`: the only file here that knows it.

use crate::compiler::Compiler;
use crate::values::Val;
use awsm_abi::component::Violation;
use awsm_abi::descriptor::ImportType;
use sledge_sandbox::{
    Artifact, Event, Extern, FunctionHandle, InstanceId, InstantiateError, LoadPolicy, Pool, Sandbox, SandboxLimits, Template,
    TrapCode, Value, WorkerThread,
};
use sledge_tests::command::{self, End};
use sledge_tests::spec::{Mode, Script};
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

/// For one call of a guest. The longest of the specification suite take milliseconds, those of component-model/big-strings.wast, which convert strings of
/// 1 GiB, about 10 s without optimisation.
const CALL_TIME_MAX: Duration = Duration::from_secs(60);

/// How often a running guest hands back control, to have the time looked at.
const QUANTUM: Duration = Duration::from_millis(20);

/// Scripts make many memories that they hardly touch: this is address space, of which an emulator has little.
fn memory_bytes_max() -> u64 {
    if sledge_sandbox::room_for_guards() { 1 << 40 } else { 1 << 30 }
}

/// Imports of `spectest` that are the host's: it prints nothing.
const HOST_MODULE: &str = "spectest-host";

/// A compiled module.
pub(crate) type Module = Artifact;

/// An instance in a store.
pub(crate) type Instance = InstanceId;

/// Why something did not come to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The text does not parse.
    Text(String),
    /// The module is malformed or invalid.
    Invalid(String),
    /// The module is beyond a limit.
    Limit(String),
    /// The compiler or this harness does not do this.
    Unsupported(String),
    /// The compiler or the sandbox failed.
    Internal(String),
    /// An import is missing or of another type.
    Unlinkable(String),
    /// The guest trapped.
    Trap(TrapCode),
    /// A component did what the component model forbids.
    Violation(Violation),
    /// A component returned something else than what a script expects.
    Differs,
    /// It ran for too long.
    Timeout,
    /// An earlier directive failed, or the script names what there is not.
    Missing(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Text(message) => write!(f, "text refused: {message}"),
            Failure::Invalid(message) | Failure::Limit(message) => write!(f, "module refused: {message}"),
            Failure::Unsupported(message) => write!(f, "unsupported: {message}"),
            Failure::Internal(message) => write!(f, "internal error: {message}"),
            Failure::Unlinkable(message) => write!(f, "link error: {message}"),
            Failure::Trap(code) => write!(f, "trap: {code}"),
            Failure::Violation(violation) => write!(f, "trap: {}", violation.message()),
            Failure::Differs => f.write_str("another result"),
            Failure::Timeout => write!(f, "timeout: killed after {CALL_TIME_MAX:?}"),
            Failure::Missing(message) => f.write_str(message),
        }
    }
}

impl From<InstantiateError> for Failure {
    fn from(error: InstantiateError) -> Failure {
        match error {
            InstantiateError::UnknownImport { .. } | InstantiateError::IncompatibleImport { .. } => {
                Failure::Unlinkable(error.to_string())
            }
            InstantiateError::Trap(code) => Failure::Trap(code),
            _ => Failure::Internal(error.to_string()),
        }
    }
}

fn limits() -> SandboxLimits {
    SandboxLimits { memory_bytes_max: memory_bytes_max(), ..SandboxLimits::default() }
}

/// What a script's modules live in: one sandbox.
pub(crate) struct Store {
    compiler: Compiler,
    allow_unchecked: bool,
    sandbox: Sandbox,
    worker: WorkerThread,
    /// A guest ran too long: the sandbox will never run again.
    killed: bool,
    pub(crate) modules_compiled: usize,
    pub(crate) compile_time: Duration,
}

impl Store {
    pub(crate) fn new(mode: Mode, script: &Script) -> anyhow::Result<Store> {
        Ok(Store {
            compiler: Compiler::new(mode, script)?,
            allow_unchecked: mode.bounds == "none",
            sandbox: Sandbox::new(&limits())?,
            worker: WorkerThread::enter(QUANTUM)?,
            killed: false,
            modules_compiled: 0,
            compile_time: Duration::ZERO,
        })
    }

    /// Adds the module that scripts import from.
    pub(crate) fn spectest(&mut self) -> Result<Instance, Failure> {
        let wasm = wat::parse_str(include_str!("spectest.wat")).map_err(|error| Failure::Text(error.to_string()))?;
        let module = self.compile(&wasm)?;
        self.instantiate(&module, &HashMap::new())
    }

    pub(crate) fn compile(&mut self, wasm: &[u8]) -> Result<Module, Failure> {
        let start = Instant::now();
        let compiled = self.compiler.compile(wasm);
        self.compile_time += start.elapsed();
        let artifact = compiled?;
        self.modules_compiled += 1;
        let policy = LoadPolicy { allow_unchecked: self.allow_unchecked };
        Artifact::load(&artifact, &policy).map_err(|error| Failure::Internal(error.to_string()))
    }

    /// Compiles a component, and runs it as a command in a sandbox of its own.
    pub(crate) fn command(&mut self, wasm: &[u8]) -> Result<(), Failure> {
        let artifact = self.compile(wasm)?;
        let mut sandbox = Template::new(&artifact, &limits())?.instantiate()?;
        match command::run(&self.worker, &mut sandbox, CALL_TIME_MAX) {
            End::Exit(0) => Ok(()),
            End::Exit(_) => Err(Failure::Differs),
            End::Violation(violation) => Err(Failure::Violation(violation)),
            End::Trap(trap) => Err(Failure::Trap(trap)),
            End::Timeout => Err(Failure::Timeout),
        }
    }

    /// Links a module with what was registered, instantiates it and runs its start function.
    pub(crate) fn instantiate(&mut self, module: &Module, registered: &HashMap<String, Instance>) -> Result<Instance, Failure> {
        self.check_alive()?;
        let [descriptor] = module.descriptor().modules.as_slice() else {
            return Err(Failure::Internal("the artifact does not hold exactly one module".to_string()));
        };
        let mut imports = Vec::new();
        for import in &descriptor.imports {
            imports.push(match &import.ty {
                ImportType::Function { ty, .. } if import.module == HOST_MODULE => {
                    Extern::HostFunction(descriptor.types[*ty as usize].ty.clone())
                }
                _ => {
                    let exporter = registered.get(&import.module);
                    let given = exporter.and_then(|instance| self.sandbox.export(*instance, &import.name));
                    given.ok_or_else(|| Failure::Unlinkable(format!("unknown import {} {}", import.module, import.name)))?
                }
            });
        }
        let instance = self.sandbox.instantiate(module, 0, &imports)?;
        if let Some(start) = self.sandbox.start_function(instance) {
            self.call(start, &[])?;
        }
        Ok(instance)
    }

    pub(crate) fn invoke(&mut self, instance: Instance, name: &str, arguments: &[Val]) -> Result<Vec<Val>, Failure> {
        let function = self.sandbox.export_function(instance, name);
        let function = function.ok_or_else(|| Failure::Missing(format!("no exported function {name}")))?;
        let arguments = arguments.iter().copied().map(to_value).collect::<Result<Vec<_>, _>>()?;
        self.call(function, &arguments)
    }

    pub(crate) fn global(&mut self, instance: Instance, name: &str) -> Result<Val, Failure> {
        match self.sandbox.export(instance, name) {
            Some(Extern::Global(global)) => Ok(from_value(self.sandbox.global_get(global))),
            _ => Err(Failure::Missing(format!("no exported global {name}"))),
        }
    }

    fn call(&mut self, function: FunctionHandle, arguments: &[Value]) -> Result<Vec<Val>, Failure> {
        self.check_alive()?;
        let end = run(&self.worker, &mut self.sandbox, function, arguments);
        self.killed = matches!(end, Err(Failure::Timeout));
        end
    }

    /// Whether a module takes nothing from others but what prints.
    pub(crate) fn stands_alone(module: &Module) -> bool {
        let modules = &module.descriptor().modules;
        modules
            .iter()
            .flat_map(|module| &module.imports)
            .all(|import| matches!(import.ty, ImportType::Function { .. }) && import.module == "spectest")
    }

    /// What pooled sandboxes of such a module begin as.
    pub(crate) fn template(&self, module: &Module) -> Result<Template, Failure> {
        Ok(Template::new(module, &limits())?)
    }

    /// A sandbox from a pool, whose start function has run.
    pub(crate) fn take(&mut self, pool: &mut Pool, template: &Template) -> Result<Box<Sandbox>, Failure> {
        let mut sandbox = pool.take(template)?;
        let start = sandbox.main_instance().and_then(|instance| sandbox.start_function(instance));
        if let Some(start) = start {
            run(&self.worker, &mut sandbox, start, &[])?;
        }
        Ok(sandbox)
    }

    /// A call in such a sandbox.
    pub(crate) fn invoke_in(&mut self, sandbox: &mut Sandbox, name: &str, arguments: &[Val]) -> Result<Vec<Val>, Failure> {
        let function = sandbox.main_instance().and_then(|instance| sandbox.export_function(instance, name));
        let function = function.ok_or_else(|| Failure::Missing(format!("no exported function {name}")))?;
        let arguments = arguments.iter().copied().map(to_value).collect::<Result<Vec<_>, _>>()?;
        run(&self.worker, sandbox, function, &arguments)
    }

    /// A global of such a sandbox.
    pub(crate) fn global_in(sandbox: &Sandbox, name: &str) -> Result<Val, Failure> {
        match sandbox.main_instance().and_then(|instance| sandbox.export(instance, name)) {
            Some(Extern::Global(global)) => Ok(from_value(sandbox.global_get(global))),
            _ => Err(Failure::Missing(format!("no exported global {name}"))),
        }
    }

    fn check_alive(&self) -> Result<(), Failure> {
        if self.killed { Err(Failure::Missing("the sandbox was killed by an earlier timeout".to_string())) } else { Ok(()) }
    }
}

/// Runs a function to its end.
fn run(worker: &WorkerThread, sandbox: &mut Sandbox, function: FunctionHandle, arguments: &[Value]) -> Result<Vec<Val>, Failure> {
    sandbox.prepare(function, arguments).map_err(|error| Failure::Internal(error.to_string()))?;
    let deadline = Instant::now() + CALL_TIME_MAX;
    worker.arm();
    let end = loop {
        match sandbox.resume() {
            Event::Returned => break Ok(sandbox.results().into_iter().map(from_value).collect()),
            Event::Trapped(trap) => break Err(Failure::Trap(trap.code)),
            // The printing functions have no results.
            Event::HostCall(_) => {}
            Event::Preempted if Instant::now() < deadline => {}
            Event::Waits { time: Some(time) } if Instant::now() + time < deadline => std::thread::sleep(time),
            Event::Preempted | Event::Waits { .. } => {
                sandbox.kill();
                break Err(Failure::Timeout);
            }
        }
    };
    worker.disarm();
    end
}

fn to_value(value: Val) -> Result<Value, Failure> {
    Ok(match value {
        Val::I32(value) => Value::I32(value.cast_signed()),
        Val::I64(value) => Value::I64(value.cast_signed()),
        Val::F32(bits) => Value::F32(bits),
        Val::F64(bits) => Value::F64(bits),
        Val::V128(bits) => Value::V128(bits),
        Val::Func { null: true } => Value::FuncRef(None),
        Val::Func { null: false } => return Err(Failure::Unsupported("a function as an argument".to_string())),
        Val::Extern(value) => Value::ExternRef(value),
        Val::Exn { null } => Value::ExnRef { null },
    })
}

fn from_value(value: Value) -> Val {
    match value {
        Value::I32(value) => Val::I32(value.cast_unsigned()),
        Value::I64(value) => Val::I64(value.cast_unsigned()),
        Value::F32(bits) => Val::F32(bits),
        Value::F64(bits) => Val::F64(bits),
        Value::V128(bits) => Val::V128(bits),
        Value::FuncRef(function) => Val::Func { null: function.is_none() },
        Value::ExternRef(value) => Val::Extern(value),
        Value::ExnRef { null } => Val::Exn { null },
    }
}
