//! Which versions of functions executions are pinned to.
//!
//! A [`Set`] names versions: functions, and the digest of each. It is written to the journal once, and executions refer to it by its number; so thousands that began with the same versions share
//! one. [`Pins`] are those of one execution in memory. The [`Table`] counts for each set the executions that have not ended, in memory or only in the journal: what no execution holds may be removed.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blake3::Hash;
use serde::{Deserialize, Serialize};
use sledge_workflow::definition::{Definition, Resource};
use tokio::sync::{Mutex, Notify, Semaphore};

/// Sets of one execution: that with which it began, and one for each function that a task has named by its input alone. Functions beyond that are not pinned.
pub const SETS_MAX: usize = 64;
/// Functions of one set.
pub const FUNCTIONS_MAX: usize = 1_024;
/// How often the log is told of a version that is missing, and how long a version is not tried again that could not be kept.
const AGAIN: Duration = Duration::from_secs(60);
/// Versions of which the table knows when that was.
const LATELY_MAX: usize = 1_024;
/// Tasks that look for versions which are not served, at the same time.
const LOADS_MAX: usize = 16;
/// Definitions whose functions the table knows.
const NAMES_MAX: usize = 1_024;

/// Versions of functions, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set(Vec<(Arc<str>, Hash)>);

/// The same as it is written.
#[derive(Serialize, Deserialize)]
struct Written(Vec<(Arc<str>, String)>);

impl Set {
    /// Of these; of two with the same name the first.
    #[must_use]
    pub fn new(mut versions: Vec<(Arc<str>, Hash)>) -> Set {
        versions.sort_by(|(one, _), (other, _)| one.cmp(other));
        versions.dedup_by(|(one, _), (other, _)| one == other);
        versions.truncate(FUNCTIONS_MAX);
        Set(versions)
    }

    /// All of them, by name.
    #[must_use]
    pub fn versions(&self) -> &[(Arc<str>, Hash)] {
        &self.0
    }

    /// The digest of that function.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Hash> {
        let index = self.0.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(self.0.get(index)?.1)
    }

    /// By what it is found: a part of the digest of what it says.
    #[must_use]
    pub fn number(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        for (name, digest) in &self.0 {
            // Names hold no zeros.
            hasher.update(name.as_bytes()).update(&[0]).update(digest.as_bytes());
        }
        let hash = hasher.finalize();
        hash.as_bytes().first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
    }

    /// As it is written.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let written = Written(self.0.iter().map(|(name, digest)| (Arc::clone(name), digest.to_hex().to_string())).collect());
        // Texts always serialise.
        serde_json::to_vec(&written).unwrap_or_default()
    }

    /// As it was written.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(json: &[u8]) -> Result<Set, String> {
        let Written(versions) = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let version =
            |(name, digest): (Arc<str>, String)| Ok((name, Hash::from_hex(&digest).map_err(|error| error.to_string())?));
        Ok(Set::new(versions.into_iter().map(version).collect::<Result<_, String>>()?))
    }
}

/// What is known of sets. It belongs to the thread of executions.
#[derive(Debug)]
pub(super) struct Table {
    /// Those that were made or read.
    sets: RefCell<HashMap<u64, Arc<Set>>>,
    /// Those of which it is known that the journal has them.
    written: RefCell<HashSet<u64>>,
    /// How many executions hold each: those in memory by their [`Pins`], the others by [`hold`](Table::hold).
    held: RefCell<HashMap<u64, usize>>,
    /// Files that are kept, as far as is known.
    kept: RefCell<HashSet<Hash>>,
    /// Held while files are kept, and while they are removed: what has just been kept is not removed before an execution holds it.
    pub(super) gate: Mutex<()>,
    /// The functions that a definition names, by its fingerprint.
    names: RefCell<HashMap<u64, Arc<[Arc<str>]>>>,
    /// What executions are to be pinned to with the next thing that they are told.
    moves: RefCell<HashMap<u64, Rc<Pins>>>,
    /// Versions that are looked for and loaded at the same time.
    pub(super) loads: Semaphore,
    /// Missing versions of which the log was told lately.
    pub(super) told: Lately,
    /// Versions that could not be kept lately.
    pub(super) refused: Lately,
}

/// Versions with which something has happened lately.
#[derive(Debug, Default)]
pub(super) struct Lately(RefCell<HashMap<Hash, Instant>>);

impl Lately {
    /// Whether that version is among them.
    pub(super) fn has(&self, digest: &Hash) -> bool {
        self.0.borrow().get(digest).is_some_and(|at| at.elapsed() < AGAIN)
    }

    /// It happens now. Whether it had not happened lately.
    pub(super) fn note(&self, digest: &Hash) -> bool {
        if self.has(digest) {
            return false;
        }
        let mut known = self.0.borrow_mut();
        if known.len() >= LATELY_MAX {
            known.clear();
        }
        known.insert(*digest, Instant::now());
        true
    }
}

impl Default for Table {
    fn default() -> Table {
        Table {
            sets: RefCell::default(),
            written: RefCell::default(),
            held: RefCell::default(),
            kept: RefCell::default(),
            gate: Mutex::default(),
            names: RefCell::default(),
            moves: RefCell::default(),
            loads: Semaphore::new(LOADS_MAX),
            told: Lately::default(),
            refused: Lately::default(),
        }
    }
}

impl Table {
    /// One more execution holds these.
    pub(super) fn hold(&self, sets: &[u64]) {
        let mut held = self.held.borrow_mut();
        sets.iter().for_each(|set| *held.entry(*set).or_default() += 1);
    }

    /// An execution holds these no longer.
    pub(super) fn release(&self, sets: &[u64]) {
        let mut held = self.held.borrow_mut();
        for set in sets {
            if let Some(count) = held.get_mut(set) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    held.remove(set);
                }
            }
        }
    }

    /// The sets that executions hold.
    pub(super) fn held(&self) -> Vec<u64> {
        self.held.borrow().keys().copied().collect()
    }

    /// A set that was made or read.
    pub(super) fn find(&self, number: u64) -> Option<Arc<Set>> {
        self.sets.borrow().get(&number).cloned()
    }

    /// A set is known from now on, by its number.
    pub(super) fn know(&self, number: u64, set: &Arc<Set>) {
        self.sets.borrow_mut().insert(number, Arc::clone(set));
    }

    /// What no execution holds is not known any more, and these files are not kept any more.
    pub(super) fn forget(&self, needed: &HashSet<Hash>) {
        let held = self.held.borrow();
        self.sets.borrow_mut().retain(|number, _| held.contains_key(number));
        self.kept.borrow_mut().retain(|digest| needed.contains(digest));
    }

    /// Whether that file is kept, as far as is known.
    pub(super) fn keeps(&self, digest: &Hash) -> bool {
        self.kept.borrow().contains(digest)
    }

    /// That file is kept.
    pub(super) fn kept(&self, digest: Hash) {
        self.kept.borrow_mut().insert(digest);
    }

    /// The journal has these.
    pub(super) fn wrote(&self, sets: &[(u64, Arc<Set>)]) {
        self.written.borrow_mut().extend(sets.iter().map(|(number, _)| *number));
    }

    /// The functions that a definition names, each once.
    pub(super) fn names(&self, definition: &Definition) -> Arc<[Arc<str>]> {
        let fingerprint = definition.fingerprint();
        if let Some(names) = self.names.borrow().get(&fingerprint) {
            return Arc::clone(names);
        }
        let named = definition.resources().filter_map(|(_, resource)| match resource {
            Resource::Function { name, .. } => Some(Arc::clone(name)),
            _ => None,
        });
        let mut names: Vec<Arc<str>> = named.collect();
        names.sort_unstable();
        names.dedup();
        let names: Arc<[Arc<str>]> = names.into();
        let mut known = self.names.borrow_mut();
        if known.len() >= NAMES_MAX {
            known.clear();
        }
        known.insert(fingerprint, Arc::clone(&names));
        names
    }

    /// An execution is to be pinned to that, with the next thing that it is told.
    pub(super) fn will_move(&self, execution: u64, pins: &Rc<Pins>) {
        self.moves.borrow_mut().insert(execution, Rc::clone(pins));
    }

    /// What an execution is to be pinned to now, if that is to change.
    pub(super) fn take_move(&self, execution: u64) -> Option<Rc<Pins>> {
        self.moves.borrow_mut().remove(&execution)
    }
}

/// What one execution in memory is pinned to. It shares them with its tasks.
#[derive(Debug)]
pub(super) struct Pins {
    table: Rc<Table>,
    sets: RefCell<Vec<(u64, Arc<Set>)>>,
    /// They have changed.
    pub(super) moved: Notify,
}

impl Pins {
    /// These sets, by their numbers. They are held as long as this lives.
    pub(super) fn new(table: &Rc<Table>, sets: Vec<(u64, Arc<Set>)>) -> Rc<Pins> {
        let pins = Pins { table: Rc::clone(table), sets: RefCell::new(sets), moved: Notify::new() };
        table.hold(&pins.numbers());
        Rc::new(pins)
    }

    /// The numbers of the sets.
    pub(super) fn numbers(&self) -> Vec<u64> {
        self.sets.borrow().iter().map(|(number, _)| *number).collect()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.sets.borrow().is_empty()
    }

    /// The digest to which a function is pinned.
    pub(super) fn find(&self, name: &str) -> Option<Hash> {
        self.sets.borrow().iter().find_map(|(_, set)| set.find(name))
    }

    /// All versions.
    pub(super) fn versions(&self) -> Vec<(Arc<str>, Hash)> {
        self.sets.borrow().iter().flat_map(|(_, set)| set.versions().to_vec()).collect()
    }

    /// Whether one more set can be added.
    pub(super) fn has_room(&self) -> bool {
        self.sets.borrow().len() < SETS_MAX
    }

    /// Pins to what others are pinned to, too.
    pub(super) fn add_all(&self, other: &Pins) {
        let more = other.sets.borrow().clone();
        self.table.hold(&other.numbers());
        self.sets.borrow_mut().extend(more);
    }

    /// Pins to what others are pinned to; what this was pinned to.
    pub(super) fn replace(&self, other: &Pins) -> Vec<(u64, Arc<Set>)> {
        self.set(other.sets.borrow().clone())
    }

    /// Pins to these sets; what this was pinned to.
    pub(super) fn set(&self, sets: Vec<(u64, Arc<Set>)>) -> Vec<(u64, Arc<Set>)> {
        let before = self.numbers();
        let before_sets = self.sets.replace(sets);
        self.table.hold(&self.numbers());
        self.table.release(&before);
        self.moved.notify_waiters();
        before_sets
    }

    /// The sets of which it is not known that the journal has them.
    pub(super) fn unwritten(&self) -> Vec<(u64, Arc<Set>)> {
        let written = self.table.written.borrow();
        self.sets.borrow().iter().filter(|(number, _)| !written.contains(number)).cloned().collect()
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        self.table.release(&self.numbers());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(versions: &[(&str, &str)]) -> Set {
        Set::new(versions.iter().map(|(name, text)| ((*name).into(), blake3::hash(text.as_bytes()))).collect())
    }

    #[test]
    fn a_set_is_what_it_names_in_any_order() {
        let one = set(&[("b", "2"), ("a", "1"), ("c", "3")]);
        assert_eq!(
            (one.number(), &one),
            (set(&[("a", "1"), ("c", "3"), ("b", "2")]).number(), &Set::from_json(&one.to_json()).unwrap())
        );
        for other in [
            set(&[("a", "1"), ("b", "2")]),
            set(&[("a", "2"), ("b", "1"), ("c", "3")]),
            set(&[]),
            set(&[("ab", "2"), ("c", "3")]),
        ] {
            assert_ne!(one.number(), other.number(), "{other:?}");
        }
        assert_eq!((one.find("b"), one.find("d"), one.find("")), (Some(blake3::hash(b"2")), None, None));
        for wrong in [&b""[..], b"{}", b"[[\"a\"]]", b"[[\"a\", \"00\"]]", b"[[1, 2]]", b"[[\"a\", \"zz\"]"] {
            assert!(Set::from_json(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn a_set_is_held_as_long_as_any_execution_holds_it() {
        let table = Rc::new(Table::default());
        let [one, two] = [set(&[("a", "1")]), set(&[("a", "2")])].map(|set| (set.number(), Arc::new(set)));
        let held = || {
            let mut held = table.held();
            held.sort_unstable();
            held
        };
        table.hold(&[one.0]);
        let pins = Pins::new(&table, vec![one.clone()]);
        let other = Pins::new(&table, vec![two.clone()]);
        let mut both = vec![one.0, two.0];
        both.sort_unstable();
        assert_eq!(held(), both);
        let before = pins.replace(&other);
        drop(other);
        assert_eq!((before[0].0, held()), (one.0, both.clone()), "the first is held by one that is not in memory");
        table.release(&[one.0]);
        assert_eq!(held(), [two.0]);
        pins.add_all(&Pins::new(&table, vec![one.clone()]));
        assert_eq!(held(), both);
        drop(pins);
        assert_eq!(held(), [0; 0]);
        table.release(&[one.0]);
        assert_eq!(held(), [0; 0], "no count is below zero");
    }
}
