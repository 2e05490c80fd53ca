//! Intrinsic functions: their results, their errors, their limits. What is marked as recorded was recorded from AWS Step Functions.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use sledge_workflow::data::limits::{ARRAY_RANGE_ITEMS_MAX, INTRINSIC_DEPTH_MAX, INTRINSIC_TEXT_CHARS_MAX};
use sledge_workflow::data::{DataError, ErrorName, Expression, Intrinsic, Scope};

/// The value of a call for the input `{"a": ..., "b": ..., "c": ...}`.
fn invoke(call: &str, arguments: &Value) -> Result<Value, DataError> {
    let context = json!({"Execution": {"Name": "run-7"}, "StateMachine": {"Id": "arn:1", "Name": "one-two-three"}});
    let mut variables = Map::new();
    variables.insert("v".into(), json!("variable"));
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state
    };
    let intrinsic = Intrinsic::parse(call).unwrap_or_else(|error| panic!("{call}: {error}"));
    intrinsic.invoke(&Scope::new(arguments, &context, &variables), &mut random).map(Cow::into_owned)
}

fn expect(call: &str, table: &[(Value, Value)]) {
    for (arguments, expected) in table {
        // As texts: 1 and 1.0 are different there.
        assert_eq!(invoke(call, arguments).map(|value| value.to_string()), Ok(expected.to_string()), "{call} of {arguments}");
    }
}

fn fails(call: &str, arguments: &Value, cause: &str) {
    let error = invoke(call, arguments).expect_err(call);
    assert_eq!(error.error, ErrorName::IntrinsicFailure, "{call}: {error}");
    assert!(error.cause.starts_with("The function 'States.") && error.cause.contains(cause), "{call}: {error}");
}

#[test]
fn format() {
    // Recorded.
    expect(
        "States.Format('Formatting arguments fst={} and snd={}.', $.a, $.a)",
        &[
            (json!({"a": ""}), json!("Formatting arguments fst= and snd=.")),
            (json!({"a": " "}), json!("Formatting arguments fst=  and snd= .")),
            (json!({"a": null}), json!("Formatting arguments fst=null and snd=null.")),
            (json!({"a": 1}), json!("Formatting arguments fst=1 and snd=1.")),
            (json!({"a": 1.1}), json!("Formatting arguments fst=1.1 and snd=1.1.")),
            (json!({"a": "{\"Arg1\": 1}"}), json!("Formatting arguments fst={\"Arg1\": 1} and snd={\"Arg1\": 1}.")),
            (
                json!({"a": {"Arg1": 1, "Arg2": []}}),
                json!("Formatting arguments fst={Arg1=1, Arg2=[]} and snd={Arg1=1, Arg2=[]}."),
            ),
        ],
    );
    for (call, expected) in [
        ("States.Format('plain')", "plain"),
        ("States.Format('')", ""),
        ("States.Format('{}{}', 1, 'x')", "1x"),
        ("States.Format('{}', '{}')", "{}"),
        ("States.Format('\\{} is {}', true)", "{} is true"),
        ("States.Format('\\{\\}')", "{}"),
        ("States.Format('It\\'s {} \\\\ o\\'clock', 5)", "It's 5 \\ o'clock"),
        ("States.Format('{\"a\": {}}', 1)", "{\"a\": 1}"),
        ("States.Format($.t, $.n)", "Hello, Ada."),
        ("States.Format('{} {}', $$.Execution.Name, $v)", "run-7 variable"),
        ("States.Format('{}', $$.StateMachine)", "{Id=arn:1, Name=one-two-three}"),
        ("States.Format('{}', $.list[?(@.k == ')' || @.k == ', ')].n)", "[1, 2]"),
        ("States.Format( '{}' ,  null )", "null"),
        ("States.Format ( 'x' ) ", "x"),
        ("States.Format('{}', States.Array( ))", "[]"),
    ] {
        assert_eq!(
            invoke(call, &json!({"t": "Hello, {}.", "n": "Ada", "list": [{"k": ")", "n": 1}, {"k": ", ", "n": 2}]})),
            Ok(json!(expected)),
            "{call}"
        );
    }
    fails("States.Format($.a, 1)", &json!({"a": "no place"}), "number of arguments (1) does not match the occurrences of {} (0)");
    fails("States.Format($.a)", &json!({"a": 1}), "must be a string, but it is a number");
}

#[test]
fn json_texts() {
    // Recorded.
    expect(
        "States.StringToJson($.a)",
        &[
            (json!({"a": ""}), json!(null)),
            (json!({"a": " "}), json!(null)),
            (json!({"a": "null"}), json!(null)),
            (json!({"a": "-0"}), json!(0)),
            (json!({"a": "1.1"}), json!(1.1)),
            (json!({"a": "true"}), json!(true)),
            (json!({"a": "\"HelloWorld\""}), json!("HelloWorld")),
            (json!({"a": "[1, 2, \"HelloWorld\"]"}), json!([1, 2, "HelloWorld"])),
            (json!({"a": "{\"Arg1\": 1, \"Arg2\": []}"}), json!({"Arg1": 1, "Arg2": []})),
        ],
    );
    expect(
        "States.JsonToString($.a)",
        &[
            (json!({"a": null}), json!("null")),
            (json!({"a": 1.1}), json!("1.1")),
            (json!({"a": "HelloWorld"}), json!("\"HelloWorld\"")),
            (json!({"a": [1, 2, "HelloWorld"]}), json!("[1,2,\"HelloWorld\"]")),
            (json!({"a": {"Arg1": 1, "Arg2": []}}), json!("{\"Arg1\":1,\"Arg2\":[]}")),
        ],
    );
    expect(
        "States.JsonMerge($.a, $.b, false)",
        &[(
            json!({"a": {"a": {"a1": 1, "a2": 2}, "b": 2, "d": 3}, "b": {"a": {"a3": 1}, "c": 3, "d": 4}}),
            json!({"a": {"a3": 1}, "b": 2, "d": 4, "c": 3}),
        )],
    );
    expect(
        "States.JsonMerge(States.StringToJson('{\"literal\": \"false\"}'), $.a, false)",
        &[(json!({"a": {"x": 1}}), json!({"literal": "false", "x": 1}))],
    );
    fails("States.StringToJson($.a)", &json!({"a": "{"}), "not valid JSON");
    fails("States.StringToJson($.a)", &json!({"a": 1}), "must be a string");
    fails("States.JsonMerge($.a, $.a, true)", &json!({"a": {}}), "deep merging is not supported");
    fails("States.JsonMerge($.a, $.a, 'false')", &json!({"a": {}}), "the third argument must be false");
    fails(
        "States.JsonMerge($.a, $.b, false)",
        &json!({"a": {}, "b": []}),
        "the second argument must be an object, but it is an array",
    );
    fails(
        "States.JsonMerge($.b, $.a, false)",
        &json!({"a": {}, "b": 1}),
        "the first argument must be an object, but it is a number",
    );
}

#[test]
fn arrays() {
    expect("States.Array()", &[(json!({}), json!([]))]);
    expect("States.Array($.a, 'x', 1, null, true)", &[(json!({"a": {"b": []}}), json!([{"b": []}, "x", 1, null, true]))]);
    // Recorded.
    expect(
        "States.ArrayPartition($.a, $.b)",
        &[
            (json!({"a": [], "b": 3}), json!([])),
            (json!({"a": [0], "b": 1}), json!([[0]])),
            (json!({"a": [0, 1, 2], "b": 1}), json!([[0], [1], [2]])),
            (json!({"a": [0, 1, 2], "b": 2}), json!([[0, 1], [2]])),
            (json!({"a": [0, 1, 2, 3], "b": 5}), json!([[0, 1, 2, 3]])),
            (json!({"a": [0, 1, 2, 3], "b": 1.5}), json!([[0, 1], [2, 3]])),
        ],
    );
    expect(
        "States.ArrayContains($.a, $.b)",
        &[
            (json!({"a": [], "b": null}), json!(false)),
            (json!({"a": [[1, 2, 3], 2], "b": null}), json!(false)),
            (json!({"a": [[1, 2, 3], 2], "b": [1, 2, 3]}), json!(true)),
            (json!({"a": [{"1": 2, "2": []}], "b": []}), json!(false)),
            (json!({"a": [{"1": 2, "2": []}], "b": {"2": [], "1": 2}}), json!(true)),
            (json!({"a": [true, false], "b": false}), json!(true)),
            (json!({"a": [true], "b": false}), json!(false)),
            (json!({"a": [{"k": 1}], "b": {"l": 1}}), json!(false)),
            (json!({"a": [{"k": 1}], "b": {"k": 1, "l": 1}}), json!(false)),
            (json!({"a": [[1, 2]], "b": [1, 3]}), json!(false)),
            (json!({"a": [1], "b": 1.0}), json!(true)),
            (json!({"a": ["1"], "b": 1}), json!(false)),
        ],
    );
    expect(
        "States.ArrayRange($.a, $.b, $.c)",
        &[
            (json!({"a": 0, "b": 9, "c": 3}), json!([0, 3, 6, 9])),
            (json!({"a": 0, "b": 10, "c": 3}), json!([0, 3, 6, 9])),
            (json!({"a": 1, "b": 9, "c": 9}), json!([1])),
            (json!({"a": 1.4, "b": 8.5, "c": 2.2}), json!([1, 3, 5, 7, 9])),
            (json!({"a": 3, "b": 1, "c": -1}), json!([3, 2, 1])),
            (json!({"a": 3, "b": 1, "c": 1}), json!([])),
            (json!({"a": 1, "b": 3, "c": -1}), json!([])),
            (json!({"a": 5, "b": 5, "c": -7}), json!([5])),
            (json!({"a": 5, "b": 5, "c": 1}), json!([5])),
            (json!({"a": i64::MAX - 1, "b": i64::MAX, "c": 1}), json!([i64::MAX - 1, i64::MAX])),
            (json!({"a": i64::MIN, "b": i64::MAX, "c": i64::MAX}), json!([i64::MIN, -1, i64::MAX - 1])),
        ],
    );
    expect(
        "States.ArrayGetItem($.a, $.b)",
        &[(json!({"a": [1, 2, 3, 4, 5, 6], "b": 5}), json!(6)), (json!({"a": [[1]], "b": 0}), json!([1]))],
    );
    expect("States.ArrayLength($.a)", &[(json!({"a": [1, 2]}), json!(2)), (json!({"a": []}), json!(0))]);
    expect(
        "States.ArrayUnique($.a)",
        &[
            (json!({"a": [1, 2, 3, 3, 3, 4, 1]}), json!([1, 2, 3, 4])),
            (
                json!({"a": [9_007_199_254_740_993_i64, 9_007_199_254_740_992_i64]}),
                json!([9_007_199_254_740_993_i64, 9_007_199_254_740_992_i64]),
            ),
            (
                json!({"a": [null, null, true, 1, 1.1, 1.0, "1", [], [], [null], {"a": 1, "b": 2}, {"b": 2.0, "a": 1}, {"a": 1, "b": 1}]}),
                json!([null, true, 1, 1.1, "1", [], [null], {"a": 1, "b": 2}, {"a": 1, "b": 1}]),
            ),
        ],
    );
    fails("States.ArrayPartition($.a, 0)", &json!({"a": []}), "positive integer");
    fails("States.ArrayPartition($.a, -2)", &json!({"a": []}), "positive integer");
    fails("States.ArrayPartition($.a, 'x')", &json!({"a": []}), "the chunk size must be a number, but it is a string");
    fails("States.ArrayPartition($.a, 1)", &json!({"a": {}}), "must be an array, but it is an object");
    fails("States.ArrayContains($.a, 1)", &json!({"a": null}), "must be an array, but it is null");
    fails("States.ArrayLength($.a)", &json!({"a": "text"}), "must be an array, but it is a string");
    fails("States.ArrayUnique($.a)", &json!({"a": 1}), "must be an array");
    fails("States.ArrayGetItem($.a, 2)", &json!({"a": [1, 2]}), "the index 2 is outside the array, which has 2 items");
    fails("States.ArrayGetItem($.a, -1)", &json!({"a": [1, 2]}), "outside the array");
    fails("States.ArrayRange(1, 10, 0)", &json!({}), "must not be 0");
    fails("States.ArrayRange(1, 1e300, 1)", &json!({}), "an integer of 64 bits");
    assert_eq!(
        invoke(&format!("States.ArrayRange(1, {ARRAY_RANGE_ITEMS_MAX}, 1)"), &json!({}))
            .map(|array| array.as_array().map(Vec::len)),
        Ok(Some(ARRAY_RANGE_ITEMS_MAX))
    );
    fails(&format!("States.ArrayRange(0, {ARRAY_RANGE_ITEMS_MAX}, 1)"), &json!({}), "more than 1000 items");
    fails(&format!("States.ArrayRange({}, {}, 1)", i64::MIN, i64::MAX), &json!({}), "more than 1000 items");
}

#[test]
fn codes_and_hashes() {
    expect(
        "States.Base64Encode($.a)",
        &[(json!({"a": ""}), json!("")), (json!({"a": "Data to encode"}), json!("RGF0YSB0byBlbmNvZGU="))],
    );
    expect(
        "States.Base64Decode($.a)",
        &[(json!({"a": ""}), json!("")), (json!({"a": "RGF0YSB0byBlbmNvZGU="}), json!("Data to encode"))],
    );
    // Recorded.
    for (algorithm, expected) in [
        ("MD5", "812f45842bc6d66ee14572ce20db8e86"),
        ("SHA-1", "aaff4a450a104cd177d28d18d74485e8cae074b7"),
        ("SHA-256", "b4a697a057313163aee33cd8d40c66e9f0f177e00cac2de32475ffff6169c3e3"),
        ("SHA-384", "d28a7d5cf25a74f11a50a18452b75e04bb3d70c9dd0510d6123aa008c756511b87525bdc835ebb27e1fb9e9374a15562"),
        (
            "SHA-512",
            "6ce4adb348546d4f449c4d25aad9a7c9cb711d9e91982d3f0b29ca2f3f47d4ce2deba23bf2954f0f1d593fc50283731a533d30d425402d4f91316d871303aac4",
        ),
    ] {
        assert_eq!(invoke("States.Hash('input data', $.a)", &json!({"a": algorithm})), Ok(json!(expected)), "{algorithm}");
    }
    fails("States.Hash('x', 'SHA256')", &json!({}), "must be MD5, SHA-1, SHA-256, SHA-384 or SHA-512");
    fails("States.Hash(1, 'MD5')", &json!({}), "the data must be a string");
    fails("States.Base64Decode('a')", &json!({}), "not valid Base64");
    fails("States.Base64Decode('/w==')", &json!({}), "text in UTF-8");
    let longest = "é".repeat(INTRINSIC_TEXT_CHARS_MAX);
    for call in ["States.Base64Encode($.a)", "States.Hash($.a, 'MD5')"] {
        assert!(invoke(call, &json!({"a": longest})).is_ok(), "{call}");
        fails(call, &json!({"a": format!("{longest}x")}), "10000 characters at most");
    }
    fails("States.Base64Decode($.a)", &json!({"a": "A".repeat(INTRINSIC_TEXT_CHARS_MAX + 1)}), "10000 characters at most");
}

#[test]
fn math() {
    // Recorded: each number is rounded half up before they are added.
    expect(
        "States.MathAdd($.a, $.b)",
        &[
            (json!({"a": -9, "b": 3}), json!(-6)),
            (json!({"a": 1.49, "b": 1.5}), json!(3)),
            (json!({"a": 1.5, "b": 1.51}), json!(4)),
            (json!({"a": -1.49, "b": -1.5}), json!(-2)),
            (json!({"a": -1.5, "b": -1.51}), json!(-3)),
            (json!({"a": 2.5, "b": 0}), json!(3)),
            (json!({"a": -0.5, "b": 0.5}), json!(1)),
            (json!({"a": -2.5, "b": 0}), json!(-2)),
            (json!({"a": 0.499_999_999_999_999_94, "b": 0}), json!(0)),
            (json!({"a": i64::MAX, "b": i64::MIN}), json!(-1)),
        ],
    );
    fails("States.MathAdd($.a, 1)", &json!({"a": i64::MAX}), "the sum is not an integer of 64 bits");
    fails("States.MathAdd($.a, 1)", &json!({"a": u64::MAX}), "an integer of 64 bits");
    fails("States.MathAdd($.a, 1)", &json!({"a": "1"}), "the first argument must be a number, but it is a string");
    for (start, end, least, greatest) in
        [(12.5, 44.51, 13, 44), (9999.0, 99999.0, 9999, 99998), (-99999.0, -9999.0, -99999, -10000), (3.0, 4.0, 3, 3)]
    {
        let value = invoke("States.MathRandom($.a, $.b)", &json!({"a": start, "b": end})).unwrap();
        assert!((least..=greatest).contains(&value.as_i64().unwrap()), "{value}");
    }
    let whole = invoke("States.MathRandom($.a, $.b)", &json!({"a": i64::MIN, "b": i64::MAX})).unwrap();
    assert!(whole.is_i64(), "{whole}");
    let seeded = |seed: u32| invoke("States.MathRandom(0, 1000000, $.a)", &json!({"a": seed})).unwrap();
    assert_eq!(seeded(3), seeded(3));
    assert_ne!(seeded(3), seeded(4));
    fails("States.MathRandom(5, 5)", &json!({}), "less than the end");
    fails("States.MathRandom(5, 4)", &json!({}), "less than the end");
}

#[test]
fn random_numbers_come_from_the_caller() {
    let input = json!({});
    let scope = Scope::new(&input, &Value::Null, &());
    let value = |call: &str, bits: u64| Intrinsic::parse(call).unwrap().invoke(&scope, &mut || bits).unwrap().into_owned();
    assert_eq!(value("States.MathRandom(10, 20)", 0), json!(10));
    assert_eq!(value("States.MathRandom(10, 20)", u64::MAX), json!(19));
    assert_eq!(value("States.MathRandom(10, 20)", u64::MAX / 2 + 1), json!(15));
    assert_eq!(value("States.UUID()", 0), json!("00000000-0000-4000-8000-000000000000"));
    assert_eq!(value("States.UUID()", u64::MAX), json!("ffffffff-ffff-4fff-bfff-ffffffffffff"));
    assert_eq!(value("States.UUID()", 0x0123_4567_89ab_cdef), json!("01234567-89ab-4def-8123-456789abcdef"));
}

#[test]
fn splitting() {
    // Recorded.
    expect(
        "States.StringSplit($.a, $.b)",
        &[
            (json!({"a": " ", "b": ","}), json!([" "])),
            (json!({"a": " , ", "b": ","}), json!([" ", " "])),
            (json!({"a": ", , ,", "b": ","}), json!([" ", " "])),
            (json!({"a": ",,,,", "b": ","}), json!([])),
            (json!({"a": "1,2,3,4,5", "b": ","}), json!(["1", "2", "3", "4", "5"])),
            (json!({"a": "This.is+a,test=string", "b": ".+,="}), json!(["This", "is", "a", "test", "string"])),
            (json!({"a": "split on T and \nnew line", "b": "T\n"}), json!(["split on ", " and ", "new line"])),
            (json!({"a": "", "b": ","}), json!([])),
            (json!({"a": "abc", "b": ""}), json!(["abc"])),
            (json!({"a": "aéb", "b": "é"}), json!(["a", "b"])),
        ],
    );
    expect("States.StringSplit('Hello\nWorld', '\n')", &[(json!({}), json!(["Hello", "World"]))]);
    fails("States.StringSplit($.a, ',')", &json!({"a": 1}), "must be a string");
}

#[test]
fn calls_nest() {
    // Recorded.
    expect("States.ArrayGetItem(States.StringSplit($$.StateMachine.Name, '-'), 0)", &[(json!({}), json!("one"))]);
    expect(
        "States.ArrayGetItem(States.StringSplit($$.StateMachine.Name, '-'), States.MathAdd(States.ArrayLength(States.StringSplit($$.StateMachine.Name, '-')), -1))",
        &[(json!({}), json!("three"))],
    );
    let nested = |levels: usize| format!("{}{}", "States.Array(".repeat(levels), ")".repeat(levels));
    assert!(Intrinsic::parse(&nested(INTRINSIC_DEPTH_MAX)).is_ok());
    for levels in [INTRINSIC_DEPTH_MAX + 1, 4_000] {
        let error = Intrinsic::parse(&nested(levels)).unwrap_err();
        assert!(error.message.contains("deeper than 10 levels"), "{error}");
    }
}

#[test]
fn a_path_that_leads_nowhere_fails_the_call() {
    let error = invoke("States.Array(1, $.missing)", &json!({"a": 1})).unwrap_err();
    assert_eq!(error.error.as_str(), "States.IntrinsicFailure");
    assert_eq!(
        error.cause,
        "The function 'States.Array(1, $.missing)' had the following error: The JsonPath argument for the field '$.missing' could not be found in the input '{\"a\":1}'"
    );
    assert!(invoke("States.Array($unknown)", &json!({})).unwrap_err().cause.contains("$unknown"));
    assert!(invoke("States.Array($$.Nothing)", &json!({})).unwrap_err().cause.contains("run-7"));
    // An inner call is named, not the outer one.
    assert!(
        invoke("States.Array(States.ArrayLength(1))", &json!({}))
            .unwrap_err()
            .cause
            .starts_with("The function 'States.ArrayLength(1)'")
    );
    assert_eq!(invoke("States.Array($.missing[*])", &json!({})), Ok(json!([[]])));
}

#[test]
fn mistakes_have_a_place() {
    for (call, position, message) in [
        ("", 0, "an intrinsic function"),
        ("Format('x')", 0, "an intrinsic function"),
        ("States.Nope()", 0, "`States.Nope` is no intrinsic function"),
        ("States.format('x')", 0, "no intrinsic function"),
        ("States.Format", 13, "`(`"),
        ("States.Format()", 0, "takes at least 1 arguments, not 0"),
        ("States.UUID(1)", 0, "takes 0 arguments, not 1"),
        ("States.ArrayLength($.a, 1)", 0, "takes 1 arguments, not 2"),
        ("States.Format('{}')", 0, "number of arguments (0) does not match the occurrences of {} (1)"),
        ("States.Format('x', 1)", 0, "does not match"),
        ("States.Array(", 13, "a string in single quotes"),
        ("States.Array(1", 14, "`,` or `)`"),
        ("States.Array(1,)", 15, "a string in single quotes"),
        ("States.Array(1 2)", 15, "`,` or `)`"),
        ("States.Array(1) x", 16, "the end"),
        ("States.Array('x)", 13, "not closed"),
        ("States.Array(\"x\")", 13, "a string in single quotes"),
        ("States.Array(01)", 13, "not a number"),
        ("States.Array(--1)", 13, "not a number"),
        ("States.Array(True)", 13, "a string in single quotes"),
        ("States.Array($.a[)", 17, "a quoted name"),
        ("States.Array($.)", 15, "a name"),
        // Recorded: AWS refuses these.
        ("States.StringToJson('{\"text\":\"An \\\"escaped double quote\\\" here\"}')", 33, "a backslash is followed by"),
        ("States.Format('He said, \\\"Hello, {}!\\\"', 'x')", 24, "a backslash is followed by"),
    ] {
        let error = Intrinsic::parse(call).map(|_| ()).expect_err(call);
        assert!(error.message.contains(message), "{call}: {error}");
        assert_eq!(error.position, position, "{call}: {error}");
    }
    assert!(Expression::parse("plain text").is_err());
    assert!(matches!(Expression::parse("$.a"), Ok(Expression::Path(_))));
    assert!(matches!(Expression::parse("States.UUID()"), Ok(Expression::Intrinsic(_))));
    assert_eq!(Expression::parse("States.Array($a, States.Array($b[?(@ == $c)], $$.x))").unwrap().variables(), ["a", "b", "c"]);
}
