//! The last lines that a function wrote to its standard error, for the admin API, and how many more it may write.
//!
//! Shared by all versions and all invocations of a function.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde::{Serialize, Serializer};
use tokio::sync::Notify;
use tracing::Level;

/// Lines that are kept.
const LINES_MAX: usize = 1_000;
/// Bytes of all lines that are kept.
const BYTES_MAX: usize = 256 << 10;
/// Time for which lines are counted together.
const WINDOW: Duration = Duration::from_secs(1);

/// A function's log.
#[derive(Debug)]
pub struct FunctionLog {
    lines_per_s_max: u64,
    state: Mutex<State>,
    more: Notify,
}

/// The invocation that writes lines.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// The version of the function.
    pub version: u64,
    /// The request's number among all that were admitted.
    pub request: u64,
    /// By what its client knows the request, where requests have ids.
    pub request_id: Option<Arc<str>>,
}

/// A line, and where it comes from.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// When it was written.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    /// How important it is.
    #[serde(serialize_with = "text")]
    pub level: Level,
    /// The function's version.
    pub version: u64,
    /// The request's number.
    pub request: u64,
    /// The request's id.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "id")]
    pub request_id: Option<Arc<str>>,
    /// What was written, without a newline at its end.
    pub message: Box<str>,
}

#[derive(Debug)]
struct State {
    lines: VecDeque<Arc<Line>>,
    bytes: usize,
    /// The number of the first line that is kept.
    first: u64,
    /// When the window began, and what came in it.
    window: Instant,
    taken: u64,
    dropped_now: u64,
    dropped: u64,
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is to be logged, after saying that so many were dropped before it.
    Line {
        /// How many.
        dropped: u64,
    },
    /// There were too many.
    Dropped,
}

impl Default for FunctionLog {
    fn default() -> FunctionLog {
        FunctionLog::new(u64::MAX)
    }
}

impl FunctionLog {
    /// A log without lines, which takes so many in a second.
    #[must_use]
    pub fn new(lines_per_s_max: u64) -> FunctionLog {
        let lines = VecDeque::new();
        let state = State { lines, bytes: 0, first: 0, window: Instant::now(), taken: 0, dropped_now: 0, dropped: 0 };
        FunctionLog { lines_per_s_max, state: Mutex::new(state), more: Notify::new() }
    }

    /// How many lines it takes in a second.
    #[must_use]
    pub const fn lines_per_s_max(&self) -> u64 {
        self.lines_per_s_max
    }

    /// Takes a line that came at `now`, or drops and counts it.
    pub fn push(&self, writer: &Writer, level: Level, line: &str, now: Instant) -> Taken {
        let mut state = self.state();
        if now.saturating_duration_since(state.window) >= WINDOW {
            (state.window, state.taken) = (now, 0);
        }
        if state.taken >= self.lines_per_s_max {
            state.dropped += 1;
            state.dropped_now += 1;
            return Taken::Dropped;
        }
        state.taken += 1;
        let dropped = std::mem::take(&mut state.dropped_now);
        if dropped > 0 {
            state.keep(writer, Level::WARN, &format!("({dropped} lines were dropped)"));
        }
        state.keep(writer, level, line);
        drop(state);
        self.more.notify_waiters();
        Taken::Line { dropped }
    }

    /// Lines that were dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.state().dropped
    }

    /// The last `count` lines that are kept, and the number of the next one.
    #[must_use]
    pub fn last(&self, count: usize) -> (Vec<Arc<Line>>, u64) {
        let state = self.state();
        let lines = state.lines.iter().skip(state.lines.len().saturating_sub(count)).cloned().collect();
        (lines, state.first + state.lines.len() as u64)
    }

    /// Lines from that number on, as far as they are kept, and the number of the next one; waits until there is one.
    pub async fn since(&self, number: u64) -> (Vec<Arc<Line>>, u64) {
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            // Registered before the look, so that a line that comes between both is heard of.
            more.as_mut().enable();
            {
                let state = self.state();
                let next = state.first + state.lines.len() as u64;
                if next > number {
                    let skipped = number.saturating_sub(state.first) as usize;
                    return (state.lines.iter().skip(skipped).cloned().collect(), next);
                }
            }
            more.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Line {
    /// As in the server's log: time, level, version, request, message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { level, version, message, .. } = self;
        write!(f, "{} {level:>5} v{version} ", humantime::format_rfc3339_millis(self.time))?;
        match &self.request_id {
            Some(id) => write!(f, "{id} {message}"),
            None => write!(f, "#{} {message}", self.request),
        }
    }
}

fn rfc3339<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_rfc3339_millis(*time))
}

fn text<S: Serializer>(value: &Level, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn id<S: Serializer>(value: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    value.as_deref().serialize(serializer)
}

impl State {
    fn keep(&mut self, writer: &Writer, level: Level, line: &str) {
        let Writer { version, request, request_id } = writer.clone();
        #[expect(clippy::disallowed_methods, reason = "operators read it on their clocks")]
        let time = SystemTime::now();
        let line = Line { time, level, version, request, request_id, message: line.into() };
        self.bytes += line.bytes();
        self.lines.push_back(Arc::new(line));
        while self.lines.len() > LINES_MAX || (self.bytes > BYTES_MAX && self.lines.len() > 1) {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.bytes());
            self.first += 1;
        }
    }
}

impl Line {
    fn bytes(&self) -> usize {
        self.message.len() + self.request_id.as_ref().map_or(0, |id| id.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(log: &FunctionLog, line: &str, now: Instant) -> Taken {
        log.push(&Writer::default(), Level::INFO, line, now)
    }

    #[test]
    fn a_line_says_when_how_important_it_is_and_from_which_request() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_790_000_000_123);
        let line = Line { time, level: Level::WARN, version: 3, request: 17, request_id: None, message: "low on tea".into() };
        assert_eq!(line.to_string(), "2026-09-21T14:13:20.123Z  WARN v3 #17 low on tea");
        let line = Line { request_id: Some("a-1".into()), ..line };
        assert_eq!(line.to_string(), "2026-09-21T14:13:20.123Z  WARN v3 a-1 low on tea");
        let json = serde_json::json!({
            "time": "2026-09-21T14:13:20.123Z", "level": "WARN", "version": 3, "request": 17, "request_id": "a-1", "message": "low on tea",
        });
        assert_eq!(serde_json::to_value(&line).unwrap(), json);
    }

    #[test]
    fn what_is_too_much_is_counted_and_said_with_the_next_line() {
        let log = FunctionLog::new(2);
        let now = Instant::now();
        let taken = [0, 1, 2, 3].map(|i| push(&log, &format!("line {i}"), now));
        let line = Taken::Line { dropped: 0 };
        assert_eq!(taken, [line, line, Taken::Dropped, Taken::Dropped]);
        assert_eq!(push(&log, "later", now + WINDOW), Taken::Line { dropped: 2 });
        assert_eq!(log.dropped(), 2);
        let lines: Vec<String> = log.last(9).0.iter().map(|line| line.message.to_string()).collect();
        assert_eq!(lines, ["line 0", "line 1", "(2 lines were dropped)", "later"]);
    }

    #[test]
    fn the_last_lines_are_kept_and_their_numbers_go_on() {
        let log = FunctionLog::default();
        let now = Instant::now();
        for i in 0..LINES_MAX + 5 {
            push(&log, &i.to_string(), now);
        }
        let (lines, next) = log.last(2);
        assert_eq!((&*lines[0].message, &*lines[1].message, next), ("1003", "1004", 1_005));
        assert_eq!(log.last(usize::MAX).0.len(), LINES_MAX);
        for _ in 0..3 {
            push(&log, &"x".repeat(BYTES_MAX), now);
        }
        assert_eq!(log.last(usize::MAX).0.len(), 1, "one line is always kept");
    }

    #[test]
    fn who_follows_gets_every_line_once() {
        let log = Arc::new(FunctionLog::default());
        let writer = Arc::clone(&log);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let thread = std::thread::spawn(move || {
            for i in 0..500 {
                push(&writer, &i.to_string(), Instant::now());
            }
        });
        let mut got = Vec::new();
        let mut next = 0;
        while got.len() < 500 {
            let (lines, number) = runtime.block_on(log.since(next));
            got.extend(lines.iter().map(|line| line.message.parse::<usize>().unwrap()));
            next = number;
        }
        thread.join().unwrap();
        assert_eq!(got, (0..500).collect::<Vec<_>>());
    }
}
