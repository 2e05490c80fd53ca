//! `sledge deploy`, `remove`, `list`, `status`, `logs`, `drain`: asking a running server at its admin API. `phases` has a file of its own.

use std::path::PathBuf;
use std::process::ExitCode;

use awsm_abi::text;
use bytes::Bytes;
use clap::builder::RangedI64ValueParser;
use clap::{Args, value_parser};
use http_body_util::Full;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request};
use nix::unistd::{Uid, User};
use serde_json::{Map, Value};

use super::{fail, grants, print_line, usage, written};
use crate::admin::api::{AUTHOR, PERCENT, SETTINGS};
use crate::admin::client::ClientError;
use crate::admin::{Address, Client};
use crate::config::{self, LISTEN_DEFAULT};
use crate::load;
use crate::notice::{self, To};

/// Where the server is that is asked.
#[derive(Debug, Args)]
pub(super) struct Door {
    /// Admin API of the server: path of a Unix socket, or IP:PORT [default: the socket of your server on port 8080, else of the packaged service]
    #[arg(long, value_name = "ADDRESS", env = "SLEDGE_ADMIN")]
    admin: Option<String>,
    /// File with the token for the admin API
    #[arg(long, value_name = "FILE", env = "SLEDGE_ADMIN_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// Deploy a WebAssembly module, as a new function or the next version of one. The next version keeps the settings.
#[derive(Debug, Args)]
pub(super) struct DeployArgs {
    /// The module (.wasm)
    file: PathBuf,
    /// The function's name [default: the file's name without its extension]
    #[arg(long)]
    name: Option<String>,
    /// Change a setting of the configuration, such as route=/x or methods=["GET"]; VALUE is JSON or text; null restores the default
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Ask for something of the server's machine that the tenant is granted: http-host=HOST, socket-host=HOST:PORT, socket-listen=ADDRESS:PORT, dir=HOST[::GUEST[::rw|scratch]] or secret=VARIABLE[=NAME]
    #[arg(long = "grant", value_name = "KIND=VALUE", value_parser = grants::parse)]
    grants: Vec<grants::Asked>,
    /// Restore the defaults of all settings not given with --set or --grant
    #[arg(long)]
    reset: bool,
    #[command(flatten)]
    gradual: Gradual,
    #[command(flatten)]
    author: Author,
    #[command(flatten)]
    door: Door,
}

/// For which requests a version is deployed.
#[derive(Debug, Args)]
struct Gradual {
    /// Let only so many of a hundred requests go to the new version, until it is promoted, rolled back, or fails too often
    #[arg(long, value_name = "N", value_parser = percent())]
    percent: Option<u8>,
    /// Let requests with the same value of this header go to the same version
    #[arg(long, value_name = "HEADER", requires = "percent")]
    sticky: Option<HeaderName>,
}

/// A part of the requests, of a hundred.
pub(super) fn percent() -> RangedI64ValueParser<u8> {
    value_parser!(u8).range(i64::from(*PERCENT.start())..=i64::from(*PERCENT.end()))
}

/// The name that is kept with a version.
#[derive(Debug, Args)]
pub(super) struct Author {
    /// The author that `sledge versions` shows [default: your user name]
    #[arg(long, value_name = "NAME", env = "SLEDGE_AUTHOR")]
    author: Option<String>,
}

impl Author {
    /// The name, as a header has it.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let said = || ["SUDO_USER", "USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        let known = || User::from_uid(Uid::current()).ok().flatten().map(|user| user.name);
        let author = self.author.clone().or_else(said).or_else(known).filter(|author| !author.is_empty())?;
        HeaderValue::from_str(&text::line(&author)).ok()
    }
}

/// Remove a deployed function.
#[derive(Debug, Args)]
pub(super) struct RemoveArgs {
    /// The function's name
    name: String,
    #[command(flatten)]
    door: Door,
}

/// Show the log of a function: its standard error.
#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// The function's name
    name: String,
    /// Follow new lines as they are written
    #[arg(short, long)]
    follow: bool,
    /// Print a JSON object for each line
    #[arg(long)]
    json: bool,
    /// Number of lines
    #[arg(short = 'n', long, default_value_t = 100)]
    lines: usize,
    #[command(flatten)]
    door: Door,
}

/// Show the status of a running server, or of one function.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// A function to show, with its settings
    name: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

/// What is asked without further words.
#[derive(Debug, Args)]
pub(super) struct AskArgs {
    /// Print the answer in JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) door: Door,
}

pub(super) fn deploy(args: DeployArgs) -> ExitCode {
    let name = args.name.unwrap_or_else(|| config::stem_name(&args.file));
    let mut settings = Map::new();
    for setting in &args.settings {
        let Some((key, value)) = setting.split_once('=') else {
            return usage(format_args!("--set {setting}: give KEY=VALUE"));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        settings.insert(key.to_owned(), value);
    }
    if let Err(key) = grants::add(args.grants, &mut settings) {
        return usage(format_args!("--grant: `{key}` is given with --set, too; give all of it in one way"));
    }
    let module = match load::read_module(&args.file) {
        Ok(module) => module,
        Err(error) => return fail(error),
    };
    if let Err(error) = load::check_module(&args.file, &module) {
        return fail(error);
    }
    let Gradual { percent, sticky } = &args.gradual;
    let reset = args.reset.then(|| "reset=true".to_owned());
    let (percent, sticky) = (percent.map(|n| format!("percent={n}")), sticky.as_ref().map(|name| format!("sticky={name}")));
    let query: Vec<String> = [reset, percent, sticky].into_iter().flatten().collect();
    let mut request = Request::builder()
        .method(Method::PUT)
        .uri(format!("/functions/{name}?{}", query.join("&")))
        .header(SETTINGS, Value::Object(settings).to_string().into_bytes());
    if let Some(author) = args.author.header() {
        request = request.header(AUTHOR, author);
    }
    let request = request.body(Full::new(Bytes::from(module)));
    let answer = notice::during(To::Caller, || format!("the server compiles {name}"), || ask(&args.door, request));
    done(answer.map(|change| {
        let said = match &change["canary"] {
            Value::Null => changes(&change),
            canary => [vec![gradually(&name, canary)], setting_changes(&change["settings"])].concat().join("\n"),
        };
        if change["tier"].is_null() { said } else { format!("{said}\n{FOLLOWS}") }
    }))
}

/// What a client is told of a version that is served by its first tier.
const FOLLOWS: &str = "it is served by unoptimised code; optimised code follows (`sledge list` shows it)";

/// A gradual deployment, and what an operator can do.
pub(super) fn gradually(name: &str, canary: &Value) -> String {
    let [version, percent] = ["version", "percent"].map(|key| plain(&canary[key]));
    let which = match &canary["sticky"] {
        Value::Null => String::new(),
        header => format!(", by `{}`", plain(header)),
    };
    format!(
        "{percent} % of the requests of {name} go to version {version}{which}; `sledge promote {name}` serves it whole, `sledge rollback {name}` gives it up"
    )
}

pub(super) fn remove(args: &RemoveArgs) -> ExitCode {
    let request = Request::delete(format!("/functions/{}", args.name)).body(Full::default());
    done(ask(&args.door, request).map(|change| changes(&change)))
}

pub(super) fn list(args: &AskArgs) -> ExitCode {
    done(ask(&args.door, Request::get("/functions").body(Full::default())).map(|functions| match &functions {
        Value::Array(functions) if !args.json => table(functions),
        other => other.to_string(),
    }))
}

pub(super) fn status(args: &StatusArgs) -> ExitCode {
    let StatusArgs { name, ask: AskArgs { json, door } } = args;
    let target = name.as_ref().map_or_else(|| "/status".to_owned(), |name| format!("/functions/{name}"));
    done(ask(door, Request::get(target).body(Full::default())).map(|status| match &status {
        Value::Object(status) if !json => rows(status).join("\n"),
        other => other.to_string(),
    }))
}

/// Keys and values, one a line, by the alphabet; settings below their key.
fn rows(entries: &Map<String, Value>) -> Vec<String> {
    let row = |(key, value): (&String, &Value)| match value {
        Value::Array(problems) if key == "problems" => {
            let text = |problem: &Value| format!("{}: {}", plain(&problem["subject"]), plain(&problem["reason"]));
            let lines = problems.iter().map(|problem| format!("  {}", text(problem)));
            std::iter::once(format!("{key:20} {}", problems.len())).chain(lines).collect()
        }
        Value::Object(below) => {
            let width = below.keys().map(String::len).max().unwrap_or(0).max(18);
            let below = sorted(below).map(|(key, value)| format!("  {key:width$} {}", plain(value)));
            std::iter::once(key.clone()).chain(below).collect()
        }
        value => vec![format!("{key:20} {}", plain(value))],
    };
    sorted(entries).flat_map(row).collect()
}

fn sorted(entries: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries.into_iter()
}

pub(super) fn drain(args: &AskArgs) -> ExitCode {
    done(ask(&args.door, Request::post("/drain").body(Full::default())).map(|_| "draining".to_owned()))
}

pub(super) fn logs(args: &LogsArgs) -> ExitCode {
    let LogsArgs { name, follow, json, lines, door } = args;
    let format = if *json { "json" } else { "text" };
    let request =
        Request::get(format!("/functions/{name}/logs?lines={lines}&follow={follow}&format={format}")).body(Full::default());
    let copied = client(door).and_then(|client| client.copy(request?, &mut std::io::stdout().lock()));
    match copied {
        Ok(()) => ExitCode::SUCCESS,
        Err(ClientError::Output(error)) => written(Err(error)),
        Err(error) => fail(error),
    }
}

/// Asks, and waits for the whole answer.
pub(super) fn ask(door: &Door, request: Result<Request<Full<Bytes>>, hyper::http::Error>) -> Result<Value, ClientError> {
    client(door)?.ask(request?)
}

fn client(door: &Door) -> Result<Client, ClientError> {
    let port = LISTEN_DEFAULT.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_default();
    let addresses = match &door.admin {
        Some(address) => Address::parse(address).into_iter().collect(),
        None => Address::candidates(port),
    };
    if addresses.is_empty() {
        return Err(ClientError::Refused("give the address of the admin API with --admin".to_owned()));
    }
    let token = door.token_file.as_ref().map(std::fs::read_to_string).transpose()?;
    Client::new(addresses, token.as_deref())
}

pub(super) fn done(answer: Result<String, ClientError>) -> ExitCode {
    match answer {
        Ok(text) => print_line(&text),
        Err(error) => fail(error),
    }
}

/// What has changed, in words; settings one a line.
fn changes(change: &Value) -> String {
    let names = |key: &str| -> Vec<&str> { change[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect() };
    let parts = ["added", "replaced", "removed", "quarantined"].map(|what| (what, names(what)));
    let parts = parts.iter().filter(|(_, names)| !names.is_empty()).map(|(what, names)| format!("{what} {}", names.join(", ")));
    [vec![parts.collect::<Vec<_>>().join("; ")], setting_changes(&change["settings"])].concat().join("\n")
}

/// Settings that changed, one a line.
pub(super) fn setting_changes(changes: &Value) -> Vec<String> {
    let value = |value: &Value| if value.is_null() { "none".to_owned() } else { plain(value) };
    let line = |change: &Value| format!("{}: {} -> {}", plain(&change["key"]), value(&change["old"]), value(&change["new"]));
    changes.as_array().into_iter().flatten().map(line).collect()
}

/// Functions, one a line, below their keys.
fn table(functions: &[Value]) -> String {
    const KEYS: [&str; 7] = ["name", "route", "tenant", "origin", "state", "version", "retired"];
    let row = |function: &Value| {
        KEYS.map(|key| match &function["canary"] {
            canary @ Value::Object(_) if key == "version" => {
                format!("{}, {} % {}", cell(&function[key]), plain(&canary["percent"]), plain(&canary["version"]))
            }
            _ if key == "state" && function["tier"] == "first" => format!("{}, first tier", cell(&function[key])),
            _ => cell(&function[key]),
        })
    };
    rows_of(std::iter::once(KEYS.map(str::to_owned)).chain(functions.iter().map(row)).collect())
}

/// Rows whose columns stand below each other.
pub(super) fn rows_of<const COLUMNS: usize>(rows: Vec<[String; COLUMNS]>) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A value in a table.
pub(super) fn cell(value: &Value) -> String {
    if value.is_null() { "-".to_owned() } else { plain(value) }
}

/// A value on one line. Settings are words of the client that deployed the function.
pub(super) fn plain(value: &Value) -> String {
    text::line(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
