//! What `make demo` shows: the example functions compiled, served, invoked over HTTP, checked and timed.
//!
//! Exit status 0 only if every single reply was right and the server ended cleanly after SIGTERM.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::Parser;
use hyper::StatusCode;
use hyper::header::CONTENT_TYPE;
use sledge_benches::checkout;
use sledge_benches::client::{Client, Reply};
use sledge_benches::compiler::{self, Artifact};
use sledge_benches::example::{EXAMPLES, Example};
use sledge_benches::latency::{Latencies, show};
use sledge_benches::server::{Function, Server};
use sledge_benches::steps::{bar, step};

/// Compiles the example functions, serves them, checks every reply, and prints sizes and times.
#[derive(Parser)]
struct Options {
    /// How many warm requests are timed, for each function.
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    requests: u32,
}

/// One line of the table.
struct Row {
    name: &'static str,
    artifact_bytes: u64,
    compile: Duration,
    first: Duration,
    warm: Latencies,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let folder = checkout::output_folder("demo")?;
    let artifacts = EXAMPLES.iter().map(|example| compile(example, &folder)).collect::<Result<Vec<_>>>()?;
    let functions: Vec<_> = EXAMPLES
        .iter()
        .zip(&artifacts)
        .map(|(example, artifact)| Function { name: example.name, path: &artifact.path, content_type: example.content_type })
        .collect();
    let server = step("sledge serve", || {
        let server = Server::start(&folder, &functions)?;
        let outcome = format!("listens on http://{}", server.address());
        Ok((server, outcome))
    })?;

    let mut rows = Vec::new();
    for (example, artifact) in EXAMPLES.iter().zip(&artifacts) {
        let row = invoke(example, artifact, &server, &folder, options.requests);
        rows.push(row.with_context(|| format!("the demonstration of {} failed{}", example.name, server.log_end()))?);
    }
    step("SIGTERM", || {
        let elapsed = server.stop()?;
        Ok(((), format!("the server ended with exit status 0 after {}", show(elapsed))))
    })?;
    print_table(&rows, options.requests);
    println!("\nevery reply was right");
    Ok(())
}

fn compile(example: &Example, folder: &Path) -> Result<Artifact> {
    let output = folder.join(example.name).with_extension("so");
    let source = example.source();
    let shown = source.strip_prefix(checkout::root()).unwrap_or(&source).display().to_string();
    step(&format!("awsm compile {shown}"), || {
        let artifact = compiler::compile(&source, &output)?;
        let outcome = format!("{} bytes in {}", artifact.bytes, show(artifact.elapsed));
        Ok((artifact, outcome))
    })
}

/// The first request, shown, then the warm ones, all on one connection and all checked.
fn invoke(example: &Example, artifact: &Artifact, server: &Server, folder: &Path, requests: u32) -> Result<Row> {
    let body = Bytes::from(example.input()?);
    let route = example.route;
    let mut client = Client::connect(server.address())?;

    let first = client.post(route, &body, &[])?;
    check_head(example, &first)?;
    let lines = example.judge(&body, &first.body)?;
    let file = folder.join(example.reply_file);
    std::fs::write(&file, &first.body).with_context(|| format!("cannot write {}", file.display()))?;
    println!("\nPOST {route}, {} bytes: {}, {} bytes, saved as {}", body.len(), first.status, first.body.len(), file.display());
    for line in lines {
        println!("    {line}");
    }

    let progress = bar(&format!("POST {route}"), requests.into());
    let mut warm = Vec::with_capacity(requests as usize);
    for count in 1..=requests {
        let reply = client.post(route, &body, &[])?;
        check_head(example, &reply)?;
        ensure!(reply.body == first.body, "warm reply {count} of {requests} differs from the first, which was right");
        warm.push(reply.elapsed);
        progress.inc(1);
    }
    progress.finish_and_clear();
    println!("    {requests} more on the same connection: the same reply each time\n");
    Ok(Row {
        name: example.name,
        artifact_bytes: artifact.bytes,
        compile: artifact.elapsed,
        first: first.elapsed,
        warm: warm.into_iter().collect(),
    })
}

fn check_head(example: &Example, reply: &Reply) -> Result<()> {
    let body = String::from_utf8_lossy(&reply.body);
    ensure!(reply.status == StatusCode::OK, "{}: status {}: {}", example.name, reply.status, body.trim_end());
    let content_type = reply.headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    ensure!(
        content_type.as_deref() == Some(example.content_type),
        "{}: content type {}, configured is {}",
        example.name,
        content_type.as_deref().unwrap_or("missing"),
        example.content_type
    );
    Ok(())
}

fn print_table(rows: &[Row], requests: u32) {
    let median = format!("median of {requests}");
    println!();
    println!("{:<14} {:>12} {:>12} {:>14} {:>14} {:>10}", "function", "artifact", "compile", "first request", median, "p99");
    for row in rows {
        println!(
            "{:<14} {:>12} {:>12} {:>14} {:>14} {:>10}",
            row.name,
            format!("{:.1} KB", row.artifact_bytes as f64 / 1e3),
            show(row.compile),
            show(row.first),
            show(row.warm.median()),
            show(row.warm.p99()),
        );
    }
    println!("compile: from the source to the shared object; requests: over HTTP on loopback, as the client sees them");
}
