//! Crashes at every write of the journal, and random ones: every execution ends as without a crash, and each of its effects is there once.

use std::sync::Mutex;

use super::*;

/// Workflows, and what each adds to which keys.
fn workflows() -> Vec<(&'static str, Value)> {
    let mut flaky = call(&json!({ "do": "flaky", "key.$": "$.own", "times": 1 }), Some("Second"));
    flaky["Retry"] = json!([{ "ErrorEquals": ["Flaky"], "IntervalSeconds": 1, "BackoffRate": 1.0, "MaxAttempts": 3 }]);
    let mut trap = call(&json!({ "do": "trap", "key": "trap" }), Some("Last"));
    trap["Catch"] = json!([{ "ErrorEquals": ["States.ALL"], "ResultPath": null, "Next": "Last" }]);
    let bump = |name: &str| machine(name, &json!({ name: call(&json!({ "do": "bump", "key": "bumped" }), None) }));
    vec![
        (
            "chain",
            machine(
                "First",
                &json!({ "First": call(&add("chain"), Some("Second")), "Second": call(&add("chain"), Some("Trap")), "Trap": trap,
                         "Last": { "Type": "Task", "Resource": "kv:add", "Parameters": { "Bucket": "b", "Key": "chain" }, "ResultPath": null, "End": true } }),
            ),
        ),
        ("flaky", machine("Flaky", &json!({ "Flaky": flaky, "Second": call(&add("flaky"), None) }))),
        (
            "parallel",
            machine(
                "All",
                &json!({ "All": { "Type": "Parallel", "Branches": [bump("X"), bump("Y"), bump("Z")], "ResultPath": null, "Next": "Then" }, "Then": call(&add("parallel"), None) }),
            ),
        ),
        (
            "map",
            machine(
                "Each",
                &json!({ "Each": { "Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 2, "ItemProcessor": machine("M", &json!({ "M": call(&add("map"), None) })),
                                   "ResultPath": null, "End": true } }),
            ),
        ),
        (
            "nested",
            machine(
                "Inner",
                &json!({ "Inner": { "Type": "Task", "Resource": "workflow:chain", "ResultPath": null, "Next": "Then" }, "Then": call(&add("nested"), None) }),
            ),
        ),
    ]
}

/// What is to be in the store when one of each has ended, by key: how much each of the workflows adds.
const EFFECTS: [(&str, [i64; 5]); 7] = [
    ("chain", [3, 0, 0, 0, 3]),
    ("flaky", [0, 1, 0, 0, 0]),
    ("bumped", [0, 0, 3, 0, 0]),
    ("parallel", [0, 0, 1, 0, 0]),
    ("map", [0, 0, 0, 4, 0]),
    ("nested", [0, 0, 0, 0, 1]),
    ("trap", [0; 5]),
];

fn input(name: &str) -> Value {
    json!({ "items": [1, 2, 3, 4], "own": format!("own-{name}") })
}

/// Executions that clients were told of: they are to be there.
type Begun = Vec<(usize, String)>;

/// Checks what is there when all have ended.
#[track_caller]
fn check(served: &Served, names: &[&str], begun: &Begun, what: &str) {
    let mut sums = [0; 5];
    for (kind, name) in begun {
        let ended = served.end_of(names[*kind], name);
        assert_eq!(ended.status, Status::Succeeded, "{what}: {} {name}: {ended:?}", names[*kind]);
        assert_eq!(ended.output.as_deref(), Some(&input(name)), "{what}");
        if names[*kind] == "flaky" {
            assert_eq!(served.number(&format!("own-{name}")), 2, "{what}: attempts of {name}");
        }
        sums[*kind] += 1;
    }
    for (key, each) in EFFECTS {
        let wanted: i64 = each.iter().zip(sums).map(|(each, count)| each * count).sum();
        assert_eq!(served.number(key), wanted, "{what}: {key} of {sums:?}");
    }
}

/// Starts executions until the disk fails; which of them have begun, so far as their clients know.
fn begin_all(served: &Served, names: &[&str], wanted: &[(usize, String)], begun: &mut Begun, has_failed: impl Fn() -> bool) {
    for (kind, name) in wanted {
        let begins = served.executions.start(&served.workflows[names[*kind]], Some(name.clone()), input(name));
        // While its last commit is in doubt, the store does not answer.
        let fails = async {
            while !has_failed() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            Err(Refused::Stopping)
        };
        let begins = async {
            tokio::select! {
                begun = begins => begun,
                failed = fails => failed,
            }
        };
        match wait(begins) {
            Ok(_) if begun.contains(&(*kind, name.clone())) => {}
            Ok(_) => begun.push((*kind, name.clone())),
            // It had begun, and has ended; its client was not told.
            Err(Refused::Exists { .. }) if begun.contains(&(*kind, name.clone())) => {}
            Err(Refused::Exists { .. }) => begun.push((*kind, name.clone())),
            Err(_) => return,
        }
    }
}

/// Waits until an execution has ended or the disk does not work any more.
fn until_disk_fails(served: &Served, names: &[&str], begun: &Begun, disk: &Disk, from: usize) {
    let deadline = Instant::now() + TIME_MAX;
    for (kind, name) in begun {
        while disk.operations() <= from {
            // Nothing can be read either when the disk has failed.
            match served.executions.0.journal.summary(&served.place(names[*kind], name)) {
                Ok(Some(summary)) if summary.status != Status::Running => break,
                _ => thread::sleep(Duration::from_millis(1)),
            }
            assert!(Instant::now() < deadline, "{name} does not end");
        }
    }
}

/// One run with a crash at that operation of the disk, and one at some operation after the restart. How many operations there were.
fn crash_at(wanted: &[(usize, String)], first: usize, second: usize, mut seed: u64) -> usize {
    let workflows = workflows();
    let names: Vec<&str> = workflows.iter().map(|(name, _)| *name).collect();
    let (mut disk, mut begun) = (Disk::default(), Begun::new());
    let mut operations = 0;
    for from in [first, second, usize::MAX] {
        if from != usize::MAX {
            disk.fail(from, usize::MAX - from, libc::EIO, seed);
        }
        let served = Served::start(&disk, &workflows);
        let what = format!("crashes at {first} and {second}, seed {seed}");
        begin_all(&served, &names, wanted, &mut begun, || disk.operations() > from);
        if from == usize::MAX {
            assert_eq!(begun.len(), wanted.len(), "{what}");
            check(&served, &names, &begun, &what);
            served.kill();
        } else {
            until_disk_fails(&served, &names, &begun, &disk, from);
            operations = operations.max(disk.operations());
            let after = disk.crashed(&mut seed);
            served.kill();
            disk = after;
        }
    }
    operations
}

fn one_of_each() -> Vec<(usize, String)> {
    (0..5).map(|kind| (kind, format!("e{kind}"))).collect()
}

/// Many at the same time: most of each is waiting.
pub(super) fn each(cases: impl Iterator<Item = usize> + Send, case: impl Fn(usize) + Sync) {
    const THREADS: usize = 16;
    let cases = Mutex::new(cases);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let Some(next) = cases.lock().unwrap().next() else { return };
                    case(next);
                }
            });
        }
    });
}

fn is_long() -> bool {
    std::env::var_os("SLEDGE_LONG_TESTS").is_some()
}

#[test]
fn a_crash_at_each_write_changes_nothing() {
    // Without one, to count.
    let operations = crash_at(&one_of_each(), usize::MAX - 1, usize::MAX - 1, 1);
    assert!(operations > 100, "{operations}");
    let step = if is_long() { 1 } else { 3 };
    each((10..operations).step_by(step), |from| {
        crash_at(&one_of_each(), from, usize::MAX - 1, from as u64);
    });
}

#[test]
fn random_crashes_change_nothing() {
    each(0..if is_long() { 1_000 } else { 50 }, |seed| {
        let mut random = fastrand::Rng::with_seed(seed as u64);
        let wanted: Vec<_> = (0..random.usize(1..8)).map(|number| (random.usize(..5), format!("r{number}"))).collect();
        crash_at(&wanted, random.usize(10..300), random.usize(10..300), seed as u64);
    });
}
