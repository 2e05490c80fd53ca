//! Callees that were begun beside a column of a pipeline, one rule at a time: what they see, and when the column adopts them.

use tokio::sync::Notify;

use super::*;
use crate::kv::{KvLimits, Redis};
use crate::txn::pipeline::{Cause, ColumnId, Dewey, Group, Pipeline};

fn pipeline() -> Arc<Pipeline> {
    let redis = Redis::new("redis://127.0.0.1:1", KvLimits::default(), String::new).unwrap();
    Pipeline::new(Some(Space::Redis(redis.space("t"))), Arc::new(Notify::new()))
}

/// Two columns, and a callee that was begun beside the second.
struct Three {
    pipeline: Arc<Pipeline>,
    first: (ColumnId, Arc<Transaction>),
    caller: (ColumnId, Arc<Transaction>),
    callee: Arc<Transaction>,
}

impl Three {
    fn new() -> Three {
        let pipeline = pipeline();
        let isolation = Isolation { contention: Arc::default(), outside: Outside::Refused };
        let open = |step| {
            let (id, transaction) = pipeline.open(Dewey::new(&[step]), &isolation).unwrap();
            (id, Transaction::of_call(&transaction))
        };
        let (first, caller) = (open(1), open(2));
        let callee = Transaction::of_call(&Transaction::beside(&caller.1).unwrap());
        Three { pipeline, first, caller, callee }
    }

    /// What the callee sees under a key of which the store has that.
    fn sees(&self, number: u64, of_store: Option<Entry>) -> Option<String> {
        let known = self.callee.read(&key(number)).unwrap();
        let entry = known.unwrap_or_else(|| self.callee.learn(&key(number), of_store).unwrap());
        entry.map(|entry| String::from_utf8(entry.value.to_vec()).unwrap())
    }

    fn is_adopted(&self) -> bool {
        assert!(matches!(self.callee.settle(true, None), Settled::Done));
        self.caller.1.adopt(&self.callee)
    }

    /// The commit of those columns, when all of them have ended.
    fn commit(&self, of: &[&(ColumnId, Arc<Transaction>)]) -> Commit {
        of.iter().for_each(|(_, transaction)| _ = transaction.settle(true, None));
        match self.pipeline.settle(&of.iter().map(|(id, _)| *id).collect::<Vec<_>>()) {
            Group::Commit { commit, .. } => commit,
            group => panic!("{group:?}"),
        }
    }

    fn commit_first(&self, version: u64) {
        self.commit(&[&self.first]);
        let group = self.pipeline.came(Ok(Outcome::Committed { version, sum: 0 }));
        assert!(matches!(group, Group::Committed { .. }), "{group:?}");
    }

    fn squashed(&self) -> Vec<ColumnId> {
        self.pipeline.take_squashed().into_iter().map(|squashed| squashed.column).collect()
    }
}

#[test]
fn a_callee_sees_what_columns_before_its_caller_have_written_and_its_reads_become_the_callers() {
    let three = Three::new();
    three.first.1.make(&put(1, "a")).unwrap();
    assert_eq!((three.sees(1, entry(5, "old")), three.sees(2, entry(6, "b"))), (Some("a".into()), Some("b".into())));
    three.callee.make(&put(3, "c")).unwrap();
    assert!(three.is_adopted());
    let commit = three.commit(&[&three.first, &three.caller]);
    assert_eq!((commit.expected, commit.changes), (vec![(key(2), 6)], [put(1, "a").changes, put(3, "c").changes].concat()));
}

#[test]
fn what_a_column_before_the_caller_writes_after_the_callee_has_read_it_has_the_callee_run_again() {
    for value in ["b", "c"] {
        let three = Three::new();
        three.first.1.make(&put(1, "a")).unwrap();
        assert_eq!(three.sees(1, None), Some("a".into()));
        three.first.1.make(&put(1, value)).unwrap();
        assert!(!three.is_adopted());
        assert_eq!(three.squashed(), [], "the caller has not read it");
    }
    // Once it is adopted, the caller has read it.
    let three = Three::new();
    assert_eq!(three.sees(1, entry(5, "a")), Some("a".into()));
    assert!(three.is_adopted());
    three.first.1.make(&put(1, "b")).unwrap();
    assert_eq!(three.squashed(), [three.caller.0]);
}

#[test]
fn what_a_callee_has_read_of_a_column_is_read_of_the_store_when_that_is_committed() {
    let three = Three::new();
    three.first.1.make(&put(1, "a")).unwrap();
    three.first.1.make(&Commit::new(Vec::new(), vec![(key(2), Change::Delete)])).unwrap();
    assert_eq!((three.sees(1, None), three.sees(2, entry(3, "x"))), (Some("a".into()), None));
    three.commit_first(9);
    assert!(three.is_adopted());
    let commit = three.commit(&[&three.caller]);
    assert_eq!(commit.expected, [(key(1), 9), (key(2), 0)]);
}

#[test]
fn a_callee_that_has_read_the_store_before_a_column_was_committed_that_has_written_there_runs_again() {
    let three = Three::new();
    assert_eq!(three.sees(1, entry(5, "old")), Some("old".into()));
    three.first.1.make(&put(1, "a")).unwrap();
    three.commit_first(9);
    assert!(!three.is_adopted());
    // One that has read what came later is right, as far as that is known here.
    let three = Three::new();
    three.first.1.make(&put(1, "a")).unwrap();
    three.commit_first(9);
    assert_eq!(three.sees(1, entry(12, "b")), Some("b".into()));
    assert!(three.is_adopted());
    assert_eq!(three.commit(&[&three.caller]).expected, [(key(1), 12)]);
}

#[test]
fn a_callee_that_has_read_of_a_column_that_is_gone_or_has_failed_runs_again() {
    for gives_up in [false, true] {
        let three = Three::new();
        three.first.1.make(&put(1, "a")).unwrap();
        assert_eq!(three.sees(1, None), Some("a".into()));
        if gives_up {
            three.pipeline.give_up(three.first.0);
        } else {
            assert!(matches!(three.first.1.settle(false, None), Settled::Done));
        }
        assert!(!three.is_adopted());
    }
}

#[test]
fn a_callee_that_was_told_that_there_is_no_sum_runs_again() {
    let three = Three::new();
    three.first.1.make(&put(1, "no number")).unwrap();
    three.first.1.make(&Commit::new(Vec::new(), vec![(key(2), Change::Add(1))])).unwrap();
    assert_eq!(three.callee.read(&key(2)), Ok(None));
    assert_eq!(three.callee.learn(&key(2), entry(4, "no number")), Err(KvError::NotANumber));
    assert!(!three.is_adopted());
}

#[test]
fn what_a_callee_has_listed_is_adopted_where_no_column_before_its_caller_has_changed_the_set() {
    let listed = |three: &Three, version| {
        assert_eq!(three.callee.own_keys(&bucket(), &key(0)), []);
        three.callee.list(&bucket(), version).unwrap();
    };
    let three = Three::new();
    listed(&three, 7);
    assert!(three.is_adopted());
    assert_eq!(three.commit(&[&three.first, &three.caller]).listed, [(bucket(), 7)]);
    let three = Three::new();
    listed(&three, 7);
    three.first.1.make(&put(1, "a")).unwrap();
    assert!(!three.is_adopted());
    // Nor where that is committed meanwhile.
    let three = Three::new();
    three.first.1.make(&put(1, "a")).unwrap();
    listed(&three, 7);
    three.commit_first(9);
    assert!(!three.is_adopted());
    // Once it is adopted, the caller has listed it.
    let three = Three::new();
    listed(&three, 7);
    assert!(three.is_adopted());
    three.first.1.make(&put(1, "a")).unwrap();
    assert_eq!(three.squashed(), [three.caller.0]);
}

#[test]
fn what_columns_before_the_caller_have_written_is_in_no_footprint_and_stands_for_no_call() {
    let three = Three::new();
    let callee = Transaction::join(&three.caller.1);
    assert_eq!(read_in(&callee, &key(1), &Model::default()), None);
    let footprint = callee.footprint(1 << 16).unwrap();
    assert!(three.caller.1.recall(&footprint, None));
    three.first.1.make(&put(2, "a")).unwrap();
    let callee = Transaction::join(&three.caller.1);
    assert!(read_in(&callee, &key(2), &Model::default()).is_some());
    assert!(callee.footprint(1 << 16).is_none(), "a version that is not the store's");
    let callee = Transaction::join(&three.caller.1);
    let _ = callee.own_keys(&bucket(), &key(0));
    callee.list(&bucket(), 7).unwrap();
    assert!(callee.footprint(1 << 16).is_none(), "a list of which others have changed the keys");
    // A later write under a key that was recalled squashes.
    let three = Three::new();
    assert!(three.caller.1.recall(&footprint, None));
    three.first.1.make(&put(1, "a")).unwrap();
    assert_eq!(three.squashed(), [three.caller.0]);
    // An earlier one has the function run.
    let three = Three::new();
    three.first.1.make(&put(1, "a")).unwrap();
    assert!(!three.caller.1.recall(&footprint, None));
}

#[test]
fn what_is_learned_of_a_run_waits_for_the_commit_that_decides_about_it() {
    let told: Arc<Mutex<Vec<Verdict>>> = Arc::default();
    let tell = |transaction: &Transaction| {
        let told = Arc::clone(&told);
        transaction.when_decided(Box::new(move |verdict, _| lock(&told).push(verdict))).is_some()
    };
    assert!(tell(&transaction()), "its own end decides");
    let three = Three::new();
    assert!(!tell(&three.caller.1) && !tell(&Transaction::join(&three.caller.1)));
    assert_eq!(lock(&told).len(), 0);
    three.caller.1.decided(Verdict::Committed);
    assert_eq!(std::mem::take(&mut *lock(&told)), [Verdict::Committed; 2]);
    // It was squashed by a column before it, which says nothing of the store, or by the store.
    let three = Three::new();
    assert!(!tell(&three.caller.1));
    three.caller.1.squashed(&Cause::Gone(three.first.0));
    assert_eq!(lock(&told).len(), 0);
    three.caller.1.squashed(&Cause::Changed(Some(key(1))));
    assert!(!tell(&three.caller.1), "it is known");
    assert_eq!(*lock(&told), [Verdict::Stale; 2]);
}
