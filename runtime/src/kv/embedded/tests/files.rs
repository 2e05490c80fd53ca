//! A store's two files on a real disk: what is closed in good order, what a server leaves that was killed, copies of one without the other, and the tools.

use redb::{Database, ReadableDatabase as _, TableDefinition};

use super::*;
use crate::kv::embedded::tool;

const ABOUT: TableDefinition<'_, &str, u64> = TableDefinition::new("about");

/// A store in that file, in which is that much.
fn filled(path: &Path, count: u64) -> Embedded {
    let health = Arc::new(Health::default());
    let store = Embedded::open(path, KvLimits::default(), &health).unwrap();
    assert_eq!(health.problems_now(), []);
    for number in 0..count {
        commit(&store.space("t"), &[], &[put(&format!("k{number}"), &number.to_string())]).unwrap();
    }
    store
}

/// Copies what is there now, as if the server had been killed.
fn copied(path: &Path, to: &Path, with_log: bool) {
    std::fs::copy(path, to).unwrap();
    if with_log {
        std::fs::copy(log_path(path), log_path(to)).unwrap();
    }
}

/// Closes it as a server does that ends.
fn closed(store: Embedded, path: &Path) {
    store.close();
    assert!(matches!(commit(&store.space("t"), &[], &[put("late", "1")]), Err(KvError::Unavailable(_))));
    // Nothing holds it any more.
    assert!(tool::check(path).is_ok());
}

fn entries(path: &Path) -> usize {
    tool::check(path).unwrap().tenants.iter().map(|tenant| tenant.entries).sum()
}

#[test]
fn a_store_that_was_killed_is_in_two_files_and_one_that_was_closed_in_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let store = filled(&at("kv.redb"), 20);
    copied(&at("kv.redb"), &at("killed"), true);
    copied(&at("kv.redb"), &at("alone"), false);
    assert!(at("kv.redb.log").exists() && log_path(&at("kv.redb")) == at("kv.redb.log"));
    assert_eq!(entries(&at("killed")), 20);
    let mut lines = Vec::new();
    tool::export(&at("killed"), &mut lines).unwrap();
    assert_eq!(lines.split(|byte| *byte == b'\n').filter(|line| line.windows(5).any(|part| part == b"value")).count(), 20);
    // The log is needed: neither the tool nor the server does without it, and none is made.
    let health = Arc::new(Health::default());
    let error = tool::check(&at("alone")).unwrap_err().to_string();
    assert!(error.contains("alone.log with the last commits is missing") && error.contains("sledge kv salvage"), "{error}");
    let refused = Embedded::open(&at("alone"), KvLimits::default(), &health).unwrap();
    assert!(!refused.space("t").is_open() && health.problems_now()[0].reason.contains("alone.log"), "{health:?}");
    drop(refused);
    assert!(!at("alone.log").exists());
    let rescued = tool::rescue(&at("alone"), &at("rescued")).unwrap();
    assert!(rescued.lost.iter().any(|lost| lost.contains("the last commits")), "{rescued}");
    // Closed in good order, the tree has everything, in a format that an earlier sledge knows.
    closed(store, &at("kv.redb"));
    copied(&at("kv.redb"), &at("backup"), false);
    assert_eq!(entries(&at("backup")), 20);
    let database = Database::open(at("backup")).unwrap();
    let read = database.begin_read().unwrap();
    let about = read.open_table(ABOUT).unwrap();
    assert_eq!(about.get("format").unwrap().unwrap().value(), 2);
    assert!(about.get("log").unwrap().is_none());
}

/// A log beside a tree that does not need it is none, whosever it is; one that the tree needs and that is another's is told.
#[test]
fn a_log_of_another_state_is_not_taken_for_that_of_the_tree() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    closed(filled(&at("kv.redb"), 5), &at("kv.redb"));
    copied(&at("kv.redb"), &at("old"), false);
    let store = filled(&at("kv.redb"), 10);
    copied(&at("kv.redb"), &at("first"), true);
    // An older copy that was closed, with the log of now.
    std::fs::copy(at("first.log"), at("old.log")).unwrap();
    assert_eq!(entries(&at("old")), 5);
    let old = Embedded::open(&at("old"), KvLimits::default(), &Arc::default()).unwrap();
    assert_eq!(commit(&old.space("t"), &[], &[put("new", "1")]), committed(6));
    copied(&at("old"), &at("old-killed"), true);
    assert_eq!(entries(&at("old-killed")), 6);
    drop((store, old));
    // The tree of a store that was killed, with the log of what went on from there, which knows that tree's nonce.
    copied(&at("first"), &at("went-on"), true);
    let store = filled(&at("went-on"), 2);
    std::fs::copy(at("went-on.log"), at("first.log")).unwrap();
    let error = tool::check(&at("first")).unwrap_err().to_string();
    assert!(error.contains("first.log does not belong to"), "{error}");
    // What both opened wrote and is still there is salvaged.
    let rescued = tool::rescue(&at("first"), &at("first-rescued")).unwrap();
    assert!(rescued.tenants[0].entries == 10 && !rescued.lost.is_empty(), "{rescued}");
    drop(store);
    // The log of a tree that needs one, beside another tree that needs one.
    std::fs::copy(at("first.log"), at("old-killed.log")).unwrap();
    let error = tool::check(&at("old-killed")).unwrap_err().to_string();
    assert!(error.contains("old-killed.log does not belong to"), "{error}");
    let health = Arc::new(Health::default());
    let refused = Embedded::open(&at("old-killed"), KvLimits::default(), &health).unwrap();
    assert!(!refused.space("t").is_open() && health.problems_now()[0].reason.contains("does not belong to"), "{health:?}");
    drop(refused);
    // What fits is salvaged, and what does not is told.
    let rescued = tool::rescue(&at("old-killed"), &at("rescued")).unwrap();
    assert!(rescued.tenants[0].entries == 5 && rescued.lost.iter().any(|lost| lost.contains("another state")), "{rescued}");
}

/// A file that has the log's name and is something else stays as it is.
#[test]
fn a_file_in_place_of_the_log_is_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let (path, health) = (folder.path().join("kv.redb"), Arc::new(Health::default()));
    let text = "12:00:01 a line of another program\n".repeat(200);
    std::fs::write(log_path(&path), &text).unwrap();
    let store = Embedded::open(&path, KvLimits::default(), &health).unwrap();
    assert!(!store.space("t").is_open());
    assert!(health.problems_now()[0].reason.contains("kv.redb.log is no log of a key-value store"), "{health:?}");
    assert_eq!(std::fs::read_to_string(log_path(&path)).unwrap(), text);
    std::fs::remove_file(log_path(&path)).unwrap();
    while !store.space("t").is_open() {
        store.retry();
        thread::yield_now();
    }
    assert_eq!(commit(&store.space("t"), &[], &[put("a", "1")]), committed(1));
}

/// A tree that is damaged and a log that is good: what is only in the log is salvaged, too.
#[test]
fn what_the_log_holds_is_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    closed(filled(&at("kv.redb"), 8), &at("kv.redb"));
    let store = Embedded::open(&at("kv.redb"), KvLimits::default(), &Arc::default()).unwrap();
    let space = store.space("t");
    commit(&space, &[], &[put("k0", "new"), (key("k1"), Change::Delete), put("more", "1")]).unwrap();
    copied(&at("kv.redb"), &at("damaged"), true);
    let mut bytes = std::fs::read(at("damaged")).unwrap();
    bytes[..512].fill(0x55);
    std::fs::write(at("damaged"), &bytes).unwrap();
    assert!(tool::check(&at("damaged")).unwrap_err().to_string().contains("is damaged"));
    let rescued = tool::rescue(&at("damaged"), &at("rescued")).unwrap();
    assert_eq!(rescued.tenants[0].entries, 8, "{rescued}");
    let again = Embedded::open(&at("rescued"), KvLimits::default(), &Arc::default()).unwrap();
    let space = again.space("t");
    assert_eq!(
        ["k0", "k1", "more"].map(|name| get(&space, name).map(|(_, value)| value)),
        [Some("new".to_owned()), None, Some("1".to_owned())]
    );
    assert_eq!(std::fs::read(at("damaged")).unwrap(), bytes, "the damaged file stays as it is");
    drop(store);
    // A record of the log that is damaged, of a tree that is whole: the other records are taken.
    let store = filled(&at("other"), 4);
    copied(&at("other"), &at("gap"), true);
    drop(store);
    let mut log = std::fs::read(at("gap.log")).unwrap();
    let second = log.windows(2).position(|window| window == b"k1").unwrap();
    log[second] = b'K';
    std::fs::write(at("gap.log"), &log).unwrap();
    let error = tool::check(&at("gap")).unwrap_err().to_string();
    assert!(error.contains("gap.log is damaged (record 2 is missing"), "{error}");
    let rescued = tool::rescue(&at("gap"), &at("gap-rescued")).unwrap();
    assert!(
        rescued.tenants[0].entries == 3 && rescued.lost.iter().any(|lost| lost.starts_with("record 2 of the log")),
        "{rescued}"
    );
}
