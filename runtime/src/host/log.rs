//! A function's standard error, in the log: line by line, with control bytes escaped, bounded.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use tracing::Level;

use super::{Call, FunctionLog, Output, Process, Stop, Taken, Writer};
use crate::txn::held::Held;

/// The longest line; longer ones are broken.
const LINE_BYTES_MAX: usize = 4 << 10;
/// What one invocation may log; the rest is counted and dropped.
pub(super) const INVOCATION_BYTES_MAX: usize = 64 << 10;

/// A level by its number in `sledge:note`, from 0 for the least important.
pub(super) fn level(number: u32) -> Option<Level> {
    [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR].get(number as usize).copied()
}

impl Call<'_> {
    /// Says something to the operator: in the log, or where standard error goes.
    ///
    /// # Errors
    /// When the call does not open the log, or a file in its place fails.
    pub(super) fn say(&mut self, level: Level, text: &str) -> Result<(), Stop> {
        match self.context.ports.log()? {
            Output::Log(lines) => lines.message(level, text.as_bytes()),
            other => {
                other.write(text.as_bytes())?;
                other.write(b"\n")?;
            }
        }
        Ok(())
    }
}

/// Bytes on their way to the log.
#[derive(Debug)]
pub struct LogLines {
    process: Arc<Process>,
    log: Arc<FunctionLog>,
    writer: Writer,
    line: Vec<u8>,
    logged: usize,
    dropped: u64,
    /// Where lines wait of a run that is ahead.
    held: Option<Arc<Held>>,
}

impl LogLines {
    /// Lines of that invocation of a function, for its log.
    #[must_use]
    pub fn new(process: Arc<Process>, log: Arc<FunctionLog>, writer: Writer) -> LogLines {
        LogLines { process, log, writer, line: Vec::new(), logged: 0, dropped: 0, held: None }
    }

    /// The same, where lines wait until a run that is ahead is committed.
    #[must_use]
    pub fn held(mut self, held: Option<Arc<Held>>) -> LogLines {
        self.held = held;
        self
    }

    /// Where they wait, if they do.
    #[must_use]
    pub const fn holder(&self) -> Option<&Arc<Held>> {
        self.held.as_ref()
    }

    /// Whose lines they are.
    #[must_use]
    pub const fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Whether there was anything to log.
    #[must_use]
    pub const fn has_logged(&self) -> bool {
        self.logged > 0 || self.dropped > 0
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
        self.log(Level::INFO, &escaped(&self.line));
        self.line.clear();
    }

    fn log(&self, level: Level, line: &str) {
        let Some(held) = &self.held else { return log(&self.process, &self.log, &self.writer, (level, line)) };
        let (process, to, writer) = (Arc::clone(&self.process), Arc::clone(&self.log), self.writer.clone());
        let line = line.to_owned();
        held.put(Box::new(move || log(&process, &to, &writer, (level, &line))));
    }
}

/// Writes a line to the log of the function, and to the server's.
fn log(process: &Process, log: &FunctionLog, writer: &Writer, (level, line): (Level, &str)) {
    let function = &process.name;
    let Writer { version, request, ref request_id } = *writer;
    let request_id = request_id.as_deref();
    let Taken::Line { dropped } = log.push(writer, level, line, Instant::now()) else { return };
    if dropped > 0 {
        tracing::warn!(target: "sledge::function", function, lines = dropped, "logged too fast; these were dropped");
    }
    match level {
        Level::TRACE => tracing::trace!(target: "sledge::function", function, version, request, request_id, "{line}"),
        Level::DEBUG => tracing::debug!(target: "sledge::function", function, version, request, request_id, "{line}"),
        Level::INFO => tracing::info!(target: "sledge::function", function, version, request, request_id, "{line}"),
        Level::WARN => tracing::warn!(target: "sledge::function", function, version, request, request_id, "{line}"),
        Level::ERROR => tracing::error!(target: "sledge::function", function, version, request, request_id, "{line}"),
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
        let mut lines = LogLines::new(Arc::default(), Arc::default(), Writer::default());
        lines.write(&[b'x'; 3 * LINE_BYTES_MAX + 5]);
        assert_eq!(lines.line.len(), 5);
        lines.write(b"\nabc");
        assert_eq!(lines.line, b"abc");
        lines.write(&vec![b'\n'; INVOCATION_BYTES_MAX]);
        assert_eq!(lines.logged, INVOCATION_BYTES_MAX);
        assert_eq!(lines.dropped, 3 * LINE_BYTES_MAX as u64 + 5 + 4);
    }
}
