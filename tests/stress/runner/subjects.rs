//! The functions that are run, each with an input and the reply of an undisturbed run.

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use sledge::config::{Config, FunctionConfig};
use sledge::host::{Body, Context, LogLines, ReplyBytes, Streams, Writer};
use sledge::invoke::driver::{Driver, Progress};
use sledge::invoke::function::{Function, Home};
use sledge::load;
use sledge_sandbox::{Budget, Sandbox, WorkerThread};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A function and what it must reply.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) function: Arc<Function>,
    input: Bytes,
    pub(crate) expected: Bytes,
}

/// Kernels of polybench: floating point, vectors, integers, much memory. What they print is every element of their result.
const KERNELS: [&str; 7] = ["gemm", "lu", "jacobi-2d", "durbin", "nussinov", "deriche", "floyd-warshall"];
const MODES: [&str; 2] = ["guard", "software"];

/// Compiles and loads them.
pub(crate) fn load(budget: &Arc<Budget>) -> Result<Vec<Subject>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let program = std::env::current_exe()?;
    // Beside this program, since artifacts may not lie in a file system that is mounted `noexec`.
    let folder = tempfile::tempdir_in(program.parent().context("a folder")?)?;
    let (awsm, folder) = (program.with_file_name("awsm"), folder.path());
    let busy = [1_000_000_u64.to_le_bytes().as_slice(), b"as it was"].concat();
    let mut wanted: Vec<(String, PathBuf, Vec<&str>, Vec<u8>)> = vec![
        (
            "gps-ekf".to_owned(),
            root.join("examples/gps-ekf/gps-ekf.c"),
            vec![],
            std::fs::read(root.join("examples/gps-ekf/input.bin"))?,
        ),
        ("hello".to_owned(), root.join("benches/functions/hello.c"), vec![], Vec::new()),
        ("busy".to_owned(), root.join("tests/e2e/functions/busy.wat"), vec![], busy),
    ];
    for kernel in KERNELS {
        let source = root.join(format!("polybench/kernels/{kernel}.c"));
        wanted.push((kernel.to_owned(), source, vec!["--", "-DMINI_DATASET"], Vec::new()));
    }
    let compiler = load::compiler(&Config::default());
    let mut subjects = Vec::new();
    for (number, (name, source, options, input)) in wanted.into_iter().enumerate() {
        let mode = MODES[number % MODES.len()];
        let artifact = folder.join(format!("{name}.so"));
        let mut command = Command::new(&awsm);
        command.arg("compile").arg(&source).arg("-o").arg(&artifact).args(["--bounds", mode]).args(options);
        let output = command.output().with_context(|| format!("{command:?}"))?;
        ensure!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
        let mut config = FunctionConfig::new(&name, &artifact);
        if KERNELS.contains(&name.as_str()) {
            config.args = vec!["--dump".to_owned()];
        }
        let home = Home { budget: Some(Arc::clone(budget)), ..Home::alone() };
        let function = Arc::new(Function::new(load::function(&config, &compiler)?, home));
        let mut subject = Subject { name: format!("{name} ({mode})"), function, input: input.into(), expected: Bytes::new() };
        subject.expected = subject.undisturbed()?;
        subjects.push(subject);
    }
    Ok(subjects)
}

impl Subject {
    /// An invocation in that sandbox.
    pub(crate) fn begin(&self, sandbox: Box<Sandbox>) -> Driver {
        let process = &self.function.process;
        let log = LogLines::new(Arc::clone(process), Arc::default(), Writer::default());
        let streams = Streams::of_request(Body::from(self.input.clone()), ReplyBytes::default(), 8 << 20, log);
        Driver::new(sandbox, Context::new(Arc::clone(process), streams))
    }

    /// The reply of a run on a thread of its own, without a timer.
    fn undisturbed(&self) -> Result<Bytes> {
        let run = || -> Result<Bytes> {
            let _worker = WorkerThread::enter(Duration::from_secs(1))?;
            let mut driver = self.begin(Box::new(self.function.template.instantiate()?));
            // A host call that moves much lets others have their turn in between.
            loop {
                match driver.run(&self.function.program) {
                    Progress::Preempted | Progress::Yields => {}
                    Progress::Waits { .. } | Progress::Pends(_) | Progress::Stale => {
                        bail!("{}: it waits, and nothing wakes it", self.name)
                    }
                    Progress::Ended(result) => {
                        ensure!(result.is_ok(), "{}: {result:?}", self.name);
                        let reply = driver.finish().reply;
                        ensure!(!reply.is_empty(), "{}: nothing to compare", self.name);
                        return Ok(reply);
                    }
                }
            }
        };
        thread::scope(|scope| scope.spawn(run).join()).map_err(|_| anyhow::anyhow!("{}: a panic", self.name))?
    }
}
