//! The group `workflows`: what a step costs within a request and what one costs that is written down, what executions cost that wait, and moto's interpreter beside ours.
//!
//! The server has one worker and one core. Tasks call `ping`, the smallest function there is.

use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Map, Value, json};
use sledge::admin::{Address, Client as Admin};
use tempfile::TempDir;

use super::Bench;
use super::io::median;
use crate::client::Client;
use crate::load::{self, Expected, Load};
use crate::moto::Moto;
use crate::server::Server;
use crate::{checkout, child, compiler, cores};

/// Tasks of the long chain. The short one has one.
const TASKS: usize = 8;
const TURNS: usize = 5;
const WARM_UP: Duration = Duration::from_millis(300);
const TIME: Duration = Duration::from_millis(1_500);
const TIME_MAX: Duration = Duration::from_secs(120);
/// What ping replies, as JSON.
const PONG: &[u8] = b"\"p\"";
/// The client gets the output of a durable execution.
const WAIT: (&str, &str) = ("prefer", "wait=60");

/// Requests of a turn that are counted in processor time, and their clients.
const REQUESTS: u64 = 20_000;
const CLIENTS: usize = 100;
/// Durable executions at the same time.
const DURABLE: usize = 200;
const DURABLE_TIME: Duration = Duration::from_secs(3);
/// Single executions of each chain, and as many before them that do not count.
const SINGLE: usize = 200;
const SINGLE_WARM_UP: usize = 20;
/// What is synced in files beside the journal after each pair of executions, and how often.
const SYNCED: [u8; 4 << 10] = [b'a'; 4 << 10];
const SYNCS: usize = 8;
/// Executions that wait, and for how long.
const WAITING: u64 = 20_000;
const WAITING_S: u64 = 3_600;
/// Memory has settled when it changes by less than this in a second.
const SETTLED_BYTES: u64 = 64 << 10;

/// So many tasks, one after the other.
fn chain(tasks: usize) -> Value {
    let task = |number: usize| match number {
        1 => json!({ "Type": "Task", "Resource": "fn:ping", "End": true }),
        _ => json!({ "Type": "Task", "Resource": "fn:ping", "Next": format!("S{}", number - 1) }),
    };
    let states: Map<String, Value> = (1..=tasks).map(|number| (format!("S{number}"), task(number))).collect();
    json!({ "StartAt": format!("S{tasks}"), "States": states })
}

/// What a server offers.
struct Setting<'a> {
    folder: &'a Path,
    /// Of the whole server.
    keys: String,
    /// Of each workflow.
    kind: &'a str,
    /// Functions of `benches/functions`.
    functions: &'a [&'a str],
    workflows: Vec<(&'a str, Value)>,
}

impl Setting<'_> {
    /// Starts it on a core of its own; this thread goes to another.
    fn start(&self) -> Result<Server> {
        let mut config = format!("listen = \"127.0.0.1:0\"\nworkers = 1\n{}", self.keys);
        for file in self.functions {
            let source = checkout::root().join("benches/functions").join(file);
            let artifact = self.folder.join(file).with_extension("so");
            compiler::compile(&source, &artifact)?;
            let name = source.file_stem().context("a name")?.to_string_lossy();
            config.push_str(&format!("\n[[functions]]\nname = \"{name}\"\npath = {}\n", quoted(&artifact)));
        }
        for (name, definition) in &self.workflows {
            let file = self.folder.join(format!("{name}.asl.json"));
            fs::write(&file, definition.to_string()).with_context(|| file.display().to_string())?;
            config.push_str(&format!("\n[[workflows]]\nname = \"{name}\"\npath = {}\ntype = \"{}\"\n", quoted(&file), self.kind));
        }
        let [server_core, load_core] = cores::two()?;
        cores::pin(server_core)?;
        let server = Server::start_config(self.folder, &config);
        cores::pin(load_core)?;
        server
    }
}

fn quoted(path: &Path) -> toml::Value {
    toml::Value::String(path.display().to_string())
}

fn express(folder: &Path) -> Result<Server> {
    let workflows = vec![("long", chain(TASKS)), ("short", chain(1))];
    let functions = &["ping.wat", "call-ping.c"];
    Setting { folder, keys: "admin = \"none\"\n".to_owned(), kind: "express", functions, workflows }.start()
}

/// Executions are written to a file in `folder`.
fn durable(folder: &Path, workflows: Vec<(&str, Value)>) -> Result<Server> {
    let keys = format!("admin = {}\nkv = {}\n", quoted(&folder.join("admin.sock")), quoted(&folder.join("kv.redb")));
    Setting { folder, keys, kind: "standard", functions: &["ping.wat"], workflows }.start()
}

/// A folder on a disk: what is synced in a file system in memory costs nothing.
fn on_disk() -> Result<TempDir> {
    let folder = tempfile::tempdir_in(checkout::output_folder("workflows")?)?;
    let output = Command::new("df").arg("--output=fstype").arg(folder.path()).output().context("df")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let kind = text.lines().nth(1).context("df does not say which file system it is")?.trim();
    ensure!(!matches!(kind, "tmpfs" | "ramfs"), "{} is in memory ({kind})", folder.path().display());
    eprintln!("workflows: the journal is on {kind}");
    Ok(folder)
}

/// What answers with the output of a workflow whose last task is a ping.
fn ponging(clients: usize, path: &str) -> Load {
    Load { expected: Expected::Body(Bytes::from_static(PONG)), ..Load::new(clients, path, Vec::new(), 0) }
}

/// What a step of an express workflow costs beyond what the function's call costs a function.
pub(super) fn express_step_us(bench: &mut Bench) -> Result<f64> {
    let folder = tempfile::tempdir_in(bench.folder.path())?;
    let server = express(folder.path())?;
    let cost = |load: Load| -> Result<f64> {
        let before = server.processor_time()?;
        let load = Load { requests_max: REQUESTS, ..load };
        let answered = load::run(server.address(), &[load], Duration::ZERO, TIME_MAX)?[0].latencies.len();
        ensure!(answered == REQUESTS, "{answered} of {REQUESTS} requests were answered");
        Ok((server.processor_time()? - before).as_secs_f64() * 1e6 / REQUESTS as f64)
    };
    let calling = |times: usize| Load::new(CLIENTS, "/call-ping", vec![times as u8], 0);
    let mut steps = Vec::new();
    for turn in 0..=TURNS {
        let (long, short) = (cost(ponging(CLIENTS, "/long"))?, cost(ponging(CLIENTS, "/short"))?);
        let (eight, one) = (cost(calling(TASKS))?, cost(calling(1))?);
        let each = |many: f64, one: f64| (many - one) / (TASKS - 1) as f64;
        let (step, call) = (each(long, short), each(eight, one));
        eprintln!(
            "express: {long:.2} us for {TASKS} tasks, {short:.2} for one: {step:.2} each; {eight:.2} and {one:.2} for calls: {call:.2} each"
        );
        // The first one warms up.
        if turn > 0 {
            steps.push(step - call);
        }
    }
    Ok(median(steps))
}

/// The median latency of an express workflow of one task, to that of its function.
pub(super) fn one_state_ratio(bench: &mut Bench) -> Result<f64> {
    let folder = tempfile::tempdir_in(bench.folder.path())?;
    let server = express(folder.path())?;
    let median_us = |load: Load| anyhow::Ok(load::run(server.address(), &[load], WARM_UP, TIME)?[0].median_us());
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let function = median_us(Load::new(1, "/ping", Vec::new(), 1))?;
        let workflow = median_us(ponging(1, "/short"))?;
        eprintln!("one state: {function:.1} us for the function, {workflow:.1} for the workflow");
        ratios.push(workflow / function);
    }
    Ok(median(ratios))
}

/// Tasks of durable executions in a second.
pub(super) fn durable_steps_per_s(_: &mut Bench) -> Result<f64> {
    let folder = on_disk()?;
    let server = durable(folder.path(), vec![("long", chain(TASKS))])?;
    let load = Load { headers: vec![WAIT], ..ponging(DURABLE, "/long") };
    let mut rates = Vec::new();
    for _ in 0..TURNS {
        let outcome = &load::run(server.address(), std::slice::from_ref(&load), WARM_UP, DURABLE_TIME)?[0];
        let rate = outcome.per_second * TASKS as f64;
        eprintln!("durable: {rate:.0} steps a second, an execution of {TASKS} takes {:.1} ms", outcome.median_us() / 1e3);
        rates.push(rate);
    }
    Ok(median(rates))
}

/// The time of a step of a single execution, to that of syncing what is appended to a file beside its journal.
pub(super) fn durable_step_fsync_ratio(_: &mut Bench) -> Result<f64> {
    let folder = on_disk()?;
    let server = durable(folder.path(), vec![("long", chain(TASKS)), ("short", chain(1))])?;
    let mut client = Client::connect(server.address())?;
    let mut execution = |path: &str| -> Result<f64> {
        let reply = client.post(path, &Bytes::new(), &[WAIT])?;
        ensure!(reply.status == 200 && reply.body == PONG, "{path}: status {}", reply.status);
        Ok(reply.elapsed.as_secs_f64())
    };
    let mut appended = File::create(folder.path().join("appended"))?;
    let mut overwritten = File::create(folder.path().join("overwritten"))?;
    for _ in 0..(SINGLE_WARM_UP + SINGLE) * SYNCS {
        overwritten.write_all(&SYNCED)?;
    }
    overwritten.sync_all()?;
    overwritten.rewind()?;
    let sync = |file: &mut File| -> Result<f64> {
        file.write_all(&SYNCED)?;
        let start = Instant::now();
        file.sync_data()?;
        Ok(start.elapsed().as_secs_f64())
    };
    let (mut long, mut short, mut appends, mut overwrites) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let [server_core, load_core] = cores::two()?;
    // In turns, since a disk is not always as fast.
    for round in 0..SINGLE_WARM_UP + SINGLE {
        let (eight, one) = (execution("/long")?, execution("/short")?);
        // Where the server syncs.
        cores::pin(server_core)?;
        let append = (0..SYNCS).map(|_| sync(&mut appended)).collect::<Result<Vec<_>>>()?;
        let overwrite = (0..SYNCS).map(|_| sync(&mut overwritten)).collect::<Result<Vec<_>>>()?;
        cores::pin(load_core)?;
        if round >= SINGLE_WARM_UP {
            long.push(eight);
            short.push(one);
            appends.extend(append);
            overwrites.extend(overwrite);
        }
    }
    let us = |times: Vec<f64>| median(times) * 1e6;
    let (long, short, append, overwrite) = (us(long), us(short), us(appends), us(overwrites));
    let step = (long - short) / (TASKS - 1) as f64;
    // A file that grows needs the file system's own journal for that, too.
    eprintln!(
        "durable: {long:.0} us for {TASKS} tasks, {short:.0} for one: {step:.0} each; fdatasync takes {append:.0} where a file grows, {overwrite:.0} where it does not: {:.2} of that",
        step / overwrite
    );
    Ok(step / append)
}

/// Memory that an execution adds that waits.
pub(super) fn waiting_bytes(_: &mut Bench) -> Result<f64> {
    let folder = on_disk()?;
    let wait = json!({ "StartAt": "Wait", "States": { "Wait": { "Type": "Wait", "SecondsPath": "$.seconds", "End": true } } });
    let server = durable(folder.path(), vec![("wait", wait)])?;
    let admin = Admin::new(vec![Address::Unix(folder.path().join("admin.sock"))], None)?;
    // What it uses when so many more have been started, and so many have not ended.
    let used = |more: u64, seconds: u64, open: u64| -> Result<u64> {
        let body = json!({ "seconds": seconds }).to_string().into_bytes();
        let load = Load { requests_max: more, expected: Expected::Status(202), ..Load::new(DURABLE, "/wait", body, 0) };
        let answered = load::run(server.address(), &[load], Duration::ZERO, TIME_MAX)?[0].latencies.len();
        ensure!(answered == more, "{answered} of {more} executions were started");
        let end = Instant::now() + TIME_MAX;
        while executions_open(&admin)? != open {
            ensure!(Instant::now() < end, "there are not {open} executions that have not ended");
            thread::sleep(Duration::from_millis(100));
        }
        settled_bytes(server.pid())
    };
    // With connections and what the first executions need.
    let before = used(DURABLE as u64, 0, 0)?;
    let after = used(WAITING, WAITING_S, WAITING)?;
    let twice = used(WAITING, WAITING_S, 2 * WAITING)?;
    let each = |more: u64, less: u64| more.saturating_sub(less) as f64 / WAITING as f64;
    eprintln!(
        "waiting: {before} bytes before, {after} with {WAITING} executions that wait: {:.0} each; {:.0} for each of as many more",
        each(after, before),
        each(twice, after)
    );
    Ok(each(after, before))
}

/// Executions that have not ended, as the metrics say.
fn executions_open(admin: &Admin) -> Result<u64> {
    let mut text = Vec::new();
    admin.copy(Request::get("/metrics").body(Full::default())?, &mut text)?;
    let text = String::from_utf8(text)?;
    let count = text.lines().find_map(|line| line.strip_prefix("sledge_executions_open "));
    count.context("the metrics have no executions")?.trim().parse().context("the number of executions")
}

/// Memory of a process that belongs to no file, once it does not change any more.
fn settled_bytes(pid: u32) -> Result<u64> {
    let (end, mut last) = (Instant::now() + TIME_MAX, child::anonymous_bytes(pid)?);
    loop {
        thread::sleep(Duration::from_secs(1));
        let now = child::anonymous_bytes(pid)?;
        if now.abs_diff(last) < SETTLED_BYTES || Instant::now() > end {
            return Ok(now);
        }
        last = now;
    }
}

/// States that follow each other in what both interpret, and items of its Map.
const PASSES: usize = 8;
const ITEMS: usize = 20;
/// Executions at the same time; of each interpreter the number counts that suits it best.
const PEER_CLIENTS: [usize; 3] = [1, 4, 20];
const PEER_TURNS: usize = 3;
/// Of moto, in a turn.
const PEER_EXECUTIONS: usize = 40;

/// What moto's interpreter comes to beside ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// Steps a second, ours to its.
    steps: f64,
    /// Memory after that, its to ours.
    memory: f64,
}

/// Without tasks: moto would need containers for them.
fn passes() -> Value {
    let one = json!({ "StartAt": "One", "States": { "One": { "Type": "Pass", "End": true } } });
    let mut states = Map::new();
    for number in (1..=PASSES).rev() {
        let next = if number == 1 { "All".to_owned() } else { format!("P{}", number - 1) };
        states.insert(format!("P{number}"), json!({ "Type": "Pass", "Next": next }));
    }
    states.insert("All".to_owned(), json!({ "Type": "Map", "ItemsPath": "$.items", "ItemProcessor": one, "End": true }));
    json!({ "StartAt": format!("P{PASSES}"), "States": states })
}

pub(super) fn beside_moto() -> Result<Peer> {
    let folder = on_disk()?;
    let server = durable(folder.path(), vec![("passes", passes())])?;
    let [server_core, load_core] = cores::two()?;
    cores::pin(server_core)?;
    let moto = Moto::start(folder.path());
    cores::pin(load_core)?;
    let mut moto = moto?;
    let machine = moto.create("passes", &passes())?;
    let items: Value = (0..ITEMS).collect();
    let input = json!({ "items": items });
    let steps = (PASSES + 1 + ITEMS) as f64;
    let (mut ours, mut its) = ([(); PEER_CLIENTS.len()].map(|()| Vec::new()), [(); PEER_CLIENTS.len()].map(|()| Vec::new()));
    for _ in 0..PEER_TURNS {
        for (index, clients) in PEER_CLIENTS.into_iter().enumerate() {
            let expected = Expected::Body(Bytes::from(items.to_string()));
            let body = input.to_string().into_bytes();
            let load = Load { headers: vec![WAIT], expected, ..Load::new(clients, "/passes", body, 0) };
            let of_ours = load::run(server.address(), &[load], WARM_UP, TIME)?[0].per_second * steps;
            let mut took = Duration::ZERO;
            for _ in 0..PEER_EXECUTIONS / clients {
                took += moto.execute(&machine, &input, &items, clients)?;
            }
            let of_its = (PEER_EXECUTIONS / clients * clients) as f64 * steps / took.as_secs_f64();
            eprintln!("moto: {of_its:.0} steps a second with {clients} executions at the same time, ours {of_ours:.0}");
            ours[index].push(of_ours);
            its[index].push(of_its);
        }
    }
    let best = |all: [Vec<f64>; PEER_CLIENTS.len()]| all.into_iter().map(median).fold(f64::NAN, f64::max);
    let (of_its, of_ours) = (moto.resident_bytes()?, server.resident_bytes()?);
    eprintln!("moto: {:.1} MB, ours {:.1} MB", of_its as f64 / 1e6, of_ours as f64 / 1e6);
    Ok(Peer { steps: best(ours) / best(its), memory: of_its as f64 / of_ours as f64 })
}

/// Steps a second, ours to moto's.
pub(super) fn peer_steps_ratio(bench: &mut Bench) -> Result<f64> {
    Ok(bench.beside_moto()?.steps)
}

/// Memory, moto's to ours.
pub(super) fn peer_memory_ratio(bench: &mut Bench) -> Result<f64> {
    Ok(bench.beside_moto()?.memory)
}
