//! What expressions give, by area. Each row is an expression and its result: JSON, `undefined`, or `!` and the code of an error.

#![allow(missing_docs)]

mod collections;
mod formats;
mod language;
mod paths;
mod states;
mod strings;

use serde_json::{Value, json};
use sledge_jsonata::limits::STACK_BYTES;
use sledge_jsonata::{Dialect, Environment, Expression, Limits};

pub(crate) type Rows = &'static [(&'static str, &'static str)];

/// 2024-02-29T12:34:56.789Z
const NOW_MS: i64 = 1_709_210_096_789;

fn shop() -> Value {
    json!({
        "name": "shop",
        "open": true,
        "closed": null,
        "orders": [
            {"id": "o1", "customer": {"name": "Ann", "city": "Graz"}, "lines": [
                {"sku": "a", "price": 2.5, "count": 4, "tags": ["x", "y"]},
                {"sku": "b", "price": 10, "count": 1, "tags": ["y"]}
            ]},
            {"id": "o2", "customer": {"name": "Bob", "city": "Linz"}, "lines": [
                {"sku": "a", "price": 3, "count": 2, "tags": []}
            ]}
        ],
        "matrix": [[1, 2], [3, 4]],
        "single": [7],
        "and": 1,
        "odd name": 2,
        "big": 12345678901234567890_u64
    })
}

fn check(rows: Rows, dialect: Dialect) {
    let input = shop();
    let mut wrong = Vec::new();
    for (source, expected) in rows {
        let environment = Environment { now_ms: NOW_MS, seed: 7, limits: Limits::default() };
        let result = Expression::parse_dialect(source, &environment.limits, dialect)
            .and_then(|expression| expression.evaluate(Some(&input), &[("bound", &json!({"n": [1, 2, 3]}))], &environment));
        let (found, is_same) = match result {
            Ok(None) => (String::from("undefined"), *expected == "undefined"),
            Ok(Some(value)) => {
                let is_same = serde_json::from_str::<Value>(expected).is_ok_and(|expected| expected == value);
                (value.to_string(), is_same)
            }
            Err(error) => (error.to_string(), expected.strip_prefix('!') == Some(error.code())),
        };
        if !is_same {
            wrong.push(format!("{source}\n    gives {found}\n    and not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn area(rows: Rows, dialect: Dialect) {
    std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || check(rows, dialect))
        .expect("a thread")
        .join()
        .expect("all rows are right");
}

#[test]
fn paths() {
    area(paths::ROWS, Dialect::JsonataJs);
}

#[test]
fn language() {
    area(language::ROWS, Dialect::JsonataJs);
}

#[test]
fn strings() {
    area(strings::ROWS, Dialect::JsonataJs);
}

#[test]
fn collections() {
    area(collections::ROWS, Dialect::JsonataJs);
}

#[test]
fn formats() {
    area(formats::ROWS, Dialect::JsonataJs);
}

#[test]
fn states() {
    area(states::ROWS, Dialect::StepFunctions);
}
