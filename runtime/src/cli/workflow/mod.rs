//! `sledge workflow`: definitions of workflows, without a server; and executions, in one: durable ones (`executions`, `record`, `repin`, `remove`), and express ones that go ahead of themselves (`explain`).

mod executions;
mod explain;
mod record;
mod remove;
mod repin;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use sledge_workflow::definition::{Definition, schema};
use sledge_workflow::draw;
use sledge_workflow::rehearse::{CaseResult, Suite};

use self::executions::{CallbackArgs, ListArgs, OneArgs, PauseArgs, QueuesArgs, RestartArgs, StartArgs, StopArgs};
use self::explain::ExplainArgs;
use self::record::RecordArgs;
use self::remove::RemoveArgs;
use self::repin::RepinArgs;
use super::{FAILURE, fail, print_line, say};

/// What is done with definitions.
#[derive(Debug, Subcommand)]
pub(super) enum WorkflowCommand {
    /// Check definitions in Amazon States Language; report all mistakes with their lines and columns
    Check(CheckArgs),
    /// Run tests of workflows with mocked tasks, in virtual time; see docs/workflows.md
    Test(TestArgs),
    /// Draw a definition: as text, or as SVG
    Draw(DrawArgs),
    /// Print a JSON Schema of definitions, for editors
    Schema,
    /// Start a durable execution in a running server
    Start(StartArgs),
    /// List workflows, or the executions of one, the newest first
    List(ListArgs),
    /// Show an execution: its status, input and output, and the versions of functions that it calls
    Show(OneArgs),
    /// Show what happened in an execution
    History(OneArgs),
    /// Show what an express execution did that went ahead of itself (`speculation`): what ran when, what was guessed, and why runs were dropped
    Explain(ExplainArgs),
    /// Make a test of an execution that has ended: what its tasks answered becomes mocks, what happened is expected
    Record(RecordArgs),
    /// Stop an execution
    Stop(StopArgs),
    /// Have an execution go on that failed, timed out or was stopped, where that happened
    Redrive(OneArgs),
    /// Have an execution go on that failed, timed out or was stopped, at a state of its top level
    Restart(RestartArgs),
    /// Pause an execution, or a workflow with all of its executions: nothing begins, and no timer fires, until it is resumed
    Pause(PauseArgs),
    /// Let an execution go on that was paused, or a workflow with all of its executions
    Resume(PauseArgs),
    /// List what runs and waits of a workflow with limits, by key
    Queues(QueuesArgs),
    /// Have executions that have not ended call the versions of functions that are served now, not those with which they began; with --definition also go on by the definition that is served
    Repin(RepinArgs),
    /// Remove executions that have ended, with their histories
    Remove(RemoveArgs),
    /// Answer a task that waits for its callback (.waitForTaskToken)
    Callback(CallbackArgs),
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Files with definitions, in JSON
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct TestArgs {
    /// Test files, in JSON; each names its definition
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Show what happened in each case, with its virtual time
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, Args)]
pub(super) struct DrawArgs {
    /// The file with the definition, in JSON
    file: PathBuf,
    /// Write SVG to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(super) fn workflow(command: &WorkflowCommand) -> ExitCode {
    match command {
        WorkflowCommand::Check(CheckArgs { files }) => each(files, check),
        WorkflowCommand::Test(TestArgs { files, verbose }) => each(files, |file| test(file, *verbose)),
        WorkflowCommand::Draw(DrawArgs { file, svg }) => {
            match read(file).and_then(|definition| draw(&definition, svg.as_deref())) {
                Ok(()) => ExitCode::SUCCESS,
                Err(Told) => FAILURE.into(),
            }
        }
        WorkflowCommand::Schema => print_line(&format!("{:#}", schema())),
        WorkflowCommand::Start(args) => executions::start(args),
        WorkflowCommand::List(args) => executions::list(args),
        WorkflowCommand::Show(args) => executions::show(args),
        WorkflowCommand::History(args) => executions::history(args),
        WorkflowCommand::Explain(args) => explain::explain(args),
        WorkflowCommand::Record(args) => record::record(args),
        WorkflowCommand::Stop(args) => executions::stop(args),
        WorkflowCommand::Redrive(args) => executions::redrive(args),
        WorkflowCommand::Restart(args) => executions::restart(args),
        WorkflowCommand::Pause(args) => executions::pause(args, true),
        WorkflowCommand::Resume(args) => executions::pause(args, false),
        WorkflowCommand::Queues(args) => executions::queues(args),
        WorkflowCommand::Repin(args) => repin::repin(args),
        WorkflowCommand::Remove(args) => remove::remove(args),
        WorkflowCommand::Callback(args) => executions::callback(args),
    }
}

/// It failed, and the user was told why.
struct Told;

/// Takes all files, also behind one with which something is wrong.
fn each(files: &[PathBuf], take: impl Fn(&Path) -> Result<(), Told>) -> ExitCode {
    let failed = files.iter().filter(|file| take(file).is_err()).count();
    if failed == 0 { ExitCode::SUCCESS } else { FAILURE.into() }
}

fn text(file: &Path) -> Result<String, Told> {
    fs::read_to_string(file).map_err(|error| {
        fail(format_args!("{}: {error}", file.display()));
        Told
    })
}

fn read(file: &Path) -> Result<Definition, Told> {
    Definition::parse(&text(file)?).map_err(|mistakes| {
        mistakes.iter().for_each(|mistake| say(format_args!("{}:{mistake}", file.display())));
        Told
    })
}

fn check(file: &Path) -> Result<(), Told> {
    let definition = read(file)?;
    print_line(&format!("{}: good; states: {}", file.display(), definition.states().len()));
    Ok(())
}

/// Runs the cases of one file.
fn test(file: &Path, is_verbose: bool) -> Result<(), Told> {
    let shown = file.display();
    let told = |problems: Vec<_>| {
        problems.iter().for_each(|problem| say(format_args!("{shown}:{problem}")));
        Told
    };
    let suite = Suite::parse(&text(file)?).map_err(told)?;
    // Where the test is, as a module of the same project.
    let definition = read(&file.parent().unwrap_or(Path::new("")).join(suite.workflow()))?;
    let problems = suite.check(&definition);
    if !problems.is_empty() {
        return Err(told(problems));
    }
    let results = suite.run(&definition);
    for result in &results {
        let CaseResult { name, problems, trace, elapsed_ms, .. } = result;
        let word = if result.passed() { "ok" } else { "FAILED" };
        print_line(&format!("{shown}: {name} ... {word} ({} s)", *elapsed_ms as f64 / 1e3));
        if is_verbose || !result.passed() {
            for line in trace {
                print_line(&format!("    {line}"));
            }
        }
        problems.iter().for_each(|problem| say(format_args!("{shown}: {name}: {problem}")));
    }
    let passed = results.iter().filter(|result| result.passed()).count();
    print_line(&format!("{shown}: {passed} passed, {} failed", results.len() - passed));
    if passed == results.len() { Ok(()) } else { Err(Told) }
}

fn draw(definition: &Definition, svg: Option<&Path>) -> Result<(), Told> {
    let Some(file) = svg else {
        print_line(draw::text(definition).trim_end());
        return Ok(());
    };
    fs::write(file, draw::svg(definition)).map_err(|error| {
        fail(format_args!("{}: {error}", file.display()));
        Told
    })
}
