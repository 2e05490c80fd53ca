//! What can be read of a store's file that redb refuses: its pages, read here after redb's docs/design.md (format 3), each held against the checksum that its
//! parent has of it.
//!
//! ```text
//!   commit slots -> tree of tables -> tree of "entries" -> leaves          what fits its checksum is as it was written
//!   every page that looks like a leaf of "entries"                         for what is lost there: perhaps replaced or deleted since
//! ```
//!
//! Knows only sizes and places, and checks each: whatever a file contains, reading it ends, and does not panic.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

use super::file::{self, Content, Contents, MAGIC};
use super::{BucketKey, Entry};

const PAGE_BYTES: u64 = file::PAGE_BYTES as u64;
/// Where the commit slots are, and how long one is.
const SLOTS: [usize; 2] = [64, 192];
const SLOT_BYTES: usize = 128;
/// Levels of a tree, which has at least two children a page.
const DEPTH_MAX: usize = 40;
const LEAF: u8 = 1;
const BRANCH: u8 = 2;
/// By how much versions go on above all that were found, so that none comes twice.
const VERSIONS_SKIPPED: u64 = 1_000_000;

/// A tenant, and a bucket and key.
type Place = (Box<str>, BucketKey);

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Salvaged {
    /// Entries as they were written, and those that were found in place of lost ones.
    pub(super) contents: Contents,
    /// Where the versions of tenants without any go on.
    pub(super) floor: u64,
    /// Entries that fit their checksums.
    pub(super) verified: usize,
    /// Entries of which nothing says whether they are the last ones.
    pub(super) unverified: usize,
    /// What is lost, in words.
    pub(super) lost: Vec<String>,
}

/// A page as its parent knows it.
#[derive(Clone, Copy)]
struct Link {
    number: u64,
    checksum: u128,
}

/// A file's bytes, and how its pages lie there.
struct Image<'a> {
    bytes: &'a [u8],
    region_bytes: u64,
    region_header_bytes: u64,
}

/// A part of the tree that could not be read: behind one key, before another.
struct Gap {
    after: Option<Place>,
    before: Option<Place>,
}

/// The tree of a slot, read as far as it goes.
#[derive(Default)]
struct Tree {
    entries: BTreeMap<Place, Entry>,
    gaps: Vec<Gap>,
}

/// Reads what can be read of a file.
pub(super) fn salvage(bytes: &[u8]) -> Salvaged {
    let image = Image::new(bytes);
    let mut tree = image.slots().into_iter().find_map(|root| image.entries(root)).unwrap_or_else(|| {
        let everything = Gap { after: None, before: None };
        Tree { entries: BTreeMap::new(), gaps: vec![everything] }
    });
    let mut salvaged = Salvaged { verified: tree.entries.len(), ..Salvaged::default() };
    if !tree.gaps.is_empty() {
        for (place, entry) in image.scan() {
            let is_lost = tree.gaps.iter().any(|gap| {
                gap.after.as_ref().is_none_or(|after| *after < place) && gap.before.as_ref().is_none_or(|before| place < *before)
            });
            if is_lost && tree.entries.get(&place).is_none_or(|found| found.version < entry.version) {
                tree.entries.insert(place, entry);
            }
        }
        salvaged.unverified = tree.entries.len() - salvaged.verified;
    }
    salvaged.lost = tree.gaps.iter().map(Gap::words).collect();
    salvaged.floor =
        tree.entries.values().map(|entry| entry.version).max().map_or(0, |version| version.saturating_add(VERSIONS_SKIPPED));
    for ((tenant, key), entry) in tree.entries {
        let content =
            salvaged.contents.entry(tenant).or_insert_with(|| Content { version: salvaged.floor, ..Content::default() });
        content.entries.insert(key, entry);
    }
    salvaged
}

impl Salvaged {
    /// Takes over what a commit made of a key, unless what was found is newer. `version` is that of the entry, or of the tenant after the commits that deleted it.
    pub(super) fn put(&mut self, tenant: &str, key: &BucketKey, version: u64, entry: Option<&Entry>) {
        let content = self.contents.entry(tenant.into()).or_default();
        self.floor = self.floor.max(version.saturating_add(VERSIONS_SKIPPED));
        content.version = content.version.max(self.floor);
        if content.entries.get(key).is_some_and(|found| found.version > version) {
            return;
        }
        match entry {
            Some(entry) => drop(content.entries.insert(key.clone(), entry.clone())),
            None => drop(content.entries.remove(key)),
        }
    }
}

impl Gap {
    fn words(&self) -> String {
        let place = |(tenant, key): &Place| format!("tenant {tenant}, key {key:?}");
        match (&self.after, &self.before) {
            (None, None) => "the root of the tree: nothing says which of the entries found are the last ones".to_owned(),
            (Some(after), None) => format!("what came behind {}", place(after)),
            (None, Some(before)) => format!("what came before {}", place(before)),
            (Some(after), Some(before)) => format!("what came between {} and {}", place(after), place(before)),
        }
    }
}

impl<'a> Image<'a> {
    fn new(bytes: &'a [u8]) -> Image<'a> {
        let pages = |at: usize| u64::from(u32_at(bytes, at).unwrap_or(0)) * PAGE_BYTES;
        // Behind magic, god byte and padding: page size, header pages of a region, data pages of a region.
        let region_header_bytes = pages(16);
        Image { bytes, region_bytes: region_header_bytes + pages(20), region_header_bytes }
    }

    /// The roots of the trees of tables, the newest first.
    fn slots(&self) -> Vec<Link> {
        let slot = |at: usize| -> Option<(u64, Link)> {
            let slot = self.bytes.get(at..at + SLOT_BYTES)?;
            let is_good = self.bytes.starts_with(MAGIC) && u128_at(slot, 112)? == xxh3_128(slot.get(..112)?) && slot[1] != 0;
            is_good.then_some((u64_at(slot, 104)?, link_at(slot, 8)?))
        };
        let mut slots: Vec<(u64, Link)> = SLOTS.into_iter().filter_map(slot).collect();
        slots.sort_by_key(|(transaction, _)| std::cmp::Reverse(*transaction));
        slots.into_iter().map(|(_, root)| root).collect()
    }

    /// The bytes of a page.
    fn page(&self, number: u64) -> Option<&'a [u8]> {
        let (order, region) = (number >> 59, number >> 20 & 0xf_ffff);
        let bytes = PAGE_BYTES.checked_shl(order as u32).filter(|_| order <= 20)?;
        let index = number & (0xf_ffff >> order);
        let at = PAGE_BYTES + region.checked_mul(self.region_bytes)? + self.region_header_bytes + index.checked_mul(bytes)?;
        let end = at.checked_add(bytes)?.min(self.bytes.len() as u64);
        self.bytes.get(usize::try_from(at).ok()?..usize::try_from(end).ok()?)
    }

    /// The entries in the tree of tables with that root; none when the table itself cannot be found.
    fn entries(&self, root: Link) -> Option<Tree> {
        let mut table = None;
        self.walk(root, 0, &mut |found| {
            if let Ok((b"entries", definition)) = found {
                table = Some(definition);
            }
        });
        let definition = table?;
        let mut tree = Tree::default();
        // Kind, length, and whether there is a root.
        if *definition.get(9)? == 0 {
            return Some(tree);
        }
        let mut last: Option<Place> = None;
        self.walk(link_at(definition, 10)?, 0, &mut |found| match found {
            Ok((key, value)) => {
                let Some((place, entry)) = parsed(key, value) else { return };
                if let Some(gap) = tree.gaps.last_mut().filter(|gap| gap.before.is_none()) {
                    gap.before = Some(place.clone());
                }
                last = Some(place.clone());
                tree.entries.insert(place, entry);
            }
            // Several that lie side by side are one.
            Err(()) if tree.gaps.last().is_some_and(|gap| gap.before.is_none()) => {}
            Err(()) => tree.gaps.push(Gap { after: last.clone(), before: None }),
        });
        Some(tree)
    }

    /// Calls `with` with each pair below a page, in order, and for each page that is not as it was written.
    fn walk(&self, link: Link, depth: usize, with: &mut impl FnMut(Result<(&'a [u8], &'a [u8]), ()>)) {
        let page = self.page(link.number).filter(|_| depth < DEPTH_MAX);
        let good = page.and_then(Page::of).filter(|page| xxh3_128(page.bytes) == link.checksum);
        match good {
            None => with(Err(())),
            Some(page) if page.is_leaf => page.pairs().for_each(|pair| with(Ok(pair))),
            Some(page) => {
                for index in 0..=page.count {
                    match page.child(index) {
                        Some(link) => self.walk(link, depth + 1, with),
                        None => with(Err(())),
                    }
                }
            }
        }
    }

    /// All that stands in pages that look like leaves of entries.
    fn scan(&self) -> impl Iterator<Item = (Place, Entry)> + use<'a> {
        let bytes = self.bytes;
        let pages = (0..bytes.len()).step_by(file::PAGE_BYTES).filter_map(move |at| Page::of(&bytes[at..]));
        // A page of which one pair is none is another table's.
        let entries = |page: Page<'a>| page.pairs().map(|(key, value)| parsed(key, value)).collect::<Option<Vec<_>>>();
        pages.filter(|page| page.is_leaf).filter_map(entries).flatten()
    }
}

/// A page of a tree whose keys and values have no fixed length.
#[derive(Clone, Copy)]
struct Page<'a> {
    /// Those that its checksum is of.
    bytes: &'a [u8],
    is_leaf: bool,
    /// Pairs of a leaf, keys of a branch.
    count: usize,
}

impl<'a> Page<'a> {
    fn of(bytes: &'a [u8]) -> Option<Page<'a>> {
        let count = usize::from(u16::from_le_bytes(bytes.get(2..4)?.try_into().ok()?));
        let is_leaf = match *bytes.first()? {
            LEAF => true,
            BRANCH => false,
            _ => return None,
        };
        let page = Page { bytes, is_leaf, count };
        let end = page.end(count.checked_sub(1)?)?;
        Some(Page { bytes: bytes.get(..end)?, ..page })
    }

    /// Where what belongs to its pair or key `index` ends.
    fn end(&self, index: usize) -> Option<usize> {
        let at = if self.is_leaf { 4 + 4 * (self.count + index) } else { 8 + 24 * (self.count + 1) + 4 * index };
        Some(u32_at(self.bytes, at)? as usize)
    }

    fn child(&self, index: usize) -> Option<Link> {
        let numbers = 8 + 16 * (self.count + 1);
        Some(Link { checksum: u128_at(self.bytes, 8 + 16 * index)?, number: u64_at(self.bytes, numbers + 8 * index)? })
    }

    /// Keys and values of a leaf; those of which it says nothing that could be are left out.
    fn pairs(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let ends = move |index: usize| -> Option<(usize, usize)> {
            Some((u32_at(self.bytes, 4 + 4 * index)? as usize, self.end(index)?))
        };
        let start = 4 + 8 * self.count;
        (0..self.count).filter_map(move |index| {
            let (key_end, value_end) = ends(index)?;
            let (keys, values) = match index.checked_sub(1) {
                Some(before) => ends(before)?,
                None => (start, ends(self.count - 1)?.0),
            };
            Some((self.slice(keys..key_end)?, self.slice(values..value_end)?))
        })
    }

    fn slice(&self, range: Range<usize>) -> Option<&'a [u8]> {
        self.bytes.get(range)
    }
}

/// A pair of the table of entries: the key is the length of the tenant's name, that name, and bucket and key; the value the version, and the value.
fn parsed(key: &[u8], value: &[u8]) -> Option<(Place, Entry)> {
    let (length, at) = match *key.first()? {
        254 => (usize::from(u16::from_le_bytes(key.get(1..3)?.try_into().ok()?)), 3),
        255 => (u32_at(key, 1)? as usize, 5),
        length => (usize::from(length), 1),
    };
    let (tenant, key) = key.get(at..)?.split_at_checked(length)?;
    let tenant = std::str::from_utf8(tenant).ok()?;
    key.contains(&0).then_some(())?;
    let entry = Entry { version: u64_at(value, 0)?, value: Bytes::copy_from_slice(value.get(8..)?) };
    Some(((tenant.into(), BucketKey(key.into())), entry))
}

fn link_at(bytes: &[u8], at: usize) -> Option<Link> {
    Some(Link { number: u64_at(bytes, at)?, checksum: u128_at(bytes, at + 8)? })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn u128_at(bytes: &[u8], at: usize) -> Option<u128> {
    Some(u128::from_le_bytes(bytes.get(at..)?.first_chunk().copied()?))
}
