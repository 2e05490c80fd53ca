//! Columns of a pipeline one by one: what each reads of its predecessors, which of them a write squashes, and what their commit is.

use sledge_workflow::definition::{Definition, StateIndex};
use tokio::sync::Notify;

use super::*;
use crate::kv::outbox::{self, Bell, Outbox};
use crate::kv::{KvLimits, Redis};
use crate::txn::pipeline::{COLUMNS_MAX, Cause, ColumnId, Dewey, Findings, Group, Pipeline, Stalls};

type Opened = (ColumnId, Arc<Transaction>);

fn isolation() -> Isolation {
    Isolation { contention: Arc::default(), outside: Outside::Refused }
}

/// On a store that nothing is asked of.
fn pipeline() -> Arc<Pipeline> {
    let redis = Redis::new("redis://127.0.0.1:1", KvLimits::default(), String::new).unwrap();
    Pipeline::new(Some(Space::Redis(redis.space("t"))), Arc::new(Notify::new()))
}

/// Opens columns behind each other.
fn columns<const N: usize>(pipeline: &Arc<Pipeline>) -> [Opened; N] {
    std::array::from_fn(|index| pipeline.open(Dewey::new(&[index as u64 + 1]), &isolation()).unwrap())
}

fn add(number: u64, delta: i64) -> Commit {
    Commit::new(Vec::new(), vec![(key(number), Change::Add(delta))])
}

fn ends(transaction: &Transaction) {
    assert!(matches!(transaction.settle(true, None), Settled::Done));
}

/// What it sees under a key, where the pipeline says it.
fn sees(transaction: &Transaction, number: u64) -> Option<String> {
    let entry = transaction.read(&key(number)).unwrap().expect("the store is not asked");
    entry.map(|entry| String::from_utf8(entry.value.to_vec()).unwrap())
}

fn committed(version: u64) -> Result<Outcome, KvError> {
    Ok(Outcome::Committed { version, sum: 0 })
}

/// The commit of these columns.
fn commit(pipeline: &Pipeline, of: &[&Opened]) -> Commit {
    let named: Vec<ColumnId> = of.iter().map(|(id, _)| *id).collect();
    match pipeline.settle(&named) {
        Group::Commit { columns, commit } if columns == named => commit,
        group => panic!("{group:?}"),
    }
}

fn leave(pipeline: &Pipeline, of: &[&Opened], version: u64) {
    let named: Vec<ColumnId> = of.iter().map(|(id, _)| *id).collect();
    assert_eq!(
        pipeline.came(committed(version)),
        Group::Committed { findings: named.iter().map(finds_nothing).collect(), columns: named, calls: Vec::new() }
    );
}

fn finds_nothing(column: &ColumnId) -> Findings {
    Findings { column: *column, basis: None, reads: Vec::new() }
}

/// The columns that were squashed.
fn take_squashed(pipeline: &Pipeline) -> Vec<ColumnId> {
    pipeline.take_squashed().into_iter().map(|squashed| squashed.column).collect()
}

#[test]
fn a_write_squashes_what_has_read_something_else_and_what_has_read_from_that() {
    let pipeline = pipeline();
    let [first, second, third, fourth] = columns(&pipeline);
    second.1.learn(&key(1), entry(5, "a")).unwrap();
    second.1.make(&put(2, "from a")).unwrap();
    assert_eq!(sees(&third.1, 2).as_deref(), Some("from a"));
    // Blind, so that what follows does not depend on what is before.
    fourth.1.make(&put(1, "z")).unwrap();
    first.1.make(&put(1, "a")).unwrap();
    assert_eq!(take_squashed(&pipeline), [], "it is what was read");
    first.1.make(&put(1, "b")).unwrap();
    let mut squashed = take_squashed(&pipeline);
    squashed.sort_unstable();
    assert_eq!(squashed, [second.0, third.0]);
    // What it still does changes nothing, and it may go on.
    second.1.make(&put(3, "x")).unwrap();
    ends(&second.1);
    assert_eq!((fourth.1.read(&key(3)), pipeline.ended(second.0)), (Ok(None), None));
    let again = pipeline.open(Dewey::new(&[2]), &isolation()).unwrap();
    assert_eq!(sees(&again.1, 1).as_deref(), Some("b"));
    [&first, &again, &fourth].iter().for_each(|(_, transaction)| ends(transaction));
    let commit = commit(&pipeline, &[&first, &again, &fourth]);
    assert_eq!((commit.expected, commit.changes), (vec![], put(1, "z").changes));
}

#[test]
fn a_squashed_column_says_what_it_has_read_too_early_and_of_which_column() {
    let pipeline = pipeline();
    let [first, second, third, fourth] = columns(&pipeline);
    second.1.learn(&key(1), entry(5, "a")).unwrap();
    second.1.make(&put(2, "from a")).unwrap();
    assert_eq!(sees(&third.1, 2).as_deref(), Some("from a"));
    assert_eq!(fourth.1.own_keys(&bucket(), &key(0)).len(), 1);
    first.1.make(&put(1, "b")).unwrap();
    let mut squashed = pipeline.take_squashed();
    squashed.sort_unstable_by_key(|squashed| squashed.column);
    let causes: Vec<(ColumnId, Cause)> = squashed.into_iter().map(|squashed| (squashed.column, squashed.cause)).collect();
    let expected = [
        (second.0, Cause::Wrote(first.0, key(1))),
        (third.0, Cause::Gone(second.0)),
        (fourth.0, Cause::Listed(first.0, bucket())),
    ];
    assert_eq!(causes, expected);
    assert_eq!((causes[0].1.by(), causes[0].1.bytes() > 0), (Some(first.0), true));
    // What others have changed is found out by the commit.
    first.1.learn(&key(7), entry(1, "a")).unwrap();
    ends(&first.1);
    commit(&pipeline, &[&first]);
    assert!(matches!(pipeline.came(Ok(Outcome::Conflict { version: 3, index: 0 })), Group::Stale { .. }));
    let causes: Vec<Cause> = pipeline.take_squashed().into_iter().map(|squashed| squashed.cause).collect();
    assert_eq!(causes, [Cause::Changed(Some(key(7)))]);
}

#[test]
fn a_deletion_is_read_and_the_readers_of_what_is_given_up_or_has_failed_are_squashed() {
    let pipeline = pipeline();
    let [first, second, third] = columns(&pipeline);
    first.1.make(&Commit::new(Vec::new(), vec![(key(1), Change::Delete)])).unwrap();
    second.1.make(&put(2, "x")).unwrap();
    assert_eq!((sees(&third.1, 1), sees(&third.1, 2).as_deref()), (None, Some("x")));
    ends(&second.1);
    assert_eq!(pipeline.ended(second.0), Some(true));
    // The caller of the run knows that its reply was lost.
    assert!(matches!(second.1.settle(false, None), Settled::Done));
    assert_eq!((pipeline.ended(second.0), take_squashed(&pipeline)), (Some(false), vec![third.0]));
    let third = pipeline.open(Dewey::new(&[3]), &isolation()).unwrap();
    assert_eq!((sees(&third.1, 1), third.1.read(&key(2))), (None, Ok(None)));
    pipeline.give_up(first.0);
    assert_eq!((take_squashed(&pipeline), pipeline.ended(first.0)), (vec![third.0], None), "the driver knows what it gives up");
}

#[test]
fn what_was_read_from_a_column_is_expected_at_the_version_of_its_commit_and_seen_at_the_one_it_had() {
    let pipeline = pipeline();
    let [first, second, third] = columns(&pipeline);
    first.1.make(&put(1, "a")).unwrap();
    first.1.make(&Commit::new(Vec::new(), vec![(key(2), Change::Delete)])).unwrap();
    let seen = second.1.read(&key(1)).unwrap().flatten().unwrap();
    assert_eq!(sees(&second.1, 2), None);
    ends(&first.1);
    commit(&pipeline, &[&first]);
    // One on its way is read as before, and nothing else is sent.
    assert_eq!((sees(&third.1, 1).as_deref(), pipeline.settle(&[second.0])), (Some("a"), Group::Nothing));
    leave(&pipeline, &[&first], 77);
    let swap = Commit::new(vec![(key(1), seen.version)], put(1, "b").changes);
    assert!(matches!(second.1.make(&swap), Ok(Outcome::Committed { .. })), "the function has not seen 77");
    assert_eq!(take_squashed(&pipeline), [third.0]);
    ends(&second.1);
    let commit = commit(&pipeline, &[&second]);
    assert_eq!((commit.expected, commit.changes), (vec![(key(1), 77), (key(2), 0)], put(1, "b").changes));
}

#[test]
fn additions_add_up_and_become_reads_where_their_sum_is_read() {
    let pipeline = pipeline();
    let [first, second, third] = columns(&pipeline);
    for (_, transaction) in [&first, &second] {
        transaction.make(&add(1, 2)).unwrap();
        ends(transaction);
    }
    assert_eq!(commit(&pipeline, &[&first, &second]).changes, add(1, 4).changes);
    // The sum of what is on its way is not known before the store has said it.
    assert_eq!(third.1.read(&key(1)), Ok(None));
    third.1.learn(&key(1), entry(5, "10")).unwrap();
    assert_eq!(sees(&third.1, 1).as_deref(), Some("14"));
    leave(&pipeline, &[&first, &second], 6);
    assert_eq!(take_squashed(&pipeline), [third.0]);
    let [first, second] = [4, 5].map(|place| pipeline.open(Dewey::new(&[place]), &isolation()).unwrap());
    first.1.make(&add(1, 2)).unwrap();
    second.1.learn(&key(1), entry(6, "20")).unwrap();
    assert_eq!((sees(&second.1, 1).as_deref(), sees(&first.1, 1).as_deref()), (Some("22"), Some("22")));
    [&first, &second].iter().for_each(|(_, transaction)| ends(transaction));
    let commit = commit(&pipeline, &[&first, &second]);
    assert_eq!((commit.expected, commit.changes), (vec![(key(1), 6)], put(1, "22").changes));
}

#[test]
fn a_sum_that_one_column_alone_could_not_make_is_not_made_by_two() {
    let pipeline = pipeline();
    let [first, second, third] = columns(&pipeline);
    for ((_, transaction), delta) in [&first, &second, &third].into_iter().zip([1, -1, -2]) {
        transaction.make(&add(1, delta)).unwrap();
        ends(transaction);
    }
    let separate: Vec<_> = [1, -3].into_iter().flat_map(|delta| add(1, delta).changes).collect();
    assert_eq!(commit(&pipeline, &[&first, &second, &third]).changes, separate);
}

#[test]
fn a_list_has_the_keys_of_predecessors_and_is_right_after_their_commit_where_the_store_says_so() {
    let from = bucket().key(b"").unwrap();
    for (is_known, is_changed) in [(true, true), (true, false), (false, true)] {
        let pipeline = pipeline();
        let [first, second] = columns(&pipeline);
        if is_known {
            first.1.learn(&key(1), if is_changed { None } else { entry(3, "y") }).unwrap();
        }
        first.1.make(&put(1, "x")).unwrap();
        let has_added = !is_known || is_changed;
        assert!(second.1.own_keys(&bucket(), &from).contains(&(key(1), true)));
        let callee = Transaction::join(&second.1);
        assert!(callee.own_keys(&bucket(), &from).contains(&(key(1), true)));
        callee.list(&bucket(), 3).unwrap();
        ends(&first.1);
        let made = commit(&pipeline, &[&first]);
        assert_eq!(made.listed, if is_known && is_changed { vec![(bucket(), 3)] } else { vec![] });
        leave(&pipeline, &[&first], 4);
        assert_eq!(take_squashed(&pipeline), if is_known { vec![] } else { vec![second.0] });
        if is_known {
            let version = if has_added { 4 } else { 3 };
            // The callee goes on with the same keys.
            callee.list(&bucket(), version).unwrap();
            ends(&callee);
            ends(&second.1);
            assert_eq!(commit(&pipeline, &[&second]).listed, [(bucket(), version)]);
        }
    }
}

#[test]
fn a_list_is_squashed_by_a_key_that_is_added_before_it_and_by_the_end_of_what_it_has_listed() {
    let from = bucket().key(b"").unwrap();
    let pipeline = pipeline();
    let [first, second] = columns(&pipeline);
    assert_eq!(second.1.own_keys(&bucket(), &from), []);
    first.1.make(&put(1, "x")).unwrap();
    assert_eq!(take_squashed(&pipeline), [second.0]);
    // It has listed a key that the store does not have any more, since a predecessor has seen it there and written it.
    let second = pipeline.open(Dewey::new(&[2]), &isolation()).unwrap();
    let third = pipeline.open(Dewey::new(&[3]), &isolation()).unwrap();
    second.1.learn(&key(2), entry(4, "x")).unwrap();
    second.1.make(&put(2, "y")).unwrap();
    assert!(third.1.own_keys(&bucket(), &from).contains(&(key(2), true)));
    third.1.list(&bucket(), 5).unwrap();
    pipeline.give_up(second.0);
    assert_eq!(take_squashed(&pipeline), [third.0]);
    // A second look that shows another set is the end of the column, too.
    first.1.list(&bucket(), 5).unwrap();
    first.1.list(&bucket(), 6).unwrap();
    assert_eq!(take_squashed(&pipeline), [first.0]);
}

#[test]
fn a_list_that_is_in_the_way_of_its_predecessors_commit_is_squashed_and_does_not_stop_it() {
    let pipeline = pipeline();
    let [first, second] = columns(&pipeline);
    first.1.learn(&key(1), None).unwrap();
    first.1.make(&put(1, "x")).unwrap();
    second.1.list(&bucket(), 3).unwrap();
    ends(&first.1);
    let made = commit(&pipeline, &[&first]);
    let index = made.expected.len();
    assert_eq!(pipeline.came(Ok(Outcome::Conflict { version: 9, index })), Group::Again);
    assert_eq!(take_squashed(&pipeline), [second.0]);
    // Nor does the next one, before that is made.
    let second = pipeline.open(Dewey::new(&[2]), &isolation()).unwrap();
    second.1.list(&bucket(), 9).unwrap();
    assert_eq!(commit(&pipeline, &[&first]).listed, []);
}

#[test]
fn a_conflict_names_the_first_column_that_has_read_the_key_and_leaves_those_before_it() {
    let pipeline = pipeline();
    let [first, second, third, fourth] = columns(&pipeline);
    first.1.learn(&key(1), entry(1, "a")).unwrap();
    second.1.learn(&key(2), entry(2, "b")).unwrap();
    // What a predecessor has read of the store is not asked for again.
    assert_eq!(sees(&third.1, 2).as_deref(), Some("b"));
    fourth.1.make(&put(3, "x")).unwrap();
    [&first, &second, &third, &fourth].iter().for_each(|(_, transaction)| ends(transaction));
    let made = commit(&pipeline, &[&first, &second, &third, &fourth]);
    assert_eq!((made.expected, made.id.is_some()), (vec![(key(1), 1), (key(2), 2)], true));
    let came = pipeline.came(Ok(Outcome::Conflict { version: 3, index: 1 }));
    assert_eq!(came, Group::Stale { column: second.0, key: Some(key(2)) });
    let mut squashed = take_squashed(&pipeline);
    squashed.sort_unstable();
    assert_eq!(squashed, [second.0, third.0], "the last one depends on neither");
    assert_eq!(pipeline.settle(&[fourth.0]), Group::Nothing, "it does not stand first");
    commit(&pipeline, &[&first]);
    leave(&pipeline, &[&first], 4);
}

#[test]
fn two_versions_of_a_key_are_not_in_one_commit() {
    let pipeline = pipeline();
    let [first, second] = columns(&pipeline);
    // At the same time: neither knows of the other.
    second.1.learn(&key(1), entry(1, "a")).unwrap();
    first.1.learn(&key(1), entry(2, "b")).unwrap();
    [&first, &second].iter().for_each(|(_, transaction)| ends(transaction));
    let Group::Commit { columns, commit } = pipeline.settle(&[first.0, second.0]) else { panic!("the first can be made") };
    assert_eq!((columns, commit.expected), (vec![first.0], vec![(key(1), 2)]));
    assert_eq!(take_squashed(&pipeline), [second.0]);
}

#[test]
fn columns_that_the_store_refuses_together_are_made_one_by_one() {
    let pipeline = pipeline();
    let [first, second, third] = columns(&pipeline);
    first.1.make(&put(1, "x")).unwrap();
    second.1.make(&add(1, 1)).unwrap();
    assert_eq!(third.1.read(&key(1)), Err(KvError::NotANumber));
    [&first, &second].iter().for_each(|(_, transaction)| ends(transaction));
    let both: Vec<_> = put(1, "x").changes.into_iter().chain(add(1, 1).changes).collect();
    assert_eq!(commit(&pipeline, &[&first, &second]).changes, both);
    assert_eq!(pipeline.came(Err(KvError::NotANumber)), Group::Again);
    assert!(take_squashed(&pipeline).contains(&third.0), "there is no such sum, if the second one fails");
    assert!(matches!(pipeline.settle(&[first.0, second.0]), Group::Commit { columns, .. } if columns == [first.0]));
    leave(&pipeline, &[&first], 4);
    assert!(matches!(pipeline.settle(&[second.0]), Group::Commit { .. }));
    let failed = Group::Failed { columns: vec![second.0], error: KvError::NotANumber };
    assert_eq!((pipeline.came(Err(KvError::NotANumber)), pipeline.ended(second.0)), (failed, None));
    // Of an outcome that is not known the columns are told together.
    let [first, second] = [4, 5].map(|place| pipeline.open(Dewey::new(&[place]), &isolation()).unwrap());
    for (_, transaction) in [&first, &second] {
        transaction.make(&put(1, "y")).unwrap();
        ends(transaction);
    }
    commit(&pipeline, &[&first, &second]);
    let error = KvError::Unknown("x".to_owned());
    assert_eq!(pipeline.came(Err(error.clone())), Group::Failed { columns: vec![first.0, second.0], error });
    assert_eq!(take_squashed(&pipeline), []);
}

#[test]
fn what_a_callee_writes_counts_when_it_has_ended_well_and_not_behind_the_end_of_its_caller() {
    let pipeline = pipeline();
    let [first, second] = columns(&pipeline);
    let own = Transaction::of_call(&first.1);
    assert!(Arc::ptr_eq(&own, &first.1));
    let callees: [_; 3] = std::array::from_fn(|_| Transaction::of_call(&own));
    assert_eq!(sees_of_store(&second.1, 1, "a"), Some("a".into()));
    for (index, callee) in callees.iter().enumerate() {
        assert_eq!(sees_of_store(callee, 2, "b"), Some("b".into()));
        callee.make(&put(1, &format!("{index}"))).unwrap();
    }
    assert_eq!(take_squashed(&pipeline), []);
    assert!(matches!(callees[0].settle(false, None), Settled::Done));
    assert_eq!(take_squashed(&pipeline), []);
    ends(&callees[1]);
    assert_eq!((take_squashed(&pipeline), sees(&first.1, 1).as_deref()), (vec![second.0], Some("1")));
    ends(&first.1);
    // It is not waited for.
    ends(&callees[2]);
    assert_eq!(first.1.made().changes, put(1, "1").changes);
    assert_eq!(commit(&pipeline, &[&first]).changes, put(1, "1").changes);
}

/// What it sees under a key, where the store is asked and has that.
fn sees_of_store(transaction: &Transaction, number: u64, value: &str) -> Option<Bytes> {
    transaction.learn(&key(number), entry(1, value)).unwrap().map(|entry| entry.value)
}

#[test]
fn calls_begin_and_the_outbox_rings_when_their_columns_are_committed() {
    let (pipeline, bell) = (pipeline(), Arc::new(Bell::default()));
    let isolation = Isolation { outside: Outside::Outbox(Outbox::of(&bell, "t")), ..isolation() };
    bell.take();
    let call = |name: &str| PutOff { name: name.into(), input: Bytes::new(), host_call: 1 };
    let opened = [1, 2].map(|place| pipeline.open(Dewey::new(&[place]), &isolation).unwrap());
    for ((_, transaction), (name, ended_well)) in opened.iter().zip([("fails", false), ("works", true)]) {
        transaction.put_off(call(name));
        let request = (outbox::key(name).unwrap(), Change::Put("x".into()));
        transaction.make(&Commit::new(Vec::new(), vec![request])).unwrap();
        assert!(matches!(transaction.settle(ended_well, None), Settled::Done) && transaction.take_calls().is_empty());
    }
    let columns = opened.each_ref().map(|(id, _)| *id);
    assert_eq!(commit(&pipeline, &opened.each_ref()).changes.len(), 1);
    assert!(bell.take().is_empty());
    assert_eq!(
        pipeline.came(committed(4)),
        Group::Committed {
            findings: columns.iter().map(finds_nothing).collect(),
            columns: columns.to_vec(),
            calls: vec![call("works")]
        }
    );
    assert_eq!(bell.take().len(), 1);
}

#[test]
fn there_are_so_many_columns_and_none_before_what_is_on_its_way_to_the_store() {
    let pipeline = pipeline();
    let opened = columns::<COLUMNS_MAX>(&pipeline);
    assert!(pipeline.open(Dewey::new(&[100]), &isolation()).is_none());
    // The one at the place is given up.
    let again = pipeline.open(Dewey::new(&[2]), &isolation()).unwrap();
    assert_eq!((take_squashed(&pipeline), again.0 == opened[1].0), (vec![], false));
    opened[0].1.make(&put(1, "x")).unwrap();
    ends(&opened[0].1);
    commit(&pipeline, &[&opened[0]]);
    pipeline.give_up(opened[0].0);
    let opens = |place: &[u64]| pipeline.open(Dewey::new(place), &isolation());
    pipeline.give_up(opened[2].0);
    assert_eq!([&[1][..], &[0, 7], &[1, 1]].map(|place| opens(place).is_some()), [false, false, true]);
    leave(&pipeline, &[&opened[0]], 4);
    // A branch goes on when what lies behind it is committed.
    let before = opens(&[0, 7]).unwrap();
    assert_eq!(sees_of_store(&before.1, 1, "x"), Some("x".into()));
    pipeline.give_up(before.0);
    // What needs no commit is committed at once.
    ends(&again.1);
    assert_eq!(pipeline.settle(&[again.0]), Group::Nothing, "1.1 runs before it");
}

#[test]
fn a_commit_has_as_many_columns_as_it_has_room_for() {
    let pipeline = pipeline();
    let opened = columns::<3>(&pipeline);
    for (index, (_, transaction)) in opened.iter().enumerate() {
        (0..400).for_each(|number| _ = transaction.make(&put(index as u64 * 400 + number, "x")).unwrap());
        ends(transaction);
    }
    let named = opened.each_ref().map(|(id, _)| *id);
    let Group::Commit { columns, commit } = pipeline.settle(&named) else { panic!("two fit") };
    assert_eq!((columns, commit.changes.len(), commit.check()), (named[..2].to_vec(), 800, Ok(())));
}

#[test]
fn a_column_takes_no_turns_over_hot_keys_and_tells_of_its_conflicts() {
    let (pipeline, isolation) = (pipeline(), isolation());
    let key = key(1);
    for version in 1..4 {
        let (id, transaction) = pipeline.open(Dewey::new(&[version]), &isolation).unwrap();
        transaction.learn(&key, entry(version, "x")).unwrap();
        ends(&transaction);
        assert!(matches!(pipeline.settle(&[id]), Group::Commit { .. }));
        assert!(matches!(pipeline.came(Ok(Outcome::Conflict { version: 9, index: 0 })), Group::Stale { .. }));
    }
    let (_, transaction) = pipeline.open(Dewey::new(&[4]), &isolation).unwrap();
    assert_eq!(Transaction::begin(&isolation).contended(std::iter::once(&key)).len(), 1);
    assert_eq!(transaction.contended(std::iter::once(&key)).len(), 0);
}

/// The store may list its keys after another commit has removed one that the commit under way has left there.
#[test]
fn a_list_beside_a_commit_that_adds_no_key_expects_the_keys_that_this_has_left() {
    let pipeline = pipeline();
    let [first, second, third] = columns(&pipeline);
    first.1.learn(&key(1), entry(5, "a")).unwrap();
    first.1.make(&put(1, "b")).unwrap();
    third.1.list(&bucket(), 3).unwrap();
    ends(&first.1);
    let under_way = commit(&pipeline, &[&first]);
    assert_eq!(under_way.listed, [], "it changes no set of keys");
    assert_eq!(second.1.own_keys(&bucket(), &bucket().key(b"").unwrap()), [(key(1), true)]);
    second.1.list(&bucket(), 9).unwrap();
    leave(&pipeline, &[&first], 6);
    ends(&second.1);
    let listed = commit(&pipeline, &[&second]);
    assert_eq!((listed.listed, listed.expected), (vec![(bucket(), 9)], vec![(key(1), 6)]));
}

/// The states of three tasks.
fn states() -> [StateIndex; 3] {
    let task = |next: &str| format!(r#"{{ "Type": "Task", "Resource": "fn:f", {next} }}"#);
    let states = format!(r#""A": {}, "B": {}, "C": {}"#, task(r#""Next": "B""#), task(r#""Next": "C""#), task(r#""End": true"#));
    let definition = Definition::parse(&format!(r#"{{ "StartAt": "A", "States": {{ {states} }} }}"#)).unwrap();
    ["A", "B", "C"].map(|state| definition.find(state).unwrap())
}

/// Reads of the last state wait for the first one. What it was told.
#[derive(Debug)]
struct LastForFirst {
    states: [StateIndex; 3],
    waited: Mutex<Vec<bool>>,
    too_early: Mutex<Vec<(StateIndex, StateIndex, BucketKey)>>,
}

impl Stalls for LastForFirst {
    fn waits(&self, reader: StateIndex, writer: StateIndex, _: &BucketKey) -> bool {
        (reader, writer) == (self.states[2], self.states[0])
    }

    fn waited(&self, _: StateIndex, _: StateIndex, _: &BucketKey, has_written: bool) {
        lock(&self.waited).push(has_written);
    }

    fn read_too_early(&self, reader: StateIndex, writer: StateIndex, key: &BucketKey) {
        lock(&self.too_early).push((reader, writer, key.clone()));
    }
}

fn stalling() -> (Arc<Pipeline>, Arc<LastForFirst>, [Opened; 3]) {
    let (pipeline, states) = (pipeline(), states());
    let stalls = Arc::new(LastForFirst { states, waited: Mutex::default(), too_early: Mutex::default() });
    pipeline.stall_by(Arc::clone(&stalls) as Arc<dyn Stalls>);
    let columns = columns(&pipeline);
    for ((column, _), state) in columns.iter().zip(states) {
        pipeline.is_of(*column, state);
    }
    (pipeline, stalls, columns)
}

#[test]
fn a_read_waits_until_its_writer_has_written_a_key_like_it_or_has_ended_or_is_gone() {
    let stall = |of: &Opened, number: u64| of.1.stalls([key(number)].iter());
    let (_, stalls, [first, second, third]) = stalling();
    assert!(stall(&first, 7).is_none() && stall(&second, 7).is_none(), "they wait for nothing");
    let mut waits = stall(&third, 7).expect("it waits");
    assert!((&mut waits).now_or_never().is_none());
    second.1.make(&put(7, "x")).unwrap();
    first.1.make(&Commit::new(Vec::new(), vec![(bucket().key(b"other").unwrap(), Change::Delete)])).unwrap();
    assert!((&mut waits).now_or_never().is_none(), "another has written it, or another key");
    first.1.make(&put(8, "x")).unwrap();
    assert_eq!((waits.now_or_never(), lock(&stalls.waited).as_slice()), (Some(()), [true].as_slice()));
    assert!(stall(&third, 9).is_none(), "it has written one by now");

    let (_, stalls, [first, _, third]) = stalling();
    let mut waits = stall(&third, 7).expect("it waits");
    assert!((&mut waits).now_or_never().is_none());
    ends(&first.1);
    assert_eq!((waits.now_or_never(), lock(&stalls.waited).as_slice()), (Some(()), [false].as_slice()));

    let (pipeline, stalls, [first, _, third]) = stalling();
    let [mut waits, mut other] = [stall(&third, 7), stall(&third, 8)].map(|stall| stall.expect("it waits"));
    assert!((&mut waits).now_or_never().is_none() && (&mut other).now_or_never().is_none());
    pipeline.give_up(first.0);
    assert_eq!((waits.now_or_never(), lock(&stalls.waited).len()), (Some(()), 0), "nothing is learned of one that is gone");
    pipeline.give_up(third.0);
    assert_eq!((other.now_or_never(), stall(&third, 7).is_none()), (Some(()), true));
}

#[test]
fn what_is_known_is_read_at_once_and_what_was_read_too_early_is_told() {
    let (pipeline, stalls, [first, second, third]) = stalling();
    third.1.learn(&key(7), entry(3, "a")).unwrap();
    assert!(third.1.stalls([key(7)].iter()).is_none());
    assert!(third.1.stalls([key(7), key(8)].iter()).is_some());
    second.1.make(&put(7, "a")).unwrap();
    assert!(lock(&stalls.too_early).is_empty(), "it is what it has read");
    second.1.make(&put(7, "b")).unwrap();
    assert_eq!(take_squashed(&pipeline), [third.0]);
    assert_eq!(*lock(&stalls.too_early), [(stalls.states[2], stalls.states[1], key(7))]);
    ends(&first.1);
}

/// What the store is expected to have stands for its answer; what is committed is expected next, and what was wrong is asked for, with all else.
#[test]
fn a_read_is_given_what_the_store_is_expected_to_have_until_that_was_wrong() {
    let (pipeline, seen) = (pipeline(), Arc::<LastSeen>::default());
    assert!(pipeline.fetches());
    pipeline.expect_values(Arc::<LastSeen>::clone(&seen));
    seen.left(vec![(key(1), Some(entry(5, "a"))), (key(2), Some(None)), (key(3), Some(entry(6, "b")))]);
    let expected = |of: &Opened, keys: &[u64]| {
        let keys: Vec<BucketKey> = keys.iter().map(|number| key(*number)).collect();
        if let Early::Known(entries) = of.1.fetched(&keys) { Some(entries) } else { None }
    };
    let [first, second] = columns(&pipeline);
    assert_eq!(expected(&first, &[1, 2]), Some(vec![entry(5, "a"), None]));
    assert_eq!(expected(&first, &[1, 7]), None, "it has to ask for one of them");
    // What is expected is not fetched.
    pipeline.expect(&[key(1), key(3)]);
    assert!(pipeline.fetch().is_none());
    first.1.learn(&key(1), entry(5, "a")).unwrap();
    first.1.make(&put(2, "c")).unwrap();
    assert_eq!(sees(&second.1, 2).as_deref(), Some("c"));
    second.1.make(&add(4, 1)).unwrap();
    [&first, &second].iter().for_each(|of| ends(&of.1));
    let commit_of_both = commit(&pipeline, &[&first, &second]);
    assert_eq!(commit_of_both.expected, [(key(1), 5)]);
    assert!(matches!(pipeline.came(committed(9)), Group::Committed { .. }));
    assert_eq!([1, 2, 4].map(|number| seen.expected(&key(number))), [Some(entry(5, "a")), Some(entry(9, "c")), None]);

    let [third, fourth] = [7, 8].map(|place| pipeline.open(Dewey::new(&[place]), &isolation()).unwrap());
    let known = expected(&third, &[3]).unwrap().remove(0);
    third.1.learn(&key(3), known).unwrap();
    ends(&third.1);
    assert_eq!(commit(&pipeline, &[&third]).expected, [(key(3), 6)]);
    let conflict = Outcome::Conflict { version: 10, index: 0 };
    assert!(matches!(pipeline.came(Ok(conflict)), Group::Stale { .. }));
    assert_eq!(seen.expected(&key(3)), None);
    assert_eq!(expected(&fourth, &[1]), None, "the others may be as old");
}
