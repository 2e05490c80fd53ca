//! The group `grpc`, continued: the checkout of `examples/grpc/shop`, the same sources as eight functions of one application and as eight servers over loopback. The
//! carts of both are in one Redis server. One client, the program of the example, places one order at a time.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Bench;
use super::components::run;
use crate::checkout;
use crate::child::{self, Listener};
use crate::server::Server;
use crate::store::Redis;

/// Orders of a turn.
const ORDERS: usize = 300;
const WARM_UP: usize = 100;
const TURNS: usize = 5;

/// The services, by the variable that says where callers find each, and the folders of their sources. The last one calls the others.
const SERVICES: [(&str, &str); 8] = [
    ("CATALOGUE", "rust/catalogue"),
    ("CART", "go/cart"),
    ("CURRENCY", "rust/currency"),
    ("SHIPPING", "rust/shipping"),
    ("PAYMENT", "go/payment"),
    ("EMAIL", "go/email"),
    ("RECOMMENDATION", "go/recommendation"),
    ("CHECKOUT", "rust/checkout"),
];

/// What one way to serve costs.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// The median time of an order.
    median: Duration,
    /// Processor time of all processes by order, with what filling its cart takes.
    cpu: Duration,
    /// Memory of all processes after that.
    resident_bytes: u64,
}

/// Both ways.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    servers: Cost,
    application: Cost,
}

/// Time of an order, servers to functions.
pub(super) fn median_ratio(bench: &mut Bench) -> Result<f64> {
    ratio(bench, |cost| cost.median.as_secs_f64())
}

/// The same of processor time.
pub(super) fn cpu_ratio(bench: &mut Bench) -> Result<f64> {
    ratio(bench, |cost| cost.cpu.as_secs_f64())
}

/// The same of memory.
pub(super) fn memory_ratio(bench: &mut Bench) -> Result<f64> {
    ratio(bench, |cost| cost.resident_bytes as f64)
}

fn ratio(bench: &mut Bench, number: fn(Cost) -> f64) -> Result<f64> {
    let folder = bench.folder.path().join("shop");
    let Costs { servers, application } = match bench.shop {
        Some(costs) => costs,
        None => *bench.shop.insert(measured(&folder)?),
    };
    Ok(number(servers) / number(application))
}

fn measured(folder: &Path) -> Result<Costs> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let redis = Redis::start()?;
    let config = application(folder, redis.address())?;
    let client = programs(folder)?;
    let application = Server::start_config(folder, &config)?;
    let servers = servers(folder, redis.address())?;
    let of_servers = |name: &str| servers.iter().find(|(known, _)| *known == name).map(|(_, listener)| listener.address());
    let mut turns = Vec::new();
    for turn in 0..=TURNS {
        let servers = cost(&client, of_servers, || servers.iter().map(|(_, listener)| listener.pid()).collect())?;
        let application = cost(&client, |_| Some(application.address()), || vec![application.pid()])?;
        eprintln!("shop: servers {servers:?}, application {application:?}");
        // The first one warms both up.
        if turn > 0 {
            turns.push(Costs { servers, application });
        }
    }
    let median = |of: fn(&Costs) -> Cost| {
        let mut all: Vec<_> = turns.iter().map(of).collect();
        all.sort_unstable_by_key(|cost| cost.median);
        let mut cpu: Vec<_> = all.iter().map(|cost| cost.cpu).collect();
        cpu.sort_unstable();
        let resident_bytes = all.iter().map(|cost| cost.resident_bytes).max().unwrap_or_default();
        Cost { median: all[TURNS / 2].median, cpu: cpu[TURNS / 2], resident_bytes }
    };
    Ok(Costs { servers: median(|turn| turn.servers), application: median(|turn| turn.application) })
}

/// Places orders, and looks at what the processes have used for them.
fn cost(client: &Path, address: impl Fn(&str) -> Option<SocketAddr>, pids: impl Fn() -> Vec<u32>) -> Result<Cost> {
    let used = || pids().into_iter().map(child::processor_time).sum::<Result<Duration>>();
    let before = used()?;
    let mut command = Command::new(client);
    command.args(["load", &(WARM_UP + ORDERS).to_string()]);
    for name in ["CATALOGUE", "CART", "CHECKOUT"] {
        command.env(name, address(name).context("a service has no address")?.to_string());
    }
    let output = command.output().with_context(|| client.display().to_string())?;
    ensure!(output.status.success(), "the client failed: {}", String::from_utf8_lossy(&output.stderr));
    let cpu = used()?.saturating_sub(before) / u32::try_from(WARM_UP + ORDERS)?;
    let text = String::from_utf8(output.stdout).context("what the client says")?;
    let times: Result<Vec<u64>, _> = text.lines().skip(WARM_UP).map(str::parse).collect();
    let mut times = times.context("what the client says")?;
    ensure!(times.len() == ORDERS, "{} orders", times.len());
    times.sort_unstable();
    let resident_bytes = pids().into_iter().map(child::resident_bytes).sum::<Result<u64>>()?;
    Ok(Cost { median: Duration::from_micros(times[ORDERS / 2]), cpu, resident_bytes })
}

fn source(path: &str) -> PathBuf {
    checkout::root().join("examples/grpc/shop").join(path)
}

/// Builds the functions; their configuration is that of the example, but for places.
fn application(folder: &Path, redis: SocketAddr) -> Result<String> {
    let example = source("sledge.toml");
    let text = fs::read_to_string(&example).with_context(|| example.display().to_string())?;
    let mut config: toml::Table = text.parse().context("the example's configuration")?;
    config.insert("listen".to_owned(), "127.0.0.1:0".into());
    config.insert("kv".to_owned(), format!("redis://{redis}").into());
    config.insert("workers".to_owned(), 1.into());
    for application in config.get_mut("applications").and_then(|all| all.as_array_mut()).into_iter().flatten() {
        application["protos"] = vec![source("proto").display().to_string()].into();
        for function in application["functions"].as_array_mut().into_iter().flatten() {
            let place = source(function["source"].as_str().context("a source")?).display().to_string();
            let function = function.as_table_mut().context("a function")?;
            function.insert("source".to_owned(), place.into());
            function.insert("env".to_owned(), toml::Table::from_iter([("LOG".to_owned(), "warn".into())]).into());
        }
    }
    let text = config.to_string();
    let file = folder.join("sledge.toml");
    fs::write(&file, &text).with_context(|| file.display().to_string())?;
    run(Command::new(checkout::program("sledge")?).args(["build", "shop", "--config"]).arg(&file))?;
    Ok(text)
}

/// Builds the servers as their authors would, and the client; the client.
fn programs(folder: &Path) -> Result<PathBuf> {
    let target = folder.join("native");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--locked", "--workspace", "--target-dir"]).arg(&target);
    run(cargo.current_dir(source("rust")))?;
    for name in SERVICES.iter().filter_map(|(_, path)| path.strip_prefix("rust/")).chain(["client"]) {
        let (from, to) = (target.join("release").join(name), folder.join(name));
        fs::copy(&from, to).with_context(|| from.display().to_string())?;
    }
    let packages = SERVICES.iter().filter_map(|(_, path)| path.strip_prefix("go/")).map(|name| format!("./{name}"));
    run(Command::new("go").args(["build", "-o"]).arg(folder).args(packages).current_dir(source("go")))?;
    Ok(folder.join("client"))
}

fn servers(folder: &Path, redis: SocketAddr) -> Result<Vec<(&'static str, Listener)>> {
    let mut addresses = Vec::new();
    for (name, _) in SERVICES {
        addresses.push((name, child::free_address()?));
    }
    let start = |&(name, address): &(&'static str, SocketAddr)| {
        let program = name.to_lowercase();
        let mut command = Command::new(folder.join(&program));
        command.envs(addresses.iter().map(|(name, address)| (name, address.to_string())));
        command.env("LISTEN", address.to_string()).env("LOG", "warn").env("REDIS_URL", format!("redis://{redis}"));
        Ok((name, Listener::polled(command, address, &folder.join(format!("{program}.log")))?))
    };
    addresses.iter().map(start).collect()
}
