//! What a client or user that waits is told meanwhile: what is being done, and for how long already.

use std::convert::Infallible;
use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// What is over sooner is not spoken of.
const SILENCE: Duration = Duration::from_secs(1);
/// Between two lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Between two pictures on a terminal.
const PICTURE_INTERVAL: Duration = Duration::from_millis(100);
/// What turns on a terminal.
const TURNING: [char; 4] = ['|', '/', '-', '\\'];

/// Where notices go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Readers of the log: lines.
    Log,
    /// To the user of the command: one line that changes on a terminal, else lines.
    Caller,
}

/// Does `work`, and says meanwhile that it is being done. `what` is asked each time, in another thread.
pub fn during<T, W: fmt::Display>(to: To, what: impl Fn() -> W + Sync, work: impl FnOnce() -> T) -> T {
    let (working, over) = mpsc::channel::<Infallible>();
    thread::scope(|scope| {
        // Where there is no thread, nothing is said.
        let _ = thread::Builder::new().name("notice".to_owned()).spawn_scoped(scope, || tell(to, &what, over));
        let result = work();
        drop(working);
        result
    })
}

fn tell<W: fmt::Display>(to: To, what: &impl Fn() -> W, over: Receiver<Infallible>) {
    let began = Instant::now();
    let is_drawn = to == To::Caller && std::io::stderr().is_terminal();
    let mut said = 0;
    let interval = if is_drawn { PICTURE_INTERVAL } else { LINE_INTERVAL };
    while let Err(RecvTimeoutError::Timeout) = over.recv_timeout(if said == 0 { SILENCE } else { interval }) {
        let (what, seconds) = (what(), began.elapsed().as_secs());
        match to {
            To::Log => tracing::info!("{what}, {seconds} s"),
            To::Caller if is_drawn => draw(format_args!("{} {what}, {seconds} s", TURNING[said % TURNING.len()])),
            // Where the reader of standard error has gone, the work goes on.
            To::Caller => drop(writeln!(std::io::stderr(), "sledge: {what}, {seconds} s")),
        }
        said += 1;
    }
    if is_drawn && said > 0 {
        draw(format_args!(""));
    }
}

/// Writes over the line; a terminal that has gone needs none.
fn draw(text: fmt::Arguments<'_>) {
    let mut errors = std::io::stderr().lock();
    let _ = write!(errors, "\r{text}\x1b[K").and_then(|()| errors.flush());
}
