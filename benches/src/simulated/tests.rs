//! The simulator beside what is known of queues, and of the scheduler.

use std::time::Duration;

use sledge_schedule::Policy;

use super::calibration::{Cell, Column, PING, Program, READS, Run, function};
use super::figures::{COLUMNS, Report, Wanted, figures};
use super::model::{Arrivals, Between, Concurrency, Costs, Function, Listeners, Load, Nanoseconds, Settings, Stream, Varies};
use super::outcome::Outcome;
use super::predict::predict;
use super::server::play;
use super::suite::programs;

const US: Nanoseconds = 1_000;
const MS: Nanoseconds = 1_000_000;

/// A server on which nothing costs anything.
fn free(workers: usize, policy: Policy) -> Settings {
    Settings { policy, ..Settings::new(workers, Costs::NONE) }
}

fn computes(name: &str, time: Nanoseconds, varies: Varies) -> Function {
    Function { varies, ..Function::even(name, time, 0, 0) }
}

fn stream(function: usize, per_second: f64) -> Stream {
    Stream { function, per_second, arrivals: Arrivals::Poisson, worker: None }
}

fn open(function: &Function, settings: &Settings, per_second: f64, requests: usize) -> Outcome {
    play(settings, std::slice::from_ref(function), &Load::Open(vec![stream(0, per_second)]), requests, 7)
}

fn near(measured: f64, expected: f64, part: f64) -> bool {
    (measured / expected - 1.0).abs() <= part
}

#[test]
fn the_same_seed_plays_the_same_and_another_one_does_not() {
    let functions =
        [Function { varies: Varies::By(0.2), ..Function::even("io", 500 * US, 4, MS) }, computes("hog", 20 * MS, Varies::Never)];
    let load = Load::Open(vec![stream(0, 2_000.0), stream(1, 20.0)]);
    let settings = Settings { concurrency: Concurrency::Auto, ..Settings::new(2, Costs::USUAL) };
    let played = |seed| play(&settings, &functions, &load, 5_000, seed);
    assert_eq!(played(1), played(1));
    assert_ne!(played(1), played(2));
}

/// M/M/1: s / (1 - load), for each part of the processor.
#[test]
fn one_core_is_the_queue_of_the_textbook() {
    for load in [0.5, 0.7] {
        let outcome = open(&computes("f", MS, Varies::Exponentially), &free(1, Policy::Fifo), load * 1_000.0, 100_000);
        let (mean, expected) = (outcome.latencies[0].mean_ms(), 1.0 / (1.0 - load));
        assert!(near(mean, expected, 0.05), "load {load}: {mean} ms, expected {expected}");
        assert!(near(outcome.utilisation, load, 0.05), "load {load}: {} busy", outcome.utilisation);
        // M/D/1, by Pollaczek and Khinchine: s + s load / 2 (1 - load).
        let outcome = open(&computes("f", MS, Varies::Never), &free(1, Policy::Fifo), load * 1_000.0, 100_000);
        let (mean, expected) = (outcome.latencies[0].mean_ms(), 1.0 + load / (2.0 * (1.0 - load)));
        assert!(near(mean, expected, 0.05), "load {load}: {mean} ms, expected {expected}");
    }
}

/// Erlang's C: the part that waits where so many cores have so much to do each.
fn waits(cores: usize, load: f64) -> f64 {
    let offered = cores as f64 * load;
    let terms: Vec<f64> = (1..=cores)
        .scan(1.0, |term, k| {
            *term *= offered / k as f64;
            Some(*term)
        })
        .collect();
    let last = terms[cores - 1] / (1.0 - load);
    last / (1.0 + terms[..cores - 1].iter().sum::<f64>() + last)
}

/// M/M/c: workers with queues of their own that steal come to the mean of one queue, if what is waited for is longer than it takes them to steal; and so does one queue for all.
#[test]
fn several_cores_are_as_one_queue() {
    for (cores, load) in [(2, 0.7), (8, 0.85)] {
        let expected = 10.0 * (1.0 + waits(cores, load) / (cores as f64 * (1.0 - load)));
        for listeners in [Listeners::Dedicated, Listeners::PerCore] {
            let settings = Settings { listeners, ..free(cores, Policy::Fifo) };
            let rate = load * cores as f64 * 100.0;
            let outcome = open(&computes("f", 10 * MS, Varies::Exponentially), &settings, rate, 30_000);
            let mean = outcome.latencies[0].mean_ms();
            assert!(near(mean, expected, 0.05), "{cores} cores, {listeners:?}: {mean} ms, expected {expected}");
        }
    }
}

/// All that is to be done comes through one worker's connections, and all workers do it.
#[test]
fn no_core_idles_while_another_has_more_to_do() {
    let burst = Stream { function: 0, per_second: 1.0, arrivals: Arrivals::Bursts(400), worker: Some(0) };
    for (cores, policy) in [(1, Policy::Fifo), (2, Policy::RoundRobin), (4, Policy::Fifo), (16, Policy::RoundRobin)] {
        let functions = [computes("f", 5 * MS, Varies::Never)];
        let outcome = play(&free(cores, policy), &functions, &Load::Open(vec![burst]), 400, 3);
        let (longest, best) = (outcome.latencies[0].quantile_ms(1.0), 400.0 * 5.0 / cores as f64);
        assert!((best..=1.1 * best).contains(&longest), "{cores} cores took {longest} ms for {best} ms of work each");
    }
    // Each core for itself: the first one does it all.
    let settings = Settings { steals: false, ..free(4, Policy::RoundRobin) };
    let alone = play(&settings, &[computes("f", 5 * MS, Varies::Never)], &Load::Open(vec![burst]), 400, 3);
    let longest = alone.latencies[0].quantile_ms(1.0);
    assert!(near(longest, 2_000.0, 0.01), "{longest} ms");
}

/// What the scheduler's own simulation has for one core, whose waits begin at once and whose answers are seen at once (`runtime/schedule/src/core/simulation.rs`, `GOLDEN`).
/// Here both wait until the worker looks after connections, which is after a quantum at most.
#[test]
fn the_figures_of_the_order_are_those_of_its_own_simulation() {
    let varying = |function: Function| Function { varies: Varies::By(0.2), ..function };
    let io = varying(Function::even("io", 500 * US, 4, MS));
    let hog = varying(computes("hog", 20 * MS, Varies::Never));
    let orders = varying(Function::even("orders", 500 * US, 1, 2 * MS));
    let resize = varying(computes("resize", 2_800 * US, Varies::Never));
    let rnn = varying(computes("rnn", 11 * MS, Varies::Never));
    let p99 = |functions: &[Function], parts: &[f64], policy| {
        let mean: f64 = functions.iter().zip(parts).map(|(f, part)| part * f.bursts.iter().sum::<u64>() as f64 / 1e9).sum();
        let streams = parts.iter().enumerate().map(|(index, part)| stream(index, part * 0.85 / mean)).collect();
        let outcome = play(&free(1, policy), functions, &Load::Open(streams), 40_000, 7);
        // Of the others there are too few for a 99th percentile.
        outcome.latencies[0].quantile_ms(0.99)
    };
    let mixes: [(&[Function], &[f64], f64); 3] = [
        (std::slice::from_ref(&io), &[1.0], 11.3),
        (&[io.clone(), hog], &[1.0, 0.05], 9.1),
        (&[orders, resize, rnn], &[0.6, 0.3, 0.1], 5.0),
    ];
    for (functions, parts, golden) in mixes {
        let (ours, plain) = (p99(functions, parts, Policy::RoundRobin), p99(functions, parts, Policy::RoundRobinStrict));
        assert!(near(ours, golden, 0.2), "{ours} ms, golden {golden} ms");
        assert!(ours <= 1.05 * plain, "{ours} ms, {plain} ms in plain turns");
    }
}

/// A function with one place at a time is a queue of its own, whatever it waits for: M/D/1 with the whole of it as the time.
#[test]
fn a_limit_holds_places_while_they_wait() {
    let settings = Settings { concurrency: Concurrency::Fixed(1), ..free(4, Policy::RoundRobin) };
    let outcome = open(&Function::even("io", MS, 1, 9 * MS), &settings, 50.0, 40_000);
    let (mean, expected) = (outcome.latencies[0].mean_ms(), 10.0 + 10.0 * 0.5 / (2.0 * 0.5));
    assert!(near(mean, expected, 0.05), "{mean} ms, expected {expected}");
    assert_eq!(outcome.refused, 0);
}

/// A request that nothing delays takes its own time and what the server adds, in each of its parts.
#[test]
fn an_idle_server_adds_what_it_costs() {
    let costs =
        Costs { read: 10 * US, write: 20 * US, trip: 40 * US, call: 3 * US, wake: 5 * US, tick: 0, look: US, away: 100 * US };
    let callee = Function::even("callee", 50 * US, 0, 0);
    let mut caller = Function::even("caller", 300 * US, 2, MS);
    caller.between[1] = Between::Calls(1);
    let load = Load::Closed { clients: 1, functions: vec![(0, 1.0)] };
    let outcome = play(&Settings::new(1, costs), &[caller, callee], &load, 100, 1);
    // Its own, one wait for the store with two wake-ups in all, and the callee; the worker looks after connections a few times.
    let expected = 300.0 + 1_000.0 + 50.0 + (10.0 + 20.0 + 40.0 + 3.0 + 2.0 * 5.0 + 100.0);
    let latencies = &outcome.latencies[0];
    let (mean, longest) = (latencies.mean_ms() * 1e3, latencies.quantile_ms(1.0) * 1e3);
    assert!((expected..expected + 5.0).contains(&mean) && longest < expected + 5.0, "{mean} us, expected {expected}");
    assert_eq!((latencies.count(), outcome.latencies[1].count()), (90, 0));
}

/// Late requests are answered with an error and never lost; the scheduler sheds them before they cost anything.
#[test]
fn what_is_too_much_is_refused_and_counted() {
    let settings = Settings { deadline: Duration::from_millis(200), ..free(2, Policy::RoundRobin) };
    let outcome = open(&Function::even("io", 2 * MS, 1, MS), &settings, 2_000.0, 20_000);
    assert_eq!(outcome.latencies[0].count() + outcome.refused, 18_000);
    assert!(near(outcome.per_second, 1_000.0, 0.05), "{} a second of 1000 possible", outcome.per_second);
    assert!(outcome.latencies[0].quantile_ms(1.0) <= 200.5, "{} ms", outcome.latencies[0].quantile_ms(1.0));
}

/// The model of a function meets what one client saw, whatever parts that has; and what requests cost follows from two programs.
#[test]
fn without_load_a_prediction_is_what_was_measured() {
    let column = |unloaded_ms: f64, cpu_ms: f64, unloaded_cpu_ms| Column {
        column: "prewarmed".to_owned(),
        unloaded_ms,
        cpu_ms,
        unloaded_cpu_ms,
        percentiles_ms: vec![0.9 * unloaded_ms, unloaded_ms, 1.1 * unloaded_ms],
        cells: Vec::new(),
    };
    let program = |name: &str, accesses, column| Program {
        program: name.to_owned(),
        accesses,
        delay_ms: 1.0,
        best: 0,
        columns: vec![column],
    };
    let programs = vec![
        program(PING, 0, column(0.040, 0.010, Some(0.018))),
        program(READS, 4, column(4.8, 0.090, None)),
        program("both", 2, column(4.6, 2.05, None)),
        program("computes", 0, column(2.5, 2.01, None)),
    ];
    let run = Run { workers: 1, nightcore: 4, programs, pairs: Vec::new() };
    let costs = run.costs();
    assert_eq!((costs.read + costs.write, costs.wake, costs.trip, costs.away), (10 * US, 8 * US, 20 * US, 22 * US));
    for program in &run.programs {
        let settings = run.settings("prewarmed", 1, costs).unwrap();
        let function = function(program, &program.columns[0], &costs, settings.quantum);
        let one = Load::Closed { clients: 1, functions: vec![(0, 1.0)] };
        let outcome = play(&settings, &[function], &one, 2_000, 5);
        let (mean, expected) = (outcome.latencies[0].mean_ms(), program.columns[0].unloaded_ms);
        assert!(near(mean, expected, 0.03), "{}: {mean} ms, measured {expected}", program.program);
        assert!(outcome.latencies[0].quantile_ms(1.0) > 1.05 * mean, "{}: the noise of clients is there", program.program);
    }
    assert!(run.settings("memo", 1, costs).is_none());
}

/// A run that was made by the simulator itself is predicted; one in which the server was twice as slow is not.
#[test]
fn a_prediction_that_is_wrong_is_seen() {
    let costs = Costs::USUAL;
    let settings = Settings { policy: Policy::RoundRobinStrict, ..Settings::new(1, costs) };
    let simulated = Function::even("both", MS, 2, MS);
    let outcome = open(&simulated, &settings, 300.0, 20_000);
    let one = play(&settings, std::slice::from_ref(&simulated), &Load::Closed { clients: 1, functions: vec![(0, 1.0)] }, 200, 1);
    let cell = |slower: f64, unanswered, late_ms| Cell {
        load: 0.3,
        pattern: Arrivals::Poisson,
        rate: 300.0,
        requests: 18_000,
        unanswered,
        late_ms,
        mean_ms: slower * outcome.latencies[0].mean_ms(),
        p99_ms: slower * outcome.latencies[0].quantile_ms(0.99),
    };
    let column = Column {
        column: "prewarmed".to_owned(),
        unloaded_ms: one.latencies[0].mean_ms(),
        cpu_ms: (MS + costs.read + costs.write + 2 * costs.trip) as f64 / 1e6,
        unloaded_cpu_ms: None,
        percentiles_ms: Vec::new(),
        cells: vec![cell(1.0, 0, 0.0), cell(2.0, 0, 0.0), cell(1.0, 3, 0.0), cell(1.0, 0, 1.0)],
    };
    let program = Program { program: "both".to_owned(), accesses: 2, delay_ms: 1.0, best: 0, columns: vec![column] };
    let run = Run { workers: 1, nightcore: 4, programs: vec![program], pairs: Vec::new() };
    let read: Run = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
    let predictions = predict(&read, 3);
    assert_eq!((predictions.rows.len(), predictions.left_out), (2, 2));
    assert_eq!(predictions.within(), [1, 1], "{}", predictions.table());
    assert!(predictions.table().contains("| **MISS** |") && predictions.table().contains("| ok |"));
}

/// As `make sharing` writes them.
#[test]
fn arrivals_are_written_as_words() {
    for (arrivals, text) in [(Arrivals::Even, "even"), (Arrivals::Poisson, "poisson"), (Arrivals::Bursts(8), "bursts of 8")] {
        assert_eq!(serde_json::to_string(&arrivals).unwrap(), format!("{text:?}"));
        assert_eq!(text.parse::<Arrivals>().unwrap(), arrivals);
    }
    assert!("bursts of x".parse::<Arrivals>().is_err() && "often".parse::<Arrivals>().is_err());
}

/// All of the suite in small, on several threads: each program in each column at each load, the same from the same seed.
#[test]
fn figures_are_complete_and_follow_from_the_seed() {
    let programs = ["create-order", "six together", "ts-cancel"].map(str::to_owned).to_vec();
    let wanted = Wanted {
        cores: vec![1, 2],
        columns: COLUMNS.to_vec(),
        delay: MS,
        arrivals: Arrivals::Poisson,
        requests: 100,
        programs,
        seed: 1,
    };
    let report = figures(&wanted, None);
    assert_eq!((report.cells.len(), report.throughput.len(), report.runnable.len()), (2 * 3 * 4 * 3, 2 * 3 * 4, 2 * 3));
    assert!(report.cells.iter().all(|cell| cell.mean_ms > 0.0 && cell.p99_ms >= cell.mean_ms && cell.utilisation < 1.0));
    let text = |report: &Report| serde_json::to_string(report).unwrap();
    assert_eq!(text(&report), text(&figures(&wanted, None)));
    let table = report.table();
    for needed in ["| 1 | nightcore |", "### 2 cores", "| ts-cancel | throughput |", "### More that can run than cores"] {
        assert!(table.contains(needed), "{needed} is missing in:\n{table}");
    }
    let folder = tempfile::tempdir().unwrap();
    report.plot(&folder.path().join("figures")).unwrap();
    for file in ["figures-mean.svg", "figures-p99.png", "figures-throughput.svg"] {
        assert!(std::fs::metadata(folder.path().join(file)).unwrap().len() > 1_000, "{file}");
    }
}

/// The suite is as large as the paper's, and costs what it says.
#[test]
fn an_application_costs_what_its_functions_do() {
    let costs = Costs::USUAL;
    let settings = Settings::new(1, costs);
    let all = programs(5 * MS, None, &costs);
    assert_eq!(all.len(), 9 + 1 + 4);
    let tickets = all.iter().find(|program| program.name == "ts-tickets").unwrap();
    let own = costs.read + costs.write + 15 * 300 * US + 14 * costs.call + 17 * costs.trip;
    assert!(tickets.busy(&settings).abs_diff(own) < US && tickets.idle() == 17 * 5 * MS, "{}", tickets.busy(&settings));
    let load = Load::Closed { clients: 1, functions: tickets.asked.clone() };
    let outcome = play(&Settings { policy: Policy::Fifo, ..settings }, &tickets.functions, &load, 200, 1);
    let used = outcome.utilisation * outcome.latencies[0].mean_ms();
    // And what it costs a worker to wake up for each answer, and to look after connections.
    let expected = own as f64 / 1e6 + 17.0 * costs.wake as f64 / 1e6;
    assert!((0.95 * expected..1.1 * expected).contains(&used), "{used} ms, expected {expected}");
}
