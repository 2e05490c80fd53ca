//! `speculation`: express executions that begin functions before those before them have answered. They answer what the same workflow answers without, and leave the same in the store.

use crate::durable::machine;
use crate::joined::sent;
use crate::kv::Redis;
use crate::transactions::{function, on_every_store};
use serde_json::{Value, json};
use sledge_tests::http::{Client, TIME_MAX};
use sledge_tests::random::Random;
use sledge_tests::server::Server;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

const STEPS: usize = 4;

/// Calls `t` with the lines that the input has for this step: so its input does not depend on what the steps before it answer.
pub(crate) fn step(number: usize, next: &str) -> Value {
    json!({
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": { "FunctionName": "t", "Request": { "Method": "POST", "Path": "/", "Body.$": format!("$.lines[{number}]") } },
        "ResultSelector": { "text.$": "$.Payload" },
        "ResultPath": format!("$.step{number}"),
        "Next": next,
    })
}

/// Four steps, one after the other. Where the second one has failed to find a key, the third one is left out.
pub(crate) fn chain() -> Value {
    machine(
        "S0",
        &json!({
            "S0": step(0, "S1"),
            "S1": step(1, "Which"),
            "Which": { "Type": "Choice", "Choices": [{ "Variable": "$.step1.text", "StringMatches": "error*", "Next": "S3" }], "Default": "S2" },
            "S2": step(2, "S3"),
            "S3": step(3, "Out"),
            "Out": { "Type": "Succeed" },
        }),
    )
}

/// A server with the chain as two workflows, with and without speculation.
fn serve(folder: &Path, more: &Value, level: &str) -> Server {
    serve_definition(folder, more, level, &chain())
}

fn serve_definition(folder: &Path, more: &Value, level: &str, definition: &Value) -> Server {
    let path = folder.join("workflow.asl.json");
    fs::write(&path, definition.to_string()).expect("write a definition");
    let workflow = |name: &str, level: &str| json!({ "name": name, "path": path, "type": "express", "speculation": level, "deadline_ms": 60_000 });
    let functions = [function("t", json!({}))];
    let mut config = json!({ "functions": functions, "workflows": [workflow("ahead", level), workflow("plain", "off")] });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    Server::start(config)
}

/// The first branch waits between its steps, while the second one ends.
fn branches() -> Value {
    let branch = |first: &str, states: Value| machine(first, &states);
    let mut last = step(1, "");
    last.as_object_mut().expect("a state").remove("Next");
    last["End"] = json!(true);
    let mut other = step(2, "");
    other.as_object_mut().expect("a state").remove("Next");
    other["End"] = json!(true);
    let first = branch("A", json!({ "A": step(0, "Pause"), "Pause": { "Type": "Wait", "Seconds": 1, "Next": "B" }, "B": last }));
    let second = branch("C", json!({ "C": other }));
    machine("Both", &json!({ "Both": { "Type": "Parallel", "Branches": [first, second], "End": true } }))
}

/// What an execution of these lines says, step by step.
fn run(client: &Client, workflow: &str, lines: &[String]) -> Vec<String> {
    let reply = client.post(&format!("/{workflow}"), json!({ "lines": lines }).to_string());
    assert_eq!(reply.status, 200, "{}", reply.text());
    let output = reply.json();
    // One of them may have been left out.
    let text = |step| output[format!("step{step}")]["text"].as_str().map(|text| text.trim_end().to_owned());
    (0..STEPS).filter_map(text).collect()
}

/// Keys and what they hold, as the functions see them.
pub(crate) type Store = BTreeMap<String, i64>;

/// What a line does, and answers: whether a value was written by the transaction itself does not count.
pub(crate) fn model(store: &mut Store, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let missing = || "error 44".to_owned();
    match words[..] {
        ["get", key] => store.get(key).map_or_else(missing, |value| format!("stored {value}")),
        ["set", key, value] => {
            store.insert(key.to_owned(), value.parse().expect("a number"));
            "set".to_owned()
        }
        ["add", key, value] => {
            *store.entry(key.to_owned()).or_default() += value.parse::<i64>().expect("a number");
            "add".to_owned()
        }
        ["delete", key] => {
            store.remove(key);
            "delete".to_owned()
        }
        ["list", prefix] => {
            let keys = store.keys().filter(|key| key.starts_with(prefix));
            keys.fold("keys".to_owned(), |text, key| text + " " + key)
        }
        _ => panic!("{line}"),
    }
}

/// What the chain answers one step after the other.
fn in_order(store: &mut Store, lines: &[String]) -> Vec<String> {
    let mut replies: Vec<String> = Vec::new();
    for (number, lines) in lines.iter().enumerate() {
        if number == 2 && replies[1].starts_with("error") {
            continue;
        }
        replies.push(lines.lines().map(|line| model(store, line)).collect::<Vec<_>>().join("\n"));
    }
    replies
}

pub(crate) fn some_lines(random: &mut Random) -> String {
    let key = |random: &mut Random| format!("k{}", random.below(4));
    let line = |random: &mut Random| match random.below(8) {
        0..3 => format!("get {}", key(random)),
        3 | 4 => format!("set {} {}", key(random), random.below(100)),
        5 => format!("add {} {}", key(random), random.below(10)),
        6 => format!("delete {}", key(random)),
        _ => "list k".to_owned(),
    };
    (0..1 + random.below(3)).map(|_| line(random)).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_execution_answers_and_leaves_what_its_steps_do_one_after_the_other() {
    on_every_store(|kv| {
        let folder = tempfile::tempdir().expect("a folder");
        let server = serve(folder.path(), kv, "outputs");
        let client = server.client();
        let (mut store, mut random) = (Store::new(), Random::new(21, "lines"));
        for round in 0..150 {
            let lines: Vec<String> = (0..STEPS).map(|_| some_lines(&mut random)).collect();
            let expected = in_order(&mut store, &lines);
            // A value that an earlier step has written may be one of the transaction's own.
            let replies: Vec<String> =
                run(&client, "ahead", &lines).iter().map(|reply| reply.replace("own ", "stored ")).collect();
            assert_eq!(replies, expected, "{kv}, round {round}: {lines:?}");
        }
        server.stop();
    });
}

/// How many runs have come to that.
fn runs(server: &Server, result: &str) -> u64 {
    let metrics = server.admin().get("/metrics").text();
    let name = format!("sledge_speculative_runs_total{{tenant=\"default\",result=\"{result}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).unwrap_or(0)
}

/// Few different steps come again and again, and what they have read is changed now and then, also by others than executions.
#[test]
fn a_step_whose_answer_is_known_is_left_out_as_long_as_nothing_has_changed() {
    on_every_store(|kv| {
        let folder = tempfile::tempdir().expect("a folder");
        let server = serve(folder.path(), kv, "skips");
        let client = server.client();
        let (mut store, mut random) = (Store::new(), Random::new(22, "few lines"));
        let (mut ran, end) = (0, Instant::now() + TIME_MAX);
        // As many rounds as it takes until a step is left out.
        for round in (0..).take_while(|round| *round < 200 || runs(&server, "skipped") == 0) {
            assert!(Instant::now() < end, "{kv}: no step is left out");
            let line = |random: &mut Random| match random.below(12) {
                0..6 => format!("get k{}", random.below(3)),
                6..8 => format!("get k{}\nset k{} 7", random.below(2), 2 + random.below(2)),
                8 => "list k".to_owned(),
                9 => "set k0 1\nget k3".to_owned(),
                10 if random.below(3) == 0 => "add k1 1".to_owned(),
                11 if random.below(3) == 0 => format!("set k1 {}\nget k1", random.below(3)),
                _ => "get x".to_owned(),
            };
            let lines: Vec<String> = (0..STEPS).map(|_| line(&mut random)).collect();
            if random.below(4) == 0 {
                let line = format!("{} k{} {}", random.pick(&["set", "add"]), random.below(3), random.below(3));
                model(&mut store, &line);
                assert_eq!(client.post("/t", line.clone()).status, 200);
            }
            let expected = in_order(&mut store, &lines);
            ran += expected.len() as u64;
            let replies: Vec<String> =
                run(&client, "ahead", &lines).iter().map(|reply| reply.replace("own ", "stored ")).collect();
            assert_eq!(replies, expected, "{kv}, round {round}: {lines:?}");
        }
        let skipped = runs(&server, "skipped");
        assert!(skipped > 0 && skipped < ran, "{kv}: {skipped} of {ran}");
        // Nothing has changed: none of them runs any more.
        for lines in [["get k0", "get k1", "get k0\nset k3 7", "get k3"], ["list k", "get k1", "get k0", "list k"]] {
            let lines = lines.map(str::to_owned);
            let left_out_now = || {
                let skipped = runs(&server, "skipped");
                assert_eq!(run(&client, "ahead", &lines).len(), STEPS);
                runs(&server, "skipped") - skipped
            };
            // After answers that were wrong functions run for a while, and after a loss one execution of 64 goes ahead: the first of these learns, and the next one knows.
            crate::eventually(&format!("{kv}: {lines:?} are left out"), || left_out_now() == STEPS as u64);
        }
        server.stop();
    });
}

/// Keys are read one after the other, by steps whose inputs come again, and are too large to be kept: all of them are fetched together, and what was changed meanwhile is seen.
#[test]
fn what_steps_read_of_redis_is_fetched_together_when_they_begin() {
    let redis = Redis::start();
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), &json!({ "kv": redis.url(), "workers": 2 }), "outputs");
    let client = server.client();
    let of_step = |step: usize| (0..3).map(move |pair| (format!("k{step}{pair}"), format!("l{step}{pair}")));
    let line = |(one, other)| format!("values {one} {other}");
    let lines = [0, 1, 2, 3].map(|step| of_step(step).map(line).collect::<Vec<_>>().join("\n"));
    let set = |key: &str, digit: &str| assert_eq!(client.post("/t", format!("set {key} {}", digit.repeat(5_000))).status, 200);
    let mut digits: BTreeMap<String, String> = BTreeMap::new();
    for (one, other) in (0..STEPS).flat_map(of_step) {
        for key in [one, other] {
            set(&key, "1");
            digits.insert(key, "1".to_owned());
        }
    }
    let in_order = |digits: &BTreeMap<String, String>| -> Vec<String> {
        let value = |key: &String| digits[key].repeat(5_000);
        let line = |(one, other)| format!("values {} {}", value(&one), value(&other));
        (0..STEPS).map(|step| of_step(step).map(line).collect::<Vec<_>>().join("\n")).collect()
    };
    let scripts = || {
        let before = sent(&redis, "evalsha");
        assert!(run(&client, "ahead", &lines) == in_order(&digits));
        sent(&redis, "evalsha") - before
    };
    let first = scripts();
    assert!(first >= 12, "nothing was known: {first}");
    // One fetch and one commit; a step may be committed by itself.
    crate::eventually("they are fetched together", || scripts() <= 4);
    for digit in 2..10 {
        let (key, digit) = (format!("k{}{}", digit % 4, digit % 3), digit.to_string());
        set(&key, &digit);
        digits.insert(key, digit);
        assert!(run(&client, "ahead", &lines) == in_order(&digits));
    }
    server.stop();
}

/// What a committed execution has read or written of Redis is expected there by the next one, which asks for none of it; what a server beside it has changed is seen nevertheless.
#[test]
fn what_redis_is_expected_to_have_is_not_asked_for() {
    let redis = Redis::start();
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), &json!({ "kv": redis.url(), "workers": 2 }), "outputs");
    let other = serve(folder.path(), &json!({ "kv": redis.url(), "workers": 1 }), "off");
    let (client, beside) = (server.client(), other.client());
    let keys = |step: usize| (0..3).map(move |key| format!("k{step}{key}"));
    let lines = [0, 1, 2, 3].map(|step| keys(step).map(|key| format!("get {key}")).collect::<Vec<_>>().join("\n"));
    let mut store = Store::new();
    for key in (0..STEPS).flat_map(keys) {
        let line = format!("set {key} 1");
        model(&mut store, &line);
        assert_eq!(beside.post("/t", line).status, 200);
    }
    let scripts = |store: &Store| {
        let before = sent(&redis, "evalsha");
        let replies = run(&client, "ahead", &lines);
        assert_eq!(replies, in_order(&mut store.clone(), &lines));
        sent(&redis, "evalsha") - before
    };
    let first = scripts(&store);
    assert!(first >= 12, "nothing was known: {first}");
    // Commits; a step may be committed by itself.
    crate::eventually("nothing is asked for", || scripts(&store) <= 2);
    for value in 2..20 {
        for key in 0..value % 5 {
            let line = format!("set k{}{} {value}", (value + key) % 4, value % 3);
            model(&mut store, &line);
            assert_eq!(beside.post("/t", line).status, 200);
        }
        scripts(&store);
        scripts(&store);
    }
    // What it writes itself it knows.
    let written = [0, 1, 2, 3].map(|step| format!("get w{step}\nadd w{step} 1"));
    for _ in 0..50 {
        let replies = run(&client, "ahead", &written);
        assert_eq!(replies, in_order(&mut store, &written));
    }
    other.stop();
    server.stop();
}

/// What a step sends at its end is a part of what it does: it is not left out, though its answer is always the same.
#[test]
fn a_step_that_sends_a_call_runs_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), &json!({ "kv": "memory", "workers": 2 }), "skips");
    let client = server.client();
    let lines = ["get x", "get y", "get z", "send t add n 1"].map(str::to_owned);
    let (mut executions, end) = (0, Instant::now() + TIME_MAX);
    while executions < 8 || runs(&server, "skipped") == 0 {
        assert!(Instant::now() < end, "no step is left out");
        assert_eq!(run(&client, "ahead", &lines).last().map(String::as_str), Some("sent"));
        executions += 1;
    }
    crate::eventually("what is sent", || client.post("/t", "get n").text() == format!("stored {executions}\n"));
    server.stop();
}

/// Each of four steps takes a second. Their inputs are known from the beginning.
#[test]
fn steps_that_do_not_wait_for_each_other_run_at_the_same_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), &json!({ "kv": "memory", "workers": 2 }), "paths");
    let client = server.client();
    let lines: Vec<String> = (0..STEPS).map(|step| format!("pause 1000\nset s{step} 1")).collect();
    let took = |workflow: &str| {
        let began = Instant::now();
        assert_eq!(run(&client, workflow, &lines), ["paused\nset"; STEPS]);
        began.elapsed()
    };
    let plain = took("plain");
    assert!(plain >= Duration::from_secs(4), "{plain:?}");
    // How long steps take, and how their answers look, is learned first. Where the machine is busy nothing goes ahead for a while.
    crate::fastest_below("steps at the same time", Duration::from_secs(2), || took("ahead"));
    server.stop();
}

/// A loop that nothing ends but its deadline: its steps are left out, as their answers are known, and the server goes on with other requests.
#[test]
fn a_loop_of_known_answers_leaves_time_for_others_and_ends_in_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let definition = machine("S0", &json!({ "S0": step(0, "S1"), "S1": step(1, "S0") }));
    let path = folder.path().join("loop.asl.json");
    fs::write(&path, definition.to_string()).expect("write a definition");
    let workflow = json!({ "name": "loop", "path": path, "type": "express", "speculation": "skips", "deadline_ms": 12_000 });
    let functions = [function("t", json!({}))];
    let server = Server::start(json!({ "kv": "memory", "workers": 1, "functions": functions, "workflows": [workflow] }));
    let address = server.address;
    thread::scope(|scope| {
        let looping = scope.spawn(move || {
            let lines = json!({ "lines": ["get a", "get b"] });
            Client::new(address, TIME_MAX).post("/loop", lines.to_string()).status
        });
        thread::sleep(Duration::from_millis(500));
        for _ in 0..20 {
            assert_eq!(server.client().post("/t", "get a").status, 200);
        }
        assert!(!looping.is_finished(), "it has ended before its time");
        assert_eq!(looping.join().expect("it is answered"), 504);
    });
    assert!(runs(&server, "skipped") > 100);
    server.stop();
}

/// The second step reads what the first one writes after a while. With `stalls` it waits for that when it has read too early three times in a row.
#[test]
fn a_step_that_reads_too_early_each_time_waits_for_the_write() {
    const SQUASHES: u64 = 16;
    // Where the machine is busy some go ahead of nothing, and after losses few do: both have executions in turns, as many as it takes.
    let of_level = |level: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let server = serve(folder.path(), &json!({ "kv": "memory", "workers": 2 }), level);
        (folder, server)
    };
    let servers = ["outputs", "stalls"].map(of_level);
    let [outputs, stalls] = servers.each_ref().map(|(_, server)| server);
    let execute = |server: &Server, round: u64| {
        let lines = [format!("pause 30\nset a {round}"), "get a".to_owned(), "get b".to_owned(), "get a".to_owned()];
        let replies = run(&server.client(), "ahead", &lines);
        let read = format!("stored {round}");
        assert_eq!([&replies[1], &replies[3]].map(|reply| reply.replace("own ", "stored ")), [read.clone(), read]);
    };
    let (mut round, end) = (0, Instant::now() + 2 * TIME_MAX);
    while runs(outputs, "squashed") < SQUASHES {
        assert!(Instant::now() < end, "{} were squashed in {round} executions", runs(outputs, "squashed"));
        round += 1;
        execute(outputs, round);
        execute(stalls, round);
    }
    let [squashed, stalled] = [outputs, stalls].map(|server| runs(server, "squashed"));
    assert!(stalled < squashed / 2, "{squashed} without waits, {stalled} with them, of {round} executions");
    servers.into_iter().for_each(|(_, server)| server.stop());
}

/// All executions change the same key, so that what runs ahead is squashed by others again and again. They go on as without speculation then.
#[test]
fn executions_that_conflict_each_time_do_not_go_ahead_for_long() {
    let redis = Redis::start();
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), &json!({ "kv": redis.url(), "workers": 2 }), "stalls");
    let address = server.address;
    let squashed = |executions: u64| {
        let before = runs(&server, "squashed");
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(move || {
                    let client = Client::new(address, TIME_MAX);
                    for _ in 0..executions {
                        let lines = ["next hot 2", "get hot", "next hot 2", "get y"].map(str::to_owned);
                        assert_eq!(run(&client, "ahead", &lines).len(), STEPS);
                    }
                });
            }
        });
        runs(&server, "squashed") - before
    };
    let (first, second) = (squashed(60), squashed(60));
    // Where they were hardly ever under way at the same time, few were squashed either time.
    assert!(4 * second < 3 * first || second <= 60, "{first} were squashed in 360 executions, and then {second}");
    assert_eq!(server.client().post("/t", "get hot").text().trim_end(), "stored 1440");
    server.stop();
}

/// Money is moved by executions at the same time: it never gets more or less, also in the middle of an execution.
#[test]
fn executions_at_the_same_time_are_one_after_the_other() {
    ["outputs", "skips"].into_iter().for_each(at_the_same_time);
}

fn at_the_same_time(level: &str) {
    on_every_store(|kv| {
        let folder = tempfile::tempdir().expect("a folder");
        let server = serve(folder.path(), kv, level);
        let lines = |lines: [&str; STEPS]| lines.map(str::to_owned).to_vec();
        let accounts = (0..4).map(|account| format!("set a{account} 100")).collect::<Vec<_>>().join("\n");
        run(&server.client(), "plain", &lines([&accounts, "set x 1", "get x", "get x"]));
        let address = server.address;
        thread::scope(|scope| {
            for client in 0..4_u64 {
                scope.spawn(move || {
                    let (client, mut random) = (Client::new(address, TIME_MAX), Random::new(client, "accounts"));
                    for _ in 0..25 {
                        let (from, to) = (random.below(4), random.below(4));
                        if from == to {
                            continue;
                        }
                        let moved = format!("move a{from} a{to} 1 1");
                        let steps = lines(["total 4 0", &moved, "total 4 0", "total 4 0"]);
                        let replies = run(&client, "ahead", &steps);
                        for reply in [&replies[0], &replies[2], &replies[3]] {
                            assert_eq!(reply, "total 400", "{kv}, {level}");
                        }
                    }
                });
            }
        });
        assert_eq!(run(&server.client(), "plain", &lines(["total 4 0", "get x", "get x", "get x"]))[0], "total 400");
        server.stop();
    });
}

/// A step of a branch begins when later branches are committed already: it had to wait.
#[test]
fn a_branch_that_waits_goes_on_when_the_branch_behind_it_is_committed() {
    on_every_store(|kv| {
        let folder = tempfile::tempdir().expect("a folder");
        let server = serve_definition(folder.path(), kv, "paths", &branches());
        let client = server.client();
        for _ in 0..2 {
            let lines = ["set a 1", "get a\nget c\nset b 2", "set c 3"];
            let reply = client.post("/ahead", json!({ "lines": lines }).to_string());
            assert_eq!(reply.status, 200, "{kv}: {}", reply.text());
            let output = reply.json();
            assert_eq!(output[0]["step1"]["text"], "stored 1\nstored 3\nset\n", "{kv}: {output}");
            assert_eq!(output[1]["step2"]["text"], "set\n");
        }
        server.stop();
    });
}

/// More calls at the same time than an execution may have ahead of its commits.
#[test]
fn a_hundred_iterations_at_the_same_time_are_all_done() {
    on_every_store(|kv| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut add = step(0, "Again");
        add["Parameters"]["Request"]["Body.$"] = json!("$.line");
        let mut again = add.clone();
        again.as_object_mut().expect("a state").remove("Next");
        again["End"] = json!(true);
        let states = json!({ "Add": add, "Again": again });
        let each = json!({ "Type": "Map", "ItemsPath": "$.items", "ItemProcessor": machine("Add", &states), "ResultPath": "$.done", "End": true });
        let server = serve_definition(folder.path(), kv, "paths", &machine("Each", &json!({ "Each": each })));
        let client = server.client();
        let items: Vec<Value> = (0..100).map(|item| json!({ "line": format!("add n 1\nset i{item} 1") })).collect();
        for round in 1..=2 {
            let reply = client.post("/ahead", json!({ "items": items }).to_string());
            assert_eq!(reply.status, 200, "{kv}: {}", reply.text());
            let told = client.post("/t", "get n").text();
            assert_eq!(told.trim_end(), format!("stored {}", round * 200), "{kv}");
        }
        server.stop();
    });
}

/// A step that is left out in the end has perhaps run ahead, and trapped. Nothing is said of that.
#[test]
fn a_run_that_was_not_wanted_has_logged_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = serve(folder.path(), &json!({ "kv": "memory", "workers": 2 }), "paths");
    let client = server.client();
    let lines = |lines: [&str; STEPS]| lines.map(str::to_owned).to_vec();
    // The way through the third step is the usual one, and to begin it early pays. A server that was busy lets nothing go ahead.
    let is_dropped = || {
        for _ in 0..6 {
            assert_eq!(run(&client, "ahead", &lines(["set a 1", "get a\npause 20", "pause 20", "pause 20"])).len(), STEPS);
        }
        let before = runs(&server, "dropped");
        assert_eq!(run(&client, "ahead", &lines(["get a", "get b\npause 300", "trap", "get a"])).len(), STEPS - 1);
        runs(&server, "dropped") > before
    };
    crate::eventually("the step that traps runs ahead", is_dropped);
    assert!(!server.log().contains("unreachable"), "{}", server.log());
    let reply = client.post("/ahead", json!({ "lines": ["get a", "get a\npause 300", "trap", "get a"] }).to_string());
    assert_ne!(reply.status, 200);
    server.wait_for_log("unreachable");
    server.stop();
}

/// A step that fails ends the execution, and what the steps behind it have done is in no store.
#[test]
fn what_comes_behind_a_failure_was_never_there() {
    on_every_store(|kv| {
        let folder = tempfile::tempdir().expect("a folder");
        let server = serve(folder.path(), kv, "outputs");
        let client = server.client();
        let good: Vec<String> = ["set a 1", "get a", "set b 1", "set c 1"].map(str::to_owned).to_vec();
        for _ in 0..5 {
            assert_eq!(run(&client, "ahead", &good).len(), STEPS);
        }
        for fails in ["pause 20\ntrap", "set c 7\npause 20\ntrap"] {
            let lines = ["set a 2", "get a", fails, "set c 2\nset d 2"];
            let reply = client.post("/ahead", json!({ "lines": lines }).to_string());
            assert_ne!(reply.status, 200);
            let after: Vec<String> = ["get a", "get b", "get c", "list d"].map(str::to_owned).to_vec();
            assert_eq!(run(&client, "plain", &after), ["stored 2", "stored 1", "stored 1", "keys"], "{kv}");
        }
        server.stop();
    });
}
