//! From an artifact and the settings of a function to what invocations of it begin with: imports resolved, the calls found, and for a reactor the snapshot made.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use awsm_abi::Descriptor;
use awsm_abi::descriptor::{ExternKind, ImportType, ModuleDescriptor};
use awsm_abi::importable::interface_of_export;
use awsm_abi::text;
use awsm_abi::types::{FuncType, ValType};
use hyper::header::HeaderValue;
use sledge_sandbox::{Artifact, InstantiateError, SandboxLimits, Template, TrapCode};

use super::function::Function;
use super::program::{Program, Stage};
use super::snapshot::{self, InitError};
use super::tier::Tier;
use crate::config::{
    AsynchronousConfig, BodyMode, CONTENT_TYPE_DEFAULT, CallSpeculation, Concurrency, DirWrite, EdgeConfig, FunctionConfig,
    Instance, Isolation, Memo, OUTBOX_AGE_S, OutsideEffects, Snapshot,
};
use crate::host::wasi::{Access, Grant, GrantError};
use crate::host::{Destination, Drawn, Edges, ImportError, Imports, Process};
use crate::memo;
use crate::phases::{Phases, Profiler};
use crate::secret::SecretError;
use crate::upstream::{AllowError, Allowed, Origin, OriginError, PolicyError, SocketPolicy, Upstream};

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
    #[error("exports `{}` as {found}, but it must be a function {wanted}", text::name(name))]
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
    #[error("`init` is `{}`, but {why}", text::name(name))]
    NoInit {
        /// The name given.
        name: String,
        /// Why that is nothing.
        why: String,
    },
    /// It cannot keep what a call leaves.
    #[error("`instance` must be \"call\": {0}")]
    Instance(&'static str),
    /// A folder that it is granted cannot be opened.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// A secret in its environment cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A host that it is allowed to ask is none.
    #[error("http_hosts: {0}")]
    Host(#[from] AllowError),
    /// A server to which its calls go is none.
    #[error("edges: `{}`: {source}", text::name(service))]
    Edge {
        /// The service.
        service: String,
        /// Why.
        source: OriginError,
    },
    /// What its sockets may reach or have is none.
    #[error("{key}: {source}")]
    Socket {
        /// The setting.
        key: &'static str,
        /// Why.
        source: PolicyError,
    },
    /// A setting that no reply can carry.
    #[error("`{}` is no content type", text::name(.0))]
    ContentType(String),
}

impl FunctionError {
    /// Whether optimised code may not have it: it needs less time and stack for an initialisation.
    #[must_use]
    pub const fn may_be_of_tier(&self) -> bool {
        matches!(self, FunctionError::Init(InitError::Time { .. } | InitError::Trap { code: TrapCode::StackExhausted, .. }))
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

/// A function that no server serves yet: all of it that does not depend on which.
#[derive(Debug)]
pub struct Loaded {
    /// What its sandboxes begin as.
    pub(super) template: Template,
    pub(super) program: Program,
    /// Without the key-value store, and with the system's roots alone.
    pub(super) process: Process,
    pub(super) content_type: HeaderValue,
    pub(super) streams_body: bool,
    pub(super) instance: Instance,
    pub(super) asynchronous: Option<AsynchronousConfig>,
    pub(super) isolation: Isolation,
    pub(super) effects: OutsideEffects,
    pub(super) outbox_age_max: Duration,
    pub(super) speculative: bool,
    pub(super) speculation: CallSpeculation,
    /// How its runs are remembered, if they are.
    pub(super) memo: Option<memo::Settings>,
    pub(super) deadline: Duration,
    pub(super) cpu_max: Duration,
    pub(super) concurrency: Option<Concurrency>,
    /// Its share among the functions of its tenant.
    pub(super) weight: u32,
    pub(super) queue_max: Option<usize>,
    pub(super) log_lines_per_s_max: u64,
    pub(super) tier: Tier,
    /// What its initialisation has drawn of the clock and of random numbers.
    pub(super) drawn: Drawn,
    /// What its numbers are called by.
    pub labels: Labels,
}

impl Loaded {
    /// Makes one of an artifact.
    ///
    /// # Errors
    /// When its imports cannot be served, it has no entry, or no sandbox can be made of it within the limits.
    pub fn new(artifact: &Artifact, config: &FunctionConfig) -> Result<Loaded, FunctionError> {
        Loaded::with_imports(artifact, config, Imports::resolve(artifact.descriptor())?)
    }

    /// The same with imports that are resolved already.
    ///
    /// # Errors
    /// As for [`Loaded::new`].
    pub fn with_imports(artifact: &Artifact, config: &FunctionConfig, imports: Imports) -> Result<Loaded, FunctionError> {
        Loaded::drawing(artifact, config, imports, (Tier::Only, Drawn::default()))
    }

    /// Makes one of another artifact of the same module, which is to take the place of `first`: its initialisation is told the same times and random numbers.
    ///
    /// # Errors
    /// As for [`Loaded::new`], and when the initialisation asks for others.
    pub fn in_place_of(first: &Function, artifact: &Artifact, config: &FunctionConfig) -> Result<Loaded, FunctionError> {
        let imports = Imports::resolve(artifact.descriptor())?;
        Loaded::drawing(artifact, config, imports, (Tier::Optimised, first.drawn.again()))
    }

    /// Makes one of an artifact that is code of that tier.
    ///
    /// # Errors
    /// As for [`Loaded::new`].
    pub fn of_tier(artifact: &Artifact, config: &FunctionConfig, tier: Tier) -> Result<Loaded, FunctionError> {
        let imports = Imports::resolve(artifact.descriptor())?;
        Loaded::drawing(artifact, config, imports, (tier, Drawn::default()))
    }

    /// The same as code of that tier.
    #[cfg(test)]
    pub(crate) fn in_tier(self, tier: Tier) -> Loaded {
        Loaded { tier, ..self }
    }

    /// How far its code is optimised.
    #[must_use]
    pub const fn tier(&self) -> Tier {
        self.tier
    }

    /// What its invocations find in their environment.
    pub(crate) const fn process(&self) -> &Process {
        &self.process
    }

    fn drawing(
        artifact: &Artifact,
        config: &FunctionConfig,
        imports: Imports,
        (tier, drawn): (Tier, Drawn),
    ) -> Result<Loaded, FunctionError> {
        let Stages { init, request, reactor } = stages(artifact.descriptor(), config.init.as_deref())?;
        if config.instance != Instance::Call {
            if !reactor {
                return Err(FunctionError::Instance(
                    "a command runs from its start for each call, only a reactor (`sledge_handle`) can be called again",
                ));
            }
            if artifact.descriptor().component.is_some() {
                return Err(FunctionError::Instance("a component has a fresh instance for each call"));
            }
        }
        let limits = SandboxLimits {
            memory_bytes_max: config.memory_bytes_max,
            stack_bytes: usize::try_from(tier.allowing_stack(config.stack_bytes)).unwrap_or(usize::MAX),
            ..SandboxLimits::default()
        };
        let args = std::iter::once(&config.name).chain(&config.args).collect();
        let env = config.environment()?.into_iter().collect();
        let access = |write| match write {
            DirWrite::No => Access::Read,
            DirWrite::Yes => Access::Write,
            DirWrite::Scratch => Access::Scratch { bytes_max: config.scratch_bytes_max },
        };
        let grants = config.dirs.iter().map(|dir| Grant::open(&dir.host, dir.within.as_deref(), &dir.guest, access(dir.write)));
        let grants = grants.collect::<Result<_, _>>()?;
        let allowed = (!config.http_hosts.is_empty()).then(|| Allowed::new(&config.http_hosts)).transpose()?;
        let upstream = allowed.map(|allowed| Arc::new(Upstream::new(Arc::new(allowed), Arc::default())));
        let sockets = SocketPolicy::new(&config.socket_hosts, &config.socket_listen)
            .map_err(|source| FunctionError::Socket { key: source.key, source })?
            .map(Arc::new);
        let edges = edges(config)?;
        let phases = Phases::new(&config.phases);
        let process = Process {
            name: config.name.clone(),
            args,
            env,
            grants,
            kv: None,
            upstream,
            edges,
            sockets,
            phases,
            profiler: Profiler::default(),
        };
        let content_type = content_type(&config.content_type)?;
        let mut template = Template::new(artifact, &limits)?;
        let mut program = Program::new(imports, init);
        if reactor && config.snapshot != Snapshot::Off && !program.stages.is_empty() {
            let shared = config.snapshot == Snapshot::SharedSeed;
            template = snapshot::initialised(&template, &program, &process, (shared, &drawn))?;
            program = Program::new(program.imports, Vec::new());
        }
        if drawn.differs() {
            return Err(InitError::Differs.into());
        }
        program.stages.push(request);
        let labels = Labels { function: config.name.clone(), tenant: config.tenant.clone(), phases: process.phases.clone() };
        Ok(Loaded {
            labels,
            template,
            program,
            process,
            content_type,
            streams_body: config.body == BodyMode::Stream,
            instance: config.instance,
            asynchronous: config.asynchronous.clone(),
            isolation: config.isolation,
            effects: config.effects,
            outbox_age_max: Duration::from_secs(config.outbox_age_max_s.unwrap_or(OUTBOX_AGE_S)),
            speculative: config.speculative,
            speculation: config.speculation,
            memo: (config.memo != Memo::Off).then(|| memo::Settings {
                answers: config.memo == Memo::Auto,
                pure: config.pure,
                bytes_max: config.memo_bytes_max as usize,
                whole_head: artifact.descriptor().component.is_some(),
            }),
            deadline: Duration::from_millis(config.deadline_ms),
            cpu_max: config.cpu_ms_max.map_or(Duration::MAX, Duration::from_millis),
            concurrency: config.concurrency(),
            weight: config.weight,
            queue_max: config.queue_max,
            log_lines_per_s_max: config.log_lines_per_s_max,
            tier,
            drawn,
        })
    }
}

/// Where its calls by gRPC go; none where it has no edges.
fn edges(config: &FunctionConfig) -> Result<Option<Arc<Edges>>, FunctionError> {
    if config.edges.is_empty() {
        return Ok(None);
    }
    let edge = |(service, edge): (&String, &EdgeConfig)| match edge {
        EdgeConfig::Function(name) => Ok((service.clone(), Destination::Function(name.clone()))),
        EdgeConfig::Url(url) => match Origin::parse(url) {
            Ok(origin) => Ok((service.clone(), Destination::Server(origin))),
            Err(source) => Err(FunctionError::Edge { service: service.clone(), source }),
        },
    };
    let edges: Vec<_> = config.edges.iter().map(edge).collect::<Result<_, _>>()?;
    Ok(Some(Arc::new(Edges::new(edges))))
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
            stages.push(Stage::Init(name.into()));
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
    let names: Vec<_> = functions.map(|export| format!("`{}`", text::name(&export.name))).collect();
    let shown = match names.len() {
        0 => "it exports no function at all".to_owned(),
        1..=SHOWN_MAX => format!("it exports {}", names.join(", ")),
        count => format!("it exports {} and {} more", names[..SHOWN_MAX].join(", "), count - SHOWN_MAX),
    };
    match module.exports.iter().any(|export| interface_of_export(&export.name).is_some()) {
        true => {
            format!("{shown}; it is to become a component first: run `awsm componentize` on the module, and use the component")
        }
        false => shown,
    }
}
