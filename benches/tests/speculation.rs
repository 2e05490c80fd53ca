//! The suites of SpecFaaS end to end, small: real servers, a real Redis, replies checked.
#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;

use serde_json::Value;
use sledge_benches::checkout;

fn speculation(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(checkout::program("speculation").unwrap()).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap()
}

fn names<'a>(all: &'a [Value], key: &str) -> Vec<&'a str> {
    all.iter().map(|one| one[key].as_str().unwrap()).collect()
}

#[test]
fn a_program_of_each_suite_runs_in_all_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (json, plot) = (folder.path().join("out.json"), folder.path().join("plot"));
    let arguments = ["--quick", "--workers", "1", "--programs", "banking,ts-cancel,graph-12", "--levels", "paths,outputs"];
    let more = ["--seconds", "0.05", "--loads", "0.3", "--hits", "50", "--stores", "embedded", "--busy-ms", "0.02"];
    let out =
        ["--graph-percent", "3", "--graph-busy", "5/16", "--json", json.to_str().unwrap(), "--plot", plot.to_str().unwrap()];
    let (good, text, error) = speculation(&[&arguments[..], &more, &out].concat());
    assert!(good, "{text}{error}");
    let report: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let programs = list(&report, "programs");
    assert_eq!(names(programs, "program"), ["banking", "ts-cancel", "graph-12"]);
    for (program, levels) in programs.iter().zip([&["off", "paths", "outputs"][..], &["off"], &["off"]]) {
        let columns = list(program, "columns");
        assert_eq!(names(columns, "level"), levels);
        let wait = program["costs"]["wait_ms"].as_f64().unwrap();
        // A wait is a millisecond at least, and an execution of these has two, one after the other.
        assert!(wait >= 1.0, "{program}");
        let ideal = program["ideal_ms"].as_f64().unwrap();
        let alone = columns[0]["alone_ms"][0].as_f64().unwrap();
        assert!(ideal >= 2.0 * wait && ideal < alone, "{ideal} of {alone}: {program}");
        for column in columns {
            for list in ["alone_ms", "cpu_ms", "guest_ms", "cold_ms", "saturated"] {
                let numbers = column[list].as_array().unwrap();
                assert!(numbers.len() == 1 && numbers[0].as_f64().unwrap() > 0.0, "{list}: {column}");
            }
            let cell = &list(column, "loads")[0];
            assert!(cell["p99_ms"].as_f64().unwrap() >= cell["mean_ms"][0].as_f64().unwrap(), "{cell}");
            assert!(column["throughput"].is_number(), "{column}");
        }
    }
    let banking = list(&programs[0], "columns");
    assert!(banking[0]["ahead"].get("adopted").is_none_or(|adopted| adopted == 0.0), "{}", banking[0]);
    for column in &banking[1..] {
        assert!(column["ahead"]["adopted"].as_f64().unwrap() > 0.0, "{column}");
    }
    assert_eq!(names(list(&report, "hits"), "kind"), ["50 % paths, 50 % repeats"; 3]);
    assert_eq!(names(list(&report, "stores"), "place"), ["embedded"; 3]);
    let poison = list(&report, "poison");
    assert_eq!(names(poison, "kind"), ["ways that change", "the same keys", "inputs that never come again"]);
    assert!(poison.iter().flat_map(|one| list(one, "columns")).all(|column| column["grown_mb"].is_number()), "{poison:?}");
    for needed in [
        "| FaaSChain | outputs |",
        "## ts-cancel (TrainTicket), Redis 1 ms away, 98 % paths, 96 % repeats",
        "## By hit rate",
        "## By place of the store",
        "## A store in the server",
        "## Simulated",
        "### More cores",
        "### What becomes of wrong runs",
        "## Inputs that are made to do harm",
    ] {
        assert!(text.contains(needed), "{needed} is missing in:\n{text}");
    }
    // Each column is simulated, and told what one client saw without speculation. That is one execution or a few here: nothing is said of how well.
    for program in programs.iter().chain(list(&report, "hits")).chain(list(&report, "stores")) {
        let simulated = list(&program["simulated"], "columns");
        assert_eq!(names(simulated, "level"), names(list(program, "columns"), "level"));
        for (simulated, column) in simulated.iter().zip(list(program, "columns")) {
            let numbers = [&simulated["alone_ms"], &simulated["p99_ms"], &simulated["cpu_ms"]];
            assert!(numbers.iter().all(|number| number.as_f64().unwrap() > 0.0), "{simulated}");
            assert_eq!(list(simulated, "loads").len(), list(column, "loads").len());
        }
    }
    assert!(poison.iter().all(|one| one["simulated"].is_null()));
    assert_eq!(list(&programs[0]["simulated"], "cores").len(), 3 * 2, "{}", programs[0]["simulated"]);
    let drops = list(&list(&report, "hits")[0]["simulated"], "drops");
    assert_eq!(names(&drops[..4], "drops"), ["at-once", "at-end", "process", "container"]);
    for picture in ["speed-up", "loads", "hits", "stores"] {
        for ending in ["svg", "png"] {
            let file = folder.path().join(format!("plot-{picture}.{ending}"));
            assert!(fs::metadata(&file).unwrap().len() > 1_000, "{}", file.display());
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (arguments, reason) in [
        (&["--programs", "bank"][..], "there is no program bank; there are: login, "),
        (&["--levels", "all"], "there is no level all; there are: off, paths, outputs, "),
        (&["--parts", "all"], "there is no part all; there are: speed-up, hits, stores, poison"),
        (&["--stores", "far"], "`far` is neither `embedded` nor milliseconds"),
        (&["--loads", "1.5"], "above 0 and at most 1"),
        (&["--hits", "101"], "from 0 to 100"),
        (&["--graph-busy", "10"], "`10` is not callers' and leaves' percent, such as 10/32"),
        (&["--workers", "1000"], "the driver needs one"),
    ] {
        let (good, text, error) = speculation(arguments);
        assert!(!good && error.contains(reason), "{arguments:?}: {text}{error}");
    }
}
