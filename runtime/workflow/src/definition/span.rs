//! Where each value of a JSON text lies: an index beside the parsed document, made in one pass over a text that the JSON reader has accepted.
//!
//! The reader (`serde_json`) gives positions of syntax errors alone. This index gives the byte offset of each value and of each member's key, and finds keys that
//! occur twice, of which the reader keeps the last one. It nests no deeper than the reader, which refuses 128 levels.

use std::collections::HashSet;
use std::rc::Rc;

/// A value: where it starts, and what is in it.
#[derive(Debug)]
pub(crate) struct Span {
    start: usize,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Scalar,
    Array(Vec<Span>),
    Object(Vec<Member>),
}

#[derive(Debug)]
struct Member {
    key: String,
    key_start: usize,
    value: Span,
}

/// One step from a value to a value in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The member of that name.
    Key(Rc<str>),
    /// The element at that index.
    Index(usize),
}

/// A key that occurs again in an object: the path of the object, the key, and the offset of the later one.
pub(crate) type Duplicate = (Vec<Step>, String, usize);

impl Span {
    /// The index of `text`, which is valid JSON, and the keys that occur twice in an object.
    pub(crate) fn of(text: &str) -> (Self, Vec<Duplicate>) {
        let mut scanner = Scanner { text, at: 0, path: Vec::new(), duplicates: Vec::new() };
        let span = scanner.value();
        (span, scanner.duplicates)
    }

    /// The offset of what `path` leads to, or of the last value on the way that is there. With `key`, the offset of the last member's key.
    pub(crate) fn offset(&self, path: &[Step], key: bool) -> usize {
        let mut span = self;
        for (position, step) in path.iter().enumerate() {
            let last = position + 1 == path.len();
            match (step, &span.content) {
                (Step::Key(name), Content::Object(members)) => match members.iter().rev().find(|member| *member.key == **name) {
                    Some(member) if last && key => return member.key_start,
                    Some(member) => span = &member.value,
                    None => break,
                },
                (Step::Index(index), Content::Array(elements)) => match elements.get(*index) {
                    Some(element) => span = element,
                    None => break,
                },
                _ => break,
            }
        }
        span.start
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    path: Vec<Step>,
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

    /// Goes past a comma; false if there is none, at the end of an array or object.
    fn comma(&mut self) -> bool {
        self.space();
        let more = self.peek() == b',';
        self.at += usize::from(self.at < self.text.len());
        more
    }

    fn value(&mut self) -> Span {
        self.space();
        let start = self.at;
        let content = match self.peek() {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => {
                self.string();
                Content::Scalar
            }
            _ => {
                while self.at < self.text.len() && !matches!(self.peek(), b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r') {
                    self.at += 1;
                }
                Content::Scalar
            }
        };
        Span { start, content }
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

    fn array(&mut self) -> Content {
        self.at += 1;
        let mut elements = Vec::new();
        self.space();
        if self.peek() == b']' {
            self.at += 1;
            return Content::Array(elements);
        }
        loop {
            self.path.push(Step::Index(elements.len()));
            elements.push(self.value());
            self.path.pop();
            if !self.comma() {
                return Content::Array(elements);
            }
        }
    }

    fn object(&mut self) -> Content {
        self.at += 1;
        let mut members = Vec::new();
        let mut seen = HashSet::new();
        self.space();
        if self.peek() == b'}' {
            self.at += 1;
            return Content::Object(members);
        }
        loop {
            self.space();
            let key_start = self.at;
            let key = self.string();
            if !seen.insert(key.clone()) {
                self.duplicates.push((self.path.clone(), key.clone(), key_start));
            }
            self.space();
            self.at += 1;
            self.path.push(Step::Key(key.as_str().into()));
            let value = self.value();
            self.path.pop();
            members.push(Member { key, key_start, value });
            if !self.comma() {
                return Content::Object(members);
            }
        }
    }
}

/// Line and column, both from 1, of a byte offset; columns count characters.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let offset = (0..=offset.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let before = text.get(..offset).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before.get(line_start..).unwrap_or_default().chars().count() + 1)
}
