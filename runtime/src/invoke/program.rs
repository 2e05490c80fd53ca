//! What is run in a sandbox: the calls of its exports in their order, and the host functions behind its imports.

use std::fmt;
use std::sync::{Arc, OnceLock};

use sledge_sandbox::{Callee, FunctionHandle, Sandbox, prefetch};

use crate::host::Imports;

/// The status by which a program leaves `init` where it cannot return from it: "SERV" in ASCII. Status 0 does not do, since a program that prints its
/// version or has nothing to do exits with that, and no `exit` of a native program means this one, which has more than 8 bits.
pub const LEAVES_INIT: u32 = u32::from_be_bytes(*b"SERV");

/// A call that a request makes in its sandbox; all of them in order make up an invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The start function of that instance.
    Start(usize),
    /// An export without parameters and results of the last instance.
    Run(Arc<str>),
    /// The same, named by `init` of the configuration. It may end by an exit with [`LEAVES_INIT`].
    Init(Arc<str>),
    /// An export of the last instance that returns a status.
    Status(&'static str),
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stage::Start(_) => f.write_str("the start function"),
            Stage::Run(name) | Stage::Init(name) => write!(f, "`{name}`"),
            Stage::Status(name) => write!(f, "`{name}`"),
        }
    }
}

impl Stage {
    /// What it calls in a sandbox of its function.
    pub(crate) fn callee(&self, sandbox: &Sandbox) -> Option<FunctionHandle> {
        match self {
            Stage::Start(index) => sandbox.start_function(sandbox.instances().nth(*index)?),
            Stage::Run(name) | Stage::Init(name) => sandbox.export_function(sandbox.main_instance()?, name),
            Stage::Status(name) => sandbox.export_function(sandbox.main_instance()?, name),
        }
    }
}

/// What a [`Driver`](super::driver::Driver) runs in sandboxes of one template.
#[derive(Debug)]
pub struct Program {
    /// The host functions that are imported.
    pub imports: Imports,
    /// The calls, in their order.
    pub stages: Vec<Stage>,
    /// Whether it serves requests through `wasi:http`.
    serves_http: bool,
    /// What they call, found by the first driver.
    callees: OnceLock<Box<[Callee]>>,
}

impl Program {
    /// These calls, in a sandbox with these imports.
    #[must_use]
    pub fn new(imports: Imports, stages: Vec<Stage>) -> Program {
        Program { serves_http: imports.serve_http(), imports, stages, callees: OnceLock::new() }
    }

    /// Whether that call is the one that serves a request through `wasi:http`.
    pub(crate) const fn serves_http(&self, stage: &Stage) -> bool {
        self.serves_http && matches!(stage, Stage::Status(_))
    }

    /// Has the caches fetch it, while something else is done.
    pub(crate) fn prefetch(&self) {
        prefetch(&*self.stages);
        prefetch(self.callees.get().map_or(&[][..], |callees| callees));
        self.imports.prefetch();
    }

    /// What the call of that number calls, in any sandbox of the template.
    pub(crate) fn callee(&self, stage: usize, sandbox: &Sandbox) -> Option<&Callee> {
        let find = || self.stages.iter().map(|stage| sandbox.callee(stage.callee(sandbox)?).ok()).collect::<Option<_>>();
        // Where one is not to be found, there are none: stages are checked when the function is made.
        self.callees.get_or_init(|| find().unwrap_or_default()).get(stage)
    }
}
