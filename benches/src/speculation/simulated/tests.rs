//! What is played, against what can be computed by hand.

use super::super::ceiling::{Computes, Costs};
use super::Ahead;
use super::prices::{Busy, Prices, Seen, mean};
use super::server::play;
use super::setup::{Arrivals, Drops, Outcome, Setup};
use super::trace::{Read, Run, Trace, Way};

/// A wait, and what a run of each function computes.
const WAIT: f64 = 10.0;

fn run(function: &str, depth: usize, reads: &[Option<usize>], writes: bool) -> Run {
    Run {
        function: function.to_owned(),
        depth,
        reads: reads.iter().map(|from| Read { from: *from }).collect(),
        writes,
        needs: Vec::new(),
        by_answers: Way::Right,
        by_paths: Way::Right,
        unchanged: true,
        weight: 1.0,
    }
}

fn prices(run_ms: f64) -> Prices {
    Prices {
        run_ms: ["a", "b", "c", "d"].map(|name| (name.to_owned(), run_ms)).into(),
        event_ms: 0.0,
        wake_ms: 0.0,
        wait_ms: WAIT,
        deviations_ms: Vec::new(),
        outside_ms: 0.0,
        computes: Computes::Last,
        is_remote: true,
    }
}

fn known(runs: Vec<Run>) -> Trace {
    Trace { runs, known: true }
}

fn ahead(ahead: Ahead) -> Setup {
    Setup { ahead, ..Setup::off(1) }
}

fn one(trace: &Trace, prices: &Prices, setup: &Setup) -> Outcome {
    play(std::slice::from_ref(trace), prices, setup, Arrivals::OneClient, 1, 1)
}

fn takes(trace: &Trace, prices: &Prices, setup: &Setup) -> f64 {
    one(trace, prices, setup).latencies_ms[0]
}

/// Each reads so often.
fn chain(reads: &[usize]) -> Trace {
    known(reads.iter().map(|reads| run("a", 0, &vec![None; *reads], false)).collect())
}

#[test]
fn one_function_takes_what_it_computes_and_waits_for() {
    let priced = Prices { event_ms: 0.5, wake_ms: 0.25, outside_ms: 0.125, ..prices(2.0) };
    let outcome = one(&chain(&[2]), &priced, &Setup::off(1));
    // The request, the start, two answers and the commit are events; the core comes back for the request and for each of three answers.
    assert_eq!(outcome.latencies_ms, [3.0 * WAIT + 2.0 + 5.0 * 0.5 + 4.0 * 0.25 + 0.125]);
    assert_eq!((outcome.events, outcome.wakes, outcome.waits, outcome.used_ms), (5, 4, 3, 5.5));
}

#[test]
fn without_speculation_waits_add_up() {
    // The commit of a function is a wait, too, but where it has read one key.
    assert_eq!(takes(&chain(&[1, 3, 2]), &prices(0.0), &Setup::off(1)), 8.0 * WAIT);
    let writes = known(vec![run("a", 0, &[], true), run("b", 0, &[], false)]);
    assert_eq!(takes(&writes, &Prices { is_remote: false, ..prices(3.0) }, &Setup::off(1)), 6.0 + WAIT);
}

#[test]
fn with_perfect_prediction_the_longest_counts_and_one_commit() {
    assert_eq!(takes(&chain(&[1, 3, 2]), &prices(0.0), &ahead(Ahead::Paths)), 4.0 * WAIT);
    for level in [Ahead::Outputs, Ahead::Stalls] {
        // All that is read is fetched in one.
        assert_eq!(takes(&chain(&[1, 3, 2]), &prices(0.0), &ahead(level)), 2.0 * WAIT, "{level:?}");
    }
    // Answers that are known and right leave only the commit, which compares versions.
    assert_eq!(takes(&chain(&[1, 3, 2]), &prices(0.0), &ahead(Ahead::Skips)), WAIT);
}

#[test]
fn so_many_run_ahead_and_no_more() {
    let all = chain(&[3; 14]);
    let outcome = one(&all, &prices(0.0), &ahead(Ahead::Outputs));
    // Seven at once, and the second seven while the commit of the first is under way.
    assert_eq!((outcome.latencies_ms[0], outcome.adopted), (WAIT + WAIT + WAIT, 13));
}

#[test]
fn what_is_not_known_begins_when_what_it_needs_has_ended() {
    let mut trace = chain(&[1, 1, 1]);
    trace.runs[1].needs = vec![0];
    assert_eq!(takes(&trace, &prices(0.0), &ahead(Ahead::Outputs)), 2.0 * WAIT);
    assert_eq!(takes(&trace, &prices(0.0), &ahead(Ahead::Paths)), 3.0 * WAIT);
    trace.known = false;
    assert_eq!(takes(&trace, &prices(0.0), &ahead(Ahead::Outputs)), 3.0 * WAIT);
    trace.runs[2].by_paths = Way::Unknown;
    assert_eq!(takes(&trace, &prices(0.0), &ahead(Ahead::Outputs)), 4.0 * WAIT);
}

#[test]
fn reads_wait_for_writes_or_run_again() {
    // Nothing is fetched where it is not known what is read.
    let trace = Trace { known: false, ..known(vec![run("a", 0, &[None, None], true), run("b", 0, &[Some(0)], false)]) };
    let stalls = one(&trace, &prices(0.0), &ahead(Ahead::Stalls));
    assert_eq!((stalls.latencies_ms[0], stalls.squashed), (3.0 * WAIT, 0));
    let outputs = one(&trace, &prices(0.0), &ahead(Ahead::Outputs));
    // It has read after one wait, and again when that is written after two. It is not known that it takes no wait then: the writer is committed before it.
    assert_eq!((outputs.latencies_ms[0], outputs.squashed), (4.0 * WAIT, 1));
}

#[test]
fn a_call_whose_reply_is_known_takes_no_wait_with_all_that_it_calls() {
    let mut trace = known(vec![run("a", 0, &[None], false), run("b", 1, &[None; 3], false), run("c", 2, &[None; 2], true)]);
    let calls = one(&trace, &prices(0.0), &ahead(Ahead::Calls));
    assert_eq!(
        (calls.latencies_ms[0], calls.skipped),
        (4.0 * WAIT, 0),
        "all begin together; b reads for longest, and there is one commit"
    );
    let skips = one(&trace, &prices(0.0), &ahead(Ahead::Skips));
    assert_eq!((skips.latencies_ms[0], skips.skipped, skips.adopted), (2.0 * WAIT, 1, 0), "the read of a, and the commit");
    trace.runs[2].unchanged = false;
    let changed = one(&trace, &prices(0.0), &ahead(Ahead::Skips));
    assert_eq!((changed.latencies_ms[0], changed.skipped), (4.0 * WAIT, 0));
    // One that is begun ahead does not wait for what a call writes for which a reply stands.
    trace.runs[2].unchanged = true;
    trace.runs.push(Run { unchanged: false, ..run("d", 1, &[Some(2)], false) });
    let behind = one(&trace, &prices(0.0), &ahead(Ahead::Skips));
    assert_eq!((behind.latencies_ms[0], behind.skipped, behind.adopted), (2.0 * WAIT, 1, 1));
}

#[test]
fn two_cores_halve_what_only_computes() {
    let trace = chain(&[0, 0, 0, 0]);
    let setup = ahead(Ahead::Outputs);
    let [one, two, four] = [1, 2, 4].map(|cores| takes(&trace, &prices(6.0), &Setup { cores, ..setup }));
    assert_eq!((one, two, four), (24.0, 12.0, 6.0));
    assert_eq!(takes(&trace, &prices(6.0), &Setup::off(4)), 24.0);
}

#[test]
fn calls_wait_for_their_callees_and_these_begin_with_their_caller() {
    let trace = known(vec![
        run("a", 0, &[None], false),
        run("b", 1, &[None, None], false),
        run("c", 2, &[None], false),
        run("b", 1, &[None], false),
    ]);
    // Nothing is committed but the whole.
    assert_eq!(takes(&trace, &prices(1.0), &Setup::off(1)), 6.0 * WAIT + 4.0);
    // `b` reads twice, and `c` with it; then two of them compute, and the caller.
    assert_eq!(takes(&trace, &prices(0.0), &ahead(Ahead::Calls)), 3.0 * WAIT);
    let outcome = one(&trace, &prices(0.0), &ahead(Ahead::Calls));
    assert_eq!((outcome.adopted, outcome.dropped), (3, 0));
    let new = Trace { known: false, ..trace };
    assert_eq!(takes(&new, &prices(0.0), &ahead(Ahead::Calls)), 6.0 * WAIT);
}

#[test]
fn a_queue_is_as_long_as_its_formula_says() {
    // M/D/1: what computes for less than a quantum is not interrupted.
    let (service, busy) = (0.4, 0.6);
    let outcome = play(&[chain(&[0])], &prices(service), &Setup::off(1), Arrivals::Poisson(busy / service * 1e3), 100_000, 3);
    let expected = service * (1.0 + busy / (2.0 * (1.0 - busy)));
    let measured = mean(&outcome.latencies_ms);
    assert!((measured / expected - 1.0).abs() < 0.03, "{measured} in place of {expected}");
    assert!((outcome.used_ms - 40_000.0).abs() < 1.0, "{}", outcome.used_ms);
}

/// The second run is guessed to be two others, which have computed for 1 ms each and wait when the first has ended.
fn wrong() -> Trace {
    let mut trace = known(vec![run("a", 0, &[None], false), run("b", 0, &[], true)]);
    let long = run("c", 0, &[None, None, None], false);
    trace.runs[1].by_paths = Way::Wrong(vec![long.clone(), long]);
    trace
}

#[test]
fn wrong_runs_cost_what_they_used_and_what_it_costs_to_end_them() {
    let priced = Prices { event_ms: 1.0, ..prices(1.0) };
    let with = |drops| one(&wrong(), &priced, &Setup { drops, ..ahead(Ahead::Paths) });
    let at_once = with(Drops::AtOnce);
    assert_eq!((at_once.dropped, at_once.adopted), (2, 1));
    // Each has begun, and has taken in one answer: while the first computes.
    assert_eq!(at_once.wasted_ms, 4.0);
    // Three answers, the start, and what they compute.
    assert_eq!(with(Drops::AtEnd).wasted_ms, 2.0 * (1.0 + 3.0 + 1.0));
    assert_eq!(with(Drops::Process).wasted_ms, 4.0 + 2.0);
    assert_eq!(with(Drops::Container).wasted_ms, 4.0);
    assert!(with(Drops::AtEnd).latencies_ms[0] >= at_once.latencies_ms[0]);
    assert!(with(Drops::Process).latencies_ms[0] > at_once.latencies_ms[0]);
    // Without the wrong guess it would be faster.
    let right = known(vec![run("a", 0, &[None], false), run("b", 0, &[], true)]);
    assert!(takes(&right, &priced, &ahead(Ahead::Paths)) < at_once.latencies_ms[0]);
}

#[test]
fn what_computes_when_it_turns_out_to_be_wrong_has_cost_what_it_computed() {
    let mut trace = known(vec![run("a", 0, &[], false), run("b", 0, &[], false)]);
    trace.runs[1].by_answers = Way::Wrong(vec![run("c", 0, &[], false)]);
    let mut priced = prices(1.25);
    priced.run_ms.insert("c".to_owned(), 10.0);
    let outcome = one(&trace, &priced, &Setup { cores: 2, ..ahead(Ahead::Outputs) });
    assert_eq!((outcome.wasted_ms, outcome.used_ms, outcome.latencies_ms[0]), (1.25, 3.75, 2.5));
}

#[test]
fn places_of_killed_containers_are_missing() {
    let traces = [wrong(), wrong(), wrong(), wrong(), chain(&[1, 1, 1, 1])];
    let play = |drops| play(&traces, &prices(0.0), &Setup { drops, ..ahead(Ahead::Paths) }, Arrivals::OneClient, 5, 1);
    let last = [Drops::Process, Drops::Container].map(|drops| play(drops).latencies_ms[4]);
    // All four at once; or, where seven of eight places are missing, one after the other.
    assert_eq!(last, [2.0 * WAIT, 5.0 * WAIT]);
}

#[test]
fn a_busy_server_goes_ahead_less() {
    let trace = chain(&[1, 1, 1]);
    let adopted = |per_second| {
        let outcome =
            play(std::slice::from_ref(&trace), &prices(1.0), &ahead(Ahead::Outputs), Arrivals::Poisson(per_second), 2_000, 1);
        outcome.adopted as f64 / 2_000.0
    };
    // An execution computes for 3 ms.
    let (low, high) = (adopted(100.0), adopted(330.0));
    assert!(low > 1.9 && high < 0.5 * low, "{low} {high}");
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let priced = Prices { deviations_ms: vec![-4.0, 0.0, 0.0, 9.0], ..prices(1.0) };
    let played = |seed| play(&[chain(&[2, 1]), wrong()], &priced, &ahead(Ahead::Stalls), Arrivals::Poisson(40.0), 500, seed);
    assert_eq!(played(7), played(7));
    assert_ne!(played(7), played(8));
}

#[test]
fn prices_give_back_what_one_client_saw() {
    let real = Prices { event_ms: 0.1, wake_ms: 0.2, outside_ms: 0.05, ..prices(0.5) };
    let traces = [chain(&[2, 1, 3]), chain(&[1])];
    let seen = play(&traces, &real, &Setup::off(1), Arrivals::OneClient, 2, 1);
    let each = |sum: f64| sum / 2.0;
    let costs = Costs { run_cpu_ms: real.run_ms.clone(), wait_ms: WAIT, execution_cpu_ms: each(seen.used_ms) };
    // Without idle times.
    let busy_ms = each(seen.used_ms) - 0.2 * each(seen.wakes as f64);
    let seen = Seen {
        costs: &costs,
        mean_ms: mean(&seen.latencies_ms),
        latencies_ms: &seen.latencies_ms,
        computes: Computes::Last,
        is_remote: true,
        cores: 1,
    };
    let near = |one: f64, other: f64| assert!((one / other - 1.0).abs() < 0.02, "{one} {other}");
    for busy in [Busy::Capacity(1e3 / busy_ms), Busy::Wake(0.2)] {
        let found = Prices::of(&traces, &seen, busy);
        near(found.wake_ms, 0.2);
        let played = play(&traces, &found, &Setup::off(1), Arrivals::OneClient, 2, 1);
        near(mean(&played.latencies_ms), seen.mean_ms);
        near(played.used_ms, 2.0 * costs.execution_cpu_ms);
        assert!(found.deviations_ms.iter().sum::<f64>().abs() < 1e-9);
    }
}
