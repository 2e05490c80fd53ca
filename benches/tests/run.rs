//! `make bench` without what takes minutes: parts that fail or are interrupted, figures and reports of CSV, and comparisons.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use sledge_benches::phases::{self, Phase};
use sledge_benches::row::{self, Row};
use sledge_benches::run::compare::{self, Verdict};
use sledge_benches::run::figure::{Better, Figure};
use sledge_benches::run::part::{Part, Turn};
use sledge_benches::run::record::Record;
use sledge_benches::run::{measure, report};
use sledge_benches::tables;

fn write_phase(folder: &Path, nanoseconds: f64) -> Result<()> {
    // What is measured again leaves a trace.
    let calls = folder.join("calls");
    fs::write(&calls, fs::read_to_string(&calls).unwrap_or_default() + "costs\n")?;
    let phase = Phase { name: "trap/ud1".to_owned(), samples: vec![(10.0, nanoseconds * 10.0)] };
    phases::save(&[phase], &folder.join("phases-costs.csv"))
}

fn turn(application: &str, native_s: f64, sandbox_s: f64) -> Turn {
    Turn { application: application.to_owned(), turn: 0, native_s, sandbox_s }
}

const GOOD: Part = Part { name: "costs", file: "phases-costs.csv", about_s: 1, measure: |folder| write_phase(folder, 250.0) };
const FAILING: Part = Part {
    name: "applications",
    file: "applications.csv",
    about_s: 1,
    measure: |folder| {
        // Half of it is there when it fails.
        tables::write(&folder.join("applications.csv"), [turn("ocr", 1.0, 7.0)])?;
        bail!("the reader answered nonsense")
    },
};
const PANICKING: Part = Part { name: "request", file: "phases-request.csv", about_s: 1, measure: |_| panic!("on purpose") };
const MENDED: Part =
    Part { measure: |folder| tables::write(&folder.join("applications.csv"), [turn("ocr", 1.0, 1.25)]), ..FAILING };

fn record(conditions: &str) -> Record {
    Record { date: "2026-01-31".to_owned(), conditions: conditions.to_owned(), ..Record::default() }
}

fn calls(folder: &Path) -> usize {
    fs::read_to_string(folder.join("calls")).unwrap().lines().count()
}

#[test]
fn a_part_that_fails_is_named_and_the_others_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let failed = measure(&[PANICKING, FAILING, GOOD], folder, record("one")).unwrap();
    assert_eq!(failed, ["request", "applications"]);
    let summary = report::write(folder, None).unwrap();
    for needed in ["`applications` failed", "the reader answered nonsense", "`request` failed", "| trap/ud1 | 250 ns |"] {
        assert!(summary.contains(needed), "{needed} is missing in:\n{summary}");
    }
    assert!(!summary.contains("7.000"), "numbers of a part that failed:\n{summary}");

    // The next run measures what is missing, and nothing else.
    assert!(measure(&[MENDED, GOOD], folder, record("one")).unwrap().is_empty());
    assert_eq!(calls(folder), 1);
    let summary = report::write(folder, None).unwrap();
    assert!(summary.contains("| ocr-execution-ratio | 1.250 | <=1.15 | **MISS** |"), "{summary}");
    assert!(!summary.contains("`applications` failed"), "{summary}");

    // What is of other programs is said to be.
    measure(&[MENDED], folder, record("two")).unwrap();
    let summary = report::write(folder, None).unwrap();
    assert!(summary.contains("**Measured with other programs than the rest:** `costs`, `request`."), "{summary}");

    // With other programs everything is measured again; what was deleted, too.
    measure(&[MENDED, GOOD], folder, record("two")).unwrap();
    assert_eq!(calls(folder), 2);
    fs::remove_file(folder.join("phases-costs.csv")).unwrap();
    measure(&[MENDED, GOOD], folder, record("two")).unwrap();
    assert_eq!(calls(folder), 3);
}

#[test]
fn numbers_of_an_interrupted_part_are_not_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    measure(&[GOOD], folder, record("one")).unwrap();
    // As it is while the part is measured with other programs.
    let interrupting = Part {
        measure: |folder| {
            let summary = report::write(folder, None)?;
            anyhow::ensure!(!summary.contains("trap/ud1"), "{summary}");
            write_phase(folder, 1.0)
        },
        ..GOOD
    };
    assert!(measure(&[interrupting], folder, record("two")).unwrap().is_empty());
}

#[test]
fn only_what_changed_by_more_than_noise_is_called_a_change() {
    let figure = |name: &str, value, better, noise| Figure { name: name.to_owned(), value, unit: "us".to_owned(), better, noise };
    let verdict = |now: Figure, before: Figure| compare::compare(&[now], &[before]).pop().map(|change| change.verdict);
    use Better::{Higher, Lower};
    let cases = [
        (104.0, Lower, 0.0, Verdict::Same),
        (106.0, Lower, 0.0, Verdict::Worse),
        (94.0, Lower, 0.0, Verdict::Better),
        (106.0, Higher, 0.0, Verdict::Better),
        (94.0, Higher, 0.0, Verdict::Worse),
        // Both runs' noise counts.
        (119.0, Lower, 0.1, Verdict::Same),
        (121.0, Lower, 0.1, Verdict::Worse),
        (f64::NAN, Lower, 0.0, Verdict::Same),
    ];
    for (now, better, noise, expected) in cases {
        let found = verdict(figure("a", now, better, noise), figure("a", 100.0, better, noise));
        assert_eq!(found, Some(expected), "{now} {better:?} {noise}");
    }
    assert_eq!(verdict(figure("a", 1.0, Lower, 0.0), figure("b", 1.0, Lower, 0.0)), None);
}

#[test]
fn the_run_before_is_the_last_of_the_same_machine() {
    let runs = tempfile::tempdir().unwrap();
    for name in ["2026-01-02-amd-2-cores", "2026-01-10-amd-2-cores", "2026-01-09-amd-2-cores", "2026-01-08-arm-2-cores", "notes"]
    {
        fs::create_dir(runs.path().join(name)).unwrap();
    }
    let previous = |name: &str| compare::previous(&runs.path().join(name));
    assert_eq!(previous("2026-01-10-amd-2-cores"), Some(runs.path().join("2026-01-09-amd-2-cores")));
    assert_eq!(previous("2026-02-01-amd-2-cores"), Some(runs.path().join("2026-01-10-amd-2-cores")));
    assert_eq!(previous("2026-01-02-amd-2-cores"), None);
    assert_eq!(previous("2026-02-01-amd-4-cores"), None);
}

fn rows(sledge: f64, process: f64) -> Vec<Row> {
    let row = |scenario: &str, server: &str, turn, per_second: f64| Row {
        scenario: scenario.to_owned(),
        server: server.to_owned(),
        turn,
        clients: 100,
        keep_alive: true,
        rate: None,
        replies: 9,
        refused: 0,
        per_second,
        mean_us: 1e6 / per_second,
        p50_us: 1e6 / per_second,
        p90_us: 1e6 / per_second,
        p99_us: 2e6 / per_second,
        p999_us: 1e6 / per_second,
        max_us: 1e6 / per_second,
    };
    let applications = ["gps-ekf", "ocr", "image-classify", "image-resize", "plate-detect"];
    let both = |name: &&str| [row(name, "sledge", 0, sledge), row(name, "process per request", 0, process)];
    applications.iter().flat_map(both).collect()
}

/// A run's folder without a record, as it is after measuring by hand.
fn by_hand(folder: &Path, sledge: f64) {
    fs::write(folder.join("load.csv"), row::csv(&rows(sledge, 100.0))).unwrap();
    tables::write(&folder.join("applications.csv"), [turn("ocr", 2e-3, 2.2e-3), turn("ocr", 1e-3, 1.3e-3)]).unwrap();
    let kernels = "# tools\nkernel,variant,round,seconds\nlu,native,0,2.0\nlu,native-march,0,1.0\nlu,c-guard,0,2.2\ngemm,c-guard,0,0.5\n\
                   gemm,native,0,2.0\ngemm,native-march,0,1.0\ngemm,wasmtime-c,0,1.0\n";
    fs::write(folder.join("polybench-small-raw.csv"), kernels).unwrap();
}

#[test]
fn a_report_is_made_of_csv_alone() {
    let runs = tempfile::tempdir().unwrap();
    let [before, now] = ["2026-01-01-x", "2026-01-02-x"].map(|name| runs.path().join(name));
    for (folder, sledge) in [(&before, 200.0), (&now, 2100.0)] {
        fs::create_dir(folder).unwrap();
        by_hand(folder, sledge);
    }
    write_phase(&now, 1250.0).unwrap();
    fs::write(now.join("peers.md"), "# Peers\n\nBeside others.\n\n## ping\n\n| node |\n").unwrap();
    let summary = report::write(&now, compare::previous(&now).as_deref()).unwrap();
    for needed in [
        "| ocr | 1000.00 | 1300.00 | 1.300 |",
        "| gps-ekf-served-throughput-ratio | 21.000 | >=20 | ok |",
        "| applications-served-p99-worst-ratio | 0.048 | <=1 | ok |",
        // Of 1.1 and 0.25; what not all kernels were measured with is left out.
        "| c-guard | 0.524 | 1.10 | 2 |",
        "| trap/ud1 | 1.25 us |",
        "## Against 2026-01-01-x",
        "| load ocr, throughput | 2100 | 200 | replies/s | 10.50 | 0.05 | better |",
        "![phases](phases.svg)",
        "![load](load.svg)",
        "\n## Peers\n\nBeside others.\n\n### ping\n\n| node |\n",
    ] {
        assert!(summary.contains(needed), "{needed} is missing in:\n{summary}");
    }
    assert!(!summary.contains("wasmtime") && !summary.contains("worse"), "{summary}");
    assert_eq!(fs::read_to_string(now.join("summary.md")).unwrap(), summary);
    for file in ["phases.svg", "phases.png", "load.svg", "load.png", "figures.csv", "changes.csv"] {
        assert!(fs::metadata(now.join(file)).unwrap().len() > 100, "{file}");
    }
    // Again, the same.
    assert_eq!(report::write(&now, Some(&before)).unwrap(), summary);

    fs::write(now.join("load.csv"), "scenario,server\nping,sledge\n").unwrap();
    let error = format!("{:#}", report::write(&now, None).unwrap_err());
    assert!(error.contains("load.csv") && error.contains("line: 2"), "{error}");
}
