//! `sledge workflow record`: an execution of a running server becomes a test, which runs without one.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use sledge_workflow::definition::Definition;
use sledge_workflow::rehearse::{Recorded, Recording, record as recording};

use super::super::{fail, print_line, say};
use super::executions::OneArgs;

#[derive(Debug, Args)]
pub(in crate::cli) struct RecordArgs {
    #[command(flatten)]
    one: OneArgs,
    /// The test file to write; one that exists is not overwritten [default: EXECUTION.test.json]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The file with the definition that the test is for [default: the definition with which the execution ran is written beside the test, as EXECUTION.asl.json]
    #[arg(long, value_name = "FILE")]
    definition: Option<PathBuf>,
}

pub(super) fn record(args: &RecordArgs) -> ExitCode {
    match recorded(args) {
        Ok(files) => print_line(&format!(
            "wrote {}",
            files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" and ")
        )),
        Err(why) => fail(why),
    }
}

/// Writes the files, and gives their names.
fn recorded(args: &RecordArgs) -> Result<Vec<PathBuf>, String> {
    let name = args.one.execution();
    let asked = |below: &str, more: &str| args.one.get(below, more).map_err(|error| error.to_string());
    let source = asked("/definition", "")?["definition"].as_str().unwrap_or_default().to_owned();
    let definition = parsed(&source).map_err(|mistake| format!("the definition with which it ran cannot be read: {mistake}"))?;
    let one = asked("", "")?;
    if one["definition"]["moves"].as_u64().is_some_and(|moves| moves > 0) {
        return Err(format!(
            "{name}: the execution has gone on by another definition (repin --definition): record one that ran by one"
        ));
    }
    let history = history(&asked)?;
    let test = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.test.json")));
    let folder = test.parent().map_or(PathBuf::new(), Path::to_path_buf);
    let own = folder.join(format!("{name}.asl.json"));
    let workflow = match &args.definition {
        Some(given) => {
            compare(given, &definition);
            relative(&folder, given).map_err(|error| format!("{}: {error}", given.display()))?
        }
        None => PathBuf::from(own.file_name().unwrap_or_default()),
    };
    let text = |key: &str| one[key].as_str();
    let Recording { suite, notes } = recording(
        &definition,
        &workflow.to_string_lossy(),
        &Recorded {
            name,
            arn: text("arn").unwrap_or_default(),
            status: text("status").unwrap_or_default(),
            started_ms: one["started_ms"].as_i64().unwrap_or_default(),
            input: &one["input"],
            output: one.get("output"),
            error: text("error"),
            cause: text("cause"),
            history: &history,
        },
    )
    .map_err(|error| format!("{name}: {error}"))?;
    let mut written = Vec::new();
    if args.definition.is_none() {
        write(&own, &source)?;
        written.push(own);
    }
    write(&test, &format!("{suite:#}\n"))?;
    written.insert(0, test);
    notes.iter().for_each(|note| say(format_args!("{name}: {note}")));
    Ok(written)
}

fn parsed(source: &str) -> Result<Definition, String> {
    Definition::parse(source).map_err(|mistakes| mistakes.first().map(ToString::to_string).unwrap_or_default())
}

/// All events of the execution.
fn history(asked: &impl Fn(&str, &str) -> Result<Value, String>) -> Result<Vec<Value>, String> {
    let (mut events, mut after) = (Vec::new(), String::new());
    loop {
        let mut page = asked("/history", &after)?;
        if let Some(own) = page["events"].as_array_mut() {
            events.append(own);
        }
        match page["next"].as_u64() {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(events),
        }
    }
}

/// Says so if the file has another definition than the one with which the execution ran.
fn compare(file: &Path, ran: &Definition) {
    match fs::read_to_string(file).map_err(|error| error.to_string()).and_then(|source| parsed(&source)) {
        Ok(own) if own.fingerprint() == ran.fingerprint() => {}
        Ok(_) => say(format_args!(
            "{}: the execution ran with another version of this definition; the test compares them",
            file.display()
        )),
        Err(why) => say(format_args!("{}: {why}", file.display())),
    }
}

/// The way from a folder to a file.
fn relative(folder: &Path, file: &Path) -> io::Result<PathBuf> {
    let here = std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?;
    let (here, there) = (fs::canonicalize(&here).unwrap_or(here), fs::canonicalize(file)?);
    let (mut from, mut to) = (here.components().peekable(), there.components().peekable());
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    Ok(from.map(|_| Component::ParentDir).chain(to).collect())
}

/// Writes a new file; one that is there already with the same content is good, too.
fn write(file: &Path, text: &str) -> Result<(), String> {
    let told = |error: io::Error| format!("{}: {error}", file.display());
    match OpenOptions::new().write(true).create_new(true).open(file) {
        Ok(mut new) => new.write_all(text.as_bytes()).map_err(told),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match fs::read_to_string(file) {
            Ok(old) if old == text => Ok(()),
            _ => Err(format!("{}: the file exists; give another one with --out, or remove it", file.display())),
        },
        Err(error) => Err(told(error)),
    }
}
