//! CSV (RFC 4180): text to rows, one at a time, so that a reader stops where it has enough.
//!
//! Rows end with LF or CRLF. A field in quotes may hold delimiters, ends of lines and doubled quotes. Empty lines are no rows.

use super::DatasetError;
use super::limits::COLUMNS_MAX;

/// A text of which rows are taken.
pub(super) struct Rows<'t> {
    /// What is left of it.
    rest: &'t str,
    delimiter: u8,
    /// The line at which `rest` begins, from 1.
    line: usize,
}

/// A row, and the line at which it begins.
pub(super) type Row = (usize, Vec<String>);

impl<'t> Rows<'t> {
    pub(super) fn new(text: &'t str, delimiter: u8) -> Self {
        Self { rest: text.strip_prefix('\u{feff}').unwrap_or(text), delimiter, line: 1 }
    }

    /// The next row; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Row>, DatasetError> {
        while let Some(rest) = self.rest.strip_prefix('\n').or_else(|| self.rest.strip_prefix("\r\n")) {
            (self.rest, self.line) = (rest, self.line + 1);
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (line, mut fields) = (self.line, Vec::new());
        loop {
            let wrong = |message| DatasetError::Row { line, message };
            if fields.len() >= COLUMNS_MAX {
                return Err(wrong("the row has more than 1,000 columns"));
            }
            fields.push(if self.rest.starts_with('"') { self.quoted().map_err(wrong)? } else { self.plain() });
            let rest = self.rest;
            if let Some(rest) = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')) {
                (self.rest, self.line) = (rest, self.line + 1);
                return Ok(Some((line, fields)));
            }
            match rest.strip_prefix(char::from(self.delimiter)) {
                Some(rest) => self.rest = rest,
                None if rest.is_empty() => return Ok(Some((line, fields))),
                None => return Err(wrong("something stands behind the closing quote of a field")),
            }
        }
    }

    /// A field without quotes: as far as the next delimiter or the end of the line.
    fn plain(&mut self) -> String {
        let bytes = self.rest.as_bytes();
        let end = bytes.iter().position(|byte| *byte == self.delimiter || *byte == b'\n').unwrap_or(bytes.len());
        let is_crlf = bytes.get(end) == Some(&b'\n') && end > 0 && bytes.get(end - 1) == Some(&b'\r');
        let end = if is_crlf { end - 1 } else { end };
        // Both are ASCII, and so boundaries of characters.
        let (field, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        field.to_owned()
    }

    /// A field in quotes, behind which the rest begins.
    fn quoted(&mut self) -> Result<String, &'static str> {
        let mut field = String::new();
        let mut rest = self.rest.get(1..).unwrap_or_default();
        loop {
            let Some((before, after)) = rest.split_once('"') else { return Err("a quote is not closed") };
            field.push_str(before);
            match after.strip_prefix('"') {
                Some(after) => {
                    field.push('"');
                    rest = after;
                }
                None => {
                    self.line += field.matches('\n').count();
                    self.rest = after;
                    return Ok(field);
                }
            }
        }
    }
}
