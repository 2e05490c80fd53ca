//! What the log holds and the tree does not: entries and versions for the writer (`Pending`), the server's own records for those that read them, too (`Overlay`).
//!
//! Both have two layers, the fresh one, which takes what commits write, and the frozen one, which is being written to the tree. The frozen one stays until the tree has it durably: a reader
//! finds what was written in a layer or in the tree, at each moment. A fold that failed puts the frozen layer back beneath the fresh one ([`Overlay::thaw`]).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::file::Write;
use super::{BucketKey, Entry};
use crate::kv::Record;

/// Entries and versions.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    tenants: BTreeMap<Box<str>, Tenant>,
    count: usize,
}

/// Of one tenant.
#[derive(Clone, Debug, Default)]
struct Tenant {
    version: u64,
    entries: BTreeMap<BucketKey, Option<Entry>>,
}

/// Records, and what each key becomes.
pub(super) type Layer = BTreeMap<Bytes, Option<Bytes>>;

/// The records that the tree may not have.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    frozen: Option<Arc<Layer>>,
    fresh: Layer,
}

impl Pending {
    /// Takes up what was written behind what it has.
    pub(super) fn extend<'a>(&mut self, writes: impl Iterator<Item = Write<'a>>, versions: impl Iterator<Item = (&'a str, u64)>) {
        for (name, key, entry) in writes {
            let before = self.tenant(name).entries.insert(key.clone(), entry.cloned());
            self.count += usize::from(before.is_none());
        }
        for (name, version) in versions {
            self.tenant(name).version = version;
        }
    }

    /// Takes up newer ones.
    pub(super) fn absorb(&mut self, newer: &Pending) {
        self.extend(newer.writes(), newer.versions());
    }

    fn tenant(&mut self, name: &str) -> &mut Tenant {
        self.tenants.entry(name.into()).or_default()
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }

    /// How many entries.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    pub(super) fn writes(&self) -> impl Iterator<Item = Write<'_>> {
        self.tenants
            .iter()
            .flat_map(|(name, tenant)| tenant.entries.iter().map(move |(key, entry)| (&**name, key, entry.as_ref())))
    }

    pub(super) fn versions(&self) -> impl Iterator<Item = (&str, u64)> {
        // Each that changed has one; zero is none's.
        self.tenants.iter().map(|(name, tenant)| (&**name, tenant.version)).filter(|(_, version)| *version != 0)
    }
}

impl Overlay {
    /// Takes up what was written last.
    pub(super) fn extend(&mut self, records: impl IntoIterator<Item = Record>) {
        self.fresh.extend(records.into_iter().map(|Record { key, value }| (Bytes::from(key), value)));
    }

    /// The fresh layer.
    pub(super) const fn fresh(&self) -> &Layer {
        &self.fresh
    }

    /// Of what was fresh, the tree has everything.
    pub(super) fn clear(&mut self) {
        *self = Overlay::default();
    }

    /// How many are fresh.
    pub(super) fn count(&self) -> usize {
        self.fresh.len()
    }

    /// Begins a fresh layer; the one before is frozen and returned. There must be no frozen one.
    pub(super) fn freeze(&mut self) -> Arc<Layer> {
        debug_assert!(self.frozen.is_none(), "one fold at a time");
        let frozen = Arc::new(std::mem::take(&mut self.fresh));
        self.frozen = Some(Arc::clone(&frozen));
        frozen
    }

    /// The tree has the frozen layer.
    pub(super) fn folded(&mut self) {
        self.frozen = None;
    }

    /// The tree may not have the frozen layer: it becomes a part of the fresh one, which is newer.
    pub(super) fn thaw(&mut self) {
        if let Some(frozen) = self.frozen.take() {
            let newer = std::mem::replace(&mut self.fresh, Arc::unwrap_or_clone(frozen));
            self.fresh.extend(newer);
        }
    }

    /// What a key has become, if that is known here.
    pub(super) fn get(&self, key: &[u8]) -> Option<&Option<Bytes>> {
        self.fresh.get(key).or_else(|| self.frozen.as_ref()?.get(key))
    }

    /// What the keys between bounds have become.
    pub(super) fn range(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Layer {
        let mut found = Layer::new();
        if is_empty(bounds) {
            return found;
        }
        for layer in self.frozen.as_deref().into_iter().chain([&self.fresh]) {
            found.extend(layer.range::<[u8], _>(bounds).map(|(key, value)| (key.clone(), value.clone())));
        }
        found
    }
}

/// Whether nothing can be between bounds: the standard library's maps panic over those.
fn is_empty(bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
    match bounds {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}
