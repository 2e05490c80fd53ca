//! What runs leave, each rule by itself: which of them leave something, and where that stands for a run. That it is right where it stands, `beside` proves.

use super::beside::space;
use super::{Below, Model, bucket, key, read_in};
use crate::kv::Change;
use crate::txn::footprint::Footprint;
use crate::txn::*;

const BYTES_MAX: usize = 1 << 16;

fn isolation() -> Isolation {
    Isolation { contention: Arc::default(), outside: Outside::Refused }
}

fn put(number: u64, value: &str) -> Commit {
    Commit::new(Vec::new(), vec![(key(number), Change::Put(Bytes::copy_from_slice(value.as_bytes())))])
}

/// A store with two keys.
fn model() -> Model {
    let mut model = Model::default();
    (0..2).for_each(|number| _ = model.commit(&put(number, "stored")).unwrap());
    model
}

fn list(transaction: &Transaction, model: &Model) {
    let _ = transaction.own_keys(&bucket(), &bucket().key(b"").unwrap());
    transaction.list(&bucket(), model.keys().1).unwrap();
}

/// What a callee of that caller leaves that does this.
fn left(caller: &Arc<Transaction>, run: impl FnOnce(&Transaction)) -> Option<Footprint> {
    let callee = Transaction::join(caller);
    run(&callee);
    assert!(matches!(callee.settle(true, None), Settled::Done));
    callee.footprint(BYTES_MAX)
}

/// That of a run that has read the first key, and has written the third one or listed the bucket.
fn footprint(model: &Model, lists: bool) -> Footprint {
    let run = |callee: &Transaction| {
        read_in(callee, &key(0), model);
        if lists { list(callee, model) } else { _ = callee.make(&put(2, "new")).unwrap() }
    };
    left(&Transaction::begin(&isolation()), run).unwrap()
}

#[test]
fn a_run_leaves_something_if_all_that_it_has_read_is_in_the_store() {
    let model = model();
    let caller = || Transaction::begin(&isolation());
    assert!(left(&caller(), |_| ()).is_some());
    assert!(caller().footprint(BYTES_MAX).is_none(), "it is no callee");
    let writes = caller();
    writes.make(&put(0, "mine")).unwrap();
    assert!(left(&writes, |callee| _ = read_in(callee, &key(1), &model)).is_some());
    assert!(left(&writes, |callee| _ = read_in(callee, &key(0), &model)).is_none(), "its caller has written that");
    let adds = caller();
    adds.make(&put(3, "mine")).unwrap();
    assert!(left(&adds, |callee| list(callee, &model)).is_none(), "its caller has added a key");
    let between = Transaction::join(&adds);
    assert!(left(&between, |callee| list(callee, &model)).is_none(), "the caller of its caller has");
    let beside = Transaction::beside(&adds).unwrap();
    list(&beside, &model);
    assert!(matches!(beside.settle(true, None), Settled::Done));
    assert!(beside.footprint(BYTES_MAX).is_some(), "it has seen the store");
    let is_large = |callee: &Transaction| _ = callee.make(&put(2, &"x".repeat(BYTES_MAX))).unwrap();
    assert!(left(&caller(), is_large).is_none());
}

#[test]
fn it_stands_for_a_run_that_would_see_the_same() {
    let mut model = model();
    let [footprint, listing] = [false, true].map(|lists| footprint(&model, lists));
    let recall = |prepare: &dyn Fn(&Arc<Transaction>), footprint: &Footprint| {
        let caller = Transaction::begin(&isolation());
        prepare(&caller);
        caller.recall(footprint, None)
    };
    let recalls = |prepare: &dyn Fn(&Arc<Transaction>)| recall(prepare, &footprint);
    let lists = |prepare: &dyn Fn(&Arc<Transaction>)| recall(prepare, &listing);
    let callee = |caller: &Arc<Transaction>, number| {
        let callee = Transaction::join(caller);
        callee.make(&put(number, "its")).unwrap();
        assert!(matches!(callee.settle(true, None), Settled::Done));
    };
    assert!(recalls(&|_| ()) && lists(&|_| ()));
    assert!(recalls(&|caller| _ = read_in(caller, &key(0), &model)) && lists(&|caller| list(caller, &model)));
    assert!(recalls(&|caller| _ = caller.make(&put(2, "mine")).unwrap()) && recalls(&|caller| callee(caller, 2)));
    assert!(!recalls(&|caller| _ = caller.make(&put(0, "mine")).unwrap()), "the caller has written what it reads");
    assert!(!recalls(&|caller| callee(caller, 0)), "another callee has");
    assert!(!lists(&|caller| _ = caller.make(&put(3, "mine")).unwrap()), "the caller has added a key that it lists");
    model.commit(&put(0, "later")).unwrap();
    assert!(!recalls(&|caller| _ = read_in(caller, &key(0), &model)), "the caller has read something else");
    model.commit(&put(3, "later")).unwrap();
    assert!(!lists(&|caller| list(caller, &model)), "the caller has listed something else");
    let caller = Transaction::begin(&isolation());
    caller.make(&put(0, "mine")).unwrap();
    assert!(!Transaction::join(&caller).recall(&footprint, None), "the caller of its caller has written that");
    assert!(Transaction::beside(&caller).unwrap().recall(&footprint, None), "it is seen when that is adopted");
    assert!(!Transaction::begin_again(&isolation()).recall(&footprint, None), "it was stale before");
    let again = Transaction::begin_again(&isolation());
    assert!(!Transaction::join(&again).recall(&footprint, None));
    assert!(!Transaction::beside(&again).unwrap().recall(&footprint, None));
    let isolation = isolation();
    (0..3).for_each(|_| isolation.contention.conflicted(&key(2), Instant::now()));
    assert!(!Transaction::begin(&isolation).recall(&footprint, None), "a run would take its turn");
}

#[test]
fn a_commit_proves_it_also_where_one_key_was_read_and_says_which_is_wrong() {
    let model = model();
    let left = |number| left(&Transaction::begin(&isolation()), |callee| _ = read_in(callee, &key(number), &model)).unwrap();
    let (first, second, lists) = (left(0), left(1), footprint(&model, true));
    let settle = |transaction: &Transaction| transaction.settle(true, Some(&space()));
    let caller = Transaction::begin(&isolation());
    read_in(&caller, &key(0), &model);
    assert!(matches!(settle(&caller), Settled::Done), "it was read now");
    let caller = Transaction::begin(&isolation());
    assert!(caller.recall(&first, None));
    let Settled::Commit(commit) = settle(&caller) else { panic!("it may be old") };
    assert_eq!(commit.expected.len(), 1);
    let caller = Transaction::begin(&isolation());
    let beside = Transaction::beside(&caller).unwrap();
    let begun = Transaction::of_call(&beside);
    assert!(begun.recall(&first, None) && matches!(begun.settle(true, None), Settled::Done) && caller.adopt(&beside));
    assert!(matches!(settle(&caller), Settled::Commit(_)), "it may be old for its caller, too");
    caller.came(Ok(Outcome::Conflict { version: 9, index: 0 }));
    assert!(matches!(caller.take_outcome(&commit), Settled::Stale));
    assert_eq!([&first, &second].map(|footprint| caller.is_spoiled_by(footprint)), [true, false]);
    let commit = Commit { listed: vec![(bucket(), 1)], ..Commit::new(Vec::new(), Vec::new()) };
    caller.came(Ok(Outcome::Conflict { version: 9, index: 0 }));
    assert!(matches!(caller.take_outcome(&commit), Settled::Stale));
    assert_eq!([&first, &lists].map(|footprint| caller.is_spoiled_by(footprint)), [false, true]);
}

#[test]
fn what_the_commit_has_changed_is_not_what_a_run_would_read() {
    let (model, caller) = (model(), Transaction::begin(&isolation()));
    let left = |number| left(&caller, |callee| _ = read_in(callee, &key(number), &model)).unwrap();
    let (first, second, lists) = (left(0), left(1), footprint(&model, true));
    assert_eq!([&first, &second, &lists].map(|footprint| caller.leaves(footprint)), [true; 3]);
    caller.make(&put(0, "mine")).unwrap();
    assert_eq!([&first, &second].map(|footprint| caller.leaves(footprint)), [false, true]);
    let caller = Transaction::begin(&isolation());
    caller.make(&put(3, "new")).unwrap();
    assert_eq!([&first, &lists].map(|footprint| caller.leaves(footprint)), [true, false]);
}
