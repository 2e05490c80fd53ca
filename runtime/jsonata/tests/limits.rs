//! Hostile expressions and inputs end with an error, soon and without much memory.

#![allow(missing_docs)]

use serde_json::{Value, json};
use sledge_jsonata::limits::STACK_BYTES;
use sledge_jsonata::{Environment, Error, Expression, Limits};

fn evaluate(source: &str, input: &Value, limits: Limits) -> Result<Option<Value>, Error> {
    let environment = Environment { now_ms: 0, seed: 1, limits };
    Expression::parse(source, &limits)?.evaluate(Some(input), &[], &environment)
}

/// Runs on a thread with as much stack as the default depth is said to need.
fn on_thread(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread").join().expect("no panic");
}

#[track_caller]
fn fails(source: &str, code: &str) {
    fails_with(source, &Value::Null, Limits::default(), code);
}

#[track_caller]
fn fails_with(source: &str, input: &Value, limits: Limits, code: &str) {
    let shown: String = source.chars().take(100).collect();
    match evaluate(source, input, limits) {
        Ok(value) => panic!("{shown} gives {value:?}"),
        Err(error) => {
            assert_eq!(error.code(), code, "{shown}: {error}");
            assert!(error.is_limit() || !matches!(code, "D1011" | "D1012" | "U1001" | "U1002" | "U1003"), "{shown}: {error}");
        }
    }
}

#[test]
fn source_that_nests_too_deeply_is_refused() {
    on_thread(|| {
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("[", "1", "]"),
            ("{\"a\":", "1", "}"),
            ("-", "1", ""),
            ("a[", "1", "]"),
            ("$f(", "1", ")"),
            ("function($x){", "1", "}"),
            ("a ? ", "1", " : 2"),
            ("$x := ", "1", ""),
            ("a ?: ", "1", ""),
            ("a ?? ", "1", ""),
            ("|a|", "{}", "|"),
            ("a^(", "1", ")"),
        ] {
            for times in [300, 100_000 / open.len()] {
                fails(&format!("{}{middle}{}", open.repeat(times), close.repeat(times)), "U1001");
                fails(&open.repeat(times), "U1001");
            }
        }
    });
}

#[test]
fn long_chains_of_operators_are_refused() {
    on_thread(|| {
        for link in ["+1", "&1", ".a", "[0]", "{\"a\":1}[0]", " and 1", "~>$f", "(1)", "@$a", "#$a", "^(a)", "[]"] {
            let source = format!("a{}", link.repeat(20_000));
            let error = evaluate(&source, &Value::Null, Limits::default());
            assert!(error.is_err() || link == "[]", "{link}");
        }
    });
}

#[test]
fn repeated_defaults_take_no_exponential_time() {
    on_thread(|| {
        let mut source = String::from("a");
        for _ in 0..100 {
            source = format!("({source} ?: b)");
        }
        assert_eq!(evaluate(&source, &json!({"b": 1}), Limits::default()).expect("a result"), Some(json!(1)));
    });
}

#[test]
fn long_source_is_refused() {
    fails(&format!("\"{}\"", "x".repeat(1 << 20)), "U1001");
    fails(&"1 ".repeat(200_000), "U1001");
}

#[test]
fn endless_recursion_ends() {
    on_thread(|| {
        let fails = |source, code| fails_with(source, &Value::Null, Limits { steps: 300_000, ..Limits::default() }, code);
        fails("($f := function($n){1 + $f($n + 1)}; $f(1))", "D1011");
        fails("($f := function($n){$f($n + 1)}; $f(1))", "D1012");
        fails("($f := function(){$g()}; $g := function(){$f()}; $f())", "D1012");
        fails("($f := function($x){$map([1], $f)}; $f(1))", "D1011");
        fails("($f := function($x){$sort([1, 2], $f)}; $f(1))", "D1011");
        fails("($f := function($x){$replace(\"a\", /a/, $f)}; $f(1))", "D1011");
        fails("($f := function($x){[3, 2]^($f($x))}; $f(1))", "D1011");
        fails("($f := function($x){{\"a\": [[1].($f($x))]}}; $f(1))", "D1011");
        fails("($f := function($x){[3, 2]@$y.($f($x))[$f($x)]}; $f(1))", "D1011");
        fails("($f := function($x){$x ~> $f}; $f(1))", "D1011");
        fails("($f := function($x){[1].($f($x))}; $f(1))", "D1011");
        fails("($f := $map(?, function($x){$f($x)}); $f([1]))", "D1011");
        fails("($f := function($x){$f ~> $f}; $g := $f ~> $f ~> $f; $h := function($x){$h($g($x))}; $h(1))", "D1012");
        fails("($f := function($g){$g($g)}; $f($f))", "D1012");
        fails("(function($f){$f($f) + 1})(function($f){$f($f) + 1})", "D1011");
        fails("($f := |$|{\"a\": $f($)}|; $f({}))", "D1011");
        fails("$replace(\"aaa\", /a/, function($m){ ($f := function(){$f()}; $f()) })", "D1012");
    });
}

#[test]
fn large_values_are_refused() {
    fails("[1..10000000].[1..10000000]", "U1002");
    fails("[0..10000000]", "D2014");
    fails("$map([1..10000000], function($x){[$x]})", "U1002");
    fails("$pad(\"\", 1e9)", "U1002");
    fails("$pad(\"\", -1e18)", "U1002");
    fails("$pad(\"\", 1e9, \"abc\")", "U1002");
    fails("$range(1, 1e12, 1)", "U1002");
    fails("$range(1, 1e300, 1e-300)", "U1002");
    fails("$reduce([1..60], function($s){$s & $s}, \"x\")", "D3050");
    fails("$reduce([1..60], function($s, $i){$s & $s}, \"xxxxxxxxxx\")", "U1002");
    fails("$reduce([1..60], function($s, $i){$append($s, $s)}, [1])", "U1002");
    fails("$reduce([1..60], function($s, $i){$merge([$s, {$string($i): $s}])}, {\"a\": 1})", "U1002");
    fails("$length($join([1..1000000].(\"0123456789012345678901234567890123456789012345678901234567890123456789\")))", "U1002");
    fails("($x := $pad(\"\", 1e6); [1..1000].($x & \"\"))", "U1002");
    fails("($x := [1..1000]; $x.($x.($x)))", "U1002");
    fails("($a := $pad(\"\", 1e7, \"a\"); $replace($a, \"a\", $a))", "U1002");
    fails("($a := $pad(\"\", 1e6, \"a\"); $replace($a, /a/, $a))", "U1002");
    fails("($a := $pad(\"\", 3e7, \"a\"); $uppercase($a) & $a)", "U1002");
}

#[test]
fn a_result_that_shares_values_is_bounded() {
    // Ten arrays in memory, ten thousand million numbers in JSON.
    let source = "($x := [1..10].(1); $x := [[$x],[$x],[$x],[$x],[$x],[$x],[$x],[$x],[$x],[$x]];".to_owned()
        + &"$x := [[$x],[$x],[$x],[$x],[$x],[$x],[$x],[$x],[$x],[$x]];".repeat(8)
        + "$x)";
    let error = evaluate(&source, &Value::Null, Limits::default()).expect_err("too much");
    assert!(error.is_limit(), "{error}");
}

#[test]
fn nested_values_are_refused_and_dropped() {
    on_thread(|| {
        fails("$reduce([1..100000], function($a, $b){[[$a]]}, [])", "U1003");
        fails("$reduce([1..100000], function($a, $b){{\"a\": $a}}, {})", "U1003");
        fails("$string($reduce([1..100000], function($a, $b){[[$a]]}, []))", "U1003");
        fails("$reduce([1..100000], function($a, $b){function(){$a}}, [])", "U1004");
        fails("$reduce([1..100000], function($a, $b){$substring(?, $a)}, 1)", "U1004");
        fails("($f := function($n, $g){$n = 0 ? $g : $f($n - 1, ($h := function(){$x}; $x := $g; $h))}; $f(50000, 1))", "U1004");
        fails("($f := function($n, $g){$n = 0 ? $g : $f($n - 1, $g ~> $string)}; $f(50000, $string))", "U1004");
        fails("($f := function($n, $g){$n = 0 ? $g : $f($n - 1, $g ~> $string)}; $f(50000, $string)(1))", "D1011");
        for source in [
            "**",
            "*",
            "$",
            "a",
            "$string($)",
            "$ = $",
            "$distinct([$, $])",
            "$keys($)",
            "$spread($)",
            "$clone($)",
            "$boolean($)",
            "$ ~> |$|{}|",
        ] {
            let mut deep = json!([]);
            for _ in 0..5000 {
                deep = Value::Array(vec![deep]);
            }
            let error = evaluate(source, &deep, Limits::default()).expect_err(source);
            assert_eq!(error.code(), "U1003", "{source}");
            // `serde_json` drops by recursion: not what is tested here.
            std::mem::forget(deep);
        }
    });
}

#[test]
fn hostile_regular_expressions_end() {
    let a = "a".repeat(60);
    for source in [
        format!("$match(\"{a}!\", /^(a+)+$/)"),
        format!("$match(\"{a}!\", /^(a|aa)+$/)"),
        format!("$match(\"{a}!\", /^(a*)*b$/)"),
        format!("$contains(\"{a}!\", /(?:(?:a?){{60}}){{60}}a{{60}}$/)"),
        format!("$replace(\"{a}!\", /(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)x/, \"\")"),
        format!("$split(\"{a}!\", /(?=(a+)+b)/)"),
        format!("$contains(\"{a}\", /(a*)*\\1b/)"),
    ] {
        fails_with(&source, &Value::Null, Limits { steps: 500_000, ..Limits::default() }, "D1012");
    }
    fails("$contains(\"a\", /(?:){1000000000}/)", "U1002");
    fails("$contains($pad(\"\", 1e6, \"a\"), /(?:a|b)*c/)", "U1002");
    on_thread(|| {
        fails(&format!("$contains(\"a\", /{}a{}/)", "(".repeat(1000), ")".repeat(1000)), "U1001");
        fails(&format!("$contains(\"a\", /{}a{}/)", "(?=".repeat(1000), ")".repeat(1000)), "U1001");
        let nested = format!("$contains(\"a\", /{}a{}/)", "(?=".repeat(250), ")".repeat(250));
        assert_eq!(evaluate(&nested, &Value::Null, Limits::default()).expect("a match"), Some(json!(true)));
    });
}

#[test]
fn slow_functions_count_their_work() {
    let limits = Limits { steps: 100_000, ..Limits::default() };
    let numbers: Value = (0..2000).map(|number| json!({"n": number})).collect();
    for source in [
        "$distinct($)",
        "$sort($, function($a, $b){$a.n < $b.n})",
        "$.(n[$ in $$.n])",
        "$map($, function($x){$count($$[n = $x.n])})",
    ] {
        fails_with(source, &numbers, limits, "D1012");
    }
    let text = json!("x".repeat(1 << 20));
    for source in [
        "[1..1000].$contains($$, \"y\")",
        "[1..1000].$length($$)",
        "[1..1000].($$ = $$)",
        "[1..1000].$number($$)",
        "[1..1000].$hash($$, \"MD5\")",
    ] {
        let result = evaluate(source, &text, limits);
        assert!(result.as_ref().is_err_and(|error| error.code() == "D1012" || error.code() == "D3030"), "{source}: {result:?}");
    }
}

#[test]
fn hostile_names_and_arguments_are_counted() {
    on_thread(|| {
        let limits = Limits { steps: 1_000_000, source: 1 << 20, ..Limits::default() };
        let many = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>();
        // Many variables in one scope, and one that is looked up often.
        let bindings = many(10_000, &|number| format!("$v{number} := 1")).join("; ");
        fails_with(&format!("({bindings}; [1..1000000].$v9999)"), &Value::Null, limits, "D1012");
        let parameters = many(10_000, &|number| format!("$v{number}")).join(", ");
        fails_with(&format!("($f := function({parameters}){{1}}; [1..1000000].$f())"), &Value::Null, limits, "D1012");
        // Long names.
        let name = "n".repeat(100_000);
        fails_with(&format!("[1..1000000].({{}}.{name})"), &Value::Null, limits, "D1012");
        fails_with(&format!("(${name} := 1; [1..1000000].${name})"), &Value::Null, limits, "D1012");
        let text = Value::from("n".repeat(1 << 20));
        fails_with("[1..1000000].$lookup({}, $$)", &text, limits, "D1012");
        fails_with("[1..1000000].{$$: 1}.missing", &text, limits, "D1012");
        // Many arguments for a function that takes few.
        let arguments = many(100_000, &|_| String::from("1")).join(",");
        fails_with(&format!("$sum({arguments})"), &Value::Null, limits, "T0410");
        // Many characters in a class, many groups in an expression.
        let class: String = many(50_000, &|_| String::from("a-b")).concat();
        fails_with(&format!("$contains($$, /[{class}]/)"), &Value::from("n".repeat(100_000)), limits, "D1012");
        let groups = "()".repeat(50_000);
        fails_with(&format!("$replace($$, /{groups}n/, \"\")"), &Value::from("n".repeat(100_000)), limits, "D1012");
        let pictures = "[Yw]".repeat(2400);
        fails(&format!("$toMillis(\"x\", \"{pictures}\")"), "U1002");
    });
}

#[test]
fn pictures_are_bounded() {
    fails(&format!("$formatNumber(1, \"{}\")", "0".repeat(2000)), "U1001");
    fails(&format!("$fromMillis(0, \"{}\")", "[Y]".repeat(5000)), "U1001");
    fails(&format!("$formatInteger(1, \"{}\")", "0,".repeat(600)), "U1001");
    fails("$fromMillis(1e300)", "D1001");
    fails("$formatInteger(1e300, \"I\")", "D1001");
    for source in [
        "$fromMillis(0, \"[Y,999999999-999999999]\")",
        "$fromMillis(0, \"[Y0000000000000000000000001]\")",
        "$formatNumber(1e300, \"0.00\")",
        "$formatBase(1e300, 2)",
        "$formatInteger(1e300, \"w\")",
        "$formatNumber(1e-300, \"0e0\")",
        "$round(1.5, -400)",
        "$round(1.5, 1e300)",
    ] {
        evaluate(source, &Value::Null, Limits::default()).unwrap_or_else(|error| panic!("{source}: {error}"));
    }
}

#[test]
fn limits_are_exact() {
    let limits = |steps| Limits { steps, ..Limits::default() };
    let needed = (1..1000).find(|&steps| evaluate("1 + 2", &Value::Null, limits(steps)).is_ok()).expect("a number of steps");
    for _ in 0..3 {
        assert!(evaluate("1 + 2", &Value::Null, limits(needed)).is_ok());
        assert!(evaluate("1 + 2", &Value::Null, limits(needed - 1)).is_err());
    }
    let depth = |depth| Limits { depth, ..Limits::default() };
    fails_with("1 + (2)", &Value::Null, depth(2), "D1011");
    assert!(evaluate("1 + (2)", &Value::Null, depth(3)).is_ok());
    fails_with("\"0123456789\"", &Value::Null, Limits { source: 11, ..Limits::default() }, "U1001");
    assert!(evaluate("\"0123456789\"", &Value::Null, Limits { source: 12, ..Limits::default() }).is_ok());
}

#[test]
fn memory_is_given_back() {
    // Each string lives for one call only: together they are a hundred times the limit.
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    let source = "($f := function($n){$n = 0 ? 0 : ($s := $pad(\"\", 100000); $f($n - 1))}; $f(1000))";
    assert_eq!(evaluate(source, &Value::Null, limits).expect("a result"), Some(json!(0)));
}
