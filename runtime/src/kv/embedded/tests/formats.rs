//! Files of earlier and of later versions.

use redb::{Database, TableDefinition};

use super::*;

type Entries = TableDefinition<'static, (&'static str, &'static [u8]), (u64, &'static [u8])>;

/// As the first version wrote it: one counter for all tenants, and nothing that says which version it is.
fn first_format(path: &Path) {
    let database = Database::create(path).unwrap();
    let write = database.begin_write().unwrap();
    let entries: Entries = TableDefinition::new("entries");
    let mut table = write.open_table(entries).unwrap();
    for (tenant, version) in [("one", 7), ("two", 9)] {
        table.insert((tenant, &b"b\0k"[..]), (version, &b"v"[..])).unwrap();
    }
    drop(table);
    let version: TableDefinition<'_, (), u64> = TableDefinition::new("version");
    write.open_table(version).unwrap().insert((), 12).unwrap();
    write.commit().unwrap();
}

#[test]
fn a_file_of_the_first_format_is_read_and_its_counter_gone_on_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.redb");
    first_format(&path);
    let health = Arc::new(Health::default());
    let store = Embedded::open(&path, KvLimits::default(), &health).unwrap();
    assert_eq!(health.problems_now(), []);
    for tenant in ["one", "two", "new"] {
        let space = store.space(tenant);
        assert_eq!(commit(&space, &[], &[put("x", "1")]), committed(13), "{tenant}");
    }
    assert_eq!(get(&store.space("one"), "k"), Some((7, "v".to_owned())));
    assert_eq!(commit(&store.space("one"), &[("k", 7)], &[put("k", "w")]), committed(14));
    // The program that wrote it before does not take it for its own.
    let copy = folder.path().join("copy");
    drop(store);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while Database::open(&path).is_err() {
        assert!(std::time::Instant::now() < end, "the store is not closed");
        thread::yield_now();
    }
    std::fs::copy(&path, &copy).unwrap();
    let database = Database::open(&copy).unwrap();
    let version: TableDefinition<'_, (), u64> = TableDefinition::new("version");
    let read = redb::ReadableDatabase::begin_read(&database).unwrap();
    assert!(matches!(read.open_table(version), Err(redb::TableError::TableTypeMismatch { .. })));
}

#[test]
fn a_file_of_a_later_format_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.redb");
    let database = Database::create(&path).unwrap();
    let write = database.begin_write().unwrap();
    let about: TableDefinition<'_, &str, u64> = TableDefinition::new("about");
    write.open_table(about).unwrap().insert("format", file::FORMAT + 1).unwrap();
    write.commit().unwrap();
    drop(database);
    let health = Arc::new(Health::default());
    let store = Embedded::open(&path, KvLimits::default(), &health).unwrap();
    let problems = health.problems_now();
    assert!(problems[0].reason.contains("was written by a later sledge (format 4; this one knows up to 3)"), "{problems:?}");
    let space = store.space("t");
    assert!(!space.is_open());
    assert!(matches!(space.get(&bucket(), b"k", |_| ()), Err(KvError::Unavailable(_))));
    assert!(matches!(commit(&space, &[], &[put("k", "1")]), Err(KvError::Unavailable(_))));
    assert!(matches!(commit(&space, &[("k", 0)], &[]), Err(KvError::Unavailable(_))));
}

/// A file that is damaged when the server starts: there is no store until another has taken its place.
#[test]
fn a_store_that_could_not_be_opened_is_there_when_its_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let (path, good) = (folder.path().join("kv.redb"), folder.path().join("good.redb"));
    first_format(&good);
    std::fs::write(&path, [7; 100_000]).unwrap();
    let health = Arc::new(Health::default());
    let store = Embedded::open(&path, KvLimits::default(), &health).unwrap();
    let space = store.space("one");
    assert!(health.problems_now()[0].reason.contains("sledge kv salvage"), "{:?}", health.problems_now());
    std::fs::remove_file(&path).unwrap();
    store.retry();
    assert!(!space.is_open(), "a file that was there is not made anew");
    std::fs::rename(&good, &path).unwrap();
    while !space.is_open() {
        store.retry();
        thread::yield_now();
    }
    assert_eq!(get(&space, "k"), Some((7, "v".to_owned())));
    assert_eq!(commit(&space, &[("k", 7)], &[put("k", "2")]), committed(13));
    while !health.problems_now().is_empty() {
        thread::yield_now();
    }
}
