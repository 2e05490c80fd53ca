//! Readers and writers on several threads, on a model store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::kv::BucketName;

const THREADS: usize = 4;
const READERS: usize = 8;
const ROUNDS: usize = 300;

fn key(name: &str) -> BucketKey {
    BucketName::new(b"b").unwrap().key(name.as_bytes()).unwrap()
}

fn entry(version: u64) -> Option<Entry> {
    Some(Entry { version, value: Bytes::new() })
}

fn poll<F: Future<Output = Answer> + Unpin>(read: &mut F) -> Poll<Answer> {
    Pin::new(read).poll(&mut Context::from_waker(Waker::noop()))
}

/// The only tenant.
fn alone(joined: Arc<Joined>) -> Tenants {
    Tenants { all: Mutex::new(HashMap::from([("t".to_owned(), joined)])), ..Tenants::default() }
}

/// A read of which the answer comes when it is sent.
fn waiting(of: tokio::sync::oneshot::Receiver<Answer>) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
    Box::pin(async { of.await.unwrap() })
}

#[test]
fn a_read_goes_on_without_the_reader_that_sent_it() {
    let joined = Arc::new(Joined::new());
    let (answer, answered) = tokio::sync::oneshot::channel();
    let mut first = joined.read(&key("k"), || waiting(answered));
    assert!(poll(&mut first).is_pending());
    let mut second = joined.read(&key("k"), || -> Read { unreachable!("it is joined") });
    assert!(poll(&mut second).is_pending());
    drop(first);
    let mut third = joined.read(&key("k"), || -> Read { unreachable!("it is joined") });
    answer.send(Ok(entry(7))).unwrap();
    assert_eq!(poll(&mut second), Poll::Ready(Ok(entry(7))));
    // An error is every reader's, and what is over is not joined.
    assert_eq!(poll(&mut third), Poll::Ready(Ok(entry(7))));
    let lost = || Box::pin(async { Err(KvError::Unavailable("gone".to_owned())) }) as Read;
    let (mut fourth, mut fifth) = (joined.read(&key("k"), lost), joined.read(&key("k"), lost));
    assert!(matches!(poll(&mut fifth), Poll::Ready(Err(KvError::Unavailable(_)))));
    assert!(matches!(poll(&mut fourth), Poll::Ready(Err(KvError::Unavailable(_)))));
    drop(joined.read(&key("k"), lost));
    let tenants = alone(joined);
    assert_eq!(tenants.counts(), JoinCounts { sent: 3, joined: 3, alone: 0, slots_lost: 0 });
}

#[test]
fn a_write_that_is_given_up_keeps_its_slots_closed() {
    let tenants = Tenants::default();
    let (joined, again) = (tenants.of("t"), tenants.of("t"));
    let (one, other) = (key("one"), key("other"));
    let read = |of: &Arc<Joined>, key| drop(of.read(key, || Box::pin(async { Ok(None) }) as Read));
    joined.close([&one, &other, &one].into_iter()).unwrap().ended();
    read(&again, &one);
    let closed = joined.close([&one].into_iter());
    read(&again, &one);
    drop(closed);
    read(&tenants.of("t"), &one);
    read(&joined, &other);
    read(&tenants.of("u"), &one);
    assert_eq!(tenants.counts(), JoinCounts { sent: 3, joined: 0, alone: 2, slots_lost: 1 });
}

#[test]
fn slots_are_opened_when_their_writes_cannot_be_made_any_more() {
    let tenants = Tenants::default();
    let [one, other, third] = ["one", "other", "third"].map(key);
    let (ours, theirs) = (tenants.of("t"), tenants.of("u"));
    ours.close([&one].into_iter()).unwrap().lost(10);
    ours.close([&one].into_iter()).unwrap().lost(7);
    theirs.close([&other].into_iter()).unwrap().lost(20);
    drop(ours.close([&third].into_iter()));
    assert!(tenants.begins_watch() && !tenants.begins_watch(), "one is enough");
    let lost = |time, goes_on| {
        assert_eq!(tenants.reached(time), goes_on, "{time}");
        tenants.counts().slots_lost
    };
    assert_eq!([lost(8, true), lost(10, true), lost(11, true), lost(20, true)], [3, 3, 2, 2]);
    // What names no time is lost for good, and nothing waits for that.
    assert_eq!([lost(21, false), lost(u64::MAX, false)], [1, 1]);
    // What is lost after the watch has looked at its slot, and before the watch ends, is waited for, too.
    assert!(tenants.begins_watch(), "the next one begins anew");
    let waits = tenants.open(22);
    ours.close([&one].into_iter()).unwrap().lost(30);
    assert!(!tenants.begins_watch() && !waits);
    assert!(tenants.watch_goes_on(waits));
    assert_eq!(lost(31, false), 1);
}

#[test]
fn no_slot_stays_lost_without_a_watch() {
    const ROUNDS: u64 = 3_000;

    let (tenants, time) = (Tenants::default(), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (tenants, time) = (&tenants, &time);
            scope.spawn(move || {
                let joined = tenants.of(&thread.to_string());
                for round in 0..ROUNDS {
                    joined.close([&key(&round.to_string())].into_iter()).unwrap().lost(time.load(Ordering::SeqCst));
                    // As long as it goes on.
                    if tenants.begins_watch() {
                        while tenants.reached(time.fetch_add(1, Ordering::SeqCst) + 1) {}
                    }
                }
            });
        }
    });
    assert_eq!(tenants.counts().slots_lost, 0);
}

/// The store, and what the threads know of it.
struct World {
    joined: Arc<Joined>,
    store: Vec<AtomicU64>,
    /// The largest version of each key that a reader or a writer has been told.
    seen: Vec<AtomicU64>,
}

/// Lets others go first, sometimes for long.
async fn delay(random: &mut fastrand::Rng) {
    for _ in 0..random.usize(..4) {
        tokio::task::yield_now().await;
    }
    if random.u8(..40) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

async fn read(world: Arc<World>, index: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..ROUNDS {
        let least = world.seen[index].load(Ordering::SeqCst);
        let (of, mut own) = (Arc::clone(&world), random.fork());
        let sends = move || {
            Box::pin(async move {
                delay(&mut own).await;
                let version = of.store[index].load(Ordering::SeqCst);
                delay(&mut own).await;
                Ok(entry(version))
            }) as Read
        };
        let reading = world.joined.read(&key(&index.to_string()), sends);
        // Some are killed.
        let Ok(answer) = tokio::time::timeout(Duration::from_micros(random.u64(..20_000)), reading).await else { continue };
        let version = answer.unwrap().unwrap().version;
        assert!(version >= least, "{version} after {least}");
        world.seen[index].fetch_max(version, Ordering::SeqCst);
        delay(&mut random).await;
    }
}

async fn write(world: Arc<World>, index: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..ROUNDS / 4 {
        let closed = world.joined.close([key(&index.to_string())].iter());
        delay(&mut random).await;
        let version = world.store[index].fetch_add(1, Ordering::SeqCst) + 1;
        delay(&mut random).await;
        closed.unwrap().ended();
        world.seen[index].fetch_max(version, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(random.u64(..2))).await;
    }
}

#[test]
fn readers_on_many_threads_see_what_was_acknowledged_before() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let world = World {
        joined: Arc::new(Joined::new()),
        store: (0..2).map(|_| AtomicU64::new(0)).collect(),
        seen: (0..2).map(|_| AtomicU64::new(0)).collect(),
    };
    let world = Arc::new(world);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let world = Arc::clone(&world);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed ^ thread as u64);
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                let writer = runtime.spawn(write(Arc::clone(&world), thread % 2, random.u64(..)));
                let readers = (0..READERS).map(|reader| runtime.spawn(read(Arc::clone(&world), reader % 2, random.u64(..))));
                let tasks: Vec<_> = readers.chain([writer]).collect();
                runtime.block_on(async {
                    for task in tasks {
                        task.await.unwrap();
                    }
                });
            });
        }
    });
    let tenants = alone(Arc::clone(&world.joined));
    let counts = tenants.counts();
    println!("{counts:?}");
    assert!(counts.joined > 100 && counts.sent > 100 && counts.alone > 0 && counts.slots_lost == 0, "{counts:?}");
    assert!(world.joined.0.iter().all(|place| lock(place).reads.is_empty()), "nothing is left");
}
