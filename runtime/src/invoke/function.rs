//! A loaded function: the template of its sandboxes, its imports resolved, and how a request is run with them.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockWriteGuard, Weak};
use std::time::Duration;

use awsm_abi::Descriptor;
use awsm_abi::descriptor::{ExternKind, ImportType, ModuleDescriptor};
use awsm_abi::types::{FuncType, ValType};
use hyper::header::HeaderValue;
use sledge_sandbox::{Artifact, Budget, Callee, FunctionHandle, InstantiateError, Sandbox, SandboxLimits, Template, prefetch};

use crate::config::{CONTENT_TYPE_DEFAULT, FunctionConfig, Snapshot};
use crate::host::wasi::{Grant, GrantError};
use crate::host::{self, FunctionLog, ImportError, Imports, Process};
use crate::invoke::Gate;
use crate::invoke::snapshot::{self, InitError};
use crate::kv::Space;
use crate::outcome::Failure;
use crate::phases::Phases;
use crate::schedule::{FunctionId, TenantId};
use crate::secret::{self, SecretError};
use crate::upstream::{AllowError, Allowed, Roots, Upstream};

/// The export that runs a command from its start.
pub const COMMAND: &str = "_start";
/// The export with which a reactor prepares itself, if it has it.
pub const INITIALIZE: &str = "_initialize";
/// The export of a reactor that handles one request: standard input to standard output, zero for success.
pub const HANDLE: &str = "sledge_handle";

/// Why an artifact cannot be a function.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// Its imports cannot be served.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// It has nothing to call.
    #[error("exports neither `{COMMAND}` (a command) nor `{HANDLE}` (a reactor); {0}")]
    NoEntry(String),
    /// What is to be called has another signature.
    #[error("exports `{name}` as {found}, but it must be a function {wanted}")]
    EntryType {
        /// The export's name.
        name: String,
        /// What it is.
        found: String,
        /// What it has to be.
        wanted: FuncType,
    },
    /// No sandbox can be made of it.
    #[error("no sandbox can be made of it: {0}")]
    Instantiate(#[from] InstantiateError),
    /// It could not be initialised.
    #[error(transparent)]
    Init(#[from] InitError),
    /// The export that was to initialise it does not exist.
    #[error("`init` is `{name}`, but {why}")]
    NoInit {
        /// The name given.
        name: String,
        /// Why that is nothing.
        why: String,
    },
    /// A folder that it is granted cannot be opened.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// A secret in its environment cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A host that it is allowed to ask is none.
    #[error("http_hosts: {0}")]
    Host(#[from] AllowError),
    /// A setting that no reply can carry.
    #[error("`{0}` is no content type")]
    ContentType(String),
}

/// A call that a request makes in its sandbox; all of them in order make up an invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The start function of that instance.
    Start(usize),
    /// An export without parameters and results of the last instance.
    Run(Arc<str>),
    /// An export of the last instance that returns a status.
    Status(&'static str),
}

/// The functions of one tenant, by name; those that are quarantined lead nowhere.
#[derive(Debug, Default)]
pub struct Neighbours(RwLock<HashMap<Box<str>, Option<Weak<Function>>>>);

impl Neighbours {
    /// The function of that name, as it is served now.
    ///
    /// # Errors
    /// When there is none, or it is quarantined.
    pub fn find(&self, name: &str) -> Result<Arc<Function>, Failure> {
        // Single insertions and removals, which cannot be half done.
        let functions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let function = functions.get(name).ok_or(Failure::NotFound)?;
        function.as_ref().ok_or(Failure::Quarantined)?.upgrade().ok_or(Failure::NotFound)
    }

    /// Puts a function in the place of the one of its name, if there is one.
    pub fn put(&self, function: &Arc<Function>) {
        self.functions().insert(function.name().into(), Some(Arc::downgrade(function)));
    }

    /// Removes a function, unless another has taken its place.
    pub fn remove(&self, function: &Arc<Function>) {
        let mut functions = self.functions();
        if functions.get(function.name()).is_some_and(|there| there.as_ref().map(Weak::as_ptr) == Some(Arc::as_ptr(function))) {
            functions.remove(function.name());
        }
    }

    /// Whoever calls that name learns that it is quarantined, unless it is served.
    pub fn quarantine(&self, name: &str) {
        self.functions().entry(name.into()).or_insert(None);
    }

    /// The name is quarantined no longer.
    pub fn release(&self, name: &str) {
        let mut functions = self.functions();
        if functions.get(name).is_some_and(Option::is_none) {
            functions.remove(name);
        }
    }

    fn functions(&self) -> RwLockWriteGuard<'_, HashMap<Box<str>, Option<Weak<Function>>>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a function's numbers are called by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Its name.
    pub function: String,
    /// Whose it is.
    pub tenant: String,
    /// The phases that it declares.
    pub phases: Option<Arc<Phases>>,
}

/// A function, ready to be invoked from any thread.
pub struct Function {
    /// What its sandboxes begin as.
    pub template: Template,
    /// The host functions that it imports.
    pub imports: Imports,
    /// The calls that make up an invocation.
    pub stages: Vec<Stage>,
    /// Name, arguments and environment.
    pub process: Arc<Process>,
    /// The reply's content type.
    pub content_type: HeaderValue,
    /// Time from a request's arrival to its reply.
    pub deadline: Duration,
    /// The most processor time of a request.
    pub cpu_max: Duration,
    /// Whose it is.
    pub tenant: TenantId,
    /// Whether it asks what a request says beside its body.
    pub reads_head: bool,
    /// The store without which it cannot work, if it imports one and there is one.
    pub kv: Option<Space>,
    /// The functions that it may call.
    pub neighbours: Arc<Neighbours>,
    /// Its number among the server's functions.
    pub number: FunctionId,
    /// Its number among all versions of all functions that the server has had.
    pub version: u64,
    /// How many requests are taken and run at the same time.
    pub gate: Arc<Gate>,
    /// What its numbers are called by.
    pub labels: Arc<Labels>,
    /// What it writes to its standard error.
    pub log: Arc<FunctionLog>,
    /// Whether another version has taken its place, or none: it ends what it began, and keeps nothing for later.
    pub retired: AtomicBool,
    /// What its stages call, found by the first invocation.
    callees: OnceLock<Box<[Callee]>>,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stage::Start(_) => f.write_str("the start function"),
            Stage::Run(name) => write!(f, "`{name}`"),
            Stage::Status(name) => write!(f, "`{name}`"),
        }
    }
}

impl Stage {
    /// What it calls in a sandbox of its function.
    pub(crate) fn callee(&self, sandbox: &Sandbox) -> Option<FunctionHandle> {
        match self {
            Stage::Start(index) => sandbox.start_function(sandbox.instances().nth(*index)?),
            Stage::Run(name) => sandbox.export_function(sandbox.main_instance()?, name),
            Stage::Status(name) => sandbox.export_function(sandbox.main_instance()?, name),
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name()).field("stages", &self.stages).finish_non_exhaustive()
    }
}

impl Function {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.process.name
    }

    /// Makes a function of an artifact.
    ///
    /// # Errors
    /// When its imports cannot be served, it has no entry, or no sandbox can be made of it within the limits.
    pub fn new(artifact: &Artifact, config: &FunctionConfig) -> Result<Function, FunctionError> {
        Function::with_imports(artifact, config, Imports::resolve(artifact.descriptor())?)
    }

    /// The same with imports that are resolved already.
    ///
    /// # Errors
    /// As for [`Function::new`].
    pub fn with_imports(artifact: &Artifact, config: &FunctionConfig, imports: Imports) -> Result<Function, FunctionError> {
        let Stages { mut init, request, reactor } = stages(artifact.descriptor(), config.init.as_deref())?;
        let limits = SandboxLimits {
            memory_bytes_max: config.memory_bytes_max,
            stack_bytes: usize::try_from(config.stack_bytes).unwrap_or(usize::MAX),
            ..SandboxLimits::default()
        };
        let args = std::iter::once(&config.name).chain(&config.args).collect();
        let env = secret::environment(&config.env)?.into_iter().collect();
        let grants = config.dirs.iter().map(|dir| Grant::open(&dir.host, &dir.guest, dir.write)).collect::<Result<_, _>>()?;
        let allowed = (!config.http_hosts.is_empty()).then(|| Allowed::new(&config.http_hosts)).transpose()?;
        let upstream = allowed.map(|allowed| Arc::new(Upstream::new(Arc::new(allowed), Arc::default())));
        let phases = Phases::new(&config.phases);
        let process = Arc::new(Process { name: config.name.clone(), args, env, grants, kv: None, upstream, phases });
        let mut template = Template::new(artifact, &limits)?;
        if reactor && config.snapshot != Snapshot::Off && !init.is_empty() {
            let shared = config.snapshot == Snapshot::SharedSeed;
            template = snapshot::initialised(&template, &imports, &process, &init, shared)?;
            init.clear();
        }
        init.push(request);
        let labels = Labels { function: config.name.clone(), tenant: config.tenant.clone(), phases: process.phases.clone() };
        Ok(Function {
            template,
            reads_head: imports.use_module(host::HTTP),
            imports,
            stages: init,
            process,
            content_type: content_type(&config.content_type)?,
            deadline: Duration::from_millis(config.deadline_ms),
            cpu_max: config.cpu_ms_max.map_or(Duration::MAX, Duration::from_millis),
            tenant: TenantId::default(),
            kv: None,
            neighbours: Arc::default(),
            number: FunctionId::default(),
            version: 0,
            gate: Arc::new(Gate::new(config.concurrency_max, config.queue_max)),
            labels: Arc::new(labels),
            log: Arc::new(FunctionLog::new(config.log_lines_per_s_max)),
            retired: AtomicBool::new(false),
            callees: OnceLock::new(),
        })
    }

    /// Has the caches fetch what an invocation of it reads, while something else is done.
    pub(crate) fn prefetch(&self) {
        prefetch(&*self.stages);
        prefetch(&*self.process);
        prefetch(&*self.log);
        prefetch(self.callees.get().map_or(&[][..], |callees| callees));
        self.imports.prefetch();
    }

    /// What the stage of that number calls, in any sandbox of its template.
    pub(crate) fn callee(&self, stage: usize, sandbox: &Sandbox) -> Option<&Callee> {
        let find = || self.stages.iter().map(|stage| sandbox.callee(stage.callee(sandbox)?).ok()).collect::<Option<_>>();
        // Where one is not to be found, there are none: stages are checked when the function is made.
        self.callees.get_or_init(|| find().unwrap_or_default()).get(stage)
    }
}

impl Function {
    /// The same, with sandboxes that use no more than `budget` has, which they share with others.
    #[must_use]
    pub fn within(self, budget: &Arc<Budget>) -> Function {
        Function { template: self.template.within(budget), ..self }
    }

    /// The same with a key-value store.
    #[must_use]
    pub fn with_kv(self, kv: Space) -> Function {
        let needed = self.imports.use_module(host::KV).then(|| kv.clone());
        let process = Process { kv: Some(kv), ..Process::clone(&self.process) };
        Function { process: Arc::new(process), kv: needed, ..self }
    }

    /// The same, believing those roots about the servers that it asks.
    #[must_use]
    pub fn with_roots(self, roots: &Arc<Roots>) -> Function {
        let Some(upstream) = &self.process.upstream else { return self };
        let process = Process { upstream: Some(Arc::new(upstream.with_roots(roots))), ..Process::clone(&self.process) };
        Function { process: Arc::new(process), ..self }
    }
}

/// The header's value. Functions that keep to the default have it in common: one more thing that is in the caches already.
fn content_type(text: &str) -> Result<HeaderValue, FunctionError> {
    if text == CONTENT_TYPE_DEFAULT {
        return Ok(HeaderValue::from_static(CONTENT_TYPE_DEFAULT));
    }
    HeaderValue::from_str(text).map_err(|_| FunctionError::ContentType(text.to_owned()))
}

/// What an artifact's exports make of it.
struct Stages {
    /// Calls that prepare it.
    init: Vec<Stage>,
    /// The call that serves a request.
    request: Stage,
    /// Whether it may be prepared once for all requests: a command runs from its start for each.
    reactor: bool,
}

/// The calls that make up an invocation of an artifact; `init` is the name of an export that is one of them.
fn stages(descriptor: &Descriptor, init: Option<&str>) -> Result<Stages, FunctionError> {
    let modules: Vec<&ModuleDescriptor> =
        descriptor.plan.iter().filter_map(|step| descriptor.modules.get(step.module as usize)).collect();
    let starts = modules.iter().enumerate().filter(|(_, module)| module.start.is_some());
    let mut stages: Vec<Stage> = starts.map(|(instance, _)| Stage::Start(instance)).collect();

    let Some(&main) = modules.last() else { return Err(FunctionError::NoEntry("it has no instance".to_owned())) };
    let no_init = |name: &str, why: String| FunctionError::NoInit { name: name.to_owned(), why };
    if check_export(main, HANDLE, &[ValType::I32])? {
        if check_export(main, INITIALIZE, &[])? {
            stages.push(Stage::Run(INITIALIZE.into()));
        }
        if let Some(name) = init {
            if !check_export(main, name, &[])? {
                return Err(no_init(name, exports_of(main)));
            }
            stages.push(Stage::Run(name.into()));
        }
        return Ok(Stages { init: stages, request: Stage::Status(HANDLE), reactor: true });
    }
    if !check_export(main, COMMAND, &[])? {
        return Err(FunctionError::NoEntry(exports_of(main)));
    }
    match init {
        Some(name) => Err(no_init(
            name,
            format!("a command runs from its start for each request; only a reactor (`{HANDLE}`) is initialised"),
        )),
        None => Ok(Stages { init: stages, request: Stage::Run(COMMAND.into()), reactor: false }),
    }
}

/// Whether a module has an export; it must be a function without parameters that returns `results`.
fn check_export(module: &ModuleDescriptor, name: &str, results: &[ValType]) -> Result<bool, FunctionError> {
    let Some(export) = module.export(name) else { return Ok(false) };
    let wanted = FuncType { params: Vec::new(), results: results.to_vec() };
    let found = if export.kind == ExternKind::Function { function_type(module, export.index) } else { None };
    if found == Some(&wanted) {
        return Ok(true);
    }
    let found = found.map_or_else(|| export.kind.to_string(), ToString::to_string);
    Err(FunctionError::EntryType { name: name.to_owned(), found, wanted })
}

fn function_type(module: &ModuleDescriptor, index: u32) -> Option<&FuncType> {
    let imported = module.imports.iter().filter_map(|import| match import.ty {
        ImportType::Function { ty, .. } => Some(ty),
        _ => None,
    });
    let ty = imported.chain(module.functions.iter().map(|function| function.ty)).nth(index as usize)?;
    module.types.get(ty as usize).map(|row| &row.ty)
}

fn exports_of(module: &ModuleDescriptor) -> String {
    /// Enough to recognise a module by.
    const SHOWN_MAX: usize = 10;
    let functions = module.exports.iter().filter(|export| export.kind == ExternKind::Function);
    let names: Vec<_> = functions.map(|export| format!("`{}`", export.name.escape_default())).collect();
    match names.len() {
        0 => "it exports no function at all".to_owned(),
        1..=SHOWN_MAX => format!("it exports {}", names.join(", ")),
        count => format!("it exports {} and {} more", names[..SHOWN_MAX].join(", "), count - SHOWN_MAX),
    }
}
