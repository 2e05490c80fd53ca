//! Maps whose items come from the store, and whose results go there.

use super::*;
use crate::kv::Order;

/// A Map over what `reader` reads, with one call of the played function for each item.
fn map(reader: &Value, more: &Value) -> Value {
    let work = json!({ "Type": "Task", "Resource": "fn:f", "Parameters": { "do": "add", "key": "done", "item.$": "$" }, "ResultSelector": { "item.$": "$.item" }, "End": true });
    let mut map =
        json!({ "Type": "Map", "ItemReader": reader, "ItemProcessor": machine("W", &json!({ "W": work })), "End": true });
    for (key, value) in more.as_object().unwrap() {
        map[key] = value.clone();
    }
    machine("M", &json!({ "M": map }))
}

fn list() -> Value {
    json!({ "Resource": "kv:list", "Parameters": { "Bucket": "b", "Prefix": "in/" } })
}

fn writer() -> Value {
    json!({ "Resource": "kv:set", "Parameters": { "Bucket": "b", "Prefix": "out" } })
}

impl Served {
    fn put(&self, name: &str, value: &[u8]) {
        let change = (key(name), Change::Put(Bytes::copy_from_slice(value)));
        wait(self.store.space(TENANT).commit(Commit::new(Vec::new(), vec![change]))).unwrap();
    }

    fn keys(&self, prefix: &str) -> Vec<String> {
        let Space::Embedded(space) = self.store.space(TENANT) else { panic!("an embedded store") };
        let mut keys = Vec::new();
        space
            .keys(&bucket(), prefix.as_bytes(), None, |key| {
                keys.push(String::from_utf8(key.to_vec()).unwrap());
                true
            })
            .unwrap();
        keys
    }

    fn json(&self, name: &str) -> Value {
        let Space::Embedded(space) = self.store.space(TENANT) else { panic!("an embedded store") };
        let value = space.get(&bucket(), name.as_bytes(), |entry| entry.map(|entry| entry.value.clone())).unwrap();
        serde_json::from_slice(&value.unwrap_or_else(|| panic!("no key {name}"))).unwrap()
    }
}

#[test]
fn keys_and_values_of_a_bucket_are_items() {
    let scan =
        json!({ "Resource": "kv:scan", "Parameters": { "Bucket": "b", "Prefix": "in/" }, "ReaderConfig": { "MaxItems": 2 } });
    let served = Served::start(&Disk::default(), &[("list", map(&list(), &json!({}))), ("scan", map(&scan, &json!({})))]);
    for name in ["in/1", "in/2", "in/3", "other"] {
        served.put(name, format!("{{\"of\": \"{name}\"}}").as_bytes());
    }
    served.begin("list", "one", json!({})).unwrap();
    let item = |name: &str| json!({ "item": { "Key": name } });
    assert_eq!(served.end_of("list", "one").output.as_deref(), Some(&json!([item("in/1"), item("in/2"), item("in/3")])));
    assert_eq!(served.number("done"), 3);
    served.begin("scan", "one", json!({})).unwrap();
    let item = |name: &str| json!({ "item": { "Key": name, "Value": { "of": name } } });
    assert_eq!(served.end_of("scan", "one").output.as_deref(), Some(&json!([item("in/1"), item("in/2")])));
    let begin = ["ExecutionStarted", "MapStateEntered", "TaskScheduled", "TaskStarted", "TaskSucceeded", "MapStateStarted"];
    assert_eq!(served.events("scan", "one")[..6], begin);
    served.stop();
}

#[test]
fn more_keys_than_a_page_are_all_read() {
    let reader = list();
    let batches = json!({ "ItemBatcher": { "MaxItemsPerBatch": 1_000 }, "ItemProcessor": machine("P", &json!({ "P": { "Type": "Pass", "Parameters": { "n.$": "States.ArrayLength($.Items)" }, "End": true } })) });
    let served = Served::start(&Disk::default(), &[("list", map(&reader, &batches))]);
    for chunk in 0..3 {
        let changes = (0..1_000).map(|n| (key(&format!("in/{chunk}-{n:04}")), Change::Put(Bytes::from_static(b"1")))).collect();
        wait(served.store.space(TENANT).commit(Commit::new(Vec::new(), changes))).unwrap();
    }
    served.begin("list", "one", json!({})).unwrap();
    assert_eq!(served.end_of("list", "one").output.as_deref(), Some(&json!([{ "n": 1_000 }, { "n": 1_000 }, { "n": 1_000 }])));
    served.stop();
}

#[test]
fn one_value_holds_items_in_three_formats() {
    let get = |config: Value| json!({ "Resource": "kv:get", "Parameters": { "Bucket": "b", "Key.$": "$.key" }, "ReaderConfig": config });
    let workflows = [
        ("json", map(&get(json!({ "InputType": "JSON", "ItemsPointer": "/list" })), &json!({}))),
        ("jsonl", map(&get(json!({ "InputType": "JSONL" })), &json!({}))),
        (
            "csv",
            map(&get(json!({ "InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "CSVDelimiter": "SEMICOLON" })), &json!({})),
        ),
    ];
    let served = Served::start(&Disk::default(), &workflows);
    served.put("json", b"{\"list\": [1, 2]}");
    served.put("jsonl", b"1\n\"two\"\n");
    served.put("csv", b"a;b\n1;2\n");
    for (name, items) in [("json", json!([1, 2])), ("jsonl", json!([1, "two"])), ("csv", json!([{ "a": "1", "b": "2" }]))] {
        served.begin(name, "one", json!({ "key": name })).unwrap();
        let items: Vec<_> = items.as_array().unwrap().iter().map(|item| json!({ "item": item })).collect();
        assert_eq!(served.end_of(name, "one").output.as_deref(), Some(&json!(items)), "{name}");
    }
    for (name, input, cause) in [
        ("json", "absent", "KeyValue.NoSuchKey"),
        ("csv", "large", "KeyValue.Dataset: the items have more than"),
        ("jsonl", "json", "Attempting"),
    ] {
        // A header in every row makes much of little.
        served.put("large", format!("{}\n{}", "c".repeat(200), "1\n".repeat(100_000)).as_bytes());
        served.put("json", b"{\"list\": [1, 2], \"line\"}");
        served.begin(name, "two", json!({ "key": input })).unwrap();
        let ended = served.end_of(name, "two");
        assert_eq!((ended.status, ended.error.as_deref()), (Status::Failed, Some("States.ItemReaderFailed")), "{name}");
        assert!(ended.cause.as_deref().is_some_and(|text| text.contains(cause) || name == "jsonl"), "{:?}", ended.cause);
    }
    served.stop();
}

#[test]
fn results_are_written_with_a_manifest_and_failures_apart() {
    let work = json!({
        "F": { "Type": "Choice", "Choices": [{ "Variable": "$.Key", "StringEquals": "in/2", "Next": "No" }], "Default": "Yes" },
        "No": { "Type": "Fail", "Error": "Refused", "Cause": "by the test" },
        "Yes": { "Type": "Succeed" },
    });
    let more = json!({ "ResultWriter": writer(), "ToleratedFailureCount": 1, "ItemProcessor": machine("F", &work) });
    let served = Served::start(&Disk::default(), &[("map", map(&list(), &more))]);
    for name in ["in/1", "in/2", "in/3"] {
        served.put(name, b"1");
    }
    served.begin("map", "one", json!({})).unwrap();
    let output = served.end_of("map", "one").output.unwrap();
    let details = &output["ResultWriterDetails"];
    let folder = details["Key"].as_str().unwrap().strip_suffix("/manifest.json").unwrap().to_owned();
    assert_eq!(details["Bucket"], "b");
    assert!(folder.starts_with("out/one/"), "{folder}");
    let run = folder.rsplit('/').next().unwrap();
    assert_eq!(output["MapRunArn"], format!("arn:aws:states:local:t:mapRun:map/M:{run}"));
    let files = [format!("{folder}/FAILED_0.json"), format!("{folder}/SUCCEEDED_0.json"), format!("{folder}/manifest.json")];
    assert_eq!(served.keys("out/"), files);
    let failed = served.json(&files[0]);
    assert_eq!(
        (&failed[0]["Index"], &failed[0]["Error"], &failed[0]["Cause"]),
        (&json!(1), &json!("Refused"), &json!("by the test"))
    );
    assert_eq!(failed[0]["Input"], "{\"Key\":\"in/2\"}");
    let succeeded = served.json(&files[1]);
    let outputs: Vec<_> = succeeded.as_array().unwrap().iter().map(|entry| entry["Output"].as_str().unwrap()).collect();
    assert_eq!(outputs, ["{\"Key\":\"in/1\"}", "{\"Key\":\"in/3\"}"]);
    assert_eq!(served.json(&files[2])["ResultFiles"]["SUCCEEDED"][0]["Key"], json!(files[1]));
    served.stop();
}

#[test]
fn results_that_do_not_fit_are_a_failure_that_can_be_caught() {
    // Ten results of half a MiB are more than one commit.
    let large = json!({ "L": { "Type": "Pass", "Parameters": { "x.$": "States.Format('{}{}', $$.Execution.Input.x, $$.Execution.Input.x)" }, "End": true } });
    let more = json!({ "ResultWriter": writer(), "ItemProcessor": machine("L", &large), "Next": "Never",
                       "Catch": [{ "ErrorEquals": ["States.ResultWriterFailed"], "Next": "Caught" }] });
    let mut definition = map(&list(), &more);
    definition["States"]["M"].as_object_mut().unwrap().remove("End");
    definition["States"]["Never"] = json!({ "Type": "Succeed" });
    definition["States"]["Caught"] = json!({ "Type": "Pass", "End": true });
    let served = Served::start(&Disk::default(), &[("map", definition)]);
    for number in 0..30 {
        served.put(&format!("in/{number}"), b"1");
    }
    served.begin("map", "one", json!({ "x": "y".repeat(100_000) })).unwrap();
    let output = served.end_of("map", "one").output.unwrap();
    assert_eq!(output["Error"], "States.ResultWriterFailed");
    assert!(output["Cause"].as_str().unwrap().starts_with("KeyValue.TooLarge: "), "{output}");
    assert_eq!(served.keys("out/"), Vec::<String>::new(), "nothing of it was written");
    served.stop();
}

/// The disk crashes while a Map runs, again and again: each item is done once, and each execution has one manifest.
#[test]
fn each_item_and_each_result_is_there_once_whenever_the_server_dies() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let definition = map(&list(), &json!({ "ResultWriter": writer() }));
    let mut disk = Disk::default();
    let served = Served::start(&disk, &[("map", definition.clone())]);
    for number in 0..8 {
        served.put(&format!("in/{number}"), b"1");
    }
    for number in 0..3 {
        served.begin("map", &format!("e{number}"), json!({})).unwrap();
    }
    served.kill();
    for _ in 0..6 {
        disk = disk.crashed(&mut random.u64(..));
        let served = Served::start(&disk, &[("map", definition.clone())]);
        thread::sleep(Duration::from_millis(random.u64(..30)));
        served.kill();
    }
    let served = Served::start(&disk.crashed(&mut random.u64(..)), &[("map", definition)]);
    for number in 0..3 {
        let ended = served.end_of("map", &format!("e{number}"));
        assert_eq!(ended.status, Status::Succeeded, "{ended:?}");
        let named = ended.output.unwrap()["ResultWriterDetails"]["Key"].as_str().unwrap().to_owned();
        let manifests: Vec<_> =
            served.keys(&format!("out/e{number}/")).into_iter().filter(|key| key.ends_with("manifest.json")).collect();
        assert_eq!(manifests, [named], "one run");
        let events = wait(served.executions.read({
            let id = served.summary("map", &format!("e{number}")).unwrap().id;
            move |journal| journal.history(id, Order::Rising, None, 1_000)
        }));
        let reads = events.unwrap().events.iter().filter(|event| event.get().contains("\"list\"")).count();
        assert_eq!(reads, 3, "scheduled, started and succeeded once");
    }
    assert_eq!(served.number("done"), 24);
    served.stop();
}
