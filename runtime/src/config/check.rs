//! What is wrong with a configuration beyond the types of its values. Everything that is found is reported, not only the first.

use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use awsm_abi::limits::PAGE_BYTES;
use hyper::Method;
use hyper::header::HeaderValue;

use super::{
    ADMIN_NONE, COMPILE_MEMORY_BYTES_MIN, MEMORY_TOTAL_BYTES_MIN, QUANTUM_US_MAX, QUANTUM_US_MIN, WORKERS_MAX, admin_token,
    application, aws_api,
};
use super::{
    BODY_BYTES_MAX, CLASS_SHARE_MAX, Concurrency, Config, ConfigError, DEADLINE_MS_MAX, DIRS_MAX, DirConfig, EDGES_MAX,
    EdgeConfig, FOLDERS_MAX, FUNCTIONS_MAX, FunctionConfig, HOSTS_MAX, Instance, Isolation, KV_BYTES_MIN, KV_MERGE_US_MAX,
    MicrotaskClasses, NAME_BYTES_MAX, PHASE_NAME_BYTES_MAX, PHASES_MAX, Problem, REDIRECTS_MAX, ROUTES_MAX, SCHEDULES_MAX,
    WORKFLOWS_MAX, asynchronous, compression, cors, folder, grant, isolation, memo, redirect, schedule, speculation, workflow,
};
use crate::compile::OPT_LEVEL_MAX;
use crate::kv::is_redis;
use crate::phases::{BEGIN, PhaseConfig};
use crate::schedule::Policy;
use crate::secret::Variable;
use crate::telemetry;
use crate::upstream::{Allowed, Origin, SocketPolicy};

/// Bytes of a processor's name.
const CPU_BYTES_MAX: usize = 64;

/// Checks a configuration; `file` is where it came from, for the messages.
///
/// # Errors
/// Every problem found: addresses, limits, names, routes, methods. What a function names outside of the configuration is [looked at](check_usable)
/// apart: where that is wrong, it concerns this function only.
pub fn check(config: &Config, file: Option<&Path>) -> Result<(), ConfigError> {
    let mut problems = Problems { file, list: Vec::new() };
    server(config, &mut problems);
    for (index, function) in config.functions.iter().enumerate() {
        let at = config.key(index);
        self::settings(&at, function, &mut problems);
        if config.kv.is_none() && function.isolation != Isolation::None {
            problems.push(
                format!("{at}.isolation"),
                "there is no key-value store whose transactions these would be: set `kv`, or leave `isolation` out",
            );
        }
        if config.kv.is_none() && function.asynchronous.is_some() {
            problems.push(
                format!("{at}.asynchronous"),
                "there is no key-value store in which calls could be kept: set `kv`, or leave `asynchronous` out",
            );
        }
        if function.listen.as_ref() == Some(&config.listen) {
            problems.push(format!("{at}.listen"), "is the server's own address; leave it out");
        }
    }
    application::check(config, &mut problems);
    unique(config, "name", |function| vec![function.name.clone()], &mut problems);
    let place = |function: &FunctionConfig| {
        let address = function.listen.clone().unwrap_or_default();
        function.routes().iter().map(|route| format!("{address}{route}")).collect()
    };
    let places = unique(config, "route", place, &mut problems);
    others(config, places, &mut problems);
    grant::check(config, &mut problems);
    if problems.list.is_empty() { Ok(()) } else { Err(ConfigError::Problems(problems.list)) }
}

/// The name under which a file given on the command line is served: its name without the extension, characters that a name may not have
/// replaced by `-`.
#[must_use]
pub fn stem_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.chars().map(|c| if is_name_char(c) { c } else { '-' }).collect()
}

/// Checks what a function names: its file, its folders, the servers that it may ask; `at` is the key under which problems are reported.
///
/// # Errors
/// Every problem found.
pub fn check_usable(at: &str, function: &FunctionConfig) -> Result<(), ConfigError> {
    let mut problems = Problems { file: None, list: Vec::new() };
    match (function.path.metadata(), &function.application) {
        (Err(error), Some(application)) if error.kind() == io::ErrorKind::NotFound => {
            let what = format!("{} is not built: run `sledge build {application}`", function.path.display());
            problems.push(at, what);
        }
        (metadata, _) => is_file(&format!("{at}.path"), &function.path, metadata, &mut problems),
    }
    granted(at, function, &mut problems);
    if problems.list.is_empty() { Ok(()) } else { Err(ConfigError::Problems(problems.list)) }
}

fn is_file(key: &str, path: &Path, metadata: io::Result<Metadata>, problems: &mut Problems<'_>) {
    match metadata {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => problems.push(key, format!("{} is not a file", path.display())),
        Err(error) => problems.push(key, format!("{}: {error}", path.display())),
    }
}

/// The same without the function's file, for a caller that is about to read that anyway.
///
/// # Errors
/// As for [`check_usable`].
pub fn check_granted(at: &str, function: &FunctionConfig) -> Result<(), ConfigError> {
    let mut problems = Problems { file: None, list: Vec::new() };
    granted(at, function, &mut problems);
    if problems.list.is_empty() { Ok(()) } else { Err(ConfigError::Problems(problems.list)) }
}

/// Checks the folders and hosts that a function may use.
fn granted(at: &str, function: &FunctionConfig, problems: &mut Problems<'_>) {
    for (index, dir) in function.dirs.iter().enumerate() {
        let key = format!("{at}.dirs[{index}].host");
        match dir.host.metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => problems.push(key, format!("{} is not a folder", dir.host.display())),
            Err(error) => problems.push(key, format!("{}: {error}", dir.host.display())),
        }
    }
    if let Err(error) = Allowed::new(&function.http_hosts) {
        problems.push(format!("{at}.http_hosts"), error.to_string());
    }
    if let Err(error) = SocketPolicy::new(&function.socket_hosts, &function.socket_listen) {
        problems.push(format!("{at}.{}", error.key), error.to_string());
    }
}

/// Checks one function by itself; `at` is the key under which problems are reported.
///
/// # Errors
/// As for [`check`], what concerns several functions apart.
pub fn check_function(at: &str, function: &FunctionConfig) -> Result<(), ConfigError> {
    let mut problems = Problems { file: None, list: Vec::new() };
    self::settings(at, function, &mut problems);
    if problems.list.is_empty() { Ok(()) } else { Err(ConfigError::Problems(problems.list)) }
}

pub(super) struct Problems<'a> {
    file: Option<&'a Path>,
    list: Vec<Problem>,
}

impl Problems<'_> {
    pub(super) fn push(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.list.push(Problem { file: self.file.map(Path::to_owned), key: key.into(), message: message.into() });
    }

    pub(super) fn range(&mut self, key: impl Into<String>, value: u64, min: u64, max: u64) {
        if value < min || value > max {
            self.push(key, format!("{value} is out of range; give {min} to {max}"));
        }
    }
}

fn server(config: &Config, problems: &mut Problems<'_>) {
    if config.listen.parse::<SocketAddr>().is_err() {
        problems
            .push("listen", format!("`{}` is not an address; give IP:PORT, such as {}", config.listen, super::LISTEN_DEFAULT));
    }
    if let Some(workers) = config.workers {
        problems.range("workers", workers as u64, 1, WORKERS_MAX as u64);
    }
    if let Some(quantum_us) = config.quantum_us {
        problems.range("quantum_us", quantum_us, QUANTUM_US_MIN, QUANTUM_US_MAX);
    }
    if config.classes != MicrotaskClasses::Off && config.policy != Policy::RoundRobin {
        problems.push("classes", "classes need `policy = \"round-robin\"`: choose that policy, or leave `classes` out");
    }
    if let Some(shares) = config.class_shares {
        if config.classes == MicrotaskClasses::Off {
            problems.push("class_shares", "there are no classes to share between: set `classes` to \"inferred\" or \"declared\"");
        }
        for share in shares {
            problems.range("class_shares", share.into(), 1, CLASS_SHARE_MAX);
        }
    }
    problems.range("body_bytes_max", config.body_bytes_max, 1, BODY_BYTES_MAX);
    problems.range("reply_bytes_max", config.reply_bytes_max, 1, BODY_BYTES_MAX);
    problems.range("requests_max", config.requests_max as u64, 1, u64::from(u32::MAX));
    if let Some(bytes) = config.memory_total_bytes_max {
        problems.range("memory_total_bytes_max", bytes, MEMORY_TOTAL_BYTES_MIN, u64::MAX);
    }
    problems.range("idle_memory_ms", config.idle_memory_ms, 0, DEADLINE_MS_MAX);
    for (key, timeout_ms) in [
        ("head_timeout_ms", config.head_timeout_ms),
        ("body_timeout_ms", config.body_timeout_ms),
        ("reply_timeout_ms", config.reply_timeout_ms),
    ] {
        problems.range(key, timeout_ms, 1, DEADLINE_MS_MAX);
    }
    if let Some(connections_max) = config.connections_max {
        problems.range("connections_max", connections_max as u64, 1, u64::from(u32::MAX));
    }
    match (&config.tls_certificate_file, &config.tls_key) {
        (Some(_), None) => problems.push("tls_key", "is missing; `tls_certificate_file` needs it"),
        (None, Some(_)) => problems.push("tls_certificate_file", "is missing; `tls_key` needs it"),
        _ => {}
    }
    problems.range("drain_timeout_ms", config.drain_timeout_ms, 0, DEADLINE_MS_MAX);
    problems.range("versions_max", config.versions_max as u64, 1, 1_000);
    problems.range("kv_bytes_max", config.kv_bytes_max, KV_BYTES_MIN, u64::MAX);
    problems.range("kv_tenant_bytes_max", config.kv_tenant_bytes_max, KV_BYTES_MIN, u64::MAX);
    if let Some(bytes_max) = config.executions_tenant_bytes_max {
        problems.range("executions_tenant_bytes_max", bytes_max, KV_BYTES_MIN, u64::MAX);
        if config.kv.is_none() {
            problems.push(
                "executions_tenant_bytes_max",
                "is of no use without `kv`, where executions are kept: set that, too, or leave this out",
            );
        }
    }
    problems.range("kv_merge_us", config.kv_merge_us.into(), 0, KV_MERGE_US_MAX.into());
    if config.kv_merge_us > 0 && !config.kv.as_deref().is_some_and(is_redis) {
        problems.push(
            "kv_merge_us",
            "is for a store in Redis (`kv = \"redis://...\"`); reads of any other store wait for nothing, leave it out",
        );
    }
    if config.kv_exclusive && !config.kv.as_deref().is_some_and(is_redis) {
        problems.push(
            "kv_exclusive",
            "is for a store in Redis (`kv = \"redis://...\"`); any other store belongs to this server alone, leave it out",
        );
    }
    problems.range("cache_bytes_max", config.cache_bytes_max, 1, u64::MAX);
    problems.range("compile_ms_max", config.compile_ms_max, 1, DEADLINE_MS_MAX);
    problems.range("compile_memory_bytes_max", config.compile_memory_bytes_max, COMPILE_MEMORY_BYTES_MIN, u64::MAX);
    admin(config, problems);
    if let Some(aws_api) = &config.aws_api {
        aws_api::check(aws_api, config.kv.as_deref(), problems);
    }
    if let Some(telemetry) = &config.telemetry {
        problems.range("telemetry.timeout_ms", telemetry.timeout_ms, 1, DEADLINE_MS_MAX);
        for (key, why) in telemetry::settings::problems(telemetry) {
            problems.push(format!("telemetry.{key}"), why);
        }
    }
    if config.functions.len() > FUNCTIONS_MAX {
        problems.push("functions", format!("{} functions; a server has at most {FUNCTIONS_MAX}", config.functions.len()));
    }
}

/// Checks redirects and folders; `places` are the routes of functions.
fn others(config: &Config, places: HashMap<String, usize>, problems: &mut Problems<'_>) {
    let Config { redirects, folders, functions, workflows, .. } = config;
    for (key, count, max) in [
        ("redirects", redirects.len(), REDIRECTS_MAX),
        ("folders", folders.len(), FOLDERS_MAX),
        ("workflows", workflows.len(), WORKFLOWS_MAX),
        ("schedules", config.schedules.len(), SCHEDULES_MAX),
    ] {
        if count > max {
            problems.push(key, format!("{count} {key}; a server has at most {max}"));
        }
    }
    let listens = |address: &str| functions.iter().any(|function| function.listen.as_deref() == Some(address));
    let mut places: HashMap<String, String> = places.into_iter().map(|(place, index)| (place, config.key(index))).collect();
    let mut place = |at: String, listen: &Option<String>, route: &str, problems: &mut Problems<'_>| {
        let place = format!("{}{route}", listen.as_deref().unwrap_or_default());
        if let Some(other) = places.insert(place, at.clone()) {
            problems.push(format!("{at}.route"), format!("`{}` is also used by {other}", route.escape_default()));
        }
    };
    for (index, redirect) in redirects.iter().enumerate() {
        let at = format!("redirects[{index}]");
        redirect::check(&at, redirect, listens, problems);
        place(at, &redirect.listen, &redirect.route, problems);
    }
    let mut names = HashMap::new();
    for (index, workflow) in workflows.iter().enumerate() {
        let at = format!("workflows[{index}]");
        workflow::check(&at, workflow, config.kv.as_deref(), listens, problems);
        if let Some(other) = names.insert((&workflow.tenant, &workflow.name), at.clone()) {
            problems.push(format!("{at}.name"), format!("`{}` is also used by {other}", workflow.name.escape_default()));
        }
        place(at, &workflow.listen, &workflow.route(), problems);
    }
    let has_workflow =
        |tenant: &str, name: &str| workflows.iter().any(|workflow| workflow.tenant == tenant && workflow.name == name);
    let mut names = HashMap::new();
    for (index, schedule) in config.schedules.iter().enumerate() {
        let at = format!("schedules[{index}]");
        schedule::check(&at, schedule, config.kv.as_deref(), has_workflow, problems);
        if let Some(other) = names.insert((&schedule.tenant, &schedule.name), at.clone()) {
            problems.push(format!("{at}.name"), format!("`{}` is also used by {other}", schedule.name.escape_default()));
        }
    }
    for (index, folder) in folders.iter().enumerate() {
        let at = format!("folders[{index}]");
        folder::check(&at, folder, listens, problems);
        place(at, &folder.listen, &folder.route, problems);
    }
}

fn admin(config: &Config, problems: &mut Problems<'_>) {
    if let Some(listen) = &config.metrics_listen
        && listen.parse::<SocketAddr>().is_err()
    {
        problems.push("metrics_listen", format!("`{listen}` is not an address, IP:PORT"));
    }
    if config.admin_read_token.is_some() && config.admin_token.is_none() {
        let why = "needs `admin_token`: without that, any client that reaches the admin API has all rights";
        problems.push("admin_read_token", why);
    }
    admin_token::check(config, problems);
    let Some(admin) = &config.admin else { return };
    let is_address = admin.parse::<SocketAddr>().is_ok();
    if admin != ADMIN_NONE && !is_address && !admin.contains('/') {
        problems.push("admin", format!("`{admin}` is neither a path with a `/`, nor IP:PORT, nor `{ADMIN_NONE}`"));
    }
    if is_address && config.admin_token.is_none() {
        let why =
            "any client that reaches this address could change the server; give `admin_token`, or the path of a Unix socket";
        problems.push("admin", format!("{admin}: {why}"));
    }
}

fn dirs(at: &str, dirs: &[DirConfig], problems: &mut Problems<'_>) {
    if dirs.len() > DIRS_MAX {
        problems.push(format!("{at}.dirs"), format!("{} folders; a function has at most {DIRS_MAX}", dirs.len()));
    }
    for (index, dir) in dirs.iter().enumerate() {
        let key = |name: &str| format!("{at}.dirs[{index}].{name}");
        if dir.host.as_os_str().is_empty() {
            problems.push(key("host"), "is empty; give a folder");
        }
        let guest = &dir.guest;
        if guest.is_empty() || guest.len() > NAME_BYTES_MAX || guest.contains('\0') {
            let rule = format!("give 1 to {NAME_BYTES_MAX} bytes, such as /data, without a zero byte");
            problems.push(key("guest"), format!("`{}` is not a valid folder name; {rule}", guest.escape_default()));
        } else if let Some(other) = dirs[..index].iter().position(|dir| dir.guest == *guest) {
            problems.push(key("guest"), format!("`{guest}` is also used by dirs[{other}]"));
        }
    }
}

fn edges(at: &str, edges: &BTreeMap<String, EdgeConfig>, problems: &mut Problems<'_>) {
    if edges.len() > EDGES_MAX {
        return problems.push(format!("{at}.edges"), format!("{} services; a function has at most {EDGES_MAX}", edges.len()));
    }
    for (service, edge) in edges {
        let is_service_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
        let is_service = !service.is_empty() && service.len() <= NAME_BYTES_MAX && service.chars().all(is_service_char);
        if !is_service {
            let rule =
                format!("give its full name, such as package.Service, of at most {NAME_BYTES_MAX} letters, digits, `.`, `_`");
            problems.push(format!("{at}.edges"), format!("`{}` is not a service; {rule}", service.escape_default()));
            continue;
        }
        match edge {
            EdgeConfig::Function(name) if !is_name(name) => {
                let shown = name.escape_default();
                problems.push(
                    format!("{at}.edges.{service}.function"),
                    format!("`{shown}` is not a valid function name; {}", name_rule()),
                );
            }
            EdgeConfig::Url(url) => {
                if let Err(error) = Origin::parse(url) {
                    problems.push(format!("{at}.edges.{service}.url"), format!("`{}`: {error}", url.escape_default()));
                }
            }
            EdgeConfig::Function(_) => {}
        }
    }
}

pub(super) fn name_rule() -> String {
    format!("give 1 to {NAME_BYTES_MAX} letters, digits, `.`, `-`, `_`, not starting with `.`")
}

fn phases(at: &str, phases: &[PhaseConfig], problems: &mut Problems<'_>) {
    if phases.len() > PHASES_MAX {
        return problems.push(format!("{at}.phases"), format!("{} phases; a function has at most {PHASES_MAX}", phases.len()));
    }
    for (index, phase) in phases.iter().enumerate() {
        let key = |name: &str| format!("{at}.phases[{index}].{name}");
        let name = &phase.name;
        if let Some(other) = phases[..index].iter().position(|other| other.id == phase.id) {
            problems.push(key("id"), format!("{} is also used by phases[{other}]", phase.id));
        }
        if name.is_empty() || name.len() > PHASE_NAME_BYTES_MAX || !name.chars().all(is_name_char) {
            let rule = format!("give 1 to {PHASE_NAME_BYTES_MAX} letters, digits, `.`, `-`, `_`");
            problems.push(key("name"), format!("`{}` is not a valid phase name; {rule}", name.escape_default()));
        } else if let Some(other) = phases[..index].iter().position(|other| other.name == *name) {
            problems.push(key("name"), format!("`{name}` is also used by phases[{other}]"));
        } else if name == BEGIN && phase.id != 0 {
            problems.push(key("name"), format!("`{name}` is the name of phase 0, in which a request starts"));
        }
        problems.range(key("cpu_us"), phase.cpu_us, 1, 1_000 * DEADLINE_MS_MAX);
        problems.range(key("cpu_percent"), phase.cpu_percent.into(), 1, 100);
    }
}

/// All of a function but what it names.
fn settings(at: &str, function: &FunctionConfig, problems: &mut Problems<'_>) {
    let key = |name: &str| format!("{at}.{name}");
    let name = &function.name;
    if !is_name(name) {
        problems.push(key("name"), format!("`{}` is not a valid function name; {}", name.escape_default(), name_rule()));
    }
    edges(at, &function.edges, problems);
    let FunctionConfig { http_hosts, socket_hosts, socket_listen, .. } = function;
    for (name, list) in [("http_hosts", http_hosts), ("socket_hosts", socket_hosts), ("socket_listen", socket_listen)] {
        if list.len() > HOSTS_MAX {
            problems.push(key(name), format!("{} hosts; a function has at most {HOSTS_MAX}", list.len()));
        }
    }
    dirs(at, &function.dirs, problems);
    grant::check_function(at, function, problems);
    routes(at, function, problems);
    methods(&key("methods"), &function.methods, problems);
    if let Some(cors) = &function.cors {
        cors::check(&key("cors"), function, cors, problems);
    }
    if let Some(compression) = &function.compression {
        compression::check(&key("compression"), compression, problems);
    }
    isolation::check(at, function, problems);
    speculation::check_function(at, function, problems);
    memo::check(at, function, problems);
    if let Some(asynchronous) = &function.asynchronous {
        asynchronous::check(&key("asynchronous"), &function.name, asynchronous, problems);
    }
    if HeaderValue::from_str(&function.content_type).is_err() || function.content_type.is_empty() {
        problems.push(key("content_type"), format!("`{}` is not a content type", function.content_type.escape_default()));
    }
    for (index, arg) in function.args.iter().enumerate().filter(|(_, arg)| arg.contains('\0')) {
        problems.push(format!("{at}.args[{index}]"), format!("`{}` contains a zero byte", arg.escape_default()));
    }
    for (name, variable) in &function.env {
        let has_zero = matches!(variable, Variable::Text(text) if text.contains('\0'));
        if name.is_empty() || name.contains(['=', '\0']) || has_zero {
            let shown = name.escape_default();
            problems.push(
                key("env"),
                format!("`{shown}`: a name must not be empty or contain `=`; names and values must not contain a zero byte"),
            );
        }
    }
    if let Some(listen) = &function.listen
        && listen.parse::<SocketAddr>().map_or(true, |address| address.port() == 0)
    {
        problems.push(key("listen"), format!("`{listen}` is not an address; give IP:PORT, such as 127.0.0.1:8081"));
    }
    if function.init.as_deref().is_some_and(str::is_empty) {
        problems.push(key("init"), "is empty; give the name of an exported function, or leave it out");
    }
    problems.range(key("memory_bytes_max"), function.memory_bytes_max, PAGE_BYTES, u64::MAX);
    problems.range(key("scratch_bytes_max"), function.scratch_bytes_max, 4 << 10, 1 << 40);
    problems.range(key("deadline_ms"), function.deadline_ms, 1, DEADLINE_MS_MAX);
    if function.tenant.is_empty() || function.tenant.len() > NAME_BYTES_MAX {
        problems.push(key("tenant"), format!("give 1 to {NAME_BYTES_MAX} bytes"));
    }
    problems.range(key("weight"), function.weight.into(), 1, 1_000);
    if let Some(concurrency_max) = function.concurrency_max {
        if let Concurrency::Max(max) = concurrency_max {
            problems.range(key("concurrency_max"), max as u64, 1, u64::from(u32::MAX));
        }
        if function.instance == Instance::Application && !matches!(concurrency_max, Concurrency::Max(0 | 1)) {
            problems.push(
                key("concurrency_max"),
                "must be 1 or left out: `instance = \"application\"` has one instance, which runs one call at a time",
            );
        }
    }
    match function.queue_max {
        Some(_) if function.concurrency().is_none() => {
            problems.push(key("queue_max"), "needs `concurrency_max`: it counts the requests that wait while those run");
        }
        Some(queue_max) => problems.range(key("queue_max"), queue_max as u64, 0, u64::from(u32::MAX)),
        None => {}
    }
    if let Some(cpu_ms_max) = function.cpu_ms_max {
        problems.range(key("cpu_ms_max"), cpu_ms_max, 1, DEADLINE_MS_MAX);
    }
    phases(at, &function.phases, problems);
    let (stack_min, stack_max) = (sledge_sandbox::limits::STACK_BYTES_MIN as u64, sledge_sandbox::limits::STACK_BYTES_MAX as u64);
    problems.range(key("stack_bytes"), function.stack_bytes, stack_min, stack_max);
    problems.range(key("opt_level"), function.opt_level.into(), 0, OPT_LEVEL_MAX.into());
    let is_cpu_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if function.cpu.is_empty()
        || function.cpu.len() > CPU_BYTES_MAX
        || !function.cpu.chars().all(is_cpu_char)
        || function.cpu.starts_with('-')
    {
        problems
            .push(key("cpu"), format!("`{}` is not a processor; give native, baseline or a name", function.cpu.escape_default()));
    }
}

fn routes(at: &str, function: &FunctionConfig, problems: &mut Problems<'_>) {
    if let Some(route) = &function.route {
        self::route(format!("{at}.route"), route, problems);
    }
    let Some(routes) = &function.routes else { return };
    if function.route.is_some() {
        problems.push(format!("{at}.routes"), "is in place of `route`; give one of them");
    }
    if routes.len() > ROUTES_MAX {
        problems.push(format!("{at}.routes"), format!("{} routes; a function has at most {ROUTES_MAX}", routes.len()));
    }
    for (index, route) in routes.iter().enumerate() {
        self::route(format!("{at}.routes[{index}]"), route, problems);
    }
}

/// Checks a path of requests.
pub(super) fn route(key: String, route: &str, problems: &mut Problems<'_>) {
    let is_path =
        |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
    if !route.starts_with('/') || route.len() > NAME_BYTES_MAX || !route.chars().all(is_path) {
        let rule = format!("give a path such as /name, of at most {NAME_BYTES_MAX} ASCII characters, without `?` and `#`");
        problems.push(key, format!("`{}` is not a route; {rule}", route.escape_default()));
    } else if route.strip_suffix("/*").unwrap_or(route).contains('*') {
        problems.push(key, format!("`{route}`: a `*` is allowed only at the end, as in /name/*"));
    }
}

fn methods(key: &str, methods: &[String], problems: &mut Problems<'_>) {
    if methods.is_empty() {
        problems.push(key, "is empty; give at least one method, such as [\"POST\"]");
    }
    for (index, method) in methods.iter().enumerate() {
        let known = Method::from_bytes(method.as_bytes()).is_ok_and(|method| KNOWN_METHODS.contains(&method));
        if !known {
            let known = KNOWN_METHODS.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
            problems.push(
                format!("{key}[{index}]"),
                format!("`{}` is not a known method; known methods: {known}", method.escape_default()),
            );
        } else if methods[..index].contains(method) {
            problems.push(format!("{key}[{index}]"), format!("`{method}` is listed twice"));
        }
    }
}

/// Methods that a function may answer. CONNECT asks for a proxy, TRACE for an echo by the server itself.
const KNOWN_METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Reports values that several functions have. All values, with the function that has each first.
fn unique(
    config: &Config,
    what: &str,
    values: impl Fn(&FunctionConfig) -> Vec<String>,
    problems: &mut Problems<'_>,
) -> HashMap<String, usize> {
    let mut first = HashMap::new();
    for (index, function) in config.functions.iter().enumerate() {
        for value in values(function) {
            if let Some(other) = first.get(&value) {
                let other = config.key(*other);
                problems.push(format!("{}.{what}", config.key(index)), format!("`{value}` is also used by {other}"));
            } else {
                first.insert(value, index);
            }
        }
    }
    first
}

/// Whether that may be the name of a function or an application.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_name_char) && !name.starts_with('.')
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Config {
        let this_file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let functions = vec![FunctionConfig::new("a", this_file), FunctionConfig::new("b", this_file)];
        Config { functions, ..Config::default() }
    }

    fn problems(change: impl FnOnce(&mut Config)) -> Vec<String> {
        let mut config = good();
        change(&mut config);
        match check(&config, Some(Path::new("s.toml"))) {
            Ok(()) => Vec::new(),
            Err(ConfigError::Problems(list)) => list.iter().map(ToString::to_string).collect(),
            Err(other) => vec![other.to_string()],
        }
    }

    #[test]
    fn defaults_are_good() {
        assert_eq!(problems(|_| {}), [""; 0]);
    }

    #[test]
    fn duplicates_are_named_with_both_places() {
        let found = problems(|config| config.functions[1].name = "a".to_owned());
        assert_eq!(
            found,
            [
                "s.toml: functions[1].name: `a` is also used by functions[0]",
                "s.toml: functions[1].route: `/a` is also used by functions[0]"
            ]
        );
    }

    #[test]
    fn zero_limits_are_refused() {
        let found = problems(|config| {
            config.body_bytes_max = 0;
            config.reply_bytes_max = 0;
            config.workers = Some(0);
            config.quantum_us = Some(0);
            config.requests_max = 0;
            config.functions[0].deadline_ms = 0;
            config.functions[0].memory_bytes_max = 0;
            config.functions[0].stack_bytes = 0;
        });
        assert_eq!(found.len(), 8, "{found:#?}");
        assert!(found.iter().all(|line| line.contains("0 is out of range; give ")), "{found:#?}");
    }

    #[test]
    fn only_reads_of_a_store_in_redis_are_shared() {
        let with = |kv: Option<&str>| {
            problems(|config| {
                config.kv = kv.map(Into::into);
                config.kv_exclusive = true;
                config.kv_merge_us = 1_000;
            })
        };
        assert_eq!(with(Some("redis://host")), [""; 0]);
        for kv in [None, Some("memory"), Some("kv.redb")] {
            let found = with(kv);
            assert!(found.len() == 2 && found.iter().all(|line| line.contains(": is for a store in Redis")), "{found:#?}");
        }
        let found = problems(|config| {
            config.kv = Some("redis://host".into());
            config.kv_merge_us = 100_001;
        });
        assert_eq!(found, ["s.toml: kv_merge_us: 100001 is out of range; give 0 to 100000"]);
    }

    #[test]
    fn classes_need_the_order_that_has_them_and_shares_need_classes() {
        assert_eq!(problems(|config| config.classes = MicrotaskClasses::Inferred), [""; 0]);
        let found = problems(|config| {
            config.policy = Policy::Fifo;
            config.classes = MicrotaskClasses::Declared;
        });
        let hint = "classes need `policy = \"round-robin\"`: choose that policy, or leave `classes` out";
        assert_eq!(found, [format!("s.toml: classes: {hint}")]);
        let found = problems(|config| config.class_shares = Some([6, 10, 0, 1]));
        let hint = "there are no classes to share between: set `classes` to \"inferred\" or \"declared\"";
        let range = "s.toml: class_shares: 0 is out of range; give 1 to 1000";
        assert_eq!(found, [format!("s.toml: class_shares: {hint}"), range.to_owned()]);
    }

    #[test]
    fn bad_methods_routes_names_and_addresses_are_refused() {
        let found = problems(|config| {
            config.listen = "localhost".to_owned();
            config.functions[0].methods = vec!["post".to_owned(), "GET".to_owned(), "GET".to_owned()];
            config.functions[0].route = Some("no slash".to_owned());
            config.functions[1].name = "a/b".to_owned();
            config.functions[1].methods.clear();
            config.functions[1].content_type = "a\nb".to_owned();
        });
        let keys: Vec<_> = found.iter().map(|line| line.split(": ").nth(1).unwrap()).collect();
        let f = |index: usize, key: &str| format!("functions[{index}].{key}");
        let expected = [
            "listen".to_owned(),
            f(0, "route"),
            f(0, "methods[0]"),
            f(0, "methods[2]"),
            f(1, "name"),
            f(1, "methods"),
            f(1, "content_type"),
        ];
        assert_eq!(keys, expected);
    }

    #[test]
    fn several_routes_are_checked_each() {
        let routes = |list: &[&str]| Some(list.iter().map(|&route| route.to_owned()).collect());
        assert_eq!(problems(|config| config.functions[0].routes = routes(&["/x", "/y/*"])), [""; 0]);
        assert_eq!(problems(|config| config.functions[0].routes = routes(&[])), [""; 0]);
        let found = problems(|config| {
            config.functions[0].routes = routes(&["/x", "y", "/b"]);
            config.functions[0].route = Some("/x".to_owned());
        });
        let keys: Vec<_> = found.iter().map(|line| line.split(": ").nth(1).unwrap()).collect();
        assert_eq!(keys, ["functions[0].routes", "functions[0].routes[1]", "functions[1].route"]);
    }

    #[test]
    fn phases_are_told_apart_by_ids_and_names() {
        let phase = |id, name: &str, cpu_us, cpu_percent| PhaseConfig { id, name: name.to_owned(), cpu_us, cpu_percent };
        let good = vec![phase(0, "begin", 1, 1), phase(2, "work", 86_400_000_000, 100)];
        assert_eq!(problems(|config| config.functions[0].phases = good), [""; 0]);
        let bad = vec![phase(1, "a", 1, 1), phase(1, "a", 0, 0), phase(2, "begin", 1, 1), phase(3, "a b", 1, 101)];
        let found = problems(|config| config.functions[0].phases = bad);
        let keys: Vec<_> = found.iter().map(|line| line.split(": ").nth(1).unwrap()).collect();
        let expected = ["[1].id", "[1].name", "[1].cpu_us", "[1].cpu_percent", "[2].name", "[3].name", "[3].cpu_percent"];
        assert_eq!(keys, expected.map(|key| format!("functions[0].phases{key}")), "{found:#?}");
        assert_eq!(found[0], "s.toml: functions[0].phases[1].id: 1 is also used by phases[0]");
        let many = (0..33).map(|id| phase(id, &format!("p{id}"), 1, 1)).collect();
        let found = problems(|config| config.functions[0].phases = many);
        assert_eq!(found, ["s.toml: functions[0].phases: 33 phases; a function has at most 32"]);
    }

    #[test]
    fn edges_lead_from_services_to_functions_and_servers() {
        let function = |name: &str| EdgeConfig::Function(name.to_owned());
        let url = |url: &str| EdgeConfig::Url(url.to_owned());
        let with = |edges: &[(&str, EdgeConfig)]| {
            let edges = edges.iter().map(|(service, edge)| ((*service).to_owned(), edge.clone())).collect();
            problems(|config| config.functions[0].edges = edges)
        };
        assert_eq!(with(&[("p.q.S", function("b")), ("S_2", url("https://a:1")), ("T", function("not-there-yet"))]), [""; 0]);
        let found = with(&[("p/S", function("b")), ("p.S", function("a/b")), ("p.T", url("https://a/x")), ("", function("b"))]);
        assert_eq!(
            found,
            [
                "s.toml: functions[0].edges: `` is not a service; give its full name, such as package.Service, of at most 200 letters, digits, `.`, `_`",
                "s.toml: functions[0].edges.p.S.function: `a/b` is not a valid function name; give 1 to 200 letters, digits, `.`, `-`, `_`, not \
                 starting with `.`",
                "s.toml: functions[0].edges.p.T.url: `https://a/x`: give http://HOST:PORT or https://HOST:PORT, without a path",
                "s.toml: functions[0].edges: `p/S` is not a service; give its full name, such as package.Service, of at most 200 letters, digits, `.`, `_`",
            ]
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let function = FunctionConfig { http_hosts: vec!["a b".to_owned()], ..FunctionConfig::new("f", "/nonexistent/f.so") };
        let found = check_usable("functions[3]", &function).unwrap_err().to_string();
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines[0], "functions[3].path: /nonexistent/f.so: No such file or directory (os error 2)");
        assert!(lines.len() == 2 && lines[1].starts_with("functions[3].http_hosts: "), "{found}");
        assert_eq!(problems(|config| config.functions[0] = function), [""; 0]);
    }

    #[test]
    fn a_file_on_the_command_line_is_served_under_its_stem() {
        assert_eq!(stem_name(Path::new("/x/gps ekf.v2.so")), "gps-ekf.v2");
    }
}
