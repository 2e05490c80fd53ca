//! Writes that are sent together, on a real Redis server.

use std::collections::HashMap;

use futures_util::future::join_all;

use super::joined::{bucket, calls};
use super::*;

const WAIT: Duration = Duration::from_millis(5);

/// A tenant's share of a server whose scripts are loaded, and whose time and incarnation are known.
fn merging(redis: Redis, time: Duration) -> Space {
    let space = redis.merging(time).space("t");
    let warm = || put(&space, "warm", "");
    wait(async { join_all([warm(), warm(), warm()]).await }).into_iter().for_each(|made| assert!(made.is_ok(), "{made:?}"));
    space
}

fn put(space: &Space, name: &str, value: &str) -> impl Future<Output = Result<Outcome, KvError>> + use<> {
    plain(space, vec![(key(name), Change::Put(value.to_owned().into()))])
}

fn plain(space: &Space, changes: Vec<(BucketKey, Change)>) -> impl Future<Output = Result<Outcome, KvError>> + use<> {
    space.clone().commit(Commit::new(Vec::new(), changes))
}

fn value(space: &Space, name: &str) -> Option<Bytes> {
    wait(space.get(&bucket(), name.as_bytes()).unwrap()).unwrap().map(|entry| entry.value)
}

fn merged(space: &Space) -> u64 {
    space.redis.read_counts().unwrap().merged_commits
}

#[test]
fn writes_under_load_are_one_script_with_an_answer_each() {
    let server = OwnServer::start();
    for is_exclusive in [false, true] {
        let space = merging(if is_exclusive { server.client().exclusive() } else { server.client() }, WAIT);
        let (before, _) = (merged(&space), calls(&server, "evalsha"));
        // The first is sent at once, of the others as many together as have room.
        let names: Vec<String> = (0..20).map(|number| format!("{is_exclusive}{number}")).collect();
        let outcomes = wait(async { join_all(names.iter().map(|name| put(&space, name, name))).await });
        assert_eq!((calls(&server, "evalsha"), merged(&space) - before), (3, 19));
        let versions: Vec<u64> = outcomes
            .into_iter()
            .map(|outcome| match outcome {
                Ok(Outcome::Committed { version, .. }) => version,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(
            versions.is_sorted_by(|one, next| one < next),
            "each has a version of its own, as one after the other: {versions:?}"
        );
        for name in &names {
            assert_eq!(value(&space, name).unwrap(), name.as_bytes());
        }
        // What one is refused for is its own.
        let add = || plain(&space, vec![(key(&format!("sum{is_exclusive}")), Change::Add(1))]);
        let text = || plain(&space, vec![(key(&names[0]), Change::Add(1))]);
        let much = || plain(&space, vec![(key(&format!("sum{is_exclusive}")), Change::Add(i64::MAX))]);
        let outcomes = wait(async { futures_util::join!(add(), add(), text(), much(), add()) });
        let sum = |outcome: &Result<Outcome, KvError>| match outcome {
            Ok(Outcome::Committed { sum, .. }) => *sum,
            other => panic!("{other:?}"),
        };
        assert_eq!([sum(&outcomes.0), sum(&outcomes.1), sum(&outcomes.4)], [1, 2, 3]);
        assert_eq!((outcomes.2, outcomes.3), (Err(KvError::NotANumber), Err(KvError::Overflow)));
        assert_eq!(calls(&server, "evalsha"), 2);
    }
    // Without load none waits, and without that setting each is a script.
    let patient = server.client().merging(Duration::from_secs(3_600)).space("t");
    assert!(wait(put(&patient, "alone", "")).is_ok());
    let alone = server.client().space("t");
    calls(&server, "evalsha");
    wait(async { join_all((0..20).map(|_| put(&alone, "k", ""))).await });
    assert_eq!(calls(&server, "evalsha"), 20);
}

#[test]
fn what_expects_something_or_changes_much_is_sent_alone() {
    let server = OwnServer::start();
    let space = merging(server.client(), WAIT);
    let (before, _) = (merged(&space), calls(&server, "evalsha"));
    let delete = || vec![(key("k"), Change::Delete)];
    let many = || Commit::new(Vec::new(), (0..17).map(|number| (key(&number.to_string()), Change::Delete)).collect());
    let expecting = || Commit::new(vec![(key("none"), 0)], delete());
    let known = Commit { id: Some([9; 16]), ..Commit::new(Vec::new(), delete()) };
    // Beside one that is under way.
    let all = [Commit::new(Vec::new(), delete()), many(), many(), expecting(), expecting(), known];
    let outcomes = wait(async { join_all(all.map(|commit| space.clone().commit(commit))).await });
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    // One with an id is told the time first.
    assert_eq!((calls(&server, "evalsha"), merged(&space)), (7, before));
}

#[test]
fn what_stays_unknown_of_a_batch_stays_unknown_of_each() {
    let server = OwnServer::start();
    let way = Lossy::to(&server);
    let space = merging(way.client().exclusive(), Duration::from_secs(1));
    // The answer to the first one is there before the others are sent.
    let outcomes = wait(async {
        let first = async {
            let outcome = put(&space, "first", "made").await;
            way.lose(1);
            outcome
        };
        futures_util::join!(first, join_all(["a", "b", "c"].map(|name| put(&space, name, "made"))))
    });
    assert!(outcomes.0.is_ok(), "{:?}", outcomes.0);
    assert!(outcomes.1.iter().all(|outcome| matches!(outcome, Err(KvError::Unavailable(_)))), "{:?}", outcomes.1);
    let lost = space.redis.read_counts().unwrap().joins.slots_lost;
    assert!((2..=3).contains(&lost), "the slots of all three, of which two may share one: {lost}");
    for name in ["first", "a", "b", "c"] {
        assert_eq!(value(&space, name).unwrap(), "made");
    }
}

#[test]
fn a_batch_goes_on_without_the_writer_that_began_it() {
    let server = OwnServer::start();
    let space = merging(server.client(), WAIT);
    wait(async {
        let mut writes: Vec<_> = ["a", "b", "c"].map(|name| Box::pin(put(&space, name, "made"))).into_iter().collect();
        for write in &mut writes {
            assert!(futures_util::poll!(write).is_pending());
        }
        drop(writes.remove(1));
        assert!(join_all(writes).await.iter().all(Result::is_ok));
    });
    assert_eq!(value(&space, "c").unwrap(), "made");
}

/// Random writes at the same time: in the order of their versions, one after the other on a plain map, they have the same answers and leave the same.
#[test]
fn writes_together_are_as_if_one_after_the_other() {
    let server = OwnServer::start();
    let space = merging(server.client(), WAIT);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model: HashMap<BucketKey, Bytes> = HashMap::from([(key("warm"), Bytes::new())]);
    for round in 0..60 {
        let commits: Vec<Vec<(BucketKey, Change)>> = (0..random.usize(1..30))
            .map(|_| {
                let change = |random: &mut fastrand::Rng| match random.u8(..4) {
                    0 => Change::Delete,
                    1 => Change::Put(random.i64(-9..9).to_string().into()),
                    2 => Change::Put("text".into()),
                    _ => Change::Add(random.i64(-9..9)),
                };
                (0..random.usize(1..4)).map(|_| (key(&random.u8(..5).to_string()), change(&mut random))).collect()
            })
            .collect();
        let outcomes = wait(async { join_all(commits.iter().map(|changes| plain(&space, changes.clone()))).await });
        let mut made: Vec<_> = commits.iter().zip(&outcomes).collect();
        assert!(made.iter().all(|(_, outcome)| matches!(outcome, Ok(_) | Err(KvError::NotANumber))), "{outcomes:?}");
        made.retain(|(_, outcome)| outcome.is_ok());
        made.sort_by_key(|(_, outcome)| match outcome {
            Ok(Outcome::Committed { version, .. }) => *version,
            other => panic!("{other:?}"),
        });
        for (changes, outcome) in made {
            let mut last = 0;
            for (key, change) in changes {
                match change {
                    Change::Put(value) => drop(model.insert(key.clone(), value.clone())),
                    Change::Delete => drop(model.remove(key)),
                    Change::Add(delta) => {
                        last = crate::kv::sum(model.get(key).map(|value| &**value), *delta).unwrap();
                        model.insert(key.clone(), last.to_string().into());
                    }
                }
            }
            assert!(
                matches!(outcome, Ok(Outcome::Committed { sum, .. }) if *sum == last),
                "round {round}: {outcome:?} is not {last}"
            );
        }
        for number in 0..5 {
            let name = number.to_string();
            assert_eq!(value(&space, &name), model.get(&key(&name)).cloned(), "round {round}");
        }
    }
    assert!(merged(&space) > 300, "{} were sent together", merged(&space));
}
