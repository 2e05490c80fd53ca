//! Bytes that executions take up: counted as they are written, limited by tenant, and freed.

use std::ops::Bound;

use super::*;
use crate::kv::{Order, Records};

impl Served {
    /// The bytes that all executions take up in the store, read there.
    pub(super) fn written(&self) -> u64 {
        written(&self.store.records())
    }

    /// They are what was counted.
    #[track_caller]
    fn check_bytes(&self, what: &str) {
        // What was just answered may be written and not yet counted.
        let begun = Instant::now();
        loop {
            let (written, counted) = (self.written(), self.executions.bytes());
            if counted == [(TENANT.into(), written)] {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(5), "{what}: {written} bytes are written, {counted:?} counted");
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn remove(&self, workflow: &str, name: &str) -> Result<(), Refused> {
        wait(self.executions.remove(self.place(workflow, name)))
    }
}

fn written(records: &Records) -> u64 {
    let mut bytes = 0;
    let with = |key: &[u8], value: &[u8]| {
        if matches!(key[0], b'E' | b'C' | b'H') {
            bytes += (key.len() + value.len()) as u64;
        }
        true
    };
    records.scan((Bound::Unbounded, Bound::Unbounded), Order::Rising, with).unwrap();
    bytes
}

fn serve(disk: &Disk, workflows: &[(&str, Value)], settings: &Value, bytes_max: u64) -> Served {
    let store = Store::Embedded(open_folding(disk, &Arc::default()));
    let executions = Executions::of(&store);
    executions.limit(bytes_max);
    Served::of((store, executions), workflows, settings, (&[played()], None))
}

fn hour() -> Value {
    machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 3_600, "End": true } }))
}

#[test]
fn what_is_counted_is_what_is_written_whatever_happens() {
    let disk = Disk::default();
    let fails = machine("F", &json!({ "F": call(&add("f"), Some("G")), "G": { "Type": "Fail", "Error": "No" } }));
    let map = json!({ "M": { "Type": "Map", "ItemsPath": "$.items", "ItemProcessor": machine("I", &json!({ "I": call(&add("i"), None) })), "End": true } });
    let outer = json!({ "Inner": { "Type": "Task", "Resource": "workflow:map", "End": true } });
    let all = [("hour", hour()), ("fails", fails), ("map", machine("M", &map)), ("outer", machine("Inner", &outer))];
    let serve = |disk: &Disk| serve(disk, &all, &json!({ "limits": { "running_max": 2 } }), u64::MAX);
    let mut served = serve(&disk);
    assert!(served.executions.bytes().is_empty() || served.executions.bytes() == [(TENANT.into(), 0)]);
    for name in ["one", "two", "three", "four"] {
        served.begin("hour", name, json!({ "name": name })).unwrap();
    }
    served.check_bytes("two wait, two are queued");
    served.begin("outer", "one", json!({ "items": [1, 2, 3] })).unwrap();
    served.begin("fails", "one", json!({})).unwrap();
    assert_eq!((served.end_of("outer", "one").status, served.end_of("fails", "one").status), (Status::Succeeded, Status::Failed));
    served.check_bytes("some have ended");
    wait(served.executions.redrive(served.place("fails", "one"))).unwrap();
    served.end_of("fails", "one");
    wait(served.executions.restart(served.place("fails", "one"), "F".into(), Some(json!({ "again": "x".repeat(500) })))).unwrap();
    served.end_of("fails", "one");
    served.check_bytes("one has gone on twice");
    wait(served.executions.pause(served.place("hour", "one"), true)).unwrap();
    wait(served.executions.pause(served.place("hour", "one"), false)).unwrap();
    served.redefine(
        "hour",
        &machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 3_600, "Next": "E" }, "E": { "Type": "Succeed" } })),
    );
    for name in ["one", "three"] {
        wait(served.executions.repin(served.place("hour", name), true)).unwrap();
    }
    served.check_bytes("one was paused, and two were moved");
    for name in ["four", "two"] {
        wait(served.executions.stop(served.place("hour", name), None, None)).unwrap();
    }
    served.check_bytes("one was stopped in its queue, and one that ran");
    served.kill();
    let served = serve(&disk.crashed(&mut 3));
    served.begin("map", "late", json!({ "items": [] })).unwrap();
    served.end_of("map", "late");
    served.check_bytes("after a restart");
    // Those that have ended are removed, of whichever kind.
    for (workflow, name) in [("hour", "four"), ("hour", "two"), ("fails", "one"), ("outer", "one"), ("map", "late")] {
        served.remove(workflow, name).unwrap();
        assert!(served.summary(workflow, name).is_none());
        served.check_bytes(name);
    }
    assert!(matches!(served.remove("fails", "one"), Err(Refused::NoExecution)));
    assert!(matches!(served.remove("hour", "one"), Err(Refused::Impossible(_))), "it has not ended");
    assert!(matches!(wait(served.executions.redrive(served.place("fails", "one"))), Err(Refused::NoExecution)));
    let listing = journal::Listing { tenant: TENANT.into(), workflow: "map".into(), status: None, after: None, max: 10 };
    for (place, _) in served.executions.0.journal.list(&listing).unwrap().0 {
        served.remove("map", &place.name).unwrap();
    }
    for name in ["one", "three"] {
        served.remove("hour", name).unwrap_err();
        wait(served.executions.stop(served.place("hour", name), None, None)).unwrap();
        served.end_of("hour", name);
        served.remove("hour", name).unwrap();
    }
    served.check_bytes("nothing is left");
    assert_eq!((served.written(), served.executions.0.journal.kept().unwrap()), (0, 0));
    // The name is free.
    served.begin("fails", "one", json!({})).unwrap();
    served.stop();
}

#[test]
fn a_tenant_with_a_full_quota_begins_nothing_until_something_is_removed() {
    const BYTES_MAX: u64 = 100_000;
    let disk = Disk::default();
    let succeeds = machine("E", &json!({ "E": { "Type": "Succeed" } }));
    let two = machine("W", &json!({ "W": { "Type": "Wait", "Seconds": 2, "Next": "A" }, "A": call(&add("a"), None) }));
    let all = [("ends", succeeds), ("two", two)];
    let settings = json!({ "retention_days": 0 });
    let served = serve(&disk, &all, &settings, BYTES_MAX);
    served.begin("two", "runs", json!({ "text": "x".repeat(1_000) })).unwrap();
    let mut begun = Vec::new();
    let refused = loop {
        let name = format!("e{}", begun.len());
        match served.begin("ends", &name, json!({ "text": "x".repeat(1_000) })) {
            Ok(_) => begun.push(name),
            Err(refused) => break refused,
        }
        served.end_of("ends", begun.last().unwrap());
    };
    assert!(begun.len() > 3, "{begun:?}");
    assert!(matches!(refused, Refused::Full { bytes_max: BYTES_MAX, .. }), "{refused}");
    let said = refused.to_string();
    assert!(said.contains("executions_tenant_bytes_max") && said.contains("remove"), "{said}");
    // What runs goes on, to its end.
    assert_eq!(served.end_of("two", "runs").status, Status::Succeeded);
    assert_eq!(served.number("a"), 1);
    let full = served.executions.bytes()[0].1;
    assert!(full < BYTES_MAX + 20_000, "{full}");
    served.kill();
    let served = serve(&disk.crashed(&mut 9), &all, &settings, BYTES_MAX);
    // It is as full as it was.
    let refused = served.begin("ends", "more", json!({ "text": "x".repeat(1_000) }));
    assert!(matches!(refused, Err(Refused::Full { .. })), "{refused:?}");
    assert!(matches!(served.begin("ends", "more", json!({ "text": "x".repeat(30_000) })), Err(Refused::Full { .. })));
    let again = served.begin("ends", &begun[0], json!({ "text": "x".repeat(1_000) }));
    assert!(matches!(again, Err(Refused::Exists { .. })), "what is there is not refused as if it were new: {again:?}");
    for name in &begun[..3] {
        served.remove("ends", name).unwrap();
    }
    served.check_bytes("three were removed");
    served.begin("ends", "more", json!({ "text": "x".repeat(1_000) })).unwrap();
    served.end_of("ends", "more");
    served.stop();
}

#[test]
fn a_child_whose_parent_has_not_been_told_of_its_end_is_not_removed() {
    let disk = Disk::default();
    let outer = json!({ "Inner": { "Type": "Task", "Resource": "workflow:ends", "ResultPath": null, "End": true } });
    let all = [("ends", hour()), ("outer", machine("Inner", &outer))];
    let served = serve(&disk, &all, &json!({}), u64::MAX);
    served.begin("outer", "one", json!({})).unwrap();
    let listing = journal::Listing { tenant: TENANT.into(), workflow: "ends".into(), status: None, after: None, max: 10 };
    let child = loop {
        match served.executions.0.journal.list(&listing).unwrap().0.pop() {
            Some((place, _)) => break place,
            None => thread::sleep(Duration::from_millis(1)),
        }
    };
    served.kill();
    // Where its workflow is not served, the parent does not go on.
    let disk = disk.crashed(&mut 3);
    let served = serve(&disk, &all[..1], &json!({}), u64::MAX);
    wait(served.executions.stop(child.clone(), None, None)).unwrap();
    let refused = wait(served.executions.remove(child.clone()));
    assert!(matches!(&refused, Err(Refused::Impossible(why)) if why.contains("waits for it")), "{refused:?}");
    served.stop();
    let served = serve(&disk, &all, &json!({}), u64::MAX);
    assert_eq!(served.end_of("outer", "one").status, Status::Failed);
    wait(served.executions.remove(child)).unwrap();
    served.remove("outer", "one").unwrap();
    served.check_bytes("both are gone");
    served.stop();
}
