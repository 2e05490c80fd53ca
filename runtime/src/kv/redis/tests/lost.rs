//! What a Redis server may lose: all it has, its last commits, its answers, its time. Nothing is committed on what is not there any more, and nothing is made twice.

use std::sync::atomic::Ordering;

use super::*;

fn get(redis: &Redis, name: &str) -> Option<Entry> {
    wait(redis.space("t").read_key(name)).unwrap()
}

impl Space {
    async fn read_key(self, name: &str) -> Result<Option<Entry>, KvError> {
        let bucket = BucketName::new(b"b").unwrap();
        self.get(&bucket, name.as_bytes())?.await
    }
}

fn put(redis: &Redis, name: &str, value: &str) -> u64 {
    match made(redis, None, Vec::new(), vec![(key(name), Change::Put(value.to_owned().into()))]) {
        Ok(Outcome::Committed { version, .. }) => version,
        other => panic!("{other:?}"),
    }
}

fn id(number: u128) -> Option<[u8; 16]> {
    Some(number.to_ne_bytes())
}

/// As that of a transaction that has read a key with that version, and adds to another.
fn transaction(number: u128, version: u64) -> Commit {
    let add = vec![(key("sum"), Change::Add(1))];
    Commit { id: id(number), ..Commit::new(vec![(key("k"), version)], add) }
}

fn sum(redis: &Redis) -> i64 {
    get(redis, "sum").map_or(0, |entry| std::str::from_utf8(&entry.value).unwrap().parse().unwrap())
}

#[test]
fn what_was_read_before_the_server_was_emptied_is_no_ground_for_a_commit() {
    let server = OwnServer::start();
    let redis = server.client();
    for round in 0..100 {
        put(&redis, "k", "before");
        let read = get(&redis, "k").unwrap();
        let _: String = server.ask(&[b"FLUSHALL"]);
        // With as many commits as before, the same key is there again, and has the same value.
        put(&redis, "k", "before");
        let outcome = wait(redis.space("t").commit(transaction(round, read.version)));
        assert!(matches!(outcome, Ok(Outcome::Conflict { index: 0, .. })), "{round}: {outcome:?}");
        assert_eq!(sum(&redis), 0);
    }
}

#[test]
fn what_was_read_of_a_server_is_no_ground_for_a_commit_at_its_replica_that_lacks_it() {
    let (primary, replica) = (OwnServer::start(), OwnServer::start());
    let (redis, promoted) = (primary.client(), replica.client());
    put(&redis, "k", "0");
    let port = primary.port().to_string();
    for round in 0..5 {
        let _: String = replica.ask(&[b"REPLICAOF", b"127.0.0.1", port.as_bytes()]);
        let version = put(&redis, "k", &format!("{round}"));
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while get(&promoted, "k").map(|entry| entry.version) != Some(version) {
            assert!(std::time::Instant::now() < end, "the replica has nothing");
            thread::sleep(Duration::from_millis(10));
        }
        // From here on the replica is by itself, and the primary's last commit is lost. Another one takes its place.
        let _: String = replica.ask(&[b"REPLICAOF", b"NO", b"ONE"]);
        let lost = put(&redis, "k", "lost");
        let there = put(&promoted, "k", "there");
        assert_ne!(lost, there);
        let before = sum(&promoted);
        for (number, version) in [(2 * round, lost), (2 * round + 1, version)] {
            let outcome = wait(promoted.space("t").commit(transaction(number, version)));
            assert!(matches!(outcome, Ok(Outcome::Conflict { index: 0, .. })), "{round}: {outcome:?}");
        }
        assert_eq!(sum(&promoted), before);
        // What is there is.
        assert!(matches!(wait(promoted.space("t").commit(transaction(99, there))), Ok(Outcome::Committed { .. })));
        assert_eq!(sum(&promoted), before + 1);
    }
}

/// Asks for a commit as `Space::answer` does, once.
pub(super) fn asked(redis: &Redis, commit: &Commit, not_after_ms: u64) -> Vec<String> {
    let space = redis.space("t");
    // What this incarnation is called.
    let told: Option<u64> =
        wait(async { redis::cmd("GET").arg(&space.keys.incarnation).query_async(&mut redis.connection().unwrap()).await })
            .unwrap();
    let told = told.unwrap_or(0);
    wait(async { space.script(commit, not_after_ms, told).invoke_async(&mut redis.connection().unwrap()).await }).unwrap()
}

pub(super) fn now_ms(server: &OwnServer) -> u64 {
    let (s, us): (u64, u64) = server.ask(&[b"TIME"]);
    s * 1_000 + us / 1_000
}

#[test]
fn an_id_is_known_for_longer_than_its_commit_may_be_made() {
    let server = OwnServer::start();
    let redis = server.client();
    put(&redis, "k", "0");
    let first = Commit { id: id(1), ..Commit::new(Vec::new(), add()) };
    wait(redis.space("t").commit(first.clone())).unwrap();
    let known = [b"{sledge:t}:commit:".as_slice(), &1_u128.to_ne_bytes()].concat();
    let left_ms: i64 = server.ask(&[b"PTTL", &known]);
    assert!((60_000..=91_000).contains(&left_ms), "{left_ms}");
    // A copy is answered as the first one was, and makes nothing.
    let now = now_ms(&server);
    let answer = asked(&redis, &first, now + 10_000);
    assert_eq!((&*answer[0], number(&redis)), ("done", "1".to_owned()));
    // One that comes later is not made, though nothing is known of it any more; nor is one for which an answer would have to be kept for long.
    let _: i64 = server.ask(&[b"DEL", &known]);
    for not_after in [0, now - 1, now + 125_000] {
        let answer = asked(&redis, &first, not_after);
        assert_eq!((&*answer[0], number(&redis)), ("late", "1".to_owned()), "{not_after}");
        assert!(now_ms(&server).abs_diff(answer[1].parse().unwrap()) < 5_000, "it says what time it is");
    }
    // A store that was emptied has forgotten it, and is another one.
    let space = redis.space("t");
    wait(space.clone().commit(Commit { id: id(2), ..Commit::new(Vec::new(), add()) })).unwrap();
    let _: String = server.ask(&[b"FLUSHALL"]);
    let told = space.keys.told.load(Ordering::Relaxed);
    let copy: Vec<String> =
        wait(async { space.script(&first, now + 10_000, told).invoke_async(&mut redis.connection().unwrap()).await }).unwrap();
    assert_eq!((&*copy[0], number(&redis)), ("late", "none".to_owned()));
    // What is sent to it first is made.
    wait(space.commit(Commit { id: id(3), ..Commit::new(Vec::new(), add()) })).unwrap();
    assert_eq!(number(&redis), "1");
}

#[test]
fn a_server_that_stands_still_makes_a_commit_once_or_its_outcome_is_unknown() {
    let server = OwnServer::start();
    let redis = server.client();
    // One that knows the time and the incarnation, and has a connection.
    let space = redis.space("t");
    wait(space.clone().commit(Commit { id: id(1), ..Commit::new(Vec::new(), add()) })).unwrap();
    // For less time than the commit is asked for again: what came of it is found out. And for about as long or more: it is found out, or nothing is known.
    for (number_of, frozen_s, is_found_out) in [(2_u128, 7, true), (3, 25, false)] {
        server.freeze(true);
        let outcome = thread::scope(|scope| {
            let commit = Commit { id: id(number_of), ..Commit::new(Vec::new(), add()) };
            let made = scope.spawn(|| wait(space.clone().commit(commit)));
            thread::sleep(Duration::from_secs(frozen_s));
            server.freeze(false);
            made.join().unwrap()
        });
        match outcome {
            // A server that goes on in time for the last try is asked what became of it.
            Ok(Outcome::Committed { .. }) => {}
            Err(KvError::Unknown(_)) => assert!(!is_found_out, "it has stood still for {frozen_s} s only"),
            other => panic!("{other:?}"),
        }
        let _: String = server.ask(&[b"PING"]);
        let count: u128 = number(&redis).parse().unwrap();
        assert!(
            count == number_of || (!is_found_out && count + 1 == number_of),
            "{count}: once, or not at all where nothing is known"
        );
    }
}

/// A server that is not known yet is asked for its time and incarnation by a first attempt that it cannot make: where no answer comes, nothing was made, and that is certain.
#[test]
fn a_first_commit_that_gets_no_answer_was_not_made() {
    let server = OwnServer::start();
    let redis = server.client();
    put(&redis, "n", "0");
    server.freeze(true);
    let outcome = thread::scope(|scope| {
        let commit = Commit { id: id(1), ..Commit::new(Vec::new(), add()) };
        let made = scope.spawn(|| wait(redis.space("t").commit(commit)));
        let outcome = made.join().unwrap();
        server.freeze(false);
        outcome
    });
    assert!(matches!(outcome, Err(KvError::Unavailable(_))), "{outcome:?}");
    let _: String = server.ask(&[b"PING"]);
    assert_eq!(number(&redis), "0");
}
