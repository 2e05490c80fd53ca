//! Disks that fail and are full: what was acknowledged is there, what was refused is not, and service goes on.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;

use super::*;
use crate::kv::Record;

type Model = BTreeMap<(usize, String), (u64, String)>;

const TENANTS: [&str; 2] = ["one", "two"];

/// Keys, and what they become.
type Changes = Vec<(String, Option<String>)>;

/// Commits that add, replace, delete, and make the file larger: tenant, and what it changes.
fn workload() -> Vec<(usize, Changes)> {
    let name = |index: usize| format!("k{index}");
    let step = |step: usize| {
        let large = "x".repeat(1 + step * 700 % 9_000);
        let mut changes = vec![(name(step % 5), Some(format!("{step}{large}"))), (name(step % 3 + 5), Some(step.to_string()))];
        if step % 4 == 3 {
            changes.push((name(step % 5), None));
        }
        (step % 2, changes)
    };
    (0..12).map(step).collect()
}

#[track_caller]
fn check(store: &Embedded, model: &Model, what: &str) {
    for (index, tenant) in TENANTS.iter().enumerate() {
        let space = store.space(tenant);
        for name in (0..8).map(|key| format!("k{key}")) {
            let wanted = model.get(&(index, name.clone()));
            assert!(get(&space, &name).as_ref() == wanted, "{what}: {tenant} {name} is not as it was acknowledged");
        }
    }
}

/// Calls for the file again and again until `work` is done.
fn without_back_off<T>(store: &Embedded, work: impl FnOnce() -> T) -> T {
    /// Ends the calls also when `work` panics: what fails is to fail, and not to wait for ever.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                store.retry();
                thread::yield_now();
            }
        });
        let _over = Over(&over);
        work()
    })
}

/// The workload on a disk of which `count` operations fail, from number `from` on: at each moment the store and what a crash would leave of it are what was
/// acknowledged. Returns how many operations there were, and how many commits were refused.
fn run(from: usize, count: usize, error: i32, seed: u64) -> (usize, usize) {
    let (disk, health) = (Disk::default(), Arc::new(Health::default()));
    disk.fail(from, count, error, seed);
    let store = open_folding(&disk, &health);
    let what = format!("operations from {from}, {count} fail with error {error}, seed {seed}");
    let mut model = Model::new();
    let mut refused = 0;
    without_back_off(&store, || {
        while !store.space("one").is_open() {
            thread::yield_now();
        }
        for (tenant, changes) in workload() {
            let space = store.space(TENANTS[tenant]);
            let keys = changes.iter().map(|(name, value)| match value {
                Some(value) => put(name, value),
                None => (key(name), Change::Delete),
            });
            let keys: Vec<_> = keys.collect();
            loop {
                let made = commit(&space, &[], &keys);
                if let Ok(Outcome::Committed { version, .. }) = made {
                    for (name, value) in &changes {
                        match value {
                            Some(value) => drop(model.insert((tenant, name.clone()), (version, value.clone()))),
                            None => drop(model.remove(&(tenant, name.clone()))),
                        }
                    }
                }
                check(&store, &model, &what);
                let after = disk.operations();
                if made.is_err() || (from..from + count + 20).contains(&after) {
                    check(&open(&disk.crashed(&mut seed.wrapping_add(after as u64))), &model, &format!("{what}, after a crash"));
                }
                if made.is_ok() {
                    break;
                }
                refused += 1;
                assert!(matches!(made, Err(KvError::Unavailable(_))), "{made:?}");
            }
        }
        // Each failure is over.
        while !health.problems_now().is_empty() {
            thread::yield_now();
        }
    });
    (disk.operations(), refused)
}

/// Each write, each change of the file's size and each sync fails once.
#[test]
fn at_every_operation_that_fails_what_was_acknowledged_is_there_and_what_was_refused_is_not() {
    let (operations, _) = run(usize::MAX / 2, 0, libc::EIO, 1);
    assert!(operations > 50, "{operations}");
    let refused = (0..operations).map(|from| {
        let error = if from % 2 == 0 { libc::EIO } else { libc::ENOSPC };
        run(from, 1, error, 0x5eed_0014 + from as u64).1
    });
    let refused: usize = refused.sum();
    // Of the others, the failure was that of a sync after which all was there, or of what is done again without its caller.
    assert!(refused > 0, "{refused} refused of {operations}");
}

/// The same with disks that fail for longer.
#[test]
fn a_disk_that_fails_for_long_loses_nothing() {
    let (operations, _) = run(usize::MAX / 2, 0, libc::EIO, 1);
    for from in (0..operations).step_by(5) {
        run(from, 2 + from % 23, libc::EIO, 0x5eed_0015 + from as u64);
    }
}

#[test]
fn a_full_disk_is_told_and_service_goes_on_when_there_is_room() {
    let (disk, health) = (Disk::default(), Arc::new(Health::default()));
    let store = Embedded::with_backend(disk.source(), KvLimits::default(), &health).unwrap();
    let space = store.space("t");
    assert_eq!(commit(&space, &[], &[put("a", "1")]), committed(1));
    disk.set_bytes_max(Some(disk.bytes()));
    let large = "x".repeat(1 << 20);
    let mut made = 1;
    let refused = loop {
        match commit(&space, &[], &[put(&made.to_string(), &large)]) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
        assert!(made < 100);
    };
    assert!(refused.to_string().contains("is full (ENOSPC)"), "{refused}");
    let problems = health.problems_now();
    assert_eq!((problems.len(), problems[0].subject.as_str()), (1, "kv"), "{problems:?}");
    assert!(problems[0].reason.starts_with("the disk that holds FILE is full (ENOSPC)"), "{problems:?}");
    // There is no room for what failed: it does not become usable and unusable in turns.
    for _ in 0..20 {
        store.retry();
        assert!(matches!(commit(&space, &[], &[put("small", "1")]), Err(KvError::Unavailable(_))));
        assert_eq!(health.problems_now(), problems);
    }
    // Meanwhile it is read, and what changes nothing is answered.
    assert_eq!(get(&space, "a"), Some((1, "1".to_owned())));
    assert_eq!(commit(&space, &[("a", 1)], &[]), committed(made));
    disk.set_bytes_max(None);
    without_back_off(&store, || while commit(&space, &[], &[put("small", "1")]).is_err() {});
    assert_eq!(get(&space, "small"), Some((made + 1, "1".to_owned())));
    assert_eq!(health.problems_now(), []);
    let counts = store.commits().counts();
    assert_eq!(counts[0], ("ok", 0), "counted by the caller, of both stores alike");
}

/// There is room again when what failed fits, not when less does.
#[test]
fn a_disk_with_room_for_less_than_what_failed_stays_full() {
    const STEP: usize = 300 << 10;
    let large = "x".repeat(1 << 20);
    for room in (2 << 20..3 << 20).step_by(STEP) {
        let (disk, health) = (Disk::default(), Arc::new(Health::default()));
        let store = Embedded::with_backend(disk.source(), KvLimits::default(), &health).unwrap();
        let space = store.space("t");
        assert_eq!(commit(&space, &[], &[put("large", &large)]), committed(1));
        disk.set_bytes_max(Some(disk.bytes() + room));
        // It grows until the next large value has no room.
        let mut count = 1;
        while count < 100 && commit(&space, &[], &[put(&count.to_string(), &large)]).is_ok() {
            count += 1;
        }
        assert!(count < 100, "room {room}");
        let left = (0..3).find(|_| {
            store.retry();
            commit(&space, &[], &[put("small", "1")]).is_ok()
        });
        assert_eq!(left, None, "room {room}: open although the value of 1 MiB does not fit");
        disk.set_bytes_max(Some(disk.bytes() + (32 << 20)));
        without_back_off(&store, || while commit(&space, &[], &[put("small", "1")]).is_err() {});
        assert!(
            commit(&space, &[], &[put(&count.to_string(), &large)]).is_ok(),
            "room {room}: open, and what failed does not fit"
        );
    }
}

/// A commit is counted as what it came to.
#[test]
fn what_failed_is_not_counted_as_made() {
    let (disk, health) = (Disk::default(), Arc::new(Health::default()));
    let store = crate::kv::Store::Embedded(Embedded::with_folds(disk.source(), SELDOM, KvLimits::default(), &health).unwrap());
    let space = store.space("t");
    let commit = |expected: &[(&str, u64)], changes: &[(BucketKey, Change)]| {
        let expected = expected.iter().map(|(name, version)| (key(name), *version)).collect();
        wait(space.clone().commit(Commit::new(expected, changes.to_vec())))
    };
    commit(&[], &[put("a", "1")]).unwrap();
    commit(&[("a", 7)], &[put("a", "2")]).unwrap();
    commit(&[], &[put("a", &"x".repeat(2 << 20))]).unwrap_err();
    disk.fail(disk.operations(), usize::MAX / 2, libc::EIO, 1);
    let doubtful = space.clone().commit(Commit::new(Vec::new(), vec![put("a", "3")]));
    let late = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    // Whether it fails at once or waits for the file follows from which operation was its first.
    let failed = late.block_on(async { tokio::time::timeout(std::time::Duration::from_millis(300), doubtful).await.is_ok() });
    commit(&[], &[put("a", "4")]).unwrap_err();
    let counts = store.commits().counts();
    let (failures, abandoned) = if failed { (2, 0) } else { (1, 1) };
    assert_eq!(counts, [("ok", 1), ("conflict", 1), ("refused", 1), ("failed", failures), ("abandoned", abandoned)]);
}

/// An operator who puts another file in the place of the one that failed is told so, and it stays as it is.
#[test]
fn another_file_is_not_written_to() {
    let (disk, other, health) = (Disk::default(), Disk::default(), Arc::new(Health::default()));
    assert_eq!(commit(&open(&other).space("t"), &[], &[put("b", "1")]), committed(1));
    let other = other.crashed(&mut 1);
    let is_other = Arc::new(AtomicBool::new(false));
    let (mut right, mut wrong, chosen) = (disk.source(), other.source(), Arc::clone(&is_other));
    let source = move || if chosen.load(Ordering::Relaxed) { wrong() } else { right() };
    let store = Embedded::with_folds(source, SELDOM, KvLimits::default(), &health).unwrap();
    let space = store.space("t");
    for count in 1..=3 {
        assert_eq!(commit(&space, &[], &[put("a", "1")]), committed(count));
    }
    // Of the log's record, less than its header is written.
    disk.fail(disk.operations(), 1, libc::EIO, 300);
    is_other.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        let doubtful = scope.spawn(|| commit(&space, &[], &[put("a", "2")]));
        while !health.problems_now().iter().any(|problem| problem.reason.contains("not the file that this server had open")) {
            store.retry();
            thread::yield_now();
        }
        assert_eq!(get(&space, "a"), Some((3, "1".to_owned())));
        is_other.store(false, Ordering::Relaxed);
        let refused = without_back_off(&store, || doubtful.join().unwrap());
        assert!(refused.is_err(), "{refused:?}");
        without_back_off(&store, || while commit(&space, &[], &[put("a", "3")]).is_err() {});
    });
    assert_eq!(get(&space, "a"), Some((4, "3".to_owned())));
    let after = open(&other.crashed(&mut 1)).space("t");
    assert_eq!((get(&after, "a"), get(&after, "b")), (None, Some((1, "1".to_owned()))));
}

/// A copy of the file that is older, or what a disk left that had lost a part of it: what was acknowledged is in memory, and written again.
#[test]
fn a_file_that_went_back_is_mended() {
    let (disk, health) = (Disk::default(), Arc::new(Health::default()));
    let (current, mut right) = (Arc::new(Mutex::new(None::<Disk>)), disk.source());
    let chosen = Arc::clone(&current);
    let source = move || match &*chosen.lock().unwrap() {
        Some(other) => other.source()(),
        None => right(),
    };
    let store = Embedded::with_folds(source, SELDOM, KvLimits::default(), &health).unwrap();
    let space = store.space("t");
    assert_eq!(commit(&space, &[], &[put("a", "1"), put("gone", "1")]), committed(1));
    let old = disk.crashed(&mut 1);
    assert_eq!(commit(&space, &[], &[put("a", "2"), (key("gone"), Change::Delete), put("b", "2")]), committed(2));
    assert_eq!(commit(&store.space("u"), &[], &[put("a", "1")]), committed(1));
    disk.fail(disk.operations(), 1, libc::EIO, 1);
    *current.lock().unwrap() = Some(old.clone());
    let refused = without_back_off(&store, || commit(&space, &[], &[put("a", "3")]));
    assert!(matches!(refused, Err(KvError::Unavailable(_))), "{refused:?}");
    while !health.problems_now().is_empty() {
        thread::yield_now();
    }
    let again = open(&old.crashed(&mut 1));
    for store in [&again, &store] {
        let space = store.space("t");
        let found = ["a", "b", "gone"].map(|name| get(&space, name));
        assert_eq!(found, [Some((2, "2".to_owned())), Some((2, "2".to_owned())), None]);
        assert_eq!(commit(&space, &[], &[put("c", "3")]), committed(3));
        assert_eq!(commit(&store.space("u"), &[], &[put("a", "2")]), committed(2));
    }
}

/// A file that has failed is opened again when those that read have done with it: opened before, it would be taken for one that another server has.
#[test]
fn a_file_that_failed_is_opened_again_when_readers_have_done_with_it() {
    let (disk, is_read, is_early) = (Disk::default(), Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (mut source, read, early) = (disk.source(), Arc::clone(&is_read), Arc::clone(&is_early));
    let watched = move || {
        early.fetch_or(read.load(Ordering::Relaxed), Ordering::Relaxed);
        source()
    };
    let store = Embedded::with_folds(watched, SELDOM, KvLimits::default(), &Arc::default()).unwrap();
    let space = store.space("t");
    let records = vec![Record::put(*b"r", "1")];
    wait(space.clone().commit(Commit { records, ..Commit::default() })).unwrap();
    thread::scope(|scope| {
        let (begun, begins) = channel();
        let (ends, ended) = channel();
        let (records, is_read) = (store.records(), &is_read);
        scope.spawn(move || {
            let reads = |_: &[u8], _: &[u8]| {
                is_read.store(true, Ordering::Relaxed);
                begun.send(()).unwrap();
                ended.recv().unwrap();
                is_read.store(false, Ordering::Relaxed);
                true
            };
            records.scan((Bound::Unbounded, Bound::Unbounded), Order::Rising, reads).unwrap();
        });
        begins.recv().unwrap();
        disk.fail(disk.operations(), 1, libc::EIO, 1);
        let committed = scope.spawn(|| commit(&space, &[], &[put("a", "1")]));
        // Long enough for the writer to come to the file, and for it to wait.
        thread::sleep(Duration::from_millis(100));
        ends.send(()).unwrap();
        committed.join().unwrap().unwrap();
    });
    assert!(!is_early.load(Ordering::Relaxed), "it was opened while it was read");
}
