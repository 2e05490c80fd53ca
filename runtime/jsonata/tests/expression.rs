//! Expressions as values: threads, variables, errors, and what follows from the environment.

#![allow(missing_docs)]

use serde_json::{Value, json};
use sledge_jsonata::{Environment, Expression, Limits};

fn parse(source: &str) -> Expression {
    Expression::parse(source, &Limits::default()).unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn evaluate(source: &str, environment: &Environment) -> Value {
    parse(source).evaluate(None, &[], environment).expect(source).expect(source)
}

/// Names and fields: `states.input`, `$` for `$$`, `.name` for a name in the input.
fn variables(source: &str) -> Vec<String> {
    let name = |reference: sledge_jsonata::Reference| match reference.field {
        Some(field) => format!("{}.{field}", reference.name),
        None => reference.name,
    };
    parse(source).variables().into_iter().map(name).collect()
}

#[test]
fn an_expression_is_shared_by_threads() {
    let expression = parse("$states.input.a + 1");
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let expression = expression.clone();
            std::thread::spawn(move || {
                let states = json!({"input": {"a": number}});
                expression.evaluate(None, &[("states", &states)], &Environment::default()).expect("a result")
            })
        })
        .collect();
    for (number, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().expect("no panic"), Some(json!(number + 1)));
    }
}

#[test]
fn free_variables_are_found() {
    assert_eq!(variables("$states.input.a + $x"), ["states.input", "x"]);
    assert_eq!(variables("$states"), ["states"]);
    assert_eq!(variables("$states[0].a.$states"), ["states.a", "states"]);
    assert_eq!(variables("($x := 1; $x + $y)"), ["y"]);
    assert_eq!(variables("(($x := 1); $x)"), ["x"]);
    assert_eq!(variables("function($a){$a + $b}"), ["b"]);
    assert_eq!(variables("$map($states.input, function($v, $i){$v * $i * $k})"), ["states.input", "k"]);
    assert_eq!(variables("($f := function($n){$f($n - 1)}; $f(1))"), Vec::<String>::new());
    assert_eq!(variables("$a@$v.b#$i.($v + $i + $w)"), ["a.b", "w"]);
    assert_eq!(variables("$sum($x) + $unknown(1)"), ["x", "unknown"]);
    assert_eq!(variables("$eval(1)"), ["eval"]);
    assert_eq!(variables("$$.a + $.b + c"), ["$.a", ".b", ".c"]);
    assert_eq!(variables("$x.(a + $ + $y)[b]"), ["x", "y"]);
    assert_eq!(variables("a.b[c = $x]{d: $y}"), [".a", "x", "y"]);
    assert_eq!(variables("{\"k\": $x, \"l\": e}"), ["x", ".e"]);
    assert_eq!(variables("$x ~> |a|{\"b\": $y}, $z|"), ["x", "y", "z"]);
    assert_eq!(variables("$x^($y, >$z)"), ["x", "y", "z"]);
    assert_eq!(variables("\"$x\" & '{$y}' /* $z */"), Vec::<String>::new());
    assert_eq!(variables("$x ? $y ?: $z ?? $w : $substring(?, $v)"), ["x", "y", "z", "w", "v"]);
    assert_eq!(parse("1 + $x").variables()[0].position, 4);
}

#[test]
fn time_and_randomness_follow_from_the_environment() {
    let environment = Environment { now_ms: 1, seed: 2, limits: Limits::default() };
    assert_eq!(evaluate("$millis()", &environment), json!(1));
    assert_eq!(evaluate("$now()", &environment), json!("1970-01-01T00:00:00.001Z"));
    assert_eq!(evaluate("$now(\"[Y]\", \"+0100\")", &environment), json!("1970"));
    for source in ["$random()", "$uuid()", "$shuffle([1..100])"] {
        assert_eq!(evaluate(source, &environment), evaluate(source, &environment), "{source}");
        assert_ne!(evaluate(source, &environment), evaluate(source, &Environment { seed: 3, ..environment.clone() }), "{source}");
    }
}

#[test]
fn errors_say_what_and_where() {
    let error = Expression::parse("a + (b", &Limits::default()).expect_err("wrong syntax");
    assert_eq!((error.code(), error.position(), error.token()), ("S0203", Some(6), Some("(end)")));
    assert_eq!(error.to_string(), "S0203: the expression ends where ) is expected (at character 6)");
    let error = parse("1 + $uppercase(5)").evaluate(None, &[], &Environment::default()).expect_err("a wrong type");
    assert_eq!((error.code(), error.position(), error.token()), ("T0410", Some(14), Some("uppercase")));
    assert_eq!(error.message(), "argument 1 of function uppercase does not match the function's signature");
    let error = parse("\u{e4} & (1 + 'a')").evaluate(None, &[], &Environment::default()).expect_err("a wrong type");
    assert_eq!((error.code(), error.position(), error.token()), ("T2002", Some(7), Some("+")));
    assert!(!error.is_limit());
    let error = parse("$error(\"stop\")").evaluate(None, &[], &Environment::default()).expect_err("an error");
    assert_eq!((error.code(), error.message().as_str()), ("D3137", "stop"));
}

#[test]
fn numbers_survive_to_the_last_digit() {
    let input = json!({"float": 90.57000000000001, "large": 9_007_199_254_740_993_u64, "inner": {"large": 18_446_744_073_709_551_615_u64}});
    let result = |source: &str| parse(source).evaluate(Some(&input), &[], &Environment::default()).expect(source).expect(source);
    assert_eq!(result("float").to_string(), "90.57000000000001");
    assert_eq!(result("$").to_string(), input.to_string());
    assert_eq!(result("{\"x\": inner}").to_string(), "{\"x\":{\"large\":18446744073709551615}}");
    assert_eq!(result("2 / 2").to_string(), "1");
    assert_eq!(result("-0").to_string(), "0");
}

#[test]
fn order_of_fields_is_kept() {
    let input = json!({"z": 1, "a": {"y": 2, "b": 3}});
    let result = |source: &str| {
        parse(source).evaluate(Some(&input), &[], &Environment::default()).expect(source).expect(source).to_string()
    };
    assert_eq!(result("$"), "{\"z\":1,\"a\":{\"y\":2,\"b\":3}}");
    assert_eq!(result("$merge([a, {\"c\": 1, \"y\": 0}])"), "{\"y\":0,\"b\":3,\"c\":1}");
    assert_eq!(result("$keys(a)"), "[\"y\",\"b\"]");
}

#[test]
fn bindings_hide_functions() {
    let states = json!(5);
    let result = parse("$sum + 1").evaluate(None, &[("sum", &states)], &Environment::default()).expect("a result");
    assert_eq!(result, Some(json!(6)));
    let error = parse("$sum([1])").evaluate(None, &[("sum", &states)], &Environment::default()).expect_err("no function");
    assert_eq!(error.code(), "T1006");
}
