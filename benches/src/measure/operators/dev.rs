//! Of the group `operators`: how soon `sledge dev` has what was changed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use sledge::admin::{Address, Client};

use crate::checkout;
use crate::measure::Bench;

/// How long `sledge dev` compiles the module of Rust's template, by its own count, with an empty cache.
pub(in crate::measure) fn rust_compile_ms(bench: &mut Bench) -> Result<f64> {
    let folder = bench.folder.path().join("dev");
    fs::create_dir_all(&folder)?;
    let sledge = checkout::program("sledge")?;
    let new =
        Command::new(&sledge).args(["new", "greeter", "--lang", "rust"]).current_dir(&folder).stdout(Stdio::null()).status()?;
    ensure!(new.success(), "sledge new failed ({new})");
    let log = folder.join("log");
    let mut dev = Command::new(&sledge)
        .args(["dev", "--listen", "127.0.0.1:0"])
        .current_dir(folder.join("greeter"))
        .env("CACHE_DIRECTORY", folder.join("cache"))
        .env("RUNTIME_DIRECTORY", &folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(&log)?)
        .spawn()?;
    let mut ready = String::new();
    let output = dev.stdout.take().context("its output is piped")?;
    let read = BufReader::new(output).read_line(&mut ready);
    let metrics = read.map_err(anyhow::Error::from).and_then(|_| {
        let port = ready.trim_end().rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let port = port.with_context(|| format!("it does not listen; its log is {}", log.display()))?;
        metrics(folder.join(format!("sledge-{port}.sock")))
    });
    // Whatever came of it.
    dev.kill()?;
    dev.wait()?;
    let metrics = metrics?;
    let number = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.parse::<f64>().ok()).with_context(|| format!("no {name} in:\n{metrics}"))
    };
    ensure!(number("sledge_compile_seconds_count")? == 1.0, "nothing was compiled, or several modules");
    Ok(number("sledge_compile_seconds_sum")? * 1e3)
}

fn metrics(door: PathBuf) -> Result<String> {
    let mut metrics = Vec::new();
    Client::new(vec![Address::Unix(door)], None)?.copy(Request::get("/metrics").body(Full::<Bytes>::default())?, &mut metrics)?;
    String::from_utf8(metrics).context("metrics are text")
}
