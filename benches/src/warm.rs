//! A function in this process, without HTTP and without a scheduler: requests one after the other, each in a sandbox from a pool.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use sledge::config::{Config, FunctionConfig};
use sledge::host::{Body, Context, LogLines, ReplyBytes, Streams, Writer};
use sledge::invoke::driver::{Driver, Progress};
use sledge::invoke::function::{Function, Home};
use sledge::load;
use sledge::outcome::Failure;
use sledge_sandbox::{Pool, Sandbox, WorkerThread, affinity};

/// Between ticks of the timer, which nothing here arms.
const QUANTUM: Duration = Duration::from_micros(500);
const REPLY_BYTES_MAX: usize = 64 << 20;

/// The function and its sandboxes.
#[derive(Debug)]
pub struct Warm {
    function: Arc<Function>,
    pool: Pool,
}

/// How a request ended.
#[derive(Debug)]
pub struct Ended {
    /// Whether the function returned.
    pub outcome: Result<(), Failure>,
    /// What it wrote.
    pub reply: Bytes,
}

/// Makes this thread a worker on the last core, for as long as what is returned lives: signals and their handlers are then for sandboxes.
///
/// # Errors
///
/// If the kernel refuses.
pub fn worker() -> Result<WorkerThread> {
    let worker = WorkerThread::enter(QUANTUM).context("cannot make this thread a worker")?;
    worker.pin(*affinity()?.last().context("no core")?)?;
    Ok(worker)
}

/// From a file to what can be invoked, as a server does when it starts.
///
/// # Errors
///
/// If it is no artifact.
pub fn load(artifact: &Path) -> Result<Function> {
    let loaded = load::function(&FunctionConfig::new("measured", artifact), &load::compiler(&Config::default()))?;
    Ok(Function::new(loaded, Home::alone()))
}

impl Warm {
    /// Of what [`load`] makes of an artifact. On a [`worker`] only.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn new(artifact: &Path) -> Result<Warm> {
        Ok(Warm { function: Arc::new(load(artifact)?), pool: Pool::new() })
    }

    /// One request, from taking a sandbox to having reset it.
    ///
    /// # Errors
    ///
    /// If there is no sandbox, or the function waits for something.
    #[inline]
    pub fn request(&mut self, body: &Bytes) -> Result<Ended> {
        let sandbox = self.sandbox()?;
        let (ended, sandbox) = self.run(sandbox, body)?;
        self.pool.put(sandbox);
        Ok(ended)
    }

    /// A sandbox for a request: an idle one, or else a new one.
    ///
    /// # Errors
    ///
    /// If there is no memory for one.
    #[inline]
    pub fn sandbox(&mut self) -> Result<Box<Sandbox>> {
        Ok(self.pool.take(&self.function.template)?)
    }

    /// One request in a sandbox, which is not reset.
    ///
    /// # Errors
    ///
    /// If the function waits for something.
    #[inline]
    pub fn run(&self, sandbox: Box<Sandbox>, body: &Bytes) -> Result<(Ended, Box<Sandbox>)> {
        let process = Arc::clone(&self.function.process);
        let log = LogLines::new(Arc::clone(&process), Arc::clone(&self.function.log), Writer::default());
        let streams = Streams::of_request(Body::from(body.clone()), ReplyBytes::default(), REPLY_BYTES_MAX, log);
        let context = Context::new(process, streams);
        let mut driver = Driver::new(sandbox, context);
        let progress = driver.run(&self.function.program);
        let remains = driver.finish();
        match progress {
            Progress::Ended(outcome) => Ok((Ended { outcome, reply: remains.reply }, remains.sandbox)),
            other => bail!("the request came to {other:?}"),
        }
    }
}
