//! A gate, one request after the other. What happens at once is in `interleavings`.

use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use sledge_schedule::Gate;
use sledge_schedule::gate::Entrant;

/// A request whose client stays.
struct Request;

impl Entrant for Request {
    fn let_in(&mut self) {}

    fn is_gone(&self) -> bool {
        false
    }
}

#[test]
fn the_expectation_is_an_upper_percentile_and_follows_a_change() {
    // SplitMix64.
    let mut seed = 0x5eed_0041_u64;
    let mut random = move || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
    };
    let gate = Gate::<Request>::new(None, None);
    for unit in [1_000, 50_000] {
        // Uniform between 0 and 100 units: the percentile is at 90.
        for _ in 0..5_000 {
            gate.observe(Duration::from_nanos(random() % 100 * unit));
        }
        let mut sum = 0;
        for _ in 0..1_000 {
            gate.observe(Duration::from_nanos(random() % 100 * unit));
            sum += gate.expected().as_nanos() as u64 / unit;
        }
        assert!((80..100).contains(&(sum / 1_000)), "{}", sum / 1_000);
    }
}

#[test]
fn no_more_are_taken_than_run_and_wait() {
    let gate = Gate::<Request>::new(Some(2), Some(1));
    assert!((0..3).all(|_| gate.take(Instant::now)));
    assert!(!gate.take(Instant::now));
    assert!(gate.leave(false).is_none());
    assert!(gate.take(Instant::now) && !gate.take(Instant::now));
    let without = Gate::<Request>::new(Some(1), None);
    assert!((0..1_000).all(|_| without.take(Instant::now)), "the server's limit is the only one");
}

/// How often it is looked for places of clients that have gone, as `gate.rs` says.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// A request whose client may go, and which gives its place back when it is dropped, as an admission does.
struct Leaving {
    name: u32,
    gate: Weak<Gate<Leaving>>,
    is_gone: Rc<Cell<bool>>,
    runs: bool,
}

impl Entrant for Leaving {
    fn let_in(&mut self) {
        self.runs = true;
    }

    fn is_gone(&self) -> bool {
        self.is_gone.get()
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.upgrade() {
            assert!(gate.leave(self.runs).is_none(), "none of them runs");
        }
    }
}

/// Requests of one gate.
struct Requests {
    gate: Rc<Gate<Leaving>>,
    next: Cell<u32>,
}

impl Requests {
    fn new(concurrency_max: Option<usize>, queue_max: Option<usize>) -> Requests {
        Requests { gate: Rc::new(Gate::new(concurrency_max, queue_max)), next: Cell::new(0) }
    }

    /// One more that was taken: it as it comes out of the gate, if it may run, and its client.
    fn enter(&self) -> (Option<Leaving>, Rc<Cell<bool>>) {
        let is_gone = Rc::new(Cell::new(false));
        let name = self.next.replace(self.next.get() + 1);
        let request = Leaving { name, gate: Rc::downgrade(&self.gate), is_gone: Rc::clone(&is_gone), runs: false };
        (self.gate.enter(request), is_gone)
    }

    /// One that runs is over: the next one, which runs now.
    fn end(&self, mut request: Leaving) -> Option<Leaving> {
        assert!(request.runs, "{} was let in", request.name);
        request.gate = Weak::new();
        self.gate.leave(true)
    }
}

#[test]
fn those_that_wait_run_in_their_order_as_others_end() {
    let requests = Requests::new(Some(2), None);
    assert!(requests.gate.is_limited());
    let [first, second] = [(); 2].map(|()| requests.enter().0.expect("there is room"));
    let waiting: Vec<_> = (0..3).map(|_| requests.enter()).collect();
    assert!(waiting.iter().all(|(entered, _)| entered.is_none()));
    let third = requests.end(second).expect("one waits");
    let fourth = requests.end(first).expect("one waits");
    assert_eq!((third.name, fourth.name), (2, 3));
    let fifth = requests.end(third).expect("one waits");
    assert!(requests.end(fourth).is_none() && requests.end(fifth).is_none(), "nothing waits any more");
    let again: Vec<_> = (0..3).map(|_| requests.enter().0).collect();
    assert_eq!(again.iter().flatten().map(|request| request.name).collect::<Vec<_>>(), [5, 6], "two, as before");
    again.into_iter().flatten().for_each(|request| drop(requests.end(request)));
}

#[test]
fn a_gate_without_a_limit_lets_all_in() {
    let requests = Requests::new(None, Some(0));
    assert!(!requests.gate.is_limited());
    assert!((0..1_000).all(|_| requests.gate.take(Instant::now) && requests.gate.enter(alone()).is_some()));
}

/// A request that keeps its place when it is dropped.
fn alone() -> Leaving {
    Leaving { name: 0, gate: Weak::new(), is_gone: Rc::default(), runs: false }
}

#[test]
fn a_client_that_has_gone_makes_room_and_is_looked_for_now_and_then_only() {
    let now = Instant::now();
    let requests = Requests::new(Some(1), Some(3));
    let take = |at: Duration| requests.gate.take(|| now + at);
    assert!((0..4).all(|_| take(Duration::ZERO)));
    let first = requests.enter().0.expect("there is room");
    let third = [(); 3].map(|()| requests.enter().1)[1].clone();
    assert!(!take(Duration::ZERO), "all are there");
    third.set(true);
    assert!(!take(LOOK_PAUSE - Duration::from_nanos(1)), "that was looked at just now");
    assert!(take(LOOK_PAUSE) && !take(LOOK_PAUSE));
    // The others keep their order.
    assert!(requests.enter().0.is_none());
    let mut running = first;
    for name in [1, 3, 4] {
        running = requests.end(running).expect("one waits");
        assert_eq!(running.name, name);
    }
    assert!(requests.end(running).is_none());
}

#[test]
fn a_place_that_another_has_taken_meanwhile_is_no_room() {
    let requests = Requests::new(Some(1), Some(1));
    assert!(requests.gate.take(Instant::now) && requests.gate.take(Instant::now));
    assert!(requests.gate.enter(alone()).is_some());
    let gone = alone();
    gone.is_gone.set(true);
    assert!(requests.gate.enter(gone).is_none());
    assert!(!requests.gate.take(Instant::now), "it has gone, and its place is not free");
}
