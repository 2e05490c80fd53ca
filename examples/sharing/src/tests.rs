//! All functions over the store in memory.

use crate::{APPLICATIONS, Answer, Error, FUNCTIONS, Memory, TRAVEL, Uses, body, names};

fn memory() -> Memory {
    let mut memory = Memory::new();
    memory.setup(12).unwrap();
    memory
}

/// What a request uses.
fn used(memory: &mut Memory, name: &str, input: u32) -> Uses {
    let before = memory.uses();
    memory.answer(name, body(name, input, 1).as_bytes()).unwrap_or_else(|error| panic!("{name} {input}: {error}"));
    let after = memory.uses();
    Uses { reads: after.reads - before.reads, writes: after.writes - before.writes, calls: after.calls - before.calls }
}

/// The table in the README.
#[test]
fn each_function_reads_writes_and_calls_what_the_readme_says() {
    let mut memory = memory();
    let expected = [
        ("lr-serv", 3, 1, 0),
        ("cnn-serv", 4, 1, 0),
        ("rnn-serv", 3, 1, 0),
        ("ml-train", 4, 1, 0),
        ("vid-conv", 4, 1, 0),
        ("img-rotate", 3, 1, 0),
        ("img-resize", 3, 1, 0),
        ("create-order", 6, 2, 0),
        ("pay-order", 6, 2, 0),
        ("ts-tickets", 13, 4, 14),
        ("ts-trip-info", 21, 6, 23),
        ("ts-left", 8, 2, 4),
        ("ts-cancel", 4, 3, 3),
        ("ts-travel", 7, 1, 7),
    ];
    assert!(expected.iter().map(|(name, ..)| *name).eq(FUNCTIONS.into_iter().chain(APPLICATIONS).chain([TRAVEL])));
    for (name, reads, writes, calls) in expected {
        for input in [0, 3, 11] {
            assert_eq!(used(&mut memory, name, input), Uses { reads, writes, calls }, "{name} {input}");
        }
    }
}

/// A driver need not know in which order its requests were served.
#[test]
fn the_same_request_has_the_same_reply_whatever_came_between() {
    let all: Vec<_> = FUNCTIONS.into_iter().chain(APPLICATIONS).chain([TRAVEL]).flat_map(|name| [(name, 2), (name, 7)]).collect();
    let mut memory = memory();
    let mut ask = |(name, input): &(&'static str, u32), work| memory.answer(name, body(name, *input, work).as_bytes()).unwrap();
    let first: Vec<_> = all.iter().map(|one| ask(one, 3)).collect();
    all.iter().rev().for_each(|one| assert!(!ask(one, 1).is_empty()));
    let again: Vec<_> = all.iter().map(|one| ask(one, 3)).collect();
    assert_eq!(first, again);
}

#[test]
fn replies_say_what_came_out() {
    let mut memory = memory();
    let mut ask = |name: &str, input: u32, work: u32| -> Answer {
        serde_json::from_slice(&memory.answer(name, body(name, input, work).as_bytes()).unwrap()).unwrap()
    };
    for name in FUNCTIONS {
        let (answer, other) = (ask(name, 5, 1), ask(name, 6, 1));
        assert!(answer.input == 5 && answer.bytes > 0 && answer.digest.len() == 16, "{name}: {answer:?}");
        assert_ne!(answer.digest, other.digest, "{name}: {answer:?} {other:?}");
    }
    // The network tells pictures apart.
    let mut classes: Vec<String> = (0..8).map(|input| ask("cnn-serv", input, 1).result).collect();
    classes.dedup();
    assert!(classes.len() > 2, "{classes:?}");
    let result = ask("ml-train", 5, 40).result;
    let errors: Vec<f32> = result.rsplit(' ').step_by(2).take(2).map(|word| word.parse().unwrap()).collect();
    assert!(errors[0] < 0.8 * errors[1], "{result}");
}

#[test]
fn seats_are_looked_for_in_trains_that_go_there() {
    let mut memory = memory();
    let calls = |memory: &mut Memory, from: &str, to: &str| {
        let before = memory.uses().calls;
        let ask = format!(r#"{{"ask": {{"trip": 3, "date": 5, "from": "{from}", "to": "{to}"}}}}"#);
        let reply = String::from_utf8(memory.answer(TRAVEL, ask.as_bytes()).unwrap()).unwrap();
        (memory.uses().calls - before, reply.contains(r#""left":null"#), reply.contains(r#""train":"night""#))
    };
    assert_eq!(calls(&mut memory, "Kassel", "Ulm"), (7, false, true));
    assert_eq!(calls(&mut memory, "Ulm", "Kassel"), (4, true, true));
}

#[test]
fn a_cancelled_order_leaves_its_seat_and_the_others_theirs() {
    let mut memory = memory();
    let sold = |memory: &mut Memory| {
        let ask = br#"{"ask": {"trip": 0, "dates": [20], "from": 0, "to": 5}}"#;
        let reply: serde_json::Value = serde_json::from_slice(&memory.answer("ts-sold", ask).unwrap()).unwrap();
        reply["reply"][0]["comfort"].as_u64().unwrap() + reply["reply"][0]["economy"].as_u64().unwrap()
    };
    let before = sold(&mut memory);
    for order in 0..8 {
        memory.answer("ts-cancel", body("ts-cancel", order, 0).as_bytes()).unwrap();
    }
    let after = sold(&mut memory);
    assert!((before - 8..before).contains(&after), "{before} became {after}");
    memory.answer("ts-cancel", body("ts-cancel", 3, 0).as_bytes()).unwrap();
    assert_eq!(sold(&mut memory), after);
    let order = memory.answer("ts-order", br#"{"ask": {"number": 3}}"#).unwrap();
    assert!(String::from_utf8_lossy(&order).contains(r#""is_cancelled":true"#));
}

#[test]
fn what_makes_no_sense_is_named() {
    let mut memory = memory();
    let mut reason = |name: &str, body: &str| match memory.answer(name, body.as_bytes()) {
        Err(Error::Asked(reason)) => reason,
        other => panic!("{name} {body}: {other:?}"),
    };
    assert!(reason("lr-serv", r#"{"input": "x"}"#).contains("line 1"));
    assert!(reason("lr-serv", r#"{"input": 1, "work": 0}"#).contains("`work` is 0"));
    assert!(reason("lr-serv", r#"{"input": 1, "rounds": 1}"#).contains("unknown field"));
    assert!(reason("suite-setup", r#"{"from": 0, "to": 257}"#).contains("at most 256"));
    assert!(reason("ts-setup", r#"{"from": 2, "to": 1}"#).contains("from 2 to 1"));
    let journey =
        |from: &str, to: &str| format!(r#"{{"ask": {{"trip": 1, "date": 1, "from": "{from}", "to": "{to}", "user": 1}}}}"#);
    assert!(reason("ts-tickets", &journey("Ulm", "Ulm")).contains("does not go"));
    assert!(reason("missing", "").contains("`missing`"));
    // What is not in the store is not the client's fault: a driver has to notice that its setup is too small.
    for (name, body) in [("lr-serv", body("lr-serv", 12, 1)), ("ts-cancel", r#"{"ask": {"order": 99999}}"#.to_owned())] {
        let error = memory.answer(name, body.as_bytes()).unwrap_err();
        assert!(matches!(&error, Error::Broken(reason) if reason.contains("not in the store")), "{error:?}");
    }
}

/// Which names are configured.
#[test]
fn the_configuration_has_all_names() {
    let text = include_str!("../sledge.toml");
    let configured: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("name = \"")).map(|name| name.trim_end_matches('"')).collect();
    assert!(names().eq(configured.iter().copied()), "{configured:?}");
}

/// The commands in the README, and what they print.
#[test]
fn the_readme_says_what_is_replied() {
    let mut memory = Memory::new();
    let mut lines = include_str!("../README.md").lines().map(str::trim);
    let mut wrong = Vec::new();
    let mut commands = 0;
    while let Some(line) = lines.next() {
        let Some((body, url)) = line.strip_prefix("curl -d '").and_then(|rest| rest.split_once("' http://127.0.0.1:8080/"))
        else {
            continue;
        };
        commands += 1;
        let said = lines.next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default();
        let reply = String::from_utf8(memory.answer(url, body.as_bytes()).unwrap()).unwrap();
        if said != reply {
            wrong.push(reply);
        }
    }
    assert!(
        commands == 7 && wrong.is_empty(),
        "{commands} commands; replies that the README does not have:\n{}",
        wrong.join("\n")
    );
}
