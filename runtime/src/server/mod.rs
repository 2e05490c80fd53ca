//! A server's life: sockets, threads, readiness, draining, the end.
//!
//! The main thread starts everything and then waits for signals; it runs no guest and serves no connection.
//!
//! * [`prepare`]: what it needs before it serves; `plan`: its threads; `files`: how many files it may open; `reload`: SIGHUP.

mod error;
pub(crate) mod files;
pub(crate) mod plan;
pub mod prepare;
mod reload;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::watch;
use tokio::task::unconstrained;

pub use self::error::ServerError;
use self::error::thread_error;
use self::files::{connections_of, raise_files_max};
use self::plan::Plan;
use self::prepare::Prepared;
use self::reload::Reloader;
use crate::abort::{AbortOnPanic, vital};
use crate::admin::access::Tokens;
use crate::admin::listener::{self as admin_listener, Guard, ListenError, Listener, SocketFile};
use crate::admin::states::StatesApi;
use crate::admin::{Address, Api};
use crate::blocking;
use crate::config::{Admission, Config, ConfigError, FunctionConfig, GrantConfig, QUANTUM_US_DEFAULT};
use crate::confine;
use crate::deploy::Deployer;
use crate::deploy::publish::Subscription;
use crate::http::{Access, ConnectionSettings, HttpService, Ready, Site, Timeouts, listener};
use crate::invoke::{Dispatcher, WorkDeque};
use crate::logging;
use crate::metrics::shard::Thread as ThreadCounts;
use crate::metrics::{Metrics, Shard};
use crate::schedule::Phase;
use crate::systemd;
use crate::telemetry::Telemetry;
use crate::tls;
use crate::watch::{Watcher, epoll_of};
use crate::worker::before_wait;
use crate::worker::{Local, WorkerSettings};
use crate::workflow::{Executions, Remote};

/// Connections that are polled between two looks at the scheduler and at the network.
const EVENT_INTERVAL: u32 = 31;
/// Between two ticks of a guest that nothing else waits for: what bounds the delay of tokio's timers, and of whatever the watcher should miss.
const TICK_MAX: Duration = Duration::from_millis(5);
/// For tests: another value for that, in milliseconds.
const TICK_MAX_VARIABLE: &str = "SLEDGE_TICK_MAX_MS";
/// How long workers get to end what they run, after the time for draining is over.
const KILL_TIME: Duration = Duration::from_secs(1);

/// Serves until a signal says to stop; `ready` is called with the address once requests are answered. At SIGHUP functions become what `reread`
/// says.
///
/// # Errors
/// When the server does not start. Once it serves, it ends without an error.
pub fn serve(
    config: &Config,
    prepared: Prepared,
    reread: impl Fn() -> Result<Config, ConfigError> + Send + 'static,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServerError> {
    sledge_sandbox::bound_heap();
    let Prepared { address, plan, tls, tokens, aws_keys, telemetry, deployer } = prepared;
    let deployer = Arc::new(deployer);
    deployer.pin_executions();
    if let Some((executions, bytes_max)) = deployer.executions().zip(config.executions_tenant_bytes_max) {
        executions.limit(bytes_max);
    }
    let certificate = tls.map(tls::Current::new).map(Arc::new);
    let (stop, stopped) = watch::channel(false);
    let is_ready = Ready { health: Arc::clone(deployer.health()), when_degraded: config.ready_when_degraded };
    let mut connection_settings = connection_settings(config, &plan, certificate.clone(), is_ready, stopped.clone());
    let listeners = match systemd::inherited(plan.listeners()).map_err(ServerError::Inherited)? {
        Some(listeners) => {
            connection_settings.is_inherited = true;
            listeners
        }
        None => listener::bind(address, plan.listeners())
            .map_err(|source| ServerError::Listen { address: config.listen.clone(), source })?,
    };
    let address = listeners.first().and_then(|listener| listener.local_addr().ok()).unwrap_or(address);
    let mut listeners: Vec<Listening> = listeners.into_iter().map(|listener| vec![(None, listener)]).collect();
    for own in deployer.addresses() {
        let sockets = match listener::bind(own, plan.listeners()) {
            Ok(sockets) => sockets,
            // It concerns what was to be answered there, unless that is all.
            Err(source) if deployer.refuse_address(own, &source).is_err() => {
                return Err(ServerError::Listen { address: own.to_string(), source });
            }
            Err(_) => continue,
        };
        listeners.iter_mut().zip(sockets).for_each(|(of_thread, socket)| of_thread.push((Some(own), socket)));
    }

    let states = aws_keys.zip(deployer.executions()).map(|(keys, executions)| StatesApi::new(keys, executions));
    let doors = admin_listeners(config, address.port(), tokens, states)?;
    if config.confined {
        confine::drop_privileges();
    }
    let _log = logging::queue();

    // Every thread started from here on leaves these signals to this one.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    signals.thread_block().map_err(|error| thread_error("the signal handling", error.into()))?;
    let telemetry = telemetry.map(Telemetry::start).transpose()?;
    connection_settings.tracer = telemetry.as_ref().map(|telemetry| Arc::clone(telemetry.tracer()));
    let metrics = Arc::new(Metrics::default());
    let running = start(config, &plan, &connection_settings, &deployer, &metrics, listeners, &stopped)?;
    deployer.start_tiers();
    let reloader = Reloader::start(config.clone(), address, Arc::clone(&deployer), certificate, reread)?;
    let (dispatcher, ready_when_degraded) = (Arc::clone(&running.dispatcher), config.ready_when_degraded);
    let api = Api::new(
        Arc::clone(&deployer),
        dispatcher,
        metrics,
        connection_settings.tracer,
        address,
        plan.workers,
        ready_when_degraded,
    );
    let _socket_file = serve_admin(doors, api)?;
    if config.confined
        && let Err(error) = confine::filter_calls(has_sockets(config))
    {
        tracing::warn!(%error, "the server can do whatever the kernel lets it");
    }
    ready(address);
    systemd::ready(address);
    // Most of the program, and of what was allocated so far, is for reading configurations and loading functions.
    sledge_sandbox::release_heap();
    sledge_sandbox::release_program();

    let signal = loop {
        match wait(&signals) {
            Signal::SIGHUP => reloader.reload(),
            signal => break signal,
        }
    };
    tracing::info!(signal = signal.as_str(), requests = running.dispatcher.requests(), "stopping");
    systemd::stopping();
    exit_at_second_signal();
    deployer.stop();
    running.dispatcher.advance(Phase::Draining);
    let _ = stop.send(true);
    running.drain(Duration::from_millis(config.drain_timeout_ms));
    deployer.close_store();
    // What the last requests were is known only now.
    if let Some(telemetry) = telemetry {
        telemetry.stop();
    }
    Ok(())
}

/// Whether a function may have sockets: one of the configuration, or one that is deployed.
fn has_sockets(config: &Config) -> bool {
    config.functions.iter().any(FunctionConfig::has_sockets) || config.grants.iter().any(GrantConfig::has_sockets)
}

/// How clients are treated.
fn connection_settings(
    config: &Config,
    plan: &Plan,
    tls: Option<Arc<tls::Current>>,
    ready: Ready,
    stopped: watch::Receiver<bool>,
) -> ConnectionSettings {
    let files_max = raise_files_max();
    let connections_max = config.connections_max.unwrap_or_else(|| connections_of(files_max));
    ConnectionSettings {
        body_bytes_max: config.body_bytes_max,
        timeouts: Timeouts {
            head: Duration::from_millis(config.head_timeout_ms),
            body: Duration::from_millis(config.body_timeout_ms),
            reply: Duration::from_millis(config.reply_timeout_ms),
        },
        tls,
        connections_max: connections_max.div_ceil(plan.listeners()),
        is_inherited: false,
        access: Access { log: config.access_log, ids: config.request_ids },
        tracer: None,
        ready,
        stopped,
    }
}

/// Opens the admin API, where the configuration wants it; where it says nothing, that there is none is no reason to fail. Beside it, what answers for metrics alone, and the API of AWS Step
/// Functions.
fn admin_listeners(config: &Config, port: u16, tokens: Tokens, states: Option<StatesApi>) -> Result<Vec<Listener>, ListenError> {
    let guard = Guard::Tokens(tokens);
    let admin = match &config.admin {
        Some(admin) => Address::parse(admin).map(|address| Listener::open(address, guard)).transpose()?,
        None => Address::default_for(port).and_then(|address| {
            let opened = Listener::open(address, guard);
            opened.map_err(|error| tracing::warn!(%error, "there is no admin API")).ok()
        }),
    };
    let metrics = config.metrics_listen.as_deref().and_then(Address::parse);
    let metrics = metrics.map(|address| Listener::open(address, Guard::Metrics)).transpose()?;
    let states_address = config.aws_api.as_ref().and_then(|api| Address::parse(&api.listen));
    let states = states_address.zip(states).map(|(address, states)| Listener::open(address, Guard::States(Box::new(states))));
    Ok(admin.into_iter().chain(metrics).chain(states.transpose()?).collect())
}

fn serve_admin(listeners: Vec<Listener>, api: Api) -> Result<Option<SocketFile>, ServerError> {
    if listeners.is_empty() {
        return Ok(None);
    }
    let addresses: Vec<_> = listeners.iter().map(|listener| (listener.address.clone(), listener.offers())).collect();
    let file = admin_listener::serve(listeners, api).map_err(|error| thread_error("the admin API", error))?;
    for (address, offered) in addresses {
        tracing::info!(%address, "{offered}");
    }
    Ok(Some(file))
}

/// A server whose threads run.
struct Running {
    dispatcher: Arc<Dispatcher>,
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
        tracing::warn!(requests = self.dispatcher.requests(), "not finished within drain_timeout_ms; killing what still runs");
        self.dispatcher.advance(Phase::Killing);
        if !wait_until(Instant::now() + KILL_TIME) {
            tracing::warn!("connections are still open; closing them");
        }
    }
}

fn start(
    config: &Config,
    plan: &Plan,
    connection_settings: &ConnectionSettings,
    deployer: &Deployer,
    metrics: &Metrics,
    listeners: Vec<Listening>,
    stopped: &watch::Receiver<bool>,
) -> Result<Running, ServerError> {
    let executions = deployer.executions();
    // Executions of workflows call functions, too, as long as there are any.
    let sources = plan.listeners() + usize::from(executions.is_some());
    let (dispatcher, deques) =
        Dispatcher::new(plan.workers, sources, config.requests_max, config.admission == Admission::Utilisation);
    dispatcher.pools().lend_to(&deployer.budget());
    let settings = WorkerSettings {
        policy: config.policy,
        quantum: Duration::from_micros(config.quantum_us.unwrap_or(QUANTUM_US_DEFAULT)),
        tick_max: tick_max(config, &dispatcher, plan.workers),
        classes: config.classes.settings(config.class_shares),
        reply_bytes_max: usize::try_from(config.reply_bytes_max).unwrap_or(usize::MAX),
        idle_memory: (config.idle_memory_ms > 0).then(|| Duration::from_millis(config.idle_memory_ms)),
    };
    let (is_ready, ready) = mpsc::channel();
    let (has_ended, ended) = mpsc::channel();
    let mut listeners = listeners.into_iter();
    let mut threads = 0;
    let thread = |name: &str, listeners: Option<Listening>| Thread {
        counts: metrics.thread(name),
        counts_functions: config.metrics,
        connection_settings: connection_settings.clone(),
        dispatcher: Arc::clone(&dispatcher),
        routes: deployer.subscribe(),
        listeners: listeners.unwrap_or_default(),
        stopped: stopped.clone(),
        cores: plan.cores.clone(),
        ready: is_ready.clone(),
        ended: has_ended.clone(),
    };
    let mut spawn = |name: String, thread: Thread, work: Option<(usize, WorkDeque, WorkerSettings)>, core| {
        threads += 1;
        let body = move || thread.run(work, core);
        thread::Builder::new().name(name.clone()).spawn(body).map(drop).map_err(|error| thread_error(&name, error))
    };
    if plan.dedicated {
        spawn("listener".to_owned(), thread("listener", listeners.next()), None, plan.core(0))?;
    }
    for (index, deque) in deques.into_iter().enumerate() {
        let work = Some((index, deque, settings));
        let name = format!("worker-{index}");
        let thread = thread(&name, listeners.next());
        spawn(name, thread, work, plan.worker_core(index))?;
    }
    drop(is_ready);
    let started = threads;
    if let Some(executions) = executions {
        threads += 1;
        let thread = WorkflowThread {
            executions,
            dispatcher: Arc::clone(&dispatcher),
            counts: metrics.thread(WORKFLOWS),
            counts_functions: config.metrics,
            places: (config.requests_max / 2).max(1),
            cores: plan.cores.clone(),
            stopped: stopped.clone(),
            ended: has_ended,
        };
        let spawned = thread::Builder::new().name(WORKFLOWS.to_owned()).spawn(move || thread.run());
        spawned.map_err(|error| thread_error(WORKFLOWS, error))?;
    }
    for _ in 0..started {
        let ready: Result<(), (String, io::Error)> =
            ready.recv().unwrap_or_else(|_| Err(("a thread".to_owned(), io::Error::other("it ended at once"))));
        ready.map_err(|(what, source)| ServerError::Thread { what, source })?;
    }
    Ok(Running { dispatcher, threads, ended })
}

/// Between two ticks of a guest that nothing else waits for, where each quantum does not end by one: then the watcher runs.
fn tick_max(config: &Config, dispatcher: &Dispatcher, workers: usize) -> Option<Duration> {
    if config.quantum_us.is_some() {
        return None;
    }
    match confine::without_signals(|| Watcher::start(workers)) {
        Ok(watcher) => dispatcher.watch_with(watcher),
        Err(error) => {
            tracing::warn!(%error, "workers are not watched: their guests are stopped after each quantum");
            return None;
        }
    }
    let given = std::env::var(TICK_MAX_VARIABLE).ok().and_then(|given| given.parse().ok());
    Some(given.map_or(TICK_MAX, Duration::from_millis))
}

/// The sockets on which a thread accepts.
type Listening = Vec<(Site, TcpListener)>;

/// What a thread is given.
struct Thread {
    dispatcher: Arc<Dispatcher>,
    routes: Subscription,
    counts: Arc<ThreadCounts>,
    counts_functions: bool,
    connection_settings: ConnectionSettings,
    listeners: Listening,
    stopped: watch::Receiver<bool>,
    /// The cores of all threads.
    cores: Vec<usize>,
    ready: Sender<Result<(), (String, io::Error)>>,
    ended: Sender<()>,
}

impl Thread {
    fn run(self, work: Option<(usize, WorkDeque, WorkerSettings)>, core: Option<usize>) {
        let _abort = AbortOnPanic;
        let ready = self.ready.clone();
        let ended = self.ended.clone();
        if let Err(error) = self.live(work, core) {
            let name = thread::current().name().unwrap_or("a thread").to_owned();
            let _ = ready.send(Err((name, error)));
        }
        let _ = ended.send(());
    }

    fn live(self, work: Option<(usize, WorkDeque, WorkerSettings)>, core: Option<usize>) -> io::Result<()> {
        let runtime = runtime(self.cores.clone())?;
        let dispatcher = || Arc::clone(&self.dispatcher);
        let shard = Shard::new(self.counts, self.counts_functions);
        let runs_alone = work.as_ref().is_some_and(|(_, _, settings)| settings.tick_max.is_some());
        let local =
            work.map(|(index, deque, settings)| Local::new(dispatcher(), index, deque, settings, shard.clone())).transpose()?;
        if let Some(local) = local.as_ref().filter(|_| runs_alone) {
            let _inside = runtime.enter();
            match epoll_of() {
                Ok(epoll) => local.let_run_alone(epoll),
                Err(error) => tracing::warn!(%error, "a worker is not watched: its guests are stopped after each quantum"),
            }
        }
        let door = Rc::new(HttpService::new(self.routes.router(), dispatcher(), local.clone(), shard, self.connection_settings));
        pin(core.as_slice());
        runtime.spawn_local(vital(self.routes.follow(Rc::clone(&door))));
        if !self.listeners.is_empty() {
            let (watched, stopped) = (Rc::clone(&door), self.stopped.clone());
            runtime.spawn_local(vital(async move { watched.look_after_connections(stopped).await }));
        }
        for (site, listener) in self.listeners {
            let _inside = runtime.enter();
            let listener = tokio::net::TcpListener::from_std(listener)?;
            runtime.spawn_local(vital(listener::accept(Rc::clone(&door), site, listener, self.stopped.clone())));
        }
        let _ = self.ready.send(Ok(()));
        let life = async move {
            match local {
                // It gives the thread back in time itself; tokio's budget would have a good deal of what its guests wait for polled in vain.
                Some(local) => unconstrained(local.work()).await,
                None => door.closed().await,
            }
        };
        // A task like the others, which takes its turn after those that are ready; the main future would always be first.
        runtime.block_on(runtime.spawn_local(vital(life))).map_err(io::Error::other)
    }
}

/// The name of the thread on which workflows are executed.
const WORKFLOWS: &str = "workflows";

/// What the thread of workflows is given.
struct WorkflowThread {
    executions: Executions,
    dispatcher: Arc<Dispatcher>,
    counts: Arc<ThreadCounts>,
    counts_functions: bool,
    /// Functions that run for executions at the same time.
    places: usize,
    cores: Vec<usize>,
    stopped: watch::Receiver<bool>,
    ended: Sender<()>,
}

impl WorkflowThread {
    fn run(self) {
        let _abort = AbortOnPanic;
        pin(&self.cores);
        let remote = Remote::new(Arc::clone(&self.dispatcher), Shard::new(self.counts, self.counts_functions));
        match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => {
                let executions = self.executions.clone();
                let life = async move { executions.run(remote, self.places, self.stopped).await };
                let _ = runtime.block_on(runtime.spawn_local(vital(life)));
            }
            Err(error) => tracing::error!(%error, "durable executions of workflows cannot run"),
        }
        self.dispatcher.close_source();
        let _ = self.ended.send(());
    }
}

/// A thread's runtime. Those of its threads that block run on any core.
fn runtime(cores: Vec<usize>) -> io::Result<LocalRuntime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().event_interval(EVENT_INTERVAL).on_thread_park(before_wait);
    builder.max_blocking_threads(blocking::THREADS_MAX).on_thread_start(move || pin(&cores)).thread_name("blocking");
    builder.build_local(LocalOptions::default())
}

/// Binds this thread to some cores, if there are any; not worth failing for.
fn pin(cores: &[usize]) {
    if cores.is_empty() {
        return;
    }
    let mut set = nix::sched::CpuSet::new();
    let known = cores.iter().try_for_each(|&core| set.set(core));
    if let Err(error) = known.and_then(|()| nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)) {
        tracing::warn!(?cores, %error, "a thread could not be bound to its cores");
    }
}

fn wait(signals: &SigSet) -> Signal {
    loop {
        match signals.wait() {
            Ok(signal) => return signal,
            Err(nix::errno::Errno::EINTR) => {}
            // Cannot be: the set is valid. Stopping is the safe side.
            Err(_) => return Signal::SIGTERM,
        }
    }
}

fn exit_at_second_signal() {
    // A SIGHUP that comes now is too late for anything.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    let waiting = thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let signal = wait(&signals);
        tracing::warn!(signal = signal.as_str(), "exiting at once");
        // As a shell reports a process that was ended by SIGINT.
        std::process::exit(130);
    });
    if let Err(error) = waiting {
        tracing::warn!(%error, "a second signal will not be noticed");
    }
}
