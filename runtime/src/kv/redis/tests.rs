//! Records, leases and requests on a real Redis server.

mod joined;
mod lost;
pub(crate) mod played;
mod together;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::thread;

use self::played::{Lossy, OwnServer};
use super::shares::Shares;
use super::*;
use crate::kv::{Change, Commit, Order, Outcome, Record};

const LEASE: Duration = Duration::from_secs(60);

fn wait<T>(future: impl Future<Output = T>) -> T {
    // Connections belong to a thread and its runtime.
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

fn key(name: &str) -> BucketKey {
    BucketName::new(b"b").unwrap().key(name.as_bytes()).unwrap()
}

fn held(redis: &Redis, time: Duration) -> Fence {
    let fence = Fence::new();
    assert_eq!(wait(redis.lease(time).take(&fence)), Ok(Taken::Ours));
    fence
}

fn made(
    redis: &Redis,
    fence: Option<&Fence>,
    records: Vec<Record>,
    changes: Vec<(BucketKey, Change)>,
) -> Result<Outcome, KvError> {
    let commit = Commit { records, fence: fence.cloned(), ..Commit::new(Vec::new(), changes) };
    wait(redis.space("t").commit(commit))
}

fn add() -> Vec<(BucketKey, Change)> {
    vec![(key("n"), Change::Add(1))]
}

fn number(redis: &Redis) -> String {
    let bucket = BucketName::new(b"b").unwrap();
    let entry = wait(redis.space("t").get(&bucket, b"n").unwrap()).unwrap();
    entry.map_or_else(|| "none".to_owned(), |entry| String::from_utf8(entry.value.to_vec()).unwrap())
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn scanned(records: &Records, bounds: (Bound<&[u8]>, Bound<&[u8]>), order: Order, head: Option<usize>, max: usize) -> Rows {
    let mut rows = Rows::new();
    let with = |key: &[u8], value: &[u8]| {
        rows.push((key.to_vec(), value.to_vec()));
        rows.len() < max
    };
    records.scan(bounds, order, head, with).unwrap();
    rows
}

#[test]
fn records_are_read_as_a_sorted_map_is() {
    let server = OwnServer::start();
    let redis = server.client();
    let (fence, records) = (held(&redis, LEASE), redis.records());
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    // Few different bytes, so that keys are prefixes of others; the bytes at both ends are there.
    let any_key = |random: &mut fastrand::Rng| -> Vec<u8> {
        (0..random.usize(1..6)).map(|_| *random.choice([0, 1, b'[', b'(', b'+', 0xfe, 0xff].iter()).unwrap()).collect()
    };
    for round in 0..60 {
        let written: Vec<Record> = (0..random.usize(1..60))
            .map(|_| {
                let key = any_key(&mut random);
                let value: Vec<u8> = (0..random.usize(..50)).map(|_| random.u8(..)).collect();
                if random.u8(..5) == 0 {
                    model.remove(&key);
                    Record::remove(key)
                } else {
                    model.insert(key.clone(), value.clone());
                    Record::put(key, value)
                }
            })
            .collect();
        made(&redis, Some(&fence), written, Vec::new()).unwrap();
        if round % 5 != 4 {
            continue;
        }
        let mut bounds = [any_key(&mut random), any_key(&mut random)];
        bounds.sort();
        let [low, high] = &bounds;
        let low = *random.choice([Bound::Included(&**low), Bound::Excluded(&**low), Bound::Unbounded].iter()).unwrap();
        let high = *random.choice([Bound::Included(&**high), Bound::Excluded(&**high), Bound::Unbounded].iter()).unwrap();
        if matches!((low, high), (Bound::Excluded(one), Bound::Excluded(other)) if one == other) {
            continue;
        }
        let max = *random.choice([1, 5, 100, usize::MAX].iter()).unwrap();
        let within = || model.range::<[u8], _>((low, high)).map(|(key, value)| (key.clone(), value.clone()));
        assert_eq!(scanned(&records, (low, high), Order::Rising, None, max), within().take(max).collect::<Rows>());
        assert_eq!(scanned(&records, (low, high), Order::Falling, None, max), within().rev().take(max).collect::<Rows>());
        let heads = |bytes| within().map(move |(key, value)| (key, value[..value.len().min(bytes)].to_vec())).collect::<Rows>();
        for bytes in [0, 3, 1_000] {
            assert_eq!(scanned(&records, (low, high), Order::Rising, Some(bytes), usize::MAX), heads(bytes));
        }
        assert_eq!(records.count((low, high)), Ok(within().count() as u64));
        let key = any_key(&mut random);
        assert_eq!(records.get(&key), Ok(model.get(&key).cloned()));
    }
    assert!(model.len() > 600, "more than a page: {}", model.len());
}

#[test]
fn pages_are_bounded_and_a_large_record_is_one() {
    let server = OwnServer::start();
    let redis = server.client();
    let (fence, records) = (held(&redis, LEASE), redis.records());
    let large = |number: u8| (vec![number], vec![number; 3 << 20]);
    let rows: Rows = (0..5).map(large).collect();
    for (key, value) in &rows {
        made(&redis, Some(&fence), vec![Record::put(&**key, value.clone())], Vec::new()).unwrap();
    }
    let all = (Bound::Unbounded, Bound::Unbounded);
    let sent = || server.ask::<String>(&[b"INFO", b"stats"]);
    let net = |text: String| -> u64 {
        text.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:")).unwrap().trim().parse().unwrap()
    };
    let before = net(sent());
    assert_eq!(scanned(&records, all, Order::Rising, None, 1), rows[..1]);
    assert!(net(sent()) - before < 4 << 20, "no more than a page is sent to one that wants a record");
    assert_eq!(scanned(&records, all, Order::Falling, None, usize::MAX), rows.iter().rev().cloned().collect::<Rows>());
    // Idle connections that Redis has closed are not used.
    let _: i64 = server.ask(&[b"CLIENT", b"KILL", b"TYPE", b"normal", b"SKIPME", b"yes"]);
    assert_eq!(records.get(&[3]), Ok(Some(rows[3].1.clone())));
}

#[test]
fn nothing_is_written_without_the_lease() {
    let server = OwnServer::start();
    let redis = server.client();
    let lease = redis.lease(Duration::from_millis(200));
    let (first, second) = (held(&redis, Duration::from_millis(200)), Fence::new());
    let record = |value: &str| vec![Record::put(&b"k"[..], value.to_owned())];
    assert_eq!(made(&redis, None, record("none"), add()), Err(KvError::Fenced), "no lease at all");
    assert_eq!(made(&redis, Some(&second), record("other"), add()), Err(KvError::Fenced));
    made(&redis, Some(&first), record("first"), add()).unwrap();
    match wait(lease.take(&second)) {
        Ok(Taken::Others(left)) => assert!(left <= Duration::from_millis(200), "{left:?}"),
        taken => panic!("{taken:?}"),
    }
    // As long as it is renewed it lasts.
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(50));
        assert_eq!(wait(lease.renew(&first)), Ok(true));
    }
    made(&redis, Some(&first), record("again"), add()).unwrap();
    while wait(lease.take(&second)) != Ok(Taken::Ours) {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(made(&redis, Some(&first), record("late"), add()), Err(KvError::Fenced));
    assert_eq!(wait(lease.renew(&first)), Ok(false));
    wait(lease.release(&first)).unwrap();
    made(&redis, Some(&second), record("second"), add()).unwrap();
    // Given back, it is anyone's; what is over is not renewed.
    wait(lease.release(&second)).unwrap();
    assert_eq!(made(&redis, Some(&second), record("gone"), add()), Err(KvError::Fenced));
    assert_eq!(wait(lease.renew(&second)), Ok(false));
    assert_eq!((number(&redis), redis.records().get(b"k")), ("3".to_owned(), Ok(Some(b"second".to_vec()))));
}

#[test]
fn an_owner_whose_commits_redis_has_lost_is_refused() {
    let server = OwnServer::start();
    let redis = server.client();
    let fence = held(&redis, LEASE);
    for _ in 0..3 {
        made(&redis, Some(&fence), Vec::new(), add()).unwrap();
    }
    // As after a failover to a server that has the lease, but not the last commit.
    let _: i64 = server.ask(&[b"DECR", Shares::SEQUENCE.as_bytes()]);
    assert_eq!(made(&redis, Some(&fence), Vec::new(), add()), Err(KvError::Fenced));
    assert_eq!(number(&redis), "3");
    // One that has nothing to commit finds out, too.
    assert_eq!(wait(redis.lease(LEASE).renew(&fence)), Ok(false));
    // It begins anew with what is there.
    wait(redis.lease(LEASE).release(&fence)).unwrap();
    let fence = held(&redis, LEASE);
    made(&redis, Some(&fence), Vec::new(), add()).unwrap();
    assert_eq!(number(&redis), "4");
}

#[test]
fn a_commit_whose_answer_is_lost_is_made_once() {
    let server = OwnServer::start();
    let way = Lossy::to(&server);
    let redis = way.client();
    let fence = held(&redis, LEASE);
    // One that knows the time and the incarnation: what it sends can be made.
    let space = redis.space("t");
    let commit = |round: u32| {
        let records = vec![Record::put(&b"k"[..], round.to_string())];
        let commit = Commit { fence: Some(fence.clone()), records, ..Commit::new(Vec::new(), add()) };
        wait(space.clone().commit(commit))
    };
    commit(u32::MAX).unwrap();
    let (mut unknown, mut count) = (0, 1);
    for round in 0..12_u32 {
        // In the end none comes.
        way.lose(if round < 10 { round % 5 } else { u32::MAX });
        let outcome = commit(round);
        way.lose(0);
        let is_made = redis.records().get(b"k") == Ok(Some(round.to_string().into_bytes()));
        count += u32::from(is_made);
        match outcome {
            Ok(_) => assert!(is_made, "{round}"),
            Err(KvError::Unknown(_)) => unknown += 1,
            Err(error) => panic!("{round}: {error}"),
        }
        assert_eq!(number(&redis), count.to_string(), "{round}: both or neither");
    }
    assert!(unknown > 0, "some outcomes stay unknown");
}

#[test]
fn a_request_is_taken_once_by_the_owner_alone() {
    let server = OwnServer::start();
    let redis = server.client();
    let (post, owner, other) = (redis.post(), held(&redis, LEASE), Fence::new());
    let time = Duration::from_secs(60);
    wait(async {
        let mut inbox = post.open().await.unwrap();
        post.ask("a", b"do", time).await.unwrap();
        assert_eq!(inbox.next().await.unwrap().as_deref(), Some("a"));
        assert_eq!(inbox.next().await, Ok(None), "nothing more comes");
        // One that was received by a server which had just lost the lease is still there.
        assert_eq!(post.claim(&other, "a").await, Ok(None));
        post.remind("a").await.unwrap();
        assert_eq!(inbox.next().await.unwrap().as_deref(), Some("a"));
        assert_eq!(post.claim(&owner, "a").await, Ok(Some(Bytes::from("do"))));
        assert_eq!(post.claim(&owner, "a").await, Ok(None), "once");
        post.remind("a").await.unwrap();
        assert_eq!(inbox.next().await, Ok(None), "there is nothing to be reminded of");
        assert_eq!(post.collect("a").await, Ok(None));
        post.answer("a", b"done", time).await.unwrap();
        assert_eq!(post.collect("a").await, Ok(Some(Bytes::from("done"))));
        assert_eq!(post.collect("a").await, Ok(None));
        // What is not wanted any more is gone.
        post.ask("b", b"do", Duration::from_millis(1)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(post.claim(&owner, "b").await, Ok(None));
        let large = vec![0; (1 << 20) + 1];
        assert!(matches!(post.ask("c", &large, time).await, Err(KvError::TooLarge { .. })));
    });
}
