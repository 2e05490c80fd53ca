//! A function's standard error, in the log: line by line, with control bytes escaped, bounded.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use super::{FunctionLog, Process, Taken};

/// The longest line; longer ones are broken.
const LINE_BYTES_MAX: usize = 4 << 10;
/// What one invocation may log; the rest is counted and dropped.
const INVOCATION_BYTES_MAX: usize = 64 << 10;

/// How important a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// For whoever looks for something.
    Trace,
    /// For developers.
    Debug,
    /// For operators.
    Info,
    /// Something may be wrong.
    Warn,
    /// Something is.
    Error,
}

impl Level {
    /// By its number, from 0 for the least important.
    #[must_use]
    pub(super) fn of(number: u32) -> Option<Level> {
        [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error].get(number as usize).copied()
    }
}

/// Bytes on their way to the log.
#[derive(Debug)]
pub struct LogLines {
    process: Arc<Process>,
    log: Arc<FunctionLog>,
    line: Vec<u8>,
    logged: usize,
    dropped: u64,
}

impl LogLines {
    /// Lines of an invocation of that function, for its log.
    #[must_use]
    pub fn new(process: Arc<Process>, log: Arc<FunctionLog>) -> LogLines {
        LogLines { process, log, line: Vec::new(), logged: 0, dropped: 0 }
    }

    /// Takes bytes; every line that they end is logged.
    pub fn write(&mut self, bytes: &[u8]) {
        let room = INVOCATION_BYTES_MAX - self.logged;
        let (kept, dropped) = bytes.split_at(room.min(bytes.len()));
        self.logged += kept.len();
        self.dropped += dropped.len() as u64;
        for part in kept.split_inclusive(|&byte| byte == b'\n') {
            let (text, ends) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            for piece in text.chunks(LINE_BYTES_MAX) {
                if self.line.len() + piece.len() > LINE_BYTES_MAX {
                    self.end_line();
                }
                self.line.extend_from_slice(piece);
            }
            if ends {
                self.end_line();
            }
        }
    }

    /// Takes a message of its own, of one line or more.
    pub(super) fn message(&mut self, level: Level, bytes: &[u8]) {
        let kept = &bytes[..bytes.len().min(LINE_BYTES_MAX).min(INVOCATION_BYTES_MAX - self.logged)];
        self.logged += kept.len();
        self.dropped += (bytes.len() - kept.len()) as u64;
        self.log(level, &escaped(kept));
    }

    fn end_line(&mut self) {
        self.log(Level::Info, &escaped(&self.line));
        self.line.clear();
    }

    fn log(&self, level: Level, line: &str) {
        let function = &self.process.name;
        let Taken::Line { dropped } = self.log.push(line, Instant::now()) else { return };
        if dropped > 0 {
            tracing::warn!(target: "sledge::function", function, lines = dropped, "logged too fast; these were dropped");
        }
        match level {
            Level::Trace => tracing::trace!(target: "sledge::function", function, "{line}"),
            Level::Debug => tracing::debug!(target: "sledge::function", function, "{line}"),
            Level::Info => tracing::info!(target: "sledge::function", function, "{line}"),
            Level::Warn => tracing::warn!(target: "sledge::function", function, "{line}"),
            Level::Error => tracing::error!(target: "sledge::function", function, "{line}"),
        }
    }
}

impl Drop for LogLines {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
        if self.dropped > 0 {
            tracing::warn!(target: "sledge::function", function = self.process.name, bytes = self.dropped, "logged too much; the rest was dropped");
        }
    }
}

/// Text for a terminal: what is not UTF-8 and every control character is shown by its number.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\t' => text.push(c),
                // Besides control characters those that turn the direction of text, with which a line can be made to read otherwise.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => text.extend(c.escape_unicode()),
                c if c.is_control() => text.extend(c.escape_default()),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_bytes_do_not_reach_the_terminal() {
        assert_eq!(escaped(b"a\x1b[31mb\r\x00\xff\tc"), "a\\u{1b}[31mb\\r\\u{0}\\xff\tc");
        assert_eq!(escaped("grün \u{202e}x".as_bytes()), "grün \\u{202e}x");
    }

    #[test]
    fn lines_are_bounded_and_what_is_too_much_is_counted() {
        let mut lines = LogLines::new(Arc::default(), Arc::default());
        lines.write(&[b'x'; 3 * LINE_BYTES_MAX + 5]);
        assert_eq!(lines.line.len(), 5);
        lines.write(b"\nabc");
        assert_eq!(lines.line, b"abc");
        lines.write(&vec![b'\n'; INVOCATION_BYTES_MAX]);
        assert_eq!(lines.logged, INVOCATION_BYTES_MAX);
        assert_eq!(lines.dropped, 3 * LINE_BYTES_MAX as u64 + 5 + 4);
    }
}
