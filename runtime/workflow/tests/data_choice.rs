//! Rules of Choice states, and timestamps.

use serde_json::{Map, Value, json};
use sledge_workflow::data::limits::{RULE_COMPARISONS_MAX, RULE_DEPTH_MAX};
use sledge_workflow::data::{DataError, ErrorName, Rule, RuleError, Scope, Timestamp};

fn parse(rule: &Value) -> Result<Rule, Vec<RuleError>> {
    Rule::parse(rule.as_object().expect("an object"))
}

fn matches(rule: &Value, input: &Value) -> Result<bool, DataError> {
    let context = json!({"Execution": {"Name": "run"}});
    let mut variables = Map::new();
    variables.insert("count".into(), json!(3));
    parse(rule).unwrap_or_else(|errors| panic!("{rule}: {errors:?}")).matches(&Scope::new(input, &context, &variables))
}

/// One value of each kind, as AWS Step Functions was asked about them.
fn samples() -> Vec<Value> {
    vec![
        json!(null),
        json!(0),
        json!(0.0),
        json!(1),
        json!(1.1),
        json!(""),
        json!(" "),
        json!("HelloWorld"),
        json!("2012-10-09T19:00:55"),
        json!("2012-10-09T19:00:55Z"),
        json!("2012-10-09T19:00:55+01:00"),
        json!("2023-02-24"),
        json!([]),
        json!([""]),
        json!({}),
        json!({"A": 0}),
        json!(true),
        json!(false),
    ]
}

#[test]
fn kinds_of_values() {
    let is_timestamp = |value: &Value| ["2012-10-09T19:00:55Z", "2012-10-09T19:00:55+01:00"].iter().any(|text| value == text);
    for value in samples() {
        for (test, holds) in [
            ("IsNull", value.is_null()),
            ("IsNumeric", value.is_number()),
            ("IsString", value.is_string()),
            ("IsBoolean", value.is_boolean()),
            ("IsTimestamp", is_timestamp(&value)),
            ("IsPresent", true),
        ] {
            for expected in [true, false] {
                assert_eq!(
                    matches(&json!({"Variable": "$.v", test: expected}), &json!({"v": value})),
                    Ok(holds == expected),
                    "{test} {expected} of {value}"
                );
            }
        }
    }
}

/// Every comparison with a literal and with a path to the same value, of less, equal and greater values.
#[test]
fn relations() {
    let orders: [(&str, [bool; 3]); 5] = [
        ("Equals", [false, true, false]),
        ("LessThan", [true, false, false]),
        ("GreaterThan", [false, false, true]),
        ("LessThanEquals", [true, true, false]),
        ("GreaterThanEquals", [false, true, true]),
    ];
    let values: [(&str, Value, [Vec<Value>; 3]); 3] = [
        (
            "Numeric",
            json!(10),
            [
                vec![json!(9), json!(9.99), json!(-1e300), json!(i64::MIN)],
                vec![json!(10), json!(10.0), json!(1e1)],
                vec![json!(10.000_1), json!(11), json!(u64::MAX)],
            ],
        ),
        (
            "String",
            json!("AB"),
            [
                vec![json!("A"), json!(""), json!("AA\u{10ffff}")],
                vec![json!("AB")],
                vec![json!("AB "), json!("ABC"), json!("a"), json!("é")],
            ],
        ),
        (
            "Timestamp",
            json!("2012-10-09T19:00:55Z"),
            [
                vec![json!("2012-10-09T19:00:54.999999999Z"), json!("2012-10-09T19:00:55+00:01")],
                vec![json!("2012-10-09T19:00:55Z"), json!("2012-10-09T19:00:55.000Z"), json!("2012-10-09T21:00:55+02:00")],
                vec![json!("2012-10-09T19:00:55.000000001Z"), json!("2012-10-09T18:30:55-05:30")],
            ],
        ),
    ];
    for (kind, operand, groups) in values {
        for (relation, expected) in orders {
            for (group, expected) in groups.iter().zip(expected) {
                for value in group {
                    let input = json!({"v": value, "operand": operand});
                    let literal = json!({"Variable": "$.v", format!("{kind}{relation}"): operand});
                    assert_eq!(matches(&literal, &input), Ok(expected), "{literal} of {value}");
                    let path = json!({"Variable": "$.v", format!("{kind}{relation}Path"): "$.operand"});
                    assert_eq!(matches(&path, &input), Ok(expected), "{path} of {value}");
                }
            }
            // A value of another kind does not match, whatever the relation.
            for value in
                samples().into_iter().filter(|value| if kind == "Numeric" { !value.is_number() } else { !value.is_string() })
            {
                let input = json!({"v": value, "operand": operand});
                assert_eq!(
                    matches(&json!({"Variable": "$.v", format!("{kind}{relation}"): operand}), &input),
                    Ok(false),
                    "{kind}{relation} of {value}"
                );
                assert_eq!(
                    matches(&json!({"Variable": "$.operand", format!("{kind}{relation}Path"): "$.v"}), &input),
                    Ok(false),
                    "{kind}{relation}Path to {value}"
                );
            }
        }
    }
    for (value, expected, holds) in [
        (json!(true), true, true),
        (json!(true), false, false),
        (json!(false), false, true),
        (json!("true"), true, false),
        (json!(1), true, false),
    ] {
        let input = json!({"v": value, "o": expected});
        assert_eq!(matches(&json!({"Variable": "$.v", "BooleanEquals": expected}), &input), Ok(holds));
        assert_eq!(matches(&json!({"Variable": "$.v", "BooleanEqualsPath": "$.o"}), &input), Ok(holds));
    }
    let large = json!({"a": 9_007_199_254_740_993_i64, "b": 9_007_199_254_740_992.0});
    assert_eq!(matches(&json!({"Variable": "$.a", "NumericEqualsPath": "$.b"}), &large), Ok(false));
    assert_eq!(matches(&json!({"Variable": "$.a", "NumericGreaterThanPath": "$.b"}), &large), Ok(true));
}

#[test]
fn wildcards() {
    for (pattern, text, expected) in [
        ("log-*.txt", "log-1.txt", true),
        ("log-*.txt", "log-.txt", true),
        ("log-*.txt", "log-1.txt.gz", false),
        ("log-*.txt", "a log-1.txt", false),
        ("*", "", true),
        ("*", "anything", true),
        ("", "", true),
        ("", "x", false),
        ("a*a", "a", false),
        ("a*a", "aa", true),
        ("*ab*ab", "abab", true),
        ("*ab*ab", "ab", false),
        ("a**b", "ab", true),
        ("a*b*c", "aXbYbZc", true),
        ("*.txt", "é.txt", true),
        ("foo\\*.log", "foo*.log", true),
        ("foo\\*.log", "foo1.log", false),
        ("a\\\\*", "a\\b", true),
        ("a.c", "abc", false),
        ("a?c", "abc", false),
    ] {
        let rule = json!({"Variable": "$.v", "StringMatches": pattern});
        assert_eq!(matches(&rule, &json!({"v": text})), Ok(expected), "{pattern} of {text}");
    }
    assert_eq!(matches(&json!({"Variable": "$.v", "StringMatches": "*"}), &json!({"v": 1})), Ok(false));
    // Linear: a pattern with many stars is no trap.
    let rule = json!({"Variable": "$.v", "StringMatches": format!("{}b", "*a".repeat(500))});
    let started = std::time::Instant::now();
    assert_eq!(matches(&rule, &json!({"v": "a".repeat(200_000)})), Ok(false));
    assert!(started.elapsed().as_secs() < 5);
}

#[test]
fn rules_combine() {
    let yes = json!({"Variable": "$.v", "IsPresent": true});
    let no = json!({"Variable": "$.v", "IsPresent": false});
    let fails = json!({"Variable": "$.missing", "IsNull": true});
    let input = json!({"v": 1});
    for (rule, expected) in [
        (json!({"And": [yes, yes]}), true),
        (json!({"And": [yes, no]}), false),
        (json!({"And": [yes]}), true),
        (json!({"Or": [no, yes]}), true),
        (json!({"Or": [no, no]}), false),
        (json!({"Not": no}), true),
        (json!({"Not": {"Or": [no, {"And": [yes, {"Not": no}]}]}}), false),
        // What decides ends the evaluation.
        (json!({"And": [no, fails]}), false),
        (json!({"Or": [yes, fails]}), true),
    ] {
        assert_eq!(matches(&rule, &input), Ok(expected), "{rule}");
    }
    assert!(matches(&json!({"And": [yes, fails]}), &input).is_err());
    assert!(matches(&json!({"Not": fails}), &input).is_err());
}

#[test]
fn variables_may_be_any_path() {
    let input = json!({"list": [{"n": 1}, {"n": 2}], "t": "x", "n": null});
    for (rule, expected) in [
        (json!({"Variable": "$$.Execution.Name", "StringEquals": "run"}), true),
        (json!({"Variable": "$count", "NumericEquals": 3}), true),
        (json!({"Variable": "$.list[1].n", "NumericLessThanPath": "$count"}), true),
        (json!({"Variable": "$.list.length()", "NumericEquals": 2}), true),
        (json!({"Variable": "$.list[?(@.n == 2)]", "IsPresent": true}), true),
        (json!({"Variable": "$.list[?(@.n == 3)]", "IsPresent": true}), false),
        (json!({"Variable": "$.n", "IsPresent": true}), true),
        (json!({"Variable": "$.missing", "IsPresent": false}), true),
        (json!({"Variable": "$.t.deeper", "IsPresent": true}), false),
        (json!({"Variable": "$unknown", "IsPresent": true}), false),
    ] {
        assert_eq!(matches(&rule, &input), Ok(expected), "{rule}");
    }
    let rule =
        parse(&json!({"And": [{"Variable": "$a", "StringEqualsPath": "$b.c"}, {"Not": {"Variable": "$.x", "IsNull": true}}]}))
            .unwrap();
    assert_eq!(rule.variables(), ["a", "b"]);
}

#[test]
fn a_path_that_leads_nowhere_is_an_error() {
    for rule in [
        json!({"Variable": "$.missing", "StringEquals": "x"}),
        json!({"Variable": "$.missing", "IsNull": true}),
        json!({"Variable": "$.missing", "IsString": false}),
        json!({"Variable": "$.v", "StringEqualsPath": "$.missing"}),
    ] {
        let error = matches(&rule, &json!({"v": "x"})).unwrap_err();
        assert_eq!(error.error, ErrorName::Runtime, "{rule}");
        assert_eq!(
            error.cause, "Invalid path '$.missing': The choice state's condition path references an invalid value.",
            "{rule}"
        );
    }
}

#[test]
fn mistakes_have_pointers() {
    for (rule, pointer, message) in [
        (json!({}), "", "there is none"),
        (json!({"Variable": "$.a"}), "", "there is none"),
        (json!({"Variable": "$.a", "IsNull": true, "IsString": true}), "", "several: IsNull, IsString"),
        (json!({"IsNull": true}), "", "'Variable' is missing"),
        (json!({"Variable": 1, "IsNull": true}), "/Variable", "a path, in a string"),
        (json!({"Variable": "a", "IsNull": true}), "/Variable", "a path that begins with `$`"),
        (json!({"Variable": "$.a", "IsNull": "true"}), "/IsNull", "true or false"),
        (json!({"Variable": "$.a", "BooleanEquals": 1}), "/BooleanEquals", "true or false"),
        (json!({"Variable": "$.a", "NumericEquals": "1"}), "/NumericEquals", "a number"),
        (json!({"Variable": "$.a", "StringEquals": 1}), "/StringEquals", "a string"),
        (json!({"Variable": "$.a", "StringMatches": 1}), "/StringMatches", "a string"),
        (json!({"Variable": "$.a", "StringMatches": "a\\b"}), "/StringMatches", "a backslash is followed by"),
        (json!({"Variable": "$.a", "StringMatches": "a\\"}), "/StringMatches", "a backslash is followed by"),
        (json!({"Variable": "$.a", "TimestampEquals": "yesterday"}), "/TimestampEquals", "not a timestamp"),
        (json!({"Variable": "$.a", "TimestampEquals": 1}), "/TimestampEquals", "a string"),
        (json!({"Variable": "$.a", "StringEqualsPath": "x"}), "/StringEqualsPath", "a path that begins with"),
        (json!({"Variable": "$.a", "BooleanLessThan": true}), "/BooleanLessThan", "no comparison"),
        (json!({"Variable": "$.a", "StringMatchesPath": "$.b"}), "/StringMatchesPath", "no comparison"),
        (json!({"Variable": "$.a", "NumericEqual": 1}), "/NumericEqual", "no comparison"),
        (json!({"And": []}), "/And", "at least one rule"),
        (json!({"And": {}}), "/And", "an array of rules"),
        (json!({"Or": [1]}), "/Or/0", "a rule, an object"),
        (json!({"Variable": "$.a", "Not": {"Variable": "$.a", "IsNull": true}}), "/Variable", "not beside 'Not'"),
        (json!({"Not": []}), "/Not", "a rule, an object"),
        (
            json!({"And": [{"Variable": "$.a", "IsNull": true}, {"Not": {"Variable": "$.b", "IsNul": true}}]}),
            "/And/1/Not/IsNul",
            "no comparison",
        ),
        (json!({"And": [{"Variable": "$.a", "IsNull": true, "Next": "B"}]}), "/And/0/Next", "only at the top"),
    ] {
        let errors = parse(&rule).map(|_| ()).expect_err("a mistake");
        assert!(errors.iter().any(|error| error.pointer == pointer && error.message.contains(message)), "{rule}: {errors:?}");
    }
    assert!(parse(&json!({"Variable": "$.a", "IsNull": true, "Next": "B", "Comment": "c", "Assign": {}})).is_ok());
    let two = parse(&json!({"Variable": "a", "IsNull": 1})).unwrap_err();
    assert_eq!(two.len(), 2, "{two:?}");
}

#[test]
fn rules_are_limited() {
    let nest = |levels: usize| (0..levels).fold(json!({"Variable": "$.a", "IsPresent": true}), |inner, _| json!({"Not": inner}));
    assert!(parse(&nest(RULE_DEPTH_MAX)).is_ok());
    assert!(parse(&nest(RULE_DEPTH_MAX + 1)).is_err());
    let many = |count: usize| json!({"Or": vec![json!({"Variable": "$.a", "IsNull": true}); count]});
    assert!(parse(&many(RULE_COMPARISONS_MAX)).is_ok());
    assert!(parse(&many(RULE_COMPARISONS_MAX + 1)).is_err());
    // All comparisons of a rule share what they may visit.
    let rule = json!({"Or": vec![json!({"Variable": "$..[?(@.n == 2)]", "IsPresent": true}); 1_000]});
    let error = matches(&rule, &json!({"list": vec![json!({"n": 1}); 1_000]})).unwrap_err();
    assert!(error.cause.contains("visits too many nodes"), "{error}");
}

#[test]
fn random_rules_do_not_panic() {
    let seed = 0x5eed_0004;
    println!("seed {seed:#x}");
    let mut random = fastrand::Rng::with_seed(seed);
    let names = [
        "And",
        "Or",
        "Not",
        "Variable",
        "IsNull",
        "StringEquals",
        "NumericLessThanPath",
        "TimestampEquals",
        "StringMatches",
        "BooleanEquals",
        "Next",
    ];
    fn value(random: &mut fastrand::Rng, names: &[&str], depth: usize) -> Value {
        let texts = ["$.a", "$..b[?(@ > 1)]", "a*\\*", "2020-01-01T00:00:00Z", "$["];
        match random.u8(..if depth == 0 { 3 } else { 9 }) {
            0 => json!(random.bool()),
            1 => json!(texts[random.usize(..texts.len())]),
            2 => json!(random.f64()),
            3 => Value::Array((0..random.usize(..3)).map(|_| value(random, names, depth - 1)).collect()),
            4..=6 => json!({"Variable": "$.a", names[random.usize(4..names.len())]: value(random, names, 0)}),
            _ => (0..random.usize(1..3))
                .map(|_| (names[random.usize(..names.len())].to_owned(), value(random, names, depth - 1)))
                .collect(),
        }
    }
    let input = json!({"a": 1, "b": [1, 2]});
    let mut parsed = 0;
    for _ in 0..10_000 {
        let rule = value(&mut random, &names, 5);
        let Some(object) = rule.as_object() else { continue };
        match Rule::parse(object) {
            Ok(rule) => {
                parsed += 1;
                let _ = rule.matches(&Scope::new(&input, &Value::Null, &()));
            }
            Err(errors) => assert!(
                !errors.is_empty() && errors.iter().all(|error| rule.pointer(&error.pointer).is_some()),
                "{rule}: {errors:?}"
            ),
        }
    }
    assert!(parsed > 300, "only {parsed} are rules: the test says little");
}

#[test]
fn timestamps() {
    for (text, ms, formatted) in [
        ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00.000Z"),
        ("2016-03-14T01:59:00Z", 1_457_920_740_000, "2016-03-14T01:59:00.000Z"),
        ("2016-03-14T01:59:00.1Z", 1_457_920_740_100, "2016-03-14T01:59:00.100Z"),
        ("2016-03-14T01:59:00.123456789Z", 1_457_920_740_123, "2016-03-14T01:59:00.123Z"),
        ("2016-03-14T01:59:00+01:00", 1_457_917_140_000, "2016-03-14T00:59:00.000Z"),
        ("2016-03-13T20:29:00-05:30", 1_457_920_740_000, "2016-03-14T01:59:00.000Z"),
        ("2016-02-29T23:59:59.999Z", 1_456_790_399_999, "2016-02-29T23:59:59.999Z"),
        ("1969-12-31T23:59:59.9995Z", -1, "1969-12-31T23:59:59.999Z"),
        ("0000-01-01T00:00:00Z", -62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59Z", 253_402_300_799_000, "9999-12-31T23:59:59.000Z"),
    ] {
        let time = Timestamp::parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((time.unix_ms(), time.to_string().as_str()), (ms, formatted), "{text}");
        assert_eq!(Timestamp::from_unix_ms(ms).unwrap().to_string(), formatted, "{text}");
    }
    for text in [
        "",
        "2016-03-14",
        "2016-03-14T01:59:00",
        "2016-03-14 01:59:00Z",
        "2016-03-14t01:59:00Z",
        "2016-03-14T01:59:00z",
        "2016-03-14T01:59Z",
        "2016-3-14T01:59:00Z",
        "2016-13-05T21:29:29Z",
        "2016-12-05T25:29:29Z",
        "2016-12-05T24:00:00Z",
        "2015-02-29T00:00:00Z",
        "2016-12-31T23:59:60Z",
        "05-12-2016T21:29:29Z",
        "2016-03-14T01:59:00.Z",
        "2016-03-14T01:59:00.1234567890Z",
        "2016-03-14T01:59:00,5Z",
        "2016-03-14T01:59:00+0100",
        "2016-03-14T01:59:00+01",
        "2016-03-14T01:59:00+25:00",
        "2016-03-14T01:59:00Zx",
        " 2016-03-14T01:59:00Z",
        "２016-03-14T01:59:00Z",
        "9999-12-31T23:59:59-23:59",
    ] {
        // The last one may be out of range in UTC; it must not panic.
        let parsed = Timestamp::parse(text);
        assert!(parsed.is_err() || text.starts_with("9999"), "{text}");
        if let Ok(time) = parsed {
            let _ = (time.unix_ms(), time.to_string());
        }
    }
    assert!(Timestamp::from_unix_ms(i64::MAX).is_err());
    assert!(Timestamp::from_unix_ms(i64::MIN).is_err());
    assert!(Timestamp::from_unix_ms(253_402_300_800_000).is_err());
}
