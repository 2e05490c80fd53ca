//! Commits on a real redb, in memory that can lose what was not synced.

mod damage;
pub(crate) mod disk;
mod failures;
mod files;
mod formats;
mod log;

use std::sync::atomic::AtomicBool;
use std::thread;

use bytes::Bytes;

use self::disk::Disk;
use super::*;
use crate::kv::Change;

/// The log is written to the tree where it has to be, and not because time has passed: the disk's operations are those of commits.
const SELDOM: FoldAt = FoldAt { idle: std::time::Duration::from_secs(3_600), ..FOLD_AT };

fn open(disk: &Disk) -> Embedded {
    Embedded::with_folds(disk.source(), SELDOM, KvLimits::default(), &Arc::default()).unwrap()
}

/// Opens a store whose log is written to the tree after a few commits, so that few operations of the disk have all that can happen.
pub(crate) fn open_folding(disk: &Disk, health: &Arc<Health>) -> Embedded {
    const OFTEN: FoldAt = FoldAt { bytes: 20 << 10, keys: 64, idle: std::time::Duration::from_millis(5) };
    Embedded::with_folds(disk.source(), OFTEN, KvLimits::default(), health).unwrap()
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn bucket() -> BucketName {
    BucketName::new(b"b").unwrap()
}

fn key(name: &str) -> BucketKey {
    bucket().key(name.as_bytes()).unwrap()
}

fn put(name: &str, value: &str) -> (BucketKey, Change) {
    (key(name), Change::Put(Bytes::copy_from_slice(value.as_bytes())))
}

fn commit(space: &Space, expected: &[(&str, u64)], changes: &[(BucketKey, Change)]) -> Result<Outcome, KvError> {
    let expected = expected.iter().map(|(name, version)| (key(name), *version)).collect();
    wait(space.clone().commit(Commit::new(expected, changes.to_vec())))
}

fn get(space: &Space, name: &str) -> Option<(u64, String)> {
    let text = |entry: &Entry| (entry.version, String::from_utf8(entry.value.to_vec()).unwrap());
    space.get(&bucket(), name.as_bytes(), |entry| entry.map(text)).unwrap()
}

fn committed(version: u64) -> Result<Outcome, KvError> {
    Ok(Outcome::Committed { version, sum: 0 })
}

#[test]
fn a_commit_happens_as_a_whole_or_not_at_all() {
    let store = Embedded::in_memory(KvLimits::default()).unwrap();
    let space = store.space("t");
    assert_eq!(commit(&space, &[("a", 0)], &[put("a", "1"), put("b", "2")]), committed(1));
    assert_eq!((get(&space, "a"), get(&space, "b")), (Some((1, "1".to_owned())), Some((1, "2".to_owned()))));
    // One of two versions is another's.
    assert_eq!(
        commit(&space, &[("b", 1), ("a", 0)], &[put("b", "3"), put("c", "4")]),
        Ok(Outcome::Conflict { version: 1, index: 1 })
    );
    assert_eq!((get(&space, "b"), get(&space, "c")), (Some((1, "2".to_owned())), None));
    // Later changes of a key count; a key that is gone has version zero, and a new one gets a larger version than it had.
    assert_eq!(
        commit(&space, &[("b", 1)], &[put("b", "5"), (key("b"), Change::Delete), put("a", "6"), put("a", "7")]),
        committed(2)
    );
    assert_eq!((get(&space, "a"), get(&space, "b")), (Some((2, "7".to_owned())), None));
    assert_eq!(commit(&space, &[("b", 0)], &[put("b", "8")]), committed(3));
    // Another tenant has none of it.
    assert_eq!(get(&store.space("u"), "a"), None);
}

/// What one tenant does is not seen in the versions of another.
#[test]
fn each_tenant_has_versions_of_its_own() {
    let disk = Disk::default();
    let store = open(&disk);
    let (one, other) = (store.space("one"), store.space("other"));
    assert_eq!(commit(&one, &[], &[put("a", "1")]), committed(1));
    assert_eq!((1..=3).map(|_| commit(&other, &[], &[put("a", "1")])).collect::<Vec<_>>().pop(), Some(committed(3)));
    assert_eq!(commit(&one, &[("a", 1)], &[put("a", "2")]), committed(2));
    // They are in the file, and larger than those of keys that are gone.
    assert_eq!(commit(&other, &[], &[(key("a"), Change::Delete)]), committed(4));
    let again = open(&disk.crashed(&mut 1));
    assert_eq!(commit(&again.space("other"), &[], &[put("a", "1")]), committed(5));
    assert_eq!(commit(&again.space("one"), &[], &[put("a", "1")]), committed(3));
    assert_eq!(commit(&again.space("new"), &[], &[put("a", "1")]), committed(1));
}

#[test]
fn a_commit_that_only_validates_costs_the_disk_nothing() {
    let disk = Disk::default();
    let store = open(&disk);
    let space = store.space("t");
    assert_eq!(commit(&space, &[], &[put("a", "1"), put("b", "1")]), committed(1));
    let before = disk.operations();
    assert_eq!(commit(&space, &[("a", 1), ("b", 1), ("c", 0)], &[]), committed(1));
    assert_eq!(commit(&space, &[("a", 1), ("c", 1)], &[]), Ok(Outcome::Conflict { version: 0, index: 1 }));
    assert_eq!(commit(&space, &[], &[]), committed(1));
    assert_eq!(commit(&store.space("other"), &[("a", 0)], &[]), committed(0));
    assert_eq!(disk.operations(), before);
    assert_eq!(commit(&space, &[("a", 1)], &[put("a", "2")]), committed(2));
}

#[test]
fn numbers_are_added_to_and_what_is_none_stays() {
    let store = Embedded::in_memory(KvLimits::default()).unwrap();
    let space = store.space("t");
    let add = |name: &str, delta| commit(&space, &[], &[(key(name), Change::Add(delta))]);
    assert_eq!(add("n", 5), Ok(Outcome::Committed { version: 1, sum: 5 }));
    assert_eq!(add("n", i64::MAX - 5), Ok(Outcome::Committed { version: 2, sum: i64::MAX }));
    assert_eq!(add("n", 1), Err(KvError::Overflow));
    assert_eq!(add("n", i64::MIN), Ok(Outcome::Committed { version: 3, sum: -1 }));
    assert_eq!(commit(&space, &[], &[put("t", "five")]), committed(4));
    assert_eq!(add("t", 1), Err(KvError::NotANumber));
    assert_eq!((get(&space, "n"), get(&space, "t")), (Some((3, "-1".to_owned())), Some((4, "five".to_owned()))));
}

#[test]
fn there_is_no_more_than_the_limits_allow() {
    let entry = |bytes: usize| (2 + 1 + bytes) as u64 + ENTRY_OVERHEAD_BYTES;
    let limits = KvLimits { tenant_bytes_max: entry(100) + entry(10), bytes_max: 3 * entry(100) };
    let store = Embedded::in_memory(limits).unwrap();
    let (value, small) = ("x".repeat(100), "x".repeat(10));
    let (first, second, third) = (store.space("1"), store.space("2"), store.space("3"));
    let tenant = Err(KvError::Full { key: "kv_tenant_bytes_max", bytes_max: limits.tenant_bytes_max });
    assert_eq!(commit(&first, &[], &[put("a", &value), put("b", &small)]), committed(1));
    assert_eq!(commit(&first, &[], &[put("c", "")]), tenant);
    assert_eq!(commit(&first, &[], &[put("b", &value)]), tenant);
    // What makes it smaller, or not larger, is possible.
    assert_eq!(commit(&first, &[], &[(key("a"), Change::Delete), put("c", &value)]), committed(2));
    assert_eq!(commit(&second, &[], &[put("a", &value)]), committed(1));
    assert_eq!(commit(&third, &[], &[put("a", &value)]), Err(KvError::Full { key: "kv_bytes_max", bytes_max: limits.bytes_max }));
    assert_eq!(commit(&first, &[], &[(key("b"), Change::Delete)]), committed(3));
    assert_eq!(commit(&third, &[], &[put("a", &value)]), committed(1));
    assert_eq!(get(&third, "a"), Some((1, value)));
}

/// An operator may lower the limits below what is there: it can be replaced by what is as large, and become smaller, but not larger.
#[test]
fn above_limits_that_were_lowered_nothing_becomes_larger() {
    let disk = Disk::default();
    assert_eq!(commit(&open(&disk).space("t"), &[], &[put("a", "12345"), put("b", "1")]), committed(1));
    let lowered = [KvLimits { tenant_bytes_max: 1, ..KvLimits::default() }, KvLimits { bytes_max: 1, ..KvLimits::default() }];
    for limits in lowered {
        let store = Embedded::with_backend(disk.crashed(&mut 1).source(), limits, &Arc::default()).unwrap();
        let space = store.space("t");
        assert_eq!(commit(&space, &[], &[put("a", "54321")]), committed(2), "as large");
        assert!(matches!(commit(&space, &[], &[put("a", "123456")]), Err(KvError::Full { bytes_max: 1, .. })));
        assert_eq!(commit(&space, &[], &[put("a", "1")]), committed(3), "smaller");
    }
}

#[test]
fn what_is_too_large_is_refused() {
    let space = Embedded::in_memory(KvLimits::default()).unwrap().space("t");
    assert!(bucket().key(&[0; super::super::KEY_BYTES_MAX + 1]).is_err());
    let large = "x".repeat(super::super::VALUE_BYTES_MAX + 1);
    assert!(matches!(commit(&space, &[], &[put("a", &large)]), Err(KvError::TooLarge { .. })));
    let many: Vec<_> = (0..=super::super::COMMIT_KEYS_MAX).map(|index| put(&index.to_string(), "")).collect();
    assert!(matches!(commit(&space, &[], &many), Err(KvError::TooMany { .. })));
    let much: Vec<_> = (0..5).map(|index| put(&index.to_string(), &large[1..])).collect();
    assert!(matches!(commit(&space, &[], &much), Err(KvError::TooLarge { .. })));
    // Nor are so many values got together.
    for one in much {
        commit(&space, &[], &[one]).unwrap();
    }
    let keys: Vec<_> = (0..5).map(|index| key(&index.to_string())).collect();
    assert_eq!(space.get_many(&keys[1..]).unwrap().iter().flatten().count(), 4);
    assert!(matches!(space.get_many(&keys), Err(KvError::TooLarge { .. })));
    assert!(BucketName::new(b"").is_none() && BucketName::new(b"a\0").is_none() && BucketName::new(&[b'x'; 65]).is_none());
}

#[test]
fn keys_come_in_order_within_their_bucket() {
    let space = Embedded::in_memory(KvLimits::default()).unwrap().space("t");
    let other = BucketName::new(b"bb").unwrap();
    let mut changes: Vec<_> = ["b1", "a", "b", "b2", "c", ""].iter().map(|name| put(name, "")).collect();
    changes.push((other.key(b"b3").unwrap(), Change::Put(Bytes::new())));
    assert_eq!(commit(&space, &[], &changes), committed(1));
    let keys = |prefix: &str, after: Option<&str>, count: usize| {
        let mut keys = Vec::new();
        let take = |key: &[u8]| {
            keys.push(String::from_utf8(key.to_vec()).unwrap());
            keys.len() < count
        };
        space.keys(&bucket(), prefix.as_bytes(), after.map(str::as_bytes), take).unwrap();
        keys
    };
    assert_eq!(keys("", None, 99), ["", "a", "b", "b1", "b2", "c"]);
    assert_eq!(keys("", Some("b"), 2), ["b1", "b2"]);
    assert_eq!(keys("b", None, 99), ["b", "b1", "b2"]);
    assert_eq!(keys("b", Some("a"), 99), ["b", "b1", "b2"]);
    assert_eq!(keys("b", Some("b2"), 99), [""; 0]);
    assert_eq!(keys("b", Some("zz"), 99), [""; 0]);
}

/// Crashes at any moment, while commits are made: what was acknowledged before is there afterwards, what was read before as well, and nothing
/// in part.
#[test]
fn what_was_acknowledged_outlives_a_crash() {
    let disk = Disk::default();
    let store = open(&disk);
    let stop = AtomicBool::new(false);
    let (mut seed, mut images) = (0x5eed_0006, Vec::new());
    thread::scope(|scope| {
        for name in ["x", "y", "z"] {
            let (space, stop) = (store.space("t"), &stop);
            scope.spawn(move || {
                for count in 1..=3_000 {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let pair = [put(&format!("{name}1"), &count.to_string()), put(&format!("{name}2"), &count.to_string())];
                    assert!(matches!(commit(&space, &[], &pair), Ok(Outcome::Committed { .. })));
                }
            });
        }
        let space = store.space("t");
        while images.len() < 40 {
            // What can be read was acknowledged, or is about to be.
            let seen = ["x1", "y1", "z1"].map(|name| get(&space, name).map_or(0, |(version, _)| version));
            images.push((seen, disk.crashed(&mut seed)));
            thread::sleep(std::time::Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let mut after = 0;
    for (seen, image) in images {
        let store = open(&image);
        let space = store.space("t");
        let mut newest = 0;
        for (name, seen) in ["x", "y", "z"].iter().zip(seen) {
            let pair = [get(&space, &format!("{name}1")), get(&space, &format!("{name}2"))];
            assert_eq!(pair[0], pair[1], "in part");
            let version = pair[0].as_ref().map_or(0, |(version, _)| *version);
            assert!(version >= seen, "{name}: version {seen} was there, and after the crash {version}");
            newest = newest.max(version);
        }
        let Ok(Outcome::Committed { version, .. }) = commit(&space, &[], &[put("new", "")]) else { panic!("no commit") };
        assert!(version > newest, "{version} after {newest}");
        after = after.max(newest);
    }
    assert!(after > 10, "there were only {after} commits");
}

/// Ever other names of buckets do not take ever more memory, and a list of before is not taken for one of now.
#[test]
fn sets_of_keys_of_many_buckets_are_forgotten_and_not_mistaken() {
    let store = Embedded::in_memory(KvLimits::default()).unwrap();
    let space = store.space("t");
    let listed = |name: &str| space.keys(&BucketName::new(name.as_bytes()).unwrap(), b"", None, |_| true).unwrap();
    let check = |name: &str, version| {
        let listed = vec![(BucketName::new(name.as_bytes()).unwrap(), version)];
        space.check(&Commit { listed, ..Commit::default() }).unwrap()
    };
    let (empty, before) = ("empty", listed("empty"));
    for first in (0..BUCKETS_MAX + 10).step_by(100) {
        let key = |number: usize| BucketName::new(format!("b{number}").as_bytes()).unwrap().key(b"k").unwrap();
        let changes = (first..first + 100).map(|number| (key(number), Change::Put(Bytes::new()))).collect();
        wait(space.clone().commit(Commit::new(Vec::new(), changes))).unwrap();
    }
    assert!(space.tenant.read().buckets.len() <= BUCKETS_MAX);
    assert!(matches!(check(empty, before), Outcome::Conflict { index: 0, .. }), "it may have changed");
    assert!(matches!(check(empty, listed(empty)), Outcome::Committed { .. }));
}

#[test]
fn what_was_seen_is_compared_on_the_thread_that_asks() {
    let store = Embedded::in_memory(KvLimits::default()).unwrap();
    let (space, bucket) = (store.space("t"), BucketName::new(b"b").unwrap());
    let key = |name: &str| bucket.key(name.as_bytes()).unwrap();
    let put =
        |name: &str| wait(space.clone().commit(Commit::new(Vec::new(), vec![(key(name), Change::Put("v".into()))]))).unwrap();
    put("one");
    let (one, none) = (key("one"), key("none"));
    let version = space.entry(&one).unwrap().unwrap().version;
    let set = space.keys(&bucket, b"", None, |_| true).unwrap();
    let seen = [(Seen::Key(&one), version), (Seen::Key(&none), 0), (Seen::Bucket(&bucket), set)];
    assert_eq!(space.changed(seen.into_iter()), Ok(None));
    put("one");
    assert_eq!(space.changed(seen.into_iter()), Ok(Some(Seen::Key(&one))));
    assert_eq!(space.changed(seen[1..].iter().copied()), Ok(None), "a value was changed, not the set");
    put("none");
    assert_eq!(space.changed(seen[1..].iter().copied()), Ok(Some(Seen::Key(&none))));
    assert_eq!(space.changed(seen[2..].iter().copied()), Ok(Some(Seen::Bucket(&bucket))));
    // Each look counts as a commit.
    assert_eq!(store.commits().counts()[..2], [("ok", 2), ("conflict", 3)]);
}
