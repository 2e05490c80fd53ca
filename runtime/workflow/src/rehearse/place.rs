//! Where values lie in the text of a test file, and keys that occur twice.
//!
//! `serde_json` gives no positions of values that it has accepted. This index is made in one pass over such a text. It nests no deeper than `serde_json`, which refuses
//! 128 levels, and keeps the places of the upper levels only: what lies below is data of the tests, of which no mistake is reported.

use std::collections::{HashMap, HashSet};

use super::limits::VALUE_CHARS_MAX;

/// Levels of which places are kept: `cases[0].mocks.State.ItemReader[0].callback.return` is the deepest one.
const LEVELS: usize = 8;

/// The places of a text.
#[derive(Debug)]
pub(super) struct Places {
    /// Byte offsets of the key (of the value, for elements) by path.
    offsets: HashMap<String, usize>,
    /// Offsets at which lines begin.
    lines: Vec<usize>,
    text: String,
}

/// A key that occurs again: the path of the member, and its offset.
pub(super) type Duplicate = (String, usize);

impl Places {
    /// The places of `text`, which is valid JSON, and the keys that occur twice.
    pub(super) fn of(text: &str) -> (Self, Vec<Duplicate>) {
        let mut scanner = Scanner { text, at: 0, offsets: HashMap::new(), duplicates: Vec::new() };
        scanner.value(Some(String::new()), 0);
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        (Self { offsets: scanner.offsets, lines, text: text.to_owned() }, scanner.duplicates)
    }

    /// The offset of the member or element at `path`; of the nearest value around it, if it is not there.
    pub(super) fn offset(&self, path: &str) -> usize {
        let mut path = path;
        loop {
            if let Some(offset) = self.offsets.get(path) {
                return *offset;
            }
            match path.rfind(['.', '[']) {
                Some(at) => path = path.get(..at).unwrap_or_default(),
                None => return self.offsets.get("").copied().unwrap_or(0),
            }
        }
    }

    /// Line and column, both from 1, of an offset; columns count characters.
    pub(super) fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        (line, self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1)
    }
}

/// The path of a member: `.key`, or `["key"]` for a key that is no plain name.
pub(super) fn member(path: &str, key: &str) -> String {
    let key = super::difference::cut(key, VALUE_CHARS_MAX);
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match (plain, path.is_empty()) {
        (true, true) => key,
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[\"{}\"]", key.escape_debug()),
    }
}

/// The path of an element.
pub(super) fn element(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    offsets: HashMap<String, usize>,
    duplicates: Vec<Duplicate>,
}

impl Scanner<'_> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// Goes past a value; `path` is none below the levels that are kept.
    fn value(&mut self, path: Option<String>, depth: usize) {
        self.space();
        if let Some(path) = &path {
            // A member has the place of its key.
            let at = self.at;
            self.offsets.entry(path.clone()).or_insert(at);
        }
        let path = path.filter(|_| depth < LEVELS);
        match self.peek() {
            b'{' => self.members(path.as_deref(), depth),
            b'[' => self.elements(path.as_deref(), depth),
            b'"' => drop(self.string()),
            _ => {
                while self.at < self.text.len() && !matches!(self.peek(), b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r') {
                    self.at += 1;
                }
            }
        }
    }

    /// Goes past a string, and gives it.
    fn string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while self.at < self.text.len() && self.peek() != b'"' {
            self.at += 1 + usize::from(self.peek() == b'\\');
        }
        self.at = (self.at + 1).min(self.text.len());
        self.text.get(start..self.at).and_then(|quoted| serde_json::from_str(quoted).ok()).unwrap_or_default()
    }

    /// Goes past a comma; false at the end of an array or object.
    fn comma(&mut self) -> bool {
        self.space();
        let more = self.peek() == b',';
        self.at += usize::from(self.at < self.text.len());
        more
    }

    /// Whether the array or object that begins here is empty; goes past it then.
    fn is_empty(&mut self, end: u8) -> bool {
        self.at += 1;
        self.space();
        let empty = self.peek() == end;
        self.at += usize::from(empty);
        empty
    }

    fn elements(&mut self, path: Option<&str>, depth: usize) {
        if self.is_empty(b']') {
            return;
        }
        for index in 0.. {
            self.value(path.map(|path| element(path, index)), depth + 1);
            if !self.comma() {
                return;
            }
        }
    }

    fn members(&mut self, path: Option<&str>, depth: usize) {
        if self.is_empty(b'}') {
            return;
        }
        let mut seen = HashSet::new();
        loop {
            self.space();
            let at = self.at;
            let key = self.string();
            let own = path.map(|path| member(path, &key));
            if let Some(own) = &own {
                self.offsets.entry(own.clone()).or_insert(at);
            }
            if seen.contains(&key) {
                self.duplicates.push((own.clone().unwrap_or_else(|| key.clone()), at));
            }
            seen.insert(key);
            self.space();
            self.at += usize::from(self.at < self.text.len());
            self.value(own, depth + 1);
            if !self.comma() {
                return;
            }
        }
    }
}
