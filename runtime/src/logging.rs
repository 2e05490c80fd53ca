//! The log: text or JSON on standard error.
//!
//! A server writes it from a thread of its own, so that a terminal or a pipe that is not read holds up no request; lines that do not fit into the
//! queue are dropped and counted.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

use clap::ValueEnum;
use tracing::Level;
use tracing::subscriber::set_global_default;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::confine;

/// Environment variable that says what is logged, such as `debug` or `sledge=info`.
const LOG_VARIABLE: &str = "SLEDGE_LOG";
/// Lines that wait to be written.
const QUEUE_LINES_MAX: usize = 4 << 10;

/// Where lines go that are queued.
static QUEUE: OnceLock<NonBlocking> = OnceLock::new();
/// Counts the lines that did not fit.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For machines: a JSON object a line.
    Json,
}

/// Sends the log to standard error, line by line as it comes: for commands that end soon.
pub fn direct(level: Level) {
    init(level, Format::Text, io::stderr);
}

/// The same, until it is [queued](queue).
pub fn queueable(level: Level, format: Format) {
    init(level, format, Late);
}

/// From now on, sends what is [queueable] to standard error through a thread of its own, which writes what is left when the guard is dropped. Not
/// earlier than a server has given up its privileges, which that thread would keep.
pub fn queue() -> WorkerGuard {
    let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(QUEUE_LINES_MAX).thread_name("log");
    // Signals are for the main thread, which may not have said so yet.
    let (writer, guard) = confine::without_signals(|| builder.finish(io::stderr()));
    // Set once, as is the log.
    let _ = DROPPED.set(writer.error_counter());
    let _ = QUEUE.set(writer);
    guard
}

/// Writes lines where they go now.
struct Late;

impl<'a> MakeWriter<'a> for Late {
    type Writer = Box<dyn io::Write>;

    fn make_writer(&'a self) -> Box<dyn io::Write> {
        match QUEUE.get() {
            Some(queue) => Box::new(queue.clone()),
            None => Box::new(io::stderr()),
        }
    }
}

/// Lines of the log that were dropped, because they were not taken in time.
#[must_use]
pub fn dropped() -> u64 {
    DROPPED.get().map_or(0, |counter| counter.dropped_lines() as u64)
}

fn init(level: Level, format: Format, writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) {
    let wanted = std::env::var(LOG_VARIABLE).ok().and_then(|wanted| wanted.parse::<Targets>().ok());
    let targets = wanted.unwrap_or_else(|| Targets::new().with_default(level));
    let lines = fmt::layer().with_writer(writer);
    let registry = tracing_subscriber::registry().with(targets);
    // Fails where a log is set up already; then that one is used. Not `try_init`: with some features of tracing-subscriber it takes the lines of the crate `log`, too.
    let _ = match format {
        Format::Text => set_global_default(registry.with(lines.with_ansi(io::stderr().is_terminal()))),
        Format::Json => {
            set_global_default(registry.with(lines.json().flatten_event(true).with_current_span(false).with_span_list(false)))
        }
    };
}
