//! moto, an emulator of AWS that has an interpreter of Amazon States Language: installed from PyPI, started, and asked for executions.
//!
//! Its server is Python's in one process, its executions are threads of that, and everything is in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::checkout;
use crate::child::{Listener, free_address};
use crate::client::Client;

/// What pip installs.
const REQUIREMENTS: &str = "benches/peers/moto.txt";
/// Of which service and region a request is. Nothing else of it is looked at.
const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/states/aws4_request, SignedHeaders=host, Signature=0";
/// How often an execution is looked at: seldom, since that takes the server's time.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Longest that executions may take that were started together.
const EXECUTIONS_TIME_MAX: Duration = Duration::from_secs(60);

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub struct Moto {
    listener: Listener,
    executions: u64,
}

impl Moto {
    /// Starts it where this thread is pinned to, and installs it before if it is not there. Its log goes to `folder`.
    ///
    /// # Errors
    ///
    /// If it cannot be installed or does not listen.
    pub fn start(folder: &Path) -> Result<Moto> {
        let mut command = Command::new(installed()?);
        let address = free_address()?;
        command.args(["-H", &address.ip().to_string(), "-p", &address.port().to_string()]);
        let listener = Listener::polled(command, address, &folder.join("moto.log"))?;
        // Otherwise executions only seem to run.
        let config = json!({ "stepfunctions": { "execute_state_machine": true } });
        let reply = Client::connect(address)?.post("/moto-api/config", &Bytes::from(config.to_string()), &[])?;
        ensure!(reply.status.is_success(), "moto's configuration: status {}", reply.status);
        Ok(Moto { listener, executions: 0 })
    }

    /// Memory that it has now, in bytes.
    ///
    /// # Errors
    ///
    /// If the system does not say.
    pub fn resident_bytes(&self) -> Result<u64> {
        self.listener.resident_bytes()
    }

    /// Has it know a definition; its ARN.
    ///
    /// # Errors
    ///
    /// If it does not take it.
    pub fn create(&self, name: &str, definition: &Value) -> Result<String> {
        let role = "arn:aws:iam::123456789012:role/bench";
        let asked = json!({ "name": name, "definition": definition.to_string(), "roleArn": role });
        let reply = self.ask("AWSStepFunctions.CreateStateMachine", &asked)?;
        Ok(reply["stateMachineArn"].as_str().context("no ARN")?.to_owned())
    }

    /// Starts `count` executions, one after the other, and waits until all have ended with `output`: how long that took, by its own clock. That it is
    /// looked at only now and then does not count.
    ///
    /// # Errors
    ///
    /// If one ends otherwise, or takes too long.
    pub fn execute(&mut self, machine: &str, input: &Value, output: &Value, count: usize) -> Result<Duration> {
        let (begin, began) = (Instant::now(), SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?);
        let mut executions = Vec::with_capacity(count);
        for _ in 0..count {
            self.executions += 1;
            let asked = json!({ "stateMachineArn": machine, "name": self.executions.to_string(), "input": input.to_string() });
            let reply = self.ask("AWSStepFunctions.StartExecution", &asked)?;
            executions.push(reply["executionArn"].as_str().context("no ARN")?.to_owned());
        }
        let mut last = 0.0_f64;
        for execution in &executions {
            let ended = loop {
                let reply = self.ask("AWSStepFunctions.DescribeExecution", &json!({ "executionArn": execution }))?;
                if reply["status"] != "RUNNING" {
                    break reply;
                }
                ensure!(begin.elapsed() < EXECUTIONS_TIME_MAX, "{execution} has not ended within {EXECUTIONS_TIME_MAX:?}");
                thread::sleep(LOOK_EVERY);
            };
            let is_right =
                ended["output"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok()).as_ref() == Some(output);
            ensure!(ended["status"] == "SUCCEEDED" && is_right, "{execution} has ended wrongly: {ended}");
            last = last.max(ended["stopDate"].as_f64().context("no stopDate")?);
        }
        Ok(Duration::try_from_secs_f64(last - began.as_secs_f64()).unwrap_or_default().max(Duration::from_millis(1)))
    }

    /// It closes each connection after one reply.
    fn ask(&self, target: &'static str, asked: &Value) -> Result<Value> {
        let headers = [("authorization", SIGNED), ("x-amz-target", target)];
        let reply = Client::connect(self.listener.address())?.post("/", &Bytes::from(asked.to_string()), &headers)?;
        let text = String::from_utf8_lossy(&reply.body);
        ensure!(reply.status.is_success(), "{target}: status {}: {text}{}", reply.status, self.listener.log_end());
        serde_json::from_str(&text).with_context(|| format!("{target}: {text}"))
    }
}

/// Its program, in an environment of Python's of its own under target/ that is made once.
fn installed() -> Result<PathBuf> {
    let requirements = checkout::root().join(REQUIREMENTS);
    let wanted = fs::read_to_string(&requirements).with_context(|| requirements.display().to_string())?;
    let folder = checkout::output_folder("moto")?;
    let (program, noted) = (folder.join("bin/moto_server"), folder.join("installed.txt"));
    if program.is_file() && fs::read_to_string(&noted).is_ok_and(|installed| installed == wanted) {
        return Ok(program);
    }
    eprintln!("moto: installing {REQUIREMENTS} into {}", folder.display());
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    run(Command::new(folder.join("bin/python")).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&requirements))?;
    fs::write(&noted, wanted).with_context(|| noted.display().to_string())?;
    Ok(program)
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let output = command.output().with_context(|| format!("moto cannot be installed: {program}"))?;
    if !output.status.success() {
        bail!("moto cannot be installed: {command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(())
}
