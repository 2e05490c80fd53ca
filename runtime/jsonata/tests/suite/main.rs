//! The test suite of jsonata-js (`test/test-suite` of github.com/jsonata-js/jsonata, version 2.2), from the folder that `JSONATA_SUITE` names.
//!
//! A case is an expression, data, and a result or the code of an error. Every case runs, but those in [`exceptions`] have to fail.

#![allow(missing_docs)]

mod exceptions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use exceptions::{EXPECTED_FAILURES, UNREADABLE};
use serde_json::Value;
use sledge_jsonata::{Dialect, Environment, Expression, Limits};

/// Cases of version 2.2.2: a folder with fewer is not the suite.
const CASES_MIN: usize = 1680;
/// What deep cases need without optimisation.
const STACK_BYTES: usize = 64 << 20;
/// A time of 2026, as the time of some cases has to be of this century.
const NOW_MS: i64 = 1_790_000_000_000;

struct Case {
    name: String,
    fields: Value,
    expression: String,
}

struct Suite {
    datasets: BTreeMap<String, Value>,
    cases: Vec<Case>,
    unreadable: BTreeSet<String>,
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn read(suite: &Path) -> Suite {
    let mut read = Suite { datasets: BTreeMap::new(), cases: Vec::new(), unreadable: BTreeSet::new() };
    for file in files(&suite.join("datasets")) {
        let text = std::fs::read_to_string(&file).expect("a data set");
        read.datasets.insert(stem(&file), serde_json::from_str(&text).expect("JSON"));
    }
    for group in files(&suite.join("groups")) {
        if !group.is_dir() {
            continue;
        }
        for file in files(&group) {
            if file.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let name = format!("{}/{}", stem(&group), stem(&file));
            let Ok(content) = serde_json::from_str(&std::fs::read_to_string(&file).expect("a case")) else {
                read.unreadable.insert(name);
                continue;
            };
            let cases = match content {
                Value::Array(cases) => {
                    cases.into_iter().enumerate().map(|(index, case)| (format!("{name}#{index}"), case)).collect()
                }
                case => vec![(name, case)],
            };
            for (name, fields) in cases {
                let expression = match fields.get("expr-file").and_then(Value::as_str) {
                    Some(file) => std::fs::read_to_string(group.join(file)).expect("an expression"),
                    None => fields["expr"].as_str().expect("an expression").to_owned(),
                };
                read.cases.push(Case { name, fields, expression });
            }
        }
    }
    read
}

/// Whether values are the same, where 1 and 1.0 are.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len() && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

/// What the suite calls an error: its own limits have one code.
fn code<'e>(error: &'e sledge_jsonata::Error, case: &Value) -> &'e str {
    let has_limit = case.get("timelimit").is_some() || case.get("depth").is_some();
    if has_limit && matches!(error.code(), "D1011" | "D1012") { "U1001" } else { error.code() }
}

fn run(case: &Case, datasets: &BTreeMap<String, Value>) -> Result<(), String> {
    let fields = &case.fields;
    let mut limits = Limits { steps: 100_000_000, bytes: 1 << 30, ..Limits::default() };
    if let Some(depth) = fields.get("depth").and_then(Value::as_u64) {
        limits.depth = depth as u32;
    }
    let data = match (fields.get("data"), fields.get("dataset").and_then(Value::as_str)) {
        (Some(data), _) => Some(data),
        (None, Some(name)) => Some(datasets.get(name).ok_or_else(|| format!("no data set {name}"))?),
        (None, None) => None,
    };
    let bindings: Vec<(&str, &Value)> = match fields.get("bindings") {
        Some(Value::Object(bindings)) => bindings.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        _ => Vec::new(),
    };
    let environment = Environment { now_ms: NOW_MS, seed: 1, limits };
    let parsed = Expression::parse_dialect(&case.expression, &limits, Dialect::JsonataJs);
    let is_parsed = parsed.is_ok();
    let result = parsed.and_then(|expression| expression.evaluate(data, &bindings, &environment));
    let expected_code =
        fields.get("code").or_else(|| fields.get("error").and_then(|error| error.get("code"))).and_then(Value::as_str);
    match (&result, fields.get("result"), expected_code) {
        (Ok(None), _, None) if fields.get("undefinedResult").is_some() => Ok(()),
        (Ok(Some(value)), Some(expected), None) if same(value, expected) => Ok(()),
        (Err(error), _, Some(expected)) if code(error, fields) == expected => match fields.get("token") {
            Some(Value::String(token)) if !is_parsed && error.token() != Some(token) => {
                Err(format!("token {:?} in place of {token:?}", error.token()))
            }
            _ => Ok(()),
        },
        (Ok(Some(value)), ..) => Err(value.to_string().chars().take(300).collect()),
        (Ok(None), ..) => Err(String::from("undefined")),
        (Err(error), ..) => Err(error.to_string()),
    }
}

fn run_all() {
    let folder =
        std::env::var("JSONATA_SUITE").expect("JSONATA_SUITE is the folder test/test-suite of github.com/jsonata-js/jsonata");
    let suite = read(Path::new(&folder));
    let only = std::env::var("JSONATA_FILTER").unwrap_or_default();
    let mut expected: BTreeMap<&str, &str> = EXPECTED_FAILURES.iter().copied().collect();
    let (mut passed, mut wrong) = (0, Vec::new());
    for case in suite.cases.iter().filter(|case| case.name.contains(&only)) {
        match (run(case, &suite.datasets), expected.remove(case.name.as_str())) {
            (Ok(()), None) => passed += 1,
            (Ok(()), Some(_)) => wrong.push(format!("{} passes, and is listed as a failure", case.name)),
            (Err(_), Some(_)) => {}
            (Err(why), None) => {
                let expression: String = case.expression.chars().take(200).collect();
                wrong.push(format!("{}: {why}\n    {expression}", case.name));
            }
        }
    }
    let unreadable: BTreeSet<String> = UNREADABLE.iter().map(|(name, _)| (*name).to_owned()).collect();
    println!(
        "{passed} of {} cases pass, {} are listed, {} files are unreadable",
        suite.cases.len(),
        EXPECTED_FAILURES.len(),
        suite.unreadable.len()
    );
    wrong.iter().for_each(|line| println!("{line}"));
    if only.is_empty() {
        assert!(suite.cases.len() + suite.unreadable.len() >= CASES_MIN, "only {} cases", suite.cases.len());
        assert_eq!(suite.unreadable, unreadable, "the files that are no JSON of Unicode text");
        assert!(expected.is_empty(), "listed, but not in the suite: {expected:?}");
    }
    assert!(wrong.is_empty(), "{} cases do not do what is expected", wrong.len());
}

#[test]
fn the_suite_of_jsonata_js() {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run_all).expect("a thread");
    thread.join().expect("the suite passes");
}
