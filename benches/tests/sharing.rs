//! The suite of MXFaaS end to end, small: real servers, a real Redis, replies checked.
#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;

use serde_json::Value;
use sledge_benches::checkout;

fn sharing(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(checkout::program("sharing").unwrap()).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_function_and_an_application_run_in_all_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (json, plot) = (folder.path().join("out.json"), folder.path().join("plot"));
    let arguments = ["--workers", "1", "--programs", "create-order-modelled,ts-cancel", "--loads", "0.3", "--sweep", "2,8"];
    let more = ["--seconds", "0.3", "--delays", "1", "--only-programs", "--json", json.to_str().unwrap()];
    let (good, text, error) = sharing(&[&arguments[..], &more, &["--plot", plot.to_str().unwrap()]].concat());
    assert!(good, "{text}{error}");
    let report: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let programs = report["programs"].as_array().unwrap();
    assert_eq!(
        programs.iter().map(|program| program["program"].as_str().unwrap()).collect::<Vec<_>>(),
        ["create-order-modelled", "ts-cancel"]
    );
    for program in programs {
        // Each access of both is a wait of a millisecond, one after the other.
        let accesses = program["accesses"].as_f64().unwrap();
        assert!(accesses >= 7.0, "{program}");
        let columns = program["columns"].as_array().unwrap();
        let names: Vec<_> = columns.iter().map(|column| column["column"].as_str().unwrap()).collect();
        assert_eq!(names[..4], ["nightcore", "nightcore-best", "prewarmed", "sledge"]);
        assert_eq!(names.len(), 8);
        for column in columns {
            let alone = column["unloaded_ms"].as_f64().unwrap();
            // Answers from a table wait less often.
            assert!(alone >= accesses || column["column"] == "memo", "{column}");
            let cells = column["cells"].as_array().unwrap();
            let patterns: Vec<_> = cells.iter().map(|cell| cell["pattern"].as_str().unwrap()).collect();
            assert_eq!(patterns, ["poisson", "bursts of 8", "bursts of 32"]);
            for cell in cells {
                assert!(cell["requests"].as_u64().unwrap() > 0, "{cell}");
                assert!(cell["p99_ms"].as_f64().unwrap() >= cell["p50_ms"].as_f64().unwrap(), "{cell}");
            }
        }
    }
    for needed in ["| nightcore-best |", "## ts-cancel, Redis 1 ms away", "| without images |", "The paper has, of MXFaaS"] {
        assert!(text.contains(needed), "{needed} is missing in:\n{text}");
    }
    for file in ["plot-mean.svg", "plot-mean.png", "plot-p99.svg", "plot-p99.png"] {
        assert!(fs::metadata(folder.path().join(file)).unwrap().len() > 1_000, "{file}");
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    for (arguments, reason) in [
        (&["--programs", "cnn"][..], "there is no program cnn; there are: lr-serv, "),
        (&["--loads", "1.5"], "above 0 and at most 1"),
        (&["--sweep", "0"], "from 1"),
        (&["--workers", "1000"], "the driver needs one"),
    ] {
        let (good, text, error) = sharing(arguments);
        assert!(!good && error.contains(reason), "{arguments:?}: {text}{error}");
    }
}
