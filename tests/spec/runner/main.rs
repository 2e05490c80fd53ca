//! Runs one script of the specification suite: `spec-runner MODE SCRIPT`, for instance `spec-runner guard-O3 wasm-v2/i32.wast`.
//!
//! Modules are compiled here or, where `SPEC_COMPILER` names another `spec-runner`, by that: see [`compiler`]. SCRIPT is a name of the suite or a file. Prints [`Event`]s; with `--text` as a third argument, only failures and a summary, for
//! people. Everything of a script (modules, links, values) lives and dies with this process.

mod compiler;
mod component;
mod engine;
mod reuse;
mod script;
mod values;

use anyhow::{Context, bail};
use sledge_tests::spec::{Event, Mode, Script, official, ours};
use std::io::Write;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    #[cfg(feature = "compiler")]
    if let [command, mode, machine, script] = arguments.as_slice()
        && command == "compile"
    {
        return compiler::serve(parse(mode)?, machine, &find(script)?);
    }
    let (mode, script, text) = match arguments.as_slice() {
        [mode, script] => (mode, script, false),
        [mode, script, flag] if flag == "--text" => (mode, script, true),
        _ => bail!("usage: spec-runner MODE SCRIPT [--text]; MODE is guard-O3, software-O0 and the like"),
    };
    let mode = parse(mode)?;
    let script = find(script)?;
    if text {
        let mut printer = Printer { name: &script.name, line: 0, what: String::new(), counts: [0; 3] };
        script::run(&script, mode, &mut |event| printer.event(event))?;
    } else {
        let mut out = std::io::stdout().lock();
        script::run(&script, mode, &mut |event| {
            // A parent that is gone wants no report.
            let written = serde_json::to_writer(&mut out, &event).map_err(std::io::Error::from);
            if written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).is_err() {
                std::process::exit(1);
            }
        })?;
    }
    Ok(())
}

fn parse(mode: &str) -> anyhow::Result<Mode> {
    Mode::parse(mode).with_context(|| format!("{mode} is no mode: guard-O3, software-O0 and the like are"))
}

fn find(name: &str) -> anyhow::Result<Script> {
    if let Ok(text) = std::fs::read_to_string(name) {
        return Ok(Script { name: name.to_string(), path: name.to_string(), text });
    }
    let known = official().into_iter().chain(ours("")?);
    known.into_iter().find(|script| script.name == name).with_context(|| format!("no script or file is named {name}"))
}

/// Events for people.
struct Printer<'a> {
    name: &'a str,
    line: usize,
    what: String,
    counts: [usize; 3],
}

impl Printer<'_> {
    fn event(&mut self, event: Event) {
        match event {
            Event::Begin { line, what } => (self.line, self.what) = (line, what),
            Event::Pass => self.counts[0] += 1,
            Event::Fail { expected, got } => {
                self.counts[1] += 1;
                println!("{}:{}: {}: expected {expected}; got {got}", self.name, self.line, self.what);
            }
            Event::Skip { reason } => {
                self.counts[2] += 1;
                println!("{}:{}: {}: skipped: {reason}", self.name, self.line, self.what);
            }
            Event::Reused { directives, rounds } => {
                println!("{}: {directives} directives in {rounds} rounds on reused sandboxes", self.name);
            }
            Event::Done { modules, compile_ms, total_ms } => {
                let [passed, failed, skipped] = self.counts;
                println!(
                    "{}: {passed} passed, {failed} failed, {skipped} skipped; {modules} modules in {compile_ms} ms of {total_ms} ms",
                    self.name
                );
            }
        }
    }
}
