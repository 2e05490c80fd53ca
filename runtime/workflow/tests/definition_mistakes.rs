//! Every mistake of a definition is found when it is read, with its place and what to do.

use serde_json::{Value, json};
use sledge_workflow::definition::{Definition, Mistake, limits};

fn mistakes(source: &str) -> Vec<Mistake> {
    match Definition::parse(source) {
        Ok(_) => Vec::new(),
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "an error has mistakes");
            mistakes
        }
    }
}

/// A definition with one state `A`, and `B` which it may lead to.
fn with(state: Value) -> Value {
    json!({ "StartAt": "A", "States": { "A": state, "B": { "Type": "Succeed" } } })
}

/// Checks that one of the mistakes contains the text, and that there are so many.
#[track_caller]
fn finds(source: &Value, count: usize, text: &str) {
    let found: Vec<String> = mistakes(&source.to_string()).iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|mistake| mistake.contains(text)), "no mistake contains {text:?}: {found:#?}");
    assert_eq!(found.len(), count, "{found:#?}");
}

/// A state of JSONPath with one mistake.
#[track_caller]
fn state(state: Value, text: &str) {
    finds(&with(state), 1, text);
}

/// A state of JSONata with one mistake.
#[track_caller]
fn jsonata(state: Value, text: &str) {
    let mut source = with(state);
    source["QueryLanguage"] = json!("JSONata");
    finds(&source, 1, text);
}

#[test]
fn all_mistakes_are_found_at_once_in_order_with_line_and_column() {
    let source = r#"{
  "StartAt": "Frist",
  "States": {
    "First": {
      "Type": "Task",
      "Resource": "fn:f",
      "Nxet": "Second",
      "Retry": [{"ErrorEquals": ["States.ALL", "X"]}]
    },
    "Second": { "Type": "Wiat", "End": true }
  }
}"#;
    let found = mistakes(source);
    let lines: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "2:14: StartAt: there is no state \"Frist\"; did you mean \"First\"?",
            "4:14: States.First: a Task state needs \"Next\" or \"End\"; give the name of the next state in \"Next\", or \"End\": true",
            "7:7: States.First.Nxet: a Task state has no field \"Nxet\"; did you mean \"Next\"?",
            "8:34: States.First.Retry[0].ErrorEquals[0]: \"States.ALL\" stands alone in \"ErrorEquals\"; remove the other names",
            "10:25: States.Second.Type: there is no type of state \"Wiat\"; did you mean \"Wait\"?",
        ]
    );
    assert_eq!(found[2].state.as_deref(), Some("First"));
    assert_eq!((found[2].line, found[2].column), (7, 7));
}

#[test]
fn columns_count_characters() {
    let found = mistakes("{\"StartAt\": \"ä\", \"Stätes\": {}, \"States\": {\"é\": {\"Type\": \"Pass\", \"End\": 1}}}");
    let places: Vec<_> = found.iter().map(|mistake| (mistake.line, mistake.column, mistake.path.as_str())).collect();
    assert_eq!(places, [(1, 13, "StartAt"), (1, 18, "Stätes"), (1, 72, "States.é.End")]);
}

#[test]
fn text_that_is_no_json() {
    let found = mistakes("{\n  \"StartAt\": \"A\",\n  \"States\": {,}\n}");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].line, found[0].column), (3, 14));
    assert!(found[0].message.starts_with("not valid JSON: key must be a string"), "{}", found[0].message);
    for source in [
        "",
        "{",
        "[1, 2]",
        "null",
        "\"x\"",
        "{}",
        "{\"StartAt\": \"A\"}",
        "{\"States\": {}}",
        "{\"States\": []}",
        "{\"a\": 1} x",
        "\u{feff}{}",
    ] {
        assert!(!mistakes(source).is_empty(), "{source:?}");
    }
    assert!(!mistakes(&"[".repeat(100_000)).is_empty());
    assert!(!mistakes(&format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000))).is_empty());
}

#[test]
fn keys_that_occur_twice() {
    let found = mistakes(
        r#"{"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true, "Comment": "x", "Comment": "y"}, "A": {"Type": "Succeed"}}}"#,
    );
    let texts: Vec<_> = found.iter().map(|mistake| (mistake.column, mistake.message.as_str())).collect();
    assert_eq!(texts, [(80, "the key \"Comment\" occurs twice"), (97, "the key \"A\" occurs twice")]);
}

#[test]
fn limits_of_size() {
    let long = format!("{{\"Comment\": \"{}\"}}", "x".repeat(limits::SOURCE_BYTES_MAX));
    assert!(mistakes(&long)[0].message.contains("the limit is 1048576"));
    let name = "n".repeat(81);
    finds(&json!({ "StartAt": name, "States": { name.clone(): { "Type": "Succeed" } } }), 1, "1 to 80 characters, this one 81");
    let mut inner = json!({ "StartAt": "Z", "States": { "Z": { "Type": "Succeed" } } });
    for depth in 0..=limits::NESTING_MAX {
        let name = format!("P{depth}");
        inner = json!({ "StartAt": name, "States": { name.clone(): { "Type": "Parallel", "End": true, "Branches": [inner] } } });
    }
    finds(&inner, 1, "nested too deeply");
}

#[test]
fn many_mistakes_take_little_time() {
    let mut states = serde_json::Map::new();
    for number in 0..9_000 {
        states.insert(
            format!("a state with a long name {number:05}"),
            json!({ "Type": "Pass", "Next": format!("a state with a long name {number:04}x") }),
        );
    }
    let source = json!({ "StartAt": "a state with a long name 00000", "States": states }).to_string();
    let found = mistakes(&source);
    assert_eq!(found.len(), limits::MISTAKES_MAX);
    assert!(found[0].help.as_deref().is_some_and(|help| help.starts_with("did you mean")), "{}", found[0]);
}

#[test]
fn fields_of_the_whole() {
    let good = json!({ "Comment": "c", "Version": "1.0", "TimeoutSeconds": 9, "QueryLanguage": "JSONPath", "StartAt": "A", "States": { "A": { "Type": "Succeed" } } });
    assert!(mistakes(&good.to_string()).is_empty());
    for (field, value, text) in [
        ("Version", json!("2.0"), "unknown version \"2.0\""),
        ("TimeoutSeconds", json!(0), "expected a whole number from 1 to 99999999, found 0"),
        ("TimeoutSeconds", json!("5"), "expected a whole number"),
        ("QueryLanguage", json!("JMESPath"), "unknown query language"),
        ("StartAt", json!("B"), "there is no state \"B\""),
        ("StartAt", json!(1), "expected a string, found a number"),
        ("Timeout", json!(1), "a state machine has no field \"Timeout\""),
        ("states", json!({}), "did you mean \"States\"?"),
        ("Comment", json!(1), "expected a string, found a number"),
    ] {
        let mut source = good.clone();
        source[field] = value;
        finds(&source, 1, text);
    }
}

#[test]
fn targets() {
    state(json!({ "Type": "Pass", "Next": "b" }), "States.A.Next: there is no state \"b\"; did you mean \"B\"?");
    finds(&with(json!({ "Type": "Pass", "End": true })), 1, "States.B: no state leads to \"B\"");
    let loops = json!({ "StartAt": "A", "States": { "A": { "Type": "Pass", "Next": "A" }, "B": { "Type": "Pass", "Next": "C" }, "C": { "Type": "Pass", "Next": "B" } } });
    finds(&loops, 2, "no state leads to \"C\"");
    state(json!({ "Type": "Pass" }), "a Pass state needs \"Next\" or \"End\"");
    state(json!({ "Type": "Pass", "Next": "B", "End": true }), "\"Next\" and \"End\" exclude each other");
    state(json!({ "Type": "Pass", "End": false }), "\"End\" can only be true");
    let inner = json!({ "Type": "Parallel", "Next": "B", "Branches": [{ "StartAt": "X", "States": { "X": { "Type": "Pass", "Next": "B" } } }] });
    finds(&with(inner), 1, "States.A.Branches[0].States.X.Next: there is no state \"B\"");
    let twice =
        json!({ "Type": "Parallel", "Next": "B", "Branches": [{ "StartAt": "B", "States": { "B": { "Type": "Succeed" } } }] });
    finds(&with(twice), 1, "there is another state \"B\", at States.B");
}

#[test]
fn fields_by_type_and_language() {
    state(
        json!({ "Type": "Pass", "Next": "B", "Resource": "fn:f" }),
        "a Pass state has no field \"Resource\"; it belongs to Task",
    );
    state(json!({ "Type": "Task", "Next": "B", "Resource": "fn:f", "Arguments": {} }), "\"Arguments\" is a field of JSONata");
    state(json!({ "Type": "Pass", "Next": "B", "Output": 1 }), "in JSONPath use OutputPath");
    state(json!({ "Type": "Task", "Next": "B", "Resource": "fn:f", "Retrys": [] }), "did you mean \"Retry\"?");
    jsonata(json!({ "Type": "Pass", "Next": "B", "InputPath": "$" }), "\"InputPath\" is a field of JSONPath");
    jsonata(
        json!({ "Type": "Task", "Next": "B", "Resource": "fn:f", "TimeoutSecondsPath": "$.t" }),
        "use TimeoutSeconds with an expression",
    );
    jsonata(
        json!({ "Type": "Pass", "Next": "B", "QueryLanguage": "JSONPath" }),
        "a workflow in JSONata has no states in JSONPath",
    );
    let mixed = with(json!({ "Type": "Pass", "Next": "B", "QueryLanguage": "JSONata", "Output": "{% 1 %}" }));
    assert!(mistakes(&mixed.to_string()).is_empty());
    state(json!({ "Next": "B" }), "\"Type\" is missing");
    state(json!("x"), "expected an object, found a string");
}

#[test]
fn paths_and_templates() {
    state(json!({ "Type": "Pass", "Next": "B", "InputPath": "a.b" }), "\"a.b\" is not a valid path");
    state(json!({ "Type": "Pass", "Next": "B", "InputPath": 5 }), "expected a string, found a number");
    state(json!({ "Type": "Pass", "Next": "B", "ResultPath": "$.a[*]" }), "is not a valid reference path");
    state(json!({ "Type": "Pass", "Next": "B", "Parameters": { "a": [{ "b.$": "$[" }] } }), "States.A.Parameters.a[0].b.$: ");
    state(json!({ "Type": "Pass", "Next": "B", "Parameters": { "b.$": "States.Nope()" } }), "States.A.Parameters.b.$: ");
    state(json!({ "Type": "Pass", "Next": "B", "Parameters": { "b.$": 1 } }), "States.A.Parameters.b.$: ");
    jsonata(
        json!({ "Type": "Pass", "Next": "B", "Output": { "a": "{% $states.input" } }),
        "States.A.Output.a: the expression starts with {%",
    );
    jsonata(
        json!({ "Type": "Pass", "Next": "B", "Output": { "a": "{% %}" } }),
        "States.A.Output.a: the expression is not valid: ",
    );
    jsonata(json!({ "Type": "Pass", "Next": "B", "Output": "{% 1 + %}" }), "States.A.Output: the expression is not valid: S0207");
    jsonata(json!({ "Type": "Pass", "Next": "B", "Output": "{% $states.inputs.a %}" }), "there is no $states.inputs");
    jsonata(
        json!({ "Type": "Pass", "Next": "B", "Output": ["$states.input %}"] }),
        "States.A.Output[0]: the expression ends with %}",
    );
    jsonata(json!({ "Type": "Task", "Next": "B", "Resource": "fn:f", "Arguments": 5 }), "expected an object or an expression");
}

#[test]
fn assign() {
    state(json!({ "Type": "Pass", "Next": "B", "Assign": { "states": 1 } }), "the variable \"states\" is reserved");
    state(json!({ "Type": "Pass", "Next": "B", "Assign": { "1a": 1 } }), "\"1a\" is not a valid name of a variable");
    state(json!({ "Type": "Pass", "Next": "B", "Assign": [] }), "expected an object, found an array");
    assert!(!mistakes(&with(json!({ "Type": "Pass", "Next": "B", "Assign": { "x": 1, "x.$": "$" } })).to_string()).is_empty());
    finds(&with(json!({ "Type": "Succeed", "Assign": { "x": 1 } })), 2, "a Succeed state has no field \"Assign\"");
    let shadow = json!({ "StartAt": "A", "States": {
        "A": { "Type": "Pass", "Assign": { "x": 1 }, "Next": "P" },
        "P": { "Type": "Parallel", "End": true, "Branches": [
            { "StartAt": "X", "States": { "X": { "Type": "Pass", "Assign": { "x": 2, "y": 1 }, "End": true } } },
            { "StartAt": "Y", "States": { "Y": { "Type": "Pass", "Assign": { "y": 1 }, "End": true } } } ] } } });
    let mut own = shadow.clone();
    own["States"]["A"]["Assign"] = json!({ "z": 1 });
    own["States"]["P"]["Assign"] = json!({ "x.$": "$[0]" });
    assert!(mistakes(&own.to_string()).is_empty(), "the state around may assign it: {:?}", mistakes(&own.to_string()));
    finds(&shadow, 1, "States.P.Branches[0].States.X.Assign.x: the variable \"x\" is also assigned outside");
}

#[test]
fn tasks() {
    let task = |extra: Value| {
        let mut state = json!({ "Type": "Task", "Resource": "fn:f", "Next": "B" });
        for (key, value) in extra.as_object().into_iter().flatten() {
            state[key] = value.clone();
        }
        state
    };
    state(task(json!({ "Resource": 1 })), "expected a string");
    state(json!({ "Type": "Task", "Next": "B" }), "a Task state needs \"Resource\"");
    for (resource, text) in [
        ("f", "no known form"),
        ("fn:", "not a valid function name"),
        ("fn:a b", "not a valid function name"),
        ("fn:f.sync", "no suffix .sync"),
        ("kv:incr", "no such operation"),
        ("http://", "no host"),
        ("https://u:p@h/", "user name"),
        ("arn:aws:states:::aws-sdk:s3:getObject", "AWS SDK"),
        ("arn:aws:states:us-east-1:123456789012:activity:x", "activities are not supported"),
        ("arn:aws:states:::ecs:runTask.sync", "the service \"ecs\" is not supported"),
        ("arn:aws:states:::states:startExecution.async", "no such action"),
        ("arn:aws:lambda:us-east-1:123456789012:function:f:1:2", "too many parts"),
        ("arn:aws:s3:::bucket", "not recognised"),
        ("workflow:", "not a valid workflow name"),
    ] {
        state(task(json!({ "Resource": resource })), text);
    }
    let invoke = "arn:aws:states:::lambda:invoke";
    state(
        task(json!({ "Resource": invoke, "Parameters": { "Payload": 1 } })),
        "\"Parameters\" of this resource needs \"FunctionName\"",
    );
    state(
        task(json!({ "Resource": invoke, "Parameters": { "FunctionName": "a b" } })),
        "Parameters.FunctionName: \"a b\" is not a valid function name",
    );
    state(task(json!({ "Resource": "kv:get", "Parameters": {} })), "needs \"Key\"");
    jsonata(
        task(json!({ "Resource": invoke, "Arguments": { "Payload": 1 } })),
        "\"Arguments\" of this resource needs \"FunctionName\"",
    );
    for parameters in [json!({ "FunctionName.$": "$.f" }), json!({ "FunctionName": "123456789012:function:f:live" })] {
        let good = with(task(json!({ "Resource": invoke, "Parameters": parameters })));
        assert!(mistakes(&good.to_string()).is_empty());
    }
    state(task(json!({ "TimeoutSeconds": 0 })), "expected a whole number from 1 to 99999999, found 0");
    state(task(json!({ "TimeoutSeconds": 1.5 })), "found 1.5");
    state(task(json!({ "TimeoutSeconds": "$.t" })), "for a path use \"TimeoutSecondsPath\"");
    state(task(json!({ "TimeoutSeconds": "{% 5 %}" })), "set \"QueryLanguage\": \"JSONata\"");
    state(task(json!({ "TimeoutSeconds": 5, "TimeoutSecondsPath": "$.t" })), "exclude each other");
    state(task(json!({ "TimeoutSeconds": 5, "HeartbeatSeconds": 5 })), "HeartbeatSeconds (5) is not below TimeoutSeconds (5)");
    state(task(json!({ "Credentials": { "RoleArn": "x" } })), "\"Credentials\" is not supported");
    jsonata(task(json!({ "TimeoutSeconds": "5" })), "expected an expression");
}

#[test]
fn retriers_and_catchers() {
    let handler = |field: &str, handler: Value| json!({ "Type": "Task", "Resource": "fn:f", "Next": "B", field: [handler] });
    for (retrier, text) in [
        (json!({}), "a retrier needs \"ErrorEquals\""),
        (json!({ "ErrorEquals": [] }), "the array is empty"),
        (json!({ "ErrorEquals": "X" }), "expected an array of error names"),
        (json!({ "ErrorEquals": [1] }), "expected a string"),
        (json!({ "ErrorEquals": ["States.Timout"] }), "did you mean \"States.Timeout\"?"),
        (json!({ "ErrorEquals": ["X", "States.ALL"] }), "stands alone"),
        (json!({ "ErrorEquals": ["X"], "IntervalSeconds": 0 }), "IntervalSeconds: expected a whole number from 1"),
        (json!({ "ErrorEquals": ["X"], "MaxAttempts": -1 }), "MaxAttempts: expected a whole number from 0"),
        (json!({ "ErrorEquals": ["X"], "BackoffRate": 0.5 }), "at least 1.0"),
        (json!({ "ErrorEquals": ["X"], "MaxDelaySeconds": 31622400 }), "from 1 to 31622399"),
        (json!({ "ErrorEquals": ["X"], "IntervalSeconds": 5, "MaxDelaySeconds": 5 }), "is not above IntervalSeconds"),
        (json!({ "ErrorEquals": ["X"], "JitterStrategy": "HALF" }), "unknown strategy"),
        (json!({ "ErrorEquals": ["X"], "MaxRetries": 5 }), "a retrier has no field \"MaxRetries\""),
        (json!(5), "expected an object"),
    ] {
        state(handler("Retry", retrier), text);
    }
    for (catcher, text) in [
        (json!({ "ErrorEquals": ["X"] }), "a catcher needs \"Next\""),
        (json!({ "ErrorEquals": ["X"], "Next": "C" }), "there is no state \"C\""),
        (json!({ "ErrorEquals": ["X"], "Next": "B", "ResultPath": "$.a..b" }), "not a valid reference path"),
        (json!({ "ErrorEquals": ["X"], "Next": "B", "Output": 1 }), "a catcher has no field \"Output\""),
    ] {
        state(handler("Catch", catcher), text);
    }
    state(
        json!({ "Type": "Task", "Resource": "fn:f", "Next": "B", "Retry": [{ "ErrorEquals": ["States.ALL"] }, { "ErrorEquals": ["X"] }] }),
        "the retrier with \"States.ALL\" is the last one",
    );
}

#[test]
fn choices_and_waits() {
    let rule = |rule: Value| json!({ "Type": "Choice", "Choices": [rule], "Default": "B" });
    state(json!({ "Type": "Choice", "Default": "B" }), "a Choice state needs \"Choices\"");
    state(json!({ "Type": "Choice", "Choices": [], "Default": "B" }), "the array is empty");
    state(rule(json!({ "Variable": "$.a", "NumericEquals": 1 })), "a rule of a Choice needs \"Next\"");
    state(rule(json!({ "Variable": "$.a", "Next": "B" })), "States.A.Choices[0]");
    state(rule(json!({ "Variable": "a", "NumericEquals": 1, "Next": "B" })), "States.A.Choices[0].Variable");
    state(rule(json!({ "Variable": "$.a", "NumericEqual": 1, "Next": "B" })), "States.A.Choices[0]");
    state(rule(json!({ "Not": { "Variable": "$.a", "NumericEquals": "x" }, "Next": "B" })), "States.A.Choices[0].Not");
    state(rule(json!({ "Variable": "$.a", "NumericEquals": 1, "Next": "B", "Output": 1 })), "no field \"Output\"");
    jsonata(rule(json!({ "Next": "B" })), "needs \"Condition\"");
    jsonata(rule(json!({ "Next": "B", "Condition": "x" })), "expected an expression");
    jsonata(rule(json!({ "Next": "B", "Condition": true, "Variable": "$.a" })), "has no field \"Variable\"");
    state(json!({ "Type": "Wait", "Next": "B" }), "how long it waits");
    state(
        json!({ "Type": "Wait", "Next": "B", "Seconds": 1, "Timestamp": "2030-01-01T00:00:00Z" }),
        "Seconds and Timestamp exclude each other",
    );
    state(json!({ "Type": "Wait", "Next": "B", "Seconds": -1 }), "expected a whole number from 0");
    state(json!({ "Type": "Wait", "Next": "B", "Timestamp": "tomorrow" }), "not a timestamp of RFC 3339");
    jsonata(json!({ "Type": "Wait", "Next": "B", "Timestamp": "tomorrow" }), "not a timestamp of RFC 3339");
    finds(&with(json!({ "Type": "Fail", "Error": "E", "ErrorPath": "$.e" })), 1, "exclude each other");
}

#[test]
fn maps_and_parallels() {
    let map = |extra: Value| {
        let mut state =
            json!({ "Type": "Map", "Next": "B", "ItemProcessor": { "StartAt": "X", "States": { "X": { "Type": "Succeed" } } } });
        for (key, value) in extra.as_object().into_iter().flatten() {
            state[key] = value.clone();
        }
        state
    };
    assert!(mistakes(&with(map(json!({}))).to_string()).is_empty());
    state(json!({ "Type": "Map", "Next": "B" }), "a Map state needs \"ItemProcessor\"");
    state(map(json!({ "Iterator": {} })), "the old name of \"ItemProcessor\"");
    state(map(json!({ "Parameters": {}, "ItemSelector": {} })), "the old name of \"ItemSelector\"");
    state(map(json!({ "MaxConcurrency": -1 })), "expected a whole number from 0");
    state(map(json!({ "ToleratedFailurePercentage": 101 })), "expected a number from 0 to 100");
    state(map(json!({ "ItemBatcher": {} })), "the size of a batch is missing");
    state(
        map(json!({ "ItemReader": { "Resource": "arn:aws:states:::s3:getObject", "Parameters": {} } })),
        "S3 and other stores are not supported",
    );
    state(map(json!({ "ResultWriter": { "Resource": "kv:set" } })), "needs \"Parameters\"");
    let reads = |resource: &str, config: Value| {
        map(json!({ "ItemReader": { "Resource": resource, "Parameters": { "Key": "k" }, "ReaderConfig": config } }))
    };
    for config in [
        json!({}),
        json!({ "InputType": "JSONL", "MaxItems": 5, "ItemsPointer": "/a" }),
        json!({ "InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "CSVDelimiter": "TAB" }),
        json!({ "InputType": "CSV", "CSVHeaderLocation": "GIVEN", "CSVHeaders": ["a"] }),
    ] {
        assert_eq!(mistakes(&with(reads("kv:get", config)).to_string()), []);
    }
    assert_eq!(mistakes(&with(reads("kv:scan", json!({ "MaxItemsPath": "$.n" }))).to_string()), []);
    for (resource, config, text) in [
        ("kv:get", json!({ "InputType": "XML" }), "unknown type of input \"XML\""),
        ("kv:get", json!({ "InputType": "CSV" }), "CSV needs \"CSVHeaderLocation\""),
        ("kv:get", json!({ "InputType": "CSV", "CSVHeaderLocation": "GIVEN" }), "\"CSVHeaders\" is missing"),
        ("kv:get", json!({ "InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "CSVHeaders": ["a"] }), "in the first row"),
        ("kv:get", json!({ "InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "CSVDelimiter": ";" }), "unknown delimiter"),
        ("kv:get", json!({ "InputType": "CSV", "CSVHeaderLocation": "GIVEN", "CSVHeaders": [] }), "the array is empty"),
        ("kv:get", json!({ "CSVDelimiter": "TAB" }), "belongs to \"InputType\": \"CSV\""),
        ("kv:get", json!({ "ItemsPointer": "a" }), "\"a\" is not a JSON pointer"),
        ("kv:get", json!({ "MaxItem": 1 }), "did you mean \"MaxItems\"?"),
        ("kv:list", json!({ "InputType": "JSON" }), "belongs to kv:get"),
        ("kv:set", json!({}), "\"ItemReader\" cannot use \"kv:set\""),
    ] {
        state(reads(resource, config), text);
    }
    state(map(json!({ "ItemReader": { "Resource": "kv:get", "Parameters": { "Bucket": "b" } } })), "needs \"Key\"");
    let writes =
        |config: Value| map(json!({ "ResultWriter": { "Resource": "kv:set", "Parameters": {}, "WriterConfig": config } }));
    assert_eq!(mistakes(&with(writes(json!({ "Transformation": "COMPACT", "OutputType": "JSONL" }))).to_string()), []);
    state(writes(json!({ "Transformation": "ALL" })), "give \"NONE\" or \"COMPACT\" or \"FLATTEN\"");
    state(map(json!({ "ResultWriter": { "Resource": "kv:list", "Parameters": {} } })), "\"ResultWriter\" cannot use \"kv:list\"");
    state(json!({ "Type": "Task", "Next": "B", "Resource": "kv:list" }), "\"kv:list\" is no resource of a Task");
    let distributed =
        json!({ "ProcessorConfig": { "Mode": "DISTRIBUTED" }, "StartAt": "X", "States": { "X": { "Type": "Succeed" } } });
    state(map(json!({ "ItemProcessor": distributed })), "distributed Map states are not supported");
    state(json!({ "Type": "Parallel", "Next": "B" }), "a Parallel state needs \"Branches\"");
    state(json!({ "Type": "Parallel", "Next": "B", "Branches": [] }), "the array is empty");
    state(
        json!({ "Type": "Parallel", "Next": "B", "Branches": [{ "States": { "X": { "Type": "Succeed" } } }] }),
        "States.A.Branches[0]: \"StartAt\" is missing",
    );
}

#[test]
fn a_definition_knows_its_states_and_resources() {
    let source = json!({ "Comment": "c", "TimeoutSeconds": 5, "StartAt": "P", "States": { "P": { "Type": "Parallel", "End": true, "Branches": [
        { "StartAt": "X", "States": { "X": { "Type": "Task", "Resource": "arn:aws:lambda:eu-west-1:1:function:f:live", "End": true } } },
        { "StartAt": "Y", "States": { "Y": { "Type": "Task", "Resource": "workflow:w.sync", "End": true } } } ] } } });
    let definition = Definition::parse(&source.to_string()).expect("a good definition");
    let resources: Vec<_> = definition.resources().map(|(state, resource)| (state.to_owned(), resource.to_string())).collect();
    assert_eq!(resources, [("X".to_owned(), "fn:f:live".to_owned()), ("Y".to_owned(), "workflow:w.sync".to_owned())]);
    assert_eq!(definition.states().iter().map(|state| state.name.to_string()).collect::<Vec<_>>(), ["P", "X", "Y"]);
    assert_eq!((definition.comment.as_deref(), definition.timeout_s), (Some("c"), Some(5)));
    assert_eq!(definition.find("Y").and_then(|index| definition.state(index)).map(|state| state.kind.name()), Some("Task"));
}

#[test]
fn large_and_deep_values_take_little_time() {
    let mut numbers: Vec<Value> = (0..100_000).map(|number| json!(number % 10)).collect();
    numbers.push(json!("{% 1 %}"));
    let deep = (0..90).fold(
        json!(numbers),
        |inner, depth| if depth % 2 == 0 { json!([inner]) } else { json!({ "a name of a member": inner }) },
    );
    for state in [
        json!({ "Type": "Pass", "End": true, "QueryLanguage": "JSONata", "Output": deep }),
        json!({ "Type": "Pass", "End": true, "Parameters": deep }),
        json!({ "Type": "Pass", "End": true, "Result": deep }),
    ] {
        let source = json!({ "StartAt": "A", "States": { "A": state } }).to_string();
        let started = std::time::Instant::now();
        assert!(mistakes(&source).is_empty());
        assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
    }
}
