//! Payload templates: what they make, what they refuse, and their limits.

use serde_json::{Map, Value, json};
use sledge_workflow::data::limits::{CAUSE_DOCUMENT_BYTES_MAX, OUTPUT_BYTES_MAX, VALUE_DEPTH_MAX};
use sledge_workflow::data::{DataError, ErrorName, Expression, Limits, Scope, Template};

fn apply(template: &Value, input: &Value) -> Result<Value, DataError> {
    let context = json!({"Map": {"Item": {"Index": 1, "Value": "v"}}});
    let mut variables = Map::new();
    variables.insert("x".into(), json!({"a": [1, 2]}));
    let template = Template::parse(template).unwrap_or_else(|errors| panic!("{errors:?}"));
    template.apply(&Scope::new(input, &context, &variables), &mut || 0)
}

#[test]
fn fields_are_replaced() {
    let input = json!({"a": 1, "b": {"c": [1, 2, 3]}, "list": [{"n": 1}, {"n": 2}]});
    for (template, expected) in [
        (json!({}), json!({})),
        (json!({"k": "v", "n": null}), json!({"k": "v", "n": null})),
        (json!({"k.$": "$.a"}), json!({"k": 1})),
        (json!({"k.$": "$"}), json!({"k": {"a": 1, "b": {"c": [1, 2, 3]}, "list": [{"n": 1}, {"n": 2}]}})),
        (json!({"z": 1, "k.$": "$.b.c[1]", "a": {"deep": {"er.$": "$.a"}}}), json!({"z": 1, "k": 2, "a": {"deep": {"er": 1}}})),
        (json!({"k.$": "$.list[*].n"}), json!({"k": [1, 2]})),
        (json!({"k.$": "$.list[?(@.n == 2)]"}), json!({"k": [{"n": 2}]})),
        (json!({"k.$": "$.missing[*]"}), json!({"k": []})),
        (json!({"index.$": "$$.Map.Item.Index", "x.$": "$x.a[0]"}), json!({"index": 1, "x": 1})),
        (json!({"k.$": "States.Format('{}-{}', $.a, $$.Map.Item.Value)"}), json!({"k": "1-v"})),
        (json!({"array": [{"k.$": "$.a"}, "$.a", [{"l.$": "$.b.c[0]"}], 1]}), json!({"array": [{"k": 1}, "$.a", [{"l": 1}], 1]})),
        // Without the suffix a path is a text, and one without a value stays.
        (json!({"k": "$.a", "l": "States.UUID()", "m$": 1, ".": 2}), json!({"k": "$.a", "l": "States.UUID()", "m$": 1, ".": 2})),
        (json!({".$": "$.a"}), json!({"": 1})),
        (json!([{"k.$": "$.a"}]), json!([{"k": 1}])),
        (json!("$.a"), json!("$.a")),
    ] {
        assert_eq!(apply(&template, &input).map(|value| value.to_string()), Ok(expected.to_string()), "{template}");
    }
}

#[test]
fn mistakes_have_pointers() {
    let errors = |template: Value| -> Vec<(String, String)> {
        let errors = Template::parse(&template).expect_err("a mistake");
        errors.into_iter().map(|error| (error.pointer, error.message)).collect()
    };
    let found = errors(json!({
        "ok.$": "$.a",
        "a.$": "plain",
        "b": {"c/d~": [{"e.$": 1}, {"f.$": "$.["}]},
        "g.$": "States.Nope()",
        "h": 1,
        "h.$": "$.a"
    }));
    let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(pointers, ["/a.$", "/b/c~1d~0/0/e.$", "/b/c~1d~0/1/f.$", "/g.$", "/h.$"]);
    for (_, message) in &found[..4] {
        // The text is AWS's.
        assert!(message.contains("must be a valid JSONPath or a valid intrinsic function call"), "{message}");
    }
    assert!(found[4].1.contains("both a field 'h' and a field 'h.$'"), "{}", found[4].1);
}

#[test]
fn a_path_that_leads_nowhere_names_its_field() {
    let error = apply(&json!({"a": {"value.$": "$.no_such_jsonpath"}}), &json!({"int-literal": 0})).unwrap_err();
    // Recorded from AWS.
    assert_eq!(error.error.as_str(), "States.Runtime");
    assert_eq!(
        error.cause,
        "The JSONPath '$.no_such_jsonpath' specified for the field 'value.$' could not be found in the input '{\"int-literal\":0}'"
    );
    let error = apply(&json!({"v.$": "$$.Nothing"}), &json!({})).unwrap_err();
    assert!(error.cause.contains("could not be found in the input '{\"Map\""), "{error}");
    let long = apply(&json!({"v.$": "$.b"}), &json!({"a": "é".repeat(100_000)})).unwrap_err();
    assert!(long.cause.len() < CAUSE_DOCUMENT_BYTES_MAX + 200 && long.cause.ends_with("é...'"), "{}", long.cause.len());
    let intrinsic = apply(&json!({"v.$": "States.ArrayLength($.b)"}), &json!({})).unwrap_err();
    assert_eq!(intrinsic.error, ErrorName::IntrinsicFailure);
}

#[test]
fn error_and_cause_paths() {
    let input = json!({"Error": "E", "n": 1});
    let scope = Scope::new(&input, &Value::Null, &());
    let evaluate =
        |text: &str| Expression::parse(text).unwrap().evaluate("CausePath", &scope, &mut || 0).map(std::borrow::Cow::into_owned);
    assert_eq!(evaluate("$.Error"), Ok(json!("E")));
    assert_eq!(evaluate("States.Format('n={}', $.n)"), Ok(json!("n=1")));
    // Recorded from AWS.
    let error = evaluate("$.ErrorX").unwrap_err();
    assert_eq!(
        error.cause,
        "The JSONPath '$.ErrorX' specified for the field 'CausePath' could not be found in the input '{\"Error\":\"E\",\"n\":1}'"
    );
}

#[test]
fn variables_are_known() {
    let template =
        Template::parse(&json!({"a.$": "$x.b", "c": [{"d.$": "States.Array($y, $$.z)"}], "e": "$w", "f.$": "$[?(@ == $v)]"}))
            .unwrap();
    assert_eq!(template.variables(), ["x", "y", "v"]);
}

#[test]
fn the_value_is_limited_in_bytes() {
    let input = json!({"a": "x\n\"é\u{1}", "f": 0.1, "i": -12, "t": true, "big": "y".repeat(OUTPUT_BYTES_MAX / 2)});
    let template = Template::parse(
        &json!({"k": [1, false], "a.$": "$.a", "o": {"f.$": "$.f", "i.$": "$.i"}, "t": [{"t.$": "$.t"}, {}], "e": {}}),
    )
    .unwrap();
    let scope = Scope::new(&input, &Value::Null, &());
    let limited = |bytes_max: usize| Scope { limits: Limits { output_bytes_max: bytes_max, ..Limits::default() }, ..scope };
    let value = template.apply(&scope, &mut || 0).unwrap();
    let bytes = value.to_string().len();
    assert_eq!(template.apply(&limited(bytes), &mut || 0), Ok(value));
    for bytes_max in 0..bytes {
        assert_eq!(
            template.apply(&limited(bytes_max), &mut || 0).unwrap_err().error,
            ErrorName::DataLimitExceeded,
            "{bytes_max}"
        );
    }
    let twice = json!({"a.$": "$.big", "b.$": "$.big"});
    assert_eq!(apply(&twice, &input).unwrap_err().error, ErrorName::DataLimitExceeded);
}

#[test]
fn the_work_of_a_template_is_limited() {
    let input = json!({"a": "x".repeat(100_000), "list": vec![json!({"n": 1}); 1_000]});
    // Each field is short; what they build on the way is not.
    let fields: Map<String, Value> =
        (0..1_000).map(|n| (format!("k{n}.$"), json!("States.ArrayLength(States.Array($.a, $.a))"))).collect();
    assert_eq!(apply(&Value::Object(fields), &input).unwrap_err().error, ErrorName::DataLimitExceeded);
    let fields: Map<String, Value> = (0..1_000).map(|n| (format!("k{n}.$"), json!("$..[?(@.n == 2)]"))).collect();
    let error = apply(&Value::Object(fields), &input).unwrap_err();
    assert!(error.cause.contains("visits too many nodes"), "{error}");
}

#[test]
fn depth_is_limited() {
    let nest = |levels: usize, leaf: Value| (0..levels).fold(leaf, |inner, _| json!([inner]));
    let leaf = json!({"k.$": "$"});
    assert!(apply(&nest(VALUE_DEPTH_MAX - 1, leaf.clone()), &json!(1)).is_ok());
    assert!(Template::parse(&nest(VALUE_DEPTH_MAX, leaf.clone())).is_err());
    assert_eq!(apply(&nest(VALUE_DEPTH_MAX - 1, leaf), &json!([])).unwrap_err().error, ErrorName::DataLimitExceeded);
    // A loop of states that wraps its input in itself ends, and what it made can be read as JSON.
    let template = Template::parse(&json!({"x.$": "$"})).unwrap();
    let mut value = json!(1);
    let mut rounds = 0;
    let error = loop {
        match template.apply(&Scope::new(&value.clone(), &Value::Null, &()), &mut || 0) {
            Ok(next) => value = next,
            Err(error) => break error,
        }
        rounds += 1;
        assert!(rounds < 1_000, "it goes on");
    };
    assert_eq!(error.error, ErrorName::DataLimitExceeded);
    assert_eq!(serde_json::from_str::<Value>(&value.to_string()).unwrap(), value);
}

/// A template at random: whatever it is, it parses or has errors whose pointers lead to a place, and its value has the template's shape.
#[test]
fn random_templates_do_not_panic() {
    let seed = 0x5eed_0003;
    println!("seed {seed:#x}");
    let mut random = fastrand::Rng::with_seed(seed);
    let input = json!({"a": 1, "b": [1, {"c": "d"}], "s": "text"});
    let scope = Scope { limits: Limits { output_bytes_max: 2_000, visits_max: 5_000 }, ..Scope::new(&input, &Value::Null, &()) };
    let (mut applied, mut failed, mut refused) = (0, 0, 0);
    for _ in 0..10_000 {
        let value = random_template(&mut random, 4);
        match Template::parse(&value) {
            Ok(template) => match template.apply(&scope, &mut || random.u64(..)) {
                Ok(made) => {
                    applied += 1;
                    assert!(made.to_string().len() <= 2_000);
                    assert_eq!(made.is_object(), value.is_object(), "{value}");
                }
                Err(_) => failed += 1,
            },
            Err(errors) => {
                refused += 1;
                for error in errors {
                    assert!(value.pointer(&error.pointer).is_some(), "{value}: {error}");
                }
            }
        }
    }
    assert!(
        applied > 500 && failed > 200 && refused > 500,
        "{applied} applied, {failed} failed, {refused} refused: the test says little"
    );
}

fn random_template(random: &mut fastrand::Rng, depth: usize) -> Value {
    const TEXTS: [&str; 12] = [
        "$",
        "$.a",
        "$.b[1].c",
        "$.b[*]",
        "$..c",
        "$.missing",
        "States.Format('{}', $.s)",
        "States.Array($.a, $.b)",
        "$.[",
        "States.Nope(1)",
        "States.ArrayLength($.s)",
        "x",
    ];
    match random.u8(..if depth == 0 { 3 } else { 6 }) {
        0 => json!(random.i32(..)),
        1 => json!(TEXTS[random.usize(..TEXTS.len())]),
        2 => Value::Null,
        3 => Value::Array((0..random.usize(..4)).map(|_| random_template(random, depth - 1)).collect()),
        _ => {
            let mut members = Map::new();
            for _ in 0..random.usize(..4) {
                let name = ["k", "l/m", "n~", "o", "p"][random.usize(..5)];
                if random.u8(..3) == 0 {
                    members.insert(format!("{name}.$"), json!(TEXTS[random.usize(..TEXTS.len())]));
                } else {
                    members.insert(name.into(), random_template(random, depth - 1));
                }
            }
            Value::Object(members)
        }
    }
}
