//! What an operator can set: the configuration of `sledge serve`, the same keys in TOML and in JSON.
//!
//! [`read`] turns a file into a [`Config`] whose every key is known and whose every value has the right type; [`check`] finds what is
//! wrong beyond that. Errors name the file and the key. Nothing here loads a function or opens a socket.

mod check;
mod error;
mod read;
mod settings;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use awsm_abi::types;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compile::Target;
use crate::kv::KvLimits;
use crate::phases::PhaseConfig;
use crate::schedule::Policy;
use crate::secret::{Secret, Variable};
use crate::telemetry::TelemetryConfig;

pub use check::{check, check_function, check_granted, check_usable, stem_name};
pub use error::{ConfigError, Problem};
pub use read::{function, read, schema};
pub use settings::{SettingChange, differences, merged, settings};

/// Where a server listens unless told otherwise.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:8080";
/// Whose functions are that say nothing else.
pub const TENANT_DEFAULT: &str = "default";
/// The shortest quantum: below it a worker does little but take signals.
pub const QUANTUM_US_MIN: u64 = 20;
/// The longest quantum.
pub const QUANTUM_US_MAX: u64 = 1_000_000;
/// Worker threads of one server.
pub const WORKERS_MAX: usize = 1_024;
/// Functions of one server.
pub const FUNCTIONS_MAX: usize = 10_000;
/// Bytes of a function's name, and likewise of its route.
pub const NAME_BYTES_MAX: usize = 200;
/// Folders of one function.
pub const DIRS_MAX: usize = 16;
/// Phases of one function.
pub const PHASES_MAX: usize = 32;
/// Bytes of a phase's name.
pub const PHASE_NAME_BYTES_MAX: usize = 64;
/// Hosts that one function may ask.
pub const HOSTS_MAX: usize = 64;
/// The longest deadline: a day.
pub const DEADLINE_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// The largest `body_bytes_max` and `reply_bytes_max`: bodies are held in memory.
pub const BODY_BYTES_MAX: u64 = 1 << 30;

/// The smallest `kv_bytes_max` and `kv_tenant_bytes_max`.
pub const KV_BYTES_MIN: u64 = 64 << 10;
/// What `admin` says where there is to be no admin door.
pub const ADMIN_NONE: &str = "none";
/// The least memory with which the compiler does anything.
pub const COMPILE_MEMORY_BYTES_MIN: u64 = 1 << 30;
/// The smallest `memory_total_bytes_max`: a few small functions.
pub const MEMORY_TOTAL_BYTES_MIN: u64 = 16 << 20;

/// A server's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Address and port to listen on; port 0 takes a free one.
    pub listen: String,
    /// Worker threads, each pinned to a core. Default: one for every core the process may use.
    #[schemars(range(min = 1, max = 1024))]
    pub workers: Option<usize>,
    /// How long a function runs before others get their turn, in microseconds.
    #[schemars(range(min = 20, max = 1_000_000))]
    pub quantum_us: u64,
    /// Who accepts connections.
    pub listeners: Listeners,
    /// Who runs next.
    pub policy: Policy,
    /// Which requests are taken at all, within the limits.
    pub admission: Admission,
    /// The largest request body in bytes; larger ones are answered with 413.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub body_bytes_max: u64,
    /// The largest reply of a function in bytes; a larger one is answered with 500.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub reply_bytes_max: u64,
    /// Requests that may wait and run at the same time in the whole server; further ones are answered with 503.
    #[schemars(range(min = 1))]
    pub requests_max: usize,
    /// Bytes that all requests together may use: memories, stacks, bodies, replies. Default: three quarters of what the machine, or the
    /// control group, has.
    #[schemars(range(min = 16_777_216))]
    pub memory_total_bytes_max: Option<u64>,
    /// After how many milliseconds without need memory is given back to the system; 0 to keep it.
    #[schemars(range(max = 86_400_000))]
    pub idle_memory_ms: u64,
    /// How long a client may take to send a request's head, or to begin the next one, in milliseconds.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub head_timeout_ms: u64,
    /// How long a request's body may take to arrive, in milliseconds; then it is answered with 408.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub body_timeout_ms: u64,
    /// How long a client may fetch nothing of its reply, in milliseconds; then its connection is closed.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub reply_timeout_ms: u64,
    /// Connections at the same time; idle ones are closed to make room for others. Default: as many as the process may have open files, but
    /// for some, and at most 65536.
    #[schemars(range(min = 1))]
    pub connections_max: Option<usize>,
    /// Certificate in PEM, and those that lead to its root: with it TLS is spoken, and nothing else.
    pub tls_certificate_file: Option<PathBuf>,
    /// The certificate's private key in PEM: `{ file = "PATH" }` or `{ env = "NAME" }`.
    pub tls_key: Option<Secret>,
    /// How long running requests may take to finish after SIGTERM, in milliseconds.
    pub drain_timeout_ms: u64,
    /// Where operators change and watch the running server: path of a Unix socket, `IP:PORT` (with `admin_token`), or `none`. Default:
    /// `sledge-PORT.sock` in `$RUNTIME_DIRECTORY` or `$XDG_RUNTIME_DIR`, or in /run for root.
    pub admin: Option<String>,
    /// The token that the admin door asks for (`Authorization: Bearer TOKEN`): `{ file = "PATH" }` or `{ env = "NAME" }`. It must have one
    /// where it listens on TCP.
    pub admin_token: Option<Secret>,
    /// Whether `/readyz` says ready (200) while something is wrong and the rest is served: a function is quarantined, the key-value store fails.
    /// Otherwise it says 503. The list of what is wrong is in the answer in both cases.
    pub ready_when_degraded: bool,
    /// Folder in which functions that were deployed through the admin door are kept, to be served again by the next server. Default: none,
    /// they are served until this one ends.
    pub state_dir: Option<PathBuf>,
    /// The key-value store of functions: a file, which is made if it does not exist; `memory`, which is gone when the server ends; or a Redis
    /// server, `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`. Default: there is none.
    pub kv: Option<PathBuf>,
    /// Bytes of all entries of the key-value store, which are kept in memory: keys, values and 128 bytes for each.
    #[schemars(range(min = 65536))]
    pub kv_bytes_max: u64,
    /// The same of one tenant.
    #[schemars(range(min = 65536))]
    pub kv_tenant_bytes_max: u64,
    /// Certificates (PEM) of authorities that are believed about the servers which functions ask over TLS, and about the collector of spans, beside
    /// the system's.
    pub http_ca_file: Option<PathBuf>,
    /// Folder in which compiled modules are kept. Default: `$CACHE_DIRECTORY`, or else the user's folder for such things.
    pub cache_dir: Option<PathBuf>,
    /// Bytes of all compiled modules that are kept; those that were not used for longest go.
    pub cache_bytes_max: u64,
    /// Processor time that a module may take to compile, in milliseconds; by the clock it may take 8 times as long.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub compile_ms_max: u64,
    /// Address space of the compiler, in bytes.
    #[schemars(range(min = 1_073_741_824))]
    pub compile_memory_bytes_max: u64,
    /// Whether the server gives up its privileges, and system calls that it does not need, before it serves.
    pub confined: bool,
    /// Whether requests are counted and timed, by function, for the admin door's `GET /metrics`.
    pub metrics: bool,
    /// Whether every request is logged: who asked for what, and how it ended.
    pub access_log: bool,
    /// Whether requests have ids: the client's `X-Request-Id`, or else a new one. It is sent back, and logged.
    pub request_ids: bool,
    /// Where spans of requests go, if they are wanted.
    pub telemetry: Option<TelemetryConfig>,
    /// The functions to serve.
    pub functions: Vec<FunctionConfig>,
}

/// Who accepts connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Listeners {
    /// Every worker accepts, and runs what it accepted; idle workers steal.
    #[default]
    PerCore,
    /// One core accepts, the workers on the others run.
    Dedicated,
}

/// Which requests are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// All within the limits on their number.
    #[default]
    Limits,
    /// Of those, as many as are expected to be done by their deadlines; further ones are answered with 503.
    Utilisation,
}

/// A function to serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FunctionConfig {
    /// Its name, in logs and errors: letters, digits, `.`, `-` and `_`.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// The artifact, or a WebAssembly module to be compiled at start. Relative to the configuration file's folder.
    pub path: PathBuf,
    /// The command that makes it, and its arguments; it runs in the configuration file's folder. Only `sledge dev` does that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build: Vec<String>,
    /// Path of its requests, or what begins with one: `/a/*` is all paths below `/a/` that no other route has. Default: `/NAME`.
    #[schemars(length(min = 1, max = 200))]
    pub route: Option<String>,
    /// An address of its own, `IP:PORT`: it is answered there and not where the server listens otherwise. Several may have the same, such as those
    /// of one tenant. Counts when the server starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Methods it answers.
    #[serde(default = "methods_default")]
    pub methods: Vec<String>,
    /// Arguments, after the function's name which is argument 0.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables; nothing is inherited. Each is a text, or `{ file = "PATH" }` or `{ env = "NAME" }`, where a secret is.
    #[serde(default)]
    pub env: BTreeMap<String, Variable>,
    /// Folders of this machine that it may use; no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<DirConfig>,
    /// Servers that it may ask over HTTP, and no others: `NAME`, `*.NAME` for all below it, an address, or a network such as `10.0.0.0/8`, each with
    /// `:PORT` or for 80 and 443. Where a name leads to an address that is not public, that has to be listed, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http_hosts: Vec<String>,
    /// The reply's content type.
    #[serde(default = "content_type_default")]
    pub content_type: String,
    /// When it begins: when a request's body is complete, or before, reading it while it comes.
    #[serde(default)]
    pub body: BodyMode,
    /// The most linear memory that a request may use, in bytes; `memory.grow` fails beyond.
    #[serde(default = "memory_bytes_max_default")]
    #[schemars(range(min = 65536))]
    pub memory_bytes_max: u64,
    /// Time from a request's arrival to its reply, waiting included, in milliseconds; then it is killed and answered with 504.
    #[serde(default = "deadline_ms_default")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub deadline_ms: u64,
    /// Of a reactor: an export without parameters and results that prepares it, called after its start function and `_initialize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<String>,
    /// When a reactor is initialised.
    #[serde(default)]
    pub snapshot: Snapshot,
    /// Size of its native stack, in bytes.
    #[serde(default = "stack_bytes_default")]
    #[schemars(range(min = 65536, max = 1_073_741_824))]
    pub stack_bytes: u64,
    /// Whose it is. Tenants that want the processor at the same time get equal shares of it.
    #[serde(default = "tenant_default")]
    #[schemars(length(min = 1, max = 200))]
    pub tenant: String,
    /// Requests of this function that run at the same time; further ones wait. Default: no limit but `requests_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub concurrency_max: Option<usize>,
    /// Requests that wait while `concurrency_max` run; further ones are answered with 429. Default: no limit but `requests_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_max: Option<usize>,
    /// The most processor time of a request, in milliseconds; then it is killed and answered with 500. Default: no limit but the deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub cpu_ms_max: Option<u64>,
    /// The parts of its work, and what each needs of the processor. It says with `phase(id)` of `sledge:note` where each begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub phases: Vec<PhaseConfig>,
    /// Lines of its standard error that are logged in a second, of all its requests together; further ones are counted and dropped.
    #[serde(default = "log_lines_per_s_max_default")]
    pub log_lines_per_s_max: u64,
    /// Of a WebAssembly module: how it is compiled to keep accesses inside its memory.
    #[serde(default)]
    pub bounds: Bounds,
    /// Of a WebAssembly module: the processor to compile for: `native`, `baseline`, or a name such as `x86-64-v3`.
    #[serde(default = "cpu_default")]
    #[schemars(length(min = 1, max = 64))]
    pub cpu: String,
    /// Load it even if it was compiled with `--bounds none`: it can read and write all of the server's memory. For measurements only.
    #[serde(default)]
    pub allow_unchecked: bool,
}

/// A folder that a function may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirConfig {
    /// The folder. Relative to the configuration file's folder.
    pub host: PathBuf,
    /// Its name for the function, such as `/data`.
    #[schemars(length(min = 1, max = 200))]
    pub guest: String,
    /// Whether the function may change what is in it.
    #[serde(default)]
    pub write: bool,
}

/// How a module is compiled to keep accesses inside its memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bounds {
    /// `guard` where the system has address space for that, otherwise `software`.
    #[default]
    Auto,
    /// Reserved address space: 8 GiB for each sandbox, and no time.
    Guard,
    /// The same, with the memory's base in a segment register.
    Segment,
    /// An explicit comparison before each access.
    Software,
    /// Not at all. For measurements only, together with `allow_unchecked`.
    None,
}

impl From<Bounds> for types::Bounds {
    fn from(bounds: Bounds) -> types::Bounds {
        match bounds {
            Bounds::Auto if !sledge_sandbox::room_for_guards() => types::Bounds::Software,
            Bounds::Auto | Bounds::Guard => types::Bounds::Guard,
            Bounds::Segment => types::Bounds::Segment,
            Bounds::Software => types::Bounds::Software,
            Bounds::None => types::Bounds::None,
        }
    }
}

/// When a function begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BodyMode {
    /// When the request's body is complete.
    #[default]
    Whole,
    /// When the request's head is. Reading the body waits for the client, up to `body_timeout_ms` in all, which is part of the deadline.
    Stream,
}

/// When a reactor's start function, `_initialize` and `init` run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Snapshot {
    /// Once, when it is loaded: what they leave is what every request begins with. Refused when they read random numbers, the clock or a
    /// request, since all requests would share that.
    #[default]
    On,
    /// For every request.
    Off,
    /// Once, and it is accepted that all requests share what they read.
    SharedSeed,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: LISTEN_DEFAULT.to_owned(),
            workers: None,
            quantum_us: 500,
            listeners: Listeners::default(),
            policy: Policy::default(),
            admission: Admission::default(),
            body_bytes_max: 8 << 20,
            reply_bytes_max: 8 << 20,
            requests_max: 4_096,
            memory_total_bytes_max: None,
            idle_memory_ms: 10_000,
            head_timeout_ms: 60_000,
            body_timeout_ms: 30_000,
            reply_timeout_ms: 60_000,
            connections_max: None,
            tls_certificate_file: None,
            tls_key: None,
            drain_timeout_ms: 10_000,
            admin: None,
            admin_token: None,
            ready_when_degraded: true,
            state_dir: None,
            confined: true,
            metrics: true,
            access_log: false,
            request_ids: false,
            telemetry: None,
            kv: None,
            kv_bytes_max: KvLimits::default().bytes_max,
            kv_tenant_bytes_max: KvLimits::default().tenant_bytes_max,
            http_ca_file: None,
            cache_dir: None,
            cache_bytes_max: 1 << 30,
            compile_ms_max: 600_000,
            compile_memory_bytes_max: 8 << 30,
            functions: Vec::new(),
        }
    }
}

impl Config {
    /// How much there may be in the key-value store.
    #[must_use]
    pub const fn kv_limits(&self) -> KvLimits {
        KvLimits { bytes_max: self.kv_bytes_max, tenant_bytes_max: self.kv_tenant_bytes_max }
    }
}

impl FunctionConfig {
    /// A function with defaults for everything but its name and file.
    #[must_use]
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> FunctionConfig {
        FunctionConfig {
            name: name.into(),
            path: path.into(),
            build: Vec::new(),
            route: None,
            methods: methods_default(),
            args: Vec::new(),
            listen: None,
            env: BTreeMap::new(),
            dirs: Vec::new(),
            http_hosts: Vec::new(),
            content_type: content_type_default(),
            body: BodyMode::default(),
            memory_bytes_max: memory_bytes_max_default(),
            deadline_ms: deadline_ms_default(),
            init: None,
            snapshot: Snapshot::default(),
            stack_bytes: stack_bytes_default(),
            tenant: tenant_default(),
            concurrency_max: None,
            queue_max: None,
            cpu_ms_max: None,
            phases: Vec::new(),
            log_lines_per_s_max: log_lines_per_s_max_default(),
            bounds: Bounds::default(),
            cpu: cpu_default(),
            allow_unchecked: false,
        }
    }

    /// The path of its requests.
    #[must_use]
    pub fn route(&self) -> String {
        self.route.clone().unwrap_or_else(|| format!("/{}", self.name))
    }

    /// Its own address, if it has one.
    #[must_use]
    pub fn site(&self) -> Option<SocketAddr> {
        self.listen.as_deref().and_then(|listen| listen.parse().ok())
    }

    /// How it is compiled, if it is a module.
    #[must_use]
    pub fn target(&self) -> Target {
        Target { bounds: self.bounds.into(), cpu: self.cpu.clone() }
    }
}

fn methods_default() -> Vec<String> {
    vec!["GET".to_owned(), "POST".to_owned()]
}

/// A reply's content type, where nothing else is said.
pub const CONTENT_TYPE_DEFAULT: &str = "application/octet-stream";

fn content_type_default() -> String {
    CONTENT_TYPE_DEFAULT.to_owned()
}

const fn memory_bytes_max_default() -> u64 {
    256 << 20
}

const fn deadline_ms_default() -> u64 {
    30_000
}

const fn log_lines_per_s_max_default() -> u64 {
    1_000
}

fn cpu_default() -> String {
    "native".to_owned()
}

fn tenant_default() -> String {
    TENANT_DEFAULT.to_owned()
}

const fn stack_bytes_default() -> u64 {
    1 << 20
}
