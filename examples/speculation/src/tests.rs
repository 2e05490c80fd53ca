//! All applications over the store in memory, and what the README says about them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{Application, Error, FUNCTIONS, Inputs, Memory, Mix, Paths, SETUP, Step, names};

fn memory() -> Memory {
    let mut memory = Memory::new();
    memory.setup().unwrap();
    memory.take_steps();
    memory
}

/// Executions of all applications that take every way, one after the other.
fn executions(memory: &mut Memory) -> Vec<(Application, Vec<Step>)> {
    let mut all = Vec::new();
    for application in Application::ALL {
        for percent in [100, 0] {
            let mix = Mix { paths: Paths::Whole { percent }, ..Mix::default() };
            for input in Inputs::new(application, 1, mix).take(60) {
                memory.execute(application, input.as_bytes()).unwrap_or_else(|error| panic!("{input}: {error}"));
                all.push((application, memory.take_steps()));
            }
        }
    }
    all
}

/// Numbers and names of one thing apart: the record `seats/3/7` is of the kind `seats`.
fn kind(key: &str) -> &str {
    key.split('/').next().unwrap()
}

/// What the paper says of its functions (observation 3): 85.1 % read nothing that is written, and 61.7 % write nothing, either.
#[test]
fn as_many_functions_as_in_the_paper_are_pure() {
    let executions = executions(&mut memory());
    let steps: Vec<&Step> = executions.iter().flat_map(|(_, steps)| steps).collect();
    let written: BTreeSet<&str> = steps.iter().flat_map(|step| &step.writes).map(|key| kind(key)).collect();
    let names = |is: &dyn Fn(&Step) -> bool| -> BTreeSet<&str> {
        steps.iter().filter(|step| is(step)).map(|step| step.function.as_str()).collect()
    };
    let all = names(&|_| true);
    assert_eq!(all, FUNCTIONS.into_iter().collect(), "each way is taken");
    let readers = names(&|step| step.reads.iter().any(|key| written.contains(kind(key))));
    let writers = names(&|step| !step.writes.is_empty());
    let expected = ["bank-transfer", "flight-seats", "home-done", "hotel-check", "hotel-pay", "shop-receipt", "shop-ship"];
    assert_eq!(readers, expected.into_iter().collect());
    assert_eq!(all.difference(&readers).count(), 40, "of 47");
    assert_eq!(all.iter().filter(|name| !readers.contains(*name) && !writers.contains(*name)).count(), 29, "of 47");
}

/// A definition's states.
fn states(application: Application) -> BTreeMap<String, Value> {
    let mut definition: Value = serde_json::from_str(application.definition()).unwrap();
    serde_json::from_value(definition["States"].take()).unwrap()
}

/// By how many pairs of functions one takes in its body what the other has replied.
fn by_input(application: Application) -> usize {
    let states = states(application);
    let results: BTreeSet<String> = states.values().filter_map(|state| Some(state["ResultPath"].as_str()?.to_owned())).collect();
    let tasks = states.values().filter(|state| state["Type"] == "Task");
    let taken = |state: &Value| {
        let paths = state["Parameters"].as_object().unwrap().values().filter_map(Value::as_str);
        let results: BTreeSet<&String> =
            paths.filter_map(|path| results.iter().find(|result| path.starts_with(&format!("{result}.")))).collect();
        results.len()
    };
    tasks.map(taken).sum()
}

/// By how many pairs of functions one reads what the other has written in the same execution.
fn by_store(executions: &[(Application, Vec<Step>)], application: Application) -> usize {
    let mut pairs = BTreeSet::new();
    for (_, steps) in executions.iter().filter(|(of, _)| *of == application) {
        for (at, reader) in steps.iter().enumerate() {
            for key in &reader.reads {
                let writer = steps[..at].iter().rev().find(|step| step.writes.contains(key));
                pairs.extend(writer.map(|writer| (&writer.function, &reader.function)));
            }
        }
    }
    pairs.len()
}

/// The table in the README.
#[test]
fn the_applications_are_what_the_readme_says() {
    let executions = executions(&mut memory());
    let mut rows = Vec::new();
    for application in Application::ALL {
        let states = states(application);
        let count = |kind: &str| states.values().filter(|state| state["Type"] == kind).count();
        let resources: BTreeSet<&str> =
            states.values().filter_map(|state| state["Resource"].as_str()?.strip_prefix("fn:")).collect();
        assert_eq!(resources, application.functions().collect());
        assert_eq!((count("Task"), count("Choice")), (application.functions().count(), application.branches()));
        let depths = executions.iter().filter(|(of, _)| *of == application).map(|(_, steps)| steps.len());
        let (input, store) = (by_input(application), by_store(&executions, application));
        let (name, functions, branches) = (application.name(), count("Task"), application.branches());
        rows.push(format!("| `{name}` | {functions} | {branches} | {input} | {store} | {} |", depths.max().unwrap()));
    }
    let readme = include_str!("../README.md");
    let missing: Vec<&String> = rows.iter().filter(|row| !readme.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "rows that the README does not have:\n{}", rows.join("\n"));
}

/// A driver need not know in which order its requests were served.
#[test]
fn the_same_input_has_the_same_output_whatever_came_between() {
    let mut memory = memory();
    let mut inputs: Vec<(Application, String)> = Application::ALL
        .into_iter()
        .flat_map(|application| Inputs::new(application, 5, Mix::default()).take(30).map(move |input| (application, input)))
        .collect();
    let mut run = |inputs: &[(Application, String)]| -> BTreeMap<String, Vec<u8>> {
        let mut run = |(application, input): &(Application, String)| {
            (input.clone(), memory.execute(*application, input.as_bytes()).unwrap())
        };
        inputs.iter().map(&mut run).collect()
    };
    let first = run(&inputs);
    inputs.reverse();
    assert_eq!(run(&inputs), first);
}

#[test]
fn accounts_have_the_same_together_and_stocks_count() {
    let mut memory = memory();
    let sum = |memory: &Memory, kind: &str, count: u32| -> i64 {
        (0..count).map(|number| serde_json::from_slice::<i64>(memory.value(&format!("{kind}/{number}")).unwrap()).unwrap()).sum()
    };
    let before = sum(&memory, "balance", 256);
    let mix = Mix { paths: Paths::Whole { percent: 100 }, ..Mix::default() };
    for input in Inputs::new(Application::Banking, 2, mix).take(200) {
        memory.execute(Application::Banking, input.as_bytes()).unwrap();
    }
    assert_eq!(sum(&memory, "balance", 256), before);
    assert!((0..256).any(|user| memory.value(&format!("balance/{user}")).unwrap() != b"1000000000000"), "money moved");
    assert_eq!(sum(&memory, "sold", 200), 0);
    memory.take_steps();
    for input in Inputs::new(Application::OnlinePurchase, 2, mix).take(20) {
        memory.execute(Application::OnlinePurchase, input.as_bytes()).unwrap();
    }
    assert!(sum(&memory, "sold", 200) >= 20);
}

#[test]
fn more_work_changes_the_seal_alone() {
    let mut memory = memory();
    let mut reply = |work: u32| -> Value {
        let body = format!(r#"{{"home": 3, "hour": 4, "work": {work}}}"#);
        serde_json::from_slice(&memory.answer("home-read", body.as_bytes()).unwrap()).unwrap()
    };
    let (none, some) = (reply(0), reply(9));
    assert_ne!(none["seal"], some["seal"]);
    assert_eq!(none["readings"], some["readings"]);
}

#[test]
fn what_makes_no_sense_is_named() {
    let mut memory = memory();
    let mut reason = |name: &str, body: &str| match memory.answer(name, body.as_bytes()) {
        Err(Error::Asked(reason)) => reason,
        other => panic!("{name} {body}: {other:?}"),
    };
    assert!(reason("login-check", r#"{"user": 1, "work": 0}"#).contains("missing field `password`"));
    assert!(reason("login-check", r#"{"user": 1, "password": "x"}"#).contains("missing field `work`"));
    assert!(reason("login-check", r#"{"user": -1, "password": "x", "work": 0}"#).contains("-1"));
    assert!(reason("login-welcome", r#"{"user": 1, "work": 100000001}"#).contains("`work` is 100000001"));
    assert!(reason("flight-seats", r#"{"flight": 1, "date": 1, "seats": 10, "work": 0}"#).contains("`seats` is 10"));
    assert!(reason("hotel-search", r#"{"city": 99, "date": 1, "work": 0}"#).contains("`city` is 99"));
    assert!(reason("hotel-rank", r#"{"hotels": [], "km_cents": 1, "work": 0}"#).contains("`hotels` is empty"));
    assert!(reason("hotel-check", r#"{"hotel": 1, "date": 1, "nights": 4, "work": 0}"#).contains("`nights` is 4"));
    assert!(reason("home-read", r#"{"home": 1, "hour": 24, "work": 0}"#).contains("`hour` is 24"));
    assert!(reason("shop-pay", r#"{"order": 1, "card": "4", "cents": 1, "work": 0}"#).contains("16 digits"));
    assert!(reason("missing", "{}").contains("`missing`"));
    let error = memory.execute(Application::Login, br#"{"user": 1, "work": 0}"#).unwrap_err();
    assert!(error.to_string().contains("`password`"), "{error}");
    // What is not in the store is not the client's fault: a driver has to notice that it was not set up.
    let error = Memory::new().answer("bank-check", br#"{"user": 1, "to": 2, "amount_cents": 3, "work": 0}"#).unwrap_err();
    assert!(
        matches!(&error, Error::Broken(reason) if reason.contains("not in the store") && reason.contains(SETUP)),
        "{error:?}"
    );
}

/// Which names are configured.
#[test]
fn the_configuration_has_all_names() {
    let text = include_str!("../sledge.toml");
    let configured: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("name = \"")).map(|name| name.trim_end_matches('"')).collect();
    let workflows = Application::ALL.map(Application::name);
    assert!(names().chain(workflows).eq(configured.iter().copied()), "{configured:?}");
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
        let application = Application::ALL.into_iter().find(|application| application.name() == url);
        let reply = match application {
            Some(application) => memory.execute(application, body.as_bytes()),
            None => memory.answer(url, body.as_bytes()),
        };
        let reply = String::from_utf8(reply.unwrap()).unwrap();
        if said != reply {
            wrong.push(format!("{url}: {reply}"));
        }
    }
    assert!(
        commands == 8 && wrong.is_empty(),
        "{commands} commands; replies that the README does not have:\n{}",
        wrong.join("\n")
    );
}
