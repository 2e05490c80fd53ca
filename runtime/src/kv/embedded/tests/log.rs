//! The log on a played disk: crashes at each write and sync, records that are torn or damaged, and what readers see while it is written to the tree.

use std::collections::BTreeMap;

use super::disk::LOG;
use super::*;
use crate::kv::Record;

/// What the log's blocks have.
const BLOCK: usize = 4 << 10;
/// Where the first record is.
const START: usize = 2 * BLOCK;

/// Whether each case is to be tried, and not some.
fn is_long() -> bool {
    std::env::var_os("SLEDGE_LONG_TESTS").is_some()
}

/// What is in a store: entries of one bucket, and records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    entries: BTreeMap<String, String>,
    records: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A commit of the workload: entries and records that are written or removed together.
#[derive(Clone, Debug)]
struct Step {
    entries: Vec<(String, Option<String>)>,
    records: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Model {
    fn apply(&mut self, step: &Step) {
        for (key, value) in step.entries.clone() {
            match value {
                Some(value) => drop(self.entries.insert(key, value)),
                None => drop(self.entries.remove(&key)),
            }
        }
        for (key, value) in step.records.clone() {
            match value {
                Some(value) => drop(self.records.insert(key, value)),
                None => drop(self.records.remove(&key)),
            }
        }
    }

    /// What a store holds, whose records are read in that order.
    fn of(store: &Embedded, order: Order) -> Model {
        Model::read(store, order).unwrap()
    }

    /// The same, unless the store's file is not open.
    fn read(store: &Embedded, order: Order) -> Result<Model, KvError> {
        let space = store.space("t");
        let names = (0..12).map(|index| format!("k{index}"));
        let entries = names.filter_map(|name| get(&space, &name).map(|(_, value)| (name, value))).collect();
        let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let take = |key: &[u8], value: &[u8]| {
            all.push((key.to_vec(), value.to_vec()));
            true
        };
        store.records().scan(bounds, order, take)?;
        let rises = all.is_sorted_by(|one, other| one.0 < other.0);
        let falls = all.is_sorted_by(|one, other| one.0 > other.0);
        assert!(if order == Order::Rising { rises } else { falls }, "{order:?}: {all:?}");
        Ok(Model { entries, records: all.into_iter().collect() })
    }
}

impl Step {
    /// Some changes; values of which some have several blocks of the log.
    fn random(random: &mut fastrand::Rng) -> Step {
        let text = |random: &mut fastrand::Rng| {
            let bytes = if random.u8(..8) == 0 { random.usize(..9_000) } else { random.usize(..60) };
            format!("{}{}", random.u32(..), "x".repeat(bytes))
        };
        let entries = (0..random.usize(..4)).map(|_| {
            let key = format!("k{}", random.u8(..12));
            (key, (random.u8(..4) != 0).then(|| text(random)))
        });
        let entries: Vec<_> = entries.collect();
        let records = (0..random.usize(usize::from(entries.is_empty())..4)).map(|_| {
            let key = vec![b'r', random.u8(..20)];
            (key, (random.u8(..3) != 0).then(|| text(random).into_bytes()))
        });
        Step { records: records.collect(), entries }
    }

    fn commit(&self) -> Commit {
        let change = |value: &Option<String>| value.clone().map_or(Change::Delete, |value| Change::Put(value.into()));
        let changes = self.entries.iter().map(|(name, value)| (key(name), change(value))).collect();
        let records =
            self.records.iter().map(|(key, value)| Record { key: key.clone().into(), value: value.clone().map(Bytes::from) });
        Commit { records: records.collect(), ..Commit::new(Vec::new(), changes) }
    }

    /// Makes it, unless the disk fails first; then nothing is said.
    fn make(&self, store: &Embedded, disk: &Disk, fails_from: usize) -> bool {
        let made = store.space("t").commit(self.commit());
        let fails = async {
            while disk.operations() <= fails_from {
                tokio::time::sleep(std::time::Duration::from_micros(200)).await;
            }
            // What was acknowledged at the same time is known.
            tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        };
        let clock = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        clock.block_on(async {
            tokio::select! {
                biased;
                made = made => made.is_ok(),
                () = fails => false,
            }
        })
    }
}

/// Steps until the disk fails for good at that operation, or all are made; what a crash leaves then, and how many operations there were.
fn crash(disk: &Disk, model: &mut Model, from: usize, steps: usize, seed: u64) -> (Disk, usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    disk.fail(from, usize::MAX - from, libc::EIO, seed);
    let store = open_folding(disk, &Arc::default());
    let mut doubtful = None;
    for _ in 0..steps {
        let step = Step::random(&mut random);
        if !step.make(&store, disk, from) {
            doubtful = Some(step);
            break;
        }
        model.apply(&step);
    }
    let operations = disk.operations();
    let after = disk.crashed(&mut random.u64(..));
    // The step of which nothing was said is there as a whole, or not at all.
    let what = format!("crash at operation {from}, seed {seed:#x}");
    let again = open_folding(&after, &Arc::default());
    for order in [Order::Rising, Order::Falling] {
        let found = Model::of(&again, order);
        if found != *model {
            model.apply(doubtful.as_ref().unwrap_or_else(|| panic!("{what}: {found:?} instead of {model:?}")));
        }
        assert_eq!(found, *model, "{what}");
    }
    (after.crashed(&mut random.u64(..)), operations)
}

/// Each write and each sync, of the log, of the tree while the log is written there, and of the opening, is the last one before a crash; and so is some operation after that.
#[test]
fn a_crash_at_each_operation_loses_nothing_that_was_acknowledged() {
    const STEPS: usize = 24;
    for seed in [0x5eed_0101, 0x5eed_0102] {
        let (_, operations) = crash(&Disk::default(), &mut Model::default(), usize::MAX - 1, STEPS, seed);
        assert!(operations > 2 * STEPS + 30, "{operations}: the log is not written to the tree");
        for from in (6 + seed as usize % 4..operations).step_by(if is_long() { 1 } else { 4 }) {
            let mut model = Model::default();
            let (disk, _) = crash(&Disk::default(), &mut model, from, STEPS, seed);
            let (disk, _) = crash(&disk, &mut model, from % 50, STEPS / 2, seed ^ 0xff);
            assert_eq!(Model::of(&open(&disk), Order::Rising), model);
        }
    }
}

/// What is read while the log is written to the tree is what was committed, at each moment and in both orders.
#[test]
fn records_are_read_as_they_were_committed_wherever_they_are() {
    for seed in 0x5eed_0111..0x5eed_0115 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (disk, mut model) = (Disk::default(), Model::default());
        let store = open_folding(&disk, &Arc::default());
        let records = store.records();
        for number in 0..400 {
            let step = Step::random(&mut random);
            wait(store.space("t").commit(step.commit())).unwrap();
            model.apply(&step);
            let [from, to] = [random.u8(..20), random.u8(..20)].map(|last| vec![b'r', last]);
            let bounds = (Bound::Included(&*from), if number % 2 == 0 { Bound::Excluded(&*to) } else { Bound::Unbounded });
            let order = if random.bool() { Order::Rising } else { Order::Falling };
            let most = random.usize(1..9);
            let mut found = Vec::new();
            let take = |key: &[u8], value: &[u8]| {
                found.push((key.to_vec(), value.to_vec()));
                found.len() < most
            };
            let is_between = |key: &Vec<u8>| *key >= from && (number % 2 == 1 || *key < to);
            if number % 2 == 1 || from < to {
                records.scan(bounds, order, take).unwrap();
                let mut wanted: Vec<_> = model.records.clone().into_iter().filter(|(key, _)| is_between(key)).collect();
                if order == Order::Falling {
                    wanted.reverse();
                }
                wanted.truncate(most);
                assert_eq!(found, wanted, "seed {seed:#x}, step {number}, {order:?}");
            }
            if number % 50 == 0 {
                // However busy this machine is, the tree gets what the log has now and then.
                let before = disk.synced(0);
                let commit = Commit { records: vec![Record::put(*b"s", number.to_string())], ..Commit::default() };
                wait(store.space("t").commit(commit)).unwrap();
                model.records.insert(b"s".to_vec(), number.to_string().into_bytes());
                while disk.synced(0) == before {
                    thread::yield_now();
                }
            }
            assert_eq!(records.get(&from).unwrap(), model.records.get(&from).cloned(), "seed {seed:#x}, step {number}");
        }
        assert!(disk.synced(LOG).len() < 400 * BLOCK, "the log's places are not used again");
    }
}

/// While one thread commits two records at a time, others read all in one scan: the last few commits, each as a whole, and none is missing.
#[test]
fn a_scan_sees_one_moment_while_the_log_is_written_to_the_tree() {
    const PAIRS: u32 = 8;
    let disk = Disk::default();
    let store = open_folding(&disk, &Arc::default());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for order in [Order::Rising, Order::Falling] {
            let (records, over) = (store.records(), &over);
            scope.spawn(move || {
                let mut newest = 0;
                while !over.load(Ordering::Relaxed) {
                    let mut seen = Vec::new();
                    let take = |_: &[u8], value: &[u8]| {
                        seen.push(String::from_utf8(value.to_vec()).unwrap().parse::<u32>().unwrap());
                        true
                    };
                    records.scan((Bound::Unbounded, Bound::Unbounded), order, take).unwrap();
                    seen.sort_unstable();
                    let last = seen.last().copied().unwrap_or(0);
                    let wanted: Vec<u32> = (last.saturating_sub(PAIRS) + 1..=last).flat_map(|number| [number; 2]).collect();
                    assert_eq!(seen, wanted, "{order:?}");
                    assert!(last >= newest, "{last} after {newest}");
                    newest = last;
                }
            });
        }
        for number in 1..=2_000_u32 {
            let key = |name: char| format!("{name}{}", number % PAIRS);
            let records = ['a', 'z'].map(|name| Record::put(key(name).into_bytes(), number.to_string()));
            wait(store.space("t").commit(Commit { records: records.into(), ..Commit::default() })).unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// An operation of the disk that fails, and those behind it that are done again: no record is lost that was acknowledged, and none is there of what was refused.
#[test]
fn a_disk_that_fails_for_a_moment_loses_no_records() {
    const STEPS: usize = 20;
    let run = |from: usize, count: usize, seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        let (disk, mut model) = (Disk::default(), Model::default());
        disk.fail(from, count, if from.is_multiple_of(2) { libc::EIO } else { libc::ENOSPC }, seed);
        let store = open_folding(&disk, &Arc::default());
        let made = (0..STEPS).filter(|_| {
            let step = Step::random(&mut random);
            store.retry();
            let made = wait(store.space("t").commit(step.commit()));
            if made.is_ok() {
                model.apply(&step);
            }
            made.is_ok()
        });
        let made = made.count();
        assert!(made > STEPS / 2, "{made} commits");
        // Until what failed is over, records cannot be read. It may begin only now, when what the log holds is written to the tree.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let read = loop {
            if let Ok(read) = Model::read(&store, Order::Falling) {
                break read;
            }
            assert!(std::time::Instant::now() < end, "it is not open again");
            store.retry();
            thread::yield_now();
        };
        let what = format!("operations from {from}, {count} fail, seed {seed:#x}");
        assert_eq!(read, model, "{what}");
        assert_eq!(Model::of(&open(&disk.crashed(&mut random.u64(..))), Order::Rising), model, "{what}");
        disk.operations()
    };
    let operations = run(usize::MAX / 2, 0, 0x5eed_0121);
    for from in (12..operations).step_by(if is_long() { 1 } else { 2 }) {
        run(from, 1 + from % 3, 0x5eed_0121);
    }
}

/// A commit of its own costs one write and one sync.
#[test]
fn a_commit_is_one_write_and_one_sync() {
    let disk = Disk::default();
    let store = open(&disk);
    let space = store.space("t");
    assert_eq!(commit(&space, &[], &[put("a", "0")]), committed(1));
    let before = disk.operations();
    for version in 2..=10 {
        assert_eq!(commit(&space, &[], &[put("a", "1")]), committed(version));
    }
    assert_eq!(disk.operations() - before, 2 * 9);
}

/// A store of some commits, none of which is in the tree, and what a crash leaves of it.
fn some(count: u64) -> Disk {
    let disk = Disk::default();
    let store = open(&disk);
    for version in 1..=count {
        assert_eq!(
            commit(&store.space("t"), &[], &[put(&format!("k{version}"), &"v".repeat(version as usize * 9))]),
            committed(version)
        );
    }
    disk.crashed(&mut 1)
}

fn versions(disk: &Disk, count: u64) -> Vec<Option<u64>> {
    let space = open(disk).space("t");
    (1..=count).map(|version| get(&space, &format!("k{version}")).map(|(version, _)| version)).collect()
}

/// A crash while the last record is written: whatever of its bytes is there, those before are, and it is whole or none.
#[test]
fn a_record_that_is_torn_at_any_byte_is_none() {
    let disk = some(4);
    let last = START + 3 * BLOCK;
    let bytes = disk.synced(LOG);
    let end = last + BLOCK - bytes[last..last + BLOCK].iter().rev().position(|byte| *byte != 0).unwrap();
    assert!(end > last + 60, "{end}");
    for cut in last..=end {
        let torn = disk.crashed(&mut 1);
        torn.change(LOG, |bytes| bytes[cut..last + BLOCK].fill(0));
        let wanted = if cut == end { Some(4) } else { None };
        assert_eq!(versions(&torn.crashed(&mut 1), 4), [Some(1), Some(2), Some(3), wanted], "cut at {}", cut - last);
        if cut % 4 != 0 && cut != end && !is_long() {
            continue;
        }
        // What is committed next gets its place, and there is nothing left of it.
        let store = open(&torn);
        let version = 4 + u64::from(cut == end);
        assert_eq!(commit(&store.space("t"), &[], &[put("k9", "new")]), committed(version));
        assert_eq!(
            versions(&torn.crashed(&mut 1), 9)[3..],
            [wanted, None, None, None, None, Some(version)],
            "cut at {}",
            cut - last
        );
    }
}

/// A record that is damaged is no end where later ones are there: nothing is served without it, and nothing is written.
#[test]
fn a_damaged_record_before_others_is_told() {
    let disk = some(6);
    for record in 0..6_usize {
        let at = START + record * BLOCK;
        for byte in [0, 17, 25, 33, 41, 50, 70] {
            let damaged = disk.crashed(&mut 1);
            damaged.change(LOG, |bytes| bytes[at + byte] ^= 0x10);
            let (before, health) = (damaged.synced(LOG), Arc::new(Health::default()));
            let store = Embedded::with_folds(damaged.source(), SELDOM, KvLimits::default(), &health).unwrap();
            let what = format!("byte {byte} of record {record}");
            if record == 5 {
                // The last one: as if it had not been written.
                assert!(
                    store.space("t").is_open()
                        && get(&store.space("t"), "k5").is_some()
                        && get(&store.space("t"), "k6").is_none(),
                    "{what}"
                );
                continue;
            }
            assert!(!store.space("t").is_open(), "{what}");
            let problems = health.problems_now();
            let words = format!("FILE.log is damaged (record {} is missing, and later ones are there)", record + 1);
            assert!(
                problems[0].reason.starts_with(&words) && problems[0].reason.contains("sledge kv salvage"),
                "{what}: {problems:?}"
            );
            assert!(matches!(commit(&store.space("t"), &[], &[put("x", "1")]), Err(KvError::Unavailable(_))));
            assert!(damaged.synced(LOG) == before, "{what}: the log was written to");
        }
    }
}

/// What a log has of another opening of the same store does not count, whatever its sequences: here of one that went on from the same state.
#[test]
fn records_of_another_opening_do_not_count() {
    let (disk, other) = (some(6), some(0));
    other.change(LOG, |bytes| *bytes = disk.synced(LOG));
    other.change(0, |bytes| *bytes = disk.synced(0));
    let went_on = |disk: &Disk, names: &[&str]| {
        let store = open(disk);
        for name in names {
            commit(&store.space("t"), &[], &[put(name, "1")]).unwrap();
        }
        disk.crashed(&mut 1)
    };
    let (here, there) = (went_on(&disk, &["a"]), went_on(&other, &["k1", "k2", "k3"]));
    let records: Vec<u8> = there.synced(LOG)[START..].to_vec();
    here.change(LOG, |bytes| {
        bytes.resize(START + BLOCK, 0);
        bytes.extend(records);
    });
    assert_eq!(versions(&here.crashed(&mut 1), 6), [1, 2, 3, 4, 5, 6].map(Some));
    let space = open(&here).space("t");
    assert_eq!(get(&space, "a"), Some((7, "1".to_owned())));
    assert_eq!(commit(&space, &[], &[put("b", "1")]), committed(8));
}

/// A disk that is full while the log is written to the tree: what was acknowledged is read, also after a restart, and is there when there is room.
#[test]
fn a_disk_that_is_full_for_the_tree_loses_nothing() {
    let (disk, health) = (Disk::default(), Arc::new(Health::default()));
    let store = open_folding(&disk, &health);
    let space = store.space("t");
    assert_eq!(commit(&space, &[], &[put("k0", "0")]), committed(1));
    disk.set_bytes_max(Some(disk.bytes()));
    let value = "x".repeat(100_000);
    let mut made = 1;
    while made < 100 && commit(&space, &[], &[put(&format!("k{made}"), &value)]).is_ok() {
        made += 1;
    }
    assert!(made < 100, "it is never full");
    let restarted = disk.crashed(&mut 7);
    restarted.set_bytes_max(Some(disk.bytes()));
    for store in [&store, &open(&restarted)] {
        let space = store.space("t");
        let found = (0..=made).filter(|index| get(&space, &format!("k{index}")).is_some()).count();
        assert_eq!(found as u64, made, "what was acknowledged, and nothing else");
    }
    disk.set_bytes_max(None);
    store.retry();
    while commit(&space, &[], &[put("more", "1")]).is_err() {
        store.retry();
        thread::yield_now();
    }
    let space = open(&disk.crashed(&mut 9)).space("t");
    assert!((0..made).all(|index| get(&space, &format!("k{index}")).is_some()) && get(&space, "more").is_some());
}

/// What is too large for a record of the log goes to the tree at once, behind what the log holds.
#[test]
fn a_group_that_is_too_large_for_the_log_is_written_to_the_tree() {
    let disk = Disk::default();
    let store = open(&disk);
    let space = store.space("t");
    let records = |name: &str, bytes: usize| vec![Record::put(name.as_bytes(), vec![7; bytes])];
    let make = |name: &str, bytes: usize| {
        let changes = vec![put(name, &bytes.to_string())];
        wait(space.clone().commit(Commit { records: records(name, bytes), ..Commit::new(Vec::new(), changes) })).unwrap();
    };
    make("a", 10);
    make("b", super::super::log::RECORD_BYTES_MAX);
    make("a", 20);
    make("c", 30);
    for store in [&store, &open(&disk.crashed(&mut 3))] {
        let (records, space) = (store.records(), store.space("t"));
        let found =
            ["a", "b", "c"].map(|name| (records.get(name.as_bytes()).unwrap().unwrap().len(), get(&space, name).unwrap()));
        let wanted = [
            (20, 3, "20".to_owned()),
            (super::super::log::RECORD_BYTES_MAX, 2, super::super::log::RECORD_BYTES_MAX.to_string()),
            (30, 4, "30".to_owned()),
        ];
        assert_eq!(found, wanted.map(|(bytes, version, text)| (bytes, (version, text))));
    }
}
