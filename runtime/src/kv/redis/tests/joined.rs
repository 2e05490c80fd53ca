//! Reads that are joined, on a real Redis server.

use std::time::Instant;

use futures_util::future::join_all;

use super::*;
use crate::kv::JoinCounts;

/// For how long a write may be made, and by how much the clock is set back at most.
const MADE_WITHIN: Duration = Duration::from_secs(4);
const SET_BACK_MAX: Duration = Duration::from_secs(2);
const TIME_MAX: Duration = Duration::from_secs(120);

pub(super) fn bucket() -> BucketName {
    BucketName::new(b"b").unwrap()
}

/// How often the server was sent a command since it was last asked.
pub(super) fn calls(server: &OwnServer, command: &str) -> u64 {
    let stats: String = server.ask(&[b"INFO", b"commandstats"]);
    let _: String = server.ask(&[b"CONFIG", b"RESETSTAT"]);
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

fn counts(redis: &Redis) -> JoinCounts {
    redis.read_counts().unwrap().joins
}

fn set(redis: &Redis, tenant: &str, key: &BucketKey, value: &'static str) -> Result<Outcome, KvError> {
    let changes = vec![(key.clone(), Change::Put(Bytes::from_static(value.as_bytes())))];
    wait(redis.space(tenant).commit(Commit::new(Vec::new(), changes)))
}

fn values(redis: &Redis, tenants: &[&str]) -> Vec<String> {
    let reads = tenants.iter().map(|tenant| redis.space(tenant).get(&bucket(), b"k").unwrap());
    let value = |read: Result<Option<Entry>, KvError>| String::from_utf8(read.unwrap().unwrap().value.to_vec()).unwrap();
    wait(join_all(reads)).into_iter().map(value).collect()
}

#[test]
fn readers_of_one_key_share_a_read_where_the_store_is_exclusive() {
    let server = OwnServer::start();
    for is_exclusive in [false, true] {
        let redis = if is_exclusive { server.client().exclusive() } else { server.client() };
        set(&redis, "t", &key("k"), "mine").unwrap();
        set(&redis, "u", &key("k"), "yours").unwrap();
        calls(&server, "hget");
        assert_eq!(values(&redis, &["t"; 100]), ["mine"; 100]);
        assert_eq!(calls(&server, "hget"), if is_exclusive { 1 } else { 100 });
        assert_eq!(values(&redis, &["t", "u", "t", "u"]), ["mine", "yours", "mine", "yours"]);
        assert_eq!(calls(&server, "hget"), if is_exclusive { 2 } else { 4 });
        // One key of a list is one key; several are read at one moment.
        let many = |keys: &[&str]| redis.space("t").get_many(keys.iter().map(|name| key(name)).collect());
        // The server knows the script from now on.
        wait(many(&["k", "n"])).unwrap();
        calls(&server, "evalsha");
        let entries = wait(join_all([many(&["k"]), many(&["k"]), many(&["k", "n"]), many(&["k", "n"])]));
        assert!(entries.iter().all(|entries| entries.as_ref().unwrap()[0].is_some()));
        assert_eq!(calls(&server, "evalsha"), if is_exclusive { 2 } else { 4 });
        let counts = is_exclusive.then_some(JoinCounts { sent: 4, joined: 102, alone: 0, slots_lost: 0 });
        assert_eq!(redis.read_counts().map(|counts| counts.joins), counts);
    }
}

#[test]
fn a_read_is_not_joined_while_a_write_is_under_way() {
    let server = OwnServer::start();
    let redis = server.client().exclusive();
    set(&redis, "t", &key("k"), "old").unwrap();
    let value = |entry: Result<Option<Entry>, KvError>| entry.unwrap().unwrap().value;
    wait(async {
        let space = redis.space("t");
        let early = space.get(&bucket(), b"k").unwrap();
        let change = vec![(key("k"), Change::Put(Bytes::from_static(b"new")))];
        let write = space.clone().commit(Commit::new(Vec::new(), change));
        let mut write = Box::pin(write);
        assert!(futures_util::poll!(&mut write).is_pending());
        let beside = [space.get(&bucket(), b"k").unwrap(), space.get(&bucket(), b"k").unwrap()];
        write.await.unwrap();
        let late = space.get(&bucket(), b"k").unwrap();
        assert_eq!(value(late.await), "new");
        join_all(beside).await.into_iter().for_each(|entry| assert_eq!(value(entry), "new"));
        drop(early);
    });
    assert_eq!(counts(&redis), JoinCounts { sent: 2, alone: 2, joined: 0, slots_lost: 0 });
}

#[test]
fn what_became_of_a_write_is_learnt_without_its_writer() {
    let server = OwnServer::start();
    let redis = server.client().exclusive();
    wait(async {
        let change = vec![(key("k"), Change::Put(Bytes::from_static(b"made")))];
        let mut write = Box::pin(redis.space("t").commit(Commit::new(Vec::new(), change)));
        assert!(futures_util::poll!(&mut write).is_pending());
        drop(write);
        // Its slot is open again when the answer is there.
        for _ in 0..10_000 {
            if counts(&redis).sent > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            drop(redis.space("t").get(&bucket(), b"k").unwrap());
        }
    });
    assert_eq!(values(&redis, &["t"; 3]), ["made"; 3]);
    let counts = counts(&redis);
    assert_eq!((counts.joined, counts.slots_lost), (2, 0));
}

#[test]
fn a_write_whose_outcome_is_unknown_ends_joining_in_its_slot_until_redis_would_refuse_it() {
    let server = OwnServer::start();
    let way = Lossy::to(&server);
    let redis = Redis { clock: Clock::of(MADE_WITHIN, SET_BACK_MAX), ..way.client().exclusive() };
    set(&redis, "t", &key("k"), "first").unwrap();
    // Refused by the server itself: known.
    let refused = vec![(key("k"), Change::Add(1))];
    assert_eq!(wait(redis.space("t").commit(Commit::new(Vec::new(), refused))), Err(KvError::NotANumber));
    assert_eq!(values(&redis, &["t"; 3]), ["first"; 3]);
    assert_eq!(counts(&redis), JoinCounts { sent: 1, joined: 2, alone: 0, slots_lost: 0 });
    // With an id the server is asked again.
    way.lose(1);
    let commit = Commit { id: Some([7; 16]), ..Commit::new(Vec::new(), vec![(key("k"), Change::Put("known".into()))]) };
    wait(redis.space("t").commit(commit)).unwrap();
    assert_eq!(values(&redis, &["t"; 3]), ["known"; 3]);
    assert_eq!(counts(&redis).slots_lost, 0);
    // A plain write is sent once. By one that knows the incarnation: what it sends can be made.
    let space = redis.space("t");
    let put = |value: &'static str| {
        let changes = vec![(key("k"), Change::Put(Bytes::from_static(value.as_bytes())))];
        wait(space.clone().commit(Commit::new(Vec::new(), changes)))
    };
    put("known").unwrap();
    way.lose(1);
    let sent = Instant::now();
    assert!(put("made").is_err());
    let before = counts(&redis);
    assert_eq!(values(&redis, &["t"; 3]), ["made"; 3]);
    let after = counts(&redis);
    assert_eq!(after, JoinCounts { alone: before.alone + 3, slots_lost: 1, ..before });
    // A way that breaks while the clock is asked for changes nothing.
    way.lose(1);
    while counts(&redis).slots_lost > 0 {
        assert!(sent.elapsed() < TIME_MAX, "it is not opened again");
        wait(async { tokio::time::sleep(Duration::from_millis(20)).await });
    }
    assert!(sent.elapsed() >= MADE_WITHIN + SET_BACK_MAX - Duration::from_secs(1), "after {:?}", sent.elapsed());
    assert_eq!(values(&redis, &["t"; 3]), ["made"; 3]);
    assert_eq!(counts(&redis), JoinCounts { sent: after.sent + 1, joined: after.joined + 2, slots_lost: 0, ..after });
    // The next one closes it again, and is waited for by a watch of its own.
    way.lose(1);
    assert!(put("again").is_err());
    assert_eq!(counts(&redis).slots_lost, 1);
    let sent = Instant::now();
    while counts(&redis).slots_lost > 0 {
        assert!(sent.elapsed() < TIME_MAX, "it is not opened again");
        wait(async { tokio::time::sleep(Duration::from_millis(20)).await });
    }
    assert_eq!(values(&redis, &["t"; 3]), ["again"; 3]);
}

#[test]
fn a_plain_write_to_an_exclusive_store_is_refused_when_it_comes_too_late() {
    let server = OwnServer::start();
    let (redis, plain) = (server.client().exclusive(), server.client());
    set(&redis, "t", &key("k"), "first").unwrap();
    let late = Commit::new(Vec::new(), vec![(key("k"), Change::Put("late".into()))]);
    let now = lost::now_ms(&server);
    assert_eq!(lost::asked(&redis, &late, now - 1)[0], "late");
    assert_eq!(values(&redis, &["t"]), ["first"]);
    assert_eq!(lost::asked(&redis, &late, now + 20_000)[0], "done");
    // A store that other servers write to, too, has no slots to be opened: nothing is asked of its clock.
    let late = Commit::new(Vec::new(), vec![(key("k"), Change::Put("plain".into()))]);
    assert_eq!(lost::asked(&plain, &late, 0)[0], "done");
    assert_eq!(values(&redis, &["t"]), ["plain"]);
}

#[test]
fn reads_under_load_wait_and_are_sent_together() {
    const KEYS: [&str; 5] = ["a", "b", "c", "d", "none"];

    let server = OwnServer::start();
    for is_exclusive in [false, true] {
        let redis = server.client().merging(Duration::from_millis(5));
        let redis = if is_exclusive { redis.exclusive() } else { redis };
        for name in &KEYS[..4] {
            set(&redis, "t", &key(name), name).unwrap();
        }
        calls(&server, "hmget");
        let all = |tenant: &str| -> Vec<_> {
            KEYS.iter().map(|name| redis.space(tenant).get(&bucket(), name.as_bytes()).unwrap()).collect()
        };
        let check = |found: &[Result<Option<Entry>, KvError>]| {
            for (name, entry) in KEYS.iter().zip(found).take(4) {
                assert_eq!(entry.as_ref().unwrap().as_ref().unwrap().value, name.as_bytes());
            }
            assert_eq!(found[4], Ok(None));
        };
        // The first is sent at once, and the others together.
        check(&wait(join_all(all("t"))));
        assert_eq!(calls(&server, "hmget"), 2);
        // Tenants have batches of their own.
        let (ours, theirs) = wait(async { futures_util::future::join(join_all(all("t")), join_all(all("u"))).await });
        check(&ours);
        assert!(theirs.iter().all(|entry| *entry == Ok(None)));
        assert_eq!(calls(&server, "hmget"), 4);
        assert_eq!(redis.read_counts().unwrap().merged, 12);
        // The reader that began a batch is killed.
        let rest = wait(async {
            let mut reads: Vec<_> = all("t").into_iter().map(Box::pin).collect();
            for read in &mut reads {
                assert!(futures_util::poll!(read).is_pending());
            }
            drop(reads.remove(1));
            join_all(reads).await
        });
        assert!(
            rest.iter().all(Result::is_ok) && rest[3] == Ok(None) && rest[1].as_ref().unwrap().as_ref().unwrap().value == "c"
        );
        assert_eq!(calls(&server, "hmget"), 2);
    }
}

#[test]
fn a_read_without_load_waits_for_none_and_a_batch_has_a_limit() {
    let server = OwnServer::start();
    let patient = server.client().merging(Duration::from_secs(3_600));
    assert_eq!(wait(patient.space("t").get(&bucket(), b"k").unwrap()), Ok(None));
    let redis = server.client().merging(Duration::from_millis(5));
    let names: Vec<String> = (0..40).map(|index| index.to_string()).collect();
    calls(&server, "hmget");
    let reads = names.iter().map(|name| redis.space("t").get(&bucket(), name.as_bytes()).unwrap());
    assert!(wait(join_all(reads)).iter().all(|entry| *entry == Ok(None)));
    assert_eq!(calls(&server, "hmget"), 1 + 39_u64.div_ceil(16));
}
