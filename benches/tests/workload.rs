//! The workloads end to end, small: real servers, a real Redis, results checked; and a sort that loses something fails.
#![forbid(unsafe_code)]

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Command, Output};

use anyhow::Result;
use serde_json::Value;
use sledge_benches::checkout;
use sledge_benches::workload::classes::Classes;
use sledge_benches::workload::sort::{Bed, Place, Settings, Transfers, Variant};

fn workload(arguments: &[&str], folder: &Path) -> (Output, Value) {
    let json = folder.join("out.json");
    let mut command = Command::new(checkout::program("workload").unwrap());
    command.args(arguments).arg("--json").arg(&json).arg("--plot").arg(folder.join("plot")).args(["--workers", "1"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let json = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    (output, json)
}

#[test]
fn files_and_redis_are_sorted_by_all_variants() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["sort", "--megabytes", "4", "--chunks", "8", "--categories", "16", "--repeat", "2", "--transfer", "256"];
    let (output, json) = workload(&[&arguments[..], &["--places", "files,redis-1"]].concat(), folder.path());
    let places = json["places"].as_array().unwrap();
    assert_eq!(places.iter().map(|place| place["place"].as_str().unwrap()).collect::<Vec<_>>(), ["files", "redis-1"]);
    for place in places {
        let variants = place["variants"].as_array().unwrap();
        assert!(variants.len() >= 3, "{variants:?}");
        for variant in variants {
            assert_eq!(variant["makespan_s"].as_array().unwrap().len(), 2);
            // A busy machine makes it small. No core does more than a second a second.
            assert!((0.001..1.05).contains(&variant["utilisation"].as_f64().unwrap()), "{variant}");
            let phases = variant["phases"].as_array().unwrap();
            assert!(phases.iter().all(|phase| phase["lasted_p50_ms"].as_f64().unwrap() > 0.0), "{phases:?}");
        }
    }
    // Transfers of 256 KiB: each chunk of 500 kB is read in at least two, and each answer comes a millisecond later.
    let blocking = &places[1]["variants"][0];
    assert_eq!(blocking["variant"], "blocking");
    let read = blocking["phases"][0]["lasted_p50_ms"].as_f64().unwrap();
    assert!(read >= 2.0, "reading a chunk takes {read} ms");
    let text = String::from_utf8(output.stdout).unwrap();
    for needed in ["## files", "## redis-1", "| 16 in flight |", "256 KiB at a time"] {
        assert!(text.contains(needed), "{needed} is missing in:\n{text}");
    }
    for file in ["plot-files.svg", "plot-files.png", "plot-redis-1.svg", "plot-redis-1.png"] {
        assert!(fs::metadata(folder.path().join(file)).unwrap().len() > 1_000, "{file}");
    }
}

/// Sorts a megabyte in files; `between` is done to the folder of the data between the stages.
fn tampered(between: impl FnOnce(&Path) -> Result<()>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        megabytes: 1,
        chunks: 4,
        categories: 8,
        repeat: 1,
        workers: 1,
        places: vec![Place::Files],
        classes: None,
        seed: 5,
        transfers: None,
    };
    let bed = Bed::new(&settings, Place::Files, folder.path()).unwrap();
    let data = bed.data();
    let variant = Variant { in_flight: 8, classes: Classes::Off };
    let run = bed.run(variant, Transfers { bytes: 1 << 20, rounds: 0 }, || between(&data));
    run.map_or_else(|error| format!("{error:#}"), |_| String::new())
}

#[test]
fn a_record_that_is_lost_between_the_stages_is_missed() {
    assert_eq!(tampered(|_| Ok(())), "");
    let shortened = tampered(|data| {
        let piece = OpenOptions::new().write(true).open(data.join("piece-3-2"))?;
        Ok(piece.set_len(piece.metadata()?.len() - 100)?)
    });
    assert!(shortened.contains("1 of 10000 records are lost"), "{shortened}");
    let removed = tampered(|data| Ok(fs::remove_file(data.join("piece-7-0"))?));
    assert!(removed.contains("piece-7-0 is not there"), "{removed}");
    let changed = tampered(|data| {
        let piece = data.join("piece-0-1");
        let mut bytes = fs::read(&piece)?;
        bytes[42] ^= 1;
        Ok(fs::write(&piece, bytes)?)
    });
    assert!(changed.contains("not the same ones"), "{changed}");
}

#[test]
fn the_game_is_played_by_its_rules() {
    let folder = tempfile::tempdir().unwrap();
    let (output, json) = workload(&["game", "--repeat", "1", "--seconds", "1", "--passes", "50"], folder.path());
    let initialised = json["initialised"].as_array().unwrap();
    assert_eq!(initialised.iter().map(|row| row["cores"].as_f64().unwrap()).collect::<Vec<_>>(), [0.5, 1.0, 2.0, 4.0]);
    let ticks = json["ticks"].as_array().unwrap();
    assert!(ticks.len() >= 4, "{ticks:?}");
    for row in ticks {
        let ms = row["ms"].as_array().unwrap();
        assert_eq!(ms.len(), 20);
        assert!(ms.iter().all(|ms| ms.as_f64().unwrap() > 0.0), "{ms:?}");
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("| 40 | beside initialisations |"), "{text}");
    assert!(fs::metadata(folder.path().join("plot.png")).unwrap().len() > 1_000);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let program = checkout::program("workload").unwrap();
    for (arguments, reason) in [
        (&["sort", "--places", "s3"][..], "`redis-5`"),
        (&["sort", "--megabytes", "0"], "1..=100000"),
        (&["sort", "--workers", "1000"], "the driver needs one"),
        (&["game", "--seconds", "0"], "--seconds has to be more than 0"),
    ] {
        let output = Command::new(&program).args(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(reason), "{arguments:?}: {error}");
    }
}
