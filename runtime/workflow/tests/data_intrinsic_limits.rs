//! Intrinsic functions: their limits, and texts at random.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use sledge_workflow::data::limits::{INTRINSIC_BYTES_MAX, INTRINSIC_CALLS_MAX};
use sledge_workflow::data::{DataError, ErrorName, Intrinsic, Limits, Scope};

#[test]
fn texts_and_results_are_limited() {
    let call = format!("States.Format('{}')", "x".repeat(INTRINSIC_BYTES_MAX));
    assert!(Intrinsic::parse(&call).is_err());
    let calls = format!("States.Array({})", vec!["States.UUID()"; INTRINSIC_CALLS_MAX].join(", "));
    assert!(Intrinsic::parse(&calls).unwrap_err().message.contains("more than 100"));
    let input = json!({"a": "x".repeat(100_000), "list": vec![0; 70_000]});
    let scope = Scope::new(&input, &Value::Null, &());
    for call in [
        format!("States.Format('{}', {})", "{}".repeat(3), ["$.a"; 3].join(", ")),
        format!("States.Array({})", vec!["$.a"; 1_000].join(", ")),
        "States.Array($, $, $)".into(),
        "States.JsonToString(States.Array($, $.a))".into(),
        "States.ArrayPartition($.list, 1)".into(),
        "States.Format('{}{}{}{}', $, $, $, $)".into(),
    ] {
        let error = Intrinsic::parse(&call).unwrap().invoke(&scope, &mut || 0).map(drop).expect_err(&call[..20]);
        assert_eq!(error.error, ErrorName::DataLimitExceeded, "{}", &call[..20]);
    }
    // What only reads is not limited.
    assert_eq!(
        Intrinsic::parse("States.ArrayLength($.list)").unwrap().invoke(&scope, &mut || 0).unwrap().into_owned(),
        json!(70_000)
    );
    let small = Scope { limits: Limits { output_bytes_max: 8, ..Limits::default() }, ..scope };
    let invoke = |call: &str| Intrinsic::parse(call).unwrap().invoke(&small, &mut || 0).map(Cow::into_owned);
    assert_eq!(invoke("States.Array(1, 22, 3)"), Ok(json!([1, 22, 3])));
    let error = invoke("States.Array(1, 22, 33)").unwrap_err();
    assert!(error.cause.contains("the maximum of 8 bytes"), "{error}");
    // Six characters and two quotes.
    assert_eq!(invoke("States.Format('a{}', 'bcdef')"), Ok(json!("abcdef")));
    assert!(invoke("States.Format('a{}', 'bcdefg')").is_err());
    assert!(invoke("States.Format('{}', 'abcdefgh')").is_err());
    // The same for what Format writes of arrays and objects: `[1, {k=[]}]`.
    let nested = json!({"a": [1, {"k": []}]});
    let fit = |bytes_max: usize| {
        let limits = Limits { output_bytes_max: bytes_max, ..Limits::default() };
        let scope = Scope { limits, ..Scope::new(&nested, &Value::Null, &()) };
        Intrinsic::parse("States.Format('{}', $.a)").unwrap().invoke(&scope, &mut || 0).map(Cow::into_owned)
    };
    assert_eq!(fit(13), Ok(json!("[1, {k=[]}]")));
    assert_eq!(fit(12).unwrap_err().error, ErrorName::DataLimitExceeded);
    let deep = json!({"a": format!("{}{}", "[".repeat(110), "]".repeat(110))});
    assert_eq!(invoke_on(&deep, "States.StringToJson($.a)").unwrap_err().error, ErrorName::DataLimitExceeded);
    let deeper = json!({"a": "[".repeat(100_000)});
    assert_eq!(invoke_on(&deeper, "States.StringToJson($.a)").unwrap_err().error, ErrorName::IntrinsicFailure);
}

fn invoke_on(input: &Value, call: &str) -> Result<Value, DataError> {
    let intrinsic = Intrinsic::parse(call).unwrap();
    intrinsic.invoke(&Scope::new(input, &Value::Null, &()), &mut || 0).map(Cow::into_owned)
}

#[test]
fn items_of_arrays_are_borrowed() {
    let input = json!({"a": [[1], [2]]});
    let intrinsic = Intrinsic::parse("States.ArrayGetItem($.a, 1)").unwrap();
    let found = intrinsic.invoke(&Scope::new(&input, &Value::Null, &()), &mut || 0).unwrap();
    assert!(matches!(found, Cow::Borrowed(found) if std::ptr::eq(found, &raw const input["a"][1])));
}

/// Any mutation of a call parses or does not, and succeeds or fails; nothing panics.
#[test]
fn mutated_calls_do_not_panic() {
    let seed = 0x5eed_0002;
    println!("seed {seed:#x}");
    let mut random = fastrand::Rng::with_seed(seed);
    let corpus = [
        "States.Format('a {} \\{ b {} \\'', $.a, States.Array(1, -2.5e3, 'x'))",
        "States.ArrayGetItem(States.StringSplit($.t, ', '), States.MathAdd($.n, -1))",
        "States.JsonMerge($.a, States.StringToJson('{\"k\": [1]}'), false)",
        "States.ArrayPartition($.list[?(@ > 1)], 2)",
        "States.ArrayRange(-5, $.n, 3)",
        "States.MathRandom($.n, 99, 7)",
        "States.Hash($.t, 'SHA-256')",
        "States.ArrayUnique(States.Array($.list[*], $.list, $$.x, $v))",
        "States.Base64Decode(States.Base64Encode($.t))",
        "States.ArrayContains($.list, $.n)",
    ];
    let alphabet: Vec<char> = "$.'\\{}(),0129-eE StatesArrayFormatnull[]*?@é\"".chars().collect();
    let input = json!({"a": {"b": 1}, "t": "one, two,three", "n": 2, "list": [1, 2, 3, 2]});
    let context = json!({"x": 1});
    let mut variables = Map::new();
    variables.insert("v".into(), json!([]));
    let scope =
        Scope { limits: Limits { output_bytes_max: 4_096, visits_max: 10_000 }, ..Scope::new(&input, &context, &variables) };
    let (mut parsed, mut succeeded) = (0, 0);
    for _ in 0..20_000 {
        let mut text: Vec<char> = corpus[random.usize(..corpus.len())].chars().collect();
        for _ in 0..random.usize(1..3) {
            let at = random.usize(..=text.len());
            match random.u8(..3) {
                0 if at < text.len() => drop(text.remove(at)),
                1 => text.insert(at, alphabet[random.usize(..alphabet.len())]),
                _ if at < text.len() => text[at] = alphabet[random.usize(..alphabet.len())],
                _ => {}
            }
        }
        let text: String = text.into_iter().collect();
        match Intrinsic::parse(&text) {
            Ok(intrinsic) => {
                parsed += 1;
                match intrinsic.invoke(&scope, &mut || random.u64(..)) {
                    Ok(value) => {
                        succeeded += 1;
                        assert!(value.to_string().len() <= 4_096, "{text}");
                    }
                    Err(error) => assert!(!error.cause.is_empty(), "{text}"),
                }
            }
            Err(error) => assert!(error.position <= text.len(), "{text}: {error}"),
        }
    }
    assert!(
        parsed > 1_500 && succeeded > 700,
        "only {parsed} of the mutations are calls, {succeeded} succeed: the test says little"
    );
}
