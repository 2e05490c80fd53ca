//! Reads that wait, since reading ahead was wrong each time (speculation.md, S5, C7).
//!
//! A state that reads a key before an earlier state has written it is squashed, and runs again. If that happens [`SQUASHES`] times in a row with the same two states and keys that are alike, such a read
//! waits: until the writer has written a key of that template, or has ended. Where the writer turns out not to write it, mostly, reads wait no longer: each wait in vain counts one, one that was not
//! takes [`USEFUL`] back, and [`VAIN_MAX`] are too many.

use serde::Serialize;
use sledge_workflow::definition::StateIndex;

use super::bounded::{Bounded, Weigh};
use super::shown;
use crate::kv::BucketKey;
use crate::txn::contention::alike;

/// Squashes in a row after which a read waits.
pub const SQUASHES: u8 = 3;
/// Waits in vain after which it does not any more.
pub const VAIN_MAX: u8 = 16;
/// So many waits in vain are made up for by one that was not.
pub const USEFUL: u8 = 4;
/// Dependences of one reader that are known.
const ROWS_MAX: usize = 32;

/// A state that reads what an earlier one may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reader {
    /// The fingerprint of the workflow's definition.
    pub workflow: u64,
    /// The state.
    pub state: StateIndex,
}

/// Which states read what others write after them.
#[derive(Debug)]
pub struct Stalls {
    readers: Bounded<Reader, Rows>,
}

/// What a reader depends on, in the order in which that was learned.
#[derive(Debug, Default)]
struct Rows(Vec<Row>);

#[derive(Debug)]
struct Row {
    writer: StateIndex,
    /// What the keys have in common.
    template: Box<str>,
    squashes: u8,
    vain: u8,
}

impl Row {
    const fn waits(&self) -> bool {
        self.squashes >= SQUASHES
    }
}

impl Weigh for Rows {
    fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Row>() + self.0.iter().map(|row| row.template.len()).sum::<usize>()
    }
}

impl Rows {
    fn squashed(&mut self, writer: StateIndex, template: &str) {
        let is_it = |row: &Row| row.writer == writer && *row.template == *template;
        if !self.0.iter().any(is_it) {
            if self.0.len() >= ROWS_MAX {
                self.0.remove(0);
            }
            self.0.push(Row { writer, template: template.into(), squashes: 0, vain: 0 });
        }
        for row in self.0.iter_mut().filter(|row| is_it(row)) {
            row.squashes = row.squashes.saturating_add(1);
        }
    }
}

impl Stalls {
    /// Nothing yet, and room for so many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Stalls {
        Stalls { readers: Bounded::new(bytes_max, usize::MAX) }
    }

    /// A run of the reader was squashed: the writer has written a key that it had read before.
    pub fn squashed(&mut self, reader: Reader, writer: StateIndex, key: &BucketKey) {
        let template = alike(key);
        self.readers.change(reader, Rows::default, |rows| rows.squashed(writer, &template));
    }

    /// An execution was committed in which no run of the reader was squashed, though one ran ahead: what it was squashed for before was not in a row.
    pub fn kept(&mut self, reader: Reader) {
        let Some(rows) = self.readers.peek(&reader) else { return };
        if rows.0.iter().all(Row::waits) {
            return;
        }
        if rows.0.iter().any(Row::waits) {
            self.readers.change(reader, Rows::default, |rows| rows.0.retain(Row::waits));
        } else {
            self.readers.remove(&reader);
        }
    }

    /// Whether a read of that key waits for the writer, which has not ended and has not written it.
    #[must_use]
    pub fn waits(&self, reader: Reader, writer: StateIndex, key: &BucketKey) -> bool {
        let Some(rows) = self.readers.peek(&reader) else { return false };
        let mut rows = rows.0.iter().filter(|row| row.waits() && row.writer == writer).peekable();
        // Most readers wait for nothing: then the template is not made.
        rows.peek().is_some() && {
            let template = alike(key);
            rows.any(|row| *row.template == *template)
        }
    }

    /// A read has waited for the writer, which has written a key of the template, or has ended without.
    pub fn waited(&mut self, reader: Reader, writer: StateIndex, key: &BucketKey, has_written: bool) {
        if !self.waits(reader, writer, key) {
            return;
        }
        let template = alike(key);
        let settle = |row: &mut Row| {
            if row.writer != writer || *row.template != *template {
                return true;
            }
            row.vain = if has_written { row.vain.saturating_sub(USEFUL) } else { row.vain + 1 };
            row.vain < VAIN_MAX
        };
        self.readers.change(reader, Rows::default, |rows| rows.0.retain_mut(settle));
        if self.readers.peek(&reader).is_some_and(|rows| rows.0.is_empty()) {
            self.readers.remove(&reader);
        }
    }

    /// Drops what is known of a workflow.
    pub fn forget(&mut self, workflow: u64) {
        self.readers.retain(|reader| reader.workflow != workflow);
    }

    /// Bytes of all of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.readers.bytes()
    }

    /// Drops what was not learned for longest; false where there is nothing.
    pub fn evict(&mut self) -> bool {
        self.readers.evict()
    }

    /// All that is known, for people.
    #[must_use]
    pub fn known(&self) -> Vec<KnownStall> {
        let mut known: Vec<_> = self.readers.iter().collect();
        known.sort_unstable_by_key(|(reader, _)| **reader);
        let rows = known.into_iter().flat_map(|(reader, rows)| rows.0.iter().map(|row| (*reader, row)));
        let known = rows.map(|(reader, row)| KnownStall {
            workflow: shown(reader.workflow),
            reader: reader.state,
            writer: row.writer,
            template: row.template.to_string(),
            squashes: row.squashes,
            vain: row.vain,
            waits: row.waits(),
        });
        known.collect()
    }
}

/// What a state reads that an earlier one writes.
#[derive(Clone, Debug, Serialize)]
pub struct KnownStall {
    /// The fingerprint of the workflow's definition.
    pub workflow: String,
    /// The number of the state that reads.
    pub reader: StateIndex,
    /// That of the state that writes.
    pub writer: StateIndex,
    /// What the keys have in common; `#` is a number.
    pub template: String,
    /// Squashes in a row.
    pub squashes: u8,
    /// Waits in vain.
    pub vain: u8,
    /// Whether such a read waits.
    pub waits: bool,
}

#[cfg(test)]
mod tests {
    use super::super::tests::state;
    use super::*;
    use crate::kv::BucketName;

    const READER: fn() -> Reader = || Reader { workflow: 1, state: state(5) };

    fn key(name: &str) -> BucketKey {
        BucketName::new(b"b").unwrap().key(name.as_bytes()).unwrap()
    }

    fn squashed(stalls: &mut Stalls, times: u8) {
        (0..times).for_each(|number| stalls.squashed(READER(), state(2), &key(&format!("user:{number}"))));
    }

    #[test]
    fn a_read_waits_after_three_squashes_in_a_row_by_the_same_writer_over_keys_that_are_alike() {
        let mut stalls = Stalls::new(1 << 20);
        squashed(&mut stalls, 2);
        stalls.squashed(READER(), state(3), &key("user:1"));
        stalls.squashed(READER(), state(2), &key("cart:1"));
        assert!(!stalls.waits(READER(), state(2), &key("user:7")));
        stalls.kept(READER());
        assert_eq!(stalls.bytes(), 0, "none of them counts any more");
        squashed(&mut stalls, 2);
        assert!(!stalls.waits(READER(), state(2), &key("user:7")), "not in a row");
        squashed(&mut stalls, 1);
        let waits = |reader, writer, name| stalls.waits(reader, state(writer), &key(name));
        assert!(waits(READER(), 2, "user:777"));
        assert!(!waits(READER(), 3, "user:7") && !waits(READER(), 2, "users:7"));
        assert!(
            !waits(Reader { workflow: 2, ..READER() }, 2, "user:7")
                && !waits(Reader { state: state(6), ..READER() }, 2, "user:7")
        );
        stalls.squashed(READER(), state(3), &key("user:1"));
        stalls.kept(READER());
        assert!(stalls.waits(READER(), state(2), &key("user:7")), "one that waits is not squashed, which says nothing");
        assert_eq!(stalls.known().len(), 1);
    }

    #[test]
    fn a_read_that_waits_in_vain_waits_no_longer() {
        let mut stalls = Stalls::new(1 << 20);
        squashed(&mut stalls, SQUASHES);
        let user = key("user:1");
        let mut wait = |has_written| {
            stalls.waited(READER(), state(2), &user, has_written);
            stalls.waits(READER(), state(2), &user)
        };
        // The writer writes in one of four executions.
        for _ in 0..100 {
            assert!(wait(false) && wait(false) && wait(false) && wait(true));
        }
        (1..VAIN_MAX).for_each(|number| assert!(wait(false), "{number}"));
        assert!(wait(true), "four are made up for");
        (0..USEFUL).for_each(|_| assert!(wait(false)));
        assert!(!wait(false) && !wait(false));
        assert_eq!(stalls.bytes(), 0);
        squashed(&mut stalls, SQUASHES);
        assert!(stalls.waits(READER(), state(2), &user), "it is learned again");
    }

    #[test]
    fn the_table_is_bounded_and_a_workflow_is_forgotten() {
        let mut stalls = Stalls::new(50_000);
        for number in 0..1_000_u32 {
            let name: String = number.to_string().bytes().map(|digit| char::from(digit + 50)).collect();
            stalls.squashed(READER(), state(number), &key(&name));
            stalls.squashed(Reader { workflow: 2, state: state(number) }, state(0), &key(&name));
            assert!(stalls.bytes() <= 50_000);
        }
        assert_eq!(stalls.readers.peek(&READER()).unwrap().0.len(), ROWS_MAX);
        stalls.forget(2);
        assert_eq!(stalls.known().len(), ROWS_MAX);
        stalls.forget(1);
        assert_eq!(stalls.bytes(), 0);
    }
}
