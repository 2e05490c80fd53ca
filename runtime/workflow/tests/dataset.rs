//! Items in their formats, and the files of results.

use serde_json::{Value, json};
use sledge_workflow::dataset::limits::{COLUMNS_MAX, READ_ITEMS_MAX};
use sledge_workflow::dataset::{DatasetError, Format, Items, read, written};

fn format(config: &Value) -> Format {
    serde_json::from_value(config.clone()).expect("a format")
}

fn csv(text: &str) -> Result<Value, DatasetError> {
    read(text.as_bytes(), &format(&json!({ "InputType": "CSV" })), None)
}

#[test]
fn json_is_taken_as_it_is() {
    let read = |text: &str| read(text.as_bytes(), &Format::Json, None);
    assert_eq!(read("[1, {\"a\": 2}]"), Ok(json!([1, { "a": 2 }])));
    assert_eq!(read("{\"items\": []}"), Ok(json!({ "items": [] })), "ItemsPath or ItemsPointer finds the array");
    assert!(matches!(read("[1,"), Err(DatasetError::NotJson(_))));
    assert_eq!(read(&format!("[\"{}\"]", "x".repeat(5 << 20))), Err(DatasetError::TooLarge));
    assert!(read(&("[".repeat(200) + &"]".repeat(200))).is_err(), "too deep");
}

#[test]
fn each_line_of_jsonl_is_an_item() {
    let read = |text: &str, max| read(text.as_bytes(), &Format::Jsonl, max);
    assert_eq!(read("1\n\n{\"a\": 2}\r\n  \n\"x\"", None), Ok(json!([1, { "a": 2 }, "x"])));
    assert_eq!(read("1\n2\n3\nnot read", Some(2)), Ok(json!([1, 2])), "as many as are wanted");
    assert_eq!(read("1\n2", Some(0)), Ok(json!([1, 2])), "zero does not limit");
    assert!(matches!(read("1\n\noops", None), Err(DatasetError::Line { line: 3, .. })));
    assert_eq!(read("\"1\\n2\"", None), Ok(json!([1, 2])), "a text that kv:set has written as JSON");
    assert_eq!(ones(READ_ITEMS_MAX + 1), Err(DatasetError::TooMany));
}

fn ones(count: usize) -> Result<Value, DatasetError> {
    read("1\n".repeat(count).as_bytes(), &Format::Jsonl, None)
}

#[test]
fn rows_of_csv_are_objects_by_column() {
    assert_eq!(csv("a,b\n1,2\n3,4\n"), Ok(json!([{ "a": "1", "b": "2" }, { "a": "3", "b": "4" }])));
    assert_eq!(csv("a,b\r\n1,2\r\n"), Ok(json!([{ "a": "1", "b": "2" }])), "CRLF");
    assert_eq!(csv("\u{feff}a\n1"), Ok(json!([{ "a": "1" }])), "a byte order mark");
    assert_eq!(csv("a,b,c\n1\n1,2,3,4\n"), Ok(json!([{ "a": "1", "b": "", "c": "" }, { "a": "1", "b": "2", "c": "3" }])));
    assert_eq!(csv("a,b\n\"x, \"\"y\"\"\n z\",2\n"), Ok(json!([{ "a": "x, \"y\"\n z", "b": "2" }])));
    assert_eq!(csv("a,b\n,\n"), Ok(json!([{ "a": "", "b": "" }])));
    assert_eq!(csv("a,b\n1,"), Ok(json!([{ "a": "1", "b": "" }])), "no end of line at the end");
    assert_eq!(csv("a\n\n\n1\n\n2\n\n"), Ok(json!([{ "a": "1" }, { "a": "2" }])), "empty lines are no rows");
    assert_eq!(csv("ä,ö\nü,\"é\"\n"), Ok(json!([{ "ä": "ü", "ö": "é" }])));
    assert_eq!((csv(""), csv("a,b"), csv("\n\n")), (Ok(json!([])), Ok(json!([])), Ok(json!([]))));
    let given = format(&json!({ "InputType": "CSV", "CSVDelimiter": "PIPE", "CSVHeaders": ["x", "y"] }));
    assert_eq!(read(b"1|2\n3|4\n", &given, Some(1)), Ok(json!([{ "x": "1", "y": "2" }])));
    for (name, between) in [("COMMA", ','), ("PIPE", '|'), ("SEMICOLON", ';'), ("SPACE", ' '), ("TAB", '\t')] {
        let format = format(&json!({ "InputType": "CSV", "CSVDelimiter": name }));
        let text = format!("a{between}b\n1{between}2\n");
        assert_eq!(read(text.as_bytes(), &format, None), Ok(json!([{ "a": "1", "b": "2" }])), "{name}");
    }
}

#[test]
fn malformed_rows_are_named_by_their_line() {
    let row = |line| move |error: &DatasetError| matches!(error, DatasetError::Row { line: at, .. } if *at == line);
    assert!(csv("a\n1\n\"x\ny").is_err_and(|error| row(3)(&error)), "not closed");
    assert!(csv("a\n\"x\n\ny\"z\n").is_err_and(|error| row(2)(&error)), "behind a quote");
    assert!(csv(&",".repeat(COLUMNS_MAX)).is_err_and(|error| row(1)(&error)));
    assert!(csv(&format!("{}\n", "x".repeat(20_000))).is_err_and(|error| row(1)(&error)));
    assert_eq!(read(&[0xff, 0xfe], &format(&json!({ "InputType": "CSV" })), None), Err(DatasetError::NotText));
    // Long names of columns in every row would be more than the text by far.
    let header = ["c".repeat(100), "d".repeat(100)].join(",");
    assert_eq!(csv(&format!("{header}\n{}", "1\n".repeat(50_000))), Err(DatasetError::TooLarge));
}

#[test]
fn any_text_is_read_or_refused() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let pieces = ["\"", ",", "\n", "\r\n", "\r", "a", "é", "|", "{", "}", "[", "]", "1", " ", "\\"];
    for _ in 0..5_000 {
        let text: String = (0..random.usize(..40)).map(|_| pieces[random.usize(..pieces.len())]).collect();
        for kind in [json!({ "InputType": "CSV" }), json!({ "InputType": "JSONL" }), json!({ "InputType": "JSON" })] {
            let all = read(text.as_bytes(), &format(&kind), None);
            let first = read(text.as_bytes(), &format(&kind), Some(1));
            if let (Ok(Value::Array(all)), Ok(Value::Array(first)), true) = (&all, &first, kind["InputType"] != "JSON") {
                assert_eq!(all.first(), first.first(), "{text:?}");
            }
        }
    }
}

#[test]
fn items_are_counted_and_measured() {
    let mut items = Items::new(Some(2));
    assert_eq!(items.missing(), 2);
    items.push(json!("x".repeat(3 << 20))).expect("there is room");
    assert_eq!(items.missing(), 1);
    assert_eq!(items.push(json!("x".repeat(2 << 20))), Err(DatasetError::TooLarge));
}

/// What a writer is given by the machine.
fn input(config: &Value, results: &Value) -> Value {
    json!({ "Bucket": "b", "Prefix": "out", "Folder": "out/e/1", "MapRunArn": "arn:1", "WriterConfig": config, "Results": results })
}

fn file(files: &[(String, Vec<u8>)], key: &str) -> String {
    let found = files.iter().find(|(name, _)| name == key).unwrap_or_else(|| panic!("no {key} in {files:?}"));
    String::from_utf8(found.1.clone()).expect("text")
}

#[test]
fn results_are_files_and_a_manifest_names_them() {
    let results = json!([
        { "Index": 0, "Input": { "n": 0 }, "Output": [1, 2] },
        { "Index": 1, "Input": { "n": 1 }, "Error": "E", "Cause": "c" },
        { "Index": 2, "Output": "x" },
    ]);
    let whole = written(&input(&json!({}), &results), 1 << 20).expect("files");
    let key = "out/e/1/manifest.json";
    assert_eq!(whole.output, json!({ "MapRunArn": "arn:1", "ResultWriterDetails": { "Bucket": "b", "Key": key } }));
    let succeeded: Value = serde_json::from_str(&file(&whole.files, "out/e/1/SUCCEEDED_0.json")).expect("JSON");
    assert_eq!(
        succeeded,
        json!([
            { "Index": 0, "Input": "{\"n\":0}", "InputDetails": { "Included": true }, "Output": "[1,2]", "OutputDetails": { "Included": true }, "Status": "SUCCEEDED" },
            { "Index": 2, "InputDetails": { "Included": false }, "Output": "\"x\"", "OutputDetails": { "Included": true }, "Status": "SUCCEEDED" },
        ])
    );
    let failed = file(&whole.files, "out/e/1/FAILED_0.json");
    assert!(failed.contains("\"Error\":\"E\",\"Cause\":\"c\",\"Status\":\"FAILED\""), "{failed}");
    let manifest: Value = serde_json::from_str(&file(&whole.files, key)).expect("JSON");
    assert_eq!((&manifest["DestinationBucket"], &manifest["MapRunArn"]), (&json!("b"), &json!("arn:1")));
    assert_eq!(manifest["ResultFiles"]["FAILED"], json!([{ "Key": "out/e/1/FAILED_0.json", "Size": failed.len() }]));
    assert_eq!(manifest["ResultFiles"]["PENDING"], json!([]));
    let compact = written(&input(&json!({ "Transformation": "COMPACT" }), &results), 1 << 20).expect("files");
    assert_eq!(file(&compact.files, "out/e/1/SUCCEEDED_0.json"), "[[1,2],\"x\"]");
    let flat = json!({ "Transformation": "FLATTEN", "OutputType": "JSONL" });
    let flat = written(&input(&flat, &results), 1 << 20).expect("files");
    assert_eq!(file(&flat.files, "out/e/1/SUCCEEDED_0.jsonl"), "1\n2\n\"x\"\n");
    assert_eq!(written(&input(&json!({}), &json!([])), 1 << 20).expect("files").files.len(), 1, "the manifest alone");
    for wrong in [json!({}), json!({ "Folder": "f", "MapRunArn": "a" }), input(&json!({}), &json!([{ "Output": 1 }]))] {
        assert_eq!(written(&wrong, 1 << 20), Err(DatasetError::NotResults));
    }
}

#[test]
fn no_file_is_larger_than_a_key_may_be() {
    let results: Vec<_> = (0..10).map(|index| json!({ "Index": index, "Output": "y".repeat(10) })).collect();
    for kind in ["JSON", "JSONL"] {
        let config = json!({ "Transformation": "COMPACT", "OutputType": kind });
        for bytes_max in [14, 26, 27, 30, 1_000] {
            let files = written(&input(&config, &json!(results)), bytes_max).expect("files").files;
            let own: Vec<_> = files.iter().filter(|(key, _)| key.contains("SUCCEEDED")).collect();
            assert!(own.iter().all(|(_, text)| text.len() <= bytes_max), "{kind} {bytes_max}");
            let held: usize = own.iter().map(|(_, text)| text.iter().filter(|byte| **byte == b'y').count()).sum();
            assert_eq!(held, 100, "{kind} {bytes_max}");
        }
        let small = written(&input(&config, &json!(results)), 13);
        assert_eq!(small, Err(DatasetError::ResultTooLarge { index: 0, bytes_max: 13 }));
    }
}
