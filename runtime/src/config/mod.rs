//! What an operator can set: the configuration of `sledge serve`, the same keys in TOML and in JSON.
//!
//! [`read`] turns a file into a [`Config`] whose every key is known and whose every value has the right type; [`check`] finds what is
//! wrong beyond that. Errors name the file and the key. Nothing here loads a function or opens a socket.

mod admin_token;
mod application;
mod asynchronous;
mod aws_api;
mod check;
mod compression;
mod concurrency;
mod cors;
mod dir;
mod edge;
mod error;
mod folder;
mod grant;
mod isolation;
mod memo;
mod read;
mod redirect;
mod schedule;
mod settings;
mod speculation;
mod workflow;
mod workflow_limits;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use awsm_abi::types;
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compile::{OPT_LEVEL_MAX, Target};
use crate::kv::{KvLimits, KvSharing};
use crate::phases::PhaseConfig;
use crate::schedule::{CLASSES, Classes, Policy, Shares};
use crate::secret::{self, Secret, SecretError, Variable};
use crate::telemetry::TelemetryConfig;

pub use admin_token::AdminTokenConfig;
pub use application::{ApplicationConfig, ApplicationFunction, BUILT_FOLDER, Expose, Language, descriptors_of, services_of};
pub use asynchronous::AsynchronousConfig;
pub use aws_api::{AwsApiConfig, AwsKeyConfig};
pub use check::{check, check_function, check_granted, check_usable, stem_name};
pub use compression::{CompressionConfig, Encoding};
pub use concurrency::Concurrency;
pub use cors::{ALL as CORS_ALL, CorsConfig};
pub use dir::DirWrite;
pub use edge::EdgeConfig;
pub use error::{ConfigError, Problem};
pub use folder::{FOLDERS_MAX, FolderConfig};
pub use grant::{GrantConfig, GrantedDirConfig};
pub use isolation::{Isolation, OUTBOX_AGE_S, OutsideEffects};
pub use memo::Memo;
use read::nearest;
pub use read::{function, read, schema};
pub use redirect::{REDIRECTS_MAX, RedirectConfig};
pub use schedule::{SCHEDULES_MAX, ScheduleConfig};
pub use settings::{SettingChange, differences, merged, settings};
pub use speculation::{CallSpeculation, SpeculationLevel};
pub use workflow::{WORKFLOWS_MAX, WorkflowConfig, WorkflowKind};
pub use workflow_limits::WorkflowLimits;

/// Where a server listens unless told otherwise.
pub const LISTEN_DEFAULT: &str = "127.0.0.1:8080";
/// Whose functions are that say nothing else.
pub const TENANT_DEFAULT: &str = "default";
/// The quantum where the configuration says nothing.
pub const QUANTUM_US_DEFAULT: u64 = 500;
/// The shortest quantum: below it a worker does little but take signals.
pub const QUANTUM_US_MIN: u64 = 20;
/// The longest quantum.
pub const QUANTUM_US_MAX: u64 = 1_000_000;
/// The largest share of a class.
pub const CLASS_SHARE_MAX: u64 = 1_000;
/// Worker threads of one server.
pub const WORKERS_MAX: usize = 1_024;
/// Functions of one server.
pub const FUNCTIONS_MAX: usize = 10_000;
/// Bytes of a function's name, and likewise of its route.
pub const NAME_BYTES_MAX: usize = 200;
/// Folders of one function.
pub const DIRS_MAX: usize = 16;
/// Routes of one function.
pub const ROUTES_MAX: usize = 64;
/// Phases of one function.
pub const PHASES_MAX: usize = 32;
/// Bytes of a phase's name.
pub const PHASE_NAME_BYTES_MAX: usize = 64;
/// Entries of `http_hosts`, `socket_hosts` and `socket_listen` of one function.
pub const HOSTS_MAX: usize = 64;
/// Services that one function may call.
pub const EDGES_MAX: usize = 256;
/// The longest deadline: a day.
pub const DEADLINE_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// The largest `body_bytes_max` and `reply_bytes_max`: bodies are held in memory.
pub const BODY_BYTES_MAX: u64 = 1 << 30;

/// The most that `kv_merge_us` may be.
pub const KV_MERGE_US_MAX: u32 = 100_000;
/// The smallest `kv_bytes_max`, `kv_tenant_bytes_max` and `executions_tenant_bytes_max`.
pub const KV_BYTES_MIN: u64 = 64 << 10;
/// What `admin` says where there is to be no admin API.
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
    /// How long a function runs before the worker switches to another, in microseconds. Default: 500, and a function that nothing else waits for runs on until something
    /// arrives. If set, the worker looks for arrivals after every quantum instead.
    #[schemars(range(min = 20, max = 1_000_000))]
    pub quantum_us: Option<u64>,
    /// Which threads accept connections.
    pub listeners: Listeners,
    /// The order in which requests run.
    pub policy: Policy,
    /// Whether what functions compute between two waits is divided into classes by its length, each with a queue and a share of its tenant's time. For `policy = "round-robin"`.
    pub classes: MicrotaskClasses,
    /// Fixed shares of the four classes, from the shortest to the longest. Default: they follow what waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_shares: Option<[u32; CLASSES]>,
    /// Which requests the server admits.
    pub admission: Admission,
    /// The largest request body, in bytes. A larger one gets 413.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub body_bytes_max: u64,
    /// The largest reply of a function, in bytes. For a larger one the client gets 500.
    #[schemars(range(min = 1, max = 1_073_741_824))]
    pub reply_bytes_max: u64,
    /// Requests that wait and run at the same time in the whole server. Further requests get 503.
    #[schemars(range(min = 1))]
    pub requests_max: usize,
    /// Bytes that all requests together may use: memories, stacks, bodies, replies. Default: three quarters of the memory of the machine
    /// or the control group.
    #[schemars(range(min = 16_777_216))]
    pub memory_total_bytes_max: Option<u64>,
    /// After how many milliseconds unused memory is released to the system; 0 keeps it.
    #[schemars(range(max = 86_400_000))]
    pub idle_memory_ms: u64,
    /// How long a client may take to send a request's head, or to start the next request, in milliseconds.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub head_timeout_ms: u64,
    /// How long a request's body may take to arrive, in milliseconds. Then the client gets 408.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub body_timeout_ms: u64,
    /// How long a client may read nothing of its reply, in milliseconds. Then its connection is closed.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub reply_timeout_ms: u64,
    /// Connections at the same time. Idle ones are closed to make room for others. Default: the process's limit of open files, minus 256, and at
    /// most 65536.
    #[schemars(range(min = 1))]
    pub connections_max: Option<usize>,
    /// Certificate in PEM, with its intermediate certificates. If set, the server accepts only TLS.
    pub tls_certificate_file: Option<PathBuf>,
    /// The certificate's private key in PEM: `{ file = "PATH" }` or `{ env = "NAME" }`.
    pub tls_key: Option<Secret>,
    /// How long running requests may take to finish after SIGTERM, in milliseconds.
    pub drain_timeout_ms: u64,
    /// Address of the admin API: path of a Unix socket, `IP:PORT` (requires `admin_token`), or `none`. Default: `sledge-PORT.sock` in
    /// `$RUNTIME_DIRECTORY` or `$XDG_RUNTIME_DIR`, or in /run for root.
    pub admin: Option<String>,
    /// The token that the admin API requires (`Authorization: Bearer TOKEN`): `{ file = "PATH" }` or `{ env = "NAME" }`. Mandatory on TCP.
    pub admin_token: Option<Secret>,
    /// A second token for the admin API, whose clients may only read: lists, settings, versions, logs, measurements and metrics. It takes effect with `admin_token`.
    pub admin_read_token: Option<Secret>,
    /// Further tokens, whose clients see and change what belongs to one tenant. Default: none.
    #[schemars(length(max = 1000))]
    pub admin_tokens: Vec<AdminTokenConfig>,
    /// An address, `IP:PORT`, at which any client gets `/metrics`, `/healthz` and `/readyz` over HTTP, without a token and without any other right: for Prometheus.
    /// Default: none.
    pub metrics_listen: Option<String>,
    /// The API of AWS Step Functions, for workflows. Default: none.
    pub aws_api: Option<AwsApiConfig>,
    /// Whether `/readyz` answers 200 while a part of the server fails: a function is quarantined, the key-value store fails. Otherwise it answers
    /// 503. Both answers list the problems.
    pub ready_when_degraded: bool,
    /// Folder that keeps deployed functions for the next start of the server. Default: none; deployed functions are lost when the server ends.
    pub state_dir: Option<PathBuf>,
    /// Versions of each deployed function that `state_dir` keeps, the present one included: what `sledge rollback` can return to.
    #[schemars(range(min = 1, max = 1000))]
    pub versions_max: usize,
    /// The key-value store of functions: a file, which is created if it does not exist; `memory`, which is lost when the server ends; or a Redis
    /// server, `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://...` over TLS. Default: none.
    pub kv: Option<PathBuf>,
    /// Bytes of all entries of the key-value store, which are kept in memory: keys, values and 128 bytes per entry.
    #[schemars(range(min = 65536))]
    pub kv_bytes_max: u64,
    /// Bytes of one tenant's entries of the key-value store.
    #[schemars(range(min = 65536))]
    pub kv_tenant_bytes_max: u64,
    /// Bytes of the store that one tenant's durable executions and asynchronous calls take up, on disk or in Redis: those that have not ended, and those that have and are kept. Further ones
    /// are refused. Default: no limit.
    #[schemars(range(min = 65536))]
    pub executions_tenant_bytes_max: Option<u64>,
    /// Whether this server alone writes to the Redis server (`kv`): reads of a key that is being read wait for that read then, in place of sending their own.
    pub kv_exclusive: bool,
    /// For how long a read, or a write that expects nothing, waits while others are under way, to be sent together with more to the Redis server (`kv`). Zero: not at all.
    #[schemars(range(max = 100_000))]
    pub kv_merge_us: u32,
    /// Certificate authorities (PEM) in addition to the system's: for servers that functions call over TLS, for a Redis server (`kv`), and for the collector of spans.
    pub http_ca_file: Option<PathBuf>,
    /// Folder in which compiled modules are kept. Default: `$CACHE_DIRECTORY`, or else `sledge` in the user's cache folder.
    pub cache_dir: Option<PathBuf>,
    /// Bytes of all compiled modules that are kept, and as many again for parts of large modules. The least recently used are removed first.
    pub cache_bytes_max: u64,
    /// Processor time for compiling a module, in milliseconds. The limit on elapsed time is 8 times as long.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub compile_ms_max: u64,
    /// Address space of the compiler, in bytes.
    #[schemars(range(min = 1_073_741_824))]
    pub compile_memory_bytes_max: u64,
    /// Whether a module that was not compiled before is served by unoptimised code at first. For modules from 64 KiB on.
    pub tiers: Tiers,
    /// Whether the server drops its privileges, and the system calls that it does not need, before it serves.
    pub confined: bool,
    /// Whether requests are counted and timed, by function, for `GET /metrics` of the admin API.
    pub metrics: bool,
    /// Whether every request is logged, with its method, path, function and outcome.
    pub access_log: bool,
    /// Whether requests have ids: the client's `X-Request-Id`, or else a new one. The id is sent back and logged.
    pub request_ids: bool,
    /// The collector for spans of requests. Default: none; no spans are made.
    pub telemetry: Option<TelemetryConfig>,
    /// The functions to serve.
    pub functions: Vec<FunctionConfig>,
    /// Applications to serve: functions that call each other over gRPC.
    pub applications: Vec<ApplicationConfig>,
    /// Paths that have moved: the server sends clients on.
    #[schemars(length(max = 10000))]
    pub redirects: Vec<RedirectConfig>,
    /// Workflows in Amazon States Language, which call functions.
    #[schemars(length(max = 1000))]
    pub workflows: Vec<WorkflowConfig>,
    /// What the deployed functions of tenants may have at most of this machine and its network: hosts, folders, secrets. Default: nothing.
    #[schemars(length(max = 1000))]
    pub grants: Vec<GrantConfig>,
    /// When workflows and functions are started without a request.
    #[schemars(length(max = 1000))]
    pub schedules: Vec<ScheduleConfig>,
    /// Folders of files that the server sends.
    #[schemars(length(max = 1000))]
    pub folders: Vec<FolderConfig>,
}

/// Which threads accept connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Listeners {
    /// Every worker accepts connections and runs their requests; idle workers steal.
    #[default]
    PerCore,
    /// One core accepts connections; the workers on the other cores run requests.
    Dedicated,
}

/// Whether modules are served before their optimised code is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tiers {
    /// The module is compiled at level 0 and served. Then it is compiled at level 3, by one thread of the lowest priority, and that code takes the place of the first.
    #[default]
    On,
    /// The module is compiled at its level before it is served.
    Off,
}

/// Classes of microtasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MicrotaskClasses {
    /// None.
    #[default]
    Off,
    /// By what was measured.
    Inferred,
    /// By what `phases` declare, until enough was measured.
    Declared,
}

impl MicrotaskClasses {
    /// As the scheduler is told.
    #[must_use]
    pub fn settings(self, shares: Option<[u32; CLASSES]>) -> Option<Classes> {
        let shares = shares.map_or(Shares::Dynamic, Shares::Static);
        (self != MicrotaskClasses::Off).then_some(Classes { shares, believes: self == MicrotaskClasses::Declared, limits: true })
    }
}

/// Which requests the server admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// All requests within the limits.
    #[default]
    Limits,
    /// Of those, only as many as are expected to finish by their deadlines; further ones get 503.
    Utilisation,
}

/// A function to serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FunctionConfig {
    /// The function's name: letters, digits, `.`, `-` and `_`.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// The artifact, or a WebAssembly module that the server compiles. Relative to the configuration file's folder.
    pub path: PathBuf,
    /// The command that builds the function, with its arguments. It runs in the configuration file's folder, and only in `sledge dev`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build: Vec<String>,
    /// Path of its requests, or a prefix: `/a/*` matches all paths below `/a/` that no other route matches. Default: `/NAME`.
    #[schemars(length(min = 1, max = 200))]
    pub route: Option<String>,
    /// Paths of its requests in place of `route`, if there is not one. With none at all the function is reachable only from other functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub routes: Option<Vec<String>>,
    /// An address of its own, `IP:PORT`. The function is reachable only on that address. Functions can share an address. A change takes effect when
    /// the server starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Methods that the function answers.
    #[serde(default = "methods_default")]
    pub methods: Vec<String>,
    /// Arguments. Argument 0 is the function's name.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables; the function inherits none. Each is a text or a secret, `{ file = "PATH" }` or `{ env = "NAME" }`.
    #[serde(default)]
    pub env: BTreeMap<String, Variable>,
    /// For a deployed function: environment variables that are secrets, each with the name that its tenant's `grants` give to the secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(length(max = 64))]
    pub secrets: BTreeMap<String, String>,
    /// Folders of this machine that the function can use. It can use no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<DirConfig>,
    /// What a request can keep of folders with `write = "scratch"`, in bytes: files that it changes or makes, in whole pages, and about 300 bytes for each name. Beyond it, writing
    /// fails for lack of space. It counts with `memory_bytes_max`.
    #[serde(default = "scratch_bytes_max_default")]
    #[schemars(range(min = 4096, max = 1_099_511_627_776_u64))]
    pub scratch_bytes_max: u64,
    /// Servers that the function can call over HTTP: `NAME`, `*.NAME` for all names below it, an address, or a network such as `10.0.0.0/8`, each with
    /// `:PORT` or for ports 80 and 443. If a name resolves to an address that is not public, that address has to be listed, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub http_hosts: Vec<String>,
    /// Where a component's sockets (`wasi:sockets`) can connect and send to: `NAME`, `*.NAME` for all names below it, an address, or a network such as
    /// `10.0.0.0/8`, each with `:PORT` or `:FIRST-LAST`. A listed name can be looked up, and the addresses found can be reached if they are public; others
    /// have to be listed, too. A network opens loopback and link-local addresses only if it lies within theirs. Default: no sockets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub socket_hosts: Vec<String>,
    /// Where a component's sockets can be reached by others, over TCP and UDP: addresses of this machine with `:PORT`, `:FIRST-LAST`, or `:0` for a port
    /// that the system chooses. Default: nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub socket_listen: Vec<String>,
    /// Where the function's calls by gRPC (`sledge:rpc`) go, by the full name of the service: `{ function = "NAME" }`, a function of the same tenant, or
    /// `{ url = "https://HOST:PORT" }`, a server, over HTTP/2, without TLS for `http:`. The function can call no other services.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub edges: BTreeMap<String, EdgeConfig>,
    /// The reply's content type.
    #[serde(default = "content_type_default")]
    pub content_type: String,
    /// Which web pages of other origins may use the function (CORS). Default: what the function itself says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors: Option<CorsConfig>,
    /// Which replies are compressed on their way out; `{}` for the defaults. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<CompressionConfig>,
    /// Calls whose clients do not wait for the reply (`Prefer: respond-async`); `{}` for the defaults. Needs `kv`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asynchronous: Option<AsynchronousConfig>,
    /// Whether each request is one transaction of the key-value store (`kv`).
    #[serde(default)]
    pub isolation: Isolation,
    /// What such a transaction may do that cannot be taken back.
    #[serde(default)]
    pub effects: OutsideEffects,
    /// With `effects = "outbox"`: for how long a request is sent again that is not answered, in seconds. Default: a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_592_000))]
    pub outbox_age_max_s: Option<u64>,
    /// Whether it may start, in a workflow or by a function with `speculation`, before everything before it is committed. It matters with `isolation = "serializable"`; other functions never do.
    #[serde(default = "speculative_default")]
    pub speculative: bool,
    /// Whether what it calls begins with it, before it has called it, by what earlier runs have called. Needs `isolation = "serializable"`, of the functions that it calls, too.
    #[serde(default, skip_serializing_if = "CallSpeculation::is_off")]
    pub speculation: CallSpeculation,
    /// Whether a request that equals an earlier one is answered from a table, without a run.
    #[serde(default)]
    pub memo: Memo,
    /// Whether the function's reply depends on nothing but the request and the key-value store, though its runs read the clock or random numbers, or write to the log. One of 64 answers from
    /// the table is compared with a run.
    #[serde(default)]
    pub pure: bool,
    /// The most memory that the function's table has, in bytes.
    #[serde(default = "memo::bytes_max_default")]
    #[schemars(range(min = 65536))]
    pub memo_bytes_max: u64,
    /// When the function starts: when the request's body is complete, or when its head has come, reading the body as it arrives.
    #[serde(default)]
    pub body: BodyMode,
    /// The most memory that a request can use, in bytes. Beyond it `memory.grow` fails.
    #[serde(default = "memory_bytes_max_default")]
    #[schemars(range(min = 65536))]
    pub memory_bytes_max: u64,
    /// Time from a request's arrival to its reply, including waiting, in milliseconds. Then the request is killed and the client gets 504.
    #[serde(default = "deadline_ms_default")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub deadline_ms: u64,
    /// For a reactor: an export without parameters and results that initialises it, called after its start function and `_initialize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<String>,
    /// When a reactor is initialised.
    #[serde(default)]
    pub snapshot: Snapshot,
    /// For how long an instance of a reactor is used, with what is in its memory. Not for components.
    #[serde(default)]
    pub instance: Instance,
    /// Size of the function's native stack, in bytes.
    #[serde(default = "stack_bytes_default")]
    #[schemars(range(min = 65536, max = 1_073_741_824))]
    pub stack_bytes: u64,
    /// The function's tenant. Tenants that need the processor at the same time get equal shares of it.
    #[serde(default = "tenant_default")]
    #[schemars(length(min = 1, max = 200))]
    pub tenant: String,
    /// Requests of this function that run at the same time. Further requests wait. "auto": as many as keep all workers busy while others of them wait; the number follows how long
    /// recent requests computed and waited. Default: only `requests_max` applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_max: Option<Concurrency>,
    /// Requests that wait while `concurrency_max` run. Further requests get 429. Default: only `requests_max` applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_max: Option<usize>,
    /// The function's share of the processor among the functions of its tenant, while several have requests to run: a function of weight 2 gets twice the time of one of weight 1.
    /// For `policy = "round-robin"`.
    #[serde(default = "weight_default")]
    #[schemars(range(min = 1, max = 1000))]
    pub weight: u32,
    /// The most processor time of a request, in milliseconds. Then the request is killed and the client gets 500. Default: only the deadline applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400_000))]
    pub cpu_ms_max: Option<u64>,
    /// The parts of the function's work, with the processor time of each. The function calls `phase(id)` of `sledge:note` where a part starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub phases: Vec<PhaseConfig>,
    /// Lines of standard error per second that are logged, for all requests together. Further lines are dropped and counted.
    #[serde(default = "log_lines_per_s_max_default")]
    pub log_lines_per_s_max: u64,
    /// For a WebAssembly module: the bounds mode to compile it with.
    #[serde(default)]
    pub bounds: Bounds,
    /// For a WebAssembly module: the processor to compile for: `native`, `baseline`, or a name such as `x86-64-v3`.
    #[serde(default = "cpu_default")]
    #[schemars(length(min = 1, max = 64))]
    pub cpu: String,
    /// For a WebAssembly module or component: how much the compiler optimises, from 0, which compiles fastest, to 3.
    #[serde(default = "opt_level_default")]
    #[schemars(range(max = 3))]
    pub opt_level: u8,
    /// For a WebAssembly component: compile it even if it imports functions that Sledge does not offer. A request that calls one of them fails.
    #[serde(default)]
    pub allow_unknown_imports: bool,
    /// Load the function even if it was compiled with `--bounds none`. Such code can read and write all of the server's memory. For measurements only.
    #[serde(default)]
    pub allow_unchecked: bool,
    /// Where the settings come from. No setting.
    #[serde(skip)]
    pub source: Source,
    /// Where the secrets of a deployed function are, by variable, as its tenant's grants say. No setting.
    #[serde(skip)]
    pub secret_places: BTreeMap<String, Secret>,
    /// The application whose function it is. No setting.
    #[serde(skip)]
    pub application: Option<String>,
}

/// Where the settings of a function come from, and so where its user can change them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// A configuration file.
    #[default]
    File,
    /// The command line.
    CommandLine,
    /// A deployment.
    Deployment,
}

impl Source {
    /// How its user has unknown imports allowed.
    #[must_use]
    pub const fn allowing_unknown_imports(self) -> &'static str {
        match self {
            Source::File => "set `allow_unknown_imports = true` for the function",
            Source::CommandLine => "give --allow-unknown-imports",
            Source::Deployment => {
                "deploy it with the setting `allow_unknown_imports` (`sledge deploy FILE --set allow_unknown_imports=true`)"
            }
        }
    }
}

/// A folder that a function can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirConfig {
    /// The folder. Relative to the configuration file's folder.
    pub host: PathBuf,
    /// The name that the function sees, such as `/data`.
    #[schemars(length(min = 1, max = 200))]
    pub guest: String,
    /// Whether the function can write to it. With `"scratch"`, a request changes private copies, which are dropped when it ends: it sees its own changes, the
    /// folder stays as it is.
    #[serde(default)]
    pub write: DirWrite,
    /// The granted folder in which it has to lie, of a deployed function. No setting.
    #[serde(skip)]
    pub within: Option<PathBuf>,
}

/// How compiled code keeps accesses inside the module's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bounds {
    /// `guard` if the system has enough address space, otherwise `software`.
    #[default]
    Auto,
    /// Guard pages: 8 GiB of address space per sandbox, no cost at run time.
    Guard,
    /// As `guard`, with the memory's base in a segment register.
    Segment,
    /// An explicit comparison before each access.
    Software,
    /// No checks. For measurements only, together with `allow_unchecked`.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Snapshot {
    /// Once, when the function is loaded; every request starts from the resulting state. Refused if they read random numbers, the clock or a
    /// request, since all requests would share these values.
    #[default]
    On,
    /// For every request.
    Off,
    /// Once; all requests share the random numbers and times that they read.
    SharedSeed,
}

/// For how long an instance of a function is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Instance {
    /// For one call: each begins with fresh memory.
    #[default]
    Call,
    /// For the calls that one request makes, directly or through other functions, one after the other. Calls at the same time have instances of their own.
    Request,
    /// For all calls, one at a time, as long as the function is served as it is: its memory is state that requests share. It implies `concurrency_max = 1`. A call that fails
    /// loses the state.
    Application,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: LISTEN_DEFAULT.to_owned(),
            workers: None,
            quantum_us: None,
            listeners: Listeners::default(),
            policy: Policy::default(),
            classes: MicrotaskClasses::default(),
            class_shares: None,
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
            admin_read_token: None,
            admin_tokens: Vec::new(),
            metrics_listen: None,
            aws_api: None,
            ready_when_degraded: true,
            state_dir: None,
            versions_max: 10,
            confined: true,
            metrics: true,
            access_log: false,
            request_ids: false,
            telemetry: None,
            kv: None,
            kv_bytes_max: KvLimits::default().bytes_max,
            kv_tenant_bytes_max: KvLimits::default().tenant_bytes_max,
            executions_tenant_bytes_max: None,
            kv_exclusive: false,
            kv_merge_us: 0,
            http_ca_file: None,
            cache_dir: None,
            cache_bytes_max: 1 << 30,
            compile_ms_max: 600_000,
            compile_memory_bytes_max: 8 << 30,
            tiers: Tiers::default(),
            functions: Vec::new(),
            applications: Vec::new(),
            redirects: Vec::new(),
            workflows: Vec::new(),
            grants: Vec::new(),
            schedules: Vec::new(),
            folders: Vec::new(),
        }
    }
}

impl Config {
    /// The key of a function, by its place among all: of one of an application the place in that.
    #[must_use]
    pub fn key(&self, index: usize) -> String {
        let of_application = |function: &FunctionConfig| {
            let name = function.application.as_ref()?;
            let at = self.applications.iter().position(|application| application.name == *name)?;
            let own = function.name.strip_prefix(name.as_str())?.strip_prefix('.')?;
            let inner = self.applications[at].functions.iter().position(|inner| inner.name == own)?;
            Some(format!("applications[{at}].functions[{inner}]"))
        };
        self.functions.get(index).and_then(of_application).unwrap_or_else(|| format!("functions[{index}]"))
    }

    /// Worker threads: as many as it says, or one for every core that this process may use, but for that of the thread that accepts connections if there is one.
    #[must_use]
    pub fn worker_count(&self) -> usize {
        // Besides the affinity mask this knows a control group's quota.
        let usable = thread::available_parallelism().map_or(1, usize::from);
        let free = if self.listeners == Listeners::Dedicated { usable.saturating_sub(1) } else { usable };
        self.workers.unwrap_or(free.max(1))
    }

    /// How much there may be in the key-value store.
    #[must_use]
    pub const fn kv_limits(&self) -> KvLimits {
        KvLimits { bytes_max: self.kv_bytes_max, tenant_bytes_max: self.kv_tenant_bytes_max }
    }

    /// What readers of the key-value store share.
    #[must_use]
    pub const fn kv_sharing(&self) -> KvSharing {
        KvSharing { is_exclusive: self.kv_exclusive, merge: Duration::from_micros(self.kv_merge_us as u64) }
    }
}

impl FunctionConfig {
    /// The calls that run at the same time, if that is limited.
    #[must_use]
    pub fn concurrency(&self) -> Option<Concurrency> {
        if self.instance == Instance::Application { Some(Concurrency::Max(1)) } else { self.concurrency_max }
    }

    /// A function with defaults for everything but its name and file.
    #[must_use]
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> FunctionConfig {
        FunctionConfig {
            name: name.into(),
            path: path.into(),
            build: Vec::new(),
            route: None,
            routes: None,
            methods: methods_default(),
            args: Vec::new(),
            listen: None,
            env: BTreeMap::new(),
            secrets: BTreeMap::new(),
            dirs: Vec::new(),
            scratch_bytes_max: scratch_bytes_max_default(),
            http_hosts: Vec::new(),
            socket_hosts: Vec::new(),
            socket_listen: Vec::new(),
            edges: BTreeMap::new(),
            content_type: content_type_default(),
            cors: None,
            compression: None,
            asynchronous: None,
            isolation: Isolation::default(),
            effects: OutsideEffects::default(),
            outbox_age_max_s: None,
            speculative: speculative_default(),
            speculation: CallSpeculation::default(),
            memo: Memo::default(),
            pure: false,
            memo_bytes_max: memo::bytes_max_default(),
            body: BodyMode::default(),
            memory_bytes_max: memory_bytes_max_default(),
            deadline_ms: deadline_ms_default(),
            init: None,
            snapshot: Snapshot::default(),
            instance: Instance::default(),
            stack_bytes: stack_bytes_default(),
            tenant: tenant_default(),
            concurrency_max: None,
            queue_max: None,
            weight: weight_default(),
            cpu_ms_max: None,
            phases: Vec::new(),
            log_lines_per_s_max: log_lines_per_s_max_default(),
            bounds: Bounds::default(),
            cpu: cpu_default(),
            opt_level: opt_level_default(),
            allow_unknown_imports: false,
            allow_unchecked: false,
            source: Source::default(),
            secret_places: BTreeMap::new(),
            application: None,
        }
    }

    /// The paths of its requests.
    #[must_use]
    pub fn routes(&self) -> Vec<String> {
        match (&self.routes, &self.route) {
            (Some(routes), _) => routes.clone(),
            (None, Some(route)) => vec![route.clone()],
            (None, None) => vec![format!("/{}", self.name)],
        }
    }

    /// The same, to be shown.
    #[must_use]
    pub fn shown_routes(&self) -> String {
        let routes = self.routes();
        if routes.is_empty() { "none".to_owned() } else { routes.join(", ") }
    }

    /// Whether its sockets may go or be anywhere.
    #[must_use]
    pub const fn has_sockets(&self) -> bool {
        !self.socket_hosts.is_empty() || !self.socket_listen.is_empty()
    }

    /// Its environment, each variable as `NAME=VALUE`, with its secrets.
    ///
    /// # Errors
    /// When a secret cannot be read, or cannot be the value of a variable.
    pub fn environment(&self) -> Result<Vec<String>, SecretError> {
        let mut all = secret::environment("env", &self.env)?;
        let places = self.secret_places.iter();
        let secrets = places.map(|(name, place)| (name.clone(), Variable::Secret(place.clone()))).collect();
        all.extend(secret::environment("secrets", &secrets)?);
        Ok(all)
    }

    /// Its own address, if it has one.
    #[must_use]
    pub fn site(&self) -> Option<SocketAddr> {
        self.listen.as_deref().and_then(|listen| listen.parse().ok())
    }

    /// How it is compiled, if it is a module.
    #[must_use]
    pub fn target(&self) -> Target {
        Target {
            bounds: self.bounds.into(),
            cpu: self.cpu.clone(),
            opt_level: self.opt_level,
            unknown_imports: self.allow_unknown_imports,
        }
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

const fn scratch_bytes_max_default() -> u64 {
    64 << 20
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

const fn opt_level_default() -> u8 {
    OPT_LEVEL_MAX
}

fn tenant_default() -> String {
    TENANT_DEFAULT.to_owned()
}

const fn speculative_default() -> bool {
    true
}

const fn weight_default() -> u32 {
    1
}

const fn stack_bytes_default() -> u64 {
    1 << 20
}
