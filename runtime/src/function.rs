//! A loaded function: the template of its sandboxes, its imports resolved, and how a request is run with them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use awsm_abi::Descriptor;
use awsm_abi::descriptor::{ExternKind, ImportType, ModuleDescriptor};
use awsm_abi::types::{FuncType, ValType};
use hyper::header::HeaderValue;
use sledge_sandbox::{Artifact, InstantiateError, SandboxLimits, Template};

use crate::config::FunctionConfig;
use crate::host::{ImportError, Imports, Process};

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
        name: &'static str,
        /// What it is.
        found: String,
        /// What it has to be.
        wanted: FuncType,
    },
    /// No sandbox can be made of it.
    #[error("no sandbox can be made of it: {0}")]
    Instantiate(#[from] InstantiateError),
    /// A setting that no reply can carry.
    #[error("`{0}` is no content type")]
    ContentType(String),
}

/// A call that a request makes in its sandbox; all of them in order make up an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The start function of that instance.
    Start(usize),
    /// An export without parameters and results of the last instance.
    Run(&'static str),
    /// An export of the last instance that returns a status.
    Status(&'static str),
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
        let imports = Imports::resolve(artifact.descriptor())?;
        let stages = stages(artifact.descriptor())?;
        let limits = SandboxLimits {
            memory_bytes_max: config.memory_bytes_max,
            stack_bytes: usize::try_from(config.stack_bytes).unwrap_or(usize::MAX),
            ..SandboxLimits::default()
        };
        let args = std::iter::once(&config.name).chain(&config.args).collect();
        let env = config.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Ok(Function {
            template: Template::new(artifact, &limits)?,
            imports,
            stages,
            process: Arc::new(Process { name: config.name.clone(), args, env }),
            content_type: HeaderValue::from_str(&config.content_type)
                .map_err(|_| FunctionError::ContentType(config.content_type.clone()))?,
            deadline: Duration::from_millis(config.deadline_ms),
        })
    }
}

/// The calls that make up an invocation of an artifact.
fn stages(descriptor: &Descriptor) -> Result<Vec<Stage>, FunctionError> {
    let modules: Vec<&ModuleDescriptor> =
        descriptor.plan.iter().filter_map(|step| descriptor.modules.get(step.module as usize)).collect();
    let starts = modules.iter().enumerate().filter(|(_, module)| module.start.is_some());
    let mut stages: Vec<Stage> = starts.map(|(instance, _)| Stage::Start(instance)).collect();

    let Some(&main) = modules.last() else { return Err(FunctionError::NoEntry("it has no instance".to_owned())) };
    if check_export(main, HANDLE, &[ValType::I32])? {
        if check_export(main, INITIALIZE, &[])? {
            stages.push(Stage::Run(INITIALIZE));
        }
        stages.push(Stage::Status(HANDLE));
    } else if check_export(main, COMMAND, &[])? {
        stages.push(Stage::Run(COMMAND));
    } else {
        return Err(FunctionError::NoEntry(exports_of(main)));
    }
    Ok(stages)
}

/// Whether a module has an export; it must be a function without parameters that returns `results`.
fn check_export(module: &ModuleDescriptor, name: &'static str, results: &[ValType]) -> Result<bool, FunctionError> {
    let Some(export) = module.export(name) else { return Ok(false) };
    let wanted = FuncType { params: Vec::new(), results: results.to_vec() };
    let found = if export.kind == ExternKind::Function { function_type(module, export.index) } else { None };
    if found == Some(&wanted) {
        return Ok(true);
    }
    let found = found.map_or_else(|| export.kind.to_string(), ToString::to_string);
    Err(FunctionError::EntryType { name, found, wanted })
}

fn function_type(module: &ModuleDescriptor, index: u32) -> Option<&FuncType> {
    let imported = module.imports.iter().filter_map(|import| match import.ty {
        ImportType::Function { ty, .. } => Some(ty),
        ImportType::Table(_) | ImportType::Memory(_) | ImportType::Global(_) => None,
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
