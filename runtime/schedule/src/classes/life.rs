//! What is kept of an invocation from its arrival to its end, without the order around it.

use super::*;

const QUANTUM: Duration = Duration::from_micros(500);
const ID: TaskId = TaskId(3);
const TENANT: TenantId = TenantId(1);
const HERE: Site = Site(7);
const THERE: Site = Site(8);
const SHORT: Duration = Duration::from_micros(60);
const LONG: Duration = Duration::from_micros(10_000);
const MEANS: [u64; CLASSES] = [62_500, 250_000, 2_000_000, 16_000_000];

/// One invocation after the other, each with the same number.
struct Life {
    known: Microtasks,
    task: Task,
    now: Instant,
}

impl Life {
    fn new() -> Life {
        let now = Instant::now();
        let task = Task {
            id: ID,
            tenant: TENANT,
            function: FunctionId(2),
            weight: 1,
            age: 0,
            arrived: now,
            deadline: now + Duration::from_secs(1),
            cpu_max: Duration::MAX,
            cpu: Duration::ZERO,
            started: false,
            level: 0,
            class: 0,
            is_speculative: false,
        };
        Life { known: Microtasks::new(Classes::default(), QUANTUM), task, now }
    }

    /// An invocation arrives whose first microtask begins there; its class.
    fn arrive(&mut self, site: Site, declared: Option<Duration>) -> u8 {
        self.known.announce(ID, Microtask { site, declared });
        self.known.arrived(&self.task);
        self.classify()
    }

    fn classify(&mut self) -> u8 {
        self.task.class = self.known.classify(&self.task, self.now);
        self.task.class
    }

    /// An invocation arrives there and begins.
    fn begin(&mut self, site: Site) {
        self.arrive(site, None);
        self.known.begins(&self.task, self.now);
    }

    /// A microtask took so long, and the next one begins there.
    fn compute(&mut self, took: Duration, next: Site, declared: Option<Duration>) {
        self.known.announce(ID, Microtask { site: next, declared });
        self.known.ran(&self.task, took, true);
    }

    fn block(&mut self, time: Duration) {
        self.known.blocked(&self.task, self.now);
        self.now += time;
    }

    fn end(&mut self, took: Duration) {
        self.known.ran(&self.task, took, true);
        self.known.ended(&self.task);
    }

    /// A request that reads for so long after a short microtask, and then computes for long.
    fn read_and_compute(&mut self, reads: Duration) {
        self.begin(HERE);
        self.compute(SHORT, THERE, Some(LONG));
        self.block(reads);
        assert_eq!(self.classify(), 3);
        self.end(LONG);
    }

    /// How much is to be on its way before a request of the function is held.
    fn enough(&mut self) -> u64 {
        let is_held = |life: &Life| life.known.is_held(TENANT, life.task.function);
        assert!(!is_held(self), "nothing is on its way");
        let mut added = 0;
        for step in (0..40).rev().map(|power| 1 << power) {
            self.known.ahead.add(TENANT, step);
            added += step;
            if is_held(self) {
                self.known.ahead.remove(TENANT, step);
                added -= step;
            }
        }
        self.known.ahead.remove(TENANT, added);
        added + 1
    }

    fn place(&self) -> Place {
        self.known.tasks[ID.0 as usize]
    }
}

#[test]
fn an_invocation_begins_where_it_is_announced() {
    let mut life = Life::new();
    assert_eq!(life.arrive(HERE, Some(LONG)), 3);
    assert_eq!((life.place().first, life.place().ahead, life.place().was_later), (3, 0, false), "it is its first microtask");
    life.known.begins(&life.task, life.now);
    life.end(LONG);
    assert_eq!((life.arrive(HERE, None), life.arrive(THERE, None)), (3, 0), "of the other place nothing is known");
}

#[test]
fn an_invocation_that_began_elsewhere_is_expected_to_compute_for_long_as_soon_as_it_is_in_a_later_class() {
    let mut life = Life::new();
    life.task.started = true;
    assert_eq!(life.arrive(HERE, Some(LONG)), 3);
    assert_eq!((life.place().ahead, life.place().was_later), (MEANS[3], true));
    life.end(LONG);
    assert_eq!(life.place().ahead, 0, "nothing of it is on its way any more");
    life.task.started = false;
    life.begin(HERE);
    assert_eq!(life.place().ahead, 0, "of the whole request nothing was learned");
}

#[test]
fn what_runs_is_counted_by_class_until_it_is_asked_for() {
    let mut life = Life::new();
    life.begin(HERE);
    life.compute(SHORT, HERE, None);
    life.known.ran(&life.task, SHORT * 2, false);
    life.task.class = 2;
    life.known.ran(&life.task, LONG, true);
    let nanos = nanoseconds(SHORT);
    assert_eq!(life.known.take_counts(), [[1, 3 * nanos], [0, 0], [1, nanoseconds(LONG)], [0, 0]]);
    assert_eq!(life.known.take_counts(), [[0; 2]; CLASSES]);
}

#[test]
fn the_mean_of_a_class_is_of_the_last_that_were_of_its_length() {
    let mut life = Life::new();
    assert_eq!(*life.known.means(), MEANS);
    life.begin(HERE);
    // In two parts: its length is their sum.
    life.known.ran(&life.task, SHORT / 2, false);
    life.known.ran(&life.task, SHORT / 2, true);
    assert_eq!(*life.known.means(), [62_500 - 62_500 / 8 + 60_000 / 8, MEANS[1], MEANS[2], MEANS[3]]);
}

#[test]
fn a_function_is_known_by_the_time_to_its_first_long_microtask_and_by_what_it_uses_from_there() {
    let mut life = Life::new();
    let reads = Duration::from_micros(1_000);
    life.begin(HERE);
    life.compute(SHORT, THERE, Some(LONG));
    life.block(reads);
    assert_eq!(life.classify(), 3);
    assert_eq!(life.place().ahead, MEANS[3], "the function is not known: what its class takes is expected");
    life.compute(LONG, HERE, None);
    // What comes after it is none of the time to get there.
    life.block(reads);
    assert_eq!(life.classify(), 0);
    life.compute(SHORT, THERE, None);
    life.block(reads);
    assert_eq!(life.classify(), 3);
    life.end(LONG / 2);
    assert_eq!(life.known.functions[2].learned.later(), nanoseconds(LONG * 3 / 2));
    assert_eq!(life.enough(), nanoseconds(SHORT + reads + 2 * QUANTUM));
}

#[test]
fn of_what_is_expected_as_much_is_on_its_way_as_has_not_run() {
    let mut life = Life::new();
    life.read_and_compute(QUANTUM);
    life.begin(HERE);
    assert_eq!(life.place().ahead, nanoseconds(LONG));
    life.compute(SHORT, THERE, None);
    assert_eq!(life.place().ahead, nanoseconds(LONG), "it is not there yet");
    life.block(QUANTUM);
    assert_eq!(life.classify(), 3);
    let mean = life.known.means()[3];
    assert_eq!(life.place().ahead, mean, "its class takes longer than was expected of it");
    life.known.ran(&life.task, LONG, false);
    assert_eq!(life.classify(), 3);
    assert_eq!(life.place().ahead, mean - nanoseconds(LONG));
    life.end(LONG);
    assert_eq!(life.place().ahead, 0);
    assert_eq!(life.enough(), nanoseconds(SHORT + 3 * QUANTUM), "nothing is left of it");
}

#[test]
fn after_what_did_not_run_another_request_may_begin_at_once() {
    let mut life = Life::new();
    life.read_and_compute(QUANTUM);
    life.begin(HERE);
    assert_eq!(life.known.begins_anyway_at(), Some(life.now + LONG));
    life.known.dropped(&life.task);
    assert_eq!((life.known.begins_anyway_at(), life.place().ahead), (None, 0));
    assert_eq!(life.enough(), nanoseconds(SHORT + 3 * QUANTUM));
}
