//! A server's life: sockets, threads, readiness, draining, the end.
//!
//! The main thread starts everything and then waits for signals; it runs no guest and serves no connection.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use sledge_sandbox::Budget;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::watch;

use crate::config::{Admission, Config, ConfigError, Listeners};
use crate::http::{Door, Router, listener};
use crate::load::{self, OpenError};
use crate::memory;
use crate::scheduler::worker::before_wait;
use crate::scheduler::{Crew, FunctionId, Local, Phase, TenantId, WorkDeque, WorkerSettings};

/// Connections that are polled between two looks at the scheduler and at the network.
const EVENT_INTERVAL: u32 = 31;
/// How long workers get to end what they run, after the time for draining is over.
const KILL_TIME: Duration = Duration::from_secs(1);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A function cannot be loaded.
    #[error("function `{name}`: {source}")]
    Function {
        /// Its name.
        name: String,
        /// Why not.
        source: OpenError,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}{}", hint(source))]
    Listen {
        /// The address.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// A thread did not start.
    #[error("cannot start {what}: {source}")]
    Thread {
        /// Which one.
        what: String,
        /// Why not.
        source: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; stop what listens there, or give another address with --listen",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need a privilege, give another with --listen",
        _ => "",
    }
}

/// Loads all functions of a configuration that was checked.
///
/// # Errors
/// At the first function that cannot be loaded.
pub fn load_functions(config: &Config) -> Result<Router, ServerError> {
    let mut router = Router::default();
    let budget = Budget::new(config.memory_total_bytes_max.unwrap_or_else(memory::total_bytes_default));
    let mut tenants = HashMap::new();
    for (number, function) in (0..).zip(&config.functions) {
        let began = Instant::now();
        let loaded = load::function(function);
        let mut loaded = loaded.map_err(|source| ServerError::Function { name: function.name.clone(), source })?;
        let next = TenantId(tenants.len() as u32);
        loaded.number = FunctionId(number);
        loaded.tenant = *tenants.entry(&function.tenant).or_insert(next);
        tracing::info!(function = function.name, route = function.route(), took = ?began.elapsed(), "loaded");
        router.add(&function.route(), &function.methods, Arc::new(loaded.within(&budget)));
    }
    Ok(router)
}

/// Serves until a signal says to stop; `ready` is called with the address once requests are answered.
///
/// # Errors
/// When the server does not start. Once it serves, it ends without an error.
pub fn serve(config: &Config, router: Router, ready: impl FnOnce(SocketAddr)) -> Result<(), ServerError> {
    let address: SocketAddr = config.listen.parse().map_err(|_| ServerError::Listen {
        address: config.listen.clone(),
        source: io::Error::from(io::ErrorKind::InvalidInput),
    })?;
    let plan = Plan::new(config)?;
    let listeners = listener::bind(address, plan.listeners())
        .map_err(|source| ServerError::Listen { address: config.listen.clone(), source })?;
    let address = listeners.first().and_then(|listener| listener.local_addr().ok()).unwrap_or(address);

    // Every thread started from here on leaves these signals to this one.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    signals.thread_block().map_err(|error| thread_error("the signal handling", error.into()))?;
    let (stop, stopped) = watch::channel(false);
    let running = start(config, &plan, router, listeners, &stopped)?;
    ready(address);

    let signal = wait(&signals);
    tracing::info!(signal, requests = running.crew.requests(), "stopping");
    exit_at_second_signal(signals);
    running.crew.advance(Phase::Draining);
    let _ = stop.send(true);
    running.drain(Duration::from_millis(config.drain_timeout_ms));
    Ok(())
}

/// Which threads there are, and where they run.
struct Plan {
    cores: Vec<usize>,
    workers: usize,
    dedicated: bool,
}

impl Plan {
    fn new(config: &Config) -> Result<Plan, ServerError> {
        let cores = sledge_sandbox::affinity().map_err(|error| thread_error("the workers", error))?;
        let dedicated = config.listeners == Listeners::Dedicated;
        // Besides the affinity mask this knows a control group's quota.
        let usable = thread::available_parallelism().map_or(1, usize::from);
        let free = if dedicated { usable.saturating_sub(1) } else { usable };
        Ok(Plan { cores, workers: config.workers.unwrap_or(free.max(1)), dedicated })
    }

    const fn listeners(&self) -> usize {
        if self.dedicated { 1 } else { self.workers }
    }

    /// The core of a thread: the listener's is the first, if it has one of its own.
    fn core(&self, thread: usize) -> Option<usize> {
        let count = self.cores.len();
        (count > 0).then(|| self.cores[thread % count])
    }

    fn worker_core(&self, index: usize) -> Option<usize> {
        self.core(if self.dedicated { index + 1 } else { index })
    }
}

/// A server whose threads run.
struct Running {
    crew: Arc<Crew>,
    threads: usize,
    ended: Receiver<()>,
}

impl Running {
    /// Waits for all threads to end, and sees to it that they do.
    fn drain(&self, timeout: Duration) {
        let mut left = self.threads;
        let mut wait_until = |deadline: Instant| {
            while left > 0 && self.ended.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok() {
                left -= 1;
            }
            left == 0
        };
        if wait_until(Instant::now() + timeout) {
            tracing::info!("stopped");
            return;
        }
        tracing::warn!(requests = self.crew.requests(), "not finished within drain_timeout_ms; killing what still runs");
        self.crew.advance(Phase::Killing);
        if !wait_until(Instant::now() + KILL_TIME) {
            tracing::warn!("connections are still open; closing them");
        }
    }
}

fn start(
    config: &Config,
    plan: &Plan,
    router: Router,
    listeners: Vec<TcpListener>,
    stopped: &watch::Receiver<bool>,
) -> Result<Running, ServerError> {
    let (crew, deques) =
        Crew::new(plan.workers, plan.listeners(), config.requests_max, config.admission == Admission::Utilisation);
    let router = Arc::new(router);
    let settings = WorkerSettings {
        policy: config.policy,
        quantum: Duration::from_micros(config.quantum_us),
        reply_bytes_max: usize::try_from(config.reply_bytes_max).unwrap_or(usize::MAX),
    };
    let (is_ready, ready) = mpsc::channel();
    let (has_ended, ended) = mpsc::channel();
    let mut listeners = listeners.into_iter();
    let mut threads = 0;
    let thread = |listener| Thread {
        crew: Arc::clone(&crew),
        router: Arc::clone(&router),
        body_bytes_max: config.body_bytes_max,
        listener,
        stopped: stopped.clone(),
        ready: is_ready.clone(),
        ended: has_ended.clone(),
    };
    let mut spawn = |name: String, thread: Thread, work: Option<(usize, WorkDeque, WorkerSettings)>, core| {
        threads += 1;
        let body = move || thread.run(work, core);
        thread::Builder::new().name(name.clone()).spawn(body).map(drop).map_err(|error| thread_error(&name, error))
    };
    if plan.dedicated {
        spawn("listener".to_owned(), thread(listeners.next()), None, plan.core(0))?;
    }
    for (index, deque) in deques.into_iter().enumerate() {
        let work = Some((index, deque, settings));
        spawn(format!("worker-{index}"), thread(listeners.next()), work, plan.worker_core(index))?;
    }
    drop(is_ready);
    for _ in 0..threads {
        let ready: Result<(), (String, io::Error)> =
            ready.recv().unwrap_or_else(|_| Err(("a thread".to_owned(), io::Error::other("it ended at once"))));
        ready.map_err(|(what, source)| ServerError::Thread { what, source })?;
    }
    Ok(Running { crew, threads, ended })
}

/// What a thread is given.
struct Thread {
    crew: Arc<Crew>,
    router: Arc<Router>,
    body_bytes_max: u64,
    listener: Option<TcpListener>,
    stopped: watch::Receiver<bool>,
    ready: Sender<Result<(), (String, io::Error)>>,
    ended: Sender<()>,
}

impl Thread {
    fn run(mut self, work: Option<(usize, WorkDeque, WorkerSettings)>, core: Option<usize>) {
        let _abort = AbortOnPanic;
        let ready = self.ready.clone();
        let ended = self.ended.clone();
        if let Err(error) = self.live(work, core) {
            let name = thread::current().name().unwrap_or("a thread").to_owned();
            let _ = ready.send(Err((name, error)));
        }
        let _ = ended.send(());
    }

    fn live(&mut self, work: Option<(usize, WorkDeque, WorkerSettings)>, core: Option<usize>) -> io::Result<()> {
        let runtime = runtime()?;
        let crew = || Arc::clone(&self.crew);
        let local = work.map(|(index, deque, settings)| Local::new(crew(), index, deque, settings)).transpose()?;
        let door = Rc::new(Door::new(Arc::clone(&self.router), crew(), local.clone(), self.body_bytes_max));
        pin(core);
        if let Some(listener) = self.listener.take() {
            let _inside = runtime.enter();
            let listener = tokio::net::TcpListener::from_std(listener)?;
            runtime.spawn_local(listener::accept(Rc::clone(&door), listener, self.stopped.clone()));
        }
        let _ = self.ready.send(Ok(()));
        let life = async move {
            match local {
                Some(local) => local.work().await,
                None => door.closed().await,
            }
        };
        // A task like the others, which takes its turn after those that are ready; the main future would always be first.
        runtime.block_on(runtime.spawn_local(life)).map_err(io::Error::other)
    }
}

fn runtime() -> io::Result<LocalRuntime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().event_interval(EVENT_INTERVAL).on_thread_park(before_wait);
    builder.build_local(LocalOptions::default())
}

/// Binds this thread to a core; not worth failing for.
fn pin(core: Option<usize>) {
    if let Some(core) = core {
        let mut cores = nix::sched::CpuSet::new();
        let pinned = cores.set(core).and_then(|()| nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &cores));
        if let Err(error) = pinned {
            tracing::warn!(core, %error, "a thread could not be bound to its core");
        }
    }
}

/// Nothing can be relied on after a worker has panicked outside of a host call.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

fn wait(signals: &SigSet) -> &'static str {
    loop {
        match signals.wait() {
            Ok(signal) => return signal.as_str(),
            Err(nix::errno::Errno::EINTR) => {}
            // Cannot be: the set is valid. Stopping is the safe side.
            Err(_) => return "none",
        }
    }
}

fn exit_at_second_signal(signals: SigSet) {
    let waiting = thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let signal = wait(&signals);
        tracing::warn!(signal, "exiting at once");
        // As a shell reports a process that was ended by SIGINT.
        std::process::exit(130);
    });
    if let Err(error) = waiting {
        tracing::warn!(%error, "a second signal will not be noticed");
    }
}

fn thread_error(what: &str, source: io::Error) -> ServerError {
    ServerError::Thread { what: what.to_owned(), source }
}
